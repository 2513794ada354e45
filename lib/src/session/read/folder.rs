//! Every session in any folder.
//!
//! In a folder with the name of an agent's store, file names decide what is a session; elsewhere the content does.

use std::collections::HashSet;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use crate::dialect::layout::{Layout, is_beside_converted};
use crate::dialect::{self, Dialect};
use crate::model::error::{At, Error, Result};
use crate::model::home::Home;
use crate::session::read::detect;
use crate::session::read::files::open_file;
use crate::session::read::source::{Source, each, root_of};

/// The endings of session files: other files are ignored.
const ENDINGS: [&str; 7] = ["jsonl", "json", "zst", "gz", "db", "sqlite", "sqlite3"];

/// Stores are at most nine folders deep; deeper folders than this are not searched.
const FOLDERS_DEEP: usize = 32;

/// A tree of folders with more entries than this is not searched further.
const ENTRIES_SEARCHED: usize = 500_000;

/// The sessions of a folder.
pub struct InFolder {
    /// Its sessions, in the order of their paths; each unreadable file or folder is an error.
    pub sources: Vec<Result<Source>>,
    /// How many files with the right ending are not sessions, by name and content.
    pub ignored: usize,
}

/// The sessions in a folder and the folders below it: of one dialect, or of any.
pub fn sessions(folder: &Path, home: &Home, named: Option<&'static dyn Dialect>) -> InFolder {
    if let Some(dialect) = named {
        let layouts: Vec<_> = dialect.layouts_in(folder).into_iter().map(|layout| (dialect, layout)).collect();
        let sources = Source::walk_all(&layouts);
        if !sources.is_empty() {
            return InFolder { sources, ignored: 0 };
        }
    }
    let stores = Stores::of_all();
    let (mut found, mut ignored) = (Vec::new(), 0);
    for file in files(folder) {
        let owner = file.and_then(|path| {
            let owner = match named {
                Some(dialect) => Some(dialect),
                None => stores.owner(&path, folder).map_or_else(|| by_content(&path, home), Ok)?,
            };
            Ok((path, owner))
        });
        match owner {
            Ok((path, Some(dialect))) => found.extend(each(Source::in_file(dialect, &path))),
            Ok((path, None)) => ignored += usize::from(!stores.is_title_index(&path)),
            Err(error) => found.push(Err(error)),
        }
    }
    // A further file of a session is not a session.
    let readable = || found.iter().filter_map(|source| source.as_ref().ok());
    let companions =
        readable().flat_map(|source| source.layout.companions.iter().map(|name| source.path.with_file_name(name)));
    let earlier = readable().flat_map(|source| source.earlier.iter().chain(&source.copies).cloned());
    let further: HashSet<PathBuf> = companions.chain(earlier).collect();
    found.retain(|source| source.as_ref().map_or(true, |source| !further.contains(&source.path)));
    InFolder { sources: found, ignored }
}

