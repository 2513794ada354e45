//! Undo in a simulated project: random stories against a model, and crashes and failures at each step.

mod crashes;
mod foreign;
mod stepped;
mod stories;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Blocked, Goal, Readiness, Scope, Undo, journal, pending};
use crate::dialect;
use crate::disk::worktree::sim::{Entries, Entry, SimTree, Steps, Trouble};
use crate::model::hash::sha256;
use crate::model::host::Host;
use crate::model::record::{After, Before, FileState, Kind, Snapshot};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::write::blobs::{self, Blobs};
use stepped::Stepped;

/// The project's root: it is nowhere on the real disk.
const ROOT: &str = "/simulated";

/// How a change begins and ends: what is at a path, or nothing.
type Version = Option<Entry>;

/// The store that a session is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    Sage,
}

/// A simulated project, a store on a real disk, and our data folder.
struct Desk {
    folder: tempfile::TempDir,
    steps: Steps,
    tree: SimTree,
    ids: Arc<AtomicU64>,
}

impl Desk {
    fn new() -> Desk {
        // Nothing is written to a real disk there: many stories take no time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let steps = Steps::default();
        Desk { folder, tree: SimTree::new(steps.clone()), steps, ids: Arc::default() }
    }

    fn new_id(&self, kind: &str) -> String {
        format!("{kind}-{:06}", self.ids.fetch_add(1, Ordering::Relaxed))
    }

