//! A tool call as chunks: its arguments, the question whether it may run, what came of it.

use super::chunk::{Call, Chunk};
use super::chunks::Unsayable;
use crate::model::message::{Approval, ToolKind, ToolPart, ToolState};

/// Says a call that was not sent before.
pub(super) fn say(tool: &ToolPart, out: &mut Vec<Chunk>) -> Result<(), Unsayable> {
    let bare = ToolPart { call_provider_metadata: None, tool_metadata: None, title: None, ..tool.clone() };
    out.push(Chunk::ToolInputStart(call(&bare)));
    given(tool, out)?;
    outcome(tool, out)
}

/// Says what is new about a call. A reader finds the arguments' call only in its own step, the outcome's anywhere.
pub(super) fn change(
    before: &ToolPart,
    now: &ToolPart,
    in_this_step: bool,
    out: &mut Vec<Chunk>,
) -> Result<(), Unsayable> {
    let same = before.call_id == now.call_id && before.name == now.name && before.kind == now.kind;
    // A reader keeps these once it has them.
    let lost = (before.title.is_some() && now.title.is_none())
        || (before.provider_executed.is_some() && now.provider_executed.is_none())
        || (before.tool_metadata.is_some() && now.tool_metadata.is_none())
        || (before.call_provider_metadata.is_some() && now.call_provider_metadata.is_none())
        || (before.result_provider_metadata.is_some() && now.result_provider_metadata.is_none())
        || (before.approval().is_some()
            && before.approval().map(|asked| &asked.id) != now.approval().map(|asked| &asked.id));
    if !same || lost {
        return Err(Unsayable);
    }
    let reopened = now.is_open() && !before.is_open();
    let streaming = matches!(before.state, ToolState::InputStreaming { .. });
    if reopened || streaming || before.input() != now.input() || call(before) != call(now) {
        if !in_this_step {
            return Err(Unsayable);
        }
        given(now, out)?;
    }
    outcome(now, out)
}

fn call(tool: &ToolPart) -> Call {
    Call {
        tool_call_id: tool.call_id.clone(),
        tool_name: tool.name.clone(),
        dynamic: (tool.kind == ToolKind::Dynamic).then_some(true),
        provider_executed: tool.provider_executed,
        title: tool.title.clone(),
        tool_metadata: tool.tool_metadata.clone(),
        provider_metadata: tool.call_provider_metadata.clone(),
    }
}

/// The arguments.
fn given(tool: &ToolPart, out: &mut Vec<Chunk>) -> Result<(), Unsayable> {
    match (&tool.state, tool.input()) {
        (ToolState::InputStreaming { input: None }, _) => out.push(Chunk::ToolInputStart(call(tool))),
        (ToolState::InputStreaming { .. }, _) => return Err(Unsayable),
        (_, Some(input)) => out.push(Chunk::ToolInputAvailable { call: call(tool), input: input.clone() }),
        (_, None) => return Err(Unsayable),
    }
    Ok(())
}

/// The permission and the result, as far as there are any.
fn outcome(tool: &ToolPart, out: &mut Vec<Chunk>) -> Result<(), Unsayable> {
    if !tool.extra.is_empty() {
        return Err(Unsayable);
    }
    if let Some(approval) = tool.approval() {
        ask(tool, approval, out)?;
    }
    let (tool_call_id, dynamic) = (tool.call_id.clone(), (tool.kind == ToolKind::Dynamic).then_some(true));
    let provider_metadata = tool.result_provider_metadata.clone();
    match &tool.state {
        ToolState::OutputAvailable { output, preliminary, .. } => {
            let (output, preliminary) = (output.clone(), *preliminary);
            out.push(Chunk::ToolOutputAvailable { tool_call_id, dynamic, output, preliminary, provider_metadata });
        }
        // A reader has no arguments without a call that has some.
        ToolState::OutputError { raw_input: Some(_), .. } | ToolState::OutputError { input: None, .. } => {
            return Err(Unsayable);
        }
        ToolState::OutputError { error_text, .. } => {
            out.push(Chunk::ToolOutputError {
                tool_call_id,
                dynamic,
                error_text: error_text.clone(),
                provider_metadata,
            });
        }
        ToolState::OutputDenied { .. } if provider_metadata.is_some() => return Err(Unsayable),
        ToolState::OutputDenied { .. } => out.push(Chunk::ToolOutputDenied { tool_call_id }),
        _ if provider_metadata.is_some() => return Err(Unsayable),
        ToolState::InputStreaming { .. }
        | ToolState::InputAvailable { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. } => {}
    }
    Ok(())
}

/// The question, and the answer where there is one.
fn ask(tool: &ToolPart, approval: &Approval, out: &mut Vec<Chunk>) -> Result<(), Unsayable> {
    let asked_only = matches!(tool.state, ToolState::ApprovalRequested { .. });
    let answered = approval.approved.is_some();
    let odd = !approval.extra.is_empty()
        || approval.is_automatic == Some(false)
        || answered == asked_only
        || (asked_only && approval.reason.is_some());
    if odd {
        return Err(Unsayable);
    }
    out.push(Chunk::ToolApprovalRequest {
        approval_id: approval.id.clone(),
        tool_call_id: tool.call_id.clone(),
        approval_descriptor: approval.descriptor.clone(),
        input_schema_input: approval.input_schema_input.clone(),
        reason: approval.request_reason.clone(),
        is_automatic: approval.is_automatic,
        signature: approval.signature.clone(),
    });
    if let Some(approved) = approval.approved {
        let reason = approval.reason.clone();
        out.push(Chunk::ToolApprovalResponse { approval_id: approval.id.clone(), approved, reason });
    }
    Ok(())
}
