//! The recorder: what an agent says is on disk when the call returns. One for each session; [`crate::store::Store`] makes it.
//!
//! A failed call leaves the file and the recorder as they were, so that the caller can try again or tell its user; only after a
//! failed `sync` ([`Error::Unsaved`]) the recorder keeps the records itself until [`Recorder::reopen`] has saved them.

mod ack;
mod answer;
mod blocks;
mod held;
mod log;
mod start;
mod turn;

pub use crate::append::Surprise;
use crate::dialect::{Dialect, Repeated};
use crate::error::{Error, Result};
use crate::message::Part;
use crate::record::{
    Body, Compaction, Kind, RecordId, Restore, Rewind, Said, SessionId, Snapshot, Thinking, Title, Todo, ToolResult,
    Usage,
};
use crate::writing::{Fragment, Grain, Shape};
pub use ack::{Ack, Durability, Options, Refused, Saved, Unsaved};
use answer::Answer;
pub use answer::Delta;
use blocks::blocks;
pub(crate) use log::{Log, Mode, Place, first_tally};
use log::{On, Piece};
pub(crate) use start::{RECORDS_ASKED_FOR_CALLS, Start, Tip};
use turn::Turn;
pub use turn::steps;

/// Records one session.
///
/// ```
/// use scrollback::{dialect, host::Host, recorder::Recorder, store::{Point, Store}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let native = dialect::named("native").ok_or("it is built in")?;
/// let store = Store::open(native, folder.path(), Host::system("my-agent 1.0")?)?;
/// let mut recorder = store.create(std::path::Path::new("/home/ada/tides"))?;
/// recorder.user("When is high water?")?;
/// recorder.assistant("At 04:12.")?;
/// recorder.close()?;
///
/// let session = store.last(std::path::Path::new("/home/ada/tides"))?.ok_or("it was just written")?;
/// assert_eq!(session.records().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    log: Option<Log>,
    options: Options,
    tickets: u64,
    /// What a format with the grain of a turn has not written yet.
    turn: Option<(Turn, Vec<u64>)>,
    answer: Option<Answer>,
    /// Calls that were held, and whose record is written but may not survive a crash.
    unsettled: Vec<(u64, RecordId)>,
    /// What was held and is saved now.
    settled: Vec<Saved>,
    /// What was held and cannot be written.
    refused: Vec<Refused>,
}

impl Recorder {
    /// Records nothing: for a sub-agent whose work nobody wants to keep.
    pub fn disabled() -> Recorder {
        Recorder {
            log: None,
            options: Options::usual(),
            tickets: 0,
            turn: None,
            answer: None,
            unsettled: Vec::new(),
            settled: Vec::new(),
            refused: Vec::new(),
        }
    }

