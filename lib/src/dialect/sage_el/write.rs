//! How sage's lines are written: one for each response of the model, its calls with their results inside.
//!
//! Every line keeps the rules of `profile.rs`: a role of three, a text that is not empty, a time in ISO 8601.

mod call;
mod telling;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::{CURRENT, aligned_sage_folder_name};
use crate::dialect::line_builder;
use crate::dialect::resolved_turn;
use crate::dialect::writer::{
    self, Adoption, Beginning, NewRecord, Shape, Tally, WriteUnit, Writer, Written, ended_name, file_name, is_uuid,
};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Kind, SessionId};
use telling::Telling;

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Turn,
    shape: Shape::Linear,
    tells_session,
    takes_any_id: false,
    is_with_somebody: false,
    place,
    header: |_| Vec::new(),
    lines: |draft| resolved_turn::told_of_fork(draft, lines(draft)),
    sidecar: Some(sidecar),
    adopt: Some(adopt),
    ended_path: Some(ended_path),
};

/// A project has one current conversation: its folder is the project's, and the file is always called the same.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let folder = aligned_sage_folder_name(&beginning.project.to_string_lossy());
    Ok(["projects", &file_name(folder)?, CURRENT].iter().collect())
}

/// `session_id` is a UUID. A session that is called after its folder is told by the folder: written down, the name would go
/// to the ended sessions with it, and two sessions would have it.
fn tells_session(session: &SessionId) -> bool {
    is_uuid(session.as_str())
}

fn lines(draft: &NewRecord<'_>) -> Written {
    match draft.body {
        _ if draft.sidechain => Written::nothing(Lost::Sidechain),
        Body::User(content) => Telling::of("user", content).finish(draft),
        Body::Assistant(content) => Telling::of("assistant", content).finish(draft),
        // What somebody says while tools run is the user's; the results are lines of their own.
        Body::ToolResult(content) => Telling::of("user", content).finish(draft),
        Body::System(content) => notice(draft, content),
        Body::Attachment(content) if content.to_model => {
            let mut telling = Telling::of("system", content);
            telling.written.losses.renamed(Kind::Attachment);
            telling.finish(draft)
        }
        Body::Attachment(_) => Written::nothing(Kind::Attachment),
        Body::Compaction(compaction) => summary(draft, compaction),
        Body::Snapshot(_) | Body::Title(_) | Body::Rewind(_) | Body::Restore(_) | Body::Header(_) | Body::Other(_) => {
            Written::nothing(draft.body.kind())
        }
    }
}

/// sage sends every system line to the model.
fn notice(draft: &NewRecord<'_>, content: &Content) -> Written {
    let mut telling = Telling::of("system", content);
    if content.error.is_some() {
        telling.written.losses.renamed(Lost::Error);
    } else if !content.to_model {
        telling.written.losses.renamed(Kind::System);
    }
    telling.finish(draft)
}

/// People still find the summary; for sage's model nothing is cut.
fn summary(draft: &NewRecord<'_>, compaction: &Compaction) -> Written {
    let Some(summary) = compaction.summary.as_ref().filter(|summary| !summary.is_empty()) else {
        return Written::nothing(Kind::Compaction);
    };
    let content = Content { parts: vec![Part::text(summary)], ..Content::default() };
    let mut telling = Telling::of("system", &content);
    telling.written.losses.renamed(Kind::Compaction);
    telling.finish(draft)
}

/// metadata.json is the project's: whose it is and since when stays, and so does what else it says.
fn sidecar(earlier: Option<Value>, tally: &Tally) -> Value {
    let mut earlier = line_builder::fields(earlier.unwrap_or_default());
    let mut kept = |key: &str| earlier.shift_remove(key).filter(Value::is_string);
    let instant = |at: Option<Timestamp>| at.map(|at| Value::from(at.to_string()));
    let told = [
        ("project_dir", kept("project_dir").or(Some(tally.project.clone().into()))),
        ("created_at", kept("created_at").or(instant(tally.started))),
        ("updated_at", instant(tally.updated).or(kept("updated_at"))),
        ("message_count", Some(tally.messages.into())),
        ("total_size", Some(tally.size_bytes.into())),
    ];
    writer::sidecar(told, earlier)
}

/// Below the session that goes on: `history/20260110-120000.jsonl`, by the clock of Greenwich; sage itself takes that of the
/// place, so that only its own names sort as they came to be.
fn ended_path(conversation: &Path, ended: Timestamp) -> Option<PathBuf> {
    conversation
        .ends_with(CURRENT)
        .then(|| conversation.with_file_name("history").join(ended_name(ended)))
}

/// Only the session changes: a line hangs on the one before it. One without a session gets one, which names its new file.
fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    if let Value::Object(fields) = &mut line {
        let of_later = fields.contains_key("sessionId") && !fields.contains_key("session_id");
        let key = if of_later { "sessionId" } else { "session_id" };
        fields.insert(key.to_owned(), adoption.session.as_str().into());
    }
    line
}
