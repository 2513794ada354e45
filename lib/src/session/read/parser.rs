//! Parses bytes into a skeleton: lines, values, records, and what is wrong with them (reading rules 1 and 2).

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{Dialect, Event, Link, Parent};
use crate::model::issue::IssueKind;
use crate::model::place::Place;
use crate::model::record::Kind;
use crate::session::read::base::BaseRef;
use crate::session::read::parallel::Parsed;
use crate::session::read::recover::{self, LinePiece, is_blank};
use crate::session::read::sanitize::{self, Sanitized};
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// The largest value that is read. Larger JSON is a mistake or an attack, and serde needs a value in one piece.
pub const VALUE_LIMIT_BYTES: usize = 512 * 1024 * 1024;

/// Parses values of one dialect.
pub(crate) struct Parser<'a, 'b> {
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) sink: Sink<'a, 'b>,
    pub(crate) now: Timestamp,
    pub(crate) unit: ValueUnit,
    /// The sessions that this one begins in, in file order.
    pub(crate) bases: Vec<BaseRef>,
}

/// Where parsed events go.
pub(crate) enum Sink<'a, 'b> {
    /// Into the skeleton.
    Skeleton(&'a mut Skeleton),
    /// Into a list, for a skeleton that takes other pieces of the file first.
    List(Vec<Parsed<'b>>),
}

/// What one JSON value of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueUnit {
    /// A line, one object each.
    Line,
    /// The whole file: an object or an array, the records inside.
    Document,
}

/// The position of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// 0 when lines cannot be counted, as in the end of a file.
    pub(crate) line: u32,
    pub(crate) file: u16,
}

impl Position {
    fn place(self, at: usize, length: usize) -> Place {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Place { offset: self.offset + at as u64, length, line: self.line, file: self.file }
    }

    /// The position after this many bytes, which end with an LF.
    pub(crate) fn next_line(self, bytes: usize) -> Position {
        let line = if self.line == 0 { 0 } else { self.line.saturating_add(1) };
        Position { offset: self.offset + bytes as u64, line, ..self }
    }
}

/// The sanitized text of one value, and its bytes.
struct ValueText<'v, 'b> {
    sanitized: &'v Sanitized<'b>,
    /// Its position in the sanitized text.
    range: Range<usize>,
    bytes: &'v [u8],
    at: Position,
}

impl ValueText<'_, '_> {
    /// The span of a part of it: a record inside a value is a slice of its text.
    fn span(&self, piece: &str) -> HashedSpan {
        let text = &self.sanitized.text[self.range.clone()];
        let start = (piece.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let start = if start <= text.len() { start } else { 0 };
        let from = self.sanitized.position(self.range.start + start);
        let to = self.sanitized.position(self.range.start + (start + piece.len()).min(text.len()));
        HashedSpan { place: self.at.place(from, to - from), hash: xxh3_64(&self.bytes[from..to]) }
    }
}

impl<'b> Sink<'_, 'b> {
    fn take(&mut self, event: Event<'b>, value: Place, record: HashedSpan, now: Timestamp) {
        match self {
            Sink::Skeleton(skeleton) => skeleton.apply(event, value, record, now),
            Sink::List(list) => list.push(Parsed::Event { event, value, record }),
        }
    }
}

