//! The fields of a sage line, everything that may be large left as text. Any field may be missing or of any shape.

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::lenient::{Amount, Count, List, Moment, Object, Text};

/// A line of any of the shapes: current, extended, with tool calls, and those of the later schema.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) timestamp: Moment<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) tool_calls: List<Call<'a>>,
    pub(super) tokens: Object<Estimate>,
    // Of the later schema.
    #[serde(rename = "sessionId")]
    pub(super) session_id_of_later: Text<'a>,
    pub(super) cwd: Text<'a>,
    #[serde(rename = "gitBranch")]
    pub(super) git_branch: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) metadata: Object<Free<'a>>,
    pub(super) usage: Object<Tokens>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) name: Text<'a>,
    // Of others: a line that has one of them is no line of sage.
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) parts: Option<&'a RawValue>,
}

/// A tool call, with its result.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Call<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) args: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) success: Option<&'a RawValue>,
    pub(super) duration_ms: Count,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Estimate {
    pub(super) estimated: Count,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Free<'a> {
    pub(super) model: Text<'a>,
    #[serde(rename = "gitBranch")]
    pub(super) git_branch: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) estimated_cost_usd: Amount,
}

/// metadata.json: of a project, not of one conversation. Its counts come from memory and are not believed.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Sidecar<'a> {
    pub(super) project_dir: Text<'a>,
    pub(super) tca_version: Text<'a>,
    pub(super) model: Text<'a>,
}

impl Call<'_> {
    /// Whether the call tells how it ended. A `null`, which is what Emacs makes of nil, tells nothing.
    pub(super) fn is_answered(&self) -> bool {
        [self.result, self.error, self.success].into_iter().flatten().any(|told| told.get() != "null")
    }
}

/// The id of a call that has none: the same in every reading, and another in every line.
pub(super) fn made_up_call_id(line: &str, at: usize) -> String {
    format!("call-{:016x}-{at}", xxh3_64(line.as_bytes()))
}
