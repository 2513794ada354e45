//! The chunks of the AI SDK's UI message stream, as far as a session needs them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::model::message::Part;

/// An object for each provider.
type ProviderMetadata = Option<Map<String, Value>>;

/// One chunk of a UI message stream.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields are the protocol's own")]
pub enum Chunk {
    /// A message of the model begins.
    Start {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Map<String, Value>>,
    },
    /// More, or something else, is known about it.
    MessageMetadata { message_metadata: Map<String, Value> },
    /// A response of the model begins.
    StartStep,
    /// It ends.
    FinishStep,
    /// The message ends.
    Finish {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Map<String, Value>>,
    },
    /// A text begins.
    TextStart {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// More of it.
    TextDelta { id: String, delta: String },
    /// It ends.
    TextEnd {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Vec<Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// Thinking begins.
    ReasoningStart {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// More of it.
    ReasoningDelta { id: String, delta: String },
    /// It ends.
    ReasoningEnd {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// A call begins.
    ToolInputStart(Call),
    /// Its arguments are known.
    ToolInputAvailable {
        #[serde(flatten)]
        call: Call,
        input: Value,
    },
    /// Somebody is asked whether it may run.
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        approval_descriptor: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input_schema_input: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_automatic: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// They have answered.
    ToolApprovalResponse {
        approval_id: String,
        approved: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The tool has run.
    ToolOutputAvailable {
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        preliminary: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// The tool has failed.
    ToolOutputError {
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        error_text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: ProviderMetadata,
    },
    /// The person refused it.
    ToolOutputDenied { tool_call_id: String },
    /// An application's own part, or one of ours beside the message.
    #[serde(untagged)]
    Data(DataChunk),
    /// A part that is sent as it is: a file, a source, a message in between.
    #[serde(untagged)]
    Whole(Part),
}

/// What chunks about a call's arguments say of it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the protocol's own")]
pub struct Call {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_executed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: ProviderMetadata,
}

/// A `data-*` chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct DataChunk {
    /// Its type without `data-`.
    pub kind: String,
    /// A later one with the same id takes its place.
    pub id: Option<String>,
    /// The content.
    pub data: Value,
    /// It is sent beside the message and is not a part of it.
    pub transient: bool,
}

impl Serialize for DataChunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format!("data-{}", self.kind))?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("data", &self.data)?;
        if self.transient {
            map.serialize_entry("transient", &true)?;
        }
        map.end()
    }
}
