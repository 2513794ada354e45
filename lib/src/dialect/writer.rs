//! What a dialect is given to write, and what it gives back: facts and lines, no files.
//!
//! The recorder and the converter decide when something is written and where it hangs; a dialect says how one record of
//! theirs looks in its format, and what of it the format cannot hold.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::issue::quoted;
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Context, RecordId, SessionId, Usage};

/// How a dialect writes. See [`crate::dialect::Dialect::writer`].
pub struct Writer {
    /// The smallest thing that it can write down.
    pub unit: WriteUnit,
    /// Whether a record can hang on any other.
    pub shape: Shape,
    /// Whether the lines of a session say that it is called so; else its place does, and it is called after that.
    pub tells_session: fn(&SessionId) -> bool,
    /// Whether a record can be called anything; else it is called by a UUID, where its lines name it.
    pub takes_any_id: bool,
    /// Whether a session is with somebody, a person or a room, and says so.
    pub is_with_somebody: bool,
    /// The file of a new session, below the store; or why there can be none.
    pub place: fn(&Beginning<'_>) -> Result<PathBuf, String>,
    /// The lines that a new file begins with.
    pub header: fn(&Beginning<'_>) -> Vec<Line>,
    /// The lines that say one record.
    pub lines: fn(&NewRecord<'_>) -> Written,
    /// The file beside the log, where there is one; the first is what it said before. The log wins over it, always.
    pub sidecar: Option<fn(Option<Value>, &Tally) -> Value>,
    /// A line of another session of this dialect, as a line of this one: only who and what it hangs on changes.
    pub adopt: Option<fn(Value, &Adoption<'_>) -> Value>,
    /// The path of a session that ends at an instant, for formats that keep one session at a time; `None` for a file that
    /// is not a current session. If the path is taken, the next second is tried, so that names sort as the sessions ended.
    pub ended_path: Option<fn(&Path, Timestamp) -> Option<PathBuf>>,
}

/// The smallest thing that a format can write down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteUnit {
    /// A piece of a part: the reader joins pieces with the same id.
    Fragment,
    /// A part: the reader joins parts with the same id.
    Part,
    /// A part that is a record of its own; the records of one answer have [`NewRecord::answer`] in common.
    Block,
    /// All that the model says and does between two prompts, as one assistant body: its calls carry their results.
    Turn,
}

/// How records hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any record can be gone on from.
    Tree,
    /// A record follows the one before it: only the end can be gone on from.
    Linear,
}

/// A session that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// Its id: a checked part of a path.
    pub session: &'a SessionId,
    /// The project's directory, absolute.
    pub project: &'a Path,
    /// Where the agent works, absolute.
    pub cwd: &'a Path,
    /// Now.
    pub at: Timestamp,
    /// The agent's own version.
    pub version: &'a str,
    /// The branch that is checked out.
    pub git_branch: Option<&'a str>,
    /// Whom the session is with, a person or a room, where the format asks for it.
    pub with: Option<&'a str>,
    /// The session and the record there that this one was forked from.
    pub forked_from: Option<(&'a SessionId, &'a RecordId)>,
}

/// One record that is about to be written.
///
/// Times, ids, context and tools' names are filled in. What must not be written is taken out of its lines afterwards.
pub struct NewRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its id: a fresh one, or that of the record it is a further piece of.
    pub id: &'a RecordId,
    /// What it hangs on; nothing where a conversation begins.
    pub parent: Option<&'a RecordId>,
    /// The model's answer that it belongs to: the same for all its blocks.
    pub answer: &'a RecordId,
    /// Now, and never before the record that was written last.
    pub at: Timestamp,
    /// The agent's own version.
    pub version: &'a str,
    /// What it says.
    pub body: &'a Body,
    /// Of a turn: the responses that its steps are, in their order. The body tells the last model and what all of them cost.
    pub responses: &'a [Response],
    /// Where it is said: for bodies that do not tell it themselves.
    pub context: &'a Context,
    /// It goes on from another record than the head. Where a format names its head, that must be said.
    pub branches: bool,
    /// Work beside the conversation.
    pub sidechain: bool,
    /// Which piece of a record it is, where it is written in pieces.
    pub fragment: Option<Fragment>,
    /// The session that this one's first record came from.
    pub forked_from: Option<(&'a SessionId, &'a RecordId)>,
    /// What the reader calls the last line of the file, where that line tells it: a format may number its lines.
    pub last: Option<&'a RecordId>,
    /// The model that answered last, where what is recorded happens now: a reader may take it for the model of this, too.
    pub model_before: Option<&'a str>,
    /// Makes ids for what else the format wants named.
    pub new_id: &'a dyn Fn() -> String,
}

/// One response of a model in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// When it was whole.
    pub at: Timestamp,
    /// The model that gave it.
    pub model: Option<String>,
    /// What it cost.
    pub usage: Option<Usage>,
}