    fn host(&self, source: &Source) -> Host {
        let ids = self.ids.clone();
        let mut host = Host::at(ROOT.into(), "test 1");
        host.now = Arc::new(|| Timestamp::UNIX_EPOCH);
        host.new_id = Arc::new(move || format!("own-{:06}", ids.fetch_add(1, Ordering::Relaxed)));
        // Our data folder is needed only for the sessions of others.
        host.data = Some(self.store()).filter(|store| source.store().as_ref() != Some(store));
        host
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// A session in our store, or in Sage's, whose restores are in our journal.
    fn source(&self, session: &str, place: Place) -> Source {
        let store = if place == Place::Own { self.store() } else { self.folder.path().join(".sage") };
        let path = store.join("sessions").join(session).join("messages.jsonl");
        Source::file(dialect::named("native").unwrap(), &path)
    }

    fn append(&self, source: &Source, line: &Value) {
        fs::create_dir_all(source.path.parent().unwrap()).unwrap();
        let mut log = fs::OpenOptions::new().create(true).append(true).open(&source.path).unwrap();
        log.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn read(&self, source: &Source) -> Session {
        Session::open(source, &ReadOptions::plain(Timestamp::UNIX_EPOCH)).unwrap()
    }

    /// Everything is read again, as a new process does.
    fn undo<T>(&self, source: &Source, work: impl FnOnce(&Undo<'_>) -> T) -> T {
        let session = self.read(source);
        let (disk, tree) = (Arc::new(Stepped(self.steps.clone())), Arc::new(self.tree.clone()));
        work(&Undo::on(&session, self.host(source), disk, tree, ROOT.into()).unwrap())
    }

    /// The files and links of the project, without its folders.
    fn files(&self) -> Entries {
        files_of(&self.tree.entries())
    }

    /// The record that a session continues from.
    fn head(&self, source: &Source) -> Option<String> {
        self.read(source).head().map(|head| head.id().into_owned())
    }

    /// A message after another one; returns its id.
    fn say(&self, source: &Source, kind: &str, parent: Option<&str>) -> String {
        let id = self.new_id(kind);
        let message = json!({"role": kind, "content": id});
        let mut line = json!({"type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-15T12:00:00Z",
            "context": {"cwd": ROOT}, "sessionId": source.name(), "message": message});
        if source.store() == Some(self.store()) {
            line["format"] = 2.into();
        }
        self.append(source, &line);
        id
    }

    /// Changes files, and notes it as the native format does.
    fn change(&self, source: &Source, message: &str, changes: &BTreeMap<String, Version>, is_update: bool) {
        let mut files = Vec::new();
        let now = self.tree.entries();
        let store = source.store().unwrap();
        for (path, after) in changes {
            files.push(self.state(&store, path, now.get(path), after.as_ref()));
            self.put(path, after);
        }
        let states = Snapshot { files, ..Snapshot::default() }.to_states();
        self.append(
            source,
            &json!({"type": "file_history_snapshot", "messageId": message, "timestamp": "2026-11-15T12:00:00Z",
                "sessionId": source.name(), "format": 2, "isSnapshotUpdate": is_update, "snapshot": states}),
        );
    }

    fn put(&self, path: &str, version: &Version) {
        match version {
            Some(entry) => self.tree.put(path, entry.clone()),
            None => self.tree.take(path),
        }
    }

    fn state(&self, store: &Path, path: &str, before: Option<&Entry>, after: Option<&Entry>) -> FileState {
        let mut state = FileState { before: Before::Absent, after: After::Absent, ..FileState::new(path) };
        match before {
            Some(Entry::File { content, mode }) => {
                let hash = Some(sha256(content));
                state.before = Before::Blob { id: self.keep(store, content), hash };
                state.mode = Some(*mode);
            }
            Some(Entry::Link(target)) => (state.before, state.symlink) = (Before::Unknown, Some(target.clone())),
            Some(Entry::Folder) | None => {}
        }
        match after {
            Some(Entry::File { content, mode }) => {
                (state.after, state.mode_after) = (After::Hash(sha256(content)), Some(*mode));
            }
            Some(Entry::Link(target)) => state.after = After::Symlink(target.clone()),
            Some(Entry::Folder) | None => {}
        }
        state
    }

    /// Keeps a content as a blob; returns its name.
    fn keep(&self, store: &Path, content: &[u8]) -> String {
        let disk = Stepped(Steps::default());
        let folder = blobs::folder(store);
        Blobs { disk: &disk, folder: &folder, host: &Host::at(ROOT.into(), "test 1") }.put(content).unwrap()
    }

    /// How many restores a session knows.
    fn restores(&self, source: &Source) -> usize {
        let session = self.read(source);
        let noted = session.records().filter(|record| record.kind() == Kind::Restore).count();
        noted + journal::read(&session, &self.store()).unwrap().entries.len()
    }

    /// Whether an operation is noted as begun.
    fn is_interrupted(&self) -> bool {
        pending::Notes::of(&self.store(), None, Path::new(ROOT)).own().exists()
    }
}

/// Only upper and lower case differ: undo would delete the file that it means to bring back.
#[test]
fn where_two_names_are_one_file_a_rename_of_case_is_not_undone() {
    let desk = Desk::new();
    let source = desk.source("s1", Place::Own);
    let text = || Some(Entry::file(*b"text\n", 0o644));
    desk.put("README", &text());
    let prompt = desk.say(&source, "user", None);
    let answer = desk.say(&source, "assistant", Some(&prompt));
    desk.change(&source, &answer, &[("README".to_owned(), None), ("readme".to_owned(), text())].into(), false);
    let files = desk.files();
    for (folds_case, state) in [(false, Readiness::Ready), (true, Readiness::Refused)] {
        if folds_case {
            desk.tree.fold_case();
        }
        desk.undo(&source, |undo| {
            let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
            assert!(plan.files.len() == 2 && plan.files.iter().all(|file| file.state == state), "{:?}", plan.files);
        });
    }
    assert_eq!(desk.files(), files);
}

/// A session of one turn that changed a file in a folder.
fn one_change(desk: &Desk, source: &Source) {
    desk.put("src/a.rs", &Some(Entry::file(*b"one\n", 0o644)));
    let prompt = desk.say(source, "user", None);
    let answer = desk.say(source, "assistant", Some(&prompt));
    desk.change(source, &answer, &[("src/a.rs".to_owned(), Some(Entry::file(*b"two\n", 0o644)))].into(), false);
}

#[test]
fn a_folder_that_cannot_be_written_is_seen_by_the_plan() {
    let desk = Desk::new();
    let source = desk.source("s1", Place::Own);
    one_change(&desk, &source);
    desk.tree.make_read_only("src");
    desk.undo(&source, |undo| {
        let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
        let reason = plan.files[0].reason.as_deref().unwrap_or_default();
        assert_eq!(plan.files[0].state, Readiness::Failed);
        assert!(reason.starts_with("its folder cannot be changed: "), "{reason}");
    });
}

#[test]
fn a_file_that_cannot_be_read_is_no_conflict_that_could_be_forced() {
    let desk = Desk::new();
    let source = desk.source("s1", Place::Own);
    one_change(&desk, &source);
    desk.put("src/a.rs", &Some(Entry::file(*b"two\n", 0)));
    desk.undo(&source, |undo| {
        let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
        assert_eq!(plan.files[0].state, Readiness::Failed, "{:?}", plan.files);
        assert!(!plan.is_ready(Blocked::Force));
    });
}

#[test]
fn an_undo_that_was_interrupted_is_finished_by_one_of_a_session_in_another_store() {
    let desk = Desk::new();
    let log = desk.folder.path().join("elsewhere/sessions/s1/messages.jsonl");
    let native = Source::file(dialect::named("native").unwrap(), &log);
    let sage = desk.source("s2", Place::Sage);
    one_change(&desk, &native);
    desk.say(&sage, "user", None);
    // The last step before the note goes.
    let steps = desk.undo(&native, |undo| {
        let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
        desk.steps.restart(None);
        undo.apply(&plan, Blocked::Stop).unwrap();
        desk.steps.done()
    });
    desk.undo(&native, |undo| undo.apply(&undo.plan(&Goal::Redo, Scope::FilesOnly).unwrap(), Blocked::Stop))
        .unwrap();
    let mut recovered = 0;
    for step in 0..steps {
        desk.undo(&native, |undo| {
            let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
            desk.steps.restart(Some((step, Trouble::PowerLoss)));
            drop(undo.apply(&plan, Blocked::Stop));
            desk.steps.restart(None);
        });
        recovered += u32::from(desk.undo(&sage, |undo| undo.recover()).unwrap().is_some());
        // Before the note is in both places nothing is changed.
        desk.undo(&native, |undo| undo.recover()).unwrap();
        desk.undo(&native, |undo| {
            let plan = undo.plan(&Goal::Redo, Scope::FilesOnly).unwrap();
            if !plan.is_empty() {
                undo.apply(&plan, Blocked::Stop).unwrap();
            }
        });
        assert_eq!(desk.files()["src/a.rs"], Entry::file(*b"two\n", 0o644), "step {step}");
    }
    assert!(recovered > 5, "{recovered}");
}

#[test]
fn a_damaged_line_of_the_journal_is_reported() {
    let desk = Desk::new();
    let source = desk.source("s1", Place::Sage);
    one_change(&desk, &source);
    let apply =
        |goal: Goal| desk.undo(&source, |undo| undo.apply(&undo.plan(&goal, Scope::FilesOnly).unwrap(), Blocked::Stop));
    apply(Goal::LastTurn).unwrap();
    let journal = desk.store().join("journal/native/s1.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{{torn\n{text}")).unwrap();
    let damaged = desk.undo(&source, |undo| undo.history().damaged.clone());
    assert_eq!(damaged.iter().map(|damaged| damaged.line).collect::<Vec<_>>(), [1]);
    apply(Goal::Redo).unwrap();
}

fn files_of(entries: &Entries) -> Entries {
    entries
        .iter()
        .filter(|(_, entry)| **entry != Entry::Folder)
        .map(|(path, entry)| (path.clone(), entry.clone()))
        .collect()
}

/// The seed: printed by `cargo xtask torture`.
fn seed() -> u64 {
    std::env::var("SCROLLBACK_TORTURE").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}
