//! What the commands print is what docs/cli-json.md and the help promise, also at the edges: nothing recorded, `--last 0`, a pipe.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use serde_json::{Value, json};
use support::{TestEnv, line, talk};

const VIEWS: [&str; 7] = ["anthropic", "openai", "openai-responses", "gemini", "ai-sdk", "fluux", "text"];

/// Sessions without anything to send: an empty file, one with blank lines, and one of metadata alone.
#[test]
fn the_history_of_nothing_is_an_empty_document() {
    let env = TestEnv::new();
    env.session("empty", "");
    env.session("blank", "\n\n");
    env.session("titled", "{\"type\":\"custom_title\",\"uuid\":\"t\",\"title\":\"Nothing\"}\n");
    for session in ["empty", "blank", "titled"] {
        for view in VIEWS {
            let plain = env.run(&["history", session, "--for", view]);
            let expected = if view == "text" { "" } else { "[]\n" };
            assert_eq!((plain.code, plain.out.as_str()), (1, expected), "{session} {view}: {}", plain.all());
            let ran = env.run(&["history", session, "--for", view, "--json"]);
            let expected = if view == "text" { json!("") } else { json!([]) };
            assert_eq!((ran.code, ran.json()), (1, expected), "{session} {view}: {}", ran.all());
            assert!(serde_json::from_str::<Value>(&ran.err).unwrap().is_object(), "{}", ran.err);
        }
        let last = env.run(&["history", session, "--for", "openai", "--last", "3"]);
        assert_eq!((last.code, last.out.as_str()), (1, "[]\n"), "{}", last.all());
        assert_eq!(env.run(&["extract-tools", session, "--json"]).json(), json!([]));
        assert_eq!(env.run(&["show", session, "--json"]).json()["messages"], json!([]));
        let (records, tree) = (usize::from(session == "titled"), env.run(&["tree", session, "--json"]).json());
        assert_eq!(tree["records"].as_array().unwrap().len(), records, "{session}");
    }
    for command in ["show", "tree", "history"] {
        let args = [command, "empty", "--for", "text"];
        let ran = env.run(if command == "history" { &args } else { &args[..2] });
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("the file is empty") && ran.err.contains("hint: "), "{}", ran.err);
    }
}

fn call(id: &str, parent: &str, calls: &Value) -> String {
    let line =
        json!({"type": "assistant", "uuid": id, "parentUuid": parent, "message": {"content": "", "toolCalls": calls}});
    format!("{line}\n")
}

fn result(id: &str, parent: &str, call: &str, tool: Option<&str>) -> String {
    let result = json!({"toolCallId": call, "toolName": tool, "content": "done", "success": true});
    format!("{}\n", json!({"type": "tool_result", "uuid": id, "parentUuid": parent, "toolResults": [result]}))
}

#[test]
fn an_issue_of_a_call_names_the_call_and_its_tool() {
    let env = TestEnv::new();
    let calls = json!([
        {"id": "c1", "name": "bash", "arguments": {}},
        {"id": "c2", "name": "read", "arguments": {}},
        {"id": "c3", "name": "grep", "arguments": {}},
    ]);
    let log = [
        line("user", "u1", None, "Go."),
        call("a1", "u1", &calls),
        result("r1", "a1", "c2", Some("read")),
        result("r2", "r1", "c2", Some("read")),
        result("r3", "r2", "c9", None),
    ];
    env.session("s1", &log.concat());
    let named = |value: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|issue| (text(&issue["kind"]), text(&issue["detail"])))
            .collect()
    };
    let expected = [
        ("unanswered-call", "the call \"c1\" of \"bash\" has no result"),
        ("unanswered-call", "the call \"c3\" of \"grep\" has no result"),
        ("duplicate-result", "another result of the call \"c2\" of \"read\"; the first one counts"),
        ("orphan-result", "a tool result without its call \"c9\" in the session; it is shown alone"),
    ];
    let expected = expected.map(|(kind, detail)| (kind.to_owned(), detail.to_owned()));
    assert_eq!(named(&env.run(&["doctor", "s1", "--json"]).json()[0]["issues"]), expected);
    assert_eq!(named(&env.run(&["show", "s1", "--json"]).json()["issues"]), expected);
    assert_eq!(named(&env.run(&["tree", "s1", "--json"]).json()["issues"]), expected);
}

