//! What a record says that none of our words hold: no other format can get it, so it is told by its key.
//!
//! ```text
//! a record's text ─body─▶ Body ─written in its own dialect─▶ lines     a key of the text that is in neither is not held
//! ```

mod leaves;

use std::collections::BTreeSet;

use hashbrown::HashSet;
use jiff::Timestamp;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::LossRow;
use super::original::Original;
use crate::dialect::Dialect;
use crate::dialect::writer::NewRecord;
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Context, Outcome, RecordId, Restore, SessionId};
use crate::session::read::sanitize;
use crate::session::{RecordRef, Session};
use leaves::{Leaf, Leaves, last_word};

/// So many keys of one record are named; the rest is counted.
const FIELDS_NAMED: usize = 32;

/// A text of so many bytes that stands inside a longer one of the body is there by intent, and not by chance.
const TELLING_BYTES: usize = 8;

/// So many texts of one record are looked for inside others: each is looked for in all.
const TEXTS_LOOKED_FOR: usize = 64;

/// Keys with these last words name, number or place a record, or say what it is: files do that each in their own way, and what comes
/// of it is compared.
const PLACES: [&str; 25] = [
    "id",
    "ids",
    "uuid",
    "ref",
    "parent",
    "session",
    "index",
    "ordinal",
    "seq",
    "fragment",
    "part",
    "turns",
    "sidechain",
    "timestamp",
    "time",
    "ts",
    "at",
    "version",
    "cwd",
    "branch",
    "type",
    "subtype",
    "role",
    "state",
    "status",
];

/// Keys with these last words count tokens: formats count them in their own ways, and their sums are compared.
const COUNTS: [&str; 6] = ["tokens", "input", "output", "cached", "thoughts", "total"];

/// The rows of a session's records. One that is told to be left out as a whole needs no further word.
pub(super) fn rows(session: &Session, kept: Option<&Original>, losses: &[LossRow]) -> Result<Vec<LossRow>> {
    let is_whole = |row: &&LossRow| row.kind == LossKind::Dropped && row.what.is_whole_record();
    let left_out: HashSet<&str> = losses.iter().filter(is_whole).map(|row| row.record.as_str()).collect();
    let mut rows = Vec::new();
    // A row of a database is several records, and of its columns only those are read that somebody knows.
    for record in session.records().filter(|_| !session.is_rows()) {
        let is_said = kept.is_none_or(|kept| kept.is_newer(record)) && !left_out.contains(&*record.id());
        if is_said {
            rows.extend(fields(record)?);
        }
    }
    Ok(rows)
}

/// The row of what nothing holds of a record.
fn fields(record: RecordRef<'_>) -> Result<Option<LossRow>> {
    let mut names = BTreeSet::new();
    for bytes in record.raw()? {
        names.extend(unheld(record, &sanitize::whole(&bytes)));
    }
    let count = names.len() as u64;
    let fields: Vec<String> = names.into_iter().take(FIELDS_NAMED).collect();
    let row = LossRow { record: record.id().into_owned(), what: Lost::Field, kind: LossKind::Dropped, count, fields };
    Ok((count > 0).then_some(row))
}

/// The keys of a record's text that come back neither in its body nor in its own dialect.
fn unheld(record: RecordRef<'_>, text: &str) -> BTreeSet<String> {
    let dialect = record.session.dialect();
    let body = dialect.body(text);
    // These are held whole.
    if matches!(body, Body::Header(_) | Body::Other(_)) {
        return BTreeSet::new();
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return BTreeSet::new() };
    let mut held = Held::default();
    written(dialect, record, &body).iter().for_each(|line| held.add_line(line));
    let told = told_by(&body);
    held.add_body(&body, &told);
    held.missing_in(&value)
}

/// The record in its own dialect's words.
fn written(dialect: &dyn Dialect, record: RecordRef<'_>, body: &Body) -> Vec<Value> {
    let Some(writing) = dialect.writer() else { return Vec::new() };
    let session = SessionId(record.session.id().to_string());
    let id = RecordId(record.id().into_owned());
    let draft = NewRecord {
        session: &session,
        id: &id,
        parent: None,
        answer: &id,
        at: record.at().unwrap_or(Timestamp::UNIX_EPOCH),
        version: record.session.agent_version().unwrap_or_default(),
        body,
        responses: &[],
        context: &Context::default(),
        branches: false,
        sidechain: record.is_sidechain(),
        fragment: None,
        forked_from: None,
        model_before: None,
        last: None,
        new_id: &|| id.to_string(),
    };
    (writing.lines)(&draft).lines.into_iter().map(|line| line.value).collect()
}

/// What is there of a record, by hashes.
#[derive(Default)]
struct Held<'b> {
    /// Ways to what a line says.
    ways: HashSet<u64>,
    /// What stands under a key.
    under: HashSet<u64>,
    /// What is said, under whatever key.
    content: HashSet<u64>,
    texts: Vec<&'b str>,
    counts_tokens: bool,
}

