//! The content blocks of the API as parts of a message, and as results of calls.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::body::Run;
use crate::model::lenient::{self, Flag, Object, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};

/// A block, everything that may be large left as text.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    citations: Option<&'a RawValue>,
    thinking: Text<'a>,
    signature: Text<'a>,
    data: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    input: Option<&'a RawValue>,
    tool_use_id: Text<'a>,
    content: Option<&'a RawValue>,
    is_error: Flag,
    source: Object<Source<'a>>,
    title: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Source<'a> {
    media_type: Text<'a>,
    data: Text<'a>,
    url: Text<'a>,
    #[serde(rename = "type")]
    kind: Text<'a>,
}

/// What a block turned out to be.
pub(super) enum Read {
    Part(Part),
    Result(ToolResult),
}

/// Whether blocks of this type call a tool: ours, the provider's own, or a server's.
pub(super) fn is_call(kind: &str) -> bool {
    kind.ends_with("tool_use")
}

/// The blocks of a `content`: a text, or a list of blocks.
pub(super) fn all(content: &RawValue, run: &Run<'_>) -> Vec<Read> {
    each(content).into_iter().filter_map(|raw| read(raw, run)).collect()
}

/// The to-do list that a call sets, if that is what it does.
pub(super) fn todos(part: &Part) -> Option<Value> {
    match part {
        Part::Tool(call) if call.name == "TodoWrite" => call.input()?.get("todos").cloned(),
        _ => None,
    }
}

/// A string stands for a block of text.
fn each(content: &RawValue) -> Vec<&RawValue> {
    match serde_json::from_str(content.get()) {
        Ok(blocks) => blocks,
        Err(_) => vec![content],
    }
}

fn read(raw: &RawValue, run: &Run<'_>) -> Option<Read> {
    let part = match serde_json::from_str::<Block<'_>>(raw.get()) {
        Ok(block) if block.tool_use_id.0.is_some() => return Some(Read::Result(block.result(run))),
        Ok(block) => block.part(raw),
        Err(_) => match lenient::value(raw) {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => Part::text(text),
            other => Part::data("block", other),
        },
    };
    Some(Read::Part(part))
}

impl Block<'_> {
    fn part(self, raw: &RawValue) -> Part {
        let kind = self.kind.0.as_deref().unwrap_or_default();
        match kind {
            "text" => Part::Text(TextPart {
                text: self.text.0.unwrap_or_default().into_owned(),
                citations: self.citations.and_then(|raw| serde_json::from_str(raw.get()).ok()),
                ..TextPart::default()
            }),
            "thinking" => reasoning(self.thinking, "signature", self.signature),
            "redacted_thinking" => reasoning(self.thinking, "redactedData", self.data),
            "image" | "document" => self.file().unwrap_or_else(|| Part::data("block", lenient::value(raw))),
            _ if is_call(kind) => {
                let ours = kind == "tool_use";
                let input = self.input.map(lenient::value).unwrap_or_default();
                let name = self.name.owned().unwrap_or_else(|| "unknown".to_owned());
                let mut call = ToolPart::dynamic(name, self.id.owned().unwrap_or_default(), ToolState::called(input));
                call.provider_executed = (!ours).then_some(true);
                call.into()
            }
            _ => Part::data("block", lenient::value(raw)),
        }
    }

    /// An image or a document that the block holds or points at.
    fn file(self) -> Option<Part> {
        let source = self.source.0?;
        let (media_type, data, url) = (source.media_type.owned(), source.data.some(), source.url.owned());
        let (media_type, url) = match (source.kind.0.as_deref(), media_type, data, url) {
            (Some("base64"), Some(media_type), Some(data), _) => {
                let url = format!("data:{media_type};base64,{data}");
                (media_type, url)
            }
            (_, media_type, None, Some(url)) => {
                let any = if self.kind.0.as_deref() == Some("image") { "image/*" } else { "application/pdf" };
                (media_type.unwrap_or_else(|| any.to_owned()), url)
            }
            _ => return None,
        };
        Some(Part::File(FilePart { media_type, url, filename: self.title.owned(), ..FilePart::default() }))
    }

    fn result(self, run: &Run<'_>) -> ToolResult {
        let output = self.content.map(output).unwrap_or_default();
        let words = || match &output {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let outcome = match (self.is_error.0, run.was_refused()) {
            (false, _) => Outcome::Done,
            (true, true) => Outcome::Denied(Some(words()).filter(|text| !text.is_empty())),
            (true, false) => Outcome::Failed(words()),
        };
        ToolResult {
            call_id: self.tool_use_id.owned().unwrap_or_default(),
            name: None,
            output,
            outcome,
            preliminary: false,
            duration_ms: run.duration_ms(),
            about: run.about(),
        }
    }
}

fn reasoning(text: Text<'_>, key: &str, secret: Text<'_>) -> Part {
    let anthropic = secret.some().map(|secret| Map::from_iter([(key.to_owned(), Value::from(secret))]));
    let metadata = anthropic.map(|ours| Map::from_iter([("anthropic".to_owned(), ours.into())]));
    let text = text.0.unwrap_or_default().into_owned();
    Part::Reasoning(ReasoningPart { text, provider_metadata: metadata, ..ReasoningPart::default() })
}

/// What a tool returned: its text, or the list of what it returned with files as file parts.
fn output(content: &RawValue) -> Value {
    let blocks: Vec<Value> = match lenient::value(content) {
        Value::Array(blocks) => blocks,
        other => return other,
    };
    let text = |block: &Value| (block["type"] == "text").then(|| block["text"].as_str().map(str::to_owned)).flatten();
    let texts: Option<Vec<String>> = blocks.iter().map(text).collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => each(content).into_iter().map(piece).collect(),
    }
}

fn piece(raw: &RawValue) -> Value {
    let block = serde_json::from_str::<Block<'_>>(raw.get()).ok();
    let is_file = |block: &Block<'_>| matches!(block.kind.0.as_deref(), Some("image" | "document"));
    match block.filter(is_file).and_then(Block::file) {
        Some(Part::File(file)) => json!({"type": "file", "mediaType": file.media_type, "url": file.url}),
        _ => lenient::value(raw),
    }
}
