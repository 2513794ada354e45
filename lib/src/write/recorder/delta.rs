//! Pieces of a streamed answer, and how they add up to its content.

use serde_json::{Map, Value};

use super::turn::take_result;
use crate::model::message::{Part, ReasoningPart, StreamState, TextPart};
use crate::model::record::Content;
use crate::model::settle::settle_in_turn;

/// A piece of a streamed answer. See [`super::Recorder::delta`].
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a piece is moved once")]
pub enum Delta {
    /// The model that answers.
    Model(String),
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// The text or the reasoning is complete; the object is its provider metadata.
    End(Option<Map<String, Value>>),
    /// A complete part: a tool call, a file, a source. The same call again replaces what was known of it.
    Part(Part),
    /// The task list, the thinking mode or the metadata of the answer.
    About(Box<Content>),
}

impl Delta {
    /// Adds the piece to the content of an answer. Text and reasoning are in the state `streaming` until they end or another
    /// part follows; in an answer that was cut off, they stay in it.
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
            (Delta::About(more), _) => content.add_facts(*more),
        }
    }
}

/// A part that is still streaming.
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

    fn end(self, about: Option<Map<String, Value>>) {
        match self {
            Open::Text(part) => (part.state, part.provider_metadata) = (None, about),
            Open::Reasoning(part) => (part.state, part.provider_metadata) = (None, about),
        }
    }
}

/// Adds a part; a call replaces an earlier version of itself.
pub(super) fn put(parts: &mut Vec<Part>, part: Part) {
    let is_same = |known: &Part| matches!((known, &part), (Part::Tool(a), Part::Tool(b)) if a.call_id == b.call_id);
    let known = parts.iter_mut().find(|known| is_same(known));
    match (known, part) {
        // An update of a call keeps its result.
        (Some(Part::Tool(known)), Part::Tool(update)) if !known.is_open() && update.is_open() => {
            let result = take_result(known);
            *known = update;
            result.into_iter().for_each(|result| settle_in_turn(known, result));
        }
        (Some(known), part) => *known = part,
        (None, part) => parts.push(part),
    }
}

impl Content {
    /// Adds the task list, the thinking mode and the metadata of `more`.
    pub(super) fn add_facts(&mut self, more: Content) {
        self.todos = more.todos.or(self.todos.take());
        self.thinking = more.thinking.or(self.thinking.take());
        self.metadata.extend(more.metadata);
    }
}
