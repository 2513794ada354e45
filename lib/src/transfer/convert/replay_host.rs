//! The clock and the ids that a recorder is given when it says a session again: the source's own.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashSet;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::host::Host;
use crate::model::record::SessionId;
use crate::session::RecordRef;
use crate::write::store::Store;

/// What the recorder is told when it asks for the time and for ids.
#[derive(Clone)]
pub(super) struct ReplayHost(Arc<Mutex<Lines>>);

struct Lines {
    at: Timestamp,
    /// The source's own id, for the first that is asked for.
    id: Option<String>,
    /// Makes the further ones.
    of: String,
    made: u64,
    /// No two records have the same.
    given: HashSet<String>,
    to: &'static str,
    takes_any_id: bool,
}

impl ReplayHost {
    /// For a session of a store, which begins at an instant.
    pub(super) fn new(store: &Store, session: &SessionId, at: Timestamp) -> ReplayHost {
        let (to, takes_any_id) = (store.dialect.name(), store.writing.takes_any_id);
        let lines = Lines { at, id: None, of: session.to_string(), made: 0, given: HashSet::new(), to, takes_any_id };
        ReplayHost(Arc::new(Mutex::new(lines)))
    }

    /// A host that follows it.
    pub(super) fn host(&self, host: &Host) -> Host {
        let (clock, ids) = (self.clone(), self.clone());
        Host { now: Arc::new(move || clock.now()), new_id: Arc::new(move || ids.next_id()), ..host.clone() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at
    }

    /// What follows is this record of the source, or an answer that begins with it and ends with `last`.
    pub(super) fn turn_to(&self, first: RecordRef<'_>, last: RecordRef<'_>) {
        self.add_to(first, last);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = lines.takes_any_id || uuid::Uuid::try_parse(&first.id()).is_ok();
        let is_made_up = first.id() == first.place().name() || first.id().contains('~');
        lines.id = Some(first.id().into_owned()).filter(|_| is_free && !is_made_up);
    }

    /// What follows was never said, and belongs to this record.
    pub(super) fn add_to(&self, first: RecordRef<'_>, last: RecordRef<'_>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.at = first.at().unwrap_or(lines.at);
        lines.of = format!("{}#{}", first.session.id(), last.id());
        (lines.made, lines.id) = (0, None);
    }

    /// Records are called so already.
    pub(super) fn know(&self, ids: impl Iterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given.extend(ids);
    }

    fn next_id(&self) -> String {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            lines.made += 1;
            let derived = derived_id(&format!("{}#{}", lines.of, lines.made), lines.to).0;
            let id = lines.id.take().unwrap_or(derived);
            if lines.given.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// An id for a session or a record that another format asks for: always the same for the same source, and nobody else's.
pub(super) fn derived_id(of: &str, to: &str) -> SessionId {
    // Version 5 is an id made of a name: Qwen Code opens no newer ones.
    let hash = xxh3_128(format!("{to}\0{of}").as_bytes());
    SessionId(uuid::Builder::from_sha1_bytes(hash.to_be_bytes()).into_uuid().to_string())
}
