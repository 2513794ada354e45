//! The contents of files that a session kept: texts in its records, copies in its file history, blobs of its store.
//!
//! Names of copies come from the log: only regular files in the session's own places are read, and what has a recorded hash is
//! checked against it.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::error::{At, Error, Result, in_words};
use crate::model::hash::Hashing;
use crate::model::regular_file::{self, Links};
use crate::session::Session;
use crate::session::blob;

/// A copy that is larger is not read.
pub(crate) const COPY_LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Where agents of seed 000's format keep copies, beside the session or in its project.
const SAGE_BACKUPS: &str = ".sage/backups";

/// The content of a file at some moment, kept somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCopy {
    /// Shared: a plan passes it on for each of its files.
    kept: Arc<Kept>,
    /// The SHA-256 of the content, in hexadecimal digits, if it was recorded.
    sha256: Option<Arc<str>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Bytes(Arc<[u8]>),
    File(PathBuf),
    Blob { folder: PathBuf, id: String },
}

impl FileCopy {
    /// A content in memory.
    pub(crate) fn bytes(bytes: impl Into<Arc<[u8]>>) -> FileCopy {
        FileCopy::new(Kept::Bytes(bytes.into()), None)
    }

    /// A text of a record, which has this hash.
    pub(crate) fn text(text: &str, sha256: Option<&str>) -> FileCopy {
        FileCopy::new(Kept::Bytes(text.as_bytes().into()), sha256)
    }

    /// A blob in a folder of blobs.
    pub(crate) fn blob(folder: &Path, id: &str, sha256: Option<&str>) -> FileCopy {
        FileCopy::new(Kept::Blob { folder: folder.to_path_buf(), id: id.to_owned() }, sha256)
    }

    fn new(kept: Kept, sha256: Option<&str>) -> FileCopy {
        FileCopy { kept: Arc::new(kept), sha256: sha256.map(Arc::from) }
    }

    /// The name of the blob, if it is one.
    pub(crate) fn blob_id(&self) -> Option<&str> {
        if let Kept::Blob { id, .. } = &*self.kept { Some(id) } else { None }
    }

    /// The name of the blob, if it is one in this folder.
    pub(crate) fn blob_in(&self, wanted: &Path) -> Option<&str> {
        if let Kept::Blob { folder, id } = &*self.kept { Some(id.as_str()).filter(|_| folder == wanted) } else { None }
    }

    /// The content's SHA-256, if it was recorded.
    pub(crate) fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// The name of the file that it is in, if it is one of the file history.
    pub(crate) fn file_name(&self) -> Option<&str> {
        if let Kept::File(path) = &*self.kept { path.file_name()?.to_str() } else { None }
    }

    /// The content, if nothing but the records tells of it: they may be masked.
    pub(crate) fn unproven_bytes(&self) -> Option<&[u8]> {
        match &*self.kept {
            Kept::Bytes(bytes) if self.sha256.is_none() => Some(bytes),
            Kept::Bytes(_) | Kept::File(_) | Kept::Blob { .. } => None,
        }
    }

    /// Opens the content. Whether it is the recorded one is not checked.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + '_>> {
        Ok(match &*self.kept {
            Kept::Bytes(bytes) => Box::new(&bytes[..]),
            Kept::File(path) => {
                let (file, metadata) = regular_file::open(path, Links::Refuse)?;
                regular_file::check_length(path, metadata.len(), COPY_LIMIT_BYTES)?;
                Box::new(file.take(metadata.len()))
            }
            Kept::Blob { folder, id } => {
                Box::new(blob::open(&blob::path_of(folder, id)?)?.take(blob::BLOB_LIMIT_BYTES))
            }
        })
    }

    /// Writes the content. Fails if it is not the recorded one; what was written until then must not be used.
    pub(crate) fn copy_to(&self, out: &mut dyn Write) -> Result<()> {
        match &*self.kept {
            Kept::Bytes(_) => self.checked(out, Path::new("")),
            Kept::File(path) => self.checked(out, path),
            Kept::Blob { folder, id } => blob::copy_to(folder, id, Path::new(id), out).map(drop),
        }
    }

    /// Fails if the content is missing or not the recorded one.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.kept {
            Kept::Blob { folder, id } => blob::check(folder, id),
            Kept::Bytes(_) | Kept::File(_) => self.copy_to(&mut io::sink()),
        }
    }

    fn checked(&self, out: &mut dyn Write, path: &Path) -> Result<()> {
        let mut from = BufReader::with_capacity(blob::PIECE_BYTES, self.open()?);
        let Some(recorded) = &self.sha256 else { return io::copy(&mut from, out).at(path).map(drop) };
        let mut hashing = Hashing::new(out);
        io::copy(&mut from, &mut hashing).at(path)?;
        if hashing.finish().0 == **recorded {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "not the content that was recorded")).at(path)
    }

    /// The content, if it is not larger than `limit_bytes`.
    pub(crate) fn read(&self, limit_bytes: usize) -> Result<Arc<[u8]>> {
        if let Kept::Bytes(bytes) = &*self.kept
            && bytes.len() <= limit_bytes
        {
            return Ok(bytes.clone());
        }
        let mut out = Limited { bytes: Vec::new(), limit_bytes };
        self.copy_to(&mut out)?;
        Ok(out.bytes.into())
    }
}

