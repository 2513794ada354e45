//! What a model would see to continue from a head: the turns of a branch from its last compaction on.
//!
//! ```text
//! records  u1 a1(call 1) u2 r1 a2   c(summary)   u3 a3(calls 2, 3) r3      u: prompts, a: answers, r: results
//! turns                             summary      u3 a3 [r2 closed, r3]     what came before the cut is replaced
//! ```
//!
//! `start.rs` finds where the model's window begins, `draft.rs` and `closing.rs` build turns from records, and each view
//! writes the turns for one API. The session is not changed; repairs are listed in the notes.

mod ai_sdk;
mod anthropic;
mod closing;
mod draft;
mod fluux;
mod gemini;
mod last;
mod openai;
mod model_part;
mod openai_responses;
mod resume;
mod start;
mod text;
mod unique;
mod window;

pub(crate) use resume::todos_and_thinking;
pub use resume::{Resume, prepare_resume, resume_notice};
pub(crate) use unique::UniqueIds;

use std::borrow::Cow;
use std::str::FromStr;

use serde_json::Value;

use crate::model::error::{Error, Result};
use crate::model::message::{FilePart, Part, Role, ToolPart};
use crate::model::record::{Body, Content, Kind, RecordId, ToolResult};
use crate::model::{json, named_enum, wire};
use crate::session::{HeadKind, RecordRef, Session, State};
use crate::view::conversation::Conversation;

/// The result that closes a call without one (reading rule 8).
pub const NO_RESULT: &str = "[no result was recorded: the session ended before this call finished]";

/// How many branches are searched for messages: each takes a walk, and the newest one is usually enough.
const BRANCHES_SEARCHED: usize = 64;

/// What a model would see to continue from a head.
///
/// ```
/// use scrollback::{History, ReadOptions, Session, View, dialect};
/// use serde_json::json;
///
/// let log = br#"{"role":"user","content":"Two and two?"}
/// {"role":"assistant","content":"Four."}"#;
/// let native = dialect::named("native").expect("it is built in");
/// let session = Session::from_bytes(native, log.to_vec(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH));
/// let history = History::of(&session, session.head().expect("it has records"))?;
/// let (messages, notes) = View::OpenAi.messages(&history)?;
/// assert_eq!(messages, [json!({"role": "user", "content": "Two and two?"}), json!({"role": "assistant", "content": "Four."})]);
/// assert!(notes.is_empty());
/// # Ok::<(), scrollback::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct History<'s> {
    /// The name of the dialect that the session is written in.
    pub dialect: &'static str,
    /// The model that continues the session: the last that answered, in these turns or after them.
    model: Option<String>,
    /// The turns, the oldest first. Results directly follow the answer with their calls; every call has one.
    pub turns: Vec<Turn<'s>>,
    /// How the branch ends, before anything was repaired.
    pub state: State,
    /// A notice for the person who resumes.
    pub notice: String,
    /// What was repaired or left out.
    pub notes: Vec<Note>,
}

/// One turn of the conversation.
#[derive(Debug, Clone)]
pub struct Turn<'s> {
    /// In whose name.
    pub role: Role,
    /// How it came about.
    pub origin: TurnOrigin,
    /// Its parts, calls and results, in order.
    pub items: Vec<TurnItem>,
    /// Its records. A turn from a compaction's replacement has the compaction's record.
    pub records: Vec<RecordRef<'s>>,
    /// The model that answered.
    pub model: Option<String>,
    /// The sender, in a room.
    pub sender: Option<String>,
    /// The agent sends what it attached at its beginning.
    begins_attached: bool,
    /// The agent says it in the name of the system.
    pub(crate) instructs: bool,
}

/// How a turn came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOrigin {
    /// A prompt.
    Prompt,
    /// A message while the model was working: it follows results that the model has not answered yet.
    MidTurn,
    /// The agent added it in the user's name, and sends it again.
    Injected,
    /// Context that the agent generates at each start. Only [`History::with_context`] includes it.
    Context,
    /// A summary of the history before it.
    Summary,
    /// An instruction to the model in the course of the conversation.
    Instruction,
    /// The model answered.
    Answer,
    /// Tools answered the model.
    Results,
}

/// One thing in a turn.
#[derive(Debug, Clone)]
pub enum TurnItem {
    /// Text, reasoning, a file or something that only some views know; never a call.
    Part(Part),
    /// A call. Its id is unique in the history, and its result is in the next turn.
    Call(Box<ToolPart>),
    /// The result of a call of the turn before, of the same id and with the tool's name.
    Result(ToolResult),
}

/// A difference between the session and what the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The record.
    pub record: RecordId,
    /// What was done about it, in a sentence without a full stop.
    pub what: String,
}

