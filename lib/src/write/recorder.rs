//! The recorder: what an agent says is on disk when the call returns. One for each session; [`crate::write::store::Store`] makes it.
//!
//! A failed call leaves the file and the recorder as they were, so that the caller can try again or tell its user; only after a
//! failed `sync` ([`Error::Unsaved`]) the recorder keeps the records itself until [`Recorder::reopen`] has saved them.

mod ack;
mod answer;
mod asked;
mod blocks;
mod draft;
mod held;
mod log;
mod retry;
mod start;
mod telling;
mod tickets;
mod turn;
mod words;

use crate::dialect::RepeatedId;
use crate::dialect::writer::{Shape, WriteUnit};
pub use crate::disk::append::Warning;
use crate::model::error::{Error, Result};
use crate::model::message::{Part, ToolPart};
use crate::model::record::{
    Body, Compaction, Content, RecordId, Restore, Rewind, Snapshot, Thinking, Title, Todo, ToolResult, Usage,
};
use crate::write::rotate::EndedSession;
use crate::write::store::no_branches;
pub use ack::{Ack, Delta, Durability, Options, Refused, Saved, Unsaved};
use answer::{Answer, Call};
use blocks::blocks;
use draft::{On, Piece};
pub(crate) use log::{Log, Mode, Place};
pub(crate) use start::{ParentRecord, RECORDS_ASKED_FOR_CALLS, Start};
pub(crate) use telling::{first_tally, tell};
use tickets::{Tickets, Whose};
pub use turn::steps;
use turn::{Turn, take_result};

/// Records one session.
///
/// ```
/// use scrollback::Store;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let root = folder.path();
/// let store = Store::native(root)?;
/// let mut session = store.create("/home/ada/tides")?;
/// session.user("When is high water?")?;
/// session.assistant("At 04:12.")?;
/// session.close()?;
///
/// let session = store.last("/home/ada/tides".as_ref())?.ok_or("it was just written")?;
/// assert_eq!(session.records().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    log: Option<Log>,
    options: Options,
    tickets: Tickets,
    /// What a format with the grain of a turn has not written yet.
    turn: Option<(Turn, Vec<u64>)>,
    answer: Option<Answer>,
    /// The session that was ended so that this one could begin.
    predecessor: Option<EndedSession>,
}

impl Recorder {
    /// Records nothing: for a sub-agent whose work nobody wants to keep.
    pub fn disabled() -> Recorder {
        Recorder {
            log: None,
            options: Options::usual(),
            tickets: Tickets::default(),
            turn: None,
            answer: None,
            predecessor: None,
        }
    }

    pub(crate) fn new(mut log: Log, options: Options) -> Recorder {
        log.durability = options.durability;
        Recorder { log: Some(log), options, tickets: Tickets::default(), turn: None, answer: None, predecessor: None }
    }

    pub(crate) fn after(self, ended: Option<EndedSession>) -> Recorder {
        Recorder { predecessor: ended, ..self }
    }

    /// Sets the parent of the next record; `None` begins a conversation.
    pub(crate) fn go_on_from(&mut self, tip: Option<ParentRecord>, sidechain: bool, branches: bool) {
        if let Some(log) = &mut self.log {
            let chain = &mut log.start.chain;
            (chain.tip, chain.sidechain, chain.branches) = (tip, sidechain, branches);
        }
    }

    /// Results of a body's calls may follow, though it was not written here.
    pub(crate) fn expect_results(&mut self, body: &Body) {
        if let (Some(log), Some(content)) = (&mut self.log, body.content()) {
            log.start.expect_results(content);
        }
    }

    /// Somebody said something to the agent.
    pub fn user(&mut self, content: impl Into<Content>) -> Result<Ack> {
        self.record(Body::User(content.into()))
    }

    /// The model answered: all of one response, its tool calls among the parts.
    pub fn assistant(&mut self, content: impl Into<Content>) -> Result<Ack> {
        self.record(Body::Assistant(content.into()))
    }

    /// Tools answered the model.
    pub fn tool_result(&mut self, content: impl Into<Content>) -> Result<Ack> {
        self.record(Body::ToolResult(content.into()))
    }

    /// The agent told the model something, or noticed something.
    pub fn system(&mut self, content: impl Into<Content>) -> Result<Ack> {
        self.record(Body::System(content.into()))
    }

    /// The agent or its provider failed; a tool that failed is a [`Recorder::tool_result`].
    pub fn error(&mut self, kind: &str, text: &str) -> Result<Ack> {
        self.record(Body::System(Content { error: Some(kind.to_owned()), ..Content::from(text) }))
    }

