//! What several tongues say alike: content, calls, results, what an answer cost, whole messages.

use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Heard, Refused};
use crate::dialect::claude_code;
use crate::issue::quoted;
use crate::message::{FilePart, Message, Part, Role, ToolPart, ToolState};
use crate::record::{Body, Outcome, Said, Thinking, Todo, ToolResult, Usage};

/// A content: a text, a part, or a list of both. Blocks of Anthropic's API are parts too, and results among them are results.
pub(super) fn content(value: Value, said: &mut Said) -> Result<(), Refused> {
    match value {
        Value::Null => {}
        Value::String(text) => said.parts.push(Part::text(text)),
        Value::Array(pieces) => {
            for piece in pieces {
                match piece {
                    Value::String(text) => said.parts.push(Part::text(text)),
                    piece @ Value::Object(_) => part(piece, said)?,
                    other => return Err(wrong(&["content"], "a list of texts and parts", &other)),
                }
            }
        }
        piece @ Value::Object(_) => part(piece, said)?,
        other => return Err(wrong(&["content"], "a text or a list of parts", &other)),
    }
    Ok(())
}

fn part(piece: Value, said: &mut Said) -> Result<(), Refused> {
    match Part::from(piece) {
        Part::Other(piece) => {
            let kind = piece.get("type").and_then(Value::as_str);
            let Some(kind) = kind else { return Err(Refused::because("a part has no type")) };
            let (parts, results) = claude_code::blocks(&piece);
            if parts.iter().any(|part| matches!(part, Part::Data(data) if data.kind == "block")) {
                return Err(Refused(format!("a part of type {} is incomplete or unknown", quoted(kind))));
            }
            said.parts.extend(parts);
            said.results.extend(results);
        }
        part => said.parts.push(part),
    }
    Ok(())
}

/// Files that came with a prompt.
pub(super) fn attachments(value: Value, said: &mut Said) -> Result<(), Refused> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    for described in list {
        let Value::Object(object) = described else {
            return Err(wrong(&["attachments"], "a list of objects", &described));
        };
        if object.contains_key("type") && matches!(Part::from(Value::Object(object.clone())), Part::File(_)) {
            said.parts.push(Part::from(Value::Object(object)));
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
                said.parts.push(Part::File(file));
            }
            // A description is all that is known.
            _ => said.parts.push(Part::data("attachment", object)),
        }
    }
    Ok(())
}

/// Calls: ours, or those of OpenAI's API with their arguments as text.
pub(super) fn calls(value: Value, said: &mut Said) -> Result<(), Refused> {
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
            Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            Some(input) => input,
            None => Map::new().into(),
        };
        said.parts.push(ToolPart::dynamic(name, id, ToolState::called(input)).into());
    }
    Ok(())
}

/// What one tool gave back.
pub(super) fn result(value: Value, heard: &mut Heard) -> Result<ToolResult, Refused> {
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
        heard.lose(key.as_str());
    }
    Ok(ToolResult { call_id, name, output, outcome, preliminary, duration_ms, about: Map::new() })
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A task list: objects, or only what is to be done.
pub(super) fn todos(value: Value) -> Result<Vec<Todo>, Refused> {
    let Value::Array(list) = value else { return Err(wrong(&["todos"], "a list", &value)) };
    let todo = |item| match item {
        Value::String(content) => {
            Ok(Todo { content, status: "pending".to_owned(), active_form: None, extra: Map::new() })
        }
        Value::Object(_) => serde_json::from_value(item).map_err(|error| Refused(format!("a todo: {error}"))),
        other => Err(wrong(&["todos"], "a list of texts and objects", &other)),
    };
    list.into_iter().map(todo).collect()
}

/// A thinking mode: its level, or all of it.
pub(super) fn thinking(value: Value) -> Result<Thinking, Refused> {
    match value {
        Value::String(level) => Ok(Thinking { level: Some(level), disabled: false, triggers: Vec::new() }),
        Value::Bool(on) => Ok(Thinking { level: None, disabled: !on, triggers: Vec::new() }),
        value @ Value::Object(_) => {
            serde_json::from_value(value).map_err(|error| Refused(format!("a thinking mode: {error}")))
        }
        other => Err(wrong(&["thinking"], "a level or an object", &other)),
    }
}

