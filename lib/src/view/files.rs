//! What a session did to files: one timeline over all branches, because the disk has only one.
//!
//! ```text
//! records    u1      a1          u2      a2          u3
//! facts      A=v1    A: edit     A=v2    A: edit     …           =: what the file was, from a backup or a snapshot
//! A before u2: v2, the first fact at or after it; A now: v2 with the edits behind it
//! ```
//!
//! Facts stand where their message stands, wherever the agent wrote them.

mod collect;
mod diff;
mod edit;
mod hunks;
mod path_history;
mod version;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::error::Result;
use crate::model::hash;
use crate::model::named_enum;
use crate::model::project;
use crate::model::project_path::ProjectPath;
use crate::model::record::{RecordId, Restore};
use crate::model::regular_file::{self, Links};
use crate::session::backups::{Backups, COPY_LIMIT_BYTES};
use crate::session::tree::NodeIx;
use crate::session::{RecordRef, Session};
pub use diff::{kind_change, unified_diff};
pub(crate) use edit::taken_back;
pub(crate) use path_history::{Between, Moment, PathHistory, Rebuilt};
pub use version::{FileContent, FileVersion, KnownVersion, Unknown};

/// What a session did to the files of its project.
pub struct FileHistory {
    /// The project's root, as the session names it.
    pub(crate) root: PathBuf,
    pub(crate) paths: BTreeMap<ProjectPath, PathHistory>,
    /// Paths that are not looked at, and why.
    pub(crate) refused: BTreeMap<String, Refused>,
    /// Folders that were made or removed, in any order.
    pub(crate) folders: Vec<FolderChange>,
    /// What restored files, in order.
    pub(crate) restores: Vec<RestoreEvent>,
    /// How many files of the project the recorder did not look at, by the reason: whether they changed is not known.
    pub unwatched: BTreeMap<String, u64>,
    /// Lines of our journal that cannot be read: a restore may be missing.
    pub damaged: Vec<DamagedLine>,
    /// Where snapshots count that come before their messages, by the order of records.
    pub(crate) stands_at: HashMap<usize, NodeIx>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// The file.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
}

/// A folder that a message or a restore made or removed.
pub(crate) struct FolderChange {
    pub(crate) moment: Moment,
    pub(crate) record: RecordId,
    pub(crate) path: ProjectPath,
    pub(crate) is_made: bool,
}

/// What is at a path now, beside what a session left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisk {
    /// The same.
    AsLeft,
    /// Something else.
    Changed,
    /// Nothing.
    Gone,
    /// What the session left is not known, or what is there cannot be compared.
    Unknown,
}

/// A path that is not looked at.
pub(crate) struct Refused {
    pub(crate) why: &'static str,
    /// Tells whether it was changed.
    pub(crate) history: PathHistory,
}

/// Files were restored at a moment.
#[derive(Debug, Clone)]
pub(crate) struct RestoreEvent {
    pub(crate) moment: Moment,
    /// Its record, or its line in our journal.
    pub(crate) id: RecordId,
    /// The last record of the session at that time, if it is in our journal.
    pub(crate) last_record: Option<RecordId>,
    pub(crate) restore: Restore,
}

impl RestoreEvent {
    /// What a later restore names to take this one back: a record that another program wrote has no operation.
    pub(crate) fn name(&self) -> &str {
        self.restore.operation.as_deref().unwrap_or(self.id.as_str())
    }
}

/// A restore of another agent's session, from our own journal.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// Its id.
    pub id: RecordId,
    /// The last record of the session at that time.
    pub head: Option<RecordId>,
    /// When it was.
    pub at: Option<Timestamp>,
    /// What was restored.
    pub restore: Restore,
}

/// A file and its changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileRow {
    /// Its path in the project; as the session names it, if it is outside.
    pub path: String,
    /// The oldest first.
    pub changes: Vec<ChangeRow>,
}

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    /// The record that tells of it.
    pub record: RecordId,
    /// The message that made it.
    pub message: RecordId,
    /// The tool that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What happened to the file.
    pub action: ChangeAction,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The size after it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The SHA-256 after it, in hexadecimal digits, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

named_enum! {
    /// What happened to a file.
    ChangeAction {
        /// It did not exist before.
        Created = "created",
        /// Its content, its permissions or its target changed.
        Modified = "modified",
        /// It does not exist any more.
        Deleted = "deleted",
    }
}

impl FileHistory {
    /// Reads the history of a session. `data` is our own folder, and `journal` what it knows of restores.
    pub fn read(
        session: &Session,
        data: Option<&Path>,
        root: Option<&Path>,
        journal: &[JournalEntry],
    ) -> Result<FileHistory> {
        let recorded = FileHistory::root_of(session).or_else(|| root.map(Path::to_path_buf)).unwrap_or_default();
        let backups = Backups::of(session, root.unwrap_or(&recorded), data);
        collect::history(session, recorded, &backups, journal)
    }

    /// The root of a session's project, if the session names a directory.
    pub(crate) fn root_of(session: &Session) -> Option<PathBuf> {
        session.cwd().map(Path::new).filter(|cwd| cwd.is_absolute()).map(project::of)
    }

    /// Every file that the session changed: those of the project by path, then those outside, which undo refuses.
    pub fn rows(&self) -> Vec<FileRow> {
        let inside = self.paths.iter().map(|(path, history)| (path.to_string(), history));
        let outside = self.refused.iter().map(|(path, refused)| (path.clone(), &refused.history));
        let row = |(path, history): (String, &PathHistory)| FileRow { path, changes: history.rows() };
        inside.chain(outside).map(row).filter(|row| !row.changes.is_empty()).collect()
    }

