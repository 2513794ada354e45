//! A simulated disk, for tests: it keeps what no `sync` has carried apart, and loses it in any way that a crash may.
//!
//! ```text
//! write ─▶ cache: what readers see ─sync─▶ disk: what a crash leaves
//!            └─ versions of each sector and of the size; a crash keeps any one of each
//! ```
//! Several processes are several handles on clones of one [`Sim`]: dropping a handle is what the death of its process does.
//! A failed `sync` loses what it should have carried, for good, and readers see it all the same, as on Linux.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Appended, Disk, Locked, OpenLog, Standing};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A disk that several processes share.
#[derive(Clone, Default)]
pub(crate) struct Sim(Arc<Mutex<State>>);

/// Something that happens just before an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// Nothing is carried out any more.
    PowerLoss,
    /// The operation fails; a failed `sync` loses bytes.
    Fails(io::ErrorKind),
    /// An append takes only so many bytes; other operations are carried out.
    Short(usize),
    /// Another process holds the lock that is asked for, for so many askings.
    Held(u32),
    /// The file system has no locks from now on.
    NoLocks,
    /// Somebody who takes no lock appends to the file of this name.
    Foreign(PathBuf, Vec<u8>),
    /// Another file with this content gets its name.
    Replaced(PathBuf, Vec<u8>),
    Deleted(PathBuf),
}

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    names: Names,
    /// The names that a crash leaves, if it takes every change that follows.
    safe_names: Names,
    changes: Vec<Change>,
    handles: usize,
    steps: u64,
    events: Vec<(u64, Event)>,
    power: Power,
    /// How many bytes all files may hold.
    space: Option<u64>,
    has_no_locks: bool,
    held: u32,
    paused_ms: u64,
    random: Random,
    broken: Vec<String>,
}

/// Which node has a name; folders have none.
type Names = BTreeMap<PathBuf, Option<usize>>;

/// Names taken away and given, at once; what a `sync` of either folder carries.
#[derive(Debug, Clone)]
struct Change {
    gone: Option<PathBuf>,
    new: Option<(PathBuf, Option<usize>)>,
}

/// A file's content.
#[derive(Default)]
struct Node {
    cache: Vec<u8>,
    disk: Vec<u8>,
    /// What no `sync` has carried: each sector as it was after each write, and each size.
    sectors: BTreeMap<usize, Vec<Vec<u8>>>,
    sizes: Vec<usize>,
    locked_by: Option<usize>,
    /// How many failed syncs there were. Each handle is told of each once.
    failures: usize,
    /// Who wrote last, and from where on.
    last_write: Option<(usize, usize)>,
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

    /// Lets something happen before the operation with that number; the first is 0.
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

    /// From now on so many more bytes fit.
    pub(crate) fn leave_room_for(&self, bytes: u64) {
        let mut state = self.state();
        let used: u64 = state.nodes.iter().map(|node| node.cache.len() as u64).sum();
        state.space = Some(used + bytes);
    }

    /// A file that was there before, and its folders.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let folders = Path::new(path).ancestors().skip(1).filter(|folder| folder.parent().is_some());
        state.names.extend(folders.map(|folder| (folder.to_path_buf(), None)));
        state.replace(Path::new(path), bytes);
        state.sync_everything();
    }

    /// What a reader sees.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.file(Path::new(path)).map(|node| state.nodes[node].cache.clone())
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// The power fails, and comes back: what is left is one of all that may be left.
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
        // What lies in a folder without a name has none.
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

    /// What was done that must never be done: earlier bytes changed, others' bytes cut.
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
        let told = Mutex::new(state.nodes[node].failures);
        Box::new(SimLog { sim: self.clone(), node, id: state.handles, told })
    }
}

impl Disk for Sim {
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
        // The root of all is always there.
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
    /// Counts an operation and lets happen what happens before it. An append that is cut short is told where.
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

    /// Somebody else gives the name to another file, and takes care that it stays so.
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
            // A folder takes what is in it along.
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

impl Node {
    fn of(content: Vec<u8>) -> Node {
        Node { disk: content.clone(), cache: content, ..Node::default() }
    }

    fn append(&mut self, bytes: &[u8], who: usize) {
        if bytes.is_empty() {
            return;
        }
        let start = self.cache.len();
        self.cache.extend_from_slice(bytes);
        self.touch(start, self.cache.len());
        self.last_write = Some((who, start));
    }

    /// Remembers the sectors between two places, as they are now.
    fn touch(&mut self, start: usize, end: usize) {
        for sector in start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let bytes = &self.cache[sector * SECTOR_BYTES..self.cache.len().min((sector + 1) * SECTOR_BYTES)];
            self.sectors.entry(sector).or_default().push(bytes.to_vec());
        }
        let known = self.sizes.last().copied().unwrap_or(self.disk.len());
        let carried = self.cache.len().min(end.next_multiple_of(SECTOR_BYTES));
        self.sizes.push(known.max(carried));
    }

