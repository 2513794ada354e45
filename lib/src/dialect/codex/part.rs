//! The items and content pieces of OpenAI's Responses API as parts of a message.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::ItemPayload;
use crate::model::lenient;
use crate::model::message::{FilePart, Part, ReasoningPart, ToolPart, ToolState, provider_metadata};
use crate::model::wire::media_type_of;

/// A piece of a message's content.
pub(super) fn content_part(piece: Value) -> Part {
    let text = |key| piece.get(key).and_then(Value::as_str);
    match (text("type"), text("text").or(text("refusal")), text("image_url").or(text("file_url"))) {
        (Some("input_text" | "output_text" | "text" | "refusal"), Some(content), _) => Part::text(content),
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
pub(super) fn reasoning(payload: ItemPayload<'_>) -> Part {
    let texts = |raw: Option<&RawValue>| match raw.map(lenient::value) {
        Some(Value::Array(pieces)) => {
            let texts = pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str).map(str::to_owned));
            texts.collect()
        }
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    };
    let texts = [texts(payload.summary), texts(payload.content)].concat();
    let mut openai = Map::new();
    openai.extend(payload.id.owned().map(|id| ("itemId".to_owned(), id.into())));
    let encrypted = payload.encrypted_content.owned();
    openai.extend(encrypted.map(|text| ("reasoningEncryptedContent".to_owned(), text.into())));
    Part::Reasoning(ReasoningPart {
        text: texts.join("\n\n"),
        provider_metadata: provider_metadata("openai", openai),
        ..ReasoningPart::default()
    })
}

pub(super) fn call(payload: ItemPayload<'_>) -> Part {
    let input = match (payload.arguments, payload.input, payload.action) {
        // Arguments are JSON in a string; malformed JSON stays a string.
        (Some(arguments), _, _) => match lenient::value(arguments) {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            other => other,
        },
        (None, Some(input), _) => lenient::value(input),
        (None, None, Some(action)) => lenient::value(action),
        (None, None, None) => Value::Null,
    };
    let name = payload.name.owned().unwrap_or_else(|| tool_name(payload.kind.0.as_deref()));
    let id = payload.call_id.owned().or_else(|| payload.id.clone().owned()).unwrap_or_default();
    let mut openai = Map::new();
    openai.extend(payload.id.owned().map(|id| ("itemId".to_owned(), id.into())));
    openai.extend(payload.namespace.owned().map(|namespace| ("namespace".to_owned(), namespace.into())));
    let mut part = ToolPart::dynamic(name, id, ToolState::called(input));
    part.call_provider_metadata = provider_metadata("openai", openai);
    part.into()
}

/// `web_search_call` is a call of `web_search`.
fn tool_name(kind: Option<&str>) -> String {
    kind.and_then(|kind| kind.strip_suffix("_call")).unwrap_or("unknown").to_owned()
}

/// A call that the provider ran: its result is in the answer that follows or in the item itself.
pub(super) fn hosted_call(payload: ItemPayload<'_>) -> Part {
    let name = tool_name(payload.kind.0.as_deref());
    let input = match (payload.action, payload.revised_prompt.owned()) {
        (Some(action), _) => lenient::value(action),
        (None, Some(prompt)) => Value::from_iter([("prompt", prompt)]),
        (None, None) => Value::Null,
    };
    let state = match payload.status.0.as_deref() {
        Some("failed") => ToolState::failed(input, "the provider says that it failed"),
        _ => ToolState::OutputAvailable {
            input,
            output: payload.result.map(lenient::value),
            preliminary: None,
            approval: None,
        },
    };
    let mut part = ToolPart::dynamic(name, payload.id.owned().unwrap_or_default(), state);
    part.provider_executed = Some(true);
    part.into()
}