    pub(crate) fn new(log: Log, options: Options) -> Recorder {
        Recorder {
            log: Some(log),
            options,
            tickets: 0,
            turn: None,
            answer: None,
            unsettled: Vec::new(),
            settled: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// The session that is recorded.
    pub fn session(&self) -> Option<&SessionId> {
        self.log.as_ref().map(|log| &log.place.session)
    }

    /// The file that is written.
    pub fn path(&self) -> Option<&std::path::Path> {
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

    pub(crate) fn tip(&self) -> Option<&Tip> {
        self.log.as_ref().and_then(|log| log.start.chain.tip.as_ref())
    }

    /// Lets the next record hang on another one, or begin a conversation.
    pub(crate) fn go_on_from(&mut self, tip: Option<Tip>, sidechain: bool) {
        if let Some(log) = &mut self.log {
            (log.start.chain.tip, log.start.chain.sidechain) = (tip, sidechain);
        }
    }

    /// Results of a body's calls may follow, though it was not written here.
    pub(crate) fn expect_results(&mut self, body: &Body) {
        if let (Some(log), Some(said)) = (&mut self.log, body.said()) {
            let calls = log::open_calls(&said.parts).map(|(id, name)| (id.to_owned(), name.to_owned()));
            log.start.calls.extend(calls);
        }
    }

    /// The task list as it stands at the head.
    pub fn standing_todos(&self) -> Option<&[Todo]> {
        self.log.as_ref().and_then(|log| log.start.todos.as_deref())
    }

    /// The thinking mode as it stands at the head.
    pub fn standing_thinking(&self) -> Option<&Thinking> {
        self.log.as_ref().and_then(|log| log.start.thinking.as_ref())
    }

    /// Somebody said something to the agent.
    pub fn user(&mut self, said: impl Into<Said>) -> Result<Ack> {
        let mut said = said.into();
        if let Some(log) = &mut self.log {
            log.look_around();
        }
        if said.thinking.is_none() {
            let texts = said
                .parts
                .iter()
                .filter_map(|part| if let Part::Text(text) = part { Some(&text.text) } else { None });
            said.thinking = texts.into_iter().find_map(|text| self.options.triggers.of(text));
        }
        self.record(Body::User(said))
    }

    /// The model answered: all of one response, its tool calls among the parts.
    pub fn assistant(&mut self, said: impl Into<Said>) -> Result<Ack> {
        self.record(Body::Assistant(said.into()))
    }

    /// Tools answered the model.
    pub fn tool_result(&mut self, said: impl Into<Said>) -> Result<Ack> {
        self.record(Body::ToolResult(said.into()))
    }

    /// The agent told the model something, or noticed something.
    pub fn system(&mut self, said: impl Into<Said>) -> Result<Ack> {
        self.record(Body::System(said.into()))
    }

    /// The agent or its provider failed; a tool that failed is a [`Recorder::tool_result`].
    pub fn error(&mut self, kind: &str, text: &str) -> Result<Ack> {
        self.record(Body::System(Said { error: Some(kind.to_owned()), ..Said::from(text) }))
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

    /// Files were put back.
    pub fn restore(&mut self, restore: Restore) -> Result<Ack> {
        self.record(Body::Restore(restore))
    }

    /// The task list is this now. It belongs to the message that was said last.
    pub fn todos(&mut self, todos: Vec<Todo>) -> Result<Ack> {
        self.add_to_message(Said { todos: Some(todos), ..Said::default() })
    }

    /// The thinking mode is this now. It belongs to the message that was said last.
    pub fn thinking(&mut self, thinking: Thinking) -> Result<Ack> {
        self.add_to_message(Said { thinking: Some(thinking), ..Said::default() })
    }

    /// The last answer cost this.
    pub fn usage(&mut self, usage: Usage) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.next_ticket();
        self.know_of_answer(Said { usage: Some(usage), ..Said::default() }, ticket)
    }

    /// Facts about the last answer: a further piece of it, where the format has pieces.
    fn know_of_answer(&mut self, said: Said, ticket: u64) -> Result<Ack> {
        if said == Said::default() {
            return Ok(Ack::NotRecorded);
        }
        if let Some((turn, tickets)) = &mut self.turn {
            turn.know(said);
            tickets.push(ticket);
            return Ok(Ack::Held { ticket });
        }
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let Some(answered) = log.start.chain.answered.clone() else {
            return Err(Error::NoPlace { record: "usage".to_owned(), why: "the model has not answered yet" });
        };
        let fragment = Some(Fragment { seq: answered.lines, part: answered.lines });
        let on = if log.joins() { On::Again(answered) } else { On::Tip };
        let fragment = fragment.filter(|_| matches!(on, On::Again(_)));
        let piece = Piece { body: Body::Assistant(said), on, fragment };
        self.write(vec![piece], ticket, Durability::Flush)
    }

    /// The conversation goes on from this record; what is behind it stays a branch.
    pub fn rewind(&mut self, to: &RecordId, reason: Option<String>) -> Result<Ack> {
        self.end_turn()?;
        let ticket = self.next_ticket();
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        if log.place.writing.shape == Shape::Linear {
            let why = "the format is one line of records; fork the session, or convert it to native";
            return Err(Error::NoPlace { record: to.to_string(), why });
        }
        let from = log.start.chain.tip.as_ref().map(|tip| tip.id.clone());
        let body = Body::Rewind(Rewind { from, reason });
        self.write(vec![Piece { body, on: On::Record(to.clone()), fragment: None }], ticket, Durability::Sync)
    }

    /// Any record.
    pub fn record(&mut self, body: Body) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.next_ticket();
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let durability = Durability::of(&body);
        match (log.place.writing.grain, body) {
            (Grain::Turn, body) => self.record_in_turn(body, ticket),
            (_, Body::Assistant(said)) => {
                log.start.chain.answer = None;
                let grain = log.place.writing.grain;
                let pieces = steps(said).into_iter().flat_map(|body| blocks(grain, body)).map(Piece::next);
                self.write(pieces.collect(), ticket, durability)
            }
            (grain, body) => self.write(blocks(grain, body).into_iter().map(Piece::next).collect(), ticket, durability),
        }
    }

    /// A piece of the answer that the model is giving.
    pub fn delta(&mut self, delta: Delta) -> Result<Ack> {
        let ticket = self.next_ticket();
        if self.log.is_none() {
            return Ok(Ack::NotRecorded);
        }
        answer::take(self, delta, ticket)
    }

    /// The answer that came in pieces is whole, and this is what else is known of it.
    pub fn finish_answer(&mut self, usage: Option<Usage>) -> Result<Ack> {
        let ticket = self.next_ticket();
        if self.log.is_none() {
            return Ok(Ack::NotRecorded);
        }
        answer::finish(self, usage, ticket)
    }

    /// A tool answered while the model may go on with its answer: that one stays open.
    pub fn early_result(&mut self, result: ToolResult) -> Result<Ack> {
        if self.answer.is_none() {
            return self.tool_result(result);
        }
        let ticket = self.next_ticket();
        answer::result(self, result, ticket)
    }

    /// Whether an answer that comes in pieces is not whole yet.
    pub fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Forgets what is held of an answer that will not be finished; what is on disk stays.
    pub fn drop_answer(&mut self) {
        self.answer = None;
    }

    /// Writes what is held back of a stream, though more could follow: call it when a second has passed without a piece.
    pub fn release(&mut self) -> Result<()> {
        answer::release(self)
    }

    /// Calls that were held and are on disk now.
    pub fn settled(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.settled)
    }

    /// Calls that were held, and that the format turned out to have no place for.
    pub fn refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    /// Calls whose records are not safe: held ones, and after a failed `sync` all since the last good one.
    pub fn unsaved(&self) -> Vec<Unsaved> {
        let lost = self.log.iter().flat_map(Log::unsaved);
        let held = self.turn.iter().flat_map(|(_, tickets)| tickets).copied();
        let streamed = self.answer.iter().flat_map(Answer::tickets);
        let held = held.chain(streamed).map(|ticket| Unsaved { ticket, id: None, kind: Kind::Assistant });
        let mut unsaved: Vec<Unsaved> = lost.chain(held).collect();
        for (ticket, id) in &self.unsettled {
            if !unsaved.iter().any(|known| known.ticket == *ticket) {
                unsaved.push(Unsaved { ticket: *ticket, id: Some(id.clone()), kind: Kind::Assistant });
            }
        }
        unsaved
    }

    pub(crate) fn surprise(&mut self, surprise: Surprise) {
        if let Some(log) = &mut self.log {
            log.surprise(surprise);
        }
    }

    /// What happened to the log since it was last asked, behind our back.
    pub fn surprises(&mut self) -> Vec<Surprise> {
        self.log.as_mut().map(Log::surprises).unwrap_or_default()
    }

    /// Makes everything so far survive the death of the machine.
    pub fn sync(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::sync)
    }

