//! Every outlet of the program: no secret leaves by a pipe, wherever it is in a session; outlets that promise exact bytes say so.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;
use support::{Ran, TestEnv};

/// What leaves by each command. A command that is not here fails the test.
const MASKED: &[(&str, &[&[&str]])] = &[
    (
        "list",
        &[
            &["list", "--all"],
            &["list", "--all", "--json"],
            &["list", "--all", "--jsonl"],
            &["list", "--all", "--full", "--sidechains"],
        ],
    ),
    (
        "search",
        &[
            &["search", "role:user", "--all"],
            &["search", "harbour OR my OR curl", "--all", "--json"],
            &["search", "/TOKEN|./", "--all"],
            &["search", "is:error -x", "--all", "--context", "3"],
        ],
    ),
    ("keep", &[&["keep", "status"], &["keep", "on", "--json"], &["keep", "off"]]),
    (
        "stats",
        &[
            &["stats", "--all", "--by", "project,tool,model"],
            &["stats", "--all", "--by", "session,agent", "--json"],
            &["stats", "--all", "--by", "tool", "--csv"],
            &["stats", "--all", "--explain"],
            &["stats", "--all", "--explain", "--json"],
            &["stats", "--all", "--blocks"],
        ],
    ),
    (
        "hook",
        &[
            &["hook", "status"],
            &["hook", "install", "claude-code", "--yes"],
            &["hook", "remove", "claude-code", "--json", "--yes"],
        ],
    ),
    (
        "sql",
        &[
            &["sql", "select * from sessions", "--all"],
            &["sql", "select * from messages", "--all", "--json"],
            &["sql", "select part_text(id), * from parts", "--all", "--json"],
            &["sql", "select part_text(id) from parts", "--all", "--csv"],
            &["sql", "select * from tool_calls join usage", "--all", "--csv"],
        ],
    ),
    (
        "export",
        &[
            &["export", "s1", "--to", "sqlite", "-o", "masked.db"],
            &["export", "c1", "--to", "sqlite", "-o", "masked.db", "--json"],
        ],
    ),
    ("index", &[&["index"], &["index", "--everything", "--json"], &["index", "--verify"]]),
    (
        "show",
        &[
            &["show", "s1"],
            &["show", "s1", "--full"],
            &["show", "s1", "--json"],
            &["show", "s1", "--last", "1"],
            &["show", "s1", "--color", "always", "--full"],
            &["show", "c1", "--full"],
            &["show", "c1", "--json"],
        ],
    ),
    (
        "replay",
        &[
            &["replay", "s1"],
            &["replay", "s1", "--full"],
            &["replay", "s1", "--json"],
            &["replay", "c1", "--step", "--full"],
        ],
    ),
    (
        "tree",
        &[
            &["tree", "s1"],
            &["tree", "s1", "--records"],
            &["tree", "s1", "--json"],
            &["tree", "c1"],
            &["tree", "c1", "--json"],
        ],
    ),
    (
        "extract-tools",
        &[
            &["extract-tools", "s1"],
            &["extract-tools", "s1", "--json"],
            &["extract-tools", "s1", "--jsonl"],
            &["extract-tools", "c1"],
        ],
    ),
    (
        "export",
        &[
            &["export", "s1"],
            &["export", "s1", "--to", "md"],
            &["export", "s1", "--branches"],
            &["export", "c1"],
            &["export", "c1", "--to", "md"],
        ],
    ),
    ("resume", &[&["resume", "c1", "--print"], &["resume", "c1", "--print", "--json"], &["resume", "s1"]]),
    (
        "doctor",
        &[
            &["doctor", "s1"],
            &["doctor", "--all", "--json"],
            &["doctor", "s1", "--profile", "sage-el"],
            &["doctor", "c1", "--full"],
        ],
    ),
    ("trash", &[&["trash"], &["trash", "--json"]]),
    ("rename", &[&["rename", "s1", "T-TOKEN"], &["rename", "c1", "T-TOKEN", "--json"]]),
    ("rewind", &[&["rewind", "s1#u1"], &["rewind", "s1#u1", "--json"]]),
    ("fork", &[&["fork", "s1"], &["fork", "s1", "--json"]]),
    (
        "convert",
        &[
            &["convert", "s1", "--to", "codex"],
            &["convert", "c1", "--to", "native", "--json"],
            &["convert", "s1", "--to", "ai-sdk", "--explain"],
        ],
    ),
    ("new", &[&["new", "--dialect", "sage-el", "--json"]]),
    ("import", &[&["import", "nothing-TOKEN"]]),
    ("remove", &[&["remove", "s1"], &["remove", "c1", "--json"]]),
    ("redact", &[&["redact", "s1"], &["redact", "s1", "--json"]]),
    (
        "undo",
        &[
            &["undo", "s1#u1", "--dry-run", "--root", "."],
            &["undo", "s1#u1", "--dry-run", "--json", "--root", "."],
            &["undo", "c1", "--yes", "--root", "."],
        ],
    ),
    ("redo", &[&["redo", "s1", "--dry-run", "--json", "--root", "."]]),
    (
        "files",
        &[
            &["files", "s1"],
            &["files", "s1", "--json"],
            &["files", "c1", "--json"],
            &["files", "s1", "--diff", "u1.."],
            &["files", "s1", "--diff", "u1..", "--json"],
        ],
    ),
    ("tail", &[]),
    // Its pages: `serve.rs`.
    ("serve", &[]),
    ("record", &[]),
];

