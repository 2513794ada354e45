//! Lines of other programs as calls of a [`Recorder`]: the way in for agents in any language.
//!
//! Three formats are understood, and each line may be of another one: our own lines (`native_lines.rs`), chunks of the AI SDK's
//! UI message stream (`ai_sdk_chunks.rs`), and the output of `claude -p --output-format stream-json` (`claude_stream.rs`). A line
//! is untrusted: it is repaired and reported, or refused, and never stops the next one.

mod ai_sdk_chunks;
mod claude_stream;
mod content;
mod fields;
mod json_line;
mod native_lines;
mod open_texts;
mod usage;
mod xmpp;

use std::fmt;
use std::path::PathBuf;

use scrollback::model::{
    Body, Error, Loss, LossKind, Lost, Message, Part, RecordId, Restore, Result, Thinking, Todo, ToolResult, Usage,
    quoted,
};
use scrollback::write::{Delta, Entry, Recorder};
use serde_json::Value;

/// A longer line is refused: its record could not be read back.
pub(crate) const LINE_LIMIT_BYTES: usize = scrollback::session::VALUE_LIMIT_BYTES;

/// A longer text is not copied for a second attempt to save it.
const LARGE_TEXT_BYTES: usize = 1024 * 1024;

/// How many different notes are printed: a hostile stream can make one up for each line.
const NOTE_LIMIT: usize = 20;

/// Parses lines and applies them to a recorder, with the state that streams need between lines.
#[derive(Default)]
pub(crate) struct Ingest {
    /// The other person or room of the session.
    with: Option<String>,
    chunks: ai_sdk_chunks::Stream,
    claude: claude_stream::Stream,
    /// Notes that were returned already.
    noted: Vec<String>,
    /// The head when the current step began.
    step_from: Option<RecordId>,
}

/// The meaning of a line.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// What to record, in order; empty for lines that only frame a stream.
    pub(crate) ops: Vec<Op>,
    /// Parts of the line that cannot be recorded, or only changed.
    pub(crate) losses: Vec<Loss>,
    /// What is not recorded and why, each once.
    pub(crate) notes: Vec<String>,
    /// The content of this line is recorded with a later line.
    pub(crate) waits: bool,
    /// The content of all earlier lines is recorded with this line at the latest.
    pub(crate) releases: bool,
}

/// One thing to record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// A record.
    Body(Box<Body>),
    /// The new task list.
    Todos(Vec<Todo>),
    /// The new thinking mode.
    Thinking(Thinking),
    /// The token counts of the last answer.
    Usage(Usage),
    /// The conversation continues from an earlier record, given by its id or a unique prefix.
    Rewind { to: String, reason: Option<String> },
    /// Files were put back, and the conversation continues from an earlier record.
    Restore { to: String, restore: Restore },
    /// A tool is about to change these files.
    BeforeTool(Vec<PathBuf>),
    /// The tool has run.
    AfterTool,
    /// What changes in this folder is recorded from now on.
    Watch(PathBuf),
    /// A piece of the current answer.
    Delta(Delta),
    /// A tool result that may come before the answer is complete.
    Result(Box<ToolResult>),
    /// An answer begins. Records nothing.
    Step,
    /// Discards the answer since the last [`Op::Step`].
    Reset,
    /// The answer is complete.
    Finish(Option<Usage>),
    /// The answer is complete, if there is one.
    EndStep(Option<Usage>),
    /// The agent ended its turn.
    EndTurn,
    /// The answer breaks off, if there is one.
    CutOff,
}

impl Op {
    /// Whether a session can start with it; an op that only frames an answer waits for the first one that can.
    pub(crate) fn has_content(&self) -> bool {
        match self {
            Op::Body(_)
            | Op::Todos(_)
            | Op::Thinking(_)
            | Op::Usage(_)
            | Op::Rewind { .. }
            | Op::Restore { .. }
            | Op::BeforeTool(_)
            | Op::AfterTool
            | Op::Watch(_)
            | Op::Delta(Delta::Text(_) | Delta::Reasoning(_) | Delta::Part(_))
            | Op::Result(_)
            | Op::Finish(_) => true,
            Op::Delta(Delta::Model(_) | Delta::About(_) | Delta::End(_))
            | Op::Step
            | Op::Reset
            | Op::EndStep(_)
            | Op::EndTurn
            | Op::CutOff => false,
        }
    }

