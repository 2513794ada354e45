//! What other programs say, line by line, as calls of a [`Recorder`]: the way in for agents in any language.
//!
//! Three tongues are understood, told apart line by line: our own words (`own.rs`), chunks of the AI SDK's UI message stream
//! (`chunks.rs`), and what `claude -p --output-format stream-json` prints (`stream_json.rs`). A line is untrusted: what it says
//! is mended and told, or refused; nothing in it stops the next one.

mod chunks;
mod fields;
mod json;
mod own;
mod stanza;
mod stream_json;
mod texts;
mod words;

use std::fmt;

use serde_json::Value;

use crate::dialect::writer::Loss;
use crate::model::error::{Error, Result};
use crate::model::issue::quoted;
use crate::model::message::Message;
use crate::model::record::{Body, Kind, RecordId, Thinking, Todo, ToolResult, Usage};
use crate::write::recorder::{Ack, Delta, Durability, Recorder, Saved, Unsaved};
use crate::write::store::link_named;

/// A longer line is refused: what it says could not be read back.
pub const LINE_LIMIT_BYTES: usize = crate::session::read::parser::VALUE_LIMIT_BYTES;

/// How many kinds of notes are told: a hostile stream can make up a kind for each line.
const NOTES_TOLD: usize = 20;

/// Understands lines, and remembers what the ones before said.
///
/// ```
/// use scrollback::{dialect, dictation::Dictation, host::Host, store::Store};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let native = dialect::named("native").ok_or("it is built in")?;
/// let store = Store::open(native, folder.path(), Host::system("my-agent 1.0")?)?;
/// let mut recorder = store.create(std::path::Path::new("/home/ada/tides"))?;
/// let mut dictation = Dictation::default();
/// for line in [r#"{"user": "When is high water?"}"#, r#"{"assistant": "At 04:12."}"#] {
///     for saying in dictation.hear(line.as_bytes())?.sayings {
///         dictation.say(saying, &mut recorder)?;
///     }
/// }
/// assert!(dictation.hear(b"{\"users\": 1}").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Dictation {
    /// Whom the session is with.
    with: Option<String>,
    chunks: chunks::Stream,
    claude: stream_json::Stream,
    /// What was not recorded and told already.
    told: Vec<String>,
    /// The head when the present step began.
    step_from: Option<RecordId>,
}

/// What a line says.
#[derive(Debug, Default)]
pub struct Heard {
    /// What to record, in order; nothing for lines that only hold a stream together.
    pub sayings: Vec<Saying>,
    /// What of the line cannot be kept, or not as it was.
    pub losses: Vec<Loss>,
    /// What is not recorded and why, each once.
    pub notes: Vec<String>,
    /// What the line says waits for a later line.
    pub waits: bool,
    /// What lines before this one said does not wait any longer.
    pub releases: bool,
}

/// One thing to record.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a saying is moved once")]
pub enum Saying {
    /// A record.
    Body(Box<Body>),
    /// The task list is this now.
    Todos(Vec<Todo>),
    /// The thinking mode is this now.
    Thinking(Thinking),
    /// The last answer cost this.
    Usage(Usage),
    /// The conversation goes on from an earlier record.
    Rewind {
        /// The record, or a unique beginning of its id.
        to: String,
        /// Why.
        reason: Option<String>,
    },
    /// A piece of the answer that is being given.
    Delta(Delta),
    /// A tool's answer that came while the model may go on.
    Result(Box<ToolResult>),
    /// An answer of the model begins. Nothing is recorded.
    Step,
    /// What was said since the answer began does not count.
    Reset,
    /// The answer is whole.
    Finish(Option<Usage>),
    /// The answer is whole, if there is one.
    EndStep(Option<Usage>),
}

impl Saying {
    /// What its record may be.
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Saying::Body(body) => match **body {
                Body::User(_) => &[Kind::User],
                // A whole answer may bring its results along.
                Body::Assistant(_) => &[Kind::Assistant, Kind::ToolResult],
                Body::ToolResult(_) => &[Kind::ToolResult],
                Body::Attachment(_) => &[Kind::Attachment],
                Body::System(_) => &[Kind::System],
                Body::Snapshot(_) => &[Kind::Snapshot],
                Body::Title(_) => &[Kind::Title],
                Body::Compaction(_) => &[Kind::Compaction],
                Body::Rewind(_) => &[Kind::Rewind],
                Body::Restore(_) => &[Kind::Restore],
                Body::Header(_) => &[Kind::Header],
                Body::Other(_) => &[Kind::Other],
            },
            Saying::Todos(_) | Saying::Thinking(_) => &[Kind::User, Kind::Assistant],
            Saying::Rewind { .. } | Saying::Reset => &[Kind::Rewind],
            Saying::Result(_) => &[Kind::ToolResult],
            Saying::Usage(_) | Saying::Delta(_) | Saying::Finish(_) | Saying::EndStep(_) => &[Kind::Assistant],
            Saying::Step => &[],
        }
    }

    /// Whether it can be a session's first words; what only frames an answer cannot.
    pub fn is_said(&self) -> bool {
        match self {
            Saying::Body(_)
            | Saying::Todos(_)
            | Saying::Thinking(_)
            | Saying::Usage(_)
            | Saying::Rewind { .. }
            | Saying::Delta(Delta::Text(_) | Delta::Reasoning(_) | Delta::Part(_))
            | Saying::Result(_)
            | Saying::Finish(_) => true,
            Saying::Delta(Delta::Model(_) | Delta::About(_) | Delta::End(_))
            | Saying::Step
            | Saying::Reset
            | Saying::EndStep(_) => false,
        }
    }
}

