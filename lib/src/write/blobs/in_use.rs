//! Which blobs of a store somebody may still need, and the deletion of the others. Nothing is deleted by itself.
//!
//! Every file of the store counts, the trash, journals and unfinished restores included: whatever has the name of a blob in it keeps
//! that blob. If a file cannot be read, nothing is deleted.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hashbrown::HashSet;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::next_piece;
use crate::disk::replace::delete;
use crate::model::error::{At, Error, Result};
use crate::model::regular_file::{self, Links};
use crate::session::blob;
use crate::session::read::packed::Packing;
use crate::write::store::Store;
use crate::write::undo::pending::lock_store;

/// A recorder copies a file first and names the copy when the tool has run; no tool runs for longer without a new copy.
const NEW_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The digits of a name.
const NAME_BYTES: usize = 64;

/// What the blobs of a store take up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobUse {
    /// How many there are.
    pub count: u64,
    /// Their bytes on disk, compressed.
    pub bytes: u64,
    /// How many of them a session of the store needs, a removed one included.
    pub referenced: u64,
    /// The bytes of those.
    pub referenced_bytes: u64,
    /// How many nobody needs.
    pub unreferenced: u64,
    /// The bytes of those.
    pub unreferenced_bytes: u64,
}

/// A file among the blobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes on disk.
    pub bytes: u64,
    /// When it was written, or found again by a recorder.
    pub written: Timestamp,
    /// Its name; `None` for an unfinished copy that a crash left.
    pub name: Option<String>,
}

impl Store {
    /// What the store's blobs take up. Fails if a file of the store cannot be read.
    pub fn blob_use(&self) -> Result<BlobUse> {
        let (blobs, named) = (self.blobs()?, self.named_blobs()?);
        let mut total = BlobUse::default();
        for blob in blobs {
            let is_named = blob.name.is_some_and(|name| named.contains(name.as_str()));
            let (count, bytes) = match is_named {
                true => (&mut total.referenced, &mut total.referenced_bytes),
                false => (&mut total.unreferenced, &mut total.unreferenced_bytes),
            };
            (*count, *bytes) = (*count + 1, *bytes + blob.bytes);
            (total.count, total.bytes) = (total.count + 1, total.bytes + blob.bytes);
        }
        Ok(total)
    }

    /// The blobs that nobody needs and that are no longer new. Fails if a file of the store cannot be read, or while a recorder has
    /// one of its sessions open, which may be about to name any of them.
    pub fn unreferenced_blobs(&self) -> Result<Vec<BlobFile>> {
        for source in self.sources() {
            let path = source?.path;
            if self.is_recording(&path) {
                return Err(Error::Busy(path));
            }
        }
        // Listed first: what is copied meanwhile is not among them.
        let (mut blobs, named) = (self.blobs()?, self.named_blobs()?);
        blobs.retain(|blob| self.is_old(blob.written));
        blobs.retain(|blob| blob.name.as_ref().is_none_or(|name| !named.contains(name)));
        Ok(blobs)
    }

    /// Deletes blobs that [`Store::unreferenced_blobs`] listed. One that a recorder has found again since is kept. Returns whether
    /// each is gone.
    pub fn drop_blob(&self, blob: &BlobFile) -> Result<bool> {
        // An undo that is under way may be about to name it.
        let _lock = lock_store(&*self.disk, &self.root)?;
        let is_listed = blob.path.starts_with(blob::folder(&self.root));
        let written = fs::symlink_metadata(&blob.path).and_then(|now| now.modified()).at(&blob.path)?;
        let is_old = Timestamp::try_from(written).is_ok_and(|written| self.is_old(written));
        if !is_listed || !is_old {
            return Ok(false);
        }
        delete(&*self.disk, &blob.path).map(|()| true)
    }

    fn is_old(&self, written: Timestamp) -> bool {
        (self.host.now)().duration_since(written) > NEW_FOR
    }

    /// Every file among the blobs that is ours.
    fn blobs(&self) -> Result<Vec<BlobFile>> {
        let (folder, mut blobs) = (blob::folder(&self.root), Vec::new());
        for path in entries(&folder)? {
            let is_folder = fs::symlink_metadata(&path).at(&path)?.is_dir();
            let files = if is_folder { entries(&path)? } else { vec![path] };
            for path in files {
                let metadata = fs::symlink_metadata(&path).at(&path)?;
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let is_blob = blob::is_name(name) && blob::path_of(&folder, name)? == path;
                if !metadata.is_file() || !(is_blob || name.starts_with('.')) {
                    continue;
                }
                let written = metadata.modified().at(&path)?;
                blobs.push(BlobFile {
                    name: is_blob.then(|| name.to_owned()),
                    bytes: metadata.len(),
                    written: Timestamp::try_from(written).unwrap_or(Timestamp::MAX),
                    path,
                });
            }
        }
        Ok(blobs)
    }

    /// Everything in the store's other files that can be the name of a blob.
    fn named_blobs(&self) -> Result<HashSet<String>> {
        let (blobs, mut names, mut seen) = (blob::folder(&self.root), HashSet::new(), HashSet::new());
        let mut open = if self.disk.exists(&blobs) { vec![self.root.clone()] } else { Vec::new() };
        while let Some(path) = open.pop().filter(|path| *path != blobs) {
            // People keep parts of a store elsewhere, behind a link.
            let metadata = match fs::metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.at(&path)?,
            };
            if metadata.is_dir() {
                if seen.insert(fs::canonicalize(&path).at(&path)?) {
                    open.extend(entries(&path)?.into_iter().filter(|path| *path != blobs));
                }
            } else if metadata.is_file() && metadata.len() > 0 {
                read_names(&path, &mut names)?;
            }
        }
        Ok(names)
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.at(folder)?.map(|entry| Ok(entry.at(folder)?.path())).collect(),
    }
}

/// Adds the names in a file, which may be compressed.
fn read_names(path: &Path, names: &mut HashSet<String>) -> Result<()> {
    let (mut file, _) = regular_file::open(path, Links::Follow)?;
    let head = next_piece(&mut file).at(path)?;
    let packing = Packing::of(&head);
    let whole = io::Cursor::new(head).chain(file);
    let mut content: Box<dyn Read> = match packing {
        Some(Packing::Gzip) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        Some(Packing::Zstd) => Box::new(zstd::stream::Decoder::new(whole).at(path)?),
        None => Box::new(whole),
    };
    let mut run = String::new();
    loop {
        let piece = next_piece(&mut content).at(path)?;
        for byte in &piece {
            match byte {
                b'0'..=b'9' | b'a'..=b'f' => {
                    if run.len() <= NAME_BYTES {
                        run.push(char::from(*byte));
                    }
                }
                _ => note_name(&mut run, names),
            }
        }
        if piece.is_empty() {
            note_name(&mut run, names);
            return Ok(());
        }
    }
}

fn note_name(run: &mut String, names: &mut HashSet<String>) {
    if run.len() == NAME_BYTES && !names.contains(run.as_str()) {
        names.insert(run.clone());
    }
    run.clear();
}
