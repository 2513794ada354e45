//! Damaged files: whatever is whole is read, whatever is not is reported, and no byte goes unaccounted for.

mod cuts;
mod files;
mod fuzz;
mod glue;
mod places;
mod sizes;

use std::path::PathBuf;

use proptest::test_runner::Config;
use scrollback::model::IssueKind;
use scrollback::session::Session;

/// A property's size: few cases at a push, many under `cargo xtask torture`.
fn config(push: u32, full: u32) -> Config {
    Config { cases: crate::support::cases(push, full), failure_persistence: None, ..Config::default() }
}

/// Every log of the corpus and of the demo.
fn logs() -> Vec<PathBuf> {
    let roots = [crate::support::corpus().join("native"), crate::support::corpus().join("../cli/demo/sage/sessions")];
    let folders = roots.into_iter().flat_map(|root| std::fs::read_dir(root).unwrap());
    let mut logs: Vec<PathBuf> = folders.map(|folder| folder.unwrap().path().join("messages.jsonl")).collect();
    logs.retain(|log| log.is_file());
    logs.extend(crate::support::logs_of("claude-code").into_iter().map(|(_, log)| log));
    logs.sort();
    assert!(logs.len() > 60, "the corpus was not found");
    logs
}

/// The ids of all records, in file order.
fn ids(session: &Session) -> Vec<String> {
    session.records().map(|record| record.id().into_owned()).collect()
}

/// What the bytes themselves have wrong, as `kind line`, each once; what only the tree shows is left out.
fn content_issues(session: &Session) -> Vec<String> {
    let in_the_tree = [IssueKind::Orphan, IssueKind::Cycle, IssueKind::DuplicateLine, IssueKind::ConflictingParent];
    let of_content = session.issues().iter().filter(|issue| !in_the_tree.contains(&issue.kind));
    let mut named: Vec<String> =
        of_content.map(|issue| format!("{} {}", issue.kind.name(), issue.line.unwrap_or(0))).collect();
    named.sort();
    named.dedup();
    named
}
