//! What the real Qwen Code 0.24.4 sends when it resumes a session is in our branch, in order.
//!
//! The cases are sessions as the agent left them or as they were damaged, and `expected.json` is what it sent.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::path::{Path, PathBuf};

use scrollback::dialect::QwenCode;
use scrollback::reading::Reading;
use scrollback::session::Session;
use scrollback::source::Source;
use support::oracle::{Item, expected, gained, missing, sent};

/// Where the agent itself is wrong: it joins a line that stands there twice with itself.
const DOUBLED: &[(&str, &str, &str)] = &[("exp__f-dup-line", "A1 first answerA1 first answer", "A1 first answer")];

#[test]
fn what_qwen_code_sends_is_in_our_branch() {
    let mut wrong = Vec::new();
    for case in cases() {
        let sent = sent(&read(&case));
        let missing = missing(&right(&case), &sent);
        if !missing.is_empty() {
            wrong.push(format!("{}\n  lacks {missing:?}\n  has {sent:?}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn we_send_no_more_than_qwen_code() {
    for case in cases() {
        assert_eq!(gained(&right(&case), &sent(&read(&case))), [], "{}", case.display());
    }
}

#[test]
fn only_damaged_sessions_have_issues() {
    for case in cases() {
        let issues: Vec<&str> = read(&case).issues().iter().map(|issue| issue.kind.name()).collect::<Vec<_>>();
        match case.file_name().unwrap().to_str().unwrap() {
            "exp__f-trunc" | "exp__dbl-trunc" => assert_eq!(issues, ["torn"]),
            "exp__f-dup-line" => assert_eq!(issues, ["duplicate-line"]),
            _ => assert_eq!(issues, [] as [&str; 0], "{}", case.display()),
        }
        assert_eq!(read(&case).unknown_kinds().count(), 0);
    }
}

/// What was sent, but for the agent's own faults. It does not say which results are failures.
fn right(case: &Path) -> Vec<Item> {
    let ours = sent(&read(case));
    let failed =
        |id: &str| ours.iter().any(|item| matches!(item, Item::Result { id: known, failed: true, .. } if known == id));
    let mend = |item: Item| match item {
        Item::Answer(text) => {
            let of_case = DOUBLED.iter().find(|(name, doubled, _)| case.ends_with(name) && *doubled == text);
            Item::Answer(of_case.map_or(text, |(_, _, once)| (*once).to_owned()))
        }
        Item::Result { id, text, .. } => Item::Result { failed: failed(&id), id, text },
        other => other,
    };
    expected(case).into_iter().map(mend).collect()
}

fn read(case: &Path) -> Session {
    // The files are of the evening of the day whose noon the other tests have.
    let reading = Reading { now: "2026-11-16T12:00:00Z".parse().unwrap(), ..support::reading() };
    Session::open(&Source::file(&QwenCode, &case.join("session.jsonl")), &reading).unwrap()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/qwen");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 6);
    cases
}
