//! An answer that arrives in pieces, written as finely as the format allows.

use super::log::{On, Piece};
use super::start::Tip;
use super::{Ack, Durability, Recorder, Saved};
use crate::assemble::settle_in_turn;
use crate::error::{Error, Result};
use crate::message::{Part, ReasoningPart, TextPart};
use crate::record::{Body, Said, ToolResult, Usage};
use crate::redact::Held;
use crate::writing::{Fragment, Grain, Loss, LossKind};

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a piece is moved once")]
pub enum Delta {
    /// This model answers.
    Model(String),
    /// The text goes on.
    Text(String),
    /// The thinking goes on.
    Reasoning(String),
    /// The text or the thinking is whole; the object is what its provider says of it.
    End(Option<serde_json::Map<String, serde_json::Value>>),
    /// A part that comes whole: a call, a file, a source. The same call again says more of it.
    Part(Part),
    /// What else is known of the answer: its task list, its thinking mode, its metadata.
    About(Box<Said>),
}

/// An answer that is not whole yet.
#[derive(Default)]
pub(super) struct Answer {
    /// The record, once a line of it is on disk.
    record: Option<Tip>,
    model: Option<String>,
    /// The text or thinking that goes on.
    open: Option<Open>,
    /// Counts the parts.
    part: u64,
    /// What a format with the grain of a turn writes later.
    parts: Vec<Part>,
    has_open_calls: bool,
    /// The calls among its parts.
    calls: Vec<String>,
    /// What is known and not written yet.
    about: Said,
    /// Pieces that the format has no place for: the next one that it has tells of them.
    lost: Vec<Loss>,
    /// Calls whose pieces are not on disk.
    tickets: Vec<u64>,
}

#[derive(Clone, Default)]
struct Open {
    is_reasoning: bool,
    held: Held,
    /// What a coarser grain has not written.
    text: String,
}

impl Open {
    fn part(&self, text: String) -> Part {
        if self.is_reasoning {
            Part::Reasoning(ReasoningPart { text, ..ReasoningPart::default() })
        } else {
            Part::Text(TextPart { text, ..TextPart::default() })
        }
    }
}

impl Answer {
    pub(super) fn tickets(&self) -> impl Iterator<Item = u64> + '_ {
        self.tickets.iter().copied()
    }

    fn know(&mut self, more: Said) {
        self.about.todos = more.todos.or(self.about.todos.take());
        self.about.thinking = more.thinking.or(self.about.thinking.take());
        self.about.metadata.extend(more.metadata);
    }
}

