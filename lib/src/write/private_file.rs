//! Small files of ours that are no sessions, such as the config file.

use std::path::Path;

use crate::disk::append::make_folders;
use crate::disk::replace::{Durable, replace};
use crate::disk::{Disk, Real};
use crate::model::error::Result;
use crate::model::host::Host;

/// Replaces a file as a whole, or creates it with the folders above it: readable by its owner only, and safe on disk on return.
///
/// If the path is a link, the file that it leads to is replaced.
pub fn replace_private_file(path: &Path, bytes: &[u8], host: &Host) -> Result<()> {
    let path = Real.resolve(path);
    make_folders(&Real, &path)?;
    replace(&Real, &path, &(host.new_id)(), bytes, Durable::Yes)
}
