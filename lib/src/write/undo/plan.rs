//! The plan of a restore: each file, what would happen to it, and whether that is safe. Nothing is written.
//!
//! ```text
//! wanted     what the file was at the goal             a backup, a blob, or rebuilt from edits
//! expected   what the session left                     the newest state, or the last one with the edits behind it
//! on disk    wanted ▶ nothing to do    expected ▶ ready    anything else ▶ conflict, or unproven if nobody knows what was left
//! ```

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use memchr::memmem;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::on_disk::{LastFolder, OnDisk};
use super::room::InTheWay;
use super::{Goal, Scope, Target, Undo};
use crate::disk::worktree::Found;
use crate::model::error::{Error, Result, in_words};
use crate::model::named_enum;
use crate::model::project_path::ProjectPath;
use crate::model::record::{Kind, RecordId, SessionId, Todo};
use crate::redact;
use crate::session::RecordRef;
use crate::session::backups::{FileCopy, why_unusable};
use crate::view::describe::{shorten, text_of};
use crate::view::files::{
    Between, FileContent, FileVersion, FolderChange, KnownVersion, Moment, PathHistory, Rebuilt, Unknown, kind_change,
    unified_diff,
};

/// Larger files are not compared line by line.
const DIFF_LIMIT_BYTES: usize = 1024 * 1024;

/// Larger files are not read into memory.
const REBUILD_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Files that one thread looks at before it asks for more: enough that a folder is rarely opened twice.
const FILES_AT_ONCE: usize = 64;

/// How much is shown of the record that files are restored to.
const TARGET_CHARS: usize = 60;

/// What would be restored.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The session.
    pub session: SessionId,
    /// The record before or after which files are restored.
    pub target: Option<RecordId>,
    /// What that record says, in one line.
    pub target_text: String,
    /// Whether that is after it.
    pub is_after: bool,
    /// Whether it takes a restore back.
    pub is_redo: bool,
    /// The files, by path.
    pub files: Vec<PlannedFile>,
    /// The task list then, if the conversation goes back too.
    pub todos: Option<Vec<Todo>>,
    /// Where the conversation continues, if it goes back too.
    pub head: Option<Head>,
    pub(super) takes_back: Option<String>,
    /// Folders that go away if they are empty then, the inner ones first.
    pub(super) folders: Vec<ProjectPath>,
    /// Folders that come back, the outer ones first.
    pub(super) new_folders: Vec<ProjectPath>,
}

/// Where a conversation continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// Before its first record.
    Start,
    /// After this record.
    Record(RecordId),
}

/// One file of a plan.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    /// Its path in the project; as the session names it, if it is refused.
    pub path: String,
    /// What would happen to it.
    pub action: Action,
    /// Whether that is safe.
    pub state: Readiness,
    /// Why not.
    pub reason: Option<String>,
    /// The content follows from edits in the records: nobody kept a copy.
    pub is_rebuilt: bool,
    /// What differs beside the content: permissions, or the target of a link.
    pub kind_change: Option<String>,
    pub(super) change: Option<PlannedChange>,
    pub(super) in_the_way: Option<InTheWay>,
}

/// What is needed to change a file.
#[derive(Debug, Clone)]
pub(super) struct PlannedChange {
    pub(super) path: ProjectPath,
    pub(super) found: Found,
    pub(super) wanted: FileVersion,
}

named_enum! {
    /// What happens to a file.
    Action {
        /// It gets another content, or other permissions.
        Restore = "restore",
        /// It comes back.
        Create = "create",
        /// It goes away.
        Delete = "delete",
        /// It is as it should be.
        None = "none",
    }
}

named_enum! {
    /// Whether a change is safe.
    Readiness {
        /// The file is what the session left.
        Ready = "ready",
        /// The file is something else than what the session left.
        Conflict = "conflict",
        /// Nobody knows what the session left, or what was there before.
        Unproven = "unproven",
        /// The path is none that undo touches.
        Refused = "refused",
        /// The copy is missing or damaged, or the file cannot be read.
        Failed = "failed",
    }
}

named_enum! {
    /// What to do with files that are not ready.
    Blocked {
        /// Apply nothing.
        Stop = "stop",
        /// Leave them as they are.
        Skip = "skip",
        /// Overwrite conflicts and what is unproven; apply nothing if others are left.
        Force = "force",
        /// Overwrite conflicts and what is unproven, and leave the others as they are.
        ForceOrSkip = "force-or-skip",
    }
}

