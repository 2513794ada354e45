//! The trash: removed sessions, with a note of where each file was, until they are restored or deleted for good. Nothing expires.
//!
//! ```text
//! <root>/<session>[~2]/origin.json       what the session was and where each file was, written before the first is moved
//!                      <name>            its files and folders
//! ```
//!
//! `origin.json` is untrusted: only files that can belong to a session are restored, and only to free places. A store may have come
//! with a cloned repository, so its trash restores only native sessions below that store; only the trash in our own data folder
//! restores sessions of other agents.

mod belongings;
mod empty;
mod moving;
mod origin;
mod status;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::dialect::layout::{Format, is_moving};
use crate::dialect::{self, Dialect, Native};
use crate::disk::append::{lock_log, make_folders};
use crate::disk::in_use::{is_in_use, is_recording};
use crate::disk::inside::Inside;
use crate::disk::live::LiveLock;
use crate::disk::replace::{delete, write_all};
use crate::disk::sidecar;
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::record::TitleSource;
use crate::model::regular_file::{self, Links};
use crate::session::Session;
use crate::session::read::detect;
use crate::session::read::source::Source;
pub(crate) use belongings::belongings;
pub use empty::FinishedDeletions;
use empty::is_being_deleted;
pub(crate) use moving::tree;
use moving::{is_copied, move_all, remove_incomplete, remove_tree};
pub use origin::{MovedFile, Origin};
use origin::{ORIGIN, ORIGIN_LIMIT_BYTES, is_one_name, name_in_trash, read_origin, safe_name};
use status::{FileStatus, Interrupted, Is};

/// How many removed sessions can have the same id.
const SAME_ID_LIMIT: usize = 10_000;

/// A folder of removed sessions.
#[derive(Clone)]
pub struct Trash {
    root: PathBuf,
    /// The store that sessions are restored into; `None` in our own data folder, where they are of any agent.
    store: Option<PathBuf>,
    host: Host,
    disk: Arc<dyn Disk>,
}

/// A removed session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its id in the trash.
    pub id: String,
    /// The folder of the trash.
    #[serde(skip)]
    pub root: PathBuf,
    /// What it was before.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The content of a trash.
#[derive(Debug, Default)]
pub struct TrashListing {
    /// The last removed first.
    pub removed: Vec<Removed>,
    /// What could not be read.
    pub errors: Vec<TrashError>,
    /// The ids of entries that a killed removal left before it moved anything.
    pub leftovers: Vec<String>,
}

/// Something in the trash that could not be read.
#[derive(Debug)]
pub struct TrashError {
    /// Its id in the trash; `None` if it is the folder of the trash.
    pub id: Option<String>,
    /// Why.
    pub error: Error,
}

/// What an interrupted removal left outside of the trash.
#[derive(Default)]
struct Rest {
    /// Files and folders that are in the trash already.
    copies: Vec<PathBuf>,
    /// From where to where the others go.
    moves: Vec<(PathBuf, PathBuf)>,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.moves.is_empty()
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.copies.iter().chain(self.moves.iter().map(|(from, _)| from)).map(PathBuf::as_path)
    }
}

impl Trash {
    /// The trash at `root`, for sessions of any agent: use it only for a folder of our own. Nothing is created before a session
    /// is removed.
    pub fn open(root: &Path, host: Host) -> Trash {
        Trash { root: host.cwd.join(root), store: None, host, disk: Arc::new(Real) }
    }

    /// The trash of a native store, which restores nothing outside of that store.
    pub fn of_store(store: &Path, host: Host) -> Trash {
        let store = host.cwd.join(store);
        Trash { store: Some(store.clone()), ..Trash::open(&store.join("trash"), host) }
    }

