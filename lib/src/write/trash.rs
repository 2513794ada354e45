//! Removed sessions: moved aside with a note of where they were, and moved back when asked. Nothing expires.
//!
//! ```text
//! <root>/<session>[~2]/origin.json       what it was and where each file lay, written before the first is moved
//!                      <name>            the files, and the folders that are the session's own
//! ```
//!
//! `origin.json` may be anybody's: only what could be a session's is put back, and only where nothing is.

mod belongings;
mod moving;

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect;
use crate::dialect::layout::Format;
use crate::disk::append::{lock_log, make_folders};
use crate::disk::in_use::{is_in_use, is_recording};
use crate::disk::inside::Inside;
use crate::disk::replace::{delete, write_all};
use crate::disk::sidecar;
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::record::TitleSource;
use crate::session::Session;
use crate::session::read::source::Source;
pub(crate) use belongings::belongings;
use moving::move_all;

/// The file that tells what a removed session was.
const ORIGIN: &str = "origin.json";

/// It names a handful of files; more is not one.
const ORIGIN_LIMIT_BYTES: u64 = 1024 * 1024;

/// A session that was removed more often than this under one name is not told apart by a number.
const SAME_NAMES: usize = 10_000;

/// A name is cut to this: with `~` and a number it still is one name of a file.
const NAME_CHARS: usize = 100;

/// Where removed sessions lie.
#[derive(Clone)]
pub struct Trash {
    root: PathBuf,
    host: Host,
    disk: Arc<dyn Disk>,
}

/// A removed session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// What it is called in the trash.
    pub id: String,
    /// The trash that it lies in.
    #[serde(skip)]
    pub root: PathBuf,
    /// What it was.
    #[serde(flatten)]
    pub origin: Origin,
}

/// What a removed session was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Who wrote it.
    pub dialect: String,
    /// Its id.
    pub session: String,
    /// Its title, or what was said first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where its first file was.
    pub path: PathBuf,
    /// When it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Timestamp>,
    /// Everything that was moved.
    pub files: Vec<MovedFile>,
}

/// A file or a folder of a removed session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFile {
    /// Where it was.
    pub path: PathBuf,
    /// What it is called beside `origin.json`.
    pub name: String,
}

/// Removed sessions, and what could not be looked into.
#[derive(Debug, Default)]
pub struct InTrash {
    /// The last removed first.
    pub removed: Vec<Removed>,
    /// What lies in the trash and cannot be told, or not be read.
    pub errors: Vec<Error>,
}

impl Trash {
    /// The trash at `root`; nothing is made there before something is removed.
    pub fn open(root: &Path, host: Host) -> Trash {
        Trash { root: host.cwd.join(root), host, disk: Arc::new(Real) }
    }

    /// Whether another program wrote to a session just now, and did not say that it had finished.
    pub fn is_in_use(&self, session: &Session) -> bool {
        let sidecar = session.source.sidecar().and_then(|path| sidecar::says(&path));
        is_in_use(&session.source.path, session.updated(), sidecar.as_ref(), (self.host.now)())
    }

    /// Moves a session into the trash. One that a recorder has open is refused: what it wrote next would begin it anew.
    pub fn remove(&self, session: &Session) -> Result<Removed> {
        check_removable(&session.source)?;
        Inside::store_of(&session.source).map_or(Ok(()), |inside| inside.check(&*self.disk, &session.source.path))?;
        let sidecar = session.source.sidecar().and_then(|path| sidecar::says(&path));
        if is_recording(session.updated(), sidecar.as_ref(), (self.host.now)()) {
            return Err(Error::Busy(session.source.path.clone()));
        }
        let source = Source::file(session.dialect(), &settled(&session.source.path)?);
        let files: Vec<PathBuf> = belongings(&source).into_iter().filter(|path| self.disk.exists(path)).collect();
        files.iter().try_for_each(|path| check_kind(path))?;
        // Whoever records into it has it locked for a moment only.
        let log = self.disk.open(&source.path).at(&source.path)?;
        lock_log(&*self.disk, &*log, &source.path)?;
        let origin = Origin {
            dialect: source.dialect.name().to_owned(),
            session: session.id().to_string(),
            title: session.row().ok().filter(|row| row.title_source != TitleSource::Id).map(|row| row.title),
            path: source.path,
            removed: Some((self.host.now)()),
            files: named(files),
        };
        let id = self.begin(&origin)?;
        let folder = self.root.join(&id);
        let way = |file: &MovedFile| (file.path.clone(), folder.join(&file.name));
        let ways: Vec<_> = origin.files.iter().map(way).collect();
        if let Err(error) = move_all(&*self.disk, &ways, &(self.host.new_id)()) {
            // What was moved is back; where something is not, the note of it stays.
            if ways.iter().all(|(from, _)| self.disk.exists(from)) {
                drop(delete(&*self.disk, &folder.join(ORIGIN)));
            }
            drop(self.disk.remove_folder(&folder));
            return Err(error);
        }
        Ok(Removed { id, root: self.root.clone(), origin })
    }

