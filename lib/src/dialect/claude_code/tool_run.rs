//! `toolUseResult`: what the agent noted about the run of a tool.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::lenient::{Count, Flag, Object, Text};

/// An object that differs from tool to tool, or the text of a failure.
#[derive(Default)]
pub(super) struct ToolRun<'a> {
    facts: Object<Facts<'a>>,
    failure: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Facts<'a> {
    duration_ms: Count,
    total_duration_ms: Count,
    interrupted: Flag,
    exit_code: Count,
    agent_id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ToolRun<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let facts = serde_json::from_str(raw).unwrap_or_default();
        Ok(ToolRun { facts, failure: serde_json::from_str(raw).unwrap_or_default() })
    }
}

impl ToolRun<'_> {
    pub(super) fn was_refused(&self) -> bool {
        let failure = self.failure.0.as_deref().unwrap_or_default();
        failure.trim_start_matches("Error: ") == "User rejected tool use"
    }

    pub(super) fn duration_ms(&self) -> Option<u64> {
        let facts = self.facts.0.as_ref()?;
        facts.duration_ms.0.or(facts.total_duration_ms.0)
    }

    /// How the run ended, and the session of the sub-agent that it started.
    pub(super) fn about(&self) -> Map<String, Value> {
        let Some(facts) = &self.facts.0 else { return Map::new() };
        let session = facts.agent_id.0.as_ref().map(|agent| format!("agent-{agent}"));
        let about = [
            ("interrupted", facts.interrupted.0.then_some(true.into())),
            ("exitCode", facts.exit_code.0.map(Value::from)),
            ("session", session.map(Value::from)),
        ];
        about.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
