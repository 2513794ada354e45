//! Redacts raw JSON: every string is decoded and judged with its key; strings in which nothing is masked stay byte for byte, and so
//! does everything between them.

use std::borrow::Cow;

use hashbrown::HashSet;
use memchr::memchr;
use serde_json::Value;

use super::by_file::{self, Replaced, SensitiveCalls};
use super::{Change, Finding, Redactor};
use crate::model::json::{self, StringEnd};

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
        let mut out = Vec::new();
        let findings = self.write_line(&Input { kept, before: &[], line }, calls, &mut out);
        let bytes = if out.is_empty() { Cow::Borrowed(line) } else { Cow::Owned(out) };
        RedactedLine { bytes, findings }
    }

    /// Appends a line without its secrets, or nothing if there is none in it: a line may be most of a file.
    pub(super) fn write_line(
        &self,
        input: &Input<'_>,
        calls: &mut SensitiveCalls,
        out: &mut Vec<u8>,
    ) -> Vec<LineFinding> {
        let find = |(engine, style)| by_file::find(calls, engine, style, input.line);
        let replaced = self.engine().map(find).unwrap_or_default();
        let mut walk = Walk::new(self, input, replaced, out);
        walk.run();
        walk.findings
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
pub(super) fn replace_strings(text: &str, replaced: Replaced) -> String {
    let nothing = Redactor::of_rules(Vec::new());
    let mut out = Vec::new();
    let input = Input { kept: &HashSet::new(), before: &[], line: text.as_bytes() };
    Walk::new(&nothing, &input, replaced, &mut out).run();
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
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

impl<'w> Frame<'w> {
    fn read_key(&mut self, key: Cow<'w, str>, change: &Change) {
        self.masked_key = match change {
            Change::Masks(masks) if masks.is_empty() => None,
            Change::Masks(masks) => Some(super::masked(&key, masks)),
            Change::Whole(new) => Some(new.clone()),
        };
        self.key = Some(key);
        self.expects_key = false;
    }

    /// Remembers a value that says what the next one is.
    fn read_value(&mut self, text: &str) {
        let is_name = || self.key.as_deref().is_some_and(is_pair_name) && text.len() <= super::names::MAX_NAME_BYTES;
        if !self.is_object {
            self.pair = text.strip_prefix("--").filter(|name| !name.contains(['=', ' '])).map(str::to_owned);
        } else if is_name() {
            self.pair = Some(text.to_owned());
        }
    }
}

/// A string as it is written in a line.
struct Literal<'w> {
    /// Where it starts.
    quote: usize,
    /// What is between its quotes.
    written: &'w [u8],
    /// Whether it has its second quote: the last string of a torn line has none.
    is_closed: bool,
}

impl Literal<'_> {
    fn end(&self) -> usize {
        self.quote + 1 + self.written.len() + usize::from(self.is_closed)
    }
}

/// A line, and what surrounds it.
pub(super) struct Input<'l> {
    /// Strings that stay.
    pub(super) kept: &'l HashSet<&'l str>,
    /// Written before the line, if something in it changes.
    pub(super) before: &'l [u8],
    pub(super) line: &'l [u8],
}

struct Walk<'w> {
    redactor: &'w Redactor,
    line: &'w [u8],
    /// The same, unless some of it is no UTF-8: checked once, it need not be for each string.
    text: Option<&'w str>,
    before: &'w [u8],
    kept: &'w HashSet<&'w str>,
    /// How long the longest of these is.
    longest_kept: usize,
    /// Strings that are replaced whole.
    replaced: Replaced,
    /// Stays as it is until something is masked.
    out: &'w mut Vec<u8>,
    /// Up to here, the line is in `out`.
    copied: usize,
    findings: Vec<LineFinding>,
    frames: Vec<Frame<'w>>,
}

