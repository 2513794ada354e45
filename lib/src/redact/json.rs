//! Redacts raw JSON: every string is decoded and judged with its key; strings in which nothing is masked stay byte for byte, and so
//! does everything between them.

use std::borrow::Cow;

use hashbrown::HashSet;
use memchr::memchr2;
use serde_json::Value;

use super::by_file::{self, Replaced, SensitiveCalls};
use super::{Finding, Redacted, Redactor};
use crate::model::json;

/// A line of JSON without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedLine<'l> {
    /// The same bytes, borrowed, if there is no secret in them.
    pub bytes: Cow<'l, [u8]>,
    /// What was masked, in order.
    pub findings: Vec<LineFinding>,
}

/// A secret that was masked in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFinding {
    /// The name of its rule.
    pub rule: String,
    /// Where it is: a JSON pointer to the string, or to the value of the key that has it. Masked keys in it are masked.
    pub pointer: String,
    /// Where the string starts in the line, in bytes.
    pub offset: usize,
    /// The hash in its placeholder. See [`Finding::hash`].
    pub hash: Option<String>,
}

impl Redactor {
    /// One line of JSON without its secrets: numbers, repeated keys and white space stay as they are.
    ///
    /// What is no JSON is redacted as text, so a torn line is safe too.
    pub fn line<'l>(&self, line: &'l [u8]) -> RedactedLine<'l> {
        self.line_after(&mut SensitiveCalls::new(), line)
    }

    /// The next line of a session: results of earlier calls on sensitive files are masked, too.
    pub fn line_after<'l>(&self, calls: &mut SensitiveCalls, line: &'l [u8]) -> RedactedLine<'l> {
        self.line_keeping(&HashSet::new(), calls, line)
    }

    /// The same; strings and keys that are one of these stay, because others refer to them.
    pub(crate) fn line_keeping<'l>(
        &self,
        kept: &HashSet<&str>,
        calls: &mut SensitiveCalls,
        line: &'l [u8],
    ) -> RedactedLine<'l> {
        let replaced = self.engine.as_ref().map(|engine| calls.find(engine, self.style, line)).unwrap_or_default();
        let mut walk = Walk::new(self, line, kept, &replaced);
        walk.run();
        let (mut out, copied, findings) = (walk.out, walk.copied, walk.findings);
        if copied == 0 {
            return RedactedLine { bytes: Cow::Borrowed(line), findings };
        }
        out.extend_from_slice(&line[copied..]);
        RedactedLine { bytes: Cow::Owned(out), findings }
    }

    /// Redacts every string of a value, keys too.
    pub fn json(&self, value: &mut Value) -> Vec<LineFinding> {
        let text = json::to_string(value);
        let redacted = self.line(text.as_bytes());
        if let Cow::Owned(bytes) = redacted.bytes
            && let Some(masked) = json::parse_bytes(&bytes)
        {
            *value = masked;
        }
        redacted.findings
    }
}

/// A text of JSON with some of its strings replaced, and nothing else changed.
pub(super) fn replace_strings(text: &str, replaced: &Replaced) -> String {
    let nothing = Redactor::of_rules(Vec::new());
    let kept = HashSet::new();
    let mut walk = Walk::new(&nothing, text.as_bytes(), &kept, replaced);
    walk.run();
    walk.out.extend_from_slice(&text.as_bytes()[walk.copied..]);
    String::from_utf8_lossy(&walk.out).into_owned()
}

/// Adds a key to a JSON pointer.
pub(super) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    if key.contains(['~', '/']) {
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(key);
    }
}

/// The name that a value is judged by: its key, or the name beside it.
fn judged_as<'k>(key: &'k str, pair: Option<&'k str>) -> &'k str {
    pair.filter(|_| is_pair_value(key)).unwrap_or(key)
}

fn is_pair_name(key: &str) -> bool {
    ["name", "key", "Name", "Key", "variable", "field", "header"].contains(&key)
}

fn is_pair_value(key: &str) -> bool {
    ["value", "Value", "val"].contains(&key)
}

/// An open object or array.
struct Frame<'w> {
    is_object: bool,
    /// The key of the value that is being read, or of the array itself.
    key: Option<Cow<'w, str>>,
    /// The same, if a secret in it was masked.
    masked_key: Option<String>,
    /// The value of `name` in this object; in a list, the option before this string: `["--password", "…"]`.
    pair: Option<String>,
    index: usize,
    /// The next string is a key.
    expects_key: bool,
}

