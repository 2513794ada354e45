//! Writes a tool call and its result as a native line has them.

use serde_json::{Map, Value, json};

use crate::dialect::line_builder::Put;
use crate::model::message::{Approval, Part, ToolKind, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};

pub(super) fn call(part: &Part) -> Option<Value> {
    let Part::Tool(call) = part else { return None };
    let mut fields = Map::new();
    fields.put("id", call.call_id.as_str());
    fields.put("name", call.name.as_str());
    fields.put_some("arguments", call.input().cloned().or_else(|| call.is_open().then_some(Value::Null)));
    let is_partial = matches!(call.state, ToolState::InputStreaming { .. });
    fields.put_some("partial", is_partial.then_some(true));
    fields.put_some("approval", call.approval().map(approval));
    if let Ok(Value::Object(mut about)) = serde_json::to_value(part) {
        let written: &[&str] = if call.is_open() { &ToolPart::STATED } else { &ToolPart::NAMED };
        about.retain(|key, _| !written.contains(&key.as_str()));
        about.put_some("static", (call.kind == ToolKind::Static).then_some(true));
        fields.put_some("about", Some(about).filter(|about| !about.is_empty()));
    }
    Some(fields.into())
}

fn approval(approval: &Approval) -> Value {
    let mut fields = Map::new();
    fields.put("id", approval.id.as_str());
    fields.put_some("approved", approval.approved);
    fields.put_some("reason", approval.reason.as_deref());
    fields.into()
}

pub(super) fn result(result: &ToolResult) -> Value {
    let (success, error, denied) = match &result.outcome {
        Outcome::Done => (true, Value::Null, false),
        Outcome::Failed(reason) => (false, reason.as_str().into(), false),
        Outcome::Denied(reason) => (false, json!(reason), true),
    };
    let mut fields = Map::new();
    fields.put("toolCallId", result.call_id.as_str());
    fields.put_some("toolName", result.name.as_deref());
    fields.put("content", result.output.clone());
    fields.put("success", success);
    fields.put("error", error);
    fields.put_some("denied", denied.then_some(true));
    fields.put_some("preliminary", result.preliminary.then_some(true));
    fields.put_some("durationMs", result.duration_ms);
    fields.put_some("about", Some(result.about.clone()).filter(|about| !about.is_empty()));
    fields.into()
}