impl<'b> Held<'b> {
    fn add_line(&mut self, line: &Value) {
        let leaves = Leaves::of(line);
        for leaf in leaves.telling() {
            self.ways.insert(leaves.way(leaf));
            self.under.insert(leaf.hash_under(leaves.key(leaf)));
        }
    }

    fn add_body(&mut self, body: &Body, told: &'b Value) {
        let leaves = Leaves::of(told);
        for leaf in leaves.telling() {
            let key = leaves.key(leaf);
            self.under.insert(leaf.hash_under(key));
            // Equal numbers are equal by chance.
            if let Some(text) = leaf.value.as_str().filter(|_| !PLACES.contains(&key)) {
                self.content.insert(leaf.hash_under(""));
                self.texts.extend(Some(text).filter(|text| text.len() >= TELLING_BYTES));
            }
        }
        let parts = body.content().into_iter().flat_map(|content| &content.parts);
        self.content.extend(parts.filter_map(|part| match part {
            Part::Tool(call) => call.input().map(hash_of_input),
            _ => None,
        }));
        self.counts_tokens = body.content().is_some_and(|content| content.usage.is_some());
    }

    /// The topmost keys below which nothing is held.
    fn missing_in(&self, value: &Value) -> BTreeSet<String> {
        let mut leaves = Leaves::of(value);
        let (mut missing, mut held, mut looked_for) = (Vec::new(), Vec::new(), 0);
        for leaf in leaves.telling() {
            let (key, word) = (leaves.key(leaf), last_word(leaves.key(leaf)));
            if PLACES.contains(&word.as_str()) {
                continue;
            }
            let is_count = self.counts_tokens && leaf.value.is_number() && COUNTS.contains(&word.as_str());
            let is_held = is_count
                || self.ways.contains(&leaves.way(leaf))
                || self.under.contains(&leaf.hash_under(key))
                || self.content.contains(&leaf.hash_under(""))
                || self.says_inside(leaf, &mut looked_for);
            if is_held { held.push(leaf.at) } else { missing.push(leaf.at) }
        }
        held.into_iter().for_each(|at| leaves.mark(at));
        missing.into_iter().map(|at| leaves.name_above(at)).collect()
    }

    /// Whether a text is the JSON of what a tool was called with, or stands inside another text.
    fn says_inside(&self, leaf: Leaf<'_>, looked_for: &mut usize) -> bool {
        let Some(text) = leaf.value.as_str().filter(|text| text.len() >= TELLING_BYTES) else { return false };
        let is_input = || {
            let input = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            input.is_some_and(|input| self.content.contains(&hash_of_input(&input)))
        };
        *looked_for += 1;
        (text.starts_with('{') && is_input())
            || (*looked_for <= TEXTS_LOOKED_FOR && self.texts.iter().any(|longer| longer.contains(text)))
    }
}

/// What a body says, as JSON.
fn told_by(body: &Body) -> Value {
    match body {
        Body::User(content)
        | Body::Assistant(content)
        | Body::ToolResult(content)
        | Body::Attachment(content)
        | Body::System(content) => told_by_said(content),
        Body::Snapshot(snapshot) => snapshot.to_states(),
        Body::Title(title) => json!({"text": title.text, "source": title.source}),
        Body::Compaction(compaction) => json!({
            "summary": compaction.summary,
            "trigger": compaction.trigger,
            "tokens": [compaction.tokens_before, compaction.tokens_after],
            "preserved": compaction.preserved,
            "replacement": compaction.replacement.iter().flatten().filter_map(Body::content).map(told_by_said).collect::<Vec<_>>(),
        }),
        Body::Rewind(rewind) => json!({"from": rewind.from, "reason": rewind.reason}),
        Body::Restore(Restore { target, from, files, todos }) => {
            json!({"target": target, "from": from, "files": files, "todos": todos})
        }
        Body::Header(_) | Body::Other(_) => Value::Null,
    }
}

fn told_by_said(content: &Content) -> Value {
    let results: Vec<Value> = content
        .results
        .iter()
        .map(|result| {
            let why = match &result.outcome {
                Outcome::Failed(why) => Some(why),
                Outcome::Denied(why) => why.as_ref(),
                Outcome::Done => None,
            };
            json!({
                "name": result.name, "call": result.call_id, "output": result.output, "why": why,
                "duration": result.duration_ms, "about": result.about,
            })
        })
        .collect();
    let notes: Vec<Value> =
        content.notes.iter().map(|note| json!({"call": note.call_id, "about": note.about})).collect();
    let Context { cwd, git_branch, platform, user_type } = &content.context;
    json!({
        "parts": content.parts,
        "results": results,
        "notes": notes,
        "model": content.model,
        "usage": content.usage,
        "context": [cwd, git_branch, platform, user_type],
        "todos": content.todos,
        "thinking": content.thinking,
        "sender": content.sender,
        "error": content.error,
        "metadata": content.metadata,
    })
}

fn hash_of_input(input: &Value) -> u64 {
    xxh3_64(format!("input\0{input}").as_bytes())
}
