//! Sessions as tables of a SQLite database: `agents`, `messages` and `message_parts`, as the proposal of seed 003 names them.
//!
//! Storing a log again changes nothing; a log that has grown adds rows, and may change its last message. docs/sql.md lists the columns.

mod rows;
mod schema;

use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use rusqlite::types::Value as Column;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params_from_iter};

use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::session::Session;
use rows::AgentRow;
pub use rows::MessageRow;

/// A database with sessions in tables.
pub struct Tables {
    connection: Connection,
    path: PathBuf,
}

/// What storing a session changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// Messages that were not there.
    pub added: usize,
    /// Messages that were there and have changed.
    pub changed: usize,
    /// Messages that were there and are gone.
    pub removed: usize,
}

impl Tables {
    /// Opens tables that were exported before, or makes them. Another program's database is refused, and one of a newer version.
    pub fn open(path: &Path, host: &Host) -> Result<Tables> {
        schema::open(path, host).map(|connection| Tables { connection, path: path.to_path_buf() })
    }

    /// Opens the database of Smithers, which has its own `agents`. Only `messages` and `message_parts` are written, and made if they
    /// are not there.
    pub fn open_smithers(path: &Path) -> Result<Tables> {
        schema::open_smithers(path).map(|connection| Tables { connection, path: path.to_path_buf() })
    }

    /// Stores a session with all its branches.
    pub fn store(&mut self, session: &Session) -> Result<StoredRows> {
        let agent = AgentRow::of(session)?;
        let execution = agent.execution_id.clone();
        self.store_as(session, &agent.id.clone(), &execution, Some(agent))
    }

    /// The log of a run, as its row names it.
    pub fn log_of_run(&self, agent: &str) -> Result<Option<PathBuf>> {
        let log = "select log_path from agents where id = ?1";
        let log = self.connection.query_row(log, [agent], |row| row.get::<_, Option<String>>(0)).optional();
        let log = log.map_err(|source| self.error(source))?.ok_or_else(|| Error::NoSession(Some(agent.to_owned())))?;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Ok(log.filter(|log| !log.is_empty()).map(|log| folder.join(log)))
    }

    /// Stores the messages of a run: of the row in `agents` with this id, which stays as it is.
    pub fn store_run(&mut self, session: &Session, agent: &str) -> Result<StoredRows> {
        let execution = "select execution_id from agents where id = ?1";
        let execution = self.connection.query_row(execution, [agent], |row| row.get::<_, Option<String>>(0)).optional();
        let execution = execution.map_err(|source| self.error(source))?;
        let Some(execution) = execution else { return Err(Error::NoSession(Some(agent.to_owned()))) };
        self.store_as(session, agent, &execution.unwrap_or_else(|| agent.to_owned()), None)
    }

    fn store_as(
        &mut self,
        session: &Session,
        agent: &str,
        execution: &str,
        row: Option<AgentRow>,
    ) -> Result<StoredRows> {
        let path = self.path.clone();
        let database = |source| Error::Database { path: path.clone(), source };
        let columns = schema::columns(&self.connection, "messages").map_err(database)?;
        let has_parts = !schema::columns(&self.connection, "message_parts").map_err(database)?.is_empty();
        // A transaction that reads before it writes fails at once where another one writes; this one waits for it.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        if let Some(row) = row {
            row.store(&transaction).map_err(database)?;
        }
        let mut stored =
            Stored { transaction: &transaction, columns: &columns, has_parts, done: StoredRows::default() };
        let mut all = rows::messages(session);
        if !columns.iter().any(|column| column == "on_branch") {
            // Nothing there could tell the branches apart.
            all.retain(|message| message.branch == 0);
        }
        stored.forget_others(agent, &all).map_err(database)?;
        rows::each(session, &all, agent, execution, &mut |row| stored.message(row).map_err(database))?;
        let done = stored.done;
        transaction.commit().map_err(database)?;
        Ok(done)
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::Database { path: self.path.clone(), source }
    }
}

