//! Watches a project between turns: what was changed, made and deleted there, by whichever program.
//!
//! ```text
//! inventory ── stat of each file ──▶ the same: nothing · another: hash and copy ──▶ changes, and the next inventory
//! ```
//! The copies are blobs. What `.gitignore` files exclude is not watched, and git itself is never run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};
use rayon::prelude::*;
use serde::Serialize;

use super::file_now::{self, FileNow, Look, Stat};
use super::{Log, Recorder, Warning};
use crate::disk::{Disk, Real};
use crate::model::error::{At, Result};
use crate::model::record::{FileState, Kind, RecordId};

/// Of a larger file no copy is made: it is built or downloaded, and copying it at each change would fill the store.
const FILE_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// More of a project is not copied: a home directory that somebody watches by mistake must not fill the disk.
const TOTAL_LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// More files are not watched: looking at each of them would delay every turn.
const FILE_LIMIT: usize = 100_000;

/// A file that was changed so shortly before it was looked at may be changed again without a new time: coarse clocks of file systems
/// tick every two seconds.
const CLOCK_TICK_SECONDS: i64 = 2;

/// Folders of version control and of agents: their content is not the project's.
pub(super) const NOT_WATCHED: [&str; 2] = [".git", ".sage"];

/// What is watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// How many files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many files cannot be restored: they are too large, too many, or cannot be read.
    pub skipped: u64,
}

/// A project, or a folder of it, that is watched.
#[derive(Clone)]
pub(super) struct Watch {
    /// The root of the project, links resolved.
    project: PathBuf,
    /// The folder that is watched.
    root: PathBuf,
    known: Arc<Inventory>,
    /// The folders that are there.
    folders: Arc<BTreeSet<String>>,
    /// The head when the turn ended and its changes were recorded: what is changed after that is not the turn's.
    settled_at: Option<RecordId>,
}

/// What is known of each file, by its path as it is recorded.
type Inventory = BTreeMap<String, Known>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    now: FileNow,
    stat: Stat,
    /// Another change may have left the same stat.
    is_in_doubt: bool,
}

/// An inventory that was just made.
pub(super) struct Scan {
    files: Inventory,
    folders: BTreeSet<String>,
    /// How many files are not looked at, by the reason.
    pub(super) unwatched: BTreeMap<&'static str, u64>,
    watched: Watched,
}

/// A file that was found.
struct Found {
    path: String,
    place: PathBuf,
    stat: Stat,
}

