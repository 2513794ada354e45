//! What a request to a model cost: tokens, and money where the agent records it.

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

/// What something cost, as the agent recorded or estimated it. Kept as a whole number so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost {
    nano_usd: u64,
}

const NANOS_PER_USD: f64 = 1e9;

/// A recorded cost of more dollars is not believed: a thousand million tokens at a hundred dollars a million cost as much.
const ABSURD_USD: f64 = 100_000.0;

impl Cost {
    /// A cost that an agent recorded; `None` if it cannot be true.
    pub(crate) fn recorded(usd: f64) -> Option<Cost> {
        (0.0..=ABSURD_USD).contains(&usd).then(|| Cost::from_usd(usd))
    }

    /// An amount of US dollars. Below zero it is zero.
    pub fn from_usd(usd: f64) -> Cost {
        Cost { nano_usd: (usd * NANOS_PER_USD).round() as u64 }
    }

    /// The amount in US dollars.
    pub fn to_usd(self) -> f64 {
        self.nano_usd as f64 / NANOS_PER_USD
    }

    /// The amount as it is stored: in thousand millionths of a dollar.
    pub(crate) fn nano_usd(self) -> u64 {
        self.nano_usd
    }

    /// The amount that was stored.
    pub(crate) fn from_nano_usd(nano_usd: u64) -> Cost {
        Cost { nano_usd }
    }

    /// A share of it: `part` of `whole`.
    pub(crate) fn share(self, part: u128, whole: u128) -> Cost {
        let nano_usd = (u128::from(self.nano_usd) * part).checked_div(whole).unwrap_or(0);
        Cost { nano_usd: u64::try_from(nano_usd).unwrap_or(u64::MAX) }
    }

    /// What is left of it without another cost.
    pub(crate) fn without(self, other: Cost) -> Cost {
        Cost { nano_usd: self.nano_usd.saturating_sub(other.nano_usd) }
    }

    /// Adds another cost. A hostile file cannot make it overflow.
    pub fn add(&mut self, other: Cost) {
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
    }
}

impl Usage {
    /// The usage, unless nothing is known of it.
    pub(crate) fn known(self) -> Option<Usage> {
        (self != Usage::default()).then_some(self)
    }

    /// What was added since an earlier count; `None` if this one does not continue it.
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

    /// The sum of some usages; `None` if there are none.
    pub fn sum(usages: impl Iterator<Item = Usage>) -> Option<Usage> {
        usages.reduce(|mut sum, usage| {
            sum.add(usage);
            sum
        })
    }

    /// All tokens: sent, received and cached; `None` if no count is known.
    pub fn total(self) -> Option<u64> {
        let counts = [self.input, self.output, self.cache_read, self.cache_write];
        counts.into_iter().flatten().reduce(u64::saturating_add)
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
