//! What must stay what it is on the way: calls and results, thinking, usage, todos, branches, and what a damaged session holds.

use std::fs;

use scrollback::model::{Content, Error, LossKind, Outcome, Part, Todo, ToolResult, ToolState, Usage};
use scrollback::session::{Session, State};
use scrollback::transfer::convert::LossRow;
use scrollback::write::Store;
use serde_json::json;

use super::support::said::{call, result, todo};
use super::support::{cases, logs_of, messages};
use super::{ALL, convert, folder, host, named, open, outline, seen, session, valid};

/// A native session with two parallel calls of which one fails, thinking, an image, todos, usage, a title and a further prompt.
pub(super) fn rich(folder: &std::path::Path) -> Session {
    rich_by("beacon-2", folder)
}

fn rich_by(model: &str, folder: &std::path::Path) -> Session {
    let store = Store::open(named("native"), folder, host()).unwrap();
    let mut recorder = store.create(std::path::Path::new("/gone/tides")).unwrap();
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    recorder.user(vec![Part::text("Look at this."), Part::file("image/png", picture)]).unwrap();
    let call = |id: &str| call("read_file", id, ToolState::called(json!({"path": id})));
    let usage = Usage { input: Some(100), output: Some(7), ..Usage::default() };
    let answer = Content {
        parts: vec![Part::reasoning("Two files."), Part::text("Let me look."), call("c1"), call("c2")],
        model: Some(model.to_owned()),
        usage: Some(usage),
        ..Content::default()
    };
    recorder.assistant(answer).unwrap();
    let result =
        |id: &str, outcome| ToolResult { name: Some("read_file".to_owned()), ..result(id, "what it gave", outcome) };
    recorder
        .tool_results(vec![result("c1", Outcome::Done), result("c2", Outcome::Failed("no such file".to_owned()))])
        .unwrap();
    let todo = Todo { status: "completed".to_owned(), ..todo("look") };
    let last = Content {
        model: Some(model.to_owned()),
        usage: Some(usage),
        todos: Some(vec![todo]),
        ..Content::from("Seen.")
    };
    recorder.assistant(last).unwrap();
    recorder.title("Two files").unwrap();
    recorder.user("Thanks.").unwrap();
    let path = recorder.path().unwrap().to_path_buf();
    recorder.close().unwrap();
    open(named("native"), &path)
}

#[test]
fn calls_stay_calls_and_failures_failures() {
    for to in ["claude-code", "codex", "qwen-code", "sage-el", "ai-sdk"] {
        let folder = folder();
        let source = rich(folder.path());
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let session = open(named(to), &converted.path);
        assert_eq!(outline(&session), outline(&source), "{to}");
        assert!(outline(&session).contains(&"call read_file: output-error".to_owned()), "{to}");
        valid::check(&session).unwrap();
        let title = |session: &Session| session.title().map(|title| title.text.clone());
        assert!(
            title(&session) == title(&source) || converted.losses.iter().any(|row| row.what.name() == "title"),
            "{to}"
        );
    }
}

/// The task lists of its messages.
fn lists(session: &Session) -> Vec<serde_json::Value> {
    let todos = messages(session).into_iter().filter_map(|message| message.metadata?.get("todos").cloned());
    todos.collect()
}

#[test]
fn a_task_list_that_stands_alone_is_told_of_its_message() {
    for (from, to) in
        [("claude-code", "native"), ("claude-code", "ai-sdk"), ("ai-sdk", "claude-code"), ("native", "claude-code")]
    {
        let folder = folder();
        let store = Store::open(named(from), &folder.path().join("from"), host()).unwrap();
        let mut recorder = store.create(std::path::Path::new("/gone/tides")).unwrap();
        recorder.user("Plan.").unwrap();
        recorder.assistant("Done.").unwrap();
        recorder.assistant(Content { todos: Some(vec![todo("look")]), ..Content::default() }).unwrap();
        let path = recorder.path().unwrap().to_path_buf();
        recorder.close().unwrap();
        let source = open(named(from), &path);
        assert_eq!(lists(&source), [json!([todo("look")])], "{from}");
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let session = open(named(to), &converted.path);
        assert_eq!(lists(&session), lists(&source), "{from} to {to}: {:?}", converted.losses);
        let is_lost = |loss: &LossRow| loss.what.name() == "todos" && loss.kind == LossKind::Dropped;
        assert!(!converted.losses.iter().any(is_lost), "{from} to {to}: {:?}", converted.losses);
        valid::check(&session).unwrap();
    }
}

