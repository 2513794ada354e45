//! What came of a call, and how safe its record is.

use std::sync::Arc;

use serde::Serialize;

use crate::model::loss::Losses;
use crate::model::message::{Part, ReasoningPart, StreamState, TextPart};
use crate::model::record::{Body, Content, Kind, RecordId};
use crate::model::thinking::Triggers;
use crate::redact::Redactor;

/// How a recorder works. [`Options::usual`] is right for most agents.
#[derive(Debug, Clone)]
pub struct Options {
    /// How safe records are: `None` asks each by its kind (see [`Durability::of`]).
    pub durability: Option<Durability>,
    /// Words in a prompt that set its thinking mode.
    pub triggers: Triggers,
    /// What must not be written.
    pub redactor: Option<Arc<Redactor>>,
}

impl Options {
    /// Durability by kind, no trigger words, nothing redacted.
    pub fn usual() -> Options {
        Options { durability: None, triggers: Triggers::default(), redactor: None }
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a piece is moved once")]
pub enum Delta {
    /// This model answers.
    Model(String),
    /// The text goes on.
    Text(String),
    /// The thinking goes on.
    Reasoning(String),
    /// The text or the thinking is whole; the object is what its provider says of it.
    End(Option<serde_json::Map<String, serde_json::Value>>),
    /// A part that comes whole: a call, a file, a source. The same call again says more of it.
    Part(Part),
    /// What else is known of the answer: its task list, its thinking mode, its metadata.
    About(Box<Content>),
}

impl Delta {
    /// Adds the piece to what is known of the answer. A text or thinking that may go on is `streaming`: until it ends, or
    /// something else follows it. So it stays so in an answer that was broken off.
    pub fn add_to(self, content: &mut Content) {
        let open = content.parts.last_mut().and_then(Open::of);
        match (self, open) {
            (Delta::Text(more), Some(Open::Text(part))) => part.text.push_str(&more),
            (Delta::Reasoning(more), Some(Open::Reasoning(part))) => part.text.push_str(&more),
            (Delta::End(about), open) => open.into_iter().for_each(|open| open.end(about.clone())),
            (Delta::Text(text), open) => {
                open.into_iter().for_each(|open| open.end(None));
                let state = Some(StreamState::Streaming);
                content.parts.push(Part::Text(TextPart { text, state, ..TextPart::default() }));
            }
            (Delta::Reasoning(text), open) => {
                open.into_iter().for_each(|open| open.end(None));
                let state = Some(StreamState::Streaming);
                content.parts.push(Part::Reasoning(ReasoningPart { text, state, ..ReasoningPart::default() }));
            }
            (Delta::Part(part), open) => {
                open.into_iter().for_each(|open| open.end(None));
                put(&mut content.parts, part);
            }
            (Delta::Model(model), _) => content.model = Some(model),
            (Delta::About(more), _) => content.know(*more),
        }
    }
}

/// A part that more may be said of.
enum Open<'p> {
    Text(&'p mut TextPart),
    Reasoning(&'p mut ReasoningPart),
}

impl<'p> Open<'p> {
    fn of(part: &'p mut Part) -> Option<Open<'p>> {
        match part {
            Part::Text(part) if part.state == Some(StreamState::Streaming) => Some(Open::Text(part)),
            Part::Reasoning(part) if part.state == Some(StreamState::Streaming) => Some(Open::Reasoning(part)),
            _ => None,
        }
    }

    fn end(self, about: Option<serde_json::Map<String, serde_json::Value>>) {
        match self {
            Open::Text(part) => (part.state, part.provider_metadata) = (None, about),
            Open::Reasoning(part) => (part.state, part.provider_metadata) = (None, about),
        }
    }
}

/// Adds a part, or puts a call in the place of what was known of it.
pub(super) fn put(parts: &mut Vec<Part>, part: Part) {
    let is_same = |known: &Part| matches!((known, &part), (Part::Tool(a), Part::Tool(b)) if a.call_id == b.call_id);
    match parts.iter_mut().find(|known| is_same(known)) {
        Some(known) => *known = part,
        None => parts.push(part),
    }
}

impl Content {
    /// Adds what else is known: its task list, its thinking mode, its metadata.
    pub(super) fn know(&mut self, more: Content) {
        self.todos = more.todos.or(self.todos.take());
        self.thinking = more.thinking.or(self.thinking.take());
        self.metadata.extend(more.metadata);
    }
}

/// What a record survives once the call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The death of the process.
    Flush,
    /// The death of the machine.
    Sync,
}

impl Durability {
    /// What a record of this kind survives, unless somebody says otherwise.
    pub fn of(body: &Body) -> Durability {
        match body {
            Body::User(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Snapshot(_) => Durability::Sync,
            // The last record of a turn: nothing is called, so that nothing follows.
            Body::Assistant(content) if content.open_calls().next().is_none() => Durability::Sync,
            Body::Assistant(_)
            | Body::ToolResult(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Header(_)
            | Body::Other(_) => Durability::Flush,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ack {
    /// It is on disk.
    Saved(Saved),
    /// It is part of something that the format can only write whole: [`super::Recorder::settled`] tells when that is on disk, and
    /// until then it is in [`super::Recorder::unsaved`].
    Held {
        /// Names the call.
        ticket: u64,
    },
    /// The recorder is disabled.
    NotRecorded,
}

impl Ack {
    /// The record, once it is on disk.
    pub fn id(&self) -> Option<&RecordId> {
        match self {
            Ack::Saved(saved) => Some(&saved.id),
            Ack::Held { .. } | Ack::NotRecorded => None,
        }
    }

    /// What names the call.
    pub fn ticket(&self) -> Option<u64> {
        match self {
            Ack::Saved(Saved { ticket, .. }) | Ack::Held { ticket } => Some(*ticket),
            Ack::NotRecorded => None,
        }
    }
}

/// A call whose record is on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Names the call: calls of a recorder are counted from 1.
    pub ticket: u64,
    /// The record.
    pub id: RecordId,
    /// What it survives.
    pub durability: Durability,
    /// What of it the format could not hold.
    pub losses: Losses,
}

/// A call that was held, and whose record cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Names the call.
    pub ticket: u64,
    /// What the format has no place for.
    pub what: String,
}

/// A call whose record is not safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaved {
    /// Names the call.
    pub ticket: u64,
    /// The record, when it was written.
    pub id: Option<RecordId>,
    /// What it is.
    pub kind: Kind,
    /// What the format lost of it.
    pub losses: Losses,
}
