//! Where a dialect's sessions are stored, and the walk that finds them.

use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::model::error::{At, Error, Result};

/// One place where a dialect stores sessions.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder to start in.
    pub root: PathBuf,
    /// The sessions' files below it; `*` matches any part of a name: `*/messages.jsonl`.
    pub pattern: &'static str,
    /// Further files of the same session beside its first one, read after it.
    pub companions: &'static [&'static str],
    /// A file beside it with facts about the session, used only if the log does not have them. `*` is the rest of the log's own name
    /// without its extension; only logs that begin as it does have one.
    pub sidecar: Option<&'static str>,
    /// The format of the file.
    pub format: Format,
}

/// The format of a session's file.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// One JSON value per line.
    Lines,
    /// One JSON document.
    Document,
    /// Rows of a SQLite database.
    Rows(&'static Rows),
    /// One of several, depending on the content. No session that was found has this format.
    ByContent {
        /// The possible formats.
        formats: &'static [Format],
        /// Other agents store files with such names there, so the content also decides the dialect.
        mixed: bool,
    },
}

/// How sessions are stored in a SQLite database.
#[derive(Debug)]
pub struct Rows {
    /// The table of the sessions. A view with this name does not count.
    pub table: &'static str,
    /// The columns that distinguish it from another program's table of this name, in lower case.
    pub columns: &'static [&'static str],
    /// Selects each session's key and name.
    pub sessions: &'static str,
    /// Selects the rows of the session with key `?1` in order: the rowid and the row, as JSON text or as columns.
    pub rows: &'static str,
    /// Selects row `?1`, as JSON text or as columns.
    pub row: &'static str,
    /// Columns with JSON lists as text: a row as JSON has the lists themselves.
    pub lists: &'static [&'static str],
    /// If the session is in a log file: the column with its path, and the query for the session with key `?1`.
    pub log: Option<(&'static str, &'static str)>,
    /// Further tables that a database may have with the records of a session: the first of these that can be asked counts, for each
    /// session that has rows there.
    pub records: &'static [RecordRows],
}

/// Records of a session in rows of a table of their own.
#[derive(Debug)]
pub struct RecordRows {
    /// Selects the records of the session with key `?1` in order: the rowid and the JSON text.
    pub rows: &'static str,
    /// Selects the JSON text of record `?1`.
    pub row: &'static str,
    /// Whether a log that the session refers to comes before them.
    pub follows_log: bool,
}

/// A folder with more entries is not a store of sessions.
const ENTRIES_PER_FOLDER: usize = 200_000;

impl Layout {
    /// Files with a JSON value per line, and nothing beside them.
    pub fn lines(root: impl Into<PathBuf>, pattern: &'static str) -> Layout {
        Layout { root: root.into(), pattern, companions: &[], sidecar: None, format: Format::Lines }
    }

    /// Every file that matches the pattern, in the order of names; each unreadable place is an error.
    pub fn files(&self) -> Vec<Result<PathBuf>> {
        if let Err(error) = check_root(&self.root) {
            return vec![Err(error)];
        }
        let mut found = vec![Ok(self.root.clone())];
        let parts: Vec<&str> = self.pattern.split('/').collect();
        for (depth, part) in parts.iter().enumerate() {
            let last = depth + 1 == parts.len();
            // Folders are listed in parallel: there are thousands.
            found = found
                .into_par_iter()
                .flat_map_iter(|folder| match folder {
                    Ok(folder) => matching(&folder, part, last, self.is_mixed()),
                    Err(error) => vec![Err(error)],
                })
                .collect();
        }
        found
    }

    /// Whether other agents store files with such names there.
    fn is_mixed(&self) -> bool {
        matches!(self.format, Format::ByContent { mixed: true, .. })
    }

    /// Whether the name of a file matches, whatever its folder.
    pub(crate) fn names(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.pattern.rsplit('/').next().is_some_and(|part| name_matches(part, &name))
    }

    /// What the file beside a log would be called; `None` if such a log has none.
    pub(crate) fn sidecar_of(&self, log: &Path) -> Option<PathBuf> {
        let name = self.sidecar?;
        let Some((before, after)) = name.split_once('*') else { return Some(log.with_file_name(name)) };
        let stem = log.file_stem().unwrap_or_default().to_string_lossy();
        stem.starts_with(before).then(|| log.with_file_name(format!("{stem}{after}")))
    }

