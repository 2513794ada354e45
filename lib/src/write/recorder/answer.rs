//! An answer that arrives in pieces, written as finely as the format allows.
//!
//! A method that fails has written nothing and changed nothing. A failed `sync` is no failure here: the lines are in the file,
//! the answer goes on behind them, and [`Wrote::doubt`] is told last.

use serde_json::{Map, Value};

use super::ack::put;
use super::draft::{On, Piece};
use super::log::Log;
use super::start::ParentRecord;
use super::tickets::{Tickets, Whose, Wrote};
use super::words::{Kind, Open, Waiting};
use super::{Ack, Delta, Durability, Saved};
use crate::dialect::writer::{Fragment, WriteUnit};
use crate::model::error::{Error, Result};
use crate::model::loss::{LossKind, Losses};
use crate::model::message::{Part, ToolPart};
use crate::model::record::{Body, Content, ToolResult, Usage};
use crate::model::settle::settle_in_turn;

/// What an answer's metadata says where words of it could not be written and were not said again.
const TEXT_MISSING: &str = "textMissing";

/// An answer that is not whole yet.
#[derive(Default)]
pub(super) struct Answer {
    /// The record, once a line of it is on disk.
    record: Option<ParentRecord>,
    pub(super) model: Option<String>,
    /// The model that the record names.
    told_model: Option<String>,
    /// The text or thinking that goes on.
    open: Option<Open>,
    /// Counts the parts.
    part: u64,
    /// What a format with the grain of a turn writes later.
    pub(super) parts: Vec<Part>,
    pub(super) has_open_calls: bool,
    /// The calls among its parts: the id and the tool's name of each.
    calls: Vec<(String, String)>,
    /// What is known and not written yet.
    pub(super) about: Content,
    /// Pieces that the format has no place for, until it is known which record the answer is.
    lost: Vec<Lost>,
    /// Calls whose pieces are not on disk.
    waiting: Waiting,
    /// Words that were refused, until they are said again.
    missing: Option<(Kind, String)>,
}

/// A piece that an answer loses, and the calls that said it: they are told with the next one that is written.
struct Lost {
    losses: Losses,
    tickets: Vec<u64>,
}

/// The call that is under way.
pub(super) struct Call<'r> {
    pub(super) ticket: u64,
    pub(super) log: &'r mut Log,
    pub(super) tickets: &'r mut Tickets,
}

/// What came of a piece.
enum Came {
    Wrote(Wrote),
    /// There was nothing to write yet.
    Nothing,
    /// The format has no place for it: trying again would not help, and the answer goes on.
    CannotHold,
}

impl Came {
    /// Nothing more is written behind lines that may be lost.
    fn certain(self) -> Result<()> {
        match self {
            Came::Wrote(wrote) => wrote.told().map(|_| ()),
            Came::Nothing | Came::CannotHold => Ok(()),
        }
    }
}

/// How an answer ended.
pub(super) enum Ended {
    Whole(Wrote),
    /// Nothing of it is in the file.
    Silent,
}

