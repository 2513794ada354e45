//! Every view of every history satisfies its API, whatever was done to the log (P11). The rules: `support/apis.rs`.

use std::fs;
use std::path::PathBuf;

use crate::support::apis::complaints;
use crate::support::pen::wrote;
use crate::support::said::{call, result, results, said, user};
use crate::support::{cases, corpus, reading};
use proptest::prelude::*;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Body, Outcome, ToolState};
use scrollback::session::{RecordRef, Session, Source};
use scrollback::view::history::{History, View};
use serde_json::{Value, json};

#[test]
fn every_api_takes_every_branch_of_the_corpora_and_no_file_is_touched() {
    let mut wrong = Vec::new();
    for (dialect, log) in logs() {
        let before = (fs::read(&log).unwrap(), fs::metadata(&log).unwrap().modified().unwrap());
        let session = Session::open(&Source::file(dialect, &log), &reading()).unwrap();
        for head in session.heads() {
            wrong.extend(refused(&session, head.record).into_iter().map(|why| format!("{}: {why}", log.display())));
        }
        assert!(before == (fs::read(&log).unwrap(), fs::metadata(&log).unwrap().modified().unwrap()));
    }
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
}

/// One thing that is done to a log.
#[derive(Debug, Clone)]
enum Harm {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    /// The line is written again at the end, as a record of its own: a compaction of a compaction, a call made twice.
    Again(usize),
    /// The value of one key, wherever it stands in the line.
    Set(usize, &'static str, &'static str),
    /// Half a surrogate pair at the beginning of each text.
    Surrogate(usize),
    /// A line of another log, in its own dialect.
    Stranger(usize, usize),
}

/// Keys whose values bind calls, results, thoughts and answers together, and what may stand there instead.
const KEYS: &[&str] = &[
    "name",
    "id",
    "text",
    "content",
    "thinking",
    "signature",
    "input",
    "arguments",
    "args",
    "parts",
    "output",
    "role",
];
const KEYS_OF_PAIRS: &[&str] =
    &["tool_use_id", "call_id", "toolCallId", "parentUuid", "parent_id", "uuid", "response", "media_type", "url"];
const VALUES: &[&str] = &["null", "\"\"", "\" \"", "[]", "{}", "7", "\"c1\"", "\"x/y z\"", "[null]"];

fn harm() -> impl Strategy<Value = Harm> {
    let at = || any::<usize>();
    let key = prop_oneof![prop::sample::select(KEYS), prop::sample::select(KEYS_OF_PAIRS)];
    prop_oneof![
        3 => at().prop_map(Harm::Drop),
        2 => at().prop_map(Harm::Double),
        2 => (at(), at()).prop_map(|(one, other)| Harm::Swap(one, other)),
        2 => at().prop_map(Harm::Again),
        6 => (at(), key, prop::sample::select(VALUES)).prop_map(|(at, key, value)| Harm::Set(at, key, value)),
        1 => at().prop_map(Harm::Surrogate),
        1 => (at(), at()).prop_map(|(at, other)| Harm::Stranger(at, other)),
    ]
}

fn harmed(log: &str, others: &[String], harms: &[Harm]) -> String {
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    for (number, harm) in harms.iter().enumerate() {
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match harm {
            Harm::Drop(at) => _ = lines.remove(at % count),
            Harm::Double(at) => lines.insert(at % count, lines[at % count].clone()),
            Harm::Swap(one, other) => lines.swap(one % count, other % count),
            Harm::Again(at) => lines.push(again(&lines, at % count, number)),
            Harm::Set(at, key, value) => lines[at % count] = set(&lines[at % count], key, value),
            Harm::Surrogate(at) => {
                let line = &mut lines[at % count];
                *line =
                    line.replace("\"text\":\"", "\"text\":\"\\ud83d").replace("\"text\": \"", "\"text\": \"\\ud83d");
                *line = line.replace("\"content\":\"", "\"content\":\"\\udc4d");
            }
            Harm::Stranger(at, other) => {
                let other = &others[other % others.len()];
                let stranger = other.lines().nth(at % 7).unwrap_or_default().to_owned();
                lines.insert(at % count, stranger);
            }
        }
    }
    lines.join("\n") + "\n"
}

