//! What the real Codex 0.166 sends when it resumes a session, against what we read: all of it, in its order.
//!
//! `oracle/codex/<case>/` holds the files and `expected.json`, the history that reached the model, in short strings:
//! `U:`, `A:`, `A.think:`, `A.call ID NAME(INPUT)`, `T.result ID:`; `…(N)` means cut, N characters in all.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use scrollback::dialect::{self, Dialect};
use scrollback::message::Part;
use scrollback::reading::Reading;
use scrollback::record::Body;
use scrollback::session::Session;
use scrollback::source::Source;
use serde_json::Value;
use support::reading;

/// Where Codex itself is wrong: it sends a line that stands there twice twice.
const SENT_TWICE: &[(&str, &str)] = &[("exp__f-dup-line", "A: A1 first answer")];

#[test]
fn what_codex_sends_is_on_the_branch_in_its_order() {
    let mut checked = 0;
    for case in cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let ours = neutral(&open(&case));
        let mut left = ours.iter();
        let mut sent = sent(&case);
        for (_, doubled) in SENT_TWICE.iter().filter(|(of, _)| *of == name) {
            let at = sent.iter().position(|item| item == doubled).unwrap();
            sent.remove(at);
        }
        for item in &sent {
            let found = left.any(|ours| matches(item, ours));
            assert!(found, "{name}: {item}\nis not on the branch, or not in its place:\n{}", ours.join("\n"));
        }
        assert!(sent.len() > 1, "{name}: nothing to compare");
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} cases");
}

#[test]
fn a_repeated_line_is_one_record() {
    let ours = neutral(&open(&root().join("exp__f-dup-line")));
    assert_eq!(ours.iter().filter(|item| *item == "A: A1 first answer").count(), 1);
}

#[test]
fn nothing_but_the_turn_that_was_taken_back_is_missing() {
    let session = open(&root().join("exp__x-rollback"));
    let branch = session.branch(session.head().unwrap());
    assert!(neutral(&session).iter().all(|item| !item.contains("Q2")));
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

/// The files are of the evening of the day whose noon the other tests have.
fn later() -> Reading<'static> {
    Reading { now: "2026-11-16T12:00:00Z".parse().unwrap(), ..reading() }
}

/// The session that was resumed: of two files the first, which spawned the other.
fn open(case: &Path) -> Session {
    let mut files: Vec<PathBuf> = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    Session::open(&Source::file(codex(), &files[0]), &later()).unwrap()
}

/// What reached the model, but for the context that Codex adds and the prompt of the resume itself.
fn sent(case: &Path) -> Vec<String> {
    let page: Value = serde_json::from_slice(&fs::read(case.join("expected.json")).unwrap()).unwrap();
    let items = page["history"].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned());
    let mut items: Vec<String> = items.filter(|item| !item.starts_with("ctx(")).collect();
    items.pop();
    items
}

/// The branch in the same notation.
fn neutral(session: &Session) -> Vec<String> {
    let branch = session.branch(session.head().unwrap());
    let mut items = Vec::new();
    for record in branch.records {
        let (who, said) = match record.body().unwrap() {
            // A notification of a sub-agent is sent in the user's name.
            Body::User(said) | Body::Attachment(said) => ("U", said),
            Body::Assistant(said) => ("A", said),
            Body::ToolResult(said) => ("T", said),
            _ => continue,
        };
        for part in said.parts {
            items.push(match part {
                Part::Text(text) => format!("{who}: {}", text.text),
                Part::Reasoning(thought) => {
                    let encrypted = &thought.provider_metadata.unwrap()["openai"]["reasoningEncryptedContent"];
                    format!("A.think: {} enc={}", thought.text, encrypted.as_str().unwrap())
                }
                Part::Tool(call) => {
                    let input = match call.input().unwrap() {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    format!("A.call {} {}({input})", call.call_id, call.name)
                }
                other => panic!("{other:?}"),
            });
        }
        for result in said.results {
            items.push(format!("T.result {}: {}", result.call_id, result.output.as_str().unwrap()));
        }
    }
    items
}

/// Whether an item of the notation is the beginning of ours, line ends and spaces in JSON aside.
fn matches(sent: &str, ours: &str) -> bool {
    let plain = |text: &str| text.replace("\\n", "\n").replace(": ", ":").replace(", ", ",");
    let sent = match sent.rsplit_once("…(") {
        Some((begin, _)) => begin,
        // The notation cuts what is encrypted without a mark.
        None if sent.starts_with("A.think: ") => sent,
        None => return plain(sent) == plain(ours),
    };
    plain(ours).starts_with(&plain(sent))
}
