//! Small files of ours that are no sessions, such as the config file.

use std::path::Path;

use crate::disk::append::make_folders;
use crate::disk::replace::{Durable, replace};
use crate::disk::{Disk, Real};
use crate::model::error::Result;
use crate::model::host::Host;
use crate::model::regular_file::Links;

/// Replaces a file as a whole, or creates it with the folders above it: readable by its owner only, and safe on disk on return.
///
/// If the path is a link that is followed, the file that it leads to is replaced; else the link itself.
pub fn replace_private_file(path: &Path, bytes: &[u8], links: Links, host: &Host) -> Result<()> {
    let path = match links {
        Links::Follow => Real.resolve(path),
        Links::Refuse => path.to_path_buf(),
    };
    make_folders(&Real, &path)?;
    replace(&Real, &path, &(host.new_id)(), bytes, Durable::Yes)
}
