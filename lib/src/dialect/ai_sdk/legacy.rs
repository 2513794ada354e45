//! Messages of SDK 3 and 4: text in `content`, calls in `toolInvocations`, files in `experimental_attachments`; from 4.2
//! on the same once more as parts of other names than today's.

use serde_json::{Map, Value, json};

use super::line::Line;
use crate::message::{Part, ToolPart, ToolState};

/// The types that parts had.
const TYPES: &[&str] = &["text", "reasoning", "tool-invocation", "source", "file", "step-start"];

/// The first part of a type that SDK 4 did not have.
pub(super) fn unknown_part(line: &Line<'_>) -> Option<String> {
    let mut kinds = line.parts.0.iter().map(|part| part.kind.0.as_deref().unwrap_or_default());
    kinds.find(|kind| !TYPES.contains(kind)).map(str::to_owned)
}

/// What a message says, as parts of today. What they do not hold stays in the message.
pub(super) fn parts(message: &mut Map<String, Value>) -> Vec<Part> {
    let mut parts = Vec::new();
    let list = |message: &mut Map<String, Value>, key: &str| match message.get_mut(key).map(Value::take) {
        Some(Value::Array(list)) => {
            message.shift_remove(key);
            list
        }
        Some(other) => {
            message.insert(key.to_owned(), other);
            Vec::new()
        }
        None => Vec::new(),
    };
    let content = message.shift_remove("content").and_then(|content| content.as_str().map(str::to_owned));
    let content = content.unwrap_or_default();
    let own = list(message, "parts");
    let (calls, thoughts) = (list(message, "toolInvocations"), message.get("reasoning").and_then(Value::as_str));
    if own.is_empty() {
        parts.extend(thoughts.filter(|text| !text.is_empty()).map(Part::reasoning));
        message.shift_remove("reasoning");
        parts.extend(calls.into_iter().map(invocation));
        parts.extend(Some(content).filter(|text| !text.is_empty()).map(Part::text));
    } else {
        // The fields beside the parts repeat them; a text that they lack is kept.
        let said = |part: &Value| part["text"].as_str().is_some_and(|text| content.contains(text) || text == content);
        let lost = !content.is_empty() && !own.iter().any(said);
        parts.extend(own.into_iter().map(part));
        parts.extend(Some(content).filter(|_| lost).map(Part::text));
    }
    parts.extend(list(message, "experimental_attachments").into_iter().map(attachment));
    parts
}

fn part(part: Value) -> Part {
    let text = |key: &str| part[key].as_str().map(str::to_owned);
    match part["type"].as_str() {
        Some("reasoning") => match text("reasoning") {
            Some(thought) => Part::reasoning(thought),
            None => part.into(),
        },
        Some("tool-invocation") => invocation(part["toolInvocation"].clone()),
        Some("source") => {
            let source = &part["source"];
            json!({"type": "source-url", "sourceId": source["id"], "url": source["url"], "title": source["title"]})
                .as_object()
                .map(|keys| keys.iter().filter(|(_, value)| !value.is_null()))
                .map_or(Part::Other(part.clone()), |keys| {
                    Value::Object(keys.map(|(key, value)| (key.clone(), value.clone())).collect()).into()
                })
        }
        Some("file") => match (text("mimeType"), text("data")) {
            (Some(media_type), Some(data)) => {
                let url = format!("data:{media_type};base64,{data}");
                Part::file(media_type, url)
            }
            _ => part.into(),
        },
        _ => part.into(),
    }
}

fn invocation(call: Value) -> Part {
    let text = |key: &str| call[key].as_str().map(str::to_owned);
    let (Some(name), Some(id)) = (text("toolName"), text("toolCallId")) else { return Part::Other(call) };
    let input = call["args"].clone();
    let state = match call["state"].as_str() {
        Some("partial-call") => ToolState::InputStreaming { input: Some(input) },
        Some("call") => ToolState::called(input),
        Some("result") => ToolState::done(input, call["result"].clone()),
        _ => return Part::Other(call),
    };
    ToolPart::dynamic(name, id, state).into()
}

fn attachment(file: Value) -> Part {
    let text = |key: &str| file[key].as_str().map(str::to_owned);
    let Some(url) = text("url") else { return Part::Other(file) };
    let of_url = || url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next()).map(str::to_owned);
    let media_type = text("contentType").or_else(of_url).unwrap_or_else(|| "application/octet-stream".to_owned());
    match Part::file(media_type, url) {
        Part::File(mut part) => {
            part.filename = text("name");
            Part::File(part)
        }
        part => part,
    }
}
