//! A simulated project for tests: names that were not synced may be lost, in any combination, when the power fails.
//!
//! ```text
//! operation ─▶ step: does something happen here? ─▶ names: what readers see ─sync_folder─▶ safe: what a crash leaves
//!                                                     └─ changes; a crash keeps any of them
//! ```
//! The steps are counted together with those of the disk that the store is on, so that one number says where an
//! operation stopped.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Found, ProjectFolder, Stamp, Worktree, WriteContent, staged_name};
use crate::disk::sim::Random;
use crate::model::error::{At, Result};
use crate::model::project_path::ProjectPath;

/// Counts the operations of a project and of a disk, and lets one of them fail.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    done: u64,
    trouble: Option<(u64, Trouble)>,
    is_off: bool,
}

/// What happens just before an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// This operation and all later ones fail.
    PowerLoss,
    /// This operation fails.
    Fails(io::ErrorKind),
}

impl Steps {
    /// Counts from 0 again, with trouble at one step from now on, or with none.
    pub(crate) fn restart(&self, trouble: Option<(u64, Trouble)>) {
        *self.counted() = Counted { trouble, ..Counted::default() };
    }

    pub(crate) fn done(&self) -> u64 {
        self.counted().done
    }

    /// What was being written is written in part.
    pub(crate) fn has_just_lost_power(&self) -> bool {
        let counted = self.counted();
        counted.trouble == Some((counted.done - 1, Trouble::PowerLoss))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn step(&self) -> io::Result<()> {
        let mut counted = self.counted();
        let now = counted.done;
        counted.done += 1;
        match counted.trouble {
            Some((at, Trouble::PowerLoss)) if at == now => counted.is_off = true,
            Some((at, Trouble::Fails(kind))) if at == now => return Err(kind.into()),
            _ => {}
        }
        if counted.is_off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { content: Arc<[u8]>, mode: u32 },
    Link(String),
    Folder,
}

impl Entry {
    pub(crate) fn file(content: impl Into<Arc<[u8]>>, mode: u32) -> Entry {
        Entry::File { content: content.into(), mode }
    }
}

/// Everything in a project, by path.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// A project that several processes share.
#[derive(Clone, Default)]
pub(crate) struct SimTree {
    steps: Steps,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Default)]
struct State {
    names: Names,
    /// The names that survive every crash, before `changes`.
    safe: Names,
    changes: Vec<Change>,
    /// How many entries there ever were: two never share a number.
    count: u64,
    /// `A` and `a` are one name.
    folds_case: bool,
    /// A folder in which nobody may change anything.
    read_only: Option<String>,
}

/// What is at each path, with a number that tells whether it is still the same.
type Names = BTreeMap<String, (Entry, u64)>;

/// One atomic change of names.
#[derive(Clone)]
struct Change {
    gone: Option<String>,
    new: Option<(String, (Entry, u64))>,
}

impl SimTree {
    pub(crate) fn new(steps: Steps) -> SimTree {
        SimTree { steps, ..SimTree::default() }
    }

    /// From now on whoever looks for `A` finds `a`, as on many disks of Windows and macOS.
    pub(crate) fn fold_case(&self) {
        self.state().folds_case = true;
    }

    /// From now on nothing can be created or deleted in a folder.
    pub(crate) fn make_read_only(&self, folder: &str) {
        self.state().read_only = Some(folder.to_owned());
    }

    /// Another program puts something at a path, and the folders above it; it is safe.
    pub(crate) fn put(&self, path: &str, entry: Entry) {
        let mut state = self.state();
        let folders: Vec<String> = above(path).map(str::to_owned).collect();
        for folder in folders {
            if !state.names.contains_key(&folder) {
                state.change(None, Some((&folder, Entry::Folder)));
            }
        }
        if state.names.get(path).is_none_or(|(known, _)| *known != entry) {
            state.change(None, Some((path, entry)));
        }
        state.sync(|_| true);
    }

    /// Another program deletes what is at a path, and the folders above it that are empty then; it is safe.
    pub(crate) fn take(&self, path: &str) {
        let mut state = self.state();
        let empty: Vec<String> = std::iter::once(path).chain(above(path)).map(str::to_owned).collect();
        for path in empty {
            if state.names.contains_key(&path) && !state.has_inside(&path) {
                state.change(Some(&path), None);
            }
        }
        state.sync(|_| true);
    }

    /// Everything that readers see.
    pub(crate) fn entries(&self) -> Entries {
        self.state().names.iter().map(|(path, (entry, _))| (path.clone(), entry.clone())).collect()
    }