/// They print the bytes of a session, and say how many secrets are in them.
const EXACT: &[(&str, &[&str])] = &[
    ("history", &["history", "s1", "--for", "anthropic"]),
    ("history", &["history", "s1", "--for", "text"]),
    ("show", &["show", "s1", "--raw"]),
    ("files", &["files", "s1", "keys.txt", "--at", "u1"]),
    ("convert", &["convert", "s1", "--to", "native", "-o", "-"]),
];

/// They print nothing of a session.
const PROGRAM: &[&str] = &["config", "completions", "man", "help"];

/// A vendor's token, put together so that no scanner finds it in this file.
fn token(number: usize) -> String {
    const SIGNS: &[u8] = b"aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5kL7nP9";
    let sign = |at: usize| char::from(SIGNS[(at * 7 + number * 11) % SIGNS.len()]);
    format!("{}{}", "ghp_", (0..36).map(sign).collect::<String>())
}

/// Sessions with a secret in each place that a session has.
fn home() -> (TestEnv, Vec<String>) {
    let env = TestEnv::new();
    let mut tokens = Vec::new();
    let mut next = || {
        tokens.push(token(tokens.len()));
        tokens[tokens.len() - 1].clone()
    };
    let context =
        json!({"cwd": format!("/gone/tide-{}", next()), "gitBranch": format!("b-{}", next()), "platform": next()});
    let first = |kind: &str, id: &str, parent: Option<&str>| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1",
        "timestamp": "2026-11-15T10:00:00Z", "version": "1", "format": 2, "context": context})
    };
    let with = |mut line: serde_json::Value, more: serde_json::Value| {
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let long = "harbour ".repeat(14);
    let lines = [
        with(first("custom_title", "t1", None), json!({"title": format!("{long}{}", next())})),
        with(first("user", "u1", None), json!({"message": {"role": "user", "content": format!("my key: {}", next())}})),
        with(
            first("assistant", "a1", Some("u1")),
            json!({"model": next(), "message": {"role": "assistant", "content": format!("I see {} there", next()),
            "toolCalls": [{"id": "k1", "name": format!("tool_{}", next()), "arguments": {"command": format!("curl -H 'Authorization: Bearer {}'", next())}},
                {"id": "k2", "name": "Read", "arguments": {"file_path": ".env"}}]}}),
        ),
        with(
            first("tool_result", "r1", Some("a1")),
            json!({"toolResults": [
            {"toolCallId": "k1", "toolName": "bash", "content": format!("export X={}", next()), "success": false, "error": format!("exit 1: {}", next())},
            {"toolCallId": "k2", "toolName": "Read", "content": "harbourlights=at-seven-canary", "success": true}]}),
        ),
        with(first(&format!("kind_{}", next()), "x1", Some("r1")), json!({"detail": next()})),
        with(
            first("user", "u2", Some("x1")),
            json!({"message": {"role": "user", "content": format!("```\npassword = \"{}\"\n```", next())}}),
        ),
        with(
            json!({"type": "file_history_snapshot", "messageId": "a1", "sessionId": "s1", "format": 2, "timestamp": "2026-11-15T10:00:00Z"}),
            json!({"isSnapshotUpdate": false, "snapshot": {"fileBackups": {}, "trackedFiles": {
                "keys.txt": {"originalContent": format!("first {}\nsecond {}\n", next(), next()), "contentHash": "00", "state": "modified"},
                ".env": {"originalContent": "harbourlights=at-seven-canary", "contentHash": "00", "state": "modified"},
                format!("t-{}.txt", next()): {"originalContent": "x", "contentHash": "00", "state": "modified"}}}}),
        ),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    env.session("s1", &format!("{log}{{\"type\":\"user\",\"torn\":\"{}\n", next()));
    let claude = env.home().join(".claude/projects/-gone-tide");
    fs::create_dir_all(&claude).unwrap();
    let id = "c1aaaaaa-1111-4111-8111-111111111111";
    let line = |kind: &str, uuid: &str, parent: serde_json::Value, more: serde_json::Value| {
        with(
            json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "timestamp": "2026-11-15T09:00:00Z", "cwd": "/gone/tide", "version": "2"}),
            more,
        )
    };
    let (prompt, answer, result) = (
        "aaaaaaaa-1111-4111-8111-000000000001",
        "aaaaaaaa-1111-4111-8111-000000000002",
        "aaaaaaaa-1111-4111-8111-000000000003",
    );
    let lines = [
        line("user", prompt, json!(null), json!({"message": {"role": "user", "content": format!("{long}{}", next())}})),
        line(
            "assistant",
            answer,
            json!(prompt),
            json!({"message": {"id": "m1", "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": format!("hm {}", next()), "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cat ~/.aws/credentials", "description": next()}}]}}),
        ),
        line(
            "user",
            result,
            json!(answer),
            json!({"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "harbourlights=at-seven-canary"}]},
            "toolUseResult": {"stdout": "harbourlights=at-seven-canary", "stderr": ""}}),
        ),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(claude.join(format!("{id}.jsonl")), log).unwrap();
    (env, tokens)
}

