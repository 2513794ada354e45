//! Fills the views with what a question reads.

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use rayon::prelude::*;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use scrollback::model::{Cost, Usage};
use scrollback::session::Session;
use scrollback::transfer::tables::{MessageRow, message_rows};
use scrollback::view::counting::{Elected, Reason};
use scrollback::view::find::Places;
use scrollback::view::{Conversation, SessionRow, listing, tool_calls};
use scrollback::{Error as ReadError, Source};

use super::Reads;
use crate::archive::{Archive, Reader};

/// How many sessions are read at once before their rows are stored: their messages are in memory.
const SESSIONS_AT_ONCE: usize = 64;

/// What is read of one session.
#[derive(Default)]
struct SessionRows {
    messages: Vec<Vec<Value>>,
    parts: Vec<Vec<Value>>,
    calls: Vec<Vec<Value>>,
    /// The message of each record, by the record's number.
    message_of: HashMap<u32, String>,
}

impl Archive {
    pub(super) fn fill(
        &mut self,
        connection: &Connection,
        reads: &Reads,
        mut everything: Vec<(Box<SessionRow>, Source)>,
        is_in_scope: &(dyn Fn(&SessionRow) -> bool + Sync),
        price: &dyn Fn(&str, Usage) -> Option<Cost>,
    ) -> rusqlite::Result<Vec<ReadError>> {
        let reads_table = |table: &str| reads.iter().any(|(read, _)| read == table);
        let reads_column = |table: &str, column: &str| reads.contains(&(table.to_owned(), column.to_owned()));
        let mut unreadable = Vec::new();
        connection.execute_batch("begin")?;
        if reads_column("sessions", "state") {
            let sources = everything.into_iter().map(|(_, source)| source).collect();
            let listing = self.describe(sources, listing::Depth::Whole, &|| {});
            unreadable.extend(listing.unreadable);
            everything = listing.sessions;
        }
        if reads_table("sessions") {
            sessions(connection, everything.iter().map(|(row, _)| &**row).filter(|row| is_in_scope(row)))?;
        }
        let mut messages_of = HashMap::new();
        let reads_messages = ["messages", "parts", "tool_calls"].iter().any(|table| reads_table(table));
        if reads_messages || reads_column("usage", "message") {
            let in_scope: Vec<(Box<SessionRow>, Source)> =
                everything.iter().filter(|(row, _)| is_in_scope(row)).cloned().collect();
            for some in in_scope.chunks(SESSIONS_AT_ONCE) {
                let (places, now) = (self.places.clone(), self.now);
                let reader = Reader { places: &places, now };
                let read = |(row, source): &(Box<SessionRow>, Source)| {
                    let session = reader.session(source, None)?;
                    session_rows(&session, row).map(|rows| (source.clone(), rows))
                };
                let read: Vec<scrollback::Result<(Source, SessionRows)>> = some.par_iter().map(read).collect();
                for session in read {
                    match session {
                        Ok((source, rows)) => {
                            insert(connection, "messages", 9, rows.messages)?;
                            insert(connection, "parts", 7, rows.parts)?;
                            insert(connection, "tool_calls", 7, rows.calls)?;
                            messages_of.insert(crate::index::Place::of(&source), rows.message_of);
                        }
                        Err(error) => unreadable.push(error),
                    }
                }
            }
        }
        if reads_table("usage") {
            unreadable.extend(self.usage(connection, everything, is_in_scope, &messages_of, price)?);
        }
        connection.execute_batch("commit")?;
        Ok(unreadable)
    }

    fn usage(
        &mut self,
        connection: &Connection,
        everything: Vec<(Box<SessionRow>, Source)>,
        is_in_scope: &(dyn Fn(&SessionRow) -> bool + Sync),
        messages_of: &HashMap<crate::index::Place, HashMap<u32, String>>,
        price: &dyn Fn(&str, Usage) -> Option<Cost>,
    ) -> rusqlite::Result<Vec<ReadError>> {
        let counted = self.count(everything, is_in_scope, &|| {});
        let elected = Elected::among(&counted.sessions);
        let mut statement =
            connection.prepare("insert into usage values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?;
        for (at, session) in counted.sessions.iter().enumerate().filter(|(_, session)| session.is_in_scope) {
            let messages = messages_of.get(&crate::index::Place::of(&counted.sources[at]));
            for (request, reason) in session.counts.requests.iter().zip(&elected.requests[at]) {
                let is_counted = *reason == Reason::Counted;
                let request = &if is_counted { elected.whole(request) } else { *request };
                let usage = request.usage();
                let model = request.model.and_then(|model| session.counts.models.get(usize::from(model)));
                let cost = request.cost.known().or_else(|| price(model?, usage)).map(|cost| cost.to_usd());
                let count = |count: Option<u64>| count.map(|count| count as i64);
                statement.execute(params![
                    format!("{:016x}", request.id),
                    session.row.id.as_str(),
                    messages.and_then(|messages| messages.get(&request.record)),
                    model,
                    request.at.and_then(|at| Timestamp::from_microsecond(at).ok()).map(|at| at.to_string()),
                    count(usage.input),
                    count(usage.output),
                    count(usage.cache_read),
                    count(usage.cache_write),
                    count(usage.reasoning),
                    cost,
                    is_counted,
                ])?;
            }
        }
        Ok(counted.unreadable)
    }
}

fn sessions<'r>(connection: &Connection, rows: impl Iterator<Item = &'r SessionRow>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("insert into sessions values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for row in rows {
        statement.execute(params![
            row.id.as_str(),
            row.dialect,
            row.project,
            row.title,
            row.started.map(|at| at.to_string()),
            row.updated.map(|at| at.to_string()),
            row.state.map(|state| state.name()),
            row.path,
            row.kept,
        ])?;
    }
    Ok(())
}