    /// Reads the note of a removed session. Fails if the session is not one of this trash.
    fn origin(&self, folder: &Path) -> Result<Origin> {
        let origin = read_origin(folder)?;
        let Some(store) = &self.store else { return Ok(origin) };
        let store = fs::canonicalize(store).at(store)?;
        let is_own = origin.dialect == Native.name() && origin.files.iter().all(|file| file.path.starts_with(&store));
        if is_own { Ok(origin) } else { Err(Error::ForeignTrash(folder.join(ORIGIN))) }
    }

    /// Whether another program wrote to a session just now, and may continue.
    pub fn is_in_use(&self, session: &Session) -> bool {
        is_session_in_use(session, (self.host.now)())
    }

    /// Moves a session and everything that belongs to it to the trash. Fails while a recorder has it open: the next record would
    /// create it again.
    pub fn remove(&self, session: &Session) -> Result<Removed> {
        check_removable(&session.source)?;
        Inside::store_of(&session.source).map_or(Ok(()), |inside| inside.check(&*self.disk, &session.source.path))?;
        let source = Source::file(session.dialect(), &resolve_folder(&session.source.path)?);
        let live = self.lock_alone(&source.path)?;
        let sidecar = session.source.sidecar().and_then(|path| sidecar::content(&path));
        let free = live.as_ref().and_then(|live| live.token.as_deref());
        if is_recording(session.updated(), sidecar.as_ref(), free, (self.host.now)()) {
            return Err(Error::Busy(session.source.path.clone()));
        }
        let inside = Inside::store_of(&source);
        // A folder behind a link out of the store stays where it is: it could not be restored.
        let is_own = |path: &PathBuf| {
            self.disk.exists(path) && inside.as_ref().is_none_or(|inside| inside.check(&*self.disk, path).is_ok())
        };
        // What is neither a file nor a folder is not the session's: only the log itself must be one.
        let is_kept = |path: &PathBuf| *path == source.path || check_file_or_folder(path).is_ok();
        let files: Vec<PathBuf> = belongings(&source).into_iter().filter(is_own).filter(is_kept).collect();
        files.iter().try_for_each(|path| check_file_or_folder(path))?;
        // A recorder locks the log only for a moment. What it writes must not be compared or deleted meanwhile.
        let log = self.disk.open(&source.path).at(&source.path)?;
        lock_log(&*self.disk, &*log, &source.path)?;
        if let Some(removed) = self.finish_removal(&source, session)? {
            return Ok(removed);
        }
        let origin = Origin {
            dialect: source.dialect.name().to_owned(),
            session: session.id().to_string(),
            title: session.row().ok().filter(|row| row.title_source != TitleSource::Id).map(|row| row.title),
            path: source.path,
            removed: Some((self.host.now)()),
            files: name_in_trash(files),
        };
        let id = self.create_entry(&origin)?;
        let folder = self.root.join(&id);
        let to_trash = |file: &MovedFile| (file.path.clone(), folder.join(&file.name));
        let moves: Vec<_> = origin.files.iter().map(to_trash).collect();
        let moved = self.mark(&folder).and_then(|()| move_all(&*self.disk, &moves, &id));
        if let Err(error) = moved {
            // If something could not be moved back, the note of it stays, and the next call finishes.
            if moves.iter().all(|(from, to)| self.disk.exists(from) && !self.disk.exists(to)) {
                drop(self.clear_leftover(&folder, &id, &origin.files));
            }
            return Err(error);
        }
        // If the mark stays, the next call finds that nothing is left to do.
        drop(self.unmark(&folder));
        Ok(Removed { id, root: self.root.clone(), origin })
    }

    /// Makes sure that no recorder has a log open while it is moved.
    fn lock_alone(&self, log: &Path) -> Result<Option<LiveLock>> {
        let data = self.host.data.as_deref();
        data.map_or(Ok(None), |data| LiveLock::alone(&self.disk, data, log))
    }