    /// The session has a title.
    pub fn title(&mut self, title: impl Into<Title>) -> Result<Ack> {
        self.record(Body::Title(title.into()))
    }

    /// What came before is summed up for the model.
    pub fn compaction(&mut self, compaction: Compaction) -> Result<Ack> {
        self.record(Body::Compaction(compaction))
    }

    /// File states before a change.
    pub fn snapshot(&mut self, snapshot: Snapshot) -> Result<Ack> {
        self.record(Body::Snapshot(snapshot))
    }

    /// Files were put back, and the conversation continues from the record `to`: the head, if only files were put back.
    pub fn restore(&mut self, to: &RecordId, restore: Restore) -> Result<Ack> {
        if self.head() == Some(to) {
            return self.record(Body::Restore(restore));
        }
        self.go_back(to, |from| Body::Restore(Restore { from, ..restore }))
    }

    /// The task list is this now. It belongs to the message that was said last.
    pub fn todos(&mut self, todos: Vec<Todo>) -> Result<Ack> {
        self.add_to_message(Content { todos: Some(todos), ..Content::default() })
    }

    /// The thinking mode is this now. It belongs to the message that was said last.
    pub fn thinking(&mut self, thinking: Thinking) -> Result<Ack> {
        self.add_to_message(Content { thinking: Some(thinking), ..Content::default() })
    }

    /// The conversation goes on from this record; what is behind it stays a branch.
    pub fn rewind(&mut self, to: &RecordId, reason: Option<String>) -> Result<Ack> {
        self.go_back(to, |from| Body::Rewind(Rewind { from, reason }))
    }

    /// Writes a record whose parent is an earlier one; `body` gets the head that is left.
    fn go_back(&mut self, to: &RecordId, body: impl FnOnce(Option<RecordId>) -> Body) -> Result<Ack> {
        self.leave_turn()?;
        let ticket = self.tickets.next();
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        if log.place.writing.shape == Shape::Linear {
            return Err(no_branches(to.as_str()));
        }
        let there = log.start_at(to)?;
        let from = log.start.chain.tip.as_ref().map(|tip| tip.id.clone());
        let to = there.chain.tip.as_ref().map_or_else(|| to.clone(), |tip| tip.id.clone());
        let body = body(from);
        let todos = if let Body::Restore(restore) = &body { restore.todos.clone() } else { None };
        let piece = Piece { on: On::Record(to), ..Piece::next(body) };
        // It belongs to what it goes back to.
        let left = std::mem::replace(&mut log.start.chain.sidechain, there.chain.sidechain);
        let wrote = log.write(vec![piece], ticket, Durability::Sync);
        let wrote = wrote.inspect_err(|_| log.start.chain.sidechain = left)?;
        log.start.stand(there);
        log.start.todos = todos.or(log.start.todos.take());
        wrote.told()
    }

    /// Any record, as a child of the last one. To go back from the head, use [`Recorder::rewind`] or [`Recorder::restore`]: a
    /// [`Body::Rewind`] or [`Body::Restore`] given here is for a recorder that was opened at the record to continue from.
    pub fn record(&mut self, mut body: Body) -> Result<Ack> {
        if let Body::Rewind(Rewind { from: Some(from), .. }) | Body::Restore(Restore { from: Some(from), .. }) = &body
            && self.head() == Some(from)
        {
            let why = "its parent must be an earlier record: use `rewind` or `restore`";
            return Err(Error::CannotContinue { record: from.to_string(), why });
        }
        self.end_answer()?;
        let ticket = self.tickets.next();
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        if log.place.mode == Mode::Live
            && let Some(call) = body.content().and_then(Content::ambiguous_call)
        {
            return Err(Error::DuplicateCall { call: call.to_owned() });
        }
        if let (Mode::Live, Body::User(content)) = (log.place.mode, &mut body) {
            log.look_around();
            if content.thinking.is_none() {
                let texts = content
                    .parts
                    .iter()
                    .filter_map(|part| if let Part::Text(text) = part { Some(&text.text) } else { None });
                content.thinking = texts.into_iter().find_map(|text| self.options.triggers.of(text));
            }
        }
        let durability = Durability::of(&body);
        match (log.place.writing.unit, body) {
            (WriteUnit::Turn, body) => self.record_in_turn(body, ticket),
            (_, Body::Assistant(content)) => {
                let unit = log.place.writing.unit;
                let pieces = steps(content).into_iter().flat_map(|body| Piece::step(blocks(unit, body)));
                self.write(pieces.collect(), ticket, durability)
            }
            (unit, body) => self.write(blocks(unit, body).into_iter().map(Piece::next).collect(), ticket, durability),
        }
    }

