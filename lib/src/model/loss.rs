//! What a format cannot hold as it was: the report of a recording or a conversion.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use crate::model::message::{Part, Role};
use crate::model::record::{Content, Context, Kind};

/// One thing that a format cannot hold as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What it is.
    pub what: Lost,
    /// What became of it.
    pub kind: LossKind,
    /// How often.
    #[serde(skip_serializing_if = "is_once")]
    pub count: u64,
}

/// What became of something that a format cannot hold as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossKind {
    /// It is not in the file.
    Dropped,
    /// It is in the file as something else.
    Renamed,
    /// The format requires it and the source does not have it: it was made up.
    Synthesised,
}

/// The losses of one record, each thing of a kind once, with its count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Losses(Vec<Loss>);

/// Declares [`Lost`]: a variant, its name in reports, and what the name means.
macro_rules! lost {
    ($($variant:ident, $name:literal, $meaning:literal;)*) => {
        /// What can be lost. docs/converting.md lists the names.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Lost {
            /// A whole record of a kind.
            Record(Kind),
            $(#[doc = $meaning] $variant,)*
            /// A key of a line that a program sent to be recorded.
            Key(String),
        }

        impl Lost {
            /// Everything that has a fixed name, in the order of docs/converting.md.
            pub fn all() -> impl Iterator<Item = Lost> {
                KINDS.map(Lost::Record).into_iter().chain([$(Lost::$variant),*])
            }

            /// The word for it in reports.
            pub fn name(&self) -> &str {
                match self {
                    Lost::Record(kind) => of_kind(*kind).0,
                    $(Lost::$variant => $name,)*
                    Lost::Key(key) => key,
                }
            }

            /// What the word means.
            pub fn meaning(&self) -> &'static str {
                match self {
                    Lost::Record(kind) => of_kind(*kind).1,
                    $(Lost::$variant => $meaning,)*
                    Lost::Key(_) => "a key of a line that a program sent",
                }
            }
        }
    };
}

