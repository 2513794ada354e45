//! Deletes removed sessions for good: the only code that deletes sessions.
//!
//! A session first gets a name that nobody reads, so that a deletion which is killed leaves no half of it in the list; the next
//! one finishes it. Links are deleted, never followed.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Removed, Trash, is_one_name};
use crate::model::error::{At, Error, Result};

/// The end of the name of a session that is being deleted.
const DELETING: &str = ".deleting";

pub(super) fn is_being_deleted(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(DELETING)
}

impl Trash {
    /// Deletes a removed session for good. Only what [`Trash::list`] lists can be deleted.
    pub fn delete(&self, id: &str) -> Result<Removed> {
        let folder = self.root.join(id);
        if !is_one_name(id) || is_being_deleted(id) || !self.disk.exists(&folder) {
            return Err(Error::NoSession(Some(id.to_owned())));
        }
        check_folder(&self.root)?;
        check_folder(&folder)?;
        let origin = self.origin(&folder)?;
        // Whoever removes or restores this session right now must not lose it.
        let _live = self.lock_alone(&origin.path)?;
        let doomed = self.root.join(format!(".{id}{DELETING}"));
        self.disk.rename(&folder, &doomed).at(&folder)?;
        self.disk.sync_folder(&self.root).at(&self.root)?;
        self.disk.remove_all(&doomed).at(&doomed)?;
        Ok(Removed { id: id.to_owned(), root: self.root.clone(), origin })
    }

    /// Finishes deletions that were killed.
    pub fn finish_deletions(&self) -> Result<()> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Ok(()) };
        check_folder(&self.root)?;
        let doomed = entries.flatten().filter(|entry| is_being_deleted(&entry.file_name().to_string_lossy()));
        doomed.map(|entry| entry.path()).try_for_each(|path| self.disk.remove_all(&path).at(&path))
    }

    /// The bytes that a removed session takes up.
    pub fn size_bytes(&self, id: &str) -> u64 {
        let (mut size, mut next) = (0, if is_one_name(id) { vec![self.root.join(id)] } else { Vec::new() });
        while let Some(path) = next.pop() {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.is_dir() {
                next.extend(entries(&path));
            } else {
                size += found.len();
            }
        }
        size
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Fails for a link to a folder: what it leads to is not in the trash.
fn check_folder(path: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(path).at(path)?.is_dir();
    if is_folder { Ok(()) } else { Err(Error::ForeignTrash(path.to_path_buf())) }
}
