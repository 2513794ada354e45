//! The other door to disk: a small file is replaced as a whole. Written beside, then renamed.

use std::io;
use std::path::Path;

use crate::disk::{Appended, Disk};
use crate::error::{At, Result};

/// Whether a replaced file must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It is derived: a crash may leave the old one, or rubbish.
    IfPossible,
    /// It is not written down anywhere else.
    Surely,
}

/// Replaces a file's content. Readers see the old or the new one, never a part.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, new_id: &str, bytes: &[u8], keep: Keep) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{new_id}"));
    let written = (|| {
        let file = disk.create(&beside).at(&beside)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            match file.append(rest) {
                Ok(Appended { taken: 0, .. }) => {
                    return Err(io::Error::from(io::ErrorKind::StorageFull)).at(&beside);
                }
                Ok(Appended { taken, .. }) => rest = &rest[taken..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).at(&beside),
            }
        }
        if keep == Keep::Surely {
            file.sync().at(&beside)?;
        }
        disk.rename(&beside, path).at(path)
    })();
    if let Err(error) = written {
        // What stays of it is our own, and has a name that nobody reads.
        drop(disk.unlink(&beside));
        return Err(error);
    }
    match path.parent().filter(|_| keep == Keep::Surely) {
        Some(folder) => disk.sync_folder(folder).at(folder),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
