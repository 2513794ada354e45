//! Notes what was restored: in the session itself, or in our journal.

use serde_json::Value;

use super::pending::Pending;
use super::{Undo, journal};
use crate::dialect;
use crate::model::error::{Error, Result};
use crate::model::record::{Body, Kind, RecordId, Restore};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::write::recorder::{Recorder, Warning};
use crate::write::store::Store;

impl Undo<'_> {
    pub(super) fn record(&self, pending: &Pending) -> Result<(RecordId, Vec<Warning>)> {
        self.record_for(self.session, pending)
    }

    fn record_for(&self, session: &Session, pending: &Pending) -> Result<(RecordId, Vec<Warning>)> {
        if !journal::is_ours(session) {
            let entry = journal::entry(&pending.restore).ok_or(Error::NotReady)?;
            journal::append(&self.disk, session, &self.store, &entry)?;
            return Ok((entry.id, Vec::new()));
        }
        let source = &session.source;
        let store = Store::on(self.disk.clone(), source.dialect, &self.store, self.host.clone())?;
        let mut recorder = store.resume_source(source, None)?;
        let record = record_in(&mut recorder, pending)?;
        recorder.close()?;
        Ok((record, recorder.warnings()))
    }

    /// Notes an operation that was interrupted, in its own session, unless that is done already.
    pub(super) fn record_again(&self, pending: &Pending) -> Result<()> {
        if self.is_recorded(pending)? {
            return Ok(());
        }
        let session = self.session_of(pending)?;
        let left = pending.restore.get("from").and_then(Value::as_str);
        // A conversation that went on since the crash stays where it is.
        let is_there = session.head().is_some_and(|head| Some(&*head.id()) == left);
        let moves_conversation = pending.moves_conversation && is_there;
        self.record_for(&session, &Pending { moves_conversation, ..pending.clone() }).map(drop)
    }

    pub(super) fn is_recorded(&self, pending: &Pending) -> Result<bool> {
        let session = self.session_of(pending)?;
        let is_it = |restore: &Restore| restore.operation.as_ref() == Some(&pending.operation);
        let journal = journal::read(&session, &self.store)?;
        if journal.entries.iter().any(|entry| is_it(&entry.restore)) {
            return Ok(true);
        }
        for record in session.records().filter(|record| record.kind() == Kind::Restore) {
            if matches!(record.exact_body()?, Body::Restore(restore) if is_it(&restore)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn session_of(&self, pending: &Pending) -> Result<Session> {
        let dialect = dialect::named(&pending.dialect).ok_or(Error::NotReady)?;
        let source = Source::file(dialect, &pending.log);
        self.disk.read_session(&source, &ReadOptions::plain((self.host.now)()))
    }
}

/// Notes a restore with the recorder of an agent.
pub(super) fn record_in(recorder: &mut Recorder, pending: &Pending) -> Result<RecordId> {
    let entry = journal::entry(&pending.restore).ok_or(Error::NotReady)?;
    // The recorder notes which head it leaves.
    let restore = Restore { from: None, ..entry.restore };
    let entry = match (&pending.head, pending.moves_conversation) {
        (Some(head), true) => recorder.restore(&RecordId(head.clone()), restore)?,
        (None, true) => recorder.restore_to_start(restore)?,
        (_, false) => recorder.record(Body::Restore(restore))?,
    };
    entry.id().cloned().ok_or(Error::NotReady)
}
