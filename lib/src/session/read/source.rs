//! Where one session is: a file or files, or rows of a database.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rayon::prelude::*;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::dialect::layout::{Format, Layout};
use crate::dialect::{Dialect, IndexTitle};
use crate::model::error::{Error, Result};
use crate::model::json;
use crate::model::regular_file;
use crate::session::read::detect;
use crate::session::read::files::{Contents, Files, OpenFile, head_of, open_file};
use crate::session::read::format;
use crate::session::read::rows::{self, SessionRows, Table};
use crate::session::read::title_index::TitleIndex;
use crate::session::read::{segments, title_index};

/// A sidecar is a few lines: a larger file is not one.
pub(crate) const SIDECAR_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// A further file of a session, such as `snapshots.jsonl`: it describes files and does not contain them.
pub(crate) const COMPANION_LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// How much of a log is read to detect its dialect.
const LOG_HEAD_BYTES: u64 = 256 * 1024;

/// Where one session is.
#[derive(Clone)]
pub struct Source {
    /// Its dialect.
    pub dialect: &'static dyn Dialect,
    /// Its first file.
    pub path: PathBuf,
    /// The file's format and the files beside it.
    pub layout: Layout,
    /// Earlier files of the same session, the oldest first. See `segments.rs`.
    pub(crate) earlier: Vec<PathBuf>,
    /// Files with the names of its own in other folders of the store: they do not count.
    pub(crate) copies: Vec<PathBuf>,
    /// Its title in the agent's list of titles, if there is one.
    pub(crate) index_title: Option<IndexTitle>,
    /// That list, if it cannot be read.
    pub(crate) unreadable_index: Option<UnreadableFile>,
    /// Which session of a database it is.
    pub key: Option<String>,
    /// Its rows, once the database was queried.
    pub(crate) rows: Option<SessionRows>,
    /// Where its agent had it, if this is a copy that was kept. See `kept.rs`.
    pub(crate) kept_from: Option<PathBuf>,
}

/// A file beside a log that is there and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableFile {
    pub(crate) path: PathBuf,
    /// Why, with the path.
    pub(crate) why: String,
}

impl UnreadableFile {
    pub(crate) fn new(path: PathBuf, error: &Error) -> UnreadableFile {
        UnreadableFile { path, why: error.to_string() }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.dialect.name(), self.path.display())
    }
}

/// Several sources, or the error in their place.
pub(crate) fn each(sources: Result<Vec<Source>>) -> Vec<Result<Source>> {
    sources.map_or_else(|error| vec![Err(error)], |sources| sources.into_iter().map(Ok).collect())
}

/// The root of a layout that a file is in, if names and folders match. `layout` has a root relative to its store.
pub(crate) fn root_of<'p>(layout: &Layout, file: &'p Path) -> Option<&'p Path> {
    let root = file.ancestors().nth(layout.pattern.split('/').count())?;
    // File names alone match too easily: the folder of the store must match too.
    (layout.fits(file) && root.ends_with(&layout.root)).then_some(root)
}

impl Source {
    /// A session file of a dialect, in any folder.
    pub fn file(dialect: &'static dyn Dialect, path: &Path) -> Source {
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut layouts = dialect.layouts_in(&folder);
        let fitting = layouts.iter().position(|layout| layout.fits(path)).unwrap_or(0);
        let layout = if fitting < layouts.len() { Some(layouts.swap_remove(fitting)) } else { None };
        let layout = layout.unwrap_or(Layout {
            root: folder,
            pattern: "*",
            companions: &[],
            sidecar: None,
            format: Format::Lines,
        });
        let layout = Layout { format: format::of_file(layout.format, path), ..layout };
        // A file with another name is only a log: the files beside it do not belong to it.
        let layout = if layout.names(path) { layout } else { Layout { companions: &[], sidecar: None, ..layout } };
        let source = Source::new(dialect, path.to_path_buf(), layout).with_earlier_files();
        match source.store_root() {
            Some(root) => title_index::read(dialect, &root).describe(source),
            None => source,
        }
    }

