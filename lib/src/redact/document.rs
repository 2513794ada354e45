//! Redacts a whole file: lines of JSON, one JSON document, or plain text.

use hashbrown::HashSet;
use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::json::Input;
use super::{LineFinding, Redactor, SensitiveCalls};

/// A file without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedDocument<'d> {
    /// The same bytes, borrowed, if there is no secret in them.
    pub bytes: Cow<'d, [u8]>,
    /// What was masked, in order.
    pub findings: Vec<DocumentFinding>,
}

/// A secret in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFinding {
    /// The name of its rule.
    pub rule: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Where it is in the JSON of its line or document; empty in text.
    pub pointer: String,
    /// Where its string starts in the file, in bytes.
    pub offset: usize,
    /// The hash in its placeholder. See [`Finding::hash`].
    ///
    /// [`Finding::hash`]: super::Finding::hash
    pub hash: Option<String>,
}

impl Redactor {
    /// A file without its secrets. The number of lines stays the same, unless a secret in plain text has several.
    pub fn document<'d>(&self, bytes: &'d [u8]) -> RedactedDocument<'d> {
        let start = bytes.trim_ascii_start();
        match start.first() {
            Some(b'{' | b'[') if has_lines_of_json(start) => self.lines(bytes),
            Some(b'{' | b'[') if is_json(start) => self.json_document(bytes),
            // `[default]` starts a text, too.
            _ => self.plain_text(bytes),
        }
    }

    fn json_document<'d>(&self, bytes: &'d [u8]) -> RedactedDocument<'d> {
        let redacted = self.line(bytes);
        let mut lines = LineCount { bytes, counted: 0, lines: 1 };
        let findings = redacted
            .findings
            .into_iter()
            .map(|finding| {
                let line = lines.at(finding.offset);
                finding.in_document(line, 0)
            })
            .collect();
        RedactedDocument { bytes: redacted.bytes, findings }
    }

    /// Lines of JSON without their secrets: results of calls on sensitive files are masked, too.
    pub fn lines<'d>(&self, bytes: &'d [u8]) -> RedactedDocument<'d> {
        let (mut out, mut copied, mut findings) = (Vec::new(), 0, Vec::new());
        let (mut calls, mut start) = (SensitiveCalls::new(), 0);
        for number in 1.. {
            let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) else { break };
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let written = out.len();
            let input = Input { kept: &HashSet::new(), before: &bytes[copied..start], line: &rest[..length] };
            let found = self.write_line(&input, &mut calls, &mut out);
            findings.extend(found.into_iter().map(|finding| finding.in_document(number, start)));
            if out.len() > written {
                copied = start + length;
            }
            start += length + 1;
        }
        if copied == 0 {
            return RedactedDocument { bytes: Cow::Borrowed(bytes), findings };
        }
        out.extend_from_slice(&bytes[copied..]);
        RedactedDocument { bytes: Cow::Owned(out), findings }
    }

    fn plain_text<'d>(&self, bytes: &'d [u8]) -> RedactedDocument<'d> {
        let text = String::from_utf8_lossy(bytes);
        let redacted = self.text(&text);
        let mut lines = LineCount { bytes: text.as_bytes(), counted: 0, lines: 1 };
        let findings = redacted
            .findings
            .iter()
            .map(|finding| DocumentFinding {
                rule: finding.rule.clone(),
                line: lines.at(finding.span.start),
                pointer: String::new(),
                offset: finding.span.start,
                hash: finding.hash.clone(),
            })
            .collect();
        let masked = match redacted.text {
            Cow::Owned(masked) => Cow::Owned(masked.into_bytes()),
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
        };
        RedactedDocument { bytes: masked, findings }
    }
}

impl LineFinding {
    /// The same in a file, of a line that starts at this offset.
    pub fn in_document(self, line: usize, start: usize) -> DocumentFinding {
        let LineFinding { rule, pointer, offset, hash } = self;
        DocumentFinding { rule, line, pointer, offset: start + offset, hash }
    }
}

/// One of so many lines at the start of a log is whole.
const FIRST_LINES: usize = 8;

/// Whether these are lines of JSON, and not one JSON document over several lines.
fn has_lines_of_json(bytes: &[u8]) -> bool {
    let is_record = |line: &[u8]| matches!(line.first(), Some(b'{' | b'[')) && is_json(line);
    let mut lines = bytes.split(|byte| *byte == b'\n').take(FIRST_LINES);
    lines.next().is_some_and(is_record) || !is_json(bytes) && lines.any(is_record)
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Counts lines up to offsets that only grow.
struct LineCount<'b> {
    bytes: &'b [u8],
    counted: usize,
    lines: usize,
}

impl LineCount<'_> {
    fn at(&mut self, offset: usize) -> usize {
        let offset = offset.clamp(self.counted, self.bytes.len());
        self.lines += memchr_iter(b'\n', &self.bytes[self.counted..offset]).count();
        self.counted = offset;
        self.lines
    }
}
