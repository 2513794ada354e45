//! What a file is when nothing but its content tells: lines, one document, or a database.

use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::layout::Format;
use crate::mend;
use crate::source::open_file;

/// What every SQLite database begins with.
pub(crate) const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";

/// How much is looked at: the key that makes a document one stands near its beginning.
const HEAD_BYTES: u64 = 1024 * 1024;

/// The key of a document under which its records are.
const RECORDS: &str = "messages";

/// The format of a dialect's file: what its content tells where the dialect has several, else what its layout says. One
/// that cannot be opened is told when it is read.
pub(crate) fn of_file(dialect: &dyn Dialect, by_layout: Format, path: &Path) -> Format {
    if dialect.formats().is_empty() {
        return by_layout;
    }
    let head = open_file(path).and_then(|file| file.read_at(0, HEAD_BYTES)).unwrap_or_default();
    of_bytes(dialect, &head)
}

/// The format of a file that begins so.
pub(crate) fn of_bytes(dialect: &dyn Dialect, bytes: &[u8]) -> Format {
    if dialect.formats().is_empty() {
        return Format::Lines;
    }
    let head = &bytes[..bytes.len().min(HEAD_BYTES as usize)];
    let rows = dialect.formats().iter().find(|format| matches!(format, Format::Rows(_)));
    let document = dialect.formats().iter().any(|format| matches!(format, Format::Document));
    match rows {
        Some(rows) if head.starts_with(DATABASE_MAGIC) => *rows,
        _ if document && is_document(head) => Format::Document,
        _ => Format::Lines,
    }
}

/// A list is a document; an object with a list of records is one unless further lines follow it.
pub(crate) fn is_document(head: &[u8]) -> bool {
    let head = content(head);
    if head.first() == Some(&b'[') {
        return true;
    }
    let (line, rest) = head.split_at(memchr::memchr(b'\n', head).unwrap_or(head.len()));
    let is_line = || serde_json::from_slice::<IgnoredAny>(line).is_ok() && !rest.trim_ascii().is_empty();
    elements(&mend::whole(head), 1).is_some() && !is_line()
}

/// What comes behind a byte order mark and white space.
pub(crate) fn content(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// The first whole records of a document that may be cut off anywhere; `None` when it is no list and holds none.
pub(crate) fn elements(text: &str, limit: usize) -> Option<Vec<&str>> {
    let mut found = Found { list: false, elements: Vec::new(), limit };
    let mut reader = serde_json::Deserializer::from_str(text);
    // A torn document and one that has been looked at enough both end in an error; what was found stands.
    let _ended: Result<(), serde_json::Error> = Outer(&mut found).deserialize(&mut reader);
    found.list.then_some(found.elements)
}

struct Found<'a> {
    list: bool,
    elements: Vec<&'a str>,
    limit: usize,
}

/// The whole document.
struct Outer<'f, 'a>(&'f mut Found<'a>);

/// The list of its records.
struct Records<'f, 'a>(&'f mut Found<'a>);

impl<'de> DeserializeSeed<'de> for Outer<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> DeserializeSeed<'de> for Records<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outer<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a document")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        Records(self.0).visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == RECORDS {
                return map.next_value_seed(Records(self.0));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Records<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.list = true;
        while let Some(element) = seq.next_element::<&'de RawValue>()? {
            self.0.elements.push(element.get());
            if self.0.elements.len() >= self.0.limit {
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
        let format = |head: &str| match of_bytes(&AiSdk, head.as_bytes()) {
            Format::Lines => "lines",
            Format::Document => "document",
            Format::Rows(_) => "rows",
        };
        for (head, expected) in [
            ("", "lines"),
            ("[", "document"),
            ("\u{feff} [{\"id\":", "document"),
            ("{\n  \"title\": \"T\",\n  \"messages\": [", "document"),
            ("{\"messages\":[]}\n", "document"),
            ("{\"messages\":[]}\n{\"messages\":[]}", "lines"),
            ("{\"id\":\"m1\",\"parts\":[{", "lines"),
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
    }
}