impl Plan {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
            && self.files.iter().all(|file| file.action == Action::None && file.state == Readiness::Ready)
    }

    /// How many files would change.
    pub fn changes(&self, blocked: Blocked) -> usize {
        self.files.iter().filter(|file| file.change.is_some() && file.is_applied(blocked)).count()
    }

    /// Whether all of it can be applied.
    pub fn is_ready(&self, blocked: Blocked) -> bool {
        let is_skipping = matches!(blocked, Blocked::Skip | Blocked::ForceOrSkip);
        self.files.iter().all(|file| is_skipping || file.is_applied(blocked))
    }
}

impl PlannedFile {
    /// Whether it is changed, or is as it should be.
    pub(super) fn is_applied(&self, blocked: Blocked) -> bool {
        match self.state {
            Readiness::Ready => true,
            Readiness::Conflict | Readiness::Unproven => {
                matches!(blocked, Blocked::Force | Blocked::ForceOrSkip) && self.change.is_some()
            }
            Readiness::Refused | Readiness::Failed => false,
        }
    }

    fn blocked(path: &str, action: Action, state: Readiness, reason: impl Into<String>) -> PlannedFile {
        let file = PlannedFile::new(path, action);
        PlannedFile { state, reason: Some(reason.into()), ..file }
    }

    fn new(path: &str, action: Action) -> PlannedFile {
        PlannedFile {
            path: path.to_owned(),
            action,
            state: Readiness::Ready,
            reason: None,
            is_rebuilt: false,
            kind_change: None,
            change: None,
            in_the_way: None,
        }
    }
}

