//! What stops the library: the world, never a file's content.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dialect::writer::Losses;

/// An error that knows its path.
#[derive(Debug)]
pub enum Error {
    /// The system said no.
    Io {
        /// What was to be read.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A device, a socket or the like: reading it may never end.
    NotAFile(PathBuf),
    /// The file is not what it was a moment ago.
    Changed(PathBuf),
    /// A database without sessions of an agent that is known.
    NoSessions(PathBuf),
    /// One of a database's sessions must be named.
    SeveralSessions {
        /// The file.
        path: PathBuf,
        /// How many it holds.
        count: usize,
    },
    /// A database of more sessions than anybody has.
    TooManySessions {
        /// The file.
        path: PathBuf,
        /// How many are read.
        limit: usize,
    },
    /// Another program holds the file's lock, and does not let go.
    Busy(PathBuf),
    /// A record did not fit, and a piece of it stayed in the file as a line of its own.
    Torn(PathBuf),
    /// Records are in the file and may not survive a crash: the recorder keeps them until it is reopened.
    Unsaved {
        /// The file.
        path: PathBuf,
        /// How many records.
        count: usize,
        /// What the system said when they were to be made safe.
        source: Arc<io::Error>,
    },
    /// The dialect is read, not written.
    ReadOnly(&'static str),
    /// The format has no place for something.
    CannotHold {
        /// The dialect.
        dialect: &'static str,
        /// What it cannot hold, for people.
        what: String,
        /// Of a record: all that it says, each thing with its count.
        losses: Losses,
    },
    /// A session has nothing that a format could hold.
    Nothing(&'static str),
    /// One branch was asked for, and the session becomes what it is or was, with all of them.
    CopiedWhole,
    /// A name that cannot be a session's: it would lead out of the store, or a format wants another shape.
    BadName {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// No file can be made for a session here: its directory, or whom it is with, gives no name for one.
    Misplaced {
        /// What is wrong with which of them.
        why: String,
    },
    /// A session that was ended: nothing is added to it any more.
    Ended(String),
    /// A record that is larger than what is read back.
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// No session has this name; or, without one, the project has none.
    NoSession(Option<String>),
    /// No record of the session has this name, or several begin so.
    NoRecord {
        /// The name.
        record: String,
    },
    /// The conversation cannot go on from this record.
    NoPlace {
        /// The record.
        record: String,
        /// Why not.
        why: &'static str,
    },
    /// Two calls of one answer have the same id: no result could say which of them it answers.
    Ambiguous {
        /// The id.
        call: String,
    },
    /// The folder that a session would lie in is another project's.
    OtherProject {
        /// The file that would be written.
        path: PathBuf,
        /// Whose folder it is.
        project: PathBuf,
    },
    /// The session is with somebody else.
    WithAnother {
        /// Whom it is with.
        with: String,
    },
    /// Something has this name already.
    Exists(PathBuf),
    /// A database that cannot be read.
    Database {
        /// The file.
        path: PathBuf,
        /// What the database said.
        source: rusqlite::Error,
    },
}

/// A result with that error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The format has no place for something that is no record.
    pub(crate) fn cannot_hold(dialect: &'static str, what: String) -> Error {
        Error::CannotHold { dialect, what, losses: Losses::default() }
    }

    /// The format has no place for a record.
    pub(crate) fn not_held(dialect: &'static str, losses: Losses) -> Error {
        Error::CannotHold { dialect, what: losses.words(), losses }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::NotAFile(path) => write!(f, "{}: not a regular file", path.display()),
            Error::Changed(path) => write!(f, "{}: the file changed while it was read", path.display()),
            Error::NoSessions(path) => write!(f, "{}: a database, and no known agent's", path.display()),
            Error::SeveralSessions { path, count } => write!(f, "{}: it holds {count} sessions", path.display()),
            Error::TooManySessions { path, limit } => write!(f, "{}: it holds over {limit} sessions", path.display()),
            Error::Busy(path) => write!(f, "{}: another program is writing to it", path.display()),
            Error::Torn(path) => write!(f, "{}: a record was written in part and is not saved", path.display()),
            Error::Unsaved { path, count, source } => {
                let records = if *count == 1 { "record" } else { "records" };
                write!(f, "{}: {count} {records} may not survive a crash: {source}", path.display())
            }
            Error::ReadOnly(dialect) => write!(f, "{dialect} sessions are read, not written"),
            Error::CannotHold { dialect, what, .. } => write!(f, "{dialect} has no place for this: {what}"),
            Error::Nothing(dialect) => write!(f, "nothing of it can be written as {dialect}"),
            Error::CopiedWhole => write!(f, "the session is copied as it is, with all its branches"),
            Error::BadName { name, why } => {
                write!(f, "{} is no name for a session: {why}", crate::model::issue::quoted(name))
            }
            Error::Misplaced { why } => write!(f, "no session can be begun there: {why}"),
            Error::Ended(name) => {
                write!(f, "session {} was ended: it lies in the archive", crate::model::issue::quoted(name))
            }
            Error::TooLong { bytes } => write!(f, "a record of {bytes} bytes is longer than what is read back"),
            Error::NoSession(Some(name)) => write!(f, "no session {}", crate::model::issue::quoted(name)),
            Error::NoSession(None) => write!(f, "no session of this project"),
            Error::NoRecord { record } => write!(f, "no record, or several, {}", crate::model::issue::quoted(record)),
            Error::NoPlace { record, why } => {
                write!(f, "cannot go on from {}: {why}", crate::model::issue::quoted(record))
            }
            Error::Ambiguous { call } => {
                write!(
                    f,
                    "two calls of one answer have the id {}: give each its own",
                    crate::model::issue::quoted(call)
                )
            }
            Error::OtherProject { path, project } => {
                let folder = path.parent().unwrap_or(path);
                write!(f, "{}: it is the folder of another project, {}", folder.display(), project.display())
            }
            Error::WithAnother { with } => {
                write!(f, "the session is with {}, and its lines say so", crate::model::issue::quoted(with))
            }
            Error::Exists(path) => write!(f, "{}: it is there already", path.display()),
            // A program is no reason: the sentence goes before it.
            Error::Database { path, source: rusqlite::Error::SqlInputError { msg, .. } } => {
                write!(f, "{}: {msg}", path.display())
            }
            Error::Database { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Database { source, .. } => Some(source),
            Error::Unsaved { source, .. } => Some(&**source),
            Error::NotAFile(_)
            | Error::Busy(_)
            | Error::Torn(_)
            | Error::ReadOnly(_)
            | Error::CannotHold { .. }
            | Error::Nothing(_)
            | Error::CopiedWhole
            | Error::BadName { .. }
            | Error::Misplaced { .. }
            | Error::Ended(_)
            | Error::TooLong { .. }
            | Error::NoSession(_)
            | Error::NoRecord { .. }
            | Error::NoPlace { .. }
            | Error::Ambiguous { .. }
            | Error::OtherProject { .. }
            | Error::WithAnother { .. }
            | Error::Exists(_)
            | Error::Changed(_)
            | Error::NoSessions(_)
            | Error::SeveralSessions { .. }
            | Error::TooManySessions { .. } => None,
        }
    }
}

/// Gives an I/O error its path.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_path_buf(), source })
    }
}