/// What of the secrets is in a text: eight signs in a row are a leak.
fn leaks(ran: &Ran, tokens: &[String]) -> Vec<String> {
    let text = format!("{}\n{}", ran.out, ran.err);
    let pieces = tokens.iter().flat_map(|token| (4..token.len() - 8).map(|at| &token[at..at + 8]));
    let pieces = pieces.chain(["at-seven-canary"]);
    pieces.filter(|piece| text.contains(piece)).map(str::to_owned).collect()
}

#[test]
fn no_secret_leaves_by_a_pipe() {
    for (command, runs) in MASKED {
        for run in *runs {
            let (env, tokens) = home();
            let title = tokens[0].clone();
            let args: Vec<String> = run.iter().map(|arg| arg.replace("TOKEN", &title)).collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran = env.run(&args);
            assert_eq!(leaks(&ran, &tokens), Vec::<String>::new(), "{command} {args:?}\n{}", ran.all());
            let shows_texts = ["show", "extract-tools"].contains(command);
            assert!(
                !shows_texts || ran.all().contains("[REDACTED"),
                "{command} {args:?} shows nothing masked\n{}",
                ran.all()
            );
        }
    }
}

#[test]
fn what_is_exact_says_so_and_can_be_masked() {
    for (_, run) in EXACT {
        let (env, tokens) = home();
        let exact = env.run(run);
        assert!(!leaks(&exact, &tokens).is_empty(), "{run:?}");
        assert!(exact.err.contains(" secrets are in this session; --redact masks them"), "{run:?}: {}", exact.err);
        let masked = env.run(&[*run, &["--redact"]].concat());
        assert_eq!(leaks(&masked, &tokens), Vec::<String>::new(), "{run:?}\n{}", masked.all());
        assert!(!masked.err.contains("--redact"), "{}", masked.err);
    }
    let (env, tokens) = home();
    let open = env.run(&["show", "s1", "--no-redact"]);
    assert!(!leaks(&open, &tokens).is_empty());
}

