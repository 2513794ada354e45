//! Whose file is it? By where it lies, else by what its first values say.

use std::borrow::Cow;
use std::path::Path;

use crate::dialect::{self, Dialect, Event, Unknown};
use crate::error::Result;
use crate::format::{self, DATABASE_MAGIC};
use crate::home::Home;
use crate::intake::VALUE_LIMIT_BYTES;
use crate::layout::Format;
use crate::mend;
use crate::packed::{self, Packing};
use crate::record::Kind;
use crate::source::{has_rows, open_file};

/// How many values are asked: agents begin with records of their own kinds.
const VALUES_ASKED: usize = 64;

/// The first window, what it grows by until a whole line is in it, and the last: a first line may hold a picture.
const WINDOW_BYTES: u64 = 64 * 1024;
const WINDOW_GROWTH: u64 = 8;
const WINDOW_LIMIT_BYTES: u64 = VALUE_LIMIT_BYTES as u64;

/// Whose a file is, as far as it can be told from what is there.
#[derive(Clone, Copy)]
pub struct Guess {
    /// The dialect; [`Unknown`] when it is nobody's.
    pub dialect: &'static dyn Dialect,
    /// Whether it stays so, whatever is appended.
    pub settled: bool,
}

/// The dialect of a file; [`Unknown`] when it is nobody's.
pub fn of_file(path: &Path, home: &Home) -> Result<&'static dyn Dialect> {
    guess_file(path, home).map(|guess| guess.dialect)
}

/// The dialect of a file that may grow.
pub fn guess_file(path: &Path, home: &Home) -> Result<Guess> {
    if let Some(dialect) = by_place(path, home) {
        return Ok(Guess { dialect, settled: true });
    }
    let file = open_file(path)?;
    let mut window = WINDOW_BYTES;
    loop {
        let head = file.read_at(0, window)?;
        if head.starts_with(DATABASE_MAGIC) {
            return of_database(path).map(|dialect| Guess { dialect, settled: true });
        }
        let whole = (head.len() as u64) < window;
        let named = by_name(path);
        let told = by_content(&head, named);
        // A document has no lines; its first record must be whole.
        let begun = format::is_document(&head)
            && format::elements(&mend::whole(format::content(&head)), 1).is_some_and(|records| records.is_empty());
        if whole || window >= WINDOW_LIMIT_BYTES || (memchr::memchr(b'\n', &head).is_some() && !begun) {
            // A name decides where content does not: between dialects that understand as much, or when none does.
            let dialect = told.or(named).unwrap_or(&Unknown);
            return Ok(Guess { dialect, settled: !whole || is_enough(&head) });
        }
        window = (window * WINDOW_GROWTH).min(WINDOW_LIMIT_BYTES);
    }
}

/// The dialect that keeps sessions in this database.
fn of_database(path: &Path) -> Result<&'static dyn Dialect> {
    for dialect in dialect::all() {
        let layouts = dialect.layouts_in(Path::new("")).into_iter().map(|layout| layout.format);
        for format in layouts.chain(dialect.formats().iter().copied()) {
            if let Format::Rows(rows) = format
                && has_rows(path, rows)?
            {
                return Ok(*dialect);
            }
        }
    }
    Ok(&Unknown)
}

/// The dialect in whose folders a file lies.
pub fn by_place(path: &Path, home: &Home) -> Option<&'static dyn Dialect> {
    // Two agents may share a folder: then the one whose names say more has the file.
    let exactness = |dialect: &dyn Dialect| {
        let layouts = dialect.layouts(home).into_iter();
        let fitting = layouts.filter(|layout| path.starts_with(&layout.root) && layout.fits(path));
        fitting.map(|layout| layout.exactness()).max()
    };
    let fitting = dialect::all().iter().filter_map(|dialect| Some((exactness(*dialect)?, *dialect)));
    fitting.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, dialect)| dialect)
}

/// The dialect of what was piped in; [`Unknown`] when it is nobody's.
pub fn of_bytes(bytes: &[u8]) -> &'static dyn Dialect {
    match Packing::of(bytes) {
        Some(_) => by_content(&packed::unpacked(bytes.to_vec()).0, None).unwrap_or(&Unknown),
        None => by_content(bytes, None).unwrap_or(&Unknown),
    }
}

/// The dialect of what is being piped in.
pub(crate) fn guess_bytes(bytes: &[u8]) -> Guess {
    Guess { dialect: of_bytes(bytes), settled: is_enough(bytes) }
}

