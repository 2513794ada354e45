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
    settings: Some("config.toml"),
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
        "model_provider": provider(beginning.settings.unwrap_or_default()),
        "cli_version": beginning.version,
    }));
    meta.put_some("git", beginning.git_branch.map(|branch| json!({"branch": branch})));
    meta.put_some("forked_from_id", beginning.forked_from.map(|(session, _)| session.as_str()));
    vec![line(beginning.at, "session_meta", meta.into(), Names::Side)]
}

/// Codex's own provider of models, which needs no setting.
const OWN_PROVIDER: &str = "openai";

/// The provider of models that Codex is set to. It continues no session of another one, and at its screen none without one.
///
/// Only a line of its own at the top of the file is read: a profile can choose another provider.
fn provider(settings: &str) -> &str {
    let top = settings.lines().take_while(|line| !line.trim_start().starts_with('['));
    top.filter_map(provider_of).next().unwrap_or(OWN_PROVIDER)
}

/// The name in `model_provider = "name"`.
fn provider_of(line: &str) -> Option<&str> {
    let value = line.trim_start().strip_prefix("model_provider")?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split(quote).next().filter(|name| !name.is_empty())
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
    let mut line = fields(json!({"timestamp": time::millis(at), "type": kind}));
    // Moved: `json!` would copy it, and it may be most of a file.
    line.put("payload", payload);
    Line { value: line.into(), names }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_of_the_provider_that_codex_is_set_to() {
        for (settings, expected) in [
            ("", "openai"),
            ("model = \"m\"\nmodel_provider = \"mine\" # ours\n[model_providers.mine]\n", "mine"),
            ("  model_provider='mine'", "mine"),
            ("[profiles.p]\nmodel_provider = \"other\"", "openai"),
            ("model_providers = \"x\"\nmodel_provider = 5\nmodel_provider = \"\"", "openai"),
            ("model_provider = \"é", "é"),
        ] {
            assert_eq!(provider(settings), expected, "{settings}");
        }
    }
}
