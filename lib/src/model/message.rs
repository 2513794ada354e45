//! Messages: what a person or an SDK sees of a session, in the shape of the AI SDK's `UIMessage`.
//!
//! Reading keeps everything: JSON → [`Message`] → JSON gives the same value, also for parts that are broken or
//! unknown. [`Message::for_sdk`] makes a message valid for an SDK.

pub(crate) mod keys;
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
pub(crate) use part::{own_metadata, parts_from, provider_metadata};
pub use sdk::{Sdk, UnknownSdk};
pub use tool::{Approval, ToolKind, ToolPart, ToolState};
pub use validate::{objection, takes};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value};

use crate::model::record::Display;
use keys::Keys;

/// A longer turn continues in a further message, so that a page stays small.
pub(crate) const RESPONSES_PER_MESSAGE: usize = 100;

/// One message of a conversation: its role, and its parts in order.
///
/// ```
/// use scrollback::model::{Message, Part, Role, ToolPart, ToolState};
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
    /// Whose message it is.
    pub role: Role,
    /// What is known about the message: time, model, usage, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// Keys that the SDK does not define, and a `metadata` that is not an object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person, or a program that prompts in their place.
    User,
    /// The model, its tool calls and their results.
    Assistant,
}

impl Message {
    /// Makes a message without metadata.
    pub fn new(id: impl Into<String>, role: Role, parts: Vec<Part>) -> Message {
        Message { id: id.into(), role, metadata: None, parts, extra: Map::new() }
    }

    /// A text of its metadata.
    pub fn noted(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.get(key)?.as_str()
    }

    /// How people see a message whose text is what the model sees.
    pub fn display(&self) -> Option<Display> {
        Display::deserialize(self.metadata.as_ref()?.get("display")?).ok()
    }

    /// Who wrote it.
    pub fn author(&self) -> &str {
        // A command is what a person ran.
        let is_of_person = || matches!(self.display(), Some(Display::Command { .. } | Display::Shell { .. }));
        match self.role {
            Role::User => self.noted("sender").unwrap_or("you"),
            Role::Assistant => self.noted("model").unwrap_or("assistant"),
            Role::System if is_of_person() => "you",
            Role::System => self.noted("sender").unwrap_or("system"),
        }
    }
}

/// Fails only without an `id`, a known `role` or a list of `parts`.
impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
        let mut keys = Keys::new(Map::deserialize(deserializer)?);
        let invalid = |key| D::Error::custom(format_args!("not a message: `{key}` is missing or invalid"));
        let id = keys.take("id").ok_or_else(|| invalid("id"))?;
        let role = keys.take("role").ok_or_else(|| invalid("role"))?;
        let parts = keys.take("parts").ok_or_else(|| invalid("parts"))?;
        Ok(Message { id, role, parts, metadata: keys.take("metadata"), extra: keys.rest() })
    }
}

#[cfg(test)]
mod tests;
