//! Sessions in the rows of a SQLite database. The file is untrusted: it is never written, only real tables are queried, and
//! every query has a time limit.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{Value as Column, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use serde_json::Value;

use crate::dialect::layout::{RecordRows, Rows};
use crate::model::error::{Error, Result};
use crate::model::place::Place;
use crate::model::regular_file::{self, Links};
use crate::session::read::files::with_ending;
use crate::session::read::parser::VALUE_LIMIT_BYTES;
use crate::session::read::source::UnreadableFile;

/// A writer holds its lock for milliseconds; one that holds it longer must not stop a list of sessions.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// How many steps SQLite may take for a query, about ten seconds' worth: a table can compute its columns without end.
const STEPS_BETWEEN_CHECKS: i32 = 100_000;
const CHECKS_PER_QUERY: u32 = 5_000;

/// How a database is opened.
const READING: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// A database with more sessions than this is not a store of sessions.
const SESSIONS_PER_DATABASE: usize = 200_000;

/// One session of a database: the key of its rows. All sessions of a database share one connection.
#[derive(Clone)]
pub(crate) struct SessionRows {
    database: Database,
    key: Column,
    has_log_column: bool,
    records: Option<&'static RecordRows>,
    /// A file beside the database that SQLite cannot use.
    unreadable: Option<UnreadableFile>,
}

#[derive(Clone)]
struct Database(Arc<Mutex<Connection>>);

/// The rows of one session.
pub(crate) struct Table {
    rows: &'static Rows,
    session: SessionRows,
    /// Set once all rows are read.
    positions: OnceLock<Positions>,
}

/// Where the rows of a session are.
struct Positions {
    /// Where each row begins, as if the rows were the lines of a file, and its rowid.
    rows: Vec<(u64, i64)>,
    /// Selects one of them.
    row: &'static str,
}

impl Table {
    pub(crate) fn new(rows: &'static Rows, session: SessionRows) -> Table {
        Table { rows, session, positions: OnceLock::new() }
    }

    /// A file beside the database that was not read.
    pub(crate) fn unreadable(&self) -> Option<&UnreadableFile> {
        self.session.unreadable.as_ref()
    }

    /// Calls `take` with the offset and the JSON of each row, in order; instead of JSON that is too long, with its length.
    pub(crate) fn each(&self, path: &Path, mut take: impl FnMut(u64, std::result::Result<&[u8], u64>)) -> Result<()> {
        let positions = self.session.database.query(path, |connection| {
            let mut select = |rows: &str, row: &'static str| -> rusqlite::Result<Positions> {
                let mut statement = connection.prepare(rows)?;
                let mut rows = statement.query([&self.session.key])?;
                let (mut positions, mut begins) = (Vec::new(), 0);
                while let Some(row) = rows.next()? {
                    positions.push((begins, row.get(0)?));
                    let content = content(row, 1, self.rows.lists)?;
                    take(begins, content.as_deref().map_err(|length| *length));
                    begins += content.map_or_else(|length| length, |json| json.len() as u64) + 1;
                }
                Ok(Positions { rows: positions, row })
            };
            let records = self.session.records.map(|records| select(records.rows, records.row)).transpose()?;
            match records.filter(|records| !records.rows.is_empty()) {
                Some(records) => Ok(records),
                None => select(self.rows.rows, self.rows.row),
            }
        })?;
        self.positions.get_or_init(|| positions);
        Ok(())
    }

    /// The bytes of a record: a row, or a piece of one.
    pub(crate) fn read(&self, place: Place, path: &Path) -> Result<Vec<u8>> {
        let Some(Positions { rows, row }) = self.positions.get() else { return Ok(Vec::new()) };
        let before = rows.partition_point(|(begins, _)| *begins <= place.offset);
        let Some(&(begins, rowid)) = rows[..before].last() else { return Ok(Vec::new()) };
        let row = self.row(row, rowid, path)?.unwrap_or_default();
        let from = usize::try_from(place.offset - begins).unwrap_or(usize::MAX);
        Ok(row.get(from..from.saturating_add(place.length as usize)).unwrap_or_default().to_vec())
    }

    fn row(&self, select: &str, rowid: i64, path: &Path) -> Result<Option<Vec<u8>>> {
        let found = |connection: &Connection| {
            connection.query_row(select, [rowid], |row| Ok(content(row, 0, self.rows.lists)?.ok())).optional()
        };
        Ok(self.session.database.query(path, found)?.flatten())
    }

    /// The path of the log that the session refers to.
    pub(crate) fn log(&self, path: &Path) -> Result<Option<String>> {
        let Some((_, log)) = self.rows.log.filter(|_| self.session.has_log_column) else { return Ok(None) };
        let path_of = |connection: &Connection| {
            connection.query_row(log, [&self.session.key], |row| Ok(text(row.get_ref(0)?))).optional()
        };
        Ok(self.session.database.query(path, path_of)?.flatten().filter(|log| !log.is_empty()))
    }
}

