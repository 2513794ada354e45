//! A tool call and its results as one part of a message.

use std::collections::VecDeque;

use hashbrown::HashMap;
use serde_json::{Map, Value};

use crate::model::message::{Approval, Part, StreamState, ToolPart, ToolState, own_metadata};
use crate::model::record::{Outcome, ToolNote, ToolResult};

/// Adds the agent's notes on runs to their calls; of several notes the first counts.
pub(crate) fn annotate(of_runs: Vec<ToolNote>, parts: &mut [Part]) {
    let mut notes: HashMap<String, Map<String, Value>> = HashMap::new();
    for note in of_runs {
        let known = notes.entry(note.call_id).or_default();
        note.about.into_iter().for_each(|(key, value)| _ = known.entry(key).or_insert(value));
    }
    for part in parts {
        if let Part::Tool(call) = part
            && let Some(note) = notes.remove(&call.call_id)
            && let Some(own) = own_metadata(&mut call.call_provider_metadata)
        {
            note.into_iter().for_each(|(key, value)| _ = own.entry(key).or_insert(value));
        }
    }
}

/// Takes the first final result, or else the last preliminary one. Those before it are removed.
pub(crate) fn take_first_final(results: &mut VecDeque<(usize, ToolResult)>) -> Option<ToolResult> {
    let last = results.len().checked_sub(1)?;
    let at = results.iter().position(|(_, result)| !result.preliminary).unwrap_or(last);
    results.drain(..=at).next_back().map(|(_, result)| result)
}

/// The same for a format that keeps a result in its call: the output of a denied call is its reason, or is kept beside it.
pub(crate) fn settle_in_turn(call: &mut ToolPart, mut result: ToolResult) {
    if let Outcome::Denied(reason) = &mut result.outcome {
        let has_reason = reason.as_ref().is_some_and(|reason| !reason.is_empty());
        match &result.output {
            Value::Null => {}
            Value::String(text) if text.is_empty() || reason.as_ref() == Some(text) => {}
            Value::String(text) if !has_reason => *reason = Some(text.clone()),
            output => _ = result.about.insert("output".to_owned(), output.clone()),
        }
    }
    settle(call, result);
}

/// Sets the state of a call by its result.
pub(crate) fn settle(call: &mut ToolPart, result: ToolResult) {
    let mut ours = result.about;
    if let Some(duration) = result.duration_ms {
        ours.insert("durationMs".to_owned(), duration.into());
    }
    let has_failed = matches!(call.state, ToolState::OutputError { .. } | ToolState::OutputDenied { .. });
    let asked = call.approval().filter(|_| !has_failed).cloned();
    let granted = asked.clone().filter(|approval| approval.approved == Some(true));
    let input = call.input().cloned().unwrap_or_default();
    call.state = match result.outcome {
        Outcome::Done => ToolState::OutputAvailable {
            input,
            output: Some(result.output),
            preliminary: result.preliminary.then_some(true),
            approval: granted,
        },
        Outcome::Failed(error_text) => {
            if !result.output.is_null() && result.output != Value::String(String::new()) && result.output != error_text
            {
                ours.insert("output".to_owned(), result.output);
            }
            ToolState::OutputError { input: Some(input), raw_input: None, error_text, approval: granted }
        }
        Outcome::Denied(reason) => {
            let id = asked.as_ref().map_or_else(|| call.call_id.clone(), |approval| approval.id.clone());
            let reason = reason.or(asked.and_then(|approval| approval.reason));
            let approval = Approval { id, approved: Some(false), reason, ..Approval::default() };
            ToolState::OutputDenied { input, approval }
        }
    };
    if !ours.is_empty() {
        let metadata = call.call_provider_metadata.get_or_insert_default();
        metadata.insert("scrollback".to_owned(), ours.into());
    }
}

/// A result whose call is not on the branch, as a call of which nothing else is known.
pub(crate) fn orphan(result: ToolResult) -> Part {
    let name = result.name.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut call = ToolPart::dynamic(name, result.call_id.clone(), ToolState::called(Value::Null));
    settle(&mut call, result);
    if let Some(own) = own_metadata(&mut call.call_provider_metadata) {
        own.insert("orphan".to_owned(), true.into());
    }
    call.into()
}

/// Marks a text or reasoning as complete: records are not streamed.
pub(crate) fn done(part: Part) -> Part {
    match part {
        Part::Text(mut text) => {
            text.state.get_or_insert(StreamState::Done);
            Part::Text(text)
        }
        Part::Reasoning(mut reasoning) => {
            reasoning.state.get_or_insert(StreamState::Done);
            Part::Reasoning(reasoning)
        }
        part => part,
    }
}
