//! A row of Smithers' `agents` table: a prompt and its result. Each row is a session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::{Event, Link, Moment, SessionFacts};
use super::moment;
use crate::dialect::layout::{RecordRows, Rows};
use crate::model::json;
use crate::model::lenient::{self, Count, RawObject};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Usage};

/// How sessions are stored in the database. Another program's table of this name lacks some of the columns.
pub(super) static AGENTS: Rows = Rows {
    table: "agents",
    columns: &["id", "prompt", "status", "model"],
    sessions: "SELECT rowid, id FROM agents ORDER BY rowid",
    rows: "SELECT rowid, * FROM agents WHERE rowid = ?1",
    row: "SELECT * FROM agents WHERE rowid = ?1",
    lists: &[MESSAGES],
    log: Some(("log_path", "SELECT log_path FROM agents WHERE rowid = ?1")),
    records: &[OWN_MESSAGES, MESSAGES_WITH_PARTS, OWN_MESSAGES_AND_PARTS, MESSAGES_AND_PARTS],
};

/// The id of a message. Our own ids begin with the session's.
macro_rules! id {
    () => {
        "iif(substr(m.id, 1, length(a.id) + 1) = a.id || '#', substr(m.id, length(a.id) + 2), m.id)"
    };
}

/// A message as JSON, with these parts.
macro_rules! message {
    ($parts:expr) => {
        concat!(
            "iif(json_valid(m.metadata), json_object('id', ",
            id!(),
            ", 'role', m.role, 'metadata', json(m.metadata), 'parts', json(",
            $parts,
            ")), json_object('id', ",
            id!(),
            ", 'role', m.role, 'parts', json(",
            $parts,
            ")))"
        )
    };
}

/// The messages of a session: this, if they fulfil that. Where parts have no column for their state, its name means the empty one here.
macro_rules! messages {
    ($message:expr, $condition:literal, $follows_log:literal) => {
        RecordRows {
            rows: concat!(
                "SELECT m.rowid, ",
                $message,
                " FROM messages m JOIN agents a ON a.id = m.agent_id, (SELECT NULL AS tool_state) WHERE a.rowid = ?1 AND ",
                $condition,
                " ORDER BY m.sequence"
            ),
            row: concat!(
                "SELECT ",
                $message,
                " FROM messages m JOIN agents a ON a.id = m.agent_id, (SELECT NULL AS tool_state) WHERE m.rowid = ?1"
            ),
            follows_log: $follows_log,
        }
    };
}

/// The tables that `export --to sqlite` writes: with all branches, of which the default one is read.
const OWN_MESSAGES: RecordRows = messages!(
    message!("iif(json_valid(m.parts), m.parts, json_array(json_object('type', 'text', 'text', m.parts)))"),
    "m.on_branch = 1",
    false
);

/// Option B of the proposal: a list of parts in each message.
const MESSAGES_WITH_PARTS: RecordRows = messages!(
    message!("iif(json_valid(m.parts), m.parts, json_array(json_object('type', 'text', 'text', m.parts)))"),
    "true",
    true
);

/// A row for each part, as JSON. Texts are plain, with their state beside them, unless more is known of them; everything else is JSON.
macro_rules! parts_in_rows {
    () => {
        message!(
            "(SELECT json_group_array(json(CASE \
                WHEN p.type IN ('text', 'reasoning') THEN CASE \
                    WHEN json_valid(p.content) THEN iif(json_extract(p.content, '$.type') = p.type, p.content, p.plain) \
                    ELSE p.plain END \
                WHEN json_valid(p.content) THEN p.content \
                WHEN p.type = 'step-start' THEN json_object('type', p.type) \
                ELSE json_object('type', 'data-' || p.type, 'data', p.content) END)) \
              FROM (SELECT type, content, iif(tool_state IS NULL, \
                    json_object('type', type, 'text', coalesce(content, '')), \
                    json_object('type', type, 'text', coalesce(content, ''), 'state', tool_state)) AS plain \
                FROM message_parts WHERE message_id = m.id ORDER BY sequence) p)"
        )
    };
}

/// Option C of the proposal with our columns for branches.
const OWN_MESSAGES_AND_PARTS: RecordRows = messages!(parts_in_rows!(), "m.on_branch = 1", false);

