//! What a record is and contains, for every dialect.
//!
//! A dialect turns its own JSON into a [`Body`]; nothing after it looks at an agent's JSON again.

mod content;
mod display;
mod restore;
mod snapshot;
mod usage;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::lenient;
use crate::model::message::Part;
pub(crate) use content::ContentItem;
pub use display::Display;
pub use restore::{Restore, RestoredFile, RestoredVersion};
pub use snapshot::{After, Before, FileState, Snapshot};
pub use usage::{Cost, Usage};

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as text. It comes from a file: escape it before it reaches a terminal, a page or a path.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

id_type!(
    /// Names one session. Foreign ids are not always UUIDs.
    SessionId
);
id_type!(
    /// Names one record inside its session.
    RecordId
);

named_enum! {
    /// What a record is.
    Kind {
        /// A prompt.
        User = "user",
        /// An answer of the model.
        Assistant = "assistant",
        /// Results of tools.
        ToolResult = "tool-result",
        /// Context that the agent itself sent to the model.
        Attachment = "attachment",
        /// A notice of the agent: an instruction, an error.
        System = "system",
        /// File states tied to a message.
        Snapshot = "snapshot",
        /// A title or a summary of the session.
        Title = "title",
        /// A summary that replaces what came before it, for the model only.
        Compaction = "compaction",
        /// The conversation continues from an earlier record.
        Rewind = "rewind",
        /// Files were put back to an earlier state.
        Restore = "restore",
        /// Facts about the session itself.
        Header = "header",
        /// Something that this version does not know. It is kept as it is.
        Other = "other",
    }
}

impl Kind {
    /// Whether it is a turn between the user, the model and its tools.
    pub fn is_dialogue(self) -> bool {
        matches!(self, Kind::User | Kind::Assistant | Kind::ToolResult)
    }

    /// Whether its body is a [`Content`]: dialogue, context or a notice.
    pub fn has_content(self) -> bool {
        self.is_dialogue() || matches!(self, Kind::Attachment | Kind::System)
    }

    /// Whether it describes the session or its files and is no part of the conversation.
    pub fn is_about_session(self) -> bool {
        matches!(self, Kind::Title | Kind::Snapshot | Kind::Header)
    }

    /// The speaker of a record of this kind.
    pub fn speaker(self) -> Option<Speaker> {
        match self {
            Kind::User => Some(Speaker::User),
            Kind::Assistant => Some(Speaker::Assistant),
            Kind::ToolResult => Some(Speaker::Tool),
            Kind::System => Some(Speaker::System),
            Kind::Attachment
            | Kind::Snapshot
            | Kind::Title
            | Kind::Compaction
            | Kind::Rewind
            | Kind::Restore
            | Kind::Header
            | Kind::Other => None,
        }
    }
}

/// The speaker of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// A person, or a program that prompts.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
    /// The agent itself.
    System,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Body {
    /// A prompt, or a line in a room.
    User(Content),
    /// One answer of the model, or a piece of one.
    Assistant(Content),
    /// Results of tool calls, in `results`.
    ToolResult(Content),
    /// Context that the agent added.
    Attachment(Content),
    /// A notice; `error` is set if it reports a failure.
    System(Content),
    /// File states before a change.
    Snapshot(Snapshot),
    /// A title.
    Title(Title),
    /// A summary that replaces what came before it.
    Compaction(Compaction),
    /// Where the conversation went back to.
    Rewind(Rewind),
    /// Which files were put back.
    Restore(Restore),
    /// Facts about the session.
    Header(Map<String, Value>),
    /// A value that this version does not understand, whole.
    Other(Value),
}

impl Body {
    /// The kind of a record with this body.
    pub fn kind(&self) -> Kind {
        match self {
            Body::User(_) => Kind::User,
            Body::Assistant(_) => Kind::Assistant,
            Body::ToolResult(_) => Kind::ToolResult,
            Body::Attachment(_) => Kind::Attachment,
            Body::System(_) => Kind::System,
            Body::Snapshot(_) => Kind::Snapshot,
            Body::Title(_) => Kind::Title,
            Body::Compaction(_) => Kind::Compaction,
            Body::Rewind(_) => Kind::Rewind,
            Body::Restore(_) => Kind::Restore,
            Body::Header(_) => Kind::Header,
            Body::Other(_) => Kind::Other,
        }
    }

