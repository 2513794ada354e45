//! The one answerer of questions over all sessions. With an index it reads only what has changed; without one, or when the index
//! cannot be used, it reads the sessions themselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use rayon::prelude::*;
use scrollback::model::project::Projects;
use scrollback::model::{NamedRequests, SessionId};
use scrollback::redact::Redactor;
use scrollback::view::SessionRow;
use scrollback::view::find::{Listing, Places};
use scrollback::view::listing;
use scrollback::{Error as ReadError, ReadOptions, Session, Source};

use crate::card::{Card, Depth};
use crate::error::{Error, Result};
use crate::index::{Bookmark, Index, Known, Learned, Place, SourceId, Texts};
use crate::query::{DocumentFacts, DocumentWords, Query};

/// Answers questions over the sessions of some places.
pub struct Archive {
    pub(crate) places: Places,
    pub(crate) now: Timestamp,
    pub(crate) index: Option<Box<dyn Index>>,
    /// Nothing below these folders enters the index.
    excluded: Vec<PathBuf>,
    /// The stamps of the files that it has looked at.
    pub(crate) stamps: HashMap<Place, Option<u64>>,
    /// What the index knows, until something is stored.
    known: Option<Arc<HashMap<Place, Known>>>,
    /// What was not as it should be with the index.
    problems: Vec<Error>,
    /// Whether nobody waits for the answer any more.
    pub(crate) given_up: Arc<AtomicBool>,
}

impl Archive {
    /// Reads the sessions themselves.
    pub fn new(places: Places, now: Timestamp) -> Archive {
        let (stamps, known, given_up) = (HashMap::new(), None, Arc::default());
        Archive { places, now, index: None, excluded: Vec::new(), stamps, known, problems: Vec::new(), given_up }
    }

    /// Keeps what it learns in an index, and asks it first. Whatever is in an index is masked, so the answers are.
    pub fn with_index(places: Places, now: Timestamp, index: Box<dyn Index>, mask: Arc<Redactor>) -> Archive {
        Archive { index: Some(index), ..Archive::new(Places { mask: Some(mask), ..places }, now) }
    }

    /// Sessions below these folders, and of projects there, never enter the index: they are read each time.
    pub fn excluding(self, excluded: Vec<PathBuf>) -> Archive {
        Archive { excluded, ..self }
    }

    /// Reads no further sessions for a search when this is set: what it has found by then is its answer.
    pub fn given_up_by(self, given_up: Arc<AtomicBool>) -> Archive {
        Archive { given_up, ..self }
    }

    /// Whether a session may enter the index; `cwd` is where it was recorded, if that is known.
    pub(crate) fn is_excluded(&self, source: &Source, cwd: Option<&str>) -> bool {
        self.is_path_excluded(&source.path)
            || source.kept_from().is_some_and(|path| self.is_path_excluded(path))
            || cwd.is_some_and(|cwd| self.is_path_excluded(Path::new(cwd)))
    }

    /// Whether a path is below one of the folders that never enter the index.
    pub(crate) fn is_path_excluded(&self, path: &Path) -> bool {
        self.excluded.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether there are such folders.
    pub(crate) fn excludes(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// The same for a session of which nothing is known: if folders are excluded, looks at the beginning of its file.
    pub(crate) fn is_unknown_excluded(&self, source: &Source) -> bool {
        if self.excluded.is_empty() {
            return false;
        }
        let reading = ReadOptions { mask: self.places.mask.as_ref(), ..ReadOptions::plain(self.now) };
        let row = listing::row(source, &reading, listing::Depth::Ends);
        row.is_ok_and(|row| self.is_excluded(source, row.cwd.as_deref()))
    }

    /// Looks at the files of these sessions, and asks the index anew. Other questions about them are answered as they are now.
    pub fn look(&mut self, sources: &[Source]) {
        self.look_and(sources, |archive| drop(archive.known()));
    }

    /// The same, while this thread reads something from the index.
    fn look_and<T>(&mut self, sources: &[Source], read: impl FnOnce(&mut Archive) -> T) -> T {
        self.known = None;
        if self.index.is_none() {
            return read(self);
        }
        let look = |source: &Source| (Place::of(source), source.stamp());
        let mut stamps = Vec::new();
        let read = rayon::in_place_scope(|scope| {
            scope.spawn(|_| stamps = sources.par_iter().map(look).collect());
            read(self)
        });
        self.stamps.extend(stamps);
        read
    }

    /// The ids of these sessions, as far as they are known.
    pub fn ids(&mut self, sources: &[Source]) -> Vec<Option<SessionId>> {
        self.look(sources);
        let known = self.known();
        let id = |source| self.holding(&known, source, Depth::Ends).map(|known| known.session.clone());
        sources.iter().map(id).collect()
    }

    /// The sessions that are not known as they were looked at: all of them without an index.
    pub fn changed<'s>(&mut self, sources: &'s [Source]) -> Vec<&'s Source> {
        self.unknown(sources, Depth::Ends)
    }

