//! What is at a path at one moment, as far as a session knows it.

use std::path::Path;
use std::sync::Arc;

use crate::model::error;
use crate::model::record::RestoredVersion;
use crate::session::backups::FileCopy;

/// What is at a path at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileVersion {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// What is known of its content.
        content: FileContent,
        /// Its permission bits, if they were recorded.
        mode: Option<u32>,
    },
    /// A symbolic link with this target.
    Link(String),
}

/// What is known of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// A copy was kept.
    Copy(FileCopy),
    /// It follows from what tools were asked to do, or from what the agent noted of it.
    Rebuilt(FileCopy),
    /// Only its hash was recorded.
    Hash {
        /// Its SHA-256, in hexadecimal digits.
        sha256: String,
        /// Its length.
        bytes: Option<u64>,
    },
}

/// A version, or why it is not known.
pub type KnownVersion = Result<FileVersion, Unknown>;

/// Why a version is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// Nobody kept it.
    NotKept(&'static str),
    /// The agent tried to keep it, or the copy is not usable.
    Failed(String),
    /// The record names a copy that is not in the session's own places.
    Outside,
    /// There is a copy, and the agent noted another content of the same moment: nobody knows which one is true.
    Contradicted,
}

impl Unknown {
    /// Two files name one copy.
    pub(super) fn two_files() -> Unknown {
        Unknown::Failed("two files share one copy".to_owned())
    }

    /// The reason, for people.
    pub fn why(&self) -> &str {
        match self {
            Unknown::NotKept(why) => why,
            Unknown::Failed(why) => why,
            Unknown::Outside => "the copy that is recorded is outside the session's own places",
            Unknown::Contradicted => "the copy is not what the agent saw before its edit",
        }
    }
}

impl FileVersion {
    pub(crate) fn rebuilt(bytes: impl Into<Arc<[u8]>>) -> FileVersion {
        FileVersion::File { content: FileContent::Rebuilt(FileCopy::bytes(bytes)), mode: None }
    }

    /// The version that a restore record names; its content is a blob in this folder.
    pub(crate) fn restored(version: &RestoredVersion, blobs: &Path) -> FileVersion {
        match version {
            RestoredVersion { link: Some(target), .. } => FileVersion::Link(target.clone()),
            RestoredVersion { blob: Some(id), mode, .. } => {
                FileVersion::File { content: FileContent::Copy(FileCopy::blob(blobs, id, None)), mode: *mode }
            }
            RestoredVersion { link: None, blob: None, .. } => FileVersion::Absent,
        }
    }

    /// The copy of its content, if there is one.
    pub(crate) fn copy(&self) -> Option<&FileCopy> {
        match self {
            FileVersion::File { content: FileContent::Copy(copy) | FileContent::Rebuilt(copy), .. } => Some(copy),
            _ => None,
        }
    }

    /// The content of a regular file; `None` if no copy was kept, or it is no file.
    pub fn bytes(&self) -> error::Result<Option<Vec<u8>>> {
        let Some(copy) = self.copy() else { return Ok(None) };
        let mut bytes = Vec::new();
        copy.copy_to(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The same, if it is not larger than this; else an error.
    pub fn bytes_up_to(&self, limit_bytes: usize) -> error::Result<Option<Vec<u8>>> {
        self.copy().map(|copy| copy.read(limit_bytes).map(|bytes| bytes.to_vec())).transpose()
    }

    /// Whether its content follows from edits.
    pub(crate) fn is_rebuilt(&self) -> bool {
        matches!(self, FileVersion::File { content: FileContent::Rebuilt(_), .. })
    }
}
