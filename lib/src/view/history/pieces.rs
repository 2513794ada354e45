//! What views share: what a part is to a model, what a tool gave back, and what a file holds.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::message::{DataPart, FilePart, Part, ReasoningPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::document;
pub(super) use crate::model::wire::{IMAGES, data_url, file_words, given, is_web_address};

/// What a part is to a model.
pub(crate) enum Plain<'p> {
    Text(Cow<'p, str>),
    Reasoning(&'p ReasoningPart),
    File(&'p FilePart),
    /// A piece of one API's content that no other API has.
    Foreign(&'p DataPart),
    /// It is for people; the word for it in a note.
    Aside(&'static str),
}

pub(crate) fn plain(part: &Part) -> Plain<'_> {
    match part {
        Part::Text(text) => Plain::Text(Cow::Borrowed(&text.text)),
        Part::Reasoning(thought) => Plain::Reasoning(thought),
        Part::File(file) => Plain::File(file),
        // A room's files have no content here, and a reaction is what was said: the model is told of them.
        Part::Data(data) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
            Plain::Text(Cow::Owned(data.data.to_string()))
        }
        Part::Data(data) if data.kind == "block" && document(&data.data).is_some() => {
            Plain::Text(Cow::Borrowed(document(&data.data).unwrap_or_default()))
        }
        Part::Data(data) if matches!(data.kind.as_str(), "block" | "content" | "context" | "part") => {
            Plain::Foreign(data)
        }
        Part::Data(_) => Plain::Aside("data"),
        Part::ReasoningFile(_) => Plain::Aside("a file of the reasoning"),
        Part::SourceUrl(_) | Part::SourceDocument(_) => Plain::Aside("a source"),
        Part::Custom(_) => Plain::Aside("a part of one provider"),
        Part::Steering(_) => Plain::Aside("a message inside another"),
        Part::StepStart => Plain::Aside("a mark"),
        Part::Tool(_) => Plain::Aside("a call"),
        Part::Other(_) => Plain::Aside("a part of unknown type"),
    }
}

/// Whether an API may know a piece of its own content that we do not: it has a type, and none of those that we say.
pub(crate) fn is_of_api(piece: &DataPart, kind: &str, content: &[&str]) -> bool {
    let known = piece.data.get("type").and_then(Value::as_str).filter(|name| !name.is_empty());
    piece.kind == kind && known.is_some_and(|name| !content.contains(&name))
}

/// Whether a tool did not do what was asked.
pub(crate) fn failed(result: &ToolResult) -> bool {
    result.outcome != Outcome::Done
}
