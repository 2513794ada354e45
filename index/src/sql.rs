//! SQL over stable views of all sessions: `sessions`, `messages`, `parts`, `usage`, `tool_calls` (docs/sql.md).
//!
//! The views are tables in memory, filled with what the question reads and nothing else; nothing that is asked can change a session, the
//! index or a file. A question has a time and a size.

mod fill;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashSet;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Batch, Connection, Statement};
use scrollback::model::{Cost, Usage};
use scrollback::view::SessionRow;
use scrollback::{Error as ReadError, Source};

use crate::archive::Archive;

/// How long a question may take once its views are filled.
const TIME: Duration = Duration::from_secs(10);

/// How many rows are answered.
pub const SQL_ROWS: usize = 100_000;

/// No value is longer, and no question takes more memory: what a person asks needs far less.
const VALUE_BYTES: i32 = 64 * 1024 * 1024;
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;

/// No answer is larger: whoever needs more exports it.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How often the time is looked at, in steps of SQLite: one step may make a value of megabytes.
const STEPS: i32 = 100;

const TABLES: &str = "
create table sessions(id text, dialect text, project text, title text, started text, updated text, state text, path text, kept integer);
create table messages(id text, session text, role text, at text, sequence integer, parent text, on_branch integer, sidechain integer, text_preview text);
create table parts(id text, message text, sequence integer, type text, tool_name text, tool_call_id text, tool_state text);
create table usage(request text, session text, message text, model text, at text, input integer, output integer, cache_read integer, cache_write integer, reasoning integer, cost_usd real, counted integer);
create table tool_calls(id text, session text, message text, name text, state text, failed integer, duration_ms integer);
";

/// The answer to a question.
#[derive(Debug, Default)]
pub struct SqlAnswer {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than are answered.
    pub is_cut: bool,
    /// Sessions that could not be read.
    pub unreadable: Vec<ReadError>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// SQLite does not understand it, or stopped it.
    #[error("{0}")]
    Invalid(String),
    /// It would change something.
    #[error("only questions are answered: nothing can be changed")]
    Writes,
    /// There is more than one statement, or none.
    #[error("ask one question at a time")]
    NotOne,
    /// It took too long.
    #[error("the question took more than {} seconds", TIME.as_secs())]
    TooLong,
    /// Its answer is too large.
    #[error("the answer has more than {} MB", ANSWER_BYTES / 1024 / 1024)]
    TooLarge,
}

/// What a question reads: tables and columns.
type Reads = HashSet<(String, String)>;

impl Archive {
    /// Answers SQL over sessions. `everything` has all of them, of which some are in scope: an occurrence of a fact can count elsewhere.
    /// `price` is what a request cost that neither the agent nor the list of prices knows.
    pub fn sql(
        &mut self,
        question: &str,
        everything: Vec<(Box<SessionRow>, Source)>,
        is_in_scope: &(dyn Fn(&SessionRow) -> bool + Sync),
        price: &dyn Fn(&str, Usage) -> Option<Cost>,
    ) -> Result<SqlAnswer, SqlError> {
        let mut connection = Connection::open_in_memory().map_err(invalid)?;
        connection.execute_batch(TABLES).map_err(invalid)?;
        let sources: Vec<(String, Source)> = everything
            .iter()
            .filter(|(row, _)| is_in_scope(row))
            .map(|(row, source)| (row.id.to_string(), source.clone()))
            .collect();
        self.add_part_text(&connection, sources).map_err(invalid)?;
        let reads = reads(&mut connection, question)?;
        let unreadable = self.fill(&connection, &reads, everything, is_in_scope, price).map_err(invalid)?;
        let mut answer = ask(&mut connection, question)?;
        answer.unreadable = unreadable;
        Ok(answer)
    }

