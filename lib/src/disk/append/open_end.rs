//! The bytes behind the last LF of a log: a whole record without its LF, or a torn one.

use std::io;

use serde::de::IgnoredAny;

use super::{Warning, fill};
use crate::disk::OpenLog;
use crate::session::read::parser::VALUE_LIMIT_BYTES;

/// The first window in which to look for the start of the line; each further one is four times as large.
const WINDOW_BYTES: u64 = 8 * 1024;

/// Judges the last line of a log of `length` bytes that does not end in LF.
pub(super) fn open_end(log: &dyn OpenLog, length: u64) -> io::Result<Warning> {
    let (mut line, mut start, mut window) = (Vec::new(), length, WINDOW_BYTES);
    // A longer line is not a record for a reader either.
    while start > 0 && line.len() <= VALUE_LIMIT_BYTES {
        let from = start.saturating_sub(window);
        let mut piece = vec![0; usize::try_from(start - from).unwrap_or_default()];
        let read = fill(log, from, &mut piece)?;
        piece.truncate(read);
        let newline = piece.iter().rposition(|byte| *byte == b'\n');
        piece.drain(..newline.map_or(0, |newline| newline + 1));
        piece.append(&mut line);
        (line, start, window) = (piece, if newline.is_some() { 0 } else { from }, window.saturating_mul(4));
    }
    let mut values = serde_json::Deserializer::from_slice(&line).into_iter::<IgnoredAny>();
    Ok(if values.all(|value| value.is_ok()) { Warning::NoLineEnd } else { Warning::TornTail })
}
