//! The growing end of a file: whole lines are parsed once, the bytes after the last LF again at each update.

use jiff::Timestamp;

use crate::dialect::layout::Format;
use crate::session::Session;
use crate::session::read::base::{Base, BaseRef};
use crate::session::read::files::Contents;
use crate::session::read::format;
use crate::session::read::hashed::Hashed;
use crate::session::read::open::ReadOptions;
use crate::session::read::parser::{Parser, Position, Sink, VALUE_LIMIT_BYTES, ValueUnit};
use crate::session::tree::Bridge;
use crate::session::tree::skeleton::SkeletonMark;

/// The end of a file, still growing.
pub(crate) struct Tail {
    /// Where `pending` begins.
    pub(crate) at: Position,
    /// Bytes after the last LF: parsed again at each update.
    pub(crate) pending: Vec<u8>,
    /// How many bytes of an endless line were dropped before `pending`.
    pub(crate) skipped: u64,
    /// The skeleton without the pending bytes, while they are in it.
    pub(crate) before_pending: Option<SkeletonMark>,
    pub(crate) base: Base,
    pub(crate) bridge: Bridge,
    /// What a checkpoint that it was read from knows of the file's bytes.
    pub(crate) hashed: Hashed,
    pub(crate) now: Timestamp,
}

impl Session {
    /// Parses bytes that were appended to the first file, a file of lines.
    ///
    /// The result is the same as reading the whole file. Open a document or a database again instead.
    pub fn push(&mut self, appended: &[u8], reading: &ReadOptions<'_>) {
        self.append(appended, reading);
        self.settle(reading);
    }

    /// Parses appended bytes without deriving the tree, which takes time linear in the session. Call [`Session::settle`]
    /// before any query.
    pub(crate) fn append(&mut self, appended: &[u8], reading: &ReadOptions<'_>) {
        let was_document = self.value_unit() == ValueUnit::Document;
        if let Some(Contents::Memory(bytes)) = self.files.0.first_mut().map(|file| &mut file.contents) {
            bytes.extend_from_slice(appended);
            // More content can change the format; and a document cannot be parsed from its end.
            let by_content = format::is_known_by_content(self.source.dialect);
            let is_lines = || matches!(format::of_bytes(self.source.dialect, bytes), Format::Lines);
            if by_content && (was_document || !is_lines()) {
                let bytes = std::mem::take(bytes);
                *self = Session::from_bytes(self.source.dialect, bytes, reading);
                return;
            }
        }
        if let Some(mark) = self.tail.before_pending.take() {
            self.skeleton.truncate_to(mark);
        }
        self.tail.now = reading.now;
        let from = self.tail.pending.len();
        self.tail.pending.extend_from_slice(appended);
        self.take_lines(from);
    }

    /// Derives the tree after [`Session::append`].
    pub(crate) fn settle(&mut self, reading: &ReadOptions<'_>) {
        if self.tail.before_pending.is_none() {
            self.finish(Vec::new(), reading, &mut Vec::new());
        }
    }

    /// How many bytes of the first file were read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.tail.at.offset + self.tail.skipped + self.tail.pending.len() as u64
    }

    /// Parses the whole lines among the pending bytes; the first `from` bytes have no LF.
    pub(crate) fn take_lines(&mut self, from: usize) {
        let unit = self.value_unit();
        let last = memchr::memrchr(b'\n', &self.tail.pending[from..]).filter(|_| unit == ValueUnit::Line);
        match last {
            Some(last) => {
                // The buffer is reused: a new one for each chunk costs more than reading it.
                let mut pending = std::mem::take(&mut self.tail.pending);
                let (mut at, skipped) = (self.tail.at, std::mem::take(&mut self.tail.skipped));
                let mut parser = self.parser(unit);
                let mut lines = &pending[..=from + last];
                if skipped > 0 {
                    let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |lf| lf + 1);
                    parser.too_long(skipped + end as u64, at);
                    at = at.next_line((skipped as usize).saturating_add(end));
                    lines = &lines[end..];
                }
                let at = parser.lines(lines, at);
                let bases = std::mem::take(&mut parser.bases);
                pending.drain(..=from + last);
                (self.tail.at, self.tail.pending) = (at, pending);
                self.note_base(bases);
            }
            None if self.tail.pending.len() > VALUE_LIMIT_BYTES => {
                self.tail.skipped += self.tail.pending.len() as u64;
                self.tail.pending.clear();
            }
            None => {}
        }
    }

    pub(crate) fn note_base(&mut self, bases: Vec<BaseRef>) {
        if let (Base::Unknown, Some(origin)) = (&self.tail.base, bases.into_iter().next()) {
            self.tail.base = Base::Named(origin);
        }
    }

    /// Parses the end of a file: a line without its LF, or the whole document.
    pub(crate) fn take_rest(&mut self, unit: ValueUnit) {
        let (rest, at) = (std::mem::take(&mut self.tail.pending), self.tail.at);
        let skipped = self.tail.skipped;
        let mut parser = self.parser(unit);
        if skipped > 0 {
            parser.too_long(skipped + rest.len() as u64, at);
        } else if !rest.is_empty() {
            parser.line(&rest, at);
        }
        let bases = std::mem::take(&mut parser.bases);
        if unit == ValueUnit::Document || at.file > 0 {
            self.tail.skipped = 0;
            self.note_base(bases);
        } else {
            self.tail.pending = rest;
        }
    }

    pub(crate) fn value_unit(&self) -> ValueUnit {
        match self.source.layout.format {
            Format::Document if self.tail.at.file == 0 => ValueUnit::Document,
            Format::Lines | Format::Document | Format::Rows(_) | Format::ByContent { .. } => ValueUnit::Line,
        }
    }

    /// Parses the unfinished last line, and derives the tree.
    pub(crate) fn update(&mut self) {
        let mark = self.skeleton.mark();
        self.take_rest(ValueUnit::Line);
        self.tail.before_pending = Some(mark);
        self.derive();
    }

    pub(crate) fn parser<'b>(&mut self, unit: ValueUnit) -> Parser<'_, 'b> {
        Parser {
            dialect: self.source.dialect,
            sink: Sink::Skeleton(&mut self.skeleton),
            now: self.tail.now,
            unit,
            bases: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Native;
    use crate::session::read::source::Source;

    #[test]
    fn a_long_line_is_not_kept_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.jsonl");
        let text = "x".repeat(1024 * 1024);
        let line = format!(r#"{{"type":"user","uuid":"r1","parentUuid":null,"message":{{"content":"{text}"}}}}"#);
        std::fs::write(&path, line + "\n").unwrap();
        let reading = ReadOptions::plain(Timestamp::UNIX_EPOCH);
        let session = Session::open(&Source::file(&Native, &path), &reading).unwrap();
        assert_eq!((session.records().len(), session.tail.pending.capacity()), (1, 0));
    }
}
