//! The note of an operation that has begun: what each file was and is to become, so that a crash leaves nothing half done.
//!
//! ```text
//! <store>/undo/<hash of the root>.json      there while an operation changes files; the lock of <store>/undo is held meanwhile
//! <data>/undo/<hash of the root>.json       the same note, for sessions of other stores on the same project
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::disk::append::{lock_log, make_folders};
use crate::disk::replace::{Durable, delete, replace, sync_parent};
use crate::disk::{Disk, OpenLog};
use crate::model::error::{At, Error, Result};
use crate::model::regular_file::{self, Links};

/// A note that is larger is not read: it lists files and does not contain them.
const PENDING_LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// An operation that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pending {
    pub(super) operation: String,
    pub(super) root: PathBuf,
    /// The store with the blobs of the operation; older notes lie in it.
    #[serde(default)]
    pub(super) store: Option<PathBuf>,
    pub(super) dialect: String,
    /// The session's first file.
    pub(super) log: PathBuf,
    /// The restore record to write when the files are done, as our journal writes it.
    pub(super) restore: Value,
    /// The record that the conversation continues from; null is the start.
    pub(super) head: Option<String>,
    /// The conversation goes back, too.
    pub(super) moves_conversation: bool,
    /// Folders that may be created for it.
    pub(super) folders: Vec<String>,
    /// Folders that go away if they are empty then, the inner ones first.
    pub(super) empty_folders: Vec<String>,
}

/// The places of the note for a project: in the store, whose blobs it names, and where every other store of the user looks.
pub(super) struct Notes {
    paths: Vec<PathBuf>,
}

impl Notes {
    pub(super) fn of(store: &Path, data: Option<&Path>, root: &Path) -> Notes {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        let stores = std::iter::once(store).chain(data.filter(|data| *data != store));
        Notes { paths: stores.map(|store| store.join("undo").join(format!("{}.json", &name[..32]))).collect() }
    }

    /// The place in the store.
    pub(super) fn own(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Whether there is one, whole or damaged.
    pub(super) fn are_there(&self) -> bool {
        self.paths.iter().any(|path| regular_file::is_there(path))
    }

    pub(super) fn read(&self) -> Result<Option<Pending>> {
        for path in &self.paths {
            if let Some(pending) = read(path)? {
                return Ok(Some(pending));
            }
        }
        Ok(None)
    }

    /// Writes the note; it is safe on return.
    pub(super) fn write(&self, disk: &dyn Disk, pending: &Pending) -> Result<()> {
        self.paths.iter().try_for_each(|path| {
            make_folders(disk, path)?;
            let bytes = serde_json::to_vec(pending).map_err(io::Error::from).at(path)?;
            replace(disk, path, &pending.operation, &bytes, Durable::Yes)
        })
    }

    /// Removes the note: the operation is done, or nothing of it is. The one in the store goes last.
    pub(super) fn remove(&self, disk: &dyn Disk) -> Result<()> {
        for path in self.paths.iter().rev().filter(|path| disk.exists(path)) {
            delete(disk, path)?;
            sync_parent(disk, path)?;
        }
        Ok(())
    }

    /// One operation at a time; the locks end with the handles. There are none where the file system has no locks.
    pub(super) fn lock(&self, disk: &dyn Disk) -> Result<Vec<Box<dyn OpenLog>>> {
        let mut folders: Vec<&Path> = self.paths.iter().filter_map(|path| path.parent()).collect();
        // Everybody in the same order: nobody waits for the other.
        folders.sort_unstable();
        folders.into_iter().filter_map(|folder| lock_folder(disk, folder).transpose()).collect()
    }
}

/// Waits until no undo changes what belongs to a store.
pub(crate) fn lock_store(disk: &dyn Disk, store: &Path) -> Result<Option<Box<dyn OpenLog>>> {
    lock_folder(disk, &store.join("undo"))
}

fn lock_folder(disk: &dyn Disk, folder: &Path) -> Result<Option<Box<dyn OpenLog>>> {
    make_folders(disk, &folder.join("any"))?;
    let handle = disk.open_folder(folder).at(folder)?;
    if let Some(handle) = &handle {
        lock_log(disk, &**handle, folder)?;
    }
    Ok(handle)
}

fn read(path: &Path) -> Result<Option<Pending>> {
    let bytes = match regular_file::read(path, PENDING_LIMIT_BYTES, Links::Refuse) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = |cause: serde_json::Error| {
        let why = format!(
            "the note of an undo that was interrupted is damaged ({cause}): look at the project's files, then delete the note"
        );
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged).at(path)
}
