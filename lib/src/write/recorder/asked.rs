//! What can be asked of a recorder: where it stands, what is on disk, and what is not.

use std::path::Path;

use hashbrown::HashSet;

use super::tickets::{Doubted, Told};
use super::{Ack, Log, ParentRecord, Recorder, Refused, Saved, Unsaved, Warning};
use crate::dialect::Dialect;
use crate::model::error::{Error, Result};
use crate::model::loss::Losses;
use crate::model::record::{Kind, RecordId, SessionId, Thinking, Todo};
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::write::recorder::answer::Answer;
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

    /// What the clock says.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.log.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |log| (log.place.host.now)())
    }

    /// Whether the newest record is more than so many minutes old.
    pub fn is_idle_for(&self, minutes: u32) -> bool {
        let limit = jiff::SignedDuration::from_mins(i64::from(minutes));
        let last = self.log.as_ref().and_then(|log| log.start.at);
        last.is_some_and(|last| self.now().duration_since(last) > limit)
    }

    /// The record that the next one hangs on.
    pub fn head(&self) -> Option<&RecordId> {
        self.log.as_ref().and_then(|log| log.start.chain.tip.as_ref()).map(|tip| &tip.id)
    }

    pub(crate) fn tip(&self) -> Option<&ParentRecord> {
        self.log.as_ref().and_then(|log| log.start.chain.tip.as_ref())
    }

    /// The session as it is on disk by now, without what is held.
    pub fn read(&self) -> Result<Session> {
        let Some(log) = &self.log else { return Err(Error::NoSession(None)) };
        let source = Source::file(log.place.dialect, log.path());
        log.place.disk.read_session(&source, &ReadOptions::plain(self.now()))
    }

    /// The record of a session that the next one hangs on. Where nothing was recorded yet, it is the session's own head.
    pub fn head_in<'s>(&self, session: &'s Session) -> Option<RecordRef<'s>> {
        self.head().map_or_else(|| session.head(), |head| session.find(head.as_str()).ok())
    }

    /// The record that an id means, whole or as its unique prefix, where the conversation can go on from it.
    pub fn find(&self, record: &str) -> Result<RecordId> {
        Ok(RecordId(link_named(&self.read()?, record)?.id().into_owned()))
    }

    /// Every call that is on disk since somebody asked last: the one that this came of, and those that had to wait.
    pub fn saved_by(&mut self, ack: Ack) -> Vec<Saved> {
        let own = if let Ack::Saved(saved) = ack { Some(saved) } else { None };
        own.into_iter().chain(self.settled()).collect()
    }

    /// The task list as it stands at the head.
    pub fn standing_todos(&self) -> Option<&[Todo]> {
        self.log.as_ref().and_then(|log| log.start.todos.as_deref())
    }

    /// The thinking mode as it stands at the head.
    pub fn standing_thinking(&self) -> Option<&Thinking> {
        self.log.as_ref().and_then(|log| log.start.thinking.as_ref())
    }

    /// Whether an answer that comes in pieces is not whole yet.
    pub fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Calls that were held and are on disk now. Whoever waits for some asks now and then: what nobody asks for during ten
    /// thousand answers is forgotten, and [`Warning::Forgotten`] tells him who asks after that.
    pub fn settled(&mut self) -> Vec<Saved> {
        let told = self.tickets.tell_settled();
        self.tell(told)
    }

    /// Calls that were held, and that the format turned out to have no place for; remembered as long as
    /// [`Recorder::settled`] remembers.
    pub fn refused(&mut self) -> Vec<Refused> {
        let told = self.tickets.tell_refused();
        self.tell(told)
    }

    fn tell<T>(&mut self, told: Told<T>) -> Vec<T> {
        if told.is_short {
            self.warning(Warning::Forgotten);
        }
        told.calls
    }

    /// Whether a `sync` failed, so that every call is refused until [`Recorder::reopen`] has saved what may be lost.
    pub fn is_in_doubt(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.check().is_err())
    }

    /// Calls whose records are not safe: held ones, and after a failed `sync` all since the last good one.
    pub fn unsaved(&self) -> Vec<Unsaved> {
        let lost = self.log.iter().flat_map(Log::unsaved);
        let held = self.turn.iter().flat_map(|(_, tickets)| tickets).copied();
        let streamed = self.answer.iter().flat_map(Answer::tickets);
        let (kind, none) = (Kind::Assistant, Losses::default());
        let held = held.chain(streamed).map(|ticket| Unsaved { ticket, id: None, kind, losses: none.clone() });
        let mut unsaved: Vec<Unsaved> = lost.chain(held).collect();
        let known: HashSet<u64> = unsaved.iter().map(|unsaved| unsaved.ticket).collect();
        let doubted = self.tickets.doubted.iter().filter(|doubted| !known.contains(&doubted.ticket));
        unsaved.extend(doubted.map(|Doubted { ticket, id, losses }| {
            let (ticket, id, losses) = (*ticket, Some(id.clone()), losses.clone());
            Unsaved { ticket, id, kind, losses }
        }));
        unsaved
    }

    /// What happened to the log since it was last asked, behind our back.
    pub fn warnings(&mut self) -> Vec<Warning> {
        self.log.as_mut().map(Log::warnings).unwrap_or_default()
    }
}
