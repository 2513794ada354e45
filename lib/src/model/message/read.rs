//! From JSON objects to parts. Each reader first makes sure that the part fits its struct, then takes its keys;
//! `None` has taken nothing, so that the caller can keep the object as it was.

use serde_json::Value;

use super::keys::Keys;
use super::{
    Approval, CustomPart, DataPart, FilePart, Part, ReasoningFilePart, ReasoningPart, SourceDocumentPart,
    SourceUrlPart, SteeringPart, TextPart, ToolKind, ToolPart, ToolState,
};

pub(super) fn part(keys: &mut Keys) -> Option<Part> {
    match keys.peek("type")?.as_str()? {
        "text" => text(keys).map(Part::Text),
        "reasoning" => reasoning(keys).map(Part::Reasoning),
        "file" => file(keys).map(Part::File),
        "reasoning-file" => reasoning_file(keys).map(Part::ReasoningFile),
        "source-url" => source_url(keys).map(Part::SourceUrl),
        "source-document" => source_document(keys).map(Part::SourceDocument),
        "custom" => custom(keys).map(Part::Custom),
        "steering-message" => steering(keys).map(Part::Steering),
        "step-start" => (keys.len() == 1).then_some(Part::StepStart),
        "dynamic-tool" => tool(keys, ToolKind::Dynamic).map(Part::from),
        kind if kind.starts_with("tool-") => tool(keys, ToolKind::Static).map(Part::from),
        kind if kind.starts_with("data-") => data(keys).map(Part::Data),
        _ => None,
    }
}

fn text(keys: &mut Keys) -> Option<TextPart> {
    let [_, text] = keys.strings(["type", "text"])?;
    Some(TextPart {
        text,
        citations: keys.list("citations"),
        state: keys.parsed("state"),
        provider_metadata: keys.object("providerMetadata"),
        extra: keys.rest(),
    })
}

fn reasoning(keys: &mut Keys) -> Option<ReasoningPart> {
    let [_, text] = keys.strings(["type", "text"])?;
    Some(ReasoningPart {
        id: keys.string("id"),
        text,
        state: keys.parsed("state"),
        provider_metadata: keys.object("providerMetadata"),
        extra: keys.rest(),
    })
}

fn file(keys: &mut Keys) -> Option<FilePart> {
    let [_, media_type, url] = keys.strings(["type", "mediaType", "url"])?;
    Some(FilePart {
        media_type,
        filename: keys.string("filename"),
        url,
        provider_reference: keys.object("providerReference"),
        provider_metadata: keys.object("providerMetadata"),
        extra: keys.rest(),
    })
}

fn reasoning_file(keys: &mut Keys) -> Option<ReasoningFilePart> {
    let [_, media_type, url] = keys.strings(["type", "mediaType", "url"])?;
    Some(ReasoningFilePart { media_type, url, provider_metadata: keys.object("providerMetadata"), extra: keys.rest() })
}

fn source_url(keys: &mut Keys) -> Option<SourceUrlPart> {
    let [_, source_id, url] = keys.strings(["type", "sourceId", "url"])?;
    Some(SourceUrlPart {
        source_id,
        url,
        title: keys.string("title"),
        provider_metadata: keys.object("providerMetadata"),
        extra: keys.rest(),
    })
}

fn source_document(keys: &mut Keys) -> Option<SourceDocumentPart> {
    let [_, source_id, media_type, title] = keys.strings(["type", "sourceId", "mediaType", "title"])?;
    Some(SourceDocumentPart {
        source_id,
        media_type,
        title,
        filename: keys.string("filename"),
        provider_metadata: keys.object("providerMetadata"),
        extra: keys.rest(),
    })
}

fn custom(keys: &mut Keys) -> Option<CustomPart> {
    let [_, kind] = keys.strings(["type", "kind"])?;
    Some(CustomPart { kind, provider_metadata: keys.object("providerMetadata"), extra: keys.rest() })
}

