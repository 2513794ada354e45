//! The parts of the Gemini API's `Content` as parts of a message and results of calls.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::lenient::{self, RawObject, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState, provider_metadata};
use crate::model::record::{ContentItem, Outcome, ToolResult};

/// The parts of a message; a single one may have no list around it, and a string is a text.
///
/// `noted_call` is the id for a response that has none.
pub(super) fn items<'p>(parts: &'p RawValue, noted_call: Option<&'p str>) -> impl Iterator<Item = ContentItem> + 'p {
    let parts = lenient::elements(parts).unwrap_or_else(|| vec![parts]);
    parts.into_iter().filter_map(move |raw| item(raw, noted_call))
}

fn item(raw: &RawValue, noted_call: Option<&str>) -> Option<ContentItem> {
    match RawObject::from_raw(raw) {
        Some(part) => Some(object_item(&part, raw, noted_call)),
        None => match lenient::value(raw) {
            Value::Null => None,
            Value::String(text) => Some(ContentItem::Part(Part::text(text))),
            other => Some(ContentItem::Part(Part::data("part", other))),
        },
    }
}

fn object_item(part: &RawObject<'_>, raw: &RawValue, noted_call: Option<&str>) -> ContentItem {
    let object = |key: &str| part.raw(key).and_then(RawObject::from_raw);
    let signature = part.string("thoughtSignature").map(|signature| ("thoughtSignature".to_owned(), signature.into()));
    let provider_metadata = provider_metadata("google", signature.into_iter().collect());
    if let Some(response) = object("functionResponse") {
        return ContentItem::Result(result(&response, noted_call));
    }
    ContentItem::Part(if let Some(call) = object("functionCall") {
        let name = call.string("name").unwrap_or_else(|| "unknown".to_owned());
        let id = call.string("id").unwrap_or_else(|| name.clone());
        let state = ToolState::called(call.value("args").unwrap_or_default());
        let mut call = ToolPart::dynamic(name, id, state);
        call.call_provider_metadata = provider_metadata;
        call.into()
    } else if let Some(file) = object("inlineData").or_else(|| object("fileData")).as_ref().and_then(file) {
        Part::File(FilePart { provider_metadata, ..file })
    } else if let Some(text) = part.get::<Text<'_>>("text").0 {
        let text = text.into_owned();
        match part.flag("thought") {
            true => Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() }),
            false => Part::Text(TextPart { text, provider_metadata, ..TextPart::default() }),
        }
    } else {
        Part::data("part", lenient::value(raw))
    })
}

fn file(blob: &RawObject<'_>) -> Option<FilePart> {
    let media_type = blob.string("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
    let url = match (blob.text("data"), blob.string("fileUri")) {
        (Some(data), _) => format!("data:{media_type};base64,{data}"),
        (None, Some(uri)) => uri,
        (None, None) => return None,
    };
    Some(FilePart { media_type, url, filename: blob.string("displayName"), ..FilePart::default() })
}

/// `{"output": …}` is the tool's output, `{"error": …}` is why it failed. The tool may have returned files in `parts`.
fn result(function: &RawObject<'_>, noted_call: Option<&str>) -> ToolResult {
    let name = function.string("name");
    let noted_call = noted_call.map(str::to_owned);
    let call_id = function.string("id").or(noted_call).or_else(|| name.clone()).unwrap_or_default();
    let mut response = function.value("response").unwrap_or_default();
    let mut take = |key: &str| response.get_mut(key).map(Value::take).filter(|value| !value.is_null());
    let (error, output) = (take("error"), take("output"));
    let outcome = error.map_or(Outcome::Done, |error| Outcome::Failed(lenient::to_text(&error)));
    let has_no_more = response.as_object().is_some_and(|fields| fields.values().all(Value::is_null));
    let output = match has_no_more {
        true => output.unwrap_or_default(),
        // There are other fields: all of it is the output.
        false => function.value("response").unwrap_or_default(),
    };
    let mut result = ToolResult { name, ..ToolResult::new(call_id, output, outcome) };
    for item in function.raw("parts").into_iter().flat_map(|parts| items(parts, None)) {
        if let ContentItem::Part(part) = item {
            add_file(&mut result, part);
        }
    }
    result
}

/// Adds a file to the output of a tool, after its text.
pub(super) fn add_file(result: &mut ToolResult, part: Part) {
    let mut pieces = match result.output.take() {
        Value::Array(pieces) => pieces,
        Value::Null => Vec::new(),
        output => vec![serde_json::to_value(Part::text(lenient::to_text(&output))).unwrap_or(output)],
    };
    pieces.extend(serde_json::to_value(part));
    result.output = pieces.into();
}
