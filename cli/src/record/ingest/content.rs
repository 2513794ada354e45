//! What the formats have in common: content, tool calls and results, whole messages.

use scrollback::dialect;
use scrollback::model::json;
use scrollback::model::{
    Body, Content, FilePart, Message, Outcome, Part, Role, Thinking, Todo, ToolPart, ToolResult, ToolState, quoted,
};
use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::usage::usage;
use super::{Parsed, Refused};

/// Adds a text, a part, or a list of both. Content blocks of Anthropic's API are parts too; tool results among them are added as such.
pub(super) fn content(value: Value, content: &mut Content) -> Result<(), Refused> {
    match value {
        Value::Null => {}
        Value::String(text) => content.parts.push(Part::text(text)),
        Value::Array(pieces) => {
            for piece in pieces {
                match piece {
                    Value::String(text) => content.parts.push(Part::text(text)),
                    piece @ Value::Object(_) => part(piece, content)?,
                    other => return Err(wrong(&["content"], "a list of texts and parts", &other)),
                }
            }
        }
        piece @ Value::Object(_) => part(piece, content)?,
        other => return Err(wrong(&["content"], "a text or a list of parts", &other)),
    }
    Ok(())
}

fn part(piece: Value, content: &mut Content) -> Result<(), Refused> {
    match Part::from(piece) {
        Part::Other(piece) => {
            let kind = piece.get("type").and_then(Value::as_str);
            let Some(kind) = kind else { return Err(Refused::because("a part has no type")) };
            let (parts, results) = dialect::anthropic_blocks(&piece);
            if parts.iter().any(|part| matches!(part, Part::Data(data) if data.kind == "block")) {
                return Err(Refused(format!("a part of type {} is incomplete or unknown", quoted(kind))));
            }
            content.parts.extend(parts);
            content.results.extend(results);
        }
        part => content.parts.push(part),
    }
    Ok(())
}

/// Files that came with a prompt.
pub(super) fn attachments(value: Value, content: &mut Content) -> Result<(), Refused> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    for described in list {
        let Value::Object(object) = described else {
            return Err(wrong(&["attachments"], "a list of objects", &described));
        };
        if object.contains_key("type") && matches!(Part::from(Value::Object(object.clone())), Part::File(_)) {
            content.parts.push(Part::from(Value::Object(object)));
            continue;
        }
        let mut fields = Fields(object.clone());
        let media_type = fields.text(&["mediaType", "mimeType", "mime_type", "contentType"])?;
        let (url, filename) = (fields.text(&["url"])?, fields.text(&["filename", "name"])?);
        match (media_type, url) {
            (Some(media_type), Some(url)) => {
                let mut file = FilePart { media_type, url, filename, ..FilePart::default() };
                if !fields.0.is_empty() {
                    file.provider_metadata = Some(Map::from_iter([("scrollback".to_owned(), fields.0.into())]));
                }
                content.parts.push(Part::File(file));
            }
            // Without an address only the description can be kept.
            _ => content.parts.push(Part::data("attachment", object)),
        }
    }
    Ok(())
}

/// Calls: ours, or those of OpenAI's API with their arguments as text.
pub(super) fn calls(value: Value, content: &mut Content, parsed: &mut Parsed) -> Result<(), Refused> {
    let Value::Array(list) = value else { return Err(wrong(&["toolCalls"], "a list", &value)) };
    for call in list {
        let Value::Object(call) = call else { return Err(wrong(&["toolCalls"], "a list of objects", &call)) };
        let mut fields = Fields(call);
        if let Some(function) = fields.object(&["function"])? {
            fields.0.extend(function);
        }
        let id = fields.needed(&["id", "callId", "toolCallId"])?;
        let name = fields.needed(&["name", "toolName"])?;
        let input = match fields.any(&["input", "arguments", "args"]) {
            Some(Value::String(text)) => json::parse(&text).unwrap_or(Value::String(text)),
            Some(input) => input,
            None => Map::new().into(),
        };
        let call = ToolPart {
            title: fields.text(&["title"])?,
            provider_executed: fields.flag(&["providerExecuted"])?,
            ..ToolPart::dynamic(name, id, ToolState::called(input))
        };
        content.parts.push(call.into());
        // These carry no further information.
        ["type", "index"].iter().for_each(|key| _ = fields.any(&[key]));
        let rest = fields.0.iter().filter(|(_, value)| !value.is_null());
        rest.for_each(|(key, _)| parsed.lose(format!("toolCalls.{key}")));
    }
    Ok(())
}

