//! Makes room for files: where the session made a folder of a file, or a file of a folder, one of them goes before the other comes.
//!
//! A folder goes only if it holds nothing but files that the plan deletes and folders that the session made.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::Undo;
use super::on_disk::OnDisk;
use super::pending::Pending;
use super::plan::{Action, Blocked, Plan, PlannedFile, Readiness};
use crate::disk::worktree::Found;
use crate::model::error::{Result, in_words};
use crate::model::project_path::ProjectPath;
use crate::model::record::RestoredVersion;
use crate::view::files::FileVersion;

/// What is where a file is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InTheWay {
    /// A folder.
    Folder,
    /// A folder of its path is a file or a link.
    FileAbove,
}

impl InTheWay {
    pub(super) fn of(found: &Found) -> Option<InTheWay> {
        match found {
            Found::Folder => Some(InTheWay::Folder),
            Found::BelowFile => Some(InTheWay::FileAbove),
            Found::Nothing | Found::File { .. } | Found::Link(_) | Found::Other(_) => None,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            InTheWay::Folder => "a folder has taken its place",
            InTheWay::FileAbove => "a folder in its path is a link or a file",
        }
    }
}

/// Files and folders that an operation removes.
#[derive(Default)]
pub(super) struct Leaving {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl Leaving {
    pub(super) fn of_plan(plan: &Plan, blocked: Blocked) -> Leaving {
        let changes = plan.files.iter().filter(|file| file.is_applied(blocked)).filter_map(|file| file.change.as_ref());
        let gone = changes.filter(|change| change.wanted == FileVersion::Absent);
        Leaving {
            files: gone.map(|change| change.path.to_string()).collect(),
            folders: plan.folders.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn of_pending<'s>(
        swaps: impl Iterator<Item = (&'s ProjectPath, &'s RestoredVersion)>,
        pending: &Pending,
    ) -> Leaving {
        let gone = swaps.filter(|(_, after)| after.is_absent());
        Leaving {
            files: gone.map(|(path, _)| path.to_string()).collect(),
            folders: pending.empty_folders.iter().cloned().collect(),
        }
    }

    /// Whether a file goes that is in the place of a folder of this path.
    pub(super) fn is_above(&self, path: &ProjectPath) -> bool {
        path.folders().any(|folder| self.files.contains(folder.as_str()))
    }

    pub(super) fn has_file(&self, path: &ProjectPath) -> bool {
        self.files.contains(path.as_str())
    }

    fn makes_room_for(&self, path: &ProjectPath, found: &Found) -> bool {
        match InTheWay::of(found) {
            Some(InTheWay::Folder) => self.folders.contains(path.as_str()),
            Some(InTheWay::FileAbove) => self.is_above(path),
            None => false,
        }
    }
}

impl Undo<'_> {
    /// What is at a path. What leaves before the file comes is nothing.
    pub(super) fn look<'t>(&'t self, path: &'t ProjectPath, leaving: &Leaving) -> Result<OnDisk<'t>> {
        let mut disk = OnDisk::look(&*self.tree, path)?;
        if leaving.makes_room_for(path, &disk.found) {
            disk.found = Found::Nothing;
        }
        Ok(disk)
    }

    /// Refuses files that something stays in the way of. Returns the folders that go.
    pub(super) fn make_room(&self, files: &mut [PlannedFile]) -> Vec<ProjectPath> {
        let is_gone = |file: &&PlannedFile| file.action == Action::Delete && file.state == Readiness::Ready;
        let gone: BTreeSet<String> = files.iter().filter(is_gone).map(|file| file.path.clone()).collect();
        let made = self.history.folders.iter().filter(|folder| folder.is_made);
        let made: HashSet<&ProjectPath> = made.map(|folder| &folder.path).collect();
        let mut folders = Vec::new();
        for file in files {
            let Some(in_the_way) = file.in_the_way else { continue };
            let Ok(path) = ProjectPath::parse(&file.path) else { continue };
            let has_room = match in_the_way {
                // As a file it is absent; the folder goes if nothing stays in it.
                InTheWay::Folder => {
                    let inside = self.folders_to_remove(&path, &gone, &made);
                    let has_room = inside.is_some() || file.action == Action::None;
                    folders.extend(inside.unwrap_or_default());
                    has_room
                }
                InTheWay::FileAbove => {
                    let found = path.folders().find_map(|folder| match self.tree.look(&folder) {
                        Ok(Found::File { .. } | Found::Link(_)) => Some(folder),
                        _ => None,
                    });
                    // What the session left absent is absent below a file or a link, too.
                    found.is_some_and(|folder| file.action == Action::None || gone.contains(folder.as_str()))
                }
            };
            if !has_room {
                (file.state, file.change) = (Readiness::Refused, None);
                file.reason = Some(in_the_way.reason().to_owned());
            }
        }
        folders
    }

    /// A folder and those in it, if nothing stays in them.
    fn folders_to_remove(
        &self,
        folder: &ProjectPath,
        gone: &BTreeSet<String>,
        made: &HashSet<&ProjectPath>,
    ) -> Option<Vec<ProjectPath>> {
        let mut folders = vec![folder.clone()];
        let mut at = 0;
        while let Some(folder) = folders.get(at).cloned() {
            let inside = format!("{folder}/");
            let has_gone = gone.range(inside.clone()..).next().is_some_and(|path| path.starts_with(&inside));
            if !has_gone && !made.contains(&folder) {
                return None;
            }
            for name in self.tree.list(&folder).ok()? {
                let path = ProjectPath::parse(&format!("{inside}{name}")).ok()?;
                match self.tree.look(&path).ok()? {
                    Found::Folder => folders.push(path),
                    _ if gone.contains(path.as_str()) => {}
                    _ => return None,
                }
            }
            at += 1;
        }
        Some(folders)
    }

    /// Tells before anything is changed that a folder cannot be written to.
    pub(super) fn check_folders(&self, files: &mut [PlannedFile]) {
        let mut known: HashMap<Option<ProjectPath>, Option<String>> = HashMap::new();
        for file in files {
            let Some(change) = &file.change else { continue };
            // A folder that is missing is made in the one above.
            let is_there = |folder: &ProjectPath| matches!(self.tree.look(folder), Ok(Found::Folder));
            let why = known.entry(change.path.folder()).or_insert_with(|| {
                let folder = change.path.folders().find(is_there);
                let checked = self.tree.check_writable(folder.as_ref());
                checked.err().map(|error| format!("its folder cannot be changed: {}", in_words(&error)))
            });
            if let Some(why) = why {
                (file.state, file.change, file.reason) = (Readiness::Failed, None, Some(why.clone()));
            }
        }
    }
}
