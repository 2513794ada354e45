//! Detects the dialect of a file: by its folder, else by its first values.

use std::borrow::Cow;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::dialect::layout::Format;
use crate::dialect::{self, Dialect, Event, Unknown};
use crate::model::error::Result;
use crate::model::home::Home;
use crate::model::record::Kind;
use crate::session::read::files::open_file;
use crate::session::read::format::{self, DATABASE_MAGIC};
use crate::session::read::packed::{self, Packing};
use crate::session::read::parser::{VALUE_LIMIT_BYTES, ValueUnit};
use crate::session::read::recover::{self, LinePiece};
use crate::session::read::rows::has_rows;
use crate::session::read::sanitize;

/// How many values are looked at: agents begin with records of their own kinds.
const VALUES_CHECKED: usize = 64;

/// The first window, its growth until it contains a whole line, and the largest: a first line can contain a picture.
const WINDOW_BYTES: u64 = 64 * 1024;
const WINDOW_GROWTH: u64 = 8;
const WINDOW_LIMIT_BYTES: u64 = VALUE_LIMIT_BYTES as u64;

/// The dialect of a file, as far as its content shows.
#[derive(Clone, Copy)]
pub struct Guess {
    /// The dialect, or [`Unknown`].
    pub dialect: &'static dyn Dialect,
    /// Whether it stays the same, whatever is appended.
    pub settled: bool,
}

/// The dialect of a file, or [`Unknown`].
pub fn of_file(path: &Path, home: &Home) -> Result<&'static dyn Dialect> {
    guess_file(path, home).map(|guess| guess.dialect)
}

/// The dialect of a file that may grow.
pub(crate) fn guess_file(path: &Path, home: &Home) -> Result<Guess> {
    match by_place(path, home) {
        Some(dialect) => Ok(Guess { dialect, settled: true }),
        None => guess_content(path),
    }
}

/// The dialect of a file by its content alone.
pub(crate) fn guess_content(path: &Path) -> Result<Guess> {
    let file = open_file(path)?;
    let mut window = WINDOW_BYTES;
    loop {
        let head = file.read_at(0, window)?;
        if head.starts_with(DATABASE_MAGIC) {
            return of_database(path).map(|dialect| Guess { dialect, settled: true });
        }
        let whole = (head.len() as u64) < window;
        // A document has no lines; its first record must be whole.
        let is_cut_off = || {
            format::is_document(&head)
                && format::records(&sanitize::whole(format::content(&head)), 1).is_none_or(|records| records.is_empty())
        };
        if whole || window >= WINDOW_LIMIT_BYTES || (memchr::memchr(b'\n', &head).is_some() && !is_cut_off()) {
            // The name decides where the content does not: between dialects that understand as much, or if none does.
            let named = by_name(path);
            let dialect = by_content(&head, named).or(named).unwrap_or(&Unknown);
            return Ok(Guess { dialect, settled: !whole || is_enough(&head) });
        }
        window = (window * WINDOW_GROWTH).min(WINDOW_LIMIT_BYTES);
    }
}

/// Whether a file can be a session of this dialect: the dialect understands one of its first values, or a crash left none whole.
pub(crate) fn may_be_of(dialect: &dyn Dialect, path: &Path) -> Result<bool> {
    let head = open_file(path)?.read_at(0, WINDOW_BYTES)?;
    let head = format::content(&head);
    if format::is_document(head) {
        let is_whole = format::records(&sanitize::whole(head), 1).is_some_and(|records| !records.is_empty());
        return Ok(!is_whole || by_document(head).is_some_and(|found| found.name() == dialect.name()));
    }
    let lines = first_lines(head);
    let mut texts = first_objects(&lines).peekable();
    if texts.peek().is_none() {
        let first = head.iter().find(|byte| **byte != 0 && !byte.is_ascii_whitespace());
        return Ok(first.is_none_or(|first| *first == b'{'));
    }
    // A value may have something wrong: the session may be a damaged one.
    let is_known = |text: &str| {
        let mut is_known = dialect.recognizes(text);
        let read = dialect.link(text, &mut |event| {
            is_known |= matches!(event, Event::Record(link) if link.kind != Kind::Other);
        });
        read.is_ok() && is_known
    };
    Ok(texts.any(is_known))
}