impl<'s> History<'s> {
    /// What the model would see at a head.
    pub fn of(session: &'s Session, head: RecordRef<'s>) -> Result<History<'s>> {
        start::history(session, head, start::ContextPolicy::Omit)
    }

    /// The same, including the context that the agent added.
    pub fn with_context(session: &'s Session, head: RecordRef<'s>) -> Result<History<'s>> {
        start::history(session, head, start::ContextPolicy::Include)
    }
}

impl Session {
    /// Fails if there is nothing to send on the branch that ends in `head`, but messages are on another one.
    pub fn check_not_empty(&self, head: Option<RecordRef<'_>>) -> Result<()> {
        let messages = |head| Conversation::new(&self.branch(head)).message_count();
        if let Some(head) = head
            && (messages(head) > 0 || !History::of(self, head)?.turns.is_empty())
        {
            return Ok(());
        }
        let others = self.heads().filter(|head| head.kind != HeadKind::Sidechain).take(BRANCHES_SEARCHED);
        let left = others.map(|other| other.record).find(|other| messages(*other) > 0);
        left.map_or(Ok(()), |left| {
            let left = RecordId(left.id().into_owned());
            Err(Error::EmptyBranch { session: self.id().0, left })
        })
    }
}

impl History<'_> {
    /// Adds a message that may not be on disk yet: a prompt, an answer or tool results.
    pub fn add(&mut self, mut body: Body) {
        let kind = body.kind();
        let Some(content) = body.content_mut().filter(|_| kind.is_dialogue()) else { return };
        let Content { parts, results, model, sender, .. } = std::mem::take(content);
        let (role, origin) = if kind == Kind::Assistant {
            (Role::Assistant, TurnOrigin::Answer)
        } else {
            (Role::User, if kind == Kind::ToolResult { TurnOrigin::Results } else { TurnOrigin::Prompt })
        };
        if let Some(model) = model.as_deref().filter(|model| origin == TurnOrigin::Answer && window::is_model(model)) {
            self.model = Some(model.to_owned());
        }
        let item = |part| if let Part::Tool(call) = part { TurnItem::Call(call) } else { TurnItem::Part(part) };
        let items = parts.into_iter().map(item).chain(results.into_iter().map(TurnItem::Result));
        match self.turns.last_mut() {
            // Results of one answer are sent together.
            Some(turn) if (turn.origin, origin) == (TurnOrigin::Results, TurnOrigin::Results) => {
                turn.items.extend(items)
            }
            _ => self.turns.push(Turn { items: items.collect(), model, sender, ..Turn::new(role, origin) }),
        }
    }
}

impl<'s> Turn<'s> {
    /// A turn without content.
    fn new(role: Role, origin: TurnOrigin) -> Turn<'s> {
        let (items, records) = (Vec::new(), Vec::new());
        Turn { role, origin, items, records, model: None, sender: None, begins_attached: false, instructs: false }
    }
}

impl TurnItem {
    fn as_result(&self) -> Option<&ToolResult> {
        if let TurnItem::Result(result) = self { Some(result) } else { None }
    }
}

impl Note {
    pub(super) fn new(record: RecordRef<'_>, what: impl Into<String>) -> Note {
        Note { record: RecordId(record.id().into_owned()), what: what.into() }
    }
}

named_enum! {
    /// The API that a history is written for.
    View {
        /// `messages` of Anthropic's Messages API.
        Anthropic = "anthropic",
        /// `messages` of OpenAI's Chat Completions API.
        OpenAi = "openai",
        /// `input` of OpenAI's Responses API.
        OpenAiResponses = "openai-responses",
        /// Plain text.
        Text = "text",
        /// `contents` of the Gemini API.
        Gemini = "gemini",
        /// What Fluux Agent sends.
        Fluux = "fluux",
        /// Model messages of the AI SDK.
        AiSdk = "ai-sdk",
    }
}

impl View {
    /// Every view.
    pub const ALL: [View; 7] =
        [View::Anthropic, View::OpenAi, View::OpenAiResponses, View::Text, View::Gemini, View::Fluux, View::AiSdk];

    /// Writes a history, message by message. Returns what this view changed or left out, besides the history's own notes.
    ///
    /// The values are for [`json::write`], which keeps numbers that 64 bits cannot hold; for ordinary
    /// numbers, use [`json::plain`].
    pub fn write(self, history: &History<'_>, emit: &mut dyn FnMut(Value)) -> Result<Vec<Note>> {
        let mut out = self.output(history, emit)?;
        out.notes.extend(out.filler);
        Ok(out.notes)
    }

