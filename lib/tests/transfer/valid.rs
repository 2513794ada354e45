//! What each agent demands of a file that it is to go on with.

use scrollback::model::Severity;
use scrollback::session::Session;
use scrollback::view::history::{History, View};
use serde_json::Value;

use super::support::apis::complaints;
use super::support::valid;

/// No error when it is read, a file of its format, and a history that its own API takes.
pub(super) fn check(session: &Session) -> Result<(), String> {
    let errors: Vec<_> = session.issues().iter().filter(|issue| issue.severity == Severity::Error).collect();
    if !errors.is_empty() {
        return Err(format!("{errors:?}"));
    }
    let text = std::fs::read_to_string(session.path()).map_err(|error| error.to_string())?;
    let name = session.dialect().name();
    valid::check(name, &text)?;
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

#[test]
fn a_validator_knows_what_is_wrong() {
    let header = r#"{"type":"session","version":1,"created":"2025-02-08T19:00:00Z","jid":"a@b"}"#;
    let says = |role: &str, more: &str| format!(r#"{{"type":"message","role":"{role}","content":"Hi"{more}}}"#);
    let claude = |uuid: &str, parent: &str, message: &str| {
        let message = format!(r#"{{"id":"{message}","content":[]}}"#);
        format!(
            r#"{{"parentUuid":{parent},"type":"assistant","message":{message},"uuid":"{uuid}","timestamp":"2025-02-08T19:00:00Z","sessionId":"s"}}"#
        )
    };
    for (dialect, text, is_valid) in [
        ("fluux", format!("{header}\n{}", says("user", "")), true),
        ("fluux", format!("{}\n{header}", says("user", "")), false),
        ("fluux", format!("{header}\n{}", says("system", "")), false),
        ("fluux", format!("{header}\n{}", says("user", r#","sender":null"#)), false),
        ("fluux", format!("{header}\n{}", says("user", r#","ts":"2025-02-08T19:00:00Z","msg_id":"x""#)), false),
        ("sage-el", r#"{"role":"user","content":"x","timestamp":"2026-01-11T17:00:00Z"}"#.to_owned(), true),
        ("sage-el", r#"{"role":"user","content":""}"#.to_owned(), false),
        ("sage-el", r#"{"role":"assistant","content":"x","tool_calls":[{"args":{}}]}"#.to_owned(), false),
        ("claude-code", format!("{}\n{}", claude("a", "null", "m"), claude("b", "\"a\"", "m")), true),
        ("claude-code", format!("{}\n{}", claude("a", "null", "m"), claude("b", "\"c\"", "m2")), false),
        ("claude-code", format!("{}\n{}", claude("a", "null", "m"), claude("a", "null", "m2")), false),
        ("claude-code", format!("{}\n{}", claude("a", "null", "m"), claude("b", "null", "m")), false),
        ("ai-sdk", r#"{"id":"a","role":"assistant","parts":[]}"#.to_owned(), true),
        ("ai-sdk", r#"{"id":"a","role":"user","parts":[]}"#.to_owned(), false),
        ("ai-sdk", r#"{"id":"a","role":"user","parts":[{"type":"file","url":"x"}]}"#.to_owned(), false),
    ] {
        assert_eq!(valid::check(dialect, &text).is_ok(), is_valid, "{text}: {:?}", valid::check(dialect, &text));
    }
}
