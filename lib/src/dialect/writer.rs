//! What a dialect's writer gets and returns: facts and lines, no files.
//!
//! The recorder and the converter decide when a record is written and what its parent is; a dialect builds the lines of one
//! record in its format and reports what the format cannot hold.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::line_builder::Put;
use crate::model::issue::quoted;
use crate::model::loss::{LossKind, Losses, Lost};
use crate::model::record::{Body, Context, RecordId, SessionId, Usage};
use crate::redact::Style;

/// How a dialect writes. See [`crate::dialect::Dialect::writer`].
pub struct Writer {
    /// The smallest unit that it can write.
    pub unit: WriteUnit,
    /// Whether any record can be a parent.
    pub shape: Shape,
    /// Whether the lines of a session with this id state the id; otherwise the path does, and the id follows from it.
    pub states_session_id: fn(&SessionId) -> bool,
    /// Whether a record can have any id; otherwise the ids in its lines are UUIDs.
    pub takes_any_id: bool,
    /// Whether a record without a parent can follow others: then a conversation can go back to its start.
    pub can_restart: bool,
    /// Whether the agent goes on from a record before a compaction that follows it in the file.
    pub continues_before_compaction: bool,
    /// Whether its records have a field for the kind of user.
    pub has_user_type: bool,
    /// Whether it can store how people see a message ([`Content::display`]); otherwise what the agent sent is a prompt.
    ///
    /// [`Content::display`]: crate::model::record::Content::display
    pub stores_display: bool,
    /// Whether a session is with a person or a room, and names them.
    pub is_with_somebody: bool,
    /// What is written in place of a secret.
    pub placeholders: Style,
    /// The path of a new session's file, below the store; or why the session cannot be stored.
    pub place: fn(&Beginning<'_>) -> Result<PathBuf, String>,
    /// The lines at the start of a new file.
    pub header: fn(&Beginning<'_>) -> Vec<Line>,
    /// The lines of one record.
    pub lines: fn(&NewRecord<'_>) -> Written,
    /// The content of the file beside the log, if the format has one; the first argument is its content so far. The log
    /// always takes precedence over it.
    pub sidecar: Option<fn(Option<Value>, &Tally) -> Value>,
    /// A line of another session of this dialect, for this session: only the session and the parent change.
    pub adopt: Option<fn(Value, &Adoption<'_>) -> Value>,
    /// The agent's settings, a file below the store, if a header depends on them.
    pub settings: Option<&'static str>,
    /// The path of a session that ends at this time, for formats that have one current session; `None` for a file that
    /// is not a current session. If the path is taken, the next second is tried, so names sort by the end of the sessions.
    pub ended_path: Option<fn(&Path, Timestamp) -> Option<PathBuf>>,
}

impl Writer {
    /// A writer that states the session's id in its lines and has nothing optional.
    pub(crate) const fn new(
        unit: WriteUnit,
        shape: Shape,
        place: fn(&Beginning<'_>) -> Result<PathBuf, String>,
        lines: fn(&NewRecord<'_>) -> Written,
    ) -> Writer {
        Writer {
            unit,
            shape,
            states_session_id: |_| true,
            takes_any_id: false,
            can_restart: false,
            continues_before_compaction: true,
            has_user_type: false,
            stores_display: false,
            is_with_somebody: false,
            placeholders: Style::Hashed,
            place,
            header: |_| Vec::new(),
            lines,
            sidecar: None,
            adopt: None,
            settings: None,
            ended_path: None,
        }
    }
}

/// The smallest unit that a format can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteUnit {
    /// A piece of a part: the reader joins pieces with the same id.
    Fragment,
    /// A part: the reader joins parts with the same id.
    Part,
    /// A part that is a record of its own; the records of one answer have the same [`NewRecord::answer`].
    Block,
    /// Everything between two prompts, as one assistant body: its calls contain their results.
    Turn,
}

/// How records are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any record can be a parent.
    Tree,
    /// The parent of a record is the one before it: a session can be continued only at its end.
    Linear,
}

/// A session that is about to be created.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// Its id: a checked part of a path.
    pub session: &'a SessionId,
    /// The project's directory, absolute.
    pub project: &'a Path,
    /// The working directory of the agent, absolute.
    pub cwd: &'a Path,
    /// The current time.
    pub at: Timestamp,
    /// The version of the agent.
    pub version: &'a str,
    /// The git branch that is checked out.
    pub git_branch: Option<&'a str>,
    /// The person or room that the session is with, if the format needs it.
    pub with: Option<&'a str>,
    /// The session and the record there that this one was forked from.
    pub forked_from: Option<(&'a SessionId, &'a RecordId)>,
    /// The agent's settings, if the writer asks for them and they can be read.
    pub settings: Option<&'a str>,
}

/// One record that is about to be written.
///
/// Times, ids, context and the names of tools are filled in. Secrets are removed from its lines afterwards.
pub struct NewRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its id: a new one, or that of the record that it is a further fragment of.
    pub id: &'a RecordId,
    /// Its parent; `None` at the start of a conversation.
    pub parent: Option<&'a RecordId>,
    /// The answer that it belongs to: the same id for all blocks of the answer.
    pub answer: &'a RecordId,
    /// The current time, never before that of the record that was written last.
    pub at: Timestamp,
    /// The version of the agent.
    pub version: &'a str,
    /// Its content.
    pub body: &'a Body,
    /// The responses of a turn, in order. The body has the last model and the usage of all of them.
    pub responses: &'a [Response],
    /// The context, for bodies that have none of their own.
    pub context: &'a Context,
    /// Its parent is not the head. A format that names its head must name the new one.
    pub branches: bool,
    /// It is part of a side conversation.
    pub sidechain: bool,
    /// Which fragment of a record it is, if the record is written in fragments.
    pub fragment: Option<Fragment>,
    /// The session that the first record of this one was copied from.
    pub forked_from: Option<(&'a SessionId, &'a RecordId)>,
    /// The id that the reader gives to the last line of the file, if the line states it: a format may number its lines.
    pub last: Option<&'a RecordId>,
    /// The model of the last answer, while an agent records: a reader may assume it for this record, too.
    pub model_before: Option<&'a str>,
    /// The text of a prompt as it may be repeated: masked, as far as any format repeats it. To cut the body's text instead would
    /// leave the beginning of a secret, which no rule knows.
    pub prompt: Option<&'a str>,
    /// Makes further ids that the format needs.
    pub new_id: &'a dyn Fn() -> String,
}

impl<'a> NewRecord<'a> {
    /// A fact of the context: that of the body, else that of the recorder.
    pub(crate) fn context_fact(&self, of: fn(&Context) -> Option<&String>) -> Option<&'a str> {
        let own = self.body.content().map(|content| &content.context);
        own.and_then(of).or(of(self.context)).map(String::as_str)
    }
}

/// One response of a model in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// When it was complete.
    pub at: Timestamp,
    /// The model that gave it.
    pub model: Option<String>,
    /// Its tokens.
    pub usage: Option<Usage>,
}

