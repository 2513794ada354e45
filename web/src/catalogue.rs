//! Every session that the server shows, as the last look at the disk found them. A request reads this and never walks the disk.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use scrollback::model::{Part, ToolPart};
use scrollback::session::{Session, Source};
use scrollback::view::counting::{CountedSession, SessionCounts};
use scrollback::view::find::{ProjectScope, Scope};
use scrollback::view::listing::Depth;
use scrollback::view::stream::{Interrupter, Wake, Watch, WatchBy};
use scrollback::view::tool_view::{Ending, ending};
use scrollback::view::{Conversation, SessionRow};
use scrollback_index::{Archive, Depth as IndexDepth};

use crate::figures::Figures;
use crate::render::tool;
use crate::render::trace::{LIST_TICKS, Trace};
use crate::site::Site;

/// How many of the newest sessions get a whole trace, and how large they may be: each is read for it. Others have one of what was
/// counted.
const TRACED_SESSIONS: usize = 200;
const TRACED_BYTES: u64 = 4 * 1024 * 1024;

/// A session in the catalogue.
#[derive(Clone)]
pub struct Entry {
    /// What is known about it.
    pub row: Box<SessionRow>,
    /// Where it is.
    pub source: Source,
    /// What its messages show, if they were read.
    pub glance: Option<Arc<Glance>>,
    /// What its files were like when they were read.
    stamp: Option<u64>,
    /// When we saw it change.
    grown: Option<Instant>,
}

impl Entry {
    /// For how long it has not grown: since we saw it change, or since its newest record.
    pub(crate) fn quiet_for(&self, now: Timestamp) -> Option<Duration> {
        let written = self.row.updated.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
        written.into_iter().chain(self.grown.map(|grown| grown.elapsed())).min()
    }

    /// Whether its files are still what they were when it was listed.
    pub(crate) fn is_as_listed(&self) -> bool {
        self.source.stamp() == self.stamp
    }
}

/// A session at a glance.
pub struct Glance {
    /// Its prompts, calls and failures in one line.
    pub trace: Trace,
    /// The call that it ends in, if that has no result.
    pub doing: Option<Doing>,
}

/// A call without a result.
pub struct Doing {
    /// Whether it waits for a person's approval.
    pub is_waiting: bool,
    /// The name of the tool, and what it is about.
    pub call: (String, String),
}

/// Every session, the newest first.
#[derive(Default)]
pub struct Shelf {
    /// The sessions.
    pub entries: Vec<Entry>,
    by_id: HashMap<String, Vec<usize>>,
    by_call: HashMap<(String, String), usize>,
    /// Sessions that are not shown: one of them can have a fact that a copy in another one only repeats.
    others: Vec<(Box<SessionRow>, Source)>,
    /// When the disk was looked at.
    pub read_at: Option<Timestamp>,
    /// How many could not be read.
    pub unreadable: usize,
}

/// Which session an address means.
pub enum Found<'s> {
    /// This one.
    One(&'s Entry),
    /// Several.
    Several(Vec<&'s Entry>),
    /// None.
    None,
}

impl Shelf {
    fn new(
        entries: Vec<Entry>,
        others: Vec<(Box<SessionRow>, Source)>,
        unreadable: usize,
        read_at: Timestamp,
    ) -> Shelf {
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_call = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            by_id.entry(entry.row.id.0.clone()).or_default().push(at);
            if let (Some(parent), Some(call)) = (&entry.row.parent_session, &entry.row.parent_call) {
                by_call.insert((parent.0.clone(), call.clone()), at);
            }
        }
        Shelf { entries, by_id, by_call, others, read_at: Some(read_at), unreadable }
    }

    /// Finds a session by its id, a beginning of it, or either with its dialect before it.
    pub fn find(&self, name: &str) -> Found<'_> {
        let (dialect, id) = match name.split_once(':').filter(|_| !self.by_id.contains_key(name)) {
            Some((dialect, id)) => match scrollback::dialect::named(dialect) {
                Some(dialect) => (Some(dialect.name()), id),
                None => (None, name),
            },
            None => (None, name),
        };
        let is_of = |entry: &&Entry| dialect.is_none_or(|dialect| entry.row.dialect == dialect);
        let exact: Vec<&Entry> =
            self.by_id.get(id).into_iter().flatten().map(|at| &self.entries[*at]).filter(is_of).collect();
        match exact.as_slice() {
            [] => {}
            [entry] => return Found::One(entry),
            _ => return Found::Several(exact),
        }
        if id.is_empty() {
            return Found::None;
        }
        let mut begins: Vec<&Entry> =
            self.entries.iter().filter(is_of).filter(|entry| entry.row.id.0.starts_with(id)).collect();
        match begins.len() {
            0 => Found::None,
            1 => begins.pop().map_or(Found::None, Found::One),
            _ => Found::Several(begins),
        }
    }

    /// The session that a call of another one started.
    pub fn started_by(&self, parent: &str, call: &str) -> Option<&Entry> {
        self.by_call.get(&(parent.to_owned(), call.to_owned())).map(|at| &self.entries[*at])
    }

    /// Sessions that are not those of sub-agents.
    pub fn main(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.row.parent_session.is_none())
    }
}

