//! Applies a plan, all or nothing.
//!
//! ```text
//! keep      what is overwritten, and what replaces it, are blobs
//! note      the operation is written down (`pending.rs`)
//! stage     every new content is a file beside its place: a full disk stops here, and nothing has changed
//! swap      each file is looked at once more, then renamed or deleted; a failure takes back those before it
//! record    the restore is a record of the session, or a line of our journal; then the note goes
//! ```

use std::io::{self, Read};
use std::path::Path;

use hashbrown::HashSet;

use super::on_disk::OnDisk;
use super::pending::{Notes, Pending};
use super::plan::{Action, Blocked, Head, Plan, PlannedChange, PlannedFile, Readiness};
use super::record::record_in;
use super::room::Leaving;
use super::{Goal, Undo, journal};
use crate::disk::worktree::Found;
use crate::model::error::{At, Error, Result};
use crate::model::project_path::ProjectPath;
use crate::model::record::{RecordId, Restore, RestoredFile, RestoredVersion};
use crate::session::backups::FileCopy;
use crate::view::files::{FileContent, FileVersion, JournalEntry};
use crate::write::blobs::{Blobs, CopyError};
use crate::write::recorder::{Recorder, Warning};

/// A plan that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The restore record, or its line in our journal.
    pub restore: RecordId,
    /// How many files changed.
    pub files: usize,
    /// What was odd about the session's file when the restore was noted in it.
    pub warnings: Vec<Warning>,
}

/// What became of an operation that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// It is done now.
    Finished,
    /// Everything is as it was before it.
    RolledBack,
}

/// One file while it is changed.
struct Swap {
    path: ProjectPath,
    before: RestoredVersion,
    after: RestoredVersion,
    /// The file as it was looked at last; not yet after a crash.
    found: Option<Found>,
}