#[test]
fn an_issue_of_a_time_or_a_cycle_names_it() {
    let env = TestEnv::new();
    let late = talk().replace("2026-11-15T10:00:00Z", "yesterday");
    env.session("s1", &format!("{late}{}", line("user", "u9", Some("u9"), "Round.")));
    let issues = env.run(&["doctor", "s1", "--json"]).json()[0]["issues"].to_string();
    assert!(issues.contains(r#"its time cannot be read and is ignored: \"yesterday\""#), "{issues}");
    assert!(issues.contains(r#"record \"u9\" is its own parent"#), "{issues}");
}

#[test]
fn the_last_no_messages_are_the_header_alone() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let ran = env.run(&["show", "s1", "--last", "0"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert!(ran.out.contains("earlier messages: --last 20 ") && !ran.out.contains("--before"), "{}", ran.out);
    let page = env.run(&["show", "s1", "--last", "0", "--json"]).json();
    assert_eq!((&page["messages"], &page["whole"]), (&json!([]), &json!(false)));
    let before = env.run(&["show", "s1", "--last", "0", "--before", "u2"]);
    assert!(before.out.contains("earlier messages: --before u2 "), "{}", before.out);
    let first = env.run(&["show", "s1", "--before", "u1"]);
    assert!(!first.out.contains("earlier messages"), "{}", first.out);
    assert_eq!(env.run(&["show", "s1", "--last", "0", "--raw"]).out, "");
    assert_eq!(env.run(&["history", "s1", "--for", "openai", "--last", "0"]).out, "[]\n");
    // A large file, of which only the end is read.
    env.session("large", &talk().replace("Four.", &"four ".repeat(100_000)));
    let ran = env.run(&["show", "large", "--last", "0"]);
    assert!(ran.code == 0 && ran.out.contains("earlier messages: --last 20 "), "{}", ran.all());
}

/// With `--color always` a terminal is at the other end of the pipe, so that nothing in it may act there.
#[test]
fn a_history_with_colours_in_a_pipe_is_safe_on_a_terminal() {
    let env = TestEnv::new();
    env.session("s1", &line("user", "u1", None, "\u{1b}]0;owned\u{7}Hello\u{9b}2J"));
    let history = |color: &[&str]| env.run(&[&["history", "s1", "--for", "text"], color].concat()).out;
    let is_active = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!is_active(&history(&["--color", "always"])));
    for raw in [&[][..], &["--color", "never"], &["--color", "auto"]] {
        assert!(history(raw).contains("\u{1b}]0;owned\u{7}Hello\u{9b}2J"), "{raw:?}");
    }
}

/// Each command colours with `always`, and only then; NO_COLOR is for `auto`.
#[test]
fn every_command_follows_the_choice_of_colours() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let commands: [&[&str]; 5] =
        [&["list", "--all"], &["show", "s1"], &["tree", "s1"], &["doctor", "s1"], &["extract-tools", "s1"]];
    for args in commands {
        for (color, expected) in [("always", args[0] != "extract-tools"), ("never", false), ("auto", false)] {
            let mut command = env.command(&[args, &["--color", color]].concat());
            command.env("NO_COLOR", "1");
            let ran = env.ran(command, b"");
            assert_eq!(ran.out.contains('\u{1b}'), expected, "{args:?} {color}: {}", ran.all());
        }
        let ran = env.run(&[args, &["--color", "always", "--json"]].concat());
        assert!(!ran.all().contains('\u{1b}'), "{}", ran.all());
    }
}

/// `metadata.error` is true, and its text a part, as a row and as the session that it is imported to.
#[test]
fn the_error_of_a_row_is_a_part_and_a_flag() {
    let env = TestEnv::new();
    let sql = "CREATE TABLE agents (id TEXT, prompt TEXT, status TEXT, model TEXT, result TEXT, error TEXT);
        INSERT INTO agents VALUES ('a1', 'Go.', 'failed', 'm', NULL, 'The lamp broke.'), ('a2', 'Go.', 'cancelled', 'm', 'Half.', NULL);";
    rusqlite::Connection::open(env.work().join("smithers.db")).unwrap().execute_batch(sql).unwrap();
    let check = |session: &str, text: &str| {
        let page = env.run(&["show", session, "--json"]).json();
        let message = &page["messages"][1];
        assert_eq!(message["metadata"]["error"], true, "{message}");
        let parts = message["parts"].as_array().unwrap();
        let error = parts.iter().find(|part| part["type"] == "data-error").unwrap();
        assert_eq!(error["data"]["text"], text, "{message}");
    };
    check("./smithers.db#a1", "The lamp broke.");
    check("./smithers.db#a2", "cancelled");
    let rows = env.run(&["import", "smithers.db", "--json"]).json();
    check(rows[0]["session"].as_str().unwrap(), "The lamp broke.");
    check(rows[1]["session"].as_str().unwrap(), "cancelled");
}

/// A metadata.json that `new` writes says when the session began, as one that was there.
#[test]
fn ending_a_session_without_metadata_writes_when_it_began() {
    let env = TestEnv::new();
    let folder = env.work().join("store/projects/-gone-engine");
    std::fs::create_dir_all(&folder).unwrap();
    let message = json!({"role": "user", "content": "Hello.", "timestamp": "2026-11-14T09:00:00Z"});
    let path = folder.join("conversation.jsonl");
    std::fs::write(&path, format!("{message}\n")).unwrap();
    let ran = env.run(&["new", "--dialect", "sage-el", "--store", "store", "--project", "/gone/engine"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let about: Value = serde_json::from_slice(&std::fs::read(folder.join("metadata.json")).unwrap()).unwrap();
    assert_eq!(about["created_at"], "2026-11-14T09:00:00Z", "{about}");
    assert_eq!(about["project_dir"], "/gone/engine");
}
