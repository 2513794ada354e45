//! A fork copies the file backups that its branch names, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::place::{files_below, host};
use crate::support::reading;
use scrollback::dialect;
use scrollback::model::Error;
use scrollback::session::{Session, Source};
use scrollback::write::{Fork, Forked, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

const OLD: &str = "8956e7be-69fc-47a5-a8c6-c9bc59497ad1";
const NEW: &str = "0c61f09d-25b8-4e37-9a4d-8e7b50f3a780";

/// A store of Claude Code with one session of two branches, each with a backup of the same file.
fn store_with_file_history() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join(format!("projects/-gone-tide/{OLD}.jsonl"));
    let line = |kind: &str, id: &str, parent: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": OLD, "cwd": "/gone/tide", "userType": "external",
            "message": {"role": kind, "content": id}})
    };
    let snapshot = |message: &str, name: Value| {
        json!({"type": "file-history-snapshot", "messageId": message, "isSnapshotUpdate": false, "snapshot": {"messageId": message,
            "trackedFileBackups": {"a.py": {"backupFileName": name, "version": 1}}}})
    };
    let lines = [
        line("user", "q", Value::Null),
        snapshot("q", json!("1111@v1")),
        line("assistant", "a", json!("q")),
        snapshot("a", json!("2222@v1")),
        line("assistant", "b", json!("q")),
        snapshot("b", json!("3333@v1")),
        snapshot("b", json!("../../../secret")),
        snapshot("b", json!("linked@v1")),
        snapshot("b", json!("missing@v1")),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for (path, text) in [
        (log.clone(), &*text),
        (folder.path().join("secret"), "mine"),
        (folder.path().join(format!("file-history/{OLD}/1111@v1")), "one"),
        (folder.path().join(format!("file-history/{OLD}/2222@v1")), "two"),
        (folder.path().join(format!("file-history/{OLD}/3333@v1")), "three"),
        (folder.path().join(format!("file-history/{OLD}/4444@v1")), "nobody's"),
    ] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (folder, log)
}

fn fork_claude(folder: &Path, log: &Path, id: &str) -> Result<Forked, Error> {
    let dialect = dialect::named("claude-code").unwrap();
    let store = Store::open(dialect, folder, host()).unwrap();
    let source = Session::open(&Source::file(dialect, log), &reading()).unwrap();
    store.fork(&source, Fork { head: None, id: Some(id) })
}

#[test]
fn the_backups_that_a_branch_names_are_copied() {
    let (folder, log) = store_with_file_history();
    let history = folder.path().join("file-history");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::os::unix::fs::symlink(folder.path().join("secret"), history.join(OLD).join("linked@v1")).unwrap();
        fs::set_permissions(history.join(OLD).join("3333@v1"), fs::Permissions::from_mode(0o750)).unwrap();
    }
    fork_claude(folder.path(), &log, NEW).unwrap();
    let copies: Vec<(String, String)> = files_below(&history.join(NEW))
        .into_iter()
        .map(|name| (name.clone(), fs::read_to_string(history.join(NEW).join(name)).unwrap()))
        .collect();
    let expected = [("1111@v1", "one"), ("3333@v1", "three")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(copies, expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(history.join(NEW).join("3333@v1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
    }
    assert_eq!(
        fs::read_dir(history.join(OLD)).unwrap().count(),
        if cfg!(unix) { 5 } else { 4 },
        "the source is untouched"
    );
}

#[test]
fn a_file_history_of_the_new_name_is_not_overwritten() {
    let (folder, log) = store_with_file_history();
    let taken = folder.path().join("file-history").join(NEW);
    fs::create_dir_all(&taken).unwrap();
    fs::write(taken.join("1111@v1"), "another session's").unwrap();
    assert!(matches!(fork_claude(folder.path(), &log, NEW), Err(Error::Exists(_))));
    assert_eq!(fs::read_to_string(taken.join("1111@v1")).unwrap(), "another session's");
    assert_eq!(fs::read_dir(log.parent().unwrap()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_file_history_that_leads_out_of_the_store_is_not_copied() {
    let (folder, log) = store_with_file_history();
    let (history, outside) = (folder.path().join("file-history").join(OLD), tempfile::tempdir().unwrap());
    fs::rename(&history, outside.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("moved"), &history).unwrap();
    fork_claude(folder.path(), &log, NEW).unwrap();
    assert!(!folder.path().join("file-history").join(NEW).exists());
}
