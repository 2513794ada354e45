//! Messages: what a person or an SDK sees of a session, in the shape of the AI SDK's `UIMessage`.
//!
//! Reading keeps everything: JSON → [`Message`] → JSON gives the same value, also for parts that are broken or
//! unknown. Whether an SDK would take a message is another question; [`Message::for_sdk`] sees to that.

mod keys;
mod model;
mod part;
mod read;
mod sdk;
mod tool;
mod validate;

pub use model::model_messages;
pub use part::{
    CustomPart, DataPart, FilePart, Part, ReasoningFilePart, ReasoningPart, SourceDocumentPart, SourceUrlPart,
    SteeringPart, StreamState, TextPart,
};
pub(crate) use part::{parts_from, provider_metadata};
pub use sdk::{Sdk, UnknownSdk};
pub use tool::{Approval, ToolKind, ToolPart, ToolState};
pub use validate::{objection, takes};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value};

use keys::Keys;

/// A turn longer than this goes on in a further message: a page must stay a page.
pub(crate) const RESPONSES_PER_MESSAGE: usize = 100;

/// One message of a conversation: who said it, and its parts in order.
///
/// ```
/// use scrollback::model::message::{Message, Part, Role, ToolPart, ToolState};
/// use serde_json::json;
///
/// let answer = Message::new("m1", Role::Assistant, vec![
///     Part::StepStart,
///     Part::text("Let me look."),
///     ToolPart::dynamic("Bash", "call-1", ToolState::done(json!({"command": "ls"}), json!("README.md"))).into(),
/// ]);
///
/// assert_eq!(serde_json::to_value(&answer)?, json!({
///     "id": "m1",
///     "role": "assistant",
///     "parts": [
///         {"type": "step-start"},
///         {"type": "text", "text": "Let me look."},
///         {"type": "dynamic-tool", "toolName": "Bash", "toolCallId": "call-1", "state": "output-available",
///          "input": {"command": "ls"}, "output": "README.md"},
///     ],
/// }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Unique within the conversation.
    pub id: String,
    /// Who said it.
    pub role: Role,
    /// What is known about the message: time, model, usage, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// What was said and done, in order.
    pub parts: Vec<Part>,
    /// Keys that the SDK does not define, and a `metadata` that is no object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person, or whatever prompts in their place.
    User,
    /// The model, its tool calls and their results.
    Assistant,
}

impl Message {
    /// Makes a message without metadata.
    pub fn new(id: impl Into<String>, role: Role, parts: Vec<Part>) -> Message {
        Message { id: id.into(), role, metadata: None, parts, extra: Map::new() }
    }
}

/// Fails only where there is no message: no `id`, no known `role`, or no list of `parts`.
impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
        let mut keys = Keys::new(Map::deserialize(deserializer)?);
        let no = |key| D::Error::custom(format_args!("not a message: `{key}` is missing or of no use"));
        let id = keys.string("id").ok_or_else(|| no("id"))?;
        let role = keys.parsed("role").ok_or_else(|| no("role"))?;
        let parts = keys.list("parts").ok_or_else(|| no("parts"))?;
        Ok(Message {
            id,
            role,
            metadata: keys.object("metadata"),
            parts: parts.into_iter().map(Part::from).collect(),
            extra: keys.rest(),
        })
    }
}

#[cfg(test)]
mod tests;