/// The dialect that keeps sessions in this database.
fn of_database(path: &Path) -> Result<&'static dyn Dialect> {
    for dialect in dialect::all() {
        for format in format::all_of(*dialect) {
            if let Format::Rows(rows) = format
                && has_rows(path, rows)?
            {
                return Ok(*dialect);
            }
        }
    }
    Ok(&Unknown)
}

/// The dialect whose folder a file is in.
pub(crate) fn by_place(path: &Path, home: &Home) -> Option<&'static dyn Dialect> {
    // Two agents can share a folder: then the one with the more exact file name has the file.
    let exactness = |dialect: &dyn Dialect| {
        let layouts = dialect.layouts(home).into_iter();
        let fitting = layouts.filter(|layout| path.starts_with(&layout.root) && layout.fits(path));
        fitting.map(|layout| layout.exactness()).max()
    };
    let fitting = dialect::all().iter().filter_map(|dialect| Some((exactness(*dialect)?, *dialect)));
    first_best(fitting)
}

/// The dialect of bytes such as standard input, or [`Unknown`].
pub fn of_bytes(bytes: &[u8]) -> &'static dyn Dialect {
    match Packing::of(bytes) {
        Some(_) => by_content(&packed::unpacked(bytes.to_vec()).0, None).unwrap_or(&Unknown),
        None => by_content(bytes, None).unwrap_or(&Unknown),
    }
}

/// The dialect of bytes to which more are added.
pub(crate) fn guess_bytes(bytes: &[u8]) -> Guess {
    Guess { dialect: of_bytes(bytes), settled: is_enough(bytes) }
}

/// Whether there is as much as detection looks at.
fn is_enough(head: &[u8]) -> bool {
    let is_value =
        |lf: &usize| head[..*lf].rsplit(|byte| *byte == b'\n').next().is_some_and(|line| !line.trim_ascii().is_empty());
    let has_all_values = || memchr::memchr_iter(b'\n', head).filter(is_value).nth(VALUES_CHECKED - 1).is_some();
    head.len() as u64 >= WINDOW_LIMIT_BYTES || (has_all_values() && !format::is_document(head))
}

fn by_name(path: &Path) -> Option<&'static dyn Dialect> {
    let has_name = |dialect: &&&dyn Dialect| {
        let names = dialect.layouts_in(Path::new("")).into_iter().map(|layout| layout.pattern);
        // `*.jsonl` is not a distinctive name.
        names
            .filter_map(|pattern| pattern.rsplit('/').next())
            .any(|name| !name.starts_with('*') && path.ends_with(name))
    };
    dialect::all().iter().find(has_name).copied()
}

/// The dialect that understands the first values best, if any does; of several, `named`, else the first.
///
/// An empty file can become anything: it counts as `named`'s or the first dialect's.
fn by_content(head: &[u8], named: Option<&'static dyn Dialect>) -> Option<&'static dyn Dialect> {
    let head = format::content(head);
    if head.is_empty() {
        return named.or_else(|| dialect::all().first().copied());
    }
    if let Some(dialect) = by_document(head) {
        return Some(dialect);
    }
    let lines = first_lines(head);
    let texts: Vec<&str> = first_objects(&lines).collect();
    let asked = named.into_iter().chain(dialect::all().iter().copied());
    best(asked, |dialect| {
        let understood: usize = texts.iter().map(|text| understanding(dialect, text)).sum();
        // A file name of another dialect has more weight.
        let usual = named.is_none_or(|named| named.name() == dialect.name())
            && texts.iter().all(|text| dialect.resembles(text));
        understood.max(if usual { MARKED * texts.len() } else { 0 })
    })
}

fn first_lines(head: &[u8]) -> Vec<Cow<'_, str>> {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    lines.take(VALUES_CHECKED).map(|line| without_long_strings(sanitize::whole(line))).collect()
}

