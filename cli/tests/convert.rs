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
    lines.push_str("{\"type\":\"title\",\"uuid\":\"t1\",\"parentUuid\":\"u3\",\"timestamp\":\"2026-11-15T10:00:00Z\",\"title\":\"Sums\"}\n");
    env.session("s1", &lines);
    env
}

#[test]
fn a_session_becomes_another_agents_where_that_one_finds_it() {
    let env = env();
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex"]).all(), @"");
    assert_snapshot!(env.run(&["convert", "s1", "--to", "codex"]).all(), @"");
    assert_snapshot!(env.run(&["convert", "s1", "--to", "claude-code"]).all(), @"");
    assert_snapshot!(env.run(&["list", "--all"]).all(), @"");
}

#[test]
fn programs_get_the_path_and_every_loss() {
    let env = env();
    let told = env.run(&["convert", "s1", "--to", "sage-el", "--store", "other", "--json"]).json();
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["path", "losses"]);
    assert!(told["path"].as_str().unwrap().starts_with("$DIR/desk/other/projects/"), "{told}");
    let branch = json!({"record": "u2", "what": "another branch", "kind": "dropped", "count": 1});
    assert!(told["losses"].as_array().unwrap().contains(&branch), "{told}");
}

#[test]
fn a_branch_can_be_chosen_and_the_lines_go_to_a_pipe() {
    let env = env();
    let all = env.run(&["convert", "s1#a2", "--to", "fluux", "--jid", "ada@example.org/phone", "-o", "-"]);
    assert_snapshot!(all.all(), @"");
    let same = env.run(&["convert", "s1", "--head", "a2", "--to", "fluux", "--jid", "ada@example.org", "-o", "-", "--json"]);
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
    assert_snapshot!(env.run(&["convert", "./there.jsonl", "--to", "native", "-o", "back.jsonl"]).all(), @"");
    let source = fs::read(env.home().join(".sage/sessions/s1/messages.jsonl")).unwrap();
    assert_eq!(fs::read(env.work().join("back.jsonl")).unwrap(), source);
    fs::write(env.work().join("there.jsonl.scrollback.json"), "{}").unwrap();
    let told = env.run(&["convert", "./there.jsonl", "--to", "native", "-o", "again.jsonl"]);
    assert!(told.err.contains("warning: there.jsonl.scrollback.json is passed over"), "{}", told.err);
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
        &["convert", "s1", "--to", "fluux"],
        &["convert", "s1", "--to", "fluux", "--jid", "../../x"],
        &["convert", "./empty.jsonl", "--dialect", "native", "--to", "codex", "-o", "x.jsonl"],
        &["--demo", "convert", "5ac81b7f", "--to", "codex"],
        &["convert", "s1", "--to", "codex", "-o", "x", "--store", "y"],
    ] {
        told.push_str(&refused(args));
    }
    assert_snapshot!(told, @"");
    let left: Vec<_> = fs::read_dir(env.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read(env.work().join("mine.jsonl")).unwrap(), b"mine");
}

#[test]
fn the_demo_can_be_converted_to_a_place_of_ones_own() {
    let env = env();
    let ran = env.run(&["--demo", "convert", "5ac81b7f", "--to", "claude-code", "-o", "demo.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(env.work().join("demo.jsonl").is_file());
}
