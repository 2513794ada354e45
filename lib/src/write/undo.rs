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
pub(crate) mod pending;
mod plan;
mod record;
mod room;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hashbrown::{HashMap, HashSet};

use crate::disk::worktree::{RealTree, Worktree};
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::record::{Kind, RecordId, Restore, RestoredFile, Todo};
use crate::session::blob;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::view::files::{FileHistory, Moment, PathHistory, RestoreEvent};
use crate::view::history::todos_and_thinking;
use crate::view::turns::Turns;
use crate::write::trash::is_session_in_use;
pub use apply::{Applied, Recovered};
pub use plan::{Action, Blocked, Head as UndoHead, Plan, PlannedFile, Readiness};

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
    tree: Arc<dyn Worktree>,
    /// The root of the project on this machine.
    root: PathBuf,
    history: Arc<FileHistory>,
    /// Our own store: of the session, or of the user for another agent's session.
    store: PathBuf,
    blob_folder: PathBuf,
}

/// What a session did to files, restores included. `data` is our own folder; `root` is where the project is now, if it has moved.
pub fn file_history(session: &Session, data: Option<&Path>, root: Option<&Path>) -> Result<FileHistory> {
    let store = journal::store_of(session, data);
    let journal = store.as_ref().map(|store| journal::read(session, store)).transpose()?.unwrap_or_default();
    let history = FileHistory::read(session, store.as_deref(), root, &journal.entries)?;
    Ok(FileHistory { damaged: journal.damaged, ..history })
}

/// What our own journal of restores is like: while a session and this are the same, so is its [`file_history`].
pub fn restores_stamp(session: &Session, data: Option<&Path>) -> Option<(u64, SystemTime)> {
    let journal = std::fs::metadata(journal::path_of(session, &journal::store_of(session, data)?)).ok()?;
    Some((journal.len(), journal.modified().ok()?))
}

/// Where the project is, without links.
fn settled(root: PathBuf) -> Result<PathBuf> {
    match root.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::NoProject(root)),
        found => found.at(&root),
    }
}