/// A row as JSON: its only column, or an object of all its columns; or its length, if that is over the limit.
fn content(row: &Row<'_>, first: usize, lists: &[&str]) -> rusqlite::Result<std::result::Result<Vec<u8>, u64>> {
    let statement = row.as_ref();
    let mut length = 0;
    for column in first..statement.column_count() {
        length += row.get_ref(column)?.as_bytes().map_or(0, |bytes| bytes.len() as u64);
    }
    if length > VALUE_LIMIT_BYTES as u64 {
        return Ok(Err(length));
    }
    if statement.column_count() == first + 1 {
        return Ok(Ok(json(row.get_ref(first)?).into_owned()));
    }
    let mut json = String::from("{");
    for column in first..statement.column_count() {
        let name = statement.column_name(column)?;
        let value = match row.get_ref(column)? {
            ValueRef::Null => Cow::Borrowed("null"),
            ValueRef::Integer(number) => Cow::Owned(number.to_string()),
            ValueRef::Real(number) => Cow::Owned(Value::from(number).to_string()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                if lists.contains(&name) && is_list(&text) { text } else { Value::from(text).to_string().into() }
            }
        };
        let comma = if column > first { "," } else { "" };
        json += &format!("{comma}{}:{value}", Value::from(name));
    }
    json.push('}');
    let json = json.into_bytes();
    Ok(if json.len() > VALUE_LIMIT_BYTES { Err(json.len() as u64) } else { Ok(json) })
}

/// Whether a text is a JSON list.
fn is_list(text: &str) -> bool {
    serde_json::from_str::<Vec<&serde_json::value::RawValue>>(text).is_ok()
}

/// A column as text, whatever its type.
fn text(column: ValueRef<'_>) -> Option<String> {
    match column {
        ValueRef::Null => None,
        column => Some(String::from_utf8_lossy(&json(column)).into_owned()),
    }
}

/// The bytes of a column that should hold JSON text. In SQLite any column can hold any type.
fn json(column: ValueRef<'_>) -> Cow<'_, [u8]> {
    match column {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cow::Borrowed(bytes),
        ValueRef::Null => Cow::Borrowed(b"null"),
        ValueRef::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
        ValueRef::Real(number) => Cow::Owned(number.to_string().into_bytes()),
    }
}

impl Database {
    /// Runs a query, and stops it when it takes too long.
    fn query<T>(&self, path: &Path, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut checks = 0;
        let is_late = move || {
            checks += 1;
            checks > CHECKS_PER_QUERY
        };
        let limited = connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(is_late));
        limited
            .and_then(|()| read(&connection))
            .map_err(|source| Error::Database { path: path.to_path_buf(), source })
    }
}

/// Opens a database for reading only, and waits for its writer only briefly. A file beside it that SQLite cannot use is left out
/// and returned.
fn connect(path: &Path) -> Result<(Database, Option<UnreadableFile>)> {
    if let Some(unusable) = unusable_beside(path) {
        return Ok((configure(path, open_alone(path))?, Some(unusable)));
    }
    let database = configure(path, open(path))?;
    let first = database.query(path, |connection| connection.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(())));
    match first {
        // A transaction was interrupted, and only a writer can roll it back.
        Err(Error::Database { source, .. }) if source.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
            let journal = with_ending(path, "-journal");
            let why = format!("{}: an interrupted transaction that was not rolled back", journal.display());
            let unreadable = UnreadableFile { path: journal, why };
            Ok((configure(path, open_alone(path))?, Some(unreadable)))
        }
        _ => Ok((database, None)),
    }
}

