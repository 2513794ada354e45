//! What the real Codex 0.166 sends when it resumes a session, against what we would send, line by line.
//!
//! `oracle/codex/<case>/` holds the files and `expected.json`, the history that reached the model, in short strings:
//! `U:`, `A:`, `A.think:`, `A.call ID NAME(INPUT)`, `T.result ID:`; `…(N)` means cut, N characters in all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::oracle::{difference, of_responses, told};
use crate::support::reading;
use scrollback::dialect::{self, Dialect};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::history::View;
use serde_json::Value;

/// Where we are better: Codex sends a line that stands there twice twice.
const SENT_TWICE: &[(&str, &str)] = &[("exp__f-dup-line", "A: A1 first answer")];

#[test]
fn we_send_what_codex_sends_and_nothing_else() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for case in cases() {
        let mut theirs = told(&case);
        for (_, doubled) in SENT_TWICE.iter().filter(|(of, _)| case.ends_with(of)) {
            let at = theirs.iter().position(|line| line == doubled).unwrap();
            theirs.remove(at);
        }
        assert!(theirs.len() > 1, "{}: nothing to compare", case.display());
        wrong.extend(difference(&theirs, &sent(&open(&case))).map(|how| format!("{}: {how}", case.display())));
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 8, "only {checked} cases");
}

#[test]
fn nothing_but_the_turn_that_was_taken_back_is_missing() {
    let session = open(&root().join("exp__x-rollback"));
    let branch = session.branch(session.head().unwrap());
    assert!(sent(&session).iter().all(|item| !item.contains("Q2")));
    let other = session.heads().nth(1).unwrap();
    let taken_back = session.branch(other.record);
    assert!(taken_back.records.len() > branch.records.len());
}

#[test]
fn real_files_have_no_errors_and_damaged_ones_are_named() {
    for case in cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let session = open(&case);
        let issues: Vec<&str> = session.issues().iter().map(|issue| issue.kind.name()).collect();
        match name.as_str() {
            "exp__f-trunc" => assert_eq!(issues, ["torn"]),
            "exp__f-dup-line" => assert_eq!(issues, ["duplicate-line"]),
            _ => assert!(issues.is_empty(), "{name}: {issues:?}"),
        }
        assert_eq!(session.unknown_kinds().count(), 0, "{name}");
    }
}

#[test]
fn a_sub_agent_names_its_parent() {
    let folder = root().join("codexsub__01-continue");
    let child = folder.join("rollout-2026-11-15T20-47-42-01a1e0f7-417c-7dc0-a0ba-565728c87114.jsonl");
    let session = Session::open(&Source::file(codex(), &child), &later()).unwrap();
    assert_eq!(session.parent_session(), Some(("01a1e0f7-402c-7e52-8e9d-402181f3c397", None)));
    assert_eq!(session.id().as_str(), "01a1e0f7-417c-7dc0-a0ba-565728c87114");
}

#[test]
fn usage_is_the_total_that_codex_itself_keeps() {
    let usage = open(&root().join("full__03-fork")).usage().unwrap();
    assert_eq!(
        (usage.input.unwrap() + usage.cache_read.unwrap(), usage.cache_read, usage.output, usage.reasoning),
        (7017, Some(1400), Some(367), Some(49))
    );
}

fn codex() -> &'static dyn Dialect {
    dialect::named("codex").unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/codex")
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// The files are of later days than the noon that the other tests have.
fn later() -> ReadOptions<'static> {
    ReadOptions { now: "2026-11-18T12:00:00Z".parse().unwrap(), ..reading() }
}

/// The session that was resumed: the file that the case names, else the first, which spawned the other.
fn open(case: &Path) -> Session {
    let expected: Value = serde_json::from_str(&fs::read_to_string(case.join("expected.json")).unwrap()).unwrap();
    let named = expected["session"]
        .as_str()
        .and_then(|path| case.join(Path::new(path).file_name()?).canonicalize().ok());
    if let Some(file) = named {
        return Session::open(&Source::file(codex(), &file), &later()).unwrap();
    }
    let mut files: Vec<PathBuf> = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    Session::open(&Source::file(codex(), &files[0]), &later()).unwrap()
}

fn sent(session: &Session) -> Vec<String> {
    of_responses(&crate::support::sent(session, View::OpenAiResponses))
}