    fn cut(&mut self, length: usize) {
        self.cache.truncate(length);
        if length % SECTOR_BYTES > 0 {
            self.touch(length, length);
        }
        self.sizes.push(length);
    }

    fn carry(&mut self) {
        self.disk = self.left(|versions| versions);
        (self.sectors, self.sizes) = (BTreeMap::new(), Vec::new());
    }

    /// The bytes that were to be carried are lost, or not, each sector for itself.
    fn lose(&mut self, random: &mut Random) {
        self.disk = self.after_crash(random);
        (self.sectors, self.sizes) = (BTreeMap::new(), Vec::new());
        self.failures += 1;
    }

    fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        self.left(|versions| random.below(versions as u64 + 1) as usize)
    }

    /// What is on the disk when `pick` says which version of each sector, and of the size, got there: 0 is none.
    fn left(&self, mut pick: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut disk = self.disk.clone();
        for (sector, versions) in &self.sectors {
            let Some(bytes) = pick(versions.len()).checked_sub(1).map(|version| &versions[version]) else { continue };
            let start = sector * SECTOR_BYTES;
            if disk.len() < start + bytes.len() {
                disk.resize(start + bytes.len(), 0);
            }
            disk[start..start + bytes.len()].copy_from_slice(bytes);
        }
        let size = pick(self.sizes.len()).checked_sub(1).map_or(self.disk.len(), |version| self.sizes[version]);
        disk.resize(size, 0);
        disk
    }
}

struct SimLog {
    sim: Sim,
    node: usize,
    id: usize,
    /// How many failures of `sync` this handle knows of.
    told: Mutex<usize>,
}

impl OpenLog for SimLog {
    fn len(&self) -> io::Result<u64> {
        let (state, _) = self.sim.step()?;
        Ok(state.nodes[self.node].cache.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (state, short) = self.sim.step()?;
        let rest = state.nodes[self.node].cache.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len()).min(short.unwrap_or(usize::MAX).max(1));
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        let (mut state, short) = self.sim.step()?;
        let used: u64 = state.nodes.iter().map(|node| node.cache.len() as u64).sum();
        let room = state.space.map_or(usize::MAX, |space| space.saturating_sub(used) as usize);
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(room).min(short.unwrap_or(usize::MAX));
        let node = &mut state.nodes[self.node];
        node.append(&bytes[..taken], self.id);
        Ok(Appended { taken, end: node.cache.len() as u64 })
    }

    fn cut_back(&self, start: u64, end: u64) -> io::Result<bool> {
        let (mut state, _) = self.sim.step()?;
        let node = &mut state.nodes[self.node];
        if node.cache.len() as u64 != end {
            return Ok(false);
        }
        let is_ours = start == end || node.last_write.is_some_and(|(who, from)| who == self.id && from as u64 <= start);
        node.cut(start as usize);
        if !is_ours {
            state.broken.push(format!("bytes of others were cut off at {start}"));
        }
        Ok(true)
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut state, _) = self.sim.step()?;
        if state.file(path) != Some(self.node) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let node = &mut state.nodes[self.node];
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if node.cache.get(start..end) == Some(bytes) {
            node.touch(start, end);
        } else {
            state.broken.push(format!("earlier bytes were changed at {offset}"));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let step = self.sim.step();
        let fails = step.as_ref().err().map(io::Error::kind);
        drop(step);
        let mut state = self.sim.state();
        if state.power == Power::Off {
            return Err(io::Error::other("the power is off"));
        }
        let mut random = Random(state.random.next());
        let node = &mut state.nodes[self.node];
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(kind) = fails {
            node.lose(&mut random);
            *told = node.failures;
            return Err(kind.into());
        }
        node.carry();
        if std::mem::replace(&mut *told, node.failures) < node.failures {
            return Err(io::Error::other("somebody else's sync failed"));
        }
        Ok(())
    }

    fn lock(&self) -> io::Result<Locked> {
        let (mut state, _) = self.sim.step()?;
        if state.has_no_locks {
            return Ok(Locked::Never);
        }
        if state.held > 0 {
            state.held -= 1;
            return Ok(Locked::ByAnother);
        }
        let owner = &mut state.nodes[self.node].locked_by;
        if owner.is_some_and(|owner| owner != self.id) {
            return Ok(Locked::ByAnother);
        }
        *owner = Some(self.id);
        Ok(Locked::Yes)
    }

    fn unlock(&self) -> io::Result<()> {
        let (mut state, _) = self.sim.step()?;
        state.nodes[self.node].locked_by.take_if(|owner| *owner == self.id);
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<Standing> {
        let (state, _) = self.sim.step()?;
        Ok(match state.names.get(path) {
            Some(Some(node)) if *node == self.node => Standing::ThisFile,
            Some(_) => Standing::AnotherFile,
            None => Standing::Nothing,
        })
    }
}

impl Drop for SimLog {
    fn drop(&mut self) {
        self.sim.state().nodes[self.node].locked_by.take_if(|owner| *owner == self.id);
    }
}

/// Numbers that look random and come again with the same seed (splitmix64).
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