    /// The record at whose place a record counts: a snapshot that comes before its message, in a file of its own, stands there.
    pub(crate) fn standing<'r>(&self, record: RecordRef<'r>) -> RecordRef<'r> {
        self.stands_at.get(&record.order()).map_or(record, |node| record.session.at(*node))
    }

    /// What was at a path right after a record; `None` if the session did not touch it.
    pub fn version_after(&self, path: &ProjectPath, record: RecordRef<'_>) -> Option<KnownVersion> {
        let (history, moment) = (self.paths.get(path)?, Moment::after(self.standing(record)));
        Some(self.or_rebuilt(path, history, moment, history.left_with_copy(moment)))
    }

    /// What was at a path before the session; `None` if the session did not touch it.
    pub fn version_at_start(&self, path: &ProjectPath) -> Option<KnownVersion> {
        let (history, moment) = (self.paths.get(path)?, Moment::start());
        Some(self.or_rebuilt(path, history, moment, history.before(moment)))
    }

    /// A version that nobody kept, from the edits since then: as an undo rebuilds it.
    fn or_rebuilt(
        &self,
        path: &ProjectPath,
        history: &PathHistory,
        moment: Moment,
        known: KnownVersion,
    ) -> KnownVersion {
        let Err(Unknown::NotKept(_)) = &known else { return known };
        // Without a change since then, nothing proves that the disk has what was there.
        let is_changed = history.is_changed_since(moment);
        let on_disk = || regular_file::read(&path.below(&self.root), COPY_LIMIT_BYTES, Links::Refuse).ok();
        let rebuilt = is_changed.then(|| history.before_edits(moment, on_disk)).flatten();
        rebuilt.map_or(known, |rebuilt| Ok(rebuilt.version))
    }

    /// Whether the session changed a file between two records, whichever comes first. No record is the beginning, and the end.
    pub fn is_changed_between(
        &self,
        path: &ProjectPath,
        from: Option<RecordRef<'_>>,
        to: Option<RecordRef<'_>>,
    ) -> bool {
        let Some(history) = self.paths.get(path) else { return false };
        let (from, to) = (from.map(|from| self.standing(from)), to.map(|to| self.standing(to)));
        let (from, to) = match (from, to) {
            (Some(later), Some(earlier)) if later.order() > earlier.order() => (Some(earlier), Some(later)),
            in_order => in_order,
        };
        let from = from.map_or_else(Moment::start, Moment::after);
        history.is_changed_between(from, to.map(Moment::after))
    }

    /// The content of a version: the copy that was kept, or the file on disk, if that has the recorded hash.
    pub fn content(&self, path: &ProjectPath, version: &FileVersion) -> Result<Option<Vec<u8>>> {
        let FileVersion::File { content: FileContent::Hash { sha256, .. }, .. } = version else {
            return version.bytes();
        };
        let on_disk = regular_file::read(&path.below(&self.root), COPY_LIMIT_BYTES, Links::Refuse).ok();
        Ok(on_disk.filter(|bytes| hash::sha256(bytes) == *sha256))
    }

    /// The files that had a content of this name at some time, each with the version: the SHA-256 of the bytes, or the name of the
    /// blob.
    pub fn named(&self, hash: &str) -> Vec<(&ProjectPath, FileVersion)> {
        self.paths.iter().filter_map(|(path, history)| Some((path, history.named(hash)?))).collect()
    }

    /// Every path that the session changed.
    pub fn changed(&self) -> impl Iterator<Item = &ProjectPath> {
        self.paths.iter().filter(|(_, path)| path.is_changed_since(Moment::start())).map(|(path, _)| path)
    }

    /// What the session left at a path; `None` if the session did not touch it.
    pub fn version_now(&self, path: &ProjectPath) -> Option<KnownVersion> {
        Some(self.paths.get(path)?.now())
    }

    /// Whether what is at a path now is what the session left there. Larger files are not read.
    pub fn on_disk(&self, path: &ProjectPath, limit_bytes: u64) -> OnDisk {
        let place = path.below(&self.root);
        if !self.root.is_dir() {
            return OnDisk::Unknown;
        }
        let Some(Ok(left)) = self.version_now(path) else { return OnDisk::Unknown };
        let now = match std::fs::symlink_metadata(&place) {
            Ok(now) => now,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return if left == FileVersion::Absent { OnDisk::AsLeft } else { OnDisk::Gone };
            }
            Err(_) => return OnDisk::Unknown,
        };
        let is_same = match &left {
            FileVersion::Absent => return OnDisk::Changed,
            FileVersion::Link(target) => {
                now.is_symlink().then(|| std::fs::read_link(&place).is_ok_and(|now| now.to_str() == Some(target)))
            }
            FileVersion::File { content, .. } => {
                regular_file::read(&place, limit_bytes, Links::Refuse).ok().and_then(|now| match content {
                    FileContent::Hash { sha256, .. } => Some(hash::sha256(&now) == *sha256),
                    _ => left.bytes_up_to(limit_bytes as usize).ok()?.map(|left| left == now),
                })
            }
        };
        match is_same {
            Some(true) => OnDisk::AsLeft,
            Some(false) => OnDisk::Changed,
            None => OnDisk::Unknown,
        }
    }

    /// The path that was typed or recorded, as this history names it.
    pub fn find(&self, path: &str, cwd: &Path) -> Option<&ProjectPath> {
        let typed = ProjectPath::in_project(path, cwd, &self.root)
            .or_else(|_| ProjectPath::in_project(path, &self.root, &self.root));
        self.paths.get_key_value(&typed.ok()?).map(|(path, _)| path)
    }
}
