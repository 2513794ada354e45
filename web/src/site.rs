//! What the server shows and how it reads it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::model::Host;
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::Page;
use scrollback::view::files::FileHistory;
use scrollback::view::find::Places;
use scrollback::write::{file_history, restores_stamp};
use scrollback_index::Archive;

use crate::SubAgents;
use crate::catalogue::{Catalogue, Found, Selection};
use crate::figures::Price;
use crate::render::{Folds, Look, Medium, Room};

/// Whole sessions that are kept open: a reader pages through one, and looks at its tree and files. One holds its links, not its text.
const OPEN_SESSIONS: usize = 2;

/// A smaller session is read sooner than the index is opened.
const RESUMED_BYTES: u64 = 4 * 1024 * 1024;

/// What the server shows.
pub struct Site {
    /// Opens an archive over the same places.
    pub open_archive: Box<dyn Fn() -> Archive + Send + Sync>,
    /// Where sessions are, and what masks them.
    pub places: Places,
    /// Which of them are shown.
    pub selection: Selection,
    /// The reader's time zone.
    pub zone: TimeZone,
    /// The clock.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Our own folder, for the journal of restores.
    pub data: Option<PathBuf>,
    /// The machine, for the plan of an undo.
    pub host: Host,
    /// The user's own prices.
    pub price: Box<Price>,
    /// Every session.
    pub catalogue: Catalogue,
    /// Whole sessions that were asked for lately, with what their files were like.
    pub opened: Mutex<Vec<OpenedSession>>,
}

/// A whole session that was read.
pub struct OpenedSession {
    path: PathBuf,
    stamp: Option<u64>,
    session: Arc<Session>,
    /// What it did to files, with what our journal of restores was like; of one session only, as it has the texts of all edits.
    files: Option<(RestoresStamp, Arc<FileHistory>)>,
}

type RestoresStamp = Option<(u64, SystemTime)>;

impl Site {
    /// Reads a whole session; of a large one that the index knows, only what was appended.
    pub fn open(&self, source: &Source) -> scrollback::Result<Session> {
        let is_large = std::fs::metadata(&source.path).is_ok_and(|file| file.len() > RESUMED_BYTES);
        if is_large {
            let mut archive = (self.open_archive)();
            if archive.has_index() {
                return archive.session(source);
            }
        }
        self.read(source, |reading| Session::open(source, reading))
    }

    /// Whether the file of a session is still there: the index may know one whose file is gone.
    pub(crate) fn look_for(&self, source: &Source) -> scrollback::Result<()> {
        let gone = |error| scrollback::Error::Io { path: source.path.clone(), source: error };
        std::fs::metadata(&source.path).map_err(gone).map(drop)
    }

    /// Reads the end of a session.
    pub fn open_page(&self, source: &Source, page: Page<'_>) -> scrollback::Result<Session> {
        self.read(source, |reading| Session::open_page(source, reading, page))
    }

    fn read<T>(&self, source: &Source, read: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
        let find = self.places.finder(source);
        let mask = self.places.mask.as_ref();
        read(&ReadOptions { find: &find, mask, ..ReadOptions::plain((self.now)()) })
    }

    /// A whole session, from memory if its files are as they were.
    pub fn whole(&self, source: &Source) -> scrollback::Result<Arc<Session>> {
        let stamp = source.stamp();
        let is_same = |opened: &OpenedSession| opened.path == source.path && opened.stamp == stamp && stamp.is_some();
        {
            let mut opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(at) = opened.iter().position(is_same) {
                let found = opened.remove(at);
                let session = found.session.clone();
                opened.push(found);
                return Ok(session);
            }
        }
        let session = Arc::new(self.open(source)?);
        let mut opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        opened.retain(|opened| opened.path != source.path);
        if opened.len() >= OPEN_SESSIONS {
            opened.remove(0);
        }
        opened.push(OpenedSession { path: source.path.clone(), stamp, session: session.clone(), files: None });
        Ok(session)
    }

    /// What a whole session did to files, from memory if neither it nor our journal of restores has changed.
    pub(crate) fn files(&self, session: &Arc<Session>) -> scrollback::Result<Arc<FileHistory>> {
        let stamp = restores_stamp(session, self.data.as_deref());
        let opened = || self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = opened()
            .iter()
            .find(|opened| Arc::ptr_eq(&opened.session, session))
            .and_then(|opened| opened.files.clone());
        if let Some((_, files)) = known.filter(|(known, _)| *known == stamp) {
            return Ok(files);
        }
        let files = Arc::new(file_history(session, self.data.as_deref(), None)?);
        for opened in opened().iter_mut() {
            let is_this = Arc::ptr_eq(&opened.session, session);
            opened.files = is_this.then(|| (stamp, files.clone()));
        }
        Ok(files)
    }

    /// How the messages of a session are shown on a page.
    pub(crate) fn look<'a>(&'a self, session: &Session, is_room: bool, address: &'a str, room: &'a Room) -> Look<'a> {
        Look {
            medium: Medium::Page(address),
            zone: &self.zone,
            dialect: session.dialect().name(),
            folds: Folds::default(),
            is_room,
            level: 2,
            cwd: RefCell::new(None),
            model: only_model(session),
            price: &*self.price,
            room,
            is_running: false,
            sub_agent: None,
        }
    }

    /// A text without secrets.
    pub fn masked(&self, text: &str) -> String {
        self.places.mask.as_ref().map_or_else(|| text.to_owned(), |mask| mask.text(text).text.into_owned())
    }
}

/// The model that answered in a session, if it was always the same.
pub(crate) fn only_model(session: &Session) -> Option<String> {
    if let [model] = session.models() { Some(model.clone()) } else { None }
}

/// Sub-agents are found in the catalogue only.
impl SubAgents for Site {
    fn find(&self, parent: &str, call: &str, noted: Option<&str>) -> Option<Source> {
        let shelf = self.catalogue.shelf();
        if let Some(entry) = shelf.started_by(parent, call) {
            return Some(entry.source.clone());
        }
        match shelf.find(noted?) {
            Found::One(entry) => Some(entry.source.clone()),
            Found::Several(_) | Found::None => None,
        }
    }

    fn open(&self, source: &Source) -> scrollback::Result<Session> {
        // Only its last messages are shown inside of a page.
        self.open_page(source, Page { messages: crate::transcript::PAGE_NESTED_MESSAGES, before: None })
    }
}

#[cfg(test)]
impl Site {
    /// A site over a home that a test has made, without an index.
    pub(crate) fn of_test(home: &std::path::Path, now: impl Fn() -> Timestamp + Clone + Send + Sync + 'static) -> Site {
        use scrollback::model::Home;
        let home_dir = Home { dir: home.to_owned(), cwd: home.to_owned(), vars: Default::default() };
        let mask = Some(std::sync::Arc::new(scrollback::redact::Redactor::built_in()));
        let places = Places { home: home_dir, store: None, dialect: None, mask };
        let (archived, clock) = (places.clone(), now.clone());
        Site {
            open_archive: Box::new(move || Archive::new(archived.clone(), clock())),
            places,
            selection: Selection { project: None, since: None, until: None, hidden: Vec::new() },
            zone: TimeZone::UTC,
            now: Box::new(now),
            data: None,
            host: Host::at(home.to_owned(), "test"),
            price: Box::new(|_, _| None),
            catalogue: Catalogue::default(),
            opened: Mutex::default(),
        }
    }
}
