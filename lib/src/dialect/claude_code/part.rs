//! The content blocks of Anthropic's API as parts of a message and results of calls.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::tool_run::ToolRun;
use crate::model::lenient::{self, Flag, Object, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState, provider_metadata};
use crate::model::record::{Content, ContentItem, Outcome, ToolResult};

/// A block; fields that may be large are not parsed.
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

/// Reads content blocks of Anthropic's API, or a single one: their parts, and the tool results among them.
pub fn blocks(content: &Value) -> (Vec<Part>, Vec<ToolResult>) {
    let Ok(raw) = serde_json::value::to_raw_value(content) else { return Default::default() };
    let content = content_from(&raw, &ToolRun::default());
    (content.parts, content.results)
}

/// The parts and results in a `content`: a text, or a list of blocks.
pub(super) fn content_from(content: &RawValue, run: &ToolRun<'_>) -> Content {
    blocks_of(content).into_iter().filter_map(|raw| item(raw, run)).collect()
}

/// Whether blocks of this type call a tool: the agent's, the provider's or a server's.
pub(super) fn is_call(kind: &str) -> bool {
    kind.ends_with("tool_use")
}

/// The task list that a call sets, if it sets one.
pub(super) fn todos(part: &Part) -> Option<Value> {
    match part {
        Part::Tool(call) if call.name == "TodoWrite" => call.input()?.get("todos").cloned(),
        _ => None,
    }
}

/// The blocks of a `content`; a string is a single one.
fn blocks_of(content: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(content.get()).unwrap_or_else(|_| vec![content])
}

fn item(raw: &RawValue, run: &ToolRun<'_>) -> Option<ContentItem> {
    let part = match serde_json::from_str::<Block<'_>>(raw.get()) {
        Ok(block) if block.tool_use_id.0.is_some() => return Some(ContentItem::Result(block.result(run))),
        Ok(block) => block.part(raw),
        Err(_) => match lenient::value(raw) {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => Part::text(text),
            other => Part::data("block", other),
        },
    };
    Some(ContentItem::Part(part))
}

impl Block<'_> {
    fn part(self, raw: &RawValue) -> Part {
        let kind = self.kind.0.as_deref().unwrap_or_default();
        match kind {
            "text" => Part::Text(TextPart {
                text: self.text.0.unwrap_or_default().into_owned(),
                citations: self.citations.and_then(lenient::parsed),
                ..TextPart::default()
            }),
            "thinking" => reasoning(self.thinking, "signature", self.signature),
            "redacted_thinking" => reasoning(self.thinking, "redactedData", self.data),
            "image" | "document" => self.file().unwrap_or_else(|| Part::data("block", lenient::value(raw))),
            _ if is_call(kind) => {
                let input = self.input.map(lenient::value).unwrap_or_default();
                let name = self.name.owned().unwrap_or_else(|| "unknown".to_owned());
                let mut call = ToolPart::dynamic(name, self.id.owned().unwrap_or_default(), ToolState::called(input));
                call.provider_executed = (kind != "tool_use").then_some(true);
                call.into()
            }
            _ => Part::data("block", lenient::value(raw)),
        }
    }

    /// The image or document in the block.
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

    fn result(self, run: &ToolRun<'_>) -> ToolResult {
        let output = self.content.map(output).unwrap_or_default();
        let text = lenient::to_text(&output);
        let outcome = match (self.is_error.0, run.was_refused()) {
            (false, _) => Outcome::Done,
            (true, true) => Outcome::Denied(Some(text).filter(|text| !text.is_empty())),
            (true, false) => Outcome::Failed(text),
        };
        let call_id = self.tool_use_id.owned().unwrap_or_default();
        let (duration_ms, about) = (run.duration_ms(), run.about());
        ToolResult { duration_ms, about, ..ToolResult::new(call_id, output, outcome) }
    }
}

fn reasoning(text: Text<'_>, key: &str, secret: Text<'_>) -> Part {
    let facts = secret.some().map(|secret| (key.to_owned(), Value::from(secret)));
    let provider_metadata = provider_metadata("anthropic", facts.into_iter().collect());
    let text = text.0.unwrap_or_default().into_owned();
    Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
}

/// The output of a tool: its text, or the list of its blocks with files as file parts.
fn output(content: &RawValue) -> Value {
    let blocks: Vec<Value> = match lenient::value(content) {
        Value::Array(blocks) => blocks,
        other => return other,
    };
    let text = |block: &Value| (block["type"] == "text").then(|| block["text"].as_str().map(str::to_owned)).flatten();
    let texts: Option<Vec<String>> = blocks.iter().map(text).collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => blocks_of(content).into_iter().map(output_piece).collect(),
    }
}

fn output_piece(raw: &RawValue) -> Value {
    let block = serde_json::from_str::<Block<'_>>(raw.get()).ok();
    let is_file = |block: &Block<'_>| matches!(block.kind.0.as_deref(), Some("image" | "document"));
    match block.filter(is_file).and_then(Block::file) {
        Some(Part::File(file)) => json!({"type": "file", "mediaType": file.media_type, "url": file.url}),
        _ => lenient::value(raw),
    }
}
