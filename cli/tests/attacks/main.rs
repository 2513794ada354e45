//! Attacks on the whole program: it is killed, the disk is full, files and names are hostile, many start at once.
//!
//! A few cases run at a push, many under `cargo xtask torture`, whose seed makes them again.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod files;
mod full_disk;
mod kill;
mod names;
#[path = "../../../lib/tests/support/random.rs"]
#[allow(dead_code, reason = "shared with the library's tests")]
mod random;
mod starts;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::TestEnv;

const DIALECTS: [&str; 7] = ["native", "claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];

/// How many cases an attack runs: few at a push, many under `cargo xtask torture`.
fn cases(push: u64, full: u64) -> u64 {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { full } else { push }
}

/// The arguments that record in a dialect. In one with a session for each person, a session that is resumed says who it is.
fn record<'a>(dialect: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let is_new = dialect == "fluux" && !more.contains(&"--resume");
    let with: &[&str] = if is_new { &["--jid", "ada@example.com"] } else { &[] };
    [&["record", "--dialect", dialect], with, more].concat()
}

/// A line for `record`; every second one is a prompt. The word is what to look for later.
fn line(at: u64, word: &str, padding: usize) -> String {
    let kind = ["user", "assistant"][(at % 2) as usize];
    format!("{{\"{kind}\": \"{word} {}\"}}\n", "x".repeat(padding))
}

/// What `record` acknowledged of lines with these words: the word and its session.
fn acknowledged(printed: &str, words: &[String]) -> Vec<(String, String)> {
    let acks = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let on_disk = acks.filter(|ack| ack["id"].is_string());
    on_disk
        .map(|ack| {
            let seq = usize::try_from(ack["seq"].as_u64().unwrap()).unwrap();
            (words[seq - 1].clone(), ack["session"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// Every acknowledged word can be read back from its session, on whatever branch.
fn check_nothing_is_lost(env: &TestEnv, acknowledged: &[(String, String)], about: &str) {
    let sessions: BTreeSet<&String> = acknowledged.iter().map(|(_, session)| session).collect();
    for session in sessions {
        let shown = env.run(&["tree", session, "--all", "--json"]);
        assert_eq!(shown.code, 0, "{about}: {}", shown.err);
        for (word, _) in acknowledged.iter().filter(|(_, of)| of == session) {
            assert!(shown.out.contains(word.as_str()), "{about}: {word} was acknowledged and is not in {session}");
        }
    }
}
