//! One session's file or files, or its rows in a database: what is opened, and the bytes that come out of it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::detect;
use crate::dialect::Dialect;
use crate::error::{At, Error, Result};
use crate::format::{self, DATABASE_MAGIC};
use crate::layout::{Format, Layout, Rows};
use crate::packed::Packing;
use crate::skeleton::Place;

/// A writer holds its lock for milliseconds; one that holds it longer must not stop a list of sessions.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// How much of a log tells whose it is.
const LOG_HEAD_BYTES: u64 = 256 * 1024;

/// Where one session is.
#[derive(Clone)]
pub struct Source {
    /// Who wrote it.
    pub dialect: &'static dyn Dialect,
    /// Its first file.
    pub path: PathBuf,
    /// What the file is, and what lies beside it.
    pub layout: Layout,
    /// Which session of a database it is.
    pub key: Option<String>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.dialect.name(), self.path.display())
    }
}

impl Source {
    /// A session file of a dialect, wherever it lies.
    pub fn file(dialect: &'static dyn Dialect, path: &Path) -> Source {
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut layouts = dialect.layouts_in(&folder);
        let fitting = layouts.iter().position(|layout| layout.fits(path)).unwrap_or(0);
        let layout = if fitting < layouts.len() { Some(layouts.swap_remove(fitting)) } else { None };
        let layout = layout.unwrap_or(Layout {
            root: folder,
            pattern: "*",
            companions: &[],
            sidecar: None,
            format: Format::Lines,
        });
        let layout = Layout { format: format::of_file(layout.format, path), ..layout };
        // A file with another name is a log and nothing else: what lies beside it is not its own.
        let layout = if layout.names(path) { layout } else { Layout { companions: &[], sidecar: None, ..layout } };
        Source { dialect, path: path.to_path_buf(), layout, key: None }
    }

    /// Every session of a file: of a database there may be many.
    pub fn in_file(dialect: &'static dyn Dialect, path: &Path) -> Result<Vec<Source>> {
        let file = Source::file(dialect, path);
        let Format::Rows(rows) = file.layout.format else { return Ok(vec![file]) };
        Ok(keys(path, rows)?.into_iter().map(|key| Source { key: Some(key), ..file.clone() }).collect())
    }

    /// Every session that a layout holds.
    pub fn walk(dialect: &'static dyn Dialect, layout: &Layout) -> Vec<Result<Source>> {
        let in_file = |path: Result<PathBuf>| {
            let path = match path {
                Ok(path) => path,
                Err(error) => return vec![Err(error)],
            };
            if let Format::ByContent { mixed: true, .. } = layout.format {
                match detect::of_content(&path) {
                    Ok(whose) if whose.name() == dialect.name() => {}
                    Ok(_) => return Vec::new(),
                    Err(error) => return vec![Err(error)],
                }
            }
            let layout = Layout { format: format::of_file(layout.format, &path), ..layout.clone() };
            let source = |key| Source { dialect, path: path.clone(), layout: layout.clone(), key };
            match layout.format {
                Format::Rows(rows) => match keys(&path, rows) {
                    Ok(keys) => keys.into_iter().map(|key| Ok(source(Some(key)))).collect(),
                    Err(error) => vec![Err(error)],
                },
                Format::Lines | Format::Document | Format::ByContent { .. } => vec![Ok(source(None))],
            }
        };
        let is_session = |path: &Result<PathBuf>| path.as_ref().map_or(true, |path| dialect.is_session(path));
        layout.files().into_iter().filter(is_session).flat_map(in_file).collect()
    }