lost! {
    Instruction, "instruction", "an instruction to the model, in a record of its own";
    Sidechain, "sidechain", "a record of work beside the conversation";
    OtherBranch, "other branch", "a record of a branch that is not the converted one";
    OtherTitle, "other title", "a title that the session does not have any more";
    EmptyMessage, "empty message", "a message without text";
    Steering, "steering message", "a prompt that was sent while the model was working";

    Text, "text", "text";
    TextParts, "text parts", "where one text part ends and the next begins";
    PartOrder, "part order", "the order of a message's parts";
    Citations, "citations", "the sources of a quotation";
    Thinking, "thinking", "the model's reasoning";
    ThinkingFile, "thinking file", "a file that the model made while reasoning";
    Image, "image", "an image";
    File, "file", "another file";
    FileName, "file name", "the name of a file";
    MediaType, "media type", "the media type of a file";
    Attachment, "attachment", "a file that was attached in a chat";
    Reaction, "reaction", "a reaction to a message";
    Source, "source", "a page or document that an answer is based on";
    CustomPart, "custom part", "a part that only one provider knows";
    DataPart, "data part", "a part that only one application knows";
    UnknownPart, "unknown part", "a part of an unknown kind";
    Step, "step", "where one response of the model ends and the next begins";
    PartDetails, "part details", "further facts about a part";
    ProviderMetadata, "provider metadata", "facts for the model's provider: signatures, ids, encrypted content";

    ToolCall, "tool call", "a tool call";
    ToolName, "tool name", "the name of a tool";
    ToolInput, "tool input", "the input of a tool call";
    ToolOutput, "tool output", "the shape of a tool's output";
    CallId, "call id", "the id of a tool call";
    ProviderCall, "provider-run call", "that the provider itself ran the tool";
    CallDetails, "call details", "further facts about a tool call";
    CallState, "call state", "the progress of a tool call";
    Approval, "approval", "that a person allowed a tool call";
    Denial, "denial", "that a person refused a tool call";
    CallUpdate, "call update", "a change of a tool call after its answer was complete";
    RunNotes, "run notes", "the agent's notes about a tool's run";
    Duration, "duration", "how long a tool ran";
    ExitCode, "exit code", "the exit code of a command";
    PreliminaryResult, "preliminary result", "a tool's output before it was done";
    DuplicateResult, "duplicate result", "a second result of the same tool call";
    FailureReason, "failure reason", "why a tool failed";

    Model, "model", "the model that answered";
    Usage, "usage", "the number of tokens used";
    ReasoningTokens, "reasoning tokens", "the number of tokens used for reasoning";
    CacheTokens, "cache tokens", "the number of tokens read from or written to a cache";
    Timestamp, "timestamp", "the time of a message";
    Sender, "sender", "the person who wrote a message";
    Error, "error", "that an answer failed, and how";
    ErrorKind, "error kind", "the kind of an error";
    Environment, "environment", "working directory and git branch";
    Platform, "platform", "operating system and kind of user";
    Todos, "todos", "the task list";
    ThinkingMode, "thinking mode", "the reasoning effort";
    Metadata, "metadata", "further facts about a message";
    Field, "field", "a value under a key that only the source's format has";

    CompactionDetails, "compaction details", "why and when a conversation was compacted, and by how much";
    ReplacedHistory, "replaced history", "the conversation that the model sees after a compaction";
    KeptRecords, "kept records", "the records that the model sees beside a summary";
    TitleSource, "title source", "who gave the title";
    RewindReason, "rewind reason", "why the conversation was rewound";

    TornLine, "torn line", "a line that was cut off";
    DamagedLine, "damaged line", "bytes that are not a record: zeros, invalid JSON, or too long a line";
    UnreadableFile, "unreadable file", "a file beside the log, such as `snapshots.jsonl`, that could not be read";
    DamagedText, "damaged text", "characters that could not be decoded";
    Gap, "gap", "that earlier records are missing";
    Interruption, "interruption", "that the last turn did not end";

    Fork, "fork", "the session that this one was forked from";
    UncomparedBranch, "uncompared branch", "a branch that was not compared because there are too many";
    Original, "original", "the copy of the original beside the new file";
    SubAgentSession, "sub-agent session", "the session of an agent that this one started";
    ParentSession, "parent session", "the session whose agent started this one";
    OtherFiles, "other files", "other files in the session's own folder";
    Base, "base session", "the session that this one begins in";
}

const KINDS: [Kind; 12] = [
    Kind::User,
    Kind::Assistant,
    Kind::ToolResult,
    Kind::Attachment,
    Kind::System,
    Kind::Snapshot,
    Kind::Title,
    Kind::Compaction,
    Kind::Rewind,
    Kind::Restore,
    Kind::Header,
    Kind::Other,
];

/// The name of a record that is lost as a whole, and what the name means.
fn of_kind(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::User => ("prompt", "a person's message"),
        Kind::Assistant => ("answer", "the model's message"),
        Kind::ToolResult => ("tool result", "the result of a tool call"),
        Kind::Attachment => ("context", "context that the agent added for the model"),
        Kind::System => ("notice", "a message from the agent to the user"),
        Kind::Snapshot => ("snapshot", "the state of files at a message"),
        Kind::Title => ("title", "the title of the session"),
        Kind::Compaction => ("compaction", "a summary that replaces the earlier conversation"),
        Kind::Rewind => ("rewind", "a step back to an earlier record"),
        Kind::Restore => ("restore", "that files were restored"),
        Kind::Header => ("header", "facts about the session, beside the conversation"),
        Kind::Other => ("unknown record", "a record of an unknown kind"),
    }
}

