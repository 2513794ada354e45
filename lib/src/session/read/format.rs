//! The format of a file by its content: lines, one document, or a database.

use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::dialect::layout::{Format, Layout};
use crate::session::read::files::head_of;
use crate::session::read::sanitize;

/// What every SQLite database begins with.
pub(crate) const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";

/// How much is looked at: the key of a document's records is near its beginning.
const HEAD_BYTES: u64 = 1024 * 1024;

/// The key of a document's records.
const RECORDS: &str = "messages";

/// The format of a file: by its content where its layout leaves it open. A file that cannot be opened is reported when it is
/// read.
pub(crate) fn of_file(by_layout: Format, path: &Path) -> Format {
    let Format::ByContent { formats, .. } = by_layout else { return by_layout };
    among(formats, &head_of(path, HEAD_BYTES).unwrap_or_default())
}

/// The format of bytes such as standard input. A database cannot be read that way.
pub(crate) fn of_bytes(dialect: &dyn Dialect, bytes: &[u8]) -> Format {
    let by_layout = dialect.layouts_in(Path::new("")).first().map(|layout| layout.format);
    match by_layout {
        Some(Format::ByContent { formats, .. }) => match among(formats, bytes) {
            Format::Document => Format::Document,
            _ => Format::Lines,
        },
        Some(Format::Document) => Format::Document,
        Some(Format::Lines | Format::Rows(_)) | None => Format::Lines,
    }
}

/// The formats that a dialect's layouts allow.
pub(crate) fn all_of(dialect: &dyn Dialect) -> Vec<Format> {
    let each = |layout: Layout| match layout.format {
        Format::ByContent { formats, .. } => formats.to_vec(),
        format => vec![format],
    };
    dialect.layouts_in(Path::new("")).into_iter().flat_map(each).collect()
}

/// Whether the format of a dialect's files depends on their content.
pub(crate) fn is_known_by_content(dialect: &dyn Dialect) -> bool {
    let layouts = dialect.layouts_in(Path::new(""));
    layouts.iter().any(|layout| matches!(layout.format, Format::ByContent { .. }))
}

/// The format among `formats` of a file with this head.
fn among(formats: &[Format], bytes: &[u8]) -> Format {
    let head = &bytes[..bytes.len().min(HEAD_BYTES as usize)];
    let rows = formats.iter().find(|format| matches!(format, Format::Rows(_)));
    let document = formats.iter().any(|format| matches!(format, Format::Document));
    match rows {
        Some(rows) if head.starts_with(DATABASE_MAGIC) => *rows,
        _ if document && is_document(head) => Format::Document,
        _ => Format::Lines,
    }
}

/// Whether it is a document: a list, an object over several lines, or an object with a list of records and no further line.
pub(crate) fn is_document(head: &[u8]) -> bool {
    let head = content(head);
    if head.first() == Some(&b'[') {
        return true;
    }
    let (line, rest) = head.split_at(memchr::memchr(b'\n', head).unwrap_or(head.len()));
    let is_line = || serde_json::from_slice::<IgnoredAny>(line).is_ok() && !rest.trim_ascii().is_empty();
    (elements(&sanitize::whole(head), 1).is_some() && !is_line()) || spans_lines(head)
}

/// Whether an object begins here that does not end on its first line.
fn spans_lines(head: &[u8]) -> bool {
    let Some(first) = memchr::memchr(b'\n', head).filter(|_| head.starts_with(b"{")) else { return false };
    let mut values = serde_json::Deserializer::from_slice(head).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => values.byte_offset() > first,
        // It is cut off: a single line would have ended at the line feed.
        Some(Err(error)) => error.is_eof() && !head[first..].trim_ascii().is_empty(),
        None => false,
    }
}

/// The bytes after a byte order mark and white space.
pub(crate) fn content(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// The first whole records of a document that may be cut off anywhere: those of its list, or else the top-level objects.
pub(crate) fn records(text: &str, limit: usize) -> Option<Vec<&str>> {
    elements(text, limit).or_else(|| {
        let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let whole: Vec<&str> = values.map_while(Result::ok).map(RawValue::get).take(limit).collect();
        (!whole.is_empty()).then_some(whole)
    })
}

/// The first whole elements of a list, or of the list under the key of records; `None` without either.
fn elements(text: &str, limit: usize) -> Option<Vec<&str>> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    // A torn document, and one with enough elements, both end in an error; the elements found so far count.
    let _ended: Result<(), serde_json::Error> =
        ElementScan { found: &mut found, limit, is_nested: false }.deserialize(&mut reader);
    found
}

/// Collects the elements of a list: the document itself, or nested in it.
struct ElementScan<'f, 'a> {
    found: &'f mut Option<Vec<&'a str>>,
    limit: usize,
    is_nested: bool,
}

impl<'de> DeserializeSeed<'de> for ElementScan<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ElementScan<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == RECORDS && !self.is_nested {
                return map.next_value_seed(ElementScan { is_nested: true, ..self });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let found = self.found.insert(Vec::new());
        while let Some(element) = seq.next_element::<&'de RawValue>()? {
            found.push(element.get());
            if found.len() >= self.limit {
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::AiSdk;

    #[test]
    fn content_tells_lines_from_a_document() {
        let formats = all_of(&AiSdk);
        let format = |head: &str| match among(&formats, head.as_bytes()) {
            Format::Lines => "lines",
            Format::Document => "document",
            Format::Rows(_) => "rows",
            Format::ByContent { .. } => "anything",
        };
        for (head, expected) in [
            ("", "lines"),
            ("[", "document"),
            ("\u{feff} [{\"id\":", "document"),
            ("{\n  \"title\": \"T\",\n  \"messages\": [", "document"),
            ("{\"messages\":[]}\n", "document"),
            ("{\"messages\":[]}\n{\"messages\":[]}", "lines"),
            ("{\"id\":\"m1\",\"parts\":[{", "lines"),
            ("{\n  \"id\": \"m1\",\n  \"parts\": []\n}\n", "document"),
            ("{\n  \"id\": \"m1\",\n  \"par", "document"),
            ("{\"id\":\"m1\",\"parts\":[{\n{\"id\":\"m2\",\"parts\":[]}\n", "lines"),
            ("{\"id\":\"m1\",\"parts\":[]}\n{\"id\"", "lines"),
            ("SQLite format 3\0", "rows"),
            ("SQLite format 4\0", "lines"),
        ] {
            assert_eq!(format(head), expected, "{head}");
        }
    }

    #[test]
    fn a_cut_document_shows_its_whole_records() {
        assert_eq!(elements("[{\"a\":[1]}, 2, {\"b", 64), Some(vec!["{\"a\":[1]}", "2"]));
        assert_eq!(elements("{\"x\":{},\"messages\":[{}", 64), Some(vec!["{}"]));
        assert_eq!(elements("[1,2,3]", 2), Some(vec!["1", "2"]));
        assert_eq!(elements("{\"messages\":7}", 64), None);
        assert_eq!(elements("7", 64), None);
        assert_eq!(records("{\n}\n{\n\"a", 64), Some(vec!["{\n}"]));
        assert_eq!(records("{\n\"a", 64), None);
    }
}