/// The catalogue, and how it is kept up to date.
#[derive(Default)]
pub struct Catalogue {
    shelf: RwLock<Arc<Shelf>>,
    figures: RwLock<Arc<Figures>>,
    /// What sessions count, with what their files were like, by their path: where no index keeps it.
    counted: Mutex<HashMap<PathBuf, (u64, SessionCounts)>>,
    /// How many files sessions changed, with what their own files were like, by their path: known when somebody has asked for them.
    changed_files: Mutex<HashMap<PathBuf, (Option<u64>, usize)>>,
    /// Whether the texts of all sessions were indexed at the last look.
    is_indexed: AtomicBool,
}

impl Catalogue {
    /// As it is now.
    pub fn shelf(&self) -> Arc<Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was counted last.
    pub fn figures(&self) -> Arc<Figures> {
        self.figures.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many files a session changed, if that was found out since it grew.
    pub(crate) fn changed_files(&self, source: &Source) -> Option<usize> {
        let counts = self.changed_files.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&source.path).filter(|(stamp, _)| *stamp == source.stamp()).map(|(_, count)| *count)
    }

    /// Notes it for a session that was like this.
    pub(crate) fn note_changed_files(&self, source: &Source, stamp: Option<u64>, count: usize) {
        let mut counts = self.changed_files.lock().unwrap_or_else(PoisonError::into_inner);
        counts.insert(source.path.clone(), (stamp, count));
    }

    /// Whether an index has the texts of sessions, but for what changed just now.
    pub(crate) fn is_indexed(&self) -> bool {
        self.is_indexed.load(Ordering::Relaxed)
    }

    fn replace(&self, shelf: Shelf) {
        *self.shelf.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shelf);
    }
}

/// Which sessions are shown.
pub struct Selection {
    /// Only sessions of this project.
    pub project: Option<PathBuf>,
    /// Only sessions that were updated in this time.
    pub since: Option<Timestamp>,
    /// Only sessions that were updated before it.
    pub until: Option<Timestamp>,
    /// Projects that are never shown.
    pub hidden: Vec<PathBuf>,
}

impl Selection {
    fn select(&self, sessions: Vec<(Box<SessionRow>, Source)>) -> Vec<(Box<SessionRow>, Source)> {
        let project = self.project.clone().map_or(ProjectScope::All, ProjectScope::Of);
        let scope = Scope { project, since: self.since, until: self.until };
        let cwd = self.project.clone().unwrap_or_default();
        let mut selected = scope.select(sessions, &cwd).sessions;
        let is_hidden = |row: &SessionRow| {
            let project = row.project.as_deref().map(std::path::Path::new);
            project.is_some_and(|project| self.hidden.iter().any(|hidden| project.starts_with(hidden)))
        };
        selected.retain(|(row, _)| !is_hidden(row));
        selected
    }
}

/// Looks at the disk once, and lists what it finds.
pub fn list(site: &Site) {
    drop(listed(site));
}

/// Looks at the disk once, lists what it finds, and reads what the list and searches need more.
fn look(site: &Site) -> Looked {
    let mut looked = listed(site);
    glance(&mut looked.entries, site);
    let shelf = Shelf::new(looked.entries.clone(), looked.others.clone(), looked.unreadable, (site.now)());
    site.catalogue.replace(shelf);
    read_texts(&mut looked.archive, site);
    looked
}

/// Looks at the disk once, and lists and counts what it finds.
pub fn list_and_count(site: &Site) {
    count(look(site), site);
}

/// What was found on the disk.
struct Looked {
    archive: Archive,
    entries: Vec<Entry>,
    others: Vec<(Box<SessionRow>, Source)>,
    unreadable: usize,
}

