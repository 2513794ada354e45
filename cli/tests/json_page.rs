//! docs/cli-json.md names what `--json` prints: every printed key is on the page, and every field in its tables is printed.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::{TestEnv, line, talk};

const PAGE: &str = include_str!("../../docs/cli-json.md");

/// What is below these keys is the agents' own, or a struct of the AI SDK.
const FOREIGN: [&str; 5] = ["input", "output", "messages", "message", "records"];

/// Every name in the code spans of these sections.
fn documented(sections: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for section in sections {
        let text = PAGE.split("\n## ").find(|text| text.starts_with(&format!("{section}\n"))).unwrap();
        for code in text.split('`').skip(1).step_by(2) {
            names.extend(code.split(|c: char| !c.is_alphanumeric()).map(str::to_owned));
        }
    }
    names
}

/// The fields in the first column of the table with this header.
fn table(section: &str, header: &str) -> BTreeSet<String> {
    let text = PAGE.split("\n## ").find(|text| text.starts_with(&format!("{section}\n"))).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let names = rows.take_while(|line| line.starts_with('|')).flat_map(|row| {
        row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                if !FOREIGN.contains(&key.as_str()) {
                    keys(value, found);
                }
            }
        }
        _ => {}
    }
}

/// A session with everything that a row or a tree can state.
fn everything(env: &TestEnv) {
    let here = env.work().join("project");
    std::fs::create_dir_all(here.join(".git")).unwrap();
    std::fs::write(here.join(".git/HEAD"), "ref: refs/heads/other\n").unwrap();
    let context = json!({"cwd": here, "gitBranch": "main", "platform": "linux", "userType": "external"});
    let prompt = json!({"type": "user", "uuid": "u1", "parentUuid": null, "timestamp": "2026-11-15T10:00:00Z", "sessionId": "all",
        "version": "1", "context": context, "message": {"content": "Go."},
        "metadata": {"parentSessionId": "p", "parentToolCallId": "c"}, "forkedFrom": {"sessionId": "f", "messageUuid": "m"}});
    let calls = json!([{"id": "c1", "name": "bash", "arguments": {"command": "ls"}}, {"id": "c2", "name": "read", "arguments": {}}]);
    let answer = json!({"type": "assistant", "uuid": "a1", "parentUuid": "u1", "timestamp": "2026-11-15T10:00:01Z", "model": "m",
        "message": {"content": "", "toolCalls": calls}, "usage": {"inputTokens": 1, "outputTokens": 2},
        "forkedFrom": {"sessionId": "f", "messageUuid": "m2"}});
    let result = json!({"type": "tool_result", "uuid": "r1", "parentUuid": "a1", "timestamp": "2026-11-15T10:00:02Z", "toolResults": [
        {"toolCallId": "c1", "toolName": "bash", "content": "x", "success": false, "error": "broke", "durationMs": 3},
        {"toolCallId": "c2", "toolName": "read", "content": "x", "success": true}]});
    env.session("all", &format!("{prompt}\n{answer}\n{result}\n"));
}