/// Which fragment of a record a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// Counts the lines of the record from 0.
    pub seq: u64,
    /// Which part of the message it belongs to.
    pub part: u64,
}

/// The lines of a record, and what they do not contain.
#[derive(Debug, Default)]
pub struct Written {
    /// The lines, in order; none if the format cannot hold the record at all.
    pub lines: Vec<Line>,
    /// What the format cannot hold, holds as something else, or requires and was made up.
    pub losses: Losses,
}

/// One line of a session's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The JSON value.
    pub value: Value,
    /// The id that the reader will give to the record.
    pub names: Names,
}

/// The id that the reader will give to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// This id; the record is in the parent chain.
    Link(RecordId),
    /// An id made from its offset, `at-<offset>`; the record is in the parent chain.
    Place,
    /// This id; the record cannot be a parent.
    Aside(RecordId),
    /// An id made from its offset; the record cannot be a parent.
    Side,
}

/// What a session's sidecar repeats of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The session.
    pub session: SessionId,
    /// The project's directory.
    pub project: String,
    /// The working directory of the agent.
    pub cwd: String,
    /// The git branch that was checked out last.
    pub git_branch: Option<String>,
    /// The version of the agent.
    pub version: String,
    /// When it started.
    pub started: Option<Timestamp>,
    /// The time of the newest record.
    pub updated: Option<Timestamp>,
    /// The title that a person gave it.
    pub title: Option<String>,
    /// The beginnings of the first and the last prompt.
    pub prompts: Option<(String, String)>,
    /// The model that answered last.
    pub model: Option<String>,
    /// The number of messages of people, models and tools, in all branches.
    pub messages: u64,
    /// The size of the log.
    pub size_bytes: u64,
    /// The tokens of all requests.
    pub usage: Option<Usage>,
    /// A recorder has it open, or stopped without closing it.
    pub is_open: bool,
    /// The token of the lock that its recorder holds in our data folder: if that is free, the recorder has ended.
    pub lock: Option<String>,
    /// How it ended, if no recorder has it open.
    pub end: End,
    /// The session that this one was forked from.
    pub forked_from: Option<SessionId>,
    /// Whether secrets are removed from what is recorded.
    pub is_redacted: bool,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its recorder closed it.
    Closed,
    /// With a prompt, an open call or tool results: it is complete as written, and the turn is not over.
    BrokenOff,
    /// With a failure of the agent or its provider.
    Failed,
}