fn listed(site: &Site) -> Looked {
    let mut archive = (site.open_archive)();
    let sources: Vec<Source> = archive.places().sources().into_iter().filter_map(Result::ok).collect();
    let mut listing = archive.describe(sources, Depth::Ends, &|| {});
    let unreadable = listing.unreadable.len() + archive.complete(&mut listing.sessions).len();
    let before = site.catalogue.shelf();
    let known: HashMap<&std::path::Path, &Entry> =
        before.entries.iter().map(|entry| (entry.source.path.as_path(), entry)).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for (row, source) in site.selection.select(listing.sessions.clone()) {
        let stamp = source.stamp();
        let same = known.get(source.path.as_path()).filter(|known| known.stamp == stamp && known.row.id == row.id);
        let glance = same.and_then(|known| known.glance.clone());
        let grown = match known.get(source.path.as_path()) {
            Some(known) if known.stamp == stamp => known.grown,
            Some(_) => Some(Instant::now()),
            // It may be a copy of an old one; its newest record says more.
            None => None,
        };
        entries.push(Entry { row, source, glance, stamp, grown });
    }
    let shown: HashSet<&str> = entries.iter().map(|entry| entry.row.path.as_str()).collect();
    let others = listing.sessions.into_iter().filter(|(row, _)| !shown.contains(row.path.as_str()));
    let others: Vec<_> = others.collect();
    site.catalogue.replace(Shelf::new(entries.clone(), others.clone(), unreadable, (site.now)()));
    Looked { archive, entries, others, unreadable }
}

/// Counts what all sessions add up to. Where an index keeps what each adds, nothing is read.
fn count(mut looked: Looked, site: &Site) {
    let shown = looked.entries.into_iter().map(|entry| (entry.row, entry.source));
    let sessions = count_each(&mut looked.archive, shown.collect(), looked.others, site);
    let figures = Figures::of(&sessions, &site.zone, &*site.price);
    *site.catalogue.figures.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(figures);
}

/// What each session can add to a count; of those that are shown, the wanted ones are in scope.
pub(crate) fn counted(site: &Site, is_wanted: &(dyn Fn(&SessionRow) -> bool + Sync)) -> Vec<CountedSession> {
    let shelf = site.catalogue.shelf();
    let shown = shelf.entries.iter().map(|entry| (entry.row.clone(), entry.source.clone())).collect();
    let mut sessions = count_each(&mut (site.open_archive)(), shown, shelf.others.clone(), site);
    sessions.iter_mut().for_each(|session| session.is_in_scope &= is_wanted(&session.row));
    sessions
}

fn count_each(
    archive: &mut Archive,
    shown: Vec<(Box<SessionRow>, Source)>,
    others: Vec<(Box<SessionRow>, Source)>,
    site: &Site,
) -> Vec<CountedSession> {
    // One count at a time: the second one finds what the first has read.
    let mut kept = site.catalogue.counted.lock().unwrap_or_else(PoisonError::into_inner);
    let in_scope: HashSet<String> = shown.iter().map(|(row, _)| row.path.clone()).collect();
    let is_in_scope = |row: &SessionRow| in_scope.contains(&row.path);
    let all: Vec<_> = shown.into_iter().chain(others).collect();
    let stamps: HashMap<PathBuf, u64> =
        all.iter().filter_map(|(_, source)| Some((source.path.clone(), source.stamp()?))).collect();
    let (mut sessions, mut changed) = (Vec::new(), Vec::new());
    for (row, source) in all {
        let same = kept.remove(&source.path).filter(|(stamp, _)| stamps.get(&source.path) == Some(stamp));
        match same {
            Some((_, counts)) => {
                let is_in_scope = is_in_scope(&row);
                sessions.push((CountedSession { row, counts, is_in_scope }, source.path));
            }
            None => changed.push((row, source)),
        }
    }
    let counted = archive.count(changed, &is_in_scope, &|| {});
    sessions.extend(counted.sessions.into_iter().zip(counted.sources.into_iter().map(|source| source.path)));
    if !archive.has_index() {
        let counts = sessions.iter().filter_map(|(session, path)| {
            let stamp = *stamps.get(path)?;
            Some((path.clone(), (stamp, session.counts.clone())))
        });
        *kept = counts.collect();
    }
    sessions.into_iter().map(|(session, _)| session).collect()
}

/// Reads the newest sessions that were not read yet.
fn glance(entries: &mut [Entry], site: &Site) {
    for entry in entries.iter_mut().take(TRACED_SESSIONS).filter(|entry| entry.glance.is_none()) {
        if entry.row.size_bytes <= TRACED_BYTES
            && let Ok(session) = site.open(&entry.source)
        {
            entry.glance = Glance::of(&session).map(Arc::new);
        }
    }
}

