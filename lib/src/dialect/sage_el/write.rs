//! Writes sage's lines: one for each response of the model, its calls with their results inside.
//!
//! Every line follows the rules in `profile.rs`: one of three roles, a text that is not empty, a time in ISO 8601.

mod call;
mod message;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::{CURRENT, aligned_sage_folder_name};
use crate::dialect::line_builder::{Put, fields};
use crate::dialect::resolved_turn;
use crate::dialect::writer::{
    self, Adoption, Beginning, NewRecord, Shape, Tally, WriteUnit, Writer, Written, ended_name, file_name, is_uuid,
};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, SessionId};
use crate::redact::Style;
use message::MessageWriter;

pub(super) static WRITER: Writer = Writer {
    states_session_id,
    sidecar: Some(sidecar),
    adopt: Some(adopt),
    ended_path: Some(ended_path),
    placeholders: Style::Plain,
    ..Writer::new(WriteUnit::Turn, Shape::Linear, place, |draft| resolved_turn::without_fork(draft, lines(draft)))
};

/// A project has one current conversation: the folder is the project's, and the file has always the same name.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let folder = aligned_sage_folder_name(&beginning.project.to_string_lossy());
    Ok(["projects", &file_name(folder)?, CURRENT].iter().collect())
}

/// `session_id` is a UUID. An id that is made from the folder's name is not written: ended sessions would keep it, and two
/// sessions would have the same id.
fn states_session_id(session: &SessionId) -> bool {
    is_uuid(session.as_str())
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let write = |role, content, renamed: Option<Lost>| {
        let mut message = MessageWriter::new(draft, role, content);
        renamed.into_iter().for_each(|what| message.losses.renamed(what));
        message.finish()
    };
    match draft.body {
        _ if draft.sidechain => Written::nothing(Lost::Sidechain),
        // A text beside tool results is the user's; the results are lines of their own.
        Body::User(content) | Body::ToolResult(content) => write("user", content, None),
        Body::Assistant(content) => write("assistant", content, None),
        // sage sends every system line to the model.
        Body::System(content) if content.error.is_some() => write("system", content, Some(Lost::Error)),
        Body::System(content) => write("system", content, (!content.to_model).then_some(Kind::System.into())),
        Body::Attachment(content) if content.to_model => write("system", content, Some(Kind::Attachment.into())),
        // People can still read the summary; for sage's model nothing is cut.
        Body::Compaction(compaction) => match compaction.summary.as_deref() {
            Some("") | None => Written::nothing(Kind::Compaction),
            Some(summary) => write("system", &Content::from([Part::text(summary)]), Some(Kind::Compaction.into())),
        },
        Body::Attachment(_)
        | Body::Snapshot(_)
        | Body::Title(_)
        | Body::Rewind(_)
        | Body::Restore(_)
        | Body::Header(_)
        | Body::Other(_) => Written::nothing(draft.body.kind()),
    }
}

/// `metadata.json` is about the project: its directory, its start and unknown fields stay.
fn sidecar(before: Option<Value>, tally: &Tally) -> Value {
    let mut before = fields(before.unwrap_or_default());
    let mut kept = |key: &str| before.shift_remove(key).filter(Value::is_string);
    let instant = |at: Option<Timestamp>| at.map(|at| Value::from(at.to_string()));
    let known = [
        ("project_dir", kept("project_dir").or(Some(tally.project.clone().into()))),
        ("created_at", kept("created_at").or(instant(tally.started))),
        ("updated_at", instant(tally.updated).or(kept("updated_at"))),
        ("message_count", Some(tally.messages.into())),
        ("total_size", Some(tally.size_bytes.into())),
    ];
    writer::sidecar(known, before)
}

/// Below the current session: `history/20260110-120000.jsonl`, in UTC; sage itself uses the local time.
fn ended_path(conversation: &Path, ended: Timestamp) -> Option<PathBuf> {
    let is_current = conversation.ends_with(CURRENT);
    is_current.then(|| conversation.with_file_name("history").join(ended_name(ended)))
}

/// Only the session changes: the parent of a line is the line before it. A line without a session gets one.
fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    if let Value::Object(fields) = &mut line {
        let is_later = fields.contains_key("sessionId") && !fields.contains_key("session_id");
        fields.put(if is_later { "sessionId" } else { "session_id" }, adoption.session.as_str());
    }
    line
}
