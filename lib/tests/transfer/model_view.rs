//! What an agent would send to its model is the same after a conversion: item by item, for every real session and every agent.
//!
//! The sessions are those of `tests/oracle/`, which real agents wrote. Only what no other agent can send is left out: reasoning.

use std::path::{Path, PathBuf};

use scrollback::dialect::Dialect;
use scrollback::model::{Body, Display, Lost};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::history::View;
use serde_json::{Value, json};

use super::support::{self, sent};
use super::{convert, folder, named, session};

const AGENTS: [(&str, &str); 3] = [("claude", "claude-code"), ("codex", "codex"), ("qwen", "qwen-code")];

/// The formats with a model view that has everything.
const TARGETS: [&str; 4] = ["native", "claude-code", "codex", "qwen-code"];

#[test]
fn every_agent_sends_what_the_source_sends() {
    let is_full = support::cases(0, 1) == 1;
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (case, dialect, file) in cases() {
        let source = read(dialect, &file);
        let before = items(&source);
        assert!(!before.is_empty(), "{case}: nothing to compare");
        for to in TARGETS.into_iter().filter(|to| *to != dialect.name()) {
            let folder = folder();
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            let converted = read(named(to), &there.path);
            wrong.extend(difference(&before, &items(&converted)).map(|how| format!("{case} → {to}: {how}")));
            compared += 1;
            // Without the original beside it, a conversion is a source like any other.
            there.sidecar.map_or(Ok(()), std::fs::remove_file).unwrap();
            let ways = TARGETS.into_iter().filter(|further| *further != to).enumerate();
            for (_, further) in ways.filter(|(way, _)| is_full || compared % 3 == *way) {
                let again = convert(&converted, named(further), &folder.path().join("again.jsonl")).unwrap();
                let twice = items(&read(named(further), &again.path));
                wrong.extend(difference(&before, &twice).map(|how| format!("{case} → {to} → {further}: {how}")));
                std::fs::remove_file(&again.path).unwrap();
                again.sidecar.map_or(Ok(()), std::fs::remove_file).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150, "only {compared}");
}

/// Codex begins a further file when a person goes back: the newest one alone is not the session.
#[test]
fn a_session_in_several_files_becomes_one_and_comes_back_whole() {
    let rewound = ["backtrack", "backtrack-twice", "four-segments", "failed-then"].map(|name| format!("codex/{name}"));
    for (case, dialect, file) in cases().into_iter().filter(|(case, ..)| rewound.contains(case)) {
        let source = read(dialect, &file);
        let before = items(&source);
        for to in TARGETS {
            let folder = folder();
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            assert!(there.losses.iter().any(|row| row.what == Lost::Original), "{case} → {to}: {:?}", there.losses);
            let back = convert(&read(named(to), &there.path), dialect, &folder.path().join("back.jsonl")).unwrap();
            let back = read(dialect, &back.path);
            assert_eq!(difference(&before, &items(&back)), None, "{case} → {to} → codex");
            assert!(!back.has_errors(), "{case} → {to} → codex: {:?}", back.issues());
        }
    }
}

/// A summary beside the prompts that stay, in the words of an old version.
#[test]
fn prompts_that_a_summary_leaves_go_along() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-10-02T09:00:00Z", "type": kind, "payload": payload}).to_string()
    };
    let message = |role: &str, kind: &str, text: &str| {
        line("response_item", json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
    };
    let lines = [
        line("session_meta", json!({"id": "5e551000-0000-4000-8000-000000000001", "cwd": "/tide"})),
        message("user", "input_text", "When is high water?"),
        message("assistant", "output_text", "At 04:12."),
        message("user", "input_text", "And low water?"),
        line("compacted", json!({"message": "Tides were asked for."})),
        message("assistant", "output_text", "At 10:31."),
    ];
    let folder = folder();
    let source = session("codex", folder.path(), &lines.each_ref().map(String::as_str));
    let sent = ["When is high water?", "And low water?", "Tides were asked for."].map(|text| format!("user: {text}"));
    let sent: Vec<String> = sent.into_iter().chain(["assistant: At 10:31.".to_owned()]).collect();
    for to in TARGETS.into_iter().filter(|to| *to != "codex") {
        let there = convert(&source, named(to), &folder.path().join(format!("{to}.jsonl"))).unwrap();
        assert_eq!(items(&read(named(to), &there.path)), sent, "{to}");
    }
}

/// In the copy that `/branch` makes, what a compaction kept follows the summary: it goes along once.
#[test]
fn what_a_compaction_kept_goes_along_once() {
    let path = support::corpus().join("claude-code/compaction-copied-by-a-branch/session.jsonl");
    let all = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = all.lines().take(6).collect();
    let folder = folder();
    let source = session("claude-code", folder.path(), &lines);
    let before = items(&source);
    assert_eq!(before, ["user: They counted on.", "assistant: Four.", "user: Five?", "assistant: Six."]);
    for to in TARGETS.into_iter().filter(|to| *to != "claude-code") {
        let there = convert(&source, named(to), &folder.path().join(format!("{to}.jsonl"))).unwrap();
        assert_eq!(items(&read(named(to), &there.path)), before, "{to}");
    }
}

/// What the agent says about its own failure is shown to people, and no model says it.
#[test]
fn a_failure_of_the_agent_is_no_answer() {
    let (_, dialect, file) = cases().into_iter().find(|(case, ..)| case == "claude/api-error").unwrap();
    let source = read(dialect, &file);
    for to in TARGETS.into_iter().filter(|to| *to != "claude-code") {
        let folder = folder();
        let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
        let converted = read(named(to), &there.path);
        let shown = serde_json::to_string(&support::messages(&converted)).unwrap();
        assert!(shown.contains("fake: the request is bad"), "{to}: {shown}");
        assert!(items(&converted).iter().all(|item| !item.contains("fake: the request")), "{to}");
    }
}

/// What a person did at the screen of one agent is not a prompt in the files of another, whoever's tags it has.
#[test]
fn commands_and_interruptions_stay_what_they_are() {
    let mut compared = 0;
    for (case, dialect, file) in cases() {
        let source = read(dialect, &file);
        let before = local(&source);
        if before.is_empty() {
            continue;
        }
        for to in TARGETS.into_iter().filter(|to| *to != dialect.name()) {
            let folder = folder();
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            let converted = read(named(to), &there.path);
            assert_eq!(local(&converted), before, "{case} → {to}");
            let state = |session: &Session| session.state(&session.branch(session.head().unwrap()));
            assert_eq!(state(&converted), state(&source), "{case} → {to}");
            compared += 1;
        }
    }
    assert!(compared > 30, "only {compared}");
}

/// The files that a prompt mentions go along, in the order in which they are sent; people see what was typed.
#[test]
fn what_a_prompt_mentions_goes_along() {
    let line = |kind: &str, id: &str, parent: &str, more: Value| {
        let mut line = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "userType": "external",
            "timestamp": "2026-10-02T10:00:00Z"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let said = |text: &str| json!({"message": {"role": "user", "content": text}});
    let shown = json!([{"content": "<system-reminder>\nResult of calling the Read tool\n</system-reminder>"}]);
    let after_a_command = [
        line("user", "c1", "a2", said("<bash-input>ls</bash-input>")),
        line("user", "u3", "c1", said("@brest.csv And now?")),
        line("attachment", "f4", "u3", json!({"attachment": {"type": "file"}, "rendered": shown})),
    ];
    for (case, further) in
        [("mentioned-picture", &[][..]), ("mentioned-file", &[]), ("mentioned-file", &after_a_command)]
    {
        let log = support::corpus().join("claude-code").join(case).join("session.jsonl");
        let log = std::fs::read_to_string(log).unwrap();
        let lines: Vec<&str> = log.lines().chain(further.iter().map(String::as_str)).collect();
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        for to in TARGETS.into_iter().filter(|to| *to != "claude-code") {
            let there = convert(&source, named(to), &folder.path().join(format!("{to}.jsonl"))).unwrap();
            let converted = read(named(to), &there.path);
            assert_eq!(difference(&items(&source), &items(&converted)), None, "{case} → {to}");
            assert_eq!(typed(&converted), typed(&source), "{case} → {to}");
        }
    }
}

/// What people see of each prompt and command.
fn typed(session: &Session) -> Vec<String> {
    let turns = session.turns().unwrap();
    (0..turns.len()).map(|turn| turns.row(turn).unwrap().text).collect()
}

/// How people see what is sent to the model and is not a prompt.
fn local(session: &Session) -> Vec<Display> {
    let records = session.branch(session.head().unwrap()).records;
    let bodies = records.into_iter().map(|record| record.body().unwrap());
    bodies
        .filter_map(|body| match body {
            Body::System(content) if content.to_model => content.display,
            _ => None,
        })
        .collect()
}

/// Tags that a person typed are a prompt, those of the agent what a person did, and the model gets both, colours and all.
#[test]
fn typed_tags_stay_typed_and_colours_stay() {
    let typed = "<bash-input>ls</bash-input>";
    let printed = "<bash-stdout>\u{1b}[31mred\u{1b}[0m</bash-stdout><bash-stderr></bash-stderr>";
    let line = |id: &str, parent: Option<&str>, more: Value, text: &str| {
        let mut line = json!({"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s", "userType": "external",
            "timestamp": "2026-10-02T09:00:00Z", "message": {"role": "user", "content": text}});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let lines = [
        line("u1", None, json!({"origin": {"kind": "human"}}), typed),
        line("u2", Some("u1"), json!({}), typed),
        line("u3", Some("u2"), json!({}), printed),
    ];
    let folder = folder();
    let source = session("claude-code", folder.path(), &lines.each_ref().map(String::as_str));
    let sent = [typed, typed, printed].map(|text| format!("user: {text}"));
    for to in TARGETS.into_iter().filter(|to| *to != "claude-code") {
        let there = convert(&source, named(to), &folder.path().join(format!("{to}.jsonl"))).unwrap();
        assert_eq!(items(&read(named(to), &there.path)), sent, "{to}");
    }
    for to in TARGETS.into_iter().filter(|to| *to != "claude-code") {
        let there = read(named(to), &folder.path().join(format!("{to}.jsonl")));
        let branch = there.branch(there.head().unwrap()).records;
        let kinds: Vec<&str> = branch.iter().map(|record| record.kind().name()).collect();
        assert_eq!(kinds, ["user", "system", "system"], "{to}");
    }
}

/// Every text, image, call and result, in the order in which the model gets them.
fn items(session: &Session) -> Vec<String> {
    let mut items = Vec::new();
    for message in sent(session, View::OpenAi) {
        let role = message["role"].as_str().unwrap();
        let who = message["tool_call_id"].as_str().map_or(role.to_owned(), |id| format!("result {id}"));
        match &message["content"] {
            Value::String(text) => items.push(format!("{who}: {text}")),
            Value::Array(pieces) => items.extend(pieces.iter().map(|piece| match piece["text"].as_str() {
                Some(text) => format!("{who}: {text}"),
                None => format!("{who}: {piece}"),
            })),
            _ => {}
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        items.extend(calls.map(|call| {
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            format!("call {} {}({arguments})", call["id"], call["function"]["name"])
        }));
    }
    items
}

/// The first item that differs.
fn difference(before: &[String], after: &[String]) -> Option<String> {
    let at = (0..before.len().max(after.len())).find(|at| before.get(*at) != after.get(*at))?;
    let (was, is) = (before.get(at), after.get(at));
    Some(format!("{} items became {}\n  item {at} was {was:?}\n  and is {is:?}", before.len(), after.len()))
}

fn read(dialect: &'static dyn Dialect, file: &Path) -> Session {
    // The files are of the evening of the day whose noon the other tests have.
    let reading = ReadOptions { now: "2026-11-16T12:00:00Z".parse().unwrap(), ..support::reading() };
    Session::open(&Source::file(dialect, file), &reading).unwrap()
}

/// The sessions that were resumed: the file that a case names, else its first.
fn cases() -> Vec<(String, &'static dyn Dialect, PathBuf)> {
    let mut cases = Vec::new();
    for (agent, dialect) in AGENTS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(agent);
        let mut folders: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        for case in folders {
            let expected: Value =
                serde_json::from_str(&std::fs::read_to_string(case.join("expected.json")).unwrap()).unwrap();
            let stated = expected["session"].as_str().and_then(|path| Path::new(path).file_name());
            let stated = stated.map(|name| case.join(name)).filter(|file| file.is_file());
            let mut files: Vec<PathBuf> = std::fs::read_dir(&case).unwrap().map(|file| file.unwrap().path()).collect();
            files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
            files.sort();
            let name = format!("{agent}/{}", case.file_name().unwrap().to_string_lossy());
            cases.push((name, named(dialect), stated.unwrap_or_else(|| files[0].clone())));
        }
    }
    cases
}
