//! A history as `messages` of OpenAI's Chat Completions API.
//!
//! Reasoning is sent only for an agent whose models accept it. Results are texts: the files of a result follow in the user's
//! name.

use serde_json::{Map, Value, json};

use super::model_part::{ModelPart, model_part};
use super::{History, Turn, TurnItem, TurnOrigin, ViewOutput};
use crate::model::error::Result;
use crate::model::json;
use crate::model::message::{FilePart, Part, Role, ToolPart};
use crate::model::wire::{IMAGES, data_url, file_words, given, id, is_web_address, name_sender};

/// The limits of the API.
const ID_CHARS: usize = 40;
const NAME_CHARS: usize = 64;

/// The dialect of the agent that uses this API, with `reasoning_content` in answers.
const OWN: &str = "qwen-code";

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let is_own = history.dialect == OWN;
    // The agent sends consecutive answers as one.
    let mut open = Answer::default();
    for turn in &history.turns {
        let (mut content, mut calls, mut reasoning) = (Vec::new(), Vec::new(), String::new());
        if turn.role != Role::Assistant {
            std::mem::take(&mut open).send(is_own, out);
        }
        for item in &turn.items {
            match item {
                TurnItem::Part(Part::Reasoning(part)) if is_own && turn.role == Role::Assistant => {
                    reasoning.push_str(&part.text);
                }
                TurnItem::Part(part) => content.extend(piece(part, turn, out)),
                TurnItem::Call(call) => {
                    let name = out.tool_name(&call.name, NAME_CHARS, turn);
                    let function = json!({"name": name, "arguments": arguments(call)});
                    calls.push(json!({"id": id(&call.call_id, ID_CHARS), "type": "function", "function": function}));
                }
                TurnItem::Result(result) => {
                    let (texts, files) = texts_and_files(given(result));
                    content.extend(files.iter().map(|file| of_file(file, turn, out)));
                    let id = id(&result.call_id, ID_CHARS);
                    out.message(json!({"role": "tool", "tool_call_id": id, "content": texts}));
                }
            }
        }
        name_sender(turn.sender.as_deref(), &mut content);
        match turn.role {
            _ if content.is_empty() && calls.is_empty() && reasoning.is_empty() => {
                if turn.origin != TurnOrigin::Results {
                    out.note(turn, "it has no content that can be sent");
                }
            }
            Role::Assistant => {
                open.add(Answer { content, calls, reasoning });
                if !is_own {
                    std::mem::take(&mut open).send(is_own, out);
                }
            }
            Role::User => out.message(json!({"role": "user", "content": together(content)})),
            Role::System => out.message(json!({"role": instructor(turn), "content": together(content)})),
        }
    }
    open.send(is_own, out);
    Ok(())
}

/// An answer that may continue.
#[derive(Default)]
struct Answer {
    content: Vec<Value>,
    calls: Vec<Value>,
    reasoning: String,
}

impl Answer {
    fn add(&mut self, mut more: Answer) {
        self.content.append(&mut more.content);
        self.calls.append(&mut more.calls);
        self.reasoning.push_str(&more.reasoning);
    }

    /// Qwen Code joins the texts of an answer, and an answer of reasoning only has an empty text.
    fn send(self, is_own: bool, out: &mut ViewOutput<'_>) {
        let Answer { content, calls, reasoning } = self;
        if content.is_empty() && calls.is_empty() && reasoning.is_empty() {
            return;
        }
        let content = match content.is_empty() {
            true if reasoning.is_empty() => Value::Null,
            _ if is_own => content.iter().filter_map(|piece| piece["text"].as_str()).collect::<String>().into(),
            _ => together(content),
        };
        let mut message =
            Map::from_iter([("role".to_owned(), Value::from("assistant")), ("content".to_owned(), content)]);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        if !reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), reasoning.into());
        }
        out.message(message.into());
    }
}

/// The arguments as the model wrote them, or as the JSON object that every API of this form accepts.
fn arguments(call: &ToolPart) -> String {
    let recorded = call.input_text.as_deref().filter(|_| call.input().is_some_and(json::is_object));
    recorded.map_or_else(|| json::to_string(&call.arguments()), str::to_owned)
}

/// The role of an instruction: an agent's own context is the developer's.
pub(super) fn instructor(turn: &Turn<'_>) -> &'static str {
    if turn.origin == TurnOrigin::Context { "developer" } else { "system" }
}

/// A single text is sent without a list.
fn together(mut content: Vec<Value>) -> Value {
    match content.as_mut_slice() {
        [only] if only["type"] == "text" => only["text"].take(),
        _ => content.into(),
    }
}

fn piece(part: &Part, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Option<Value> {
    match model_part(part) {
        ModelPart::Text(text) => Some(json!({"type": "text", "text": text})),
        ModelPart::File(file) => Some(of_file(file, turn, out)),
        ModelPart::Reasoning(_) => out.omit(turn, "reasoning"),
        ModelPart::Other { name, .. } => out.omit(turn, name),
    }
}

fn of_file(file: &FilePart, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Value {
    let is_image = file.media_type.starts_with("image");
    match data_url(&file.url) {
        Some((media_type, _)) if turn.role == Role::User && IMAGES.contains(&media_type) => {
            json!({"type": "image_url", "image_url": {"url": file.url}})
        }
        None if turn.role == Role::User && is_image && is_web_address(&file.url) => {
            json!({"type": "image_url", "image_url": {"url": file.url}})
        }
        Some(("application/pdf", _)) if turn.role == Role::User => {
            let name = file.filename.as_deref().unwrap_or("document.pdf");
            json!({"type": "file", "file": {"filename": name, "file_data": file.url}})
        }
        _ => {
            let text = out.file_as_text(file, turn);
            let is_of_agent = turn.records.first().is_some_and(|record| record.session.dialect().name() == OWN);
            let text = if is_of_agent && !is_image { format!("[document: {}]", file.media_type) } else { text };
            json!({"type": "text", "text": text})
        }
    }
}

/// The texts of a result, and its files. A file is named in the text too.
fn texts_and_files(parts: Vec<Part>) -> (String, Vec<FilePart>) {
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.text),
            Part::File(file) => {
                texts.push(file_words(&file));
                files.push(file);
            }
            _ => {}
        }
    }
    (texts.join("\n"), files)
}
