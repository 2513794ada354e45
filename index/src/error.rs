//! What can go wrong with an index. What is wrong in a session is an issue of that session.

use std::path::PathBuf;

/// An error of an index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A newer version of scrollback made it.
    #[error("{}: the index was made by a newer version of scrollback", .0.display())]
    Newer(PathBuf),
    /// The database cannot be used.
    #[error("{}: {source}", path.display())]
    Database {
        /// The index.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Its folder cannot be made, or it cannot be moved away.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A session cannot be read.
    #[error(transparent)]
    Read(#[from] scrollback::Error),
}

/// The result of asking an index.
pub type Result<T> = std::result::Result<T, Error>;
