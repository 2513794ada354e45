//! The fields of a line that the tree must know, everything that may be large left as text.
//! Any field may be missing or of any shape.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::lenient::{Count, Moment, Object, Text};
use crate::model::record::Usage;

/// The envelope.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub(super) timestamp: Moment<'a>,
    #[serde(default)]
    pub(super) ordinal: Count,
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) payload: Object<Payload<'a>>,
    // Of the oldest files, which have no envelope.
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) record_type: Text<'a>,
    #[serde(default)]
    pub(super) instructions: Present,
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
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
pub(super) struct Payload<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    // Of items.
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default, rename = "internal_chat_message_metadata_passthrough")]
    pub(super) passthrough: Object<Passthrough<'a>>,
    // Of the header and of turns.
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cli_version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git: Object<Git<'a>>,
    #[serde(borrow, default)]
    pub(super) source: Object<Source<'a>>,
    #[serde(borrow, default)]
    pub(super) parent_thread_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) forked_from_id: Text<'a>,
    #[serde(default)]
    pub(super) forked_from_ordinal_exclusive: Count,
    #[serde(borrow, default)]
    pub(super) history_base: Object<HistoryBase<'a>>,
    // Of events and of usage.
    #[serde(default)]
    pub(super) num_turns: Count,
    #[serde(borrow, default)]
    pub(super) thread_name: Text<'a>,
    #[serde(default)]
    pub(super) info: Object<Info>,
    #[serde(borrow, default)]
    pub(super) turn_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) response_id: Text<'a>,
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
}

/// What Codex says about the pieces of a message.
#[derive(Deserialize)]
pub(super) struct Passthrough<'a> {
    #[serde(borrow, default)]
    pub(super) content_item_kinds: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Git<'a> {
    #[serde(borrow, default)]
    pub(super) branch: Text<'a>,
}

/// Who started the session: a word, or the agent that spawned this one.
#[derive(Deserialize)]
pub(super) struct Source<'a> {
    #[serde(borrow, default)]
    pub(super) subagent: Object<Subagent<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Subagent<'a> {
    #[serde(borrow, default)]
    pub(super) thread_spawn: Object<ThreadSpawn<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ThreadSpawn<'a> {
    #[serde(borrow, default)]
    pub(super) parent_thread_id: Text<'a>,
}

/// Where a fork by reference begins. Its byte offset is not read: a parent may be rewritten, its ordinals stay.
#[derive(Deserialize, Default)]
pub(super) struct HistoryBase<'a> {
    #[serde(borrow, default)]
    pub(super) thread_id: Text<'a>,
    #[serde(default)]
    pub(super) end_ordinal_exclusive: Count,
}

#[derive(Deserialize, Default)]
pub(super) struct Info {
    #[serde(default)]
    pub(super) total_token_usage: Object<Tokens>,
    #[serde(default)]
    pub(super) last_token_usage: Object<Tokens>,
}

/// Tokens as OpenAI counts them: the cached ones are part of the input.
#[derive(Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    cached_input_tokens: Count,
    #[serde(default)]
    cache_write_input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
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