/// Which piece of a record a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// Counts the lines of the record from 0.
    pub seq: u64,
    /// Which part of the message it belongs to.
    pub part: u64,
}

/// The lines that say a record, and what they do not say.
#[derive(Debug, Default)]
pub struct Written {
    /// The lines, in order; none where the format cannot hold the record at all.
    pub lines: Vec<Line>,
    /// What the format cannot hold of it, holds under another name, or had to be made up.
    pub losses: Losses,
}

/// One line of a session's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The JSON value.
    pub value: Value,
    /// What the reader will call the record that it is.
    pub names: Names,
}

/// What the reader will call a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// A record of the chain with this id.
    Link(RecordId),
    /// A record of the chain that is called after its place: `at-<offset>`.
    Place,
    /// Nothing that others hang on, with this id.
    Aside(RecordId),
    /// Nothing that others hang on: it is called after its place.
    Side,
}

/// What a session's sidecar repeats of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The session.
    pub session: SessionId,
    /// The project's directory.
    pub project: String,
    /// Where the agent works.
    pub cwd: String,
    /// The branch that was checked out last.
    pub git_branch: Option<String>,
    /// The agent's own version.
    pub version: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// The newest instant.
    pub updated: Option<Timestamp>,
    /// The title that somebody gave it.
    pub title: Option<String>,
    /// The first and the last prompt.
    pub prompts: Option<(String, String)>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Messages of people, models and tools, in all branches.
    pub messages: u64,
    /// Bytes of the log.
    pub size_bytes: u64,
    /// Tokens of all requests.
    pub usage: Option<Usage>,
    /// A recorder has it open, or ended without closing it.
    pub is_open: bool,
    /// Where it ended, if nobody has it open.
    pub end: End,
    /// The session that this one was forked from.
    pub forked_from: Option<SessionId>,
}

/// Where a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where its recorder ended it.
    Closed,
    /// In a prompt, an open call, or what tools gave back: it was written whole and is not over.
    BrokenOff,
    /// In a failure of the agent or its provider.
    Failed,
}

/// What changes in a line that another session takes over.
pub struct Adoption<'a> {
    /// The session that takes it.
    pub session: &'a SessionId,
    /// What the record hangs on there.
    pub parent: Option<&'a RecordId>,
    /// Where it comes from.
    pub from: (&'a SessionId, &'a RecordId),
}

/// No file system takes a longer name for a file or a folder.
pub(crate) const FILE_NAME_LIMIT_BYTES: usize = 255;

/// The name of a file or folder that a session needs, where file systems take it.
pub(crate) fn file_name(name: String) -> Result<String, String> {
    match name.len() {
        0..=FILE_NAME_LIMIT_BYTES => Ok(name),
        length => {
            let name = quoted(&name);
            Err(format!("{name} would be a name of {length} bytes, and file systems take {FILE_NAME_LIMIT_BYTES}"))
        }
    }
}

/// The file name of a session that ended at an instant, in UTC.
pub(crate) fn ended_name(ended: Timestamp) -> String {
    format!("{}.jsonl", ended.strftime("%Y%m%d-%H%M%S"))
}

/// What the file beside a log says: what we know, in the order of the format, then what else it said before.
pub(crate) fn sidecar<const N: usize>(known: [(&str, Option<Value>); N], mut before: Map<String, Value>) -> Value {
    let mut told = Map::new();
    for (key, value) in known {
        before.shift_remove(key);
        told.extend(value.map(|value| (key.to_owned(), value)));
    }
    told.extend(before);
    told.into()
}

/// Whether a text is a UUID as programs write it: 8-4-4-4-12 hexadecimal digits.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

impl Written {
    /// One line that is a record of the chain.
    pub fn link(id: &RecordId, value: Value) -> Written {
        Written { lines: vec![Line { value, names: Names::Link(id.clone()) }], losses: Losses::default() }
    }

    /// Nothing: the format has no place for it.
    pub fn nothing(what: impl Into<Lost>) -> Written {
        Written::default().without(what)
    }

    /// The same, and something is not in it.
    pub fn without(mut self, what: impl Into<Lost>) -> Written {
        self.losses.dropped(what);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_told_from_what_resembles_one() {
        for (text, is_one) in [
            ("4ccdaf53-7481-4244-80e4-5077653ba545", true),
            ("4CCDAF53-7481-4244-80E4-5077653BA545", true),
            ("4ccdaf537481424480e45077653ba545", false),
            ("4ccdaf53-7481-4244-80e4-5077653ba54g", false),
            ("4ccdaf53-7481-4244-80e4-5077653ba545-", false),
            ("../../../../../../../../../etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(is_uuid(text), is_one, "{text}");
        }
    }
}