    pub(crate) fn new(dialect: &'static dyn Dialect, path: PathBuf, layout: Layout) -> Source {
        let (earlier, copies, index_title, unreadable_index) = (Vec::new(), Vec::new(), None, None);
        let (key, rows, kept_from) = (None, None, None);
        Source { dialect, path, layout, earlier, copies, index_title, unreadable_index, key, rows, kept_from }
    }

    /// Whether the session has files beside its log that are read with it.
    pub fn has_further_files(&self) -> bool {
        !self.earlier.is_empty() || !self.layout.companions.is_empty()
    }

    /// Where its agent had it, if this is a copy that was kept.
    pub fn kept_from(&self) -> Option<&Path> {
        self.kept_from.as_deref()
    }

    /// The folder of the layout that the file is in, if it is in a store.
    fn store_root(&self) -> Option<PathBuf> {
        let layouts = self.dialect.layouts_in(Path::new(""));
        layouts.iter().find_map(|layout| root_of(layout, &self.path)).map(Path::to_path_buf)
    }

    /// Every session of a file: a database can hold many.
    pub fn in_file(dialect: &'static dyn Dialect, path: &Path) -> Result<Vec<Source>> {
        Source::file(dialect, path).sessions()
    }

    fn sessions(self) -> Result<Vec<Source>> {
        let Format::Rows(rows) = self.layout.format else { return Ok(vec![self]) };
        let of_row = |(key, rows)| Source { key: Some(key), rows: Some(rows), ..self.clone() };
        Ok(rows::sessions(&self.path, rows)?.into_iter().map(of_row).collect())
    }

    /// Every session that a layout holds.
    pub fn walk(dialect: &'static dyn Dialect, layout: &Layout) -> Vec<Result<Source>> {
        joined(Source::files(dialect, layout))
    }

    /// Every file of a layout that holds sessions.
    fn files(dialect: &'static dyn Dialect, layout: &Layout) -> Vec<Result<Source>> {
        let in_file = |path: PathBuf| {
            let is_mixed = matches!(layout.format, Format::ByContent { mixed: true, .. });
            if is_mixed && detect::guess_content(&path)?.dialect.name() != dialect.name() {
                return Ok(Vec::new());
            }
            let layout = Layout { format: format::of_file(layout.format, &path), ..layout.clone() };
            Source::new(dialect, path, layout).sessions()
        };
        let is_session = |path: &Result<PathBuf>| path.as_ref().map_or(true, |path| dialect.is_session_file(path));
        let files = layout.files().into_iter().filter(is_session);
        files.flat_map(|path| each(path.and_then(in_file))).collect()
    }

