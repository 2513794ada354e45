//! The calls, results and files of a native line as parts of a message and results of calls.

use serde_json::Value;
use serde_json::value::RawValue;

use super::line;
use crate::model::lenient::{self, parsed};
use crate::model::message::{Approval, FilePart, Part, ToolKind, ToolPart, ToolState, provider_metadata};
use crate::model::record::{Outcome, ToolResult};

pub(super) fn call(call: line::Call<'_>) -> Part {
    let input = call.arguments.map(lenient::value);
    let approval = call.approval.0.map(|approval| Approval {
        id: approval.id.owned().unwrap_or_default(),
        approved: approval.approved.and_then(parsed),
        reason: approval.reason.owned(),
        ..Approval::default()
    });
    let state = match (call.partial.0, approval) {
        (true, _) => ToolState::InputStreaming { input },
        (false, None) => ToolState::called(input.unwrap_or_default()),
        (false, Some(approval)) if approval.approved.is_none() => {
            ToolState::ApprovalRequested { input: input.unwrap_or_default(), approval }
        }
        (false, Some(approval)) => ToolState::ApprovalResponded { input: input.unwrap_or_default(), approval },
    };
    let name = call.name.owned().unwrap_or_else(|| "unknown".to_owned());
    let mut plain = ToolPart::dynamic(name, call.id.owned().unwrap_or_default(), state);
    // `about` has the other fields of the SDK's part: with them, it is that part again.
    let Some(Value::Object(mut about)) = call.about.map(lenient::value) else { return plain.into() };
    if about.shift_remove("static") == Some(true.into()) {
        plain.kind = ToolKind::Static;
    }
    let Ok(Value::Object(mut fields)) = serde_json::to_value(Part::from(plain.clone())) else { return plain.into() };
    if call.arguments.is_none() {
        fields.shift_remove("input");
    }
    fields.extend(about.into_iter().filter(|(key, _)| !ToolPart::NAMED.contains(&key.as_str())));
    match Part::from(Value::Object(fields)) {
        Part::Tool(part) if part.call_id == plain.call_id => Part::Tool(part),
        _ => plain.into(),
    }
}

pub(super) fn result(result: line::ToolResult<'_>) -> ToolResult {
    let reason = result.error.map(lenient::text_or_json).filter(|text| !text.is_empty());
    let success = result.success.map(RawValue::get);
    let output = result.content.map(lenient::value).unwrap_or_default();
    let outcome = if result.denied.0 {
        Outcome::Denied(reason)
    } else if success == Some("false") || (success != Some("true") && reason.is_some()) {
        Outcome::Failed(reason.unwrap_or_else(|| lenient::to_text(&output)))
    } else {
        Outcome::Done
    };
    ToolResult {
        call_id: result.tool_call_id.owned().unwrap_or_default(),
        name: result.tool_name.owned(),
        output,
        outcome,
        preliminary: result.preliminary.0,
        duration_ms: result.duration_ms.0,
        about: result.about.and_then(parsed).unwrap_or_default(),
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