#[test]
fn usage_is_never_doubled_and_lost_only_where_it_is_told() {
    for to in ALL.into_iter().filter(|to| *to != "native") {
        let folder = folder();
        let source = rich(folder.path());
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let session = open(named(to), &converted.path);
        let is_told = converted.losses.iter().any(|row| row.what.name() == "usage");
        match session.usage() {
            Some(usage) => assert_eq!((usage.input, usage.output), (Some(200), Some(14)), "{to}"),
            None => assert!(to == "fluux" && is_told, "{to}: {:?}", converted.losses),
        }
    }
}

#[test]
fn claude_gets_no_thinking_that_nobody_signed() {
    for model in ["claude-opus-5-5", "beacon-2"] {
        let folder = folder();
        let source = rich_by(model, folder.path());
        let converted = convert(&source, named("claude-code"), &folder.path().join("new.jsonl")).unwrap();
        // The agent sends it with an empty signature where the model is none of Claude's, and the API refuses that.
        let text = fs::read_to_string(&converted.path).unwrap();
        assert!(!text.contains(r#""type":"thinking""#), "{model}");
        assert!(converted.losses.iter().any(|row| row.what.name() == "thinking"), "{:?}", converted.losses);
    }
}

/// Lines of a Claude session: a prompt, and then each of these as a child of the one before.
pub(super) fn claude_lines(messages: &[serde_json::Value]) -> Vec<String> {
    let id = |at: usize| format!("{at:08}-1111-4111-8111-111111111111");
    let line = |(at, message): (usize, &serde_json::Value)| {
        let parent = at.checked_sub(1).map(id);
        json!({"type": message["role"], "uuid": id(at), "parentUuid": parent, "sessionId": "s", "message": message,
            "timestamp": format!("2026-11-06T16:{:02}:{:02}.000Z", at / 60 % 60, at % 60)})
        .to_string()
    };
    messages.iter().enumerate().map(line).collect()
}

/// In Claude Code each result is a child of its call; other agents send only the path to the head.
#[test]
fn results_that_hang_side_by_side_come_to_lie_on_one_path() {
    let id = |at: usize| format!("{at:08}-1111-4111-8111-111111111111");
    let call = |at: usize| json!({"role": "assistant", "id": "m1", "content": [{"type": "tool_use", "id": format!("c{at}"), "name": "sound", "input": {}}]});
    let gave = |at: usize| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("c{at}"), "content": "four"}]});
    let asked = json!({"role": "user", "content": "How deep?"});
    let answered = json!({"role": "assistant", "id": "m2", "content": [{"type": "text", "text": "Four."}]});
    // Each with its parent; the parent of the answer is any of the results.
    for end in [4, 5, 6] {
        let records = [
            (None, &asked),
            (Some(0), &call(1)),
            (Some(1), &call(2)),
            (Some(2), &call(3)),
            (Some(1), &gave(1)),
            (Some(3), &gave(3)),
            (Some(2), &gave(2)),
            (Some(end), &answered),
        ];
        let line = |(at, (parent, message)): (usize, (Option<usize>, &serde_json::Value))| {
            json!({"type": message["role"], "uuid": id(at), "parentUuid": parent.map(id), "sessionId": "s", "message": message, "timestamp": format!("2026-11-06T16:00:{at:02}.000Z")}).to_string()
        };
        let lines: Vec<String> = records.into_iter().enumerate().map(line).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for to in ["native", "qwen-code"] {
            let folder = folder();
            let source = session("claude-code", folder.path(), &lines);
            let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
            let converted = open(named(to), &converted.path);
            let mut path = Vec::new();
            let mut next = converted.head();
            while let Some(record) = next {
                path.push(record.kind());
                next = record.parent();
            }
            let given = path.iter().filter(|kind| **kind == scrollback::model::Kind::ToolResult).count();
            assert_eq!((given, converted.heads().len()), (3, 1), "{to} {end}: {path:?}");
        }
    }
}

