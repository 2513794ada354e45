//! Brings an index up to date: reads what has changed, on all cores, while one thread writes. Of a session that has grown, only what was
//! appended is read.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use rayon::prelude::*;
use scrollback::model::NamedRequests;
use scrollback::session::Resumed;
use scrollback::view::listing;
use scrollback::view::texts::SearchTexts;
use scrollback::{Error as ReadError, ReadOptions, Session, Source};

use crate::archive::{Archive, Reader};
use crate::card::{Card, Depth};
use crate::counts::{self, StoredCounts};
use crate::index::{Bookmark, Growth, Known, Learned, Place, SourceId, Texts};
use crate::part::{each_part, standings};
use crate::query::Labels;

/// How much text is stored at once, and how long one that stops it waits: less loses time, more loses work.
const BATCH_BYTES: usize = 24 * 1024 * 1024;
const BATCH_TIME: Duration = Duration::from_secs(10);

/// How many sessions wait to be written: each holds its words in memory.
const WAITING: usize = 2;

/// What a refresh did.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// How many sessions were read.
    pub read: usize,
    /// What could not be read.
    pub unreadable: Vec<ReadError>,
    /// Whether it was stopped before the end; the next one continues.
    pub is_stopped: bool,
}

/// What a comparison of the index with the sessions found.
#[derive(Debug, Default)]
pub struct Verified {
    /// How many sessions were compared: those whose text is known as it is now.
    pub sessions: usize,
    /// How many parts they have.
    pub parts: usize,
    /// Sessions of which the index says something else.
    pub wrong: Vec<Source>,
    /// Rows and words of no session.
    pub left_over: usize,
    /// What could not be read.
    pub unreadable: Vec<ReadError>,
}

/// A session whose text is to be read.
pub struct Pending {
    pub(crate) source: Source,
    /// How large its file is.
    pub bytes: u64,
    /// Its newest record by what is known of it, else when its file was written.
    updated: Option<Timestamp>,
    known: Option<KnownText>,
}

/// What an index knows of a session whose files have changed since.
struct KnownText {
    stamp: u64,
    depth: Depth,
    bookmark: Bookmark,
}

/// What was learned of a session; nothing if it is gone, or does not continue what is known.
type Read = std::result::Result<Option<Learned>, ReadError>;

impl Archive {
    /// The sessions that are not known as deep as this, the oldest first: of many matches, those that were stored last are looked at first.
    pub fn pending(&mut self, sources: &[Source], depth: Depth) -> Vec<Pending> {
        let unknown = self.unknown(sources, depth);
        self.meet(&unknown);
        let known = self.known();
        let cards = if unknown.is_empty() { HashMap::new() } else { self.cards() };
        let mut pending = Vec::new();
        for source in unknown {
            let known = known.get(&Place::of(source));
            if known.is_some() || !self.is_unknown_excluded(source) {
                let mut one = self.pending_one(source, known.filter(|known| known.depth >= depth));
                one.updated = known.and_then(|known| cards.get(&known.id)?.updated()).or(one.updated);
                pending.push(one);
            }
        }
        pending.sort_by(|a, b| (a.updated, &a.source.path).cmp(&(b.updated, &b.source.path)));
        pending
    }

    /// Describes the sessions of which nothing is known yet: a list has them then, and their texts are stored in its order.
    fn meet(&mut self, sources: &[&Source]) {
        let known = self.known();
        let is_new = |source: &&&Source| !known.contains_key(&Place::of(source));
        let new: Vec<Source> = sources.iter().filter(is_new).map(|source| (*source).clone()).collect();
        // The order of one is nothing to find out.
        if self.index.is_some() && new.len() > 1 {
            let (met, _) = self.places.rows(new, self.now, listing::Depth::Ends, &|| {});
            self.learn(&met, Depth::Ends);
        }
    }

    fn pending_one(&mut self, source: &Source, known: Option<&Known>) -> Pending {
        let metadata = std::fs::metadata(&source.path).ok();
        let updated = metadata.as_ref().and_then(|metadata| Timestamp::try_from(metadata.modified().ok()?).ok());
        let known = known.and_then(|known| {
            let bookmark = self.bookmark(source)?;
            Some(KnownText { stamp: known.stamp, depth: known.depth, bookmark })
        });
        Pending { source: source.clone(), bytes: metadata.map_or(0, |metadata| metadata.len()), updated, known }
    }

    /// Reads what was appended to sessions whose text is known, and nothing else.
    pub(crate) fn read_appended(&mut self, grown: &[&Source], known: &HashMap<Place, Known>) {
        let pending = grown.iter().map(|source| self.pending_one(source, known.get(&Place::of(source))));
        let pending: Vec<Pending> = pending.filter(|pending| pending.known.is_some()).collect();
        self.read_into_index(&pending, &|pending, reading| pending.read_appended(reading), &|_| true);
    }

    /// Reads the text of sessions into the index. `on_read` gets the bytes of each file that was read, and says whether to go on.
    pub fn read_texts(
        &mut self,
        pending: Vec<Pending>,
        depth: Depth,
        on_read: &(dyn Fn(u64) -> bool + Sync),
    ) -> Refreshed {
        self.read_into_index(&pending, &|pending, reading| pending.read(reading, depth), on_read)
    }