/// Whether so much is there that more is not asked.
fn is_enough(head: &[u8]) -> bool {
    let is_value =
        |lf: &usize| head[..*lf].rsplit(|byte| *byte == b'\n').next().is_some_and(|line| !line.trim_ascii().is_empty());
    let all_are_there = || memchr::memchr_iter(b'\n', head).filter(is_value).nth(VALUES_ASKED - 1).is_some();
    head.len() as u64 >= WINDOW_LIMIT_BYTES || (all_are_there() && !format::is_document(head))
}

fn by_name(path: &Path) -> Option<&'static dyn Dialect> {
    let names_so = |dialect: &&&dyn Dialect| {
        let names = dialect.layouts_in(Path::new("")).into_iter().map(|layout| layout.pattern);
        // `*.jsonl` is nobody's name.
        names
            .filter_map(|pattern| pattern.rsplit('/').next())
            .any(|name| !name.starts_with('*') && path.ends_with(name))
    };
    dialect::all().iter().find(names_so).copied()
}

/// The dialect that understands the first values best, if any does; of several, the named one, else the first.
///
/// An empty file is whatever it is going to be: the named or the first dialect takes it.
fn by_content(head: &[u8], named: Option<&'static dyn Dialect>) -> Option<&'static dyn Dialect> {
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
    let lines = lines.map(|line| line.trim_ascii()).filter(|line| !line.is_empty());
    let mut texts: Vec<_> = lines.take(VALUES_ASKED).map(mend::whole).collect();
    // The lines of a document mean nothing: its records do.
    let document = mend::whole(format::content(head));
    if format::is_document(head)
        && let Some(records) = format::elements(&document, VALUES_ASKED)
    {
        if records.is_empty() {
            let reads_lists =
                |dialect: &&&dyn Dialect| dialect.formats().iter().any(|format| matches!(format, Format::Document));
            return dialect::all().iter().find(reads_lists).copied();
        }
        texts = records.into_iter().map(Cow::Borrowed).collect();
    }
    if texts.is_empty() {
        return named.or_else(|| dialect::all().first().copied());
    }
    let score = |dialect: &dyn Dialect| -> usize { texts.iter().map(|text| understanding(dialect, text)).sum() };
    let asked = named.into_iter().chain(dialect::all().iter().copied());
    let scored = asked.map(|dialect| (score(dialect), dialect));
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(score, _)| *score > 0).map(|(_, dialect)| dialect)
}

/// 0: not at all; 1: it could be; 3: it bears the dialect's own marks.
fn understanding(dialect: &dyn Dialect, text: &str) -> usize {
    let (mut known, mut doubtful) = (false, false);
    let read = dialect.link(text, &mut |event| match event {
        Event::Record(link) => known |= link.kind != Kind::Other,
        Event::Unknown(_) | Event::Missing(_) => doubtful = true,
        _ => {}
    });
    match read.is_ok() && known && !doubtful {
        false => 0,
        true if dialect.is_marked(text) => 3,
        true => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_values() {
        let name = |head: &str| of_bytes(head.as_bytes()).name();
        assert_eq!(
            name(r#"{"type":"user","uuid":"u","context":{"cwd":"/x"},"message":{"role":"user","content":"hi"}}"#),
            "native"
        );
        assert_eq!(name(r#"{"role":"user","content":"hi"}"#), "native");
        assert_eq!(name(""), "native");
        assert_eq!(name("[]"), "ai-sdk");
        assert_eq!(name("[\n  {\"id\": \"m\", \"role\": \"user\", \"parts\": [{\"type\": \"text\"}]"), "ai-sdk");
        assert_eq!(name("[{\"level\":\"info\"}]"), "unknown");
        assert_eq!(name("not json\n{\"level\":\"info\"}\n[1]"), "unknown");
    }

    #[test]
    fn a_file_in_an_agents_folder_is_that_agents() {
        let home = Home { dir: "/home/ada".into(), cwd: "/".into(), vars: Default::default() };
        let found = |path: &str| by_place(Path::new(path), &home).map(|dialect| dialect.name());
        assert_eq!(found("/home/ada/.sage/sessions/s1/messages.jsonl"), Some("native"));
        assert_eq!(found("/home/ada/.sage/sessions/s1/other.jsonl"), None);
        assert_eq!(found("/elsewhere/sessions/s1/messages.jsonl"), None);
    }

    #[test]
    fn a_first_line_longer_than_a_window_is_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let text = "x".repeat(3 * WINDOW_BYTES as usize);
        let line = format!(r#"{{"type":"user","uuid":"u","format":2,"message":{{"role":"user","content":"{text}"}}}}"#);
        std::fs::write(&path, line).unwrap();
        let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
        assert_eq!(of_file(&path, &home).unwrap().name(), "native");
    }
}
