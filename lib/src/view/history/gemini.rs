//! A history as the `contents` of the Gemini API.
//!
//! An agent that uses this API has recorded them, and they are sent as they are (`recorded.rs`). Any other history is
//! converted: people and tools are `user`, the roles alternate, reasoning is sent only with its signature.

mod recorded;

use serde_json::{Map, Value, json};

use super::model_part::{ModelPart, model_part};
use super::{BEGINNING, History, Turn, TurnItem, TurnOrigin, ViewOutput};
use crate::model::error::Result;
use crate::model::message::{FilePart, Part, Role, ToolPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{data_url, given, is_web_address, name_sender};

/// The dialect of the agent that records what it sends to this API.
pub(super) const RECORDED: &str = "qwen-code";

/// The limits of the API.
const NAME_CHARS: usize = 64;
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif"];

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let first = history.turns.iter().find_map(|turn| turn.records.first());
    match first.map(|record| record.contents()).transpose()?.flatten() {
        Some(_) => recorded::write(history, out)?,
        None => convert(history, out),
    }
    Ok(())
}

pub(super) fn beginning() -> Value {
    json!({"role": "user", "parts": [{"text": BEGINNING}]})
}

fn convert(history: &History<'_>, out: &mut ViewOutput<'_>) {
    let mut content = OpenContent { role: "", parts: Vec::new() };
    for turn in &history.turns {
        let mut parts = Vec::new();
        turn.items.iter().for_each(|item| add(item, turn, &mut parts, out));
        if parts.is_empty() {
            out.note(turn, "it has no content that can be sent");
            continue;
        }
        if turn.origin == TurnOrigin::Instruction {
            out.note(turn, "an instruction is sent as a user message");
        }
        if turn.origin == TurnOrigin::Results && turn.records.len() > 1 {
            out.note(turn, "the results of one answer are sent as one content");
        }
        name_sender(turn.sender.as_deref(), &mut parts);
        let role = if turn.role == Role::Assistant { "model" } else { "user" };
        if content.role.is_empty() && role == "model" {
            out.beginning(turn, beginning());
        }
        if role != content.role {
            content.send(out);
            content.role = role;
        }
        content.parts.append(&mut parts);
    }
    content.send(out);
}

/// The unfinished content.
struct OpenContent {
    role: &'static str,
    parts: Vec<Value>,
}

impl OpenContent {
    fn send(&mut self, out: &mut ViewOutput<'_>) {
        let parts = std::mem::take(&mut self.parts);
        if !parts.is_empty() {
            out.message(json!({"role": self.role, "parts": parts}));
        }
    }
}

fn add(item: &TurnItem, turn: &Turn<'_>, parts: &mut Vec<Value>, out: &mut ViewOutput<'_>) {
    match item {
        TurnItem::Call(call) => parts.push(of_call(call, turn, out)),
        TurnItem::Result(result) => of_result(result, turn, parts, out),
        TurnItem::Part(part) => parts.extend(match model_part(part) {
            ModelPart::Text(text) => Some(signed(json!({"text": text}), metadata(part))),
            ModelPart::File(file) => Some(of_file(file, turn, out)),
            ModelPart::Reasoning(part) => {
                let part = signed(json!({"text": part.text, "thought": true}), part.provider_metadata.as_ref());
                let is_signed = part.get("thoughtSignature").is_some();
                if is_signed { Some(part) } else { out.omit(turn, "thinking without a signature") }
            }
            ModelPart::Other { name, .. } => out.omit(turn, name),
        }),
    }
}

fn of_call(call: &ToolPart, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Value {
    let name = out.tool_name(&call.name, NAME_CHARS, turn);
    let call_part = json!({"functionCall": {"id": call.call_id, "name": name, "args": call.arguments()}});
    signed(call_part, call.call_provider_metadata.as_ref())
}

/// The response, followed by the files that the tool returned.
fn of_result(result: &ToolResult, turn: &Turn<'_>, parts: &mut Vec<Value>, out: &mut ViewOutput<'_>) {
    let (response, files) = response_of(result);
    let files: Vec<Value> = files.iter().map(|file| of_file(file, turn, out)).collect();
    let name = out.tool_name(result.name.as_deref().unwrap_or_default(), NAME_CHARS, turn);
    parts.push(json!({"functionResponse": {"id": result.call_id, "name": name, "response": response}}));
    parts.extend(files);
}

/// The texts of a result, and its files.
fn response_of(result: &ToolResult) -> (Value, Vec<FilePart>) {
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in given(result) {
        match part {
            Part::Text(text) => texts.push(text.text),
            Part::File(file) => files.push(file),
            _ => {}
        }
    }
    let key = if result.outcome == Outcome::Done { "output" } else { "error" };
    (json!({key: texts.join("\n")}), files)
}

fn of_file(file: &FilePart, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Value {
    let metadata = file.provider_metadata.as_ref();
    match data_url(&file.url) {
        Some((media_type, data)) if !media_type.starts_with("image/") || IMAGES.contains(&media_type) => {
            signed(json!({"inlineData": {"mimeType": media_type, "data": data}}), metadata)
        }
        None if is_web_address(&file.url) || file.url.starts_with("gs://") => {
            signed(json!({"fileData": {"mimeType": file.media_type, "fileUri": file.url}}), metadata)
        }
        _ => json!({"text": out.file_as_text(file, turn)}),
    }
}

fn metadata(part: &Part) -> Option<&Map<String, Value>> {
    if let Part::Text(text) = part { text.provider_metadata.as_ref() } else { None }
}

/// A part with the model's signature.
fn signed(mut part: Value, metadata: Option<&Map<String, Value>>) -> Value {
    let signature = metadata.and_then(|metadata| metadata.get("google")?.get("thoughtSignature")?.as_str());
    if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
        part["thoughtSignature"] = signature.into();
    }
    part
}