    /// Every removed session.
    pub fn list(&self) -> InTrash {
        let mut listed = InTrash::default();
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return listed,
            Err(error) => {
                listed.errors.extend(Err::<(), _>(error).at(&self.root).err());
                return listed;
            }
        };
        for entry in entries {
            let found = entry.at(&self.root).and_then(|entry| {
                let id = entry.file_name().to_string_lossy().into_owned();
                let origin = read_origin(&entry.path());
                if self.holds_nothing(&entry.path(), &origin) {
                    return Ok(None);
                }
                Ok(Some(Removed { origin: origin?, root: self.root.clone(), id }))
            });
            match found {
                Ok(removed) => listed.removed.extend(removed),
                Err(error) => listed.errors.push(error),
            }
        }
        listed.removed.sort_by(|a, b| b.origin.removed.cmp(&a.origin.removed).then_with(|| a.id.cmp(&b.id)));
        listed
    }

    /// Whether a folder is what stayed of a removal that failed: a note at most, and what it tells lies where it lay.
    fn holds_nothing(&self, folder: &Path, origin: &Result<Origin>) -> bool {
        let Ok(mut entries) = fs::read_dir(folder) else { return false };
        let has_more = entries.any(|entry| entry.map_or(true, |entry| entry.file_name() != ORIGIN));
        let note = folder.join(ORIGIN);
        let is_torn = || {
            let size = fs::symlink_metadata(&note).map_or(0, |note| note.len());
            // A note is written at once: what is no JSON was cut off when the disk was full.
            size < ORIGIN_LIMIT_BYTES
                && fs::read(&note).is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_err())
        };
        !has_more
            && match origin {
                Ok(origin) => origin.files.iter().all(|file| self.disk.exists(&file.path)),
                Err(_) => !self.disk.exists(&note) || is_torn(),
            }
    }

    /// Puts a removed session back where it was, and tells where. Where something is by now, nothing is moved.
    pub fn restore(&self, id: &str) -> Result<Removed> {
        let folder = self.root.join(id);
        if !is_one_name(id) || !self.disk.exists(&folder) {
            return Err(Error::NoSession(Some(id.to_owned())));
        }
        let origin = read_origin(&folder)?;
        let source = dialect::named(&origin.dialect).map(|dialect| Source::file(dialect, &origin.path));
        let inside = source.and_then(|source| Inside::store_of(&source));
        let (mut ways, mut twins) = (Vec::new(), Vec::new());
        for file in &origin.files {
            let here = folder.join(&file.name);
            if let Some(inside) = &inside {
                inside.check(&*self.disk, &file.path)?;
            }
            match (self.disk.exists(&here), self.disk.exists(&file.path)) {
                // The machine died while the file had both names.
                (true, true) if self.disk.is_same_file(&here, &file.path) => twins.push(here),
                (true, true) => return Err(Error::Exists(file.path.clone())),
                (true, false) => ways.push((here, file.path.clone())),
                // The machine died before this one was moved.
                (false, true) => {}
                (false, false) => return Err(io::Error::from(io::ErrorKind::NotFound)).at(&here),
            }
        }
        for (here, path) in &ways {
            check_kind(here)?;
            make_folders(&*self.disk, path)?;
        }
        move_all(&*self.disk, &ways, &(self.host.new_id)())?;
        twins.iter().try_for_each(|twin| delete(&*self.disk, twin))?;
        delete(&*self.disk, &folder.join(ORIGIN))?;
        // What somebody else put there stays.
        drop(self.disk.remove_folder(&folder));
        Ok(Removed { id: id.to_owned(), root: self.root.clone(), origin })
    }

    /// Makes a place in the trash, the note first.
    fn begin(&self, origin: &Origin) -> Result<String> {
        let name = safe_name(&origin.session);
        let note = serde_json::to_vec_pretty(origin).map_err(io::Error::from).at(&self.root)?;
        for count in 1..=SAME_NAMES {
            let id = if count == 1 { name.clone() } else { format!("{name}~{count}") };
            let path = self.root.join(&id).join(ORIGIN);
            if self.disk.exists(&self.root.join(&id)) {
                continue;
            }
            make_folders(&*self.disk, &path)?;
            let file = match self.disk.create(&path) {
                // Somebody else removes a session of this name at this moment.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file.at(&path)?,
            };
            let folder = self.root.join(&id);
            let written = write_all(&*file, &note, &path)
                .and_then(|()| file.sync().at(&path))
                .and_then(|()| self.disk.sync_folder(&folder).at(&folder));
            return written.map(|()| id).inspect_err(|_| {
                // A note of what was never moved would be a riddle.
                drop(delete(&*self.disk, &path));
                drop(self.disk.remove_folder(&folder));
            });
        }
        Err(Error::Exists(self.root.join(name)))
    }
}

