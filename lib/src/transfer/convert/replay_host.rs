//! The clock and the ids of a replay: the source's own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashSet;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::host::Host;
use crate::model::record::SessionId;
use crate::session::RecordRef;
use crate::write::store::Store;

/// The clock and the ids for the recorder.
#[derive(Clone)]
pub(super) struct ReplayHost(Arc<Mutex<Current>>);

/// What the recorder writes now.
struct Current {
    at: Timestamp,
    /// The source's own id, for the first new one.
    id: Option<String>,
    /// Further ids are derived from this.
    of: String,
    made: u64,
    /// Ids that are taken.
    given: HashSet<String>,
    to: &'static str,
    takes_any_id: bool,
}

impl ReplayHost {
    /// For a session that starts at an instant.
    pub(super) fn new(store: &Store, session: &SessionId, at: Timestamp) -> ReplayHost {
        let (to, takes_any_id) = (store.dialect.name(), store.writing.takes_any_id);
        let current =
            Current { at, id: None, of: session.to_string(), made: 0, given: HashSet::new(), to, takes_any_id };
        ReplayHost(Arc::new(Mutex::new(current)))
    }

    /// A host with this clock and these ids.
    pub(super) fn host(&self, host: &Host) -> Host {
        let (clock, ids) = (self.clone(), self.clone());
        Host { now: Arc::new(move || clock.now()), new_id: Arc::new(move || ids.next_id()), ..host.clone() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.current().at
    }

    /// The next record is this one of the source, or an answer from it to `last`.
    pub(super) fn turn_to(&self, first: RecordRef<'_>, last: RecordRef<'_>) {
        self.add_to(first, last);
        let mut current = self.current();
        let is_free = current.takes_any_id || uuid::Uuid::try_parse(&first.id()).is_ok();
        let is_made_up = first.id() == first.place().name() || first.id().contains('~');
        current.id = Some(first.id().into_owned()).filter(|_| is_free && !is_made_up);
    }

    /// The next record is not in the source, and belongs to this one.
    pub(super) fn add_to(&self, first: RecordRef<'_>, last: RecordRef<'_>) {
        let mut current = self.current();
        current.at = first.at().unwrap_or(current.at);
        current.of = format!("{}#{}", first.session.id(), last.id());
        (current.made, current.id) = (0, None);
    }

    /// Adds ids that are taken.
    pub(super) fn add_facts(&self, ids: impl Iterator<Item = String>) {
        self.current().given.extend(ids);
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_id(&self) -> String {
        let mut current = self.current();
        loop {
            current.made += 1;
            let derived = derived_id(&format!("{}#{}", current.of, current.made), current.to).0;
            let id = current.id.take().unwrap_or(derived);
            if current.given.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// A new id for a session or a record: always the same for the same source.
pub(super) fn derived_id(of: &str, to: &str) -> SessionId {
    // Version 5 is for ids that are derived from names. Qwen Code accepts no newer ones.
    let hash = xxh3_128(format!("{to}\0{of}").as_bytes());
    SessionId(uuid::Builder::from_sha1_bytes(hash.to_be_bytes()).into_uuid().to_string())
}
