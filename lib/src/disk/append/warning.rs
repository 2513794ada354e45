//! What other programs, or a crash, did to a log while we record to it.

use std::fmt;
use std::io;

use crate::model::error::Error;

/// Something that happened to a log and that its user should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// The file ended inside a record; the torn record got its LF.
    TornTail,
    /// The last record had no LF; it got one.
    NoLineEnd,
    /// Another file took the log's name; records go there now.
    Replaced,
    /// The log was deleted; it was created again.
    Deleted,
    /// The log is shorter than before: records are gone.
    Shortened,
    /// Part of a record stayed in the file, because another program wrote behind it; it got its LF.
    TornPiece,
    /// The file system has no locks: two writers may tear each other's lines.
    NoLocks,
    /// The sidecar could not be written. The log has everything that it would repeat.
    NoSidecar,
    /// The sidecar is damaged, and left for its owner to repair.
    DamagedSidecar,
    /// The session was written to in the last minute: another program may still be writing.
    InUse,
    /// Nothing says that this session is being recorded: the data folder cannot be written.
    Unguarded,
    /// Some sessions could not be read: a newer one may be among them.
    Unread,
    /// The format cannot store part of an answer.
    NotStored,
    /// The format cannot store the states of files.
    NoFileStates,
    /// A file was not copied, because the store could not be written.
    NotCopied,
    /// Some files of a watched project are too large, too many or unreadable.
    PartlyWatched,
}

impl Warning {
    /// Why a sidecar was not written.
    pub(crate) fn of_sidecar(error: &Error) -> Warning {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => Warning::DamagedSidecar,
            _ => Warning::NoSidecar,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::InUse => "this session was written to in the last minute; another program may still be writing",
            Warning::Unguarded => {
                "scrollback's data folder cannot be written; close this recording before you remove the session"
            }
            Warning::Unread => "some sessions could not be read; a newer one may be among them",
            Warning::TornTail => "the file ended inside a record; a line end was added, nothing else changed",
            Warning::NoLineEnd => "the last record had no line end; one was added, nothing else changed",
            Warning::Replaced => "the session file was replaced by another file; new records go to that file",
            Warning::Deleted => "the session file was deleted; it was created again",
            Warning::Shortened => "the session file was truncated by another program; records are lost",
            Warning::TornPiece => "a record did not fit on the disk, and part of it stayed in the file",
            Warning::NoLocks => "this file system has no locks; do not let another program write to this session",
            Warning::NotStored => "the format cannot store part of an answer; it is not recorded",
            Warning::NoFileStates => "the format cannot store what tools change on disk; it is not recorded",
            Warning::NotCopied => {
                "the store cannot be written: a file was not copied before it was changed, and cannot be restored"
            }
            Warning::PartlyWatched => {
                "some files are too large, too many or unreadable; their changes cannot be taken back"
            }
            Warning::DamagedSidecar => {
                "the metadata file is not a JSON object and stays as it is; the session file itself is complete"
            }
            Warning::NoSidecar => "the metadata file could not be written; the session file itself is complete",
        })
    }
}