/// The line with the ends of its long strings cut off: they say nothing about its dialect, and reading them takes memory.
fn without_long_strings(line: Cow<'_, str>) -> Cow<'_, str> {
    const LONG_BYTES: usize = 1024 * 1024;
    const KEPT_BYTES: usize = 1024;
    if line.len() < LONG_BYTES {
        return line;
    }
    let bytes = line.as_bytes();
    let is_half = |before: &[u8]| {
        let escape = &before[before.len().saturating_sub(6)..];
        matches!(escape, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..])
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(quote) = bytes.get(at..).and_then(|rest| memchr::memchr(b'"', rest)).map(|quote| at + quote) {
        let (mut end, mut cut) = (quote + 1, None);
        while let Some(next) = bytes.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            let plain = end + next;
            // Never within an escape, which has up to four digits, nor between the two of a pair.
            if cut.is_none() && plain - quote > KEPT_BYTES && !is_half(&bytes[..plain]) {
                cut = Some(line.floor_char_boundary((end + 4).max(quote + KEPT_BYTES).min(plain)));
            }
            end = plain;
            if bytes[end] == b'"' {
                break;
            }
            end += 2;
        }
        if let Some(cut) = cut.filter(|_| end - quote > LONG_BYTES && end < bytes.len()) {
            out.push_str(&line[copied..cut]);
            copied = end;
        }
        at = end + 1;
    }
    if copied == 0 {
        return line;
    }
    out.push_str(&line[copied..]);
    Cow::Owned(out)
}

fn first_objects<'a>(lines: &'a [Cow<'_, str>]) -> impl Iterator<Item = &'a str> {
    lines.iter().flat_map(|line| objects(line)).take(VALUES_CHECKED)
}

/// The dialect of a document, which has no lines. Few dialects write documents, so that one message is enough, even one
/// with something wrong.
fn by_document(head: &[u8]) -> Option<&'static dyn Dialect> {
    if !format::is_document(head) {
        return None;
    }
    let text = sanitize::whole(head);
    let records = format::records(&text, VALUES_CHECKED)?;
    let writes_documents =
        |dialect: &&dyn Dialect| format::all_of(*dialect).iter().any(|format| matches!(format, Format::Document));
    let mut writers = dialect::all().iter().copied().filter(writes_documents);
    if records.is_empty() {
        return writers.next();
    }
    let is_message = |dialect: &dyn Dialect, text: &str| {
        let mut known = false;
        let read = dialect.link(text, &mut |event| match event {
            Event::Record(link) => known |= link.kind != Kind::Other,
            Event::UnknownKind(_) => known = true,
            _ => {}
        });
        text.starts_with('{') && read.is_ok() && (known || dialect.recognizes(text))
    };
    best(writers, |dialect| records.iter().filter(|text| is_message(dialect, text)).count())
}

/// The first dialect with the highest score above 0.
fn best(
    dialects: impl Iterator<Item = &'static dyn Dialect>,
    score: impl Fn(&dyn Dialect) -> usize,
) -> Option<&'static dyn Dialect> {
    first_best(dialects.map(|dialect| (score(dialect), dialect)).filter(|(score, _)| *score > 0))
}

fn first_best<T: PartialOrd>(scored: impl Iterator<Item = (T, &'static dyn Dialect)>) -> Option<&'static dyn Dialect> {
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, dialect)| dialect)
}

/// The whole objects on a line: it is one, or several were glued together.
fn objects(line: &str) -> Vec<&str> {
    if serde_json::from_str::<IgnoredAny>(line).is_ok() {
        return if line.starts_with('{') { vec![line] } else { Vec::new() };
    }
    let is_record = |text: &str| dialect::all().iter().any(|dialect| understanding(*dialect, text) > 0);
    let objects = recover::pieces(line, ValueUnit::Line, &is_record).into_iter().filter_map(|piece| match piece {
        LinePiece::Object(range) => line.get(range),
        LinePiece::Scalar(_) | LinePiece::Torn(_) => None,
    });
    objects.collect()
}

/// The score of a value with a dialect's own marks; one that only could be the dialect's scores 1.
const MARKED: usize = 3;

