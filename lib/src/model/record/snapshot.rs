//! File states: what a message changed on disk, as far as the agent recorded it. Undo is planned from them.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::RecordId;

/// File states tied to a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// The record that changed the files.
    pub message: Option<RecordId>,
    /// It adds to an earlier snapshot instead of being a new one.
    pub update: bool,
    /// The files, each path once.
    pub files: Vec<FileState>,
    /// Further snapshots in the same record: after a rewind Qwen Code writes those of all prompts together.
    pub more: Vec<Snapshot>,
    /// Fields that this version does not know, as the agent wrote them.
    pub extra: Map<String, Value>,
}

impl Snapshot {
    /// The key in [`Snapshot::extra`] with the folders that the message made.
    pub(crate) const FOLDERS: &str = "folders";
    /// The same, with the folders that went away.
    pub(crate) const REMOVED_FOLDERS: &str = "removedFolders";
    /// The same, with the number of files of the project that nobody looks at, by the reason.
    pub(crate) const UNWATCHED: &str = "unwatched";

    /// Every file state, those of [`Snapshot::more`] included.
    pub fn all_files(&self) -> impl Iterator<Item = &FileState> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            let next = waiting.pop()?;
            waiting.extend(next.more.iter().rev());
            Some(&next.files)
        })
        .flatten()
    }

    /// Makes paths that are relative to one folder relative to another one, or absolute if they are not below it.
    pub(crate) fn rebase_paths(&mut self, from: &Path, to: &Path) {
        let mut waiting = vec![self];
        while let Some(next) = waiting.pop() {
            for file in next.files.iter_mut().filter(|file| Path::new(&file.path).is_relative()) {
                let whole = from.join(&file.path);
                if let Some(path) = whole.strip_prefix(to).unwrap_or(&whole).to_str() {
                    file.path = path.to_owned();
                }
            }
            waiting.extend(&mut next.more);
        }
    }
}

/// One file before and after a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileState {
    /// The file: absolute, or relative to the working directory or, in the native format, to the root of the project. It comes from a
    /// log: check it before it is used as a path.
    pub path: String,
    /// The content before the change.
    pub before: Before,
    /// The content after the change.
    pub after: After,
    /// The permission bits before the change.
    pub mode: Option<u32>,
    /// The permission bits after the change.
    pub mode_after: Option<u32>,
    /// The target of the symbolic link that the file was before the change.
    pub symlink: Option<String>,
    /// Fields that this version does not know, as the agent wrote them.
    pub extra: Map<String, Value>,
}

impl FileState {
    /// A file of which nothing else is known.
    pub fn new(path: impl Into<String>) -> FileState {
        FileState { path: path.into(), ..FileState::default() }
    }
}

/// A file's content before a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub enum Before {
    /// The file did not exist.
    Absent,
    /// The whole text, in the record itself.
    Inline(String),
    /// A copy in the session's file history.
    Backup {
        /// The name or path of the copy, as the agent wrote it. It is untrusted.
        name: String,
        /// The copy's SHA-256, in hexadecimal digits.
        hash: Option<String>,
    },
    /// A blob of the store.
    Blob {
        /// Its name. It is untrusted.
        id: String,
        /// The content's SHA-256, in hexadecimal digits.
        hash: Option<String>,
    },
    /// The agent could not copy the file, and may say why.
    Failed(Option<String>),
    /// The record does not say.
    #[default]
    Unknown,
}

/// A file's content after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub enum After {
    /// The file no longer exists.
    Absent,
    /// The content's SHA-256, in hexadecimal digits.
    Hash(String),
    /// It is a symbolic link with this target.
    Symlink(String),
    /// The record does not say.
    #[default]
    Unknown,
}