fn again(lines: &[String], at: usize, number: usize) -> String {
    let Ok(Value::Object(mut line)) = serde_json::from_str::<Value>(&lines[at]) else { return lines[at].clone() };
    let last = lines.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last: Vec<Value> = last.collect();
    for (id, parent) in [("uuid", "parentUuid"), ("id", "parent_id"), ("id", "parentId"), ("msg_id", "")] {
        let tip = last.iter().find_map(|line| line.get(id).filter(|id| id.is_string()));
        if let (Some(tip), true) = (tip, line.contains_key(parent)) {
            line.insert(parent.to_owned(), tip.clone());
        }
        if line.contains_key(id) {
            line.insert(id.to_owned(), format!("again-{number}").into());
        }
    }
    Value::Object(line).to_string()
}

fn set(line: &str, key: &str, value: &str) -> String {
    let Ok(mut line_value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let mut open = vec![&mut line_value];
    while let Some(inner) = open.pop() {
        match inner {
            Value::Object(object) => {
                for (known, inner) in object {
                    if known == key {
                        *inner = serde_json::from_str(value).unwrap();
                    } else {
                        open.push(inner);
                    }
                }
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    line_value.to_string()
}

#[test]
fn every_api_takes_what_is_left_of_a_harmed_history() {
    let logs: Vec<(&'static dyn Dialect, PathBuf, String)> = logs()
        .into_iter()
        .filter(|(_, log)| log.extension().is_some_and(|ending| ending == "jsonl"))
        .filter_map(|(dialect, log)| Some((dialect, log.clone(), fs::read_to_string(log).ok()?)))
        .filter(|(_, _, text)| text.len() < 64 * 1024)
        .collect();
    let texts: Vec<String> = logs.iter().map(|(_, _, text)| text.clone()).collect();
    let config = ProptestConfig { cases: cases(1500, 200_000), failure_persistence: None, ..ProptestConfig::default() };
    let story = (0..logs.len(), prop::collection::vec(harm(), 0..8), any::<usize>());
    proptest!(config, |((log, harms, head) in story)| {
        let (dialect, path, text) = &logs[log];
        let bytes = harmed(text, &texts, &harms).into_bytes();
        let session = Session::from_bytes(*dialect, bytes, &reading());
        let records: Vec<RecordRef<'_>> = session.records().collect();
        let anywhere = (!records.is_empty()).then(|| records[head % records.len()]);
        for head in session.head().into_iter().chain(anywhere) {
            let refused = refused(&session, head);
            prop_assert!(refused.is_empty(), "{} at {}: {}", path.display(), head.id(), refused.join("\n"));
        }
    });
}

/// What the APIs have against the history at a head: all of it, with its context, and its last messages.
fn refused(session: &Session, head: RecordRef<'_>) -> Vec<String> {
    let mut refused = Vec::new();
    let (whole, with_context) = (History::of(session, head).unwrap(), History::with_context(session, head).unwrap());
    for view in View::ALL {
        let last = whole.clone().last_messages(LAST, view).unwrap().0;
        let all = view.messages(&whole).unwrap().0;
        let in_context = view.messages(&with_context).unwrap().0;
        for (what, messages) in [("all", all), ("all and context", in_context), ("the last", last)] {
            let said = complaints(view.name(), whole.dialect, &Value::Array(messages));
            refused.extend(said.into_iter().map(|why| format!("{} to {}, {what}: {why}", view.name(), head.id())));
        }
    }
    refused
}

/// How many messages are asked for where only the last are wanted: few enough to part a call from its result.
const LAST: usize = 3;

/// Every log of every dialect's corpus.
fn logs() -> Vec<(&'static dyn Dialect, PathBuf)> {
    let mut logs = Vec::new();
    for dialect in dialect::all() {
        let cases = fs::read_dir(corpus().join(dialect.name())).unwrap();
        let files = cases.flat_map(|case| fs::read_dir(case.unwrap().path()).unwrap());
        let mut of_it: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        of_it.retain(|log| log.extension().is_some_and(|ending| ending == "jsonl" || ending == "json"));
        of_it.sort();
        assert!(of_it.len() >= 20, "the corpus of {} is gone", dialect.name());
        logs.extend(of_it.into_iter().map(|log| (*dialect, log)));
    }
    logs
}

#[test]
fn what_an_api_does_not_take_is_found_out() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "ls", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "a"});
    let user = |content: Value| json!({"role": "user", "content": content});
    let answer = |content: Value| json!({"role": "assistant", "content": content});
    let hello = || user(json!([{"type": "text", "text": "Hello"}]));
    let chat_call = json!({"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let function_call = json!({"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"});
    let google_call = json!({"functionCall": {"id": "c1", "name": "ls", "args": {}}});
    for (view, messages) in [
        ("anthropic", json!([answer(json!([{"type": "text", "text": "First"}]))])),
        ("anthropic", json!([hello(), hello()])),
        ("anthropic", json!([user(json!([{"type": "text", "text": " "}]))])),
        ("anthropic", json!([user(json!([]))])),
        ("anthropic", json!([hello(), answer(json!([call("c1")]))])),
        ("anthropic", json!([hello(), answer(json!([call("c1")])), hello()])),
        ("anthropic", json!([user(json!([result("c1")]))])),
        (
            "anthropic",
            json!([hello(), answer(json!([call("c1"), call("c1")])), user(json!([result("c1"), result("c1")]))]),
        ),
        ("anthropic", json!([hello(), answer(json!([call("c 1")])), user(json!([result("c 1")]))])),
        ("anthropic", json!([hello(), answer(json!([{"type": "thinking", "thinking": "Hm", "signature": ""}]))])),
        ("anthropic", json!([hello(), answer(json!([{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}]))])),
        ("openai", json!([user(json!(""))])),
        ("openai", json!([{"role": "assistant", "content": null}])),
        ("openai", json!([{"role": "assistant", "content": null, "tool_calls": [chat_call]}])),
        ("openai", json!([{"role": "tool", "tool_call_id": "c1", "content": "a"}])),
        ("openai-responses", json!([function_call])),
        ("openai-responses", json!([{"type": "function_call_output", "call_id": "c1", "output": "a"}])),
        ("openai-responses", json!([{"type": "reasoning", "summary": []}])),
        ("gemini", json!([{"role": "model", "parts": [{"text": "First"}]}])),
        ("gemini", json!([{"role": "user", "parts": []}])),
        ("gemini", json!([{"role": "user", "parts": [{"text": ""}]}])),
        ("gemini", json!([{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [google_call]}])),
        ("gemini", json!([{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}])),
        ("gemini", json!([{"role": "user", "parts": [{"text": "Hm", "thought": true}]}])),
        ("ai-sdk", json!([user(json!([]))])),
        ("ai-sdk", json!([answer(json!([{"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {}}]))])),
        ("fluux", json!([user(json!(""))])),
        ("fluux", json!([{"role": "user", "content": "Hello", "msg_id": "m1"}])),
    ] {
        assert_ne!(complaints(view, "native", &messages), [] as [&str; 0], "{view}: {messages}");
    }
    let right = json!([hello(), answer(json!([call("c1")])), user(json!([result("c1")]))]);
    assert_eq!(complaints("anthropic", "native", &right), [] as [&str; 0]);
}

/// Tools answer as they are done, and agents send that on, each in its own order.
#[test]
fn results_stand_in_the_order_in_which_the_agent_sends_them() {
    for (dialect, view, key, order) in [
        ("claude-code", View::Anthropic, "tool_use_id", ["c3", "c4", "c1", "c2"]),
        ("codex", View::OpenAiResponses, "call_id", ["c3", "c4", "c1", "c2"]),
        ("qwen-code", View::OpenAi, "tool_call_id", ["c3", "c1", "c2", "c4"]),
        ("native", View::OpenAi, "tool_call_id", ["c1", "c2", "c3", "c4"]),
    ] {
        let calls = ["c1", "c2", "c3", "c4"].map(|id| call("sound", id, ToolState::called(json!({"at": 1}))));
        let came = ["c3", "c4", "c1", "c2"].map(|id| results([result(id, "four", Outcome::Done)]));
        let bodies = [user("How deep?"), Body::Assistant(said(calls))].into_iter().chain(came);
        let pen = wrote(dialect::named(dialect).unwrap(), &bodies.collect::<Vec<_>>());
        let told = pen.history(view);
        let key = format!("\"{key}\":\"");
        let ids: Vec<&str> = told.split(&key).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(ids[ids.len() - 4..], order, "{dialect}");
    }
}
