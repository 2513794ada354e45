//! A history as `input` of OpenAI's Responses API: messages, reasoning, calls and outputs, each an item.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::model_part::{ModelPart, is_of_api, model_part};
use super::openai::instructor;
use super::{History, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::json;
use crate::model::message::{FilePart, Part, ReasoningPart, Role, ToolPart};
use crate::model::record::ToolResult;
use crate::model::wire::{IMAGES, data_url, given, id, is_web_address, name_sender};

/// The limits of the API.
const ID_CHARS: usize = 64;
const NAME_CHARS: usize = 64;

/// The content that we write: one of these types that is not a part is broken.
const KNOWN_CONTENT: &[&str] = &["input_text", "output_text", "input_image", "input_file"];

/// The dialect of the agent that uses this API.
const OWN: &str = "codex";

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    // Calls with free text, whose outputs have another type; and those that the provider ran.
    let (mut custom, mut hosted) = (HashSet::new(), HashSet::new());
    let mut reasoning = WaitingReasoning { own: history.dialect == OWN, waiting: Vec::new() };
    for turn in &history.turns {
        let writer = ItemWriter { own: history.dialect == OWN, turn };
        let mut content = Vec::new();
        for item in &turn.items {
            let item = match item {
                TurnItem::Part(part) => match writer.part(part, out) {
                    Some(Converted::Content(piece)) => {
                        content.push(piece);
                        continue;
                    }
                    Some(Converted::Item(item)) if item["type"] == "reasoning" => {
                        writer.message(&mut content, &mut reasoning, out);
                        reasoning.waiting.push((item, turn));
                        continue;
                    }
                    Some(Converted::Item(item)) => item,
                    None => continue,
                },
                TurnItem::Call(call) if writer.own && call.provider_executed == Some(true) => {
                    hosted.insert(call.call_id.as_str());
                    hosted_call(call)
                }
                TurnItem::Call(call) => {
                    let item = writer.call(call, out);
                    if item["type"] == "custom_tool_call" {
                        custom.insert(call.call_id.as_str());
                    }
                    item
                }
                TurnItem::Result(result) if hosted.contains(result.call_id.as_str()) => continue,
                TurnItem::Result(result) => writer.result(result, custom.contains(result.call_id.as_str()), out),
            };
            writer.message(&mut content, &mut reasoning, out);
            reasoning.send(turn, out);
            out.message(item);
        }
        writer.message(&mut content, &mut reasoning, out);
    }
    reasoning.drop(out);
    Ok(())
}

/// Reasoning that waits for the next item: the API does not accept it alone.
struct WaitingReasoning<'h> {
    /// The agent sends its own reasoning before any item, but not at the end.
    own: bool,
    waiting: Vec<(Value, &'h Turn<'h>)>,
}

impl WaitingReasoning<'_> {
    fn send(&mut self, next: &Turn<'_>, out: &mut ViewOutput<'_>) {
        if self.own || next.role == Role::Assistant {
            self.waiting.drain(..).for_each(|(item, _)| out.message(item));
        }
        self.drop(out);
    }

    fn drop(&mut self, out: &mut ViewOutput<'_>) {
        self.waiting
            .drain(..)
            .for_each(|(_, turn)| out.note(turn, "reasoning without an answer is not sent"));
    }
}

/// What a part becomes: a piece of a message, or an item of its own.
enum Converted {
    Content(Value),
    Item(Value),
}

struct ItemWriter<'h> {
    /// The session is of the agent that uses this API.
    own: bool,
    turn: &'h Turn<'h>,
}