    /// Whether it can be recorded with others, all or nothing: it does not read the session.
    pub(crate) fn can_be_together(&self) -> bool {
        !matches!(self, Op::Rewind { .. } | Op::Restore { .. } | Op::Reset)
    }

    /// Whether a copy of it would need much memory.
    pub(crate) fn is_large(&self) -> bool {
        let is_large = |text: &str| text.len() > LARGE_TEXT_BYTES;
        let is_large_part = |part: &Part| matches!(part, Part::Text(part) if is_large(&part.text));
        let is_large_result = |result: &ToolResult| result.output.as_str().is_some_and(is_large);
        match self {
            Op::Body(body) => body.content().is_some_and(|content| {
                content.parts.iter().any(is_large_part) || content.results.iter().any(is_large_result)
            }),
            Op::Result(result) => is_large_result(result),
            Op::Delta(Delta::Text(text) | Delta::Reasoning(text)) => is_large(text),
            Op::Delta(Delta::Part(part)) => is_large_part(part),
            _ => false,
        }
    }

    /// Whether somebody asks the agent something.
    pub(crate) fn is_prompt(&self) -> bool {
        matches!(self, Op::Body(body) if matches!(**body, Body::User(_)))
    }
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Refused {
    fn because(why: impl Into<String>) -> Refused {
        Refused(why.into())
    }
}

impl Ingest {
    /// For a session with a person or a room: their messages need no sender.
    pub(crate) fn with(jid: &str) -> Ingest {
        Ingest { with: Some(jid.to_owned()), ..Ingest::default() }
    }

    /// For a format that writes whole turns: a step ends when it is known that its token counts do not follow.
    pub(crate) fn of_whole_turns(mut self, writes_whole_turns: bool) -> Ingest {
        self.chunks.holds_steps = writes_whole_turns;
        self
    }

    /// Forgets the last line, which was refused: it can be sent again.
    pub(crate) fn undo(&mut self) {
        self.chunks.undo();
        self.claude.undo();
    }

    /// Parses a line, with or without its LF. What the line changes here stays until [`Ingest::undo`].
    pub(crate) fn parse(&mut self, line: &[u8]) -> std::result::Result<Parsed, Refused> {
        self.chunks.begin_line();
        self.claude.begin_line();
        self.parse_line(line).inspect_err(|_| self.undo())
    }

    fn parse_line(&mut self, line: &[u8]) -> std::result::Result<Parsed, Refused> {
        if line.len() > LINE_LIMIT_BYTES {
            return Err(Refused(format!("a line of {} bytes is too long to be read back", line.len())));
        }
        let mut parsed = Parsed::default();
        let Some(mut object) = json_line::object(line, &mut parsed)? else { return Ok(parsed) };
        if !object.get("type").and_then(Value::as_str).is_some_and(ai_sdk_chunks::is_known) {
            self.chunks.end_held_step(&mut parsed);
        }
        match object.get("type").and_then(Value::as_str) {
            Some(kind) if ai_sdk_chunks::is_known(kind) => self.chunks.parse(object, &mut parsed)?,
            Some(kind) if self.claude.knows(kind, &object) => self.claude.parse(object, &mut parsed)?,
            Some(kind) if native_lines::key_of(&object).is_none() => {
                return Err(Refused(format!("unknown type {}; {}", quoted(kind), native_lines::known_keys())));
            }
            _ if object.contains_key("role") => message(Value::Object(object), &mut parsed)?,
            _ => {
                if let (Some(with), Some(message)) = (&self.with, object.get_mut("message")) {
                    xmpp::fill_sender(message, with)?;
                }
                native_lines::parse(object, &mut parsed)?;
            }
        }
        parsed.notes.retain(|note| {
            let is_new = self.noted.len() < NOTE_LIMIT && !self.noted.contains(note);
            if is_new {
                self.noted.push(note.clone());
            }
            is_new
        });
        Ok(parsed)
    }

