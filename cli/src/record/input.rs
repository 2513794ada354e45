//! Lines that come in on standard input, read beside the work: while nothing comes, what is held back can be written.

use std::io::{self, BufRead};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use crate::record::ingest::LINE_LIMIT_BYTES;

use crate::failure::Failure;
use crate::record::sse::{FIELD_HEAD_BYTES, is_field};
use crate::terminal::interrupt::on_interrupt;

/// Lines that are read ahead: few, since one may be large.
const READ_AHEAD: usize = 8;

/// After this long without a line nothing is held back any more.
const QUIET: Duration = Duration::from_secs(1);

/// What came in.
pub(crate) enum Came {
    /// A line, counted from 1.
    Line(u64, Vec<u8>),
    /// A line that is too long; it was passed over.
    TooLong(u64),
    /// Nothing, for a while.
    Nothing,
    /// The input ended, or somebody asked for an end.
    End,
    /// The input cannot be read any further.
    Failed(io::Error),
}

/// The lines of standard input.
pub(crate) struct Lines {
    lines: Receiver<Came>,
}

impl Lines {
    pub(crate) fn of_stdin() -> Result<Lines, Failure> {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
        let stop = sender.clone();
        on_interrupt(move || stop.send(Came::End).is_ok())?;
        // It ends with the input, or with the process.
        std::thread::spawn(move || read_all(io::stdin().lock(), &sender));
        Ok(Lines { lines })
    }

    pub(crate) fn next(&self) -> Came {
        match self.lines.recv_timeout(QUIET) {
            Ok(came) => came,
            Err(RecvTimeoutError::Timeout) => Came::Nothing,
            Err(RecvTimeoutError::Disconnected) => Came::End,
        }
    }
}

fn read_all(input: impl BufRead, sender: &SyncSender<Came>) {
    let mut input = Input { input, ended: End::Lf };
    let mut number = 0;
    loop {
        let came = match input.line() {
            Ok(Some(Taken::Line(line))) => {
                number += 1;
                Came::Line(number, line)
            }
            Ok(Some(Taken::TooLong)) => {
                number += 1;
                Came::TooLong(number)
            }
            Ok(None) => Came::End,
            Err(error) => Came::Failed(error),
        };
        let is_last = matches!(came, Came::End | Came::Failed(_));
        if sender.send(came).is_err() || is_last {
            return;
        }
    }
}

enum Taken {
    Line(Vec<u8>),
    TooLong,
}

/// Lines end with LF; those of server-sent events also with CR, which in JSON is white space.
struct Input<R> {
    input: R,
    /// How the line before ended.
    ended: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lf,
    Cr,
}

impl<R: BufRead> Input<R> {
    /// The next line without its end.
    fn line(&mut self) -> io::Result<Option<Taken>> {
        let after = std::mem::replace(&mut self.ended, End::Lf);
        if after == End::Cr && self.piece()?.first() == Some(&b'\n') {
            self.input.consume(1);
        }
        let (mut line, mut is_too_long) = (Vec::new(), false);
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok((!line.is_empty()).then(|| taken(line, is_too_long)));
            }
            let end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (content, byte) =
                (piece.get(..end.unwrap_or(piece.len())), end.and_then(|end| piece.get(end)).copied());
            line.extend_from_slice(content.unwrap_or_default());
            let passed = end.map_or(piece.len(), |end| end + 1);
            self.input.consume(passed);
            match byte {
                Some(b'\n') => return Ok(Some(taken(line, is_too_long))),
                Some(_) if is_field(&line) || line.is_empty() && after == End::Cr => {
                    self.ended = End::Cr;
                    return Ok(Some(taken(line, is_too_long)));
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

    /// What can be read now; nothing at the end.
    fn piece(&mut self) -> io::Result<&[u8]> {
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

fn taken(line: Vec<u8>, is_too_long: bool) -> Taken {
    if is_too_long { Taken::TooLong } else { Taken::Line(line) }
}
