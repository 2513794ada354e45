//! `show` beside the screens of real agents: what a person saw there is in the transcript. And hostile calls: bounded and harmless.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::TestEnv;

fn oracle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lib/tests/oracle")
}

/// The transcript of a sample, after it was recorded.
fn show(sample: &str, options: &[&str]) -> String {
    let folder = oracle().join(sample);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let env = TestEnv::new();
    let mut command = env.command(&[&["show", files[0].to_str().unwrap()], options].concat());
    command.env("SCROLLBACK_NOW", "2026-11-18T12:00:00Z");
    env.ran(command, b"").out
}

#[track_caller]
fn has_in_order(shown: &str, expected: &[&str]) {
    let mut rest = shown;
    for piece in expected {
        let Some(at) = rest.find(piece) else { panic!("{piece:?} is missing, or not in its place:\n{shown}") };
        rest = &rest[at + piece.len()..];
    }
}

/// A page counts what `list` counts; a command is on the page of the message that it follows, with its output.
#[test]
fn the_last_messages_are_counted_without_local_commands() {
    let line = |id: &str, parent: &str, kind: &str, text: &str| {
        let content = if kind == "user" { text.into() } else { serde_json::json!([{"type": "text", "text": text}]) };
        let message = serde_json::json!({"role": kind, "content": content});
        let line = serde_json::json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "userType": "external",
            "timestamp": "2026-11-15T10:00:00Z", "message": message});
        format!("{line}\n")
    };
    let log = [
        line("c0", "", "user", "<command-name>/model</command-name>"),
        line("u1", "c0", "user", "One?"),
        line("a1", "u1", "assistant", "First."),
        line("c1", "a1", "user", "<bash-input>ls</bash-input>"),
        line("o1", "c1", "user", "<bash-stdout>tides.csv</bash-stdout><bash-stderr></bash-stderr>"),
        line("u2", "o1", "user", "Two?"),
        line("a2", "u2", "assistant", "Second."),
        line("c2", "a2", "user", "<command-name>/rename</command-name><command-args>Tides</command-args>"),
        line("o2", "c2", "user", "<local-command-stdout>Renamed.</local-command-stdout>"),
    ];
    let env = TestEnv::new();
    let file = env.work().join("s.jsonl");
    std::fs::write(&file, log.concat()).unwrap();
    let all = ["/model", "One?", "First.", "! ls", "tides.csv", "Two?", "Second.", "/rename Tides", "Renamed."];
    for (last, shown) in [("0", 9..9), ("1", 6..9), ("2", 5..9), ("3", 2..9), ("4", 1..9), ("5", 0..9)] {
        let out = env.run(&["show", file.to_str().unwrap(), "--last", last]).out;
        let (_, out) = out.split_once("\n\n").unwrap();
        for (at, text) in all.iter().enumerate() {
            assert_eq!(out.contains(text), shown.contains(&at), "--last {last}: {text} in\n{out}");
        }
        has_in_order(out, &all[shown]);
    }
    let before = env.run(&["show", file.to_str().unwrap(), "--last", "1", "--before", "u2"]).out;
    has_in_order(&before, &["First.", "! ls", "tides.csv"]);
    assert!(!before.contains("Two?") && before.matches("One?").count() == 1, "the title has it: {before}");
}

