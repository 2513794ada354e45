//! Checks that a clean copy differs from its file in masked secrets only. It shares no code with the engine that masks.

use std::collections::{HashMap, HashSet};

use memchr::{memchr, memmem};
use serde::de::IgnoredAny;

use crate::redact::DocumentFinding;
use crate::view::secrets::ContentKind;

/// Longer than every placeholder.
const PLACEHOLDER_LIMIT_BYTES: usize = 128;

/// Says what differs, if something does that is not a masked secret.
pub(crate) fn difference(
    before: &[u8],
    after: &[u8],
    findings: &[DocumentFinding],
    kind: ContentKind,
) -> Option<String> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    if let (Some(before), Some(after)) = (before.strip_prefix(BOM), after.strip_prefix(BOM)) {
        return difference(before, after, findings, kind);
    }
    match shape(before, kind) {
        Shape::Lines => difference_of_lines(before, after, findings),
        Shape::OneDocument => {
            let pointers = findings.iter().map(|finding| finding.pointer.as_str()).collect();
            (!is_masked_json(before, after, &pointers)).then(|| "the document differs".to_owned())
        }
        Shape::Text if findings.is_empty() => (before != after).then(|| "the text differs".to_owned()),
        Shape::Text => (!is_masked_text(before, after)).then(|| "the text differs".to_owned()),
    }
}

enum Shape {
    Lines,
    OneDocument,
    Text,
}

/// What the engine takes a content for.
fn shape(bytes: &[u8], kind: ContentKind) -> Shape {
    let start = bytes.trim_ascii_start();
    let mut first_lines = start.split(|byte| *byte == b'\n').take(8);
    let is_record = |line: &[u8]| matches!(line.first(), Some(b'{' | b'[')) && is_json(line);
    match start.first() {
        _ if kind == ContentKind::Lines => Shape::Lines,
        Some(b'{' | b'[') if first_lines.next().is_some_and(is_record) => Shape::Lines,
        Some(b'{' | b'[') if is_json(start) => Shape::OneDocument,
        Some(b'{' | b'[') if first_lines.any(is_record) => Shape::Lines,
        _ => Shape::Text,
    }
}

