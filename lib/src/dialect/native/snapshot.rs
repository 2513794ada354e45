//! File states as the native format writes them: Sage's `trackedFiles` and `fileBackups`, with more fields.

use serde_json::{Value, json};

use crate::dialect::file_backups;
use crate::dialect::line_builder::{Fields, fields};
use crate::model::json;
use crate::model::record::{After, Before, FileState, RecordId, Snapshot};

/// The fields of a tracked file that have no meaning if they are null.
const TRACKED: [&str; 8] =
    ["originalContent", "contentHash", "blob", "failed", "mode", "modeAfter", "symlink", "symlinkAfter"];

/// What the path of a copy begins with if the copy is a blob of the store.
const BLOB: &str = "blob:";

/// The key in `extra` for fields of a file's entry in `fileBackups` that [`FileState`] does not have.
const FILE_BACKUP: &str = "fileBackup";

impl Snapshot {
    /// The snapshot that a record's `snapshot` object describes. What is not understood stays in `extra`.
    pub fn from_states(message: Option<RecordId>, update: bool, states: Value) -> Snapshot {
        let mut extra = match states {
            Value::Object(fields) => fields,
            Value::Null => Fields::new(),
            other => Fields::from_iter([("snapshot".to_owned(), other)]),
        };
        let tracked = file_backups::take_objects(&mut extra, "trackedFiles");
        let mut copies = file_backups::take_objects(&mut extra, "fileBackups");
        let mut files: Vec<FileState> = Vec::new();
        for (path, entry) in tracked {
            let copy = copies.get_mut(&path).map(Value::take).unwrap_or_default();
            files.push(read_file(path, fields(entry), fields(copy)));
        }
        let only_copies = copies.into_iter().filter(|(_, copy)| json::is_object(copy));
        files.extend(only_copies.map(|(path, copy)| read_file(path, Fields::new(), fields(copy))));
        files.extend(file_backups::take(&mut extra));
        let more = match extra.get_mut("more") {
            Some(Value::Array(more)) if more.iter().all(json::is_object) => std::mem::take(more),
            _ => Vec::new(),
        };
        if !more.is_empty() {
            extra.shift_remove("more");
        }
        let more = more.into_iter().map(|states| Snapshot::from_states(None, false, states)).collect();
        Snapshot { message, update, files, more, extra }
    }

    /// The `snapshot` object of a record that [`Snapshot::from_states`] reads as this snapshot.
    pub fn to_states(&self) -> Value {
        let mut states = Fields::new();
        let unread = |key: &str| self.extra.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let (mut tracked, mut copies) = (unread("trackedFiles"), unread("fileBackups"));
        for file in &self.files {
            let (entry, copy) = write_file(file);
            if !entry.is_empty() || copy.is_empty() {
                tracked.insert(file.path.clone(), entry.into());
            }
            if !copy.is_empty() {
                copies.insert(file.path.clone(), copy.into());
            }
        }
        for (key, map) in [("trackedFiles", tracked), ("fileBackups", copies)] {
            if !map.is_empty() || !self.extra.contains_key(key) {
                states.insert(key.to_owned(), map.into());
            }
        }
        if !self.more.is_empty() {
            states.insert("more".to_owned(), self.more.iter().map(Snapshot::to_states).collect());
        }
        for (key, value) in &self.extra {
            states.entry(key.as_str()).or_insert_with(|| value.clone());
        }
        states.into()
    }
}