/// Why a line is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    fn because(why: impl Into<String>) -> Refused {
        Refused(why.into())
    }
}

impl Dictation {
    /// For a session with somebody, a person or a room: who says a message need not be told then.
    pub fn with(jid: &str) -> Dictation {
        Dictation { with: Some(jid.to_owned()), ..Dictation::default() }
    }

    /// Understands a line, with or without its LF.
    pub fn hear(&mut self, line: &[u8]) -> std::result::Result<Heard, Refused> {
        if line.len() > LINE_LIMIT_BYTES {
            return Err(Refused(format!("a line of {} bytes is longer than what is read back", line.len())));
        }
        let mut heard = Heard::default();
        let Some(mut object) = json::object(line, &mut heard)? else { return Ok(heard) };
        match object.get("type").and_then(Value::as_str) {
            Some(kind) if chunks::is_known(kind) => self.chunks.hear(object, &mut heard)?,
            Some(kind) if self.claude.knows(kind, &object) => self.claude.hear(object, &mut heard)?,
            Some(kind) if own::word_in(&object).is_none() => {
                return Err(Refused(format!(
                    "no chunk and no line of stream-json has the type {}; {}",
                    quoted(kind),
                    own::known()
                )));
            }
            _ if object.contains_key("role") => message(Value::Object(object), &mut heard)?,
            _ => {
                if let (Some(with), Some(message)) = (&self.with, object.get_mut("message")) {
                    stanza::address(message, with)?;
                }
                own::hear(object, &mut heard)?;
            }
        }
        heard.notes.retain(|note| {
            let is_new = self.told.len() < NOTES_TOLD && !self.told.contains(note);
            if is_new {
                self.told.push(note.clone());
            }
            is_new
        });
        Ok(heard)
    }

    /// The input is over: what waits for more of it, to be said as it is.
    pub fn end(&mut self) -> Heard {
        let mut heard = Heard::default();
        self.chunks.end(&mut heard);
        self.claude.end(&mut heard);
        heard
    }

    /// Says what was understood. What the disk took and did not promise ([`Error::Unsaved`]) is saved once more at once: after an
    /// error nothing of the saying is recorded. Only where it is that error again, the saying stands in the file and may not
    /// survive a crash; nothing else is said before it is saved.
    pub fn say(&mut self, saying: Saying, recorder: &mut Recorder) -> Result<Ack> {
        if recorder.is_in_doubt() {
            recorder.reopen()?;
        }
        let (kinds, was_answering) = (saying.kinds(), recorder.is_answering());
        let again = saying.clone();
        let content = self.say_once(saying, recorder);
        let Err(Error::Unsaved { .. }) = content else { return content };
        let written = recorder.unsaved().into_iter().rfind(|unsaved| unsaved.id.is_some());
        recorder.reopen()?;
        // The answer before it had to end first, and that was what failed.
        let is_other =
            was_answering && recorder.is_answering() && !matches!(again, Saying::Delta(_) | Saying::Result(_));
        match written {
            Some(Unsaved { ticket, id: Some(id), kind, losses }) if !is_other && kinds.contains(&kind) => {
                Ok(Ack::Saved(Saved { ticket, id, durability: Durability::Sync, losses }))
            }
            _ => self.say_once(again, recorder),
        }
    }

    fn say_once(&mut self, saying: Saying, recorder: &mut Recorder) -> Result<Ack> {
        match saying {
            Saying::Body(body) => recorder.record(*body),
            Saying::Todos(todos) => recorder.todos(todos),
            Saying::Thinking(thinking) => recorder.thinking(thinking),
            Saying::Usage(usage) => recorder.usage(usage),
            Saying::Rewind { to, reason } => {
                // Before the answer ends: a step that leads nowhere ends nothing.
                let to = RecordId(link_named(&recorder.read()?, &to)?.id().into_owned());
                recorder.rewind(&to, reason)
            }
            Saying::Delta(delta) => recorder.delta(delta),
            Saying::Result(result) => recorder.early_result(*result),
            Saying::Step => {
                self.step_from = recorder.head().cloned();
                Ok(Ack::NotRecorded)
            }
            Saying::Reset => self.reset(recorder),
            Saying::EndStep(None) if !recorder.is_answering() => Ok(Ack::NotRecorded),
            Saying::Finish(usage) | Saying::EndStep(usage) => recorder.finish_answer(usage),
        }
    }

    /// Takes back what was said of the present answer: what is on disk stays there as a branch.
    fn reset(&mut self, recorder: &mut Recorder) -> Result<Ack> {
        recorder.drop_answer();
        match &self.step_from {
            from if from.as_ref() == recorder.head() => Ok(Ack::NotRecorded),
            Some(from) => recorder.rewind(&from.clone(), Some("the step was reset".to_owned())),
            None => Err(Error::NoPlace { record: "step".to_owned(), why: "the session begins with it" }),
        }
    }
}

/// A whole UIMessage.
fn message(value: Value, heard: &mut Heard) -> std::result::Result<(), Refused> {
    if let Ok(message) = serde_json::from_value::<Message>(value.clone()) {
        words::message(message, heard);
        return Ok(());
    }
    own::spoken(value, heard)
}

impl Heard {
    fn say(&mut self, saying: Saying) {
        self.sayings.push(saying);
    }

    fn body(&mut self, body: Body) {
        self.say(Saying::Body(Box::new(body)));
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.losses.push(Loss::dropped(&what.into()));
    }

    fn sanitized(&mut self, what: &str) {
        self.losses.push(Loss::renamed(what));
    }
}

#[cfg(test)]
mod tests;