/// What an answer cost, in our names, those of Anthropic, OpenAI or the AI SDK. The last two count cached tokens as input.
pub(super) fn usage(value: Value, heard: &mut Heard) -> Result<Usage, Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["usage"], "an object", &value)) };
    let mut fields = Fields(object);
    let mut details = Fields(Map::new());
    let names = [
        "prompt_tokens_details",
        "input_tokens_details",
        "inputTokenDetails",
        "completion_tokens_details",
        "output_tokens_details",
        "outputTokenDetails",
    ];
    for name in names {
        details.0.extend(fields.object(&[name])?.unwrap_or_default());
    }
    let exclusive = fields.count(&["input", "input_tokens"])?;
    let inclusive = fields.count(&["inputTokens", "prompt_tokens", "promptTokens"])?;
    let output = fields.count(&["output", "output_tokens", "outputTokens", "completion_tokens", "completionTokens"])?;
    let beside = fields.count(&["cacheRead", "cache_read_input_tokens", "cacheReadTokens", "cache_read_tokens"])?;
    let within = details.count(&["cached_tokens", "cacheReadTokens"])?.or(fields.count(&["cachedInputTokens"])?);
    let written = fields.count(&["cacheWrite", "cache_creation_input_tokens", "cacheWriteTokens"])?;
    let written_within = details.count(&["cacheWriteTokens", "cache_creation_tokens"])?;
    let cached = within.unwrap_or(0).saturating_add(written_within.unwrap_or(0));
    let reasoning = fields.count(&["reasoning", "reasoningTokens", "reasoning_tokens"])?.or(details.count(&[
        "reasoning_tokens",
        "reasoningTokens",
        "thinking_tokens",
    ])?);
    let usage = Usage {
        input: details
            .count(&["noCacheTokens"])?
            .or(inclusive.or(exclusive).map(|input| input.saturating_sub(cached))),
        output,
        cache_read: beside.or(within),
        cache_write: written.or(written_within),
        reasoning,
    };
    if usage == Usage::default() {
        let known = "input, output, cacheRead, cacheWrite, reasoning";
        return Err(Refused(format!("a usage without tokens; known: {known}, and the names of Anthropic and OpenAI")));
    }
    // A sum says nothing new, nor does how a provider splits its numbers further.
    let split = ["total", "total_tokens", "totalTokens", "cache_creation", "server_tool_use", "service_tier", "raw"];
    split.iter().for_each(|key| _ = fields.any(&[key]));
    for (key, _) in fields.0.iter().filter(|(_, value)| !value.is_null()) {
        heard.lose(format!("usage.{key}"));
    }
    Ok(usage)
}

/// What is known about a message, put where our records have a place for it. The rest stays as it is, and so does a value that
/// only has the name of ours: it is no reason to lose the message.
pub(super) fn about(metadata: Map<String, Value>, said: &mut Said) {
    for (key, value) in metadata {
        match (key.as_str(), value) {
            ("model", Value::String(model)) => said.model = Some(model),
            ("sender", Value::String(sender)) => said.sender = Some(sender),
            ("usage" | "totalUsage", value) => match usage(value.clone(), &mut Heard::default()) {
                Ok(usage) => said.usage = Some(usage),
                Err(_) => _ = said.metadata.insert(key, value),
            },
            ("todos", value) => match todos(value.clone()) {
                Ok(todos) => said.todos = Some(todos),
                Err(_) => _ = said.metadata.insert(key, value),
            },
            ("thinking", value) => match thinking(value.clone()) {
                Ok(mode) => said.thinking = Some(mode),
                Err(_) => _ = said.metadata.insert(key, value),
            },
            // They name records of the session that the message comes from.
            ("records" | "continues", _) => {}
            (_, value) => _ = said.metadata.insert(key, value),
        }
    }
}

/// A whole message: what it says is a record, or, of an answer, one for each of its steps.
pub(super) fn message(message: Message, heard: &mut Heard) {
    let mut said = Said::default();
    about(message.metadata.unwrap_or_default(), &mut said);
    for (key, value) in message.extra {
        said.metadata.entry(key).or_insert(value);
    }
    match message.role {
        Role::User => heard.body(Body::User(Said { parts: message.parts, ..said })),
        Role::System => heard.body(Body::System(Said { parts: message.parts, ..said })),
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
                // What the message cost and what else is known of it is told once, where it was complete.
                let known = if at == last { std::mem::take(&mut said) } else { Said::default() };
                let model = known.model.clone().or_else(|| said.model.clone());
                heard.body(Body::Assistant(Said { parts, model, ..known }));
            }
        }
    }
}
