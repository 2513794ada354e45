//! The recorder: what an agent says is on disk when the call returns. One for each session; [`crate::store::Store`] makes it.
//!
//! A failed call leaves the file and the recorder as they were, so that the caller can try again or tell its user; only after a
//! failed `sync` ([`Error::Unsaved`]) the recorder keeps the records itself until [`Recorder::reopen`] has saved them.

mod answer;
mod log;
mod start;
mod turn;

use serde::Serialize;

pub use crate::append::Surprise;
use crate::dialect::{Dialect, Repeated};
use crate::error::{Error, Result};
use crate::message::Part;
use crate::record::{
    Body, Compaction, Kind, RecordId, Restore, Rewind, Said, SessionId, Snapshot, Thinking, Title, TitleSource, Todo,
    ToolResult, Usage,
};
use crate::thinking::Triggers;
use crate::writing::{Fragment, Grain, Loss, Shape};
use answer::Answer;
pub use answer::Delta;
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
    /// What was held and is saved now.
    settled: Vec<Saved>,
}

/// How a recorder works. [`Options::usual`] is right for most agents.
#[derive(Debug, Clone)]
pub struct Options {
    /// How safe records are: `None` asks each by its kind (see [`Durability::of`]).
    pub durability: Option<Durability>,
    /// Words in a prompt that set its thinking mode.
    pub triggers: Triggers,
}