impl Undo<'_> {
    /// Plans a restore. Nothing to restore is an empty plan.
    pub fn plan(&self, goal: &Goal, scope: Scope) -> Result<Plan> {
        let mut plan = Plan {
            session: self.session.id(),
            target: None,
            target_text: String::new(),
            is_after: false,
            is_redo: *goal == Goal::Redo,
            files: Vec::new(),
            todos: None,
            head: None,
            takes_back: None,
            folders: Vec::new(),
            new_folders: Vec::new(),
        };
        let Some(target) = self.target(goal, scope)? else { return Ok(plan) };
        plan.target = target.record.map(|record| RecordId(record.id().into_owned()));
        if let Some(record) = target.record {
            plan.target_text = shorten(&text_of(&record.body()?), TARGET_CHARS);
        }
        plan.is_after = target.is_after;
        let moment = target.moment();
        let room;
        (plan.files, room) = self.files(&target, moment);
        (plan.folders, plan.new_folders) = self.folders(&target, moment, &plan.files, room);
        if let Some(event) = &target.takes_back {
            plan.takes_back = Some(event.name().to_owned());
        }
        // A redo puts the conversation back only if the restore had moved it.
        let moves = target.takes_back.as_ref().is_none_or(|event| event.restore.from.is_some());
        if scope == Scope::Conversation && moves {
            let link = target.head.and_then(|head| self.link_at(head));
            // A restore is no part of the conversation: behind it stands where the conversation is.
            let place = |at: Option<RecordRef<'_>>| {
                let mut above = std::iter::successors(at, |record| record.parent());
                above.find(|record| record.kind() != Kind::Restore).map(RecordRef::order)
            };
            let is_there = place(link) == place(self.session.head());
            plan.todos = self.todos_at(link)?;
            let head = link.map_or(Head::Start, |head| Head::Record(RecordId(head.id().into_owned())));
            plan.head = Some(head).filter(|_| !is_there);
        }
        Ok(plan)
    }

    /// The folders that go and those that come back: the first change of each since then decides, as it does for files. Those that
    /// are in the way of a file go, too.
    fn folders(
        &self,
        target: &Target<'_>,
        moment: Moment,
        files: &[PlannedFile],
        room: Vec<ProjectPath>,
    ) -> (Vec<ProjectPath>, Vec<ProjectPath>) {
        let is_since = |folder: &&FolderChange| match &target.takes_back {
            Some(event) => folder.record == event.id,
            None => folder.moment >= moment,
        };
        let mut first: BTreeMap<&ProjectPath, &FolderChange> = BTreeMap::new();
        for change in self.history.folders.iter().filter(is_since) {
            let known = first.entry(&change.path).or_insert(change);
            if change.moment < known.moment {
                *known = change;
            }
        }
        if first.is_empty() && room.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (made, removed): (Vec<_>, Vec<_>) = first.into_values().partition(|change| change.is_made);
        let mut gone: Vec<ProjectPath> = made.into_iter().map(|change| change.path.clone()).chain(room).collect();
        gone.retain(|path| matches!(self.tree.look(path), Ok(Found::Folder)));
        gone.sort_by(|one, other| other.cmp(one));
        gone.dedup();
        let goes = |file: &&PlannedFile| file.action == Action::Delete && file.state == Readiness::Ready;
        let leaving: HashSet<&str> = files.iter().filter(goes).map(|file| file.path.as_str()).collect();
        let comes = |file: &&PlannedFile| matches!(file.action, Action::Create | Action::Restore);
        let files: HashSet<&str> = files.iter().filter(comes).map(|file| file.path.as_str()).collect();
        let is_file = |path: &ProjectPath| {
            files.contains(path.as_str()) || path.folders().any(|folder| files.contains(folder.as_str()))
        };
        let back = removed.into_iter().map(|change| change.path.clone()).filter(|path| !is_file(path));
        let is_free =
            |path: &ProjectPath| leaving.contains(path.as_str()) || matches!(self.tree.look(path), Ok(Found::Nothing));
        (gone, back.filter(is_free).collect())
    }

    fn files(&self, target: &Target<'_>, moment: Moment) -> (Vec<PlannedFile>, Vec<ProjectPath>) {
        let changed: Vec<(&ProjectPath, &PathHistory)> = match &target.takes_back {
            Some(event) => self.history.paths.iter().filter(|(_, path)| path.is_changed_by(&event.id)).collect(),
            None => self.history.paths.iter().filter(|(_, path)| path.is_changed_since(moment)).collect(),
        };
        let planned = |files: &[(&ProjectPath, &PathHistory)]| -> Vec<PlannedFile> {
            let mut last = LastFolder::default();
            files.iter().map(|(path, history)| self.file(path, history, target, &mut last)).collect()
        };
        let mut files: Vec<PlannedFile> = changed.par_chunks(FILES_AT_ONCE).flat_map_iter(planned).collect();
        self.refuse_names_of_one_file(&mut files);
        self.check_folders(&mut files);
        let room = self.make_room(&mut files);
        // What lies outside is not touched; it matters only if it has changed since.
        let refused = self.history.refused.iter().filter(|(_, refused)| refused.history.is_changed_since(moment));
        files.extend(
            refused
                .filter(|_| target.takes_back.is_none())
                .map(|(path, refused)| PlannedFile::blocked(path, Action::Restore, Readiness::Refused, refused.why)),
        );
        (files, room)
    }

    /// Where `A` and `a` are one file, changing the one would change the other.
    fn refuse_names_of_one_file(&self, files: &mut [PlannedFile]) {
        // Nearly every plan has no two such names. Hashes tell that without a list for each name.
        let hashes: Vec<u64> = files.par_iter().map(|file| xxh3_64(file.path.to_lowercase().as_bytes())).collect();
        let mut known = HashSet::with_capacity(hashes.len());
        if hashes.into_iter().all(|hash| known.insert(hash)) {
            return;
        }
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, file) in files.iter().enumerate() {
            by_name.entry(file.path.to_lowercase()).or_default().push(at);
        }
        let identity = |at: usize| {
            let path = ProjectPath::parse(&files[at].path).ok()?;
            match self.tree.look(&path).ok()? {
                Found::File { stamp, .. } => Some(stamp.identity),
                _ => None,
            }
        };
        let is_one = |names: &Vec<usize>| {
            let mut known: Vec<_> = names.iter().filter_map(|at| identity(*at)).collect();
            known.sort_unstable();
            known.windows(2).any(|two| two[0] == two[1])
        };
        let refused: Vec<usize> =
            by_name.into_values().filter(|names| names.len() > 1 && is_one(names)).flatten().collect();
        for at in refused {
            let file = &mut files[at];
            (file.state, file.change) = (Readiness::Refused, None);
            file.reason = Some("its name and another one are one file on this disk".to_owned());
        }
    }

    fn file<'t>(
        &'t self,
        path: &'t ProjectPath,
        history: &PathHistory,
        target: &Target<'_>,
        last: &mut LastFolder<'t>,
    ) -> PlannedFile {
        // What a forced redo overwrote stood there before it.
        let redo = target.redone_by.as_ref().filter(|redo| history.is_other_at(redo, target.moment()));
        let moment = redo.map_or_else(|| target.moment(), |redo| redo.moment);
        let is_after = target.is_after && target.takes_back.is_none();
        let disk = OnDisk::look_from(last, &*self.tree, path);
        let judged = disk.and_then(|disk| self.judged(path, history, moment, is_after, disk));
        judged.unwrap_or_else(|error| {
            PlannedFile::blocked(path.as_str(), Action::Restore, Readiness::Failed, why_unreadable(&error))
        })
    }

    fn judged(
        &self,
        path: &ProjectPath,
        history: &PathHistory,
        moment: Moment,
        is_after: bool,
        mut disk: OnDisk<'_>,
    ) -> Result<PlannedFile> {
        let blocked = |action, state, why: &str| Ok(PlannedFile::blocked(path.as_str(), action, state, why));
        let in_the_way = InTheWay::of(&disk.found);
        if in_the_way.is_some() {
            // Whether it can go is known when every file of the plan is.
            disk.found = Found::Nothing;
        }
        let known = if is_after { history.left_at(moment) } else { history.before(moment) };
        if let Some(unknown) = history.failed_copy_at(moment).filter(|_| is_after) {
            return blocked(Action::Restore, readiness_of(unknown), unknown.why());
        }
        let is_proved = known.is_err() || history.is_proved_at(moment);
        let Rebuilt { version: wanted, leads_to_disk } = match self.wanted(known, history, moment, &disk) {
            Ok(wanted) => wanted,
            Err(unknown) => return blocked(Action::Restore, readiness_of(&unknown), unknown.why()),
        };
        let action = match (&disk.found, &wanted) {
            (Found::Nothing, FileVersion::Absent) => Action::None,
            (Found::Nothing, _) => Action::Create,
            (_, FileVersion::Absent) => Action::Delete,
            _ => Action::Restore,
        };
        if let Found::Other(why) = disk.found {
            return blocked(action, Readiness::Refused, why);
        }
        let new = PlannedFile::new(path.as_str(), action);
        let mut file = PlannedFile { is_rebuilt: wanted.is_rebuilt(), in_the_way, ..new };
        if let Some(in_the_way) = in_the_way
            && action == Action::None
            && !history.possibly_now().contains(&FileVersion::Absent)
        {
            // Somebody else put it there.
            return blocked(action, Readiness::Refused, in_the_way.reason());
        }
        if action == Action::None || disk.is(&wanted)? {
            file.action = Action::None;
            return Ok(file);
        }
        if matches!(wanted, FileVersion::File { content: FileContent::Hash { .. }, .. }) {
            return blocked(action, Readiness::Unproven, "only its hash was recorded");
        }
        // A copy that is missing or damaged is found out before anything is changed.
        if let Some(copy) = wanted.copy()
            && let Err(error) = copy.check()
        {
            return Ok(PlannedFile::blocked(path.as_str(), action, Readiness::Failed, why_unusable(&error)));
        }
        if is_masked(&wanted, &disk) {
            return blocked(action, Readiness::Failed, "it has a secret that is masked in the session");
        }
        // What cannot be read cannot be kept, whatever its permissions say about who changed it.
        disk.check_readable()?;
        (file.state, file.reason) = self.safety(history, moment, &disk, &wanted, leads_to_disk)?;
        if file.state == Readiness::Ready && !is_proved {
            let why = "nobody recorded what was there when the agent changed it next";
            (file.state, file.reason) = (Readiness::Unproven, Some(why.to_owned()));
        }
        file.kind_change = kind_change(&disk.version(), &wanted);
        file.change = Some(PlannedChange { path: path.clone(), found: disk.found.clone(), wanted });
        Ok(file)
    }

    /// Whether a file may be changed to what is wanted, and why not.
    fn safety(
        &self,
        history: &PathHistory,
        moment: Moment,
        disk: &OnDisk<'_>,
        wanted: &FileVersion,
        leads_to_disk: bool,
    ) -> Result<(Readiness, Option<String>)> {
        let expected = history.possibly_now();
        // A content that was taken back from the disk edit by edit leads there.
        let mut is_expected = leads_to_disk;
        for version in &expected {
            is_expected = is_expected || disk.is(version)?;
        }
        let has_special_bits = matches!(&disk.found, Found::File { mode: Some(mode), .. } if mode & 0o7000 != 0);
        let (state, why) = if !is_expected {
            match (expected.is_empty(), &disk.found) {
                (true, _) => match history.now() {
                    Err(unknown) if readiness_of(&unknown) != Readiness::Unproven => {
                        return Ok(state_and_reason(&unknown));
                    }
                    _ => (Readiness::Unproven, "what the session left was not recorded"),
                },
                (false, Found::Nothing) => (Readiness::Conflict, "it was deleted since"),
                (false, _) => (Readiness::Conflict, "it was changed since"),
            }
        } else if let Some(between) = history.changed_by_others_since(moment) {
            match between {
                Between::Somebody => {
                    (Readiness::Conflict, "somebody else changed it between two changes of the session")
                }
                Between::Unknown(unknown) => return Ok(state_and_reason(&unknown)),
            }
        } else if *wanted == FileVersion::Absent && history.has_text_only && !is_text(disk)? {
            (Readiness::Unproven, "the agent does not tell a new file from one that is not text")
        } else if has_special_bits {
            (Readiness::Conflict, "its set-user-id, set-group-id or sticky bit would be lost")
        } else {
            return Ok((Readiness::Ready, None));
        };
        Ok((state, Some(why.to_owned())))
    }

    /// What is known to have been there, else what follows from the edits since.
    fn wanted(
        &self,
        known: KnownVersion,
        history: &PathHistory,
        moment: Moment,
        disk: &OnDisk<'_>,
    ) -> std::result::Result<Rebuilt, Unknown> {
        let on_disk = || {
            let mut bytes = Vec::new();
            let is_small = matches!(&disk.found, Found::File { stamp, .. } if stamp.length <= REBUILD_LIMIT_BYTES);
            (is_small && disk.copy_to(&mut bytes).is_ok()).then_some(bytes)
        };
        match known {
            // Where an agent noted line feeds only, the disk has the line ends.
            Ok(version) if version.is_rebuilt() => {
                let has_returns = |bytes: &Vec<u8>| memmem::find(bytes, b"\r\n").is_some();
                let with_line_ends = on_disk().filter(has_returns);
                let with_line_ends = with_line_ends.and_then(|bytes| history.with_line_ends_of(moment, bytes));
                Ok(with_line_ends.unwrap_or(Rebuilt { version, leads_to_disk: false }))
            }
            Ok(version) => Ok(Rebuilt { version, leads_to_disk: false }),
            Err(unknown @ Unknown::Contradicted) => Err(unknown),
            Err(unknown) => history.before_edits(moment, on_disk).ok_or(unknown),
        }
    }

    /// The difference that a change makes, if both sides are short texts.
    pub fn diff(&self, file: &PlannedFile) -> Option<String> {
        let change = file.change.as_ref()?;
        let before = match &change.found {
            Found::File { stamp, .. } if stamp.length <= DIFF_LIMIT_BYTES as u64 => {
                let mut bytes = Vec::new();
                OnDisk::look(&*self.tree, &change.path).and_then(|disk| disk.copy_to(&mut bytes)).ok()?;
                Some(bytes)
            }
            Found::Nothing => None,
            _ => return None,
        };
        let after = match &change.wanted {
            FileVersion::Absent => None,
            wanted => Some(wanted.copy()?.read(DIFF_LIMIT_BYTES).ok()?.to_vec()),
        };
        let text = |side: Option<Vec<u8>>| side.map(String::from_utf8).transpose().ok();
        let (before, after) = (text(before)?, text(after)?);
        unified_diff(&file.path, before.as_deref(), after.as_deref())
    }
}

