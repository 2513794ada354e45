//! Copies one file through the disk.

use std::io::{self, Read};
use std::path::Path;

use crate::disk::Disk;
use crate::disk::replace::write_all;
use crate::model::error::{At, Result};
use crate::model::regular_file::{self, Links};

/// Files are read in pieces of this size.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Copies a file to a free place, with its permissions. The content survives a crash; its name does not yet.
pub(crate) fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    copy_bytes(&mut regular_file::open(from, Links::Refuse)?.0, disk, (from, to))?;
    disk.copy_mode(from, to).at(to)
}

/// The same for anything that can be read, without permissions.
pub(crate) fn copy_bytes(reader: &mut dyn Read, disk: &dyn Disk, (from, to): (&Path, &Path)) -> Result<()> {
    let copy = disk.create(to).at(to)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return copy.sync().at(to),
            Ok(read) => write_all(&*copy, &piece[..read], to)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).at(from),
        }
    }
}