impl ItemWriter<'_> {
    fn message(&self, content: &mut Vec<Value>, reasoning: &mut WaitingReasoning<'_>, out: &mut ViewOutput<'_>) {
        let role = match self.turn.role {
            Role::User => "user",
            Role::System => instructor(self.turn),
            Role::Assistant => "assistant",
        };
        if !content.is_empty() {
            name_sender(self.turn.sender.as_deref(), content);
            reasoning.send(self.turn, out);
            out.message(json!({"type": "message", "role": role, "content": std::mem::take(content)}));
        }
    }

    fn text(&self, text: &str) -> Value {
        let kind = if self.turn.role == Role::Assistant { "output_text" } else { "input_text" };
        json!({"type": kind, "text": text})
    }

    fn part(&self, part: &Part, out: &mut ViewOutput<'_>) -> Option<Converted> {
        match model_part(part) {
            ModelPart::Text(text) => Some(Converted::Content(self.text(&text))),
            ModelPart::File(file) => Some(Converted::Content(self.file(file, out))),
            ModelPart::Reasoning(part) => self.reasoning(part, out).map(Converted::Item),
            // A compaction that only the model can read.
            ModelPart::Other { data: Some(data), .. }
                if self.own && data.kind == "context" && data.data["encrypted_content"].is_string() =>
            {
                Some(Converted::Item(data.data.clone()))
            }
            ModelPart::Other { data: Some(data), .. } if self.own && is_of_api(data, "content", KNOWN_CONTENT) => {
                Some(Converted::Content(data.data.clone()))
            }
            ModelPart::Other { name, .. } => out.omit(self.turn, name),
        }
    }

    /// The API accepts only what it encrypted itself; the agent sends what it has.
    fn reasoning(&self, part: &ReasoningPart, out: &mut ViewOutput<'_>) -> Option<Value> {
        let openai = part.provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        let encrypted = openai.and_then(|ours| ours.get("reasoningEncryptedContent")).and_then(Value::as_str);
        if (encrypted.is_none() && !self.own) || self.turn.role != Role::Assistant {
            return out.omit(self.turn, "reasoning that the API did not encrypt");
        }
        let summary =
            if part.text.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": part.text}]) };
        let mut item = json!({"type": "reasoning", "summary": summary});
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        Some(item)
    }

    /// A call with free text, and no text of arguments, is a custom one.
    fn call(&self, call: &ToolPart, out: &mut ViewOutput<'_>) -> Value {
        let (id, name) = (id(&call.call_id, ID_CHARS), out.tool_name(&call.name, NAME_CHARS, self.turn));
        let recorded = call.input_text.as_deref();
        if let (Some(Value::String(input)), None) = (call.input(), recorded) {
            return json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": input});
        }
        // As the model wrote them, whether they are JSON or not.
        let arguments = recorded.map_or_else(|| json::to_string(&call.arguments()), str::to_owned);
        let mut item = json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
        let openai = call.call_provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        if let Some(namespace) = openai.and_then(|ours| ours.get("namespace")).filter(|_| self.own) {
            item["namespace"] = namespace.clone();
        }
        item
    }

    fn result(&self, result: &ToolResult, custom: bool, out: &mut ViewOutput<'_>) -> Value {
        let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
        let output = match given(result).as_slice() {
            // With all that the agent recorded about a picture.
            _ if self.own && is_recorded_list(&result.output) => result.output.clone(),
            [] => "".into(),
            // A list that the agent recorded stays one.
            [Part::Text(text)] if !self.own || !result.output.is_array() => Value::from(text.text.clone()),
            parts => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(json!({"type": "input_text", "text": text.text})),
                    Part::File(file) => Some(self.file(file, out)),
                    _ => None,
                })
                .collect(),
        };
        json!({"type": kind, "call_id": id(&result.call_id, ID_CHARS), "output": output})
    }

    fn file(&self, file: &FilePart, out: &mut ViewOutput<'_>) -> Value {
        let (data, on_web) = (data_url(&file.url), is_web_address(&file.url));
        if self.turn.role == Role::User && (data.is_some() || on_web) {
            let media_type = data.map_or(file.media_type.as_str(), |(media_type, _)| media_type);
            if IMAGES.contains(&media_type) || (on_web && media_type.starts_with("image")) {
                return json!({"type": "input_image", "image_url": file.url});
            }
            if on_web {
                return json!({"type": "input_file", "file_url": file.url});
            }
            if media_type == "application/pdf" {
                let name = file.filename.as_deref().unwrap_or("document.pdf");
                return json!({"type": "input_file", "filename": name, "file_data": file.url});
            }
        }
        self.text(&out.file_as_text(file, self.turn))
    }
}

/// Whether an output is a list of pieces that the API itself knows.
fn is_recorded_list(output: &Value) -> bool {
    let is_known = |piece: &Value| matches!(piece["type"].as_str(), Some("input_text" | "input_image"));
    output.as_array().is_some_and(|pieces| !pieces.is_empty() && pieces.iter().all(is_known))
}

/// A call that the provider ran, as the agent keeps it.
fn hosted_call(call: &ToolPart) -> Value {
    let mut item = Map::from_iter([("type".to_owned(), Value::from(format!("{}_call", call.name)))]);
    let failed = matches!(call.state, crate::model::message::ToolState::OutputError { .. });
    item.insert("status".to_owned(), if failed { "failed" } else { "completed" }.into());
    match (call.name.as_str(), call.input(), call.output()) {
        ("image_generation", input, output) => {
            item.insert("id".to_owned(), call.call_id.clone().into());
            let prompt = input.and_then(|input| input.get("prompt"));
            item.extend(prompt.map(|prompt| ("revised_prompt".to_owned(), prompt.clone())));
            item.extend(output.map(|output| ("result".to_owned(), output.clone())));
        }
        (_, input, _) => {
            item.extend(input.filter(|input| json::is_object(input)).map(|input| ("action".to_owned(), input.clone())))
        }
    }
    item.into()
}