    /// Saves what a failed `sync` left unsafe. Records that are in the file are not written twice.
    pub fn reopen(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::reopen)?;
        let saved = |(ticket, id)| Saved { ticket, id, durability: Durability::Sync, losses: Vec::new() };
        self.settled.extend(self.unsettled.drain(..).map(saved));
        Ok(())
    }

    /// Ends the recording; what is held is written.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    /// Writes everything that is held and the sidecar; the recorder can go on.
    pub fn finish(&mut self) -> Result<()> {
        self.end_turn()?;
        let flush_only = self.options.durability == Some(Durability::Flush);
        let Some(log) = &mut self.log else { return Ok(()) };
        if flush_only {
            log.forget_unsynced();
        }
        log.close()
    }

    fn write(&mut self, pieces: Vec<Piece>, ticket: u64, durability: Durability) -> Result<Ack> {
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let durability = self.options.durability.unwrap_or(durability);
        let saved = log.write(pieces, ticket, durability)?;
        if self.options.durability == Some(Durability::Flush) {
            log.forget_unsynced();
        }
        Ok(Ack::Saved(saved))
    }

    fn end_answer(&mut self) -> Result<()> {
        if self.answer.is_some() { answer::end(self) } else { Ok(()) }
    }

    fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

impl Log {
    /// Whether a second line of the same id goes on with the record.
    fn joins(&self) -> bool {
        self.place.dialect.habits().repeated == Repeated::Join
    }
}

#[cfg(test)]
mod tests;
