//! The open files of a session and their bytes. A compressed file is read as its content.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::model::error::{At, Error, Result};
use crate::model::place::Place;
use crate::model::regular_file::{self, Links};
use crate::session::read::format::DATABASE_MAGIC;
use crate::session::read::packed::{Packing, is_called_packed};
use crate::session::read::rows::Table;

/// The open files of a session. A place's `file` is the position here.
pub(crate) struct Files(pub(crate) Vec<OpenFile>);

pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Why a compressed file ends early.
    pub(crate) torn: Option<String>,
    /// Whether it begins like a SQLite database.
    pub(crate) is_database: bool,
    /// What is in memory of it, each piece with where it begins: a call costs more than to copy it.
    pub(crate) loaded: Vec<(u64, Arc<Vec<u8>>)>,
}

pub(crate) enum Contents {
    Disk(Arc<File>),
    Memory(Vec<u8>),
    Rows(Table),
}

impl Files {
    pub(crate) fn memory(bytes: Vec<u8>) -> Files {
        let contents = Contents::Memory(bytes);
        let (path, loaded) = (PathBuf::from("-"), Vec::new());
        Files(vec![OpenFile { path, contents, torn: None, is_database: false, loaded }])
    }

    pub(crate) fn size_bytes(&self) -> Result<u64> {
        self.0.iter().map(OpenFile::len).sum()
    }

    /// The bytes of a record, unless they have changed.
    pub(crate) fn read(&self, place: Place, hash: u64) -> Result<Vec<u8>> {
        let file = &self.0[usize::from(place.file)];
        let bytes = match &file.contents {
            Contents::Rows(table) => table.read(place, &file.path)?,
            Contents::Disk(_) | Contents::Memory(_) => file.read_at(place.offset, u64::from(place.length))?,
        };
        if xxh3_64(&bytes) == hash { Ok(bytes) } else { Err(Error::Changed(file.path.clone())) }
    }
}

impl OpenFile {
    pub(crate) fn len(&self) -> Result<u64> {
        match &self.contents {
            Contents::Disk(file) => Ok(file.metadata().at(&self.path)?.len()),
            Contents::Memory(bytes) => Ok(bytes.len() as u64),
            Contents::Rows(_) => Ok(fs::metadata(&self.path).at(&self.path)?.len()),
        }
    }

    /// The same file on disk, not opened again; `None` for a compressed file or a database.
    pub(crate) fn shared(&self) -> Option<OpenFile> {
        let Contents::Disk(file) = &self.contents else { return None };
        let contents = Contents::Disk(Arc::clone(file));
        let (path, torn, loaded) = (self.path.clone(), self.torn.clone(), self.loaded.clone());
        Some(OpenFile { path, contents, torn, is_database: self.is_database, loaded })
    }

    /// Up to `length` bytes from `offset`: fewer where the file ends.
    pub(crate) fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        if let Some(bytes) = self.in_memory(offset, length) {
            return Ok(bytes.to_vec());
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if let Contents::Disk(file) = &self.contents {
            return read_new(file, offset, length).at(&self.path);
        }
        let mut bytes = vec![0; length];
        let read = self.fill(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn in_memory(&self, offset: u64, length: u64) -> Option<&[u8]> {
        self.loaded.iter().find_map(|(begin, bytes)| {
            let start = usize::try_from(offset.checked_sub(*begin)?).ok()?;
            bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
        })
    }

    /// Fills a buffer from `offset` on and returns how many bytes there were. Several threads may do so at once.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        fill_from(|at, bytes| self.read_some(at, bytes), offset, buffer).at(&self.path)
    }

    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.contents {
            Contents::Disk(file) => read_some(file, offset, buffer),
            Contents::Memory(bytes) => Ok(copy_from(bytes, offset, buffer)),
            Contents::Rows(_) => Ok(0),
        }
    }

    /// Reads from `offset` on. Several threads may read at once, each with its own reader.
    pub(crate) fn reader(&self, offset: u64) -> FileReader<'_> {
        FileReader { file: self, offset }
    }

    /// The same for the one thread that loads the file: it moves the file's own cursor, and saves clearing each buffer.
    pub(crate) fn loader(&self, offset: u64) -> Result<Box<dyn Read + '_>> {
        let Contents::Disk(file) = &self.contents else { return Ok(Box::new(self.reader(offset))) };
        let mut file: &File = file;
        file.seek(SeekFrom::Start(offset)).at(&self.path)?;
        Ok(Box::new(file))
    }
}

