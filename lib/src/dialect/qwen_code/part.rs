//! The parts of the API's `Content` as parts of a message, and as results of calls.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::lenient::{self, Flag, Object, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};

/// A part, everything that may be large left as text.
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
    /// Pictures and the like that the tool gave back.
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

/// What a part turned out to be.
pub(super) enum Read {
    Part(Part),
    Result(ToolResult),
}

/// The parts of a message; a single one may stand without its list, and a string for a text.
pub(super) fn all(parts: &RawValue, noted: Option<&str>) -> Vec<Read> {
    let each: Vec<&RawValue> = serde_json::from_str(parts.get()).unwrap_or_else(|_| vec![parts]);
    each.into_iter().filter_map(|raw| read(raw, noted)).collect()
}

/// The texts of a message's parts, thoughts aside.
pub(super) fn words(parts: &RawValue) -> String {
    let text = |read| match read {
        Read::Part(Part::Text(text)) => Some(text.text),
        Read::Part(_) | Read::Result(_) => None,
    };
    all(parts, None).into_iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn read(raw: &RawValue, noted: Option<&str>) -> Option<Read> {
    match serde_json::from_str::<ApiPart<'_>>(raw.get()) {
        Ok(part) => Some(part.read(raw, noted)),
        Err(_) => match lenient::value(raw) {
            Value::Null => None,
            Value::String(text) => Some(Read::Part(Part::text(text))),
            other => Some(Read::Part(Part::data("part", other))),
        },
    }
}

impl ApiPart<'_> {
    fn read(self, raw: &RawValue, noted: Option<&str>) -> Read {
        let signature = self.thought_signature.owned();
        let provider_metadata = signature.map(|signature| {
            let google = Map::from_iter([("thoughtSignature".to_owned(), signature.into())]);
            Map::from_iter([("google".to_owned(), google.into())])
        });
        if let Some(response) = self.function_response.0 {
            return Read::Result(response.result(noted));
        }
        Read::Part(if let Some(call) = self.function_call.0 {
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
    /// `{"output": …}` is what the tool returned, `{"error": …}` why it did not.
    fn result(self, noted: Option<&str>) -> ToolResult {
        let name = self.name.owned();
        let call_id = self.id.owned().or_else(|| noted.map(str::to_owned)).or_else(|| name.clone()).unwrap_or_default();
        let mut response = self.response.map(lenient::value).unwrap_or_default();
        let mut take = |key: &str| response.get_mut(key).map(Value::take).filter(|value| !value.is_null());
        let (error, output) = (take("error"), take("output"));
        let outcome = error.map_or(Outcome::Done, |error| Outcome::Failed(text_of(&error)));
        let said_all = response.as_object().is_some_and(|fields| fields.values().all(Value::is_null));
        let output = match (output, said_all) {
            (Some(output), true) => output,
            (None, true) => Value::Null,
            // Something else stands beside it: all of it counts.
            (_, false) => self.response.map(lenient::value).unwrap_or_default(),
        };
        let mut result =
            ToolResult { call_id, name, output, outcome, preliminary: false, duration_ms: None, about: Map::new() };
        for read in self.parts.map(|parts| all(parts, None)).unwrap_or_default() {
            if let Read::Part(part) = read {
                give_back(&mut result, part);
            }
        }
        result
    }
}

/// Adds a file to what a tool gave back, beside its words.
pub(super) fn give_back(result: &mut ToolResult, part: Part) {
    let mut pieces = match result.output.take() {
        Value::Array(pieces) => pieces,
        Value::Null => Vec::new(),
        output => vec![serde_json::to_value(Part::text(text_of(&output))).unwrap_or(output)],
    };
    pieces.extend(serde_json::to_value(part));
    result.output = pieces.into();
}

/// A text, or the JSON of anything else.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
