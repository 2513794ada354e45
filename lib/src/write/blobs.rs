//! Blobs: the true bytes of files, named by their hash, shared by all sessions of a store. Compressed, and readable by their owner
//! only.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::disk::append::make_folders;
use crate::disk::replace::{Durable, replace};
use crate::model::error::{At, Error, Result};
use crate::model::regular_file::{self, Links};

/// A blob that is larger, packed or unpacked, is not read.
const BLOB_LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Fast, and most of what a higher level would save.
const COMPRESSION_LEVEL: i32 = 3;

/// Writes a blob, unless it is there, and returns its name: its BLAKE3 hash in hexadecimal digits. It is safe on disk on return.
pub(crate) fn put(disk: &dyn Disk, folder: &Path, bytes: &[u8], new_id: &str) -> Result<String> {
    let name = blake3::hash(bytes).to_hex().to_string();
    let path = path_of(folder, &name);
    if disk.exists(&path) {
        return Ok(name);
    }
    make_folders(disk, &path)?;
    let packed = zstd::bulk::compress(bytes, COMPRESSION_LEVEL).at(&path)?;
    replace(disk, &path, new_id, &packed, Durable::Yes)?;
    Ok(name)
}

/// The bytes of a blob. The name comes from a log: one that is no hash, or not that of the bytes, is an error.
pub fn get(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let is_hash = name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash {
        return Err(Error::InvalidName { name: name.to_owned(), why: "not the name of a blob".to_owned() });
    }
    let path = path_of(folder, name);
    let packed = regular_file::read(&path, BLOB_LIMIT_BYTES, Links::Refuse)?;
    let mut bytes = Vec::new();
    let unpacked = zstd::stream::Decoder::new(packed.as_slice())
        .and_then(|decoder| decoder.take(BLOB_LIMIT_BYTES + 1).read_to_end(&mut bytes));
    unpacked.at(&path)?;
    if blake3::hash(&bytes).to_hex().as_str() != name {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidData)).at(&path);
    }
    Ok(bytes)
}

/// Two digits make a folder, so that none has too many files.
fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(&name[..2]).join(name)
}
