//! A history as the `contents` of the Gemini API.
//!
//! An agent that speaks to that API has recorded them, and they are sent as they are (`recorded.rs`). Any other history is
//! said in its words: people and tools are `user`, the roles alternate, thoughts are sent with their signature or not at all.

mod recorded;

use serde_json::{Map, Value, json};

use super::pieces::{Plain, data_url, file_words, given, is_web_address, plain};
use super::{BEGINNING, History, Item, Origin, Out, Turn, wire};
use crate::model::error::Result;
use crate::model::message::{FilePart, Part, ReasoningPart, Role, ToolPart};
use crate::model::record::{Outcome, ToolResult};

/// What the API takes.
const NAME_CHARS: usize = 64;
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif"];

pub(super) fn write(history: &History<'_>, out: &mut Out<'_>) -> Result<()> {
    let first = history.turns.iter().find_map(|turn| turn.records.first());
    match first.map(|record| record.contents()).transpose()?.flatten() {
        Some(_) => recorded::write(history, out)?,
        None => content(history, out),
    }
    Ok(())
}

pub(super) fn beginning() -> Value {
    json!({"role": "user", "parts": [{"text": BEGINNING}]})
}

fn content(history: &History<'_>, out: &mut Out<'_>) {
    let mut content = Content { role: "", parts: Vec::new() };
    for turn in &history.turns {
        let mut parts = Vec::new();
        turn.items.iter().for_each(|item| add(item, turn, &mut parts, out));
        if parts.is_empty() {
            out.note(turn, "nothing of it can be sent");
            continue;
        }
        if turn.origin == Origin::Instruction {
            out.note(turn, "an instruction is sent in the user's name");
        }
        wire::name_speaker(turn, &mut parts);
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

/// The content in the making.
struct Content {
    role: &'static str,
    parts: Vec<Value>,
}

impl Content {
    fn send(&mut self, out: &mut Out<'_>) {
        let parts = std::mem::take(&mut self.parts);
        if !parts.is_empty() {
            out.message(json!({"role": self.role, "parts": parts}));
        }
    }
}

fn add(item: &Item, turn: &Turn<'_>, parts: &mut Vec<Value>, out: &mut Out<'_>) {
    let mut leave = |what: &str| {
        out.note(turn, format!("{what} is not sent"));
        None
    };
    match item {
        Item::Call(call) => parts.push(of_call(call, turn, out)),
        Item::Result(result) => of_result(result, turn, parts, out),
        Item::Part(part) => parts.extend(match plain(part) {
            Plain::Text(text) => Some(signed(json!({"text": text}), metadata(part))),
            Plain::File(file) => Some(of_file(file, turn, out)),
            Plain::Reasoning(thought) => of_thought(thought).or_else(|| leave("thinking without a signature")),
            Plain::Foreign(_) => leave("a piece that only another API has"),
            Plain::Aside(what) => leave(what),
        }),
    }
}

fn of_thought(thought: &ReasoningPart) -> Option<Value> {
    let thought = signed(json!({"text": thought.text, "thought": true}), thought.provider_metadata.as_ref());
    thought.get("thoughtSignature").is_some().then_some(thought)
}

fn of_call(call: &ToolPart, turn: &Turn<'_>, out: &mut Out<'_>) -> Value {
    let name = wire::name(&call.name, NAME_CHARS, turn, out);
    let call_part = json!({"functionCall": {"id": call.call_id, "name": name, "args": call.arguments()}});
    signed(call_part, call.call_provider_metadata.as_ref())
}

/// The response, and behind it the files that the tool gave back.
fn of_result(result: &ToolResult, turn: &Turn<'_>, parts: &mut Vec<Value>, out: &mut Out<'_>) {
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in given(result) {
        match part {
            Part::Text(text) => texts.push(text.text),
            Part::File(file) => files.push(of_file(&file, turn, out)),
            _ => {}
        }
    }
    let name = wire::name(result.name.as_deref().unwrap_or_default(), NAME_CHARS, turn, out);
    let key = if result.outcome == Outcome::Done { "output" } else { "error" };
    let response = Map::from_iter([(key.to_owned(), texts.join("\n").into())]);
    parts.push(json!({"functionResponse": {"id": result.call_id, "name": name, "response": response}}));
    parts.append(&mut files);
}

fn of_file(file: &FilePart, turn: &Turn<'_>, out: &mut Out<'_>) -> Value {
    let metadata = file.provider_metadata.as_ref();
    match data_url(&file.url) {
        Some((media_type, data)) if !media_type.starts_with("image/") || IMAGES.contains(&media_type) => {
            signed(json!({"inlineData": {"mimeType": media_type, "data": data}}), metadata)
        }
        None if is_web_address(&file.url) || file.url.starts_with("gs://") => {
            signed(json!({"fileData": {"mimeType": file.media_type, "fileUri": file.url}}), metadata)
        }
        _ => {
            out.note(turn, format!("a file of type {:?} is only named", file.media_type));
            json!({"text": file_words(file)})
        }
    }
}

fn metadata(part: &Part) -> Option<&Map<String, Value>> {
    if let Part::Text(text) = part { text.provider_metadata.as_ref() } else { None }
}

/// A part with the signature that the model gave it.
fn signed(mut part: Value, metadata: Option<&Map<String, Value>>) -> Value {
    let signature = metadata.and_then(|metadata| metadata.get("google")?.get("thoughtSignature")?.as_str());
    if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
        part["thoughtSignature"] = signature.into();
    }
    part
}