/// One tool result.
pub(super) fn result(value: Value, parsed: &mut Parsed) -> Result<ToolResult, Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["toolResult"], "an object", &value)) };
    let mut fields = Fields(object);
    let call_id = fields.needed(&["callId", "toolCallId", "tool_call_id", "tool_use_id", "id"])?;
    let name = fields.text(&["name", "toolName"])?;
    let output = fields.any(&["output", "content", "result"]).unwrap_or_default();
    let (error, is_error) = (fields.any(&["error", "errorText"]), fields.flag(&["isError", "is_error"])?);
    let outcome = match (fields.any(&["denied"]), error) {
        (Some(Value::Bool(true)), why) => Outcome::Denied(why.map(text_of)),
        (Some(Value::String(why)), _) => Outcome::Denied(Some(why)),
        (Some(Value::Bool(false)) | None, Some(Value::Bool(true))) => Outcome::Failed(text_of(output.clone())),
        (Some(Value::Bool(false)) | None, Some(Value::Bool(false)) | None) if is_error == Some(true) => {
            Outcome::Failed(text_of(output.clone()))
        }
        (Some(Value::Bool(false)) | None, Some(Value::Bool(false)) | None) => Outcome::Done,
        (Some(Value::Bool(false)) | None, Some(why)) => Outcome::Failed(text_of(why)),
        (Some(other), _) => return Err(wrong(&["denied"], "true, false or a reason", &other)),
    };
    let duration_ms = fields.count(&["durationMs", "duration_ms"])?;
    let preliminary = fields.flag(&["preliminary"])? == Some(true);
    fields.any(&["type"]);
    for key in fields.0.keys() {
        parsed.lose(key.as_str());
    }
    Ok(ToolResult { call_id, name, output, outcome, preliminary, duration_ms, about: Map::new() })
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => json::to_string(&other),
    }
}

/// A task list of objects or texts. The agent chooses the words for a status.
pub(super) fn todos(value: Value) -> Result<Vec<Todo>, Refused> {
    let Value::Array(list) = value else { return Err(wrong(&["todos"], "a list", &value)) };
    let pending = || "pending".to_owned();
    let todo = |item| match item {
        Value::String(content) => Ok(Todo { content, status: pending(), active_form: None, extra: Map::new() }),
        Value::Object(object) => {
            let todo = serde_json::from_value::<Todo>(object.into());
            let todo = todo.map_err(|error| Refused(format!("a todo: {error}")))?;
            Ok(if todo.status.is_empty() { Todo { status: pending(), ..todo } } else { todo })
        }
        other => Err(wrong(&["todos"], "a list of texts and objects", &other)),
    };
    let checked = |todo: Todo| {
        let is_empty = todo.content.trim().is_empty();
        (!is_empty).then_some(todo).ok_or_else(|| Refused::because("a todo: content is missing"))
    };
    let todo = |item| todo(item).and_then(checked);
    list.into_iter().map(todo).collect()
}

/// A thinking mode: a level, a switch, or an object.
pub(super) fn thinking(value: Value, parsed: &mut Parsed) -> Result<Thinking, Refused> {
    if let Value::Object(fields) = &value {
        let unknown = fields.keys().filter(|key| !["level", "disabled", "triggers"].contains(&key.as_str()));
        unknown.for_each(|key| parsed.lose(format!("thinking.{key}")));
    }
    match value {
        Value::String(level) => Ok(Thinking { level: Some(level), disabled: false, triggers: Vec::new() }),
        Value::Bool(on) => Ok(Thinking { level: None, disabled: !on, triggers: Vec::new() }),
        value @ Value::Object(_) => {
            serde_json::from_value(value).map_err(|error| Refused(format!("a thinking mode: {error}")))
        }
        other => Err(wrong(&["thinking"], "a level or an object", &other)),
    }
}