    fn output<'o>(self, history: &History<'_>, emit: &'o mut dyn FnMut(Value)) -> Result<ViewOutput<'o>> {
        let mut out = ViewOutput { emit, notes: Vec::new(), filler: None };
        // The first writes the text itself; the SDK has its own rules for a message.
        let has_own_rules = matches!(self, View::Fluux | View::AiSdk);
        let as_sent = if has_own_rules { None } else { fluux::as_sent(history) };
        let history = as_sent.as_ref().unwrap_or(history);
        match self {
            View::Anthropic => anthropic::write(history, &mut out)?,
            View::OpenAi => openai::write(history, &mut out)?,
            View::OpenAiResponses => openai_responses::write(history, &mut out)?,
            View::Text => text::write(history, &mut out)?,
            View::Gemini => gemini::write(history, &mut out)?,
            View::Fluux => fluux::write(history, &mut out)?,
            View::AiSdk => ai_sdk::write(history, &mut out)?,
        }
        Ok(out)
    }

    /// Writes what a model would see at a head while it is read, with a few megabytes of it in memory. Returns the history
    /// without the turns that are written, and what this view changed or left out. The values are as in [`View::write`].
    pub fn write_while_reading<'s>(
        self,
        session: &'s Session,
        head: RecordRef<'s>,
        with_context: bool,
        emit: &mut dyn FnMut(Value),
    ) -> Result<(History<'s>, Vec<Note>)> {
        // The contents that an agent has recorded are numbered from the first to the last.
        let is_whole = self == View::Gemini && session.dialect().name() == gemini::RECORDED;
        let window_bytes = if is_whole { u64::MAX } else { window::BYTES };
        self.write_in_windows(session, head, with_context, window_bytes, emit)
    }

    fn write_in_windows<'s>(
        self,
        session: &'s Session,
        head: RecordRef<'s>,
        with_context: bool,
        window_bytes: u64,
        emit: &mut dyn FnMut(Value),
    ) -> Result<(History<'s>, Vec<Note>)> {
        let context = if with_context { start::ContextPolicy::Include } else { start::ContextPolicy::Omit };
        let mut notes = Vec::new();
        let mut history = start::in_windows(session, head, context, window_bytes, &mut |window| {
            notes.extend(self.write(window, emit)?);
            Ok(())
        })?;
        notes.extend(self.write(&history, emit)?);
        history.turns = Vec::new();
        Ok((history, notes))
    }

    /// All messages of a history, and the notes of this view.
    pub fn messages(self, history: &History<'_>) -> Result<(Vec<Value>, Vec<Note>)> {
        let mut messages = Vec::new();
        let notes = self.write(history, &mut |message| messages.push(json::plain(message)))?;
        Ok((messages, notes))
    }
}

impl FromStr for View {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<View, String> {
        let known = View::ALL.into_iter().find(|view| view.name() == name);
        known.ok_or_else(|| format!("unknown view {name:?}; use one of {}", View::ALL.map(View::name).join(", ")))
    }
}

/// Where a view puts its messages.
pub(crate) struct ViewOutput<'o> {
    emit: &'o mut dyn FnMut(Value),
    notes: Vec<Note>,
    /// Notes that the first message is not from the session.
    filler: Option<Note>,
}

/// The message before a history that begins with an answer.
const BEGINNING: &str = "[earlier messages are not part of this history]";
const BEGINS_WITH_AN_ANSWER: &str = "the history starts with an answer; a user message was added before it";

impl ViewOutput<'_> {
    /// Puts a user message before the answer that a history begins with: some APIs need a user message first.
    pub(crate) fn beginning(&mut self, turn: &Turn<'_>, message: Value) {
        self.filler = turn.records.first().map(|record| Note::new(*record, BEGINS_WITH_AN_ANSWER));
        self.message(message);
    }

    pub(crate) fn message(&mut self, message: Value) {
        (self.emit)(message);
    }

    /// Notes what this view changes in a turn.
    pub(crate) fn note(&mut self, turn: &Turn<'_>, what: impl Into<String>) {
        self.notes.extend(turn.records.first().map(|record| Note::new(*record, what)));
    }

    /// Notes that something in a turn is not sent.
    fn omit<T>(&mut self, turn: &Turn<'_>, what: &str) -> Option<T> {
        self.note(turn, format!("{what} is not sent"));
        None
    }

    /// The name of a tool, of at most `max` characters.
    fn tool_name<'n>(&mut self, name: &'n str, max: usize, turn: &Turn<'_>) -> Cow<'n, str> {
        let plain = wire::tool_name(name, max);
        if plain != name {
            self.note(turn, format!("the tool {name:?} is sent as {plain}: the API rejects its name"));
        }
        plain
    }

    /// The text that replaces a file that the API does not accept.
    fn file_as_text(&mut self, file: &FilePart, turn: &Turn<'_>) -> String {
        self.note(turn, format!("only the name of a file of type {:?} is sent", file.media_type));
        wire::file_words(file)
    }
}
