//! Restores the files of a session to what they were at a message, and takes that back.
//!
//! ```text
//! Undo::open ──▶ plan: what would change, and what speaks against it ──▶ apply ──▶ a restore record
//!                 plan.rs                                                apply.rs    record.rs, journal.rs
//! ```
//!
//! Nothing is applied unless every file on disk is what the session left there. What is overwritten is kept as a blob, so that a
//! restore can be taken back. An operation is noted before it begins (`pending.rs`): after a crash the next one finishes it.

mod apply;
mod journal;
mod on_disk;
mod pending;
mod plan;
mod record;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::worktree::{RealTree, Worktree};
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::record::{Kind, RecordId, Todo};
use crate::session::blob;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::view::files::{FileHistory, Moment, RestoreEvent};
use crate::view::history::todos_and_thinking;
use crate::view::turns::TurnKind;
pub use apply::{Applied, Recovered};
pub use plan::{Action, Blocked, Head as UndoHead, Plan, PlannedFile, Readiness, unified_diff};

/// Restores the files of one session.
///
/// ```
/// use scrollback::{Host, ReadOptions, Session, Store};
/// use scrollback::write::{Goal, Scope, Undo};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (root, project) = (folder.path().join("store"), folder.path().join("project"));
/// # std::fs::create_dir(&project)?;
/// let store = Store::native(&root)?;
/// let mut session = store.create(&project)?;
/// session.user("Write a note.")?;
/// session.assistant("Done.")?;
/// session.close()?;
///
/// let read = store.load(session.session().ok_or("it is recorded")?.as_str())?;
/// let undo = Undo::open(&read, Host::at(project.clone(), "my-agent 0.3.1"), None)?;
/// let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly)?;
/// assert!(plan.is_empty()); // no file was changed
/// # Ok(())
/// # }
/// ```
pub struct Undo<'s> {
    session: &'s Session,
    source: Source,
    host: Host,
    disk: Arc<dyn Disk>,
    tree: Box<dyn Worktree>,
    /// The root of the project on this machine.
    root: PathBuf,
    history: FileHistory,
    /// Our own store: of the session, or of the user for another agent's session.
    store: PathBuf,
    blob_folder: PathBuf,
}

/// What a session did to files, restores included. `data` is our own folder; `root` is where the project is now, if it has moved.
pub fn file_history(session: &Session, data: Option<&Path>, root: Option<&Path>) -> Result<FileHistory> {
    let store = journal::store_of(session, data);
    let restores = store.as_ref().map(|store| journal::read(session, store)).transpose()?;
    FileHistory::read(session, store.as_deref(), root, &restores.unwrap_or_default())
}

/// Whether a restore of files in a session's project was interrupted. See [`Undo::recover`].
pub fn is_undo_interrupted(session: &Session, data: Option<&Path>) -> Result<bool> {
    match (journal::store_of(session, data), FileHistory::root_of(session)) {
        (Some(store), Some(root)) => Ok(pending::read(&pending::path_for(&store, &root))?.is_some()),
        _ => Ok(false),
    }
}

/// What files are restored to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// Before the last turn that is not undone yet.
    LastTurn,
    /// Before this record.
    Before(String),
    /// After this record.
    After(String),
    /// Before the newest restore.
    Redo,
}

/// What is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Files. The conversation stays where it is.
    FilesOnly,
    /// Files, and the conversation continues from there.
    Conversation,
}

/// Where a goal is in the timeline.
struct Target<'s> {
    /// The record before or after which files are restored; none for a redo of something that is gone.
    record: Option<RecordRef<'s>>,
    is_after: bool,
    /// The restore that is taken back.
    takes_back: Option<RestoreEvent>,
    /// The record that the conversation continues from; `None` is the start.
    head: Option<RecordRef<'s>>,
}

impl Target<'_> {
    /// The moment whose files are wanted.
    fn moment(&self) -> Moment {
        match (self.record, self.is_after, &self.takes_back) {
            (_, _, Some(event)) => event.moment,
            (Some(record), false, None) => Moment::before(record),
            (Some(record), true, None) => Moment::after(record),
            (None, _, None) => Moment::start(),
        }
    }
}

impl<'s> Undo<'s> {
    /// Reads what a session did to files. `host` has our data folder, which is needed for sessions of other agents; `root` is where the
    /// project is now, if it has moved.
    pub fn open(session: &'s Session, host: Host, root: Option<&Path>) -> Result<Undo<'s>> {
        journal::store_of(session, host.data.as_deref()).ok_or(Error::NoDataFolder)?;
        let recorded = FileHistory::root_of(session);
        let root = root.map(Path::to_path_buf).or(recorded).ok_or_else(|| Error::InvalidRoot(PathBuf::new()))?;
        let root = root.canonicalize().at(&root)?;
        let tree = Box::new(RealTree::open(&root)?);
        Undo::on(session, host, Arc::new(Real), tree, root)
    }

    pub(crate) fn on(
        session: &'s Session,
        host: Host,
        disk: Arc<dyn Disk>,
        tree: Box<dyn Worktree>,
        root: PathBuf,
    ) -> Result<Undo<'s>> {
        let source = session.source.clone();
        let store = journal::store_of(session, host.data.as_deref()).ok_or(Error::NoDataFolder)?;
        let history = file_history(session, Some(&store), Some(&root))?;
        let blob_folder = blob::folder(&store);
        Ok(Undo { session, source, host, disk, tree, root, history, store, blob_folder })
    }

