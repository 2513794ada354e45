//! A large file on all cores: pieces of it are parsed side by side, and what they told is taken in one after another.
//!
//! Parsing costs several times what the skeleton does with it, and only the skeleton must see everything in order.

use jiff::Timestamp;
use rayon::prelude::*;

use crate::dialect::{Dialect, Event};
use crate::model::error::Result;
use crate::model::issue::IssueKind;
use crate::model::place::Place;
use crate::session::Session;
use crate::session::read::base::Origin;
use crate::session::read::files::{Bytes, OpenFile};
use crate::session::read::parser::{Goal, Intake, Position, ValueUnit};
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// How a large file is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// A piece stays in a core's own cache while its bytes are checked, split, parsed and hashed.
    piece_bytes: usize,
    /// So many pieces are worth waking other cores for. A file with fewer is read line by line.
    pieces: usize,
    /// A piece is read to the end of its last line. A longer line is left to the reader that goes line by line.
    line_limit_bytes: usize,
}

pub(crate) const CUT: Cut = Cut { piece_bytes: 512 * 1024, pieces: 16, line_limit_bytes: 16 * 1024 * 1024 };

/// The end of a piece's last line is usually within so many bytes behind it.
const LINE_END_BYTES: usize = 16 * 1024;

/// What one piece of a file told.
pub(crate) enum Note<'b> {
    Event { event: Event<'b>, value: Place, record: HashedSpan },
    Region { place: Place, length: u64, kind: IssueKind, detail: String },
}

impl Note<'_> {
    /// Hands it to the skeleton; its lines are counted behind so many others.
    fn take_into(self, skeleton: &mut Skeleton, lines_before: u32, now: Timestamp) {
        let moved = |place: Place| Place { line: place.line.saturating_add(lines_before), ..place };
        match self {
            Note::Event { event, value, record } => {
                let record = HashedSpan { place: moved(record.place), ..record };
                skeleton.take(event, moved(value), record, now);
            }
            Note::Region { place, length, kind, detail } => {
                skeleton.report_region(moved(place), length, kind, detail);
            }
        }
    }
}

/// All that one piece told, in order.
struct Told<'b> {
    notes: Vec<Note<'b>>,
    bases: Vec<Origin>,
    /// How many lines begin in it.
    lines: u32,
    /// Where the line behind them begins.
    end: u64,
}

impl Session {
    /// Takes in the beginning of a large file, as far as there are enough pieces; the rest is read line by line.
    pub(crate) fn take_pieces(&mut self, file: &OpenFile, cut: Cut) -> Result<()> {
        let size_bytes = file.len()?;
        let Some(bytes) = file.bytes().filter(|_| size_bytes >= cut.batch_bytes()) else { return Ok(()) };
        let large = Large { bytes, size_bytes, dialect: self.source.dialect, now: self.tail.now, cut };
        let (mut these, mut those) = (vec![Vec::new(); cut.pieces], vec![Vec::new(); cut.pieces]);
        let mut batch = large.batch(self.tail.at, &mut these)?;
        while !batch.is_empty() {
            let next = self.take_batch(batch, &large, &mut those)?;
            batch = self.take_batch(next, &large, &mut these)?;
        }
        Ok(())
    }

    /// Takes in what a batch of pieces told, while the next batch is parsed.
    fn take_batch<'b>(
        &mut self,
        batch: Vec<Told<'_>>,
        large: &Large<'_>,
        buffers: &'b mut [Vec<u8>],
    ) -> Result<Vec<Told<'b>>> {
        let end = batch.iter().fold(self.tail.at, |at, told| at.behind(told));
        let (_, next) =
            rayon::join(|| batch.into_iter().for_each(|told| self.take_told(told)), || large.batch(end, buffers));
        next
    }

    fn take_told(&mut self, told: Told<'_>) {
        let (at, now) = (self.tail.at, self.tail.now);
        self.tail.at = at.behind(&told);
        told.notes.into_iter().for_each(|note| note.take_into(&mut self.skeleton, at.line - 1, now));
        self.note_base(told.bases);
    }
}

impl Position {
    fn behind(self, told: &Told<'_>) -> Position {
        // A piece inside a long line ends before that line does.
        Position { offset: told.end.max(self.offset), line: self.line.saturating_add(told.lines), ..self }
    }
}

impl Cut {
    fn batch_bytes(self) -> u64 {
        (self.pieces * self.piece_bytes) as u64
    }
}

