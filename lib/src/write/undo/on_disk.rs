//! A file as it is on disk now, hashed when somebody asks.

use std::cell::OnceCell;
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use crate::disk::worktree::{Found, Worktree};
use crate::model::error::{At, Result};
use crate::model::project_path::ProjectPath;
use crate::session::backups::{FileCopy, hex};
use crate::view::files::{FileContent, FileVersion};

/// How much is read at once.
const CHUNK_BYTES: usize = 128 * 1024;

/// What is at a path now.
pub(super) struct OnDisk<'t> {
    tree: &'t dyn Worktree,
    path: &'t ProjectPath,
    pub(super) found: Found,
    hashes: OnceCell<Hashes>,
}

/// Both hashes of a content: SHA-256 is what agents record, BLAKE3 names our blobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hashes {
    pub(super) sha256: String,
    pub(super) blake3: String,
}

impl<'t> OnDisk<'t> {
    pub(super) fn look(tree: &'t dyn Worktree, path: &'t ProjectPath) -> Result<OnDisk<'t>> {
        let found = tree.look(path).at(&tree.name(path))?;
        Ok(OnDisk { tree, path, found, hashes: OnceCell::new() })
    }

    /// The hashes of a regular file.
    pub(super) fn hashes(&self) -> Result<&Hashes> {
        if let Some(hashes) = self.hashes.get() {
            return Ok(hashes);
        }
        let mut hasher = Hasher::default();
        self.copy_to(&mut hasher)?;
        Ok(self.hashes.get_or_init(|| hasher.finish()))
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
            FileContent::Hash { sha256, .. } => return Ok(self.hashes()?.sha256 == *sha256),
            FileContent::Copy(copy) | FileContent::Rebuilt(copy) => copy,
        };
        if let Some(sha256) = copy.sha256() {
            return Ok(self.hashes()?.sha256 == sha256);
        }
        if let Some(blob) = copy.blob_id() {
            return Ok(self.hashes()?.blake3 == blob);
        }
        // A copy that cannot be read is nothing that is on disk.
        Ok(hashes_of(copy).is_ok_and(|copy| self.hashes().is_ok_and(|hashes| copy == *hashes)))
    }
}

/// The hashes of a copy. Fails if the copy is missing or damaged.
pub(super) fn hashes_of(copy: &FileCopy) -> Result<Hashes> {
    let mut hasher = Hasher::default();
    copy.copy_to(&mut hasher)?;
    Ok(hasher.finish())
}

#[derive(Default)]
struct Hasher {
    sha256: Sha256,
    blake3: blake3::Hasher,
}

impl Hasher {
    fn finish(self) -> Hashes {
        Hashes { sha256: hex(&self.sha256.finalize()), blake3: self.blake3.finalize().to_hex().to_string() }
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sha256.update(bytes);
        self.blake3.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
