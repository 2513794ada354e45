//! Whether a file lies in its store, links followed: what leads out of it is read, and never written.
//!
//! The store itself may be a link, or lie behind one: people keep `~/.claude` on another disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::model::error::{At, Result};
use crate::session::read::source::Source;

/// The folder that a log must stay in.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    store: PathBuf,
}

impl Inside {
    /// The store of a session; of a file that lies in none, whoever named it has said where it is.
    pub(crate) fn of(source: &Source) -> Option<Inside> {
        source.store().map(|store| Inside { store })
    }

    /// Refuses a file whose folder is not in the store.
    pub(crate) fn check(&self, disk: &dyn Disk, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(path);
        if disk.real_place(folder).starts_with(disk.real_place(&self.store)) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "a link leads out of the store")).at(path)
    }
}