/// Whether a restore of files in a session's project was interrupted. See [`Undo::recover`]. `root` is where the project is now, if it
/// has moved. What the session did to files is not read.
pub fn is_undo_interrupted(session: &Session, data: Option<&Path>, root: Option<&Path>) -> bool {
    let root = root.map(Path::to_path_buf).or_else(|| FileHistory::root_of(session));
    match (journal::store_of(session, data), root) {
        (Some(store), Some(root)) => pending::Notes::of(&store, data, &root).are_there(),
        _ => false,
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
    /// The redo that has just brought the turn back: what it overwrote of somebody else comes back.
    redone_by: Option<RestoreEvent>,
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
        let root = settled(root)?;
        let tree = Arc::new(RealTree::open(&root)?);
        Undo::on(session, host, Arc::new(Real), tree, root)
    }

    /// The same for a history that [`file_history`] has read.
    pub fn with_history(session: &'s Session, host: Host, history: Arc<FileHistory>) -> Result<Undo<'s>> {
        let store = journal::store_of(session, host.data.as_deref()).ok_or(Error::NoDataFolder)?;
        let root = FileHistory::root_of(session).ok_or_else(|| Error::InvalidRoot(PathBuf::new()))?;
        let root = settled(root)?;
        let tree = Arc::new(RealTree::open(&root)?);
        let (source, blob_folder) = (session.source.clone(), blob::folder(&store));
        Ok(Undo { session, source, host, disk: Arc::new(Real), tree, root, history, store, blob_folder })
    }

    pub(crate) fn on(
        session: &'s Session,
        host: Host,
        disk: Arc<dyn Disk>,
        tree: Arc<dyn Worktree>,
        root: PathBuf,
    ) -> Result<Undo<'s>> {
        let source = session.source.clone();
        let store = journal::store_of(session, host.data.as_deref()).ok_or(Error::NoDataFolder)?;
        let history = Arc::new(file_history(session, Some(&store), Some(&root))?);
        let blob_folder = blob::folder(&store);
        Ok(Undo { session, source, host, disk, tree, root, history, store, blob_folder })
    }

    /// The same project, with what another store keeps.
    fn in_store(&self, store: &Path) -> Undo<'s> {
        Undo {
            session: self.session,
            source: self.source.clone(),
            host: self.host.clone(),
            disk: self.disk.clone(),
            tree: self.tree.clone(),
            root: self.root.clone(),
            history: self.history.clone(),
            store: store.to_path_buf(),
            blob_folder: blob::folder(store),
        }
    }

    /// Whether another program may be writing to the session: its next change would not be in the plan.
    pub fn is_in_use(&self) -> bool {
        is_session_in_use(self.session, (self.host.now)())
    }

    /// The files that the newest restore left out because they were not ready.
    pub fn left_out(&self) -> Vec<String> {
        let files = self.newest_restore().map(|event| RestoredFile::read_all(&event.restore.files)).unwrap_or_default();
        let is_left_out = |file: &RestoredFile| file.state.as_deref().is_some_and(|state| state != "ready");
        let is_unchanged = |file: &RestoredFile| file.action == Action::None.name();
        files
            .into_iter()
            .filter(|file| is_left_out(file) && is_unchanged(file))
            .map(|file| file.path)
            .collect()
    }

    /// The newest restore: its record, or its line in our journal, and what it says.
    pub fn last_restore(&self) -> Option<(&RecordId, &Restore)> {
        self.history.restores.last().map(|event| (&event.id, &event.restore))
    }

    /// Where another agent's conversation was to go back to, if a restore was interrupted after the files.
    pub fn unmoved_conversation(&self) -> Option<RecordId> {
        let event = self.history.restores.last().filter(|_| !self.is_noted_in_session())?;
        let last = self.session.records().next_back()?;
        let is_last = event.last_record.as_ref().is_some_and(|record| record.as_str() == last.id());
        let is_there = self
            .session
            .head()
            .is_some_and(|head| event.restore.from.as_ref().is_some_and(|from| from.as_str() == head.id()));
        if !is_last || !is_there {
            return None;
        }
        let target = event.restore.target.as_ref().and_then(|id| self.session.record(id))?;
        let head = match (&event.restore.takes_back, event.restore.after_target) {
            (Some(operation), _) => {
                let undone = self.history.restores.iter().find(|event| event.name() == operation)?;
                self.session.record(undone.restore.from.as_ref()?)?
            }
            (None, true) => target,
            (None, false) => target.parent()?,
        };
        self.link_at(head).map(|head| RecordId(head.id().into_owned()))
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
        Ok(self.changing_turns()?.first().map(|prompt| RecordId(prompt.id().into_owned())))
    }

    /// The first record of the turn that [`Goal::LastTurn`] takes back.
    pub fn next_turn(&self, scope: Scope) -> Result<Option<RecordId>> {
        Ok(self.last_turn(scope)?.map(|prompt| RecordId(prompt.id().into_owned())))
    }

    /// The first records of the turns that changed files and are not undone, the newest first.
    fn changing_turns(&self) -> Result<Vec<RecordRef<'s>>> {
        let changes = self.history.paths.values().flat_map(PathHistory::changed_by_session);
        let changed: BTreeSet<usize> = changes.map(|(place, _)| place).collect();
        let (undone, mut end) = (self.undone()?, usize::MAX);
        // Files have one timeline: a turn of another branch may have changed them, too.
        let mut turns = self.prompts_of(|_, _| true)?;
        turns.retain(|prompt| {
            let turn = prompt.order()..std::mem::replace(&mut end, prompt.order());
            changed.range(turn).next().is_some() && !undone.has_files_of(*prompt)
        });
        Ok(turns)
    }

    /// The first record of the turn that is undone next.
    fn last_turn(&self, scope: Scope) -> Result<Option<RecordRef<'s>>> {
        let (prompts, undone) = (self.prompts()?, self.undone()?);
        let is_undone = |prompt| match scope {
            Scope::Conversation => undone.has_conversation_of(prompt),
            Scope::FilesOnly => undone.has_files_of(prompt),
        };
        let last = prompts.iter().copied().find(|prompt| !is_undone(*prompt));
        let is_first_undo = prompts.first().map(|prompt| prompt.order()) == last.map(RecordRef::order);
        if scope == Scope::Conversation || is_first_undo {
            return Ok(last);
        }
        // Only files go back: a turn that changed none would be the next one again and again.
        let changing: HashSet<usize> = self.changing_turns()?.into_iter().map(RecordRef::order).collect();
        Ok(prompts.into_iter().find(|prompt| changing.contains(&prompt.order())).or(last))
    }

    fn target(&self, goal: &Goal, scope: Scope) -> Result<Option<Target<'s>>> {
        let before = |record: RecordRef<'s>| Target {
            record: Some(record),
            is_after: false,
            takes_back: None,
            redone_by: None,
            head: record.parent(),
        };
        Ok(match goal {
            Goal::Before(id) => Some(before(self.history.standing(self.session.find(id)?))),
            Goal::After(id) => {
                let record = self.history.standing(self.session.find(id)?);
                let (takes_back, redone_by) = (None, None);
                Some(Target { record: Some(record), is_after: true, takes_back, redone_by, head: Some(record) })
            }
            // What is undone already is not undone again.
            Goal::LastTurn => self
                .last_turn(scope)?
                .map(|prompt| Target { redone_by: self.redo_of(prompt).cloned(), ..before(prompt) }),
            Goal::Redo => self.newest_restore().map(|event| Target {
                record: event.restore.target.as_ref().and_then(|id| self.session.record(id)),
                is_after: event.restore.after_target,
                takes_back: Some(event.clone()),
                redone_by: None,
                head: event.restore.from.as_ref().and_then(|id| self.session.record(id)),
            }),
        })
    }

    /// What is undone now: the moment that files went back to, and the restore that did it. The newest restore decides, and what
    /// was before its target is as it was there: the newest restore before that decides, and so on.
    fn undone(&self) -> Result<Undone<'_>> {
        let restores = &self.history.restores;
        let moments: HashMap<&str, Moment> = restores.iter().map(|event| (event.name(), event.moment)).collect();
        let (mut undone, mut until) = (Undone::default(), None);
        for event in restores.iter().rev() {
            if until.is_some_and(|until| event.moment >= until) {
                continue;
            }
            if let Some(operation) = event.restore.takes_back.as_deref() {
                until = moments.get(operation).copied().or(until);
                continue;
            }
            let Some(target) = event.restore.target.as_ref().and_then(|id| self.session.record(id)) else {
                continue;
            };
            let target = self.history.standing(target);
            let target = if event.restore.after_target { Moment::after(target) } else { Moment::before(target) };
            undone.restores.insert(target, event);
            until = Some(target);
        }
        if !undone.restores.is_empty() {
            undone.prompts = self.prompts_of(|_, _| true)?.into_iter().map(RecordRef::order).collect();
            for (place, record) in self.history.paths.values().flat_map(PathHistory::changed_by_session) {
                let told_at = self.session.record(record).map_or(place, RecordRef::order);
                let newest = undone.changes.entry(place).or_default();
                *newest = told_at.max(*newest);
            }
        }
        Ok(undone)
    }

    /// The prompts of the branch that the conversation is on, the newest first.
    fn prompts(&self) -> Result<Vec<RecordRef<'s>>> {
        self.prompts_of(Turns::is_on_branch)
    }

    /// The prompts of these turns, the newest first.
    fn prompts_of(&self, is_wanted: impl Fn(&Turns<'s>, usize) -> bool) -> Result<Vec<RecordRef<'s>>> {
        let turns = self.session.turns()?;
        let wanted = (0..turns.len()).filter(|turn| is_wanted(&turns, *turn));
        let prompts: Result<Vec<_>> = wanted.filter_map(|turn| turns.prompt(turn).transpose()).collect();
        let mut prompts = prompts?;
        prompts.sort_by_key(|prompt| std::cmp::Reverse(prompt.order()));
        Ok(prompts)
    }

    /// The newest restore that was not taken back, unless a later change has overtaken it.
    fn newest_restore(&self) -> Option<&RestoreEvent> {
        let taken_back: HashSet<&str> =
            self.history.restores.iter().filter_map(|event| event.restore.takes_back.as_deref()).collect();
        let is_active =
            |event: &&RestoreEvent| event.restore.takes_back.is_none() && !taken_back.contains(event.name());
        self.history.restores.iter().rev().find(is_active).filter(|event| !self.is_overtaken(event))
    }

    /// The newest redo that took back an undo of this turn, if the agent has not changed files since.
    fn redo_of(&self, prompt: RecordRef<'_>) -> Option<&RestoreEvent> {
        let restores = &self.history.restores;
        let is_of_prompt = |event: &&RestoreEvent| {
            let target = event.restore.target.as_ref().map(RecordId::as_str);
            target == Some(&*prompt.id()) && !event.restore.after_target && event.restore.takes_back.is_none()
        };
        let undos: HashSet<&str> = restores.iter().filter(is_of_prompt).map(RestoreEvent::name).collect();
        let takes_back =
            |event: &&RestoreEvent| event.restore.takes_back.as_deref().is_some_and(|undo| undos.contains(undo));
        restores.iter().rev().find(takes_back).filter(|redo| !self.is_overtaken(redo))
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

/// What is undone now.
#[derive(Default)]
struct Undone<'u> {
    /// What restored files, by the moment that they went back to.
    restores: BTreeMap<Moment, &'u RestoreEvent>,
    /// The places of all prompts.
    prompts: BTreeSet<usize>,
    /// The places at which the agent changed files, each with that of the newest record that tells of it.
    changes: BTreeMap<usize, usize>,
}

impl Undone<'_> {
    /// Whether the changes of a turn are undone: all of them, if it went on after the restore.
    fn has_files_of(&self, prompt: RecordRef<'_>) -> bool {
        let end = self.prompts.range(prompt.order() + 1..).next().copied().unwrap_or(usize::MAX);
        let went_on =
            |restored_at: usize| self.changes.range(prompt.order()..end).any(|(_, told_at)| *told_at > restored_at);
        self.restore_of(prompt).is_some_and(|event| !went_on(event.moment.order()))
    }

    /// Whether a turn of the branch that the conversation is on is undone. If the restore had taken the conversation back, it went
    /// on there since.
    fn has_conversation_of(&self, prompt: RecordRef<'_>) -> bool {
        self.has_files_of(prompt) && self.restore_of(prompt).is_some_and(|event| event.restore.from.is_none())
    }

    /// The restore that took back a turn as far as it was then.
    fn restore_of(&self, prompt: RecordRef<'_>) -> Option<&RestoreEvent> {
        let prompt = Moment::before(prompt);
        let (_, event) = self.restores.range(..=prompt).next_back()?;
        Some(*event).filter(|event| prompt <= event.moment)
    }
}
