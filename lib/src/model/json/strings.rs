//! Strings of JSON, decoded by ourselves.
//!
//! serde_json decodes a string with escapes into a buffer of its own and copies that: with the text, three times as much memory as the
//! string. Where one string is most of a text, [`parse_with`] decodes it straight into its place.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use memchr::memchr;
use serde_json::Value;

use super::end_of_string;
use super::string_end::find_backslash;

/// A shorter string costs less than looking for it.
const LONG_STRING_BYTES: usize = 1024 * 1024;

/// What stands for a long string meanwhile, before its number. It is random and drawn once per process, so no file can hold it.
static STAND_IN: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().hash_one(0);
    format!("string {:016x}{:016x} ", random(), random())
});

/// The value of a text, which `read` parses with short strings in the place of long ones.
pub fn parse_with(text: &str, read: impl FnOnce(&str) -> serde_json::Result<Value>) -> serde_json::Result<Value> {
    let (rest, long) = without_long_strings(text);
    if long.is_empty() {
        return read(text);
    }
    let mut value = read(&rest)?;
    let mut open = vec![&mut value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let number = text.strip_prefix(STAND_IN.as_str()).and_then(|number| number.parse::<usize>().ok());
                if let Some(string) = number.and_then(|number| long.get(number)) {
                    *text = unescaped(string);
                }
            }
            Value::Array(values) => open.extend(values),
            Value::Object(object) => open.extend(object.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(value)
}

/// The text with a stand-in for each long string, and what is between the quotes of these. Keys stay, and so does what serde_json
/// would refuse.
fn without_long_strings(text: &str) -> (String, Vec<&str>) {
    let (bytes, mut rest, mut long, mut copied, mut at) = (text.as_bytes(), String::new(), Vec::new(), 0, 0);
    if text.len() <= LONG_STRING_BYTES {
        return (rest, long);
    }
    while let Some(quote) = bytes.get(at..).and_then(|rest| memchr(b'"', rest)).map(|found| at + found) {
        let end = end_of_string(bytes, quote + 1);
        at = end;
        if end - quote <= LONG_STRING_BYTES || bytes.get(end - 1) != Some(&b'"') {
            continue;
        }
        let inside = &text[quote + 1..end - 1];
        let is_key = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if !is_key && is_valid(inside) {
            rest += &text[copied..quote];
            rest += &format!("\"{}{}\"", STAND_IN.as_str(), long.len());
            long.push(inside);
            copied = end;
        }
    }
    rest += &text[copied..];
    (rest, long)
}

/// Whether serde_json takes what is between two quotes: no control characters, known escapes, whole surrogate pairs.
fn is_valid(inside: &str) -> bool {
    if inside.bytes().any(|byte| byte < 0x20) {
        return false;
    }
    let mut rest = inside;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let after = &rest[at + 1..];
        let is_known = match after.as_bytes().first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            Some(b'u') => after.get(1..5).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())),
            _ => false,
        };
        let (c, length) = escape(after);
        if !is_known || c == char::REPLACEMENT_CHARACTER && !after[1..].get(..4).is_some_and(is_replacement) {
            return false;
        }
        rest = &after[length..];
    }
    true
}

/// The escape of the character that stands for half a pair is no half itself.
fn is_replacement(hex: &str) -> bool {
    hex.eq_ignore_ascii_case("fffd")
}

/// What a string says, given what is between its quotes. A wrong escape says its letter, half a pair the replacement character.
pub(crate) fn unescaped(inside: &str) -> String {
    decoded_with(inside, |_, _| true).unwrap_or_default()
}

/// What a string says, given what is between its quotes and that its escapes are known ones; `None` with half a surrogate pair.
pub(super) fn decoded(inside: &str) -> Option<String> {
    decoded_with(inside, |c, escape| c != char::REPLACEMENT_CHARACTER || escape.get(1..5).is_some_and(is_replacement))
}

/// Decodes the escapes of a string, as long as each character and what it is written as are right.
fn decoded_with(inside: &str, is_right: impl Fn(char, &str) -> bool) -> Option<String> {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = find_backslash(rest.as_bytes()) {
        let (plain, after) = (&rest[..at], &rest[at + 1..]);
        let (c, length) = escape(after);
        if !is_right(c, after) {
            return None;
        }
        out.push_str(plain);
        out.push(c);
        rest = &after[length..];
    }
    out.push_str(rest);
    Some(out)
}

/// The character of an escape, and how long the escape is after its backslash.
pub(crate) fn escape(escape: &str) -> (char, usize) {
    match escape.as_bytes().first() {
        Some(b'n') => ('\n', 1),
        Some(b't') => ('\t', 1),
        Some(b'r') => ('\r', 1),
        Some(b'b') => ('\u{8}', 1),
        Some(b'f') => ('\u{c}', 1),
        Some(b'u') => unicode(escape),
        Some(_) => escape.chars().next().map_or(('\\', 0), |c| (c, c.len_utf8())),
        None => ('\\', 0),
    }
}

/// `u00e9`, or a pair for what needs two.
fn unicode(escape: &str) -> (char, usize) {
    let unit = |at: usize| escape.get(at..at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let Some(first) = unit(1) else { return ('u', 1) };
    if let (0xd800..=0xdbff, Some("\\u")) = (first, escape.get(5..7))
        && let Some(second @ 0xdc00..=0xdfff) = unit(7)
    {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 11);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string of JSON that is long with this in it.
    fn long(inside: &str) -> String {
        format!("\"{}{inside}\"", "x".repeat(LONG_STRING_BYTES))
    }

    fn both(text: &str) -> (Option<Value>, Option<Value>) {
        let ours = parse_with(text, |text| serde_json::from_str(text)).ok();
        (ours, serde_json::from_str(text).ok())
    }

    #[test]
    fn a_long_string_says_what_serde_json_reads() {
        for inside in [
            "",
            r#"\n\t\r\b\f\"\\\/"#,
            r"é\u00e9 🌊\ud83c\udf0a \uFFFD",
            r"\ud83c alone",
            r"\udf0a",
            r"\ud83c\u0041",
            r"\x",
            r"\u12",
            r"\u+123",
            "a\tb",
            "\u{2028}",
        ] {
            for text in [
                long(inside),
                format!(r#"{{"a": [1, {}, {{"b": {}}}], "c": "short"}}"#, long(inside), long("z")),
                format!(r#"{{{}: 1}}"#, long(inside)),
                format!(r#"{{"a" : {}"#, long(inside)),
            ] {
                let (ours, theirs) = both(&text);
                assert!(ours == theirs, "{inside:?} {}", &text[..20]);
            }
        }
    }

    #[test]
    fn only_long_strings_are_taken_out() {
        let text = format!(r#"{{"a": {}, "b": "short", {}: 2}}"#, long(""), long("key"));
        let (rest, found) = without_long_strings(&text);
        assert_eq!(found, ["x".repeat(LONG_STRING_BYTES)]);
        assert!(
            rest.starts_with(r#"{"a": "string "#) && rest.contains(r#""b": "short""#) && rest.contains("xkey\": 2")
        );
    }
}
