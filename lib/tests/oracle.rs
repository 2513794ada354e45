//! What the real Claude Code sent when it resumed a session is in our branch, in order.
//!
//! The cases are sessions as the agent left them or as they were damaged, and `expected.json` is what it sent.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::path::{Path, PathBuf};

use scrollback::dialect::ClaudeCode;
use scrollback::session::Session;
use scrollback::source::Source;
use support::oracle::{Item, expected, gained, missing, sent};

#[test]
fn what_claude_code_sends_is_in_our_branch() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (expected, sent) = (expected(&case), sent(&read(&case)));
        // The agent closes a broken end with an answer of its own.
        let not_history = |item: &Item| *item == Item::Answer("No response requested.".to_owned());
        let expected: Vec<Item> = expected.into_iter().filter(|item| !not_history(item)).collect();
        let missing = missing(&expected, &sent);
        if !missing.is_empty() {
            wrong.push(format!("{}\n  lacks {missing:?}\n  has {sent:?}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Context of the agent apart, we send nothing that it does not: in these cases it loses nothing.
#[test]
fn we_send_no_more_than_claude_code() {
    let mut more = Vec::new();
    for case in cases() {
        let is_context = |item: &Item| matches!(item, Item::User(text) if text.starts_with("<<cut"));
        let gained: Vec<Item> =
            gained(&expected(&case), &sent(&read(&case))).into_iter().filter(|item| !is_context(item)).collect();
        more.extend(gained.iter().map(|item| format!("{}: {item:?}", case.file_name().unwrap().display())));
    }
    assert_eq!(more, [] as [&str; 0]);
}

#[test]
fn undamaged_sessions_have_no_errors() {
    for case in cases() {
        let session = read(&case);
        let damaged = ["exp__f-trunc"].iter().any(|name| case.ends_with(name));
        assert_eq!(session.has_errors(), damaged, "{}: {:?}", case.display(), session.issues());
    }
}

fn read(case: &Path) -> Session {
    let source = Source::file(&ClaudeCode, &case.join("session.jsonl"));
    Session::open(&source, &support::reading()).unwrap()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/claude");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 12);
    cases
}
