//! Makes bytes that are almost JSON readable, without moving anything.
//!
//! Bad UTF-8 becomes U+FFFD, half a surrogate pair `\ufffd`, a raw control character a space. Only the first changes
//! lengths, so that positions in the sanitized text can be mapped back to the bytes.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::model::json::has_controls;

/// A readable text, and the mapping back to its bytes.
#[derive(Debug)]
pub(crate) struct Sanitized<'a> {
    pub(crate) text: Cow<'a, str>,
    /// (position in the text, position in the bytes) after each replaced sequence, ascending.
    shifts: Vec<(usize, usize)>,
    pub(crate) bad_utf8: bool,
}

impl Sanitized<'_> {
    /// The position in the bytes of this position in the text.
    pub(crate) fn position(&self, in_text: usize) -> usize {
        match self.shifts.partition_point(|(text, _)| *text <= in_text).checked_sub(1) {
            Some(at) => self.shifts[at].1 + (in_text - self.shifts[at].0),
            None => in_text,
        }
    }
}

/// Replaces bytes that are not UTF-8, and nothing else.
pub(crate) fn utf8(bytes: &[u8]) -> Sanitized<'_> {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Sanitized { text: Cow::Borrowed(text), shifts: Vec::new(), bad_utf8: false };
    }
    let (mut text, mut shifts, mut read) = (String::with_capacity(bytes.len()), Vec::new(), 0);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        read += chunk.valid().len() + chunk.invalid().len();
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            shifts.push((text.len(), read));
        }
    }
    Sanitized { text: Cow::Owned(text), shifts, bad_utf8: true }
}

/// Replaces what JSON does not allow inside strings: half surrogate pairs and raw control characters. Returns nothing where
/// the text has neither.
pub fn strings(text: &str) -> Option<String> {
    let surrogates = lone_surrogates(text);
    if surrogates.is_empty() && !has_controls(text.as_bytes()) {
        return None;
    }
    let mut bytes = text.to_owned().into_bytes();
    for &at in &surrogates {
        bytes[at..at + 6].copy_from_slice(b"\\ufffd");
    }
    for byte in &mut bytes {
        if *byte < 0x20 {
            *byte = b' ';
        }
    }
    // Only ASCII was written over ASCII, so it is UTF-8 and nothing is copied.
    Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Whether there is any `\u`: few lines have one, and the others need no further check.
pub(crate) fn has_escapes(bytes: &[u8]) -> bool {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
    ESCAPE.find(bytes).is_some()
}

/// Whether a `\u` escape is half of a surrogate pair without its other half.
pub fn has_lone_surrogates(text: &str) -> bool {
    !lone_surrogates(text).is_empty()
}

/// The text of a record's bytes, as it was parsed.
pub(crate) fn whole(bytes: &[u8]) -> Cow<'_, str> {
    let text = utf8(bytes).text;
    strings(&text).map_or(text, Cow::Owned)
}

/// The positions of each `\uD8xx` without its `\uDCxx`, and the other way round.
fn lone_surrogates(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(step) = memchr::memchr(b'\\', &bytes[at..]) {
        at += step;
        match surrogate(bytes, at) {
            Some(Half::High) if surrogate(bytes, at + 6) == Some(Half::Low) => at += 12,
            Some(Half::High | Half::Low) => {
                found.push(at);
                at += 6;
            }
            None => at += 2,
        }
        if at >= bytes.len() {
            break;
        }
    }
    found
}

#[derive(PartialEq)]
enum Half {
    High,
    Low,
}

fn surrogate(bytes: &[u8], at: usize) -> Option<Half> {
    let escape = bytes.get(at..at + 6)?;
    if &escape[..2] != b"\\u"
        || !escape[2..].iter().all(u8::is_ascii_hexdigit)
        || !escape[2].eq_ignore_ascii_case(&b'd')
    {
        return None;
    }
    match escape[3].to_ascii_lowercase() {
        b'8'..=b'9' | b'a'..=b'b' => Some(Half::High),
        b'c'..=b'f' => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_pairs_are_replaced_and_whole_ones_kept() {
        let text = r#"{"a":"\ud83d\ude00 \ud800 \\ud800 \udc00x"}"#;
        assert_eq!(whole(text.as_bytes()), r#"{"a":"\ud83d\ude00 \ufffd \\ud800 \ufffdx"}"#);
    }

    #[test]
    fn a_position_leads_back_to_its_byte() {
        let bytes = b"ab\xffcd\xf0\x9fef";
        let sanitized = utf8(bytes);
        assert_eq!(sanitized.text, "ab\u{fffd}cd\u{fffd}ef");
        for (letter, byte) in [('a', 0), ('c', 3), ('d', 4), ('e', 7), ('f', 8)] {
            assert_eq!(sanitized.position(sanitized.text.find(letter).unwrap()), byte);
        }
        assert_eq!(sanitized.position(sanitized.text.len()), bytes.len());
    }
}
