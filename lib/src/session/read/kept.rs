//! Copies of sessions that stay when their agent deletes or rewrites them: where they are, and what they are copies of.
//!
//! ```text
//! <root>/<dialect>/<store>/origin.json      which folder it is a copy of
//!                          …                its sessions, in the same places
//!                  <store>~2/…              what their agent has rewritten since, the newest first
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::Dialect;
use crate::model::home::Home;
use crate::model::regular_file::{self, Links};
use crate::session::read::source::Source;
use crate::session::read::title_index::{self, TitleIndex};

/// The folder of kept copies in a home.
pub(crate) fn root(home: &Home) -> PathBuf {
    home.data().join("kept")
}

/// The file that names the folder.
pub(crate) const ORIGIN: &str = "origin.json";

/// It has one path in it.
const ORIGIN_LIMIT_BYTES: u64 = 64 * 1024;

/// How often an agent's store is kept: more would be a loop.
const GENERATIONS_LIMIT: u32 = 1000;

/// A copy of an agent's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptStore {
    /// Where the copy is.
    pub(crate) folder: PathBuf,
    /// The agent's own folder.
    pub(crate) original: PathBuf,
    /// 1 for the sessions as they were last, more for what was rewritten since.
    pub(crate) generation: u32,
}

impl KeptStore {
    /// The copy of a store, whether it is there or not.
    pub(crate) fn of(root: &Path, dialect: &dyn Dialect, original: &Path, generation: u32) -> KeptStore {
        let name = format!("{:012x}", xxh3_64(original.as_os_str().as_encoded_bytes()) >> 16);
        let name = if generation > 1 { format!("{name}~{generation}") } else { name };
        KeptStore { folder: root.join(dialect.name()).join(name), original: original.to_path_buf(), generation }
    }

    /// Every generation of a store that is there.
    pub(crate) fn generations(root: &Path, dialect: &dyn Dialect, original: &Path) -> Vec<KeptStore> {
        let of = |generation| KeptStore::of(root, dialect, original, generation);
        (1..GENERATIONS_LIMIT).map(of).take_while(|kept| kept.folder.is_dir()).collect()
    }

    /// What the file that names the folder says.
    pub(crate) fn origin(&self) -> Value {
        json!({"store": self.original.to_string_lossy()})
    }

    /// Where its agent had a file of it.
    pub(crate) fn original_of(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.folder).ok().map(|below| self.original.join(below))
    }

    /// Every session in it.
    pub(crate) fn sources(&self, dialect: &'static dyn Dialect) -> Vec<Source> {
        let layouts: Vec<_> = dialect.layouts_in(&self.folder).into_iter().map(|layout| (dialect, layout)).collect();
        let found = Source::walk_all(&layouts).into_iter().filter_map(Result::ok);
        // Titles that the agent keeps in a file for all of its sessions stay where they are.
        let roots = dialect.layouts_in(&self.original).into_iter().map(|layout| layout.root);
        let mut titles: Vec<TitleIndex> = roots.map(|root| title_index::read(dialect, &root)).collect();
        let mut title = |source: &Source| titles.iter_mut().find_map(|titles| titles.take(source));
        found
            .filter_map(|source| {
                let kept_from = Some(self.original_of(&source.path)?);
                let index_title = source.index_title.clone().or_else(|| title(&source));
                Some(Source { kept_from, index_title, ..source })
            })
            .collect()
    }
}

/// Every copy of a store of this dialect.
pub(crate) fn stores(root: &Path, dialect: &dyn Dialect) -> Vec<KeptStore> {
    let folders = fs::read_dir(root.join(dialect.name())).into_iter().flatten().flatten();
    let mut stores: Vec<KeptStore> = folders.filter_map(|entry| store(root, dialect, &entry.path())).collect();
    stores.sort_by(|a, b| (&a.original, a.generation).cmp(&(&b.original, b.generation)));
    stores
}

/// The copy of a store in this folder, if its name says so too.
fn store(root: &Path, dialect: &dyn Dialect, folder: &Path) -> Option<KeptStore> {
    let origin = regular_file::read(&folder.join(ORIGIN), ORIGIN_LIMIT_BYTES, Links::Refuse).ok()?;
    let origin: Value = serde_json::from_slice(&origin).ok()?;
    let original = origin.get("store")?.as_str().map(PathBuf::from).filter(|path| path.is_absolute())?;
    let name = folder.file_name()?.to_string_lossy();
    let generation = name.split_once('~').map_or(Some(1), |(_, number)| number.parse().ok())?;
    Some(KeptStore::of(root, dialect, &original, generation)).filter(|kept| kept.folder == folder)
}
