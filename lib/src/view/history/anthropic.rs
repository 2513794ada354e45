//! A history as `messages` of Anthropic's Messages API.
//!
//! The user is first and roles alternate; results come first in the message after their calls; thinking is sent with its
//! signature, and only to the model that produced it. What Claude Code tells the model in the name of the system is a message
//! of that role after the user's.

use hashbrown::{HashMap, HashSet};
use serde_json::{Value, json};

use super::model_part::{ModelPart, is_of_api, model_part};
use super::{BEGINNING, History, Turn, TurnItem, TurnOrigin, ViewOutput};
use crate::model::error::Result;
use crate::model::json;
use crate::model::message::{FilePart, Part, ReasoningPart, Role, ToolPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{IMAGES, data_url, given, id, is_web_address, name_sender};

/// The API has no limit for ids; agents' ids are shorter than this.
const ID_CHARS: usize = 128;
const NAME_CHARS: usize = 128;

/// The dialect of the agent that uses this API.
const OWN: &str = "claude-code";

/// The tools that the provider runs within an answer: call and result stay there.
const HOSTED: &[&str] =
    &["web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution"];

/// The blocks that we write: one of these types that is not a part is broken.
const KNOWN_BLOCKS: &[&str] =
    &["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"];

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let mut messages = MessageQueue { joins_texts: history.dialect == OWN, ..MessageQueue::default() };
    let mut hosted = HashSet::new();
    for (at, turn) in history.turns.iter().enumerate() {
        let results = history.turns.get(at + 1).filter(|next| next.origin == TurnOrigin::Results);
        let results = results.filter(|_| history.dialect == OWN).map(hosted_results).unwrap_or_default();
        let writer = BlockWriter { dialect: history.dialect, model: history.model.as_deref(), turn };
        let mut blocks = Vec::new();
        for item in &turn.items {
            match item {
                TurnItem::Call(call) if writer.is_hosted(call) => {
                    let pair = results.get(call.call_id.as_str()).map(|result| pair_of_hosted(call, result));
                    hosted.extend(pair.is_some().then_some(call.call_id.as_str()));
                    blocks.extend(pair.unwrap_or_else(|| vec![writer.call(call, out)]));
                }
                TurnItem::Result(result) if hosted.contains(result.call_id.as_str()) => {}
                item => blocks.extend(writer.block(item, out)),
            }
        }
        if blocks.is_empty() {
            if turn.origin != TurnOrigin::Results {
                out.note(turn, "it has no content that can be sent");
            }
            continue;
        }
        name_sender(turn.sender.as_deref(), &mut blocks);
        if history.dialect == OWN && turn.instructs {
            messages.instruct(turn, blocks, out);
            continue;
        }
        if turn.origin == TurnOrigin::Instruction {
            out.note(turn, "an instruction is sent as a user message");
        }
        messages.add(turn, blocks, out);
    }
    messages.finish(out);
    Ok(())
}

pub(super) fn beginning() -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
}

/// Messages that are not complete yet: roles alternate.
#[derive(Default)]
struct MessageQueue<'h> {
    /// The message before, which continues if the current one is empty.
    before: Option<OpenMessage<'h>>,
    current: Option<OpenMessage<'h>>,
    any: bool,
    /// Consecutive user texts are separated by a line feed, as the agent does.
    joins_texts: bool,
}

struct OpenMessage<'h> {
    role: &'static str,
    blocks: Vec<Value>,
    turn: &'h Turn<'h>,
    /// What the system says after it.
    instructions: String,
}

impl<'h> MessageQueue<'h> {
    fn add(&mut self, turn: &'h Turn<'h>, blocks: Vec<Value>, out: &mut ViewOutput<'_>) {
        let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
        if self.current.as_ref().is_some_and(|current| current.role != role) {
            self.close(out);
        }
        match &mut self.current {
            Some(current) => {
                let next_is_text = blocks.first().is_some_and(|block| block["type"] == "text");
                let is_joined = self.joins_texts && role == "user" && next_is_text && !turn.begins_attached;
                let last = current.blocks.last_mut().filter(|_| is_joined);
                if let Some(Value::String(text)) = last.and_then(|last| last.get_mut("text")) {
                    text.push('\n');
                }
                current.blocks.extend(blocks);
                current.turn = turn;
            }
            None => self.current = Some(OpenMessage { role, blocks, turn, instructions: String::new() }),
        }
    }

