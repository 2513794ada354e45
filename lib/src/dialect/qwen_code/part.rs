//! The parts of the Gemini API's `Content` as parts of a message and results of calls.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::lenient::{self, Flag, Object, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState, provider_metadata};
use crate::model::record::{ContentItem, Outcome, ToolResult};

/// A part; fields that may be large are not parsed.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct ApiPart<'a> {
    text: Text<'a>,
    thought: Flag,
    thought_signature: Text<'a>,
    function_call: Object<Call<'a>>,
    function_response: Object<Response<'a>>,
    inline_data: Object<Blob<'a>>,
    file_data: Object<Blob<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Response<'a> {
    id: Text<'a>,
    name: Text<'a>,
    response: Option<&'a RawValue>,
    /// Images and other files that the tool returned.
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Blob<'a> {
    mime_type: Text<'a>,
    data: Text<'a>,
    file_uri: Text<'a>,
    display_name: Text<'a>,
}

/// The parts of a message; a single one may have no list around it, and a string is a text.
///
/// `noted_call` is the id for a response that has none.
pub(super) fn items<'p>(parts: &'p RawValue, noted_call: Option<&'p str>) -> impl Iterator<Item = ContentItem> + 'p {
    let parts: Vec<&RawValue> = serde_json::from_str(parts.get()).unwrap_or_else(|_| vec![parts]);
    parts.into_iter().filter_map(move |raw| item(raw, noted_call))
}

fn item(raw: &RawValue, noted_call: Option<&str>) -> Option<ContentItem> {
    match serde_json::from_str::<ApiPart<'_>>(raw.get()) {
        Ok(part) => Some(part.item(raw, noted_call)),
        Err(_) => match lenient::value(raw) {
            Value::Null => None,
            Value::String(text) => Some(ContentItem::Part(Part::text(text))),
            other => Some(ContentItem::Part(Part::data("part", other))),
        },
    }
}

impl ApiPart<'_> {
    fn item(self, raw: &RawValue, noted_call: Option<&str>) -> ContentItem {
        let signature =
            self.thought_signature.owned().map(|signature| ("thoughtSignature".to_owned(), signature.into()));
        let provider_metadata = provider_metadata("google", signature.into_iter().collect());
        if let Some(response) = self.function_response.0 {
            return ContentItem::Result(response.result(noted_call));
        }
        ContentItem::Part(if let Some(call) = self.function_call.0 {
            let mut call = call.part();
            call.call_provider_metadata = provider_metadata;
            call.into()
        } else if let Some(file) = self.inline_data.0.or(self.file_data.0).and_then(Blob::part) {
            Part::File(FilePart { provider_metadata, ..file })
        } else if let Some(text) = self.text.0 {
            let text = text.into_owned();
            match self.thought.0 {
                true => Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() }),
                false => Part::Text(TextPart { text, provider_metadata, ..TextPart::default() }),
            }
        } else {
            Part::data("part", lenient::value(raw))
        })
    }
}

impl Call<'_> {
    fn part(self) -> ToolPart {
        let name = self.name.owned().unwrap_or_else(|| "unknown".to_owned());
        let id = self.id.owned().unwrap_or_else(|| name.clone());
        ToolPart::dynamic(name, id, ToolState::called(self.args.map(lenient::value).unwrap_or_default()))
    }
}

impl Blob<'_> {
    fn part(self) -> Option<FilePart> {
        let media_type = self.mime_type.owned().unwrap_or_else(|| "application/octet-stream".to_owned());
        let url = match (self.data.some(), self.file_uri.owned()) {
            (Some(data), _) => format!("data:{media_type};base64,{data}"),
            (None, Some(uri)) => uri,
            (None, None) => return None,
        };
        Some(FilePart { media_type, url, filename: self.display_name.owned(), ..FilePart::default() })
    }
}

impl Response<'_> {
    /// `{"output": …}` is the tool's output, `{"error": …}` says why it failed.
    fn result(self, noted_call: Option<&str>) -> ToolResult {
        let name = self.name.owned();
        let noted_call = noted_call.map(str::to_owned);
        let call_id = self.id.owned().or(noted_call).or_else(|| name.clone()).unwrap_or_default();
        let mut response = self.response.map(lenient::value).unwrap_or_default();
        let mut take = |key: &str| response.get_mut(key).map(Value::take).filter(|value| !value.is_null());
        let (error, output) = (take("error"), take("output"));
        let outcome = error.map_or(Outcome::Done, |error| Outcome::Failed(lenient::to_text(&error)));
        let has_no_more = response.as_object().is_some_and(|fields| fields.values().all(Value::is_null));
        let output = match has_no_more {
            true => output.unwrap_or_default(),
            // There are other fields: all of it is the output.
            false => self.response.map(lenient::value).unwrap_or_default(),
        };
        let mut result = ToolResult { name, ..ToolResult::new(call_id, output, outcome) };
        for item in self.parts.into_iter().flat_map(|parts| items(parts, None)) {
            if let ContentItem::Part(part) = item {
                add_file(&mut result, part);
            }
        }
        result
    }
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
