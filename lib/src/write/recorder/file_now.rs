//! The state of one file of a project now: nothing there, a file whose content is copied to a blob, or a link, which is never
//! followed.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, in_words};
use crate::model::hash;
use crate::model::record::{After, Before, FileState};
use crate::model::regular_file::{self, Links};
use crate::write::blobs::{Blobs, CopyError};

/// Of a larger file no copy is made before a tool changes it: the tool would wait for minutes, and the store would fill up.
pub(crate) const COPY_LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// A file that a tool is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// As it is recorded: relative to the project.
    pub(super) path: String,
    /// Where it is, with the links above it resolved; or why no copy of it is made.
    pub(super) place: Result<PathBuf, String>,
    /// Where it was named, to the last byte: tells whether something is there, and whether that was changed.
    pub(super) given: PathBuf,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileNow {
    Absent,
    File(Content),
    Link {
        target: String,
    },
    Folder,
    /// Neither a file, a folder nor a link; or it could not be read.
    Unknown {
        why: String,
        stat: Option<Stat>,
    },
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    /// The name of its blob, if it was copied.
    pub(super) blob: Option<String>,
    pub(super) sha256: String,
    pub(super) bytes: u64,
    pub(super) mode: Option<u32>,
}

/// What changes whenever a file does, as far as the system's clock is fine enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    bytes: u64,
    mode: Option<u32>,
    modified: Option<SystemTime>,
    /// Of the inode: its number, and when anything of it was changed. Nobody can set that back.
    inode: Option<(u64, i64, i64)>,
}

impl Stat {
    pub(super) fn of(metadata: &Metadata) -> Stat {
        Stat { bytes: metadata.len(), mode: mode(metadata), modified: metadata.modified().ok(), inode: inode(metadata) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When it was changed last, in seconds since 1970.
    pub(super) fn changed_seconds(&self) -> i64 {
        let since =
            |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        let modified = self.modified.map_or(i64::MAX, since);
        self.inode.map_or(modified, |(_, seconds, _)| modified.max(seconds))
    }
}

/// How the content of a file is looked at.
pub(super) enum Look<'b> {
    /// It is copied to a blob, if it is no larger than this.
    Copy(&'b Blobs<'b>, u64),
    /// Only its hash is wanted.
    Hash,
}

/// Finds a file in a project. A path that leads out of it, or cannot be recorded exactly, is named with the reason.
pub(super) fn locate(project: &Path, path: &Path) -> Named {
    let whole = project.join(path);
    let refused = |why: &str| Named {
        path: path.to_string_lossy().into_owned(),
        place: Err(why.to_owned()),
        given: whole.clone(),
    };
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return refused("the path has a NUL in it");
    }
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else {
        return refused("not the path of a file");
    };
    // The last name is not resolved: a link is recorded as a link.
    let place = Real.resolve(folder).join(name);
    if place.components().any(|part| part == Component::ParentDir) {
        return refused("a folder in the path does not exist");
    }
    let Ok(inside) = place.strip_prefix(Real.resolve(project)) else { return refused("outside the project") };
    match recorded_path(inside) {
        Some(path) => Named { path, place: Ok(place), given: whole },
        None => Named { path: inside.to_string_lossy().into_owned(), ..refused("the name is not UTF-8") },
    }
}

/// A path as it is recorded, with `/` on every system; `None` if a name is not UTF-8.
pub(super) fn recorded_path(inside: &Path) -> Option<String> {
    let names: Option<Vec<&str>> = inside.iter().map(|name| name.to_str()).collect();
    Some(names?.join("/"))
}

/// Looks at a file. Only a store that cannot be written is an error: the file itself can be anything.
pub(super) fn look(place: &Path, how: &Look<'_>) -> Result<FileNow, Error> {
    let metadata = match fs::symlink_metadata(place) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(FileNow::Absent),
        Err(error) => return Ok(FileNow::Unknown { why: in_words(&error), stat: None }),
    };
    if metadata.is_dir() {
        return Ok(FileNow::Folder);
    }
    if metadata.is_symlink() {
        let target = fs::read_link(place).map(|target| target.into_os_string().into_string());
        return Ok(match target {
            Ok(Ok(target)) => FileNow::Link { target },
            Ok(Err(_)) => unknown("the target of the link is not UTF-8", &metadata),
            Err(error) => unknown(&in_words(&error), &metadata),
        });
    }
    if !metadata.is_file() {
        return Ok(unknown("neither a file nor a link", &metadata));
    }
    look_into(place, how)
}

