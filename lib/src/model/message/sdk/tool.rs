//! Tool parts for an SDK: which keys and which states it takes.

use std::mem;

use serde_json::{Map, Value};

use super::{Sdk, json, settled};
use crate::model::message::{Approval, ToolKind, ToolPart, ToolState};

/// What SDK 6 and 7 tell the model about a denied call without a reason.
const DENIED: &str = "Tool call execution denied.";

pub(super) fn for_sdk(mut tool: ToolPart, sdk: Sdk) -> ToolPart {
    let (known, mut kept): (Map<_, _>, Map<_, _>) =
        mem::take(&mut tool.extra).into_iter().partition(|(key, value)| takes(&tool, sdk, key, value));
    tool.extra = known;
    tool.state = state(tool.state, sdk, &mut kept);
    if sdk < Sdk::V7 {
        keep(&mut kept, "title", tool.title.take());
    }
    if sdk < Sdk::V6 {
        keep(&mut kept, "toolMetadata", tool.tool_metadata.take());
    }
    let has_result = matches!(tool.state, ToolState::OutputAvailable { .. } | ToolState::OutputError { .. });
    if sdk < Sdk::V6 || !has_result {
        keep(&mut kept, "resultProviderMetadata", tool.result_provider_metadata.take());
    }
    tool.result_provider_metadata = settled(tool.result_provider_metadata, Map::new());
    let takes_metadata = sdk > Sdk::V5 || !matches!(tool.state, ToolState::InputStreaming { .. });
    tool.call_provider_metadata = if takes_metadata { settled(tool.call_provider_metadata, kept) } else { None };
    tool
}

/// Keys that the SDK writes while a call streams in, and that say nothing once it is there: no fields of ours.
fn takes(tool: &ToolPart, sdk: Sdk, key: &str, value: &Value) -> bool {
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
            let error_text = approval.reason.unwrap_or_else(|| DENIED.to_owned());
            ToolState::OutputError { input: Some(input), raw_input: None, error_text, approval: None }
        }
        ToolState::ApprovalRequested { input, approval } => {
            ToolState::ApprovalRequested { input, approval: answered(approval, None, sdk, kept) }
        }
        ToolState::ApprovalResponded { input, approval } => match approval.approved {
            Some(answer) => {
                ToolState::ApprovalResponded { input, approval: answered(approval, Some(answer), sdk, kept) }
            }
            // Without an answer it is still a question.
            None => ToolState::ApprovalRequested { input, approval: answered(approval, None, sdk, kept) },
        },
        ToolState::OutputDenied { input, approval } => {
            ToolState::OutputDenied { input, approval: answered(approval, Some(false), sdk, kept) }
        }
        ToolState::OutputAvailable { input, output, preliminary, approval } => ToolState::OutputAvailable {
            input,
            output: output.or(Some(Value::Null)),
            preliminary,
            approval: granted(approval, sdk, kept),
        },
        ToolState::OutputError { input, raw_input, error_text, approval } => {
            ToolState::OutputError { input, raw_input, error_text, approval: granted(approval, sdk, kept) }
        }
    }
}

/// A call that ran can only have been permitted; another approval is no longer one.
fn granted(approval: Option<Approval>, sdk: Sdk, kept: &mut Map<String, Value>) -> Option<Approval> {
    let approval = approval?;
    if sdk == Sdk::V5 || approval.approved != Some(true) {
        kept.insert("approval".to_owned(), json(&approval));
        return None;
    }
    Some(answered(approval, Some(true), sdk, kept))
}

/// Leaves in the approval what the SDK takes in a state that demands this answer.
fn answered(mut approval: Approval, answer: Option<bool>, sdk: Sdk, kept: &mut Map<String, Value>) -> Approval {
    let mut refused = mem::take(&mut approval.extra);
    if approval.approved != answer {
        keep(&mut refused, "approved", approval.approved);
        approval.approved = answer;
    }
    if answer.is_none() {
        keep(&mut refused, "reason", approval.reason.take());
    }
    if sdk < Sdk::V7 {
        keep(&mut refused, "isAutomatic", approval.is_automatic.take());
        keep(&mut refused, "requestReason", approval.request_reason.take());
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

fn keep(kept: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        kept.insert(key.to_owned(), value.into());
    }
}
