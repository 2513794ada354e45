//! How a model sees a part: shared by all views.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::json;
use crate::model::message::{DataPart, FilePart, Part, ReasoningPart};
use crate::model::wire::document;

/// How a model sees a part.
pub(super) enum ModelPart<'p> {
    Text(Cow<'p, str>),
    Reasoning(&'p ReasoningPart),
    File(&'p FilePart),
    /// Only people see it, or only one API has it; `name` is its name in a note.
    Other {
        name: &'static str,
        data: Option<&'p DataPart>,
    },
}

pub(super) fn model_part(part: &Part) -> ModelPart<'_> {
    let name = match part {
        Part::Text(text) => return ModelPart::Text(Cow::Borrowed(&text.text)),
        Part::Reasoning(reasoning) => return ModelPart::Reasoning(reasoning),
        Part::File(file) => return ModelPart::File(file),
        Part::Data(data) => match data.kind.as_str() {
            // The model sees a room's attachments and reactions as JSON.
            "attachment" | "reaction" => return ModelPart::Text(Cow::Owned(json::to_string(&data.data))),
            "block" | "content" | "context" | "part" => {
                let text = document(&data.data).filter(|_| data.kind == "block");
                let other = ModelPart::Other { name: "a part that only another API supports", data: Some(data) };
                return text.map_or(other, |text| ModelPart::Text(Cow::Borrowed(text)));
            }
            _ => "data",
        },
        Part::ReasoningFile(_) => "a file of the reasoning",
        Part::SourceUrl(_) | Part::SourceDocument(_) => "a source",
        Part::Custom(_) => "a part of one provider",
        Part::Steering(_) => "a message inside another",
        Part::StepStart => "a mark",
        Part::Tool(_) => "a call",
        Part::Other(_) => "a part of unknown type",
    };
    ModelPart::Other { name, data: None }
}

/// Whether it is content of this API that we do not know: it has a type, and none of the known ones.
pub(super) fn is_of_api(data: &DataPart, kind: &str, known: &[&str]) -> bool {
    let name = data.data.get("type").and_then(Value::as_str).filter(|name| !name.is_empty());
    data.kind == kind && name.is_some_and(|name| !known.contains(&name))
}
