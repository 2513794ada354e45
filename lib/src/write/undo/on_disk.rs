//! A file as it is on disk now, hashed when somebody asks.

use std::cell::OnceCell;
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use crate::disk::worktree::{Found, Worktree};
use crate::model::error::{At, Result};
use crate::model::project_path::ProjectPath;
use crate::session::backups::hex;
use crate::view::files::{FileContent, FileVersion};

/// How much is read at once.
const CHUNK_BYTES: usize = 128 * 1024;

/// What is at a path now.
pub(super) struct OnDisk<'t> {
    tree: &'t dyn Worktree,
    path: &'t ProjectPath,
    pub(super) found: Found,
    /// What agents record.
    sha256: OnceCell<String>,
    /// What names our blobs.
    blake3: OnceCell<String>,
}

impl<'t> OnDisk<'t> {
    pub(super) fn look(tree: &'t dyn Worktree, path: &'t ProjectPath) -> Result<OnDisk<'t>> {
        let found = tree.look(path).at(&tree.name(path))?;
        Ok(OnDisk { tree, path, found, sha256: OnceCell::new(), blake3: OnceCell::new() })
    }

    fn sha256(&self) -> Result<&str> {
        if let Some(known) = self.sha256.get() {
            return Ok(known);
        }
        let mut hasher = Sha256::new();
        self.copy_to(&mut Fed(|bytes: &[u8]| hasher.update(bytes)))?;
        Ok(self.sha256.get_or_init(|| hex(&hasher.finalize())))
    }

    fn blake3(&self) -> Result<&str> {
        if let Some(known) = self.blake3.get() {
            return Ok(known);
        }
        let mut hasher = blake3::Hasher::new();
        self.copy_to(&mut Fed(|bytes: &[u8]| _ = hasher.update(bytes)))?;
        Ok(self.blake3.get_or_init(|| hasher.finalize().to_hex().to_string()))
    }

    /// Writes the content of a regular file.
    pub(super) fn copy_to(&self, out: &mut dyn Write) -> Result<()> {
        let place = self.tree.name(self.path);
        let mut file = self.tree.open(self.path).at(&place)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => out.write_all(&chunk[..count]).at(&place)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).at(&place),
            }
        }
    }

    /// Whether this is a version, as far as the version is known.
    pub(super) fn is(&self, version: &FileVersion) -> Result<bool> {
        Ok(match (&self.found, version) {
            (Found::Nothing, FileVersion::Absent) => true,
            (Found::Link(found), FileVersion::Link(target)) => found == target,
            (Found::File { mode, .. }, FileVersion::File { content, mode: wanted }) => {
                let is_mode = wanted.zip(*mode).is_none_or(|(wanted, mode)| wanted & 0o777 == mode & 0o777);
                is_mode && self.has(content)?
            }
            _ => false,
        })
    }

    fn has(&self, content: &FileContent) -> Result<bool> {
        let copy = match content {
            FileContent::Hash { sha256, .. } => return Ok(self.sha256()? == sha256),
            FileContent::Copy(copy) | FileContent::Rebuilt(copy) => copy,
        };
        if let Some(sha256) = copy.sha256() {
            return Ok(self.sha256()? == sha256);
        }
        if let Some(blob) = copy.blob_id() {
            return Ok(self.blake3()? == blob);
        }
        let mut hasher = blake3::Hasher::new();
        // A copy that cannot be read is nothing that is on disk.
        let is_read = copy.copy_to(&mut Fed(|bytes: &[u8]| _ = hasher.update(bytes))).is_ok();
        Ok(is_read && self.blake3().is_ok_and(|hash| hash == hasher.finalize().to_hex().as_str()))
    }
}

/// Feeds what is written to it to a hash.
struct Fed<F>(F);

impl<F: FnMut(&[u8])> Write for Fed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
