//! A simulated disk for tests: what was not synced may be lost, in any way that a crash can lose it.
//!
//! ```text
//! write ─▶ cache: what readers see ─sync─▶ disk: what a crash leaves
//!            └─ versions of each sector and of the size; a crash keeps any one of each
//! ```
//! Several processes are several handles on clones of one [`Sim`]: dropping a handle is the death of its process.
//! Bytes of a failed `sync` are lost for good, but readers still see them, as on Linux.

mod content;
mod open;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Disk, OpenLog};
use crate::model::error::At;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use content::Node;
use open::SimLog;

/// A disk that several processes share.
#[derive(Clone, Default)]
pub(crate) struct Sim(Arc<Mutex<State>>);

/// Something that happens just before an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// All later operations fail.
    PowerLoss,
    /// The operation fails; a failed `sync` loses bytes.
    Fails(io::ErrorKind),
    /// An append takes only this many bytes; other operations succeed.
    Short(usize),
    /// Another process holds the lock, for this many attempts.
    Held(u32),
    /// The file system has no locks from now on.
    NoLocks,
    /// A program without a lock appends to this file.
    Foreign(PathBuf, Vec<u8>),
    /// Another file with this content takes the name.
    Replaced(PathBuf, Vec<u8>),
    Deleted(PathBuf),
}

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    names: Names,
    /// The names that survive every crash, before `changes`.
    safe_names: Names,
    changes: Vec<Change>,
    handles: usize,
    steps: u64,
    events: Vec<(u64, Event)>,
    power: Power,
    /// The size limit of all files together.
    space: Option<u64>,
    has_no_locks: bool,
    held: u32,
    paused_ms: u64,
    random: Random,
    broken: Vec<String>,
}

/// The node of each name; folders have none.
type Names = BTreeMap<PathBuf, Option<usize>>;

/// One atomic change of names, which a `sync` of either folder makes safe.
#[derive(Debug, Clone)]
struct Change {
    gone: Option<PathBuf>,
    new: Option<(PathBuf, Option<usize>)>,
}

#[derive(Default, PartialEq)]
enum Power {
    #[default]
    On,
    Off,
}

impl Sim {
    /// An empty disk, with these folders.
    pub(crate) fn new(seed: u64, folders: &[&str]) -> Sim {
        let sim = Sim::default();
        let mut state = sim.state();
        state.random = Random(seed);
        state.safe_names = folders.iter().map(|folder| (PathBuf::from(folder), None)).collect();
        state.names = state.safe_names.clone();
        drop(state);
        sim
    }

    /// Schedules an event before the operation with this number; the first is 0.
    pub(crate) fn at(&self, step: u64, event: Event) {
        self.state().events.push((step, event));
    }

    pub(crate) fn forget_events(&self) {
        let mut state = self.state();
        (state.events, state.space, state.has_no_locks, state.held) = (Vec::new(), None, false, 0);
    }

    pub(crate) fn steps(&self) -> u64 {
        self.state().steps
    }

    /// How long writers have waited for each other.
    pub(crate) fn paused_ms(&self) -> u64 {
        self.state().paused_ms
    }

    /// Limits the space to this many more bytes.
    pub(crate) fn leave_room_for(&self, bytes: u64) {
        let mut state = self.state();
        let used: u64 = state.nodes.iter().map(|node| node.cache.len() as u64).sum();
        state.space = Some(used + bytes);
    }

    /// Adds a file with its folders, all of it synced.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let folders = Path::new(path).ancestors().skip(1).filter(|folder| folder.parent().is_some());
        state.names.extend(folders.map(|folder| (folder.to_path_buf(), None)));
        state.replace(Path::new(path), bytes);
        state.sync_everything();
    }

    /// The content that readers see.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.file(Path::new(path)).map(|node| state.nodes[node].cache.clone())
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// The disk after a power failure: one of all possible states.
    pub(crate) fn crash(&self, seed: u64) -> Sim {
        let mut random = Random(seed);
        let mut state = self.state();
        let nodes = state.nodes.iter().map(|node| Node::of(node.after_crash(&mut random))).collect();
        let changes = std::mem::take(&mut state.changes);
        let ordered = random.below(2) == 0;
        let kept_in_order = random.below(changes.len() as u64 + 1) as usize;
        let mut names = state.safe_names.clone();
        for (at, change) in changes.iter().enumerate() {
            if if ordered { at < kept_in_order } else { random.below(2) == 0 } {
                change.apply(&mut names);
            }
        }
        // A file in a lost folder is lost.
        let has_folder =
            |path: &Path| path.ancestors().skip(1).all(|above| above.parent().is_none() || names.contains_key(above));
        let names: Names = names
            .iter()
            .filter(|(path, _)| has_folder(path))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        let safe_names = names.clone();
        Sim(Arc::new(Mutex::new(State { nodes, names, safe_names, random, ..State::default() })))
    }

    /// Violations: changed earlier bytes, or truncated bytes of another program.
    pub(crate) fn broken(&self) -> Vec<String> {
        self.state().broken.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn step(&self) -> io::Result<(MutexGuard<'_, State>, Option<usize>)> {
        let mut state = self.state();
        let short = state.begin()?;
        Ok((state, short))
    }

    fn handle(&self, state: &mut State, node: usize) -> Box<dyn OpenLog> {
        state.handles += 1;
        let reported = Mutex::new(state.nodes[node].failures);
        Box::new(SimLog { sim: self.clone(), node, id: state.handles, reported })
    }
}

