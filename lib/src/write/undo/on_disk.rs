//! A file as it is on disk now, hashed when somebody asks.

use std::cell::{OnceCell, RefCell};
use std::io::{self, Read, Write};
use std::rc::Rc;

use crate::disk::worktree::{Found, ProjectFolder, Worktree, look_in};
use crate::model::error::{At, Error, Result};
use crate::model::hash::Hashing;
use crate::model::project_path::ProjectPath;
use crate::session::blob::PIECE_BYTES;
use crate::view::files::{FileContent, FileVersion};

/// What is at a path now.
pub(super) struct OnDisk<'t> {
    tree: &'t dyn Worktree,
    path: &'t ProjectPath,
    folder: Rc<Opened<'t>>,
    pub(super) found: Found,
    /// What agents record.
    sha256: OnceCell<String>,
    /// What names our blobs.
    blake3: OnceCell<String>,
}

thread_local! {
    /// What files are read into, one for each thread: a plan reads many, and most of them are small.
    static PIECE: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE_BYTES]);
}

type Opened<'t> = io::Result<Box<dyn ProjectFolder + 't>>;

/// The folder that was opened last: most files of a plan are in the one of the file before.
#[derive(Default)]
pub(super) struct LastFolder<'t>(Option<(&'t str, Rc<Opened<'t>>)>);

impl<'t> LastFolder<'t> {
    fn of(&mut self, tree: &'t dyn Worktree, path: &'t ProjectPath) -> Rc<Opened<'t>> {
        let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
        let known = self.0.take().filter(|(last, _)| *last == folder).map(|(_, opened)| opened);
        let opened = known.unwrap_or_else(|| Rc::new(tree.folder_of(path)));
        self.0 = Some((folder, opened.clone()));
        opened
    }
}

impl<'t> OnDisk<'t> {
    pub(super) fn look(tree: &'t dyn Worktree, path: &'t ProjectPath) -> Result<OnDisk<'t>> {
        OnDisk::look_from(&mut LastFolder::default(), tree, path)
    }

    pub(super) fn look_from(
        last: &mut LastFolder<'t>,
        tree: &'t dyn Worktree,
        path: &'t ProjectPath,
    ) -> Result<OnDisk<'t>> {
        let folder = last.of(tree, path);
        let found = look_in(&folder, path).map_err(|source| Error::Io { path: tree.name(path), source })?;
        Ok(OnDisk { tree, path, folder, found, sha256: OnceCell::new(), blake3: OnceCell::new() })
    }

    /// Its kind and permissions; of its content nothing is known.
    pub(super) fn version(&self) -> FileVersion {
        match &self.found {
            Found::File { mode, .. } => {
                FileVersion::File { content: FileContent::Hash { sha256: String::new(), bytes: None }, mode: *mode }
            }
            Found::Link(target) => FileVersion::Link(target.clone()),
            Found::Nothing | Found::Folder | Found::BelowFile | Found::Other(_) => FileVersion::Absent,
        }
    }

    fn sha256(&self) -> Result<&str> {
        if let Some(known) = self.sha256.get() {
            return Ok(known);
        }
        let mut hashing = Hashing::new(io::sink());
        self.copy_to(&mut hashing)?;
        Ok(self.sha256.get_or_init(|| hashing.finish().0))
    }

    fn blake3(&self) -> Result<&str> {
        if let Some(known) = self.blake3.get() {
            return Ok(known);
        }
        let mut hasher = blake3::Hasher::new();
        self.copy_to(&mut hasher)?;
        Ok(self.blake3.get_or_init(|| hasher.finalize().to_hex().to_string()))
    }

    /// Fails if a regular file cannot be read. What was hashed was read.
    pub(super) fn check_readable(&self) -> Result<()> {
        match (&self.found, self.sha256.get().or(self.blake3.get())) {
            (Found::File { .. }, None) => self.open().at(&self.tree.name(self.path)).map(drop),
            _ => Ok(()),
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read>> {
        match &*self.folder {
            Ok(folder) => folder.open(self.path.parts().1),
            Err(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Writes the content of a regular file.
    pub(super) fn copy_to(&self, out: &mut dyn Write) -> Result<()> {
        // The name is for errors only, and most files have none.
        let failed = |source: io::Error| Error::Io { path: self.tree.name(self.path), source };
        let mut file = self.open().map_err(failed)?;
        // What is appended meanwhile is not read: applying finds another length then.
        let mut left = if let Found::File { stamp, .. } = &self.found { stamp.length } else { 0 };
        let copied = PIECE.with_borrow_mut(|piece| {
            while left > 0 {
                let room = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                let read = match file.read(&mut piece[..room]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read?,
                };
                if read == 0 {
                    break;
                }
                out.write_all(&piece[..read])?;
                left -= read as u64;
            }
            Ok(())
        });
        copied.map_err(failed)
    }

    /// Whether this is a version, as far as the version is known.
    pub(super) fn is(&self, version: &FileVersion) -> Result<bool> {
        Ok(match (&self.found, version) {
            // What is no file has no content that could be lost.
            (Found::Nothing | Found::Folder | Found::BelowFile, FileVersion::Absent) => true,
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
        let is_read = copy.copy_to(&mut hasher).is_ok();
        Ok(is_read && self.blake3().is_ok_and(|hash| hash == hasher.finalize().to_hex().as_str()))
    }
}
