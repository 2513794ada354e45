//! Deletes removed sessions for good: the only code that deletes sessions.
//!
//! All of a session is deleted or nothing: while some of it is outside of the trash, it stays.
//! A session first gets a name that nobody reads, so that a deletion which is killed leaves no half of it in the list; the next
//! one finishes it. Links are deleted, never followed.

use std::fs;
use std::path::{Path, PathBuf};

use super::moving::remove_incomplete;
use super::{Origin, Removed, Trash, is_one_name};
use crate::disk::replace::delete;
use crate::model::error::{At, Error, Result};

/// The end of the name of a session that is being deleted.
const DELETING: &str = ".deleting";

pub(super) fn is_being_deleted(name: &str) -> bool {
    name.starts_with('.') && name.len() > DELETING.len() && name.ends_with(DELETING)
}

/// Deletions that were killed, and are finished now.
#[derive(Debug, Default)]
pub struct FinishedDeletions {
    /// The ids that the sessions had in the trash.
    pub ids: Vec<String>,
    /// What could not be deleted.
    pub errors: Vec<Error>,
}

impl Trash {
    /// Deletes a removed session for good. Only what [`Trash::list`] lists can be deleted, and only if all of it is in the trash.
    pub fn delete(&self, id: &str) -> Result<Removed> {
        let (folder, origin) = self.to_delete(id)?;
        // Whoever removes or restores this session right now must not lose it.
        let _live = self.lock_alone(&origin.path)?;
        self.check_all_is_in_trash(id, &folder, &origin)?;
        // A copy that a killed restoration left beside the old place belongs to nobody then.
        origin.files.iter().try_for_each(|file| remove_incomplete(&*self.disk, &file.path, id))?;
        // One of the same id may have been killed. What cannot be finished does not concern this one, unless the name is taken.
        drop(self.finish_deletions());
        let doomed = self.root.join(format!(".{id}{DELETING}"));
        self.disk.rename(&folder, &doomed).at(&folder)?;
        self.disk.sync_folder(&self.root).at(&self.root)?;
        self.remove_doomed(&doomed)?;
        Ok(Removed { id: id.to_owned(), root: self.root.clone(), origin })
    }

    /// Deletes an entry that [`Trash::list`] cannot read or that a killed removal left, for good. Its files may be all that is left of a
    /// session: delete only what somebody named.
    pub fn delete_broken(&self, id: &str) -> Result<()> {
        let entry = self.check_broken(id)?;
        if check_folder(&entry).is_err() {
            return delete(&*self.disk, &entry);
        }
        drop(self.finish_deletions());
        let doomed = self.root.join(format!(".{id}{DELETING}"));
        self.disk.rename(&entry, &doomed).at(&entry)?;
        self.remove_doomed(&doomed)
    }

    /// Checks that an entry is one that [`Trash::delete_broken`] deletes, and returns its place.
    pub fn check_broken(&self, id: &str) -> Result<PathBuf> {
        let entry = self.root.join(id);
        if !is_one_name(id) || is_being_deleted(id) || !self.disk.exists(&entry) {
            return Err(Error::NoSession(Some(id.to_owned())));
        }
        check_folder(&self.root)?;
        // A session that can be restored is deleted by `delete`, with its own checks.
        if self.origin(&entry).is_ok() { Err(Error::Exists(entry)) } else { Ok(entry) }
    }

    /// Checks that a removed session can be deleted; deletes nothing.
    pub fn check_deletion(&self, id: &str) -> Result<()> {
        let (folder, origin) = self.to_delete(id)?;
        self.check_all_is_in_trash(id, &folder, &origin)
    }

    fn to_delete(&self, id: &str) -> Result<(PathBuf, Origin)> {
        let folder = self.root.join(id);
        if !is_one_name(id) || is_being_deleted(id) || !self.disk.exists(&folder) {
            return Err(Error::NoSession(Some(id.to_owned())));
        }
        check_folder(&self.root)?;
        check_folder(&folder)?;
        let origin = self.origin(&folder)?;
        Ok((folder, origin))
    }

    /// Fails if a removal or a restoration was interrupted: the rest of the session is in use, or would stay behind.
    fn check_all_is_in_trash(&self, id: &str, folder: &Path, origin: &Origin) -> Result<()> {
        let is_partly_outside = self.status(folder, origin).is_partly_outside();
        if is_partly_outside { Err(Error::PartlyRemoved(id.to_owned())) } else { Ok(()) }
    }

    /// Finishes deletions that were killed: all that can be.
    pub fn finish_deletions(&self) -> FinishedDeletions {
        let mut finished = FinishedDeletions::default();
        let Ok(found) = fs::read_dir(&self.root) else { return finished };
        if let Err(error) = check_folder(&self.root) {
            finished.errors.push(error);
            return finished;
        }
        for entry in found.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_being_deleted(&name) {
                continue;
            }
            match self.remove_doomed(&entry.path()) {
                Ok(()) => finished.ids.push(name[1..name.len() - DELETING.len()].to_owned()),
                Err(error) => finished.errors.push(error),
            }
        }
        finished
    }

    fn remove_doomed(&self, doomed: &Path) -> Result<()> {
        match self.disk.remove_all(doomed) {
            // Another program finished it meanwhile.
            Err(_) if !self.disk.exists(doomed) => Ok(()),
            removed => removed.at(doomed),
        }
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
