//! Redacts raw JSON: every string is decoded and judged with its key; strings in which nothing is masked stay byte for byte, and so
//! does everything between them.

mod edit;
mod frame;

use std::borrow::Cow;

use hashbrown::HashSet;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::by_file::{self, DEEPEST_JSON, Replaced, SensitiveCalls};
use super::fields::{self, Place};
use super::{Change, Finding, Mask, Redactor, names};
use crate::model::json::{self, StringEnd};
use edit::{Edit, Places, Replacement, write_edited};
use frame::Frame;

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
        let mut walk = Walk::new(self, input.line, Kept::of(input.kept));
        walk.replaced = replaced;
        let Walked { edits, findings } = walk.run();
        if !edits.is_empty() {
            out.extend_from_slice(input.before);
            write_edited(input.line, edits, out);
        }
        findings
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
    let (nothing, kept) = (Redactor::of_rules(Vec::new()), HashSet::new());
    let mut walk = Walk::new(&nothing, text.as_bytes(), Kept::of(&kept));
    walk.replaced = replaced;
    let mut out = Vec::new();
    write_edited(text.as_bytes(), walk.run().edits, &mut out);
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A longer string is looked through as text: what it says is in memory once more for each level.
const MAX_NESTED_BYTES: usize = 8 * 1024 * 1024;

/// Whether a text is JSON itself: an object or a list, or one in each of its lines.
fn is_json(text: &str) -> bool {
    let is_one = |text: &str| {
        let text = text.trim();
        text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
    };
    let has_brackets = text.trim_start().starts_with(['{', '[']) && text.trim_end().ends_with(['}', ']']);
    has_brackets && (is_one(text) || text.lines().all(|line| line.trim().is_empty() || is_one(line)))
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

/// Strings that stay, because others refer to them.
#[derive(Clone, Copy)]
struct Kept<'l> {
    strings: &'l HashSet<&'l str>,
    longest: usize,
}

impl<'l> Kept<'l> {
    fn of(strings: &'l HashSet<&'l str>) -> Kept<'l> {
        Kept { strings, longest: strings.iter().map(|kept| kept.len()).max().unwrap_or_default() }
    }

    /// No long text is hashed to find that out.
    fn has(self, text: &str) -> bool {
        text.len() <= self.longest && self.strings.contains(text)
    }
}

/// What a walk found.
struct Walked {
    edits: Vec<Edit>,
    findings: Vec<LineFinding>,
}

struct Walk<'w> {
    redactor: &'w Redactor,
    line: &'w [u8],
    /// The same, unless some of it is no UTF-8: checked once, it need not be for each string.
    text: Option<&'w str>,
    kept: Kept<'w>,
    /// Strings that are replaced whole.
    replaced: Replaced,
    edits: Vec<Edit>,
    findings: Vec<LineFinding>,
    frames: Vec<Frame<'w>>,
    /// In how many strings of JSON this one is.
    nested: usize,
}

