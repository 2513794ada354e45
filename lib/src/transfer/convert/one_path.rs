//! What stands between an answer and what is said next, put on one path: results of parallel calls, and context between them.
//!
//! ```text
//! source   a ─┬─ r1            written   a ── r1 ── r2 ── b
//!             └─ r2 ── b
//! ```
//!
//! Some agents hang each result on its own call. Others send only what lies on the one path to the head: they would tell
//! their model that a result is missing.

use hashbrown::HashMap;

use crate::model::record::{Kind, RecordId};
use crate::write::recorder::ParentRecord;

/// What was written behind answers so far.
#[derive(Default)]
pub(super) struct OnePath {
    /// The last record of each path, by its answer.
    ends: HashMap<RecordId, ParentRecord>,
    /// The answers that records of a path lie behind.
    answer_of: HashMap<RecordId, RecordId>,
}

impl OnePath {
    /// Where a record goes that hangs on `tip`: behind all that answers the same calls.
    pub(super) fn end(&self, tip: ParentRecord, kind: Kind) -> ParentRecord {
        let answer = match self.answer_of.get(&tip.id) {
            Some(answer) => Some(answer),
            None => is_between(kind).then_some(&tip.id),
        };
        answer.and_then(|answer| self.ends.get(answer)).cloned().unwrap_or(tip)
    }

    /// Notes what was written behind `tip`.
    pub(super) fn add(&mut self, tip: &ParentRecord, kind: Kind, written: &ParentRecord) {
        let begins = (tip.kind == Kind::Assistant).then_some(&tip.id);
        let Some(answer) = self.answer_of.get(&tip.id).or(begins).cloned().filter(|_| is_between(kind)) else { return };
        self.answer_of.insert(written.id.clone(), answer.clone());
        self.ends.insert(answer, written.clone());
    }
}

fn is_between(kind: Kind) -> bool {
    match kind {
        Kind::ToolResult | Kind::Attachment => true,
        Kind::User
        | Kind::Assistant
        | Kind::System
        | Kind::Snapshot
        | Kind::Title
        | Kind::Compaction
        | Kind::Rewind
        | Kind::Restore
        | Kind::Header
        | Kind::Other => false,
    }
}
