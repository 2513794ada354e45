//! The fields of a Qwen Code record that its link needs. Any field may be missing or of any shape.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::lenient::{Count, Flag, List, Moment, Object, ObjectOrText, Text};
use crate::model::record::Usage;

/// A record. What only a body needs is skipped unread.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) subtype: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Option<&'a RawValue>,
    pub(super) session_id: Text<'a>,
    pub(super) timestamp: Moment<'a>,
    pub(super) provenance: Text<'a>,
    pub(super) external_input_kind: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) agent_id: Text<'a>,
    pub(super) is_sidechain: Flag,
    pub(super) forked_from: Object<Origin<'a>>,
    pub(super) message: ObjectOrText<'a, Content<'a>>,
    /// Thoughts beside the message, as the design has them.
    pub(super) thoughts: Option<&'a RawValue>,
    /// The design's name for the tokens.
    pub(super) tokens: Object<Tokens>,
    pub(super) usage_metadata: Object<Tokens>,
    pub(super) tool_call_result: Object<Run<'a>>,
    pub(super) tool_calls_metadata: List<Run<'a>>,
    pub(super) system_payload: Object<Payload<'a>>,
}

/// Where a fork copied a record from.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Origin<'a> {
    pub(super) session_id: Text<'a>,
}

/// The API's `Content`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Content<'a> {
    pub(super) role: Text<'a>,
    pub(super) parts: List<Part<'a>>,
}

/// What ties a part to others.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Part<'a> {
    pub(super) function_call: Object<Function<'a>>,
    pub(super) function_response: Object<Function<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Function<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
}

/// What the agent noted of a run of a tool, beside what the model was told.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Run<'a> {
    pub(super) call_id: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
}

impl<'a> Run<'a> {
    /// The call that it is about.
    pub(super) fn call(&self) -> Option<Cow<'a, str>> {
        let own = self.call_id.clone().some().or_else(|| self.id.clone().some());
        own.or_else(|| self.name.clone().some())
    }
}

/// What a link needs of `systemPayload`: each subtype has its own.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Payload<'a> {
    pub(super) custom_title: Text<'a>,
    pub(super) title_source: Text<'a>,
    pub(super) parent_session_id: Text<'a>,
    /// Of an `at_command`.
    pub(super) message: Text<'a>,
    /// Of a `turn_result`.
    pub(super) state: Text<'a>,
}

/// Tokens of one request, in the API's words and in the design's. A record may have both.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    prompt_token_count: Count,
    input: Count,
    candidates_token_count: Count,
    output: Count,
    cached_content_token_count: Count,
    cached: Count,
    thoughts_token_count: Count,
    thoughts: Count,
    total_token_count: Count,
    total: Count,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let sent = self.prompt_token_count.0.or(self.input.0);
        let received = self.candidates_token_count.0.or(self.output.0);
        let cached = self.cached_content_token_count.0.or(self.cached.0);
        let reasoning = self.thoughts_token_count.0.or(self.thoughts.0);
        let total = self.total_token_count.0.or(self.total.0);
        // Gemini counts thoughts beside the answer, every other model as a part of it: the sum tells.
        let with_thoughts = received.unwrap_or(0).saturating_add(reasoning.unwrap_or(0));
        let apart = total == Some(sent.unwrap_or(0).saturating_add(with_thoughts));
        Usage {
            input: sent.map(|sent| sent.saturating_sub(cached.unwrap_or(0))),
            output: if apart { Some(with_thoughts) } else { received },
            cache_read: cached,
            cache_write: None,
            reasoning,
        }
    }
}

impl Line<'_> {
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage_metadata.0.as_ref().or(self.tokens.0.as_ref()).map(Tokens::usage)
    }
}

/// `agent-<id>.meta.json`, beside a sub-agent's file.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Meta<'a> {
    pub(super) description: Text<'a>,
    pub(super) parent_session_id: Text<'a>,
    pub(super) tool_use_id: Text<'a>,
    pub(super) model: Text<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_a_part_of_the_output_whoever_counts() {
        for (tokens, output, reasoning) in [
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":15}"#,
                5,
                Some(2),
            ),
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":17}"#,
                7,
                Some(2),
            ),
            (r#"{"input":10,"output":5,"total":15}"#, 5, None),
            (r#"{"input":1,"promptTokenCount":10,"output":5,"candidatesTokenCount":5}"#, 5, None),
            (r#"{"input":10,"output":5,"thoughts":2}"#, 5, Some(2)),
        ] {
            let usage = serde_json::from_str::<Tokens>(tokens).unwrap().usage();
            assert_eq!((usage.output, usage.reasoning), (Some(output), reasoning), "{tokens}");
        }
    }

    #[test]
    fn what_a_cache_held_is_no_input() {
        let usage = |tokens| serde_json::from_str::<Tokens>(tokens).unwrap().usage();
        let cached = usage(r#"{"promptTokenCount":10,"cachedContentTokenCount":4}"#);
        assert_eq!((cached.input, cached.cache_read), (Some(6), Some(4)));
        assert_eq!(usage(r#"{"input":3,"cached":9,"output":"many"}"#).input, Some(0));
        assert_eq!(usage("{}"), Usage::default());
    }
}
