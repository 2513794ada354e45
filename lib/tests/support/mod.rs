//! What the integration tests share: a fixed clock, reading of bytes, and the line that describes a session.
//!
//! A test that writes builds its records with `said` (or, for properties, with `bodies`) and records them with `pen` in a store of
//! `place`, or writes them with `drafted` without a disk.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod apis;
pub(crate) mod bodies;
pub(crate) mod drafted;
pub(crate) mod effort;
#[cfg(unix)]
pub(crate) mod hostile_files;
pub(crate) mod native_log;
pub(crate) mod oracle;
pub(crate) mod pen;
pub(crate) mod place;
pub(crate) mod random;
pub(crate) mod said;
pub(crate) mod valid;

use std::path::{Path, PathBuf};

use scrollback::dialect::{self, Dialect};
use scrollback::model::Message;
use scrollback::session::{ReadOptions, Session};
use scrollback::view::Conversation;
use scrollback::view::history::{History, View};
use serde_json::Value;

/// The test's clock.
pub(crate) fn now() -> jiff::Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

pub(crate) fn reading() -> ReadOptions<'static> {
    ReadOptions::plain(now())
}

pub(crate) fn native() -> &'static dyn Dialect {
    dialect::named("native").unwrap()
}

pub(crate) fn read(bytes: impl Into<Vec<u8>>) -> Session {
    Session::from_bytes(native(), bytes.into(), &reading())
}

/// The folder of all corpora.
pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// Every log of the corpus and of the demo.
pub(crate) fn logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [corpus().join("native"), root.join("cli/demo/sage/sessions")];
    let cases = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut logs: Vec<PathBuf> = cases.map(|case| case.unwrap().path().join("messages.jsonl")).collect();
    logs.retain(|log| log.is_file());
    logs.sort();
    assert!(logs.len() > 50, "the corpus is gone");
    logs
}

/// Every log of a dialect's corpus, whatever its name.
pub(crate) fn logs_of(name: &str) -> Vec<(&'static dyn Dialect, PathBuf)> {
    let dialect = dialect::named(name).unwrap();
    let cases = std::fs::read_dir(corpus().join(name)).unwrap();
    let files = cases.flat_map(|case| std::fs::read_dir(case.unwrap().path()).unwrap());
    let mut logs: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    logs.retain(|log| log.extension().is_some_and(|ending| ending == "jsonl" || ending == "json"));
    logs.sort();
    assert!(logs.len() >= 20, "the corpus is gone");
    logs.into_iter().map(|log| (dialect, log)).collect()
}

/// Every log of every dialect's corpus.
pub(crate) fn logs_of_all() -> Vec<(&'static dyn Dialect, PathBuf)> {
    dialect::all().iter().flat_map(|dialect| logs_of(dialect.name())).collect()
}

/// How many cases a property runs: few at a push, many under `cargo xtask torture`.
pub(crate) fn cases(push: u32, full: u32) -> u32 {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { full } else { push }
}

/// How a session must be read, in one line: the notation of `case.md`.
pub(crate) fn describe(session: &Session) -> String {
    let Some(head) = session.head() else {
        let nothing = "head none; heads none; branch none; gaps none; state clean; messages 0";
        return describe_issues(session, nothing);
    };
    let branch = session.branch(head);
    let list =
        |items: Vec<String>, between: &str| if items.is_empty() { "none".to_owned() } else { items.join(between) };
    let word = |value: &dyn erased::Word| value.word();
    let heads = session.heads().map(|head| format!("{} {}", head.record.id(), word(&head.kind))).collect();
    let records = branch.records.iter().map(|record| record.id().into_owned()).collect();
    let gaps = branch.gaps.iter().map(|gap| format!("{} misses {}", gap.child.id(), gap.missing_parent)).collect();
    let summary = format!(
        "head {}; heads {}; branch {}; gaps {}; state {}; messages {}",
        head.id(),
        list(heads, ", "),
        list(records, " "),
        list(gaps, ", "),
        session.state(&branch).name(),
        Conversation::new(&branch).len(),
    );
    describe_issues(session, &summary)
}

fn describe_issues(session: &Session, summary: &str) -> String {
    let mut issues: Vec<(u64, String)> = Vec::new();
    for issue in session.issues() {
        let file = issue.file.as_ref().map(|file| format!(" of {file}")).unwrap_or_default();
        let line = issue.line.unwrap_or(0);
        issues.push((line, format!("{} {line}{file}", issue.kind.name())));
    }
    issues.sort();
    let issues: Vec<String> = issues.into_iter().map(|(_, issue)| issue).collect();
    let issues = if issues.is_empty() { "none".to_owned() } else { issues.join(", ") };
    // Control characters are escaped in a page.
    let summary: String = summary
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_unicode().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    format!("{summary}; issues {issues}.")
}

mod erased {
    pub(super) trait Word {
        fn word(&self) -> String;
    }

    impl<T: serde::Serialize> Word for T {
        fn word(&self) -> String {
            serde_json::to_value(self).unwrap().as_str().unwrap().to_owned()
        }
    }
}

/// What an agent sends to a model to continue from the newest branch.
pub(crate) fn sent(session: &Session, view: View) -> Vec<Value> {
    let history = History::of(session, session.head().unwrap()).unwrap();
    view.messages(&history).unwrap().0
}

/// The messages of the newest branch.
pub(crate) fn messages(session: &Session) -> Vec<Message> {
    let branch = session.branch(session.head().unwrap());
    let conversation = Conversation::new(&branch);
    conversation.messages(0..conversation.len()).map(Result::unwrap).collect()
}

/// The parts of one of them, as JSON.
pub(crate) fn parts(session: &Session, message: usize) -> Value {
    serde_json::to_value(&messages(session)[message].parts).unwrap()
}

/// The JSON pointers of all keys of objects, outermost first.
pub(crate) fn paths_of_keys(value: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    paths.push(format!("{path}/{key}"));
                    open.push((format!("{path}/{key}"), inner));
                }
            }
            Value::Array(list) => open.extend(list.iter().enumerate().map(|(i, inner)| (format!("{path}/{i}"), inner))),
            _ => {}
        }
    }
    paths
}
