//! The parts of a message, one struct per part type of the AI SDK.
//!
//! Every struct has the keys that SDK 7 defines as fields and all others in `extra`; `extra` must not repeat a field.
//! A part that does not fit its struct is [`Part::Other`], so that reading never fails.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::keys::{Field, Keys, json_structs};
use super::{ToolPart, read};

type Object = Map<String, Value>;

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Part {
    /// A text.
    Text(TextPart),
    /// Reasoning of the model.
    Reasoning(ReasoningPart),
    /// A file or an image.
    File(FilePart),
    /// A file that the model made while it reasoned (SDK 7).
    ReasoningFile(ReasoningFilePart),
    /// A web page that the model used.
    SourceUrl(SourceUrlPart),
    /// A document that the model used.
    SourceDocument(SourceDocumentPart),
    /// Something that only one provider understands (SDK 7).
    Custom(CustomPart),
    /// A message of the user while the model was working (SDK 7).
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

/// Whether a text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamState {
    /// More may come.
    Streaming,
    /// It is complete.
    Done,
}

json_structs! {
    /// A text.
    TextPart {
        /// The text.
        "text" text: String,
        /// The sources of the text (SDK 7).
        "citations" citations: Option<Vec<Value>>,
        /// Whether the text is complete.
        "state" state: Option<StreamState>,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// Reasoning of the model.
    ReasoningPart {
        /// The stream's id of this part.
        "id" id: Option<String>,
        /// The text; empty where the provider hides it.
        "text" text: String,
        /// Whether the text is complete.
        "state" state: Option<StreamState>,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// A file or an image.
    FilePart {
        /// The IANA media type, or only its first half.
        "mediaType" media_type: String,
        /// The file's name.
        "filename" filename: Option<String>,
        /// Where it is: a web address or a `data:` URL with the content.
        "url" url: String,
        /// The file's id at each provider it was uploaded to (SDK 7).
        "providerReference" provider_reference: Option<Map<String, Value>>,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// A file that the model made while it reasoned.
    ReasoningFilePart {
        /// The IANA media type.
        "mediaType" media_type: String,
        /// Where it is: a web address or a `data:` URL with the content.
        "url" url: String,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// A web page that the model used.
    SourceUrlPart {
        /// The source's id.
        "sourceId" source_id: String,
        /// The page's address.
        "url" url: String,
        /// The page's title.
        "title" title: Option<String>,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// A document that the model used.
    SourceDocumentPart {
        /// The source's id.
        "sourceId" source_id: String,
        /// The IANA media type.
        "mediaType" media_type: String,
        /// The document's title.
        "title" title: String,
        /// The document's file name.
        "filename" filename: Option<String>,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// Something that only one provider understands.
    CustomPart {
        /// `<provider>.<type>`.
        "kind" kind: String,
        /// One object per provider; ours is `scrollback`.
        "providerMetadata" provider_metadata: Option<Map<String, Value>>,
    }
    /// A message of the user while the model was working.
    SteeringPart {
        /// The message's id.
        "id" id: String,
        /// Text and file parts.
        "parts" parts: Vec<Part>,
    }
}

/// An application's own part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataPart {
    /// The part's type without `data-`.
    #[serde(rename = "type", serialize_with = "with_data_prefix")]
    pub kind: String,
    /// A later part with the same id replaces this one while streaming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The content.
    pub data: Value,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn with_data_prefix<S: Serializer>(kind: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("data-{kind}"))
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

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        if let Part::Text(part) = self { Some(&part.text) } else { None }
    }

    /// The call of a tool part.
    pub fn as_call(&self) -> Option<&ToolPart> {
        if let Part::Tool(call) = self { Some(call) } else { None }
    }

    /// The provider metadata and the unknown keys of a part that has both.
    pub(super) fn metadata_and_extra(&mut self) -> Option<(&mut Option<Object>, &mut Object)> {
        match self {
            Part::Text(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::Reasoning(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::File(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::ReasoningFile(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::SourceUrl(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::SourceDocument(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::Custom(part) => Some((&mut part.provider_metadata, &mut part.extra)),
            Part::Steering(_) | Part::StepStart | Part::Tool(_) | Part::Data(_) | Part::Other(_) => None,
        }
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

/// Our own object in a part's metadata, created where it is missing; `None` if something else is in its place.
pub(crate) fn own_metadata(metadata: &mut Option<Map<String, Value>>) -> Option<&mut Map<String, Value>> {
    let own = metadata.get_or_insert_default().entry("scrollback");
    own.or_insert_with(|| Map::new().into()).as_object_mut()
}

/// The metadata of a part that has these fields for one provider; `None` if there are none.
pub(crate) fn provider_metadata(provider: &str, fields: Map<String, Value>) -> Option<Map<String, Value>> {
    (!fields.is_empty()).then(|| Map::from_iter([(provider.to_owned(), fields.into())]))
}

impl From<ToolPart> for Part {
    fn from(tool: ToolPart) -> Part {
        Part::Tool(Box::new(tool))
    }
}

impl From<Value> for Part {
    fn from(value: Value) -> Part {
        let Value::Object(object) = value else { return Part::Other(value) };
        let mut keys = Keys::of_part(object);
        read::part(&mut keys).unwrap_or_else(|| Part::Other(keys.into_object().into()))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        Value::deserialize(deserializer).map(Part::from)
    }
}