#[test]
fn what_claude_code_shows_is_shown() {
    has_in_order(
        &show("claude/mention", &[]),
        &[
            "@README.md Explain",
            "Read README.md (2 lines)",
            "@red.png What",
            "red.png (image/png, 75 B)",
            "A red square.",
        ],
    );
    let compact = show("claude/compact", &[]);
    has_in_order(
        &compact,
        &[
            "── compacted (manual)",
            "Start with the empty cart",
            "/compact keep the names",
            "Compacted (ctrl+o",
            "Read cart.py (7 lines)",
        ],
    );
    assert_eq!(compact.matches("Start with the empty cart").count(), 1, "{compact}");
    assert!(!compact.contains('␛'), "{compact}");
    has_in_order(
        &show("claude/rewind-conv-end", &[]),
        &[
            "✓ Write  notes.txt · ok · +3\n    + alpha\n    + beta\n    + gamma\n",
            "· ok · +1 −1\n      alpha\n    - beta\n    + BETA\n      gamma\n",
        ],
    );
    has_in_order(
        &show("claude/queued-tool", &[]),
        &[" · 5 s\n", "$ echo short-suite", " · ok\n    short-suite\n    short-done\n"],
    );
    let stopped = show("claude/esc-tool", &[]);
    has_in_order(&stopped, &["⊘ $ echo suite-started", "· denied\n", "── interrupted"]);
    assert!(!stopped.contains("STOP what you are doing"), "that is for the model: {stopped}");
    assert!(show("claude/esc-tool", &["--full"]).contains("STOP what you are doing"));
    has_in_order(
        &show("claude/subagent", &[]),
        &["✓ Agent  sub task", "scrollback show agent-", "Agent \"sub task\" finished"],
    );
    has_in_order(
        &show("claude/summarize-from", &[]),
        &["notes.txt is there.", "── compacted", "Edit  notes.txt · failed"],
    );
    has_in_order(
        &show("claude/plan-accept", &[]),
        &[
            "✓ ExitPlanMode · accepted\n    # Invoice module\n\n    1. Add invoice.py\n    2. Round half up\n",
            "I carry",
        ],
    );
    has_in_order(
        &show("claude/question", &[]),
        &[
            "✓ AskUserQuestion · answered\n    Which rounding do you want?\n    ● Half up: As invoices do\n    ○ Half even: As bankers do\n\n",
            "⊘ AskUserQuestion · not answered\n    Which rounding do you want?\n    ○ Half up",
        ],
    );
    let clear = show("claude/clear", &[]);
    assert!(!clear.contains("<local-command-stdout>"), "{clear}");
}

#[test]
fn what_codex_shows_is_shown() {
    has_in_order(
        &show("codex/approve-deny", &[]),
        &[
            "✓ $ echo escalated > esc.txt; cat esc.txt · ok\n    escalated\n",
            "⊘ $ rm -f esc.txt",
            "denied",
            "aborted by user",
            "── interrupted",
        ],
    );
    has_in_order(&show("codex/esc-tool", &[]), &["✗ $ echo suite-started", "· interrupted", "aborted by user"]);
    has_in_order(
        &show("codex/bang", &[]),
        &["! echo hello-from-bang", "hello-from-bang\n  oops\n", "! ls", "README.md\n"],
    );
    let compact = show("codex/compact", &[]);
    has_in_order(&compact, &["✓ $ echo ran-it", "\n    ran-it\n", "It ran.", "── compacted"]);
    assert!(!compact.contains("<analysis>"), "the compaction's answer is its summary:\n{compact}");
    has_in_order(&show("codex/error", &[]), &["  ✗ {\"type\": \"error\"", "\n    "]);
    let shown = show("codex/esc-stream", &[]);
    assert!(!shown.contains("▌ assistant"), "an interruption has no author:\n{shown}");
    has_in_order(&show("codex/fails", &[]), &["✓ view_image  /home/dev/shop/red.png · ok · → [image, 75 B]\n"]);
    has_in_order(&show("codex/chat-rename", &[]), &["gpt-5.5", " in, ", " out · <1 s"]);
}

#[test]
fn what_qwen_code_shows_is_shown() {
    has_in_order(
        &show("qwen/approve-deny", &[]),
        &["✓ $ echo ran-it > ran.txt; cat ran.txt · ok\n    ran-it\n", "⊘ $ rm -rf build-output", "denied"],
    );
    has_in_order(
        &show("qwen/rewind", &[]),
        &["write_file  notes.txt · ok · +3", "+ alpha\n    + beta\n    + gamma\n", "── rewound"],
    );
    let compress = show("qwen/compress", &[]);
    has_in_order(&compress, &["then one item", "/compress", "1006 → 51 tokens", "Give me three names"]);
    assert!(!compress.contains("▌ system"), "a message without content has no header:\n{compress}");
}