    /// Every removed session.
    pub fn list(&self) -> TrashListing {
        let mut listed = TrashListing::default();
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return listed,
            Err(error) => {
                let error = Error::Io { path: self.root.clone(), source: error };
                listed.errors.push(TrashError { id: None, error });
                return listed;
            }
        };
        for entry in entries {
            let entry = match entry.at(&self.root) {
                Ok(entry) => entry,
                Err(error) => {
                    listed.errors.push(TrashError { id: None, error });
                    continue;
                }
            };
            let id = entry.file_name().to_string_lossy().into_owned();
            if is_being_deleted(&id) {
                continue;
            }
            let origin = self.origin(&entry.path());
            if self.is_leftover(&entry.path(), &origin) {
                let has_torn_note = origin.is_err() && self.disk.exists(&entry.path().join(ORIGIN));
                listed.leftovers.extend(has_torn_note.then_some(id));
                continue;
            }
            match origin {
                Ok(origin) => listed.removed.push(Removed { origin, root: self.root.clone(), id }),
                Err(error) => listed.errors.push(TrashError { id: Some(id), error }),
            }
        }
        listed.leftovers.sort();
        listed.errors.sort_by(|a, b| a.id.cmp(&b.id));
        listed.removed.sort_by(|a, b| b.origin.removed.cmp(&a.origin.removed).then_with(|| a.id.cmp(&b.id)));
        listed
    }

    /// Whether a folder is left from a removal that failed: it has a note at most, and the files are in their old places.
    fn is_leftover(&self, folder: &Path, origin: &Result<Origin>) -> bool {
        let Ok(mut entries) = fs::read_dir(folder) else { return false };
        let is_more = |name: &str| name != ORIGIN && !is_moving(name);
        let has_more = entries.any(|entry| entry.map_or(true, |entry| is_more(&entry.file_name().to_string_lossy())));
        let note = folder.join(ORIGIN);
        let is_torn = || {
            // A note that is not JSON was torn when the disk was full.
            regular_file::read(&note, ORIGIN_LIMIT_BYTES, Links::Refuse)
                .is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_err())
        };
        !has_more
            && match origin {
                Ok(origin) => origin.files.iter().all(|file| self.disk.exists(&file.path)),
                Err(_) => !self.disk.exists(&note) || is_torn(),
            }
    }

    /// What has no log of its dialect is not a session, and was put there by somebody else.
    fn check_holds_log(&self, folder: &Path, origin: &Origin) -> Result<()> {
        let foreign = || Error::ForeignTrash(folder.join(ORIGIN));
        let in_trash = origin.files.iter().filter_map(|file| {
            let below = origin.path.strip_prefix(&file.path).ok()?;
            let here = folder.join(&file.name);
            Some(if below.as_os_str().is_empty() { here } else { here.join(below) })
        });
        // After a crash it may be in its old place already.
        let log = in_trash.chain([origin.path.clone()]).find(|log| self.disk.exists(log)).ok_or_else(foreign)?;
        regular_file::open(&log, Links::Refuse).map_err(|error| match error {
            Error::NotAFile(_) => foreign(),
            error => error,
        })?;
        let dialect = dialect::named(&origin.dialect).ok_or_else(foreign)?;
        if detect::may_be_of(dialect, &log)? { Ok(()) } else { Err(foreign()) }
    }

    /// Restores a removed session. If one of its places is taken, nothing is moved.
    pub fn restore(&self, id: &str) -> Result<Removed> {
        let folder = self.root.join(id);
        if !is_one_name(id) || !self.disk.exists(&folder) {
            return Err(Error::NoSession(Some(id.to_owned())));
        }
        let origin = self.origin(&folder)?;
        let _live = self.lock_alone(&origin.path)?;
        self.check_holds_log(&folder, &origin)?;
        let source = dialect::named(&origin.dialect).map(|dialect| Source::file(dialect, &origin.path));
        let inside = source.and_then(|source| Inside::store_of(&source));
        let (mut moves, mut copies) = (Vec::new(), Vec::new());
        for FileStatus { here, path, is } in self.status(&folder, &origin).files {
            if let Some(inside) = &inside {
                inside.check(&*self.disk, &path)?;
            }
            match is {
                Is::InBoth => match self.interrupted(&folder, &here, &path)? {
                    Interrupted::Restoring => copies.push(here),
                    Interrupted::Removing => {
                        copies.push(path.clone());
                        moves.push((here, path));
                    }
                    Interrupted::Neither => return Err(Error::Exists(path)),
                },
                Is::InTrash => moves.push((here, path)),
                // The machine crashed before this one was moved.
                Is::InOldPlace => {}
                Is::Gone => return Err(io::Error::from(io::ErrorKind::NotFound)).at(&here),
            }
        }
        for (here, path) in &moves {
            check_file_or_folder(here)?;
            make_folders(&*self.disk, path)?;
        }
        for file in &origin.files {
            remove_incomplete(&*self.disk, &file.path, id)?;
            remove_incomplete(&*self.disk, &folder.join(&file.name), id)?;
        }
        copies.iter().try_for_each(|copy| remove_tree(&*self.disk, copy))?;
        self.mark(&folder)?;
        move_all(&*self.disk, &moves, id)?;
        delete(&*self.disk, &folder.join(ORIGIN))?;
        drop(self.unmark(&folder));
        // Other files in the folder stay.
        drop(self.disk.remove_folder(&folder));
        Ok(Removed { id: id.to_owned(), root: self.root.clone(), origin })
    }

    /// Finishes a removal of this session that was interrupted after its log was copied; what was interrupted before is undone.
    fn finish_removal(&self, source: &Source, session: &Session) -> Result<Option<Removed>> {
        for id in names_in_trash(&safe_name(session.id().as_str())) {
            let folder = self.root.join(&id);
            if !self.disk.exists(&folder) {
                break;
            }
            let origin = self.origin(&folder);
            if origin.is_err() && self.is_leftover(&folder, &origin) {
                self.clear_leftover(&folder, &id, &[])?;
            }
            let Ok(origin) = origin else { continue };
            if origin.path != source.path || origin.dialect != source.dialect.name() {
                continue;
            }
            if self.is_leftover(&folder, &Ok(origin.clone())) {
                self.clear_leftover(&folder, &id, &origin.files)?;
                continue;
            }
            if let Some(rest) = self.rest_outside(&folder, &origin).filter(|rest| !rest.copies.is_empty()) {
                return self.move_rest(id, origin, rest).map(Some);
            }
        }
        Ok(None)
    }

    /// Finishes the removal of a session that was interrupted after its log was moved: what is left of it outside of the trash is no
    /// session any more.
    pub fn finish_removal_of(&self, session: &str) -> Result<Option<Removed>> {
        for id in names_in_trash(&safe_name(session)) {
            let folder = self.root.join(&id);
            if !self.disk.exists(&folder) {
                break;
            }
            let Ok(origin) = self.origin(&folder) else { continue };
            if origin.session != session || self.disk.exists(&origin.path) {
                continue;
            }
            let Some(rest) = self.rest_outside(&folder, &origin) else { continue };
            let source = dialect::named(&origin.dialect).map(|dialect| Source::file(dialect, &origin.path));
            let inside = source.and_then(|source| Inside::store_of(&source));
            let is_own = |path: &Path| inside.as_ref().is_none_or(|inside| inside.check(&*self.disk, path).is_ok());
            if rest.is_empty() || !rest.paths().all(is_own) {
                continue;
            }
            let _live = self.lock_alone(&origin.path)?;
            self.check_holds_log(&folder, &origin)?;
            return self.move_rest(id, origin, rest).map(Some);
        }
        Ok(None)
    }

    /// What an interrupted removal left outside of the trash; `None` if it is not what was being removed.
    fn rest_outside(&self, folder: &Path, origin: &Origin) -> Option<Rest> {
        let status = self.status(folder, origin);
        let (mut rest, mut is_its) = (Rest::default(), status.is_moving);
        for FileStatus { here, path, is } in status.files {
            match is {
                Is::InBoth => {
                    is_its &= is_copied(&path, &here).unwrap_or(false);
                    rest.copies.push(path);
                }
                Is::InTrash => {}
                Is::InOldPlace => rest.moves.push((path, here)),
                Is::Gone => is_its = false,
            }
        }
        is_its.then_some(rest)
    }

    fn move_rest(&self, id: String, origin: Origin, rest: Rest) -> Result<Removed> {
        let folder = self.root.join(&id);
        let names = origin.files.iter().map(|file| folder.join(&file.name));
        names.into_iter().try_for_each(|name| remove_incomplete(&*self.disk, &name, &id))?;
        rest.copies.iter().try_for_each(|copy| remove_tree(&*self.disk, copy))?;
        move_all(&*self.disk, &rest.moves, &id)?;
        drop(self.unmark(&folder));
        Ok(Removed { id, root: self.root.clone(), origin })
    }

    /// Removes what a removal left that was interrupted before anything was moved.
    fn clear_leftover(&self, folder: &Path, id: &str, files: &[MovedFile]) -> Result<()> {
        files.iter().try_for_each(|file| remove_incomplete(&*self.disk, &folder.join(&file.name), id))?;
        let note = folder.join(ORIGIN);
        if self.disk.exists(&note) {
            delete(&*self.disk, &note)?;
        }
        self.unmark(folder)?;
        self.disk.remove_folder(folder).at(folder)
    }

    /// Creates the folder of a removed session, with its note, and returns its id.
    fn create_entry(&self, origin: &Origin) -> Result<String> {
        let name = safe_name(&origin.session);
        let note = serde_json::to_vec_pretty(origin).map_err(io::Error::from).at(&self.root)?;
        for id in names_in_trash(&name) {
            let path = self.root.join(&id).join(ORIGIN);
            if self.disk.exists(&self.root.join(&id)) {
                continue;
            }
            make_folders(&*self.disk, &path)?;
            let file = match self.disk.create(&path) {
                // Another program removes a session of this id right now.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file.at(&path)?,
            };
            let folder = self.root.join(&id);
            let written = write_all(&*file, &note, &path)
                .and_then(|()| file.sync().at(&path))
                .and_then(|()| self.disk.sync_folder(&folder).at(&folder));
            return written.map(|()| id).inspect_err(|_| {
                // Nothing was moved: the note would be wrong.
                drop(delete(&*self.disk, &path));
                drop(self.disk.remove_folder(&folder));
            });
        }
        Err(Error::Exists(self.root.join(name)))
    }
}