/// Option C of the proposal: a row for each part.
const MESSAGES_AND_PARTS: RecordRows = messages!(parts_in_rows!(), "true", true);

/// The column with UIMessages: the whole conversation, where the program stores it.
const MESSAGES: &str = "messages";

/// The column with the instructions for the model.
const SYSTEM_PROMPT: &str = "system_prompt";

/// The columns of tokens, in and out.
const COUNTS: [&str; 2] = ["tokens_input", "tokens_output"];

/// The statuses of a row; others are reported.
const STATUSES: &[&str] = &["pending", "running", "completed", "failed", "cancelled"];

/// The system prompt and the prompt are records, and so is the row itself once it has a result. If the row has messages,
/// they are the conversation.
pub(super) fn link<'a>(text: &'a str, row: &RawObject<'a>, emit: &mut dyn FnMut(Event<'a>)) {
    let first = |columns: [&str; 2]| {
        let mut moments = columns.into_iter().map(|column| row.get::<Moment<'a>>(column));
        moments.find(|at| !matches!(at, Moment::Absent)).map_or(Moment::Absent, |at| moment(&at))
    };
    let record = |text, id, kind, at, is_failure| Event::Record(Link { id, at, is_failure, ..Link::new(text, kind) });
    let (id, status, model) = (row.text("id"), row.text("status").unwrap_or_default(), row.text("model"));
    let prompt = row.raw("prompt").filter(|prompt| prompt.get() != "\"\"");
    let has_result = row.text("result").is_some() || row.text("result_structured").is_some();
    let failed = matches!(&*status, "failed" | "cancelled") || row.text("error").is_some();
    let answered = has_result || failed || status == "completed";
    let messages = row.raw(MESSAGES).and_then(lenient::elements);
    let is_system = |message: &&RawValue| {
        let role = RawObject::from_raw(message).and_then(|message| message.text("role"));
        role.as_deref() == Some("system")
    };
    let system = system_member(text, row).filter(|_| !messages.iter().flatten().any(is_system));
    if let Some(system) = system {
        let id = id.as_deref().map(|id| format!("{id}-system").into());
        emit(record(system, id, Kind::System, first(["created_at", "started_at"]), false));
        emit(Event::WholeMessage);
    }
    if messages.is_none() && row.text(MESSAGES).is_some_and(|text| !text.is_empty()) {
        emit(Event::Rejected("the column messages is not a list of messages; the other columns are read".to_owned()));
    }
    if let Some(messages) = messages.filter(|messages| !messages.is_empty()) {
        let mut has_usage = false;
        super::link_all(messages, &mut |event| {
            has_usage |= matches!(event, Event::Usage { .. });
            emit(event);
        });
        let kind = if failed { Kind::Assistant } else { Kind::Header };
        let at = first(["completed_at", "started_at"]);
        emit(Event::Record(Link { id: id.clone(), at, is_failure: failed, is_side: !failed, ..Link::new(text, kind) }));
        if failed {
            emit(Event::WholeMessage);
        }
        let [input, output] = COUNTS.map(|column| row.count(column));
        // The messages may have the usage of each request.
        if let Some(total) = (Usage { input, output, ..Usage::default() }).known().filter(|_| !has_usage) {
            emit(Event::TotalUsage { total, last: None });
        }
        return link_facts(id, &status, model, emit);
    }
    if let Some(prompt) = prompt {
        let id = id.as_deref().map(|id| format!("{id}-prompt").into());
        // Without a result the prompt is the only record of the row: it shows the other columns, too.
        let shown = if answered { prompt.get() } else { text };
        emit(record(shown, id, Kind::User, first(["created_at", "started_at"]), false));
        emit(Event::WholeMessage);
    }
    if answered {
        emit(record(text, id.clone(), Kind::Assistant, first(["completed_at", "started_at"]), failed));
        emit(Event::WholeMessage);
        let [input, output] = COUNTS.map(|column| row.count(column));
        if let Some(usage) = (Usage { input, output, ..Usage::default() }).known() {
            emit(Event::Usage { request: None, usage, model: model.clone(), cost: None });
        }
    } else if prompt.is_none() {
        emit(record(text, id.clone(), Kind::Header, Moment::Absent, false));
    }
    link_facts(id, &status, model, emit);
}

fn link_facts<'a>(
    session: Option<Cow<'a, str>>,
    status: &str,
    model: Option<Cow<'a, str>>,
    emit: &mut dyn FnMut(Event<'a>),
) {
    if !STATUSES.contains(&status) {
        emit(Event::UnknownKind(format!("status {status}").into()));
    }
    emit(Event::Facts(SessionFacts { session, model, ..SessionFacts::default() }));
}

/// The system prompt of a row with its key, which distinguishes it from a prompt.
fn system_member<'a>(row_text: &'a str, row: &RawObject<'a>) -> Option<&'a str> {
    let value = row
        .raw(SYSTEM_PROMPT)
        .map(RawValue::get)
        .filter(|value| value.starts_with('"') && *value != "\"\"")?;
    // The value is a piece of the row's text.
    let start = (value.as_ptr() as usize).checked_sub(row_text.as_ptr() as usize)?;
    let key = row_text.get(..start)?.rfind(&format!("\"{SYSTEM_PROMPT}\""))?;
    row_text.get(key..start + value.len())
}

/// The system prompt in a piece of a row that [`system_member`] found.
pub(super) fn system_prompt(piece: &str) -> Option<String> {
    let value = piece.strip_prefix('"')?.strip_prefix(SYSTEM_PROMPT)?.strip_prefix('"')?;
    json::from_str(value.trim_start().strip_prefix(':')?).ok()
}

/// The result of the prompt, or the prompt while there is none. Other columns become metadata.
pub(super) fn body(row: Value) -> Body {
    let Value::Object(mut row) = row else { return Body::Other(row) };
    let text = |row: &Map<String, Value>, key: &str| {
        row.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    // They are records of their own.
    row.shift_remove(SYSTEM_PROMPT);
    let has_messages = row.get(MESSAGES).and_then(Value::as_array).is_some_and(|messages| !messages.is_empty());
    if has_messages {
        ["messages", "prompt", "result"].iter().for_each(|column| _ = row.shift_remove(*column));
    }
    let (result, error, status) = (text(&row, "result"), text(&row, "error"), text(&row, "status"));
    let structured = text(&row, "result_structured");
    let (model, usage) = (text(&row, "model"), usage(&row));
    let mut parts: Vec<Part> = result.map(Part::text).into_iter().collect();
    parts.extend(structured.map(|json| Part::data("result-structured", lenient::parse(&json))));
    let failed = matches!(status.as_deref(), Some("failed" | "cancelled")) || error.is_some();
    if has_messages && !failed {
        return Body::Header(row);
    }
    let open_prompt =
        text(&row, "prompt").filter(|_| parts.is_empty() && !failed && status.as_deref() != Some("completed"));
    if let Some(prompt) = open_prompt {
        let parts = vec![Part::text(prompt), Part::data("status", json!({"text": status}))];
        row.retain(|key, value| !value.is_null() && !matches!(key.as_str(), "prompt" | "id"));
        return Body::User(Content { parts, metadata: row, ..Content::default() });
    }
    let reason = error.clone().or_else(|| status.clone().filter(|_| failed));
    // A row states the reason of a failure; its kind follows from the status.
    let kind = status.filter(|status| matches!(status.as_str(), "failed" | "cancelled"));
    let kind = reason.as_ref().map(|_| kind.unwrap_or_else(|| "error".to_owned()));
    if let Some(reason) = &reason {
        parts.push(Part::data("error", json!({"text": reason})));
    }
    for column in ["prompt", "result", "result_structured", "model", "id", "error"] {
        row.shift_remove(column);
    }
    // A column that is not a number of tokens stays metadata.
    let is_count = |key: &str, value: &Value| COUNTS.contains(&key) && count(value).is_some();
    row.retain(|key, value| !value.is_null() && !is_count(key, value));
    Body::Assistant(Content { parts, model, usage, error: kind, metadata: row, ..Content::default() })
}

fn usage(row: &Map<String, Value>) -> Option<Usage> {
    let [input, output] = COUNTS.map(|key| row.get(key).and_then(count));
    Usage { input, output, ..Usage::default() }.known()
}

fn count(value: &Value) -> Option<u64> {
    Count::deserialize(json::plain(value.clone())).ok()?.0
}
