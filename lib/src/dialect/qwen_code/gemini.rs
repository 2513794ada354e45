//! The Gemini API's `Content` objects that the agent sends of a record, as they were recorded.

use serde_json::{Map, Value, json};

use super::body;
use super::line::Line;
use crate::model::json;
use crate::model::lenient::{self, RawObject};
use crate::model::record::{Kind, Outcome, ToolResult};

pub(super) fn contents(text: &str) -> Vec<Value> {
    let (Ok(line), Ok(fields)) = (json::from_str::<Line<'_>>(text), json::from_str(text)) else {
        return Vec::new();
    };
    let fields: RawObject<'_> = fields;
    let message = |role| fields.value("message").map(|message| content_from(message, role));
    let content = match line.record_class().kind {
        Kind::Compaction => {
            let history = fields.object("systemPayload").value("compressedHistory");
            let Some(Value::Array(history)) = history else { return Vec::new() };
            return history.into_iter().map(|content| content_from(content, "user")).collect();
        }
        Kind::Assistant => message("model"),
        Kind::System if line.mark().is_some() => message("user"),
        Kind::User | Kind::Attachment if line.name.0.as_deref() != Some("system") => {
            let mut content = message("user");
            if let (Some(Value::Object(content)), Some("mid_turn_user_message")) =
                (&mut content, line.subtype.0.as_deref())
            {
                content.shift_remove("role");
            }
            content
        }
        Kind::ToolResult => {
            let has_response = |content: &Value| {
                let mut parts = content["parts"].as_array().into_iter().flatten();
                parts.any(|part| part.get("functionResponse").is_some())
            };
            // A result may be only in the note about the run, or a plain text.
            message("user").filter(has_response).or_else(|| noted_results(text))
        }
        _ => None,
    };
    content.into_iter().collect()
}

/// A `Content`: unchanged if it is one, else with its role and its list of parts.
fn content_from(message: Value, role: &str) -> Value {
    let mut content = match message {
        Value::Object(content) => content,
        parts => Map::from_iter([("parts".to_owned(), parts)]),
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
        text => Some(json!({"text": lenient::to_text(&text)})),
    };
    *parts = listed.into_iter().filter_map(part).collect();
    content.into()
}

/// The results that a record has without responses, as responses.
fn noted_results(text: &str) -> Option<Value> {
    let body = body::parse(text);
    let results = &body.content()?.results;
    let response = |result: &ToolResult| {
        let response = match &result.outcome {
            Outcome::Done => json!({"output": lenient::to_text(&result.output)}),
            Outcome::Failed(reason) => json!({"error": reason}),
            Outcome::Denied(reason) => json!({"error": reason.as_deref().unwrap_or("cancelled")}),
        };
        let name = result.name.as_deref().unwrap_or("unknown");
        json!({"functionResponse": {"id": result.call_id, "name": name, "response": response}})
    };
    let parts: Vec<Value> = results.iter().map(response).collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "parts": parts}))
}