/// A file that is read in pieces.
struct Large<'f> {
    bytes: Bytes<'f>,
    size_bytes: u64,
    dialect: &'f dyn Dialect,
    now: Timestamp,
    cut: Cut,
}

impl Large<'_> {
    /// Parses the next pieces from `at` on, where a line begins: none when they are too few to be worth it.
    fn batch<'b>(&self, at: Position, buffers: &'b mut [Vec<u8>]) -> Result<Vec<Told<'b>>> {
        if self.size_bytes.saturating_sub(at.offset) < self.cut.batch_bytes() {
            return Ok(Vec::new());
        }
        let read = |(nth, buffer)| {
            let lines = self.lines(at.offset, nth, buffer)?;
            Ok(lines.map(|(offset, lines)| self.told(lines, Position { offset, line: 1, ..at })))
        };
        let pieces: Vec<Result<Option<Told<'b>>>> = buffers.par_iter_mut().enumerate().map(read).collect();
        pieces.into_iter().map_while(Result::transpose).collect()
    }

    /// The lines that begin in the `nth` piece behind `from`, and where the first of them does. `None` when the last of them
    /// does not end soon.
    fn lines<'b>(&self, from: u64, nth: usize, buffer: &'b mut Vec<u8>) -> Result<Option<(u64, &'b [u8])>> {
        // One byte earlier: if it is an LF, the piece begins with a whole line.
        let earlier = usize::from(nth > 0);
        let first = from + (nth * self.cut.piece_bytes - earlier) as u64;
        buffer.resize(self.cut.piece_bytes + earlier, 0);
        let mut read = self.bytes.fill(first, buffer)?;
        let begin = if nth == 0 { Some(0) } else { memchr::memchr(b'\n', &buffer[..read]).map(|lf| lf + 1) };
        let Some(begin) = begin.filter(|begin| *begin < read) else {
            return Ok((read == buffer.len()).then_some((first + read as u64, &[])));
        };
        // From the last byte before the next piece on.
        let (mut looked_at, mut more_bytes) = (read - 1, LINE_END_BYTES);
        loop {
            if let Some(lf) = memchr::memchr(b'\n', &buffer[looked_at..read]) {
                return Ok(Some((first + begin as u64, &buffer[begin..=looked_at + lf])));
            }
            (looked_at, more_bytes) = (read, 2 * more_bytes);
            buffer.resize(read + more_bytes, 0);
            read += self.bytes.fill(first + read as u64, &mut buffer[read..])?;
            if read == looked_at || read > self.cut.line_limit_bytes {
                return Ok(None);
            }
        }
    }

    fn told<'b>(&self, lines: &'b [u8], at: Position) -> Told<'b> {
        let Large { dialect, now, .. } = *self;
        let mut intake =
            Intake { dialect, now, grain: ValueUnit::Line, goal: Goal::Notes(Vec::new()), bases: Vec::new() };
        let end = intake.lines(lines, at);
        let notes = if let Goal::Notes(notes) = intake.goal { notes } else { Vec::new() };
        Told { notes, bases: intake.bases, lines: end.line - at.line, end: end.offset }
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
            let words = "x".repeat(if at == 60 { 900 } else { at * 7 % 90 });
            let line =
                format!(r#"{{"type":"user","uuid":"r{at}","parentUuid":null,"message":{{"content":"{words}"}}}}"#);
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
        let told = |session: &Session| (format!("{:?}", session.skeleton.entries), format!("{:?}", session.issues()));
        let (mut in_pieces, mut gave_up) = (0, 0);
        for piece_bytes in (1..200).step_by(6) {
            for (pieces, line_limit_bytes) in [(1, 100_000), (2, 100_000), (7, 64), (16, 100_000)] {
                let mut session = Session::from_bytes(&Native, Vec::new(), &reading);
                session.tail.judged = None;
                let files = crate::session::read::files::Files::memory(log.clone().into_bytes());
                session
                    .take_pieces(&files.0[0], Cut { piece_bytes, pieces, line_limit_bytes })
                    .expect("memory is read");
                let taken = usize::try_from(session.tail.at.offset).expect("a log is small");
                (in_pieces, gave_up) =
                    (in_pieces + usize::from(taken > 0), gave_up + usize::from(taken < log.len() / 2));
                session.push(&log.as_bytes()[taken..], &reading);
                assert!(told(&session) == told(&whole), "{pieces} pieces of {piece_bytes} bytes");
            }
        }
        assert!(in_pieces > 90 && gave_up > 30, "{in_pieces} {gave_up}");
    }
}
