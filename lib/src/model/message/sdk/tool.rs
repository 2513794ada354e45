//! Tool parts for an SDK: which keys and states it accepts.

use std::mem;

use serde_json::{Map, Value};

use super::{Sdk, json, one_object_each, put};
use crate::model::message::model::DENIED;
use crate::model::message::{Approval, ToolKind, ToolPart, ToolState};

pub(super) fn for_sdk(tool: &mut ToolPart, sdk: Sdk) {
    let (known, mut kept): (Map<_, _>, Map<_, _>) =
        mem::take(&mut tool.extra).into_iter().partition(|(key, value)| is_known(tool, sdk, key, value));
    tool.extra = known;
    let before = mem::replace(&mut tool.state, ToolState::InputStreaming { input: None });
    tool.state = state(before, sdk, &mut kept);
    if sdk < Sdk::V7 {
        put(&mut kept, "title", tool.title.take());
    }
    if sdk < Sdk::V6 {
        put(&mut kept, "toolMetadata", tool.tool_metadata.take());
    }
    let has_result = matches!(tool.state, ToolState::OutputAvailable { .. } | ToolState::OutputError { .. });
    if sdk < Sdk::V6 || !has_result {
        put(&mut kept, "resultProviderMetadata", tool.result_provider_metadata.take());
    }
    tool.result_provider_metadata = one_object_each(tool.result_provider_metadata.take(), Map::new());
    let has_metadata = sdk > Sdk::V5 || !matches!(tool.state, ToolState::InputStreaming { .. });
    let of_call = tool.call_provider_metadata.take();
    tool.call_provider_metadata = has_metadata.then(|| one_object_each(of_call, kept)).flatten();
}

/// Whether it is a key that the SDK writes while a call streams in. Later it has no meaning, so it is not a field of ours.
fn is_known(tool: &ToolPart, sdk: Sdk, key: &str, value: &Value) -> bool {
    let streaming = matches!(tool.state, ToolState::InputStreaming { .. });
    match key {
        "dynamic" => tool.kind == ToolKind::Dynamic && value == false,
        "rawInput" => streaming && value.is_string(),
        "inputEncoding" => streaming && sdk > Sdk::V5 && (value == "json" || value == "text"),
        _ => false,
    }
}

fn state(state: ToolState, sdk: Sdk, kept: &mut Map<String, Value>) -> ToolState {
    match state {
        ToolState::InputStreaming { .. } | ToolState::InputAvailable { .. } => state,
        ToolState::ApprovalRequested { input, approval } if sdk == Sdk::V5 => {
            keep_state(kept, "approval-requested", &approval);
            ToolState::InputAvailable { input }
        }
        ToolState::ApprovalResponded { input, approval } if sdk == Sdk::V5 => {
            keep_state(kept, "approval-responded", &approval);
            ToolState::InputAvailable { input }
        }
        ToolState::OutputDenied { input, approval } if sdk == Sdk::V5 => {
            keep_state(kept, "output-denied", &approval);
            ToolState::failed(input, approval.reason.unwrap_or_else(|| DENIED.to_owned()))
        }
        // Without an answer it is still a question.
        ToolState::ApprovalRequested { input, approval }
        | ToolState::ApprovalResponded { input, approval: approval @ Approval { approved: None, .. } } => {
            ToolState::ApprovalRequested { input, approval: answered(approval, None, sdk, kept) }
        }
        ToolState::ApprovalResponded { input, approval } => {
            let answer = approval.approved;
            ToolState::ApprovalResponded { input, approval: answered(approval, answer, sdk, kept) }
        }
        ToolState::OutputDenied { input, approval } => {
            ToolState::OutputDenied { input, approval: answered(approval, Some(false), sdk, kept) }
        }
        ToolState::OutputAvailable { input, output, preliminary, approval } => {
            let (output, approval) = (output.or(Some(Value::Null)), granted(approval, sdk, kept));
            ToolState::OutputAvailable { input, output, preliminary, approval }
        }
        ToolState::OutputError { input, raw_input, error_text, approval } => {
            ToolState::OutputError { input, raw_input, error_text, approval: granted(approval, sdk, kept) }
        }
    }
}

/// A call that ran can only have been permitted; another answer is not valid there.
fn granted(approval: Option<Approval>, sdk: Sdk, kept: &mut Map<String, Value>) -> Option<Approval> {
    let approval = approval?;
    if sdk == Sdk::V5 || approval.approved != Some(true) {
        kept.insert("approval".to_owned(), json(&approval));
        return None;
    }
    Some(answered(approval, Some(true), sdk, kept))
}

/// Keeps in the approval what the SDK accepts in a state that needs this answer.
fn answered(mut approval: Approval, answer: Option<bool>, sdk: Sdk, kept: &mut Map<String, Value>) -> Approval {
    let mut refused = mem::take(&mut approval.extra);
    if approval.approved != answer {
        put(&mut refused, "approved", approval.approved);
        approval.approved = answer;
    }
    if answer.is_none() {
        put(&mut refused, "reason", approval.reason.take());
    }
    if sdk < Sdk::V7 {
        put(&mut refused, "isAutomatic", approval.is_automatic.take());
        put(&mut refused, "requestReason", approval.request_reason.take());
    }
    if !refused.is_empty() {
        kept.insert("approval".to_owned(), refused.into());
    }
    approval
}

fn keep_state(kept: &mut Map<String, Value>, state: &str, approval: &Approval) {
    kept.insert("state".to_owned(), state.into());
    kept.insert("approval".to_owned(), json(approval));
}
