//! A tool call as an element of `tool_calls`: what was asked, and how it ended.

use serde_json::{Map, Value};

use crate::dialect::writer::Written;
use crate::model::loss::Lost;
use crate::model::message::{ToolKind, ToolPart, ToolState};

/// The call with its result, under the id that it has here. What `Call` of `line.rs` has no field for is noted.
pub(super) fn value(tool: &ToolPart, id: String, written: &mut Written) -> Value {
    let (ours, is_all) = ours(tool);
    if !is_all {
        written.losses.dropped(Lost::CallDetails);
    }
    if tool.kind == ToolKind::Static {
        written.losses.dropped(Lost::CallDetails);
    }
    if tool.approval().is_some() {
        written.losses.dropped(Lost::Approval);
    }
    if tool.name.is_empty() {
        written.losses.synthesised(Lost::ToolName);
    }
    let name = if tool.name.is_empty() { "unknown" } else { &tool.name };
    let mut call = Map::new();
    call.insert("id".to_owned(), id.into());
    call.insert("name".to_owned(), name.into());
    call.insert("args".to_owned(), tool.input().cloned().unwrap_or_default());
    outcome(tool, ours.output, &mut call, written);
    if let Some(duration) = ours.duration_ms {
        call.insert("duration_ms".to_owned(), duration.into());
    }
    Value::Object(call)
}

/// How the call ended, in `result`, `success` and `error`; nothing while it runs.
fn outcome(tool: &ToolPart, output: Option<&Value>, call: &mut Map<String, Value>, written: &mut Written) {
    match &tool.state {
        ToolState::InputAvailable { .. } => {}
        ToolState::InputStreaming { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. } => written.losses.renamed(Lost::CallState),
        ToolState::OutputAvailable { output, preliminary, .. } => {
            if *preliminary == Some(true) {
                written.losses.dropped(Lost::PreliminaryResult);
            }
            call.insert("result".to_owned(), output.clone().unwrap_or_default());
            call.insert("success".to_owned(), true.into());
        }
        ToolState::OutputError { input, raw_input, error_text, .. } => {
            if let (None, Some(raw)) = (input, raw_input) {
                written.losses.renamed(Lost::ToolInput);
                call.insert("args".to_owned(), raw.clone());
            } else if raw_input.is_some() {
                written.losses.dropped(Lost::ToolInput);
            }
            failed(error_text, output, call, written);
        }
        ToolState::OutputDenied { approval, .. } => {
            written.losses.renamed(Lost::Denial);
            let reason = approval.reason.as_deref().filter(|reason| !reason.is_empty());
            failed(reason.unwrap_or("denied"), output, call, written);
        }
    }
}

/// An empty error would be read as none.
fn failed(error: &str, output: Option<&Value>, call: &mut Map<String, Value>, written: &mut Written) {
    let told = if error.is_empty() { "the tool failed" } else { error };
    if error.is_empty() {
        written.losses.synthesised(Lost::FailureReason);
    }
    if let Some(output) = output {
        call.insert("result".to_owned(), output.clone());
    }
    call.insert("success".to_owned(), false.into());
    call.insert("error".to_owned(), told.into());
}

/// What our own metadata of a call says that a call of sage has fields for.
struct Ours<'a> {
    duration_ms: Option<u64>,
    output: Option<&'a Value>,
}

/// The second: whether that is all that is said about the call.
fn ours(tool: &ToolPart) -> (Ours<'_>, bool) {
    let ToolPart { title, provider_executed, result_provider_metadata, tool_metadata, extra, .. } = tool;
    let bare = title.is_none()
        && provider_executed.is_none()
        && result_provider_metadata.is_none()
        && tool_metadata.is_none()
        && extra.is_empty();
    let has_output = matches!(tool.state, ToolState::OutputError { .. } | ToolState::OutputDenied { .. });
    let providers = tool.call_provider_metadata.as_ref();
    let scrollback = providers.and_then(|providers| providers.get("scrollback")).and_then(Value::as_object);
    let of = |key: &str| scrollback.and_then(|ours| ours.get(key));
    // Of a call that runs, nothing that is told of its end would be read; nor an output that says nothing.
    let says_something = |output: &&Value| !output.is_null() && *output != "";
    let ours = Ours {
        duration_ms: of("durationMs").and_then(Value::as_u64).filter(|_| !tool.is_open()),
        output: of("output").filter(|_| has_output).filter(says_something),
    };
    let taken = [ours.duration_ms.is_some(), ours.output.is_some(), of("orphan").is_some()];
    let taken = taken.into_iter().filter(|is_taken| *is_taken).count();
    let is_ours = providers.is_none_or(|providers| providers.len() == usize::from(scrollback.is_some()));
    (ours, bare && is_ours && scrollback.is_none_or(|scrollback| scrollback.len() == taken))
}