    /// Adds what the system says after the current message of the user.
    fn instruct(&mut self, turn: &'h Turn<'h>, blocks: Vec<Value>, out: &mut ViewOutput<'_>) {
        if self.current.as_ref().is_some_and(|current| current.role == "assistant") {
            self.close(out);
        }
        let open = || OpenMessage { role: "user", blocks: Vec::new(), turn, instructions: String::new() };
        let message = self.current.get_or_insert_with(open);
        for text in blocks.iter().filter_map(|block| block["text"].as_str()) {
            let before = if message.instructions.is_empty() { "" } else { "\n\n" };
            message.instructions.push_str(before);
            message.instructions.push_str(without_reminder_tags(text));
        }
    }

    /// Ends the current message. It may not end with thinking.
    fn close(&mut self, out: &mut ViewOutput<'_>) {
        let Some(mut current) = self.current.take() else { return };
        let is_thinking = |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
        while current.blocks.pop_if(|last| is_thinking(last)).is_some() {
            out.note(current.turn, "thinking without an answer is not sent");
        }
        if current.blocks.is_empty() && current.instructions.is_empty() {
            self.current = self.before.take();
            return;
        }
        self.send(out);
        self.before = Some(current);
    }

    fn send(&mut self, out: &mut ViewOutput<'_>) {
        let Some(OpenMessage { role, blocks, turn, instructions }) = self.before.take() else { return };
        if !std::mem::replace(&mut self.any, true) && (role == "assistant" || blocks.is_empty()) {
            out.beginning(turn, beginning());
        }
        // Moved, not copied: a text may be most of a session.
        let mut send = |role: &str, blocks: Vec<Value>| {
            let fields = [("role", role.into()), ("content", blocks.into())];
            out.message(fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect());
        };
        if !blocks.is_empty() {
            send(role, blocks);
        }
        if !instructions.is_empty() {
            send("system", vec![json!({"type": "text", "text": instructions})]);
        }
    }

    fn finish(mut self, out: &mut ViewOutput<'_>) {
        self.close(out);
        self.before = self.before.take().or(self.current.take());
        self.send(out);
    }
}

/// A text without the tags and line feeds that the agent removes where the system says it.
fn without_reminder_tags(text: &str) -> &str {
    let inside = text.strip_prefix("<system-reminder>\n").and_then(|text| text.strip_suffix("\n</system-reminder>"));
    inside.unwrap_or(text)
}

struct BlockWriter<'h> {
    dialect: &'h str,
    /// The model that continues the session.
    model: Option<&'h str>,
    turn: &'h Turn<'h>,
}

