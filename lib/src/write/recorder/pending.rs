//! What is not written yet: the turn of a format that writes only whole turns, and an answer that ends; and facts that are
//! added to the message before.

use super::lines::Piece;
use super::open_answer::{OpenAnswer, Target};
use super::turn::{More, Turn};
use super::{Durability, Entry, Mode, Recorder, Saved, Warning};
use crate::dialect::writer::WriteUnit;
use crate::model::error::{Error, Result};
use crate::model::metadata::{FINISHED, INTERRUPTED};
use crate::model::record::{Body, Content, Kind, ToolResult, Usage};

/// Why entries of an answer without content are not recorded.
const NO_CONTENT: &str = "an answer without content";

/// A turn that is not complete, and its entries.
#[derive(Clone, Default)]
pub(super) struct PendingTurn {
    turn: Turn,
    pub(super) entries: Vec<u64>,
}

impl PendingTurn {
    pub(super) fn content(&self) -> &Content {
        self.turn.content()
    }

    pub(super) fn has_open_call(&self, id: &str) -> bool {
        self.content().open_calls().any(|(call, _)| call == id)
    }

    pub(super) fn add_result(&mut self, result: ToolResult, entry: u64) {
        self.turn.results(result.into());
        self.entries.push(entry);
    }
}

impl Recorder {
    /// Writes an answer or a turn that will not be completed. Returns the record of the turn, in formats that write whole turns.
    pub fn end_turn(&mut self) -> Result<Option<Saved>> {
        let was_in_doubt = self.is_in_doubt();
        self.cut_off_answer()?;
        let saved = self.write_turn(None)?;
        self.check_sync(was_in_doubt)?;
        Ok(saved)
    }

