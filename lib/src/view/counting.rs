//! Counting over many sessions: tokens, money, turns, tool calls and time, each fact once.
//!
//! ```text
//! session ──▶ SessionCounts ──▶ elected ──▶ Stats
//!             (collect.rs)      (elect.rs)  (stats.rs)
//! ```
//!
//! [`SessionCounts`] is what one session can add, small enough to be stored for thousands of sessions. A fork, a resumed copy and a
//! sub-agent repeat facts of other sessions, so facts are counted only over all sessions: of the same facts, one is elected.

mod collect;
mod elect;
mod level;
mod packed;
mod stats;
mod trace;
mod twins;

#[cfg(test)]
mod tests;

pub use elect::{Elected, Reason};
pub use level::Level;
pub use stats::{Block, BlockLeft, Stats, StatsQuery, StatsRow, blocks, stats};
pub use trace::{RequestTrace, traces, unread_usages};

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::model::record::{Cost, SessionId, Usage};
use crate::view::answers::SessionRow;

/// More tokens in one request are not believed: no model takes a thousandth of it.
pub const ABSURD_TOKENS: u64 = 1_000_000_000;

/// A longer pause is not active time.
pub const PAUSE_LIMIT_MS: i64 = 5 * 60 * 1000;

/// What a session can add to a count. Names are numbers in `models` and `tools`; texts are not kept. A count looks at a hundred thousands
/// of facts, so they are small, and own no memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionCounts {
    /// The models that its facts name.
    pub models: Vec<String>,
    /// The tools that it called.
    pub tools: Vec<String>,
    /// The sessions that it repeats records of, by its own account.
    pub origins: Vec<Origin>,
    /// The sessions whose beginning it may repeat without marks and with other times: those that its headers name.
    pub replays: Vec<SessionId>,
    /// Its requests, in file order.
    pub requests: Vec<RequestFact>,
    /// What happened in it, in file order.
    pub events: Vec<EventFact>,
    /// The hashes of the paths that its calls changed.
    pub files: Vec<u64>,
}

/// A session that another one was made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Its dialect; `None` is that of the copy.
    pub dialect: Option<String>,
    /// Its id.
    pub session: SessionId,
}

/// One request to a model, however many records repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFact {
    /// The same for copies of the request in other sessions.
    pub id: u64,
    /// When its first record was written, in microseconds.
    pub at: Option<i64>,
    /// The number of its model.
    pub model: Option<u16>,
    /// The number of the session that it was copied from, if the record says so.
    pub origin: Option<u8>,
    /// What is believed of its tokens.
    pub tokens: Tokens,
    /// What it cost.
    pub cost: RequestCost,
    /// The line that the tokens are from.
    pub line: u32,
    /// The record that they are from, by its number in file order.
    pub record: u32,
    /// How many of its counts were not believed.
    pub absurd: u8,
    /// How many events come before it.
    pub events_before: u32,
}

/// The tokens of a request, each [`ABSURD_TOKENS`] at most, or not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens([u32; 5]);

/// What a request cost, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestCost {
    /// Nobody does.
    Unknown,
    /// The agent recorded it.
    Recorded(Cost),
    /// A list of prices has it.
    Listed(Cost),
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFact {
    /// What it was, by hash: the same for copies of it in other sessions.
    pub content: u64,
    /// When, in microseconds.
    pub at: Option<i64>,
    /// The number of the model that answered.
    pub model: Option<u16>,
    /// The number of the session that it was copied from, if the record says so.
    pub origin: Option<u8>,
    /// Active time from the event before it.
    pub active_ms: u32,
    /// What it was.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A prompt.
    Prompt {
        /// A person's turn begins with it; those of sub-agents are messages only.
        is_turn: bool,
        /// The turn ended with an answer.
        is_clean: bool,
        /// The model thought in it.
        has_thinking: bool,
    },
    /// One answer of the model, whatever its number of records.
    Answer {
        /// Characters of text.
        text_chars: u32,
        /// Characters of reasoning.
        thinking_chars: u32,
    },
    /// A tool call.
    Call {
        /// The number of the tool.
        tool: u16,
        /// It failed or was refused.
        has_failed: bool,
        /// The same call failed earlier in the turn.
        is_retry: bool,
        /// How long it took.
        duration_ms: Option<u64>,
        /// The paths that it changed, by their numbers in [`SessionCounts::files`].
        files: Range<u32>,
    },
    /// A compaction.
    Compaction,
}

/// A session with what it can add: what [`stats`] counts.
#[derive(Debug, Clone)]
pub struct CountedSession {
    /// The session.
    pub row: Box<SessionRow>,
    /// What it can add.
    pub counts: SessionCounts,
    /// Whether it is asked for. One that is not can still have the elected occurrence of a fact.
    pub is_in_scope: bool,
}

impl SessionCounts {
    /// The hashes of the paths that a call changed.
    pub(crate) fn paths(&self, files: &Range<u32>) -> &[u64] {
        self.files.get(files.start as usize..files.end as usize).unwrap_or(&[])
    }
}

impl RequestFact {
    /// Its tokens.
    pub fn usage(&self) -> Usage {
        let [input, output, cache_read, cache_write, reasoning] = self.tokens.counts();
        Usage { input, output, cache_read, cache_write, reasoning }
    }
}

impl Tokens {
    /// What stands for a count that is not known: more than is believed.
    const UNKNOWN: u32 = u32::MAX;

    /// Input, output, read from a cache, written to a cache, reasoning. What is not believed is not known.
    pub(crate) fn new(counts: [Option<u64>; 5]) -> Tokens {
        let believed = |count: Option<u64>| count.filter(|count| *count <= ABSURD_TOKENS).map(|count| count as u32);
        Tokens(counts.map(|count| believed(count).unwrap_or(Tokens::UNKNOWN)))
    }

    /// The same five.
    pub(crate) fn counts(self) -> [Option<u64>; 5] {
        self.0.map(|count| (count != Tokens::UNKNOWN).then_some(u64::from(count)))
    }
}

impl RequestCost {
    /// The cost, whoever says so.
    pub fn known(self) -> Option<Cost> {
        match self {
            RequestCost::Unknown => None,
            RequestCost::Recorded(cost) | RequestCost::Listed(cost) => Some(cost),
        }
    }
}

impl EventFact {
    /// The same for copies of it, which repeat its time. Without a time, nothing shows that something is a copy.
    pub(crate) fn id(&self) -> Option<u64> {
        Some(xxh3_64([self.at?.to_le_bytes(), self.content.to_le_bytes()].as_flattened()))
    }
}
