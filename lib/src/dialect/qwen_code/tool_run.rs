//! The agent's note about the run of a tool: `toolCallResult`, or the design document's `toolCallsMetadata`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::part;
use crate::model::lenient;
use crate::model::record::{ContentItem, Outcome, ToolNote, ToolResult};

/// Fields that the call and its result have, too.
const REPEATED_FIELDS: &[&str] = &["id", "callId", "name", "args", "result", "responseParts", "durationMs"];

/// A note and its facts about the result.
pub(super) struct ToolRun {
    pub(super) call_id: Option<String>,
    status: Option<String>,
    duration_ms: Option<u64>,
    name: Option<String>,
    /// The output, needed if no message has it.
    output: Option<Value>,
    about: Map<String, Value>,
}

/// The notes of a record: one object, or a list of them.
pub(super) fn all(single: Option<&RawValue>, list: Option<&RawValue>) -> Vec<ToolRun> {
    let values = [single, list].into_iter().flatten().map(lenient::value);
    let notes = values.flat_map(|value| if let Value::Array(notes) = value { notes } else { vec![value] });
    notes
        .filter_map(|note| if let Value::Object(note) = note { Some(ToolRun::new(note)) } else { None })
        .collect()
}

impl ToolRun {
    fn new(mut note: Map<String, Value>) -> ToolRun {
        let text = |key: &str| note.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let (name, status) = (text("name"), text("status"));
        let call_id = text("callId").or_else(|| text("id")).or_else(|| name.clone());
        let duration_ms = note.get("durationMs").and_then(Value::as_u64);
        let output = ["responseParts", "result"].iter().find_map(|key| note.get(*key)).cloned();
        note.retain(|key, value| !REPEATED_FIELDS.contains(&key.as_str()) && !value.is_null());
        ToolRun { call_id, status, duration_ms, name, output: output.filter(|value| !value.is_null()), about: note }
    }

    /// Adds to a result how the run ended.
    pub(super) fn settle(&self, result: &mut ToolResult) {
        result.duration_ms = self.duration_ms.or(result.duration_ms);
        let reason = match &result.outcome {
            Outcome::Failed(reason) => reason.clone(),
            Outcome::Denied(reason) => reason.clone().unwrap_or_default(),
            Outcome::Done => lenient::to_text(&result.output),
        };
        result.outcome = match self.status.as_deref() {
            Some("error" | "failed") => Outcome::Failed(reason),
            Some("cancelled") if self.has_started() => Outcome::Failed(reason),
            Some("cancelled") => Outcome::Denied(Some(reason).filter(|reason| !reason.is_empty())),
            _ => return,
        };
    }

    /// Whether it ran before somebody stopped it: one that was refused did not.
    fn has_started(&self) -> bool {
        self.about.get("executionStatus").is_some_and(|status| status != "not_started")
    }

    /// The result, if a record has no other.
    pub(super) fn result(&self) -> Option<ToolResult> {
        let output = self.output.as_ref()?;
        let raw = serde_json::value::to_raw_value(output).ok()?;
        let response = part::items(&raw, self.call_id.as_deref()).find_map(|item| match item {
            ContentItem::Result(result) => Some(result),
            ContentItem::Part(_) => None,
        });
        let mut result = response.unwrap_or_else(|| self.result_with(output.clone()));
        self.settle(&mut result);
        Some(result)
    }

    /// A result with this output.
    pub(super) fn result_with(&self, output: Value) -> ToolResult {
        let (name, duration_ms) = (self.name.clone(), self.duration_ms);
        let call_id = self.call_id.clone().unwrap_or_default();
        ToolResult { name, duration_ms, ..ToolResult::new(call_id, output, Outcome::Done) }
    }

    pub(super) fn into_note(self) -> Option<ToolNote> {
        Some(ToolNote { call_id: self.call_id?, about: self.about }).filter(|note| !note.about.is_empty())
    }
}