impl BlockWriter<'_> {
    fn is_hosted(&self, call: &ToolPart) -> bool {
        self.dialect == OWN && call.provider_executed == Some(true) && HOSTED.contains(&call.name.as_str())
    }

    /// A document or an image that only this API can hold, as the agent sent it.
    fn is_own_file(&self, block: &Value) -> bool {
        let source = &block["source"];
        let has = |key: &str| source[key].as_str().is_some_and(|text| !text.trim().is_empty());
        let (is_document, is_image) = (block["type"] == "document", block["type"] == "image");
        let holds = match source["type"].as_str() {
            Some("text") => is_document && source["media_type"] == "text/plain" && has("data"),
            Some("file") => (is_document || is_image) && has("file_id"),
            _ => false,
        };
        holds && self.dialect == OWN && self.turn.role == Role::User
    }

    fn block(&self, item: &TurnItem, out: &mut ViewOutput<'_>) -> Option<Value> {
        match item {
            TurnItem::Call(call) => Some(self.call(call, out)),
            TurnItem::Result(result) => Some(self.result(result, out)),
            TurnItem::Part(Part::Data(data)) if self.is_own_file(&data.data) => Some(data.data.clone()),
            TurnItem::Part(part) => match model_part(part) {
                ModelPart::Text(text) if text.trim().is_empty() => out.omit(self.turn, "an empty text"),
                ModelPart::Text(text) => Some(json!({"type": "text", "text": text})),
                ModelPart::Reasoning(part) => self.thinking(part, out),
                ModelPart::File(file) => Some(self.file(file, out)),
                ModelPart::Other { data: Some(data), .. }
                    if self.dialect == OWN && is_of_api(data, "block", KNOWN_BLOCKS) =>
                {
                    Some(data.data.clone())
                }
                ModelPart::Other { name, .. } => out.omit(self.turn, name),
            },
        }
    }

    fn call(&self, call: &ToolPart, out: &mut ViewOutput<'_>) -> Value {
        let name = out.tool_name(&call.name, NAME_CHARS, self.turn);
        json!({"type": "tool_use", "id": id(&call.call_id, ID_CHARS), "name": name, "input": call.arguments()})
    }

    fn result(&self, result: &ToolResult, out: &mut ViewOutput<'_>) -> Value {
        let mut block = json!({"type": "tool_result", "tool_use_id": id(&result.call_id, ID_CHARS)});
        match given(result).as_slice() {
            [] => {}
            [Part::Text(text)] => block["content"] = text.text.clone().into(),
            parts => {
                let content = parts.iter().filter_map(|part| match part {
                    Part::Text(text) if text.text.trim().is_empty() => None,
                    Part::Text(text) => Some(json!({"type": "text", "text": text.text})),
                    Part::File(file) => Some(self.file(file, out)),
                    _ => None,
                });
                block["content"] = content.collect();
            }
        }
        if result.outcome != Outcome::Done {
            block["is_error"] = true.into();
        }
        block
    }

    /// The API rejects thinking without a signature, and that of another model.
    fn thinking(&self, part: &ReasoningPart, out: &mut ViewOutput<'_>) -> Option<Value> {
        let anthropic = part.provider_metadata.as_ref().and_then(|metadata| metadata.get("anthropic"));
        let secret = |key: &str| anthropic.and_then(|ours| ours.get(key)).and_then(Value::as_str);
        let of_another = self.model.zip(self.turn.model.as_deref()).is_some_and(|(now, then)| now != then);
        if self.turn.role != Role::Assistant || of_another {
            return out.omit(self.turn, "thinking of another model");
        }
        match (secret("signature").filter(|signature| !signature.is_empty()), secret("redactedData")) {
            (Some(signature), _) => Some(json!({"type": "thinking", "thinking": part.text, "signature": signature})),
            (None, Some(data)) => Some(json!({"type": "redacted_thinking", "data": data})),
            (None, None) => out.omit(self.turn, "thinking without a signature"),
        }
    }

    fn file(&self, file: &FilePart, out: &mut ViewOutput<'_>) -> Value {
        let is_image = file.media_type.starts_with("image");
        let source = match data_url(&file.url) {
            _ if self.turn.role == Role::Assistant => None,
            Some((media_type, data)) if IMAGES.contains(&media_type) || media_type == "application/pdf" => {
                Some(json!({"type": "base64", "media_type": media_type, "data": data}))
            }
            None if is_web_address(&file.url) && (is_image || file.media_type == "application/pdf") => {
                Some(json!({"type": "url", "url": file.url}))
            }
            _ => None,
        };
        let Some(source) = source else {
            return json!({"type": "text", "text": out.file_as_text(file, self.turn)});
        };
        let mut block = json!({"type": if is_image { "image" } else { "document" }, "source": source});
        if let Some(name) = file.filename.as_deref().filter(|_| !is_image) {
            block["title"] = name.into();
        }
        block
    }
}

/// The results that the API itself can have written, by call.
fn hosted_results<'h>(turn: &'h Turn<'_>) -> HashMap<&'h str, &'h ToolResult> {
    let results = turn.items.iter().filter_map(TurnItem::as_result);
    let written = results.filter(|result| result.output.is_array() || json::is_object(&result.output));
    written.map(|result| (result.call_id.as_str(), result)).collect()
}

/// A call that the provider ran and its result, as the API wrote them.
fn pair_of_hosted(call: &ToolPart, result: &ToolResult) -> Vec<Value> {
    vec![
        json!({"type": "server_tool_use", "id": call.call_id, "name": call.name, "input": call.arguments()}),
        json!({"type": format!("{}_tool_result", call.name), "tool_use_id": call.call_id, "content": result.output}),
    ]
}