/// The summaries of the compactions on a session's branch.
fn compactions(session: &Session) -> Vec<serde_json::Value> {
    let messages = seen(session);
    let parts = messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
    parts
        .filter(|part| part["type"] == "data-compaction")
        .map(|part| part["data"]["summary"].clone())
        .collect()
}

#[test]
fn a_compaction_of_two_records_stays_one_wherever_it_goes() {
    let mut lines = claude_lines(&[
        json!({"role": "user", "content": "How deep?"}),
        json!({"role": "assistant", "id": "m1", "model": "x", "content": [{"type": "text", "text": "Four."}]}),
        json!({"role": "system"}),
        json!({"role": "user", "content": "It is four deep."}),
        json!({"role": "user", "content": "And there?"}),
    ]);
    let change = |line: &mut String, more: serde_json::Value| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        *line = value.to_string();
    };
    change(
        &mut lines[2],
        json!({"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 9}}),
    );
    change(&mut lines[3], json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true}));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for to in ["native", "qwen-code", "codex", "ai-sdk"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        assert_eq!(compactions(&source), ["It is four deep."]);
        let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
        let converted = open(named(to), &there.path);
        assert_eq!(compactions(&converted), ["It is four deep."], "{to}");
        assert_eq!(seen(&converted).len(), seen(&source).len(), "{to}");
        fs::remove_file(there.sidecar.unwrap()).unwrap();
        let back = convert(&converted, named("claude-code"), &folder.path().join("back.jsonl")).unwrap();
        assert_eq!(compactions(&open(named("claude-code"), &back.path)), ["It is four deep."], "{to} and back");
    }
}

#[test]
fn a_call_that_waits_goes_on_waiting() {
    let lines = [
        r#"{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"timestamp":"2026-10-02T09:00:01Z","sessionId":"s","cwd":"/gone","message":{"role":"user","content":"Look."}}"#,
        r#"{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","timestamp":"2026-10-02T09:00:02Z","sessionId":"s","cwd":"/gone","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}"#,
    ];
    for to in ["native", "codex", "qwen-code", "sage-el", "ai-sdk"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let session = open(named(to), &converted.path);
        let state = session.state(&session.branch(session.head().unwrap()));
        assert_eq!(state, State::InterruptedTurn, "{to}: {:?}", seen(&session));
        valid::check(&session).unwrap();
    }
}

#[test]
fn whatever_was_done_to_a_log_the_converted_one_is_valid() {
    let step = cases(9, 1) as usize;
    let mut checked = 0;
    for (number, from) in ALL.into_iter().enumerate() {
        for (dialect, log) in logs_of(from).into_iter().skip(number).step_by(step) {
            let Ok(text) = fs::read_to_string(&log) else { continue };
            let lines: Vec<&str> = text.lines().collect();
            let reversed = lines.iter().rev().copied().collect::<Vec<_>>().join("\n");
            let doubled = lines.iter().flat_map(|line| [*line, *line]).collect::<Vec<_>>().join("\n");
            let holes = lines.iter().step_by(2).copied().collect::<Vec<_>>().join("\n");
            let torn: String = text.chars().take(text.chars().count() * 2 / 3).collect();
            let to = named(ALL[(number + 1 + lines.len()) % ALL.len()]);
            for (what, harmed) in [("reversed", reversed), ("doubled", doubled), ("holes", holes), ("torn", torn)] {
                let folder = folder();
                let file = folder.path().join("source.jsonl");
                fs::write(&file, harmed).unwrap();
                let source = open(dialect, &file);
                let converted = match convert(&source, to, &folder.path().join("new.jsonl")) {
                    Ok(converted) => converted,
                    Err(Error::NothingToStore(_) | Error::EmptyBranch { .. }) => continue,
                    Err(error) => panic!("{} {what} → {}: {error}", log.display(), to.name()),
                };
                if to.name() == from {
                    continue;
                }
                let verdict = valid::check(&open(to, &converted.path));
                assert_eq!(verdict, Ok(()), "{} {what} → {}", log.display(), to.name());
                let back = convert(&open(to, &converted.path), dialect, &folder.path().join("back.jsonl")).unwrap();
                assert_eq!(fs::read(&back.path).unwrap(), fs::read(&file).unwrap());
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} went another way");
}