impl Lost {
    /// What the metadata of a message has under a key; nothing for what our reader adds.
    pub(crate) fn from_metadata_key(key: &str) -> Option<Lost> {
        match key {
            "records" | "continues" => None,
            "cwd" | "gitBranch" => Some(Lost::Environment),
            "timestamp" => Some(Lost::Timestamp),
            "model" => Some(Lost::Model),
            "usage" => Some(Lost::Usage),
            "todos" => Some(Lost::Todos),
            "thinking" => Some(Lost::ThinkingMode),
            "sender" => Some(Lost::Sender),
            "error" => Some(Lost::Error),
            _ => Some(Lost::Metadata),
        }
    }

    /// Whether a record as a whole is lost.
    pub(crate) fn is_whole_record(&self) -> bool {
        matches!(self, Lost::Record(_) | Lost::Instruction | Lost::Sidechain | Lost::OtherBranch)
    }

    /// Whether no message shows it, so that only a writer can report it.
    pub(crate) fn is_hidden(&self) -> bool {
        matches!(
            self,
            Lost::Record(Kind::Attachment | Kind::Snapshot | Kind::Title | Kind::Header | Kind::Other)
                | Lost::Sidechain
                | Lost::OtherBranch
                | Lost::CallUpdate
                | Lost::PreliminaryResult
                | Lost::DuplicateResult
                | Lost::ErrorKind
                | Lost::Platform
                | Lost::CompactionDetails
                | Lost::ReplacedHistory
                | Lost::KeptRecords
                | Lost::TitleSource
                | Lost::RewindReason
                | Lost::Fork
                | Lost::Key(_)
        )
    }

    /// Whether a record has it at most once, however many of its parts report it.
    pub(crate) fn is_counted_once(&self) -> bool {
        matches!(
            self,
            Lost::Environment
                | Lost::Platform
                | Lost::Metadata
                | Lost::Sender
                | Lost::Model
                | Lost::Usage
                | Lost::ReasoningTokens
                | Lost::CacheTokens
                | Lost::Todos
                | Lost::ThinkingMode
                | Lost::Error
                | Lost::ErrorKind
                | Lost::TextParts
                | Lost::PartOrder
                | Lost::EmptyMessage
                | Lost::Fork
        )
    }
}

impl From<Kind> for Lost {
    fn from(kind: Kind) -> Lost {
        Lost::Record(kind)
    }
}

impl From<Role> for Lost {
    fn from(role: Role) -> Lost {
        match role {
            Role::System => Lost::Record(Kind::System),
            Role::User => Lost::Record(Kind::User),
            Role::Assistant => Lost::Record(Kind::Assistant),
        }
    }
}

impl From<&Part> for Lost {
    fn from(part: &Part) -> Lost {
        match part {
            Part::Text(_) => Lost::Text,
            Part::Reasoning(_) => Lost::Thinking,
            Part::File(file) if file.media_type.starts_with("image") => Lost::Image,
            Part::File(_) => Lost::File,
            Part::ReasoningFile(_) => Lost::ThinkingFile,
            Part::SourceUrl(_) | Part::SourceDocument(_) => Lost::Source,
            Part::Custom(_) => Lost::CustomPart,
            Part::Steering(_) => Lost::Steering,
            Part::StepStart => Lost::Step,
            Part::Tool(_) => Lost::ToolCall,
            Part::Data(data) => match data.kind.as_str() {
                "compaction" => Lost::Record(Kind::Compaction),
                "rewind" => Lost::Record(Kind::Rewind),
                "restore" => Lost::Record(Kind::Restore),
                "error" => Lost::Error,
                "attachment" => Lost::Attachment,
                "reaction" => Lost::Reaction,
                _ => Lost::DataPart,
            },
            Part::Other(_) => Lost::UnknownPart,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Lost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let became = match self.kind {
            LossKind::Dropped => "is not kept",
            LossKind::Renamed => "is kept as something else",
            LossKind::Synthesised => "is synthesised",
        };
        write!(f, "{} {became}", self.what)
    }
}

impl Losses {
    /// Counts a loss.
    pub fn push(&mut self, loss: Loss) {
        let known = self.0.iter_mut().find(|known| known.what == loss.what && known.kind == loss.kind);
        match known {
            Some(_) if loss.what.is_counted_once() => {}
            Some(known) => known.count = known.count.saturating_add(loss.count),
            None => self.0.push(loss),
        }
    }

