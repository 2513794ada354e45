//! Reads every case of the corpus and compares it with what its `case.md` says a right reader makes of it.
//!
//! `cargo xtask corpus --bless` writes the answers of this program into the pages instead: read the diff.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use scrollback::dialect::{self, Dialect};
use scrollback::session::Session;
use scrollback::source::Source;
use support::{describe, reading};

#[test]
fn every_case_is_read_as_its_page_says() {
    let bless = std::env::var_os("SCROLLBACK_BLESS").is_some();
    let mut wrong = Vec::new();
    for (dialect, case) in all_cases() {
        let page = fs::read_to_string(case.join("case.md")).unwrap();
        let source = Source::file(dialect, &main_file(&case));
        let found = format!("Expect: {}", describe(&Session::open(&source, &reading()).unwrap()));
        let expected = page.lines().find(|line| line.starts_with("Expect: ")).unwrap_or_default();
        if found != expected {
            if bless {
                let kept: String =
                    page.lines().filter(|line| *line != expected).map(|line| format!("{line}\n")).collect();
                fs::write(case.join("case.md"), format!("{kept}{found}\n")).unwrap();
            }
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("{} {name}\n  page:  {expected}\n  found: {found}", dialect.name()));
        }
    }
    assert!(bless || wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_cases() {
    for dialect in dialect::all() {
        assert!(cases(dialect.name()).len() >= 20, "{}", dialect.name());
    }
}

fn all_cases() -> impl Iterator<Item = (&'static dyn Dialect, PathBuf)> {
    dialect::all()
        .iter()
        .flat_map(|dialect| cases(dialect.name()).into_iter().map(|case| (*dialect, case)))
}

fn cases(dialect: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(support::corpus().join(dialect)).unwrap();
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

/// The log of a case: `messages.jsonl`, `session.jsonl`, or else its first log.
fn main_file(case: &Path) -> PathBuf {
    let named = ["messages.jsonl", "session.jsonl"].map(|name| case.join(name));
    let mut logs: Vec<PathBuf> = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl" || ending == "zst"));
    logs.sort();
    named.into_iter().find(|path| path.is_file()).unwrap_or_else(|| logs.swap_remove(0))
}
