//! What stops the library: the world, never a file's content.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
            Error::NotAFile(_)
            | Error::Busy(_)
            | Error::Torn(_)
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
