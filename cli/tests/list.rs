//! `list` as people use it: real-sized sessions, narrow terminals, forks, agents that cannot be read yet.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::TestEnv;

/// The folder of Claude Code's sessions of one project.
fn claude_folder(env: &TestEnv) -> PathBuf {
    let folder = env.home().join(".claude/projects/-gone-shop");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A question and an answer of Claude Code. A copy has the same `requests`; `padding` makes the file as large as real ones are.
fn turn(session: &str, requests: &str, number: usize, padding: usize) -> [Value; 2] {
    let at = |second: usize| format!("2026-11-15T10:{:02}:{second:02}.000Z", number % 60);
    let (ask, answer) = (format!("u{number}"), format!("a{number}"));
    let before = number.checked_sub(1).map(|before| format!("a{before}"));
    [
        json!({"type": "user", "uuid": ask, "parentUuid": before, "sessionId": session, "cwd": "/gone/shop", "timestamp": at(1),
               "message": {"role": "user", "content": format!("Question {number}{}", " and more".repeat(padding))}}),
        json!({"type": "assistant", "uuid": answer, "parentUuid": ask, "sessionId": session, "cwd": "/gone/shop", "timestamp": at(2),
               "requestId": format!("req_{requests}{number}"), "message": {"id": format!("msg_{requests}{number}"), "role": "assistant", "model": "m",
               "content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 100, "output_tokens": 10}}}),
    ]
}

fn lines(values: impl IntoIterator<Item = Value>) -> String {
    values.into_iter().map(|value| format!("{value}\n")).collect()
}

/// The index knows a session by its own files: what it begins in may come back from the trash, or from another machine.
#[test]
fn a_fork_is_whole_again_when_its_origin_is_back() {
    let env = TestEnv::new();
    let folder = env.home().join(".codex/sessions/2026/10/02");
    fs::create_dir_all(&folder).unwrap();
    let [origin, fork] = ["019a0000-0000-7000-8000-000000000001", "019a0000-0000-7000-8000-000000000002"];
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../corpus/codex/fork");
    let put = |from: &str, id: &str| {
        fs::copy(corpus.join(from), folder.join(format!("rollout-2026-10-02T09-00-00-{id}.jsonl"))).unwrap();
    };
    let told = || {
        let rows = env.run(&["list", "--all", "--json"]).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["id"] == fork).unwrap().clone();
        (row["messageCount"].clone(), row["state"].clone())
    };
    put("rollout.jsonl", fork);
    for _ in 0..2 {
        assert_eq!(told(), (2.into(), "degraded".into()));
    }
    env.run(&["index"]);
    put(&format!("{origin}.jsonl"), origin);
    assert_eq!(told(), (4.into(), "clean".into()));
}

#[test]
fn real_sized_sessions_have_counts_states_and_tokens() {
    let env = TestEnv::new();
    let folder = claude_folder(&env);
    let of_size = |session: &str, turns, padding| {
        let path = folder.join(format!("{session}.jsonl"));
        fs::write(&path, lines((0..turns).flat_map(|number| turn(session, session, number, padding)))).unwrap();
        fs::metadata(path).unwrap().len()
    };
    let real = of_size("aaaaaaaa-0000-4000-8000-000000000000", 40, 500);
    let large = of_size("bbbbbbbb-0000-4000-8000-000000000000", 30, 20_000);
    assert!((100_000..300_000).contains(&real) && large > 4 * 1024 * 1024, "{real} {large}");
    let rows = env.run(&["list", "--all", "--json"]).json();
    assert_eq!((&rows[0]["messageCount"], &rows[0]["state"]), (&80.into(), &"clean".into()), "{rows:#}");
    assert_eq!(rows[0]["usage"], json!({"input": 4000, "output": 400}));
    assert_eq!(
        (&rows[1]["messageCount"], &rows[1]["state"], &rows[1]["usage"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let full = env.run(&["list", "--all", "--full", "--json"]).json();
    assert_eq!((&full[0], &full[1]["messageCount"]), (&rows[0], &60.into()), "--full changes nothing that was known");
    let table = env.run(&["list", "--all"]).out;
    assert_eq!(
        table.lines().map(|line| line.contains("clean")).collect::<Vec<_>>(),
        [false, true, true],
        "what --full has learned stays known: {table}"
    );
}

#[test]
fn a_narrow_terminal_keeps_what_matters() {
    let env = TestEnv::new();
    let header = |columns: &str| {
        let mut command = env.command(&["--demo", "list"]);
        command.env("COLUMNS", columns);
        let out = env.ran(command, b"").out;
        let widest = out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{out}");
        out.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_snapshot!(["200", "120", "80", "70", "60", "40", "28", "20"].map(header).join("\n"), @"
    ID UPDATED PROJECT TITLE AGENT MSGS STATE TOKENS
    ID UPDATED PROJECT TITLE AGENT MSGS STATE TOKENS
    ID UPDATED PROJECT TITLE AGENT MSGS STATE
    ID UPDATED PROJECT TITLE AGENT MSGS
    ID UPDATED PROJECT TITLE AGENT
    ID UPDATED PROJECT TITLE
    ID UPDATED PROJECT
    ID UPDATED
    ");
}

#[test]
fn an_id_is_accepted_beside_hidden_sub_agents_and_other_projects() {
    let env = TestEnv::new();
    let native = |id: &str, cwd: &str, parent: Option<&str>| {
        let record = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "context": {"cwd": cwd},
                            "timestamp": "2026-11-15T10:00:00Z", "metadata": {"parentSessionId": parent},
                            "message": {"role": "user", "content": "Hello"}});
        env.session(id, &lines([record]));
    };
    native("019a6f90-aaaa-1", "/gone/tide", None);
    native("019a6f90-aaab-2", "/gone/tide", Some("019a6f90-aaaa-1"));
    native("019a6f90-aabb-3", "/gone/other", None);
    let out = env.run(&["list", "--project", "/gone/tide"]).out;
    let ids: Vec<&str> = out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, ["019a6f90-aaaa"], "{out}");
    for command in ["show", "tree", "history", "doctor", "extract-tools"] {
        let ran = env.run(&[command, ids[0]]);
        assert!(!ran.err.contains("ambiguous") && !ran.err.contains("no session"), "{command}: {}", ran.all());
    }
}

#[test]
fn requests_that_a_fork_copied_count_once() {
    let env = TestEnv::new();
    let folder = claude_folder(&env);
    let [original, branch, fork] = ["a", "b", "c"].map(|last| format!("00000000-0000-4000-8000-00000000000{last}"));
    let of = |session: &str, turns| (0..turns).flat_map(|number| turn(session, "", number, 0)).collect::<Vec<Value>>();
    let marked = of(&branch, 2).into_iter().enumerate().map(|(at, mut line)| {
        if at < 2 {
            line["forkedFrom"] = json!({"sessionId": original, "messageUuid": line["uuid"]});
        }
        line
    });
    // Claude Code's /branch marks what it copies, --fork-session does not.
    for (session, text) in
        [(&original, lines(of(&original, 1))), (&branch, lines(marked)), (&fork, lines(of(&fork, 3)))]
    {
        fs::write(folder.join(format!("{session}.jsonl")), text).unwrap();
    }
    let rows = env.run(&["list", "--all", "--json"]).json();
    let outputs = rows.as_array().unwrap().iter().map(|row| {
        let copied = row["copiedUsage"]["output"].as_u64().unwrap_or(0);
        (row["id"].as_str().unwrap().chars().next_back().unwrap(), row["usage"]["output"].as_u64().unwrap() - copied)
    });
    assert_eq!(outputs.collect::<Vec<_>>(), [('c', 10), ('b', 10), ('a', 10)], "three requests were made: {rows:#}");
    let shown = env.run(&["show", &branch]).out;
    assert!(shown.contains("of these copied from another session: 100 in, 10 out"), "{shown}");
    // One session alone says the same, with and without marks.
    for (session, copied) in [(&original, None), (&branch, Some(10)), (&fork, Some(20))] {
        let page = env.run(&["show", session, "--json"]).json();
        assert_eq!(page["session"]["copiedUsage"]["output"].as_u64(), copied, "{session}");
    }
    let shown = env.run(&["show", &fork]).out;
    assert!(shown.contains("of these copied from another session: 200 in, 20 out"), "{shown}");
    let mut wide = env.command(&["list", "--all"]);
    wide.env("COLUMNS", "140");
    assert_eq!(env.ran(wide, b"").out.matches("  110\n").count(), 3, "the table has what each session made itself");
}

#[test]
fn sessions_of_agents_that_cannot_be_read_yet_are_counted() {
    let env = TestEnv::new();
    let write = |path: &str| {
        let path = env.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}\n").unwrap();
    };
    write(".gemini/tmp/shop/chats/session-2026-11-16T12-23-919f5a6e.jsonl");
    write(".gemini/tmp/old/chats/session-2025-11-16T12-23-919f5a6e.json");
    write(".gemini/tmp/shop/logs.json");
    write(".pi/agent/sessions/--home-dev-shop--/2026-11-16T12-26-35-732Z_1.jsonl");
    write(".local/share/opencode/opencode.db");
    write(".copilot/session-state/46e676b2/events.jsonl");
    write(".cline/data/sessions/c1/c1.json");
    write(".cline/data/sessions/c1/c1.messages.json");
    let line = "2 Gemini CLI sessions, 1 pi session, OpenCode sessions, 1 Copilot CLI session, 1 Cline session: \
                not supported yet.\n";
    let ran = env.run(&["list"]);
    assert!(ran.code == 1 && ran.err.starts_with(line), "{}", ran.all());
    env.session("s1", &support::talk());
    assert_eq!(env.run(&["list", "--all"]).err, line);
    // What limits the list to something else leaves them out.
    for args in [
        &["list", "--all", "--dialect", "native"][..],
        &["list", "--all", "--json"],
        &["list", "--project", "/gone/tide"],
    ] {
        assert!(!env.run(args).err.contains("not supported"), "{args:?}");
    }
}

#[test]
fn sessions_of_opencode_are_counted_without_its_sub_agents() {
    let env = TestEnv::new();
    let folder = env.home().join("data/opencode");
    fs::create_dir_all(&folder).unwrap();
    let database = rusqlite::Connection::open(folder.join("opencode.db")).unwrap();
    let sessions = "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT); \
                    INSERT INTO session VALUES ('a', NULL, '/gone', 'A'), ('b', 'a', '/gone', 'B'), ('c', NULL, '/gone', 'C');";
    database.execute_batch(sessions).unwrap();
    let mut command = env.command(&["list"]);
    command.env("XDG_DATA_HOME", env.home().join("data"));
    assert!(env.ran(command, b"").err.starts_with("2 OpenCode sessions: not supported yet.\n"));
}

#[test]
fn where_nothing_was_found_is_said() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["list"]).err, @"
    scrollback: no session found
    hint: searched ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.qwen/projects, ~/.emacs.d/sage/projects, ~/.config/emacs/sage/projects, ~/.sage/projects, ~/.local/share/scrollback/chats, ~/.local/share/scrollback/sessions, ~/.sage/sessions, $DIR/desk/data/memory, $DIR/desk/.sage/sessions; run `scrollback --demo list` to see the bundled demo sessions
    ");
    fs::create_dir_all(env.work().join("store")).unwrap();
    assert_snapshot!(env.run(&["list", "--store", "store", "--dialect", "codex"]).err, @"
    scrollback: no session found
    hint: searched $DIR/desk/store/sessions, $DIR/desk/store/archived_sessions; --store takes the folder above an agent's sessions, such as ~/.codex
    ");
}

#[test]
fn a_state_is_a_whole_word_at_80_columns() {
    let env = TestEnv::new();
    let mut command = env.command(&["--demo", "list"]);
    command.env("COLUMNS", "80");
    let out = env.ran(command, b"").out;
    let states: Vec<&str> = out.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
    assert!(states.iter().all(|state| ["clean", "degraded", "interrupted", "answer"].contains(state)), "{out}");
}

#[test]
fn a_newest_session_that_does_not_exist_says_where_it_was_looked_for() {
    let env = TestEnv::new();
    let newest = env.run(&["show", "@"]).err;
    assert!(newest.contains("hint: searched ~/.claude/projects, ") && newest.contains("~/.sage/sessions"), "{newest}");
    for (name, folder) in
        [("codex:@", "~/.codex/sessions"), ("claude:@", "~/.claude/projects"), ("qwen:@", "~/.qwen/projects")]
    {
        let failed = env.run(&["show", name]).err;
        assert!(failed.contains(&format!("hint: searched {folder}")) && !failed.contains(".sage"), "{failed}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_list_longer_than_the_window_is_paged_and_a_short_one_is_not() {
    let env = TestEnv::new();
    let folder = claude_folder(&env);
    for number in 0..30 {
        let session = format!("{number:08x}-0000-4000-8000-000000000000");
        fs::write(folder.join(format!("{session}.jsonl")), lines(turn(&session, &session, number, 0))).unwrap();
    }
    for command in ["", "list"] {
        let (long, short) = (env.on_terminal([24, 80], command), env.on_terminal([50, 80], command));
        assert_eq!(long.matches("paged:").count(), 31, "{long}");
        assert!(!short.contains("paged:") && short.lines().count() == 31, "{short}");
    }
}

#[test]
fn a_title_is_what_was_typed() {
    let env = TestEnv::new();
    env.session("s1", &support::line("user", "u1", None, "Fix __init__ in *value*"));
    let out = env.run(&["list", "--all"]).out;
    assert!(out.contains("Fix __init__ in *value*"), "{out}");
}

/// Codex keeps nothing of an answer that was stopped: the prompt is the last that was said.
#[test]
fn an_answer_that_was_stopped_is_interrupted_in_every_command() {
    let env = TestEnv::new();
    let folder = env.home().join(".codex/sessions/2026/11/15");
    fs::create_dir_all(&folder).unwrap();
    let id = "019a0000-0000-7000-8000-000000000001";
    let at = "2026-11-15T10:00:00Z";
    let meta = json!({"timestamp": at, "type": "session_meta", "payload": {"id": id, "timestamp": at, "cwd": "/gone"}});
    let said = |text: &str| {
        json!({"timestamp": at, "type": "response_item", "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]}})
    };
    let aborted = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>";
    let stopped =
        json!({"timestamp": at, "type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}});
    let file = folder.join(format!("rollout-2026-11-15T10-00-00-{id}.jsonl"));
    fs::write(&file, lines([meta.clone(), said("Explain it"), said(aborted), stopped])).unwrap();
    let row = env.run(&["list", "--all", "--json"]).json()[0].clone();
    assert_eq!((row["state"].as_str(), row["stopped"].as_bool()), (Some("interrupted-prompt"), Some(true)));
    for command in [&["list", "--all"][..], &["show", id], &["tree", id]] {
        let out = env.run(command).out;
        assert!(out.contains("interrupted") && !out.contains("no answer"), "{command:?}: {out}");
    }
    fs::write(&file, lines([meta, said("Explain it")])).unwrap();
    let row = env.run(&["list", "--all", "--json"]).json()[0].clone();
    assert_eq!((row["state"].as_str(), row.get("stopped")), (Some("interrupted-prompt"), None));
    assert!(env.run(&["list", "--all"]).out.contains("no answer"));
}