fn look_into(place: &Path, how: &Look<'_>) -> Result<FileNow, Error> {
    let (file, metadata) = match regular_file::open(place, Links::Refuse) {
        Ok(open) => open,
        Err(error) => return Ok(FileNow::Unknown { why: without_path(&error), stat: stat(place) }),
    };
    let mode = mode(&metadata);
    let limit_bytes = if let Look::Copy(_, limit_bytes) = how { *limit_bytes } else { COPY_LIMIT_BYTES };
    if metadata.len() > limit_bytes {
        return Ok(unknown(&format!("larger than {limit_bytes} bytes"), &metadata));
    }
    // A file of length 0 is not read: see `regular_file`. One that grows meanwhile is cut off where it ended.
    let mut content = file.take(metadata.len());
    let copied = match how {
        Look::Copy(blobs, _) => {
            blobs.put_reader(place, &mut content).map(|stored| (Some(stored.id), stored.sha256, stored.bytes))
        }
        Look::Hash => {
            let hashed = hash::of_reader(&mut content).at(place).map_err(CopyError::Reading);
            hashed.map(|(sha256, bytes)| (None, sha256, bytes))
        }
    };
    match copied {
        Ok((blob, sha256, bytes)) => Ok(FileNow::File(Content { blob, sha256, bytes, mode })),
        Err(CopyError::Reading(error)) => Ok(unknown(&without_path(&error), &metadata)),
        Err(CopyError::Writing(error)) => Err(error),
    }
}

fn unknown(why: &str, metadata: &Metadata) -> FileNow {
    FileNow::Unknown { why: why.to_owned(), stat: Some(Stat::of(metadata)) }
}

/// What tells whether a file was changed, if anything is there.
pub(super) fn stat(place: &Path) -> Option<Stat> {
    fs::symlink_metadata(place).ok().map(|metadata| Stat::of(&metadata))
}

/// Whether nothing is at a place in a folder that is there.
pub(super) fn is_missing(place: &Path) -> bool {
    let has_folder = place.parent().is_some_and(Path::is_dir);
    has_folder && fs::symlink_metadata(place).is_err_and(|error| is_absent(&error))
}

/// Whether nothing of the project is at a place that was in it: it is not there, or a folder above it has become a link.
pub(super) fn is_gone(place: &Path) -> bool {
    let is_behind_link = place.parent().is_some_and(|folder| Real.resolve(folder) != folder);
    is_behind_link || fs::symlink_metadata(place).is_err_and(|error| is_absent(&error))
}

/// Why, for a reason that stands beside the path.
fn without_path(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => in_words(source),
        Error::NotAFile(_) => "neither a file nor a link".to_owned(),
        error => error.to_string(),
    }
}

/// Whether nothing is there: a file in the place of a folder above it has nothing below it.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What became of a file; `None` if nothing did.
pub(super) fn change(path: &str, before: &FileNow, after: &FileNow) -> Option<FileState> {
    let is_same = match (before, after) {
        (FileNow::File(one), FileNow::File(other)) => (&one.sha256, one.mode) == (&other.sha256, other.mode),
        (one, other) => one == other,
    };
    if is_same {
        return None;
    }
    let mut file = FileState::new(path);
    match before {
        FileNow::Absent => file.before = Before::Absent,
        FileNow::File(Content { blob, sha256, mode, .. }) => {
            file.before = match blob {
                Some(id) => Before::Blob { id: id.clone(), hash: Some(sha256.clone()) },
                None => Before::Failed(None),
            };
            file.mode = *mode;
        }
        // The target is all of its content.
        FileNow::Link { target } => file.symlink = Some(target.clone()),
        FileNow::Folder => file.before = Before::Failed(Some("a folder".to_owned())),
        FileNow::Unknown { why, .. } => file.before = Before::Failed(Some(why.clone())),
    }
    match after {
        // In the place of a file a folder is no file either.
        FileNow::Absent | FileNow::Folder => file.after = After::Absent,
        FileNow::File(Content { sha256, bytes, mode, .. }) => {
            file.after = After::Hash(sha256.clone());
            file.mode_after = *mode;
            file.extra.insert("size".to_owned(), (*bytes).into());
        }
        FileNow::Link { target } => file.after = After::Symlink(target.clone()),
        FileNow::Unknown { .. } => {}
    }
    Some(file)
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777)
}

/// Windows has no permission bits.
#[cfg(not(unix))]
fn mode(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> Option<(u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<(u64, i64, i64)> {
    None
}
