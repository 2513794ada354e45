//! The lines on docs/format.md are one session, and what the page says of it holds.

use std::collections::BTreeSet;

use crate::support::{describe, read};
use scrollback::model::{Body, Issue, Severity};

/// The native types; a new one needs a line on the page.
const TYPES: [&str; 12] = [
    "user",
    "assistant",
    "tool_result",
    "attachment",
    "system",
    "error",
    "summary",
    "custom_title",
    "file_history_snapshot",
    "compaction",
    "rewind",
    "restore",
];

/// The blocks marked `json`, one after the other.
fn lines() -> String {
    let page = include_str!("../../../docs/format.md");
    let blocks = page.split("\n```json\n").skip(1);
    blocks.map(|block| block.split("\n```").next().unwrap().to_owned() + "\n").collect()
}

#[test]
fn the_blocks_of_the_page_are_one_session_without_errors() {
    let session = read(lines());
    let errors: Vec<&Issue> = session.issues().iter().filter(|issue| issue.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(session.unknown_kinds().collect::<Vec<_>>(), []);
    let branch = session.branch(session.head().unwrap());
    assert!(branch.gaps.is_empty(), "{}", describe(&session));
    for record in session.records() {
        let body = record.body().unwrap();
        assert!(!matches!(body, Body::Other(_)), "line {} says nothing: {body:?}", record.place().line);
    }
}

#[test]
fn each_type_of_record_occurs_on_the_page() {
    let types: BTreeSet<String> = lines()
        .lines()
        .filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["type"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(types, TYPES.into_iter().map(str::to_owned).collect());
}
