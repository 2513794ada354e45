//! The lines of standard input or of a request, read in a thread: while none comes, held content can be written.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use crate::record::ingest::LINE_LIMIT_BYTES;

use crate::failure::Failure;
use crate::record::sse::{FIELD_HEAD_BYTES, is_field};
use crate::terminal::interrupt::on_interrupt;

/// Few, since one line may be large.
const READ_AHEAD_LINES: usize = 8;

/// After this long without a line, held content is written.
const IDLE: Duration = Duration::from_secs(1);

/// What comes next.
pub(crate) enum Input {
    /// A line, counted from 1.
    Line(u64, Vec<u8>),
    /// A line that is too long; its content was skipped.
    TooLong(u64),
    /// No line for a while.
    Idle,
    /// The end of the input, or a request to stop.
    End,
    /// The input cannot be read.
    Failed(io::Error),
}

/// The lines of an input.
pub(crate) struct Lines {
    lines: Receiver<Input>,
}

impl Lines {
    /// Reads standard input. A request to stop ends the program at once while `is_opening`: nothing of the input is recorded then, and
    /// a large session takes long to read.
    pub(crate) fn from_stdin(is_opening: Arc<AtomicBool>) -> Result<Lines, Failure> {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD_LINES);
        let stop = sender.clone();
        on_interrupt(move || !is_opening.load(Ordering::Relaxed) && stop.send(Input::End).is_ok())?;
        // The thread ends with the input, or with the process.
        std::thread::spawn(move || read_all(io::stdin().lock(), &sender));
        Ok(Lines { lines })
    }

    /// Reads lines that are here already.
    pub(crate) fn of(bytes: Vec<u8>) -> Lines {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD_LINES);
        std::thread::spawn(move || read_all(io::Cursor::new(bytes), &sender));
        Lines { lines }
    }

    /// What comes next, or that nothing came for a while.
    pub(crate) fn next(&self, wait: Duration) -> Input {
        match self.lines.recv_timeout(wait.min(IDLE)) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Input::Idle,
            Err(RecvTimeoutError::Disconnected) => Input::End,
        }
    }
}

fn read_all(input: impl BufRead, sender: &SyncSender<Input>) {
    let mut input = LineReader { input, last_end: LineEnd::Lf };
    let mut number = 0;
    loop {
        let next = match input.line() {
            Ok(Some(RawLine::Line(line))) => {
                number += 1;
                Input::Line(number, line)
            }
            Ok(Some(RawLine::TooLong)) => {
                number += 1;
                Input::TooLong(number)
            }
            Ok(None) => Input::End,
            Err(error) => Input::Failed(error),
        };
        let is_last = matches!(next, Input::End | Input::Failed(_));
        if sender.send(next).is_err() || is_last {
            return;
        }
    }
}

enum RawLine {
    Line(Vec<u8>),
    TooLong,
}

/// Lines end with LF; those of server-sent events also with CR, which is white space in JSON.
struct LineReader<R> {
    input: R,
    last_end: LineEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    Cr,
}

impl<R: BufRead> LineReader<R> {
    /// The next line, without its end.
    fn line(&mut self) -> io::Result<Option<RawLine>> {
        let after = std::mem::replace(&mut self.last_end, LineEnd::Lf);
        if after == LineEnd::Cr && self.buffer()?.first() == Some(&b'\n') {
            self.input.consume(1);
        }
        let (mut line, mut is_too_long) = (Vec::new(), false);
        loop {
            let bytes = self.buffer()?;
            if bytes.is_empty() {
                return Ok((!line.is_empty()).then(|| raw_line(line, is_too_long)));
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (content, byte) =
                (bytes.get(..end.unwrap_or(bytes.len())), end.and_then(|end| bytes.get(end)).copied());
            line.extend_from_slice(content.unwrap_or_default());
            let consumed = end.map_or(bytes.len(), |end| end + 1);
            self.input.consume(consumed);
            match byte {
                Some(b'\n') => return Ok(Some(raw_line(line, is_too_long))),
                Some(_) if is_field(&line) || line.is_empty() && after == LineEnd::Cr => {
                    self.last_end = LineEnd::Cr;
                    return Ok(Some(raw_line(line, is_too_long)));
                }
                Some(white_space) => line.push(white_space),
                None => {}
            }
            is_too_long |= line.len() > LINE_LIMIT_BYTES;
            if is_too_long {
                line.truncate(FIELD_HEAD_BYTES);
            }
        }
    }

    /// The bytes that can be read now; none at the end.
    fn buffer(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        self.input.fill_buf()
    }
}

fn raw_line(line: Vec<u8>, is_too_long: bool) -> RawLine {
    if is_too_long { RawLine::TooLong } else { RawLine::Line(line) }
}
