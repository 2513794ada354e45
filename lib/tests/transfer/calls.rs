//! Calls and their results: every call has an id of its own, and the result that people see with it.

use std::collections::HashSet;
use std::fs;

use scrollback::model::{LossKind, Part};
use scrollback::session::Session;
use serde_json::{Value, json};

use super::further::claude_lines;
use super::support::effort::check_linear;
use super::{convert, folder, named, open, outline, session, support, valid};

/// The calls of a session's branch: the name of the tool and what it gave back. No two have the same id.
fn calls(session: &Session) -> Vec<(String, Value)> {
    let mut ids = HashSet::new();
    let messages = support::messages(session);
    let parts = messages.iter().flat_map(|message| &message.parts);
    let calls = parts.filter_map(|part| if let Part::Tool(call) = part { Some(call.as_ref()) } else { None });
    let name_and_output = |call: &scrollback::model::ToolPart| {
        assert!(ids.insert(call.call_id.clone()) || session.dialect().name() == "claude-code", "{}", call.call_id);
        (call.name.clone(), call.output().cloned().unwrap_or_default())
    };
    calls.map(name_and_output).collect()
}

/// Consecutive answers: the ids of their calls, then ids with results, and a prompt before them if there is one.
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
        let text = fs::read_to_string(&converted.path).unwrap();
        assert!(!converted.losses.iter().any(|row| row.kind == LossKind::Dropped), "{to}: {:?}", converted.losses);
        assert!(text.contains("of the left"), "{to}");
        let now = open(named(to), &converted.path);
        assert_eq!(calls(&now), [("right".to_owned(), json!("of the right"))], "{to}");
    }
}

#[test]
fn a_result_has_the_name_of_its_call() {
    let lines = [
        r#"{"role":"user","content":"Look.","timestamp":"2026-11-07T18:02:12+0100"}"#,
        r#"{"role":"assistant","content":"","timestamp":"2026-11-07T18:02:19+0100","tool_calls":[{"name":"read","args":{},"result":"ebb"},{"name":"write","args":{},"result":"flow"}]}"#,
    ];
    for to in ["qwen-code", "native"] {
        let folder = folder();
        let source = session("sage-el", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        assert!(!converted.losses.iter().any(|row| row.what.name() == "tool name"), "{to}: {:?}", converted.losses);
        assert!(!fs::read_to_string(&converted.path).unwrap().contains("unknown"), "{to}");
    }
}

#[test]
fn a_result_in_a_record_with_text_belongs_to_its_call() {
    let lines = claude_lines(&[
        json!({"role": "user", "content": "How deep?"}),
        json!({"role": "assistant", "id": "m1", "model": "x",
            "content": [{"type": "tool_use", "id": "c1", "name": "sound", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "four"},
            {"type": "text", "text": "Be quick."}]}),
        json!({"role": "assistant", "id": "m2", "model": "x", "content": [{"type": "text", "text": "Four."}]}),
    ]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for to in ["native", "codex", "qwen-code", "sage-el", "ai-sdk"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let is_made_up = |row: &&scrollback::transfer::convert::LossRow| {
            row.kind == LossKind::Synthesised && row.what.name() == "tool call"
        };
        assert_eq!(converted.losses.iter().find(is_made_up), None, "{to}");
        let converted = open(named(to), &converted.path);
        let outline = outline(&converted);
        let calls: Vec<&String> = outline.iter().filter(|line| line.starts_with("call ")).collect();
        assert_eq!(calls, ["call sound: output-available"], "{to}");
        assert!(outline.contains(&"user: Be quick.".to_owned()), "{to}: {outline:?}");
        valid::check(&converted).unwrap();
    }
}

#[test]
fn a_call_without_an_id_is_written_once() {
    let lines = [
        r#"{"role":"user","content":"Look.","timestamp":"2026-11-07T18:02:12+0100"}"#,
        r#"{"role":"assistant","content":"I look.","timestamp":"2026-11-07T18:02:19+0100","tool_calls":[{"name":"read_file","args":{"path":"a"},"result":"ebb","success":true}]}"#,
    ];
    for to in ["native", "claude-code", "codex", "qwen-code", "ai-sdk"] {
        let folder = folder();
        let source = session("sage-el", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let outline = outline(&open(named(to), &converted.path));
        assert_eq!(outline, ["user: Look.", "assistant: I look.", "call read_file: output-available"], "{to}");
    }
}

#[test]
fn a_result_without_a_call_gets_one_and_a_second_result_is_dropped() {
    let result = |uuid: &str, parent: &str, call: &str, text: &str| {
        let content = json!([{"type": "tool_result", "tool_use_id": call, "content": text}]);
        let message = json!({"role": "user", "content": content});
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-10-02T09:00:03Z",
               "sessionId": "s", "cwd": "/gone", "message": message})
        .to_string()
    };
    let lines = [
        r#"{"type":"user","uuid":"u","parentUuid":null,"timestamp":"2026-10-02T09:00:01Z","sessionId":"s","cwd":"/gone","message":{"role":"user","content":"Look."}}"#.to_owned(),
        r#"{"type":"assistant","uuid":"a","parentUuid":"u","timestamp":"2026-10-02T09:00:02Z","sessionId":"s","cwd":"/gone","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}"#.to_owned(),
        result("r1", "a", "t1", "first"),
        result("r2", "r1", "t1", "second"),
        result("r3", "r2", "t9", "nobody asked"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for to in ["native", "codex", "qwen-code", "sage-el", "ai-sdk"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        assert!(source.has_errors(), "the source is broken");
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let now = open(named(to), &converted.path);
        valid::check(&now).unwrap_or_else(|why| panic!("{to}: {why}"));
        let calls = ["call Read: output-available", "call unknown: output-available"];
        let made: Vec<String> = outline(&now).into_iter().filter(|line| line.starts_with("call ")).collect();
        assert_eq!(made, calls, "{to}");
        let losses: Vec<_> =
            converted.losses.iter().map(|row| (row.record.as_str(), row.what.name(), row.kind)).collect();
        assert!(losses.contains(&("r2", "duplicate result", LossKind::Dropped)), "{to}: {losses:?}");
        assert!(losses.contains(&("r3", "tool call", LossKind::Synthesised)), "{to}: {losses:?}");
        assert!(fs::read_to_string(&converted.path).unwrap().contains("nobody asked"), "{to}");
    }
}

/// Calls and results that share ids cost as much as others: all one id, and each id twice.
#[test]
fn many_calls_of_one_id_take_linear_time() {
    let call = |id: &str| json!({"type": "function_call", "name": "read", "call_id": id, "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "ebb"});
    let prompt = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]});
    let line = |item: Value| json!({"timestamp": "2026-11-07T18:02:12Z", "type": "response_item", "payload": item});
    for ids in [|_: usize| "same".to_owned(), |at: usize| format!("c{}", at / 2)] {
        let prepare = |count: usize| {
            let outputs = (0..count).map(|at| output(&ids(at)));
            let items = std::iter::once(prompt.clone()).chain((0..count).map(|at| call(&ids(at)))).chain(outputs);
            let lines: Vec<String> = items.map(|item| line(item).to_string()).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let folder = folder();
            (session("codex", folder.path(), &lines), folder)
        };
        check_linear("calls that share an id", 500, prepare, |(source, _)| {
            let to = folder();
            let converted = convert(source, named("native"), &to.path().join("new.jsonl")).unwrap();
            assert!(!converted.losses.iter().any(|row| row.kind == LossKind::Dropped), "{:?}", converted.losses);
        });
    }
}
