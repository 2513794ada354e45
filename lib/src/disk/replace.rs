//! Replaces a small file as a whole: written beside it, then renamed.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Appended, Disk, OpenLog};
use crate::model::error::{At, Result};

/// Whether the new content must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// It is derived data: a crash may leave the old file or a broken one.
    No,
    /// It exists nowhere else.
    Yes,
}

/// Who may read the new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its owner: it is a file of ours.
    Owner,
    /// Whoever could read the old one: it is another program's file.
    AsItWas,
}

/// Replaces the content of a file of ours. Readers see the old or the new one, never a part.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, new_id: &str, bytes: &[u8], durable: Durable) -> Result<()> {
    replace_for(Access::Owner, disk, path, new_id, bytes, durable)
}

/// Replaces a file's content.
pub(crate) fn replace_for(
    access: Access,
    disk: &dyn Disk,
    path: &Path,
    new_id: &str,
    bytes: &[u8],
    durable: Durable,
) -> Result<()> {
    let beside = beside(path, new_id);
    let written = (|| {
        let file = disk.create(&beside).at(&beside)?;
        write_all(&*file, bytes, &beside)?;
        if durable == Durable::Yes {
            file.sync().at(&beside)?;
        }
        if access == Access::AsItWas && disk.exists(path) {
            disk.copy_mode(path, &beside).at(&beside)?;
        }
        disk.rename(&beside, path).at(path)
    })();
    if let Err(error) = written {
        // What is left is our own file, with a name that nobody reads.
        drop(delete(disk, &beside));
        return Err(error);
    }
    if durable == Durable::Yes { sync_parent(disk, path) } else { Ok(()) }
}

/// Makes the name of a file survive a crash.
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), |folder| disk.sync_folder(folder).at(folder))
}

/// Enough of a name to recognise it; leaves room for an id within 255 bytes, at four bytes a character.
const BESIDE_CHARS: usize = 48;

/// The temporary name for the new content of a file. Nobody reads it.
pub(crate) fn beside(path: &Path, new_id: &str) -> PathBuf {
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().chars().take(BESIDE_CHARS).collect();
    path.with_file_name(format!(".{name}.{new_id}"))
}

/// Deletes a file, the only function that does: a temporary file of our own, a file that was copied and compared, or a blob that
/// nobody names.
pub(crate) fn delete(disk: &dyn Disk, path: &Path) -> Result<()> {
    disk.unlink(path).at(path)
}

/// Appends all bytes, in as many calls as it takes: only for a file that no other program knows.
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
