//! The titles that an agent keeps in one file for all its sessions: Codex writes a name that a person gave a session only there.
//!
//! The file is not part of any session: what is damaged in it or names no session is ignored.

use std::path::Path;

use hashbrown::HashMap;

use crate::dialect::{Dialect, IndexTitle};
use crate::model::regular_file::{self, Links};

/// A line for each time that a session was named: a larger file is something else.
const INDEX_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// The titles of the sessions below `root`, the folder of a layout, by session. The last one counts.
pub(crate) fn read(dialect: &dyn Dialect, root: &Path) -> HashMap<String, IndexTitle> {
    let bytes = dialect
        .title_index(root)
        .and_then(|path| regular_file::read(&path, INDEX_LIMIT_BYTES, Links::Follow).ok())
        .unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let titles = lines
        .filter_map(|line| dialect.title_from_index(line))
        .filter(|title| !title.text.trim().is_empty());
    titles.map(|title| (title.session.clone(), title)).collect()
}
