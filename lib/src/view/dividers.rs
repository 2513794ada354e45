//! Parts of messages that stand between messages: compactions, rewinds, restores and interruptions.

use serde_json::Value;

use crate::dialect::local;
use crate::model::message::{Message, Part};
use crate::model::record::Compaction;

/// Whether a part that a message begins with stands before it: it is about the conversation, not about the message.
pub fn is_before_message(part: &Part) -> bool {
    matches!(part, Part::Data(data) if matches!(data.kind.as_str(), "compaction" | "rewind" | "restore"))
}

/// Whether a part needs no author: it says itself what happened.
pub fn is_alone(part: &Part) -> bool {
    let is_interrupt =
        |part: &Part| matches!(part, Part::Data(data) if data.kind == "error" && data.data["kind"] == "interrupted");
    matches!(part, Part::StepStart) || is_before_message(part) || is_interrupt(part)
}

/// The position of the error text: the last text of a failed message, unless a part behind it describes the error. Errors before it are
/// those that the agent tried again after.
pub fn error_text(message: &Message) -> Option<usize> {
    let is_failed = message.metadata.as_ref().is_some_and(|metadata| metadata.get("error") == Some(&Value::Bool(true)));
    let is_error = |part: &Part| matches!(part, Part::Data(data) if data.kind == "error");
    let last = message.parts.iter().rposition(|part| matches!(part, Part::Text(_)))?;
    (is_failed && !message.parts[last..].iter().any(is_error)).then_some(last)
}

/// The summary of a compaction, without what its agent says to the model around it.
pub fn summary(compaction: &Value) -> &str {
    local::summary_itself(compaction.get("summary").and_then(Value::as_str).unwrap_or_default())
}

/// Whether a text is the answer that a compaction asked for: the divider right after it has it as its summary.
pub fn is_summarized(text: &str, after: &[Part]) -> bool {
    let next = after.iter().find(|part| !matches!(part, Part::StepStart));
    let Some(Part::Data(data)) = next.filter(|part| is_before_message(part)) else { return false };
    Compaction::asked_for(text, data.data.get("summary").and_then(Value::as_str).unwrap_or_default())
}