impl Answer {
    pub(super) fn tickets(&self) -> impl Iterator<Item = u64> + '_ {
        self.lost.iter().flat_map(|lost| lost.tickets.iter().copied()).chain(self.waiting.tickets())
    }

    /// What the format has no place for, though nothing else was said.
    pub(super) fn lost(&self) -> Losses {
        self.lost.iter().flat_map(|lost| lost.losses.iter().cloned()).collect()
    }

    /// Takes a piece of the answer.
    pub(super) fn take(&mut self, delta: Delta, call: &mut Call<'_>) -> Result<Ack> {
        match delta {
            Delta::Model(model) => {
                self.model = Some(model);
                Ok(self.hold(call.ticket))
            }
            Delta::Text(text) => self.words(&text, Kind::Text, call),
            Delta::Reasoning(text) => self.words(&text, Kind::Reasoning, call),
            Delta::End(about) => {
                let came = self.end_part(about, Whose::Own, call)?;
                self.told(came, call)
            }
            Delta::About(more) => {
                self.about.know(*more);
                Ok(self.hold(call.ticket))
            }
            Delta::Part(part) => {
                self.check_call(&part)?;
                self.end_part(None, Whose::Earlier, call)?.certain()?;
                self.whole_part(part, call)
            }
        }
    }

    /// A tool's answer, while the model may go on with its own. Nothing, where it answers no call of this one.
    pub(super) fn result(&mut self, result: &ToolResult, call: &mut Call<'_>) -> Result<Option<Ack>> {
        self.end_part(None, Whose::Earlier, call)?.certain()?;
        if call.unit() == WriteUnit::Turn {
            let calls =
                self.parts.iter_mut().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
            let mut open = calls.filter(|called| called.call_id == result.call_id && called.takes_result());
            return Ok(open
                .next()
                .map(|called| settle_in_turn(called, result.clone()))
                .map(|()| self.hold(call.ticket)));
        }
        let answer = call.log.start.chain.answer.clone();
        let body = Body::ToolResult(result.clone().into());
        let wrote = call.log.write(vec![Piece::next(body)], call.ticket, Durability::Flush)?;
        // What the model says next still is the same answer.
        call.log.start.chain.answer = answer;
        wrote.told().map(Some)
    }

    /// Writes what is left to write. The answer is over unless this fails.
    pub(super) fn finish(&mut self, usage: Option<Usage>, whose: Whose, call: &mut Call<'_>) -> Result<Ended> {
        self.end_part(None, Whose::Earlier, call)?.certain()?;
        let Some(id) = self.record.as_ref().map(|record| record.id.clone()) else { return Ok(Ended::Silent) };
        let wanted = if self.has_open_calls { Durability::Flush } else { Durability::Sync };
        let names_model = self.model.is_some() && self.told_model.is_none();
        if usage.is_some() || self.about != Content::default() || names_model {
            let content = Content { usage, ..Content::default() };
            if let Came::Wrote(wrote) = self.write(content, whose, usize::MAX, wanted, call)? {
                return Ok(Ended::Whole(wrote));
            }
        }
        call.log.check()?;
        let durability = call.log.durability.unwrap_or(wanted);
        let doubt = if durability == Durability::Sync { call.log.sync().err() } else { None };
        let saved = Saved { ticket: call.ticket, id, durability, losses: Losses::default() };
        let wrote = Wrote { saved, doubt };
        self.tell_lost(&wrote, call);
        call.tickets.settle(self.waiting.written(usize::MAX), &wrote, whose);
        Ok(Ended::Whole(wrote))
    }

    /// Ends the last part of an answer that is written with its turn.
    pub(super) fn end(&mut self, call: &mut Call<'_>) -> Result<Ended> {
        self.end_part(None, Whose::Earlier, call)?.certain()?;
        Ok(Ended::Silent)
    }

    /// Writes what is held back of the open part.
    pub(super) fn release(&mut self, call: &mut Call<'_>) -> Result<()> {
        let Some(open) = self.open.as_mut().filter(|_| call.unit() == WriteUnit::Fragment) else { return Ok(()) };
        if open.held.is_empty() {
            return Ok(());
        }
        let before = open.clone();
        let part = before.part(open.release(call.log.place.redactor.as_deref()));
        match self.write(Content::from(vec![part]), Whose::Earlier, usize::MAX, Durability::Flush, call) {
            Ok(came) => came.certain(),
            Err(error) => {
                self.open = Some(before);
                Err(error)
            }
        }
    }

    /// The open text or thinking is whole. For a grain of turns this cannot fail.
    fn end_part(&mut self, about: Option<Map<String, Value>>, whose: Whose, call: &mut Call<'_>) -> Result<Came> {
        if self.missing.take().is_some() {
            self.about.metadata.insert(TEXT_MISSING.to_owned(), true.into());
        }
        let Some(open) = &self.open else { return Ok(Came::Nothing) };
        let (part, is_empty) = open.rest(about, call.log.place.redactor.as_deref());
        let came = match call.unit() {
            WriteUnit::Turn => {
                self.parts.push(part);
                Came::Nothing
            }
            WriteUnit::Fragment if is_empty => Came::Nothing,
            WriteUnit::Fragment | WriteUnit::Part | WriteUnit::Block => {
                self.write(Content::from(vec![part]), whose, usize::MAX, Durability::Flush, call)?
            }
        };
        self.open = None;
        self.part += 1;
        self.waiting.end_part();
        Ok(came)
    }

    fn words(&mut self, text: &str, kind: Kind, call: &mut Call<'_>) -> Result<Ack> {
        let is_again = |(known, missing): &(Kind, String)| *known == kind && text.starts_with(missing.as_str());
        if self.missing.as_ref().is_some_and(is_again) {
            self.missing = None;
        }
        if self.missing.take().is_some() {
            self.about.metadata.insert(TEXT_MISSING.to_owned(), true.into());
        }
        let came = self.go_on(text, kind, call);
        if came.is_err() {
            self.missing = Some((kind, text.to_owned()));
        }
        let came = came?;
        let is_held = self.open.as_ref().is_some_and(|open| !open.held.is_empty());
        match came {
            // Its end waits for what comes next.
            Came::Wrote(wrote) if is_held => {
                let ack = self.hold(call.ticket);
                wrote.told().map(|_| ack)
            }
            Came::Nothing => Ok(self.hold(call.ticket)),
            came => self.told(came, call),
        }
    }

    fn go_on(&mut self, text: &str, kind: Kind, call: &mut Call<'_>) -> Result<Came> {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.end_part(None, Whose::Earlier, call)?.certain()?;
        }
        let is_fine = call.unit() == WriteUnit::Fragment;
        let before = self.open.clone().filter(|_| is_fine);
        let open = self.open.get_or_insert_with(|| Open::begin(kind));
        let safe = open.push(text, call.log.place.redactor.as_deref());
        if !is_fine {
            open.text.push_str(&safe);
            return Ok(Came::Nothing);
        }
        if safe.is_empty() {
            return Ok(Came::Nothing);
        }
        let (part, up_to) = (open.part(safe), open.came.saturating_sub(open.held.len()));
        let whose = if open.held.is_empty() { Whose::Own } else { Whose::Earlier };
        let came = self.write(Content::from(vec![part]), whose, up_to, Durability::Flush, call);
        if came.is_err() {
            self.open = before;
        }
        came
    }

    fn whole_part(&mut self, part: Part, call: &mut Call<'_>) -> Result<Ack> {
        let is_open_call = matches!(&part, Part::Tool(called) if called.is_open());
        let called = if let Part::Tool(called) = &part { Some(named(called)) } else { None };
        let is_known = called.as_ref().is_some_and(|called| self.calls.contains(called));
        let ack = match call.unit() {
            WriteUnit::Turn => {
                put(&mut self.parts, part);
                self.hold(call.ticket)
            }
            // The call stands in the file as it was made.
            WriteUnit::Part | WriteUnit::Block if is_known => match self.told(Came::Nothing, call)? {
                Ack::Saved(saved) => Ack::Saved(Saved {
                    losses: LossKind::Dropped.of(crate::model::loss::Lost::CallUpdate).into(),
                    ..saved
                }),
                ack @ (Ack::Held { .. } | Ack::NotRecorded) => ack,
            },
            WriteUnit::Fragment | WriteUnit::Part | WriteUnit::Block => {
                let came = self.write(Content::from(vec![part]), Whose::Own, usize::MAX, Durability::Flush, call)?;
                self.part += 1;
                self.has_open_calls |= is_open_call;
                self.calls.extend(called.filter(|_| !is_known));
                return self.told(came, call);
            }
        };
        self.has_open_calls |= is_open_call;
        self.calls.extend(called.filter(|_| !is_known));
        Ok(ack)
    }

    /// The same call again says more of it; another one needs another id.
    fn check_call(&self, part: &Part) -> Result<()> {
        let Part::Tool(called) = part else { return Ok(()) };
        let (id, name) = named(called);
        match self.calls.iter().find(|(known, _)| *known == id) {
            Some((_, known)) if *known != name || id.is_empty() => Err(Error::DuplicateCall { call: id }),
            Some(_) | None => Ok(()),
        }
    }

    /// Writes a piece of the answer: a further line of its record, or a block of its own. Earlier calls whose words end
    /// before `up_to` in the open part are told.
    fn write(
        &mut self,
        mut content: Content,
        whose: Whose,
        up_to: usize,
        durability: Durability,
        call: &mut Call<'_>,
    ) -> Result<Came> {
        let joins = call.unit() < WriteUnit::Block;
        if !joins || self.told_model.is_none() {
            content.model.clone_from(&self.model);
        }
        let fragment = |seq| joins.then_some(Fragment { seq, part: self.part });
        let (on, fragment) = match self.record.clone().filter(|_| joins) {
            Some(record) => (On::Again(record.clone()), fragment(record.lines)),
            None => (On::ParentRecord, fragment(0)),
        };
        let about = self.about.clone();
        (content.todos, content.thinking, content.metadata) = (about.todos, about.thinking, about.metadata);
        let earlier = self.waiting.tickets().next_back().filter(|_| whose == Whose::Earlier);
        let ticket = earlier.unwrap_or(call.ticket);
        let piece = Piece { on, fragment, ..Piece::next(Body::Assistant(content)) };
        let wrote = match call.log.write(vec![piece], ticket, durability) {
            Err(Error::CannotStore { losses, .. }) => {
                self.lost.push(Lost { losses, tickets: self.waiting.written(up_to) });
                return Ok(Came::CannotHold);
            }
            wrote => wrote?,
        };
        self.about = Content::default();
        self.told_model = self.told_model.take().or_else(|| self.model.clone());
        self.tell_lost(&wrote, call);
        let chain = &call.log.start.chain;
        let answered = chain.answered.clone().filter(|answered| answered.id == wrote.saved.id);
        self.record = answered.or(self.record.take()).or_else(|| chain.tip.clone());
        call.tickets.settle(self.waiting.written(up_to), &wrote, whose);
        Ok(Came::Wrote(wrote))
    }

    /// Calls that said what the format has no place for are told so, now that the answer is a record.
    fn tell_lost(&mut self, wrote: &Wrote, call: &mut Call<'_>) {
        for Lost { losses, tickets } in std::mem::take(&mut self.lost) {
            call.tickets.settle_lost(tickets, &losses, wrote);
        }
    }

    /// What the call under way is told.
    fn told(&mut self, came: Came, call: &mut Call<'_>) -> Result<Ack> {
        let id = self.record.as_ref().map(|record| record.id.clone());
        match (came, id) {
            (Came::Wrote(wrote), _) => wrote.told(),
            (Came::CannotHold, _) => {
                self.lost.last_mut().into_iter().for_each(|lost| lost.tickets.push(call.ticket));
                Ok(Ack::Held { ticket: call.ticket })
            }
            // The call only marks a place in what is on disk.
            (Came::Nothing, Some(id)) if call.unit() != WriteUnit::Turn => {
                let (ticket, losses) = (call.ticket, Losses::default());
                Ok(Ack::Saved(Saved { ticket, id, durability: Durability::Flush, losses }))
            }
            (Came::Nothing, _) => Ok(self.hold(call.ticket)),
        }
    }

    fn hold(&mut self, ticket: u64) -> Ack {
        self.waiting.hold(ticket, self.open.as_ref())
    }
}

fn named(called: &ToolPart) -> (String, String) {
    (called.call_id.clone(), called.name.clone())
}

impl Call<'_> {
    fn unit(&self) -> WriteUnit {
        self.log.place.writing.unit
    }
}