    /// Every session of some layouts, each once: where two layouts name a file, the one that says more of its name has it.
    pub fn walk_all(layouts: &[(&'static dyn Dialect, Layout)]) -> Vec<Result<Source>> {
        let mut found: Vec<Result<Source>> = Vec::new();
        let mut known: HashMap<(PathBuf, Option<String>), usize> = HashMap::new();
        for source in layouts.iter().flat_map(|(dialect, layout)| Source::walk(*dialect, layout)) {
            let Ok(source) = source else {
                found.push(source);
                continue;
            };
            match known.entry((source.path.clone(), source.key.clone())) {
                Entry::Vacant(place) => {
                    place.insert(found.len());
                    found.push(Ok(source));
                }
                Entry::Occupied(place) => {
                    let before = &mut found[*place.get()];
                    if before.as_ref().is_ok_and(|before| before.layout.exactness() < source.layout.exactness()) {
                        *before = Ok(source);
                    }
                }
            }
        }
        found
    }

    /// The other sessions of the store that the file lies in; of a file that lies in none, those beside it.
    pub fn neighbours(&self) -> Vec<Source> {
        let layouts = self.dialect.layouts_in(Path::new(""));
        let of_store = layouts.iter().find_map(|layout| {
            let root = self.path.ancestors().nth(layout.pattern.split('/').count())?;
            // Names alone fit too easily: a store is called so.
            let fits = layout.fits(&self.path) && root.ends_with(&layout.root);
            fits.then(|| Layout { root: root.to_path_buf(), ..layout.clone() })
        });
        let beside = || {
            let pattern = layouts.first()?.pattern.rsplit('/').next()?;
            let root = self.path.parent()?.to_path_buf();
            Some(Layout { root, pattern, ..self.layout.clone() })
        };
        let found = of_store.or_else(beside).map(|layout| Source::walk(self.dialect, &layout)).unwrap_or_default();
        found.into_iter().filter_map(Result::ok).collect()
    }

    /// The bytes of its further files.
    pub(crate) fn size_of_companions(&self) -> u64 {
        let companions = self.layout.companions.iter().map(|name| self.path.with_file_name(name));
        companions.filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).sum()
    }

    /// What the place calls the session: used when the content does not say.
    pub fn name(&self) -> String {
        if let Some(name) = self.key.clone().or_else(|| self.dialect.session_of(&self.path)) {
            return name;
        }
        let name = self.path.file_stem();
        name.filter(|name| *name != "-")
            .map_or_else(|| "stdin".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The file beside the log that tells about the session, when there is one.
    pub(crate) fn sidecar(&self) -> Option<PathBuf> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let beside = |name: &str| self.path.with_file_name(name.replace('*', &stem));
        self.layout.sidecar.map(beside).filter(|path| path.is_file())
    }

    /// The log that a row of a database says it is kept in; or why there is none to read.
    ///
    /// The path is a stranger's: only a regular file that an agent's log is, is taken for one.
    pub(crate) fn log(&self) -> Result<Option<std::result::Result<Source, String>>> {
        let Format::Rows(rows @ Rows { log: Some(log), .. }) = self.layout.format else { return Ok(None) };
        let key = self.key.clone().map_or_else(|| only_key(&self.path, rows), Ok)?;
        let database = |source| Error::Database { path: self.path.clone(), source };
        let connection = connect(&self.path)?;
        let told = connection.query_row(log, [key], |row| Ok(text(row.get_ref(0)?)));
        let told = match told.optional() {
            // A table without that column tells of no logs.
            Err(rusqlite::Error::SqliteFailure(..) | rusqlite::Error::SqlInputError { .. }) => None,
            told => told.map_err(database)?.flatten().filter(|told| !told.is_empty()),
        };
        Ok(told.map(|told| self.log_at(Path::new(&told)).ok_or(told)))
    }

    fn log_at(&self, told: &Path) -> Option<Source> {
        let leaves = told.components().any(|part| part == std::path::Component::ParentDir);
        let path = self.path.parent()?.join(told);
        let head = (!leaves).then(|| head_of(&path, LOG_HEAD_BYTES).ok())??;
        let dialect = detect::of_bytes(&head);
        let log = Source::file(dialect, &path);
        let is_log = dialect.name() != "unknown" && !head.is_empty() && !matches!(log.layout.format, Format::Rows(_));
        is_log.then_some(log)
    }

    pub(crate) fn open(&self) -> Result<Files> {
        if let Format::Rows(rows) = self.layout.format {
            let key = self.key.clone().map_or_else(|| only_key(&self.path, rows), Ok)?;
            let rows = Table { connection: connect(&self.path)?, rows, key, read: RefCell::default() };
            let contents = Contents::Rows(rows);
            return Ok(Files(vec![OpenFile { path: self.path.clone(), contents, torn: None, is_database: true }]));
        }
        let first = open_file(&self.path)?;
        if first.is_database {
            return Err(Error::NoSessions(self.path.clone()));
        }
        let mut files = vec![first];
        for name in self.layout.companions {
            let path = self.path.with_file_name(name);
            if path.is_file() {
                files.push(open_file(&path)?);
            }
        }
        Ok(Files(files))
    }
}

/// The open files of a session. A place's `file` is the position here.
pub(crate) struct Files(pub(crate) Vec<OpenFile>);

pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Why a compressed file ends early.
    pub(crate) torn: Option<String>,
    /// It begins as a SQLite database does.
    pub(crate) is_database: bool,
}

pub(crate) enum Contents {
    Disk(Arc<File>),
    Memory(Vec<u8>),
    Rows(Table),
}

pub(crate) struct Table {
    connection: Connection,
    rows: &'static Rows,
    key: String,
    /// Where each row begins, as if they were the lines of a file, and its rowid.
    read: RefCell<Vec<(u64, i64)>>,
}

impl Files {
    pub(crate) fn memory(bytes: Vec<u8>) -> Files {
        let contents = Contents::Memory(bytes);
        Files(vec![OpenFile { path: PathBuf::from("-"), contents, torn: None, is_database: false }])
    }

