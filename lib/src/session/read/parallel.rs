//! Reads a large file on all cores: its pieces are parsed in parallel, and the skeleton takes their results in order.
//!
//! Parsing costs several times as much as building the skeleton, which must see everything in order.

use jiff::Timestamp;
use rayon::prelude::*;

use crate::dialect::{Dialect, Event};
use crate::model::error::Result;
use crate::model::issue::IssueKind;
use crate::model::place::Place;
use crate::session::Session;
use crate::session::read::base::BaseRef;
use crate::session::read::files::OpenFile;
use crate::session::read::parser::{Parser, Position, Sink, ValueUnit};
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// How a large file is split.
#[derive(Clone, Copy)]
pub(crate) struct Split {
    /// A piece stays in a core's own cache while its bytes are checked, split, parsed and hashed.
    piece_bytes: usize,
    /// How many pieces make a batch. A file with fewer is read line by line.
    pieces: usize,
    /// A piece is read to the end of its last line. A longer line is left to the sequential reader.
    line_limit_bytes: usize,
}

pub(crate) const SPLIT: Split = Split { piece_bytes: 512 * 1024, pieces: 16, line_limit_bytes: 16 * 1024 * 1024 };

/// The end of a piece's last line is usually within this many bytes after it.
const LINE_END_BYTES: usize = 16 * 1024;

/// One result of parsing a piece.
#[expect(clippy::large_enum_variant, reason = "almost all of them are events")]
pub(crate) enum Parsed<'b> {
    Event { event: Event<'b>, value: Place, record: HashedSpan },
    Region { place: Place, length: u64, kind: IssueKind, detail: String },
}

impl Parsed<'_> {
    /// Adds it to the skeleton, with its lines counted after `lines_before` others.
    fn take_into(self, skeleton: &mut Skeleton, lines_before: u32, now: Timestamp) {
        let moved = |place: Place| Place { line: place.line.saturating_add(lines_before), ..place };
        match self {
            Parsed::Event { event, value, record } => {
                let record = HashedSpan { place: moved(record.place), ..record };
                skeleton.apply(event, moved(value), record, now);
            }
            Parsed::Region { place, length, kind, detail } => {
                skeleton.report_region(moved(place), length, kind, detail);
            }
        }
    }
}

/// All results of parsing one piece, in order.
struct ParsedPiece<'b> {
    list: Vec<Parsed<'b>>,
    bases: Vec<BaseRef>,
    /// How many lines begin in it.
    lines: u32,
    /// Where the next line begins.
    end: u64,
}

impl Session {
    /// Parses the beginning of a large file in batches; the rest is read line by line.
    pub(crate) fn take_in_parallel(&mut self, file: &OpenFile, split: Split) -> Result<()> {
        let size_bytes = file.len()?;
        let large = LargeFile { file, size_bytes, dialect: self.source.dialect, now: self.tail.now, split };
        let (mut these, mut those) = (vec![Vec::new(); split.pieces], vec![Vec::new(); split.pieces]);
        let mut batch = large.batch(self.tail.at, &mut these)?;
        while !batch.is_empty() {
            let next = self.take_batch(batch, &large, &mut those)?;
            batch = self.take_batch(next, &large, &mut these)?;
        }
        Ok(())
    }

    /// Takes a parsed batch into the skeleton while the next batch is parsed.
    fn take_batch<'b>(
        &mut self,
        batch: Vec<ParsedPiece<'_>>,
        large: &LargeFile<'_>,
        buffers: &'b mut [Vec<u8>],
    ) -> Result<Vec<ParsedPiece<'b>>> {
        let end = batch.iter().fold(self.tail.at, |at, piece| at.after(piece));
        let (_, next) =
            rayon::join(|| batch.into_iter().for_each(|piece| self.take_piece(piece)), || large.batch(end, buffers));
        next
    }

    fn take_piece(&mut self, piece: ParsedPiece<'_>) {
        let (at, now) = (self.tail.at, self.tail.now);
        self.tail.at = at.after(&piece);
        piece.list.into_iter().for_each(|parsed| parsed.take_into(&mut self.skeleton, at.line - 1, now));
        self.note_base(piece.bases);
    }
}

impl Position {
    fn after(self, piece: &ParsedPiece<'_>) -> Position {
        // A piece inside a long line ends before the line does.
        Position { offset: piece.end.max(self.offset), line: self.line.saturating_add(piece.lines), ..self }
    }
}

impl Split {
    fn batch_bytes(self) -> u64 {
        (self.pieces * self.piece_bytes) as u64
    }
}

/// A file that is read in pieces.
struct LargeFile<'f> {
    file: &'f OpenFile,
    size_bytes: u64,
    dialect: &'f dyn Dialect,
    now: Timestamp,
    split: Split,
}