    /// The project after a power failure: one of all possible states. The power is on again.
    pub(crate) fn crash(&self, random: &mut Random) {
        let mut state = self.state();
        let changes = std::mem::take(&mut state.changes);
        let is_ordered = random.below(2) == 0;
        let kept_in_order = random.below(changes.len() as u64 + 1) as usize;
        let mut names = state.safe.clone();
        for (at, change) in changes.iter().enumerate() {
            if if is_ordered { at < kept_in_order } else { random.below(2) == 0 } {
                change.apply(&mut names);
            }
        }
        // A file in a lost folder is lost.
        let lost: Vec<String> =
            names.keys().filter(|path| !above(path).all(|folder| is_folder(&names, folder))).cloned().collect();
        lost.iter().for_each(|path| drop(names.remove(path)));
        (state.names, state.safe) = (names.clone(), names);
        self.steps.restart(None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation in the folder of a path, which must be there.
    fn step(&self, path: &ProjectPath) -> io::Result<MutexGuard<'_, State>> {
        self.steps.step()?;
        let state = self.state();
        for folder in above(path.as_str()).collect::<Vec<_>>().into_iter().rev() {
            match state.names.get(folder) {
                Some((Entry::Folder, _)) => {}
                Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
                None => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(state)
    }
}

/// A folder that is opened, which is a step; what is read in it then is none.
struct SimFolder<'t> {
    tree: &'t SimTree,
    folder: Option<ProjectPath>,
}

impl SimFolder<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.as_ref().map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"))
    }
}

impl ProjectFolder for SimFolder<'_> {
    fn look(&self, name: &str) -> io::Result<Found> {
        Ok(match self.tree.state().find(&self.path(name)) {
            None => Found::Nothing,
            Some((Entry::Folder, _)) => Found::Folder,
            Some((Entry::Link(target), _)) => Found::Link(target.clone()),
            Some((Entry::File { content, mode }, number)) => {
                let (length, identity) = (content.len() as u64, (0, *number));
                Found::File { mode: Some(*mode), stamp: Stamp { length, identity, modified: (0, 0), changed: None } }
            }
        })
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        match self.tree.state().find(&self.path(name)) {
            Some((Entry::File { mode, .. }, _)) if mode & 0o400 == 0 => Err(io::ErrorKind::PermissionDenied.into()),
            Some((Entry::File { content, .. }, _)) => Ok(Box::new(Cursor::new(content.clone()))),
            Some(_) => Err(io::ErrorKind::InvalidInput.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Worktree for SimTree {
    fn folder_of(&self, path: &ProjectPath) -> io::Result<Box<dyn ProjectFolder + '_>> {
        drop(self.step(path)?);
        Ok(Box::new(SimFolder { tree: self, folder: path.folder() }))
    }

    fn list(&self, folder: &ProjectPath) -> io::Result<Vec<String>> {
        let state = self.step(folder)?;
        let inside = |name: &String| Some(name.strip_prefix(folder.as_str())?.strip_prefix('/')?.to_owned());
        Ok(state.names.keys().filter_map(inside).filter(|name| !name.contains('/')).collect())
    }

    fn check_writable(&self, folder: Option<&ProjectPath>) -> io::Result<()> {
        let is_it = |read_only: &String| folder.is_some_and(|folder| folder.as_str() == read_only);
        if self.state().read_only.as_ref().is_some_and(is_it) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    fn stage(&self, path: &ProjectPath, id: &str, mode: Option<u32>, write: &mut WriteContent<'_>) -> Result<()> {
        let place = self.name(path);
        let staged = staged_path(path, id);
        self.create(path, &staged, Entry::file([], 0o600)).at(&place)?;
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        // What is written may come out short.
        let half = Entry::file(&bytes[..bytes.len() / 2], 0o600);
        self.state().change(None, Some((&staged, half)));
        let mut state = self.step(path).at(&place)?;
        state.change(None, Some((&staged, Entry::file(bytes, mode.unwrap_or(0o600) & 0o777))));
        drop(state);
        let mut state = self.step(path).at(&place)?;
        state.sync_content(&staged);
        Ok(())
    }

    fn stage_link(&self, path: &ProjectPath, id: &str, target: &str) -> io::Result<()> {
        self.create(path, &staged_path(path, id), Entry::Link(target.to_owned()))
    }

    fn publish(&self, path: &ProjectPath, id: &str, is_new: bool) -> io::Result<()> {
        let staged = staged_path(path, id);
        let mut state = self.step(path)?;
        let (entry, number) = state.names.get(&staged).cloned().ok_or(io::ErrorKind::NotFound)?;
        let named = Some((path.to_string(), (entry, number)));
        if !is_new {
            if matches!(state.names.get(path.as_str()), Some((Entry::Folder, _))) {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            state.changed(Change { gone: Some(staged), new: named });
            return Ok(());
        }
        if state.names.contains_key(path.as_str()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.changed(Change { gone: None, new: named });
        drop(state);
        self.step(path)?.change(Some(&staged), None);
        Ok(())
    }

    fn unstage(&self, path: &ProjectPath, id: &str) -> io::Result<()> {
        match self.step(path) {
            Ok(mut state) => state.change(Some(&staged_path(path, id)), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn remove(&self, path: &ProjectPath) -> io::Result<()> {
        let mut state = self.step(path)?;
        match state.names.get(path.as_str()) {
            Some((Entry::Folder, _)) => Err(io::ErrorKind::IsADirectory.into()),
            Some(_) => {
                state.change(Some(path.as_str()), None);
                Ok(())
            }
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn make_folder(&self, path: &ProjectPath) -> io::Result<bool> {
        match self.create(path, path.as_str(), Entry::Folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remove_folder(&self, path: &ProjectPath) -> io::Result<bool> {
        let mut state = match self.step(path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            state => state?,
        };
        let is_empty = is_folder(&state.names, path.as_str()) && !state.has_inside(path.as_str());
        if is_empty {
            state.change(Some(path.as_str()), None);
        }
        Ok(is_empty)
    }

    fn sync_folder(&self, path: &ProjectPath) -> io::Result<()> {
        let folder = above(path.as_str()).next().map(str::to_owned);
        self.step(path)?.sync(|name| above(name).next() == folder.as_deref());
        Ok(())
    }

    fn name(&self, path: &ProjectPath) -> PathBuf {
        path.below(Path::new("/simulated"))
    }
}

impl SimTree {
    fn create(&self, path: &ProjectPath, name: &str, entry: Entry) -> io::Result<()> {
        let mut state = self.step(path)?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change(None, Some((name, entry)));
        Ok(())
    }
}

impl State {
    fn find(&self, path: &str) -> Option<&(Entry, u64)> {
        let is_it = |name: &&String| self.folds_case && name.eq_ignore_ascii_case(path);
        self.names.get(path).or_else(|| self.names.get(self.names.keys().find(is_it)?))
    }

    fn change(&mut self, gone: Option<&str>, new: Option<(&str, Entry)>) {
        self.count += 1;
        let new = new.map(|(path, entry)| (path.to_owned(), (entry, self.count)));
        self.changed(Change { gone: gone.map(str::to_owned), new });
    }

    fn changed(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    /// Makes changes of these names survive a crash.
    fn sync(&mut self, is_synced: impl Fn(&str) -> bool) {
        let (safe, rest): (Vec<Change>, Vec<Change>) =
            std::mem::take(&mut self.changes).into_iter().partition(|change| change.names().any(&is_synced));
        safe.iter().for_each(|change| change.apply(&mut self.safe));
        self.changes = rest;
    }

    /// The content of a file is safe wherever its name survives: it is as if it had been created with it.
    fn sync_content(&mut self, path: &str) {
        let is_of_file = |change: &Change| matches!(&change.new, Some((name, _)) if name == path);
        let first = self.changes.iter().position(is_of_file);
        self.changes.retain({
            let mut at = 0;
            move |change| {
                at += 1;
                !is_of_file(change) || first == Some(at - 1)
            }
        });
        if let (Some(first), Some(now)) = (first, self.names.get(path)) {
            self.changes[first].new = Some((path.to_owned(), now.clone()));
        }
    }

    fn has_inside(&self, path: &str) -> bool {
        self.names.keys().any(|name| above(name).any(|folder| folder == path))
    }
}

impl Change {
    fn apply(&self, names: &mut Names) {
        self.gone.iter().for_each(|gone| drop(names.remove(gone)));
        if let Some((path, entry)) = &self.new {
            names.insert(path.clone(), entry.clone());
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.gone.as_deref().into_iter().chain(self.new.as_ref().map(|(path, _)| path.as_str()))
    }
}

/// The folders above a path, the innermost first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(move |(at, _)| &path[..at])
}

fn is_folder(names: &Names, path: &str) -> bool {
    matches!(names.get(path), Some((Entry::Folder, _)))
}

fn staged_path(path: &ProjectPath, id: &str) -> String {
    let name = staged_name(path.parts().1, id);
    path.folder().map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"))
}