    fn read_into_index(
        &mut self,
        pending: &[Pending],
        read: &(dyn Fn(&Pending, &ReadOptions<'_>) -> Read + Sync),
        on_read: &(dyn Fn(u64) -> bool + Sync),
    ) -> Refreshed {
        let mut refreshed = Refreshed::default();
        if self.index.is_none() || pending.is_empty() {
            return refreshed;
        }
        let (places, now) = (self.places.clone(), self.now);
        let reader = Reader { places: &places, now };
        let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |learned: SyncSender<std::result::Result<Learned, ReadError>>| {
            while let Some(pending) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let read = reader.with_options(&pending.source, |reading| read(pending, reading)).transpose();
                if !on_read(pending.bytes) {
                    is_stopped.store(true, Ordering::Relaxed);
                }
                if let Some(read) = read
                    && learned.send(read).is_err()
                {
                    return;
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING);
            for _ in 0..workers {
                let sender = sender.clone();
                scope.spawn(|| work(sender));
            }
            drop(sender);
            let (mut batch, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
            for read in receiver {
                match read {
                    Ok(learned) => {
                        bytes += learned.texts.parts().iter().map(|part| part.words.len()).sum::<usize>();
                        batch.push(learned);
                        refreshed.read += 1;
                    }
                    Err(error) => refreshed.unreadable.push(error),
                }
                if bytes >= BATCH_BYTES || since.elapsed() >= BATCH_TIME {
                    let full = std::mem::take(&mut batch);
                    if self.change(|index| index.store(full)).is_none() {
                        is_stopped.store(true, Ordering::Relaxed);
                    }
                    (bytes, since) = (0, Instant::now());
                }
            }
            if !batch.is_empty() {
                self.change(|index| index.store(batch));
            }
        });
        refreshed.is_stopped = is_stopped.into_inner();
        refreshed
    }

    /// Compares the index with the sessions that it knows as they are now: what it should have is derived from them again. `on_read` is
    /// called as in [`Archive::read_texts`].
    pub fn verify(&mut self, sources: &[Source], on_read: &(dyn Fn(u64) -> bool + Sync)) -> Verified {
        let mut verified = Verified::default();
        let known = self.known();
        let Some(mut digests) = self.ask(|index| index.digests()) else { return verified };
        let checked: Vec<(&Source, &Known)> = sources
            .iter()
            .filter_map(|source| Some((source, self.holding(&known, source, Depth::Text)?)))
            .collect();
        let ids: Vec<SourceId> = checked.iter().map(|(_, known)| known.id).collect();
        let mut counts = HashMap::new();
        let each_counts = self.ask(|index| index.each_counts(&mut |id, stored| _ = counts.insert(id, stored)));
        let (Some(mut cards), Some(mut requests), Some(())) =
            (self.ask(|index| index.cards()), self.ask(|index| index.requests(&ids)), each_counts)
        else {
            return verified;
        };
        let stored: Vec<Stored> = checked
            .iter()
            .map(|(source, Known { id, stamp, .. })| Stored {
                card: cards.remove(id),
                requests: requests.remove(id),
                // Others are of older files, and not used.
                counts: counts.remove(id).filter(|counts| counts.stamp == *stamp),
                standings: self.bookmark(source).map(|bookmark| bookmark.standings),
            })
            .collect();
        let reader = self.reader();
        let expected: Vec<_> = checked
            .par_iter()
            .zip(stored)
            .map(|((source, known), stored)| {
                let session = reader.session(source, None)?;
                let (mut texts, mut parts) = (SearchTexts::new(&session), Vec::new());
                let everything = known.depth == Depth::Everything;
                each_part(&mut texts, session.records(), everything, |part| {
                    parts.push((part.record, part.part, part.digest()));
                })?;
                let is_right = stored.is_of(&session, &texts)?;
                on_read(session.size_bytes()?);
                scrollback::Result::Ok((parts, is_right))
            })
            .collect();
        for ((source, known), expected) in checked.iter().zip(expected) {
            match expected {
                Ok((parts, mut is_right)) => {
                    verified.sessions += 1;
                    verified.parts += parts.len();
                    for (record, part, digest) in parts {
                        is_right &= digests.remove(&(known.id, record, part)) == Some(digest);
                    }
                    // What is left over is of no part.
                    let before = digests.len();
                    digests.retain(|(id, _, _), _| *id != known.id);
                    if !is_right || digests.len() != before {
                        verified.wrong.push((*source).clone());
                    }
                }
                Err(error) => verified.unreadable.push(error),
            }
        }
        let of_known: HashSet<SourceId> = known.values().map(|known| known.id).collect();
        verified.left_over = digests.keys().filter(|(id, _, _)| !of_known.contains(id)).count();
        verified
    }

    /// Forgets sessions whose files are gone.
    pub fn forget_missing(&mut self) -> usize {
        let known = self.known();
        let is_gone = |place: &Place| place.path().is_some_and(|path| matches!(path.try_exists(), Ok(false)));
        // What was just looked at is there.
        let unseen = known.iter().filter(|(place, _)| !matches!(self.stamps.get(*place), Some(Some(_))));
        let gone: Vec<SourceId> = unseen.filter(|(place, _)| is_gone(place)).map(|(_, known)| known.id).collect();
        if !gone.is_empty() {
            self.change(|index| index.forget(&gone));
        }
        gone.len()
    }

    /// Forgets sessions that may no longer be in the index, and leaves no word of them there. Returns how many.
    pub fn forget_excluded(&mut self) -> usize {
        if !self.excludes() {
            return 0;
        }
        let (known, cards) = (self.known(), self.ask(|index| index.cards()).unwrap_or_default());
        let is_excluded = |place: &Place, known: &Known| {
            let cwd = cards.get(&known.id).and_then(Card::cwd);
            place.path().is_some_and(|path| self.is_path_excluded(path))
                || cwd.is_some_and(|cwd| self.is_path_excluded(Path::new(cwd)))
        };
        let gone: Vec<SourceId> =
            known.iter().filter(|(place, known)| is_excluded(place, known)).map(|(_, known)| known.id).collect();
        if !gone.is_empty() {
            self.change(|index| index.forget(&gone));
            self.optimize();
        }
        gone.len()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.change(|index| index.clear());
    }

    /// Makes the index smaller and faster after much was stored.
    pub fn optimize(&mut self) {
        self.ask(|index| index.optimize());
    }
}

/// What an index has of a session beside its parts.
struct Stored {
    card: Option<Card>,
    requests: Option<NamedRequests>,
    counts: Option<StoredCounts>,
    standings: Option<Vec<u8>>,
}

impl Stored {
    /// Whether it is what the session itself gives.
    fn is_of(&self, session: &Session, texts: &SearchTexts<'_>) -> scrollback::Result<bool> {
        let row = session.row()?;
        let expected = session.checkpoint()?.map(|_| standings(session, texts));
        let counted = counts::counted(session)?;
        let has_counts = |stored: &StoredCounts| counts::is_same(&stored.bytes, &counted);
        Ok(self.card.as_ref().is_some_and(|card| card.is_of(&row))
            && self.requests.as_ref() == Some(&row.named_requests)
            && self.standings == expected
            && self.counts.as_ref().is_none_or(has_counts))
    }
}

impl Pending {
    /// Reads what was appended or, if that is not possible, the whole session.
    fn read(&self, reading: &ReadOptions<'_>, depth: Depth) -> Read {
        if let Some(grown) = self.read_appended(reading)? {
            return Ok(Some(grown));
        }
        let Some(stamp) = self.source.stamp() else { return Ok(None) };
        let session = Session::open(&self.source, reading)?;
        let mut texts = SearchTexts::new(&session);
        let mut parts = Vec::new();
        each_part(&mut texts, session.records(), depth == Depth::Everything, |part| parts.push(part))?;
        let standings = standings(&session, &texts);
        let learned = self.learned(&session, stamp, depth, Texts::Whole(parts), standings)?;
        Ok(Some(Learned { counts: Some(counts::counted(&session)?), ..learned }))
    }

    fn read_appended(&self, reading: &ReadOptions<'_>) -> Read {
        let Some(KnownText { stamp: since, depth, bookmark }) = &self.known else { return Ok(None) };
        let Some(stamp) = self.source.stamp() else { return Ok(None) };
        let Some(resumed) = Session::resume(&self.source, &bookmark.checkpoint, reading)? else { return Ok(None) };
        let Resumed { session, .. } = &resumed;
        let mut texts = SearchTexts::new(session);
        let mut parts = Vec::new();
        let is_new = |record: &_| resumed.is_new(*record);
        each_part(&mut texts, session.records().filter(is_new), *depth == Depth::Everything, |part| parts.push(part))?;
        let standings = standings(session, &texts);
        let before = bookmark.standings.iter();
        let moved = standings.iter().zip(before).enumerate().filter(|(_, (now, before))| now != before);
        let growth = Growth {
            since: *since,
            parts,
            moved: moved.map(|(record, (now, _))| (record as u32, Labels::from_bits(*now))).collect(),
            // An unfinished line can have been a record, and be none any more.
            records: session
                .records()
                .filter(is_new)
                .map(|record| record.order() as u32)
                .chain(standings.len() as u32..bookmark.standings.len() as u32)
                .collect(),
        };
        self.learned(session, stamp, *depth, Texts::Grown(growth), standings).map(Some)
    }

    fn learned(
        &self,
        session: &Session,
        stamp: u64,
        depth: Depth,
        texts: Texts,
        standings: Vec<u8>,
    ) -> std::result::Result<Learned, ReadError> {
        let row = session.row()?;
        Ok(Learned {
            place: Place::of(&self.source),
            // What is missing elsewhere may come back: such a session is never known for good.
            stamp: if row.base_is_missing { 0 } else { stamp },
            depth,
            card: Card::new(&row),
            texts,
            bookmark: session.checkpoint()?.map(|checkpoint| Bookmark { checkpoint, standings }),
            // To count what was appended needs all of the session.
            counts: None,
        })
    }
}
