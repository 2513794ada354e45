//! `origin.json`: what a removed session was, and where its files were. It is untrusted.

use std::io;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{belongings, check_removable};
use crate::dialect;
use crate::model::error::{At, Result};
use crate::model::regular_file::{self, Links};
use crate::session::read::source::Source;

pub(super) const ORIGIN: &str = "origin.json";

/// A larger file is not an `origin.json`: it names a handful of files.
pub(super) const ORIGIN_LIMIT_BYTES: u64 = 1024 * 1024;

/// Names are cut to this length: with `~` and a number one is still a valid file name.
const NAME_CHARS: usize = 100;

/// What a removed session was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The dialect of its files.
    pub dialect: String,
    /// Its id.
    pub session: String,
    /// Its title, or its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The path of its first file.
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
    /// The path before.
    pub path: PathBuf,
    /// The name beside `origin.json`.
    pub name: String,
}

/// Gives each file a name in the trash: its own one, unless that is taken.
pub(super) fn name_in_trash(paths: Vec<PathBuf>) -> Vec<MovedFile> {
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

/// A folder name for a session's id.
pub(super) fn safe_name(id: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '@');
    let name: String = id.chars().take(NAME_CHARS).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let name = name.trim_matches('.');
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}

/// Reads the `origin.json` of a folder. Fails if it does not describe a session.
pub(super) fn read_origin(folder: &Path) -> Result<Origin> {
    let path = folder.join(ORIGIN);
    let text = regular_file::read(&path, ORIGIN_LIMIT_BYTES, Links::Refuse)?;
    let origin: Origin = serde_json::from_slice(&text).map_err(|_| invalid_origin()).at(&path)?;
    let is_plain = |path: &Path| {
        path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
    };
    let source = dialect::named(&origin.dialect).map(|dialect| Source::file(dialect, &origin.path));
    let source = source.filter(|source| is_plain(&origin.path) && check_removable(source).is_ok());
    let known: Vec<PathBuf> = source.as_ref().map(belongings).unwrap_or_default();
    // The earlier files of a session are found on the disk, and they were moved.
    let is_earlier =
        |path: &Path| is_plain(path) && source.as_ref().is_some_and(|source| source.can_have_earlier(path));
    let is_own = |file: &MovedFile| {
        (known.contains(&file.path) || is_earlier(&file.path)) && is_one_name(&file.name) && file.name != ORIGIN
    };
    if origin.files.is_empty() || !origin.files.iter().all(is_own) {
        return Err(invalid_origin()).at(&path);
    }
    Ok(origin)
}

pub(super) fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

fn invalid_origin() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not describe a removed session")
}