/// The state of a file of which a version is not known that is needed.
fn readiness_of(unknown: &Unknown) -> Readiness {
    match unknown {
        Unknown::NotKept(_) => Readiness::Unproven,
        Unknown::Failed(_) | Unknown::Contradicted => Readiness::Failed,
        Unknown::Outside => Readiness::Refused,
    }
}

fn state_and_reason(unknown: &Unknown) -> (Readiness, Option<String>) {
    (readiness_of(unknown), Some(unknown.why().to_owned()))
}

/// Why a file of the project cannot be judged, in the words of its row: that has the path.
fn why_unreadable(error: &Error) -> String {
    match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => "the file is gone".to_owned(),
        Error::Io { source, .. } => format!("it cannot be read: {}", in_words(source)),
        error => error.to_string(),
    }
}

/// Whether a content that only the records tell of has placeholders for secrets. Those that are on disk are the file's own.
fn is_masked(wanted: &FileVersion, disk: &OnDisk<'_>) -> bool {
    let text = wanted.copy().and_then(FileCopy::unproven_bytes).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let mut placeholders = text.map(redact::placeholders).into_iter().flatten().peekable();
    if placeholders.peek().is_none() {
        return false;
    }
    let mut on_disk = Vec::new();
    let is_read = matches!(disk.found, Found::File { .. }) && disk.copy_to(&mut on_disk).is_ok();
    !is_read || placeholders.any(|placeholder| memmem::find(&on_disk, placeholder.as_bytes()).is_none())
}

fn is_text(disk: &OnDisk<'_>) -> Result<bool> {
    match &disk.found {
        Found::File { stamp, .. } if stamp.length > REBUILD_LIMIT_BYTES => return Ok(false),
        Found::File { .. } => {}
        _ => return Ok(true),
    }
    let mut bytes = Vec::new();
    disk.copy_to(&mut bytes)?;
    Ok(std::str::from_utf8(&bytes).is_ok())
}