    /// Ends the input: returns what waited for more of it.
    pub(crate) fn end(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        self.chunks.end(&mut parsed);
        self.claude.end(&mut parsed);
        parsed
    }

    /// Records an op. A failed `sync` is tried once more, as [`Recorder::retry`] says.
    pub(crate) fn apply(&mut self, op: &Op, recorder: &mut Recorder) -> Result<Entry> {
        match op {
            Op::Step => {
                self.step_from = recorder.head().cloned();
                Ok(Entry::default())
            }
            op => recorder.retry(|recorder| self.call(op.clone(), recorder)),
        }
    }

    /// The same without a copy of the op, which may be most of the memory that recording needs. If nothing of it is in the file after a
    /// failed `sync`, it has to be sent again.
    pub(crate) fn apply_once(&self, op: Op, recorder: &mut Recorder) -> Result<Entry> {
        let mut op = Some(op);
        recorder.retry(|recorder| match op.take() {
            Some(op) => self.call(op, recorder),
            None => Err(Error::OutOfOrder("the line is not saved and too large to be kept: send it again")),
        })
    }

    fn call(&self, op: Op, recorder: &mut Recorder) -> Result<Entry> {
        match op {
            Op::Body(body) => recorder.record(*body),
            Op::Todos(todos) => recorder.todos(todos),
            Op::Thinking(thinking) => recorder.thinking(thinking),
            Op::Usage(usage) => recorder.usage(usage),
            Op::Rewind { to, reason } => {
                // Before the answer ends: an unknown record ends nothing.
                let to = recorder.find(&to)?;
                recorder.rewind(&to, reason)
            }
            Op::Restore { to, restore } => {
                let to = recorder.find(&to)?;
                recorder.restore(&to, restore)
            }
            Op::BeforeTool(paths) => recorder.before_tool(&paths).map(|()| Entry::default()),
            Op::AfterTool => recorder.after_tool(),
            Op::Watch(root) => recorder.watch(root).map(|_| Entry::default()),
            Op::Delta(delta) => recorder.delta(delta),
            Op::Result(result) => recorder.early_result(*result),
            Op::Reset => self.reset(recorder),
            Op::EndStep(None) if !recorder.is_answering() => Ok(Entry::default()),
            Op::Finish(usage) | Op::EndStep(usage) => recorder.finish_answer(usage),
            Op::EndTurn => recorder.mark_turn_ended(),
            Op::CutOff => recorder.cut_off_answer().map(|()| Entry::default()),
            Op::Step => Ok(Entry::default()),
        }
    }

    /// Discards the current answer: what is on disk becomes a branch.
    fn reset(&self, recorder: &mut Recorder) -> Result<Entry> {
        recorder.drop_answer();
        match &self.step_from {
            from if from.as_ref() == recorder.head() => Ok(Entry::default()),
            Some(from) => recorder.rewind(&from.clone(), Some("the step was reset".to_owned())),
            None => Err(Error::OutOfOrder("the session begins with this step")),
        }
    }
}

/// A whole UIMessage, or a message of a model's API.
fn message(value: Value, parsed: &mut Parsed) -> std::result::Result<(), Refused> {
    match serde_json::from_value::<Message>(value.clone()) {
        Ok(message) => content::message(message, parsed),
        Err(_) => native_lines::api_message(value, parsed)?,
    }
    Ok(())
}

impl Parsed {
    fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    fn body(&mut self, body: Body) {
        self.push(Op::Body(Box::new(body)));
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.losses.push(LossKind::Dropped.of(Lost::Key(what.into())));
    }

    fn sanitized(&mut self, what: &str) {
        self.losses.push(LossKind::Renamed.of(Lost::Key(what.to_owned())));
    }
}

#[cfg(test)]
mod tests;
