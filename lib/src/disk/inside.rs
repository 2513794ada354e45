//! Whether a file is inside its store with links resolved: a file outside is read, never written.
//!
//! The store itself may be a link: people keep `~/.claude` on another disk.

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
    /// The store of a session; none for a file outside any store, which the user named by its path.
    pub(crate) fn store_of(source: &Source) -> Option<Inside> {
        source.store().map(|store| Inside { store })
    }

    /// Fails if the folder of a file is not in the store.
    pub(crate) fn check(&self, disk: &dyn Disk, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(path);
        if disk.resolve(folder).starts_with(disk.resolve(&self.store)) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "a link leads out of the store")).at(path)
    }
}
