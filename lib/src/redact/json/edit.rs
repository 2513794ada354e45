//! What changes in a line of JSON, and where.

use std::ops::Range;

use memchr::memchr;

use crate::model::json;

/// A place of a line, and what is written there instead.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) new: Replacement,
}

pub(super) enum Replacement {
    /// Text, or a placeholder in a string: no character of it is escaped.
    Text(String),
    /// A whole string of JSON. It may be most of the line, so it is encoded where it is written.
    String { text: String, is_closed: bool },
}

/// Appends a line with its edits, which are in order.
pub(super) fn write_edited(line: &[u8], edits: Vec<Edit>, out: &mut Vec<u8>) {
    let mut copied = 0;
    for Edit { range, new } in edits {
        out.extend_from_slice(&line[copied..range.start]);
        copied = range.end;
        match new {
            Replacement::Text(text) => out.extend_from_slice(text.as_bytes()),
            Replacement::String { text, is_closed } => {
                drop(json::write(&mut *out, &text));
                if !is_closed {
                    out.pop();
                }
            }
        }
    }
    out.extend_from_slice(&line[copied..]);
}

/// Finds places of what a string says in the string as it is written. They only grow.
pub(super) struct Places<'w> {
    written: &'w str,
    next_escape: Option<usize>,
    /// A place, and the same place in what the string says.
    at: usize,
    decoded_at: usize,
}

impl<'w> Places<'w> {
    pub(super) fn new(written: &'w str) -> Places<'w> {
        Places { written, next_escape: memchr(b'\\', written.as_bytes()), at: 0, decoded_at: 0 }
    }

    pub(super) fn of(&mut self, decoded: usize) -> usize {
        while let Some(next) = self.next_escape
            && self.decoded_at + (next - self.at) < decoded
        {
            let (c, length) = json::escape(&self.written[next + 1..]);
            self.decoded_at += next - self.at + c.len_utf8();
            self.at = next + 1 + length;
            self.next_escape = memchr(b'\\', &self.written.as_bytes()[self.at..]).map(|next| self.at + next);
        }
        self.at += decoded.saturating_sub(self.decoded_at);
        self.decoded_at = self.decoded_at.max(decoded);
        self.at
    }
}
