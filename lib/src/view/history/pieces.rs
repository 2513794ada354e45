//! What views share: how a model sees a part.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::message::{DataPart, FilePart, Part, ReasoningPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::document;
pub(super) use crate::model::wire::{IMAGES, data_url, file_words, given, is_web_address};

/// How a model sees a part.
pub(crate) enum ModelPart<'p> {
    Text(Cow<'p, str>),
    Reasoning(&'p ReasoningPart),
    File(&'p FilePart),
    /// Content that only one API has.
    Foreign(&'p DataPart),
    /// Only people see it; its name in a note.
    PeopleOnly(&'static str),
}

pub(crate) fn model_part(part: &Part) -> ModelPart<'_> {
    match part {
        Part::Text(text) => ModelPart::Text(Cow::Borrowed(&text.text)),
        Part::Reasoning(thought) => ModelPart::Reasoning(thought),
        Part::File(file) => ModelPart::File(file),
        // The model sees a room's attachments and reactions as JSON.
        Part::Data(data) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
            ModelPart::Text(Cow::Owned(data.data.to_string()))
        }
        Part::Data(data) if data.kind == "block" && document(&data.data).is_some() => {
            ModelPart::Text(Cow::Borrowed(document(&data.data).unwrap_or_default()))
        }
        Part::Data(data) if matches!(data.kind.as_str(), "block" | "content" | "context" | "part") => {
            ModelPart::Foreign(data)
        }
        Part::Data(_) => ModelPart::PeopleOnly("data"),
        Part::ReasoningFile(_) => ModelPart::PeopleOnly("a file of the reasoning"),
        Part::SourceUrl(_) | Part::SourceDocument(_) => ModelPart::PeopleOnly("a source"),
        Part::Custom(_) => ModelPart::PeopleOnly("a part of one provider"),
        Part::Steering(_) => ModelPart::PeopleOnly("a message inside another"),
        Part::StepStart => ModelPart::PeopleOnly("a mark"),
        Part::Tool(_) => ModelPart::PeopleOnly("a call"),
        Part::Other(_) => ModelPart::PeopleOnly("a part of unknown type"),
    }
}

/// Whether it is content of this API that we do not know: it has a type, and none of the known ones.
pub(crate) fn is_of_api(piece: &DataPart, kind: &str, content: &[&str]) -> bool {
    let known = piece.data.get("type").and_then(Value::as_str).filter(|name| !name.is_empty());
    piece.kind == kind && known.is_some_and(|name| !content.contains(&name))
}

/// Whether a tool failed or was refused.
pub(crate) fn failed(result: &ToolResult) -> bool {
    result.outcome != Outcome::Done
}
