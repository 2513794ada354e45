//! The fields of a native line, everything that may be large left as text. Any field may be missing or of any shape.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::lenient::{Amount, Count, Flag, List, Moment, Object, ObjectOrText, Text};

/// A line, everything that may be large left as text.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Text<'a>,
    pub(super) timestamp: Moment<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) format: Count,
    pub(super) context: Object<Place<'a>>,
    pub(super) message: ObjectOrText<'a, Spoken<'a>>,
    pub(super) tool_results: List<Answer<'a>>,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Tokens>,
    pub(super) is_sidechain: Flag,
    pub(super) fragment: Object<Fragment>,
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) forked_from: Object<Origin<'a>>,
    // Of plain messages.
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    // Of titles, summaries and compactions.
    pub(super) title: Text<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) title_source: Text<'a>,
    pub(super) summary: Text<'a>,
    pub(super) trigger: Text<'a>,
    pub(super) tokens_before: Count,
    pub(super) tokens_after: Count,
    // Read only when somebody looks.
    pub(super) preserved: Option<&'a RawValue>,
    pub(super) from: Text<'a>,
    pub(super) reason: Text<'a>,
    pub(super) target: Text<'a>,
    pub(super) files: Option<&'a RawValue>,
    pub(super) message_id: Text<'a>,
    pub(super) snapshot: Option<&'a RawValue>,
    pub(super) is_snapshot_update: Flag,
    pub(super) todos: Option<&'a RawValue>,
    pub(super) thinking_metadata: Option<&'a RawValue>,
    pub(super) sender: Text<'a>,
    pub(super) attachments: Option<&'a RawValue>,
    pub(super) reaction: Option<&'a RawValue>,
    pub(super) to_model: Option<&'a RawValue>,
    pub(super) instructs: Flag,
    pub(super) tool_notes: List<Note<'a>>,
    pub(super) replacement: Option<&'a RawValue>,
    pub(super) preserves_between: Flag,
    pub(super) keeps_prompts: Flag,
    pub(super) cuts: Option<&'a RawValue>,
}

/// The session that a line was copied from.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Origin<'a> {
    pub(super) session_id: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Place<'a> {
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) platform: Text<'a>,
    pub(super) user_type: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Spoken<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) model: Text<'a>,
    pub(super) tool_calls: List<Call<'a>>,
    pub(super) tool_results: List<Answer<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Call<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) partial: Flag,
    pub(super) approval: Object<Asked<'a>>,
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Asked<'a> {
    pub(super) id: Text<'a>,
    pub(super) approved: Option<&'a RawValue>,
    pub(super) reason: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Answer<'a> {
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_name: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) success: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) denied: Flag,
    pub(super) preliminary: Flag,
    pub(super) duration_ms: Count,
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Note<'a> {
    pub(super) tool_call_id: Text<'a>,
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
    pub(super) reasoning_tokens: Count,
    pub(super) cost_estimate: Amount,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Fragment {
    pub(super) part: Count,
}

/// The keys of the free map that say something to us.
pub(super) const FREE: [&str; 3] = ["error_type", "parentSessionId", "parentToolCallId"];

/// What we know of the free map.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Free<'a> {
    #[serde(rename = "error_type")]
    pub(super) error_type: Text<'a>,
    pub(super) parent_session_id: Text<'a>,
    pub(super) parent_tool_call_id: Text<'a>,
}

/// metadata.json, as Sage ships it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Sidecar<'a> {
    pub(super) id: Text<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) summary: Text<'a>,
    pub(super) working_directory: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) parent_session_id: Text<'a>,
}

impl Call<'_> {
    /// Whether its result stands with it.
    pub(super) fn is_settled(&self) -> bool {
        self.about.is_some_and(|about| about.get().contains("\"state\":\"output-"))
    }
}

impl<'a> Line<'a> {
    /// Whether it says nothing but its reaction.
    pub(super) fn only_reacts(&self) -> bool {
        let is_empty = |raw: Option<&RawValue>| raw.is_none_or(|raw| matches!(raw.get(), "null" | "\"\"" | "[]"));
        let wordless = match &self.message {
            ObjectOrText::Absent => true,
            ObjectOrText::Object(spoken) => is_empty(spoken.content),
            ObjectOrText::Text(text) => text.is_empty(),
        };
        let reacts = self.reaction.is_some_and(|reaction| reaction.get() != "null");
        reacts && wordless && is_empty(self.content) && is_empty(self.attachments)
    }

    /// What we know of the free map.
    pub(super) fn free(&self) -> Option<Free<'a>> {
        serde_json::from_str(self.metadata?.get()).ok()
    }

    /// What was said, where the line has it as an object.
    pub(super) fn spoken(&self) -> Option<&Spoken<'a>> {
        if let ObjectOrText::Object(spoken) = &self.message { Some(spoken) } else { None }
    }
}