/// Every dialect's layouts, with roots relative to a home, such as `.codex/sessions`.
struct Stores(Vec<(&'static dyn Dialect, Layout)>);

impl Stores {
    fn of_all() -> Stores {
        let anywhere = Home { dir: "/".into(), cwd: "/".into(), vars: Default::default() };
        let relative = |layout: Layout| {
            let root = layout.root.strip_prefix("/").map(Path::to_path_buf);
            Some(Layout { root: root.ok()?, ..layout })
        };
        let of = |dialect: &&'static dyn Dialect| {
            let layouts = dialect.layouts(&anywhere).into_iter().filter_map(relative);
            layouts.map(|layout| (*dialect, layout)).collect::<Vec<_>>()
        };
        Stores(dialect::all().iter().flat_map(of).collect())
    }

    /// Whether a file has the titles of an agent's sessions.
    fn is_title_index(&self, path: &Path) -> bool {
        let index = |(dialect, layout): &(&'static dyn Dialect, Layout)| dialect.title_index(&layout.root);
        self.0.iter().filter_map(index).any(|index| path.ends_with(index))
    }

    /// The dialect of a file in a store, `Some(None)` if it is not a session there, and `None` outside every store.
    fn owner(&self, path: &Path, folder: &Path) -> Option<Option<&'static dyn Dialect>> {
        let fits = |(dialect, layout): &&(&'static dyn Dialect, Layout)| {
            root_of(layout, path).is_some() && dialect.is_session_file(path)
        };
        // Of several, the first of the most exact ones.
        let best = self.0.iter().filter(fits).rev().max_by_key(|(_, layout)| layout.exactness());
        let is_inside = |(_, layout): &(&'static dyn Dialect, Layout)| {
            // All files in an agent's own folder are its own, unless the search starts inside it, such as in a work tree.
            let own = layout.root.parent().filter(|own| own.to_string_lossy().starts_with('.'));
            path.ancestors().skip(1).any(|dir| {
                dir.ends_with(&layout.root) || (dir.starts_with(folder) && own.is_some_and(|own| dir.ends_with(own)))
            })
        };
        match best {
            Some((dialect, _)) => Some(Some(*dialect)),
            None => self.0.iter().any(is_inside).then_some(None),
        }
    }
}

/// The dialect of a file. An unknown file counts too if it should contain records: lines, or broken JSON.
fn by_content(path: &Path, home: &Home) -> Result<Option<&'static dyn Dialect>> {
    let dialect = detect::of_file(path, home)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let counts = dialect.name() != "unknown" || name.contains(".jsonl") || is_broken_json(path)?;
    Ok(counts.then_some(dialect))
}

/// Whether it begins like JSON but is not one whole value: a whole value is some program's settings.
fn is_broken_json(path: &Path) -> Result<bool> {
    let file = open_file(path)?;
    let begins = matches!(file.read_at(0, 64)?.trim_ascii_start().first(), Some(b'{' | b'['));
    Ok(begins && serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file.reader(0))).is_err())
}

/// Every file that may be a session, in the order of paths. Links to folders are not followed: they can form a cycle.
fn files(folder: &Path) -> Vec<Result<PathBuf>> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    let (mut folders, mut searched) = (vec![(folder.to_path_buf(), 0)], 0);
    while let Some((folder, depth)) = folders.pop() {
        let too_much = |what: String| Error::Io { path: folder.clone(), source: std::io::Error::other(what) };
        let entries = match fs::read_dir(&folder) {
            Ok(_) if depth > FOLDERS_DEEP => {
                errors.push(too_much(format!("more than {FOLDERS_DEEP} folders deep; not searched")));
                continue;
            }
            Ok(entries) => entries,
            Err(source) => {
                errors.push(Error::Io { path: folder, source });
                continue;
            }
        };
        for entry in entries {
            searched += 1;
            if searched > ENTRIES_SEARCHED {
                errors.push(too_much(format!("more than {ENTRIES_SEARCHED} entries; the rest is not searched")));
                return sorted(files, errors);
            }
            let entry = entry.at(&folder).and_then(|entry| Ok((entry.path(), entry.file_type().at(&folder)?)));
            match entry {
                Ok((path, kind)) if kind.is_dir() => folders.push((path, depth + 1)),
                // A broken link or a device is reported when it is opened.
                Ok((path, _)) if may_be_session(&path) && !path.is_dir() => files.push(path),
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
    }
    sorted(files, errors)
}

fn may_be_session(path: &Path) -> bool {
    has_ending(path) && !is_beside_converted(&path.to_string_lossy())
}

fn sorted(mut files: Vec<PathBuf>, errors: Vec<Error>) -> Vec<Result<PathBuf>> {
    files.sort();
    files.into_iter().map(Ok).chain(errors.into_iter().map(Err)).collect()
}

/// Whether a file has the ending of a session file.
pub(crate) fn has_ending(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.contains(&ending.as_str())
}
