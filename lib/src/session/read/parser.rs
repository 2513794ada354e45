//! The way of bytes into a skeleton: lines, values, records, and what is wrong with them (reading rules 1 and 2).

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{Dialect, Event, Link, Parent};
use crate::model::issue::IssueKind;
use crate::model::place::Place;
use crate::model::record::Kind;
use crate::session::read::base::Origin;
use crate::session::read::parallel::Note;
use crate::session::read::recover::{self, Piece, is_blank};
use crate::session::read::sanitize::{self, Sanitized};
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// The largest value that is read at all. JSON of this size is a mistake or an attack, and serde needs it in one piece.
pub const VALUE_LIMIT_BYTES: usize = 512 * 1024 * 1024;

/// Takes values of one dialect into a skeleton.
pub(crate) struct Intake<'a, 'b> {
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) goal: Goal<'a, 'b>,
    pub(crate) now: Timestamp,
    pub(crate) grain: ValueUnit,
    /// The sessions that this one begins in, in the order told.
    pub(crate) bases: Vec<Origin>,
}

/// Where what was read goes.
pub(crate) enum Goal<'a, 'b> {
    /// Into the skeleton at once.
    Skeleton(&'a mut Skeleton),
    /// Noted, for a skeleton that other pieces of the file go into first.
    Notes(Vec<Note<'b>>),
}

/// What one JSON value of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueUnit {
    /// A line, one object each.
    Line,
    /// The whole file: an object or an array, the records inside.
    Document,
}

/// Where the next byte stands.
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

    /// Past this many bytes, the last of which was an LF.
    pub(crate) fn next_line(self, bytes: usize) -> Position {
        let line = if self.line == 0 { 0 } else { self.line.saturating_add(1) };
        Position { offset: self.offset + bytes as u64, line, ..self }
    }
}

/// A value of a line, mended, and the bytes it was made of.
struct Value<'v, 'b> {
    sanitized: &'v Sanitized<'b>,
    /// Where in the mended text it stands.
    range: Range<usize>,
    bytes: &'v [u8],
    at: Position,
}

impl Value<'_, '_> {
    /// Where a piece of it stands: a record inside a value is a slice of its text.
    fn stand(&self, piece: &str) -> HashedSpan {
        let text = &self.sanitized.text[self.range.clone()];
        let start = (piece.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let start = if start <= text.len() { start } else { 0 };
        let from = self.sanitized.position(self.range.start + start);
        let to = self.sanitized.position(self.range.start + (start + piece.len()).min(text.len()));
        HashedSpan { place: self.at.place(from, to - from), hash: xxh3_64(&self.bytes[from..to]) }
    }
}

impl<'b> Goal<'_, 'b> {
    fn take(&mut self, event: Event<'b>, value: Place, record: HashedSpan, now: Timestamp) {
        match self {
            Goal::Skeleton(skeleton) => skeleton.take(event, value, record, now),
            Goal::Notes(notes) => notes.push(Note::Event { event, value, record }),
        }
    }
}

