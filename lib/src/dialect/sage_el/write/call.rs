//! Writes a tool call as an element of `tool_calls`, with its result.

use serde_json::{Map, Value};

use crate::dialect::line_builder::{Fields, Put};
use crate::model::loss::{Losses, Lost};
use crate::model::message::{ToolKind, ToolPart, ToolState};

/// The call with its result, under this id. What the reader has no field for is reported as lost.
pub(super) fn value(tool: &ToolPart, id: String, losses: &mut Losses) -> Value {
    let (known, is_all) = known_metadata(tool);
    losses.dropped_if(!is_all, Lost::CallDetails);
    losses.dropped_if(tool.kind == ToolKind::Static, Lost::CallDetails);
    losses.dropped_if(tool.approval().is_some(), Lost::Approval);
    losses.synthesised_if(tool.name.is_empty(), Lost::ToolName);
    let mut call = Map::new();
    call.put("id", id);
    call.put("name", if tool.name.is_empty() { "unknown" } else { &tool.name });
    call.put("args", tool.input().cloned().unwrap_or_default());
    outcome(tool, known.output, &mut call, losses);
    call.put_some("duration_ms", known.duration_ms);
    call.into()
}

/// How the call ended, in `result`, `success` and `error`; nothing while it runs.
fn outcome(tool: &ToolPart, output: Option<&Value>, call: &mut Fields, losses: &mut Losses) {
    match &tool.state {
        ToolState::InputAvailable { .. } => {}
        ToolState::InputStreaming { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. } => losses.renamed(Lost::CallState),
        ToolState::OutputAvailable { output, preliminary, .. } => {
            losses.dropped_if(*preliminary == Some(true), Lost::PreliminaryResult);
            call.put("result", output.clone().unwrap_or_default());
            call.put("success", true);
        }
        ToolState::OutputError { input, raw_input, error_text, .. } => {
            let raw_only = raw_input.as_ref().filter(|_| input.is_none());
            losses.renamed_if(raw_only.is_some(), Lost::ToolInput);
            losses.dropped_if(raw_input.is_some() && input.is_some(), Lost::ToolInput);
            call.put_some("args", raw_only.cloned());
            failed(error_text, output, call, losses);
        }
        ToolState::OutputDenied { approval, .. } => {
            losses.renamed(Lost::Denial);
            let reason = approval.reason.as_deref().filter(|reason| !reason.is_empty());
            failed(reason.unwrap_or("denied"), output, call, losses);
        }
    }
}

/// An empty error would be read as no error.
fn failed(error: &str, output: Option<&Value>, call: &mut Fields, losses: &mut Losses) {
    losses.synthesised_if(error.is_empty(), Lost::FailureReason);
    call.put_some("result", output.cloned());
    call.put("success", false);
    call.put("error", if error.is_empty() { "the tool failed" } else { error });
}

/// The part of our own metadata of a call that sage has fields for.
struct KnownMetadata<'a> {
    duration_ms: Option<u64>,
    output: Option<&'a Value>,
}

/// The known metadata, and whether there is nothing else about the call.
fn known_metadata(tool: &ToolPart) -> (KnownMetadata<'_>, bool) {
    let ToolPart { title, provider_executed, result_provider_metadata, tool_metadata, extra, .. } = tool;
    let has_no_details = title.is_none()
        && provider_executed.is_none()
        && result_provider_metadata.is_none()
        && tool_metadata.is_none()
        && extra.is_empty();
    let has_output = matches!(tool.state, ToolState::OutputError { .. } | ToolState::OutputDenied { .. });
    let providers = tool.call_provider_metadata.as_ref();
    let ours = providers.and_then(|providers| providers.get("scrollback")).and_then(Value::as_object);
    let get = |key: &str| ours.and_then(|ours| ours.get(key));
    // The reader ignores the duration of a call that runs, and an empty output.
    let is_not_empty = |output: &&Value| !output.is_null() && *output != "";
    let known = KnownMetadata {
        duration_ms: get("durationMs").and_then(Value::as_u64).filter(|_| !tool.is_open()),
        output: get("output").filter(|_| has_output).filter(is_not_empty),
    };
    let written = [known.duration_ms.is_some(), known.output.is_some(), get("orphan").is_some()];
    let written = written.into_iter().filter(|is_written| *is_written).count();
    let is_ours = providers.is_none_or(|providers| providers.len() == usize::from(ours.is_some()));
    (known, has_no_details && is_ours && ours.is_none_or(|ours| ours.len() == written))
}