impl LargeFile<'_> {
    /// Parses the next batch from `at` on, where a line begins; none if too few bytes are left.
    fn batch<'b>(&self, at: Position, buffers: &'b mut [Vec<u8>]) -> Result<Vec<ParsedPiece<'b>>> {
        if self.size_bytes.saturating_sub(at.offset) < self.split.batch_bytes() {
            return Ok(Vec::new());
        }
        let read = |(nth, buffer)| {
            let lines = self.lines(at.offset, nth, buffer)?;
            Ok(lines.map(|(offset, lines)| self.parse(lines, Position { offset, line: 1, ..at })))
        };
        let pieces: Vec<Result<Option<ParsedPiece<'b>>>> = buffers.par_iter_mut().enumerate().map(read).collect();
        pieces.into_iter().map_while(Result::transpose).collect()
    }

    /// The lines that begin in the `nth` piece after `from`, with the offset of the first. `None` if the last one is too long.
    fn lines<'b>(&self, from: u64, nth: usize, buffer: &'b mut Vec<u8>) -> Result<Option<(u64, &'b [u8])>> {
        // One byte earlier: if it is an LF, the piece begins with a whole line.
        let earlier = usize::from(nth > 0);
        let first = from + (nth * self.split.piece_bytes - earlier) as u64;
        buffer.resize(self.split.piece_bytes + earlier, 0);
        let mut read = self.file.fill(first, buffer)?;
        let begin = if nth == 0 { Some(0) } else { memchr::memchr(b'\n', &buffer[..read]).map(|lf| lf + 1) };
        let Some(begin) = begin.filter(|begin| *begin < read) else {
            return Ok((read == buffer.len()).then_some((first + read as u64, &[])));
        };
        // The LF may be the last byte of the piece.
        let (mut searched, mut more_bytes) = (read - 1, LINE_END_BYTES);
        loop {
            if let Some(lf) = memchr::memchr(b'\n', &buffer[searched..read]) {
                return Ok(Some((first + begin as u64, &buffer[begin..=searched + lf])));
            }
            (searched, more_bytes) = (read, 2 * more_bytes);
            buffer.resize(read + more_bytes, 0);
            read += self.file.fill(first + read as u64, &mut buffer[read..])?;
            if read == searched || read > self.split.line_limit_bytes {
                return Ok(None);
            }
        }
    }

    fn parse<'b>(&self, lines: &'b [u8], at: Position) -> ParsedPiece<'b> {
        let LargeFile { dialect, now, .. } = *self;
        let mut parser =
            Parser { dialect, now, unit: ValueUnit::Line, sink: Sink::List(Vec::new()), bases: Vec::new() };
        let end = parser.lines(lines, at);
        let list = if let Sink::List(list) = parser.sink { list } else { Vec::new() };
        ParsedPiece { list, bases: parser.bases, lines: end.line - at.line, end: end.offset }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::dialect::Native;
    use crate::session::read::open::ReadOptions;

    /// Lines of every length, some damaged, one far longer than a piece.
    fn log() -> String {
        let mut log = String::new();
        for at in 0..120 {
            let text = "x".repeat(if at == 60 { 900 } else { at * 7 % 90 });
            let line =
                format!(r#"{{"type":"user","uuid":"r{at}","parentUuid":null,"message":{{"content":"{text}"}}}}"#);
            match at % 11 {
                3 => writeln!(log, "{}", &line[..line.len() - 5]),
                5 => write!(log, "{line}{line}\n\n"),
                7 => writeln!(log, "{}", line.replace("xx", "\\ud800\u{0}")),
                _ => writeln!(log, "{line}"),
            }
            .expect("a string takes everything");
        }
        log
    }

    #[test]
    fn a_file_read_in_pieces_is_the_one_read_line_by_line() {
        let reading = ReadOptions::plain(Timestamp::UNIX_EPOCH);
        let log = log();
        let whole = Session::from_bytes(&Native, log.clone().into_bytes(), &reading);
        let piece = |session: &Session| (format!("{:?}", session.skeleton.entries), format!("{:?}", session.issues()));
        let (mut in_pieces, mut gave_up) = (0, 0);
        for piece_bytes in (1..200).step_by(6) {
            for (pieces, line_limit_bytes) in [(1, 100_000), (2, 100_000), (7, 64), (16, 100_000)] {
                let mut session = Session::from_bytes(&Native, Vec::new(), &reading);
                session.tail.before_pending = None;
                let files = crate::session::read::files::Files::memory(log.clone().into_bytes());
                session
                    .take_in_parallel(&files.0[0], Split { piece_bytes, pieces, line_limit_bytes })
                    .expect("memory is read");
                let taken = usize::try_from(session.tail.at.offset).expect("a log is small");
                (in_pieces, gave_up) =
                    (in_pieces + usize::from(taken > 0), gave_up + usize::from(taken < log.len() / 2));
                session.push(&log.as_bytes()[taken..], &reading);
                assert!(piece(&session) == piece(&whole), "{pieces} pieces of {piece_bytes} bytes");
            }
        }
        assert!(in_pieces > 90 && gave_up > 30, "{in_pieces} {gave_up}");
    }
}