impl<'b> Parser<'_, 'b> {
    /// Parses whole lines, including the last LF, and returns where the next line begins.
    pub(crate) fn lines(&mut self, mut bytes: &'b [u8], mut at: Position) -> Position {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.line(&bytes[..end], at);
            at = at.next_line(end + 1);
            bytes = &bytes[end + 1..];
        }
        at
    }

    /// Parses one line without its LF, or the bytes after the last LF.
    pub(crate) fn line(&mut self, line: &'b [u8], at: Position) {
        let start = line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len());
        let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
        for blank in [0..start, end..line.len()] {
            let nuls = line[blank.clone()].iter().filter(|byte| **byte == 0).count();
            if nuls > 0 {
                let place = at.place(blank.start, 0);
                let detail = format!("{nuls} NUL bytes, as a crash leaves them; the rest of the line is kept");
                self.report_region(place, blank.len() as u64, IssueKind::NulBytes, detail);
            }
        }
        let bom = if line[start..end].starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let content = &line[start + bom..end];
        let at = Position { offset: at.offset + (start + bom) as u64, ..at };
        if content.len() > VALUE_LIMIT_BYTES {
            self.too_long(content.len() as u64, at);
        } else if !content.is_empty() {
            self.value(content, at);
        }
    }

    /// Parses the bytes of one JSON value, or of what should be one.
    pub(crate) fn value(&mut self, bytes: &'b [u8], at: Position) {
        let mut sanitized = sanitize::utf8(bytes);
        if sanitized.bad_utf8 {
            let detail = "bytes that are not UTF-8; each was replaced by U+FFFD";
            self.report(at.place(0, bytes.len()), IssueKind::BadUtf8, detail);
        }
        // Linking does not parse every string, so half pairs are searched first.
        if sanitize::has_escapes(bytes) && sanitize::has_lone_surrogates(&sanitized.text) {
            let detail = "half of a surrogate pair; it was replaced by U+FFFD";
            self.report(at.place(0, bytes.len()), IssueKind::BadUtf8, detail);
        }
        if self.parse_value(&ValueText { sanitized: &sanitized, range: 0..sanitized.text.len(), bytes, at }) {
            return;
        }
        if bytes.contains(&0) {
            let detail = "NUL bytes inside the line; they were replaced by spaces";
            self.report(at.place(0, bytes.len()), IssueKind::NulBytes, detail);
        }
        if let Some(text) = sanitize::strings(&sanitized.text) {
            sanitized.text = text.into();
        }
        self.parse_damaged(&sanitized, bytes, at);
    }

    /// Reports bytes that were not parsed.
    pub(crate) fn too_long(&mut self, length: u64, at: Position) {
        let detail = format!("a value of {length} bytes; values over {VALUE_LIMIT_BYTES} are not read");
        self.report_region(at.place(0, 0), length, IssueKind::TooLong, detail);
    }

    /// Gives a value to the dialect. Returns false if the dialect cannot read it.
    fn parse_value(&mut self, value: &ValueText<'_, 'b>) -> bool {
        match &value.sanitized.text {
            Cow::Borrowed(text) => self.parse_text(value, &text[value.range.clone()], |event| event),
            // Sanitized text does not outlive this call.
            Cow::Owned(text) => self.parse_text(value, &text[value.range.clone()], |event| event.into_owned()),
        }
    }

    fn parse_text<'t>(
        &mut self,
        found: &ValueText<'_, 'b>,
        text: &'t str,
        lasting: impl Fn(Event<'t>) -> Event<'b>,
    ) -> bool {
        let may_be = if self.unit == ValueUnit::Document { ['{', '['] } else { ['{', '{'] };
        if !text.starts_with(may_be) {
            return false;
        }
        let value = found.span(text);
        let Parser { dialect, sink, now, bases, .. } = self;
        let (mut records, mut outermost) = (false, false);
        let mut latest = text;
        let read = dialect.link(text, &mut |event| match event {
            Event::ForkBase { session, until, last } => bases.push(BaseRef {
                session: session.into_owned(),
                until: until.map(Cow::into_owned),
                last: last.map(Cow::into_owned),
            }),
            Event::Validate(rules) => {
                if let Some(why) = rules(latest) {
                    sink.take(Event::Rejected(why), value.place, value, *now);
                }
            }
            event => {
                let record = if let Event::Record(link) = &event {
                    (records, latest) = (true, link.text);
                    let whole = link.text.len() == text.len();
                    outermost |= whole;
                    if whole { value } else { found.span(link.text) }
                } else {
                    value
                };
                sink.take(lasting(event), value.place, record, *now);
            }
        });
        debug_assert!(read.is_ok() || !records, "a dialect parses before it emits");
        if read.is_ok() && !outermost {
            // The value around the records is kept too, as a record of its own.
            self.keep(value, if records { Kind::Header } else { Kind::Other });
        }
        read.is_ok()
    }

    fn keep(&mut self, span: HashedSpan, kind: Kind) {
        let link = Link { parent: Parent::Root, is_side: true, ..Link::new("", kind) };
        self.sink.take(Event::Record(link), span.place, span, self.now);
    }

    /// Parses a line that is not one record of this dialect: its whole objects are kept, the rest is reported.
    fn parse_damaged(&mut self, sanitized: &Sanitized<'b>, bytes: &[u8], at: Position) {
        let dialect = self.dialect;
        let is_record = |text: &str| {
            let mut known = false;
            let read = dialect.link(text, &mut |event| {
                known |= matches!(event, Event::Record(link) if link.id.is_some() && link.kind != Kind::Other);
            });
            read.is_ok() && known
        };
        let pieces = recover::pieces(&sanitized.text, self.unit, &is_record);
        let whole = pieces.iter().filter(|piece| matches!(piece, LinePiece::Object(_))).count();
        let is_start = |piece: &&LinePiece| matches!(piece, LinePiece::Torn(range) if sanitized.text[range.clone()].starts_with('{'));
        if self.unit == ValueUnit::Line && whole > 0 && whole + pieces.iter().filter(is_start).count() > 1 {
            let detail = format!("several records on one line; {whole} of them are whole and kept");
            self.report(at.place(0, bytes.len()), IssueKind::Glued, detail);
        }
        let (mut end, mut is_torn, mut lost_any) = (0, false, false);
        for piece in pieces {
            is_torn |= matches!(&piece, LinePiece::Torn(_));
            lost_any |= matches!(&piece, LinePiece::Torn(range) if sanitized.text[range.clone()].len() > 1);
            let (LinePiece::Object(range) | LinePiece::Scalar(range) | LinePiece::Torn(range)) = piece.clone();
            let (from, to) = (sanitized.position(range.start), sanitized.position(range.end));
            self.between(bytes, end..from, at);
            end = to;
            let place = at.place(from, to - from);
            let lost = (to - from) as u64;
            match piece {
                LinePiece::Object(_) => {
                    let value = ValueText { sanitized, range, bytes, at };
                    if !self.parse_value(&value) {
                        let detail = "an object with fields that this dialect does not write; it is kept as it is";
                        self.report(place, IssueKind::MissingField, detail);
                        self.keep(HashedSpan { place, hash: xxh3_64(&bytes[from..to]) }, Kind::Other);
                    }
                }
                LinePiece::Scalar(_) => {
                    let detail = "JSON, but not an object; it is ignored";
                    self.report_region(place, lost, IssueKind::NotAnObject, detail);
                }
                LinePiece::Torn(_) if sanitized.text[range.clone()].starts_with('{') => {
                    let kept = if whole > 0 { "; the whole records beside it are kept" } else { "" };
                    let detail = format!("a record that was cut off after {lost} bytes{kept}");
                    self.report_region(place, lost, IssueKind::Torn, detail);
                }
                // The separators of a torn document are not lost records.
                LinePiece::Torn(_)
                    if self.unit == ValueUnit::Document
                        && matches!(&sanitized.text[range.clone()], "[" | "," | "]") => {}
                LinePiece::Torn(_) => self.not_json(place),
            }
        }
        if self.unit == ValueUnit::Document && is_torn && !lost_any {
            let detail = "the document ends early here; the whole records before it are kept";
            self.report(at.place(bytes.len(), 0), IssueKind::Torn, detail);
        }
        self.between(bytes, end..bytes.len(), at);
    }

    fn report(&mut self, place: Place, kind: IssueKind, detail: impl Into<String>) {
        self.report_region(place, 0, kind, detail);
    }

    fn report_region(&mut self, place: Place, length: u64, kind: IssueKind, detail: impl Into<String>) {
        match &mut self.sink {
            Sink::Skeleton(skeleton) => skeleton.report_region(place, length, kind, detail),
            Sink::List(list) => list.push(Parsed::Region { place, length, kind, detail: detail.into() }),
        }
    }

    /// Reports control characters between the pieces: sanitizing replaced them, but they are not separators.
    fn between(&mut self, bytes: &[u8], range: Range<usize>, at: Position) {
        if bytes[range.clone()].iter().any(|byte| !is_blank(*byte)) {
            self.not_json(at.place(range.start, range.len()));
        }
    }

    fn not_json(&mut self, place: Place) {
        let detail = format!("{} bytes that are not JSON", place.length);
        self.report_region(place, u64::from(place.length), IssueKind::NotJson, detail);
    }
}