fn difference_of_lines(before: &[u8], after: &[u8], findings: &[DocumentFinding]) -> Option<String> {
    let mut pointers: HashMap<usize, HashSet<&str>> = HashMap::new();
    for finding in findings {
        pointers.entry(finding.line).or_default().insert(&finding.pointer);
    }
    let mut lines = [before, after].map(|bytes| bytes.split(|byte| *byte == b'\n'));
    for number in 1.. {
        let [old, new] = [0, 1].map(|at| lines[at].next());
        let (Some(old), Some(new)) = (old, new) else {
            return (old.is_some() || new.is_some()).then(|| "the number of lines differs".to_owned());
        };
        let is_same = match pointers.get(&number) {
            None => old == new,
            Some(pointers) if is_json(old) => is_masked_json(old, new, pointers),
            // A torn line is text.
            Some(_) => is_masked_text(old, new),
        };
        if !is_same {
            return Some(format!("line {number} differs"));
        }
    }
    None
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// An open object or array.
struct Frame {
    is_object: bool,
    key: String,
    index: usize,
    expects_key: bool,
}

/// Whether two texts of JSON are the same byte for byte, except for strings with these pointers.
fn is_masked_json(before: &[u8], after: &[u8], pointers: &HashSet<&str>) -> bool {
    let (mut old_at, mut new_at, mut frames) = (0, 0, Vec::<Frame>::new());
    loop {
        match (before.get(old_at), after.get(new_at)) {
            (None, None) => return true,
            (Some(b'"'), Some(b'"')) => {
                let (old, new) = (string(&before[old_at..]), string(&after[new_at..]));
                if let Some(frame) = frames.last_mut().filter(|frame| frame.expects_key) {
                    frame.key = decoded(new).unwrap_or_default();
                    frame.expects_key = false;
                }
                if old != new && !(pointers.contains(pointer(&frames).as_str()) && is_masked_string(old, new)) {
                    return false;
                }
                (old_at, new_at) = (old_at + old.len(), new_at + new.len());
            }
            (Some(old), Some(new)) if old == new => {
                match old {
                    b'{' | b'[' => {
                        let is_object = *old == b'{';
                        frames.push(Frame { is_object, key: String::new(), index: 0, expects_key: is_object });
                    }
                    b'}' | b']' => drop(frames.pop()),
                    b',' => {
                        if let Some(frame) = frames.last_mut() {
                            frame.index += 1;
                            frame.expects_key = frame.is_object;
                        }
                    }
                    _ => {}
                }
                (old_at, new_at) = (old_at + 1, new_at + 1);
            }
            _ => return false,
        }
    }
}

/// The string that the bytes begin with, with its quotes.
fn string(bytes: &[u8]) -> &[u8] {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return &bytes[..=at],
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes
}

fn decoded(string: &[u8]) -> Option<String> {
    serde_json::from_slice(string).ok()
}

fn pointer(frames: &[Frame]) -> String {
    let mut pointer = String::new();
    for frame in frames {
        pointer.push('/');
        match frame.is_object {
            true => pointer.push_str(&frame.key.replace('~', "~0").replace('/', "~1")),
            false => pointer.push_str(&frame.index.to_string()),
        }
    }
    pointer
}

/// Whether a string is another one with masked secrets; escapes may be written in another way.
fn is_masked_string(old: &[u8], new: &[u8]) -> bool {
    // Usually everything else is the same byte for byte, and nothing needs to be decoded: a string may be most of a file.
    if is_masked_text(old, new) {
        return true;
    }
    match (decoded(old), decoded(new)) {
        (Some(old), Some(new)) => is_masked_text(old.as_bytes(), new.as_bytes()),
        // Half of a pair of surrogates, or bytes that are no UTF-8: what is left of the old string cannot be compared.
        (None, Some(new)) => placeholders(new.as_bytes()).next().is_some(),
        (_, None) => false,
    }
}

/// Whether everything around the placeholders of a text is in the other one, in the same order.
fn is_masked_text(old: &[u8], new: &[u8]) -> bool {
    let mut at = 0;
    let mut start = 0;
    for (from, to) in placeholders(new) {
        // The engine ends a masked here-document with a line feed of its own.
        let piece = if start == 0 { &new[..from] } else { trimmed_start(&new[start..from]) };
        let found = if start == 0 {
            old.starts_with(piece).then_some(0)
        } else {
            memmem::find(&old[at..], piece).map(|found| at + found)
        };
        let Some(found) = found else { return false };
        at = found + piece.len();
        start = to;
    }
    if start == 0 {
        return old == new;
    }
    old[at..].ends_with(trimmed_start(&new[start..]))
}

fn trimmed_start(piece: &[u8]) -> &[u8] {
    piece.strip_prefix(b"\n").unwrap_or(piece)
}

/// Where the placeholders of a text are.
fn placeholders(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    const START: &[u8] = b"[REDACTED";
    memmem::find_iter(text, START).filter_map(|from| {
        let rest = &text[from + START.len()..];
        let rest = &rest[..rest.len().min(PLACEHOLDER_LIMIT_BYTES)];
        let length = memchr(b']', rest)?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b":-_.".contains(byte);
        rest[..length].iter().all(is_name).then(|| (from, from + START.len() + length + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"id":"a","n":1.50,"text":"my \u0070assword is tide-4-morning, ok","list":["x","y"]}"#;

    fn found(line: usize, pointer: &str) -> DocumentFinding {
        DocumentFinding { rule: "password".to_owned(), line, pointer: pointer.to_owned(), offset: 0, hash: None }
    }

    fn check(old: &str, new: &str, pointers: &[&str]) -> Option<String> {
        let findings: Vec<_> = pointers.iter().map(|pointer| found(1, pointer)).collect();
        difference(old.as_bytes(), new.as_bytes(), &findings, ContentKind::Lines)
    }

    #[test]
    fn a_masked_string_is_accepted_where_a_finding_is_and_nowhere_else() {
        let new = OLD.replace("tide-4-morning", "[REDACTED:password]").replace("\\u0070", "p");
        assert_eq!(check(OLD, &new, &["/text"]), None);
        assert_eq!(check(OLD, &new, &["/list/0"]).as_deref(), Some("line 1 differs"));
        assert_eq!(check(OLD, &new, &[]).as_deref(), Some("line 1 differs"));
    }

    #[test]
    fn every_other_difference_is_refused() {
        let new = OLD.replace("tide-4-morning", "[REDACTED:password]");
        for (from, to) in [
            ("\"a\"", "\"b\""),
            ("1.50", "1.5"),
            (", ok", ", no"),
            ("my ", "our "),
            ("\"y\"", "\"y\" "),
            ("\"y\"", "\"[REDACTED:x]\""),
            ("\"list\"", "\"lists\""),
            ("[\"x\",", "["),
            ("}", "}\n"),
            ("[REDACTED:password]", "gone"),
            ("[REDACTED:password]", "[REDACTED:a secret]"),
        ] {
            let broken = new.replacen(from, to, 1);
            assert_ne!(broken, new, "{from}");
            assert!(check(OLD, &broken, &["/text"]).is_some(), "{from} {to}");
        }
    }

    #[test]
    fn a_masked_key_is_accepted_by_its_own_pointer() {
        let old = r#"{"a":{"tide-4-morning":[1,{"b":"c"}]}}"#;
        let new = old.replace("tide-4-morning", "[REDACTED:x]");
        assert_eq!(check(old, &new, &["/a/[REDACTED:x]"]), None);
        assert!(check(old, &new, &["/a"]).is_some());
    }

    #[test]
    fn lines_are_compared_with_their_own_findings() {
        let old = "{\"a\":\"tide-4\"}\nnoise tide-4 end\n{\"a\":\"tide-4\"}\n";
        let masked = "{\"a\":\"[REDACTED:x]\"}\nnoise [REDACTED:x] end\n{\"a\":\"[REDACTED:x]\"}\n";
        let findings = [found(1, "/a"), found(2, ""), found(3, "/a")];
        let check =
            |new: &str, count| difference(old.as_bytes(), new.as_bytes(), &findings[..count], ContentKind::Lines);
        assert_eq!(check(masked, 3), None);
        assert_eq!(check(masked, 2).as_deref(), Some("line 3 differs"));
        assert_eq!(check(masked, 1).as_deref(), Some("line 2 differs"));
        assert_eq!(check(&masked.replace(" end", " and"), 3).as_deref(), Some("line 2 differs"));
        assert_eq!(check(masked.trim_end(), 3).as_deref(), Some("the number of lines differs"));
    }

    #[test]
    fn text_keeps_everything_around_its_secrets() {
        let check = |old: &[u8], new: &str| difference(old, new.as_bytes(), &[found(1, "")], ContentKind::Document);
        assert_eq!(check(b"a=secret\nb=c\n", "a=[REDACTED:x:0a1b2c3d]\nb=c\n"), None);
        assert!(check(b"a=secret\nb=c\n", "a=[REDACTED:x:0a1b2c3d]\nb=d\n").is_some());
        // What is no UTF-8 would be replaced.
        assert!(check(b"a=secret\n\xff\n", "a=[REDACTED:x]\n\u{fffd}\n").is_some());
    }

    #[test]
    fn one_document_over_several_lines_is_compared_as_a_whole() {
        let old = "{\n  \"a\": \"tide-4\",\n  \"b\": 1\n}\n";
        let check = |new: &str| difference(old.as_bytes(), new.as_bytes(), &[found(2, "/a")], ContentKind::Document);
        assert_eq!(check(&old.replace("tide-4", "[REDACTED:x]")), None);
        assert!(check(&old.replace("tide-4", "[REDACTED:x]").replace('1', "2")).is_some());
    }
}
