//! What the real Claude Code sends when it resumes a session is what we would send, line by line.
//!
//! The cases are sessions as the agent left them or as they were damaged, and `expected.json` is what it sent.

use std::path::{Path, PathBuf};

use crate::support::oracle::{difference, of_anthropic, told};
use crate::support::sent;
use scrollback::dialect::ClaudeCode;
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::history::View;

/// Where the agent adds something of its own: it closes a broken end with an answer that nobody gave.
const NOT_HISTORY: &str = "A: No response requested.";

#[test]
fn we_send_what_claude_code_sends_and_nothing_else() {
    let mut wrong = Vec::new();
    for case in cases() {
        let theirs: Vec<String> = told(&case).into_iter().filter(|line| line != NOT_HISTORY).collect();
        let ours = without_context(&case);
        assert!(!theirs.is_empty(), "{}: nothing to compare", case.display());
        wrong.extend(difference(&theirs, &ours).map(|how| format!("{}: {how}", case.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The agent parts the texts of one message by line feeds.
#[test]
fn the_users_words_are_the_same_to_the_last_line_feed() {
    let mut seams = 0;
    for case in cases() {
        let ours = without_context(&case);
        let theirs: Vec<String> = told(&case).into_iter().filter(|line| line != NOT_HISTORY).collect();
        // The last text is parted from the prompt of the resume, which is not ours.
        let last = ours.len().saturating_sub(usize::from(ours.last().is_some_and(|line| line.starts_with("U: "))));
        let pairs = theirs.iter().zip(&ours[..last]);
        let pairs = pairs.filter(|(theirs, _)| theirs.starts_with("U: ") && !theirs.contains('…'));
        for (theirs, ours) in pairs {
            assert_eq!(&ours.replace('\n', "\\n"), theirs, "{}", case.display());
            seams += usize::from(ours.ends_with('\n'));
        }
    }
    assert!(seams > 0);
}

#[test]
fn undamaged_sessions_have_no_errors() {
    for case in cases() {
        let session = read(&case);
        let damaged = ["exp__f-trunc"].iter().any(|name| case.ends_with(name));
        assert_eq!(session.has_errors(), damaged, "{}: {:?}", case.display(), session.issues());
    }
}

/// What we would send, but for reminders, which the cases do not tell apart.
fn without_context(case: &Path) -> Vec<String> {
    of_anthropic(&sent(&read(case), View::Anthropic))
        .into_iter()
        .filter(|line| !line.starts_with("ctx("))
        .collect()
}

fn read(case: &Path) -> Session {
    let source = Source::file(&ClaudeCode, &case.join("session.jsonl"));
    // Some files are of later days than the noon that the other tests have.
    let reading = ReadOptions { now: "2026-11-20T12:00:00Z".parse().unwrap(), ..crate::support::reading() };
    Session::open(&source, &reading).unwrap()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/claude");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 12);
    cases
}
