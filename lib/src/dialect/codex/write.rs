//! How Codex's files are written: a header, then an item a line, and beside it the event by which its interface shows it.
//!
//! Lines have no ordinals and items no ids: Codex asks for neither where the header names no `history_mode`, and what it
//! sends of them an API may refuse. So a record is called after its place.

mod item;
mod result;
mod script;

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::RolloutFileName;
use crate::dialect::writer::{Adoption, Beginning, Line, Names, NewRecord, Shape, WriteUnit, Writer, Written, is_uuid};
use crate::model::loss::Lost;
use crate::model::time;
use script::Script;

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Block,
    shape: Shape::Linear,
    tells_session: |_| true,
    takes_any_id: false,
    is_with_somebody: false,
    place,
    header,
    lines,
    sidecar: None,
    adopt: Some(adopt),
    ended_path: None,
};

/// Who writes, as the header tells it.
const ORIGINATOR: &str = "scrollback";

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    if !is_uuid(session) {
        return Err(format!("Codex names its sessions by UUIDs, and {session:?} is none"));
    }
    if beginning.cwd.to_str().is_none() {
        return Err(format!("Codex writes its working directory as UTF-8, and {:?} is not", beginning.cwd));
    }
    // Codex goes by the clock on the wall; nobody told us where that is.
    let time = beginning.at.strftime("%Y-%m-%dT%H-%M-%S").to_string();
    let name = RolloutFileName { time: &time, session, compressed: false }.render();
    let day = beginning.at.strftime("sessions/%Y/%m/%d").to_string();
    Ok(PathBuf::from(day).join(name))
}

fn header(beginning: &Beginning<'_>) -> Vec<Line> {
    let at = time::millis(beginning.at);
    let mut meta = json!({
        "id": beginning.session.as_str(),
        "timestamp": at,
        "cwd": beginning.cwd.to_string_lossy(),
        "originator": ORIGINATOR,
        "cli_version": beginning.version,
    });
    if let Some(branch) = beginning.git_branch {
        meta["git"] = json!({"branch": branch});
    }
    if let Some((session, _)) = beginning.forked_from {
        meta["forked_from_id"] = session.as_str().into();
    }
    vec![line(beginning.at, "session_meta", meta, Names::Side)]
}

/// A line that tells its session tells the new one. A header's lineage is the fork's, and it begins in no other file any more.
fn adopt(mut line: Value, to: &Adoption<'_>) -> Value {
    let (session, from) = (to.session.as_str(), to.from.0.as_str());
    let is_header = line["type"] == "session_meta";
    let Some(Value::Object(payload)) = line.get_mut("payload") else { return line };
    if is_header {
        let of_parent = ["history_base", "forked_from_ordinal_exclusive", "history_mode"];
        payload.retain(|key, _| !of_parent.contains(&key.as_str()));
        payload.insert("forked_from_id".to_owned(), from.into());
        payload.insert("id".to_owned(), session.into());
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

fn lines(draft: &NewRecord<'_>) -> Written {
    if draft.sidechain {
        return Written::nothing(Lost::Sidechain);
    }
    Script::of(draft)
}
