//! What tools change on disk: the files that are named before a tool runs, and those of a project that is watched. Their states
//! before are copied to blobs, and a snapshot names them afterwards, so that an undo can restore them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use ignore::WalkBuilder;
use serde_json::json;

use super::file_now::{self, COPY_LIMIT_BYTES, FileNow, Look, Named};
use super::lines::Piece;
use super::watch::{NOT_WATCHED, Watch};
use super::{Durability, Entry, Log, Mode, Recorder, Warning};
use crate::disk::{Disk, Real};
use crate::model::error::{Error, Result};
use crate::model::project;
use crate::model::record::{Before, Body, FileState, Kind, RecordId, Snapshot};
use crate::session::blob;
use crate::write::blobs::Blobs;

/// A folder with more files is not copied: the tool would wait for minutes.
const FOLDER_FILE_LIMIT: usize = 10_000;

/// What is known of the files that tools change.
#[derive(Clone, Default)]
pub(super) struct Files {
    /// The files that were named since the last snapshot, and their states then; `None` if no tool runs.
    named: Option<Vec<(Named, FileNow)>>,
    /// Folders that were named: every file in them is, also those that are made there.
    folders: Vec<NamedFolder>,
    /// Folders of those files that did not exist then.
    missing: BTreeSet<PathBuf>,
    pub(super) watch: Option<Watch>,
    /// The messages that have a snapshot; `None` before the first one is written.
    messages: Option<HashSet<RecordId>>,
    /// Whether the format can store file states, once it was tried.
    is_storable: Option<bool>,
}

/// A folder that a tool is about to change.
#[derive(Clone)]
struct NamedFolder {
    place: PathBuf,
    /// The folders in it, and itself.
    folders: BTreeSet<PathBuf>,
}

/// What is in a folder now.
struct Inside {
    files: Vec<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

/// Whether a folder is there; a link to one is none.
fn is_folder(place: &Path) -> bool {
    place.symlink_metadata().is_ok_and(|there| there.is_dir())
}

impl Inside {
    /// Looks below a folder, without following links; `None` if it is none, or has too much in it.
    fn of(place: &Path) -> Option<Inside> {
        if !is_folder(place) {
            return None;
        }
        let mut inside = Inside { files: Vec::new(), folders: BTreeSet::new() };
        let is_project = |name: &OsStr| !NOT_WATCHED.iter().any(|other| name == *other);
        let mut walk = WalkBuilder::new(place);
        walk.standard_filters(false)
            .follow_links(false)
            .filter_entry(move |entry| is_project(entry.file_name()));
        for entry in walk.build() {
            let entry = entry.ok()?;
            match entry.file_type().is_some_and(|kind| kind.is_dir()) {
                true => _ = inside.folders.insert(entry.into_path()),
                false => inside.files.push(entry.into_path()),
            }
            if inside.files.len() > FOLDER_FILE_LIMIT {
                return None;
            }
        }
        Some(inside)
    }
}

impl Recorder {
    /// Copies the state of files that a tool is about to change; call [`Recorder::after_tool`] when it has run. Paths are relative
    /// to the session's project, or absolute inside it.
    ///
    /// A link is copied as a link, never its target; of a folder, everything in it is copied. A file that cannot be copied, because it
    /// is outside of the project or too large, a folder with more than 10,000 files, or because the disk is full, is recorded as such,
    /// so that an undo knows: none of this fails, and the tool can run. If this is called again before [`Recorder::after_tool`], the first state of a file counts.
    ///
    /// In formats that cannot store the states of files this does nothing, with a warning.
    ///
    /// ```
    /// use scrollback::Store;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let project = folder.path().join("tides");
    /// # std::fs::create_dir(&project)?;
    /// let store = Store::native(folder.path().join("store"))?;
    /// let mut session = store.create(&project)?;
    /// session.user("Note that high water is at 04:12.")?;
    /// session.assistant("I write it down.")?;
    /// session.before_tool(&["notes.md"])?;
    /// std::fs::write(project.join("notes.md"), "04:12")?;
    /// assert!(session.after_tool()?.id().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn before_tool(&mut self, paths: &[impl AsRef<Path>]) -> Result<()> {
        if !self.stores_files()? {
            return Ok(());
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        let project = Real.resolve(&log.project());
        let mut known = self.files.named.take().unwrap_or_default();
        let mut names: HashSet<String> = known.iter().map(|(named, _)| named.path.clone()).collect();
        let mut places: Vec<PathBuf> = Vec::new();
        for path in paths {
            let place = file_now::locate(&project, path.as_ref()).place.ok();
            match place.and_then(|place| Some((Inside::of(&place)?, place))) {
                Some((Inside { files, folders }, place)) => {
                    places.extend(files);
                    self.files.folders.push(NamedFolder { place, folders });
                }
                None => places.push(path.as_ref().to_path_buf()),
            }
        }
        for path in &places {
            let named = file_now::locate(&project, path);
            if !names.insert(named.path.clone()) {
                continue;
            }
            let now = match &named.place {
                // What is not touched need not be restored. A folder does not tell what changes in it.
                Err(_) if file_now::is_missing(&named.given) => FileNow::Absent,
                Err(why) => {
                    let stat = file_now::stat(&named.given).filter(|_| !named.given.is_dir());
                    FileNow::Unknown { why: why.clone(), stat }
                }
                Ok(place) => {
                    let is_missing = |folder: &&Path| folder.starts_with(&project) && !folder.is_dir();
                    let folders = place.ancestors().skip(1).take_while(is_missing);
                    self.files.missing.extend(folders.map(Path::to_path_buf));
                    let copied = file_now::look(place, &Look::Copy(&log.blobs(), COPY_LIMIT_BYTES));
                    copied.unwrap_or_else(|error| {
                        log.warning(Warning::NotCopied);
                        FileNow::Unknown { why: error.to_string(), stat: file_now::stat(place) }
                    })
                }
            };
            known.push((named, now));
        }
        self.files.named = Some(known);
        Ok(())
    }