/// Takes a piece of the answer.
pub(super) fn take(recorder: &mut Recorder, delta: Delta, ticket: u64) -> Result<Ack> {
    let is_new = recorder.answer.is_none();
    if is_new {
        // A new answer is a new step of its turn.
        recorder.log.iter_mut().for_each(|log| log.start.chain.answer = None);
    }
    recorder.answer.get_or_insert_default();
    let taken = match delta {
        Delta::Model(model) => {
            recorder.answer.iter_mut().for_each(|answer| answer.model = Some(model.clone()));
            hold(recorder, ticket)
        }
        Delta::Text(text) => go_on(recorder, &text, Kind::Text, ticket),
        Delta::Reasoning(text) => go_on(recorder, &text, Kind::Reasoning, ticket),
        Delta::End(about) => end_part(recorder, about, ticket),
        Delta::About(more) => {
            recorder.answer.iter_mut().for_each(|answer| answer.know((*more).clone()));
            hold(recorder, ticket)
        }
        Delta::Part(part) => {
            end_part(recorder, None, ticket)?;
            whole_part(recorder, part, ticket)
        }
    };
    if taken.is_err() && is_new {
        recorder.answer = None;
    }
    taken
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

fn go_on(recorder: &mut Recorder, text: &str, kind: Kind, ticket: u64) -> Result<Ack> {
    let is_reasoning = kind == Kind::Reasoning;
    let open = recorder.answer.as_ref().and_then(|answer| answer.open.as_ref());
    if open.is_some_and(|open| open.is_reasoning != is_reasoning) {
        end_part(recorder, None, ticket)?;
    }
    let grain = grain(recorder);
    let Some(answer) = &mut recorder.answer else { return Ok(Ack::NotRecorded) };
    let before = answer.open.clone();
    let open = answer.open.get_or_insert_with(|| Open { is_reasoning, ..Open::default() });
    let safe = open.held.push(text);
    if grain != Grain::Fragment {
        open.text.push_str(&safe);
        return hold(recorder, ticket);
    }
    if safe.is_empty() {
        return hold(recorder, ticket);
    }
    let part = open.part(safe);
    let written = piece(recorder, Said::from(vec![part]), ticket, Durability::Flush);
    if let (Err(_), Some(answer)) = (&written, &mut recorder.answer) {
        answer.open = before;
    }
    written
}

/// The open text or thinking is whole.
fn end_part(
    recorder: &mut Recorder,
    about: Option<serde_json::Map<String, serde_json::Value>>,
    ticket: u64,
) -> Result<Ack> {
    let grain = grain(recorder);
    let Some(answer) = &mut recorder.answer else { return Ok(Ack::NotRecorded) };
    let Some(mut open) = answer.open.clone() else { return nothing_new(recorder, ticket) };
    let text = open.text.clone() + &open.held.release();
    let mut part = open.part(text.clone());
    let has_about = about.is_some();
    match &mut part {
        Part::Text(part) => part.provider_metadata = about,
        Part::Reasoning(part) => part.provider_metadata = about,
        _ => {}
    }
    let ack = match grain {
        Grain::Turn => {
            answer.parts.push(part);
            hold(recorder, ticket)?
        }
        Grain::Fragment if text.is_empty() && !has_about => nothing_new(recorder, ticket)?,
        Grain::Fragment | Grain::Part | Grain::Block => {
            piece(recorder, Said::from(vec![part]), ticket, Durability::Flush)?
        }
    };
    if let Some(answer) = &mut recorder.answer {
        answer.open = None;
        answer.part += 1;
    }
    Ok(ack)
}

fn whole_part(recorder: &mut Recorder, part: Part, ticket: u64) -> Result<Ack> {
    let is_open_call = matches!(&part, Part::Tool(call) if call.is_open());
    let call = if let Part::Tool(call) = &part { Some(call.call_id.clone()) } else { None };
    let is_known = |answer: &Answer| call.as_ref().is_some_and(|call| answer.calls.contains(call));
    let is_known = recorder.answer.as_ref().is_some_and(is_known);
    let ack = match grain(recorder) {
        Grain::Turn => {
            recorder.answer.iter_mut().for_each(|answer| put(&mut answer.parts, part.clone()));
            hold(recorder, ticket)?
        }
        // The call stands in the file as it was made.
        Grain::Part | Grain::Block if is_known => match nothing_new(recorder, ticket)? {
            Ack::Saved(saved) => {
                let loss = Loss { what: "a change of a call".to_owned(), kind: LossKind::Dropped };
                Ack::Saved(Saved { losses: vec![loss], ..saved })
            }
            ack @ (Ack::Held { .. } | Ack::NotRecorded) => ack,
        },
        Grain::Fragment | Grain::Part | Grain::Block => {
            piece(recorder, Said::from(vec![part]), ticket, Durability::Flush)?
        }
    };
    if let Some(answer) = &mut recorder.answer {
        answer.part += 1;
        answer.has_open_calls |= is_open_call;
        answer.calls.extend(call.filter(|_| !is_known));
    }
    Ok(ack)
}

/// Adds a part, or puts a call in the place of what was known of it.
fn put(parts: &mut Vec<Part>, part: Part) {
    let is_same = |known: &Part| matches!((known, &part), (Part::Tool(a), Part::Tool(b)) if a.call_id == b.call_id);
    match parts.iter_mut().find(|known| is_same(known)) {
        Some(known) => *known = part,
        None => parts.push(part),
    }
}

/// A tool's answer, while the model may go on with its own.
pub(super) fn result(recorder: &mut Recorder, result: ToolResult, ticket: u64) -> Result<Ack> {
    end_part(recorder, None, ticket)?;
    if grain(recorder) == Grain::Turn {
        let Some(answer) = &mut recorder.answer else { return Ok(Ack::NotRecorded) };
        let mut calls = answer
            .parts
            .iter_mut()
            .filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
        if let Some(call) = calls.find(|call| call.call_id == result.call_id && call.takes_result()) {
            settle_in_turn(call, result);
            return hold(recorder, ticket);
        }
        super::answer::end(recorder)?;
        return recorder.record_in_turn(Body::ToolResult(result.into()), ticket);
    }
    let answer = recorder.log.as_ref().and_then(|log| log.start.chain.answer.clone());
    let ack = recorder.write(vec![Piece::next(Body::ToolResult(result.into()))], ticket, Durability::Flush)?;
    // What the model says next still is the same answer.
    recorder.log.iter_mut().for_each(|log| log.start.chain.answer.clone_from(&answer));
    Ok(ack)
}

/// The answer is whole.
pub(super) fn finish(recorder: &mut Recorder, usage: Option<Usage>, ticket: u64) -> Result<Ack> {
    if recorder.answer.is_none() {
        return match usage {
            Some(usage) => recorder.usage(usage),
            None => Err(Error::NoPlace { record: "answer".to_owned(), why: "no answer has begun" }),
        };
    }
    end_part(recorder, None, ticket)?;
    if grain(recorder) == Grain::Turn {
        let Some(answer) = recorder.answer.take() else { return Ok(Ack::NotRecorded) };
        let said = Said { parts: answer.parts, model: answer.model, usage, ..answer.about };
        if let Some((_, tickets)) = &mut recorder.turn {
            tickets.extend(&answer.tickets);
        } else {
            recorder.turn = Some((super::Turn::default(), answer.tickets));
        }
        return recorder.record_in_turn(Body::Assistant(said), ticket);
    }
    let is_empty = |answer: &mut Answer| answer.record.is_none();
    if let Some(answer) = recorder.answer.take_if(is_empty) {
        if !answer.lost.is_empty() {
            let what = answer.lost.into_iter().map(|loss| loss.what).collect::<Vec<_>>().join(", ");
            let dialect = recorder.dialect().map_or("", |dialect| dialect.name());
            return Err(Error::CannotHold { dialect, what });
        }
        // Nothing was said: what is known belongs to the answer before.
        return recorder.know_of_answer(Said { usage, ..answer.about }, ticket);
    }
    let waits = recorder.answer.as_ref().is_some_and(|answer| answer.has_open_calls);
    let durability = if waits { Durability::Flush } else { Durability::Sync };
    let knows_more = recorder.answer.as_ref().is_some_and(|answer| answer.about != Said::default());
    let ack = match usage {
        usage if usage.is_some() || knows_more => {
            piece(recorder, Said { usage, ..Said::default() }, ticket, durability)?
        }
        _ => {
            let durability = recorder.options.durability.unwrap_or(durability);
            if durability == Durability::Sync {
                recorder.sync()?;
            }
            let record = recorder.answer.as_ref().and_then(|answer| answer.record.as_ref());
            let id = record.map(|tip| tip.id.clone());
            let losses = recorder.answer.as_mut().map(|answer| std::mem::take(&mut answer.lost)).unwrap_or_default();
            match id {
                Some(id) => Ack::Saved(Saved { ticket, id, durability, losses }),
                None => Ack::NotRecorded,
            }
        }
    };
    recorder.answer = None;
    Ok(ack)
}

/// The answer is over, whatever comes now.
pub(super) fn end(recorder: &mut Recorder) -> Result<()> {
    let ticket = recorder.next_ticket();
    match finish(recorder, None, ticket)? {
        Ack::Saved(_) | Ack::Held { .. } | Ack::NotRecorded => Ok(()),
    }
}

/// Writes what is held back of the open part.
pub(super) fn release(recorder: &mut Recorder) -> Result<()> {
    if grain(recorder) != Grain::Fragment {
        return Ok(());
    }
    let Some(open) = recorder.answer.as_mut().and_then(|answer| answer.open.as_mut()) else { return Ok(()) };
    if open.held.is_empty() {
        return Ok(());
    }
    let before = open.clone();
    let part = open.part(before.held.clone().release());
    open.held = Held::default();
    let ticket = recorder.answer.iter().flat_map(Answer::tickets).last().unwrap_or_default();
    let written = piece(recorder, Said::from(vec![part]), ticket, Durability::Flush);
    if let (Err(_), Some(answer)) = (&written, &mut recorder.answer) {
        answer.open = Some(before);
    }
    written.map(|_| ())
}

/// Writes a piece of the answer: a further line of its record, or a block of its own.
fn piece(recorder: &mut Recorder, mut said: Said, ticket: u64, durability: Durability) -> Result<Ack> {
    let joins = grain(recorder) < Grain::Block;
    let Some(answer) = &mut recorder.answer else { return Ok(Ack::NotRecorded) };
    let seq = answer.record.as_ref().map_or(0, |record| record.lines);
    if seq == 0 || !joins {
        said.model.clone_from(&answer.model);
    }
    let (on, fragment) = match (&answer.record, joins) {
        (Some(record), true) => (On::Again(record.clone()), Some(Fragment { seq, part: answer.part })),
        (None, true) => (On::Tip, Some(Fragment { seq, part: answer.part })),
        (_, false) => (On::Tip, None),
    };
    let about = answer.about.clone();
    (said.todos, said.thinking, said.metadata) = (about.todos, about.thinking, about.metadata);
    let written = recorder.write(vec![Piece { body: Body::Assistant(said), on, fragment }], ticket, durability);
    let Some(answer) = &mut recorder.answer else { return written };
    let mut ack = match written {
        // Trying again would not help, and the answer goes on.
        Err(Error::CannotHold { what, .. }) => {
            answer.lost.push(Loss { what, kind: LossKind::Dropped });
            return hold(recorder, ticket);
        }
        written => written?,
    };
    answer.about = Said::default();
    if let Ack::Saved(saved) = &mut ack {
        saved.losses.append(&mut answer.lost);
    }
    if let Some(record) = answer.record.as_mut().filter(|_| joins) {
        record.lines += 1;
    } else {
        answer.record = recorder.log.as_ref().and_then(|log| log.start.chain.tip.clone());
    }
    if let Ack::Saved(saved) = &ack {
        let tickets = std::mem::take(&mut answer.tickets);
        recorder.settled.extend(tickets.into_iter().filter(|held| *held != ticket).map(|ticket| Saved {
            ticket,
            losses: Vec::new(),
            ..saved.clone()
        }));
    }
    Ok(ack)
}

fn hold(recorder: &mut Recorder, ticket: u64) -> Result<Ack> {
    recorder.answer.iter_mut().for_each(|answer| answer.tickets.push(ticket));
    Ok(Ack::Held { ticket })
}

/// Nothing waits to be written: the call only marks a place in what is on disk.
fn nothing_new(recorder: &mut Recorder, ticket: u64) -> Result<Ack> {
    let record = recorder.answer.as_ref().and_then(|answer| answer.record.as_ref());
    match record.map(|tip| tip.id.clone()) {
        Some(id) => Ok(Ack::Saved(Saved { ticket, id, durability: Durability::Flush, losses: Vec::new() })),
        None => hold(recorder, ticket),
    }
}

fn grain(recorder: &Recorder) -> Grain {
    recorder.log.as_ref().map_or(Grain::Fragment, |log| log.place.writing.grain)
}
