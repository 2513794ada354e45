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
    // `doctor` begins with the working directory.
    assert_eq!(named(&env.run(&["doctor", "s1", "--json"]).json()[0]["issues"])[1..], expected);
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
    // A turn of which only the end is read.
    let mut turn = line("user", "u1", None, "Go.");
    for at in 1..60 {
        let parent = if at == 1 { "u1".to_owned() } else { format!("a{}", at - 1) };
        turn += &line("assistant", &format!("a{at}"), Some(&parent), &"work ".repeat(2_000));
    }
    env.session("turn", &turn);
    let ran = env.run(&["show", "turn", "--last", "0"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
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

/// What every record of a session states about its place.
fn in_place(cwd: &str, log: &str) -> String {
    let context = json!({"cwd": cwd, "gitBranch": "main", "platform": "macos", "userType": "internal"});
    log.replace(&json!({"cwd": "/gone/tide", "gitBranch": "main"}).to_string(), &context.to_string())
}

#[test]
fn a_session_says_on_what_platform_and_by_what_kind_of_user_it_was_recorded() {
    let env = TestEnv::new();
    env.session("s1", &in_place("/gone/tide", &talk()));
    let page = env.run(&["show", "s1", "--json"]).json();
    assert_eq!((&page["session"]["platform"], &page["session"]["userType"]), (&json!("macos"), &json!("internal")));
    let list = env.run(&["list", "--all", "--json"]).json();
    assert_eq!((&list[0]["platform"], &list[0]["userType"]), (&json!("macos"), &json!("internal")));
}

#[test]
fn a_recorder_states_the_kind_of_user_where_the_format_can() {
    let env = TestEnv::new();
    for (dialect, log) in [("native", ".local/share/scrollback"), ("claude-code", ".claude")] {
        let args = ["record", "--dialect", dialect, "--user-type", "internal", "--json"];
        let ran = env.run_with(&args, b"{\"user\": \"Hello\"}\n{\"assistant\": \"Hi.\"}\n");
        assert_eq!(ran.code, 0, "{log}: {}", ran.all());
        let ack: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
        let session = ack["session"].as_str().unwrap();
        let shown = env.run(&["show", session, "--json"]).json();
        assert_eq!(shown["session"]["userType"], "internal", "{shown}");
        let args = ["record", "--resume", session, "--user-type", "external", "--json"];
        assert_eq!(env.run_with(&args, b"{\"user\": \"More\"}\n").code, 0);
        let raw = env.run(&["show", session, "--raw"]).out;
        let types: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |line: &Value| line["userType"].as_str().or(line["context"]["userType"].as_str()).map(str::to_owned);
        assert_eq!(of(&types[0]).as_deref(), Some("internal"), "{raw}");
        assert_eq!(of(types.last().unwrap()).as_deref(), Some("external"), "{raw}");
    }
    for dialect in ["codex", "qwen-code", "sage-el", "ai-sdk"] {
        let ran =
            env.run_with(&["record", "--dialect", dialect, "--user-type", "internal"], b"{\"user\": \"Hello\"}\n");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.all());
        assert!(ran.err.contains("cannot store the kind of user\nhint: "), "{}", ran.err);
    }
    assert_eq!(env.run(&["record", "--user-type", ""]).code, 2);
}

#[test]
fn the_thinking_mode_of_a_prompt_is_shown() {
    let env = TestEnv::new();
    let with = |session: &str, mode: Value| {
        let mut prompt: Value = serde_json::from_str(&line("user", "u1", None, "Go.")).unwrap();
        (prompt["thinkingMetadata"], prompt["sessionId"]) = (mode, session.into());
        format!("{prompt}\n")
    };
    env.session("s1", &with("s1", json!({"level": "high", "disabled": false, "triggers": ["think hard"]})));
    env.session("s2", &with("s2", json!({"level": "high", "disabled": true, "triggers": []})));
    env.session("s3", &with("s3", json!({"level": "\u{1b}[31m\n", "disabled": false, "triggers": []})));
    assert!(env.run(&["show", "s1"]).out.contains(" · u1 · thinking high\n"), "{}", env.run(&["show", "s1"]).out);
    assert!(env.run(&["show", "s2"]).out.contains(" · u1 · thinking off\n"));
    assert!(!env.run(&["show", "s3"]).out.contains('\u{1b}'));
}

#[test]
fn doctor_notes_a_working_directory_that_is_gone() {
    let env = TestEnv::new();
    let here = env.work().join("project");
    std::fs::create_dir_all(&here).unwrap();
    env.session("s1", &in_place("/gone/tide", &talk()));
    env.session("s2", &in_place(&here.to_string_lossy(), &talk().replace("s1", "s2")));
    // A path of another system is not looked for.
    env.session("s3", &in_place("C:\\\\gone\\\\tide", &talk().replace("s1", "s3")));
    let gone = env.run(&["doctor", "s1", "--json"]);
    let issue = &gone.json()[0]["issues"][0];
    assert_eq!((gone.code, &issue["kind"], &issue["severity"]), (0, &json!("missing-cwd"), &json!("note")));
    assert!(issue["detail"].as_str().unwrap().contains("\"/gone/tide\" does not exist"), "{issue}");
    let text = env.run(&["doctor", "s1"]);
    assert!(text.code == 0 && text.out.contains("missing-cwd") && text.out.contains("no problems"), "{}", text.all());
    for session in ["s2", "s3"] {
        assert_eq!(env.run(&["doctor", session, "--json"]).json()[0]["issues"], json!([]), "{session}");
    }
    // It is none of the files' problems: among many it is not printed, and no other command counts it.
    assert!(!env.run(&["doctor", "--all"]).out.contains("missing-cwd"));
    assert_eq!(env.run(&["show", "s1", "--json"]).json()["issues"], json!([]));
    assert!(!env.run(&["--demo", "doctor", "--json"]).out.contains("missing-cwd"));
}

#[test]
fn another_branch_than_the_recorded_one_is_told() {
    let env = TestEnv::new();
    let here = env.work().join("project");
    std::fs::create_dir_all(here.join(".git")).unwrap();
    let check_out =
        |branch: &str| std::fs::write(here.join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    env.session("s1", &in_place(&here.to_string_lossy(), &talk()));
    let told = "The branch tides is checked out now; the session recorded main.\n";
    for branch in ["main", "tides"] {
        check_out(branch);
        let is_other = branch == "tides";
        assert_eq!(env.run(&["show", "s1"]).err.contains(told), is_other);
        let page = env.run(&["show", "s1", "--json"]);
        let now = if is_other { json!("tides") } else { Value::Null };
        assert_eq!((&page.json()["gitBranchNow"], page.err.as_str()), (&now, ""));
        assert_eq!(env.run(&["history", "s1", "--for", "text"]).err.contains(told), is_other);
        let report = env.run(&["history", "s1", "--for", "text", "--json"]).err;
        assert_eq!(serde_json::from_str::<Value>(&report).unwrap()["gitBranchNow"], now, "{report}");
    }
    let ran = env.run_with(&["record", "--resume", "s1"], b"{\"user\": \"More\"}\n");
    assert!(ran.code == 0 && ran.err.contains(told), "{}", ran.all());
}

#[test]
fn resuming_says_since_when_how_much_and_how_it_ended() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let from = "Resumed session from 2026-11-15T10:00:00Z: ";
    let notice = |session: &str| {
        let ran = env.run(&["history", session, "--for", "openai", "--json"]);
        serde_json::from_str::<Value>(&ran.err).unwrap()["notice"].as_str().unwrap().to_owned()
    };
    assert_eq!(notice("s1"), format!("{from}4 messages, it continues after its last answer."));
    assert_eq!(notice("s1#u1"), format!("{from}1 message, the last prompt has no answer yet."));
    let calls = json!([{"id": "c1", "name": "bash", "arguments": {}}, {"id": "c2", "name": "read", "arguments": {}}]);
    let prompt = line("user", "u1", None, "Go.").replace("s1", "s2");
    env.session("s2", &format!("{prompt}{}", call("a1", "u1", &calls)));
    let how = "the last answer was interrupted: 2 calls have no result, and they are not run again.";
    assert!(notice("s2").ends_with(how), "{}", notice("s2"));
    let ran = env.run_with(&["record", "--resume", "s1"], b"{\"user\": \"More\"}\n");
    let expected = format!("{from}4 messages, it continues after its last answer.\nRecording to ");
    assert!(ran.code == 0 && ran.err.contains(&expected), "{}", ran.all());
    let ran = env.run_with(&["record", "--checkpoint", "s1#a1"], b"{\"user\": \"Else\"}\n");
    assert!(ran.err.contains(&format!("{from}2 messages, it continues after its last answer.\n")), "{}", ran.all());
    let ran = env.run_with(&["record"], b"{\"user\": \"New\"}\n");
    assert!(!ran.err.contains("Resumed"), "{}", ran.all());
}

#[test]
fn a_prompt_without_content_is_said_to_be_empty() {
    let env = TestEnv::new();
    let bare = json!({"type": "user", "uuid": "u3", "parentUuid": "a2", "timestamp": "2026-11-15T10:00:00Z"});
    env.session("s1", &format!("{}{bare}\n", talk()));
    let shown = env.run(&["show", "s1"]);
    assert!(shown.out.contains("▌ you") && shown.out.contains("  (empty)\n"), "{}", shown.out);
}
