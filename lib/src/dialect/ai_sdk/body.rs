//! The body of a message: its parts unchanged, and everything else about it in its metadata.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::{Document, Line};
use super::{legacy, row};
use crate::model::divider;
use crate::model::json;
use crate::model::lenient;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Thinking};

/// The body of a record: a message, a row, the prompt of a row, which is a JSON string, or its system prompt, with its key.
pub(super) fn parse(text: &str) -> Body {
    if let Ok(prompt) = json::from_str::<String>(text) {
        return Body::User(Content { parts: vec![Part::text(prompt)], ..Content::default() });
    }
    if let Some(prompt) = row::system_prompt(text) {
        return Body::System(Content { to_model: true, ..Content::from(prompt) });
    }
    if json::from_str(text).is_ok_and(|document: Document<'_>| document.is_row()) {
        return row::body(value(text));
    }
    let (Value::Object(message), Ok(line)) = (value(text), json::from_str::<Line<'_>>(text)) else {
        return Body::Other(value(text));
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    if matches!(role.as_str(), "tool" | "function") {
        // A result without the id of a call is shown alone.
        return legacy::result(message, line.answered().unwrap_or_default().into_owned());
    }
    let mut content = content(message.clone(), &line);
    if let (true, Some(data)) = (role == "data" && content.parts.is_empty(), content.metadata.shift_remove("data")) {
        content.parts.push(Part::data("note", data));
    }
    match role.as_str() {
        "user" => Body::User(content),
        "assistant" if line.is_compaction() => Body::Compaction(divider::compaction_of(&content.parts)),
        "assistant" => Body::Assistant(content),
        "system" => Body::System(Content { to_model: true, ..content }),
        "data" => Body::System(content),
        _ => Body::Other(Value::Object(message)),
    }
}

fn content(mut message: Map<String, Value>, line: &Line<'_>) -> Content {
    let parts = if line.is_legacy() { legacy::parts(&mut message) } else { parts(&mut message) };
    for known in ["id", "role"] {
        message.shift_remove(known);
    }
    let mut metadata = match message.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => Map::new(),
        Some(other) => Map::from_iter([("metadata".to_owned(), other)]),
    };
    for (key, value) in message {
        metadata.entry(key).or_insert(value);
    }
    let mut content = Content { parts, ..Content::default() };
    if let Some(about) = &line.metadata.0 {
        (content.model, content.usage) = (about.model.clone().owned(), about.usage());
        content.sender = about.sender.clone().owned();
        content.context.cwd = about.cwd.clone().owned();
        content.context.git_branch = about.git_branch.clone().owned();
        content.todos = metadata.get("todos").and_then(|todos| Vec::deserialize(todos).ok());
        content.thinking = metadata.get("thinking").and_then(|thinking| Thinking::deserialize(thinking).ok());
    }
    Content { metadata, ..content }
}

fn parts(message: &mut Map<String, Value>) -> Vec<Part> {
    match message.shift_remove("parts") {
        Some(Value::Array(parts)) => parts.into_iter().map(Part::from).collect(),
        None => Vec::new(),
        Some(other) => vec![Part::Other(other)],
    }
}

/// The value of a JSON text; a piece that is nested too deeply is kept as a string.
///
/// Three levels are searched for such a piece, because the inputs and outputs of tools are there: message, parts, part.
pub(super) fn value(text: &str) -> Value {
    json::parse(text).unwrap_or_else(|_| partly_parsed(text, 3))
}

fn partly_parsed(text: &str, levels: usize) -> Value {
    let inside = |raw: &RawValue| match levels {
        0 => lenient::value(raw),
        _ => json::parse(raw.get()).unwrap_or_else(|_| partly_parsed(raw.get(), levels - 1)),
    };
    if let Ok(object) = json::from_str::<std::collections::BTreeMap<String, &RawValue>>(text) {
        return object.into_iter().map(|(key, raw)| (key, inside(raw))).collect();
    }
    match json::from_str::<Vec<&RawValue>>(text) {
        Ok(list) => list.into_iter().map(inside).collect(),
        Err(_) => Value::String(text.to_owned()),
    }
}
