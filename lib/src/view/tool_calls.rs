//! The tool calls of a conversation as a flat list.

use std::collections::VecDeque;

use hashbrown::HashMap;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::error::Result;
use crate::model::json;
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::named_enum;
use crate::session::tree::skeleton::KeyRole;
use crate::view::conversation::Conversation;
use crate::view::tool_view::{Ending, ending};

/// One tool call, `dynamic-tool` and `tool-*` parts alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRow {
    /// The message that it is a part of.
    pub message: String,
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Its progress.
    pub state: CallState,
    /// The arguments.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The arguments as the model wrote them, if they could not be parsed.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Value>,
    /// The result.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What went wrong, or why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_source: Option<DurationSource>,
    /// Whether the provider ran the tool itself.
    pub provider_executed: bool,
}

named_enum! {
    /// The progress of a call: the `state` of its part, but of what was refused always that.
    CallState {
        /// The model is still writing the arguments.
        InputStreaming = "input-streaming",
        /// It has no result.
        InputAvailable = "input-available",
        /// The user is asked whether it may run.
        ApprovalRequested = "approval-requested",
        /// The user has answered that.
        ApprovalResponded = "approval-responded",
        /// It succeeded.
        OutputAvailable = "output-available",
        /// It failed.
        OutputError = "output-error",
        /// It was refused.
        OutputDenied = "output-denied",
    }
}

/// How a duration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurationSource {
    /// The agent recorded it.
    Recorded,
    /// The time between the records of the call and its result, waiting for a permission included.
    Times,
}

/// A `null` is a value.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ToolCallRow {
    /// Whether it failed or was refused.
    pub fn has_failed(&self) -> bool {
        matches!(self.state, CallState::OutputError | CallState::OutputDenied)
    }
}

/// Every call of a conversation, message by message.
pub fn of<'a>(conversation: &'a Conversation<'_, '_>) -> impl Iterator<Item = Result<Vec<ToolCallRow>>> + 'a {
    (0..conversation.len())
        .filter_map(move |at| Some((at, conversation.message(at)?)))
        .map(|(at, message)| {
            let message = message?;
            let calls = message.parts.iter().filter_map(Part::as_call);
            let mut times = Times::of(conversation, at);
            let row = |call: &ToolPart| {
                let mut row = row(&message.id, call);
                let between = times.next(&call.call_id);
                if row.duration_ms.is_none() {
                    row.duration_ms = between;
                    row.duration_source = row.duration_ms.map(|_| DurationSource::Times);
                }
                row
            };
            Ok(calls.map(row).collect())
        })
}

/// The row of one call, from its part.
pub fn row(message: &str, call: &ToolPart) -> ToolCallRow {
    let duration_ms = recorded_duration(call);
    let (state, error_text) = match &call.state {
        ToolState::InputStreaming { .. } => (CallState::InputStreaming, None),
        ToolState::InputAvailable { .. } => (CallState::InputAvailable, None),
        ToolState::ApprovalRequested { .. } => (CallState::ApprovalRequested, None),
        ToolState::ApprovalResponded { .. } => (CallState::ApprovalResponded, None),
        ToolState::OutputAvailable { .. } => (CallState::OutputAvailable, None),
        // Codex records a refusal as a failure.
        ToolState::OutputError { error_text, .. } if ending(call) == Ending::Denied => {
            (CallState::OutputDenied, Some(error_text.clone()))
        }
        ToolState::OutputError { error_text, .. } => (CallState::OutputError, Some(error_text.clone())),
        ToolState::OutputDenied { approval, .. } => (CallState::OutputDenied, approval.reason.clone()),
    };
    let raw_input = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.clone() } else { None };
    ToolCallRow {
        message: message.to_owned(),
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        state,
        input: call.input().cloned(),
        raw_input,
        output: call.output().cloned(),
        error_text,
        duration_ms,
        duration_source: duration_ms.map(|_| DurationSource::Recorded),
        provider_executed: call.provider_executed == Some(true),
    }
}

/// How long a call took by the agent's own account, in milliseconds.
pub(crate) fn recorded_duration(call: &ToolPart) -> Option<u64> {
    let ours = call.call_provider_metadata.as_ref().and_then(|metadata| metadata.get("scrollback"));
    let ms = ours.and_then(|ours| ours.get("durationMs")).and_then(json::as_f64);
    ms.filter(|ms| *ms >= 0.0).map(|ms| ms.round() as u64)
}

/// When the calls of a message were made and answered, by the times of its records. A repeated call id has several of each,
/// in order.
#[derive(Default)]
struct Times {
    made: HashMap<u64, VecDeque<Option<Timestamp>>>,
    answered: HashMap<u64, VecDeque<Option<Timestamp>>>,
}

impl Times {
    fn of(conversation: &Conversation<'_, '_>, message: usize) -> Times {
        let mut times = Times::default();
        for record in conversation.records(message) {
            record
                .keys(KeyRole::Call)
                .for_each(|call| times.made.entry(call).or_default().push_back(record.at()));
            record
                .keys(KeyRole::Result)
                .for_each(|call| times.answered.entry(call).or_default().push_back(record.at()));
        }
        times
    }

    /// The time between the next call of this id and its result.
    fn next(&mut self, call: &str) -> Option<u64> {
        let hash = xxh3_64(call.as_bytes());
        let (made, answered) = (self.made.get_mut(&hash)?.pop_front()?, self.answered.get_mut(&hash)?.pop_front()?);
        u64::try_from(answered?.duration_since(made?).as_millis()).ok()
    }
}