    /// The sessions that are not known as they were looked at, and this deep.
    pub(crate) fn unknown<'s>(&mut self, sources: &'s [Source], depth: Depth) -> Vec<&'s Source> {
        let known = self.known();
        sources.iter().filter(|source| self.holding(&known, source, depth).is_none()).collect()
    }

    /// What is known of a session, if its files are those that were read, and were read this deep.
    pub(crate) fn holding<'k>(
        &self,
        known: &'k HashMap<Place, Known>,
        source: &Source,
        depth: Depth,
    ) -> Option<&'k Known> {
        let place = Place::of(source);
        let known = known.get(&place)?;
        let stamp = self.stamps.get(&place).copied().unwrap_or_else(|| source.stamp());
        known.holds(stamp, depth).then_some(known)
    }

    /// Where it looks for sessions.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Whether it has an index.
    pub fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// What went wrong with the index since the last call. The answers are right all the same.
    pub fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }

    /// Describes sessions, the newest first. What the index knows of unchanged files is not read again.
    pub fn describe(
        &mut self,
        sources: Vec<Source>,
        depth: listing::Depth,
        on_described: &(dyn Fn() + Sync),
    ) -> Listing {
        let needed = Depth::from(depth);
        let mut cards = self.look_and(&sources, Archive::cards);
        if self.catch_up(&sources) {
            cards = self.cards();
        }
        let known = self.known();
        let projects = Projects::default();
        let has_forks = |source: &Source| source.dialect.traits().forks_by_reference;
        let origins: HashSet<String> = sources.iter().filter(|source| has_forks(source)).map(Source::name).collect();
        let (mut sessions, mut unknown) = (Vec::with_capacity(sources.len()), Vec::new());
        for source in sources {
            let card = self.holding(&known, &source, needed).and_then(|known| cards.remove(&known.id));
            // Its own files do not tell that the session that it begins in is gone.
            let is_whole = |card: &Card| {
                !has_forks(&source) || card.origin().is_none_or(|origin| origins.contains(origin.as_str()))
            };
            match card.filter(is_whole) {
                Some(card) => {
                    sessions.push((card.into_row(&projects), source));
                    on_described();
                }
                None => unknown.push(source),
            }
        }
        let (read, unreadable) = self.places.rows(unknown, self.now, depth, on_described);
        self.learn(&read, needed);
        sessions.extend(read);
        let copies = listing::take_kept_copies(&mut sessions);
        listing::entitle(&mut sessions.iter_mut().map(|(row, _)| &mut **row).collect::<Vec<_>>());
        listing::sort_newest_first(&mut sessions);
        Listing { sessions, copies, unreadable }
    }

    /// What a list shows of each session. Those of which that is damaged are forgotten, and so read anew.
    pub(crate) fn cards(&mut self) -> HashMap<SourceId, Card> {
        let known = self.known();
        let Some(cards) = self.ask(|index| index.cards()) else { return HashMap::new() };
        let damaged: Vec<SourceId> =
            known.values().map(|known| known.id).filter(|id| !cards.contains_key(id)).collect();
        if !damaged.is_empty() {
            self.change(|index| index.forget(&damaged));
        }
        cards
    }

    /// Reads what was appended to sessions whose text the index knows. Says whether there are any.
    fn catch_up(&mut self, sources: &[Source]) -> bool {
        let known = self.known();
        let has_grown = |source: &&Source| {
            let knows_text = known.get(&Place::of(source)).is_some_and(|known| known.depth >= Depth::Text);
            knows_text && self.holding(&known, source, Depth::Text).is_none()
        };
        let grown: Vec<&Source> = sources.iter().filter(has_grown).collect();
        if grown.is_empty() {
            return false;
        }
        self.read_appended(&grown, &known);
        // Their files may have grown further since they were looked at.
        let now = self.known();
        for place in grown.into_iter().map(Place::of) {
            if let Some(now) =
                now.get(&place).filter(|now| known.get(&place).is_none_or(|known| known.stamp != now.stamp))
            {
                self.stamps.insert(place, Some(now.stamp));
            }
        }
        true
    }

    /// Reads a whole session; of one whose text the index knows, only what was appended.
    pub fn session(&mut self, source: &Source) -> scrollback::Result<Session> {
        let bookmark = self.bookmark(source);
        self.reader().session(source, bookmark.as_ref())
    }

    /// How far the index has read a session.
    pub(crate) fn bookmark(&mut self, source: &Source) -> Option<Bookmark> {
        self.ask(|index| index.bookmark(&Place::of(source))).flatten()
    }

    /// Keeps the sessions whose title, project or first prompt matches; each of them counts as one text.
    pub fn narrow(&self, query: &Query, sessions: &mut Vec<(Box<SessionRow>, Source)>) {
        sessions.retain(|(row, _)| {
            let texts = [Some(row.title.as_str()), row.project.as_deref(), row.first_prompt.as_deref()];
            let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            query.matches(&DocumentWords::of(&text), &text, &DocumentFacts::of_session(row))
        });
    }

    /// Adds what [`listing::mark_copied_requests`] compares to the sessions that the index knows.
    pub fn add_requests(&mut self, sessions: &mut [(Box<SessionRow>, Source)]) {
        let known = self.known();
        let id = |source: &Source| known.get(&Place::of(source)).map(|known| known.id);
        let ids: Vec<SourceId> = sessions.iter().filter_map(|(_, source)| id(source)).collect();
        let mut requests = self.ask(|index| index.requests(&ids)).unwrap_or_default();
        let (mut damaged, mut of_damaged) = (Vec::new(), Vec::new());
        for session in sessions.iter_mut().filter(|(row, _)| row.named_requests == NamedRequests::default()) {
            let Some(id) = id(&session.1) else { continue };
            match requests.remove(&id) {
                Some(stored) => session.0.named_requests = stored,
                None => {
                    damaged.push(session);
                    of_damaged.push(id);
                }
            }
        }
        if !damaged.is_empty() {
            self.change(|index| index.forget(&of_damaged));
            self.read_whole(damaged);
        }
    }

    /// Completes descriptions of [`listing::Depth::Ends`] as [`Places::complete`] does, and keeps what it learns.
    pub fn complete(&mut self, sessions: &mut Vec<(Box<SessionRow>, Source)>) -> Vec<ReadError> {
        if self.index.is_none() {
            return self.places.complete(sessions, self.now);
        }
        if sessions.iter().all(|(row, _)| listing::is_known_whole(row)) {
            return Vec::new();
        }
        let unreadable = self.read_whole(listing::to_read_whole(sessions));
        listing::sort_newest_first(sessions);
        unreadable
    }

    /// Replaces descriptions by those of the whole sessions.
    fn read_whole(&mut self, sessions: Vec<&mut (Box<SessionRow>, Source)>) -> Vec<ReadError> {
        let sources: Vec<Source> = sessions.iter().map(|(_, source)| source.clone()).collect();
        let (whole, unreadable) = self.places.rows(sources, self.now, listing::Depth::Whole, &|| {});
        self.learn(&whole, Depth::Whole);
        let mut whole: HashMap<Place, Box<SessionRow>> =
            whole.into_iter().map(|(row, source)| (Place::of(&source), row)).collect();
        for (row, source) in sessions {
            if let Some(read) = whole.remove(&Place::of(source)) {
                listing::replace(row, *read);
            }
        }
        unreadable
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { places: &self.places, now: self.now }
    }

    /// What the index knows.
    pub(crate) fn known(&mut self) -> Arc<HashMap<Place, Known>> {
        if let Some(known) = &self.known {
            return known.clone();
        }
        let known = Arc::new(self.ask(|index| index.known()).unwrap_or_default());
        self.known.insert(known).clone()
    }

    /// Changes what the index knows.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut dyn Index) -> Result<T>) -> Option<T> {
        self.known = None;
        self.ask(change)
    }

    /// Asks the index. One that fails is not asked again.
    pub(crate) fn ask<T>(&mut self, question: impl FnOnce(&mut dyn Index) -> Result<T>) -> Option<T> {
        match question(self.index.as_deref_mut()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.index = None;
                self.problems.push(error);
                None
            }
        }
    }

    /// Keeps descriptions.
    pub(crate) fn learn(&mut self, read: &[(Box<SessionRow>, Source)], depth: Depth) {
        if self.index.is_none() || read.is_empty() {
            return;
        }
        let learned = |(row, source): &(Box<SessionRow>, Source)| {
            let place = Place::of(source);
            // Without a stamp from before it was read, it may have changed since.
            let stamp = self.stamps.get(&place).copied().flatten()?;
            // What is missing elsewhere may come back, and leaves the stamp as it is.
            if row.base_is_missing || self.is_excluded(source, row.cwd.as_deref()) {
                return None;
            }
            let depth = if listing::is_known_whole(row) { depth.max(Depth::Whole) } else { depth };
            Some(Learned {
                place,
                stamp,
                depth,
                card: Card::new(row),
                texts: Texts::Unread,
                bookmark: None,
                counts: None,
            })
        };
        let learned = read.iter().filter_map(learned).collect();
        self.change(|index| index.store(learned));
    }
}

/// Reads sessions, on any thread.
pub(crate) struct Reader<'a> {
    pub(crate) places: &'a Places,
    pub(crate) now: Timestamp,
}

impl Reader<'_> {
    /// Reads a whole session, masked as these places are; if possible from how far it was read before.
    pub(crate) fn session(&self, source: &Source, bookmark: Option<&Bookmark>) -> scrollback::Result<Session> {
        self.with_options(source, |reading| {
            let resumed = bookmark.map(|bookmark| Session::resume(source, &bookmark.checkpoint, reading));
            match resumed.transpose()?.flatten() {
                Some(resumed) => Ok(resumed.session),
                None => Session::open(source, reading),
            }
        })
    }

    /// Calls something with the options of reading this session.
    pub(crate) fn with_options<T>(&self, source: &Source, read: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
        let find = self.places.finder(source);
        read(&ReadOptions { find: &find, mask: self.places.mask.as_ref(), ..ReadOptions::plain(self.now) })
    }
}
