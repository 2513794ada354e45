//! `trackedFileBackups`: file states as Claude Code and Qwen Code write them.
//!
//! The copies are in `<store>/file-history/<session>/`, one file for each version of a file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dialect::line_builder::{Fields, fields};
use crate::model::json;
use crate::model::record::{After, Before, FileState};

const KEY: &str = "trackedFileBackups";

/// The folder of a session's backups. A sub-agent's are among those of its session.
pub(crate) fn folder(store: &Path, log: &Path) -> Option<PathBuf> {
    let session = log.file_stem()?;
    let is_sub_agent = session.to_string_lossy().starts_with("agent-");
    (!is_sub_agent).then(|| store.join("file-history").join(session))
}

/// Takes the file states out of a snapshot's fields. What is not understood stays there.
pub(crate) fn take(snapshot: &mut Fields) -> Vec<FileState> {
    take_objects(snapshot, KEY).into_iter().map(|(path, backup)| read(path, fields(backup))).collect()
}

/// The state of a file that has this backup.
pub(crate) fn read(path: String, mut extra: Fields) -> FileState {
    let before = match (take_failure(&mut extra), extra.get("backupFileName")) {
        (None, Some(Value::String(name))) => Before::Backup { name: name.clone(), hash: None },
        (None, Some(Value::Null)) => Before::Absent,
        (None, _) => Before::Unknown,
        (Some(failed), _) => failed,
    };
    let is_read = match before {
        Before::Backup { .. } | Before::Absent => true,
        _ => extra.get("backupFileName").is_some_and(Value::is_null),
    };
    if is_read {
        extra.shift_remove("backupFileName");
    }
    FileState { before, extra, ..FileState::new(path) }
}

/// The backup of a file; `None` for a state that these agents do not write. Any other would break their undo.
pub(crate) fn write(file: &FileState) -> Option<Value> {
    let has_mode = file.mode.is_some() || file.mode_after.is_some();
    let has_version = file.extra.get("version").is_some_and(Value::is_number);
    if file.after != After::Unknown || has_mode || file.symlink.is_some() || !has_version {
        return None;
    }
    let (name, failed) = match &file.before {
        Before::Backup { name, hash: None } => (Some(json!(name)), None),
        Before::Absent => (Some(Value::Null), None),
        Before::Failed(reason) => (Some(Value::Null), Some(reason.as_deref().map_or(json!(true), |why| json!(why)))),
        Before::Unknown => (None, None),
        Before::Backup { .. } | Before::Inline(_) | Before::Blob { .. } => return None,
    };
    let mut backup: Fields = name.into_iter().map(|name| ("backupFileName".to_owned(), name)).collect();
    backup.extend(file.extra.clone());
    backup.extend(failed.map(|failed| ("failed".to_owned(), failed)));
    Some(backup.into())
}

/// A snapshot's fields with these files; `None` if the agent cannot have written one of them.
pub(crate) fn write_all(files: &[FileState], mut snapshot: Fields) -> Option<Fields> {
    let mut tracked = snapshot.get(KEY).and_then(Value::as_object).cloned().unwrap_or_default();
    for file in files {
        tracked.insert(file.path.clone(), write(file)?);
    }
    snapshot.insert(KEY.to_owned(), tracked.into());
    Some(snapshot)
}

/// Takes the objects out of an object of objects; values of another shape stay.
pub(crate) fn take_objects(fields: &mut Fields, key: &str) -> Fields {
    let Some(Value::Object(all)) = fields.get_mut(key) else { return Fields::new() };
    let (objects, others): (Fields, Fields) =
        std::mem::take(all).into_iter().partition(|(_, value)| json::is_object(value));
    *all = others;
    if all.is_empty() {
        fields.shift_remove(key);
    }
    objects
}

/// Takes the note that a copy failed: `failed` is true, or the reason.
pub(crate) fn take_failure(fields: &mut Fields) -> Option<Before> {
    let failed = match fields.get("failed")? {
        Value::Bool(true) => Before::Failed(None),
        Value::String(reason) => Before::Failed(Some(reason.clone())),
        _ => return None,
    };
    fields.shift_remove("failed");
    Some(failed)
}
