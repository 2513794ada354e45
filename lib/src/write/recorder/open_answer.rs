//! A streamed answer, written as finely as the format allows.
//!
//! A method that fails has written nothing and changed nothing. A failed `sync` is not a failure here: the lines are in the
//! file, the answer continues behind them, and [`Recorder`](super::Recorder) reports the failure when the call ends.

use serde_json::{Map, Value};

use super::cursor::ParentRecord;
use super::delta::put;
use super::ledger::Ledger;
use super::lines::{On, Piece};
use super::log::{Log, Moved};
use super::text_buffer::{TextBuffer, TextKind, Waiting};
use super::{Delta, Durability, Saved};
use crate::dialect::writer::{Fragment, WriteUnit};
use crate::model::error::{Error, Result};
use crate::model::loss::{LossKind, Losses, Lost};
use crate::model::message::{Part, ToolPart};
use crate::model::record::{Body, Content, ToolResult, Usage};
use crate::model::settle::settle_in_turn;

/// The key of an answer's metadata that marks text which could not be written and was not sent again.
const TEXT_MISSING: &str = "textMissing";

/// An answer that is not complete.
#[derive(Clone, Default)]
pub(super) struct OpenAnswer {
    /// The record, once a line of it is on disk.
    record: Option<ParentRecord>,
    pub(super) model: Option<String>,
    /// The model that the record names.
    written_model: Option<String>,
    /// The text or reasoning that is being streamed.
    buffer: Option<TextBuffer>,
    /// The number of the current part.
    part: u64,
    /// The parts so far, in formats that write whole turns.
    pub(super) parts: Vec<Part>,
    /// The ids of calls without results.
    open_calls: Vec<String>,
    /// The id and the tool name of each call.
    calls: Vec<(String, String)>,
    /// Task list, thinking mode and metadata that are not written.
    pub(super) about: Content,
    /// Pieces that the format cannot store, until a line of the answer is on disk.
    unstorable: Vec<Unstorable>,
    /// Entries whose pieces are not on disk.
    waiting: Waiting,
    /// A text that could not be written; the caller may send it again.
    missing: Option<(TextKind, String)>,
    /// Some text could not be written, and the caller has not sent it again.
    has_missing_text: bool,
}

/// A piece that the format cannot store, and the entries that it came with.
#[derive(Clone)]
struct Unstorable {
    losses: Losses,
    entries: Vec<u64>,
}

/// Where an answer is written to, and the entry of the call in progress, if it has one.
pub(super) struct Target<'r> {
    pub(super) entry: Option<u64>,
    pub(super) log: &'r mut Log,
    pub(super) ledger: &'r mut Ledger,
}

impl Target<'_> {
    fn unit(&self) -> WriteUnit {
        self.log.place.writing.unit
    }
}

/// The result of writing a piece.
#[derive(PartialEq, Eq)]
enum Wrote {
    Line,
    /// There was nothing to write yet.
    Nothing,
    /// The format cannot store it; a retry would not help, and the answer continues.
    CannotStore,
}

