//! Copies one file through the disk, with its permissions.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::disk::Disk;
use crate::disk::replace::write_all;
use crate::model::error::{At, Result};

/// Files are read in pieces of this size.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Copies a file to a place where nothing is, and makes its content survive a crash; its name does not yet.
pub(crate) fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let mut file = File::open(from).at(from)?;
    let copy = disk.create(to).at(to)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece).at(from)?;
        if read == 0 {
            break;
        }
        write_all(&*copy, &piece[..read], to)?;
    }
    disk.copy_mode(from, to).at(to)?;
    copy.sync().at(to)
}