impl<'b> Intake<'_, 'b> {
    /// Takes in whole lines, the last LF included, and returns where the next line begins.
    pub(crate) fn lines(&mut self, mut bytes: &'b [u8], mut at: Position) -> Position {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.line(&bytes[..end], at);
            at = at.next_line(end + 1);
            bytes = &bytes[end + 1..];
        }
        at
    }

    /// Takes in one line without its LF, or the bytes after the last LF.
    pub(crate) fn line(&mut self, line: &'b [u8], at: Position) {
        let start = line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len());
        let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
        for blank in [0..start, end..line.len()] {
            let nuls = line[blank.clone()].iter().filter(|byte| **byte == 0).count();
            if nuls > 0 {
                let place = at.place(blank.start, 0);
                let detail = format!("{nuls} NUL bytes, as a crash leaves them; what stands beside them is kept");
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

    /// Takes in the bytes of one JSON value, or of what should be one.
    pub(crate) fn value(&mut self, bytes: &'b [u8], at: Position) {
        let mut sanitized = sanitize::utf8(bytes);
        if sanitized.bad_utf8 {
            let detail = "bytes that are no UTF-8; each was replaced by U+FFFD";
            self.report(at.place(0, bytes.len()), IssueKind::BadUtf8, detail);
        }
        // Half pairs hide in strings that nobody looks at yet, so they are looked for first.
        if sanitize::has_escapes(bytes) && sanitize::has_lone_surrogates(&sanitized.text) {
            let detail = "half of a surrogate pair; it was replaced by U+FFFD";
            self.report(at.place(0, bytes.len()), IssueKind::BadUtf8, detail);
        }
        if self.understood(&Value { sanitized: &sanitized, range: 0..sanitized.text.len(), bytes, at }) {
            return;
        }
        if bytes.contains(&0) {
            let detail = "NUL bytes inside the line; they were replaced by spaces";
            self.report(at.place(0, bytes.len()), IssueKind::NulBytes, detail);
        }
        if let Some(text) = sanitize::strings(&sanitized.text) {
            sanitized.text = text.into();
        }
        self.pieces(&sanitized, bytes, at);
    }

    /// Reports bytes that were not even looked at.
    pub(crate) fn too_long(&mut self, length: u64, at: Position) {
        let detail = format!("a value of {length} bytes; values over {VALUE_LIMIT_BYTES} are not read");
        self.report_region(at.place(0, 0), length, IssueKind::TooLong, detail);
    }

    /// Hands a value to the dialect. False means that it is not what the dialect can read.
    fn understood(&mut self, value: &Value<'_, 'b>) -> bool {
        match &value.sanitized.text {
            Cow::Borrowed(text) => self.handed(value, &text[value.range.clone()], |event| event),
            // What was mended does not outlive this call.
            Cow::Owned(text) => self.handed(value, &text[value.range.clone()], |event| event.into_owned()),
        }
    }

    fn handed<'t>(&mut self, found: &Value<'_, 'b>, text: &'t str, lasting: impl Fn(Event<'t>) -> Event<'b>) -> bool {
        let may_be = if self.grain == ValueUnit::Document { ['{', '['] } else { ['{', '{'] };
        if !text.starts_with(may_be) {
            return false;
        }
        let value = found.stand(text);
        let Intake { dialect, goal, now, bases, .. } = self;
        let (mut records, mut outermost) = (false, false);
        let mut latest = text;
        let read = dialect.link(text, &mut |event| match event {
            Event::ForkBase { session, until, last } => bases.push(Origin {
                session: session.into_owned(),
                until: until.map(Cow::into_owned),
                last: last.map(Cow::into_owned),
            }),
            Event::Validate(rules) => {
                if let Some(why) = rules(latest) {
                    goal.take(Event::Rejected(why), value.place, value, *now);
                }
            }
            event => {
                let record = if let Event::Record(link) = &event {
                    (records, latest) = (true, link.text);
                    let whole = link.text.len() == text.len();
                    outermost |= whole;
                    if whole { value } else { found.stand(link.text) }
                } else {
                    value
                };
                goal.take(lasting(event), value.place, record, *now);
            }
        });
        debug_assert!(read.is_ok() || !records, "a dialect parses before it emits");
        if read.is_ok() && !outermost {
            // The value around the records is kept too, as what it is: nobody's record.
            self.keep(value, if records { Kind::Header } else { Kind::Other });
        }
        read.is_ok()
    }

    fn keep(&mut self, stand: HashedSpan, kind: Kind) {
        let link = Link { parent: Parent::Root, is_side: true, ..Link::new("", kind) };
        self.goal.take(Event::Record(link), stand.place, stand, self.now);
    }

    /// A line that is not one record of this dialect: its whole objects are kept, the rest is reported.
    fn pieces(&mut self, sanitized: &Sanitized<'b>, bytes: &[u8], at: Position) {
        let dialect = self.dialect;
        let is_record = |text: &str| {
            let mut known = false;
            let read = dialect.link(text, &mut |event| {
                known |= matches!(event, Event::Record(link) if link.id.is_some() && link.kind != Kind::Other);
            });
            read.is_ok() && known
        };
        let pieces = recover::pieces(&sanitized.text, self.grain, &is_record);
        let whole = pieces.iter().filter(|piece| matches!(piece, Piece::Object(_))).count();
        let begun =
            |piece: &&Piece| matches!(piece, Piece::Torn(range) if sanitized.text[range.clone()].starts_with('{'));
        if self.grain == ValueUnit::Line && whole > 0 && whole + pieces.iter().filter(begun).count() > 1 {
            let detail = format!("several records on one line; {whole} of them whole and kept");
            self.report(at.place(0, bytes.len()), IssueKind::Glued, detail);
        }
        let (mut end, mut is_torn, mut lost_any) = (0, false, false);
        for piece in pieces {
            is_torn |= matches!(&piece, Piece::Torn(_));
            lost_any |= matches!(&piece, Piece::Torn(range) if sanitized.text[range.clone()].len() > 1);
            let (Piece::Object(range) | Piece::NoObject(range) | Piece::Torn(range)) = piece.clone();
            let (from, to) = (sanitized.position(range.start), sanitized.position(range.end));
            self.between(bytes, end..from, at);
            end = to;
            let place = at.place(from, to - from);
            let lost = (to - from) as u64;
            match piece {
                Piece::Object(_) => {
                    let value = Value { sanitized, range, bytes, at };
                    if !self.understood(&value) {
                        let detail = "an object whose fields are not what this dialect writes; it is kept as it is";
                        self.report(place, IssueKind::MissingField, detail);
                        self.keep(HashedSpan { place, hash: xxh3_64(&bytes[from..to]) }, Kind::Other);
                    }
                }
                Piece::NoObject(_) => {
                    let detail = "JSON, but no object; it is ignored";
                    self.report_region(place, lost, IssueKind::NotAnObject, detail);
                }
                Piece::Torn(_) if sanitized.text[range.clone()].starts_with('{') => {
                    let kept = if whole > 0 { "; the whole records beside it are kept" } else { "" };
                    let detail = format!("a record that was cut off after {lost} bytes{kept}");
                    self.report_region(place, lost, IssueKind::Torn, detail);
                }
                // What holds the records of a torn document together is no loss.
                Piece::Torn(_)
                    if self.grain == ValueUnit::Document
                        && matches!(&sanitized.text[range.clone()], "[" | "," | "]") => {}
                Piece::Torn(_) => self.no_json(place),
            }
        }
        if self.grain == ValueUnit::Document && is_torn && !lost_any {
            let detail = "the document breaks off here; the whole records before it are kept";
            self.report(at.place(bytes.len(), 0), IssueKind::Torn, detail);
        }
        self.between(bytes, end..bytes.len(), at);
    }

    fn report(&mut self, place: Place, kind: IssueKind, detail: impl Into<String>) {
        self.report_region(place, 0, kind, detail);
    }

    fn report_region(&mut self, place: Place, length: u64, kind: IssueKind, detail: impl Into<String>) {
        match &mut self.goal {
            Goal::Skeleton(skeleton) => skeleton.report_region(place, length, kind, detail),
            Goal::Notes(notes) => notes.push(Note::Region { place, length, kind, detail: detail.into() }),
        }
    }

    /// Control characters between the pieces were mended away; they are no separators.
    fn between(&mut self, bytes: &[u8], range: Range<usize>, at: Position) {
        if bytes[range.clone()].iter().any(|byte| !is_blank(*byte)) {
            self.no_json(at.place(range.start, range.len()));
        }
    }

    fn no_json(&mut self, place: Place) {
        let detail = format!("{} bytes that are no JSON", place.length);
        self.report_region(place, u64::from(place.length), IssueKind::NotJson, detail);
    }
}
