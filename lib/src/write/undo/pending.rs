//! The note of an operation that has begun: what each file was and is to become, so that a crash leaves nothing half done.
//!
//! ```text
//! <store>/undo/<hash of the root>.json      there while an operation changes files; the lock of <store>/undo is held meanwhile
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

/// The place of the note for a project.
pub(super) fn path_for(store: &Path, root: &Path) -> PathBuf {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    store.join("undo").join(format!("{}.json", &name[..32]))
}

/// One operation of a store at a time; the lock ends with the handle. There is none where the file system has no locks.
pub(super) fn lock(disk: &dyn Disk, store: &Path) -> Result<Option<Box<dyn OpenLog>>> {
    let folder = store.join("undo");
    make_folders(disk, &folder.join("any"))?;
    let handle = disk.open_folder(&folder).at(&folder)?;
    if let Some(handle) = &handle {
        lock_log(disk, &**handle, &folder)?;
    }
    Ok(handle)
}

pub(super) fn read(path: &Path) -> Result<Option<Pending>> {
    let bytes = match regular_file::read(path, PENDING_LIMIT_BYTES, Links::Refuse) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from).at(path)
}

/// Writes the note; it is safe on return.
pub(super) fn write(disk: &dyn Disk, path: &Path, pending: &Pending) -> Result<()> {
    let bytes = serde_json::to_vec(pending).map_err(io::Error::from).at(path)?;
    replace(disk, path, &pending.operation, &bytes, Durable::Yes)
}

/// Removes the note: the operation is done, or nothing of it is.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    delete(disk, path)?;
    sync_parent(disk, path)
}
