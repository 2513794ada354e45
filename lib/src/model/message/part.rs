//! The parts of a message, one struct per part type of the AI SDK.
//!
//! Every struct has the keys that SDK 7 defines as fields and all others in `extra`; `extra` must not repeat a field.
//! A part that does not fit its struct is [`Part::Other`], so reading never fails.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::{ToolPart, keys::Keys, read};

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Part {
    /// What was said.
    Text(TextPart),
    /// What the model thought.
    Reasoning(ReasoningPart),
    /// A file or an image.
    File(FilePart),
    /// A file that the model made while it thought (SDK 7).
    ReasoningFile(ReasoningFilePart),
    /// A web page that the model used.
    SourceUrl(SourceUrlPart),
    /// A document that the model used.
    SourceDocument(SourceDocumentPart),
    /// Something only one provider understands (SDK 7).
    Custom(CustomPart),
    /// What the person said while the model was at work (SDK 7).
    #[serde(rename = "steering-message")]
    Steering(SteeringPart),
    /// The beginning of one response of the model.
    StepStart,
    /// A tool call with its result.
    #[serde(untagged)]
    Tool(Box<ToolPart>),
    /// An application's own part, `data-<kind>`.
    #[serde(untagged)]
    Data(DataPart),
    /// A part of unknown type, or one that does not fit its type, as it was.
    #[serde(untagged)]
    Other(Value),
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// What supports the text (SDK 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citations: Option<Vec<Value>>,
    /// Whether the text is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StreamState>,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Whether a text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamState {
    /// More may come.
    Streaming,
    /// It is complete.
    Done,
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningPart {
    /// The stream's id of this part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text; empty where the provider hides it.
    pub text: String,
    /// Whether the text is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StreamState>,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A file or an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePart {
    /// The IANA media type, or only its first half.
    pub media_type: String,
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Where it is: a web address or a `data:` URL with the content.
    pub url: String,
    /// The file's id at each provider it was uploaded to (SDK 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_reference: Option<Map<String, Value>>,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A file that the model made while it thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningFilePart {
    /// The IANA media type.
    pub media_type: String,
    /// Where it is: a web address or a `data:` URL with the content.
    pub url: String,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A web page that the model used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceUrlPart {
    /// The source's id.
    pub source_id: String,
    /// The page's address.
    pub url: String,
    /// The page's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A document that the model used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceDocumentPart {
    /// The source's id.
    pub source_id: String,
    /// The IANA media type.
    pub media_type: String,
    /// The document's title.
    pub title: String,
    /// The document's file name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Something only one provider understands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomPart {
    /// `<provider>.<type>`.
    pub kind: String,
    /// One object per provider; ours is `scrollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the person said while the model was at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SteeringPart {
    /// The message's id.
    pub id: String,
    /// Text and file parts.
    pub parts: Vec<Part>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An application's own part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataPart {
    /// The part's type without `data-`.
    pub kind: String,
    /// A later part with the same id replaces this one while streaming.
    pub id: Option<String>,
    /// The content.
    pub data: Value,
    /// All other keys.
    pub extra: Map<String, Value>,
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text(TextPart { text: text.into(), ..TextPart::default() })
    }

    /// Makes a reasoning part.
    pub fn reasoning(text: impl Into<String>) -> Part {
        Part::Reasoning(ReasoningPart { text: text.into(), ..ReasoningPart::default() })
    }

    /// Makes a file part; `url` is a web address or a `data:` URL.
    pub fn file(media_type: impl Into<String>, url: impl Into<String>) -> Part {
        Part::File(FilePart { media_type: media_type.into(), url: url.into(), ..FilePart::default() })
    }

    /// Makes a part of type `data-<kind>`.
    pub fn data(kind: impl Into<String>, data: impl Into<Value>) -> Part {
        Part::Data(DataPart { kind: kind.into(), data: data.into(), ..DataPart::default() })
    }
}

/// The parts of a message's content: a text, or a list of parts; `part` reads one.
pub(crate) fn parts_from(content: Value, part: impl Fn(Value) -> Part) -> Vec<Part> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => parts.into_iter().map(part).collect(),
        other => vec![part(other)],
    }
}

/// The metadata of a part that states these facts for one provider; `None` if there are none.
pub(crate) fn provider_metadata(provider: &str, facts: Map<String, Value>) -> Option<Map<String, Value>> {
    (!facts.is_empty()).then(|| Map::from_iter([(provider.to_owned(), facts.into())]))
}

impl From<ToolPart> for Part {
    fn from(tool: ToolPart) -> Part {
        Part::Tool(Box::new(tool))
    }
}

impl From<Value> for Part {
    fn from(value: Value) -> Part {
        let Value::Object(object) = value else { return Part::Other(value) };
        let mut keys = Keys::new(object);
        read::part(&mut keys).unwrap_or_else(|| Part::Other(Value::Object(keys.rest())))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        Value::deserialize(deserializer).map(Part::from)
    }
}

impl Serialize for DataPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format!("data-{}", self.kind))?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("data", &self.data)?;
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