impl Recorder {
    /// Watches a folder, which is the session's project or inside of it: from now on, what changes there is recorded at the end of
    /// each turn and by [`Recorder::after_tool`], whichever program changed it: shells, formatters, the agent itself.
    ///
    /// A turn ends with an answer without tool calls, with the next prompt, or with [`Recorder::close`]. What somebody changes
    /// between such an answer and the next prompt is not the turn's, and is not recorded; so it is in a session that is continued.
    ///
    /// Files that `.gitignore` excludes, `.git` and `.sage` folders and scrollback's own store are not watched; links are not
    /// followed. This reads and copies every file once, so that what it was before its first change is known.
    pub fn watch(&mut self, root: impl AsRef<Path>) -> Result<Watched> {
        if !self.stores_files()? {
            return Ok(Watched::default());
        }
        let Some(log) = &mut self.log else { return Ok(Watched::default()) };
        let project = Real.resolve(&log.project());
        let root = fs::canonicalize(project.join(root.as_ref())).at(root.as_ref())?;
        let problem = match () {
            () if !root.starts_with(&project) => Some("outside the session's project"),
            () if !root.is_dir() => Some("not a folder"),
            () => None,
        };
        if let Some(why) = problem {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why)).at(&root);
        }
        let mut watch = Watch { project, root, known: Arc::default(), folders: Arc::default(), settled_at: None };
        let scan = watch.scan(log)?;
        let watched = scan.watched;
        if watched.skipped > 0 {
            log.warning(Warning::PartlyWatched);
        }
        watch.advance(scan);
        // If this begins between two turns, what changes until the next prompt is no turn's.
        watch.settled_at = log.settled_head();
        self.files.watch = Some(watch);
        Ok(watched)
    }

    /// Before a prompt: records what the turn before changed.
    pub(super) fn begin_turn(&mut self) -> Result<()> {
        if self.is_settled() { self.accept_changes() } else { self.write_changes(Vec::new()) }
    }

    /// Before the recording ends: records what the turn changed.
    pub(super) fn end_last_turn(&mut self) -> Result<()> {
        if self.is_settled() { Ok(()) } else { self.write_changes(Vec::new()) }
    }

    /// After an answer or a restore: if it ends the turn, nothing that is changed from now on is the turn's. What the turn changed in
    /// a watched project is recorded; what a restore changed is not, because its record names it. The record itself is on disk,
    /// so a failure is a warning, and the next turn records the changes.
    pub(super) fn settle_turn(&mut self) {
        let Some(log) = self.log.as_ref().filter(|_| self.files.watch.is_some() && self.answer.is_none()) else {
            return;
        };
        let is_restore = log.cursor.chain.parent.as_ref().is_some_and(|head| head.kind == Kind::Restore);
        if log.is_in_doubt() || log.settled_head().is_none() {
            return;
        }
        let settled = if is_restore { self.accept_changes() } else { self.write_changes(Vec::new()) };
        let (Some(log), Some(watch)) = (&mut self.log, &mut self.files.watch) else { return };
        match settled {
            Ok(()) => watch.settled_at = log.settled_head(),
            Err(_) => log.warning(Warning::NotCopied),
        }
    }

    /// After a record between two turns, such as a summary or a rewind: the turn stays over if it was.
    pub(super) fn stay_settled(&mut self, was_settled: bool) {
        let head = self.head().cloned();
        if let Some(watch) = self.files.watch.as_mut().filter(|_| was_settled) {
            watch.settled_at = head;
        }
    }

    /// Takes note of what is on disk, and records nothing: somebody else changed it.
    fn accept_changes(&mut self) -> Result<()> {
        if let (Some(log), Some(watch)) = (&self.log, &mut self.files.watch) {
            let scan = watch.scan(log)?;
            watch.advance(scan);
        }
        Ok(())
    }

    /// Whether the turn is over and what it changed is recorded.
    pub(super) fn is_settled(&self) -> bool {
        let settled_at = self.files.watch.as_ref().and_then(|watch| watch.settled_at.as_ref());
        settled_at.is_some() && settled_at == self.head()
    }
}

impl Log {
    /// The head, if no turn is under way there: after a restore, and where no prompt waits for its answer and no call for its result.
    fn settled_head(&self) -> Option<RecordId> {
        let is_over = |kind| match kind {
            Kind::Restore => true,
            Kind::User | Kind::ToolResult => false,
            _ => self.cursor.running_calls.is_empty(),
        };
        self.cursor.chain.parent.as_ref().filter(|head| is_over(head.kind)).map(|head| head.id.clone())
    }
}

impl Watch {
    /// Looks at every file. Fails only if the store cannot be written.
    pub(super) fn scan(&self, log: &Log) -> Result<Scan> {
        let (found, folders, unwatched) = self.find(log);
        let blobs = log.blobs();
        let now_seconds = (log.place.host.now)().as_second();
        let mut room = TOTAL_LIMIT_BYTES;
        let mut too_large = |bytes: u64| {
            if bytes > FILE_LIMIT_BYTES {
                return Some("larger than 16 MiB");
            }
            let is_full = bytes > room;
            room -= if is_full { 0 } else { bytes };
            is_full.then_some("the project is larger than 1 GiB")
        };
        let found: Vec<_> = found.into_iter().map(|found| (too_large(found.stat.bytes()), found)).collect();
        let look = |(why, found): (Option<&str>, Found)| -> Result<(String, Known)> {
            let Found { path, place, stat } = found;
            if let Some(why) = why {
                let now = FileNow::Unknown { why: why.to_owned(), stat: Some(stat.clone()) };
                return Ok((path, Known { now, stat, is_in_doubt: false }));
            }
            let known = self.known.get(&path).filter(|known| known.stat == stat && !known.is_in_doubt);
            if let Some(known) = known {
                return Ok((path, known.clone()));
            }
            let now = file_now::look(&place, &Look::Copy(&blobs, FILE_LIMIT_BYTES))?;
            let is_in_doubt = stat.changed_seconds() >= now_seconds - CLOCK_TICK_SECONDS;
            Ok((path, Known { now, stat, is_in_doubt }))
        };
        let looked = found.into_par_iter().map(look).collect::<Result<Vec<_>>>()?;
        let is_file = |(_, known): &(String, Known)| !matches!(known.now, FileNow::Absent | FileNow::Folder);
        let files: Inventory = looked.into_iter().filter(is_file).collect();
        let unknown = files.values().filter(|known| matches!(known.now, FileNow::Unknown { .. })).count() as u64;
        let skipped = unknown + unwatched.values().sum::<u64>();
        let bytes = files.values().map(|known| known.stat.bytes()).sum();
        let watched = Watched { files: files.len() as u64, bytes, skipped };
        Ok(Scan { files, folders, unwatched, watched })
    }

