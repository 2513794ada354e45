//! Finds records on a line that is not a single JSON value: glued records, and whole records after a torn one.
//!
//! ```text
//! {"a":1}{"b":2}              two records
//! {"a":"cut he{"b":2}         one torn piece, one record
//! {"a":{"b":2},"c             one torn piece; {"b":2} is a part of it, not a record
//! ```

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::session::read::parser::ValueUnit;

/// A piece of a damaged line. The pieces and the white space between them are the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinePiece {
    /// A whole JSON object.
    Object(Range<usize>),
    /// Another JSON value.
    Scalar(Range<usize>),
    /// A part of a record, or bytes that are not JSON.
    Torn(Range<usize>),
}

/// How many bytes may be parsed for each byte of the line: a tear inside deep nesting costs one attempt per open level, and
/// a hostile line of brackets must not cost the square of its length.
const PARSED_PER_BYTE: usize = 48;

/// Splits a line into pieces. `is_record` returns whether the dialect knows an object as a record with its own id: needed
/// where nothing else distinguishes a record from a part of the torn one before it.
///
/// In a torn document the records are parts of the torn value, so that only the dialect can recognize them.
pub(crate) fn pieces(line: &str, unit: ValueUnit, is_record: &dyn Fn(&str) -> bool) -> Vec<LinePiece> {
    let scan = LineScan { line, unit, is_record };
    let (mut found, mut at) = (Vec::new(), 0);
    let mut budget = line.len().saturating_mul(PARSED_PER_BYTE);
    let mut torn = |start, broken_at| {
        let end = scan.next_record(start + 1, broken_at, &mut budget).unwrap_or(line.len());
        (LinePiece::Torn(start..trim_end(line, start, end)), end)
    };
    while let Some(start) = next_content(line, at) {
        let (piece, end) = match parse(line, start) {
            Ok(end) if line.as_bytes()[start] == b'{' => match scan.is_whole_record(start, end) {
                true => (LinePiece::Object(start..end), end),
                false => torn(start, end),
            },
            Ok(end) if next_content(line, end).is_none_or(|next| line.as_bytes()[next] == b'{') => {
                (LinePiece::Scalar(start..end), end)
            }
            Ok(_) => torn(start, start),
            // The list of a torn document: its records come next.
            Err(_) if unit == ValueUnit::Document && found.is_empty() && line.as_bytes()[start] == b'[' => {
                (LinePiece::Torn(start..start + 1), start + 1)
            }
            // Between whole records it is only a separator.
            Err(_) if scan.is_comma(start) && matches!(found.last(), Some(LinePiece::Object(_))) => {
                (LinePiece::Torn(start..start + 1), start + 1)
            }
            Err(broken_at) => torn(start, broken_at),
        };
        found.push(piece);
        at = end;
    }
    found
}

struct LineScan<'a> {
    line: &'a str,
    unit: ValueUnit,
    is_record: &'a dyn Fn(&str) -> bool,
}

impl LineScan<'_> {
    /// Where the next whole record begins, in what is broken at `broken_at`.
    fn next_record(&self, from: usize, mut broken_at: usize, budget: &mut usize) -> Option<usize> {
        let (line, bytes) = (self.line, self.line.as_bytes());
        let mut at = from;
        while *budget > 0 {
            at += memchr::memchr(b'{', bytes.get(at..)?)?;
            // An object begins with a key or ends at once; anything else is not parsed.
            let Some(first) = next_content(line, at + 1).filter(|first| bytes[*first] == b'"') else {
                at += 1;
                continue;
            };
            match parse(line, at) {
                Ok(end) => {
                    *budget = budget.saturating_sub(end - at);
                    // After the break, an object cannot be a part of what came before.
                    let behind_the_break = first + 1 >= broken_at && broken_at < line.len();
                    let is_record = || (self.is_record)(&line[at..end]);
                    let found = match self.unit {
                        ValueUnit::Line => !self.is_inside(end) && (behind_the_break || is_record()),
                        ValueUnit::Document => is_record(),
                    };
                    if found {
                        return Some(at);
                    }
                    at = if self.unit == ValueUnit::Line { end } else { at + 1 };
                }
                Err(broken) => {
                    *budget = budget.saturating_sub(broken - at + 1);
                    broken_at = broken_at.max(broken);
                    at += 1;
                }
            }
        }
        None
    }

    /// Whether an object at the start is a record, and not the end of a record whose beginning is lost.
    fn is_whole_record(&self, start: usize, end: usize) -> bool {
        self.unit == ValueUnit::Document || !self.is_inside(end) || (self.is_record)(&self.line[start..end])
    }

    /// Whether this is a comma and an object follows it.
    fn is_comma(&self, at: usize) -> bool {
        let bytes = self.line.as_bytes();
        bytes[at] == b',' && next_content(self.line, at + 1).is_some_and(|next| bytes[next] == b'{')
    }

    /// Whether the value that ends here is inside another one.
    fn is_inside(&self, end: usize) -> bool {
        let next = next_content(self.line, end);
        next.is_some_and(|next| matches!(self.line.as_bytes()[next], b',' | b']' | b'}' | b':'))
    }
}

/// The end of the JSON value at `start`, or where it breaks.
fn parse(line: &str, start: usize) -> Result<usize, usize> {
    let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Ok(start + values.byte_offset()),
        // The line has no LF, so the column is the byte; serde_json counts it from 1.
        Some(Err(error)) if error.is_eof() => Err(line.len()),
        Some(Err(error)) => Err(in_escape(line, (start + error.column().saturating_sub(1)).min(line.len())).max(start)),
        None => Err(line.len()),
    }
}

