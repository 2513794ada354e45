//! Messages of SDK 3 and 4: text in `content`, calls in `toolInvocations`, files in `experimental_attachments`; since 4.2
//! also as parts, with other names than today.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::line::{Line, id_of_function};
use crate::dialect::line_builder::fields;
use crate::model::json;
use crate::model::message::{FilePart, Part, ToolPart, ToolState};
use crate::model::record::{Body, Content, Outcome, ToolResult};
use crate::model::wire::media_type_of;

/// The types of parts in SDK 4.
const TYPES: &[&str] = &["text", "reasoning", "tool-invocation", "source", "file", "step-start"];

/// The first part of a type that SDK 4 did not have.
pub(super) fn unknown_part(line: &Line<'_>) -> Option<String> {
    let mut kinds = line.parts.0.iter().map(|part| part.kind.0.as_deref().unwrap_or_default());
    kinds.find(|kind| !TYPES.contains(kind)).map(str::to_owned)
}

/// The parts of a message in today's format. Fields that parts cannot hold stay in the message.
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
        parts.extend(api_calls(message));
        parts.extend(Some(content).filter(|text| !text.is_empty()).map(Part::text));
    } else {
        // The fields beside the parts repeat them; what is only in the fields is added.
        let texts: String = own.iter().filter_map(|part| part["text"].as_str()).collect();
        let id = |call: &Value| json::to_string(&call["toolCallId"]);
        let made: HashSet<String> = own.iter().map(|part| id(&part["toolInvocation"])).collect();
        parts.extend(own.into_iter().map(part));
        parts.extend(calls.into_iter().filter(|call| !made.contains(&id(call))).map(invocation));
        parts.extend(api_calls(message));
        parts.extend(Some(content).filter(|text| !texts.contains(text.as_str())).map(Part::text));
    }
    parts.extend(list(message, "experimental_attachments").into_iter().map(attachment));
    parts
}

/// The calls of SDK 3, in the format of OpenAI's API; malformed ones stay in the message.
fn api_calls(message: &mut Map<String, Value>) -> Vec<Part> {
    let call = |id: &str, function: &Value| {
        let name = function["name"].as_str()?;
        Some(Part::from(match function["arguments"].as_str() {
            Some(text) => ToolPart::from_input_text(name, id, text.to_owned()),
            None => ToolPart::dynamic(name, id, ToolState::called(function["arguments"].clone())),
        }))
    };
    let mut parts = Vec::new();
    let listed = message.get("tool_calls").and_then(Value::as_array);
    let several = listed.map(|calls| calls.iter().map(|api| call(api["id"].as_str()?, &api["function"])));
    if let Some(calls) = several.and_then(|calls| calls.collect::<Option<Vec<Part>>>()) {
        parts.extend(calls);
        message.shift_remove("tool_calls");
    }
    let function = message.get("function_call");
    let single = function.and_then(|api| call(&id_of_function(api["name"].as_str()?), api));
    if let Some(call) = single {
        parts.push(call);
        message.shift_remove("function_call");
    }
    parts
}

/// The result in a message of the role `tool` or `function`.
pub(super) fn result(mut message: Map<String, Value>, call_id: String) -> Body {
    let output = message.shift_remove("content").unwrap_or_default();
    let name = message.get("name").and_then(Value::as_str).map(str::to_owned);
    for known in ["id", "role", "tool_call_id", "name"] {
        message.shift_remove(known);
    }
    let result = ToolResult { name, ..ToolResult::new(call_id, output, Outcome::Done) };
    Body::ToolResult(Content { results: vec![result], metadata: message, ..Content::default() })
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
            let keys =
                json!({"type": "source-url", "sourceId": source["id"], "url": source["url"], "title": source["title"]});
            Value::from_iter(fields(keys).into_iter().filter(|(_, value)| !value.is_null())).into()
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
    let of_url = || media_type_of(&url).map(str::to_owned);
    let media_type = text("contentType").or_else(of_url).unwrap_or_else(|| "application/octet-stream".to_owned());
    Part::File(FilePart { media_type, url, filename: text("name"), ..FilePart::default() })
}
