//! The fields of a sage line, everything that may be large left as text. Any field may be missing or of any shape.

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::lenient::{Count, List, Moment, Object, Text};

/// A line of any of the shapes: current, extended, with tool calls, and those of the later schema.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) timestamp: Moment<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: List<Call<'a>>,
    #[serde(default)]
    pub(super) tokens: Object<Estimate>,
    // Of the later schema.
    #[serde(borrow, default, rename = "sessionId")]
    pub(super) session_id_of_later: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default, rename = "gitBranch")]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) metadata: Object<Free<'a>>,
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
    #[serde(borrow, default)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    // Of others: a line that has one of them is no line of sage.
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) parts: Option<&'a RawValue>,
}

/// A tool call, with its result.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) duration_ms: Count,
}

#[derive(Deserialize)]
pub(super) struct Estimate {
    #[serde(default)]
    pub(super) estimated: Count,
}

#[derive(Deserialize, Default)]
pub(super) struct Free<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default, rename = "gitBranch")]
    pub(super) git_branch: Text<'a>,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) input: Count,
    #[serde(default)]
    pub(super) output: Count,
    #[serde(default)]
    pub(super) input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens: Count,
    #[serde(default)]
    pub(super) cache_read_tokens: Count,
    #[serde(default)]
    pub(super) cache_read_input_tokens: Count,
    #[serde(default)]
    pub(super) cache_creation_input_tokens: Count,
}

/// metadata.json: of a project, not of one conversation. Its counts come from memory and are not believed.
#[derive(Deserialize)]
pub(super) struct Sidecar<'a> {
    #[serde(borrow, default)]
    pub(super) project_dir: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tca_version: Text<'a>,
    #[serde(borrow, default)]
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
