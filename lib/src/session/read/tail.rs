//! The growing end of a file: whole lines are taken in, what comes after the last LF is judged at each look.

use jiff::Timestamp;

use crate::dialect::layout::Format;
use crate::session::Session;
use crate::session::read::base::{Base, Origin};
use crate::session::read::files::Contents;
use crate::session::read::format;
use crate::session::read::open::ReadOptions;
use crate::session::read::parser::{Goal, Intake, Position, VALUE_LIMIT_BYTES, ValueUnit};
use crate::session::tree::Bridge;
use crate::session::tree::skeleton::Mark;

/// The end of a file, still growing.
pub(crate) struct Tail {
    /// Where `pending` begins.
    pub(crate) at: Position,
    /// Bytes after the last LF: judged at each look, never stored.
    pub(crate) pending: Vec<u8>,
    /// How many bytes of an endless line were dropped before `pending`.
    pub(crate) skipped: u64,
    /// The skeleton without the pending bytes.
    pub(crate) judged: Option<Mark>,
    pub(crate) base: Base,
    pub(crate) bridge: Bridge,
    pub(crate) now: Timestamp,
}

impl Session {
    /// Takes in bytes that were appended to the first file since it was read, a file of lines.
    ///
    /// The result is the session that reading the whole file gives. A document or a database is not appended to: open it
    /// again.
    pub fn push(&mut self, appended: &[u8], reading: &ReadOptions<'_>) {
        self.append(appended, reading);
        self.settle(reading);
    }

    /// Takes in bytes without a look at the tree, which costs as much as the session is long. Nothing may be asked of the
    /// session before it is settled.
    pub(crate) fn append(&mut self, appended: &[u8], reading: &ReadOptions<'_>) {
        let was_document = self.grain() == ValueUnit::Document;
        if let Some(Contents::Memory(bytes)) = self.files.0.first_mut().map(|file| &mut file.contents) {
            bytes.extend_from_slice(appended);
            // Where content tells what a file is, more of it may tell better; and a document has no end to go on from.
            let by_content = format::is_told_by_content(self.source.dialect);
            let is_lines = || matches!(format::of_bytes(self.source.dialect, bytes), Format::Lines);
            if by_content && (was_document || !is_lines()) {
                let bytes = std::mem::take(bytes);
                *self = Session::from_bytes(self.source.dialect, bytes, reading);
                return;
            }
        }
        if let Some(mark) = self.tail.judged.take() {
            self.skeleton.cut_back(mark);
        }
        self.tail.now = reading.now;
        let from = self.tail.pending.len();
        self.tail.pending.extend_from_slice(appended);
        self.take_lines(from);
    }

    /// Looks at what was appended, unless that was done.
    pub(crate) fn settle(&mut self, reading: &ReadOptions<'_>) {
        if self.tail.judged.is_none() {
            self.finish(reading, &mut Vec::new());
        }
    }

    /// How far the first file was taken in.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.tail.at.offset + self.tail.skipped + self.tail.pending.len() as u64
    }

    /// Takes in the whole lines of what is pending, of which `from` bytes had been looked at before.
    pub(crate) fn take_lines(&mut self, from: usize) {
        let grain = self.grain();
        let last = memchr::memrchr(b'\n', &self.tail.pending[from..]).filter(|_| grain == ValueUnit::Line);
        match last {
            Some(last) => {
                // The buffer is kept: a fresh one for each chunk costs more than reading it.
                let mut pending = std::mem::take(&mut self.tail.pending);
                let (mut at, skipped) = (self.tail.at, std::mem::take(&mut self.tail.skipped));
                let mut intake = self.intake(grain);
                let mut lines = &pending[..=from + last];
                if skipped > 0 {
                    let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |lf| lf + 1);
                    intake.too_long(skipped + end as u64, at);
                    at = at.next_line((skipped as usize).saturating_add(end));
                    lines = &lines[end..];
                }
                let at = intake.lines(lines, at);
                let bases = std::mem::take(&mut intake.bases);
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

    pub(crate) fn note_base(&mut self, bases: Vec<Origin>) {
        if let (Base::Untold, Some(origin)) = (&self.tail.base, bases.into_iter().next()) {
            self.tail.base = Base::Told(origin);
        }
    }

    /// Takes in what a file ends with: a line without its LF, or the whole document.
    pub(crate) fn take_rest(&mut self, grain: ValueUnit) {
        let (rest, at) = (std::mem::take(&mut self.tail.pending), self.tail.at);
        let skipped = self.tail.skipped;
        let mut intake = self.intake(grain);
        if skipped > 0 {
            intake.too_long(skipped + rest.len() as u64, at);
        } else if !rest.is_empty() {
            intake.line(&rest, at);
        }
        let bases = std::mem::take(&mut intake.bases);
        if grain == ValueUnit::Document || at.file > 0 {
            self.tail.skipped = 0;
            self.note_base(bases);
        } else {
            self.tail.pending = rest;
        }
    }

    pub(crate) fn grain(&self) -> ValueUnit {
        match self.source.layout.format {
            Format::Document if self.tail.at.file == 0 => ValueUnit::Document,
            Format::Lines | Format::Document | Format::Rows(_) | Format::ByContent { .. } => ValueUnit::Line,
        }
    }

    /// Looks at the unfinished last line, and derives the tree.
    pub(crate) fn judge(&mut self) {
        let mark = self.skeleton.mark();
        self.take_rest(ValueUnit::Line);
        self.tail.judged = Some(mark);
        self.derive();
    }

    pub(crate) fn intake<'b>(&mut self, grain: ValueUnit) -> Intake<'_, 'b> {
        Intake {
            dialect: self.source.dialect,
            goal: Goal::Skeleton(&mut self.skeleton),
            now: self.tail.now,
            grain,
            bases: Vec::new(),
        }
    }
}