/// Metadata that readers derive from the record, or that marks a child session or a failure: no input may set it.
const RESERVED: [&str; 14] = [
    "timestamp",
    "model",
    "usage",
    "cwd",
    "gitBranch",
    "todos",
    "thinking",
    "sender",
    "error",
    "records",
    "continues",
    "error_type",
    "parentSessionId",
    "parentToolCallId",
];

/// Keeps further fields of a message as metadata; reserved names are lost.
pub(super) fn keep_metadata(rest: Map<String, Value>, content: &mut Content, parsed: &mut Parsed) {
    for (key, value) in rest {
        if RESERVED.contains(&key.as_str()) {
            parsed.lose(key);
        } else {
            content.metadata.entry(key).or_insert(value);
        }
    }
}

/// Adds metadata of a message: to its field of the record where there is one that is still empty, else as it is. Reserved names
/// are lost.
pub(super) fn add_metadata(metadata: Map<String, Value>, content: &mut Content, parsed: &mut Parsed) {
    for (key, value) in metadata {
        let is_taken = match (key.as_str(), &value) {
            ("model", Value::String(model)) if content.model.is_none() => {
                content.model = Some(model.clone());
                true
            }
            ("sender", Value::String(sender)) if content.sender.is_none() => {
                content.sender = Some(sender.clone());
                true
            }
            ("usage" | "totalUsage", value) if content.usage.is_none() => {
                content.usage = usage(value.clone(), &mut Parsed::default()).ok();
                content.usage.is_some()
            }
            ("todos", value) if content.todos.is_none() => {
                content.todos = todos(value.clone()).ok();
                content.todos.is_some()
            }
            ("thinking", value) if content.thinking.is_none() => {
                content.thinking = thinking(value.clone(), parsed).ok();
                content.thinking.is_some()
            }
            _ => false,
        };
        match () {
            () if is_taken => {}
            () if RESERVED.contains(&key.as_str()) => parsed.lose(format!("metadata.{key}")),
            () => _ = content.metadata.entry(key).or_insert(value),
        }
    }
}

/// A whole message: one record, or one for each step of an answer.
pub(super) fn message(message: Message, parsed: &mut Parsed) {
    let mut content = Content::default();
    add_metadata(message.metadata.unwrap_or_default(), &mut content, parsed);
    keep_metadata(message.extra, &mut content, parsed);
    if !message.id.is_empty() {
        // The record gets an id of its own.
        parsed.lose("id");
    }
    match message.role {
        Role::User => parsed.body(Body::User(Content { parts: message.parts, ..content })),
        Role::System => parsed.body(Body::System(Content { parts: message.parts, to_model: true, ..content })),
        Role::Assistant => {
            let mut steps = vec![Vec::new()];
            for part in message.parts {
                match (part, steps.last_mut()) {
                    (Part::StepStart, Some(step)) if step.is_empty() => {}
                    (Part::StepStart, _) | (_, None) => steps.push(Vec::new()),
                    (part, Some(step)) => step.push(part),
                }
            }
            if steps.len() > 1 && steps.last().is_some_and(Vec::is_empty) {
                steps.pop();
            }
            let last = steps.len().saturating_sub(1);
            for (at, parts) in steps.into_iter().enumerate() {
                // Token counts and metadata of the whole message go to its last step.
                let known = if at == last { std::mem::take(&mut content) } else { Content::default() };
                let model = known.model.clone().or_else(|| content.model.clone());
                parsed.body(Body::Assistant(Content { parts, model, ..known }));
            }
        }
    }
}
