//! Where the files of a removed session are: in the trash, in their old places, or, after a crash, in both.

use std::path::{Path, PathBuf};

use super::moving::is_copied;
use super::{MovedFile, Origin, Trash, check_file_or_folder};
use crate::dialect::layout::MOVING;
use crate::disk::replace::delete;
use crate::model::error::{At, Result};

/// The files of a removed session.
pub(super) struct Status {
    /// Whether files are being moved, or were when the machine crashed.
    pub(super) is_moving: bool,
    pub(super) files: Vec<FileStatus>,
}

/// A file or a folder of a removed session.
pub(super) struct FileStatus {
    /// Its place in the trash.
    pub(super) here: PathBuf,
    /// Its place before.
    pub(super) path: PathBuf,
    pub(super) is: Is,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    InTrash,
    InOldPlace,
    /// A crash left a copy, or another session is in the old place now.
    InBoth,
    Gone,
}

impl Status {
    /// Whether some of the session is, or may be, outside of the trash. If nothing was interrupted, what is in the place of a file
    /// that is in the trash belongs to another session.
    pub(super) fn is_partly_outside(&self) -> bool {
        self.files.iter().any(|file| file.is == Is::InOldPlace || file.is == Is::InBoth && self.is_moving)
    }
}

/// What a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// The file in the old place is complete.
    Restoring,
    /// The file in the trash is complete.
    Removing,
    /// They are two different files.
    Neither,
}

impl Trash {
    pub(super) fn status(&self, folder: &Path, origin: &Origin) -> Status {
        let status = |MovedFile { path, name }: &MovedFile| {
            let here = folder.join(name);
            let is = match (self.disk.exists(&here), self.disk.exists(path)) {
                (true, true) => Is::InBoth,
                (true, false) => Is::InTrash,
                (false, true) => Is::InOldPlace,
                (false, false) => Is::Gone,
            };
            FileStatus { here, path: path.clone(), is }
        };
        let is_moving = self.disk.exists(&folder.join(MOVING));
        Status { is_moving, files: origin.files.iter().map(status).collect() }
    }

    /// Notes that files of a removed session are being moved: if one of them is in both places then, a crash was the reason.
    pub(super) fn mark(&self, folder: &Path) -> Result<()> {
        let mark = folder.join(MOVING);
        if !self.disk.exists(&mark) {
            drop(self.disk.create(&mark).at(&mark)?);
        }
        self.disk.sync_folder(folder).at(folder)
    }

    pub(super) fn unmark(&self, folder: &Path) -> Result<()> {
        let mark = folder.join(MOVING);
        if self.disk.exists(&mark) { delete(&*self.disk, &mark) } else { Ok(()) }
    }

    /// What was interrupted, if a file is in the trash and in its old place.
    pub(super) fn interrupted(&self, folder: &Path, here: &Path, path: &Path) -> Result<Interrupted> {
        let both = [here, path].map(check_file_or_folder);
        if both.iter().any(Result::is_err) {
            return Ok(Interrupted::Neither);
        }
        Ok(match () {
            // The machine crashed while the file had both names.
            () if self.disk.is_same_file(here, path) => Interrupted::Restoring,
            () if !self.disk.exists(&folder.join(MOVING)) => Interrupted::Neither,
            () if is_copied(here, path)? => Interrupted::Restoring,
            () if is_copied(path, here)? => Interrupted::Removing,
            () => Interrupted::Neither,
        })
    }
}