/// Refuses more bytes than its limit.
struct Limited {
    bytes: Vec<u8>,
    limit_bytes: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit_bytes {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a kept content cannot be used, for people.
pub(crate) fn why_unusable(error: &Error) -> String {
    match error {
        Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("its backup is missing: {}", path.display())
        }
        Error::Io { path, source } => format!("its backup cannot be used: {}: {}", path.display(), in_words(source)),
        error => format!("its backup cannot be used: {error}"),
    }
}

/// The file that a copy is in: the last name of the recorded path. Windows' paths can be read elsewhere, too.
pub(crate) fn copy_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Whether a recorded path can be that of a copy: a name alone, or a file in a folder for backups.
fn is_of_backups(name: &str) -> bool {
    folders_of(name).next().is_none_or(|folder| folder == "backups")
}

/// The folders in a recorded path, the innermost first.
fn folders_of(name: &str) -> impl Iterator<Item = &str> {
    name.rsplit(['/', '\\']).skip(1)
}

/// The places where a session's copies may be.
pub(crate) struct Backups {
    folders: Vec<PathBuf>,
    /// The agent records the names of copies alone, without a folder.
    has_plain_names: bool,
    /// Of the session's own store.
    blobs: Option<PathBuf>,
    /// Of our own store, which has the journal of another agent's session.
    own_blobs: Option<PathBuf>,
}

/// Whether no link leads from a folder out of another one. What does not exist leads nowhere.
fn stays_within(folder: &Path, within: &Path) -> bool {
    match (folder.canonicalize(), within.canonicalize()) {
        (Ok(folder), Ok(within)) => folder.starts_with(within),
        _ => true,
    }
}

impl Backups {
    /// The places of a session whose project is at `root`; `data` is our own folder.
    pub(crate) fn of(session: &Session, root: &Path, data: Option<&Path>) -> Backups {
        let source = &session.source;
        let mut folders: Vec<PathBuf> = Vec::new();
        let mut add =
            |folder: PathBuf, within: &Path| folders.extend(Some(folder).filter(|it| stays_within(it, within)));
        if let (Some(folder), Some(store)) = (source.file_history(), source.store()) {
            add(folder, &store);
        }
        let is_native = source.dialect.name() == "native";
        if is_native {
            source.path.parent().into_iter().for_each(|folder| add(folder.join("backups"), folder));
            add(root.join(SAGE_BACKUPS), root);
            let cwd = session.cwd().map(Path::new).filter(|cwd| cwd.starts_with(root) && *cwd != root);
            cwd.into_iter().for_each(|cwd| add(cwd.join(SAGE_BACKUPS), root));
        }
        let of_store = source.store().filter(|_| is_native);
        let own_blobs = data.map(blob::folder);
        let blobs = of_store.map(|store| blob::folder(&store)).or_else(|| own_blobs.clone());
        Backups { folders, has_plain_names: !is_native, blobs, own_blobs }
    }

    /// The folder of the blobs that the session's own records name.
    pub(crate) fn blobs(&self) -> Option<&Path> {
        self.blobs.as_deref()
    }

    /// The folder of the blobs that our journal names.
    pub(crate) fn own_blobs(&self) -> Option<&Path> {
        self.own_blobs.as_deref()
    }

    /// A copy in the file history. Folders in its name are refused where the agent writes none; elsewhere they are not believed,
    /// because a home may have moved: one that is not there and was never in a folder for backups is refused, and so is `..`.
    pub(crate) fn named(&self, name: &str, sha256: Option<&str>) -> Result<FileCopy> {
        let file = copy_name(name);
        let leads_away =
            if self.has_plain_names { file != name } else { folders_of(name).any(|folder| folder == "..") };
        if leads_away || matches!(file, "" | "." | "..") || file.contains('\0') {
            return Err(Error::InvalidCopy(name.to_owned()));
        }
        let places = || self.folders.iter().map(|folder| folder.join(file));
        if let Some(path) = places().find(|path| regular_file::is_there(path)) {
            return Ok(FileCopy::new(Kept::File(path), sha256));
        }
        if !is_of_backups(name) {
            return Err(Error::InvalidCopy(name.to_owned()));
        }
        let path = places().next().unwrap_or_else(|| PathBuf::from(name));
        match sha256 {
            // A file that is as it was needs no copy: only whoever reads it misses it.
            Some(_) => Ok(FileCopy::new(Kept::File(path), sha256)),
            None => Err(Error::Io { path, source: io::ErrorKind::NotFound.into() }),
        }
    }
}