    pub(crate) fn size_bytes(&self) -> Result<u64> {
        self.0.iter().map(OpenFile::len).sum()
    }

    /// The bytes of a record, if they still are what they were.
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

    /// The same file on disk, not opened again; `None` for what was unpacked or is a database.
    pub(crate) fn shared(&self) -> Option<OpenFile> {
        let Contents::Disk(file) = &self.contents else { return None };
        let contents = Contents::Disk(Arc::clone(file));
        Some(OpenFile { path: self.path.clone(), contents, torn: self.torn.clone(), is_database: self.is_database })
    }

    /// Up to `length` bytes from `offset`: fewer where the file ends.
    pub(crate) fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = self.bytes().map_or(Ok(0), |file| file.fill(offset, &mut bytes))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Its bytes, where it has any: several threads may read them at once.
    pub(crate) fn bytes(&self) -> Option<Bytes<'_>> {
        match &self.contents {
            Contents::Disk(file) => Some(Bytes::Disk { file, path: &self.path }),
            Contents::Memory(bytes) => Some(Bytes::Memory(bytes)),
            Contents::Rows(_) => None,
        }
    }

    /// The bytes from `offset` on.
    pub(crate) fn reader(&self, offset: u64) -> Result<Box<dyn Read + '_>> {
        match &self.contents {
            Contents::Disk(file) => {
                let mut file: &File = file;
                file.seek(SeekFrom::Start(offset)).at(&self.path)?;
                Ok(Box::new(file))
            }
            Contents::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(Box::new(&bytes[start..]))
            }
            Contents::Rows(_) => Ok(Box::new(io::empty())),
        }
    }
}

/// The bytes of an open file.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'f> {
    Disk { file: &'f File, path: &'f Path },
    Memory(&'f [u8]),
}

impl Bytes<'_> {
    /// Fills a buffer from `offset` on, as far as the file goes, and tells how far that is.
    pub(crate) fn fill(self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Bytes::Disk { file, path } => fill(file, offset, buffer).at(path),
            Bytes::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let read = buffer.len().min(bytes.len() - start);
                buffer[..read].copy_from_slice(&bytes[start..start + read]);
                Ok(read)
            }
        }
    }
}

