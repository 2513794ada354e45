//! Which dialect a file is written in, told by its first records, else by its name.

use std::path::Path;

use crate::dialect::{self, Dialect, Event};
use crate::error::Result;
use crate::mend;
use crate::record::Kind;
use crate::source::open_file;

/// How much of a file is looked at: its header and a few records are in it.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// How many lines of it.
const LOOKED_AT_LINES: usize = 32;

/// The dialect of a file; `None` when no dialect knows what is in it.
pub fn of_file(path: &Path) -> Result<Option<&'static dyn Dialect>> {
    let begin = open_file(path)?.read_at(0, LOOKED_AT_BYTES as u64)?;
    Ok(of_bytes(&begin).or_else(|| of_name(path)))
}

/// The dialect that knows most of the first lines; of several, the one that is asked first.
///
/// ```
/// use scrollback::detect;
///
/// let log = br#"{"timestamp":"2026-11-15T10:00:00Z","type":"session_meta","payload":{"id":"a","cwd":"/x"}}"#;
/// assert_eq!(detect::of_bytes(log).map(|dialect| dialect.name()), Some("codex"));
/// assert!(detect::of_bytes(b"Dear diary,").is_none());
/// ```
pub fn of_bytes(begin: &[u8]) -> Option<&'static dyn Dialect> {
    let begin = &begin[..begin.len().min(LOOKED_AT_BYTES)];
    let lines: Vec<_> = begin
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty())
        .take(LOOKED_AT_LINES)
        .map(mend::whole)
        .collect();
    let mut best: Option<(&'static dyn Dialect, usize)> = None;
    for dialect in dialect::all() {
        let known = lines.iter().filter(|line| knows(*dialect, line)).count();
        if known > best.map_or(0, |(_, known)| known) {
            best = Some((*dialect, known));
        }
    }
    best.map(|(dialect, _)| dialect)
}

fn of_name(path: &Path) -> Option<&'static dyn Dialect> {
    let is_named_so = |dialect: &&dyn Dialect| {
        dialect.session_of(path).is_some() || dialect.layouts_in(Path::new("")).iter().any(|layout| layout.fits(path))
    };
    dialect::all().iter().copied().find(is_named_so)
}

/// Whether a line is a record of this dialect, and nothing about it is strange.
fn knows(dialect: &dyn Dialect, line: &str) -> bool {
    let (mut record, mut strange) = (false, false);
    let read = dialect.link(line, &mut |event| match event {
        Event::Record(link) => record |= link.kind != Kind::Other,
        Event::Unknown(_) | Event::Newer(_) | Event::Missing(_) => strange = true,
        _ => {}
    });
    read.is_ok() && record && !strange
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(dialect: &str) -> impl Iterator<Item = std::path::PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(dialect);
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
    }

    #[test]
    fn every_case_of_the_corpus_is_recognised() {
        for (dialect, file) in [("native", "messages.jsonl"), ("codex", "rollout.jsonl")] {
            for case in corpus(dialect) {
                let found = of_file(&case.join(file)).unwrap().map(|dialect| dialect.name());
                // What holds no record is known by its name alone.
                let nothing = found.is_none();
                assert!(found == Some(dialect) || nothing, "{} is {found:?}", case.display());
            }
        }
    }

    #[test]
    fn a_name_tells_what_an_empty_file_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout-2026-11-15T20-48-14-a.jsonl");
        std::fs::write(&path, "").unwrap();
        assert_eq!(of_file(&path).unwrap().map(|dialect| dialect.name()), Some("codex"));
    }
}