/// How well a dialect understands a value. A value with its marks and something wrong scores 1.
fn understanding(dialect: &dyn Dialect, text: &str) -> usize {
    let (mut known, mut doubtful) = (false, false);
    let read = dialect.link(text, &mut |event| match event {
        Event::Record(link) => known |= link.kind != Kind::Other,
        Event::UnknownKind(_) | Event::MissingField(_) => doubtful = true,
        _ => {}
    });
    match (read.is_ok(), known && !doubtful) {
        (true, true) if dialect.recognizes(text) => MARKED,
        (true, true) => 1,
        (true, false) => usize::from(known && dialect.recognizes(text)),
        (false, _) => 0,
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
        for list in [
            r#"[{"id":"a","role":"user","content":"hi"},{"id":"b","role":"assistant","content":"ho"}]"#,
            r#"[{"role":"user","content":"hi"}]"#,
            r#"[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]"#,
            r#"[{"role":"function","name":"f","content":"1"}]"#,
            r#"[{"id":"1","role":"user","parts":[]}]"#,
            r#"[{"id":"1","role":"assistant"}]"#,
            r#"[{"id":"1","role":"robot","parts":[]}]"#,
            r#"[{"id":"1","parts":[{"type":"text","text":"hi"}],"role":7}, {"id":"2","role":"user","parts":[]}]"#,
            "{\n  \"id\": \"1\",\n  \"role\": \"user\",\n  \"parts\": []\n}\n",
            r#"{"id":"1","role":"user","parts":[]}"#,
        ] {
            assert_eq!(name(list), "ai-sdk", "{list}");
        }
        // Gemini's lines bear a mark of its descendant's.
        let gemini = r#"{"id":"2","timestamp":"2026-11-15T10:00:02Z","type":"gemini","content":"A","thoughts":[],"tokens":{"input":1}}"#;
        assert_eq!(name(gemini), "unknown");
        let pretty_settings = "{\n  \"model\": \"x\",\n  \"hooks\": {}\n}\n";
        for nobodys in
            [r#"{"id":"x","timestamp":"2026-11-01T10:00:00Z","foo":1}"#, r#"{"type":"message","x":1}"#, pretty_settings]
        {
            assert_eq!(name(nobodys), "unknown", "{nobodys}");
        }
        assert_eq!(name("not json\n{\"level\":\"info\"}\n[1]"), "unknown");
    }

    #[test]
    fn a_line_with_a_long_string_is_known_without_it() {
        let line = |text: &str| {
            format!(
                r#"{{"type":"user","uuid":"u","context":{{"cwd":"/x"}},"message":{{"role":"user","content":"{text}"}}}}"#
            )
        };
        for text in ["é", "\\n", "\\\"", "a\\\\", "\\u00e9", "x\\ud83d\\ude00"] {
            let line = line(&text.repeat(1_000_000));
            let cut = without_long_strings(Cow::Borrowed(&line));
            assert!(cut.len() < 4096 && serde_json::from_str::<IgnoredAny>(&cut).is_ok(), "{text} {}", cut.len());
            assert_eq!(of_bytes(line.as_bytes()).name(), "native");
        }
        assert_eq!(without_long_strings(Cow::Borrowed("{}")), "{}");
    }

    #[test]
    fn glued_records_tell_too() {
        let records = [
            (
                "native",
                r#"{"type":"user","uuid":"u","parentUuid":null,"format":2,"message":{"role":"user","content":"hi"}}"#,
            ),
            (
                "codex",
                r#"{"timestamp":"2026-10-02T09:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}"#,
            ),
            ("fluux", r#"{"type":"message","role":"user","content":"hi"}"#),
        ];
        for (dialect, record) in records {
            for line in [
                format!("{record}{record}"),
                format!("{}{record}", &record[..20]),
                format!("{record}{record}\n").repeat(3),
            ] {
                assert_eq!(of_bytes(line.as_bytes()).name(), dialect, "{line}");
            }
        }
    }

    #[test]
    fn documented_lines_are_known_alone() {
        let name = |head: &str| of_bytes(head.as_bytes()).name();
        let current = r#"{"role":"user","content":"message content","timestamp":"2026-01-11T22:00:00Z"}"#;
        assert_eq!(name(current), "sage-el");
        assert_eq!(name(&format!("{current}\n{current}\n")), "sage-el");
        assert_eq!(name(r#"{"role":"user","content":"message content"}"#), "native");
        let answer = r#"{"type":"assistant","uuid":"a7d30fa8-cdbd-4391-b13e-2ced4243687a","parentUuid":"bf8f295c-98bb-43bf-a972-9959174591e4","sessionId":"96d90d15-4805-4899-889c-7a16bfc522ff","cwd":"/home/user/project","gitBranch":"main","version":"2.1.3","requestId":"req_011CWzMd5vc7cwkNhz5GovQM","isSidechain":false,"timestamp":"2026-01-11T22:00:01.000Z","message":{"model":"claude-opus-4-5-20251101","role":"assistant","content":[{"type":"text","text":"I'll help you..."}],"usage":{"input_tokens":1234,"output_tokens":567,"cache_read_input_tokens":15000}}}"#;
        assert_eq!(name(answer), "claude-code");
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
