//! Reads blobs: the true bytes of files, named by their BLAKE3 hash, compressed. `write/blobs.rs` writes them.

use std::io::Write;
use std::path::Path;

use crate::model::error::Result;

/// Writes the bytes of a blob. The name comes from a log: one that is no hash, or not that of the bytes, is an error.
pub(crate) fn copy_to(folder: &Path, name: &str, out: &mut dyn Write) -> Result<()> {
    use crate::model::error::At;
    out.write_all(&crate::write::blobs::get(folder, name)?).at(folder)
}
