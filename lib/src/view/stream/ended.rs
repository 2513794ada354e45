//! Whether an agent has said that its answer is finished. Most agents write no such mark: then only time tells.

use serde_json::{Value, json};

use crate::model::record::Kind;
use crate::session::{Branch, RecordRef, Session, State};

/// How many records behind the last answer are searched for a mark: a few counts and notes stand there.
const RECORDS_SEARCHED: usize = 32;

/// Whether the last answer of a branch has its agent's own mark of an end.
pub fn has_ended(session: &Session, branch: &Branch<'_>) -> bool {
    let is_ours = session.dialect().name() == "native";
    // Other agents try again after an error.
    let spoke = |record: &&RecordRef<'_>| {
        matches!(record.kind(), Kind::Assistant | Kind::User | Kind::ToolResult) || (is_ours && record.is_failure())
    };
    let Some(last) = branch.records.iter().rev().find(spoke) else { return false };
    match last.kind() {
        Kind::Assistant => is_marked(session, branch, *last),
        // Our own recorder notes that a turn ends with results; its state is clean only then.
        Kind::ToolResult => is_ours && session.state(branch) == State::Clean,
        // What went wrong.
        Kind::System => true,
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
        // Our own recorder writes pieces while an answer comes, the last one with its tokens or without text, and says of one that was cut
        // off that it was; a whole line is whole. An answer with calls goes on after their results.
        "native" => {
            let lines = lines(last);
            let Some(end) = lines.last() else { return false };
            let is_piece = end.get("fragment").is_some();
            let is_last = !is_piece || !end["usage"].is_null() || end.pointer("/message/content") == Some(&"".into());
            let is_call = |line: &Value| line.pointer("/message/toolCalls").is_some_and(|calls| *calls != json!([]));
            let goes_on = || lines.iter().any(is_call) && session.state(branch) != State::Clean;
            end["metadata"]["interrupted"] == true || (is_last && !goes_on())
        }
        _ => false,
    }
}

fn lines(record: RecordRef<'_>) -> Vec<Value> {
    let pieces = record.raw().unwrap_or_default();
    pieces.iter().filter_map(|piece| serde_json::from_slice(piece).ok()).collect()
}