    /// `part_text(id)`: the text of a part, masked as this archive is.
    fn add_part_text(&self, connection: &Connection, sources: Vec<(String, Source)>) -> rusqlite::Result<()> {
        let texts = Mutex::new(fill::PartTexts::new(self.places.clone(), self.now, sources));
        connection.create_scalar_function("part_text", 1, FunctionFlags::SQLITE_UTF8, move |arguments| {
            let id = arguments.get::<Option<String>>(0)?;
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(id.and_then(|id| texts.of(&id)))
        })
    }
}

fn invalid(error: rusqlite::Error) -> SqlError {
    SqlError::Invalid(error.to_string())
}

/// What a question reads; it is an error if it is more than a question.
fn reads(connection: &mut Connection, question: &str) -> Result<Reads, SqlError> {
    let (reads, is_writing) = (Arc::new(Mutex::new(Reads::new())), Arc::new(Mutex::new(false)));
    let (noted, refused) = (reads.clone(), is_writing.clone());
    let authorize = move |context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Read { table_name, column_name } => {
            let read = (table_name.to_owned(), column_name.to_owned());
            noted.lock().unwrap_or_else(PoisonError::into_inner).insert(read);
            Authorization::Allow
        }
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => {
            *refused.lock().unwrap_or_else(PoisonError::into_inner) = true;
            Authorization::Deny
        }
    };
    connection.authorizer(Some(authorize)).map_err(invalid)?;
    // Only a question has columns.
    let prepared = one(connection, question).map(|statement| statement.readonly() && statement.column_count() > 0);
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>).map_err(invalid)?;
    if *is_writing.lock().unwrap_or_else(PoisonError::into_inner) {
        return Err(SqlError::Writes);
    }
    if !prepared? {
        return Err(SqlError::Writes);
    }
    let reads = reads.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(reads)
}

/// The only statement of a question.
fn one<'c>(connection: &'c Connection, question: &str) -> Result<Statement<'c>, SqlError> {
    let mut batch = Batch::new(connection, question);
    let statement = batch.next().map_err(invalid)?.ok_or(SqlError::NotOne)?;
    // A second one, or what is none.
    match batch.next() {
        Ok(None) => Ok(statement),
        Ok(Some(_)) | Err(_) => Err(SqlError::NotOne),
    }
}

fn ask(connection: &mut Connection, question: &str) -> Result<SqlAnswer, SqlError> {
    let limits = [(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES), (Limit::SQLITE_LIMIT_ATTACHED, 0)];
    for (limit, value) in limits {
        connection.set_limit(limit, value).map_err(invalid)?;
    }
    connection
        .execute_batch(&format!("pragma query_only = on; pragma hard_heap_limit = {MEMORY_BYTES};"))
        .map_err(invalid)?;
    let end = Instant::now() + TIME;
    connection.progress_handler(STEPS, Some(move || Instant::now() > end)).map_err(invalid)?;
    let mut statement = one(connection, question)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let mut answer = SqlAnswer { columns, ..SqlAnswer::default() };
    let stopped = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => SqlError::TooLong,
        _ => invalid(error),
    };
    let mut rows = statement.query([]).map_err(stopped)?;
    let mut room = ANSWER_BYTES;
    while let Some(row) = rows.next().map_err(stopped)? {
        if answer.rows.len() == SQL_ROWS {
            answer.is_cut = true;
            break;
        }
        if Instant::now() > end {
            return Err(SqlError::TooLong);
        }
        let mut values = Vec::with_capacity(width);
        for at in 0..width {
            let value = row.get_ref(at).map_err(stopped)?;
            room = room.checked_sub(size_of(value)).ok_or(SqlError::TooLarge)?;
            // What is no text as SQLite has it is shown all the same.
            values.push(match value {
                ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
                ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(number) => Value::Real(number),
            });
        }
        answer.rows.push(values);
    }
    Ok(answer)
}

/// What a value takes of the answer, in bytes.
fn size_of(value: ValueRef<'_>) -> usize {
    let content = match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
    };
    content + size_of_val(&value)
}