struct Walk<'w> {
    redactor: &'w Redactor,
    line: &'w [u8],
    /// Strings that stay.
    kept: &'w HashSet<&'w str>,
    /// Strings that are replaced whole.
    replaced: &'w Replaced,
    out: Vec<u8>,
    /// Up to here, the line is in `out`.
    copied: usize,
    findings: Vec<LineFinding>,
    frames: Vec<Frame<'w>>,
}

impl<'w> Walk<'w> {
    fn new(redactor: &'w Redactor, line: &'w [u8], kept: &'w HashSet<&'w str>, replaced: &'w Replaced) -> Walk<'w> {
        let (out, findings, frames) = (Vec::new(), Vec::new(), Vec::new());
        Walk { redactor, line, kept, replaced, out, copied: 0, findings, frames }
    }

    fn run(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.line.get(at) {
            match byte {
                b'"' => at = self.string(at),
                b'{' => {
                    self.open(true);
                    at += 1;
                }
                b'[' => {
                    self.open(false);
                    at += 1;
                }
                b'}' | b']' => {
                    self.frames.pop();
                    at += 1;
                }
                b',' => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.index += 1;
                        frame.expects_key = frame.is_object;
                    }
                    at += 1;
                }
                b':' | b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                _ => at = self.outside(at),
            }
        }
    }

    fn open(&mut self, is_object: bool) {
        // The strings of an array are judged by the array's key.
        let key = if is_object { None } else { self.frames.last().and_then(|frame| frame.key.clone()) };
        self.frames
            .push(Frame { is_object, key, masked_key: None, pair: None, index: 0, expects_key: is_object });
    }

    /// Numbers and the like, and text that is no JSON.
    fn outside(&mut self, start: usize) -> usize {
        let rest = &self.line[start..];
        let is_json = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.iter().take_while(|byte| is_json(byte)).count();
        let word = &rest[..length];
        let is_value = matches!(word, b"true" | b"false" | b"null")
            || word.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
        let ends = rest
            .get(length)
            .is_none_or(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
        let is_in_json = !self.frames.is_empty() || rest[length..].trim_ascii().is_empty();
        if is_value && ends && is_in_json {
            return start + length;
        }
        // Not JSON: all that is left is text, up to the next line.
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(self.line.len(), |end| start + end);
        let text = String::from_utf8_lossy(&self.line[start..end]);
        let redacted = self.redactor.text(&text);
        if let Cow::Owned(masked) = &redacted.text {
            let masked = masked.clone().into_bytes();
            self.replace(start, end, &masked);
            self.note(&redacted.findings, start, None);
        }
        end
    }

    /// Judges the string that starts at a quote, and returns where it ends.
    fn string(&mut self, quote: usize) -> usize {
        let start = quote + 1;
        let (end, has_escapes) = string_end(self.line, start);
        let after = if self.line.get(end) == Some(&b'"') { end + 1 } else { end };
        let line: &'w [u8] = self.line;
        let raw = &line[start..end];
        let text = decoded(raw, has_escapes);
        let is_key = self.frames.last().is_some_and(|frame| frame.expects_key);
        let redactor = self.redactor;
        let redacted = match self.frames.last() {
            _ if self.kept.contains(text.as_ref()) => Redacted::unchanged(&text),
            _ if let Some(replaced) = self.replaced_string(is_key) => replaced,
            Some(frame) if !is_key => {
                let key = match frame.is_object {
                    // `{"password": {"value": "…"}}`
                    true if frame.pair.is_none() && frame.key.as_deref().is_some_and(is_pair_value) => self.outer_key(),
                    true => frame.key.as_deref().map(|key| judged_as(key, frame.pair.as_deref())),
                    false => frame.pair.as_deref().or(frame.key.as_deref()),
                };
                match key {
                    Some(_) if self.is_in_secret_data(&text) => redactor.value(Some("secret_data_password"), &text),
                    key => redactor.value(key, &text),
                }
            }
            _ => redactor.value(None, &text),
        };
        let findings = redacted.findings;
        let masked = match redacted.text {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        };
        if let Some(masked) = &masked {
            self.out.extend_from_slice(&line[self.copied..quote]);
            // Straight into what is written: a string may be most of the line.
            drop(json::write(&mut self.out, masked));
            if after == end {
                // The string is cut off, and stays so.
                self.out.pop();
            }
            self.copied = after;
        }
        if let Some(frame) = self.frames.last_mut() {
            if is_key {
                frame.key = Some(text);
                frame.masked_key = masked;
                frame.expects_key = false;
            } else if frame.is_object
                && frame.key.as_deref().is_some_and(is_pair_name)
                && text.len() <= super::names::MAX_NAME_BYTES
            {
                frame.pair = Some(text.as_ref().to_owned());
            } else if !frame.is_object {
                frame.pair = text.strip_prefix("--").filter(|name| !name.contains(['=', ' '])).map(str::to_owned);
            }
        }
        self.note(&findings, quote, Some(()));
        after
    }

    /// The key of the object that is being read, or its own key at the top.
    fn outer_key(&self) -> Option<&str> {
        let [.., outer, inner] = self.frames.as_slice() else { return None };
        outer.key.as_deref().filter(|_| outer.is_object).or(inner.key.as_deref())
    }

    /// What replaces this string as a whole.
    fn replaced_string(&self, is_key: bool) -> Option<Redacted<'static>> {
        if self.replaced.is_empty() || is_key {
            return None;
        }
        let text = Cow::Owned(self.replaced.get(&self.pointer(|frame| frame.key.clone()))?.clone());
        let finding = Finding { rule: by_file::RULE.to_owned(), span: 0..0, hash: None };
        Some(Redacted { text, findings: vec![finding] })
    }

    /// Whether this is a value of `"data": {…}` that base64 hides, as in a Kubernetes Secret.
    fn is_in_secret_data(&self, text: &str) -> bool {
        let [.., outer, inner] = self.frames.as_slice() else { return false };
        inner.is_object
            && outer.key.as_deref() == Some("data")
            && text.len() <= 4096
            && super::encoded::is_encoded(text)
    }

    fn replace(&mut self, start: usize, end: usize, with: &[u8]) {
        self.out.extend_from_slice(&self.line[self.copied..start]);
        self.out.extend_from_slice(with);
        self.copied = end;
    }

    fn note(&mut self, findings: &[Finding], offset: usize, in_json: Option<()>) {
        if findings.is_empty() {
            return;
        }
        let shown = |frame: &'_ Frame<'w>| frame.masked_key.as_deref().or(frame.key.as_deref()).map(str::to_owned);
        let pointer = in_json.map_or_else(String::new, |()| self.pointer(shown));
        self.findings.extend(findings.iter().map(|finding| LineFinding {
            rule: finding.rule.clone(),
            pointer: pointer.clone(),
            offset,
            hash: finding.hash.clone(),
        }));
    }

    /// The place of the string that is being read; a frame says how its key is shown.
    fn pointer<Key: AsRef<str>>(&self, key: impl Fn(&Frame<'w>) -> Option<Key>) -> String {
        let mut pointer = String::new();
        for frame in &self.frames {
            match key(frame) {
                Some(key) if frame.is_object => push_key(&mut pointer, key.as_ref()),
                _ => push_key(&mut pointer, &frame.index.to_string()),
            }
        }
        pointer
    }
}

/// Where a string ends, and whether it has escapes.
fn string_end(line: &[u8], start: usize) -> (usize, bool) {
    let (mut at, mut has_escapes) = (start, false);
    while let Some(found) = line.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if line[at] == b'"' {
            return (at, has_escapes);
        }
        has_escapes = true;
        at += 2;
    }
    (line.len(), has_escapes)
}

/// What a string of JSON says. A torn one is read as far as it goes.
fn decoded(raw: &[u8], has_escapes: bool) -> Cow<'_, str> {
    let text = simdutf8::basic::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
    if !has_escapes {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (c, length) = match escape.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b't') => ('\t', 1),
            Some(b'r') => ('\r', 1),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'u') => unicode(escape),
            Some(_) => escape.chars().next().map_or(('\\', 0), |c| (c, c.len_utf8())),
            None => ('\\', 0),
        };
        out.push(c);
        rest = &escape[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
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