    /// A message of this kind; `None` for the kinds without one.
    pub fn from_content(kind: Kind, content: Content) -> Option<Body> {
        Some(match kind {
            Kind::User => Body::User(content),
            Kind::Assistant => Body::Assistant(content),
            Kind::ToolResult => Body::ToolResult(content),
            Kind::Attachment => Body::Attachment(content),
            Kind::System => Body::System(content),
            _ => return None,
        })
    }

    /// A record that is not parsed further: the fields of a header, or any other JSON.
    pub(crate) fn from_json(kind: Kind, json: &str) -> Body {
        match lenient::parse(json) {
            Value::Object(fields) if kind == Kind::Header => Body::Header(fields),
            value => Body::Other(value),
        }
    }

    /// A message for the kinds that hold one, else the record's JSON.
    pub(crate) fn from_content_or_json(kind: Kind, content: impl FnOnce() -> Content, json: &str) -> Body {
        let message = kind.has_content().then(content).and_then(|content| Body::from_content(kind, content));
        message.unwrap_or_else(|| Body::from_json(kind, json))
    }

    /// The same for a format that cannot store how people see it: what was sent to the model in a person's name is a prompt.
    pub(crate) fn without_display(mut self) -> Body {
        let display = self.content_mut().and_then(|content| content.display.take());
        match self {
            Body::System(content) if display.is_some() && content.to_model => {
                Body::User(Content { to_model: false, error: None, ..content })
            }
            body => body,
        }
    }

    /// The message, for the kinds that hold one.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Body::User(content)
            | Body::Assistant(content)
            | Body::ToolResult(content)
            | Body::Attachment(content)
            | Body::System(content) => Some(content),
            _ => None,
        }
    }

    /// The message to change, for the kinds that hold one.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Body::User(content)
            | Body::Assistant(content)
            | Body::ToolResult(content)
            | Body::Attachment(content)
            | Body::System(content) => Some(content),
            _ => None,
        }
    }
}

/// A message as one record holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Content {
    /// Text, reasoning, files, sources, data and the calls made, in order.
    pub parts: Vec<Part>,
    /// Answers to calls that some earlier record made.
    pub results: Vec<ToolResult>,
    /// The agent's notes on tools' runs, for people only.
    pub notes: Vec<ToolNote>,
    /// The model that answered.
    pub model: Option<String>,
    /// What the answer cost.
    pub usage: Option<Usage>,
    /// The working directory, git branch and so on.
    pub context: Context,
    /// The task list at that time; `None` if the record has none.
    pub todos: Option<Vec<Todo>>,
    /// The thinking mode at that time.
    pub thinking: Option<Thinking>,
    /// The sender, in a room.
    pub sender: Option<String>,
    /// How people see it, where that is not what the model sees.
    pub display: Option<Display>,
    /// The kind of failure that it reports.
    pub error: Option<String>,
    /// Further metadata of the agent, unchanged.
    pub metadata: Map<String, Value>,
    /// The part of a streamed message that its first part belongs to.
    pub fragment: Option<u64>,
    /// Of context and notices: the agent sends it again unchanged when the session continues. Else it is for people, or generated again.
    pub to_model: bool,
    /// Of context: it instructs the model, in the name of the developer or the system and not of the user.
    pub instructs: bool,
    /// Of context: it is a part of the message beside it, and stands before that in what the agent sends.
    pub is_attached: bool,
}

/// The answer to one tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, where the result repeats it.
    pub name: Option<String>,
    /// What the tool returned.
    pub output: Value,
    /// Whether it did what was asked.
    pub outcome: Outcome,
    /// A later result of the same call will replace this one.
    pub preliminary: bool,
    /// The duration of the run.
    pub duration_ms: Option<u64>,
    /// What else is known of the run: how it ended, the session that it was.
    pub about: Map<String, Value>,
}

/// An agent's note on a tool's run, which was not sent to the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolNote {
    /// The call's id.
    pub call_id: String,
    /// The note, as the agent wrote it.
    pub about: Map<String, Value>,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// It ran.
    Done,
    /// It failed, with the reason.
    Failed(String),
    /// It was refused, perhaps with a reason.
    Denied(Option<String>),
}