fn configure(path: &Path, opened: rusqlite::Result<Connection>) -> Result<Database> {
    let opened = opened.and_then(|connection| {
        connection.busy_timeout(LOCK_WAIT)?;
        // A schema can contain untrusted code.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        Ok(connection)
    });
    let connection = opened.map_err(|source| Error::Database { path: path.to_path_buf(), source })?;
    Ok(Database(Arc::new(Mutex::new(connection))))
}

/// In write-ahead mode, SQLite keeps an index of its log in a file beside it, and creates one if there is none. While a
/// writer runs, that file exists. Without a writer nothing changes: no locks are needed, and the index can be in memory. If
/// there is no log either, the database is opened as immutable.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    #[cfg(unix)]
    const WITHOUT_LOCKS: &str = "mode=ro&vfs=unix-none";
    #[cfg(windows)]
    const WITHOUT_LOCKS: &str = "mode=ro&vfs=win32-none";
    let flags = READING;
    if !is_write_ahead(path) || with_ending(path, "-shm").exists() {
        return Connection::open_with_flags(path, flags);
    }
    let has_log = fs::metadata(with_ending(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let Some(uri) = uri(path, if has_log { WITHOUT_LOCKS } else { "immutable=1" }) else {
        return Connection::open_with_flags(path, flags);
    };
    let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
    if has_log {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    Ok(connection)
}

/// Opens a database without the files beside it: SQLite would wait for a pipe's other end.
fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    let uri = uri(path, "immutable=1").ok_or_else(|| rusqlite::Error::InvalidPath(path.to_path_buf()))?;
    Connection::open_with_flags(uri, READING | OpenFlags::SQLITE_OPEN_URI)
}

/// A file beside a database that SQLite would open and that is not a regular one. SQLite looks for it where a link leads.
fn unusable_beside(path: &Path) -> Option<UnreadableFile> {
    let database = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let beside = ["-journal", "-wal", "-shm"].map(|ending| with_ending(&database, ending));
    let unusable = |path: &PathBuf| regular_file::is_there(path) && !fs::metadata(path).is_ok_and(|it| it.is_file());
    let path = beside.into_iter().find(unusable)?;
    let error = Error::NotAFile(path.clone());
    Some(UnreadableFile::new(path, &error))
}

/// Whether the header says that the database is in write-ahead mode: bytes 18 and 19 are 2 then.
fn is_write_ahead(path: &Path) -> bool {
    let mut header = [0; 20];
    let opened = regular_file::open(path, Links::Follow).ok();
    opened.is_some_and(|(mut file, _)| file.read_exact(&mut header).is_ok()) && header[18..] == [2, 2]
}

fn uri(path: &Path, options: &str) -> Option<String> {
    let escaped = |c: char| match c {
        '%' => "%25".to_owned(),
        '?' => "%3f".to_owned(),
        '#' => "%23".to_owned(),
        c => c.to_string(),
    };
    Some(format!("file:{}?{options}", path.to_str()?.chars().map(escaped).collect::<String>()))
}

/// The columns of the table with the sessions; `None` without such a table. Views and virtual tables do not count.
fn columns(connection: &Connection, rows: &Rows) -> rusqlite::Result<Option<Vec<String>>> {
    const IS_TABLE: &str = "SELECT count(*) FROM sqlite_schema \
                            WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND sql LIKE 'CREATE TABLE%'";
    if connection.query_row(IS_TABLE, [rows.table], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let mut statement = connection.prepare("SELECT lower(name) FROM pragma_table_info(?1)")?;
    let names: Vec<String> = statement.query_map([rows.table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let has = |column: &&'static str| names.iter().any(|name| name == column);
    if !rows.columns.iter().all(has) {
        return Ok(None);
    }
    match connection.prepare(rows.sessions) {
        Ok(_) => Ok(Some(names)),
        // A table without rowids.
        Err(error) if matches!(error.sqlite_error_code(), None | Some(ErrorCode::Unknown)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a database has such a table. One that cannot be queried is an error.
pub(crate) fn has_rows(path: &Path, rows: &Rows) -> Result<bool> {
    Ok(connect(path)?.0.query(path, |connection| columns(connection, rows))?.is_some())
}

/// Every session of a database with its name. One without a name of its own is named after its key.
pub(crate) fn sessions(path: &Path, rows: &Rows) -> Result<Vec<(String, SessionRows)>> {
    let (database, unreadable) = connect(path)?;
    let Some(names) = database.query(path, |connection| columns(connection, rows))? else {
        return Err(Error::NoSessions(path.to_path_buf()));
    };
    // A table that is missing, or lacks a column, cannot be asked.
    let can_be_asked = |records: &&'static RecordRows| {
        database.query(path, |connection| connection.prepare(records.rows).map(drop)).is_ok()
    };
    let records = rows.records.iter().find(can_be_asked);
    let has_log_column = records.is_none_or(|records| records.follows_log)
        && rows.log.is_some_and(|(column, _)| names.iter().any(|name| name == column));
    let keys: Vec<(Column, Option<String>)> = database.query(path, |connection| {
        let mut statement = connection.prepare(rows.sessions)?;
        let keys = statement.query_map([], |row| Ok((row.get(0)?, text(row.get_ref(1)?))))?;
        keys.take(SESSIONS_PER_DATABASE + 1).collect()
    })?;
    if keys.len() > SESSIONS_PER_DATABASE {
        return Err(Error::TooManySessions { path: path.to_path_buf(), limit: SESSIONS_PER_DATABASE });
    }
    let mut seen = hashbrown::HashSet::new();
    let named = |(key, name): (Column, Option<String>)| {
        let free = name.filter(|name| !name.is_empty() && seen.insert(name.clone()));
        let name = free.unwrap_or_else(|| format!("row-{}", text(ValueRef::from(&key)).unwrap_or_default()));
        (name, SessionRows { database: database.clone(), key, has_log_column, records, unreadable: unreadable.clone() })
    };
    Ok(keys.into_iter().map(named).collect())
}

/// The only session of a database.
pub(crate) fn only(path: &Path, rows: &Rows) -> Result<SessionRows> {
    let mut found = sessions(path, rows)?;
    match found.len() {
        0 => Err(Error::NoSessions(path.to_path_buf())),
        1 => Ok(found.swap_remove(0).1),
        count => Err(Error::SeveralSessions { path: path.to_path_buf(), count }),
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
            table: "t",
            columns: &["s", "j"],
            sessions: "SELECT DISTINCT s, s FROM t",
            rows: "SELECT rowid, j FROM t WHERE s = ?1 ORDER BY rowid",
            row: "SELECT j FROM t WHERE rowid = ?1",
            lists: &[],
            log: None,
            records: &[],
        };
        let database = Database(Arc::new(Mutex::new(connection)));
        let table = Table::new(
            &ROWS,
            SessionRows {
                database,
                key: Column::Text("s".to_owned()),
                has_log_column: false,
                records: None,
                unreadable: None,
            },
        );
        let mut found = Vec::new();
        table.each(Path::new("db"), |begins, json| found.push((begins, json.unwrap().to_vec()))).unwrap();
        let expected: [&[u8]; 4] = [b"{\"a\":1}", b"null", b"7", b"\xff{"];
        assert_eq!(found, [0, 8, 13, 15].into_iter().zip(expected.map(<[u8]>::to_vec)).collect::<Vec<_>>());
        assert_eq!(table.row(ROWS.row, 4, Path::new("db")).unwrap().as_deref(), Some(expected[3]));
        assert_eq!(table.row(ROWS.row, 5, Path::new("db")).unwrap(), None);
    }
}
