//! What a message says: its parts as they are, and everything else about it in its metadata.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::{Document, Line};
use super::{legacy, row};
use crate::divider;
use crate::lenient;
use crate::message::Part;
use crate::record::{Body, Said};

/// The body of a record: a message, a row, or the prompt of a row, which is a JSON string.
pub(super) fn of(text: &str) -> Body {
    if let Ok(prompt) = serde_json::from_str::<String>(text) {
        return Body::User(Said { parts: vec![Part::text(prompt)], ..Said::default() });
    }
    if serde_json::from_str(text).is_ok_and(|document: Document<'_>| document.is_row()) {
        return row::body(value(text));
    }
    let (Value::Object(message), Ok(line)) = (value(text), serde_json::from_str::<Line<'_>>(text)) else {
        return Body::Other(value(text));
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    if matches!(role.as_str(), "tool" | "function") {
        // One without a call that it names is shown alone, under its own name.
        return legacy::result(message, line.answered().unwrap_or_default().into_owned());
    }
    let mut said = said(message.clone(), &line);
    if let (true, Some(told)) = (role == "data" && said.parts.is_empty(), said.metadata.shift_remove("data")) {
        said.parts.push(Part::data("note", told));
    }
    match role.as_str() {
        "user" => Body::User(said),
        "assistant" if line.is_compaction() => Body::Compaction(divider::compaction_of(&said.parts)),
        "assistant" => Body::Assistant(said),
        "system" => Body::System(Said { to_model: true, ..said }),
        "data" => Body::System(said),
        _ => Body::Other(Value::Object(message)),
    }
}

fn said(mut message: Map<String, Value>, line: &Line<'_>) -> Said {
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
    let mut said = Said { parts, ..Said::default() };
    if let Some(about) = &line.metadata.0 {
        (said.model, said.usage) = (about.model.clone().owned(), about.usage());
        said.sender = about.sender.clone().owned();
        said.context.cwd = about.cwd.clone().owned();
        said.context.git_branch = about.git_branch.clone().owned();
        said.todos = told(&metadata, "todos");
        said.thinking = told(&metadata, "thinking");
    }
    Said { metadata, ..said }
}

/// What our own metadata tells, where it has the right shape.
fn told<T: serde::de::DeserializeOwned>(metadata: &Map<String, Value>, key: &str) -> Option<T> {
    metadata.get(key).and_then(|told| T::deserialize(told).ok())
}

fn parts(message: &mut Map<String, Value>) -> Vec<Part> {
    match message.shift_remove("parts") {
        Some(Value::Array(parts)) => parts.into_iter().map(Part::from).collect(),
        None => Vec::new(),
        Some(other) => vec![Part::Other(other)],
    }
}

/// The value of a text; where a piece nests too deeply to be a tree, that piece is its text.
///
/// Three levels are looked into, which is where messages keep what tools took and gave: message, parts, part.
pub(super) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| opened(text, 3))
}

fn opened(text: &str, levels: usize) -> Value {
    let inside = |raw: &RawValue| match levels {
        0 => lenient::value(raw),
        _ => serde_json::from_str(raw.get()).unwrap_or_else(|_| opened(raw.get(), levels - 1)),
    };
    if let Ok(object) = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(text) {
        return object.into_iter().map(|(key, raw)| (key, inside(raw))).collect();
    }
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(list) => list.into_iter().map(inside).collect(),
        Err(_) => Value::String(text.to_owned()),
    }
}