/// Calls `take` with each message of a session, of all branches.
pub fn message_rows(session: &Session, agent: &str, take: &mut dyn FnMut(&MessageRow) -> Result<()>) -> Result<()> {
    rows::each(session, &rows::messages(session), agent, agent, take)
}

/// One session on its way into the tables.
struct Stored<'t> {
    transaction: &'t Transaction<'t>,
    /// The columns that `messages` has: those of another program's table may be fewer.
    columns: &'t [String],
    has_parts: bool,
    done: StoredRows,
}

impl Stored<'_> {
    /// Forgets messages that the log no longer has, or has in another order.
    fn forget_others(&mut self, agent: &str, messages: &[rows::Pending<'_>]) -> rusqlite::Result<()> {
        let wanted: HashMap<String, usize> =
            messages.iter().enumerate().map(|(at, message)| (message.id(agent), at)).collect();
        let mut known = self.transaction.prepare("select id, sequence from messages where agent_id = ?1")?;
        let known = known.query_map([agent], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        let known: Vec<(String, i64)> = known.collect::<rusqlite::Result<_>>()?;
        for (id, sequence) in known {
            let is_there = wanted.get(&id).is_some_and(|at| *at as i64 == sequence);
            if !is_there {
                self.forget(&id)?;
                self.done.removed += 1;
            }
        }
        Ok(())
    }

    fn forget(&self, id: &str) -> rusqlite::Result<()> {
        if self.has_parts {
            self.transaction.execute("delete from message_parts where message_id = ?1", [id])?;
        }
        self.transaction.execute("delete from messages where id = ?1", [id]).map(drop)
    }

    fn message(&mut self, row: &MessageRow) -> rusqlite::Result<()> {
        let values: Vec<(&str, Column)> = row
            .columns()
            .into_iter()
            .filter(|(name, _)| self.columns.iter().any(|column| column == name))
            .collect();
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        if self.is_stored(row, &names, &values)? {
            return Ok(());
        }
        let is_there = "select 1 from messages where id = ?1";
        let is_there = self.transaction.prepare_cached(is_there)?.exists([&row.id])?;
        self.forget(&row.id)?;
        *(if is_there { &mut self.done.changed } else { &mut self.done.added }) += 1;
        let places: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
        let sql = format!("insert into messages({}) values ({})", names.join(", "), places.join(", "));
        self.transaction
            .prepare_cached(&sql)?
            .execute(params_from_iter(values.iter().map(|(_, value)| value)))?;
        if self.has_parts {
            self.parts(row)?;
        }
        Ok(())
    }

    /// Whether the message is there as it is now, with all its parts.
    fn is_stored(&self, row: &MessageRow, names: &[&str], values: &[(&str, Column)]) -> rusqlite::Result<bool> {
        let same: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("{name} is ?{}", at + 1)).collect();
        let sql = format!("select 1 from messages where {}", same.join(" and "));
        let is_same = self
            .transaction
            .prepare_cached(&sql)?
            .exists(params_from_iter(values.iter().map(|(_, value)| value)))?;
        if !is_same || !self.has_parts {
            return Ok(is_same);
        }
        let sql = "select sequence, type, content, tool_name, tool_call_id, tool_state from message_parts
            where message_id = ?1 order by sequence";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let known = statement.query_map([&row.id], |row| (0..6).map(|at| row.get(at)).collect())?;
        let known: Vec<Vec<Column>> = known.collect::<rusqlite::Result<_>>()?;
        Ok(known == row.parts.iter().map(|part| part[2..].to_vec()).collect::<Vec<_>>())
    }

    fn parts(&self, row: &MessageRow) -> rusqlite::Result<()> {
        let sql =
            "insert into message_parts(id, message_id, sequence, type, content, tool_name, tool_call_id, tool_state)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let mut statement = self.transaction.prepare_cached(sql)?;
        row.parts.iter().try_for_each(|part| statement.execute(params_from_iter(part)).map(drop))
    }
}
