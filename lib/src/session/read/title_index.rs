//! The titles that an agent keeps in one file for all its sessions: Codex writes a name that a person gave a session only there.
//!
//! The file is not part of any session: what is damaged in it or names no session is ignored. A file that cannot be read at all is an
//! issue of each session, because its name may be in there.

use std::path::Path;

use hashbrown::HashMap;

use crate::dialect::{Dialect, IndexTitle};
use crate::model::regular_file::{self, Links};
use crate::session::read::source::{Source, UnreadableFile};

/// A line for each time that a session was named: a larger file is something else.
const INDEX_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// The titles in an index, or why it cannot be read.
#[derive(Default)]
pub(crate) struct TitleIndex {
    titles: HashMap<String, IndexTitle>,
    unreadable: Option<UnreadableFile>,
}

impl TitleIndex {
    /// The title of a session.
    pub(crate) fn take(&mut self, source: &Source) -> Option<IndexTitle> {
        if self.titles.is_empty() { None } else { self.titles.remove(&source.name()) }
    }

    /// Adds what the index has about a session.
    pub(crate) fn describe(&mut self, mut source: Source) -> Source {
        source.index_title = self.take(&source);
        source.unreadable_index.clone_from(&self.unreadable);
        source
    }
}

/// The index of the sessions below `root`, the folder of a layout. Of several titles of a session, the last one counts.
pub(crate) fn read(dialect: &dyn Dialect, root: &Path) -> TitleIndex {
    let Some(path) = dialect.title_index(root).filter(|path| regular_file::is_there(path)) else {
        return TitleIndex::default();
    };
    match regular_file::read(&path, INDEX_LIMIT_BYTES, Links::Follow) {
        Ok(bytes) => TitleIndex { titles: titles(dialect, &bytes), unreadable: None },
        Err(error) => TitleIndex { titles: HashMap::new(), unreadable: Some(UnreadableFile::new(path, &error)) },
    }
}

fn titles(dialect: &dyn Dialect, bytes: &[u8]) -> HashMap<String, IndexTitle> {
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let titles = lines
        .filter_map(|line| dialect.title_from_index(line))
        .filter(|title| !title.text.trim().is_empty());
    titles.map(|title| (title.session.clone(), title)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Codex;

    #[test]
    fn a_damaged_index_gives_the_titles_that_are_whole() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        std::fs::create_dir(&sessions).unwrap();
        let index = Codex.title_index(&sessions).unwrap();
        let lines: &[&[u8]] = &[
            br#"{"id":"a","thread_name":"First name","updated_at":"2026-10-02T09:00:00Z"}"#,
            br#"{"id":"a","thread_name":"Second name"}"#,
            br#"{"id":"b","thread_name":"  "}"#,
            br#"{"id":7,"thread_name":"no id"}"#,
            br#"{"id":"c","thread_name":["no","name"]}"#,
            b"\xff\xfe not text",
            b"[1, 2",
            br#"{"id":"foreign","thread_name":"Of a session that is gone"}"#,
            br#"{"id":"d","thread_name":"to"#,
        ];
        std::fs::write(&index, lines.join(&b'\n')).unwrap();
        let titles = read(&Codex, &sessions).titles;
        assert_eq!(titles.get("a").map(|title| title.text.as_str()), Some("Second name"));
        let mut known: Vec<&str> = titles.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(known, ["a", "foreign"]);
        std::fs::remove_file(&index).unwrap();
        std::fs::create_dir(&index).unwrap();
        let index = read(&Codex, &sessions);
        assert!(index.titles.is_empty() && index.unreadable.is_some());
    }
}
