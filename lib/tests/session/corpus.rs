//! Reads every case of the corpus and compares it with what its `case.md` says a right reader makes of it.
//!
//! `cargo xtask corpus --bless` writes the answers of this program into the pages instead: read the diff.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{describe, reading};
use scrollback::dialect::{self, Dialect};
use scrollback::model::Message;
use scrollback::session::{Branch, ReadOptions, Session, Source};
use scrollback::view::profile::Profile;
use scrollback::view::{Conversation, Examination, tool_calls};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[test]
fn every_case_is_read_as_its_page_says() {
    let bless = std::env::var_os("SCROLLBACK_BLESS").is_some();
    let mut wrong = Vec::new();
    for (dialect, case) in dialect::all().iter().flat_map(|dialect| cases(*dialect)) {
        let page = fs::read_to_string(case.join("case.md")).unwrap();
        let source = Source::file(dialect, &main_file(dialect, &case));
        let beside = |id: &str| beside(dialect, &case, id);
        let session = Session::open(&source, &ReadOptions { find: &beside, ..reading() }).unwrap();
        let found = format!("Expect: {}", describe(&session));
        let expected = page.lines().find(|line| line.starts_with("Expect: ")).unwrap_or_default();
        if found != expected {
            if bless {
                let kept: String =
                    page.lines().filter(|line| *line != expected).map(|line| format!("{line}\n")).collect();
                fs::write(case.join("case.md"), format!("{kept}{found}\n")).unwrap();
            }
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("{}/{name}\n  page:  {expected}\n  found: {found}", dialect.name()));
        }
    }
    assert!(bless || wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_cases() {
    for dialect in dialect::all() {
        assert!(cases(*dialect).len() >= 20, "{}", dialect.name());
    }
}

/// The log of a case: by the name that its dialect's cases use, or else its first log.
fn main_file(dialect: &'static dyn Dialect, case: &Path) -> PathBuf {
    if case.join("agents.sql").is_file() {
        return database(dialect, case);
    }
    let named = ["messages.jsonl", "session.jsonl", "rollout.jsonl"].map(|name| case.join(name));
    let mut logs: Vec<PathBuf> = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| {
        path.extension().is_some_and(|ending| ["jsonl", "json", "zst"].iter().any(|log| ending == *log))
    });
    logs.sort();
    // A session in several files is continued in the newest, whatever its name.
    let is_segment = |path: &Path| dialect.segment_from_path(path).is_some();
    let any = logs.iter().find(|path| is_segment(path)).map(|path| Source::file(dialect, path));
    let newest =
        any.and_then(|any| any.neighbours().into_iter().map(|session| session.path).find(|path| is_segment(path)));
    named.into_iter().find(|path| path.is_file()).or(newest).unwrap_or_else(|| logs.swap_remove(0))
}

/// The database that a case's SQL makes, with the case's other files beside it.
fn database(dialect: &dyn Dialect, case: &Path) -> PathBuf {
    // Each test makes its own: they run at once.
    let name = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(dialect.name())
        .join(name)
        .join(case.file_name().unwrap());
    let path = folder.join("agents.db");
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(case).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    if path.exists() {
        fs::remove_file(&path).unwrap();
    }
    let sql = fs::read_to_string(case.join("agents.sql")).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    path
}

/// A session that the case's own one begins in lies beside it, `<session id>.jsonl`, or in files that have their agent's names.
fn beside(dialect: &'static dyn Dialect, case: &Path, id: &str) -> Option<Source> {
    let path = case.join(format!("{id}.jsonl"));
    if path.is_file() {
        return Some(Source::file(dialect, &path));
    }
    let logs = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path());
    let segment = logs.into_iter().find(|path| dialect.segment_from_path(path).as_deref() == Some(id))?;
    Source::file(dialect, &segment).neighbours().iter().find_map(|session| session.named(id))
}

fn cases(dialect: &'static dyn Dialect) -> Vec<(&'static dyn Dialect, PathBuf)> {
    let entries = fs::read_dir(crate::support::corpus().join(dialect.name())).unwrap();
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases.into_iter().map(|case| (dialect, case)).collect()
}

#[test]
fn every_case_is_known_by_its_content() {
    let home = scrollback::model::Home { dir: "/nowhere".into(), cwd: "/nowhere".into(), vars: Default::default() };
    let mut wrong = Vec::new();
    for (dialect, case) in dialect::all().iter().flat_map(|dialect| cases(*dialect)) {
        let file = main_file(dialect, &case);
        if fs::metadata(&file).unwrap().len() == 0 {
            continue; // Whatever it is going to be.
        }
        let found = scrollback::session::detect::of_file(&file, &home).unwrap();
        if found.name() != dialect.name() {
            wrong.push(format!("{} is taken for {}", case.display(), found.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_answer_is_the_same_after_a_trip_through_json() {
    for (dialect, case) in dialect::all().iter().flat_map(|dialect| cases(*dialect)) {
        let session = Session::open(&Source::file(dialect, &main_file(dialect, &case)), &reading()).unwrap();
        let branch = session.head().map(|head| session.branch(head));
        let branch = branch.unwrap_or(Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() });
        let conversation = Conversation::new(&branch);
        let messages: Vec<Message> = conversation.messages(0..conversation.len()).collect::<Result<_, _>>().unwrap();
        let calls = tool_calls::of(&conversation).collect::<Result<Vec<_>, _>>().unwrap().concat();
        round_trip(&session.row().unwrap());
        round_trip(&session.page(&branch, session.head(), messages, true).unwrap());
        round_trip(&session.tree_view().unwrap());
        round_trip(&calls);
        let verdicts = session.message_verdicts().unwrap().unwrap_or(session.verdicts(Profile::SageEl).unwrap());
        round_trip(&Examination { verdicts: Some(verdicts), ..session.examine() });
    }
}

/// What is written as JSON and read back is written as the same JSON.
fn round_trip<T: Serialize + DeserializeOwned>(answer: &T) {
    let written = serde_json::to_string_pretty(answer).unwrap();
    let read: T = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string_pretty(&read).unwrap(), written);
}
