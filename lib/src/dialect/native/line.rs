//! The fields of a native line, everything that may be large left as text. Any field may be missing or of any shape.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::lenient::{Count, Flag, List, Moment, Object, ObjectOrText, Text};

/// A line, everything that may be large left as text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Moment<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(default)]
    pub(super) format: Count,
    #[serde(borrow, default)]
    pub(super) context: Object<Place<'a>>,
    #[serde(borrow, default)]
    pub(super) message: ObjectOrText<'a, Spoken<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_results: List<Answer<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
    #[serde(default)]
    pub(super) is_sidechain: Flag,
    #[serde(default)]
    pub(super) fragment: Object<Fragment>,
    #[serde(borrow, default)]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) forked_from: Object<Origin<'a>>,
    // Of plain messages.
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    // Of titles, summaries and compactions.
    #[serde(borrow, default)]
    pub(super) title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) custom_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) title_source: Text<'a>,
    #[serde(borrow, default)]
    pub(super) summary: Text<'a>,
    #[serde(borrow, default)]
    pub(super) trigger: Text<'a>,
    #[serde(default)]
    pub(super) tokens_before: Count,
    #[serde(default)]
    pub(super) tokens_after: Count,
    // Read only when somebody looks.
    #[serde(borrow, default)]
    pub(super) preserved: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) from: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) target: Text<'a>,
    #[serde(borrow, default)]
    pub(super) files: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) snapshot: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) todos: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) thinking_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) sender: Text<'a>,
    #[serde(borrow, default)]
    pub(super) attachments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reaction: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) to_model: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) instructs: Flag,
    #[serde(borrow, default)]
    pub(super) tool_notes: List<Note<'a>>,
    #[serde(borrow, default)]
    pub(super) replacement: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) preserves_between: Flag,
    #[serde(default)]
    pub(super) keeps_prompts: Flag,
    #[serde(borrow, default)]
    pub(super) cuts: Option<&'a RawValue>,
}

/// The session that a line was copied from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin<'a> {
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Place<'a> {
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) platform: Text<'a>,
    #[serde(borrow, default)]
    pub(super) user_type: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spoken<'a> {
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: List<Call<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_results: List<Answer<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) partial: Flag,
    #[serde(borrow, default)]
    pub(super) approval: Object<Asked<'a>>,
    #[serde(borrow, default)]
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Asked<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) approved: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) denied: Flag,
    #[serde(default)]
    pub(super) preliminary: Flag,
    #[serde(default)]
    pub(super) duration_ms: Count,
    #[serde(borrow, default)]
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Note<'a> {
    #[serde(borrow, default)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) about: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens: Count,
    #[serde(default)]
    pub(super) cache_read_tokens: Count,
    #[serde(default)]
    pub(super) cache_write_tokens: Count,
    #[serde(default)]
    pub(super) reasoning_tokens: Count,
}

#[derive(Deserialize)]
pub(super) struct Fragment {
    #[serde(default)]
    pub(super) part: Count,
}

/// The keys of the free map that say something to us.
pub(super) const FREE: [&str; 3] = ["error_type", "parentSessionId", "parentToolCallId"];

/// What we know of the free map.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Free<'a> {
    #[serde(borrow, default, rename = "error_type")]
    pub(super) error_type: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_tool_call_id: Text<'a>,
}

/// metadata.json, as Sage ships it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sidecar<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) custom_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) summary: Text<'a>,
    #[serde(borrow, default)]
    pub(super) working_directory: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(borrow, default)]
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
