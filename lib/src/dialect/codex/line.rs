//! The fields of a line that the tree must know, everything that may be large left as text.
//! Any field may be missing or of any shape.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::lenient::{Count, Moment, Object, Text};
use crate::model::record::Usage;

/// The envelope.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    pub(super) timestamp: Moment<'a>,
    pub(super) ordinal: Count,
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) payload: Object<Payload<'a>>,
    // Of the oldest files, which have no envelope.
    pub(super) id: Text<'a>,
    pub(super) record_type: Text<'a>,
    pub(super) instructions: Present,
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
}

/// Whether a field is there, if only as null.
#[derive(Default)]
pub(super) struct Present(pub(super) bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Present(true))
    }
}

/// What is in it, whatever the type.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Payload<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) id: Text<'a>,
    // Of items.
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) call_id: Text<'a>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    pub(super) passthrough: Object<Passthrough<'a>>,
    // Of the header and of turns.
    pub(super) cwd: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) cli_version: Text<'a>,
    pub(super) git: Object<Git<'a>>,
    pub(super) source: Object<Source<'a>>,
    pub(super) parent_thread_id: Text<'a>,
    pub(super) forked_from_id: Text<'a>,
    pub(super) forked_from_ordinal_exclusive: Count,
    pub(super) history_base: Object<HistoryBase<'a>>,
    // Of events and of usage.
    pub(super) num_turns: Count,
    pub(super) thread_name: Text<'a>,
    pub(super) info: Object<Info>,
    pub(super) turn_id: Text<'a>,
    pub(super) response_id: Text<'a>,
    pub(super) usage: Object<Tokens>,
}

/// What Codex says about the pieces of a message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Passthrough<'a> {
    pub(super) content_item_kinds: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Git<'a> {
    pub(super) branch: Text<'a>,
}

/// Who started the session: a word, or the agent that spawned this one.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Source<'a> {
    pub(super) subagent: Object<Subagent<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Subagent<'a> {
    pub(super) thread_spawn: Object<ThreadSpawn<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ThreadSpawn<'a> {
    pub(super) parent_thread_id: Text<'a>,
}

/// Where a fork by reference begins. Its byte offset is not read: a parent may be rewritten, its ordinals stay.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct HistoryBase<'a> {
    pub(super) thread_id: Text<'a>,
    pub(super) end_ordinal_exclusive: Count,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Info {
    pub(super) total_token_usage: Object<Tokens>,
    pub(super) last_token_usage: Object<Tokens>,
}

/// Tokens as OpenAI counts them: the cached ones are part of the input.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Tokens {
    input_tokens: Count,
    cached_input_tokens: Count,
    cache_write_input_tokens: Count,
    output_tokens: Count,
    reasoning_output_tokens: Count,
}

impl Tokens {
    pub(super) fn usage(&self) -> Usage {
        let cached = [self.cached_input_tokens, self.cache_write_input_tokens].map(|count| count.0.unwrap_or(0));
        let uncached = |input: u64| cached.iter().fold(input, |input, cached| input.saturating_sub(*cached));
        Usage {
            input: self.input_tokens.0.map(uncached),
            output: self.output_tokens.0,
            cache_read: self.cached_input_tokens.0,
            cache_write: self.cache_write_input_tokens.0,
            reasoning: self.reasoning_output_tokens.0,
        }
    }
}