/// Refuses what is no file of an agent.
fn check_removable(source: &Source) -> Result<()> {
    let is_rows = matches!(source.layout.format, Format::Rows(_));
    let what = if is_rows {
        "taking one session out of a database"
    } else if source.dialect.name() == "unknown" || !source.layout.names(&source.path) {
        "removing a file that is not named as its sessions are"
    } else {
        return Ok(());
    };
    Err(Error::cannot_store(source.dialect.name(), what.to_owned()))
}

/// The same file, named without links and steps back on the way: that it can be found again.
fn settled(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = fs::canonicalize(folder).at(folder)?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// A link leads to what may be somebody else's, and a device is nobody's session.
fn check_kind(path: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(path).at(path)?.file_type();
    if kind.is_file() || kind.is_dir() { Ok(()) } else { Err(Error::NotAFile(path.to_path_buf())) }
}

/// What each file is called in the trash: as it was, unless that is taken.
fn named(paths: Vec<PathBuf>) -> Vec<MovedFile> {
    let mut files: Vec<MovedFile> = Vec::new();
    for path in paths {
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_taken = |name: &str| name == ORIGIN || files.iter().any(|file| file.name == name);
        let name = (1..).map(|count| if count == 1 { own.clone() } else { format!("{count}-{own}") });
        let name = name.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        files.push(MovedFile { path, name });
    }
    files
}

/// A session's id as a name of a folder.
fn safe_name(id: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '@');
    let name: String = id.chars().take(NAME_CHARS).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let name = name.trim_matches('.');
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}

/// What an `origin.json` says, if a session can have been that.
fn read_origin(folder: &Path) -> Result<Origin> {
    let path = folder.join(ORIGIN);
    if !fs::symlink_metadata(&path).at(&path)?.is_file() {
        return Err(Error::NotAFile(path));
    }
    let mut text = Vec::new();
    fs::File::open(&path)
        .and_then(|file| file.take(ORIGIN_LIMIT_BYTES).read_to_end(&mut text))
        .at(&path)?;
    let origin: Origin = serde_json::from_slice(&text).map_err(|_| not_an_origin()).at(&path)?;
    let is_plain = |path: &Path| {
        path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
    };
    let source = dialect::named(&origin.dialect).map(|dialect| Source::file(dialect, &origin.path));
    let known = source.filter(|source| is_plain(&origin.path) && check_removable(source).is_ok());
    let known: Vec<PathBuf> = known.map(|source| belongings(&source)).unwrap_or_default();
    let is_own = |file: &MovedFile| known.contains(&file.path) && is_one_name(&file.name) && file.name != ORIGIN;
    if origin.files.is_empty() || !origin.files.iter().all(is_own) {
        return Err(not_an_origin()).at(&path);
    }
    Ok(origin)
}

fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

fn not_an_origin() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it tells no session that can be put back")
}

#[cfg(test)]
mod tests;