/// Where a value really breaks: serde_json reads all four digits of an escape such as `\u00e9` before it rejects them.
fn in_escape(line: &str, broken_at: usize) -> usize {
    let bytes = line.as_bytes();
    let near = broken_at.saturating_sub(r"\uXXXX".len());
    let Some(escape) = memchr::memmem::rfind(&bytes[near..broken_at], br"\u") else { return broken_at };
    let digits = near + escape + 2;
    (digits..broken_at).find(|at| !bytes[*at].is_ascii_hexdigit()).unwrap_or(broken_at)
}

/// The next byte that is neither white space nor NUL.
fn next_content(line: &str, from: usize) -> Option<usize> {
    let rest = line.as_bytes().get(from..)?;
    rest.iter().position(|byte| !is_blank(*byte)).map(|step| from + step)
}

fn trim_end(line: &str, start: usize, end: usize) -> usize {
    let piece = &line.as_bytes()[start..end];
    start + piece.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1)
}

/// White space of JSON, or a NUL byte as a crash leaves it.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> String {
        let is_record = |text: &str| text.contains("\"uuid\"");
        let show = |piece| match piece {
            LinePiece::Object(range) => format!("object {}", &line[range]),
            LinePiece::Scalar(range) => format!("scalar {}", &line[range]),
            LinePiece::Torn(range) => format!("torn   {}", &line[range]),
        };
        pieces(line, ValueUnit::Line, &is_record).into_iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn glued_records_are_two() {
        insta::assert_snapshot!(check(r#"{"a":1}{"b":"}{"} {"c":[]}"#), @r#"
        object {"a":1}
        object {"b":"}{"}
        object {"c":[]}
        "#);
    }

    #[test]
    fn a_record_behind_one_cut_inside_a_string_is_found() {
        insta::assert_snapshot!(check(r#"{"uuid":"x","text":"cut he{"uuid":"y"}"#), @r#"
        torn   {"uuid":"x","text":"cut he
        object {"uuid":"y"}
        "#);
        insta::assert_snapshot!(check(r#"{"role":"user","text":"cut he{"role":"user"}"#), @r#"
        torn   {"role":"user","text":"cut he
        object {"role":"user"}
        "#);
    }

    #[test]
    fn a_nameless_record_behind_one_cut_inside_an_escape_is_found() {
        for cut in [r"\", r"\u", r"\ud", r"\ud8", r"\ud83", r"\ud83d", r"\ud83d\", r"\ud83d\u", r"\ud83d\ude"] {
            let torn = format!(r#"{{"text":"{cut}"#);
            let line = torn.clone() + r#"{"role":"user"}"#;
            let expected = [LinePiece::Torn(0..torn.len()), LinePiece::Object(torn.len()..line.len())];
            assert_eq!(pieces(&line, ValueUnit::Line, &|_| false), expected, "{line}");
        }
    }

    #[test]
    fn a_record_behind_one_cut_between_tokens_is_found() {
        insta::assert_snapshot!(check(r#"{"uuid":"x","a":{"uuid":"y"}"#), @r#"
        torn   {"uuid":"x","a":
        object {"uuid":"y"}
        "#);
        insta::assert_snapshot!(check(r#"{"uuid":"x","a":tr{"uuid":"y"}{"uuid":"z"}"#), @r#"
        torn   {"uuid":"x","a":tr
        object {"uuid":"y"}
        object {"uuid":"z"}
        "#);
    }

    #[test]
    fn a_part_of_a_torn_record_is_no_record() {
        insta::assert_snapshot!(check(r#"{"uuid":"x","parts":[{"type":"text","text":"hi"}"#), @r#"torn   {"uuid":"x","parts":[{"type":"text","text":"hi"}"#);
        insta::assert_snapshot!(check(r#"{"a":"cut{"uuid":"y","m":{"role":"user"}"#), @r#"torn   {"a":"cut{"uuid":"y","m":{"role":"user"}"#);
        insta::assert_snapshot!(check(r#"{"uuid":"x","a":{"uuid":"y"},"b":1"#), @r#"torn   {"uuid":"x","a":{"uuid":"y"},"b":1"#);
        insta::assert_snapshot!(check(r#"{"uuid":"x","parts":[{"type":"text"}],"us"#), @r#"torn   {"uuid":"x","parts":[{"type":"text"}],"us"#);
    }

    #[test]
    fn the_end_of_a_record_whose_beginning_is_lost_is_no_record() {
        insta::assert_snapshot!(check(r#"{"role":"user"},"c":1}{"d":1}"#), @r#"
        torn   {"role":"user"},"c":1}
        object {"d":1}
        "#);
        insta::assert_snapshot!(check(r#"{"uuid":"x"}}"#), @r#"
        object {"uuid":"x"}
        torn   }
        "#);
    }

    #[test]
    fn what_is_no_object_is_named() {
        insta::assert_snapshot!(check(r#"[1,2] {"a":1} nonsense"#), @r#"
        scalar [1,2]
        object {"a":1}
        torn   nonsense
        "#);
    }

    #[test]
    fn a_line_of_open_brackets_ends() {
        let line = r#"{"a":"#.repeat(20_000);
        assert_eq!(pieces(&line, ValueUnit::Line, &|_| false), [LinePiece::Torn(0..line.len())]);
    }
}
