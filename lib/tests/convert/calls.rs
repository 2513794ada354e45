//! Calls and their results: every call has an id of its own, and the result that people see with it.

use std::collections::HashSet;

use scrollback::message::Part;
use scrollback::session::Session;
use scrollback::writing::LossKind;
use serde_json::{Value, json};

use super::further::claude_lines;
use super::{convert, folder, named, open, session, support, valid};

/// The calls of a session's branch: the name of the tool and what it gave back. No two have the same id.
fn calls(session: &Session) -> Vec<(String, Value)> {
    let mut ids = HashSet::new();
    let messages = support::messages(session);
    let parts = messages.iter().flat_map(|message| &message.parts);
    let calls = parts.filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
    let mut told = |call: &scrollback::message::ToolPart| {
        assert!(ids.insert(call.call_id.clone()) || session.dialect().name() == "claude-code", "{}", call.call_id);
        (call.name.clone(), call.output().cloned().unwrap_or_default())
    };
    calls.map(|call| told(call)).collect()
}

/// Answers one after another: the ids of their calls, then ids with results. A prompt stands before each that says so.
type Answer = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

#[test]
fn calls_that_share_an_id_keep_their_results() {
    let cases: [&[Answer]; 6] = [
        &[("Both.", &["same", "same"], &[("same", "one"), ("same", "two")])],
        &[("Both.", &["same", "same"], &[("same", "one")])],
        &[("First.", &["c"], &[("c", "one")]), ("", &["c"], &[("c", "two")]), ("Then.", &["c"], &[("c", "three")])],
        &[("First.", &["c"], &[]), ("Then.", &["c"], &[("c", "two")])],
        &[("First.", &["c", "c"], &[("c", "one"), ("c", "two")]), ("Then.", &["c_2"], &[("c_2", "three")])],
        &[("First.", &["c"], &[("c", "one")]), ("Then.", &["d"], &[("d", "two"), ("c", "again")])],
    ];
    for (case, to) in (0..cases.len())
        .flat_map(|case| ["native", "codex", "qwen-code", "sage-el", "ai-sdk"].into_iter().map(move |to| (case, to)))
    {
        let mut messages = Vec::new();
        for (at, (prompt, made, given)) in cases[case].iter().enumerate() {
            if !prompt.is_empty() {
                messages.push(json!({"role": "user", "content": prompt}));
            }
            let call = |(nth, id): (usize, &&str)| json!({"type": "tool_use", "id": id, "name": format!("tool-{at}-{nth}"), "input": {}});
            let result = |(id, text): &(&str, &str)| json!({"type": "tool_result", "tool_use_id": id, "content": text});
            let made: Vec<Value> = made.iter().enumerate().map(call).collect();
            messages.push(json!({"role": "assistant", "id": format!("m{at}"), "model": "x", "content": made}));
            if !given.is_empty() {
                messages.push(json!({"role": "user", "content": given.iter().map(result).collect::<Vec<_>>()}));
            }
        }
        let lines = claude_lines(&messages);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let now = open(named(to), &converted.path);
        assert_eq!(calls(&now), calls(&source), "case {case} \u{2192} {to}");
        valid::check(&now).unwrap_or_else(|why| panic!("case {case} \u{2192} {to}: {why}"));
    }
}

#[test]
fn a_result_on_another_branch_is_no_result_of_this_one() {
    let lines = [
        r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Look."}}"#,
        r#"{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","content":"","toolCalls":[{"id":"c","name":"left","arguments":{}}]}}"#,
        r#"{"type":"assistant","uuid":"b","parentUuid":"u","message":{"role":"assistant","content":"","toolCalls":[{"id":"c","name":"right","arguments":{}}]}}"#,
        r#"{"type":"tool_result","uuid":"ra","parentUuid":"a","toolResults":[{"toolCallId":"c","content":"of the left","success":true}]}"#,
        r#"{"type":"tool_result","uuid":"rb","parentUuid":"b","toolResults":[{"toolCallId":"c","content":"of the right","success":true}]}"#,
    ];
    for to in ["claude-code", "qwen-code"] {
        let folder = folder();
        let source = session("native", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let text = std::fs::read_to_string(&converted.path).unwrap();
        assert!(!converted.losses.iter().any(|row| row.kind == LossKind::Dropped), "{to}: {:?}", converted.losses);
        assert!(text.contains("of the left"), "{to}");
        let now = open(named(to), &converted.path);
        assert_eq!(calls(&now), [("right".to_owned(), json!("of the right"))], "{to}");
    }
}

#[test]
fn a_result_is_called_as_its_call_is() {
    let lines = [
        r#"{"role":"user","content":"Look.","timestamp":"2026-11-07T18:02:12+0100"}"#,
        r#"{"role":"assistant","content":"","timestamp":"2026-11-07T18:02:19+0100","tool_calls":[{"name":"read","args":{},"result":"ebb"},{"name":"write","args":{},"result":"flow"}]}"#,
    ];
    for to in ["qwen-code", "native"] {
        let folder = folder();
        let source = session("sage-el", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        assert!(!converted.losses.iter().any(|row| row.what == "tool name"), "{to}: {:?}", converted.losses);
        assert!(!std::fs::read_to_string(&converted.path).unwrap().contains("unknown"), "{to}");
    }
}
