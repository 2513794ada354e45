//! Ids from a file that cannot be the name of one: the new session gets another name, and that is said.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host;
use scrollback::dialect::{self, Dialect};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::transfer::convert::{Conversion, Target};
use serde_json::json;

/// Names that no file should have.
fn bad_names() -> Vec<String> {
    let plain = [
        "a/b",
        ".",
        "..",
        "../x",
        "/etc/x",
        "x\u{1b}[2J",
        "a\nb",
        "a\0b",
        "dot.",
        "space ",
        "-x",
        "con",
        "a\\b",
        "\u{202e}x",
    ];
    plain.into_iter().map(str::to_owned).chain(["x".repeat(300)]).collect()
}

/// A session with this id, as each dialect that stores an id writes it.
fn logs(id: &str) -> [(&'static str, &'static str, String); 5] {
    let at = "2026-10-02T09:00:00Z";
    let native = json!({"type": "user", "uuid": "u1", "parentUuid": null, "timestamp": at, "sessionId": id, "format": 2,
        "context": {"cwd": "/x"}, "message": {"role": "user", "content": "One?"}});
    let claude = json!({"type": "user", "uuid": "u1", "parentUuid": null, "timestamp": at, "cwd": "/x", "sessionId": id,
        "version": "2.1.325", "message": {"role": "user", "content": "One?"}});
    let qwen = json!({"uuid": "u1", "parentUuid": null, "sessionId": id, "timestamp": at, "type": "user", "cwd": "/x",
        "version": "0.24.4", "message": {"role": "user", "parts": [{"text": "One?"}]}});
    let meta = json!({"timestamp": at, "type": "session_meta", "payload": {"id": id, "cwd": "/x"}});
    let item = json!({"timestamp": at, "type": "response_item", "payload":
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "One?"}]}});
    let chat =
        json!({"id": id, "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "One?"}]}]});
    [
        ("native", "copy.jsonl", format!("{native}\n")),
        ("claude-code", "copy.jsonl", format!("{claude}\n")),
        ("qwen-code", "copy.jsonl", format!("{qwen}\n")),
        ("codex", "copy.jsonl", format!("{meta}\n{item}\n")),
        ("ai-sdk", "copy.json", chat.to_string()),
    ]
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut next) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = next.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { next.push(path) } else { found.push(path) }
        }
    }
    found
}

/// Converts a session into an empty store; everything written there must be one session that a walk finds.
fn check(source: &Source, to: &'static dyn Dialect, id: &str) {
    let what = format!("{id:?} from {} to {}", source.dialect.name(), to.name());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("inner/store");
    let session = Session::open(source, &ReadOptions::plain((host().now)())).unwrap();
    let with = Some("ada@example.org").filter(|_| to.name() == "fluux");
    let how = Conversion { to, target: Target::Store(&root), head: None, with };
    let converted = session.convert(&how, &host()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let layouts: Vec<_> = to.layouts_in(&root).into_iter().map(|layout| (to, layout)).collect();
    let found: Vec<PathBuf> = Source::walk_all(&layouts).into_iter().map(|source| source.unwrap().path).collect();
    assert_eq!(found, std::slice::from_ref(&converted.path), "{what}");
    for path in files(dir.path()) {
        assert!(path.starts_with(&root), "{what}: {}", path.display());
        let is_plain = |part: &std::ffi::OsStr| {
            let part = part.to_str().unwrap();
            !part.contains(|c: char| c.is_control() || c == '\\') && !part.ends_with(['.', ' '])
        };
        assert!(path.strip_prefix(dir.path()).unwrap().iter().all(is_plain), "{what}: {path:?}");
    }
    // A chat of the AI SDK keeps the name of its file, and needs no other.
    if to.name() == source.dialect.name() && to.name() != "ai-sdk" {
        let says_so =
            |remark: &String| remark.contains("invalid session name") && remark.contains(converted.session.as_str());
        assert!(converted.renamed.as_ref().is_some_and(says_so), "{what}: {:?}", converted.renamed);
        // The bytes are the same, whatever the session is called.
        assert_eq!(fs::read(&converted.path).unwrap(), fs::read(&source.path).unwrap(), "{what}");
    }
}

#[test]
fn an_id_that_is_no_name_becomes_another_one_in_every_format() {
    for name in bad_names() {
        for (from, file, text) in logs(&name) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(file);
            fs::write(&path, text).unwrap();
            let source = Source::file(dialect::named(from).unwrap(), &path);
            // Another format never uses the id of the source: one name is enough there.
            let is_checked = |to: &&'static dyn Dialect| to.writer().is_some() && (to.name() == from || name == "a/b");
            for to in dialect::all().iter().copied().filter(is_checked) {
                check(&source, to, &name);
            }
        }
    }
}
