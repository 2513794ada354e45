//! A session by a path: a session's file or folder, one session of a database, a shell's pipe.

use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::{Location, NameError, Places};
use crate::dialect::{self, Dialect};
use crate::model::error::{At, Error};
use crate::session::read::detect;
use crate::session::read::folder;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::view::listing;

/// Whether a name is written as a path: with a slash or the ending of a session file. Any other name is an id, so that no file
/// in the working directory hides a session.
pub(super) fn is_path(name: &str) -> bool {
    let has_slash = name.contains('/') || (cfg!(windows) && name.contains('\\'));
    !name.starts_with('@') && (has_slash || matches!(name, "." | "..") || folder::has_ending(Path::new(name)))
}

/// Whether a name is the path of something that exists.
pub(super) fn exists(name: &str, cwd: &Path) -> bool {
    is_path(name) && cwd.join(name).exists()
}

/// The session at a path.
pub(super) fn locate(name: &str, places: &Places) -> Result<Location, NameError> {
    let path = places.home.cwd.join(name.strip_prefix("./").unwrap_or(name));
    let metadata = fs::metadata(&path).at(&path)?;
    if metadata.is_dir() {
        let source = in_folder(&path, places.dialect);
        return source.map(Location::from).ok_or(NameError::NotASession(path));
    }
    if !metadata.is_file() {
        return if is_shell_pipe(&path) { Ok(Location::Pipe(path)) } else { Err(Error::NotAFile(path).into()) };
    }
    let dialect = places.dialect.map_or_else(|| detect::of_file(&path, &places.home), Ok)?;
    Ok(Source::file(dialect, &path).into())
}

/// The session of a database whose key, or else whose id, begins so; `None` when the file is not a database of several sessions.
pub(super) fn session_in(location: &Location, session: &str, now: Timestamp) -> Result<Option<Source>, NameError> {
    let Location::Source(file) = location else { return Ok(None) };
    let mut found = Source::in_file(file.dialect, &file.path)?;
    if found.len() == 1 && found.iter().all(|only| only.key.is_none()) {
        return Ok(None);
    }
    if let Some(exact) = found.iter().find(|row| row.key.as_deref() == Some(session)) {
        return Ok(Some(exact.clone()));
    }
    let has_key = |row: &Source| row.key.as_deref().is_some_and(|key| key.starts_with(session));
    // A row that names its log is listed under the log's id.
    let has_id =
        |row: &Source| listing::id(row, &ReadOptions::plain(now)).is_ok_and(|id| id.as_str().starts_with(session));
    let is_key = found.iter().any(has_key);
    found.retain(|row| if is_key { has_key(row) } else { has_id(row) });
    let count = found.len();
    let only = found.pop().filter(|_| count == 1);
    let error = || NameError::InFile { file: file.path.clone(), session: session.to_owned(), count };
    only.map(Some).ok_or_else(error)
}

/// `<(command)` of a shell is a pipe with a path. Other pipes and devices may never end.
fn is_shell_pipe(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev/fd")) || path == Path::new("/dev/stdin")
}

/// The session that a folder is: it holds a file with the name that a dialect gives to a session's file.
fn in_folder(folder: &Path, dialect: Option<&'static dyn Dialect>) -> Option<Source> {
    let of_dialect = |dialect: &'static dyn Dialect| {
        let layouts = dialect.layouts_in(Path::new(""));
        let names = layouts.iter().filter_map(|layout| layout.pattern.rsplit('/').next());
        let mut files = names.filter(|name| !name.contains('*')).map(|name| folder.join(name));
        files.find(|file| file.is_file()).map(|file| Source::file(dialect, &file))
    };
    match dialect {
        Some(dialect) => of_dialect(dialect),
        None => dialect::all().iter().copied().find_map(of_dialect),
    }
}