/// Reads where it is told to, wherever others read the same file.
fn fill(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    #[cfg(unix)]
    let read_some = |bytes: &mut [u8], at: u64| std::os::unix::fs::FileExt::read_at(file, bytes, at);
    #[cfg(windows)]
    let read_some = |bytes: &mut [u8], at: u64| std::os::windows::fs::FileExt::seek_read(file, bytes, at);
    // Where a file ends is found by reading: asking first costs a call for each of a hundred thousand records.
    let mut read = 0;
    while read < buffer.len() {
        match read_some(&mut buffer[read..], offset.saturating_add(read as u64)) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

impl Table {
    /// Gives each row of the session, in order, as where it begins and its JSON, or what stands there instead.
    pub(crate) fn each(&self, path: &Path, mut take: impl FnMut(u64, &[u8])) -> Result<()> {
        let database = |source| Error::Database { path: path.to_path_buf(), source };
        let mut statement = self.connection.prepare(self.rows.rows).map_err(database)?;
        let mut rows = statement.query([&self.key]).map_err(database)?;
        let mut before = 0;
        while let Some(row) = rows.next().map_err(database)? {
            let bytes = content(row, 1).map_err(database)?;
            let begins = self.read.borrow().last().map_or(0, |(begins, _)| *begins) + before;
            before = bytes.len() as u64 + 1;
            self.read.borrow_mut().push((begins, row.get(0).map_err(database)?));
            take(begins, &bytes);
        }
        Ok(())
    }

    /// The bytes of a record: a row, or a piece of one.
    fn read(&self, place: Place, path: &Path) -> Result<Vec<u8>> {
        let read = self.read.borrow();
        let at = read.partition_point(|(begins, _)| *begins <= place.offset).checked_sub(1);
        let Some(&(begins, rowid)) = at.and_then(|at| read.get(at)) else { return Ok(Vec::new()) };
        let row = self.row(rowid, path)?.unwrap_or_default();
        let from = usize::try_from(place.offset - begins).unwrap_or(usize::MAX);
        Ok(row.get(from..from.saturating_add(place.length as usize)).unwrap_or_default().to_vec())
    }

    fn row(&self, rowid: i64, path: &Path) -> Result<Option<Vec<u8>>> {
        let found = self.connection.query_row(self.rows.row, [rowid], |row| content(row, 0));
        found.optional().map_err(|source| Error::Database { path: path.to_path_buf(), source })
    }
}

/// A row as JSON: what its only column holds, or an object of all its columns.
fn content(row: &Row<'_>, first: usize) -> rusqlite::Result<Vec<u8>> {
    let statement = row.as_ref();
    if statement.column_count() == first + 1 {
        return Ok(json(row.get_ref(first)?).into_owned());
    }
    let mut object = serde_json::Map::new();
    for column in first..statement.column_count() {
        let value = match row.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
        };
        object.insert(statement.column_name(column)?.to_owned(), value);
    }
    Ok(Value::Object(object).to_string().into_bytes())
}

/// A column as text, whatever it holds.
fn text(column: ValueRef<'_>) -> Option<String> {
    match column {
        ValueRef::Null => None,
        column => Some(String::from_utf8_lossy(&json(column)).into_owned()),
    }
}

/// The bytes of a column that should hold JSON text. SQLite keeps anything anywhere, and content never fails.
fn json(column: ValueRef<'_>) -> Cow<'_, [u8]> {
    match column {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cow::Borrowed(bytes),
        ValueRef::Null => Cow::Borrowed(b"null"),
        ValueRef::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
        ValueRef::Real(number) => Cow::Owned(number.to_string().into_bytes()),
    }
}

/// Opens a regular file; a compressed one is read as its content.
pub(crate) fn open_file(path: &Path) -> Result<OpenFile> {
    open_limited(path, u64::MAX)
}

/// The first bytes of a file; no more than those of a compressed one are unpacked.
pub(crate) fn head_of(path: &Path, length: u64) -> Result<Vec<u8>> {
    open_limited(path, length)?.read_at(0, length)
}

fn open_limited(path: &Path, inflated_limit: u64) -> Result<OpenFile> {
    let metadata = fs::metadata(path).at(path)?;
    if !metadata.is_file() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    let file = File::open(path).at(path)?;
    let mut magic = vec![0; DATABASE_MAGIC.len()];
    let read = fill(&file, 0, &mut magic).at(path)?;
    magic.truncate(read);
    let inflated = match Packing::of(&magic) {
        Some(packing) => {
            // Reading by position moves the cursor on some systems.
            (&file).rewind().at(path)?;
            Some(packing.unpack(&file, metadata.len(), inflated_limit).at(path)?)
        }
        None => None,
    };
    let (contents, torn) = match inflated {
        None => (Contents::Disk(Arc::new(file)), None),
        // It only begins like an archive: a log whose first bytes are damaged does that too.
        Some((bytes, Some(why))) if bytes.is_empty() && !is_called_packed(path) => {
            (Contents::Disk(Arc::new(file)), Some(why))
        }
        Some((bytes, torn)) => (Contents::Memory(bytes), torn),
    };
    Ok(OpenFile { path: path.to_path_buf(), contents, torn, is_database: magic == DATABASE_MAGIC })
}

fn is_called_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "zst" || ending == "gz")
}