impl Options {
    /// Durability by kind, no trigger words.
    pub fn usual() -> Options {
        Options { durability: None, triggers: Triggers::default() }
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
    /// What a record of this kind survives, unless somebody says otherwise.
    pub fn of(body: &Body) -> Durability {
        match body {
            Body::User(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Snapshot(_) => Durability::Sync,
            // The last record of a turn: nothing is called, so that nothing follows.
            Body::Assistant(said) if log::open_calls(&said.parts).next().is_none() => Durability::Sync,
            Body::Assistant(_)
            | Body::ToolResult(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Header(_)
            | Body::Other(_) => Durability::Flush,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ack {
    /// It is on disk.
    Saved(Saved),
    /// It is part of something that the format can only write whole: [`Recorder::settled`] tells when that is on disk, and
    /// until then it is in [`Recorder::unsaved`].
    Held {
        /// Names the call.
        ticket: u64,
    },
    /// The recorder is disabled.
    NotRecorded,
}

impl Ack {
    /// The record, once it is on disk.
    pub fn id(&self) -> Option<&RecordId> {
        match self {
            Ack::Saved(saved) => Some(&saved.id),
            Ack::Held { .. } | Ack::NotRecorded => None,
        }
    }
}

/// A call whose record is on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Names the call: calls of a recorder are counted from 1.
    pub ticket: u64,
    /// The record.
    pub id: RecordId,
    /// What it survives.
    pub durability: Durability,
    /// What of it the format could not hold.
    pub losses: Vec<Loss>,
}

/// A call whose record is not safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaved {
    /// Names the call.
    pub ticket: u64,
    /// The record, when it was written.
    pub id: Option<RecordId>,
    /// What it is.
    pub kind: Kind,
}

impl Recorder {
    /// Records nothing: for a sub-agent whose work nobody wants to keep.
    pub fn disabled() -> Recorder {
        Recorder { log: None, options: Options::usual(), tickets: 0, turn: None, answer: None, settled: Vec::new() }
    }

    pub(crate) fn new(log: Log, options: Options) -> Recorder {
        Recorder { log: Some(log), options, tickets: 0, turn: None, answer: None, settled: Vec::new() }
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
        self.log.as_ref().and_then(|log| log.start.tip.as_ref()).map(|tip| &tip.id)
    }

    pub(crate) fn tip(&self) -> Option<&Tip> {
        self.log.as_ref().and_then(|log| log.start.tip.as_ref())
    }

    /// Lets the next record hang on another one, or begin a conversation.
    pub(crate) fn go_on_from(&mut self, tip: Option<Tip>, sidechain: bool) {
        if let Some(log) = &mut self.log {
            (log.start.tip, log.start.sidechain) = (tip, sidechain);
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
        let Some(answered) = log.start.answered.clone() else {
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
        let from = log.start.tip.as_ref().map(|tip| tip.id.clone());
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
                log.start.answer = None;
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

    /// Writes a turn that will not be finished.
    pub fn end_turn(&mut self) -> Result<()> {
        self.end_answer()?;
        let Some((turn, tickets)) = self.turn.take() else { return Ok(()) };
        let body = turn.into_body();
        let ticket = tickets.last().copied().unwrap_or_default();
        match self.write(vec![Piece::next(body.clone())], ticket, Durability::Sync) {
            Ok(Ack::Saved(saved)) => {
                self.settled.extend(tickets.into_iter().map(|ticket| Saved { ticket, ..saved.clone() }));
                Ok(())
            }
            Ok(Ack::Held { .. } | Ack::NotRecorded) => Ok(()),
            Err(error) => {
                if !matches!(error, Error::Unsaved { .. } | Error::CannotHold { .. }) {
                    self.turn = Some((Turn::of(body), tickets));
                }
                Err(error)
            }
        }
    }

    /// Calls that were held and are on disk now.
    pub fn settled(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.settled)
    }

    /// Calls whose records are not safe: held ones, and after a failed `sync` all since the last good one.
    pub fn unsaved(&self) -> Vec<Unsaved> {
        let lost = self.log.iter().flat_map(Log::unsaved);
        let held = self.turn.iter().flat_map(|(_, tickets)| tickets).copied();
        let streamed = self.answer.iter().flat_map(Answer::tickets);
        let held = held.chain(streamed).map(|ticket| Unsaved { ticket, id: None, kind: Kind::Assistant });
        lost.chain(held).collect()
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
        self.log.as_mut().map_or(Ok(()), Log::reopen)
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

    fn record_in_turn(&mut self, body: Body, ticket: u64) -> Result<Ack> {
        let mut held = |add: &dyn Fn(&mut Turn)| {
            let (turn, tickets) = self.turn.get_or_insert_default();
            add(turn);
            tickets.push(ticket);
        };
        match body {
            Body::Assistant(said) => held(&|turn| turn.answer(said.clone())),
            Body::ToolResult(said) => held(&|turn| turn.results(said.clone())),
            // They say something about the session, not in the conversation.
            body @ (Body::Title(_) | Body::Snapshot(_) | Body::Header(_)) => {
                let durability = Durability::of(&body);
                return self.write(vec![Piece::next(body)], ticket, durability);
            }
            body @ (Body::User(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Other(_)) => {
                self.end_turn()?;
                let durability = Durability::of(&body);
                return self.write(vec![Piece::next(body)], ticket, durability);
            }
        }
        // What is said again is known to go on until somebody else speaks.
        let is_live = self.log.as_ref().is_some_and(|log| log.place.mode == Mode::Live);
        if is_live && self.turn.as_ref().is_some_and(|(turn, _)| turn.is_over()) {
            let before = self.settled.len();
            self.end_turn()?;
            let own = self.settled.iter().skip(before).position(|saved| saved.ticket == ticket);
            if let Some(own) = own {
                return Ok(Ack::Saved(self.settled.remove(before + own)));
            }
        }
        Ok(Ack::Held { ticket })
    }

    /// Facts that belong to the message that was said last: a further piece of it, or a notice without words.
    fn add_to_message(&mut self, said: Said) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.next_ticket();
        if let Some((turn, tickets)) = &mut self.turn {
            turn.know(said);
            tickets.push(ticket);
            return Ok(Ack::Held { ticket });
        }
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let tip = log.start.tip.clone().filter(|_| log.joins());
        let body = tip.as_ref().and_then(|tip| match tip.kind {
            Kind::User => Some(Body::User(said.clone())),
            Kind::Assistant => Some(Body::Assistant(said.clone())),
            Kind::ToolResult => Some(Body::ToolResult(said.clone())),
            Kind::System => Some(Body::System(said.clone())),
            Kind::Attachment
            | Kind::Snapshot
            | Kind::Title
            | Kind::Compaction
            | Kind::Rewind
            | Kind::Restore
            | Kind::Header
            | Kind::Other => None,
        });
        let piece = match (body, tip) {
            (Some(body), Some(tip)) => {
                let fragment = Some(Fragment { seq: tip.lines, part: tip.lines });
                Piece { body, on: On::Again(tip), fragment }
            }
            _ => Piece::next(Body::System(said)),
        };
        self.write(vec![piece], ticket, Durability::Flush)
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

/// The records that a body is in a format of this grain.
fn blocks(grain: Grain, body: Body) -> Vec<Body> {
    match (grain, body) {
        (Grain::Block, Body::Assistant(mut said)) if said.parts.len() > 1 => {
            let usage = said.usage.take();
            let parts = std::mem::take(&mut said.parts);
            let mut bodies: Vec<Body> =
                parts.into_iter().map(|part| Body::Assistant(Said { parts: vec![part], ..said.clone() })).collect();
            // What the answer cost is known when it ends.
            if let Some(Body::Assistant(last)) = bodies.last_mut() {
                last.usage = usage;
            }
            bodies
        }
        (Grain::Block, Body::ToolResult(mut said)) if said.results.len() > 1 => {
            let results = std::mem::take(&mut said.results);
            let first = std::mem::take(&mut said.parts);
            let mut bodies: Vec<Body> = results
                .into_iter()
                .map(|result| Body::ToolResult(Said { results: vec![result], ..said.clone() }))
                .collect();
            if let Some(Body::ToolResult(last)) = bodies.last_mut() {
                last.parts = first;
            }
            bodies
        }
        (_, body) => vec![body],
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Said {
        Said { parts: vec![Part::text(text)], ..Said::default() }
    }
}

impl From<String> for Said {
    fn from(text: String) -> Said {
        Said { parts: vec![Part::text(text)], ..Said::default() }
    }
}

impl From<Vec<Part>> for Said {
    fn from(parts: Vec<Part>) -> Said {
        Said { parts, ..Said::default() }
    }
}

impl From<ToolResult> for Said {
    fn from(result: ToolResult) -> Said {
        Said { results: vec![result], ..Said::default() }
    }
}

impl From<Vec<ToolResult>> for Said {
    fn from(results: Vec<ToolResult>) -> Said {
        Said { results, ..Said::default() }
    }
}

impl From<&str> for Title {
    fn from(text: &str) -> Title {
        Title { text: text.to_owned(), source: TitleSource::Manual }
    }
}

#[cfg(test)]
mod tests;