    /// What was lost, in one line.
    pub(crate) fn names(&self) -> String {
        self.0.iter().map(|loss| loss.what.name()).collect::<Vec<_>>().join(", ")
    }

    /// Takes all losses of another list.
    pub fn append(&mut self, others: &mut Losses) {
        self.extend(std::mem::take(others));
    }

    pub(crate) fn dropped(&mut self, what: impl Into<Lost>) {
        self.push(LossKind::Dropped.of(what));
    }

    /// Drops context: what people saw of it is a notice to them.
    pub(crate) fn dropped_context(&mut self, content: &Content) {
        self.dropped(if content.display.is_some() { Kind::System } else { Kind::Attachment });
    }

    pub(crate) fn renamed(&mut self, what: impl Into<Lost>) {
        self.push(LossKind::Renamed.of(what));
    }

    pub(crate) fn synthesised(&mut self, what: impl Into<Lost>) {
        self.push(LossKind::Synthesised.of(what));
    }

    pub(crate) fn dropped_if(&mut self, is_dropped: bool, what: impl Into<Lost>) {
        if is_dropped {
            self.dropped(what);
        }
    }

    pub(crate) fn renamed_if(&mut self, is_renamed: bool, what: impl Into<Lost>) {
        if is_renamed {
            self.renamed(what);
        }
    }

    pub(crate) fn synthesised_if(&mut self, is_made_up: bool, what: impl Into<Lost>) {
        if is_made_up {
            self.synthesised(what);
        }
    }

    /// Drops what a message has besides its parts, except what the format can hold.
    pub(crate) fn dropped_besides_parts(&mut self, content: &Content, held: &[Lost]) {
        let Context { cwd, git_branch, platform, user_type } = &content.context;
        let facts = [
            (!content.results.is_empty(), Lost::Record(Kind::ToolResult)),
            (!content.notes.is_empty(), Lost::RunNotes),
            (content.model.is_some(), Lost::Model),
            (content.usage.is_some(), Lost::Usage),
            (cwd.is_some() || git_branch.is_some(), Lost::Environment),
            (platform.is_some() || user_type.is_some(), Lost::Platform),
            (content.todos.is_some(), Lost::Todos),
            (content.thinking.is_some(), Lost::ThinkingMode),
            (content.sender.is_some(), Lost::Sender),
            (content.error.is_some(), Lost::Error),
            (!content.metadata.is_empty(), Lost::Metadata),
        ];
        for (is_there, what) in facts {
            self.dropped_if(is_there && !held.contains(&what), what);
        }
    }
}

impl LossKind {
    /// One loss of this kind.
    pub fn of(self, what: impl Into<Lost>) -> Loss {
        Loss { what: what.into(), kind: self, count: 1 }
    }
}

impl From<Loss> for Losses {
    fn from(loss: Loss) -> Losses {
        Losses(vec![loss])
    }
}

impl Deref for Losses {
    type Target = [Loss];

    fn deref(&self) -> &[Loss] {
        &self.0
    }
}

impl IntoIterator for Losses {
    type Item = Loss;
    type IntoIter = std::vec::IntoIter<Loss>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Loss> for Losses {
    fn extend<T: IntoIterator<Item = Loss>>(&mut self, losses: T) {
        losses.into_iter().for_each(|loss| self.push(loss));
    }
}

impl FromIterator<Loss> for Losses {
    fn from_iter<T: IntoIterator<Item = Loss>>(losses: T) -> Losses {
        let mut all = Losses::default();
        all.extend(losses);
        all
    }
}

fn is_once(count: &u64) -> bool {
    *count == 1
}