impl Undo<'_> {
    /// Whether an operation on the same project was interrupted: the next one finishes it or takes it back.
    pub fn is_interrupted(&self) -> Result<bool> {
        Ok(self.notes().read()?.is_some())
    }

    /// Whether an operation that was interrupted is asked for again: it is of this session and of the same kind, and no record is
    /// named. When it is finished, the goal would mean the next one.
    pub fn is_interrupted_at(&self, goal: &Goal) -> Result<bool> {
        let Some(pending) = self.notes().read()? else { return Ok(false) };
        let is_redo = pending.restore.get("takesBack").is_some();
        let is_kind = match goal {
            Goal::LastTurn => !is_redo,
            Goal::Redo => is_redo,
            Goal::Before(_) | Goal::After(_) => false,
        };
        Ok(is_kind && pending.log == self.source.path)
    }

    /// Finishes an operation that was interrupted, or takes it back if a file has changed since. Read the session again after it.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        let Some(pending) = self.notes().read()? else { return Ok(None) };
        // Its blobs and its journal are in the store of its own session.
        match pending.store.as_ref().filter(|store| **store != self.store) {
            Some(store) => self.in_store(store).recover_own(),
            None => self.recover_own(),
        }
    }

    fn notes(&self) -> Notes {
        Notes::of(&self.store, self.host.data.as_deref(), &self.root)
    }

    fn recover_own(&self) -> Result<Option<Recovered>> {
        let notes = self.notes();
        let _lock = notes.lock(&*self.disk)?;
        let Some(pending) = notes.read()? else { return Ok(None) };
        let mut swaps = self.swaps_of(&pending)?;
        self.unstage(&swaps, &pending);
        let finished = match self.is_recorded(&pending) {
            // It is recorded after everything else: what has changed since, has changed after it.
            Ok(true) => Ok(()),
            Ok(false) => self.change(&mut swaps, &pending),
            // The session is gone: nothing could say later what was done.
            Err(Error::Io { source, path }) if source.kind() == io::ErrorKind::NotFound => Err(Error::Changed(path)),
            Err(error) => Err(error),
        };
        let recovered = match finished {
            Ok(()) => {
                self.record_again(&pending)?;
                self.remove_empty_folders(&pending);
                Recovered::Finished
            }
            // Another program changed a file: what we did goes back, what it did stays.
            Err(error) if is_changed(&error) => {
                self.take_back(&swaps, &pending)?;
                Recovered::RolledBack
            }
            Err(error) => return Err(error),
        };
        notes.remove(&*self.disk)?;
        Ok(Some(recovered))
    }

    /// Applies a plan, and notes it in the session, or in our journal.
    pub fn apply(&self, plan: &Plan, blocked: Blocked) -> Result<Applied> {
        self.apply_by(plan, blocked, None)
    }

    /// The same, for an agent that records the session: its recorder notes it.
    pub fn apply_with(&self, plan: &Plan, blocked: Blocked, recorder: &mut Recorder) -> Result<Applied> {
        self.apply_by(plan, blocked, Some(recorder))
    }

    fn apply_by(&self, plan: &Plan, blocked: Blocked, recorder: Option<&mut Recorder>) -> Result<Applied> {
        if !plan.is_ready(blocked) || (plan.changes(blocked) == 0 && plan.head.is_none()) {
            return Err(Error::NotReady);
        }
        let notes = self.notes();
        let _lock = notes.lock(&*self.disk)?;
        if notes.read()?.is_some() {
            return Err(Error::Interrupted(notes.own().to_path_buf()));
        }
        let operation = (self.host.new_id)();
        let leaving = Leaving::of_plan(plan, blocked);
        let changes = plan.files.iter().filter(|file| file.is_applied(blocked)).filter_map(|file| file.change.as_ref());
        let mut swaps = changes.map(|change| self.keep(change, &leaving)).collect::<Result<Vec<Swap>>>()?;
        let pending = self.pending(plan, blocked, &swaps, operation);
        let begun = notes.write(&*self.disk, &pending);
        if let Err(error) = begun.and_then(|()| self.change(&mut swaps, &pending)) {
            self.cancel(&swaps, &pending, &notes)?;
            return Err(error);
        }
        let recorded = match recorder {
            Some(recorder) => record_in(recorder, &pending).map(|restore| (restore, Vec::new())),
            None => self.record(&pending),
        };
        let (restore, warnings) = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                // What is recorded stays, and the next operation makes it safe.
                if !self.is_recorded(&pending)? {
                    self.cancel(&swaps, &pending, &notes)?;
                }
                return Err(error);
            }
        };
        self.remove_empty_folders(&pending);
        // If it stays, the next operation finds that all is done.
        drop(notes.remove(&*self.disk));
        Ok(Applied { restore, files: swaps.len(), warnings })
    }

    fn pending(&self, plan: &Plan, blocked: Blocked, swaps: &[Swap], operation: String) -> Pending {
        let mut kept = swaps.iter();
        let is_recorded = |file: &&PlannedFile| file.change.is_some() || file.state != Readiness::Ready;
        let files = plan.files.iter().filter(is_recorded).map(|file| {
            let swap = file.change.as_ref().filter(|_| file.is_applied(blocked)).and_then(|_| kept.next());
            RestoredFile {
                path: file.path.clone(),
                // What was left out did not happen.
                action: swap.map_or(Action::None, |_| file.action).name().to_owned(),
                state: Some(file.state.name().to_owned()),
                versions: swap.map(|swap| (swap.before.clone(), swap.after.clone())),
            }
        });
        let from = plan.head.as_ref().and_then(|_| self.session.head()).map(|head| RecordId(head.id().into_owned()));
        let folders = self.missing_folders(swaps, &plan.new_folders, &Leaving::of_plan(plan, blocked));
        let empty_folders: Vec<String> = plan.folders.iter().map(ToString::to_string).collect();
        let restore = Restore {
            folders: folders.clone(),
            removed_folders: empty_folders.clone(),
            target: plan.target.clone(),
            after_target: plan.is_after,
            from,
            files: files.map(|file| file.to_json()).collect(),
            todos: plan.todos.clone(),
            operation: Some(operation.clone()),
            takes_back: plan.takes_back.clone(),
        };
        let head = self.session.records().next_back().map(|record| RecordId(record.id().into_owned()));
        let entry = JournalEntry { id: RecordId(operation.clone()), head, at: Some((self.host.now)()), restore };
        Pending {
            operation,
            root: self.root.clone(),
            store: Some(self.store.clone()),
            dialect: self.source.dialect.name().to_owned(),
            log: self.source.path.clone(),
            restore: journal::line(&entry),
            head: plan.head.as_ref().and_then(|head| match head {
                Head::Start => None,
                Head::Record(record) => Some(record.to_string()),
            }),
            moves_conversation: plan.head.is_some(),
            folders,
            empty_folders,
        }
    }

    /// Makes a blob of what is overwritten and of what replaces it.
    fn keep(&self, change: &PlannedChange, leaving: &Leaving) -> Result<Swap> {
        let PlannedChange { path, found, wanted } = change;
        let disk = self.look(path, leaving)?;
        if disk.found != *found {
            return Err(Error::Changed(self.tree.name(path)));
        }
        let before = match found {
            Found::Nothing => RestoredVersion::default(),
            Found::Link(target) => RestoredVersion { link: Some(target.clone()), ..RestoredVersion::default() },
            Found::File { mode, stamp } => {
                let place = self.tree.name(path);
                let mut content = self.tree.open(path).at(&place)?.take(stamp.length);
                let stored = self.blobs().put_reader(&place, &mut content).map_err(CopyError::into_error)?;
                if OnDisk::look(&*self.tree, path)?.found != *found {
                    return Err(Error::Changed(self.tree.name(path)));
                }
                RestoredVersion { blob: Some(stored.id), mode: *mode, link: None }
            }
            Found::Folder | Found::BelowFile | Found::Other(_) => return Err(Error::Changed(self.tree.name(path))),
        };
        let after = match wanted {
            FileVersion::Absent => RestoredVersion::default(),
            FileVersion::Link(target) => RestoredVersion { link: Some(target.clone()), ..RestoredVersion::default() },
            FileVersion::File { content: FileContent::Copy(copy) | FileContent::Rebuilt(copy), mode } => {
                let blob = self.blob_of(copy)?;
                // Permissions that were not recorded stay; a new file is readable by everybody, as editors create it.
                RestoredVersion { blob: Some(blob), mode: mode.or(before.mode).or(Some(0o644)), link: None }
            }
            FileVersion::File { content: FileContent::Hash { .. }, .. } => return Err(Error::NotReady),
        };
        Ok(Swap { path: path.clone(), before, after, found: Some(found.clone()) })
    }

    /// The blob with the content of a copy: what replaces a file must still be there after a crash.
    fn blob_of(&self, copy: &FileCopy) -> Result<String> {
        if let Some(id) = copy.blob_in(&self.blob_folder) {
            return Ok(id.to_owned());
        }
        let stored = self.blobs().put_reader(Path::new(""), &mut *copy.open()?).map_err(CopyError::into_error)?;
        let is_recorded = copy.sha256().is_none_or(|recorded| recorded == stored.sha256)
            && copy.blob_id().is_none_or(|recorded| recorded == stored.id);
        if is_recorded { Ok(stored.id) } else { Err(Error::NotReady) }
    }

    fn blobs(&self) -> Blobs<'_> {
        Blobs { disk: &*self.disk, folder: &self.blob_folder, host: &self.host }
    }

    /// Stages and swaps every file that is not swapped yet.
    fn change(&self, swaps: &mut [Swap], pending: &Pending) -> Result<()> {
        let id = &pending.operation;
        let leaving = Leaving::of_pending(swaps.iter().map(|swap| (&swap.path, &swap.after)), pending);
        let folders = pending.folders.iter().filter_map(|folder| ProjectPath::parse(folder).ok());
        // Those in the place of a file are made when it is gone.
        let (late, early): (Vec<_>, Vec<_>) =
            folders.partition(|folder| leaving.has_file(folder) || leaving.is_above(folder));
        early.iter().try_for_each(|folder| self.make_folder(folder))?;
        let mut waiting = Vec::new();
        for (at, swap) in swaps.iter_mut().enumerate() {
            let disk = self.look(&swap.path, &leaving)?;
            let is_done = self.is(&disk, &swap.after)?;
            let is_known = swap.found.as_ref() == Some(&disk.found);
            if !is_done && !is_known && !self.is(&disk, &swap.before)? {
                return Err(Error::Changed(self.tree.name(&swap.path)));
            }
            swap.found = Some(disk.found);
            if !is_done {
                if !leaving.is_above(&swap.path) {
                    self.make_place(swap, id)?;
                }
                waiting.push(at);
            }
        }
        // Files that go away make room first, and the folders that are empty then: on some systems `A` and `a` are one name.
        let (gone, come): (Vec<usize>, Vec<usize>) = waiting.into_iter().partition(|at| swaps[*at].after.is_absent());
        for at in gone {
            self.swap(&swaps[at], id)?;
        }
        self.remove_folders_at(come.iter().map(|at| &swaps[*at].path), pending)?;
        late.iter().try_for_each(|folder| self.make_folder(folder))?;
        for at in come {
            let swap = &swaps[at];
            if leaving.is_above(&swap.path) {
                self.make_place(swap, id)?;
            }
            self.swap(swap, id)?;
        }
        self.sync_folders(swaps)
    }

    /// Stages a file, and makes the folders that it needs.
    fn make_place(&self, swap: &Swap, id: &str) -> Result<()> {
        if swap.found == Some(Found::Nothing) && !swap.after.is_absent() {
            self.make_folders_above(&swap.path)?;
        }
        self.stage(&swap.path, &swap.after, id)
    }

    /// Removes the folders that are where these files are to be.
    fn remove_folders_at<'s>(&self, paths: impl Iterator<Item = &'s ProjectPath>, pending: &Pending) -> Result<()> {
        let paths: HashSet<&str> = paths.map(ProjectPath::as_str).collect();
        for folder in pending.empty_folders.iter().filter_map(|folder| ProjectPath::parse(folder).ok()) {
            let mut here = std::iter::successors(Some(folder.clone()), ProjectPath::folder);
            if here.any(|path| paths.contains(path.as_str()))
                && self.tree.remove_folder(&folder).at(&self.tree.name(&folder))?
            {
                self.tree.sync_folder(&folder).at(&self.tree.name(&folder))?;
            }
        }
        Ok(())
    }

    /// Removes folders that were made since, if they are empty now.
    fn remove_empty_folders(&self, pending: &Pending) {
        for folder in pending.empty_folders.iter().filter_map(|folder| ProjectPath::parse(folder).ok()) {
            // One that is not empty, or that is gone, stays as it is.
            drop(self.tree.remove_folder(&folder));
        }
    }

    fn stage(&self, path: &ProjectPath, version: &RestoredVersion, id: &str) -> Result<()> {
        let place = self.tree.name(path);
        match version {
            RestoredVersion { link: Some(target), .. } => self.tree.stage_link(path, id, target).at(&place),
            RestoredVersion { blob: Some(blob), mode, .. } => {
                let copy = FileCopy::blob(&self.blob_folder, blob, None);
                // Whoever reads the error knows the file, not the name of its blob.
                let named = |error| match error {
                    Error::Io { source, .. } => Error::Io { path: place.clone(), source },
                    error => error,
                };
                self.tree.stage(path, id, *mode, &mut |out| copy.copy_to(out).map_err(named))
            }
            RestoredVersion { .. } => Ok(()),
        }
    }

    fn swap(&self, swap: &Swap, id: &str) -> Result<()> {
        let (tree, path) = (&*self.tree, &swap.path);
        let place = tree.name(path);
        if Some(tree.look(path).at(&place)?) != swap.found {
            return Err(Error::Changed(place));
        }
        match swap.after.is_absent() {
            true => tree.remove(path).at(&place),
            false => tree.publish(path, id, swap.found == Some(Found::Nothing)).at(&place),
        }
    }

    /// Takes everything back, the note included. What cannot be taken back now is finished or taken back by the next operation.
    fn cancel(&self, swaps: &[Swap], pending: &Pending, notes: &Notes) -> Result<()> {
        self.take_back(swaps, pending)?;
        notes.remove(&*self.disk)
    }

    /// Deletes the temporary files of an operation, and of taking it back.
    fn unstage(&self, swaps: &[Swap], pending: &Pending) {
        for swap in swaps {
            drop(self.tree.unstage(&swap.path, &pending.operation));
            drop(self.tree.unstage(&swap.path, &back_id(pending)));
        }
    }

    /// Takes back what was swapped. A file that another program has changed since stays as it is.
    fn take_back(&self, swaps: &[Swap], pending: &Pending) -> Result<()> {
        self.unstage(swaps, pending);
        let (gone, come): (Vec<&Swap>, Vec<&Swap>) = swaps.iter().partition(|swap| swap.before.is_absent());
        gone.into_iter().try_for_each(|swap| self.swap_back(swap, pending))?;
        for folder in pending.folders.iter().rev().filter_map(|folder| ProjectPath::parse(folder).ok()) {
            if self.tree.remove_folder(&folder).at(&self.tree.name(&folder))? {
                self.tree.sync_folder(&folder).at(&self.tree.name(&folder))?;
            }
        }
        come.into_iter().try_for_each(|swap| self.swap_back(swap, pending))?;
        self.sync_folders(swaps)?;
        // Folders that were removed to make room come back, also if nothing is in them.
        for folder in pending.empty_folders.iter().rev().filter_map(|folder| ProjectPath::parse(folder).ok()) {
            if self.tree.look(&folder).at(&self.tree.name(&folder))? == Found::Nothing {
                self.make_folders_above(&folder)?;
                self.make_folder(&folder)?;
            }
        }
        Ok(())
    }

    fn swap_back(&self, swap: &Swap, pending: &Pending) -> Result<()> {
        let id = back_id(pending);
        let disk = OnDisk::look(&*self.tree, &swap.path)?;
        let is_in_the_way = !swap.before.is_absent() && matches!(disk.found, Found::Folder | Found::BelowFile);
        if is_in_the_way || self.is(&disk, &swap.before)? || !self.is(&disk, &swap.after)? {
            return Ok(());
        }
        if !swap.before.is_absent() {
            self.make_folders_above(&swap.path)?;
        }
        self.stage(&swap.path, &swap.before, &id)?;
        let (before, after, found) = (swap.after.clone(), swap.before.clone(), Some(disk.found));
        self.swap(&Swap { path: swap.path.clone(), before, after, found }, &id)
    }

    /// Makes the folders of a file that were removed because they were empty.
    fn make_folders_above(&self, path: &ProjectPath) -> Result<()> {
        let mut above: Vec<ProjectPath> = path.folders().collect();
        above.reverse();
        above.iter().try_for_each(|folder| self.make_folder(folder))
    }

    fn make_folder(&self, folder: &ProjectPath) -> Result<()> {
        match self.tree.make_folder(folder).at(&self.tree.name(folder))? {
            true => self.tree.sync_folder(folder).at(&self.tree.name(folder)),
            false => Ok(()),
        }
    }

    fn sync_folders(&self, swaps: &[Swap]) -> Result<()> {
        let mut synced: HashSet<Option<ProjectPath>> = HashSet::new();
        for swap in swaps.iter().filter(|swap| swap.found != Some(Found::Nothing) || !swap.after.is_absent()) {
            if synced.insert(swap.path.folder()) {
                match self.tree.sync_folder(&swap.path) {
                    // It was not made yet, or a file has taken its place.
                    Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                    done => done.at(&self.tree.name(&swap.path))?,
                }
            }
        }
        Ok(())
    }

    /// Whether a version is on disk.
    fn is(&self, disk: &OnDisk<'_>, version: &RestoredVersion) -> Result<bool> {
        disk.is(&FileVersion::restored(version, &self.blob_folder))
    }

    /// The folders that come back and those that files to create need, the outer ones first.
    fn missing_folders(&self, swaps: &[Swap], back: &[ProjectPath], leaving: &Leaving) -> Vec<String> {
        let is_created = |swap: &&Swap| swap.found == Some(Found::Nothing) && !swap.after.is_absent();
        let is_missing = |folder: &ProjectPath| {
            let is_free = |found: &Found| *found == Found::Nothing || *found == Found::BelowFile;
            leaving.has_file(folder) || self.tree.look(folder).as_ref().is_ok_and(is_free)
        };
        let mut missing: Vec<String> = Vec::new();
        let needed = swaps.iter().filter(is_created).map(|swap| swap.path.folder());
        for innermost in needed.chain(back.iter().cloned().map(Some)) {
            let folders = std::iter::successors(innermost, ProjectPath::folder);
            missing.extend(folders.take_while(is_missing).map(|folder| folder.to_string()));
        }
        missing.sort();
        missing.dedup();
        missing
    }

    fn swaps_of(&self, pending: &Pending) -> Result<Vec<Swap>> {
        let files = RestoredFile::read_all(pending.restore.get("files").unwrap_or_default());
        let changed = files.into_iter().filter_map(|file| Some((file.path, file.versions?)));
        let swap = |(path, (before, after)): (String, _)| {
            // A note that cannot be read whole is not carried out in part.
            let path = ProjectPath::parse(&path).map_err(|_| Error::NotReady)?;
            Ok(Swap { path, before, after, found: None })
        };
        changed.map(swap).collect()
    }
}

/// Whether another program is the reason: it changed a file, or put something else in the place of a folder.
fn is_changed(error: &Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
    match error {
        Error::Changed(_) => true,
        Error::Io { source, .. } => matches!(source.kind(), AlreadyExists | NotADirectory | NotFound),
        _ => false,
    }
}

/// Names the temporary files of taking an operation back.
fn back_id(pending: &Pending) -> String {
    format!("{}-back", pending.operation)
}