fn read_file(path: String, mut extra: Fields, mut copy: Fields) -> FileState {
    extra.retain(|key, value| !value.is_null() || !TRACKED.contains(&key.as_str()));
    let state = extra.get("state").and_then(Value::as_str).map(str::to_owned);
    let is = |states: [&str; 2]| state.as_deref().is_some_and(|state| states.contains(&state));
    let before = if let Some(text) = take_text(&mut extra, "originalContent") {
        Before::Inline(text)
    } else if let Some(id) = take_text(&mut extra, "blob") {
        // As our first version wrote it.
        Before::Blob { id, hash: None }
    } else if let Some(failed) = file_backups::take_failure(&mut extra) {
        failed
    } else if let Some(name) = take_text(&mut copy, "backupPath") {
        copied(name, take_text(&mut copy, "originalHash"))
    } else if is(["created", "absent"]) {
        Before::Absent
    } else {
        Before::Unknown
    };
    let after = match is(["deleted", "absent"]) {
        true => After::Absent,
        false => match take_text(&mut extra, "symlinkAfter") {
            Some(target) => After::Symlink(target),
            None => take_text(&mut extra, "contentHash").map_or(After::Unknown, After::Hash),
        },
    };
    let [mode, mode_after] = ["mode", "modeAfter"].map(|key| take_mode(&mut extra, key));
    let symlink = take_text(&mut extra, "symlink");
    if state.is_some() && state.as_deref() == implied_state(&before, &after) {
        extra.shift_remove("state");
    }
    if !copy.is_empty() {
        extra.insert(FILE_BACKUP.to_owned(), copy.into());
    }
    FileState { path, before, after, mode, mode_after, symlink, extra }
}

impl FileState {
    /// What is recorded of the original beside its text: the copy, and the SHA-256.
    pub(crate) fn beside_text(&self) -> (Option<Before>, Option<String>) {
        let Some(Value::Object(copy)) = self.extra.get(FILE_BACKUP) else { return (None, None) };
        let text = |key: &str| copy.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let hash = text("originalHash");
        (text("backupPath").map(|name| copied(name, hash.clone())), hash)
    }
}

/// What a recorded path of a copy names.
fn copied(name: String, hash: Option<String>) -> Before {
    match name.strip_prefix(BLOB) {
        Some(id) => Before::Blob { id: id.to_owned(), hash },
        None => Before::Backup { name, hash },
    }
}

/// The file's entries in `trackedFiles` and in `fileBackups`.
fn write_file(file: &FileState) -> (Fields, Fields) {
    let (mut entry, mut copy) = (Fields::new(), Fields::new());
    let mut put = |key: &str, value: Value| _ = entry.insert(key.to_owned(), value);
    match &file.before {
        Before::Absent => put("originalContent", Value::Null),
        Before::Inline(text) => put("originalContent", json!(text)),
        Before::Failed(reason) => put("failed", reason.as_deref().map_or(json!(true), |reason| json!(reason))),
        Before::Backup { name, hash } => write_copy(&mut copy, name.clone(), hash.as_deref()),
        Before::Blob { id, hash } => write_copy(&mut copy, format!("{BLOB}{id}"), hash.as_deref()),
        Before::Unknown => {}
    }
    match &file.after {
        After::Hash(hash) => put("contentHash", json!(hash)),
        After::Symlink(target) => put("symlinkAfter", json!(target)),
        After::Absent | After::Unknown => {}
    }
    file.mode.iter().for_each(|mode| put("mode", json!(mode)));
    file.mode_after.iter().for_each(|mode| put("modeAfter", json!(mode)));
    file.symlink.iter().for_each(|target| put("symlink", json!(target)));
    implied_state(&file.before, &file.after).into_iter().for_each(|state| put("state", json!(state)));
    for (key, value) in &file.extra {
        match value {
            Value::Object(rest) if key == FILE_BACKUP => copy.extend(rest.clone()),
            value => _ = entry.insert(key.clone(), value.clone()),
        }
    }
    (entry, copy)
}

fn write_copy(copy: &mut Fields, path: String, hash: Option<&str>) {
    copy.insert("backupPath".to_owned(), path.into());
    copy.extend(hash.map(|hash| ("originalHash".to_owned(), json!(hash))));
}

/// The `state` that follows from the rest.
fn implied_state(before: &Before, after: &After) -> Option<&'static str> {
    match (before, after) {
        (Before::Absent, After::Absent) => Some("absent"),
        (Before::Absent, _) => Some("created"),
        (_, After::Absent) => Some("deleted"),
        (_, After::Hash(_) | After::Symlink(_)) => Some("modified"),
        (_, After::Unknown) => None,
    }
}

fn take_mode(fields: &mut Fields, key: &str) -> Option<u32> {
    let mode = u32::try_from(fields.get(key)?.as_u64()?).ok()?;
    fields.shift_remove(key);
    Some(mode)
}

fn take_text(fields: &mut Fields, key: &str) -> Option<String> {
    let text = fields.get(key)?.as_str()?.to_owned();
    fields.shift_remove(key);
    Some(text)
}
