//! What a request to a model cost, in tokens.

use serde::{Deserialize, Serialize};

/// Tokens of one request: `input` is what was not cached, `output` includes `reasoning`. What is absent is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens sent that no cache held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens received, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens sent that a cache held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens put into a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Of `output`: tokens of reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// What was added since an earlier count; `None` when this one does not go on from it.
    pub fn since(self, before: Usage) -> Option<Usage> {
        let since = |now: Option<u64>, before: Option<u64>| match (now, before.unwrap_or(0)) {
            (Some(now), before) => now.checked_sub(before).map(Some),
            (None, 0) => Some(None),
            (None, _) => None,
        };
        Some(Usage {
            input: since(self.input, before.input)?,
            output: since(self.output, before.output)?,
            cache_read: since(self.cache_read, before.cache_read)?,
            cache_write: since(self.cache_write, before.cache_write)?,
            reasoning: since(self.reasoning, before.reasoning)?,
        })
    }

    /// Adds another request's tokens. A hostile file cannot make it overflow.
    pub fn add(&mut self, other: Usage) {
        let sum = |known: &mut Option<u64>, more: Option<u64>| {
            *known = match (*known, more) {
                (Some(known), Some(more)) => Some(known.saturating_add(more)),
                (known, more) => known.or(more),
            };
        };
        sum(&mut self.input, other.input);
        sum(&mut self.output, other.output);
        sum(&mut self.cache_read, other.cache_read);
        sum(&mut self.cache_write, other.cache_write);
        sum(&mut self.reasoning, other.reasoning);
    }
}
