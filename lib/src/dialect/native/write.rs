//! How native lines are written: docs/format.md shows one of every kind.

mod call;
mod fields;
mod sidecar;

use std::path::PathBuf;

use hashbrown::HashSet;
use serde_json::{Value, json};

use crate::dialect::writer::{Adoption, Beginning, Fragment, Names, NewRecord, Shape, WriteUnit, Writer, Written};
use crate::model::loss::{Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, RecordId, TitleSource};
use fields::Fields;

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Fragment,
    shape: Shape::Tree,
    tells_session: |_| true,
    takes_any_id: true,
    is_with_somebody: false,
    place,
    header: |_| Vec::new(),
    lines,
    sidecar: Some(sidecar::sidecar),
    adopt: Some(adopt),
    ended_path: None,
};

fn place(new: &Beginning<'_>) -> Result<PathBuf, String> {
    Ok(PathBuf::from("sessions").join(new.session.as_str()).join("messages.jsonl"))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut line = Fields::new(draft);
    match draft.body {
        Body::User(content) => line.content("user", content),
        Body::Assistant(content) if call_ends(&content.parts).len() > 1 => return in_pieces(draft, content),
        Body::Assistant(content) => line.content("assistant", content),
        Body::ToolResult(content) => line.content("tool_result", content),
        Body::Attachment(content) => line.content("attachment", content),
        Body::System(content) if content.error.is_some() => line.content("error", content),
        Body::System(content) => line.content("system", content),
        Body::Snapshot(snapshot) => {
            line.begin_aside("file_history_snapshot", snapshot.message.as_ref());
            line.put("isSnapshotUpdate", snapshot.update.into());
            line.put("snapshot", snapshot.to_states());
            return Written { lines: vec![line.names(Names::Side)], losses: Losses::default() };
        }
        Body::Title(title) => {
            line.begin("custom_title");
            line.put("parentUuid", Value::Null);
            match title.source {
                TitleSource::Summary => {
                    line.put("type", "summary".into());
                    line.put("summary", title.text.as_str().into());
                }
                TitleSource::Automatic => {
                    line.put("title", title.text.as_str().into());
                    line.put("titleSource", "automatic".into());
                }
                TitleSource::Manual | TitleSource::Id | TitleSource::Prompt => {
                    line.put("title", title.text.as_str().into());
                    line.put("titleSource", "manual".into());
                }
            }
            return Written { lines: vec![line.names(Names::Aside(draft.id.clone()))], losses: Losses::default() };
        }
        Body::Compaction(compaction) => line.compaction(compaction),
        Body::Rewind(rewind) => {
            line.begin("rewind");
            line.some("from", rewind.from.as_ref().map(RecordId::as_str));
            line.some("reason", rewind.reason.as_deref());
        }
        Body::Restore(restore) => {
            line.begin("restore");
            line.some("target", restore.target.as_ref().map(RecordId::as_str));
            line.some("from", restore.from.as_ref().map(RecordId::as_str));
            line.put("files", restore.files.clone());
            line.some("todos", restore.todos.as_ref());
        }
        Body::Header(_) | Body::Other(_) => return Written::nothing(draft.body.kind()),
    }
    Written::link(draft.id, line.map.into())
}

/// Where the calls end and words follow: a line has its calls behind its words, so that each such run is a line of its own.
fn call_ends(parts: &[Part]) -> Vec<usize> {
    let is_call = |at: &usize| matches!(parts.get(*at), Some(Part::Tool(_)));
    (1..=parts.len()).filter(|at| *at == parts.len() || (is_call(&(at - 1)) && !is_call(at))).collect()
}

/// One record as several lines, which the reader joins.
fn in_pieces(draft: &NewRecord<'_>, content: &Content) -> Written {
    let mut written = Written::default();
    let first = draft.fragment.unwrap_or(Fragment { seq: 0, part: 0 });
    let mut from = 0;
    for (piece, to) in call_ends(&content.parts).into_iter().enumerate() {
        let fragment = Fragment { seq: first.seq + piece as u64, part: first.part + from as u64 };
        let parts = content.parts[from..to].to_vec();
        let piece = if piece == 0 { Content { parts, ..content.clone() } } else { Content::from(parts) };
        let draft = NewRecord { fragment: Some(fragment), body: &Body::Assistant(piece), ..*draft };
        written.lines.extend(lines(&draft).lines);
        from = to;
    }
    let ids: Vec<&str> = content
        .parts
        .iter()
        .filter_map(|part| if let Part::Tool(call) = part { Some(&*call.call_id) } else { None })
        .collect();
    let distinct: HashSet<&str> = ids.iter().copied().collect();
    if distinct.len() < ids.len() {
        // The reader takes a call that comes again for the first one, finished.
        return written.without(Lost::CallId);
    }
    written
}

fn adopt(mut line: Value, by: &Adoption<'_>) -> Value {
    if let Value::Object(fields) = &mut line {
        fields.insert("sessionId".to_owned(), by.session.as_str().into());
        if fields.contains_key("uuid") {
            fields.insert("parentUuid".to_owned(), json!(by.parent));
        }
        let (session, record) = by.from;
        fields.insert("forkedFrom".to_owned(), json!({"sessionId": session, "messageUuid": record}));
    }
    line
}
