//! Whether an agent has said that its answer is finished. Most agents write no such mark: then only time tells.

use serde_json::Value;

use crate::model::record::Kind;
use crate::session::{Branch, RecordRef, Session, State};

/// How many records behind the last answer are searched for a mark: a few counts and notes stand there.
const RECORDS_SEARCHED: usize = 32;

/// Whether the last answer of a branch has its agent's own mark of an end.
pub fn has_ended(session: &Session, branch: &Branch<'_>) -> bool {
    let spoke = |record: &&RecordRef<'_>| matches!(record.kind(), Kind::Assistant | Kind::User | Kind::ToolResult);
    let Some(last) = branch.records.iter().rev().find(spoke) else { return false };
    match last.kind() {
        Kind::Assistant => is_marked(session, branch, *last),
        // Our own recorder notes that a turn ends with results; its state is clean only then.
        Kind::ToolResult => session.dialect().name() == "native" && session.state(branch) == State::Clean,
        _ => false,
    }
}

fn is_marked(session: &Session, branch: &Branch<'_>, last: RecordRef<'_>) -> bool {
    match session.dialect().name() {
        // Each block of an answer is a line; the last one says why the model stopped.
        "claude-code" => lines(last).iter().any(|line| {
            let reason = line.pointer("/message/stop_reason").and_then(Value::as_str);
            reason.is_some_and(|reason| reason != "tool_use")
        }),
        "codex" => {
            let after =
                session.records().rev().take(RECORDS_SEARCHED).take_while(|record| record.order() > last.order());
            after.flat_map(lines).any(|line| {
                let kind = line.pointer("/payload/type").and_then(Value::as_str);
                matches!(kind, Some("task_complete" | "turn_aborted"))
            })
        }
        // Our own recorder writes pieces while an answer comes, the last one with its tokens or without text; a whole line is whole.
        "native" => {
            let is_piece = |line: &Value| line.get("fragment").is_some();
            let is_empty = |line: &Value| line.pointer("/message/content") == Some(&"".into());
            let is_last = |line: &Value| !is_piece(line) || !line["usage"].is_null() || is_empty(line);
            session.state(branch) == State::Clean && lines(last).last().is_some_and(is_last)
        }
        _ => false,
    }
}

fn lines(record: RecordRef<'_>) -> Vec<Value> {
    let pieces = record.raw().unwrap_or_default();
    pieces.iter().filter_map(|piece| serde_json::from_slice(piece).ok()).collect()
}
