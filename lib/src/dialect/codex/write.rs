//! Writes Codex's files: a header, then one line for each item, and beside it the event with which its interface shows it.
//!
//! Lines have no ordinals and items no ids: Codex needs neither if the header has no `history_mode`, and an API may reject
//! the ids that Codex would send. So the id of a record is made from its offset.

mod item;
mod record;
mod result;

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::RolloutFileName;
use crate::dialect::line_builder::{Put, fields};
use crate::dialect::writer::{Adoption, Beginning, Line, Names, Shape, WriteUnit, Writer, is_uuid};
use crate::model::time;

pub(super) static WRITER: Writer = Writer {
    header,
    adopt: Some(adopt),
    stores_display: true,
    ..Writer::new(WriteUnit::Block, Shape::Linear, place, record::lines)
};

/// The program in the header.
const ORIGINATOR: &str = "scrollback";

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    if !is_uuid(session) {
        return Err(format!("the id of a Codex session must be a UUID; {session:?} is none"));
    }
    if beginning.cwd.to_str().is_none() {
        return Err(format!("Codex needs a working directory in UTF-8; {:?} is not", beginning.cwd));
    }
    // Codex uses the local time; the library does not know the time zone.
    let time = beginning.at.strftime("%Y-%m-%dT%H-%M-%S").to_string();
    let name = RolloutFileName { time: &time, session, segment: None, compressed: false }.render();
    let day = beginning.at.strftime("sessions/%Y/%m/%d").to_string();
    Ok(PathBuf::from(day).join(name))
}

fn header(beginning: &Beginning<'_>) -> Vec<Line> {
    let mut meta = fields(json!({
        "id": beginning.session.as_str(),
        "timestamp": time::millis(beginning.at),
        "cwd": beginning.cwd.to_string_lossy(),
        "originator": ORIGINATOR,
        "cli_version": beginning.version,
    }));
    meta.put_some("git", beginning.git_branch.map(|branch| json!({"branch": branch})));
    meta.put_some("forked_from_id", beginning.forked_from.map(|(session, _)| session.as_str()));
    vec![line(beginning.at, "session_meta", meta.into(), Names::Side)]
}

/// A line that names its session names the new one. The header names the session that was forked, and no other file that
/// the session starts in.
fn adopt(mut line: Value, to: &Adoption<'_>) -> Value {
    let (session, from) = (to.session.as_str(), to.from.0.as_str());
    let is_header = line["type"] == "session_meta";
    let Some(Value::Object(payload)) = line.get_mut("payload") else { return line };
    if is_header {
        let of_parent = ["history_base", "forked_from_ordinal_exclusive", "history_mode", "parent_thread_id"];
        // The fork of a sub-agent's session is not a sub-agent's.
        let is_of_parent =
            |key: &str, value: &Value| of_parent.contains(&key) || (key == "source" && value.get("subagent").is_some());
        payload.retain(|key, value| !is_of_parent(key, value));
        payload.put("forked_from_id", from);
        payload.put("id", session);
    }
    for key in ["thread_id", "session_id"] {
        if let Some(known) = payload.get_mut(key).filter(|known| **known == from) {
            *known = session.into();
        }
    }
    line
}

fn line(at: Timestamp, kind: &str, payload: Value, names: Names) -> Line {
    Line { value: json!({"timestamp": time::millis(at), "type": kind, "payload": payload}), names }
}
