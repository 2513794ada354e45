//! A history as `messages` of OpenAI's Chat Completions API.
//!
//! Reasoning has no place there, but for an agent whose models take it back. Results are texts: the files that a tool gave back follow in the user's name.

use serde_json::{Map, Value, json};

use super::pieces::{IMAGES, ModelPart, data_url, file_words, given, is_web_address, model_part};
use super::{History, Turn, TurnItem, TurnOrigin, ViewOutput, wire};
use crate::model::error::Result;
use crate::model::message::{FilePart, Part, Role};

/// What the API takes.
const ID_CHARS: usize = 40;
const NAME_CHARS: usize = 64;

/// The dialect of the agent that speaks a chat API of its own make, where an answer has `reasoning_content`.
const THINKS: &str = "qwen-code";

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let thinks = history.dialect == THINKS;
    for turn in &history.turns {
        let (mut content, mut calls, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
        for item in &turn.items {
            match item {
                TurnItem::Part(Part::Reasoning(thought)) if thinks && turn.role == Role::Assistant => {
                    thoughts.push(thought.text.as_str());
                }
                TurnItem::Part(part) => content.extend(piece(part, turn, out)),
                TurnItem::Call(call) => {
                    let name = wire::name(&call.name, NAME_CHARS, turn, out);
                    let function = json!({"name": name, "arguments": call.arguments().to_string()});
                    calls.push(
                        json!({"id": wire::id(&call.call_id, ID_CHARS), "type": "function", "function": function}),
                    );
                }
                TurnItem::Result(result) => {
                    let (texts, files) = words(&given(result));
                    content.extend(files.iter().filter_map(|file| piece(&Part::File(file.clone()), turn, out)));
                    let id = wire::id(&result.call_id, ID_CHARS);
                    out.message(json!({"role": "tool", "tool_call_id": id, "content": texts}));
                }
            }
        }
        wire::name_speaker(turn, &mut content);
        match turn.role {
            _ if content.is_empty() && calls.is_empty() => {
                if turn.origin != TurnOrigin::Results {
                    out.note(turn, "nothing of it can be sent");
                }
            }
            Role::Assistant => out.message(answer(content, calls, &thoughts.concat())),
            Role::User => out.message(json!({"role": "user", "content": together(content)})),
            Role::System => out.message(json!({"role": instructor(turn), "content": together(content)})),
        }
    }
    Ok(())
}

/// Who instructs the model: an agent's own context is the developer's.
pub(super) fn instructor(turn: &Turn<'_>) -> &'static str {
    if turn.origin == TurnOrigin::Context { "developer" } else { "system" }
}

fn answer(content: Vec<Value>, calls: Vec<Value>, thoughts: &str) -> Value {
    let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
    message.insert("content".to_owned(), if content.is_empty() { Value::Null } else { together(content) });
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    if !thoughts.is_empty() {
        message.insert("reasoning_content".to_owned(), thoughts.into());
    }
    message.into()
}

/// A single text stands without its list.
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
        ModelPart::Reasoning(_) => leave("reasoning", turn, out),
        ModelPart::Foreign(_) => leave("a piece that only another API has", turn, out),
        ModelPart::PeopleOnly(what) => leave(what, turn, out),
    }
}

fn leave(what: &str, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Option<Value> {
    out.note(turn, format!("{what} is not sent"));
    None
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
            out.note(turn, format!("a file of type {:?} is only named", file.media_type));
            let is_of_agent = turn.records.first().is_some_and(|record| record.session.dialect().name() == THINKS);
            let words =
                if is_of_agent && !is_image { format!("[document: {}]", file.media_type) } else { file_words(file) };
            json!({"type": "text", "text": words})
        }
    }
}

/// The texts of what a tool gave back, and its files.
fn words(given: &[Part]) -> (String, Vec<FilePart>) {
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in given {
        match part {
            Part::Text(text) => texts.push(text.text.clone()),
            Part::File(file) => {
                texts.push(file_words(file));
                files.push(file.clone());
            }
            _ => {}
        }
    }
    (texts.join("\n"), files)
}