    /// Records which of the files that were named before the tool ran it has changed, and everything that changed in a watched
    /// project: one snapshot of the last answer. If nothing changed, nothing is recorded.
    pub fn after_tool(&mut self) -> Result<Entry> {
        if !self.stores_files()? {
            return Ok(Entry::default());
        }
        if !self.files.is_active() {
            return Err(Error::OutOfOrder("no files were named before the tool ran"));
        }
        self.enter(|recorder, entry| {
            recorder.end_answer()?;
            recorder.write_changes(vec![entry])
        })
    }

    /// Whether the format can store the states of files; if not, that is said once.
    pub(super) fn stores_files(&mut self) -> Result<bool> {
        let Some(log) = self.log.as_mut().filter(|log| log.place.mode == Mode::Live) else { return Ok(false) };
        if let Some(known) = self.files.is_storable {
            return Ok(known);
        }
        let before = Before::Blob { id: "0".repeat(64), hash: None };
        let files = vec![FileState { before, ..FileState::new("a") }];
        let sample = Snapshot { message: Some(RecordId("a".to_owned())), files, ..Snapshot::default() };
        let is_storable = match log.check_storable(vec![Piece::next(Body::Snapshot(sample))]) {
            Ok(()) => true,
            Err(Error::CannotStore { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_storable {
            log.warning(Warning::NoFileStates);
        }
        self.files.is_storable = Some(is_storable);
        Ok(is_storable)
    }

    /// Writes what changed since the states that are known, and forgets those. A failure leaves everything as it was.
    pub(super) fn write_changes(&mut self, entries: Vec<u64>) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if !self.files.is_active() {
            return Ok(());
        }
        let scan = self.files.watch.as_ref().map(|watch| watch.scan(log)).transpose()?;
        self.files.name_made_files(&Real.resolve(&log.project()));
        let mut files = self.files.changes_of_named();
        if let (Some(watch), Some(scan)) = (&self.files.watch, &scan) {
            let places: HashMap<String, usize> =
                files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
            for change in watch.changes(scan) {
                // The older state is the one to go back to.
                match places.get(&change.path) {
                    Some(at) => files[*at] = change,
                    None => files.push(change),
                }
            }
        }
        let mut folders = self.files.made_folders(&Real.resolve(&log.project()));
        let mut extra = serde_json::Map::new();
        if let (Some(watch), Some(scan)) = (&self.files.watch, &scan) {
            folders.extend(watch.new_folders(scan).cloned());
            let removed: Vec<&String> = watch.removed_folders(scan).collect();
            if !removed.is_empty() {
                extra.insert(Snapshot::REMOVED_FOLDERS.to_owned(), json!(removed));
            }
            if !scan.unwatched.is_empty() {
                extra.insert(Snapshot::UNWATCHED.to_owned(), json!(scan.unwatched));
            }
        }
        if !folders.is_empty() {
            extra.insert(Snapshot::FOLDERS.to_owned(), json!(folders));
        }
        let folder = &log.place.blobs;
        for file in &mut files {
            if let Before::Blob { id, .. } = &file.before
                && !blob::path_of(folder, id).is_ok_and(|path| log.place.disk.exists(&path))
            {
                file.before = Before::Failed(Some("its copy was deleted".to_owned()));
            }
        }
        if !files.is_empty() {
            let message = log.message_of_changes();
            let update = self.files.has_snapshot(message.as_ref(), log)?;
            log.repeat_title();
            let snapshot = Snapshot { message: message.clone(), update, files, extra, ..Snapshot::default() };
            self.write(vec![Piece::next(Body::Snapshot(snapshot))], entries, Durability::Sync)?;
            self.files.messages.get_or_insert_default().extend(message);
        }
        (self.files.named, self.files.missing) = (None, BTreeSet::new());
        self.files.folders.clear();
        if let (Some(watch), Some(scan)) = (&mut self.files.watch, scan) {
            watch.advance(scan);
        }
        Ok(())
    }
}

impl Files {
    /// Whether changes are looked for.
    pub(super) fn is_active(&self) -> bool {
        self.named.is_some() || self.watch.is_some()
    }

    /// Names what was made in the folders that were named, in the place of one, and in a folder that a named file became: it was not
    /// there before.
    fn name_made_files(&mut self, project: &Path) {
        let Some(named) = &mut self.named else { return };
        let mut names: HashSet<String> = named.iter().map(|(named, _)| named.path.clone()).collect();
        let became_folders = named.iter().filter_map(|(named, _)| named.place.clone().ok());
        let became_folders = became_folders.map(|place| NamedFolder { place, folders: BTreeSet::new() });
        for folder in self.folders.iter().cloned().chain(became_folders).collect::<Vec<_>>() {
            if file_now::is_gone(&folder.place) {
                continue;
            }
            // One that has grown beyond the limit may have files that nobody named.
            let now = match Inside::of(&folder.place) {
                Some(now) => now,
                None if is_folder(&folder.place) => continue,
                None => Inside { files: vec![folder.place], folders: BTreeSet::new() },
            };
            let made = now.files.iter().map(|file| file_now::locate(project, file));
            for made in made.filter(|made| names.insert(made.path.clone())) {
                named.push((made, FileNow::Absent));
            }
            self.missing.extend(now.folders.difference(&folder.folders).cloned());
        }
    }

    /// The folders of named files that did not exist before, in the project.
    fn made_folders(&self, project: &Path) -> BTreeSet<String> {
        let made = self.missing.iter().filter(|folder| folder.is_dir());
        made.filter_map(|folder| file_now::recorded_path(folder.strip_prefix(project).ok()?)).collect()
    }

    fn changes_of_named(&self) -> Vec<FileState> {
        let nobody_looked = FileNow::Unknown { why: String::new(), stat: None };
        let change = |(named, before): &(Named, FileNow)| {
            let place = named.place.as_ref().unwrap_or(&named.given);
            match (before, &named.place) {
                // It could not be copied. If it was not changed either, that does not matter.
                (FileNow::Unknown { stat: Some(stat), .. }, _) if file_now::stat(place).as_ref() == Some(stat) => None,
                (FileNow::Absent, Err(_)) if file_now::is_missing(place) => None,
                (FileNow::Absent, Err(why)) => {
                    let refused = FileNow::Unknown { why: why.clone(), stat: None };
                    file_now::change(&named.path, &refused, &nobody_looked)
                }
                (before, Err(_)) => file_now::change(&named.path, before, &nobody_looked),
                (before, Ok(place)) => {
                    let after = match file_now::is_gone(place) {
                        true => FileNow::Absent,
                        // Nothing is written.
                        false => file_now::look(place, &Look::Hash).unwrap_or(FileNow::Absent),
                    };
                    file_now::change(&named.path, before, &after)
                }
            }
        };
        self.named.iter().flatten().filter_map(change).collect()
    }

    /// Whether a message has a snapshot: the next one adds to it.
    fn has_snapshot(&mut self, message: Option<&RecordId>, log: &Log) -> Result<bool> {
        if self.messages.is_none() {
            let session = log.read()?;
            let mut messages = HashSet::new();
            for record in session.records().filter(|record| record.kind() == Kind::Snapshot) {
                if let Body::Snapshot(snapshot) = record.body()? {
                    messages.extend(snapshot.message);
                }
            }
            self.messages = Some(messages);
        }
        Ok(message.is_some_and(|message| self.messages.as_ref().is_some_and(|known| known.contains(message))))
    }
}

impl Log {
    /// The root of the session's project, as its readers derive it.
    pub(super) fn project(&self) -> PathBuf {
        project::of(self.place.first_cwd.as_deref().unwrap_or(&self.place.host.cwd))
    }

    pub(super) fn blobs(&self) -> Blobs<'_> {
        Blobs { disk: &*self.place.disk, folder: &self.place.blobs, host: &self.place.host }
    }

    /// The message that changed files: the last answer, or a prompt that nothing followed.
    fn message_of_changes(&self) -> Option<RecordId> {
        let chain = &self.cursor.chain;
        let prompt = chain.parent.as_ref().filter(|parent| parent.kind == Kind::User);
        prompt.or(chain.last_answer.as_ref()).or(chain.parent.as_ref()).map(|record| record.id.clone())
    }
}