fn insert(connection: &Connection, table: &str, columns: usize, rows: Vec<Vec<Value>>) -> rusqlite::Result<()> {
    let places: Vec<String> = (1..=columns).map(|at| format!("?{at}")).collect();
    let mut statement = connection.prepare_cached(&format!("insert into {table} values ({})", places.join(", ")))?;
    rows.into_iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(drop))
}

fn session_rows(session: &Session, row: &SessionRow) -> scrollback::Result<SessionRows> {
    let id = row.id.as_str();
    let mut rows = SessionRows::default();
    message_rows(session, id, &mut |message| {
        let MessageRow { parts, records, .. } = message;
        let cell = |name: &str| message.cell(name);
        rows.messages.push(vec![
            cell("id"),
            Value::Text(id.to_owned()),
            cell("role"),
            cell("created_at"),
            cell("sequence"),
            cell("parent_id"),
            cell("on_branch"),
            cell("sidechain"),
            cell("text_preview"),
        ]);
        for [part, message, sequence, kind, _, tool, call, state] in parts {
            let part = [part, message, sequence, kind, tool, call, state];
            rows.parts.push(part.into_iter().cloned().collect());
        }
        for record in records {
            rows.message_of.entry(*record).or_insert_with(|| message.id.clone());
        }
        Ok(())
    })?;
    let mut known = HashSet::new();
    for head in session.heads() {
        let branch = session.branch(head.record);
        let conversation = Conversation::new(&branch);
        for calls in tool_calls::of(&conversation) {
            for call in calls? {
                if !known.insert((call.message.clone(), call.call_id.clone())) {
                    continue;
                }
                let failed = i64::from(call.has_failed());
                rows.calls.push(vec![
                    Value::Text(call.call_id),
                    Value::Text(id.to_owned()),
                    Value::Text(format!("{id}#{}", call.message)),
                    Value::Text(call.name),
                    Value::Text(call.state.name().to_owned()),
                    Value::Integer(failed),
                    call.duration_ms.map_or(Value::Null, |ms| Value::Integer(i64::try_from(ms).unwrap_or(i64::MAX))),
                ]);
            }
        }
    }
    Ok(rows)
}

/// The texts of parts, read when they are asked for.
pub(super) struct PartTexts {
    places: Places,
    now: Timestamp,
    sources: HashMap<String, Source>,
    /// The session that was read last, and the texts of its parts.
    last: Option<(String, HashMap<String, String>)>,
}

impl PartTexts {
    pub(super) fn new(places: Places, now: Timestamp, sources: Vec<(String, Source)>) -> PartTexts {
        PartTexts { places, now, sources: sources.into_iter().collect(), last: None }
    }

    /// The text of the part with this id: `session#message/number`. What is no text is JSON.
    pub(super) fn of(&mut self, id: &str) -> Option<String> {
        let is_known = |(at, _): &(usize, &str)| self.sources.contains_key(&id[..*at]);
        let (end, _) = id.match_indices('#').find(is_known)?;
        let session = &id[..end];
        if self.last.as_ref().is_none_or(|(known, _)| known != session) {
            let source = self.sources.get(session)?;
            let read = Reader { places: &self.places, now: self.now }.session(source, None).ok()?;
            let mut texts = HashMap::new();
            message_rows(&read, session, &mut |message| {
                for [id, _, _, _, content, ..] in &message.parts {
                    if let (Value::Text(id), Value::Text(content)) = (id, content) {
                        texts.insert(id.clone(), content.clone());
                    }
                }
                Ok(())
            })
            .ok()?;
            self.last = Some((session.to_owned(), texts));
        }
        self.last.as_ref().and_then(|(_, texts)| texts.get(id).cloned())
    }
}
