//! The tables of the index, their version, and opening what may be something else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, Result};

/// Says that a database is this index: the bytes "scrl".
const APPLICATION_ID: i64 = 0x7363_726c;

/// Changes with every change of the tables, and of what is counted.
const VERSION: i64 = 12;

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(10);

/// FTS5 collects so many bytes before it writes them, to make few large pieces of an index and not many small ones.
///
/// Words are split by us (`words.rs`), so the tokenizer only separates at spaces. The text itself is not stored: a hit knows its place.
const TABLES: &str = "
create table facts(name text primary key, value integer not null) without rowid;
create table sources(
    id integer primary key,
    place blob not null unique,
    stamp integer not null,
    depth integer not null,
    cut_bytes integer not null,
    session text not null
);
create table cards(source integer primary key, card blob not null, requests blob not null);
create table names(id integer primary key, kind integer not null, name text not null);
create table parts(first integer primary key, source integer not null, rows blob not null);
create index parts_of_source on parts(source);
create table rests(
    part integer primary key,
    source integer not null,
    record integer not null,
    bytes integer not null,
    offset integer,
    length integer,
    words blob not null
);
create table times(first integer primary key, newest integer not null);
create table bookmarks(source integer primary key, checkpoint blob not null, standings blob not null);
create table counts(source integer primary key, stamp integer not null, counts blob not null);
create trigger forget_source after delete on sources begin
    delete from cards where source = old.id;
    delete from counts where source = old.id;
end;
create virtual table words using fts5(split, whole, content='', contentless_delete=1, tokenize='ascii');
insert into words(words, rank) values ('hashsize', 67108864);
create virtual table vocabulary using fts5vocab(words, row);
";

/// A crash may cost what was stored last, which is read again. Who asks has pages in the cache of the system, too; a server lives long,
/// and each question looks at others.
const SETTINGS: &str = "pragma synchronous = normal; pragma temp_store = memory; pragma cache_size = -8192;";

/// Who stores many parts changes the same pages again and again.
pub(super) const STORING_MANY: &str = "pragma cache_size = -32768";

/// Makes the folder of an index, for its owner only.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        private_folder(folder).map_err(|source| Error::Io { path: folder.to_path_buf(), source })?;
    }
    Ok(())
}

/// Opens the index, or makes it; one that cannot be trusted is made anew.
pub(super) fn connect(path: &Path, is_trusted: bool) -> Result<Connection> {
    private_file(path).map(drop).map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
    let connection = open(path).map_err(|source| Error::Database { path: path.to_path_buf(), source })?;
    prepare(&connection, path, is_trusted).map(|()| connection)
}

/// Opens the index if it is there and of this version.
pub(super) fn connect_known(path: &Path) -> Result<Option<Connection>> {
    let connect = || {
        let connection = open(path)?;
        connection.execute_batch(SETTINGS)?;
        let is_ours = mark(&connection)? == (APPLICATION_ID, VERSION);
        Ok(is_ours.then_some(connection))
    };
    connect().map_err(|source| Error::Database { path: path.to_path_buf(), source })
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Whose database it is, and the version of its tables.
fn mark(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |pragma: &str| connection.query_row(&format!("pragma {pragma}"), [], |row| row.get(0));
    Ok((number("application_id")?, number("user_version")?))
}

fn prepare(connection: &Connection, path: &Path, is_trusted: bool) -> Result<()> {
    let database = |source| Error::Database { path: path.to_path_buf(), source };
    // Readers do not wait for a writer. Where memory cannot be shared (network file systems), SQLite keeps its other way.
    use_wal(connection).and_then(|()| connection.execute_batch(SETTINGS)).map_err(database)?;
    match mark(connection).map_err(database)? {
        (APPLICATION_ID, VERSION) if is_trusted => Ok(()),
        (APPLICATION_ID, newer) if newer > VERSION => Err(Error::Newer(path.to_path_buf())),
        // It is only a cache: the sessions are read again.
        (APPLICATION_ID, _) => {
            empty(connection).map_err(database)?;
            prepare(connection, path, true)
        }
        (0, 0) if is_empty(connection).map_err(database)? => {
            let make = format!(
                "begin immediate; {TABLES} pragma application_id = {APPLICATION_ID}; pragma user_version = {VERSION}; commit;"
            );
            match connection.execute_batch(&make) {
                Ok(()) => Ok(()),
                // Another process made it in the meantime.
                Err(_) if mark(connection).map_err(database)? == (APPLICATION_ID, VERSION) => {
                    connection.execute_batch("rollback;").map_err(database)
                }
                Err(error) => Err(database(error)),
            }
        }
        // Another program's database.
        _ => Err(database(rusqlite::Error::InvalidQuery)),
    }
}

/// Changes how the database is written. SQLite does not wait for another process here, which may just make the same index.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    loop {
        match connection.execute_batch("pragma journal_mode = wal;") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begin.elapsed() < BUSY => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Makes a new database of one whose tables are of an older version.
fn empty(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = connection.execute_batch("vacuum");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("select count(*) from sqlite_master", [], |row| Ok(row.get::<_, i64>(0)? == 0))
}

/// Whether the file itself is the reason: another program's, or damaged.
pub(super) fn is_unusable(error: &Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match error {
        Error::Database { source: rusqlite::Error::InvalidQuery, .. } => true,
        // What was stored has another type now.
        Error::Database {
            source:
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..),
            ..
        } => true,
        // Tables that are missing, or whose own tables are damaged, are errors without a code.
        Error::Database { source, .. } => {
            matches!(source.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | Unknown))
        }
        _ => false,
    }
}

/// Moves what is in the place of the index aside: it may be somebody's.
pub(super) fn move_aside(path: &Path) -> Result<PathBuf> {
    let name = |number: usize| path.with_extension(format!("db.set-aside-{number}"));
    let aside = (1..).map(name).find(|name| !name.exists()).unwrap_or_else(|| name(0));
    fs::rename(path, &aside).map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
    for ending in ["db-wal", "db-shm"] {
        // They belong to the database that was moved, and would damage the new one.
        drop(fs::remove_file(path.with_extension(ending)));
    }
    Ok(aside)
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Opens a file, and makes it if it is not there: SQLite itself would let others read it.
pub(super) fn private_file(path: &Path) -> std::io::Result<fs::File> {
    // Opening a pipe would wait for whoever writes to it, and what a link leads to is not ours to make or to change.
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Somebody may have made it before.
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}