    /// The same; that the format cannot store the turn is no reason against what comes next.
    pub(super) fn leave_turn(&mut self) -> Result<()> {
        match self.end_turn() {
            Err(error) if !error.is_unstorable() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Writes the turn. It stays pending if that fails, unless the format cannot store it: then its entries are refused.
    fn write_turn(&mut self, own: Option<u64>) -> Result<Option<Saved>> {
        let (Some(log), Some(pending)) = (&mut self.log, self.turn.take()) else { return Ok(None) };
        let (body, responses) = pending.turn.clone().into_body();
        match log.write(vec![Piece { responses, ..Piece::next(body) }], Durability::Sync) {
            Ok(saved) => {
                self.ledger.settle_with_losses(pending.entries, &saved, log.may_lose_lines());
                Ok(Some(saved))
            }
            // No retry can write it.
            Err(error) if error.is_unstorable() => {
                let why = if let Error::CannotStore { what, .. } = &error { what.clone() } else { error.to_string() };
                self.refuse(pending.entries.into_iter().filter(|entry| Some(*entry) != own).collect(), &why);
                Err(error)
            }
            Err(error) => {
                self.turn = Some(pending);
                Err(error)
            }
        }
    }

    /// Notes that the format cannot store entries.
    pub(super) fn refuse(&mut self, entries: Vec<u64>, why: &str) {
        if !entries.is_empty() && !self.ledger.keeps_reports() {
            self.warning(Warning::NotStored);
        }
        self.ledger.refuse(entries, why);
    }

    pub(super) fn record_in_turn(&mut self, body: Body, entry: u64) -> Result<()> {
        match body {
            Body::Assistant(content) => self.add_to_turn(More::Answer(content), vec![entry], Some(entry)),
            Body::ToolResult(content) => self.add_to_turn(More::Results(content), vec![entry], Some(entry)),
            body => {
                if !body.kind().is_about_session() {
                    self.leave_turn()?;
                }
                let durability = Durability::of(&body);
                self.write(vec![Piece::next(body)], vec![entry], durability)
            }
        }
    }

    /// Adds to the turn, and writes it when it is complete. A failure leaves the turn as it was.
    fn add_to_turn(&mut self, more: More, entries: Vec<u64>, own: Option<u64>) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let at = log.clock();
        // A replayed turn continues until the next prompt, whatever it contains.
        let is_live = log.place.mode == Mode::Live;
        let may_end = is_live && self.turn.as_ref().is_none_or(|pending| pending.turn.may_end_with(&more));
        // A long turn is not copied for each of its results.
        let before = if may_end { self.turn.clone() } else { None };
        let pending = self.turn.get_or_insert_default();
        pending.turn.add(more, at);
        pending.entries.extend(entries);
        if !is_live || !pending.turn.is_over() {
            return Ok(());
        }
        match self.write_turn(own) {
            Err(error) if !error.is_unstorable() => {
                self.turn = before;
                Err(error)
            }
            written => written.map(|_| ()),
        }
    }

    /// Ends an answer that the model did not complete: in our own format, it is marked.
    pub fn cut_off_answer(&mut self) -> Result<()> {
        if self.unit() == Some(WriteUnit::Fragment)
            && let Some(answer) = self.answer.as_mut().filter(|answer| answer.is_begun())
        {
            answer.about.metadata.insert(INTERRUPTED.to_owned(), true.into());
        }
        self.end_answer().inspect_err(|_| {
            // The model may continue it.
            self.answer.iter_mut().for_each(|answer| _ = answer.about.metadata.shift_remove(INTERRUPTED));
        })
    }

    /// Ends the answer before whatever comes next. That the format cannot store it is no reason against that.
    pub(super) fn end_answer(&mut self) -> Result<()> {
        let was_in_doubt = self.is_in_doubt();
        match self.complete_answer(None, None) {
            Err(error) if !error.is_unstorable() => Err(error),
            Ok(()) | Err(_) => self.check_sync(was_in_doubt),
        }
    }

    /// Completes the answer. A failure leaves it open, unless a retry would not help. `own` is the entry of the call, if it has one.
    pub(super) fn complete_answer(&mut self, usage: Option<Usage>, own: Option<u64>) -> Result<()> {
        let (Some(log), Some(mut answer)) = (&mut self.log, self.answer.take()) else { return Ok(()) };
        let unit = log.place.writing.unit;
        let mut to = Target { entry: own, log, ledger: &mut self.ledger };
        let ended = match unit {
            WriteUnit::Turn => answer.end_last_part(&mut to).map(|()| false),
            WriteUnit::Fragment | WriteUnit::Part | WriteUnit::Block => answer.finish(usage, &mut to),
        };
        let result = match ended {
            Ok(true) => return Ok(()),
            Ok(false) if !answer.parts.is_empty() => self.add_answer_to_turn(&answer, usage, own),
            Ok(false) => self.complete_empty_answer(&answer, usage, own),
            Err(error) => Err(error),
        };
        if result.as_ref().is_err_and(|error| !error.is_unstorable()) {
            self.answer = Some(answer);
        }
        result
    }

    fn add_answer_to_turn(&mut self, answer: &OpenAnswer, usage: Option<Usage>, own: Option<u64>) -> Result<()> {
        let content =
            Content { parts: answer.parts.clone(), model: answer.model.clone(), usage, ..answer.about.clone() };
        self.add_to_turn(More::Answer(content), answer.entries().chain(own).collect(), own)
    }

    /// An answer without content. What is known of it belongs to the answer before if nothing came in between, else to a record
    /// of its own.
    fn complete_empty_answer(&mut self, answer: &OpenAnswer, usage: Option<Usage>, own: Option<u64>) -> Result<()> {
        let entries: Vec<u64> = answer.entries().collect();
        let lost = answer.losses();
        if !lost.is_empty() {
            self.refuse(entries, &lost.names());
            let dialect = self.dialect().map_or("", |dialect| dialect.name());
            return Err(Error::record_lost(dialect, lost));
        }
        let content = Content { usage, ..answer.about.clone() };
        if content == Content::default() {
            // Nothing is lost, so nobody is warned.
            self.ledger.refuse(entries, NO_CONTENT);
            return Ok(());
        }
        let all = entries.iter().copied().chain(own).collect();
        let result = if self.turn.is_some() || self.is_last_an_answer() {
            self.add_to_answer(content, all)
        } else {
            let content = Content { model: answer.model.clone(), ..content };
            self.write(vec![Piece::next(Body::Assistant(content))], all, Durability::Flush)
        };
        if let Err(Error::CannotStore { .. } | Error::OutOfOrder(_)) = result {
            self.refuse(entries, NO_CONTENT);
        }
        result
    }

    /// Whether the last record is an answer.
    fn is_last_an_answer(&self) -> bool {
        let chain = self.log.as_ref().map(|log| &log.cursor.chain);
        let ids = chain.map(|chain| (chain.parent.as_ref(), chain.last_answer.as_ref()));
        matches!(ids, Some((Some(parent), Some(answer))) if parent.id == answer.id)
    }

    /// Records the token counts of the last answer.
    pub fn usage(&mut self, usage: Usage) -> Result<Entry> {
        self.enter(|recorder, entry| {
            recorder.end_answer()?;
            recorder.add_to_answer(Content { usage: Some(usage), ..Content::default() }, vec![entry])
        })
    }

    /// Records that the agent ended its turn, where the format can say so (native) and the turn ends with tool results: else it would
    /// look as if the agent had stopped before it used them.
    pub fn mark_turn_ended(&mut self) -> Result<Entry> {
        self.end_answer()?;
        let parent = self.log.as_ref().and_then(|log| log.cursor.chain.parent.as_ref());
        let ends_with_results = parent.is_some_and(|parent| parent.kind == Kind::ToolResult);
        if self.unit() != Some(WriteUnit::Fragment) || !ends_with_results {
            return Ok(Entry::default());
        }
        let metadata = [(FINISHED.to_owned(), true.into())].into_iter().collect();
        self.enter(|recorder, entry| recorder.add_to_answer(Content { metadata, ..Content::default() }, vec![entry]))
    }

    /// Adds facts to the last answer: as a further line of it, if the format has those.
    fn add_to_answer(&mut self, content: Content, entries: Vec<u64>) -> Result<()> {
        if let Some(pending) = &mut self.turn {
            pending.turn.add_facts(content);
            pending.entries.extend(entries);
            return Ok(());
        }
        let answered = self.log.as_ref().and_then(|log| log.cursor.chain.last_answer.clone());
        let (Some(log), Some(answered)) = (&self.log, answered) else {
            return Err(Error::OutOfOrder("the model has not answered yet"));
        };
        let body = Body::Assistant(content);
        let piece = if log.joins() { Piece::append(answered, body) } else { Piece::next(body) };
        self.write(vec![piece], entries, Durability::Flush)
    }

    /// Adds facts to the last message: as a further line of it, or as a system record without text.
    pub(crate) fn add_to_message(&mut self, content: Content) -> Result<Entry> {
        self.enter(|recorder, entry| {
            recorder.end_answer()?;
            if let Some(pending) = &mut recorder.turn {
                pending.turn.add_facts(content);
                pending.entries.push(entry);
                return Ok(());
            }
            let last = recorder.log.as_ref().filter(|log| log.joins()).and_then(|log| log.cursor.chain.parent.clone());
            let message = last.filter(|last| last.kind.speaker().is_some());
            let kind = message.as_ref().map_or(Kind::System, |message| message.kind);
            let body =
                Body::from_content(kind, content).ok_or(Error::OutOfOrder("the last record is not a message"))?;
            let piece = match message {
                Some(message) => Piece::append(message, body),
                None => Piece::next(body),
            };
            recorder.write(vec![piece], vec![entry], Durability::Flush)
        })
    }
}
