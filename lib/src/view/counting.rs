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
mod stats;
mod trace;
mod twins;

#[cfg(test)]
mod tests;

pub use elect::{Elected, Reason};
pub use level::Level;
pub use stats::{Block, BlockLeft, Stats, StatsQuery, StatsRow, blocks, stats};
pub use trace::{RequestTrace, traces, unread_usages};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::model::record::{Cost, SessionId, Usage};
use crate::view::answers::SessionRow;

/// More tokens in one request are not believed: no model takes a thousandth of it.
pub const ABSURD_TOKENS: u64 = 1_000_000_000;

/// A longer pause is not active time.
pub const PAUSE_LIMIT_MS: i64 = 5 * 60 * 1000;

/// What a session can add to a count. Names are numbers in `models` and `tools`; texts are not kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
}

/// A session that another one was made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Its dialect; `None` is that of the copy.
    pub dialect: Option<String>,
    /// Its id.
    pub session: SessionId,
}

/// One request to a model, however many records repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestFact {
    /// The same for copies of the request in other sessions.
    pub id: u64,
    /// When its first record was written, in microseconds.
    pub at: Option<i64>,
    /// The number of its model.
    pub model: Option<u16>,
    /// The number of the session that it was copied from, if the record says so.
    pub origin: Option<u8>,
    /// Input, output, read from a cache, written to a cache, reasoning.
    pub tokens: [Option<u64>; 5],
    /// What it cost by the agent's own account.
    pub recorded_cost: Option<Cost>,
    /// What it cost by a list of prices.
    pub listed_cost: Option<Cost>,
    /// The line that the tokens are from.
    pub line: u32,
    /// The record that they are from, by its number in file order.
    pub record: u32,
    /// How many of its counts were not believed.
    pub absurd: u8,
    /// How many events come before it.
    pub events_before: u32,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
        /// The hashes of the paths that it changed.
        files: Vec<u64>,
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

impl RequestFact {
    /// Its tokens.
    pub fn usage(&self) -> Usage {
        let [input, output, cache_read, cache_write, reasoning] = self.tokens;
        Usage { input, output, cache_read, cache_write, reasoning }
    }
}

impl EventFact {
    /// The same for copies of it, which repeat its time. Without a time, nothing shows that something is a copy.
    pub(crate) fn id(&self) -> Option<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.at?.to_le_bytes());
        hash.update(&self.content.to_le_bytes());
        Some(hash.digest())
    }
}