/// The ids that removed sessions of one name can have.
fn names_in_trash(name: &str) -> impl Iterator<Item = String> {
    (1..=SAME_ID_LIMIT).map(move |count| if count == 1 { name.to_owned() } else { format!("{name}~{count}") })
}

/// Fails for sessions that are not files of an agent.
fn check_removable(source: &Source) -> Result<()> {
    let is_rows = matches!(source.layout.format, Format::Rows(_));
    let what = if is_rows {
        "the removal of one session from a database"
    } else if source.dialect.name() == "unknown" || !source.layout.names(&source.path) {
        "the removal of a file that does not have the name of a session file"
    } else {
        return Ok(());
    };
    Err(Error::cannot_store(source.dialect.name(), what.to_owned()))
}

/// The path with the links of its folders resolved.
fn resolve_folder(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = fs::canonicalize(folder).at(folder)?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Fails for links and devices.
fn check_file_or_folder(path: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(path).at(path)?.file_type();
    if kind.is_file() || kind.is_dir() { Ok(()) } else { Err(Error::NotAFile(path.to_path_buf())) }
}

/// Whether another program wrote to a session just now, and may continue.
pub(crate) fn is_session_in_use(session: &Session, now: jiff::Timestamp) -> bool {
    let sidecar = session.source.sidecar().and_then(|path| sidecar::content(&path));
    is_in_use(&session.source.path, session.updated(), sidecar.as_ref(), now)
}

#[cfg(test)]
pub(crate) mod tests;
