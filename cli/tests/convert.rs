//! `convert`, end to end: where the new session goes, what is said about it, and what is refused.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;

use insta::assert_snapshot;
use serde_json::json;
use support::{TestEnv, line, talk};

fn env() -> TestEnv {
    let env = TestEnv::new();
    let mut lines = talk();
    lines.push_str(&line("user", "u3", Some("a1"), "Or five?"));
    env.session("s1", &lines);
    env
}

#[test]
fn a_session_becomes_another_agents_where_that_one_finds_it() {
    let env = env();
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex"]).all(), @r#"
    $HOME/.codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-e52f2165-4db6-5181-b17e-bd798cab674d.jsonl
    [exit 0]
    Converted 3 messages. Not carried over: records of other branches (2).
    Its directory /gone/tide is gone: it cannot be resumed there.
    "#);
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex"]).all(), @r#"
    [exit 2]
    scrollback: the codex session e52f2165-4db6-5181-b17e-bd798cab674d exists already: $HOME/.codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-e52f2165-4db6-5181-b17e-bd798cab674d.jsonl
    hint: run `scrollback show e52f2165-4db6-5181-b17e-bd798cab674d` to see it, or `scrollback remove e52f2165-4db6-5181-b17e-bd798cab674d` to make place for the new one; -o FILE writes it elsewhere
    "#);
    assert_snapshot!(env.run(&["convert", "s1", "--to", "claude-code"]).all(), @r#"
    $HOME/.claude/projects/-gone-tide/85807529-638e-5648-82dd-bab72a62bfbd.jsonl
    [exit 0]
    Converted 3 messages. Nothing is lost.
    Its directory /gone/tide is gone: it cannot be resumed there.
    "#);
    assert_snapshot!(env.run(&["list", "--all"]).all(), @r#"
    ID        UPDATED  PROJECT  TITLE                 AGENT        MSGS  STATE
    85807529  2 h      tide     What is two and two?  claude-code     3  no answer
    e52f2165  2 h      tide     What is two and two?  codex           3  no answer
    s1        2 h      tide     What is two and two?  native          3  no answer
    [exit 0]
    "#);
}

#[test]
fn programs_get_the_path_and_every_loss() {
    let env = env();
    let told = env.run(&["convert", "s1", "--to", "sage-el", "--store", "other", "--json"]).json();
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["session", "path", "messages", "toolCalls", "losses"]);
    assert_eq!((&told["messages"], &told["toolCalls"]), (&json!(3), &json!(0)));
    assert!(told["path"].as_str().unwrap().starts_with("$DIR/desk/other/projects/"), "{told}");
    let branch = json!({"record": "u2", "what": "other branch", "kind": "dropped", "count": 1});
    assert!(told["losses"].as_array().unwrap().contains(&branch), "{told}");
}

#[test]
fn every_difference_is_explained_on_demand() {
    let env = env();
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex", "-o", "x.jsonl", "--explain"]).all(), @r#"
    $DIR/desk/x.jsonl
             COUNT  WHAT          FIRST RECORD
    dropped      3  environment   u1
    dropped      2  other branch  u2
    [exit 0]
    Converted 3 messages. Not carried over: records of other branches (2).
    A copy of the original is kept beside it: converting back restores it.
    "#);
}

/// Prompts, an answer with thinking and two calls, of which one failed, and its usage.
#[test]
fn the_summary_names_what_a_person_misses() {
    let env = TestEnv::new();
    let parts = json!([{"type": "reasoning", "text": "I look."}, {"type": "text", "text": "Let me look."}]);
    let calls =
        json!([{"id": "c1", "name": "read_file", "arguments": {}}, {"id": "c2", "name": "read_file", "arguments": {}}]);
    let lines = [
        json!({"user": "When is high water?"}),
        json!({"assistant": {"content": parts, "toolCalls": calls, "usage": {"input": 10, "output": 5}}}),
        json!({"toolResult": [{"callId": "c1", "output": "04:12"}, {"callId": "c2", "output": "no such file", "isError": true}]}),
        json!({"assistant": "At 04:12."}),
    ];
    let input = lines.map(|line| format!("{line}\n")).concat();
    assert_eq!(env.run_with(&["record", "--id", "tides"], input.as_bytes()).code, 0);
    let summary = |to: &str| env.run(&["convert", "tides", "--to", to, "-o", to]).err;
    assert_eq!(summary("claude-code"), "Converted 2 messages, 2 tool calls. Not carried over: thinking (1).\n");
    assert_eq!(summary("sage-el"), "Converted 2 messages, 2 tool calls. Not carried over: thinking (1).\n");
    let codex = summary("codex");
    assert_eq!(
        codex,
        "Converted 2 messages, 2 tool calls. Only bookkeeping is not carried over; --explain lists it.\n"
    );
    let written = fs::read_to_string(env.work().join("codex")).unwrap();
    assert!(written.contains(r#""output":"no such file","success":false"#), "{written}");
}

#[test]
fn converting_back_names_the_session_that_is_still_there() {
    let env = env();
    let there = env.run(&["convert", "s1", "--to", "qwen-code", "--json"]).json();
    let back = env.run(&["convert", there["session"].as_str().unwrap(), "--to", "native"]);
    assert_snapshot!(back.all(), @r#"
    [exit 2]
    scrollback: the native session s1 exists already: $HOME/.sage/sessions/s1/messages.jsonl
    hint: run `scrollback show s1` to see it, or `scrollback remove s1` to make place for the new one; -o FILE writes it elsewhere
    "#);
    assert_eq!(env.run(&["remove", "s1"]).code, 0);
    let back = env.run(&["convert", there["session"].as_str().unwrap(), "--to", "native"]);
    assert_eq!((back.code, back.err.as_str()), (0, "Converted 3 messages. Nothing is lost.\n"));
}

/// Nobody is told to remove the session that was to be converted.
#[test]
fn a_session_in_that_format_already_is_said_to_be_in_it() {
    let env = env();
    for (to, hint) in [
        ("codex", "run `scrollback fork ID` to copy it; -o FILE writes it elsewhere"),
        ("sage-el", "-o FILE writes it elsewhere"),
    ] {
        let id = env.run(&["convert", "s1", "--to", to, "--json"]).json()["session"].as_str().unwrap().to_owned();
        let again = env.run(&["convert", &id, "--to", to]);
        let said = format!("scrollback: the session ID is already in the format of {to}\nhint: {hint}\n");
        assert_eq!((again.code, again.err.replace(&id, "ID")), (2, said));
    }
}

#[test]
fn a_branch_can_be_chosen_and_the_lines_go_to_a_pipe() {
    let env = env();
    let all = env.run(&["convert", "s1#a2", "--to", "fluux", "--jid", "ada@example.org/phone", "-o", "-"]);
    assert_snapshot!(all.all(), @r#"
    {"type":"session","version":1,"created":"2026-11-15T10:00:00+00:00","jid":"ada@example.org"}
    {"type":"message","role":"user","content":"What is two and two?","msg_id":"ae3fa428-f981-546a-b23c-aa5b0a5821af","ts":"2026-11-15T10:00:00+00:00"}
    {"type":"message","role":"assistant","content":"Four.","msg_id":"3f098d34-ae1e-5d63-9fbd-ab9a4d5b298b","ts":"2026-11-15T10:00:00+00:00"}
    {"type":"message","role":"user","content":"Sure?","msg_id":"3519fdef-13e3-5b31-9eeb-9a7952d00aaa","ts":"2026-11-15T10:00:00+00:00"}
    {"type":"message","role":"assistant","content":"**Yes.**","msg_id":"38bb28fc-7efc-51ba-8add-568addf9f1ca","ts":"2026-11-15T10:00:00+00:00"}
    [exit 0]
    Converted 4 messages. Not carried over: records of other branches (1).
    "#);
    let same =
        env.run(&["convert", "s1", "--head", "a2", "--to", "fluux", "--jid", "ada@example.org", "-o", "-", "--json"]);
    assert_eq!(same.out, all.out);
    let losses: serde_json::Value = serde_json::from_str(&same.err).unwrap();
    assert_eq!(losses["path"], "-");
    let whole = fs::read(env.home().join(".sage/sessions/s1/messages.jsonl")).unwrap();
    let piped = env.run_with(&["convert", "-", "--to", "codex", "-o", "-"], &whole);
    assert_eq!(piped.code, 0, "{}", piped.err);
    assert!(piped.out.starts_with("{\"timestamp\""), "{}", piped.out);
}

#[test]
fn there_and_back_is_the_same_file() {
    let env = env();
    let there = env.run(&["convert", "s1", "--to", "qwen-code", "-o", "there.jsonl"]);
    assert_eq!(there.code, 0, "{}", there.err);
    assert_snapshot!(env.run(&["convert", "./there.jsonl", "--to", "native", "-o", "back.jsonl"]).all(), @r#"
    $DIR/desk/back.jsonl
    [exit 0]
    Converted 3 messages. Nothing is lost.
    "#);
    let source = fs::read(env.home().join(".sage/sessions/s1/messages.jsonl")).unwrap();
    assert_eq!(fs::read(env.work().join("back.jsonl")).unwrap(), source);
    fs::write(env.work().join("there.jsonl.scrollback.json"), "{}").unwrap();
    let told = env.run(&["convert", "./there.jsonl", "--to", "native", "-o", "again.jsonl"]);
    assert!(told.err.contains("warning: there.jsonl.scrollback.json is ignored"), "{}", told.err);
    let piped = env.run(&["convert", "./there.jsonl", "--to", "native", "-o", "-"]);
    assert!(piped.err.contains("warning: there.jsonl.scrollback.json is ignored"), "{}", piped.err);
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let env = env();
    fs::write(env.work().join("mine.jsonl"), "mine").unwrap();
    fs::write(env.work().join("empty.jsonl"), "").unwrap();
    let refused = |args: &[&str]| {
        let ran = env.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    let mut told = String::new();
    for args in [
        &["convert", "s1", "--to", "emacs"][..],
        &["convert", "s1", "--to", "codex", "-o", "mine.jsonl"],
        &["convert", "s1", "--to", "codex", "-o", "gone/deep/x.jsonl"],
        &["convert", "s1", "--to", "fluux"],
        &["convert", "s1", "--to", "fluux", "--jid", "../../x"],
        &["convert", "s1", "--to", "fluux", "--jid", "../x", "-o", "x.jsonl"],
        &["convert", "s1", "--to", "codex", "--jid", "ada@example.org", "-o", "x.jsonl"],
        &["convert", "s1#a2", "--to", "native", "-o", "x.jsonl"],
        &["convert", "./empty.jsonl", "--dialect", "native", "--to", "codex", "-o", "x.jsonl"],
        &["convert", "./mine.jsonl", "--to", "native", "-o", "x.jsonl"],
        &["--demo", "convert", "5ac81b7f", "--to", "codex"],
        &["convert", "s1", "--to", "codex", "-o", "x", "--store", "y"],
    ] {
        told.push_str(&refused(args));
    }
    assert!(!env.work().join("gone").exists(), "a mistyped path makes no folders");
    assert_snapshot!(told, @r#"
    scrollback: cannot write the dialect "emacs"
    hint: known: native, claude-code, codex, qwen-code, fluux, sage-el, ai-sdk
    scrollback: $DIR/desk/mine.jsonl: already exists
    hint: nothing is overwritten: choose another name, or move the file away first
    scrollback: $DIR/desk/gone/deep: no such folder
    hint: create it first, or use --store DIR, which creates a store
    scrollback: a fluux session needs the person or room that it is with
    hint: name it with --jid JID
    scrollback: invalid JID "../../x": it leads out of the store
    hint: a JID looks like alice@example.com
    scrollback: invalid JID "../x": it leads out of the store
    hint: a JID looks like alice@example.com
    scrollback: --jid is only for fluux
    hint: use --to fluux, or leave out --jid
    scrollback: a copy in the same format has every branch; one branch cannot be selected
    hint: leave out the record, or run `scrollback fork SESSION#RECORD` to copy one branch
    scrollback: codex cannot store anything in this session
    hint: run `scrollback show SESSION` to see it, or use --to native, which stores everything that scrollback understands
    scrollback: unknown format
    hint: name its dialect with --dialect; `scrollback show` prints what can be read
    scrollback: the demo is read-only
    hint: write the converted session elsewhere with -o FILE or --store DIR
    scrollback: the argument '--output <FILE>' cannot be used with '--store <DIR>'
    hint: run `scrollback convert --help`
    "#);
    let left: Vec<_> = fs::read_dir(env.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read(env.work().join("mine.jsonl")).unwrap(), b"mine");
}

#[test]
fn a_session_that_was_rewound_to_its_start_says_which_branch_to_take() {
    let env = env();
    env.run(&["rewind", "s1", "--to", "start"]);
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex"]).all(), @r#"
    [exit 1]
    scrollback: nothing to convert: session "s1" has no messages on this branch: it ends before the first prompt
    hint: add --head u3 to convert the branch that was left; run `scrollback tree s1` to see every branch
    "#);
    assert_snapshot!(env.run(&["fork", "s1"]).all(), @r#"
    [exit 1]
    scrollback: session "s1" has no messages on this branch: it ends before the first prompt
    hint: use s1#u3 to take the branch that was left; run `scrollback tree s1` to see every branch
    "#);
    assert_snapshot!(env.run(&["history", "s1", "--for", "openai"]).all(), @r#"
    []
    [exit 1]
    clean: Resumed session from 2026-11-15T12:00:00Z: 0 messages, nobody has asked anything yet.
    scrollback: session "s1" has no messages on this branch: it ends before the first prompt
    hint: use s1#u3 to take the branch that was left; run `scrollback tree s1` to see every branch
    "#);
    assert_snapshot!(env.run(&["show", "s1"]).all(), @"
    What is two and two?
    native · s1 · /gone/tide · main · clean

    ── rewound to the start ────────────────────────────────────────────────────────────────────────────
      what was left: scrollback show s1#u3
    [exit 0]
    2 more branches; run `scrollback tree s1` to see all.
    ");
    let chosen = env.run(&["convert", "s1", "--to", "codex", "--head", "u3"]).err;
    assert!(chosen.contains("Converted 3 messages."), "{chosen}");
}

/// The file first, the command that resumes it last; nothing that is copied from the screen is broken.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_everything_is_in_its_order_and_only_sentences_wrap() {
    let env = env();
    // A directory that exists.
    let lines = talk() + &line("user", "u3", Some("a1"), "Or five?");
    env.session("s1", &lines.replace("/gone/tide", "/usr"));
    assert_snapshot!(env.on_terminal([24, 60], "convert s1 --to claude-code"), @"
    $HOME/.claude/projects/-usr/85807529-638e-5648-82dd-bab72a62bfbd.jsonl
    Converted 3 messages. Nothing is lost.
    Resume: cd /usr && claude --resume 85807529-638e-5648-82dd-bab72a62bfbd
    ");
    assert_snapshot!(env.on_terminal([24, 60], "convert s1 --to claude-code"), @"
    scrollback: the claude-code session
    85807529-638e-5648-82dd-bab72a62bfbd exists already:
    $HOME/.claude/projects/-usr/85807529-638e-5648-82dd-bab72a62bfbd.jsonl
    hint: run
    `scrollback show 85807529-638e-5648-82dd-bab72a62bfbd` to
    see it, or
    `scrollback remove 85807529-638e-5648-82dd-bab72a62bfbd` to
    make place for the new one; -o FILE writes it elsewhere
    ");
}

#[test]
fn the_demo_can_be_converted_to_a_place_of_ones_own() {
    let env = env();
    let ran = env.run(&["--demo", "convert", "5ac81b7f", "--to", "claude-code", "-o", "demo.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(env.work().join("demo.jsonl").is_file());
}
