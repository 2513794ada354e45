//! What the agent noted of a tool's run beside what the model was told: `toolCallResult`, or the design's `toolCallsMetadata`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::part::{self, Read};
use crate::model::lenient;
use crate::model::record::{Outcome, ToolNote, ToolResult};

/// What the call itself and its result say already.
const REPEATED: &[&str] = &["id", "callId", "name", "args", "result", "responseParts", "durationMs"];

/// A note, and what of it is no mere note.
pub(super) struct Run {
    pub(super) call_id: Option<String>,
    status: Option<String>,
    duration_ms: Option<u64>,
    name: Option<String>,
    /// What the tool returned, should no message tell it.
    returned: Option<Value>,
    about: Map<String, Value>,
}

/// The notes of a record: one object, or a list of them.
pub(super) fn all(single: Option<&RawValue>, list: Option<&RawValue>) -> Vec<Run> {
    let values = [single, list].into_iter().flatten().map(lenient::value);
    let notes = values.flat_map(|value| if let Value::Array(notes) = value { notes } else { vec![value] });
    notes
        .filter_map(|note| if let Value::Object(note) = note { Some(Run::new(note)) } else { None })
        .collect()
}

impl Run {
    fn new(mut note: Map<String, Value>) -> Run {
        let text = |key: &str| note.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let (name, status) = (text("name"), text("status"));
        let call_id = text("callId").or_else(|| text("id")).or_else(|| name.clone());
        let duration_ms = note.get("durationMs").and_then(Value::as_u64);
        let returned = ["responseParts", "result"].iter().find_map(|key| note.get(*key)).cloned();
        note.retain(|key, value| !REPEATED.contains(&key.as_str()) && !value.is_null());
        Run { call_id, status, duration_ms, name, returned: returned.filter(|value| !value.is_null()), about: note }
    }

    /// Tells a result how the run ended.
    pub(super) fn settle(&self, result: &mut ToolResult) {
        result.duration_ms = self.duration_ms.or(result.duration_ms);
        let why = match &result.outcome {
            Outcome::Failed(why) => why.clone(),
            Outcome::Denied(why) => why.clone().unwrap_or_default(),
            Outcome::Done if result.output.is_null() => String::new(),
            Outcome::Done => part::text_of(&result.output),
        };
        result.outcome = match self.status.as_deref() {
            Some("error" | "failed") => Outcome::Failed(why),
            Some("cancelled") => Outcome::Denied(Some(why).filter(|why| !why.is_empty())),
            _ => return,
        };
    }

    /// The result, when a record has no other.
    pub(super) fn result(&self) -> Option<ToolResult> {
        let returned = self.returned.as_ref()?;
        let raw = serde_json::value::to_raw_value(returned).ok()?;
        let told = part::all(&raw, self.call_id.as_deref()).into_iter().find_map(|read| match read {
            Read::Result(result) => Some(result),
            Read::Part(_) => None,
        });
        let mut result = told.unwrap_or_else(|| self.of_words(returned.clone()));
        self.settle(&mut result);
        Some(result)
    }

    /// A result with this output.
    pub(super) fn of_words(&self, output: Value) -> ToolResult {
        let (call_id, name) = (self.call_id.clone().unwrap_or_default(), self.name.clone());
        ToolResult {
            call_id,
            name,
            output,
            outcome: Outcome::Done,
            preliminary: false,
            duration_ms: self.duration_ms,
            about: Map::new(),
        }
    }

    pub(super) fn note(self) -> Option<ToolNote> {
        Some(ToolNote { call_id: self.call_id?, about: self.about }).filter(|note| !note.about.is_empty())
    }
}
