//! The items and content pieces of OpenAI's Responses API as parts of a message.

use serde_json::{Map, Value};

use crate::dialect::line_builder::Put;
use crate::model::lenient::RawObject;
use crate::model::message::{FilePart, Part, ReasoningPart, ToolPart, ToolState, provider_metadata};
use crate::model::wire::media_type_of;

/// A piece of a message's content.
pub(super) fn content_part(piece: Value) -> Part {
    let text = |key| piece.get(key).and_then(Value::as_str);
    match (text("type"), text("text").or(text("refusal")), text("image_url").or(text("file_url"))) {
        (Some("input_text" | "output_text" | "summary_text" | "text" | "refusal"), Some(content), _) => {
            Part::text(content)
        }
        (Some("input_image" | "image" | "input_file"), _, Some(url)) => file(url, text("filename")),
        (Some("input_file"), _, None) => match text("file_data") {
            Some(url) => file(url, text("filename")),
            None => Part::data("content", piece),
        },
        _ => Part::data("content", piece),
    }
}

fn file(url: &str, name: Option<&str>) -> Part {
    let media_type = media_type_of(url).filter(|media_type| media_type.contains('/')).unwrap_or("image").to_owned();
    Part::File(FilePart { media_type, url: url.to_owned(), filename: name.map(str::to_owned), ..FilePart::default() })
}

/// The summary for people, then the reasoning itself if it is not encrypted.
pub(super) fn reasoning(item: &RawObject<'_>) -> Part {
    let texts = |key: &str| match item.value(key) {
        Some(Value::Array(pieces)) => {
            let texts = pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str).map(str::to_owned));
            texts.collect()
        }
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    };
    let mut openai = Map::new();
    openai.put_some("itemId", item.string("id"));
    openai.put_some("reasoningEncryptedContent", item.string("encrypted_content"));
    Part::Reasoning(ReasoningPart {
        text: [texts("summary"), texts("content")].concat().join("\n\n"),
        provider_metadata: provider_metadata("openai", openai),
        ..ReasoningPart::default()
    })
}

pub(super) fn call(item: &RawObject<'_>) -> Part {
    let name = item.string("name").unwrap_or_else(|| tool_name(item));
    let id = item.string("call_id").or_else(|| item.string("id")).unwrap_or_default();
    let mut openai = Map::new();
    openai.put_some("itemId", item.string("id"));
    openai.put_some("namespace", item.string("namespace"));
    let mut part = match item.value("arguments") {
        Some(Value::String(text)) => ToolPart::from_input_text(name, id, text),
        Some(other) => ToolPart::dynamic(name, id, ToolState::called(other)),
        None => {
            let input = item.value("input").or_else(|| item.value("action")).unwrap_or_default();
            ToolPart::dynamic(name, id, ToolState::called(input))
        }
    };
    part.call_provider_metadata = provider_metadata("openai", openai);
    part.into()
}

/// `web_search_call` is a call of `web_search`.
fn tool_name(item: &RawObject<'_>) -> String {
    let kind = item.text("type").unwrap_or_default();
    kind.strip_suffix("_call").unwrap_or("unknown").to_owned()
}

/// A call that the provider ran: its result is in the answer that follows or in the item itself.
pub(super) fn hosted_call(item: &RawObject<'_>) -> Part {
    let prompt = || item.string("revised_prompt").map(|prompt| Value::from_iter([("prompt", prompt)]));
    let input = item.value("action").or_else(prompt).unwrap_or_default();
    let state = match item.text("status").as_deref() {
        Some("failed") => ToolState::failed(input, "the provider reports a failure"),
        _ => ToolState::OutputAvailable { input, output: item.value("result"), preliminary: None, approval: None },
    };
    let mut part = ToolPart::dynamic(tool_name(item), item.string("id").unwrap_or_default(), state);
    part.provider_executed = Some(true);
    part.into()
}
