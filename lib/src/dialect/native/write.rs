//! Writes native lines: docs/format.md shows one of every kind.

mod call;
mod line;
mod sidecar;

use std::path::PathBuf;

use hashbrown::HashSet;
use serde_json::{Value, json};

use crate::dialect::line_builder::Put;
use crate::dialect::writer::{Adoption, Beginning, Fragment, Names, NewRecord, Shape, WriteUnit, Writer, Written};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Content, RecordId, TitleSource};
use line::LineWriter;

pub(super) static WRITER: Writer = Writer {
    takes_any_id: true,
    stores_display: true,
    sidecar: Some(sidecar::sidecar),
    adopt: Some(adopt),
    can_restart: true,
    has_user_type: true,
    ..Writer::new(WriteUnit::Fragment, Shape::Tree, place, lines)
};

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    Ok(PathBuf::from("sessions").join(beginning.session.as_str()).join("messages.jsonl"))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut line = LineWriter::new(draft);
    let mut names = Names::Link(draft.id.clone());
    match draft.body {
        Body::User(content) => line.content("user", content),
        Body::Assistant(content) if call_ends(&content.parts).len() > 1 => return fragments(draft, content),
        Body::Assistant(content) => line.content("assistant", content),
        Body::ToolResult(content) => line.content("tool_result", content),
        Body::Attachment(content) => line.content("attachment", content),
        Body::System(content) if content.error.is_some() => line.content("error", content),
        Body::System(content) => line.content("system", content),
        Body::Snapshot(snapshot) => {
            line.start_side("file_history_snapshot", snapshot.message.as_ref());
            line.fields.put("isSnapshotUpdate", snapshot.update);
            line.fields.put("snapshot", snapshot.to_states());
            names = Names::Side;
        }
        Body::Title(title) => {
            let text = title.text.as_str();
            let (kind, key, source) = match title.source {
                TitleSource::Summary => ("summary", "summary", None),
                TitleSource::Automatic => ("custom_title", "title", Some("automatic")),
                TitleSource::Manual | TitleSource::Id | TitleSource::Prompt => {
                    ("custom_title", "title", Some("manual"))
                }
            };
            line.start(kind);
            line.fields.put("parentUuid", Value::Null);
            line.fields.put(key, text);
            line.fields.put_some("titleSource", source);
            names = Names::Aside(draft.id.clone());
        }
        Body::Compaction(compaction) => line.compaction(compaction),
        Body::Rewind(rewind) => {
            line.start("rewind");
            line.fields.put_some("from", rewind.from.as_ref().map(RecordId::as_str));
            line.fields.put_some("reason", rewind.reason.as_deref());
        }
        Body::Restore(restore) => {
            line.start("restore");
            line.fields.put_some("target", restore.target.as_ref().map(RecordId::as_str));
            line.fields.put_some("afterTarget", restore.after_target.then_some(true));
            line.fields.put_some("from", restore.from.as_ref().map(RecordId::as_str));
            line.fields.put_some("operation", restore.operation.as_deref());
            line.fields.put_some("takesBack", restore.takes_back.as_deref());
            line.fields.put("files", restore.files.clone());
            for (key, folders) in [("folders", &restore.folders), ("removedFolders", &restore.removed_folders)] {
                line.fields.put_some(key, Some(folders).filter(|folders| !folders.is_empty()).map(|all| json!(all)));
            }
            line.fields.put_some("todos", restore.todos.as_ref().map(|todos| json!(todos)));
        }
        Body::Header(_) | Body::Other(_) => return Written::nothing(draft.body.kind()),
    }
    line.written(names)
}

/// Where calls end and other parts follow: in a line all calls follow the text, so each such run needs a line of its own.
fn call_ends(parts: &[Part]) -> Vec<usize> {
    let is_call = |at: &usize| matches!(parts.get(*at), Some(Part::Tool(_)));
    (1..=parts.len()).filter(|at| *at == parts.len() || (is_call(&(at - 1)) && !is_call(at))).collect()
}

/// One record as several lines, which the reader joins.
fn fragments(draft: &NewRecord<'_>, content: &Content) -> Written {
    let mut written = Written::default();
    let first = draft.fragment.unwrap_or(Fragment { seq: 0, part: 0 });
    let mut from = 0;
    for (index, to) in call_ends(&content.parts).into_iter().enumerate() {
        let fragment = Fragment { seq: first.seq + index as u64, part: first.part + from as u64 };
        let parts = content.parts[from..to].to_vec();
        let piece = if index == 0 { Content { parts, ..content.clone() } } else { Content::from(parts) };
        let draft = NewRecord { fragment: Some(fragment), body: &Body::Assistant(piece), ..*draft };
        written.lines.extend(lines(&draft).lines);
        from = to;
    }
    let mut ids = HashSet::new();
    let mut calls = content.parts.iter().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
    // The reader takes a repeated call for the end of the first one.
    written.losses.dropped_if(calls.any(|call| !ids.insert(call.call_id.as_str())), Lost::CallId);
    written
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    if let Value::Object(fields) = &mut line {
        fields.put("sessionId", adoption.session.as_str());
        // The fork of a sub-agent's session is not a sub-agent's.
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|key, _| !matches!(key.as_str(), "parentSessionId" | "parentToolCallId"));
        }
        if fields.contains_key("uuid") {
            fields.put("parentUuid", json!(adoption.parent));
        }
        let (session, record) = adoption.from;
        fields.put("forkedFrom", json!({"sessionId": session, "messageUuid": record}));
    }
    line
}