    /// The files and folders that are there, and how many files are not watched, by the reason.
    fn find(&self, log: &Log) -> (Vec<Found>, BTreeSet<String>, BTreeMap<&'static str, u64>) {
        let (mut found, mut folders, mut unwatched) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        for entry in self.walk(log) {
            let Ok(inside) = entry.path().strip_prefix(&self.project) else { continue };
            let path = file_now::recorded_path(inside);
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                folders.extend(path.filter(|path| !path.is_empty() && folders.len() < FILE_LIMIT));
                continue;
            }
            let why = match (path, entry.metadata()) {
                (None, _) => "the name is not UTF-8",
                (_, Err(_)) => "it cannot be read",
                _ if found.len() >= FILE_LIMIT => "the project has more than 100,000 files",
                (Some(path), Ok(metadata)) => {
                    let (place, stat) = (entry.into_path(), Stat::of(&metadata));
                    found.insert(path.clone(), Found { path, place, stat });
                    continue;
                }
            };
            *unwatched.entry(why).or_default() += 1;
        }
        for (path, known) in self.known.iter().filter(|(path, _)| !found.contains_key(*path)).collect::<Vec<_>>() {
            let place = self.project.join(path);
            // One that is excluded since is still there; and what cannot be looked at may be.
            let stat = match fs::symlink_metadata(&place) {
                Ok(metadata) => Stat::of(&metadata),
                Err(error) if file_now::is_absent(&error) => continue,
                Err(_) => known.stat.clone(),
            };
            found.insert(path.clone(), Found { path: path.clone(), place, stat });
        }
        (found.into_values().collect(), folders, unwatched)
    }

    /// The files, links and folders below the root, but not what is excluded. `.gitignore` files above the root count too, so the walk starts
    /// at the project.
    fn walk(&self, log: &Log) -> impl Iterator<Item = DirEntry> + use<> {
        let root = self.root.clone();
        let store = log.place.blobs.parent().map(|store| log.place.disk.resolve(store));
        // A project that is itself in the store's folder, as where one folder is set for everything, has nothing of the store in it.
        let store = store.filter(|store| self.project == *store || !self.project.starts_with(store));
        let is_wanted = move |entry: &DirEntry| {
            let path = entry.path();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_on_the_way = path.starts_with(&root) || (is_folder && root.starts_with(path));
            let is_ours = store.as_ref().is_some_and(|store| path.starts_with(store));
            is_on_the_way && !is_ours && !NOT_WATCHED.iter().any(|name| entry.file_name() == *name)
        };
        WalkBuilder::new(&self.project)
            .hidden(false)
            .ignore(false)
            .parents(false)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .filter_entry(is_wanted)
            .build()
            // A folder that cannot be read hides what is in it: what is known of that stays.
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_type().is_some())
    }

    /// What changed since the last scan.
    pub(super) fn changes(&self, scan: &Scan) -> Vec<FileState> {
        let now =
            |inventory: &Inventory, path: &str| inventory.get(path).map_or(FileNow::Absent, |known| known.now.clone());
        let gone = self.known.keys().filter(|path| !scan.files.contains_key(*path));
        let mut paths: Vec<&String> = scan.files.keys().chain(gone).collect();
        paths.sort();
        paths
            .into_iter()
            .filter_map(|path| file_now::change(path, &now(&self.known, path), &now(&scan.files, path)))
            .collect()
    }

    /// The folders that were made since the last scan.
    pub(super) fn new_folders<'f>(&'f self, scan: &'f Scan) -> impl Iterator<Item = &'f String> {
        scan.folders.difference(&self.folders)
    }

    /// The folders that went away since the last scan.
    pub(super) fn removed_folders<'f>(&'f self, scan: &'f Scan) -> impl Iterator<Item = &'f String> {
        self.folders.difference(&scan.folders)
    }

    /// What was found is the state that later changes start from.
    pub(super) fn advance(&mut self, scan: Scan) {
        (self.known, self.folders, self.settled_at) = (Arc::new(scan.files), Arc::new(scan.folders), None);
    }
}
