//! A call of a tool and what it gave back, as a native line has them.

use serde_json::{Map, Value, json};

use crate::model::message::{Approval, Part, ToolKind, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};

pub(super) fn call(part: &Part) -> Option<Value> {
    let Part::Tool(call) = part else { return None };
    let ToolPart { name, call_id, state, .. } = &**call;
    let mut told = Map::new();
    told.insert("id".to_owned(), call_id.as_str().into());
    told.insert("name".to_owned(), name.as_str().into());
    match call.input() {
        Some(input) => _ = told.insert("arguments".to_owned(), input.clone()),
        None if call.is_open() => _ = told.insert("arguments".to_owned(), Value::Null),
        None => {}
    }
    if let ToolState::InputStreaming { .. } = state {
        told.insert("partial".to_owned(), true.into());
    }
    if let Some(asked) = call.approval() {
        told.insert("approval".to_owned(), approval(asked));
    }
    if let Ok(Value::Object(mut about)) = serde_json::to_value(part) {
        let stated: &[&str] = if call.is_open() { &ToolPart::STATED } else { &ToolPart::NAMED };
        about.retain(|key, _| !stated.contains(&key.as_str()));
        if call.kind == ToolKind::Static {
            about.insert("static".to_owned(), true.into());
        }
        if !about.is_empty() {
            told.insert("about".to_owned(), about.into());
        }
    }
    Some(told.into())
}

fn approval(asked: &Approval) -> Value {
    let mut told = Map::new();
    told.insert("id".to_owned(), asked.id.as_str().into());
    if let Some(approved) = asked.approved {
        told.insert("approved".to_owned(), approved.into());
    }
    if let Some(reason) = &asked.reason {
        told.insert("reason".to_owned(), reason.as_str().into());
    }
    told.into()
}

pub(super) fn result(result: &ToolResult) -> Value {
    let mut told = Map::new();
    told.insert("toolCallId".to_owned(), result.call_id.as_str().into());
    if let Some(name) = &result.name {
        told.insert("toolName".to_owned(), name.as_str().into());
    }
    told.insert("content".to_owned(), result.output.clone());
    let (success, error, denied) = match &result.outcome {
        Outcome::Done => (true, Value::Null, false),
        Outcome::Failed(why) => (false, why.as_str().into(), false),
        Outcome::Denied(why) => (false, json!(why), true),
    };
    told.insert("success".to_owned(), success.into());
    told.insert("error".to_owned(), error);
    if denied {
        told.insert("denied".to_owned(), true.into());
    }
    if result.preliminary {
        told.insert("preliminary".to_owned(), true.into());
    }
    if let Some(duration) = result.duration_ms {
        told.insert("durationMs".to_owned(), duration.into());
    }
    if !result.about.is_empty() {
        told.insert("about".to_owned(), result.about.clone().into());
    }
    told.into()
}