/// Reads an open file from a position of its own.
pub(crate) struct FileReader<'f> {
    file: &'f OpenFile,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_some(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn copy_from(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let length = buffer.len().min(bytes.len() - start);
    buffer[..length].copy_from_slice(&bytes[start..start + length]);
    length
}

/// Reads at `offset`, without the file's own cursor.
pub(crate) fn read_some(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
}

/// Up to `length` bytes from `offset`, in memory that is not cleared first: for what a list reads, that takes as long as a call.
#[cfg(unix)]
fn read_new(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset.saturating_add(bytes.len() as u64);
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // There may be room for more than was asked for.
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(windows)]
fn read_new(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = fill_from(|at, bytes| read_some(file, at, bytes), offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Fills a buffer from `offset` on and returns how many bytes there were. Reading finds the end of the file: to query its
/// length first would cost a system call per record.
pub(crate) fn fill_from(
    read_some: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match read_some(offset.saturating_add(read as u64), &mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// A path with an ending after its name, such as `-wal`.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Opens a regular file; a compressed one is read as its content.
pub(crate) fn open_file(path: &Path) -> Result<OpenFile> {
    Ok(open_limited(path, u64::MAX, DATABASE_MAGIC.len())?.0)
}

/// Opens a file and reads its first bytes, which stay in memory. Returns its length on disk, too.
pub(crate) fn open_with_start(path: &Path, bytes: usize) -> Result<(OpenFile, u64)> {
    let (mut file, start, length) = open_limited(path, u64::MAX, bytes)?;
    file.loaded = vec![(0, Arc::new(start))];
    Ok((file, length))
}

/// How much of two files is compared at once.
const COMPARED_BYTES: u64 = 256 * 1024;

/// Whether two files have the same content, compressed or not.
pub(crate) fn have_same_content(one: &Path, other: &Path) -> Result<bool> {
    let (one, other) = (open_file(one)?, open_file(other)?);
    let mut offset = 0;
    loop {
        let bytes = one.read_at(offset, COMPARED_BYTES)?;
        if bytes != other.read_at(offset, COMPARED_BYTES)? {
            return Ok(false);
        }
        if bytes.is_empty() {
            return Ok(true);
        }
        offset += bytes.len() as u64;
    }
}

/// The first bytes of a file; of a compressed one only those are unpacked.
pub(crate) fn head_of(path: &Path, length: u64) -> Result<Vec<u8>> {
    let file = open_limited(path, length, DATABASE_MAGIC.len())?.0;
    file.read_at(0, length.min(file.len()?))
}

/// Opens a file; also returns the first bytes on disk, as many as asked for, and its length there.
fn open_limited(path: &Path, inflated_limit: u64, start_bytes: usize) -> Result<(OpenFile, Vec<u8>, u64)> {
    let (file, metadata) = regular_file::open(path, Links::Follow)?;
    let start_bytes = start_bytes.min(usize::try_from(metadata.len()).unwrap_or(usize::MAX));
    let start = read_new(&file, 0, start_bytes).at(path)?;
    let inflated = match Packing::of(&start) {
        Some(packing) => {
            // Reading by position moves the cursor on some systems.
            (&file).rewind().at(path)?;
            Some(packing.unpack(&file, metadata.len(), inflated_limit).at(path)?)
        }
        None => None,
    };
    let (contents, torn) = match inflated {
        None => (Contents::Disk(Arc::new(file)), None),
        // It only begins like a compressed file: a log with damaged first bytes can do that too.
        Some((bytes, Some(why))) if bytes.is_empty() && !is_called_packed(path) => {
            (Contents::Disk(Arc::new(file)), Some(why))
        }
        Some((bytes, torn)) => (Contents::Memory(bytes), torn),
    };
    let (path, is_database) = (path.to_path_buf(), start.starts_with(DATABASE_MAGIC));
    Ok((OpenFile { path, contents, torn, is_database, loaded: Vec::new() }, start, metadata.len()))
}
