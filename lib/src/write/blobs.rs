//! Writes blobs: the true bytes of files, named by their hash, shared by all sessions of a store. Compressed, and readable by their
//! owner only. Reading them is [`crate::session::blob`].

mod in_use;

use std::io::{self, Read, Write};
use std::path::Path;

use crate::disk::append::make_folders;
use crate::disk::replace::{Durable, beside, delete, replace, sync_parent};
use crate::disk::{Appended, Disk, OpenLog};
use crate::model::error::{At, Error, Result};
use crate::model::hash::{Hashing, sha256};
use crate::model::host::Host;
use crate::model::regular_file;
use crate::session::blob::{BLOB_LIMIT_BYTES, PIECE_BYTES, path_of, sealed};
pub use crate::session::blob::{copy_to, folder, get, is_name};

pub use in_use::{BlobFile, BlobUse};

/// Fast, and most of what a higher level would save.
const COMPRESSION_LEVEL: i32 = 3;

/// A blob in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its name.
    pub(crate) id: String,
    /// Of the content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// The length of the content.
    pub(crate) bytes: u64,
}

/// Where a copy failed: the tool that is about to change the file may run all the same.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The file could not be read.
    Reading(Error),
    /// The store could not be written.
    Writing(Error),
}

impl CopyError {
    /// What failed, wherever that was.
    pub(crate) fn into_error(self) -> Error {
        match self {
            CopyError::Reading(error) | CopyError::Writing(error) => error,
        }
    }
}

/// The blobs of a store, for writing.
pub(crate) struct Blobs<'s> {
    pub(crate) disk: &'s dyn Disk,
    pub(crate) folder: &'s Path,
    pub(crate) host: &'s Host,
}

impl Blobs<'_> {
    /// Writes a blob, unless it is there, and returns its name: its BLAKE3 hash in hexadecimal digits. It is safe on disk on
    /// return.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<String> {
        let hash = blake3::hash(bytes);
        let name = hash.to_hex().to_string();
        let path = path_of(self.folder, &name)?;
        if !self.is_there(&path, &name) {
            make_folders(self.disk, &path)?;
            let packed = zstd::bulk::compress(bytes, COMPRESSION_LEVEL).at(&path)?;
            replace(self.disk, &path, &(self.host.new_id)(), &sealed(packed, &hash), Durable::Yes)?;
        }
        Ok(name)
    }

    /// Writes what `reader` reads of the file `from` as a blob, in one pass and with little memory. It is safe on disk on return.
    pub(crate) fn put_reader(&self, from: &Path, reader: &mut dyn Read) -> std::result::Result<Stored, CopyError> {
        let first = next_piece(reader).at(from).map_err(CopyError::Reading)?;
        if first.len() < PIECE_BYTES {
            let id = self.put(&first).map_err(CopyError::Writing)?;
            return Ok(Stored { id, sha256: sha256(&first), bytes: first.len() as u64 });
        }
        // Its name is known at the end.
        let beside = beside(&self.folder.join("new"), &(self.host.new_id)());
        let stored = self.put_large(from, reader, first, &beside);
        if stored.is_err() {
            // What is left is our own file, with a name that nobody reads.
            drop(delete(self.disk, &beside));
        }
        stored
    }

    fn put_large(
        &self,
        from: &Path,
        reader: &mut dyn Read,
        mut piece: Vec<u8>,
        beside: &Path,
    ) -> std::result::Result<Stored, CopyError> {
        make_folders(self.disk, beside).map_err(CopyError::Writing)?;
        let file = NewFile(self.disk.create(beside).at(beside).map_err(CopyError::Writing)?);
        let writing = |error: io::Error| CopyError::Writing(Error::Io { path: beside.to_path_buf(), source: error });
        let mut packer = zstd::stream::Encoder::new(file, COMPRESSION_LEVEL).map_err(writing)?;
        let (mut hasher, mut hashing, mut bytes) = (blake3::Hasher::new(), Hashing::new(&mut packer), 0);
        while !piece.is_empty() {
            bytes += piece.len() as u64;
            // No more could be read back.
            regular_file::check_length(from, bytes, BLOB_LIMIT_BYTES).map_err(CopyError::Reading)?;
            hasher.update(&piece);
            hashing.write_all(&piece).map_err(writing)?;
            piece = next_piece(reader).at(from).map_err(CopyError::Reading)?;
        }
        let (sha256, bytes) = hashing.finish();
        let file = packer.finish().map_err(writing)?;
        let id = hasher.finalize().to_hex().to_string();
        self.give_name(&file, beside, &id).map_err(CopyError::Writing)?;
        Ok(Stored { id, sha256, bytes })
    }

    fn give_name(&self, file: &NewFile, beside: &Path, id: &str) -> Result<()> {
        let path = path_of(self.folder, id)?;
        if self.is_there(&path, id) {
            return delete(self.disk, beside);
        }
        file.0.sync().at(beside)?;
        make_folders(self.disk, &path)?;
        self.disk.rename(beside, &path).at(&path)?;
        sync_parent(self.disk, &path)
    }

    /// Whether a blob is there, and whole: a damaged one is written again. One that no session names yet is made new again: old ones
    /// may be dropped.
    fn is_there(&self, path: &Path, name: &str) -> bool {
        let is_there = self.disk.exists(path) && self.is_whole(path, name);
        if is_there {
            // Of a store that cannot be written, nothing is dropped.
            drop(self.disk.touch(path, (self.host.now)().into()));
        }
        is_there
    }

    /// Whether a blob has the content that its name says. One that cannot be looked at counts: whoever reads it checks it again.
    fn is_whole(&self, path: &Path, name: &str) -> bool {
        let Ok(file) = self.disk.open(path) else { return true };
        let Ok(blob) = zstd::stream::Decoder::new(Reading { file, at: 0 }) else { return false };
        let mut hasher = blake3::Hasher::new();
        let is_read = io::copy(&mut blob.take(BLOB_LIMIT_BYTES), &mut hasher).is_ok();
        is_read && hasher.finalize().to_hex().as_str() == name
    }
}

/// A file of the store, from its start.
struct Reading {
    file: Box<dyn OpenLog>,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The next bytes: fewer than a whole piece only at the end.
fn next_piece(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    reader.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
    Ok(piece)
}

/// A new file that no other program knows.
struct NewFile(Box<dyn OpenLog>);

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.append(bytes)? {
            Appended { taken: 0, .. } if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
            Appended { taken, .. } => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
