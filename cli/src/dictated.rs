//! Lines that come in on standard input, read beside the work: while nothing comes, what is held back can be written.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use scrollback::dictation::LINE_LIMIT_BYTES;

use crate::failure::{Failure, FailureKind};

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
        listen_for_stops(sender.clone())?;
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

fn read_all(mut input: impl BufRead, sender: &SyncSender<Came>) {
    let mut number = 0;
    loop {
        let came = match read_line(&mut input) {
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

fn read_line(input: &mut impl BufRead) -> io::Result<Option<Taken>> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_LIMIT_BYTES as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() < LINE_LIMIT_BYTES || line.ends_with(b"\n") {
        return Ok(Some(Taken::Line(line)));
    }
    line = Vec::new();
    const PIECE_BYTES: u64 = 1024 * 1024;
    while input.by_ref().take(PIECE_BYTES).read_until(b'\n', &mut line)? > 0 && !line.ends_with(b"\n") {
        line.clear();
    }
    Ok(Some(Taken::TooLong))
}

/// The first Ctrl-C or SIGTERM asks for an end, the second one makes it.
fn listen_for_stops(sender: SyncSender<Came>) -> Result<(), Failure> {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) || sender.send(Came::End).is_err() {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::new(FailureKind::Io, error.to_string()))
}
