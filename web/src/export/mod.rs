//! A session as one file: HTML that is complete by itself, or Markdown as people paste it into an issue.
//!
//! Both are written message by message: a long session is never in memory as a whole.

mod html;
mod md;

use std::fmt;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::session::{RecordRef, Session};
use scrollback::view::SessionRow;

use crate::SubAgents;
use crate::figures::Price;

pub use html::write as html;
pub use md::write as markdown;

/// What is written.
pub struct Document<'a> {
    /// The session.
    pub session: &'a Session,
    /// The heads of the branches, the first one first.
    pub heads: Vec<RecordRef<'a>>,
    /// The reader's time zone.
    pub zone: &'a TimeZone,
    /// When it is written.
    pub now: Timestamp,
    /// What a request cost that no list of prices knows.
    pub price: &'a Price,
    /// Where sub-agents are found.
    pub sub_agents: &'a dyn SubAgents,
}

/// Why nothing, or only a part, was written.
#[derive(Debug)]
pub enum Error {
    /// The session could not be read.
    Read(scrollback::Error),
    /// The file could not be written.
    Write(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(error) => error.fmt(f),
            Error::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<scrollback::Error> for Error {
    fn from(error: scrollback::Error) -> Error {
        Error::Read(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Write(error)
    }
}

/// Counts the masked secrets in what is written.
pub struct CountMasked<W> {
    out: W,
    /// How far the text so far matches the beginning of a placeholder.
    matched: usize,
    /// How many placeholders there were.
    pub count: usize,
}

/// How every placeholder begins.
const PLACEHOLDER: &[u8] = b"[REDACTED:";

impl<W: Write> CountMasked<W> {
    /// Writes to something.
    pub fn new(out: W) -> CountMasked<W> {
        CountMasked { out, matched: 0, count: 0 }
    }

    /// What it writes to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for CountMasked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        for byte in &bytes[..written] {
            self.matched = match *byte {
                byte if byte == PLACEHOLDER[self.matched] => self.matched + 1,
                byte => usize::from(byte == PLACEHOLDER[0]),
            };
            if self.matched == PLACEHOLDER.len() {
                (self.matched, self.count) = (0, self.count + 1);
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The facts that stand above a session, each with its name.
fn facts(row: &SessionRow, zone: &TimeZone) -> Vec<(&'static str, String)> {
    use crate::render::words;
    let when = match (row.started, row.updated) {
        (Some(start), Some(end)) => {
            Some(format!("{}–{}", words::day_and_time(start, zone), words::day_and_time(end, zone)))
        }
        (start, end) => start.or(end).map(|at| words::day_and_time(at, zone)),
    };
    let facts = [
        ("Agent", Some(crate::render::icon::agent_name(&row.dialect).to_owned())),
        ("Model", Some(row.models.join(", ")).filter(|models| !models.is_empty())),
        ("Project", row.project.as_deref().map(|project| project.rsplit('/').next().unwrap_or(project).to_owned())),
        ("Branch", row.git_branch.clone()),
        ("When", when),
        ("Messages", row.message_count.map(|count| words::grouped(count as u64))),
        (
            "Tokens",
            row.usage
                .as_ref()
                .map(|usage| words::usage_facts(usage).join(", "))
                .filter(|tokens| !tokens.is_empty()),
        ),
        ("Id", Some(row.id.to_string())),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_counted_across_writes() {
        let mut out = CountMasked::new(Vec::new());
        for piece in ["a [REDACTED:x] [[RED", "ACTED:y] [REDACTED", " z", "[REDACTED:"] {
            out.write_all(piece.as_bytes()).unwrap();
        }
        assert_eq!(out.count, 3);
    }
}
