//! Files that were put back: what a restore record tells, so that it can itself be taken back.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{RecordId, Todo};

/// Files that were put back. Its parent is the record to continue from: the head, if only files were put back.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Restore {
    /// The files are as they were before this record; if `after_target`, after it.
    pub target: Option<RecordId>,
    /// They are as they were after the target.
    pub after_target: bool,
    /// The head that was left, if the conversation went back too.
    pub from: Option<RecordId>,
    /// The files: a list of objects, as the agent wrote it. [`RestoredFile::read_all`] reads it.
    pub files: Value,
    /// Folders that were created for them, in the project.
    pub folders: Vec<String>,
    /// Folders that were removed, if they were empty then.
    pub removed_folders: Vec<String>,
    /// The task list that was put back with them.
    pub todos: Option<Vec<Todo>>,
    /// Names this change of files, wherever it is noted.
    pub operation: Option<String>,
    /// The operation that this one takes back.
    pub takes_back: Option<String>,
}

/// One file that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFile {
    /// The path in the project. It comes from a log: check it before it is used as a path.
    pub path: String,
    /// restore, create, delete or none; older records have more words.
    pub action: String,
    /// ready, conflict, unproven, refused or failed; older records have none.
    pub state: Option<String>,
    /// What was there before and what is there since, if the record tells.
    pub versions: Option<(RestoredVersion, RestoredVersion)>,
}

/// What is at a path, named by its hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredVersion {
    /// The blob with the content of a regular file: its BLAKE3 hash in hexadecimal digits.
    pub blob: Option<String>,
    /// The permission bits of a regular file.
    pub mode: Option<u32>,
    /// The target of a symbolic link.
    pub link: Option<String>,
}

impl RestoredVersion {
    /// Whether nothing is there.
    pub fn is_absent(&self) -> bool {
        self.blob.is_none() && self.link.is_none()
    }
}

impl RestoredFile {
    /// The files of a restore record. What is not understood is left out.
    pub fn read_all(files: &Value) -> Vec<RestoredFile> {
        files.as_array().into_iter().flatten().filter_map(RestoredFile::read).collect()
    }

    fn read(file: &Value) -> Option<RestoredFile> {
        let text = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
        let side = |side: &str| {
            let of = |key: &str| file.get(key).and_then(|values| values.get(side));
            RestoredVersion {
                blob: of("hashes").and_then(Value::as_str).map(str::to_owned),
                mode: of("modes").and_then(Value::as_u64).and_then(|mode| u32::try_from(mode).ok()),
                link: of("links").and_then(Value::as_str).map(str::to_owned),
            }
        };
        let versions = file.get("hashes").is_some_and(Value::is_object).then(|| (side("before"), side("after")));
        Some(RestoredFile { path: text("path")?, action: text("action")?, state: text("state"), versions })
    }

    /// The object of a restore record that reads as this file.
    pub fn to_json(&self) -> Value {
        let mut file =
            Map::from_iter([("path".to_owned(), json!(self.path)), ("action".to_owned(), json!(self.action))]);
        let mut put = |key: &str, value: Value| _ = file.insert(key.to_owned(), value);
        self.state.iter().for_each(|state| put("state", json!(state)));
        if let Some((before, after)) = &self.versions {
            put("hashes", json!({"before": before.blob, "after": after.blob}));
            if before.mode.is_some() || after.mode.is_some() {
                put("modes", json!({"before": before.mode, "after": after.mode}));
            }
            if before.link.is_some() || after.link.is_some() {
                put("links", json!({"before": before.link, "after": after.link}));
            }
        }
        file.into()
    }
}