impl<'w> Walk<'w> {
    fn new(redactor: &'w Redactor, input: &Input<'w>, replaced: Replaced, out: &'w mut Vec<u8>) -> Walk<'w> {
        let Input { kept, before, line } = *input;
        let longest_kept = kept.iter().map(|kept| kept.len()).max().unwrap_or_default();
        let (findings, frames) = (Vec::new(), Vec::new());
        let text = simdutf8::basic::from_utf8(line).ok();
        Walk { redactor, line, text, before, kept, longest_kept, replaced, out, copied: 0, findings, frames }
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
        if self.copied > 0 {
            self.out.extend_from_slice(&self.line[self.copied..]);
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
        // Not JSON: all that is left is text, up to the next line, with the bracket of a placeholder.
        let start = start - usize::from(self.line[..start].ends_with(b"[") && self.copied < start);
        let rest = &self.line[start..];
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(self.line.len(), |end| start + end);
        let text = String::from_utf8_lossy(&self.line[start..end]);
        let redacted = self.redactor.text(&text);
        if let Cow::Owned(masked) = &redacted.text {
            self.replace(start, end, masked.as_bytes());
            self.note(redacted.findings, start, None);
        }
        end
    }

    /// Judges the string that starts at a quote, and returns where it ends.
    fn string(&mut self, quote: usize) -> usize {
        let line: &'w [u8] = self.line;
        let StringEnd { at: end, has_escapes } = json::lenient_string_end(line, quote + 1);
        let literal = Literal { quote, written: &line[quote + 1..end], is_closed: line.get(end) == Some(&b'"') };
        let is_key = self.frames.last().is_some_and(|frame| frame.expects_key);
        let text = match self.text {
            Some(text) => said(Cow::Borrowed(&text[quote + 1..end]), has_escapes),
            None => decoded(literal.written, has_escapes),
        };
        // What others refer to is short: no long text is hashed to find that out.
        let is_kept = text.len() <= self.longest_kept && self.kept.contains(text.as_ref());
        if let Some(new) = self.replaced_string(is_key).filter(|_| !is_kept) {
            drop(text);
            self.write_string(&literal, &new);
            self.note(vec![Finding { rule: by_file::RULE.to_owned(), span: 0..0, hash: None }], quote, Some(()));
            return literal.end();
        }
        let change = if is_kept { Change::nothing() } else { self.change(&text, is_key) };
        if let Some(frame) = self.frames.last_mut() {
            match is_key {
                true => frame.read_key(text.clone(), &change),
                false => frame.read_value(&text),
            }
        }
        self.write(&literal, text, change);
        literal.end()
    }

    /// What becomes of a string at this place.
    fn change(&self, text: &str, is_key: bool) -> Change {
        let Some(frame) = self.frames.last().filter(|_| !is_key) else { return self.redactor.change(None, text) };
        let key = match frame.is_object {
            // `{"password": {"value": "…"}}`
            true if frame.pair.is_none() && frame.key.as_deref().is_some_and(is_pair_value) => self.outer_key(),
            true => frame.key.as_deref().map(|key| judged_as(key, frame.pair.as_deref())),
            false => frame.pair.as_deref().or(frame.key.as_deref()),
        };
        match key {
            Some(_) if self.is_in_secret_data(text) => self.redactor.change(Some("secret_data_password"), text),
            key => self.redactor.change(key, text),
        }
    }

    /// Writes what becomes of a string, and notes what was found in it.
    fn write(&mut self, literal: &Literal<'w>, text: Cow<'_, str>, change: Change) {
        let masks = match change {
            Change::Masks(masks) if masks.is_empty() => return,
            Change::Masks(masks) => masks,
            Change::Whole(new) => return self.write_string(literal, &new),
        };
        match simdutf8::basic::from_utf8(literal.written) {
            // What is around placeholders stays byte for byte.
            Ok(written) => {
                // A string may be most of the line: what it says goes before the same is written.
                drop(text);
                let (mut places, start) = (Places::new(written), literal.quote + 1);
                for mask in &masks {
                    let (from, to) = (start + places.of(mask.span.start), start + places.of(mask.span.end));
                    self.replace(from, to, mask.placeholder.as_bytes());
                }
            }
            Err(_) => self.write_string(literal, &super::masked(&text, &masks)),
        }
        self.note(masks.into_iter().map(|mask| mask.finding).collect(), literal.quote, Some(()));
    }

    /// Writes another string in the place of one. One that is cut off stays so.
    fn write_string(&mut self, literal: &Literal<'w>, new: &str) {
        self.copy_until(literal.quote);
        // Straight into what is written: a string may be most of the line.
        drop(json::write(&mut *self.out, &new));
        if !literal.is_closed {
            self.out.pop();
        }
        self.copied = literal.end();
    }

    /// The key of the object that is being read, or its own key at the top.
    fn outer_key(&self) -> Option<&str> {
        let [.., outer, inner] = self.frames.as_slice() else { return None };
        outer.key.as_deref().filter(|_| outer.is_object).or(inner.key.as_deref())
    }

    /// What replaces this string as a whole.
    fn replaced_string(&mut self, is_key: bool) -> Option<String> {
        if self.replaced.is_empty() || is_key {
            return None;
        }
        let pointer = self.pointer(|frame| frame.key.clone());
        self.replaced.remove(&pointer)
    }

    /// Whether this is a value of `"data": {…}` that base64 hides, as in a Kubernetes Secret.
    fn is_in_secret_data(&self, text: &str) -> bool {
        let [.., outer, inner] = self.frames.as_slice() else { return false };
        inner.is_object
            && outer.key.as_deref() == Some("data")
            && text.len() <= 4096
            && super::encoded::is_encoded(text)
    }

    fn copy_until(&mut self, at: usize) {
        self.out.extend_from_slice(std::mem::take(&mut self.before));
        self.out.extend_from_slice(&self.line[self.copied..at]);
    }

    fn replace(&mut self, start: usize, end: usize, with: &[u8]) {
        self.copy_until(start);
        self.out.extend_from_slice(with);
        self.copied = end;
    }

    fn note(&mut self, findings: Vec<Finding>, offset: usize, in_json: Option<()>) {
        if findings.is_empty() {
            return;
        }
        let shown = |frame: &'_ Frame<'w>| frame.masked_key.as_deref().or(frame.key.as_deref()).map(str::to_owned);
        let pointer = in_json.map_or_else(String::new, |()| self.pointer(shown));
        self.findings.extend(findings.into_iter().map(|finding| LineFinding {
            rule: finding.rule,
            pointer: pointer.clone(),
            offset,
            hash: finding.hash,
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

/// What a string of JSON says. A torn one is read as far as it goes.
pub(super) fn decoded(raw: &[u8], has_escapes: bool) -> Cow<'_, str> {
    said(simdutf8::basic::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed), has_escapes)
}

/// What a string says, given what is between its quotes.
fn said(written: Cow<'_, str>, has_escapes: bool) -> Cow<'_, str> {
    if has_escapes { Cow::Owned(json::unescaped(&written)) } else { written }
}

/// Finds places of what a string says in the string as it is written. They only grow.
struct Places<'w> {
    written: &'w str,
    next_escape: Option<usize>,
    /// A place, and the same place in what the string says.
    at: usize,
    decoded_at: usize,
}

impl<'w> Places<'w> {
    fn new(written: &'w str) -> Places<'w> {
        Places { written, next_escape: memchr(b'\\', written.as_bytes()), at: 0, decoded_at: 0 }
    }

    fn of(&mut self, decoded: usize) -> usize {
        while let Some(next) = self.next_escape
            && self.decoded_at + (next - self.at) < decoded
        {
            let (c, length) = json::escape(&self.written[next + 1..]);
            self.decoded_at += next - self.at + c.len_utf8();
            self.at = next + 1 + length;
            self.next_escape = memchr(b'\\', &self.written.as_bytes()[self.at..]).map(|next| self.at + next);
        }
        self.at += decoded.saturating_sub(self.decoded_at);
        self.decoded_at = self.decoded_at.max(decoded);
        self.at
    }
}
