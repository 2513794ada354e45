//! What is not written yet: a turn of a format that writes only whole ones, an answer that ends; and what is added to the
//! message before.

use super::answer::{Answer, Call, Ended};
use super::draft::{On, Piece};
use super::tickets::{Whose, Wrote};
use super::turn::More;
use super::{Ack, Durability, Mode, Recorder};
use crate::dialect::writer::{Fragment, WriteUnit};
use crate::model::error::{Error, Result};
use crate::model::record::{Body, Content, Kind, Usage};

/// What a call is refused with when the answer that it was a piece of has no words.
const NO_WORDS: &str = "an answer without words";

/// What came of a turn.
enum Came {
    Wrote(Wrote),
    /// It is not over, or there is none.
    Held,
    /// The calls that it was made of are refused.
    CannotHold(Error),
}

impl Came {
    /// What the call under way is told.
    fn told(self, ticket: u64) -> Result<Ack> {
        match self {
            Came::Wrote(wrote) => wrote.told(),
            Came::Held => Ok(Ack::Held { ticket }),
            Came::CannotHold(error) => Err(error),
        }
    }
}

/// What came of facts about the last answer.
enum Known {
    Wrote(Wrote),
    /// They are part of a turn that is not over.
    Held,
}

impl Recorder {
    /// Writes a turn that will not be finished. What the format cannot hold of it is told by [`Recorder::refused`].
    pub fn end_turn(&mut self) -> Result<()> {
        self.end_answer()?;
        match self.write_turn(Whose::Earlier, 0)? {
            Came::Wrote(wrote) => wrote.told().map(|_| ()),
            Came::Held => Ok(()),
            Came::CannotHold(error) => Err(error),
        }
    }

