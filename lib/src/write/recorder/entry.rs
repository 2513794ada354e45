//! What a recording call returns, how safe its record is, and the options of a recorder.

use std::sync::Arc;

use serde::Serialize;

use crate::model::loss::Losses;
use crate::model::record::{Body, Kind, RecordId};
use crate::model::thinking::Triggers;
use crate::redact::Redactor;

/// How a recorder works. [`Options::usual`] suits most agents.
#[derive(Debug, Clone)]
pub struct Options {
    /// How safe records are; `None` decides by kind, see [`Durability::of`].
    pub durability: Option<Durability>,
    /// Words in a prompt that set its thinking mode.
    pub triggers: Triggers,
    /// Removes secrets before anything is written; `None` records everything as it is.
    pub redactor: Option<Arc<Redactor>>,
    /// The kind of user of new records, such as `external`. Formats without such a field do not store it: see
    /// [`crate::dialect::Writer::has_user_type`].
    pub user_type: Option<String>,
}

impl Options {
    /// Durability by kind, no trigger words, and the built-in rules for secrets, whose placeholders have no hash.
    pub fn usual() -> Options {
        Options { redactor: Some(Arc::new(Redactor::built_in())), ..Options::unredacted() }
    }

    /// The same, but secrets are recorded, too.
    pub fn unredacted() -> Options {
        Options { durability: None, triggers: Triggers::default(), redactor: None, user_type: None }
    }
}

/// What a record survives once the call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The death of the process.
    Flush,
    /// The death of the machine.
    Sync,
}

impl Durability {
    /// The default for a record.
    pub fn of(body: &Body) -> Durability {
        let is_synced = match body {
            // The last record of a turn: without a tool call, nothing follows.
            Body::Assistant(content) => content.open_calls().next().is_none(),
            body => {
                let kinds = [Kind::User, Kind::Title, Kind::Compaction, Kind::Rewind, Kind::Restore, Kind::Snapshot];
                kinds.contains(&body.kind())
            }
        };
        if is_synced { Durability::Sync } else { Durability::Flush }
    }
}

/// One call that recorded something.
///
/// The entries of a recorder are counted from 1, so that one number says what is on disk: everything up to
/// [`super::Recorder::saved_through`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// Its number; 0 if the call had nothing to record, or the recorder is disabled.
    pub number: u64,
    /// Its record; `None` while the format needs more of the answer or of the turn before it can write a line.
    pub saved: Option<Saved>,
}

impl Entry {
    /// The id of its record, once it is on disk.
    pub fn id(&self) -> Option<&RecordId> {
        self.saved.as_ref().map(|saved| &saved.id)
    }
}

/// A record on disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// The record.
    pub id: RecordId,
    /// What it survives.
    pub durability: Durability,
    /// What the format could not store of it.
    pub losses: Losses,
}

/// What became of one entry. See [`super::Recorder::reports`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The number of the entry.
    pub entry: u64,
    /// Its record, or why the format cannot store it.
    pub result: Result<Saved, String>,
}
