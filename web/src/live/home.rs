//! The list of sessions while it changes: one thread compares it with what it was, for everybody who looks at it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use jiff::Timestamp;
use scrollback::model::json;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use super::board::Cursor;
use super::locked;
use crate::catalogue::Entry;
use crate::figures::Figures;
use crate::pages::home::{is_running, row, run};
use crate::site::Site;

/// How many of the newest sessions are followed: more than the first pages of the list show.
const SESSIONS: usize = 500;

/// How often the list is compared; it is made in the background when the disk changes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long nobody may read before the thread ends.
const LINGER: Duration = Duration::from_secs(10);

/// How many times sessions left the list, as far as that is remembered.
const REMOVALS: usize = 256;

/// The list, followed.
pub(crate) struct Home {
    site: Arc<Site>,
    /// Names this process.
    generation: String,
    board: Mutex<Board>,
    news: watch::Sender<u64>,
    readers: AtomicUsize,
}

#[derive(Default)]
struct Board {
    has_thread: bool,
    /// Counts what has changed; 0 before the first look.
    version: u64,
    items: HashMap<String, Item>,
    removed: VecDeque<(u64, String)>,
    /// What left the list before this is not known.
    floor: u64,
}

struct Item {
    id: String,
    hash: u64,
    version: u64,
    /// What is sent; `None` if nobody has missed it.
    data: Option<Bytes>,
    place: usize,
}

impl Home {
    pub(super) fn new(site: Arc<Site>, generation: &str) -> Home {
        let generation = format!("{generation}-home");
        Home { site, generation, board: Mutex::default(), news: watch::Sender::new(0), readers: AtomicUsize::new(0) }
    }

    fn start(self: &Arc<Home>) {
        let mut board = locked(&self.board);
        if board.has_thread {
            return;
        }
        board.has_thread = true;
        drop(board);
        self.look();
        let home = self.clone();
        std::thread::spawn(move || home.run());
    }

    fn run(&self) {
        let mut alone_since = None;
        loop {
            std::thread::sleep(LOOK_EVERY);
            self.look();
            if self.readers.load(Ordering::Acquire) > 0 {
                alone_since = None;
            } else if alone_since.get_or_insert_with(Instant::now).elapsed() > LINGER {
                let mut board = locked(&self.board);
                if self.readers.load(Ordering::Acquire) == 0 {
                    board.has_thread = false;
                    return;
                }
            }
        }
    }

    fn look(&self) {
        let (shelf, figures, now) = (self.site.catalogue.shelf(), self.site.catalogue.figures(), (self.site.now)());
        let mut board = locked(&self.board);
        let is_first = board.version == 0;
        let version = board.version + 1;
        let mut before = std::mem::take(&mut board.items);
        let mut has_changed = is_first;
        for (place, entry) in shelf.main().take(SESSIONS).enumerate() {
            let running = is_running(entry, now);
            let hash = hash_of(entry, running);
            let item = match before.remove(&entry.row.path) {
                Some(item) if item.hash == hash => Item { place, ..item },
                known => {
                    // At the first look nobody has seen anything else.
                    let data = (!is_first).then(|| data(entry, running, &figures, now, &self.site));
                    has_changed = true;
                    let version = if is_first { 0 } else { version };
                    drop(known);
                    Item { id: entry.row.id.to_string(), hash, version, data, place }
                }
            };
            board.items.insert(entry.row.path.clone(), item);
        }
        for gone in before.into_values() {
            has_changed = true;
            board.removed.push_back((version, gone.id));
        }
        while board.removed.len() > REMOVALS {
            board.floor = board.removed.pop_front().map_or(board.floor, |(at, _)| at);
        }
        if has_changed {
            board.version = version;
            drop(board);
            self.news.send_modify(|news| *news += 1);
        }
    }
}

/// What a row shows, as a number.
fn hash_of(entry: &Entry, running: bool) -> u64 {
    let mut hash = DefaultHasher::new();
    let row = &entry.row;
    (row.updated, row.size_bytes, &row.title, row.state.map(|state| state.name()), row.message_count).hash(&mut hash);
    let doing = entry.glance.as_ref().and_then(|glance| glance.doing.as_ref());
    (running, doing.map(|doing| (doing.is_waiting, &doing.call))).hash(&mut hash);
    hash.finish()
}

fn data(entry: &Entry, running: bool, figures: &Figures, now: Timestamp, site: &Site) -> Bytes {
    #[derive(Serialize)]
    struct Data<'a> {
        id: &'a str,
        session: &'a scrollback::view::SessionRow,
        running: bool,
        html: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    }
    let data = Data {
        id: entry.row.id.as_str(),
        session: &entry.row,
        running,
        html: row(entry, false, figures, now).0,
        run: running.then(|| run(entry, figures, now).0),
    };
    let mut text = Vec::new();
    if json::write(&mut text, &data).is_err() {
        return Bytes::from_static(b"{}");
    }
    match &site.places.mask {
        Some(mask) => mask.line(&text).bytes.into_owned().into(),
        None => text.into(),
    }
}

/// One who follows the list.
pub(crate) struct HomeReader {
    home: Arc<Home>,
    /// How far it is; `None` has seen nothing of this list.
    version: Option<u64>,
    is_new: bool,
}

/// What a reader is told next: events with their data and ids.
pub(crate) struct Told {
    /// Where a reader begins that has no events to come.
    pub(crate) begins_at: Option<String>,
    pub(crate) events: Vec<(&'static str, Bytes, Option<String>)>,
}

impl HomeReader {
    pub(super) fn new(home: &Arc<Home>, seen: Option<&str>) -> HomeReader {
        home.readers.fetch_add(1, Ordering::AcqRel);
        home.start();
        let now = locked(&home.board).version;
        let known = |cursor: &Cursor| cursor.generation == home.generation && cursor.offset <= now;
        let version = match seen {
            None => Some(now),
            Some(seen) => Cursor::parse(seen).filter(known).map(|cursor| cursor.offset),
        };
        HomeReader { home: home.clone(), version, is_new: true }
    }

    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.home.news.subscribe()
    }

    pub(super) fn next(&mut self) -> Told {
        let board = locked(&self.home.board);
        let id = |version: u64| Cursor { generation: self.home.generation.clone(), offset: version }.text();
        let begins_at = self.version.map(id).filter(|_| self.is_new);
        self.is_new = false;
        let seen = match self.version.filter(|version| *version >= board.floor) {
            Some(seen) => seen,
            None => {
                self.version = Some(board.version);
                let data = json!({"reason": "generation"}).to_string().into();
                return Told { begins_at, events: vec![("reset", data, Some(id(board.version)))] };
            }
        };
        let mut events = Vec::new();
        let gone: Vec<&str> = board.removed.iter().filter(|(at, _)| *at > seen).map(|(_, id)| id.as_str()).collect();
        if !gone.is_empty() {
            events.push(("removed", json!({ "ids": gone }).to_string().into(), None));
        }
        // The newest last: a page puts each on top.
        let mut missed: Vec<&Item> = board.items.values().filter(|item| item.version > seen).collect();
        missed.sort_by_key(|item| (item.version, std::cmp::Reverse(item.place)));
        for item in missed {
            events.extend(item.data.clone().map(|data| ("message", data, None)));
        }
        if let Some((_, _, last)) = events.last_mut() {
            *last = Some(id(board.version));
        }
        self.version = Some(board.version);
        Told { begins_at, events }
    }
}

impl Drop for HomeReader {
    fn drop(&mut self) {
        self.home.readers.fetch_sub(1, Ordering::AcqRel);
    }
}
