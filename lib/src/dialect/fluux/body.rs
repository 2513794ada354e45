//! The body of a line.

use serde_json::Value;

use super::line::Line;
use crate::model::json;
use crate::model::lenient;
use crate::model::message::Part;
use crate::model::record::{Body, Content};

pub(super) fn parse(text: &str) -> Body {
    let Ok(line) = json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    Body::from_content_or_json(line.kind(), || content(&line), text)
}

/// Files have a name, a type and a size here, but no address: they are descriptions, not file parts.
fn content(line: &Line<'_>) -> Content {
    let text = line.content.map(lenient::text_or_json).filter(|text| !text.is_empty());
    let mut parts: Vec<Part> = text.map(Part::text).into_iter().collect();
    let files = match line.attachments.map(lenient::value) {
        None => Vec::new(),
        Some(Value::Array(files)) => files,
        Some(file) => vec![file],
    };
    parts.extend(files.into_iter().map(|file| Part::data("attachment", file)));
    parts.extend(line.reaction.map(|reaction| Part::data("reaction", lenient::value(reaction))));
    Content { parts, sender: line.sender.clone().owned(), ..Content::default() }
}