fn steering(keys: &mut Keys) -> Option<SteeringPart> {
    if !keys.peek("parts")?.is_array() {
        return None;
    }
    let [_, id] = keys.strings(["type", "id"])?;
    let parts = keys.list("parts")?.into_iter().map(Part::from).collect();
    Some(SteeringPart { id, parts, extra: keys.rest() })
}

fn data(keys: &mut Keys) -> Option<DataPart> {
    keys.peek("data")?;
    let [kind] = keys.strings(["type"])?;
    let kind = kind.strip_prefix("data-")?.to_owned();
    Some(DataPart { kind, id: keys.string("id"), data: keys.any("data")?, extra: keys.rest() })
}

fn tool(keys: &mut Keys, kind: ToolKind) -> Option<ToolPart> {
    if !has_what_its_state_needs(keys) {
        return None;
    }
    let [name, call_id, state] = match kind {
        ToolKind::Dynamic => {
            let [_, name, call_id, state] = keys.strings(["type", "toolName", "toolCallId", "state"])?;
            [name, call_id, state]
        }
        ToolKind::Static => {
            let [kind, call_id, state] = keys.strings(["type", "toolCallId", "state"])?;
            [kind.strip_prefix("tool-")?.to_owned(), call_id, state]
        }
    };
    Some(ToolPart {
        name,
        call_id,
        kind,
        state: tool_state(keys, &state)?,
        title: keys.string("title"),
        provider_executed: keys.flag("providerExecuted"),
        call_provider_metadata: keys.object("callProviderMetadata"),
        result_provider_metadata: keys.object("resultProviderMetadata"),
        tool_metadata: keys.object("toolMetadata"),
        extra: keys.rest(),
    })
}

/// Must demand exactly what [`tool_state`] takes with `?`.
fn has_what_its_state_needs(keys: &Keys) -> bool {
    let input = keys.peek("input").is_some();
    let approval = keys.peek("approval").is_some_and(|approval| approval["id"].is_string());
    match keys.peek("state").and_then(Value::as_str) {
        Some("input-streaming") => true,
        Some("input-available" | "output-available") => input,
        Some("approval-requested" | "approval-responded" | "output-denied") => input && approval,
        Some("output-error") => keys.peek("errorText").is_some_and(Value::is_string),
        _ => false,
    }
}

fn tool_state(keys: &mut Keys, state: &str) -> Option<ToolState> {
    Some(match state {
        "input-streaming" => ToolState::InputStreaming { input: keys.any("input") },
        "input-available" => ToolState::InputAvailable { input: keys.any("input")? },
        "approval-requested" => ToolState::ApprovalRequested { input: keys.any("input")?, approval: approval(keys)? },
        "approval-responded" => ToolState::ApprovalResponded { input: keys.any("input")?, approval: approval(keys)? },
        "output-available" => ToolState::OutputAvailable {
            input: keys.any("input")?,
            output: keys.any("output"),
            preliminary: keys.flag("preliminary"),
            approval: approval(keys),
        },
        "output-error" => ToolState::OutputError {
            error_text: keys.string("errorText")?,
            input: keys.any("input"),
            raw_input: keys.any("rawInput"),
            approval: approval(keys),
        },
        "output-denied" => ToolState::OutputDenied { input: keys.any("input")?, approval: approval(keys)? },
        _ => return None,
    })
}

fn approval(keys: &mut Keys) -> Option<Approval> {
    keys.peek("approval")?.get("id")?.as_str()?;
    let mut keys = Keys::new(keys.object("approval")?);
    Some(Approval {
        id: keys.string("id")?,
        approved: keys.flag("approved"),
        reason: keys.string("reason"),
        is_automatic: keys.flag("isAutomatic"),
        request_reason: keys.string("requestReason"),
        signature: keys.string("signature"),
        descriptor: keys.any("descriptor"),
        input_schema_input: keys.any("inputSchemaInput"),
        extra: keys.rest(),
    })
}