/// What changes in a line that another session adopts.
pub struct Adoption<'a> {
    /// The session that adopts it.
    pub session: &'a SessionId,
    /// The parent of the record there.
    pub parent: Option<&'a RecordId>,
    /// The session and record that it comes from.
    pub from: (&'a SessionId, &'a RecordId),
}

/// The longest name of a file or a folder that file systems accept.
pub(crate) const FILE_NAME_LIMIT_BYTES: usize = 255;

/// Checks that file systems accept the name of a file or folder that a session needs, and that a terminal can show it.
pub(crate) fn file_name(name: String) -> Result<String, String> {
    if name.contains(char::is_control) {
        return Err(format!("the name {} has a control character", quoted(&name)));
    }
    match name.len() {
        0..=FILE_NAME_LIMIT_BYTES => Ok(name),
        length => {
            let name = quoted(&name);
            Err(format!("the name {name} is {length} bytes long; file systems accept {FILE_NAME_LIMIT_BYTES}"))
        }
    }
}

/// The file name of a session that ended at this time, in UTC.
pub(crate) fn ended_name(ended: Timestamp) -> String {
    format!("{}.jsonl", ended.strftime("%Y%m%d-%H%M%S"))
}

/// The content of the file beside a log: the known fields in the order of the format, then the other fields that it had.
pub(crate) fn sidecar<const N: usize>(known: [(&str, Option<Value>); N], mut before: Map<String, Value>) -> Value {
    let mut fields = Map::new();
    for (key, value) in known {
        before.shift_remove(key);
        fields.put_some(key, value);
    }
    fields.extend(before);
    fields.into()
}

/// Whether a text is a UUID as programs write it: 8-4-4-4-12 hexadecimal digits, in lower case. In upper case it would be a second
/// name of the same session.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9' | b'a'..=b'f'))
}

impl Written {
    /// One line with this id, in the parent chain.
    pub fn link(id: &RecordId, value: Value) -> Written {
        Written { lines: vec![Line { value, names: Names::Link(id.clone()) }], losses: Losses::default() }
    }

    /// No line: the format cannot hold the record.
    pub fn nothing(what: impl Into<Lost>) -> Written {
        Written { lines: Vec::new(), losses: LossKind::Dropped.of(what).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_is_a_uuid() {
        for (text, is_one) in [
            ("4ccdaf53-7481-4244-80e4-5077653ba545", true),
            ("4CCDAF53-7481-4244-80E4-5077653BA545", false),
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