/// Only its content is a secret: not its path, and not when and by which message it changed.
#[test]
fn a_file_that_is_a_secret_as_a_whole_is_listed_and_its_bytes_come_with_a_notice() {
    let (env, _) = home();
    for run in
        [&["files", "s1", "--json"][..], &["files", "s1", ".env", "--json"], &["files", "s1", "--diff", "..", "--json"]]
    {
        let rows = env.run(run).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["path"] == ".env").unwrap().to_string();
        assert!(!row.contains("[REDACTED"), "{run:?}: {row}");
    }
    let exact = env.run(&["files", "s1", ".env", "--at", "u1"]);
    assert_eq!(exact.out, "harbourlights=at-seven-canary", "{}", exact.all());
    assert!(exact.err.contains("1 secret is in this session; --redact masks it"), "{}", exact.err);
}

#[test]
fn a_fork_without_secrets_does_not_say_that_it_was_recorded_with_them() {
    let env = TestEnv::new();
    let told = |id: &str| {
        let sidecar =
            fs::read_to_string(env.home().join(format!(".local/share/scrollback/sessions/{id}/metadata.json")))
                .unwrap();
        serde_json::from_str::<serde_json::Value>(&sidecar).unwrap().get("redaction").cloned()
    };
    env.run_with(&["record", "--id", "r1", "--no-redact"], b"{\"user\": \"the password is tide4x9\"}\n");
    for (id, option, says) in [("f1", "--no-redact", Some(json!("off"))), ("f2", "--redact", None)] {
        let ran = env.run(&["fork", "r1", "--id", id, option]);
        assert_eq!((ran.code, told(id)), (0, says), "{option}: {}", ran.all());
    }
}

#[test]
fn every_command_is_in_the_list() {
    let env = TestEnv::new();
    let help = env.run(&["--help"]).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named: BTreeSet<&str> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: BTreeSet<&str> = MASKED
        .iter()
        .map(|(name, _)| *name)
        .chain(EXACT.iter().map(|(name, _)| *name))
        .chain(PROGRAM.iter().copied())
        .collect();
    assert_eq!(
        named.difference(&known).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "does its output have secrets in it?"
    );
}

#[test]
fn following_a_pipe_and_recording_mask_secrets_too() {
    let (env, tokens) = home();
    let log = fs::read(env.home().join(".sage/sessions/s1/messages.jsonl")).unwrap();
    for form in [
        &["tail", "-"][..],
        &["tail", "-", "--jsonl"],
        &["tail", "-", "--chunks"],
        &["show", "-"],
        &["history", "-", "--for", "text", "--redact"],
    ] {
        let ran = env.run_with(form, &log);
        assert_eq!(leaks(&ran, &tokens), Vec::<String>::new(), "{form:?}\n{}", ran.all());
        assert!(ran.out.contains("[REDACTED"), "{form:?}");
    }
    let secret = token(99);
    let refused = env.run_with(
        &["record", "--id", "r1"],
        format!("{{\"{secret}\": 1}}\nnot json {secret}\n{{\"user\": \"{secret}\"}}\n").as_bytes(),
    );
    assert_eq!(leaks(&refused, &[secret]), Vec::<String>::new(), "{}", refused.all());
}