    /// The same: that a turn cannot be written is no reason against what comes next.
    pub(super) fn leave_turn(&mut self) -> Result<()> {
        match self.end_turn() {
            Err(Error::CannotStore { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Writes the turn. Where that fails it stays held.
    fn write_turn(&mut self, whose: Whose, own: u64) -> Result<Came> {
        let (Some(log), Some((turn, mut tickets))) = (&mut self.log, self.turn.take()) else { return Ok(Came::Held) };
        let ticket = tickets.last().copied().unwrap_or_default();
        let (body, responses) = turn.clone().into_body();
        match log.write(vec![Piece { responses, ..Piece::next(body) }], ticket, Durability::Sync) {
            Ok(wrote) => {
                tickets.retain(|ticket| whose == Whose::Earlier || *ticket != own);
                self.tickets.settle_turn(tickets, &wrote);
                Ok(Came::Wrote(wrote))
            }
            Err(Error::CannotStore { dialect, what, losses }) => {
                tickets.retain(|ticket| whose == Whose::Earlier || *ticket != own);
                self.tickets.refuse(tickets, &what);
                Ok(Came::CannotHold(Error::CannotStore { dialect, what, losses }))
            }
            Err(error) => {
                self.turn = Some((turn, tickets));
                Err(error)
            }
        }
    }

    pub(super) fn record_in_turn(&mut self, body: Body, ticket: u64) -> Result<Ack> {
        match body {
            Body::Assistant(content) => self.add_to_turn(More::Answer(content), vec![ticket], Whose::Own)?.told(ticket),
            Body::ToolResult(content) => {
                self.add_to_turn(More::Results(content), vec![ticket], Whose::Own)?.told(ticket)
            }
            // They say something about the session, not in the conversation.
            body @ (Body::Title(_) | Body::Snapshot(_) | Body::Header(_)) => {
                let durability = Durability::of(&body);
                self.write(vec![Piece::next(body)], ticket, durability)
            }
            body @ (Body::User(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Other(_)) => {
                self.leave_turn()?;
                let durability = Durability::of(&body);
                self.write(vec![Piece::next(body)], ticket, durability)
            }
        }
    }

    /// Adds to the turn, and writes it when it is over. A failure leaves it as it was.
    fn add_to_turn(&mut self, more: More, tickets: Vec<u64>, whose: Whose) -> Result<Came> {
        let Some(log) = &self.log else { return Ok(Came::Held) };
        let (at, own) = (log.clock(), tickets.last().copied().unwrap_or_default());
        // What is said again is known to go on until somebody else speaks.
        let is_live = log.place.mode == Mode::Live;
        let may_end = is_live && self.turn.as_ref().is_none_or(|(turn, _)| turn.may_end_with(&more));
        // A long turn is not copied for each of its results.
        let before = if may_end { self.turn.clone() } else { None };
        let (turn, held) = self.turn.get_or_insert_default();
        turn.add(more, at);
        held.extend(tickets);
        if !is_live || !turn.is_over() {
            return Ok(Came::Held);
        }
        let came = self.write_turn(whose, own);
        if came.is_err() {
            self.turn = before;
        }
        came
    }

    /// The answer is over, whatever comes now: no call before this one is forgotten, and none of them makes it fail.
    pub(super) fn end_answer(&mut self) -> Result<()> {
        if self.answer.is_none() {
            return Ok(());
        }
        // What is written here belongs to earlier calls.
        let ticket = self.tickets.last();
        match self.answer_ends(None, Whose::Earlier, ticket) {
            Err(Error::CannotStore { .. } | Error::OutOfOrder(_)) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The answer is whole. A failure leaves it open, unless trying again would not help.
    pub(super) fn answer_ends(&mut self, usage: Option<Usage>, whose: Whose, ticket: u64) -> Result<Ack> {
        let (Some(log), Some(mut answer)) = (&mut self.log, self.answer.take()) else { return Ok(Ack::NotRecorded) };
        let unit = log.place.writing.unit;
        let mut call = Call { ticket, log, tickets: &mut self.tickets };
        let ended =
            if unit == WriteUnit::Turn { answer.end(&mut call) } else { answer.finish(usage, whose, &mut call) };
        match ended {
            Ok(Ended::Whole(wrote)) => wrote.told(),
            Ok(Ended::Silent) if !answer.parts.is_empty() => self.answer_joins_turn(answer, usage, whose, ticket),
            Ok(Ended::Silent) => self.silent_answer_ends(answer, usage, ticket),
            Err(error) => {
                self.answer = Some(answer);
                Err(error)
            }
        }
    }

    fn answer_joins_turn(&mut self, answer: Answer, usage: Option<Usage>, whose: Whose, ticket: u64) -> Result<Ack> {
        let content =
            Content { parts: answer.parts.clone(), model: answer.model.clone(), usage, ..answer.about.clone() };
        let own = (whose == Whose::Own).then_some(ticket);
        let tickets = answer.tickets().chain(own).collect();
        match self.add_to_turn(More::Answer(content), tickets, whose) {
            Ok(came) => came.told(ticket),
            Err(error) => {
                self.answer = Some(answer);
                Err(error)
            }
        }
    }

    /// Nothing was said: what is known belongs to the answer before.
    fn silent_answer_ends(&mut self, answer: Answer, usage: Option<Usage>, ticket: u64) -> Result<Ack> {
        let waiting: Vec<u64> = answer.tickets().collect();
        let lost = answer.lost();
        if !lost.is_empty() {
            self.tickets.refuse(waiting, &lost.names());
            let dialect = self.dialect().map_or("", |dialect| dialect.name());
            return Err(Error::record_lost(dialect, lost));
        }
        let content = Content { usage, ..answer.about.clone() };
        if content == Content::default() {
            self.tickets.refuse(waiting, NO_WORDS);
            return Ok(Ack::NotRecorded);
        }
        match self.know_of_answer(content, ticket) {
            Ok(Known::Wrote(wrote)) => {
                self.tickets.settle(waiting, &wrote, Whose::Own);
                wrote.told()
            }
            Ok(Known::Held) => {
                self.turn.iter_mut().for_each(|(_, tickets)| tickets.extend(&waiting));
                Ok(Ack::Held { ticket })
            }
            Err(error @ (Error::CannotStore { .. } | Error::OutOfOrder(_))) => {
                self.tickets.refuse(waiting, NO_WORDS);
                Err(error)
            }
            Err(error) => {
                self.answer = Some(answer);
                Err(error)
            }
        }
    }

    /// The last answer cost this.
    pub fn usage(&mut self, usage: Usage) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.tickets.next();
        if self.log.is_none() {
            return Ok(Ack::NotRecorded);
        }
        match self.know_of_answer(Content { usage: Some(usage), ..Content::default() }, ticket)? {
            Known::Wrote(wrote) => wrote.told(),
            Known::Held => Ok(Ack::Held { ticket }),
        }
    }

    /// Facts about the last answer: a further piece of it, where the format has pieces.
    fn know_of_answer(&mut self, content: Content, ticket: u64) -> Result<Known> {
        if let Some((turn, tickets)) = &mut self.turn {
            turn.know(content);
            tickets.push(ticket);
            return Ok(Known::Held);
        }
        let answered = self.log.as_ref().and_then(|log| log.start.chain.answered.clone());
        let (Some(log), Some(answered)) = (&mut self.log, answered) else {
            return Err(Error::OutOfOrder("the model has not answered yet"));
        };
        let piece = if log.joins() {
            let fragment = Some(Fragment { seq: answered.lines, part: answered.lines });
            Piece { on: On::Again(answered), fragment, ..Piece::next(Body::Assistant(content)) }
        } else {
            Piece::next(Body::Assistant(content))
        };
        log.write(vec![piece], ticket, Durability::Flush).map(Known::Wrote)
    }

    /// Facts that belong to the message that was said last: a further piece of it, or a notice without words.
    pub(crate) fn add_to_message(&mut self, content: Content) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.tickets.next();
        if let Some((turn, tickets)) = &mut self.turn {
            turn.know(content);
            tickets.push(ticket);
            return Ok(Ack::Held { ticket });
        }
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let tip = log.start.chain.tip.clone().filter(|_| log.joins());
        let body = tip.as_ref().and_then(|tip| match tip.kind {
            Kind::User => Some(Body::User(content.clone())),
            Kind::Assistant => Some(Body::Assistant(content.clone())),
            Kind::ToolResult => Some(Body::ToolResult(content.clone())),
            Kind::System => Some(Body::System(content.clone())),
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
                Piece { on: On::Again(tip), fragment, ..Piece::next(body) }
            }
            _ => Piece::next(Body::System(content)),
        };
        self.write(vec![piece], ticket, Durability::Flush)
    }
}
