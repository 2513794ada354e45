//! The other door to disk: a small file is replaced as a whole. Written beside, then renamed.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Appended, Disk, OpenLog};
use crate::model::error::{At, Result};

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
    let beside = beside(path, new_id);
    let written = (|| {
        let file = disk.create(&beside).at(&beside)?;
        write_all(&*file, bytes, &beside)?;
        if keep == Keep::Surely {
            file.sync().at(&beside)?;
        }
        disk.rename(&beside, path).at(path)
    })();
    if let Err(error) = written {
        // What stays of it is our own, and has a name that nobody reads.
        drop(take_away(disk, &beside));
        return Err(error);
    }
    match path.parent().filter(|_| keep == Keep::Surely) {
        Some(folder) => disk.sync_folder(folder).at(folder),
        None => Ok(()),
    }
}

/// So much of a name tells whose it is, and leaves room for an id in any file system, four bytes a letter.
const BESIDE_CHARS: usize = 48;

/// The name of a file that is written to take the place of another, or a free one. Nobody reads it.
pub(crate) fn beside(path: &Path, new_id: &str) -> PathBuf {
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().chars().take(BESIDE_CHARS).collect();
    path.with_file_name(format!(".{name}.{new_id}"))
}

/// Takes a file's name away, the one place that does: of what was written beside another, and of a file that was moved by copying it.
pub(crate) fn take_away(disk: &dyn Disk, path: &Path) -> Result<()> {
    disk.unlink(path).at(path)
}

/// Appends all bytes, in as many calls as it takes: only for a file that nobody else knows.
pub(crate) fn write_all(file: &dyn OpenLog, mut bytes: &[u8], path: &Path) -> Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(Appended { taken: 0, .. }) => return Err(io::Error::from(io::ErrorKind::StorageFull)).at(path),
            Ok(Appended { taken, .. }) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).at(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
