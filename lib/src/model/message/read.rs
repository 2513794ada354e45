//! From JSON objects to parts. `None` means that nothing was taken, so that the caller can keep the object as it was.

use serde_json::Value;

use super::keys::Keys;
use super::{
    CustomPart, DataPart, FilePart, Part, ReasoningFilePart, ReasoningPart, SourceDocumentPart, SourceUrlPart,
    SteeringPart, TextPart, ToolKind, ToolPart, ToolState,
};

pub(super) fn part(keys: &mut Keys) -> Option<Part> {
    match keys.peek_text("type")? {
        "text" => TextPart::read(keys).map(Part::Text),
        "reasoning" => ReasoningPart::read(keys).map(Part::Reasoning),
        "file" => FilePart::read(keys).map(Part::File),
        "reasoning-file" => ReasoningFilePart::read(keys).map(Part::ReasoningFile),
        "source-url" => SourceUrlPart::read(keys).map(Part::SourceUrl),
        "source-document" => SourceDocumentPart::read(keys).map(Part::SourceDocument),
        "custom" => CustomPart::read(keys).map(Part::Custom),
        "steering-message" => SteeringPart::read(keys).map(Part::Steering),
        "step-start" => (keys.len() == 1).then_some(Part::StepStart),
        "dynamic-tool" => tool(keys, ToolKind::Dynamic).map(Part::from),
        kind if kind.starts_with("tool-") => tool(keys, ToolKind::Static).map(Part::from),
        kind if kind.starts_with("data-") => data(keys).map(Part::Data),
        _ => None,
    }
}

fn data(keys: &mut Keys) -> Option<DataPart> {
    let kind = keys.peek_text("type")?.strip_prefix("data-")?.to_owned();
    Some(DataPart { kind, data: keys.take("data")?, id: keys.take("id"), extra: keys.rest() })
}

fn tool(keys: &mut Keys, kind: ToolKind) -> Option<ToolPart> {
    let name = match kind {
        ToolKind::Dynamic => keys.peek_text("toolName")?.to_owned(),
        ToolKind::Static => keys.peek_text("type")?.strip_prefix("tool-")?.to_owned(),
    };
    let call_id = keys.peek_text("toolCallId")?.to_owned();
    let state = tool_state(keys)?;
    for taken in ["state", "toolCallId"].into_iter().chain((kind == ToolKind::Dynamic).then_some("toolName")) {
        keys.take::<Value>(taken);
    }
    Some(ToolPart {
        name,
        call_id,
        kind,
        state,
        title: keys.take("title"),
        provider_executed: keys.take("providerExecuted"),
        call_provider_metadata: keys.take("callProviderMetadata"),
        result_provider_metadata: keys.take("resultProviderMetadata"),
        tool_metadata: keys.take("toolMetadata"),
        input_text: None,
        extra: keys.rest(),
    })
}

/// The state of a call, if the object has what the state needs.
fn tool_state(keys: &mut Keys) -> Option<ToolState> {
    let state = keys.peek_text("state")?.to_owned();
    let input = keys.peek("input").is_some();
    let approval = keys.peek("approval").is_some_and(|approval| approval["id"].is_string());
    let error = keys.peek_text("errorText").is_some();
    Some(match state.as_str() {
        "input-streaming" => ToolState::InputStreaming { input: keys.take("input") },
        "input-available" => ToolState::InputAvailable { input: keys.take("input")? },
        "approval-requested" if input && approval => {
            ToolState::ApprovalRequested { input: keys.take("input")?, approval: keys.take("approval")? }
        }
        "approval-responded" if input && approval => {
            ToolState::ApprovalResponded { input: keys.take("input")?, approval: keys.take("approval")? }
        }
        "output-denied" if input && approval => {
            ToolState::OutputDenied { input: keys.take("input")?, approval: keys.take("approval")? }
        }
        "output-available" if input => ToolState::OutputAvailable {
            input: keys.take("input")?,
            output: keys.take("output"),
            preliminary: keys.take("preliminary"),
            approval: keys.take("approval"),
        },
        "output-error" if error => ToolState::OutputError {
            error_text: keys.take("errorText")?,
            input: keys.take("input"),
            raw_input: keys.take("rawInput"),
            approval: keys.take("approval"),
        },
        _ => return None,
    })
}
