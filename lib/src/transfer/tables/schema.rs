//! The tables, their version, and opening a database for writing them.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::model::regular_file;
use crate::session::read::files;
use crate::session::read::format::DATABASE_MAGIC;
use crate::write::NewFile;

/// How long a writer waits for others: each stores one session at a time, and a hundred runs may finish together.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// The table of messages, also for Smithers' own database.
macro_rules! messages {
    ($more:literal) => {
        concat!(
            "create table if not exists messages(
            id text primary key,
            agent_id text not null references agents(id),
            execution_id text not null,
            role text not null check(role in ('system', 'user', 'assistant')),
            sequence integer not null,
            parts text not null,
            metadata text,
            created_at text default (datetime('now')),
            has_tool_calls integer default 0,
            has_reasoning integer default 0,
            has_files integer default 0,
            text_preview text,",
            $more,
            "
            unique(agent_id, sequence)
        );
        create index if not exists idx_messages_agent on messages(agent_id);
        create index if not exists idx_messages_execution on messages(execution_id);
        create index if not exists idx_messages_role on messages(role);"
        )
    };
}

/// The table of their parts.
macro_rules! message_parts {
    () => {
        "create table if not exists message_parts(
            id text primary key,
            message_id text not null references messages(id),
            sequence integer not null,
            type text not null check(type in (
                'text', 'reasoning', 'tool-invocation', 'file', 'source-url', 'source-document', 'step-start', 'data'
            )),
            content text,
            tool_name text,
            tool_call_id text,
            tool_state text,
            unique(message_id, sequence)
        );
        create index if not exists idx_message_parts_message on message_parts(message_id);
        create index if not exists idx_message_parts_type on message_parts(type);
        create index if not exists idx_message_parts_tool_name on message_parts(tool_name) where tool_name is not null;"
    };
}

/// One step for each version: a database of version n takes the steps after the first n. `user_version` is the version.
const STEPS: [&str; 1] = [concat!(
    "create table agents(
        id text primary key,
        execution_id text not null,
        phase_id text,
        model text not null,
        system_prompt text,
        prompt text not null,
        status text not null check(status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
        result text,
        result_structured text,
        log_path text,
        error text,
        started_at text,
        completed_at text,
        created_at text,
        duration_ms integer,
        tokens_input integer,
        tokens_output integer,
        tool_calls_count integer not null default 0
    );",
    messages!("parent_id text, on_branch integer not null default 1, sidechain integer not null default 0,"),
    message_parts!()
)];

/// Only where the column is there: a table of option C has none.
const TOOL_CALLS_INDEX: &str =
    "create index if not exists idx_messages_has_tool_calls on messages(has_tool_calls) where has_tool_calls = 1;";

/// Opens tables of ours, or makes them in a file that is not there.
pub(super) fn open(path: &Path, host: &Host) -> Result<Connection> {
    if !regular_file::is_there(path) {
        // SQLite itself would let others read it.
        match NewFile::create(path, host).and_then(NewFile::finish) {
            Ok(()) | Err(Error::Exists(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let database = |source| Error::Database { path: path.to_path_buf(), source };
    // SQLite itself writes over a file of less than its first page.
    let begin = files::head_of(path, DATABASE_MAGIC.len() as u64)?;
    if !begin.is_empty() && begin != DATABASE_MAGIC {
        return Err(Error::NotOurTables(path.to_path_buf()));
    }
    let mut connection = connect(path)?;
    if steps_left(&connection, path)?.is_empty() {
        return Ok(connection);
    }
    // Another program may take the same steps at the same time: under the lock, only those that are still left.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
    let steps = steps_left(&transaction, path)?.concat();
    if !steps.is_empty() {
        let version = STEPS.len();
        let all = format!("{steps} {TOOL_CALLS_INDEX} pragma user_version = {version};");
        transaction.execute_batch(&all).map_err(database)?;
    }
    transaction.commit().map_err(database)?;
    Ok(connection)
}

/// The steps that a database of ours has not taken. Another program's is refused.
fn steps_left(connection: &Connection, path: &Path) -> Result<&'static [&'static str]> {
    let database = |source| Error::Database { path: path.to_path_buf(), source };
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(database);
    let version = number("pragma user_version")?;
    let tables = number("select count(*) from sqlite_schema")?;
    let is_ours = match version {
        0 => tables == 0,
        _ => !columns(connection, "messages").map_err(database)?.is_empty(),
    };
    if !is_ours {
        return Err(Error::NotOurTables(path.to_path_buf()));
    }
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    STEPS.get(done..).ok_or_else(|| Error::NewerTables(path.to_path_buf()))
}

/// Opens Smithers' database, and makes the tables of messages that it lacks.
pub(super) fn open_smithers(path: &Path) -> Result<Connection> {
    let database = |source| Error::Database { path: path.to_path_buf(), source };
    let connection = connect(path)?;
    let agents = columns(&connection, "agents").map_err(database)?;
    if !["id", "execution_id"].iter().all(|column| agents.iter().any(|name| name == column)) {
        return Err(Error::NoSessions(path.to_path_buf()));
    }
    let lacks = |table: &str| columns(&connection, table).map(|columns| columns.is_empty()).map_err(database);
    let lacking = match (lacks("messages")?, lacks("message_parts")?) {
        (false, false) => return Ok(connection),
        (false, true) => message_parts!().to_owned(),
        (true, _) => [messages!(""), message_parts!(), TOOL_CALLS_INDEX].concat(),
    };
    connection.execute_batch(&format!("begin immediate; {lacking} commit;")).map_err(database)?;
    Ok(connection)
}

/// The columns of a table, in lower case; none if there is no such table.
pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("select lower(name) from pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(LOCK_WAIT)?;
        // A schema can contain untrusted code.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // A row that is replaced by a masked one leaves nothing in the file's free space.
        connection.execute_batch("pragma foreign_keys = on; pragma secure_delete = on")?;
        Ok(connection)
    });
    opened.map_err(|source| Error::Database { path: path.to_path_buf(), source })
}