/// Opens a database for reading only, and never waits for its writer for long.
///
/// A database with a write-ahead log that nobody has open is opened as one that cannot change: SQLite would otherwise leave
/// files beside it. While its writer runs, those files are there already.
fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let opened = match uri(path).filter(|_| is_write_ahead(path) && !Path::new(&log).exists()) {
        Some(uri) => Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI),
        None => Connection::open_with_flags(path, flags),
    };
    let waiting = opened.and_then(|connection| connection.busy_timeout(LOCK_WAIT).map(|()| connection));
    waiting.map_err(|source| Error::Database { path: path.to_path_buf(), source })
}

/// Whether the header says that changes go to a log first: bytes 18 and 19 are 2 then.
fn is_write_ahead(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[18..] == [2, 2]
}

/// The address of a database that cannot change.
fn uri(path: &Path) -> Option<String> {
    let escaped = |c: char| match c {
        '%' => "%25".to_owned(),
        '?' => "%3f".to_owned(),
        '#' => "%23".to_owned(),
        c => c.to_string(),
    };
    Some(format!("file:{}?immutable=1", path.to_str()?.chars().map(escaped).collect::<String>()))
}

fn keys(path: &Path, rows: &Rows) -> Result<Vec<String>> {
    let database = |source| Error::Database { path: path.to_path_buf(), source };
    let connection = connect(path)?;
    let mut statement = connection.prepare(rows.sessions).map_err(database)?;
    let keys = statement.query_map([], |row| Ok(text(row.get_ref(0)?))).map_err(database)?;
    let keys: Vec<Option<String>> = keys.collect::<std::result::Result<_, _>>().map_err(database)?;
    let mut seen = hashbrown::HashSet::new();
    Ok(keys.into_iter().flatten().filter(|key| seen.insert(key.clone())).collect())
}

/// The key of a database's only session.
fn only_key(path: &Path, rows: &Rows) -> Result<String> {
    let mut keys = keys(path, rows)?;
    match keys.len() {
        0 => Err(Error::NoSessions(path.to_path_buf())),
        1 => Ok(keys.swap_remove(0)),
        count => Err(Error::SeveralSessions { path: path.to_path_buf(), count }),
    }
}

/// Whether a database holds sessions in this way. One that cannot be asked is an error.
pub(crate) fn has_rows(path: &Path, rows: &Rows) -> Result<bool> {
    let connection = connect(path)?;
    match connection.prepare(rows.sessions) {
        Ok(_) => Ok(true),
        // Such a table or column is not there.
        Err(error) if matches!(error.sqlite_error_code(), None | Some(rusqlite::ErrorCode::Unknown)) => Ok(false),
        Err(source) => Err(Error::Database { path: path.to_path_buf(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_any_type_is_content() {
        let connection = Connection::open_in_memory().unwrap();
        let setup =
            "CREATE TABLE t (s, j); INSERT INTO t VALUES ('s', '{\"a\":1}'), ('s', NULL), ('s', 7), ('s', x'ff7b');";
        connection.execute_batch(setup).unwrap();
        static ROWS: Rows = Rows {
            sessions: "SELECT DISTINCT s FROM t",
            rows: "SELECT rowid, j FROM t WHERE s = ?1 ORDER BY rowid",
            row: "SELECT j FROM t WHERE rowid = ?1",
            log: None,
        };
        let table = Table { connection, rows: &ROWS, key: "s".to_owned(), read: RefCell::default() };
        let mut found = Vec::new();
        table.each(Path::new("db"), |begins, json| found.push((begins, json.to_vec()))).unwrap();
        let expected: [&[u8]; 4] = [b"{\"a\":1}", b"null", b"7", b"\xff{"];
        assert_eq!(found, [0, 8, 13, 15].into_iter().zip(expected.map(<[u8]>::to_vec)).collect::<Vec<_>>());
        assert_eq!(table.row(4, Path::new("db")).unwrap().as_deref(), Some(expected[3]));
        assert_eq!(table.row(5, Path::new("db")).unwrap(), None);
    }
}
