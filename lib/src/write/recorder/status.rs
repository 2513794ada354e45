//! The status of a recorder: which session, where its head is, what is on disk, what to send next.

use std::path::Path;

use serde_json::Value;

use super::open_answer::OpenAnswer;
use super::{Log, ParentRecord, Recorder, Report, Warning, steps};
use crate::dialect::Dialect;
use crate::model::error::{Error, Result};
use crate::model::record::{Body, Outcome, RecordId, SessionId, Thinking, Todo, ToolResult};
use crate::session::{RecordRef, Session};
use crate::view::history::{History, NO_RESULT, View};
use crate::write::rotate::EndedSession;
use crate::write::store::link_named;

impl Recorder {
    /// The session that is recorded.
    pub fn session(&self) -> Option<&SessionId> {
        self.log.as_ref().map(|log| &log.place.session)
    }

    /// The session that was ended so that this one could begin.
    pub fn predecessor(&self) -> Option<&EndedSession> {
        self.predecessor.as_ref()
    }

    /// The file that is written.
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// The format that is written.
    pub fn dialect(&self) -> Option<&'static dyn Dialect> {
        self.log.as_ref().map(|log| log.place.dialect)
    }

    pub(super) fn new_id(&self) -> String {
        self.log.as_ref().map_or_else(String::new, |log| (log.place.host.new_id)())
    }

    /// The current time.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.log.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |log| (log.place.host.now)())
    }

    /// Whether the newest record is more than so many minutes old.
    pub fn is_idle_for(&self, minutes: u32) -> bool {
        let limit = jiff::SignedDuration::from_mins(i64::from(minutes));
        let last = self.log.as_ref().and_then(|log| log.cursor.at);
        last.is_some_and(|last| self.now().duration_since(last) > limit)
    }

    /// The record that is the parent of the next one.
    pub fn head(&self) -> Option<&RecordId> {
        self.log.as_ref().and_then(|log| log.cursor.chain.parent.as_ref()).map(|tip| &tip.id)
    }

    pub(crate) fn tip(&self) -> Option<&ParentRecord> {
        self.log.as_ref().and_then(|log| log.cursor.chain.parent.as_ref())
    }

    /// Reads the session as it is on disk, without what is pending.
    pub fn read(&self) -> Result<Session> {
        self.log.as_ref().map_or(Err(Error::NoSession(None)), Log::read)
    }

    /// The recorder's head in a session that was read; the session's own if nothing was recorded yet.
    pub fn head_in<'s>(&self, session: &'s Session) -> Option<RecordRef<'s>> {
        self.head().map_or_else(|| session.head(), |head| session.find(head.as_str()).ok())
    }

    /// Finds a record from which the conversation can continue, by its id or a unique prefix.
    pub fn find(&self, record: &str) -> Result<RecordId> {
        Ok(RecordId(link_named(&self.read()?, record)?.id().into_owned()))
    }

    /// What to send to a model next: the conversation up to the head in the form of an API, with complete answers and results that
    /// are not written yet. Record the results of all calls first: a call without one gets a failed result.
    ///
    /// A number that 64 bits cannot hold is rounded, as in any `Value`; [`View::write`] and
    /// [`json::write`](crate::model::json::write) keep it.
    /// This reads the branch from disk. An agent with long turns can keep a [`History`] and add to it instead.
    pub fn history(&self, view: View) -> Result<Vec<Value>> {
        let session = self.read()?;
        let Some(head) = self.head_in(&session) else { return Ok(Vec::new()) };
        let mut history = History::of(&session, head)?;
        for turn in self.turn.iter().map(|pending| pending.content()) {
            steps(turn.clone()).into_iter().for_each(|body| history.add(body));
            let closed = |(id, _): (&str, &str)| {
                ToolResult::new(id.to_owned(), NO_RESULT.into(), Outcome::Failed(NO_RESULT.to_owned()))
            };
            turn.open_calls().map(closed).for_each(|result| history.add(Body::ToolResult(result.into())));
        }
        view.messages(&history).map(|(messages, _)| messages)
    }

    /// The task list at the head.
    pub fn todos_at_head(&self) -> Option<&[Todo]> {
        self.log.as_ref().and_then(|log| log.cursor.todos.as_deref())
    }

    /// The thinking mode at the head.
    pub fn thinking_at_head(&self) -> Option<&Thinking> {
        self.log.as_ref().and_then(|log| log.cursor.thinking.as_ref())
    }

    /// Whether a streamed answer is not complete.
    pub fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// The number of the last entry: of the last call that recorded something.
    pub fn last_entry(&self) -> u64 {
        self.ledger.last()
    }

    /// Everything up to this entry is on disk, as safely as [`super::Durability`] says.
    ///
    /// It is the last entry, unless the format needs more of an answer or a turn before it can write a line, or a `sync`
    /// failed. An entry that the format cannot store at all does not count: a warning or [`Recorder::reports`] names it.
    pub fn saved_through(&self) -> u64 {
        let answer = self.answer.iter().flat_map(OpenAnswer::entries).next();
        let turn = self.turn.iter().flat_map(|turn| turn.entries.first().copied()).next();
        let pending = [answer, turn, self.ledger.first_in_doubt()].into_iter().flatten().min();
        let saved = pending.map_or(self.ledger.last(), |first| first - 1);
        if self.is_in_doubt() { saved.min(self.ledger.synced_through) } else { saved }
    }

    /// Keeps a report of each entry from now on, for a caller that acknowledges every one of them: see [`Recorder::reports`].
    pub fn keep_reports(&mut self) {
        self.ledger.keep_reports();
    }

    /// What became of entries since the last call of this, each once: the record of an entry that is on disk, or why the
    /// format cannot store it. Empty unless [`Recorder::keep_reports`] was called.
    pub fn reports(&mut self) -> Vec<Report> {
        self.ledger.take_reports()
    }

    /// Whether a `sync` failed. Calls that write fail until [`Recorder::reopen`] has saved what may be lost.
    pub fn is_in_doubt(&self) -> bool {
        self.log.as_ref().is_some_and(Log::is_in_doubt)
    }

    /// What other programs or a crash did to the log, since the last call of this.
    pub fn warnings(&mut self) -> Vec<Warning> {
        self.log.as_mut().map(Log::warnings).unwrap_or_default()
    }
}
