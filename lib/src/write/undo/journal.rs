//! Where restores are noted: in a session of ours as a record, else in a journal of our own, so that another agent's file stays as it is.
//!
//! ```text
//! <store>/journal/<dialect>/<session>.jsonl      one restore a line, as the native format writes it, with the last record then
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::disk::Disk;
use crate::disk::append::{Appender, make_folders};
use crate::model::error::{Error, Result};
use crate::model::json;
use crate::model::record::{RecordId, Restore, Todo};
use crate::model::regular_file::{self, Links};
use crate::session::{RecordRef, Session};
use crate::view::files::{DamagedLine, JournalEntry};
use crate::write::store::check_name;

/// A journal that is larger is not read: each line lists the files of one restore.
const JOURNAL_LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// Whether a session's restores are noted in the session itself: it is native, and not one that Sage wrote.
pub(super) fn is_ours(session: &Session) -> bool {
    let is_sages = |store: &Path| store.file_name().is_some_and(|name| name == ".sage");
    let is_in_ours = || session.source.store().is_none_or(|store| !is_sages(&store));
    let is_of_scrollback = || session.records().next().is_some_and(RecordRef::is_of_scrollback);
    session.dialect().name() == "native" && (is_in_ours() || is_of_scrollback())
}

/// The store that keeps blobs and notes for a session: its own, or the one in our data folder.
pub(super) fn store_of(session: &Session, data: Option<&Path>) -> Option<PathBuf> {
    let own = session.source.store().filter(|_| is_ours(session));
    own.or_else(|| data.map(Path::to_path_buf))
}

/// What our journal knows of a session.
#[derive(Default)]
pub(super) struct Journal {
    /// The restores, the oldest first.
    pub(super) entries: Vec<JournalEntry>,
    /// The lines that cannot be read.
    pub(super) damaged: Vec<DamagedLine>,
}

pub(super) fn read(session: &Session, store: &Path) -> Result<Journal> {
    let mut journal = Journal::default();
    if is_ours(session) {
        return Ok(journal);
    }
    let path = path_of(session, store);
    let bytes = match regular_file::read(&path, JOURNAL_LIMIT_BYTES, Links::Refuse) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(journal),
        Err(error) => return Err(error),
    };
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        match json::parse_bytes(line).and_then(|line| entry(&line)) {
            Some(entry) => journal.entries.push(entry),
            None => journal.damaged.push(DamagedLine { path: path.clone(), line: at + 1 }),
        }
    }
    Ok(journal)
}

/// Adds a restore to the journal of a session; it is safe on return.
pub(super) fn append(disk: &Arc<dyn Disk>, session: &Session, store: &Path, entry: &JournalEntry) -> Result<()> {
    let path = path_of(session, store);
    let line = json::to_string(&line(entry)) + "\n";
    make_folders(&**disk, &path)?;
    let opened = match disk.exists(&path) {
        true => Appender::open(disk.clone(), &path, Vec::new()),
        false => Appender::create(disk.clone(), &path, Vec::new()),
    };
    let mut appender = opened?;
    appender.append(line.as_bytes())?;
    appender.sync()
}

pub(super) fn path_of(session: &Session, store: &Path) -> PathBuf {
    let id = session.id();
    // An id that is no file name is named by its hash.
    let name = match check_name(id.as_str()) {
        Ok(()) => id.to_string(),
        Err(_) => blake3::hash(id.as_str().as_bytes()).to_hex().to_string(),
    };
    store.join("journal").join(session.dialect().name()).join(format!("{name}.jsonl"))
}

pub(super) fn line(entry: &JournalEntry) -> Value {
    let Restore { target, after_target, from, files, folders, removed_folders, todos, operation, takes_back } =
        &entry.restore;
    let list = |folders: &[String]| if folders.is_empty() { Value::Null } else { json!(folders) };
    let fields = [
        ("type", json!("restore")),
        ("uuid", json!(entry.id)),
        ("timestamp", json!(entry.at)),
        ("head", json!(entry.head)),
        ("target", json!(target)),
        ("afterTarget", if *after_target { json!(true) } else { Value::Null }),
        ("from", json!(from)),
        ("operation", json!(operation)),
        ("takesBack", json!(takes_back)),
        ("files", files.clone()),
        ("folders", list(folders)),
        ("removedFolders", list(removed_folders)),
        ("todos", json!(todos)),
    ];
    fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value))
        .collect::<Map<_, _>>()
        .into()
}

pub(super) fn entry(line: &Value) -> Option<JournalEntry> {
    let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| line.get(key).and_then(|all| serde_json::from_value(all.clone()).ok()).unwrap_or_default();
    let restore = Restore {
        target: text("target").map(RecordId),
        after_target: line.get("afterTarget") == Some(&Value::Bool(true)),
        from: text("from").map(RecordId),
        files: line.get("files")?.clone(),
        folders: list("folders"),
        removed_folders: list("removedFolders"),
        todos: line.get("todos").and_then(|todos| serde_json::from_value::<Vec<Todo>>(todos.clone()).ok()),
        operation: text("operation"),
        takes_back: text("takesBack"),
    };
    let at = text("timestamp").and_then(|at| at.parse::<Timestamp>().ok());
    Some(JournalEntry { id: RecordId(text("uuid")?), head: text("head").map(RecordId), at, restore })
}