    /// What the session did to files.
    pub fn history(&self) -> &FileHistory {
        &self.history
    }

    /// The session.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Whether restores are noted in the session itself; else in our own journal.
    pub fn is_noted_in_session(&self) -> bool {
        journal::is_ours(self.session)
    }

    /// The newest turn that changed files and is not undone, by its first record.
    pub fn last_change(&self) -> Result<Option<RecordId>> {
        let mut end = usize::MAX;
        for prompt in self.prompts()? {
            let turn = prompt.order()..std::mem::replace(&mut end, prompt.order());
            let is_changed = || self.history.paths.values().any(|path| path.is_changed_by_session_in(&turn));
            if !self.is_undone(prompt) && is_changed() {
                return Ok(Some(RecordId(prompt.id().into_owned())));
            }
        }
        Ok(None)
    }

    fn target(&self, goal: &Goal) -> Result<Option<Target<'s>>> {
        let before = |record: RecordRef<'s>| Target {
            record: Some(record),
            is_after: false,
            takes_back: None,
            head: record.parent(),
        };
        Ok(match goal {
            Goal::Before(id) => Some(before(self.session.find(id)?)),
            Goal::After(id) => {
                let record = self.session.find(id)?;
                Some(Target { record: Some(record), is_after: true, takes_back: None, head: Some(record) })
            }
            // What is undone already is not undone again.
            Goal::LastTurn => self.prompts()?.into_iter().find(|prompt| !self.is_undone(*prompt)).map(before),
            Goal::Redo => self.newest_restore().map(|event| Target {
                record: event.restore.target.as_ref().and_then(|id| self.session.record(id)),
                is_after: event.restore.after_target,
                takes_back: Some(event.clone()),
                head: event.restore.from.as_ref().and_then(|id| self.session.record(id)),
            }),
        })
    }

    /// Whether the changes of a turn are undone now. The newest restore decides, unless the turn was before its target: then the
    /// files are what they were at the target, where the newest restore before that decides.
    fn is_undone(&self, prompt: RecordRef<'_>) -> bool {
        let prompt = Moment::before(prompt);
        let mut events = self.history.restores.iter().rev();
        let mut until = None;
        while let Some(event) = events.find(|event| until.is_none_or(|until| event.moment < until)) {
            if event.moment < prompt {
                return false;
            }
            let is_taken_back = |known: &&RestoreEvent| Some(known.name()) == event.restore.takes_back.as_deref();
            if event.restore.takes_back.is_some() {
                until = self.history.restores.iter().find(is_taken_back).map(|known| known.moment).or(until);
                continue;
            }
            let Some(target) = event.restore.target.as_ref().and_then(|id| self.session.record(id)) else {
                continue;
            };
            let target = if event.restore.after_target { Moment::after(target) } else { Moment::before(target) };
            if target <= prompt {
                return true;
            }
            until = Some(target);
        }
        false
    }

    /// The prompts of the branch that the conversation is on, the newest first.
    fn prompts(&self) -> Result<Vec<RecordRef<'s>>> {
        let turns = self.session.turns()?;
        let mut prompts = Vec::new();
        for turn in (0..turns.len()).rev().filter(|turn| turns.is_on_branch(*turn)) {
            let row = turns.row(turn)?;
            if matches!(row.kind, TurnKind::Prompt | TurnKind::Notification) {
                prompts.push(self.session.find(row.first.as_str())?);
            }
        }
        prompts.sort_by_key(|prompt| std::cmp::Reverse(prompt.order()));
        Ok(prompts)
    }

    /// The newest restore that was not taken back, unless a later change has overtaken it.
    fn newest_restore(&self) -> Option<&RestoreEvent> {
        let mut active: Vec<&RestoreEvent> = Vec::new();
        for event in &self.history.restores {
            match &event.restore.takes_back {
                Some(operation) => active.retain(|known| known.name() != operation),
                None => active.push(event),
            }
        }
        active.pop().filter(|event| !self.is_overtaken(event))
    }

    /// Whether the agent changed files after a restore: taking that back would destroy the change.
    fn is_overtaken(&self, event: &RestoreEvent) -> bool {
        self.history.paths.values().any(|path| path.is_changed_by_session_since(event.moment))
    }

    /// The task list at a record.
    fn todos_at(&self, record: Option<RecordRef<'_>>) -> Result<Option<Vec<Todo>>> {
        record.map_or(Ok(None), |record| Ok(todos_and_thinking(&self.session.branch(record))?.0))
    }

    /// The record that a session of this kind can continue from: its nearest link.
    fn link_at(&self, record: RecordRef<'s>) -> Option<RecordRef<'s>> {
        std::iter::successors(Some(record), |record| record.parent())
            .find(|record| !record.is_side() && record.kind() != Kind::Header)
    }
}