impl Disk for Sim {
    fn read_session(&self, source: &Source, reading: &ReadOptions<'_>) -> crate::model::error::Result<Session> {
        drop(self.step().at(&source.path)?);
        let bytes = self.read(&source.path.to_string_lossy()).unwrap_or_default();
        Ok(Session::from_bytes(source.dialect, bytes, reading))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        let (mut state, _) = self.step()?;
        let node = state.file(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(&mut state, node))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        let (mut state, _) = self.step()?;
        state.must_have_folder(path)?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = state.name(path, Vec::new());
        Ok(self.handle(&mut state, node))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.step()?;
        state.must_have_folder(path)?;
        match state.names.get(path) {
            Some(None) => {}
            Some(Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => state.change(Change { gone: None, new: Some((path.to_path_buf(), None)) }),
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> bool {
        // The root always exists.
        path.parent().is_none() || self.state().names.contains_key(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, _) = self.step()?;
        state.must_have_folder(to)?;
        let node = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change { gone: Some(from.to_path_buf()), new: Some((to.to_path_buf(), node)) });
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.step()?;
        state.file(path).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change { gone: Some(path.to_path_buf()), new: None });
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.step()?;
        if !(path.parent().is_none() || state.names.get(path) == Some(&None)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (carried, rest): (Vec<Change>, Vec<Change>) =
            std::mem::take(&mut state.changes).into_iter().partition(|change| change.is_in(path));
        carried.iter().for_each(|change| change.apply(&mut state.safe_names));
        state.changes = rest;
        Ok(())
    }

    fn pause(&self, milliseconds: u64) {
        let mut state = self.state();
        state.paused_ms += milliseconds;
    }
}

impl State {
    /// Counts an operation and runs the events before it. Returns how many bytes an append may take.
    fn begin(&mut self) -> io::Result<Option<usize>> {
        let step = self.steps;
        self.steps += 1;
        let mut short = None;
        let mut failure = None;
        let now: Vec<Event> = self.events.extract_if(.., |(at, _)| *at == step).map(|(_, event)| event).collect();
        for event in now {
            match event {
                Event::PowerLoss => self.power = Power::Off,
                Event::Fails(kind) => failure = Some(kind),
                Event::Short(bytes) => short = Some(bytes),
                Event::Held(times) => self.held = times,
                Event::NoLocks => self.has_no_locks = true,
                Event::Foreign(path, bytes) => {
                    if let Some(node) = self.file(&path) {
                        self.nodes[node].append(&bytes, 0);
                    }
                }
                Event::Replaced(path, bytes) => self.replace(&path, &bytes),
                Event::Deleted(path) => self.change(Change { gone: Some(path), new: None }),
            }
        }
        match failure {
            _ if self.power == Power::Off => Err(io::Error::other("the power is off")),
            Some(kind) => Err(kind.into()),
            None => Ok(short),
        }
    }

    fn file(&self, path: &Path) -> Option<usize> {
        self.names.get(path).copied().flatten()
    }

    fn must_have_folder(&self, path: &Path) -> io::Result<()> {
        let is_folder = |folder: &Path| folder.parent().is_none() || self.names.get(folder) == Some(&None);
        if path.parent().is_none_or(is_folder) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn name(&mut self, path: &Path, content: Vec<u8>) -> usize {
        self.nodes.push(Node::of(content));
        let node = self.nodes.len() - 1;
        self.change(Change { gone: None, new: Some((path.to_path_buf(), Some(node))) });
        node
    }

    /// Another program gives the name to another file.
    fn replace(&mut self, path: &Path, content: &[u8]) {
        self.name(path, content.to_vec());
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    fn sync_everything(&mut self) {
        self.nodes.iter_mut().for_each(Node::carry);
        (self.safe_names, self.changes) = (self.names.clone(), Vec::new());
    }
}

impl Change {
    fn apply(&self, names: &mut Names) {
        if let (Some(gone), Some((new, None))) = (&self.gone, &self.new) {
            // A folder moves with its content.
            let inside: Vec<PathBuf> = names.keys().filter(|name| name.starts_with(gone)).cloned().collect();
            for name in inside {
                if let (Ok(rest), Some(node)) = (name.strip_prefix(gone), names.remove(&name)) {
                    names.insert(if rest == OsStr::new("") { new.clone() } else { new.join(rest) }, node);
                }
            }
        }
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((path, node)) = &self.new {
            names.insert(path.clone(), *node);
        }
    }

    fn is_in(&self, folder: &Path) -> bool {
        let names = [self.gone.as_ref(), self.new.as_ref().map(|(path, _)| path)];
        names.into_iter().flatten().any(|name| name.parent() == Some(folder))
    }
}

/// Pseudo-random numbers, the same for the same seed (splitmix64).
#[derive(Debug, Clone, Default)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
