//! The calls, results and files of a native line as parts of a message and results of calls.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::lenient::{self, RawObject};
use crate::model::message::{Approval, FilePart, Part, ToolKind, ToolPart, ToolState, provider_metadata};
use crate::model::record::{Outcome, ToolResult};

pub(super) fn call(call: &RawObject<'_>) -> Part {
    let input = call.value("arguments");
    let approval = call.raw("approval").and_then(RawObject::from_raw).map(|approval| Approval {
        id: approval.string("id").unwrap_or_default(),
        approved: approval.parsed("approved"),
        reason: approval.string("reason"),
        ..Approval::default()
    });
    let has_input = input.is_some();
    let state = match (call.flag("partial"), approval) {
        (true, _) => ToolState::InputStreaming { input },
        (false, None) => ToolState::called(input.unwrap_or_default()),
        (false, Some(approval)) if approval.approved.is_none() => {
            ToolState::ApprovalRequested { input: input.unwrap_or_default(), approval }
        }
        (false, Some(approval)) => ToolState::ApprovalResponded { input: input.unwrap_or_default(), approval },
    };
    let name = call.string("name").unwrap_or_else(|| "unknown".to_owned());
    let mut plain = ToolPart::dynamic(name, call.string("id").unwrap_or_default(), state);
    // `about` has the other fields of the SDK's part: with them, it is that part again.
    let Some(Value::Object(mut about)) = call.value("about") else { return plain.into() };
    if about.shift_remove("static") == Some(true.into()) {
        plain.kind = ToolKind::Static;
    }
    let Ok(Value::Object(mut fields)) = serde_json::to_value(Part::from(plain.clone())) else { return plain.into() };
    if !has_input {
        fields.shift_remove("input");
    }
    fields.extend(about.into_iter().filter(|(key, _)| !ToolPart::NAMED.contains(&key.as_str())));
    match Part::from(Value::Object(fields)) {
        Part::Tool(part) if part.call_id == plain.call_id => Part::Tool(part),
        _ => plain.into(),
    }
}

pub(super) fn result(result: &RawObject<'_>) -> ToolResult {
    let reason = result.raw("error").map(lenient::text_or_json).filter(|text| !text.is_empty());
    let success = result.raw("success").map(RawValue::get);
    let output = result.value("content").unwrap_or_default();
    let outcome = if result.flag("denied") {
        Outcome::Denied(reason)
    } else if success == Some("false") || (success != Some("true") && reason.is_some()) {
        Outcome::Failed(reason.unwrap_or_else(|| lenient::to_text(&output)))
    } else {
        Outcome::Done
    };
    ToolResult {
        name: result.string("toolName"),
        preliminary: result.flag("preliminary"),
        duration_ms: result.count("durationMs"),
        about: result.parsed("about").unwrap_or_default(),
        ..ToolResult::new(result.string("toolCallId").unwrap_or_default(), output, outcome)
    }
}

/// A file of a message: a file part if it has a URL, else its description.
pub(super) fn attachment(description: Value) -> Part {
    let text = |key| description.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("url"), text("mime_type")) {
        (Some(url), Some(media_type)) if media_type.contains('/') => {
            let size = description.get("size").map(|size| ("size".to_owned(), size.clone()));
            let provider_metadata = provider_metadata("scrollback", size.into_iter().collect());
            let filename = text("filename");
            Part::File(FilePart { media_type, url, filename, provider_metadata, ..FilePart::default() })
        }
        _ => Part::data("attachment", description),
    }
}