    /// A piece of the answer that the model is giving. One that the format has no place for is a loss of a call that is
    /// [`Recorder::settled`] once a piece is written that it has one for; an answer of nothing else is [`Recorder::refused`].
    pub fn delta(&mut self, delta: Delta) -> Result<Ack> {
        let unit = self.log.as_ref().map(|log| log.place.writing.unit);
        let delta = match delta {
            Delta::Part(Part::Tool(call)) if !call.is_open() && unit < Some(WriteUnit::Turn) => {
                return self.answered_call(*call);
            }
            delta => delta,
        };
        let ticket = self.tickets.next();
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        if self.answer.is_none() {
            // A new answer is a new step of its turn.
            log.start.chain.answer = None;
        }
        let answer = self.answer.get_or_insert_default();
        answer.take(delta, &mut Call { ticket, log, tickets: &mut self.tickets })
    }

    /// A call that comes with its result, as those do that the provider runs: the result is a record of its own.
    fn answered_call(&mut self, mut call: ToolPart) -> Result<Ack> {
        let result = take_result(&mut call);
        let waits = self.answer.as_ref().is_some_and(|answer| answer.has_open_calls);
        let called = self.delta(Delta::Part(call.into()))?;
        let Some(result) = result else { return Ok(called) };
        self.answer.iter_mut().for_each(|answer| answer.has_open_calls = waits);
        let mut ack = self.early_result(result)?;
        if let (Ack::Saved(saved), Ack::Saved(mut called)) = (&mut ack, called) {
            saved.losses.append(&mut called.losses);
        }
        Ok(ack)
    }

    /// The answer that came in pieces is whole, and this is what else is known of it.
    pub fn finish_answer(&mut self, usage: Option<Usage>) -> Result<Ack> {
        if self.log.is_none() {
            return Ok(Ack::NotRecorded);
        }
        if self.answer.is_none() {
            return match usage {
                Some(usage) => self.usage(usage),
                None => Err(Error::OutOfOrder("no answer was begun")),
            };
        }
        let ticket = self.tickets.next();
        self.answer_ends(usage, Whose::Own, ticket)
    }

    /// A tool answered while the model may go on with its answer: that one stays open.
    pub fn early_result(&mut self, result: ToolResult) -> Result<Ack> {
        let (Some(log), Some(answer)) = (&mut self.log, &mut self.answer) else { return self.tool_result(result) };
        let ticket = self.tickets.next();
        match answer.result(&result, &mut Call { ticket, log, tickets: &mut self.tickets })? {
            Some(ack) => Ok(ack),
            None => {
                self.end_answer()?;
                self.record_in_turn(Body::ToolResult(result.into()), ticket)
            }
        }
    }

    /// Forgets what is held of an answer that will not be finished, and refuses its calls; what is on disk stays.
    pub fn drop_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.tickets.refuse(answer.tickets().collect(), "an answer that was given up");
        }
    }

    /// Writes what is held back of a stream, though more could follow: call it when a second has passed without a piece.
    pub fn release(&mut self) -> Result<()> {
        let (Some(log), Some(answer)) = (&mut self.log, &mut self.answer) else { return Ok(()) };
        let ticket = answer.tickets().last().unwrap_or_default();
        answer.release(&mut Call { ticket, log, tickets: &mut self.tickets })
    }

    pub(crate) fn warning(&mut self, warning: Warning) {
        if let Some(log) = &mut self.log {
            log.warning(warning);
        }
    }

    /// Makes everything so far survive the death of the machine.
    pub fn sync(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::sync)
    }

    /// Saves what a failed `sync` left unsafe. Records that are in the file are not written twice.
    pub fn reopen(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::reopen)?;
        self.tickets.all_safe();
        Ok(())
    }

    /// Writes everything that is held and the sidecar, and makes it safe; the recorder can go on. Where that fails, what is held
    /// is still here to be tried again, and what is in the file is made safe.
    pub fn close(&mut self) -> Result<()> {
        let ended = self.leave_turn();
        let Some(log) = &mut self.log else { return ended };
        match ended {
            Ok(()) => log.close(),
            Err(error) => {
                // The first failure is what the caller is told.
                drop(log.pause());
                Err(error)
            }
        }
    }

    fn write(&mut self, pieces: Vec<Piece>, ticket: u64, durability: Durability) -> Result<Ack> {
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        log.write(pieces, ticket, durability)?.told()
    }
}

impl Log {
    /// Whether a second line of the same id goes on with the record. Where a branch begins at it, the record is another
    /// branch's too, and is left as it is.
    fn joins(&self) -> bool {
        self.place.dialect.traits().repeated_id == RepeatedId::Join && !self.start.chain.branches
    }
}

#[cfg(test)]
mod tests;