/// The surroundings of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Context {
    /// The working directory, as the agent wrote it.
    pub cwd: Option<String>,
    /// The git branch that was checked out.
    pub git_branch: Option<String>,
    /// macos, linux, windows.
    pub platform: Option<String>,
    /// external, internal.
    pub user_type: Option<String>,
}

impl Context {
    pub(crate) fn fill_from(&mut self, other: Context) {
        self.cwd = self.cwd.take().or(other.cwd);
        self.git_branch = self.git_branch.take().or(other.git_branch);
        self.platform = self.platform.take().or(other.platform);
        self.user_type = self.user_type.take().or(other.user_type);
    }
}

/// One item of a task list. Unknown fields stay with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// What is to be done.
    #[serde(default)]
    pub content: String,
    /// pending, in_progress, completed, or the agent's own value.
    #[serde(default)]
    pub status: String,
    /// The same in the form "doing it".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// What else the agent wrote.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The thinking mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// none, low, medium, high, or the agent's own value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Switched off.
    #[serde(default)]
    pub disabled: bool,
    /// The words that switched it on.
    #[serde(default)]
    pub triggers: Vec<Value>,
}

/// A title, and how it came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Title {
    /// The title itself.
    pub text: String,
    /// Who made it.
    pub source: TitleSource,
}

impl Title {
    /// A title is a line in a list; what is longer is a text.
    pub const LIMIT_CHARS: usize = 500;

    /// A text as a title, without blanks around it; or why it is none.
    pub fn checked(text: &str) -> Result<String, String> {
        let text = text.trim();
        let is_line =
            !text.is_empty() && !text.contains(|char: char| char.is_control() || "\u{2028}\u{2029}".contains(char));
        if is_line && text.chars().count() <= Title::LIMIT_CHARS {
            return Ok(text.to_owned());
        }
        Err(format!("a title is one line of 1 to {} characters", Title::LIMIT_CHARS))
    }
}

/// Where a title comes from, least binding first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleSource {
    /// Nothing better than the session's id.
    Id,
    /// The first prompt.
    Prompt,
    /// A summary that the agent wrote.
    Summary,
    /// The agent made it up.
    Automatic,
    /// A person typed it.
    Manual,
}

/// A summary that replaces what came before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Compaction {
    /// The text that the model sees instead.
    pub summary: Option<String>,
    /// manual, auto.
    pub trigger: Option<String>,
    /// How many messages it replaces.
    pub messages: Option<u64>,
    /// Tokens in the window before.
    pub tokens_before: Option<u64>,
    /// Tokens in the window after.
    pub tokens_after: Option<u64>,
    /// Records that the model still sees as they are, in this order.
    pub preserved: Vec<RecordId>,
    /// `preserved` names only the first and the last of them.
    pub preserves_between: bool,
    /// The model sees the preserved records before the summary, and not after it.
    pub preserved_first: bool,
    /// The model still sees every prompt, where no `replacement` was written down.
    pub keeps_prompts: bool,
    /// All that the model sees instead of what came before, in order, where the agent wrote that down.
    pub replacement: Option<Vec<Body>>,
    /// The model no longer sees what came before. False if another record cuts and this one has its summary.
    pub cuts: bool,
}

impl Compaction {
    /// Whether a model's text right before a compaction is the summary that the agent asked for, and not an answer.
    pub fn asked_for(text: &str, summary: &str) -> bool {
        let text = text.trim();
        let is_tagged = text.contains("<summary>") && text.ends_with("</summary>");
        !text.is_empty() && (is_tagged || summary.contains(text))
    }
}

/// A step back in the conversation. Its parent is the record to continue from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rewind {
    /// The head that was left.
    pub from: Option<RecordId>,
    /// Why.
    pub reason: Option<String>,
}

impl Rewind {
    /// A step back over so many items of this name, in the singular.
    pub(crate) fn from_count(count: u64, unit: &str) -> Rewind {
        let plural = if count == 1 { "" } else { "s" };
        Rewind { from: None, reason: Some(format!("{count} {unit}{plural} rewound")) }
    }
}