/// A session that its agent has deleted, and of which a copy was kept.
fn kept(env: &TestEnv) {
    let log = env.home().join(".claude/projects/-gone/6f1d0000-0000-4000-8000-000000000001.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, line("user", "k1", None, "Kept.")).unwrap();
    env.run(&["keep", "on"]);
    std::fs::remove_file(log).unwrap();
}

/// A session whose undo has a ready file, a rebuilt one, a conflict, and a task list to go back to.
fn changed_files(env: &TestEnv) {
    let project = env.work().join("tides");
    std::fs::create_dir(&project).unwrap();
    for name in ["high.txt", "low.txt", "moon.txt"] {
        std::fs::write(project.join(name), "new\n").unwrap();
    }
    // The SHA-256 of `new` and a line feed, and of something else.
    let [new, other] = ["7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c".to_owned(), "0".repeat(64)];
    let file = |hash: &str| json!({"originalContent": "old\n", "contentHash": hash, "size": 4, "state": "modified"});
    let snapshot = json!({"type": "file_history_snapshot", "messageId": "a2", "timestamp": "2026-11-15T10:00:03Z", "sessionId": "files",
        "format": 2, "isSnapshotUpdate": false,
        "snapshot": {"trackedFiles": {"high.txt": file(&new), "low.txt": file(&other)}, "fileBackups": {}}});
    let call = json!([{"id": "c1", "name": "edit", "arguments": {"file_path": "moon.txt", "old_string": "old", "new_string": "new"}}]);
    let result = json!([{"toolCallId": "c1", "toolName": "edit", "content": "done", "success": true}]);
    let record = |kind: &str, id: &str, parent: Value, more: Value| {
        let mut record = json!({"type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-15T10:00:00Z",
            "sessionId": "files", "version": "1", "format": 2, "context": {"cwd": project}});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let todos = json!([{"content": "Sail", "status": "pending", "activeForm": "Sailing"}]);
    let lines = [
        record("user", "u1", Value::Null, json!({"message": {"content": "Plan."}})),
        record("assistant", "a1", json!("u1"), json!({"message": {"content": "So."}, "todos": todos})),
        record("user", "u2", json!("a1"), json!({"message": {"content": "Change it."}})),
        record("assistant", "a2", json!("u2"), json!({"message": {"content": "", "toolCalls": call}})),
        snapshot,
        record("tool_result", "r2", json!("a2"), json!({"toolResults": result})),
    ];
    env.session("files", &lines.map(|line| format!("{line}\n")).concat());
}

#[test]
fn undo_and_files_print_what_their_tables_say() {
    let env = TestEnv::new();
    changed_files(&env);
    let undo = ["undo", "files", "--skip-conflicts", "--json"];
    let files = env.run(&["files", "files", "--json"]).json();
    let diffs = env.run(&["files", "files", "--diff", "..", "--json"]).json();
    let held = env.run(&["files", "--disk", "--json"]).json();
    let plan = env.run(&[&undo[..], &["--dry-run"]].concat()).json();
    let done = env.run(&[&undo[..], &["--yes"]].concat()).json();
    let restored = env.run(&["files", "files", "--json"]).json();
    let back = env.run(&["redo", "files", "--yes", "--json"]).json();
    for (section, header, printed) in [
        ("undo, redo", "| field | is | absent |", vec![&plan, &done, &back]),
        ("undo, redo", "| field of a file | is | absent |", vec![&plan, &done, &back]),
        ("files", "| field | is | absent |", vec![&files, &restored, &diffs, &held]),
    ] {
        let mut found = BTreeSet::new();
        printed.iter().for_each(|value| keys(value, &mut found));
        let unknown: Vec<String> = found.difference(&documented(&[section])).cloned().collect();
        assert_eq!(unknown, Vec::<String>::new(), "{section}: {printed:#?}");
        let missing: Vec<String> = table(section, header).difference(&found).cloned().collect();
        assert_eq!(missing, Vec::<String>::new(), "{section}: {printed:#?}");
    }
}

#[test]
fn every_key_that_is_printed_is_on_the_page() {
    let env = TestEnv::new();
    everything(&env);
    env.session("s1", &talk().replacen("Sure?\"", "Su", 1));
    env.session("leak", &line("user", "u1", None, "the password is tide-4-morning!").replace("s1", "leak"));
    env.session("cycle", &line("user", "u9", Some("u9"), "Round.").replace("s1", "cycle"));
    let rows: [(&[&str], &[&str]); 13] = [
        (&["list", "--all", "--full", "--sidechains", "--json"], &["list"]),
        (&["--demo", "list", "--full", "--sidechains", "--json"], &["list"]),
        (&["show", "all", "--json"], &["list", "show", "doctor"]),
        (&["show", "s1", "--json"], &["list", "show", "doctor"]),
        (&["show", "cycle", "--json"], &["list", "show", "doctor"]),
        (&["tree", "all", "--json"], &["list", "show", "tree", "doctor"]),
        (&["extract-tools", "all", "--json"], &["extract-tools"]),
        (&["--demo", "extract-tools", "78be", "--json"], &["extract-tools"]),
        (&["doctor", "s1", "--json"], &["doctor"]),
        (&["doctor", "s1", "--profile", "sage-el", "--json"], &["doctor"]),
        (&["--demo", "doctor", "--json"], &["doctor"]),
        (&["config", "list", "--json"], &["config"]),
        (&["redact", "leak", "--json"], &["redact"]),
    ];
    for (args, sections) in rows {
        let (mut printed, documented) = (BTreeSet::new(), documented(sections));
        keys(&env.run(args).json(), &mut printed);
        let unknown: Vec<&String> = printed.difference(&documented).collect();
        assert!(!printed.is_empty() && unknown.is_empty(), "{args:?} prints {unknown:?}");
    }
    let records = env.run(&["tree", "all", "--json"]).json()["records"].clone();
    let (mut printed, documented) = (BTreeSet::new(), documented(&["tree"]));
    keys(&records, &mut printed);
    assert_eq!(printed.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// A session of Claude Code whose only prompt a person stopped.
fn stopped(env: &TestEnv) {
    let folder = env.home().join(".claude/projects/-gone");
    let id = "00000000-0000-4000-8000-00000000000d";
    let line = |uuid: &str, parent: Option<&str>, text: &str| {
        let line = serde_json::json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": id, "userType": "external",
            "cwd": "/gone", "timestamp": "2026-11-15T10:00:00.000Z", "message": {"role": "user", "content": text}});
        format!("{line}\n")
    };
    let log = line("p", None, "Explain it") + &line("q", Some("p"), "[Request interrupted by user]");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{id}.jsonl")), log).unwrap();
}

#[test]
fn every_field_of_a_table_is_printed() {
    let env = TestEnv::new();
    everything(&env);
    kept(&env);
    stopped(&env);
    let row = |args: &[&str]| {
        let mut printed = BTreeSet::new();
        keys(&env.run(args).json(), &mut printed);
        printed
    };
    let list = row(&["list", "--all", "--full", "--sidechains", "--json"]);
    let missing: Vec<String> = table("list", "| field | is | absent |").difference(&list).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "{list:?}");
    let mut tools = row(&["extract-tools", "all", "--json"]);
    // A call whose input the model did not write as JSON.
    let raw = json!([{"id": "c1", "name": "bash", "arguments": "{\"command\": "}]);
    let answer =
        json!({"type": "assistant", "uuid": "a1", "parentUuid": null, "message": {"content": "", "toolCalls": raw}});
    env.session("raw", &format!("{answer}\n"));
    tools.extend(row(&["extract-tools", "raw", "--json"]));
    let missing: Vec<String> = table("extract-tools", "| field | is | absent |").difference(&tools).cloned().collect();
    assert!(missing.iter().all(|field| field == "rawInput"), "{missing:?} of {tools:?}");
    let mut tree = BTreeSet::new();
    keys(&env.run(&["tree", "all", "--json"]).json()["records"], &mut tree);
    let missing: Vec<String> = table("tree", "| field | is |").difference(&tree).cloned().collect();
    assert_eq!(missing, ["file"], "only a session of several files has it");
}

/// The keys of what goes to standard error, and of the commands that write.
#[test]
fn commands_that_write_print_the_keys_of_the_page() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let check = |args: &[&str], section: &str| {
        let ran = env.run(args);
        let (mut printed, documented) = (BTreeSet::new(), documented(&[section]));
        keys(&ran.json(), &mut printed);
        let unknown: Vec<&String> = printed.difference(&documented).collect();
        assert!(!printed.is_empty() && unknown.is_empty(), "{args:?} prints {unknown:?}: {}", ran.all());
    };
    let changes = "fork, rewind, rename, remove, trash";
    check(&["rename", "s1", "A title", "--json"], changes);
    check(&["rewind", "s1#a1", "--json"], changes);
    check(&["fork", "s1", "--json"], changes);
    check(&["convert", "s1", "--to", "codex", "-o", "x.jsonl", "--json"], "convert, import, new");
    check(&["remove", "s1", "--json"], changes);
    check(&["trash", "--json"], changes);
    check(&["config", "path", "--json"], "config");
    check(&["--version", "--json"], "--version");
    let failed = env.run(&["show", "zzz", "--json"]);
    let (mut printed, documented) = (BTreeSet::new(), documented(&["Errors"]));
    keys(&serde_json::from_str(&failed.err).unwrap(), &mut printed);
    assert!(printed.is_subset(&documented), "{}", failed.err);
}