/// A divider stands below the command that asked for it, and a mention belongs to the prompt that was typed with it.
#[test]
fn qwen_code_compacts_twice_and_rewinds_to_before_a_mention() {
    let line = |id: &str, parent: &str, kind: &str, more: serde_json::Value| {
        let mut line = serde_json::json!({"uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/w", "type": kind,
            "timestamp": "2026-11-15T10:00:00Z"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let said = |id: &str, parent: &str, kind: &str, text: &str| {
        let role = if kind == "user" { "user" } else { "model" };
        line(id, parent, kind, serde_json::json!({"message": {"role": role, "parts": [{"text": text}]}}))
    };
    let noted = |id: &str, parent: &str, subtype: &str, payload: serde_json::Value| {
        line(id, parent, "system", serde_json::json!({"subtype": subtype, "systemPayload": payload}))
    };
    let compressed = |id: &str, parent: &str, tokens: u64| {
        let info = serde_json::json!({"originalTokenCount": tokens, "newTokenCount": 9, "compressionStatus": 1});
        let history = [serde_json::json!({"role": "user", "parts": [{"text": "Summary."}]})];
        noted(id, parent, "chat_compression", serde_json::json!({"info": info, "compressedHistory": history}))
    };
    let command = |id: &str, parent: &str, phase: &str| {
        noted(id, parent, "slash_command", serde_json::json!({"phase": phase, "rawCommand": "/compress"}))
    };
    let log = [
        said("u1", "", "user", "One?"),
        said("a1", "u1", "assistant", "First."),
        noted("m1", "a1", "at_command", serde_json::json!({"filesRead": ["a.txt"], "userText": "@a.txt Two?"})),
        said("u2", "m1", "user", "@a.txt Two?"),
        said("a2", "u2", "assistant", "Second."),
        noted("w1", "m1", "rewind", serde_json::json!({"truncatedCount": 2})),
        said("u3", "w1", "user", "Three?"),
        said("a3", "u3", "assistant", "Third."),
        compressed("k1", "a3", 801),
        command("c1", "k1", "invocation"),
        command("c2", "c1", "result"),
        compressed("k2", "c2", 702),
        command("c3", "k2", "invocation"),
        command("c4", "c3", "result"),
        said("u4", "c4", "user", "Four?"),
    ];
    let env = TestEnv::new();
    let file = env.work().join("s.jsonl");
    std::fs::write(&file, log.concat()).unwrap();
    let shown = env.run(&["show", file.to_str().unwrap()]).out;
    has_in_order(
        &shown,
        &["First.", "rewound to a1", "Three?", "/compress", "801 → 9", "/compress", "702 → 9", "Four?"],
    );
    assert_eq!((shown.matches("compacted").count(), shown.matches("Read a.txt").count()), (2, 0), "{shown}");
    let before = env.run(&["show", file.to_str().unwrap(), "--head", "a2"]).out;
    has_in_order(&before, &["@a.txt Two?", "Read a.txt", "Second."]);
}

#[test]
fn the_last_words_of_a_sub_agent_are_folded_into_its_call() {
    let env = TestEnv::new();
    let folder = env.home().join(".codex/sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    for file in std::fs::read_dir(oracle().join("codex/codexsub__01-continue"))
        .unwrap()
        .map(|file| file.unwrap().path())
    {
        if file.extension().is_some_and(|ending| ending == "jsonl") {
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
    let shown = env.run(&["show", "01a1e0f7-402c"]).out;
    has_in_order(&shown, &["✓ spawn_agent  Look about.", "· ok\n", "└ sub-agent: scrollback show 01a1e0f7-417c"]);
    let words = env.run(&["show", "01a1e0f7-417c", "--last", "1"]).out;
    let last = words.trim_end().lines().last().unwrap().trim();
    assert!(!last.is_empty() && shown.contains(last), "{last:?} is not in\n{shown}");
    // No command is offered for a session that was removed.
    for file in std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
        if file.to_string_lossy().contains("01a1e0f7-417c") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let shown = env.run(&["show", "01a1e0f7-402c"]).out;
    assert!(shown.contains("└ sub-agent: its session is gone") && !shown.contains("show 01a1e0f7-417c"), "{shown}");
}

#[test]
fn a_sub_agent_of_qwen_code_is_found_by_the_call_that_its_own_file_names() {
    let env = TestEnv::new();
    let project = env.home().join(".qwen/projects/-w");
    let (parent, child) = ("5e551000-0000-4000-8000-000000000001", "agent-explore-c1");
    let children = project.join("subagents").join(parent);
    std::fs::create_dir_all(&children).unwrap();
    std::fs::create_dir_all(project.join("chats")).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/qwen-code/sub-agent");
    for ending in ["jsonl", "meta.json"] {
        std::fs::copy(corpus.join(format!("{child}.{ending}")), children.join(format!("{child}.{ending}"))).unwrap();
    }
    let line = |id: &str, parent_id: &str, kind: &str, message: &str| {
        let at = "2026-11-10T09:00:00.000Z";
        format!(
            r#"{{"uuid":"{id}","parentUuid":{parent_id},"sessionId":"{parent}","timestamp":"{at}","type":"{kind}","cwd":"/w","version":"0.24.4","message":{message}}}"#
        )
    };
    let call = r#"{"role":"model","parts":[{"functionCall":{"id":"c1","name":"agent","args":{"description":"look about","prompt":"Look","subagent_type":"explore"}}}]}"#;
    let result = r#"{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"agent","response":{"output":"The parent's copy"}}}]}"#;
    let lines = [
        line("u1", "null", "user", r#"{"role":"user","parts":[{"text":"Go"}]}"#),
        line("a1", "\"u1\"", "assistant", call),
        line("r1", "\"a1\"", "tool_result", result),
    ];
    std::fs::write(project.join("chats").join(format!("{parent}.jsonl")), lines.join("\n")).unwrap();
    let shown = env.run(&["show", parent]).out;
    has_in_order(&shown, &["✓ agent  look about (explore) · ok\n", "└ sub-agent: scrollback show agent-explore-c1\n"]);
}

/// A session of one call.
fn with_call(env: &TestEnv, input: &str, output: &str) {
    let mut lines = String::new();
    let call =
        format!(r#"{{"role":"assistant","content":"","toolCalls":[{{"id":"c1","name":"x","arguments":{input}}}]}}"#);
    writeln!(
        lines,
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","message":{{"role":"user","content":"Go"}}}}"#
    )
    .unwrap();
    writeln!(lines, r#"{{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","message":{call}}}"#)
        .unwrap();
    writeln!(lines, r#"{{"type":"tool_result","uuid":"r1","parentUuid":"a1","sessionId":"s1","toolResults":[{{"toolCallId":"c1","toolName":"x","content":{output}}}]}}"#).unwrap();
    env.session("s1", &lines);
}

#[test]
fn hostile_calls_are_bounded_and_harmless() {
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let many_lines = |word: &str| text(&format!("{word} \u{1b}[2J\n").repeat(1 << 20));
    let hunks =
        format!("*** Begin Patch\n*** Update File: a\u{1b}]0;x\u{7}\n{}*** End Patch", "@@\n-a\n+b\n".repeat(100_000));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let cases = [
        (
            format!(r#"{{"path":"a\u001b[31m\r\n","old":{},"new":{}}}"#, many_lines("old"), many_lines("new")),
            r#""ok""#.to_owned(),
        ),
        (text(&hunks), r#""ok""#.to_owned()),
        (format!(r#"{{"a":{deep},"b\u0007":"\u009b2J"}}"#), many_lines("out")),
        (r#"{"command":"ls \u001b[2J\u0007"}"#.to_owned(), many_lines("\u{1b}[31mout")),
        (r#"{"todos":[{"content":"\u001b[2J","status":"completed"}]}"#.to_owned(), r#""ok""#.to_owned()),
    ];
    for (input, output) in cases {
        let env = TestEnv::new();
        with_call(&env, &input, &output);
        for options in [&["show", "s1"][..], &["show", "s1", "--full"]] {
            let start = Instant::now();
            let shown = env.run(options).out;
            let begins = &input[..input.len().min(60)];
            assert!(start.elapsed() < Duration::from_secs(60), "{begins}: {:?}", start.elapsed());
            assert!(shown.contains("· ok"), "{begins}:\n{}", &shown[..shown.len().min(2000)]);
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{begins}: a control character is printed");
            assert!(shown.len() < 2_000_000, "{begins}: {} bytes", shown.len());
        }
    }
}

#[test]
fn a_prompt_is_shown_as_it_was_typed() {
    let env = TestEnv::new();
    let prompt = "Fix __init__ in *value*:\n\n    def __init__(self):\n        self.n = 1\n# not a heading\n- a\n- b";
    let answer = "**Done** in\none line.";
    let lines = [("u1", "null", "user", prompt), ("a1", "\"u1\"", "assistant", answer)].map(|(id, parent, kind, text)| {
        let text = serde_json::to_string(text).unwrap();
        format!(r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"sessionId":"s1","message":{{"role":"{kind}","content":{text}}}}}"#)
    });
    env.session("s1", &(lines.join("\n") + "\n"));
    let shown = env.run(&["show", "s1"]).out;
    let typed: String = prompt
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") })
        .collect();
    has_in_order(&shown, &["▌ you", &typed, "  Done in one line.\n"]);
}

#[test]
fn a_picture_has_its_name_and_a_prompt_that_is_only_one_is_called_after_it() {
    let tag = r#"{"type":"input_text","text":"<image name=[Image #1] path=\"/w/red.png\">"}"#;
    let image = r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#;
    let closed = r#"{"type":"input_text","text":"</image>"}"#;
    for (content, name) in [(format!("{tag},{image},{closed}"), "red.png"), (image.to_owned(), "image")] {
        let env = TestEnv::new();
        let file = env.home().join("rollout.jsonl");
        let meta = r#"{"timestamp":"2026-10-02T09:00:00.000Z","type":"session_meta","payload":{"id":"019a0000-0000-7000-8000-000000000001","cwd":"/w","cli_version":"0.166.0"}}"#;
        let prompt = format!(
            r#"{{"timestamp":"2026-10-02T09:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{content}]}}}}"#
        );
        std::fs::write(&file, format!("{meta}\n{prompt}\n")).unwrap();
        let shown = env.run(&["show", file.to_str().unwrap()]).out;
        has_in_order(&shown, &[&format!("{name}\n"), "▌ you", &format!("⎘ {name} (image/png, 3 B)\n")]);
        assert!(shown.starts_with(name), "{shown}");
        let json = env.run(&["show", file.to_str().unwrap(), "--json"]).out;
        assert_eq!(json.contains(r#""filename": "red.png""#), name == "red.png", "{json}");
    }
}

#[test]
fn a_gap_names_the_part_that_is_missing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/codex");
    let gap = |case: &str, ending: &str| {
        let files = std::fs::read_dir(corpus.join(case)).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|file| file.to_str().unwrap().ends_with(ending)).unwrap();
        let out = TestEnv::new().run(&["show", file.to_str().unwrap()]).out;
        out.lines().find(|line| line.contains("gap: ")).unwrap_or_else(|| panic!("{out}")).to_owned()
    };
    // Its id begins as that of the session itself.
    let part = gap("segment-missing", "0c.jsonl");
    assert!(part.contains("gap: an earlier part of this session is missing (019a0000-0000-7000-8000-"), "{part}");
    assert!(
        gap("segment-cycle", "0b.jsonl").contains("gap: the parts of this session continue each other in a circle")
    );
    let fork = gap("fork-parent-gone", ".jsonl");
    assert!(fork.contains("-0000-4000-8000-") || fork.contains("-0000-7000-8000-"), "the whole id: {fork}");
}

#[test]
fn the_output_of_a_persons_command_is_folded_like_any() {
    let line = |id: &str, parent: &str, text: &str| {
        let line = serde_json::json!({"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s", "userType": "external",
            "message": {"role": "user", "content": text}});
        format!("{line}\n")
    };
    let output: String = (1..=20).map(|n| format!("row {n}\n")).collect();
    let log = line("c", "", "<bash-input>ls</bash-input>")
        + &line("o", "c", &format!("<bash-stdout>{output}</bash-stdout><bash-stderr></bash-stderr>"));
    let env = TestEnv::new();
    let file = env.work().join("s.jsonl");
    std::fs::write(&file, log).unwrap();
    let show = |options: &[&str]| env.run(&[&["show", file.to_str().unwrap()], options].concat()).out;
    has_in_order(&show(&[]), &["! ls", "row 4", "… 12 more lines", "row 17", "row 20"]);
    has_in_order(&show(&["--full"]), &["row 5", "row 16"]);
}

/// A session of the corpus.
fn show_case(case: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(case).join("session.jsonl");
    TestEnv::new().run(&["show", file.to_str().unwrap()]).out
}

#[test]
fn what_hooks_said_and_what_was_loaded_is_shown_as_at_the_screen() {
    has_in_order(
        &show_case("claude-code/hooks"),
        &[
            "✓ Read  brest.csv",
            "PostToolUse:Read hook returned blocking error: [check.sh]: that file is old",
            "Stop hook feedback:",
            "[stop.sh]: say the harbour",
            "At 04:12 in Brest.",
            "And today?",
            "UserPromptSubmit says: hello from a hook",
        ],
    );
    has_in_order(
        &show_case("claude-code/loaded-and-restored"),
        &["Loaded ports/CLAUDE.md", "/compact", "Skills restored (tides, ports)"],
    );
}

#[test]
fn the_output_of_a_command_stands_under_that_command() {
    has_in_order(
        &show_case("qwen-code/commands-without-text"),
        &[
            "  /about\n\n  cli version: 0.24.4\n  os platform: linux\n",
            "  /tools\n\n  tools: Agent, Edit\n",
            "  /summary\n\n  stage: completed\n  file path: .qwen/PROJECT_SUMMARY.md\n",
            "  /model\n\n  Kept model as qwen-x\n",
        ],
    );
}
