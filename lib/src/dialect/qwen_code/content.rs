//! What the agent sends of a record: the API's `Content` objects, as they were recorded.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::body;
use super::line::Line;
use super::part;
use crate::model::lenient::{self, Object};
use crate::model::record::{Kind, Outcome, ToolResult};

/// Where the objects stand in a record.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Sent<'a> {
    message: Option<&'a RawValue>,
    system_payload: Object<Payload<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Payload<'a> {
    compressed_history: Option<&'a RawValue>,
}

pub(super) fn of(text: &str) -> Vec<Value> {
    let (Ok(line), Ok(sent)) = (serde_json::from_str::<Line<'_>>(text), serde_json::from_str::<Sent<'_>>(text)) else {
        return Vec::new();
    };
    let message = || sent.message.map(lenient::value).filter(|message| !message.is_null());
    let system = line.name.0.as_deref() == Some("system");
    match line.record_class().0.kind {
        Kind::Compaction => {
            let history = sent.system_payload.0.and_then(|payload| payload.compressed_history).map(lenient::value);
            let Some(Value::Array(history)) = history else { return Vec::new() };
            history.into_iter().map(|content| content_of(content, "user")).collect()
        }
        Kind::Assistant => message().map(|message| content_of(message, "model")).into_iter().collect(),
        Kind::User | Kind::Attachment if !system => {
            let mut content = message().map(|message| content_of(message, "user"));
            if line.subtype.0.as_deref() == Some("mid_turn_user_message") {
                content
                    .as_mut()
                    .and_then(Value::as_object_mut)
                    .into_iter()
                    .for_each(|it| _ = it.shift_remove("role"));
            }
            content.into_iter().collect()
        }
        Kind::ToolResult => {
            let content = message().map(|message| content_of(message, "user"));
            let responds = |content: &Value| {
                let mut parts = content["parts"].as_array().into_iter().flatten();
                parts.any(|part| part.get("functionResponse").is_some())
            };
            // A result may stand only in the notes of the run, or as plain words.
            content.filter(responds).or_else(|| noted(text)).into_iter().collect()
        }
        Kind::User
        | Kind::Attachment
        | Kind::System
        | Kind::Snapshot
        | Kind::Title
        | Kind::Rewind
        | Kind::Restore
        | Kind::Header
        | Kind::Other => Vec::new(),
    }
}

/// A `Content`: as it is where it is one, else with its role and its list of parts.
fn content_of(message: Value, role: &str) -> Value {
    let mut content = match message {
        Value::Object(content) => content,
        words => Map::from_iter([("parts".to_owned(), words)]),
    };
    if !matches!(content.get("role").and_then(Value::as_str), Some("user" | "model")) {
        content.shift_insert(0, "role".to_owned(), role.into());
    }
    let parts = content.entry("parts").or_insert(Value::Null);
    let listed = match parts.take() {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        part => vec![part],
    };
    let part = |part: Value| match part {
        Value::Object(part) => Some(Value::Object(part)),
        Value::Null => None,
        words => Some(json!({"text": part::text_of(&words)})),
    };
    *parts = listed.into_iter().filter_map(part).collect();
    content.into()
}

fn noted(text: &str) -> Option<Value> {
    let body = body::of(text);
    let results = &body.content()?.results;
    let response = |result: &ToolResult| {
        let response = match &result.outcome {
            Outcome::Done => json!({"output": part::text_of(&result.output)}),
            Outcome::Failed(why) => json!({"error": why}),
            Outcome::Denied(why) => json!({"error": why.as_deref().unwrap_or("cancelled")}),
        };
        let name = result.name.as_deref().unwrap_or("unknown");
        json!({"functionResponse": {"id": result.call_id, "name": name, "response": response}})
    };
    let parts: Vec<Value> = results.iter().map(response).collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "parts": parts}))
}