impl OpenAnswer {
    /// The entries that are not on disk.
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        self.unstorable.iter().flat_map(|piece| piece.entries.iter().copied()).chain(self.waiting.entries())
    }

    /// Whether this entry, the newest of all, is not on disk.
    pub(super) fn is_pending(&self, entry: u64) -> bool {
        let unstorable = self.unstorable.last().and_then(|piece| piece.entries.last().copied());
        [unstorable, self.waiting.last()].contains(&Some(entry))
    }

    /// Whether it has any content.
    pub(super) fn is_begun(&self) -> bool {
        self.record.is_some() || self.buffer.is_some()
    }

    /// Corrects the place of its lines.
    pub(super) fn move_lines(&mut self, moved: &Moved) {
        self.record.iter_mut().for_each(|record| moved.correct_record(record));
    }

    /// Everything so far that the format cannot store.
    pub(super) fn losses(&self) -> Losses {
        self.unstorable.iter().flat_map(|piece| piece.losses.iter().cloned()).collect()
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, delta: Delta, to: &mut Target<'_>) -> Result<()> {
        match delta {
            // The lines of one record have one model.
            Delta::Model(model) if self.names_other_model(&model, to) => {
                self.settle_own(LossKind::Dropped.of(Lost::Model).into(), to);
                return Ok(());
            }
            Delta::Model(model) => self.model = Some(model),
            Delta::About(more) => self.about.add_facts(*more),
            Delta::Text(text) => return self.text(&text, TextKind::Text, to),
            Delta::Reasoning(text) => return self.text(&text, TextKind::Reasoning, to),
            Delta::End(metadata) => {
                return self.waiting_for(to, |answer, to| {
                    if answer.end_part(metadata, to)? == Wrote::Nothing && to.unit() != WriteUnit::Turn {
                        answer.settle_own(Losses::default(), to);
                    }
                    Ok(())
                });
            }
            Delta::Part(part) => {
                self.check_call(&part)?;
                self.end_part(None, to)?;
                return self.waiting_for(to, |answer, to| answer.add_part(part, to));
            }
        }
        self.wait(to);
        Ok(())
    }

    /// Adds the result of a tool while the answer continues. Returns false if the result belongs to no call of the answer.
    pub(super) fn add_result(&mut self, result: &ToolResult, to: &mut Target<'_>) -> Result<bool> {
        if to.unit() == WriteUnit::Turn {
            let is_its = |call: &ToolPart| call.call_id == result.call_id && call.takes_result();
            let mut calls =
                self.parts.iter_mut().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
            let Some(call) = calls.find(|call| is_its(call)) else { return Ok(false) };
            settle_in_turn(call, result.clone());
            self.wait(to);
            return Ok(true);
        }
        self.end_part(None, to)?;
        let answer = to.log.cursor.chain.current_answer.clone();
        let body = Body::ToolResult(result.clone().into());
        let saved = to.log.write(vec![Piece::next(body)], Durability::Flush)?;
        // The next piece still belongs to this answer.
        to.log.cursor.chain.current_answer = answer;
        self.open_calls.retain(|call| *call != result.call_id);
        to.ledger.settle(to.entry.into_iter().collect(), saved, to.log.may_lose_lines());
        Ok(true)
    }

    /// Ends the last part, in formats that write whole turns.
    pub(super) fn end_last_part(&mut self, to: &mut Target<'_>) -> Result<()> {
        self.end_part(None, to).map(|_| ())
    }

    /// Writes what is left. The answer is complete unless this fails; returns false if nothing of it is in the file.
    pub(super) fn finish(&mut self, usage: Option<Usage>, to: &mut Target<'_>) -> Result<bool> {
        self.end_part(None, to)?;
        let Some(id) = self.record.as_ref().map(|record| record.id.clone()) else { return Ok(false) };
        self.waiting_for(to, |answer, to| {
            let durability = if answer.open_calls.is_empty() { Durability::Sync } else { Durability::Flush };
            let names_model = answer.model.is_some() && answer.written_model.is_none();
            // Readers who follow the file see the end of an answer by its last line. One with calls goes on after their results.
            let needs_end = to.unit() == WriteUnit::Fragment && to.entry.is_some() && answer.calls.is_empty();
            let has_facts = usage.is_some() || answer.about != Content::default() || names_model;
            if has_facts || answer.has_missing_text || needs_end {
                let content = Content { usage, ..Content::default() };
                if answer.write(content, usize::MAX, durability, to)? == Wrote::Line {
                    return Ok(true);
                }
            }
            to.log.check()?;
            let durability = to.log.durability.unwrap_or(durability);
            if durability == Durability::Sync {
                // The recorder reports a failure.
                drop(to.log.sync());
            }
            answer.settle(usize::MAX, Saved { id, durability, losses: Losses::default() }, to);
            Ok(true)
        })
    }

    /// When the oldest text arrived that is held back and could be written.
    pub(super) fn held_since(&self) -> Option<jiff::Timestamp> {
        self.buffer.as_ref()?.held_since()
    }

    /// Writes what is held back of the buffer.
    pub(super) fn release(&mut self, to: &mut Target<'_>) -> Result<()> {
        let Some(buffer) = self.buffer.as_mut().filter(|_| to.unit() == WriteUnit::Fragment) else { return Ok(()) };
        if !buffer.is_held_back() {
            return Ok(());
        }
        let before = buffer.clone();
        let part = before.part(buffer.release(to.log.place.redactor.as_deref()), None);
        let wrote = self.write(Content::from(vec![part]), usize::MAX, Durability::Flush, to);
        wrote.map(|_| ()).inspect_err(|_| self.buffer = Some(before))
    }

    /// Ends the current text or reasoning. Cannot fail in formats that write whole turns.
    fn end_part(&mut self, metadata: Option<Map<String, Value>>, to: &mut Target<'_>) -> Result<Wrote> {
        self.note_missing_text();
        let Some(buffer) = &self.buffer else { return Ok(Wrote::Nothing) };
        let text = buffer.rest(to.log.place.redactor.as_deref());
        let is_empty = text.is_empty() && metadata.is_none();
        let part = buffer.part(text, metadata);
        let wrote = match to.unit() {
            WriteUnit::Turn => {
                self.parts.push(part);
                Wrote::Nothing
            }
            WriteUnit::Fragment if is_empty => Wrote::Nothing,
            WriteUnit::Fragment | WriteUnit::Part | WriteUnit::Block => {
                self.write(Content::from(vec![part]), usize::MAX, Durability::Flush, to)?
            }
        };
        self.buffer = None;
        self.part += 1;
        self.waiting.end_part();
        Ok(wrote)
    }

    fn text(&mut self, text: &str, kind: TextKind, to: &mut Target<'_>) -> Result<()> {
        let is_again =
            |(missing_kind, missing): &(TextKind, String)| *missing_kind == kind && text.starts_with(missing.as_str());
        if self.missing.as_ref().is_some_and(is_again) {
            self.missing = None;
        }
        self.note_missing_text();
        self.add_text(text, kind, to).inspect_err(|_| self.missing = Some((kind, text.to_owned())))
    }

    fn add_text(&mut self, text: &str, kind: TextKind, to: &mut Target<'_>) -> Result<()> {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.kind != kind) && self.end_part(None, to)? == Wrote::Line {
            to.log.check()?;
        }
        let is_fragment = to.unit() == WriteUnit::Fragment;
        let before = self.buffer.clone().filter(|_| is_fragment);
        let buffer = self.buffer.get_or_insert_with(|| TextBuffer::new(kind));
        let safe = buffer.push(text, to.log.place.redactor.as_deref(), || to.log.clock());
        if !is_fragment {
            buffer.unwritten.push_str(&safe);
        }
        if !is_fragment || safe.is_empty() {
            self.wait(to);
            return Ok(());
        }
        let (part, released) = (buffer.part(safe, None), buffer.released());
        self.wait(to);
        let wrote = self.write(Content::from(vec![part]), released, Durability::Flush, to);
        wrote.map(|_| ()).inspect_err(|_| {
            self.buffer = before;
            to.entry.into_iter().for_each(|entry| self.waiting.remove(entry));
        })
    }

    fn add_part(&mut self, part: Part, to: &mut Target<'_>) -> Result<()> {
        let is_open_call = matches!(&part, Part::Tool(call) if call.is_open());
        let call = if let Part::Tool(call) = &part { Some(id_and_name(call)) } else { None };
        let is_known = call.as_ref().is_some_and(|call| self.calls.contains(call));
        match to.unit() {
            WriteUnit::Turn => put(&mut self.parts, part),
            // The file has the call as it was made first.
            WriteUnit::Part | WriteUnit::Block if is_known => {
                let losses = LossKind::Dropped.of(Lost::CallUpdate).into();
                self.settle_own(losses, to);
            }
            WriteUnit::Fragment | WriteUnit::Part | WriteUnit::Block => {
                self.write(Content::from(vec![part]), usize::MAX, Durability::Flush, to)?;
                self.part += 1;
            }
        }
        if let Some(call) = call {
            self.open_calls.retain(|open| *open != call.0);
            self.open_calls.extend(is_open_call.then(|| call.0.clone()));
            self.calls.extend((!is_known).then_some(call));
        }
        Ok(())
    }

    /// Refuses another call with the id of an earlier one; the same call again is an update.
    fn check_call(&self, part: &Part) -> Result<()> {
        let Part::Tool(call) = part else { return Ok(()) };
        let (id, name) = id_and_name(call);
        match self.calls.iter().find(|(known, _)| *known == id) {
            Some((_, known)) if *known != name || id.is_empty() => Err(Error::DuplicateCall { call: id }),
            Some(_) | None => Ok(()),
        }
    }

    /// Writes a piece: a further line of the record, or a record of its own. Entries whose text ends before `end` in the
    /// buffer are on disk then.
    fn write(
        &mut self,
        mut content: Content,
        end: usize,
        durability: Durability,
        to: &mut Target<'_>,
    ) -> Result<Wrote> {
        let joins = to.unit() < WriteUnit::Block;
        if !joins || self.written_model.is_none() {
            content.model.clone_from(&self.model);
        }
        let fragment = |seq| joins.then_some(Fragment { seq, part: self.part });
        let (on, fragment) = match self.record.clone().filter(|_| joins) {
            Some(record) => (On::Append(record.clone()), fragment(record.lines)),
            None => (On::Last, fragment(0)),
        };
        let about = self.about.clone();
        (content.todos, content.thinking, content.metadata) = (about.todos, about.thinking, about.metadata);
        if self.has_missing_text {
            content.metadata.insert(TEXT_MISSING.to_owned(), true.into());
        }
        let piece = Piece { on, fragment, ..Piece::next(Body::Assistant(content)) };
        let saved = match to.log.write(vec![piece], durability) {
            Err(Error::CannotStore { losses, .. }) => {
                self.unstorable.push(Unstorable { losses, entries: self.waiting.take_written(end) });
                return Ok(Wrote::CannotStore);
            }
            saved => saved?,
        };
        self.about = Content::default();
        self.has_missing_text = false;
        self.written_model = self.written_model.take().or_else(|| self.model.clone());
        let chain = &to.log.cursor.chain;
        let answered = chain.last_answer.clone().filter(|answered| answered.id == saved.id);
        self.record = answered.or(self.record.take()).or_else(|| chain.parent.clone());
        self.settle(end, saved, to);
        Ok(Wrote::Line)
    }

    /// Notes that entries are on disk, and those whose pieces the format cannot store.
    fn settle(&mut self, end: usize, saved: Saved, to: &mut Target<'_>) {
        let is_in_doubt = to.log.may_lose_lines();
        for Unstorable { losses, entries } in std::mem::take(&mut self.unstorable) {
            to.ledger.settle_with_losses(entries, &Saved { losses, ..saved.clone() }, is_in_doubt);
        }
        to.ledger.settle(self.waiting.take_written(end), saved, is_in_doubt);
    }

    /// Notes that the entry of the call in progress is on disk, because it adds nothing to the lines that are.
    fn settle_own(&mut self, losses: Losses, to: &mut Target<'_>) {
        let Some(id) = self.record.as_ref().map(|record| record.id.clone()) else { return };
        to.entry.into_iter().for_each(|entry| self.waiting.remove(entry));
        let durability = to.log.durability.unwrap_or(Durability::Flush);
        let saved = Saved { id, durability, losses };
        to.ledger.settle(to.entry.into_iter().collect(), saved, to.log.may_lose_lines());
    }

    /// Lets the entry of the call in progress wait while `work` runs, and takes it back if that fails.
    fn waiting_for<T>(
        &mut self,
        to: &mut Target<'_>,
        work: impl FnOnce(&mut OpenAnswer, &mut Target<'_>) -> Result<T>,
    ) -> Result<T> {
        self.wait(to);
        work(self, to).inspect_err(|_| to.entry.into_iter().for_each(|entry| self.waiting.remove(entry)))
    }

    fn wait(&mut self, to: &Target<'_>) {
        to.entry.into_iter().for_each(|entry| self.waiting.add(entry, self.buffer.as_ref()));
    }

    fn note_missing_text(&mut self) {
        self.has_missing_text |= self.missing.take().is_some();
    }

    /// Whether the record names another model already, and its format joins the lines of a record.
    fn names_other_model(&self, model: &str, to: &Target<'_>) -> bool {
        to.unit() < WriteUnit::Block && self.written_model.as_deref().is_some_and(|written| written != model)
    }
}

fn id_and_name(call: &ToolPart) -> (String, String) {
    (call.call_id.clone(), call.name.clone())
}