impl<'w> Walk<'w> {
    fn new(redactor: &'w Redactor, line: &'w [u8], kept: Kept<'w>) -> Walk<'w> {
        let text = simdutf8::basic::from_utf8(line).ok();
        let (edits, findings, frames) = (Vec::new(), Vec::new(), Vec::new());
        Walk { redactor, line, text, kept, replaced: Replaced::new(), edits, findings, frames, nested: 0 }
    }

    fn run(mut self) -> Walked {
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
        Walked { edits: self.edits, findings: self.findings }
    }

    fn open(&mut self, is_object: bool) {
        self.frames.push(Frame::new(is_object, self.frames.last()));
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
        let edited = self.edits.last().map_or(0, |edit| edit.range.end);
        let start = start - usize::from(self.line[..start].ends_with(b"[") && edited < start);
        let rest = &self.line[start..];
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(self.line.len(), |end| start + end);
        let text = String::from_utf8_lossy(&self.line[start..end]);
        let redacted = self.redactor.text(&text);
        if let Cow::Owned(masked) = redacted.text {
            self.edits.push(Edit { range: start..end, new: Replacement::Text(masked) });
            self.note(redacted.findings, start, String::new());
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
        let is_kept = self.kept.has(&text);
        if let Some(new) = self.replaced_string(is_key).filter(|_| !is_kept) {
            drop(text);
            // Only a part of it may be the file's.
            let new = match self.change(&new, is_key) {
                Change::Masks(masks) if masks.is_empty() => new,
                Change::Masks(masks) => super::masked(&new, &masks),
                Change::Whole(new) => new,
            };
            self.write_string(&literal, new);
            self.note(
                vec![Finding { rule: by_file::RULE.to_owned(), span: 0..0, hash: None }],
                quote,
                self.shown_pointer(),
            );
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
        if frame.is_in_key(text) {
            return self.redactor.whole_key(text);
        }
        // `{"password": {"value": "…"}}`
        let key = if frame.is_nameless_value() { self.outer_key() } else { frame.judged_as() };
        if let Some(masks) = self.masks_within(key, text) {
            return Change::Masks(masks);
        }
        let change = match key {
            Some(_) if self.is_in_secret_data(text) => self.redactor.change(Some("secret_data_password"), text),
            key => self.redactor.change(key, text),
        };
        match change {
            Change::Masks(masks) if masks.is_empty() => self.change_by_place(frame, text),
            change => change,
        }
    }

    /// What becomes of a string of which neither its key nor what it says shows that it is a secret.
    fn change_by_place(&self, frame: &Frame<'_>, text: &str) -> Change {
        const LONGEST_WORD: usize = 256;
        if frame.holds_secret(text) {
            let [.., outer, _] = self.frames.as_slice() else { return Change::nothing() };
            return self.redactor.change(outer.key.as_deref(), text);
        }
        let command = frame.command().filter(|_| text.len() <= LONGEST_WORD && self.redactor.engine().is_some());
        let Some(command) = command else { return Change::nothing() };
        let start = command.len();
        let Change::Masks(mut masks) = self.redactor.change(None, &format!("{command}{text}")) else {
            return Change::nothing();
        };
        masks.retain(|mask| mask.span.start >= start);
        for mask in &mut masks {
            mask.span = mask.span.start - start..mask.span.end - start;
            mask.finding.span = mask.span.clone();
        }
        Change::Masks(masks)
    }

    /// What to mask in a string that is JSON itself, such as the arguments of a call: its strings are judged as those of the line,
    /// and its numbers stay. `None` if it is something else.
    fn masks_within(&self, key: Option<&str>, text: &str) -> Option<Vec<Mask>> {
        let is_open = |key: &str| fields::place(key, text) == Place::Open && names::promise(key).is_none();
        let is_wanted =
            self.nested < DEEPEST_JSON && text.len() <= MAX_NESTED_BYTES && self.redactor.engine().is_some();
        if !is_wanted || !is_json(text) || !key.is_none_or(is_open) {
            return None;
        }
        let walk = Walk { nested: self.nested + 1, ..Walk::new(self.redactor, text.as_bytes(), self.kept) };
        let Walked { edits, findings } = walk.run();
        let mask = |(Edit { range, new }, LineFinding { rule, hash, .. })| match new {
            Replacement::Text(placeholder) => {
                Some(Mask { finding: Finding { rule, span: range.clone(), hash }, span: range, placeholder })
            }
            Replacement::String { .. } => None,
        };
        Some(edits.into_iter().zip(findings).filter_map(mask).collect())
    }

    /// Writes what becomes of a string, and notes what was found in it.
    fn write(&mut self, literal: &Literal<'w>, text: Cow<'_, str>, change: Change) {
        let mut masks = match change {
            Change::Masks(masks) if masks.is_empty() => return,
            Change::Masks(masks) => masks,
            Change::Whole(new) => return self.write_string(literal, new),
        };
        match simdutf8::basic::from_utf8(literal.written) {
            // What is around placeholders stays byte for byte.
            Ok(written) => {
                // A string may be most of the line: what it says goes before the same is written.
                drop(text);
                let (mut places, start) = (Places::new(written), literal.quote + 1);
                for mask in &mut masks {
                    let range = start + places.of(mask.span.start)..start + places.of(mask.span.end);
                    self.edits.push(Edit { range, new: Replacement::Text(std::mem::take(&mut mask.placeholder)) });
                }
            }
            Err(_) => self.write_string(literal, super::masked(&text, &masks)),
        }
        self.note(masks.into_iter().map(|mask| mask.finding).collect(), literal.quote, self.shown_pointer());
    }

    /// Writes another string in the place of one. One that is cut off stays so.
    fn write_string(&mut self, literal: &Literal<'w>, text: String) {
        let new = Replacement::String { text, is_closed: literal.is_closed };
        self.edits.push(Edit { range: literal.quote..literal.end(), new });
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

    fn note(&mut self, findings: Vec<Finding>, offset: usize, pointer: String) {
        let noted =
            |finding: Finding| LineFinding { rule: finding.rule, pointer: pointer.clone(), offset, hash: finding.hash };
        self.findings.extend(findings.into_iter().map(noted));
    }

    /// The place of the string that is being read, with masked keys.
    fn shown_pointer(&self) -> String {
        self.pointer(|frame| frame.masked_key.as_deref().or(frame.key.as_deref()).map(str::to_owned))
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
