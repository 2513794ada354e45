//! What each agent demands of a file that it is to go on with.

use scrollback::dialect::sage_el_faults;
use scrollback::history::{History, View};
use scrollback::issue::Severity;
use scrollback::message::{Sdk, takes};
use scrollback::session::Session;
use serde_json::Value;

use super::support::apis::complaints;

/// No error when it is read, the least fields of its format, and a history that its own API takes.
pub(super) fn check(session: &Session) -> Result<(), String> {
    let errors: Vec<_> = session.issues().iter().filter(|issue| issue.severity == Severity::Error).collect();
    if !errors.is_empty() {
        return Err(format!("{errors:?}"));
    }
    let text = std::fs::read_to_string(session.path()).map_err(|error| error.to_string())?;
    let name = session.dialect().name();
    let mut ids = std::collections::HashSet::new();
    for (at, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        least(name, at, line, &value).map_err(|why| format!("line {}: {why}: {line}", at + 1))?;
        if let (Some(id), "claude-code") = (value["uuid"].as_str(), name) {
            ids.insert(id.to_owned()).then_some(()).ok_or_else(|| format!("two records are called {id}"))?;
        }
    }
    let Some(head) = session.head() else { return Ok(()) };
    let history = History::of(session, head).map_err(|error| error.to_string())?;
    for view in View::ALL.into_iter().filter(|view| own_views(name).contains(&view.name())) {
        let sent = view.messages(&history).map_err(|error| error.to_string())?.0;
        if let Some(why) = complaints(view.name(), name, &Value::Array(sent)).into_iter().next() {
            return Err(format!("{}: {why}", view.name()));
        }
    }
    Ok(())
}

fn own_views(dialect: &str) -> &'static [&'static str] {
    match dialect {
        "claude-code" => &["anthropic"],
        "codex" => &["openai-responses"],
        "qwen-code" => &["gemini"],
        "fluux" => &["fluux"],
        "ai-sdk" => &["ai-sdk"],
        _ => &["anthropic", "openai"],
    }
}

/// The least that an agent needs of each line: formats' ablation tables.
fn least(dialect: &str, at: usize, line: &str, value: &Value) -> Result<(), String> {
    let has = |pointers: &[&str]| match pointers.iter().find(|pointer| value.pointer(pointer).is_none()) {
        Some(missing) => Err(format!("{missing} is missing")),
        None => Ok(()),
    };
    let kind = value["type"].as_str().unwrap_or_default();
    match (dialect, kind) {
        ("claude-code", "user" | "assistant") => {
            has(&["/message/content", "/uuid", "/parentUuid", "/timestamp", "/sessionId"])
        }
        ("codex", "session_meta") => {
            has(&["/payload/id", "/payload/timestamp", "/payload/cwd", "/payload/originator", "/payload/cli_version"])
        }
        ("codex", _) if at == 0 => Err("the header is not first".to_owned()),
        ("codex", _) => has(&["/timestamp", "/type", "/payload"]),
        ("qwen-code", "user" | "assistant" | "tool_result") => {
            has(&["/message/role", "/message/parts", "/uuid", "/parentUuid", "/sessionId", "/cwd"])
        }
        ("fluux", "session") if at == 0 => has(&["/version", "/created", "/jid"]),
        ("fluux", "message") if at > 0 => {
            has(&["/role", "/content", "/ts"])?;
            let role = value["role"].as_str();
            matches!(role, Some("user" | "assistant")).then_some(()).ok_or_else(|| format!("role {role:?}"))
        }
        ("fluux", _) => Err("neither the header nor a message".to_owned()),
        ("sage-el", _) => sage_el_faults(line).into_iter().next().map_or(Ok(()), |fault| Err(format!("{fault:?}"))),
        ("ai-sdk", _) => takes(value, Sdk::V7),
        _ => Ok(()),
    }
}