    /// Every session of some layouts, each once: where two layouts match a file, the more exact one has it.
    pub fn walk_all(layouts: &[(&'static dyn Dialect, Layout)]) -> Vec<Result<Source>> {
        let mut found: Vec<Result<Source>> = Vec::new();
        let mut known: HashMap<(OsString, Option<String>), usize> = HashMap::new();
        let of_each: Vec<_> = layouts.par_iter().map(|(dialect, layout)| Source::files(*dialect, layout)).collect();
        for source in of_each.into_iter().flatten() {
            let Ok(source) = source else {
                found.push(source);
                continue;
            };
            match known.entry((source.path.clone().into_os_string(), source.key.clone())) {
                Entry::Vacant(place) => {
                    place.insert(found.len());
                    found.push(Ok(source));
                }
                Entry::Occupied(place) => {
                    let before = &mut found[*place.get()];
                    if before.as_ref().is_ok_and(|before| before.layout.exactness() < source.layout.exactness()) {
                        *before = Ok(source);
                    }
                }
            }
        }
        joined(found)
    }

    /// The other sessions of the store that contains the file; without a store, those in the same folder.
    pub fn neighbours(&self) -> Vec<Source> {
        let beside = || {
            let layouts = self.dialect.layouts_in(Path::new(""));
            let pattern = layouts.first()?.pattern.rsplit('/').next()?;
            let root = self.path.parent()?.to_path_buf();
            Some(Layout { root, pattern, ..self.layout.clone() })
        };
        let of_store = self.store().map(|store| self.dialect.layouts_in(&store));
        let layouts = of_store.unwrap_or_else(|| beside().into_iter().collect());
        let layouts: Vec<_> = layouts.into_iter().map(|layout| (self.dialect, layout)).collect();
        Source::walk_all(&layouts).into_iter().filter_map(Result::ok).collect()
    }

    /// The size of its files; those that are not there have none.
    pub(crate) fn size_bytes(&self) -> u64 {
        let files = self.earlier.iter().chain([&self.path]);
        files.filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
    }

    /// The store that contains the file, if any: what `--store` would name.
    pub fn store(&self) -> Option<PathBuf> {
        let layouts = self.dialect.layouts_in(Path::new(""));
        layouts.iter().find_map(|layout| {
            let root = root_of(layout, &self.path)?;
            root.ancestors().nth(layout.root.components().count()).map(Path::to_path_buf)
        })
    }

    /// The folder of the session's file backups, if the agent keeps them in one.
    pub(crate) fn file_history(&self) -> Option<PathBuf> {
        self.dialect.file_history(&self.store()?, &self.path)
    }

    /// A number that changes when a file of the session does: its place, length, times and inode, of the log and of the files beside it.
    ///
    /// No file is opened. `None` if the log is gone.
    pub fn stamp(&self) -> Option<u64> {
        let mut stamp = Xxh3::new();
        let log = fs::metadata(&self.path).ok()?;
        regular_file::stamp(&log, &mut stamp);
        let companions = self.layout.companions.iter().map(|name| self.path.with_file_name(name));
        let further = self.earlier.iter().chain(&self.copies).cloned();
        for path in companions.chain(self.named_sidecar()).chain(further) {
            if let Ok(metadata) = fs::metadata(&path) {
                stamp.update(path.as_os_str().as_encoded_bytes());
                regular_file::stamp(&metadata, &mut stamp);
            }
        }
        if let Some(title) = &self.index_title {
            stamp.update(title.text.as_bytes());
        }
        Some(stamp.digest())
    }

    /// The bytes of its further files.
    pub(crate) fn size_of_companions(&self) -> u64 {
        let companions = self.layout.companions.iter().map(|name| self.path.with_file_name(name));
        companions.filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).sum()
    }

    /// The session's name by its path: used when its content has no id.
    pub fn name(&self) -> String {
        if let Some(name) = self.key.clone().or_else(|| self.dialect.session_id_from_path(&self.path)) {
            return name;
        }
        let name = self.path.file_stem();
        name.filter(|name| *name != "-")
            .map_or_else(|| "stdin".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The file beside the log with facts about the session, if anything has its name.
    pub(crate) fn sidecar(&self) -> Option<PathBuf> {
        self.named_sidecar().filter(|path| regular_file::is_there(path))
    }

    /// What that file would be called.
    pub(crate) fn named_sidecar(&self) -> Option<PathBuf> {
        self.layout.sidecar_of(&self.path)
    }

    /// The log that a row of a database refers to; the path itself if there is no readable log.
    ///
    /// The path is untrusted: only a regular file with an agent's log is accepted.
    pub(crate) fn log(&self) -> Result<Option<std::result::Result<Source, String>>> {
        let Format::Rows(_) = self.layout.format else { return Ok(None) };
        let path = self.table()?.log(&self.path)?;
        Ok(path.map(|path| self.log_at(Path::new(&path)).ok_or(path)))
    }

    /// The row of a database that refers to a log: the log does not repeat it.
    pub(crate) fn row_beside_log(&self) -> Result<Option<Value>> {
        let Some(Ok(_)) = self.log()? else { return Ok(None) };
        let mut row = None;
        self.table()?.each(&self.path, |_, json| row = json.ok().and_then(json::parse_bytes))?;
        Ok(row)
    }

    /// The session's rows.
    fn table(&self) -> Result<Table> {
        let Format::Rows(rows) = self.layout.format else { return Err(Error::NoSessions(self.path.clone())) };
        let session = self.rows.clone().map_or_else(|| rows::only(&self.path, rows), Ok)?;
        Ok(Table::new(rows, session))
    }

    fn log_at(&self, path: &Path) -> Option<Source> {
        let leaves_folder = path.components().any(|part| part == std::path::Component::ParentDir);
        let path = self.path.parent()?.join(path);
        let head = (!leaves_folder).then(|| head_of(&path, LOG_HEAD_BYTES).ok())??;
        let dialect = detect::of_bytes(&head);
        let log = Source::file(dialect, &path);
        let is_log = dialect.name() != "unknown" && !head.is_empty() && !matches!(log.layout.format, Format::Rows(_));
        is_log.then_some(log)
    }

    /// Opens its files. A further file that cannot be opened does not hide the session.
    pub(crate) fn open(&self) -> Result<(Files, Vec<UnreadableFile>)> {
        if let Format::Rows(_) = self.layout.format {
            let table = self.table()?;
            let unreadable = table.unreadable().cloned().into_iter().collect();
            let contents = Contents::Rows(table);
            let file =
                OpenFile { path: self.path.clone(), contents, torn: None, is_database: true, loaded: Vec::new() };
            return Ok((Files(vec![file]), unreadable));
        }
        self.open_beside(open_file(&self.path)?)
    }

    /// Opens the files that are read with the first one, which is open.
    pub(crate) fn open_beside(&self, first: OpenFile) -> Result<(Files, Vec<UnreadableFile>)> {
        if first.is_database {
            return Err(Error::NoSessions(self.path.clone()));
        }
        let (mut files, mut unreadable) = (vec![first], Vec::from_iter(self.unreadable_index.clone()));
        unreadable.extend(self.own_folders().into_iter().filter_map(not_a_folder));
        for name in self.layout.companions {
            let path = self.path.with_file_name(name);
            if regular_file::is_there(&path) {
                match open_companion(&path) {
                    Ok(file) => files.push(file),
                    Err(error) => unreadable.push(UnreadableFile::new(path, &error)),
                }
            }
        }
        for path in self.earlier.iter().rev() {
            match open_file(path) {
                Ok(file) => files.push(file),
                Err(error) => unreadable.push(UnreadableFile::new(path.clone(), &error)),
            }
        }
        Ok((Files(files), unreadable))
    }
}

/// The sessions of some files, with the titles that their agent keeps elsewhere; errors come first.
fn joined(files: Vec<Result<Source>>) -> Vec<Result<Source>> {
    let (mut sources, mut joined) = (Vec::with_capacity(files.len()), Vec::with_capacity(files.len()));
    for file in files {
        match file {
            Ok(source) => sources.push(source),
            Err(error) => joined.push(Err(error)),
        }
    }
    // There are a few roots, and thousands of sessions.
    let mut indexes: Vec<(&str, PathBuf, TitleIndex)> = Vec::new();
    for source in segments::join(sources) {
        let Source { dialect, layout: Layout { root, .. }, .. } = &source;
        let is_its = |(name, of, _): &(&str, PathBuf, TitleIndex)| *name == dialect.name() && of == root;
        let at = indexes.iter().position(is_its).unwrap_or_else(|| {
            indexes.push((dialect.name(), root.clone(), title_index::read(*dialect, root)));
            indexes.len() - 1
        });
        joined.push(Ok(indexes[at].2.describe(source)));
    }
    joined
}

/// Something else in the place of a folder: nothing in it can be found.
fn not_a_folder(path: PathBuf) -> Option<UnreadableFile> {
    let error = match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => return None,
        Ok(_) => io::Error::from(io::ErrorKind::NotADirectory),
        Err(_) if !regular_file::is_there(&path) => return None,
        Err(error) => error,
    };
    let error = Error::Io { path: path.clone(), source: error };
    Some(UnreadableFile::new(path, &error))
}

fn open_companion(path: &Path) -> Result<OpenFile> {
    let file = open_file(path)?;
    regular_file::check_length(path, file.len()?, COMPANION_LIMIT_BYTES)?;
    Ok(file)
}