impl Glance {
    /// Looks at a session's newest branch.
    fn of(session: &Session) -> Option<Glance> {
        let branch = session.branch(session.head()?);
        let conversation = Conversation::new(&branch);
        let (mut trace, mut doing) = (Trace::default(), None);
        for message in conversation.messages(0..conversation.len()) {
            let message = message.ok()?;
            trace.add(&message);
            let last = message.parts.iter().rev().find(|part| !matches!(part, Part::StepStart));
            doing = last.and_then(Part::as_call).and_then(Doing::of);
        }
        trace.thin(LIST_TICKS);
        Some(Glance { trace, doing })
    }
}

impl Doing {
    fn of(call: &ToolPart) -> Option<Doing> {
        let is_waiting = match ending(call) {
            Ending::Waiting => true,
            Ending::Running | Ending::NoResult => false,
            Ending::Ok | Ending::Failed | Ending::Denied | Ending::Interrupted => return None,
        };
        Some(Doing { is_waiting, call: tool::in_one_line(call) })
    }
}

/// Indexes what has changed, so that a search reads no file.
fn read_texts(archive: &mut Archive, site: &Site) {
    if archive.has_index() {
        let sources: Vec<Source> = site.catalogue.shelf().entries.iter().map(|entry| entry.source.clone()).collect();
        let pending = archive.pending(&sources, IndexDepth::Text);
        drop(archive.read_texts(pending, IndexDepth::Text, &|_| true));
    }
    // A damaged index or a full disk takes it away on the way.
    site.catalogue.is_indexed.store(archive.has_index(), Ordering::Relaxed);
}

/// Keeps the catalogue up to date until it is interrupted.
pub fn keep(site: &Arc<Site>) -> Interrupter {
    let mut watch = Watch::new(WatchBy::Events);
    let interrupter = watch.interrupter();
    let site = site.clone();
    std::thread::spawn(move || {
        let watch_roots = |watch: &mut Watch| site.places.roots().iter().filter(|root| watch.folder(root)).count() > 0;
        watch_roots(&mut watch);
        count(look(&site), &site);
        let (mut looked, mut counted) = (Instant::now(), Instant::now());
        let mut uncounted = None;
        loop {
            // The first session of an agent makes its folder.
            let woken = if watch_roots(&mut watch) { Wake::Changed(HashSet::new()) } else { watch.wait() };
            if counted.elapsed() >= COUNT_EVERY
                && let Some(found) = uncounted.take()
            {
                count(found, &site);
                counted = Instant::now();
            }
            match woken {
                Wake::Interrupted => return,
                Wake::Time if looked.elapsed() < LOOK_ANYWAY => continue,
                Wake::Time | Wake::Changed(_) => {}
            }
            // An agent writes many lines at once.
            std::thread::sleep(SETTLE);
            uncounted = Some(look(&site));
            looked = Instant::now();
        }
    });
    interrupter
}

/// How long changes may go on before they are looked at.
const SETTLE: Duration = Duration::from_millis(200);

/// How often all sessions are counted at most: an agent at work changes its session all the time.
const COUNT_EVERY: Duration = Duration::from_secs(10);

/// How often the disk is looked at even if nothing is reported: some file systems report nothing.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use scrollback_index::SqliteIndex;

    use super::*;

    #[test]
    fn sessions_are_indexed_only_as_long_as_there_is_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join(".sage/sessions/s1");
        std::fs::create_dir_all(&sessions).unwrap();
        let prompt = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-01T10:00:00Z","format":2,"context":{"cwd":"/w"},"message":{"role":"user","content":"hello"}}"#;
        std::fs::write(sessions.join("messages.jsonl"), format!("{prompt}\n")).unwrap();
        let now: Timestamp = "2026-11-14T10:06:05Z".parse().unwrap();
        let without = Site::of_test(folder.path(), move || now);
        let (places, path) = (without.places.clone(), folder.path().join("index.db"));
        let is_damaged = Arc::new(AtomicBool::new(false));
        let damages = is_damaged.clone();
        let open_archive = move || {
            let mask = places.mask.clone().unwrap();
            let index = SqliteIndex::open(&path, mask.fingerprint()).unwrap();
            if damages.load(Ordering::Relaxed) {
                std::fs::write(&path, [0x7f; 8192]).unwrap();
            }
            Archive::with_index(places.clone(), now, Box::new(index), mask)
        };
        let site = Site { open_archive: Box::new(open_archive), ..without };
        assert!(!site.catalogue.is_indexed());
        list_and_count(&site);
        assert!(site.catalogue.is_indexed());
        is_damaged.store(true, Ordering::Relaxed);
        list_and_count(&site);
        assert!(!site.catalogue.is_indexed(), "the index was lost on the way");
    }
}