    /// The number of fixed characters in the pattern: of two layouts that match a file, the more exact one applies.
    pub(crate) fn exactness(&self) -> usize {
        self.pattern.len() - self.pattern.matches('*').count()
    }

    /// Whether a path matches the pattern, whatever its root.
    pub fn fits(&self, path: &Path) -> bool {
        let mut parts = path.components().rev();
        self.pattern
            .rsplit('/')
            .all(|part| parts.next().is_some_and(|name| name_matches(part, &name.as_os_str().to_string_lossy())))
    }
}

/// Something else in the place of the folder: no session in it can be found. A folder that is missing is no error.
fn check_root(root: &Path) -> Result<()> {
    match fs::metadata(root) {
        Ok(metadata) if !metadata.is_dir() => Err(io::Error::from(io::ErrorKind::NotADirectory)).at(root),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The entries of a folder that match a part of the pattern, and every error that may hide others. In a mixed folder, other folders
/// may have the name of a file.
fn matching(folder: &Path, part: &str, last: bool, is_mixed: bool) -> Vec<Result<PathBuf>> {
    let is_named = !part.contains('*');
    let wanted = |entry: Entry| {
        let kind = entry.kind();
        let path = entry.path;
        match kind {
            Ok(kind) if last && kind.is_file() || !last && kind.is_dir() => Some(Ok(path)),
            Ok(kind) if last && kind.is_dir() && is_mixed => None,
            Ok(_) if last => Some(Err(Error::NotAFile(path))),
            // A name with `*` fits files that are not meant.
            Ok(_) if is_named => Some(Err(io::Error::from(io::ErrorKind::NotADirectory)).at(&path)),
            Ok(_) => None,
            // A broken link in the place of a session is reported.
            Err(error) if is_absence(&error) && !(last && path.is_symlink()) => None,
            Err(source) => Some(Err(Error::Io { path, source })),
        }
    };
    if is_named {
        return wanted(Entry { path: folder.join(part), listed_as: None }).into_iter().collect();
    }
    match fs::read_dir(folder) {
        Ok(entries) => {
            let entries = entries.map(|entry| entry.map(Entry::listed));
            let listed = list(folder, entries, part, ENTRIES_PER_FOLDER);
            listed.into_iter().filter_map(|entry| entry.map_or_else(|error| Some(Err(error)), wanted)).collect()
        }
        Err(error) if is_absence(&error) => Vec::new(),
        Err(error) => vec![Err(error).at(folder)],
    }
}

/// Something in a folder.
#[derive(Debug)]
struct Entry {
    path: PathBuf,
    /// What the folder itself says it is, where the system stores that in folders.
    listed_as: Option<FileType>,
}

impl Entry {
    fn listed(entry: DirEntry) -> Entry {
        Entry { path: entry.path(), listed_as: entry.file_type().ok() }
    }

    /// What it is, or what it leads to: a store may be a link. Only a link is looked at, because there are thousands of entries.
    fn kind(&self) -> io::Result<FileType> {
        match self.listed_as.filter(|kind| !kind.is_symlink()) {
            Some(kind) => Ok(kind),
            None => fs::metadata(&self.path).map(|metadata| metadata.file_type()),
        }
    }
}

/// The entries whose names match, in the order of names, followed by the errors.
fn list(
    folder: &Path,
    mut entries: impl Iterator<Item = io::Result<Entry>>,
    part: &str,
    limit: usize,
) -> Vec<Result<Entry>> {
    let (mut matching, mut errors) = (Vec::new(), Vec::new());
    for entry in entries.by_ref().take(limit) {
        match entry {
            Ok(entry) if entry.path.file_name().is_some_and(|name| name_matches(part, &name.to_string_lossy())) => {
                matching.push(entry);
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    if entries.next().is_some() {
        errors.push(io::Error::other(format!("more than {limit} entries; the rest is ignored")));
    }
    // Only the last parts of the paths differ.
    matching.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    matching.into_iter().map(Ok).chain(errors.into_iter().map(|error| Err(error).at(folder))).collect()
}

/// Whether nothing is there, or only a broken link.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The extensions of the files beside a converted session. They are not sessions.
const BESIDE_CONVERTED: [&str; 2] = [".scrollback.json", ".scrollback.original"];

/// Whether a file of this name belongs to a converted session.
pub(crate) fn is_beside_converted(name: &str) -> bool {
    BESIDE_CONVERTED.iter().any(|ending| name.ends_with(ending))
}

/// The files that a conversion writes beside a converted session: a description of the original, and a copy of it.
pub(crate) fn beside_converted(converted: &Path) -> [PathBuf; 2] {
    BESIDE_CONVERTED.map(|ending| {
        let mut name = converted.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    })
}

/// The end of the name of a copy that is not complete: its session is still elsewhere.
pub(crate) const MOVING: &str = ".moving";

/// Whether a file or folder of this name is a copy that is not complete.
pub(crate) fn is_moving(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(MOVING)
}

/// What may follow the extension of a log: its compression. Backup copies do not match.
const PACKED_ENDINGS: [&str; 3] = ["", ".zst", ".gz"];

/// Matches a name against a pattern with any number of `*`. A `*` after `.jsonl` matches the extension of a compressed log.
fn name_matches(pattern: &str, name: &str) -> bool {
    if is_beside_converted(name) || is_moving(name) {
        return false;
    }
    if let Some(log) = pattern.strip_suffix('*').filter(|log| log.ends_with(".jsonl")) {
        let unpacked = PACKED_ENDINGS.into_iter().filter_map(|ending| name.strip_suffix(ending));
        return unpacked.into_iter().any(|name| name_matches(log, name));
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_part_of_a_name() {
        for (pattern, name, fits) in [
            ("*", "anything", true),
            ("messages.jsonl", "messages.jsonl", true),
            ("messages.jsonl", "messages.jsonl.bak", false),
            ("*.json*", "chat.json.scrollback.json", false),
            ("*", ".s1.0123456789abcdef.moving", false),
            ("rollout-*.jsonl", "rollout-1-2.jsonl", true),
            ("rollout-*.jsonl", "rollout-.json", false),
            ("a*a", "a", false),
            ("*.jsonl*", "x.jsonl", true),
            ("*.jsonl*", "x.jsonl.zst", true),
            ("*.jsonl*", "x.jsonl.gz", true),
            ("*.jsonl*", "x.jsonl.before", false),
            ("*.jsonl*", "x.jsonl.zst.bak", false),
        ] {
            assert_eq!(name_matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_found_by_pattern_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["s1/messages.jsonl", "s2/messages.jsonl", "s2/other.jsonl", "deep/er/messages.jsonl"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir_all(dir.path().join("s3/messages.jsonl")).unwrap();
        let layout = Layout::lines(dir.path(), "*/messages.jsonl");
        let (found, errors): (Vec<_>, Vec<_>) = layout.files().into_iter().partition(Result::is_ok);
        let found: Vec<PathBuf> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found, [dir.path().join("s1/messages.jsonl"), dir.path().join("s2/messages.jsonl")]);
        let errors: Vec<String> = errors.into_iter().map(|error| error.unwrap_err().to_string()).collect();
        assert!(errors.len() == 1 && errors[0].ends_with("s3/messages.jsonl: not a regular file"), "{errors:?}");
        assert!(layout.fits(Path::new("/x/y/messages.jsonl")));
    }

    #[cfg(unix)]
    #[test]
    fn other_things_in_the_place_of_a_file_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("gone.jsonl")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket.jsonl")).unwrap();
        let layout = Layout::lines(dir.path(), "*.jsonl");
        let errors: Vec<String> = layout.files().into_iter().map(|file| file.unwrap_err().to_string()).collect();
        assert!(errors[0].contains("gone.jsonl: "), "{errors:?}");
        assert!(errors[1].ends_with("socket.jsonl: not a regular file"), "{errors:?}");
    }

    #[test]
    fn unreadable_entries_of_a_folder_are_errors() {
        let folder = Path::new("store");
        let entries = || {
            let unreadable = Err(io::Error::from(io::ErrorKind::PermissionDenied));
            let entry = |path: &str| Ok(Entry { path: path.into(), listed_as: None });
            [entry("store/b"), unreadable, entry("store/x.txt"), entry("store/a")].into_iter()
        };
        let show = |limit| {
            let listed = list(folder, entries(), "*", limit);
            listed
                .into_iter()
                .map(|entry| entry.map_or_else(|error| error.to_string(), |entry| entry.path.display().to_string()))
        };
        let all: Vec<String> = show(4).collect();
        assert_eq!(all, ["store/a", "store/b", "store/x.txt", "store: permission denied"]);
        let cut: Vec<String> = show(3).collect();
        let rest = "store: more than 3 entries; the rest is ignored";
        assert_eq!(cut, ["store/b", "store/x.txt", "store: permission denied", rest]);
    }
}
