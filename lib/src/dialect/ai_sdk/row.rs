//! A row of Smithers' `agents` table: a prompt, and what came of it. Each row is a session.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::{Event, Link, Moment, SessionFacts};
use super::moment;
use crate::dialect::layout::Rows;
use crate::model::lenient::{Count, Text};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Usage};

/// How sessions lie in the database. Another program's table of this name lacks the columns that are asked for.
pub(super) static AGENTS: Rows = Rows {
    table: "agents",
    columns: &["id", "prompt", "status", "model"],
    sessions: "SELECT rowid, id FROM agents ORDER BY rowid",
    rows: "SELECT rowid, * FROM agents WHERE rowid = ?1",
    row: "SELECT * FROM agents WHERE rowid = ?1",
    log: Some(("log_path", "SELECT log_path FROM agents WHERE rowid = ?1")),
};

/// What the tree must know of a row.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Row<'a> {
    #[serde(default)]
    id: Text<'a>,
    #[serde(borrow)]
    prompt: &'a RawValue,
    #[serde(default)]
    status: Text<'a>,
    #[serde(default)]
    model: Text<'a>,
    #[serde(default)]
    result: Text<'a>,
    #[serde(default)]
    result_structured: Text<'a>,
    #[serde(default)]
    error: Text<'a>,
    #[serde(default)]
    created_at: Moment<'a>,
    #[serde(default)]
    started_at: Moment<'a>,
    #[serde(default)]
    completed_at: Moment<'a>,
    #[serde(default)]
    tokens_input: Count,
    #[serde(default)]
    tokens_output: Count,
}

/// The columns of tokens, in and out.
const COUNTS: [&str; 2] = ["tokens_input", "tokens_output"];

/// The statuses of a row; others are reported.
const STATUSES: &[&str] = &["pending", "running", "completed", "failed", "cancelled"];

/// The prompt is a record, and so is the row itself once it has something to tell.
pub(super) fn link<'a>(text: &'a str, row: Row<'a>, emit: &mut dyn FnMut(Event<'a>)) {
    let first = |moments: [&Moment<'a>; 2]| {
        moments.into_iter().find(|told| !matches!(told, Moment::Absent)).map_or(Moment::Absent, moment)
    };
    let record =
        |text, id, kind, at, failure| Event::Record(Link { id, at, is_failure: failure, ..Link::new(text, kind) });
    let status = row.status.0.clone().unwrap_or_default();
    let id = row.id.clone().some();
    let has_prompt = !matches!(row.prompt.get(), "null" | "\"\"");
    let content = row.result.clone().some().is_some() || row.result_structured.clone().some().is_some();
    let failed = matches!(&*status, "failed" | "cancelled") || row.error.clone().some().is_some();
    let answered = content || failed || status == "completed";
    if has_prompt {
        let id = id.as_deref().map(|id| format!("{id}-prompt").into());
        // While nothing came of it, the prompt is all of the row that is shown: it tells the rest too.
        let told = if answered { row.prompt.get() } else { text };
        emit(record(told, id, Kind::User, first([&row.created_at, &row.started_at]), false));
        emit(Event::WholeMessage);
    }
    if answered {
        emit(record(text, id.clone(), Kind::Assistant, first([&row.completed_at, &row.started_at]), failed));
        emit(Event::WholeMessage);
        let usage = Usage { input: row.tokens_input.0, output: row.tokens_output.0, ..Usage::default() };
        if let Some(usage) = usage.known() {
            emit(Event::Usage { request: None, usage, model: row.model.clone().some(), cost: None });
        }
    } else if !has_prompt {
        emit(record(text, id.clone(), Kind::Header, Moment::Absent, false));
    }
    if !STATUSES.contains(&&*status) {
        emit(Event::UnknownKind(format!("status {status}").into()));
    }
    emit(Event::Facts(SessionFacts { session: id, model: row.model.some(), ..SessionFacts::default() }));
}

/// What came of the prompt, or the prompt while nothing did. Columns that are no part of it tell about it.
pub(super) fn body(row: Value) -> Body {
    let Value::Object(mut row) = row else { return Body::Other(row) };
    let text = |row: &Map<String, Value>, key: &str| {
        row.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (result, error, status) = (text(&row, "result"), text(&row, "error"), text(&row, "status"));
    let structured = text(&row, "result_structured");
    let (model, usage) = (text(&row, "model"), usage(&row));
    let mut parts: Vec<Part> = result.map(Part::text).into_iter().collect();
    parts.extend(structured.map(|told| {
        let told = serde_json::from_str(&told).unwrap_or(Value::String(told));
        Part::data("result-structured", told)
    }));
    let failed = matches!(status.as_deref(), Some("failed" | "cancelled")) || error.is_some();
    let asked = text(&row, "prompt").filter(|_| parts.is_empty() && !failed && status.as_deref() != Some("completed"));
    if let Some(prompt) = asked {
        let parts = vec![Part::text(prompt), Part::data("status", json!({"text": status}))];
        row.retain(|key, value| !value.is_null() && !matches!(key.as_str(), "prompt" | "id"));
        return Body::User(Content { parts, metadata: row, ..Content::default() });
    }
    let why = error.clone().or_else(|| status.clone().filter(|_| failed));
    // A row tells what went wrong, and its kind by its status alone.
    let kind = status.filter(|status| matches!(status.as_str(), "failed" | "cancelled"));
    let kind = why.as_ref().map(|_| kind.unwrap_or_else(|| "error".to_owned()));
    if let Some(why) = &why {
        parts.push(Part::data("error", json!({"text": why})));
    }
    for told in ["prompt", "result", "result_structured", "model", "id", "error"] {
        row.shift_remove(told);
    }
    // What is no number of tokens stays as it is.
    let is_count = |key: &str, value: &Value| COUNTS.contains(&key) && count(value).is_some();
    row.retain(|key, value| !value.is_null() && !is_count(key, value));
    if let Some(why) = &why {
        row.insert("error".to_owned(), why.clone().into());
    }
    Body::Assistant(Content { parts, model, usage, error: kind, metadata: row, ..Content::default() })
}

fn usage(row: &Map<String, Value>) -> Option<Usage> {
    let [input, output] = COUNTS.map(|key| row.get(key).and_then(count));
    Usage { input, output, ..Usage::default() }.known()
}

fn count(value: &Value) -> Option<u64> {
    Count::deserialize(value).ok()?.0
}
