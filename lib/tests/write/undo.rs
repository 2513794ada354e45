//! Undo and redo of real and made-up sessions, on a real disk.

#[cfg(unix)]
mod attacks;
mod histories;
mod recorded;
#[cfg(unix)]
mod sensitive;
#[cfg(unix)]
mod watched;

#[cfg(unix)]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrollback::model::Host;
use scrollback::session::{Session, Source};
use scrollback::write::{Action, Blocked, Goal, Readiness, Scope, Undo};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{now, reading};

/// A project, a store and our data folder, in a temporary folder.
struct Desk {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["project", "data"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Desk { _folder: folder, root }
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn host(&self) -> Host {
        let mut host = Host::at(self.project(), "test 1");
        host.now = Arc::new(now);
        host.data = Some(self.root.join("data"));
        host
    }

    /// The session of Claude Code that edited a file twice, with its backups.
    fn claude(&self) -> Source {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/claude-code/real-file-history");
        let id = "81362430-fc3d-485a-8970-a4cdcbaf9389";
        let store = self.root.join("claude");
        let log = store.join(format!("projects/-home-dev/{id}.jsonl"));
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::copy(sample.join("session.jsonl"), &log).unwrap();
        let backups = store.join("file-history").join(id);
        fs::create_dir_all(&backups).unwrap();
        fs::write(backups.join("2697143bd723d6a9@v1"), "print(\"hi\")\n").unwrap();
        fs::write(backups.join("2697143bd723d6a9@v2"), "print(\"hello\")\n").unwrap();
        fs::write(self.project().join("a.py"), "print(\"goodbye\")\n").unwrap();
        Source::file(scrollback::dialect::named("claude-code").unwrap(), &log)
    }

    /// A file in the project, and its SHA-256.
    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> String {
        let place = self.project().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, &content).unwrap();
        sha256(content)
    }

    /// A session of an agent: its lines at a path in its store.
    fn session(&self, dialect: &str, path: &str, lines: &[Value]) -> Source {
        let log = self.root.join(path);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&log, text).unwrap();
        Source::file(scrollback::dialect::named(dialect).unwrap(), &log)
    }

    /// A native session of one turn that changed these files.
    fn native(&self, tracked: &Value, backups: &Value) -> Source {
        self.native_in(&json!({"cwd": self.project()}), tracked, backups)
    }

    fn native_in(&self, context: &Value, tracked: &Value, backups: &Value) -> Source {
        let line = |kind: &str, id: &str, parent: Value| {
            json!({"type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-15T12:00:00Z", "sessionId": "s1",
                "format": 2, "context": context, "message": {"role": kind, "content": id}})
        };
        let snapshot = json!({"type": "file_history_snapshot", "messageId": "a1", "timestamp": "2026-11-15T12:00:00Z",
            "sessionId": "s1", "format": 2, "isSnapshotUpdate": false,
            "snapshot": {"trackedFiles": tracked, "fileBackups": backups}});
        let lines = [line("user", "u1", Value::Null), line("assistant", "a1", json!("u1")), snapshot];
        self.session("native", "store/sessions/s1/messages.jsonl", &lines)
    }

    /// The state and the reason of each file of a plan.
    fn planned(&self, source: &Source, goal: &Goal) -> Vec<(String, Readiness, String)> {
        let session = self.open(source);
        let undo = Undo::open(&session, self.host(), Some(&self.project())).unwrap();
        let plan = undo.plan(goal, Scope::FilesOnly).unwrap();
        let reason = |why: &Option<String>| why.clone().unwrap_or_default();
        plan.files.iter().map(|file| (file.path.clone(), file.state, reason(&file.reason))).collect()
    }

    fn open(&self, source: &Source) -> Session {
        Session::open(source, &reading()).unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.project().join(path)).ok()
    }

    /// One step, and the file after it.
    fn step(&self, source: &Source, goal: &Goal) -> (Vec<(String, Action, Readiness)>, Option<String>) {
        let session = self.open(source);
        let undo = Undo::open(&session, self.host(), Some(&self.project())).unwrap();
        let plan = undo.plan(goal, Scope::FilesOnly).unwrap();
        let files = plan.files.iter().map(|file| (file.path.clone(), file.action, file.state)).collect();
        if !plan.is_empty() && plan.is_ready(Blocked::Stop) {
            undo.apply(&plan, Blocked::Stop).unwrap();
        }
        (files, self.read("a.py"))
    }
}

/// Everything in a folder: the content of a file, the target of a link, nothing for a folder.
#[cfg(unix)]
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let (mut open, mut found) = (vec![folder.to_path_buf()], BTreeMap::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let content = match () {
                () if kind.is_dir() => None,
                () if kind.is_symlink() => Some(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()),
                () => Some(fs::read(&path).unwrap()),
            };
            if kind.is_dir() {
                open.push(path.clone());
            }
            found.insert(path, content);
        }
    }
    found
}

fn sha256(content: impl AsRef<[u8]>) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_byte_of_claude_codes_edits_comes_back_and_goes_again() {
    let desk = Desk::new();
    let source = desk.claude();
    let log = fs::read(&source.path).unwrap();
    let ready = |action| vec![("a.py".to_owned(), action, Readiness::Ready)];
    let restored = |text: &str| (ready(Action::Restore), Some(text.to_owned()));
    assert_eq!(desk.step(&source, &Goal::LastTurn), restored("print(\"hello\")\n"));
    assert_eq!(desk.step(&source, &Goal::LastTurn), restored("print(\"hi\")\n"));
    assert_eq!(desk.step(&source, &Goal::LastTurn), (vec![], Some("print(\"hi\")\n".to_owned())));
    assert_eq!(desk.step(&source, &Goal::Redo), restored("print(\"hello\")\n"));
    assert_eq!(desk.step(&source, &Goal::Redo), restored("print(\"goodbye\")\n"));
    assert_eq!(desk.step(&source, &Goal::Redo), (vec![], Some("print(\"goodbye\")\n".to_owned())));
    assert_eq!(desk.step(&source, &Goal::LastTurn), restored("print(\"hello\")\n"));
    assert_eq!(fs::read(&source.path).unwrap(), log, "another agent's file stays as it is");
}
