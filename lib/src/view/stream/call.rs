//! A tool call as chunks: its arguments, the question whether it may run, and its outcome.

use serde_json::{Map, Value, json};

use super::chunks::Inexpressible;
use crate::model::message::keys::{object, put};
use crate::model::message::{Approval, ToolKind, ToolPart, ToolState};

/// Adds the chunks of a call that was not sent before.
pub(super) fn send(tool: &ToolPart, out: &mut Vec<Value>) -> Result<(), Inexpressible> {
    let bare = ToolPart { call_provider_metadata: None, tool_metadata: None, title: None, ..tool.clone() };
    out.push(call("tool-input-start", &bare).into());
    input(tool, out)?;
    outcome(tool, out)
}

/// Adds what is new about a call. A reader finds the call of arguments only in the same step, the call of an outcome anywhere.
pub(super) fn change(
    before: &ToolPart,
    now: &ToolPart,
    in_this_step: bool,
    out: &mut Vec<Value>,
) -> Result<(), Inexpressible> {
    let same = before.call_id == now.call_id && before.name == now.name && before.kind == now.kind;
    // A reader cannot forget these.
    let removed = (before.title.is_some() && now.title.is_none())
        || (before.provider_executed.is_some() && now.provider_executed.is_none())
        || (before.tool_metadata.is_some() && now.tool_metadata.is_none())
        || (before.call_provider_metadata.is_some() && now.call_provider_metadata.is_none())
        || (before.result_provider_metadata.is_some() && now.result_provider_metadata.is_none())
        || (before.approval().is_some()
            && before.approval().map(|asked| &asked.id) != now.approval().map(|asked| &asked.id));
    if !same || removed {
        return Err(Inexpressible);
    }
    let reopened = now.is_open() && !before.is_open();
    let streaming = matches!(before.state, ToolState::InputStreaming { .. });
    if reopened || streaming || before.input() != now.input() || call("", before) != call("", now) {
        if !in_this_step {
            return Err(Inexpressible);
        }
        input(now, out)?;
    }
    outcome(now, out)
}

/// A chunk about a call's arguments.
fn call(kind: &str, tool: &ToolPart) -> Map<String, Value> {
    object(json!({
        "type": kind,
        "toolCallId": tool.call_id,
        "toolName": tool.name,
        "dynamic": dynamic(tool),
        "providerExecuted": tool.provider_executed,
        "title": tool.title,
        "toolMetadata": tool.tool_metadata,
        "providerMetadata": tool.call_provider_metadata,
    }))
}

fn dynamic(tool: &ToolPart) -> Option<bool> {
    (tool.kind == ToolKind::Dynamic).then_some(true)
}

/// Adds the arguments.
fn input(tool: &ToolPart, out: &mut Vec<Value>) -> Result<(), Inexpressible> {
    match (&tool.state, tool.input()) {
        (ToolState::InputStreaming { input: None }, _) => out.push(call("tool-input-start", tool).into()),
        (ToolState::InputStreaming { .. }, _) => return Err(Inexpressible),
        (_, Some(input)) => {
            let mut chunk = call("tool-input-available", tool);
            chunk.insert("input".to_owned(), input.clone());
            out.push(chunk.into());
        }
        (_, None) => return Err(Inexpressible),
    }
    Ok(())
}

/// Adds the permission and the result, if there are any.
fn outcome(tool: &ToolPart, out: &mut Vec<Value>) -> Result<(), Inexpressible> {
    if !tool.extra.is_empty() {
        return Err(Inexpressible);
    }
    if let Some(approval) = tool.approval() {
        ask(tool, approval, out)?;
    }
    let result = |kind: &str| {
        object(json!({"type": kind, "toolCallId": tool.call_id, "dynamic": dynamic(tool),
                      "providerMetadata": tool.result_provider_metadata}))
    };
    match &tool.state {
        ToolState::OutputAvailable { output, preliminary, .. } => {
            let mut chunk = result("tool-output-available");
            put(&mut chunk, "output", output.clone());
            put(&mut chunk, "preliminary", *preliminary);
            out.push(chunk.into());
        }
        // A reader has no arguments if the call was sent without them.
        ToolState::OutputError { raw_input: Some(_), .. } | ToolState::OutputError { input: None, .. } => {
            return Err(Inexpressible);
        }
        ToolState::OutputError { error_text, .. } => {
            let mut chunk = result("tool-output-error");
            chunk.insert("errorText".to_owned(), error_text.as_str().into());
            out.push(chunk.into());
        }
        _ if tool.result_provider_metadata.is_some() => return Err(Inexpressible),
        ToolState::OutputDenied { .. } => {
            out.push(json!({"type": "tool-output-denied", "toolCallId": tool.call_id}));
        }
        ToolState::InputStreaming { .. }
        | ToolState::InputAvailable { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. } => {}
    }
    Ok(())
}

/// Adds the question, and the answer if there is one.
fn ask(tool: &ToolPart, approval: &Approval, out: &mut Vec<Value>) -> Result<(), Inexpressible> {
    let is_open = matches!(tool.state, ToolState::ApprovalRequested { .. });
    let is_odd = !approval.extra.is_empty()
        || approval.is_automatic == Some(false)
        || approval.approved.is_some() == is_open
        || (is_open && approval.reason.is_some());
    if is_odd {
        return Err(Inexpressible);
    }
    let mut request =
        object(json!({"type": "tool-approval-request", "approvalId": approval.id, "toolCallId": tool.call_id,
               "reason": approval.request_reason, "isAutomatic": approval.is_automatic,
               "signature": approval.signature}));
    put(&mut request, "approvalDescriptor", approval.descriptor.clone());
    put(&mut request, "inputSchemaInput", approval.input_schema_input.clone());
    out.push(request.into());
    out.extend(approval.approved.map(|approved| {
        let response = json!({"type": "tool-approval-response", "approvalId": approval.id, "approved": approved,
                              "reason": approval.reason});
        object(response).into()
    }));
    Ok(())
}
