//! The recorder: what an agent says and does is on disk when the call returns. One for each session; [`crate::write::store::Store`]
//! opens it.
//!
//! Nothing of a failed call is recorded, so that the caller can try again or tell its user; only after a failed `sync`
//! ([`Error::Unsaved`]) the recorder keeps the records itself until [`Recorder::reopen`] has saved them.

mod answer;
mod blocks;
mod delta;
mod lines;
mod entry;
mod file_now;
mod files;
mod ledger;
mod log;
mod open_answer;
mod pending;
mod sidecar;
mod cursor;
mod status;
mod text_buffer;
mod title;
mod turn;
mod watch;

use serde_json::Value;

use crate::dialect::RepeatedId;
use crate::dialect::writer::{Shape, WriteUnit};
pub use crate::disk::append::Warning;
use crate::model::error::{Error, Result};
use crate::model::message::{Part, ToolPart};
use crate::model::record::{
    Body, Compaction, Content, Kind, RecordId, Restore, Rewind, Snapshot, Thinking, Title, Todo, ToolResult, Usage,
};
use crate::write::rotate::EndedSession;
use crate::write::store::no_branches;
pub use answer::Answer;
use blocks::blocks;
pub(crate) use cursor::{CALL_SEARCH_RECORDS, Cursor, ParentRecord};
pub use delta::Delta;
pub use entry::{Durability, Entry, Options, Report, Saved};
use files::Files;
use ledger::Ledger;
use lines::{Batch, On, Piece};
pub(crate) use log::{Log, Mode, Place};
use open_answer::{OpenAnswer, Target};
use pending::PendingTurn;
pub(crate) use sidecar::{first_tally, replace_sidecar};
pub use turn::steps;
use turn::take_result;
pub use watch::Watched;

/// Records one session.
///
/// **What is on disk**: each call that records something returns an [`Entry`], and everything up to [`Recorder::saved_through`]
/// is on disk. Some formats write an answer when its part, the answer or the turn is complete; until then its entries are
/// pending, and [`Recorder::close`] writes them. A recorder that is dropped writes nothing more, as in a crash.
///
/// **When a call fails**, nothing of it is recorded and it has no entry; make it again. It may have completed the answer or the
/// turn before it. The one exception is [`Error::Unsaved`]: a `sync` failed, and every call that writes fails until
/// [`Recorder::reopen`] succeeds; its field `is_recorded` says whether the record of this call is in the file.
/// [`Recorder::retry`] does what is needed.
///
/// ```
/// use scrollback::{Store, Usage, View};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let root = folder.path();
/// let store = Store::native(root)?;
/// let mut session = store.create("/home/ada/tides")?;
/// session.user("When is high water?")?;
/// let mut answer = session.answer("model-1")?;
/// answer.text("Let me look.")?;
/// let call = answer.tool_call("read_file", json!({"path": "tides.txt"}))?;
/// answer.finish(Usage { input: Some(20), output: Some(5), ..Usage::default() })?;
/// session.tool_result(&call, Ok(json!("04:12")))?;
/// assert_eq!(session.history(View::Anthropic)?.len(), 3); // what to send next
/// session.assistant("At 04:12.")?;
/// assert_eq!(session.saved_through(), session.last_entry());
/// session.close()?;
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    log: Option<Log>,
    options: Options,
    ledger: Ledger,
    /// What a format that writes whole turns has not written yet.
    turn: Option<PendingTurn>,
    /// The streamed answer that is not complete.
    answer: Option<OpenAnswer>,
    /// The session that was ended so that this one could begin.
    predecessor: Option<EndedSession>,
    /// What tools change on disk.
    files: Files,
}

impl Recorder {
    /// Records nothing: for a sub-agent whose work nobody wants to keep.
    pub fn disabled() -> Recorder {
        Recorder {
            log: None,
            options: Options::usual(),
            ledger: Ledger::default(),
            turn: None,
            answer: None,
            predecessor: None,
            files: Files::default(),
        }
    }

    pub(crate) fn new(mut log: Log, options: Options) -> Recorder {
        log.durability = options.durability;
        log.context.user_type.clone_from(&options.user_type);
        Recorder { log: Some(log), options, ..Recorder::disabled() }
    }

    pub(crate) fn after(self, ended: Option<EndedSession>) -> Recorder {
        Recorder { predecessor: ended, ..self }
    }

    /// Sets the parent of the next record; `None` begins a conversation.
    pub(crate) fn set_parent(&mut self, tip: Option<ParentRecord>, sidechain: bool, branches: bool) {
        if let Some(log) = &mut self.log {
            let chain = &mut log.cursor.chain;
            (chain.parent, chain.is_sidechain, chain.starts_branch) = (tip, sidechain, branches);
        }
    }

    /// Accepts results of a body's calls, though the body was not written here.
    pub(crate) fn expect_results(&mut self, body: &Body) {
        if let (Some(log), Some(content)) = (&mut self.log, body.content()) {
            log.cursor.expect_results(content);
        }
    }

    /// Records a prompt.
    pub fn user(&mut self, content: impl Into<Content>) -> Result<Entry> {
        self.record(Body::User(content.into()))
    }

    /// Starts an answer that is recorded as it is streamed; [`Recorder::assistant`] records one that is complete.
    pub fn answer(&mut self, model: impl Into<String>) -> Result<Answer<'_>> {
        self.end_answer()?;
        self.delta(Delta::Model(model.into()))?;
        Ok(Answer::new(self))
    }

    /// Records a complete answer: all of one response, its tool calls among the parts.
    pub fn assistant(&mut self, content: impl Into<Content>) -> Result<Entry> {
        self.record(Body::Assistant(content.into()))
    }

    /// Records the output of a tool call, or why it failed. For results with more detail, see [`Recorder::tool_results`].
    pub fn tool_result(&mut self, call: &ToolPart, result: std::result::Result<Value, String>) -> Result<Entry> {
        self.tool_results(ToolResult::of(call, result))
    }

    /// Records results of tool calls.
    pub fn tool_results(&mut self, content: impl Into<Content>) -> Result<Entry> {
        self.record(Body::ToolResult(content.into()))
    }

    /// Records an instruction to the model, or a notice of the agent.
    pub fn system(&mut self, content: impl Into<Content>) -> Result<Entry> {
        self.record(Body::System(content.into()))
    }

    /// Records a failure of the agent or of its provider; a tool that failed is a [`Recorder::tool_result`].
    pub fn error(&mut self, kind: &str, text: &str) -> Result<Entry> {
        self.record(Body::System(Content { error: Some(kind.to_owned()), ..Content::from(text) }))
    }

    /// Records the session's title.
    pub fn title(&mut self, title: impl Into<Title>) -> Result<Entry> {
        self.record(Body::Title(title.into()))
    }

    /// Records a summary that replaces what came before for the model.
    pub fn compaction(&mut self, compaction: Compaction) -> Result<Entry> {
        self.record(Body::Compaction(compaction))
    }

    /// Records file states before a change, as the caller knows them; [`Recorder::before_tool`] and [`Recorder::watch`] find out.
    pub fn snapshot(&mut self, snapshot: Snapshot) -> Result<Entry> {
        self.record(Body::Snapshot(snapshot))
    }

    /// Records that files were restored, and continues from the record `to`: the head, if only files were restored.
    pub fn restore(&mut self, to: &RecordId, restore: Restore) -> Result<Entry> {
        if self.head() == Some(to) {
            return self.record(Body::Restore(restore));
        }
        let entry = self.go_back(to, Body::Restore(restore))?;
        self.settle_turn();
        Ok(entry)
    }

    /// Records the task list, as part of the last message.
    pub fn todos(&mut self, todos: Vec<Todo>) -> Result<Entry> {
        self.add_to_message(Content { todos: Some(todos), ..Content::default() })
    }

    /// Records the thinking mode, as part of the last message.
    pub fn thinking(&mut self, thinking: Thinking) -> Result<Entry> {
        self.add_to_message(Content { thinking: Some(thinking), ..Content::default() })
    }

    /// Continues from an earlier record, which becomes the parent of the next one; what came after it stays as a branch.
    pub fn rewind(&mut self, to: &RecordId, reason: Option<String>) -> Result<Entry> {
        let was_settled = self.is_settled();
        let entry = self.go_back(to, Body::Rewind(Rewind { from: None, reason }))?;
        self.stay_settled(was_settled);
        Ok(entry)
    }

    /// Continues from the start of the session, before its first prompt: the next record begins another conversation in the same
    /// file. Fails if the format has one beginning only: see [`crate::dialect::Writer::can_restart`].
    pub fn rewind_to_start(&mut self, reason: Option<String>) -> Result<Entry> {
        let was_settled = self.is_settled();
        let entry = self.go_to_start(|from| Body::Rewind(Rewind { from, reason }))?;
        self.stay_settled(was_settled);
        Ok(entry)
    }

    /// Records that files were restored, and continues from the start of the session, as [`Recorder::rewind_to_start`] does.
    pub fn restore_to_start(&mut self, restore: Restore) -> Result<Entry> {
        let entry = self.go_to_start(|from| Body::Restore(Restore { from, ..restore }))?;
        self.settle_turn();
        Ok(entry)
    }

    fn go_to_start(&mut self, body: impl FnOnce(Option<RecordId>) -> Body) -> Result<Entry> {
        self.enter(|recorder, entry| {
            let Some(log) = &recorder.log else { return Ok(()) };
            if !log.place.writing.can_restart {
                return Err(Error::cannot_store(log.place.dialect.name(), "a second beginning".to_owned()));
            }
            recorder.leave_turn()?;
            let Some(log) = &mut recorder.log else { return Ok(()) };
            let from = log.cursor.chain.parent.as_ref().map(|tip| tip.id.clone());
            let body = body(from);
            let todos = if let Body::Restore(restore) = &body { restore.todos.clone() } else { None };
            let piece = Piece { on: On::Start, ..Piece::next(body) };
            let left = std::mem::take(&mut log.cursor.chain.is_sidechain);
            let saved = log.write(vec![piece], Durability::Sync);
            let saved = saved.inspect_err(|_| log.cursor.chain.is_sidechain = left)?;
            log.cursor.move_to_start();
            log.cursor.todos = todos.or(log.cursor.todos.take());
            recorder.ledger.settle(vec![entry], saved, log.may_lose_lines());
            Ok(())
        })
    }

    /// Writes a record whose parent is an earlier one; `body` gets the head that is left.
    fn go_back(&mut self, to: &RecordId, mut body: Body) -> Result<Entry> {
        self.enter(|recorder, entry| {
            let Some(log) = &recorder.log else { return Ok(()) };
            if log.place.writing.shape == Shape::Linear {
                return Err(no_branches(to.as_str()));
            }
            if recorder.answer.is_some() || recorder.turn.is_some() {
                // Before the answer ends: what cannot be recorded ends nothing.
                log.cursor_at(to)?;
                log.check_storable(vec![Piece { on: On::Record(to.clone()), ..Piece::next(body.clone()) }])?;
                recorder.leave_turn()?;
            }
            let Some(log) = &mut recorder.log else { return Ok(()) };
            let there = log.cursor_at(to)?;
            let from = log.cursor.chain.parent.as_ref().map(|tip| tip.id.clone());
            let to = there.chain.parent.as_ref().map_or_else(|| to.clone(), |tip| tip.id.clone());
            if let Body::Rewind(Rewind { from: left, .. }) | Body::Restore(Restore { from: left, .. }) = &mut body {
                *left = from;
            }
            let todos = if let Body::Restore(restore) = &body { restore.todos.clone() } else { None };
            let piece = Piece { on: On::Record(to), ..Piece::next(body) };
            // The record belongs to the side of the conversation that it goes back to.
            let left = std::mem::replace(&mut log.cursor.chain.is_sidechain, there.chain.is_sidechain);
            let saved = log.write(vec![piece], Durability::Sync);
            let saved = saved.inspect_err(|_| log.cursor.chain.is_sidechain = left)?;
            log.cursor.move_to(there);
            log.cursor.todos = todos.or(log.cursor.todos.take());
            recorder.ledger.settle(vec![entry], saved, log.may_lose_lines());
            Ok(())
        })
    }

    /// Records any body, as a child of the last record. To go back from the head, use [`Recorder::rewind`] or
    /// [`Recorder::restore`]: a [`Body::Rewind`] or [`Body::Restore`] given here is for a recorder that was opened at the record
    /// to continue from.
    pub fn record(&mut self, body: Body) -> Result<Entry> {
        if let Body::Rewind(Rewind { from: Some(from), .. }) | Body::Restore(Restore { from: Some(from), .. }) = &body
            && self.head() == Some(from)
        {
            let why = "its parent must be an earlier record: use `rewind` or `restore`";
            return Err(Error::CannotContinue { record: from.to_string(), why });
        }
        let stores_display = self.log.as_ref().is_none_or(|log| log.place.writing.stores_display);
        let body = if stores_display { body } else { body.without_display() };
        let body = self.checked(body)?;
        let (kind, was_settled) = (body.kind(), self.is_settled());
        let entry = self.enter(|recorder, entry| {
            recorder.end_answer()?;
            if kind == Kind::User {
                recorder.begin_turn()?;
            }
            if let Some(log) = recorder.log.as_mut().filter(|_| body.kind() != Kind::Title) {
                log.repeat_title();
            }
            recorder.record_body(body, entry)
        })?;
        match kind {
            Kind::Assistant | Kind::Restore => self.settle_turn(),
            Kind::User | Kind::ToolResult => {}
            _ => self.stay_settled(was_settled),
        }
        Ok(entry)
    }

    /// Fails if a body can never be recorded, before it ends an answer or a turn that continues.
    fn checked(&self, mut body: Body) -> Result<Body> {
        let Some(log) = self.log.as_ref().filter(|log| log.place.mode == Mode::Live) else { return Ok(body) };
        if let Body::Title(title) = &mut body {
            title.text = Title::checked(&title.text).map_err(Error::InvalidTitle)?;
        }
        if let Some(call) = body.content().and_then(Content::ambiguous_call) {
            return Err(Error::DuplicateCall { call: call.to_owned() });
        }
        let is_of_turn =
            self.unit() == Some(WriteUnit::Turn) && matches!(body.kind(), Kind::Assistant | Kind::ToolResult);
        if !is_of_turn && (self.answer.is_some() || self.turn.is_some()) {
            log.check_storable(pieces(log.place.writing.unit, body.clone()))?;
        }
        Ok(body)
    }

    fn record_body(&mut self, mut body: Body, entry: u64) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let is_live = log.place.mode == Mode::Live;
        if let (true, Body::User(content)) = (is_live, &mut body) {
            log.refresh_context();
            if content.thinking.is_none() {
                let texts = content
                    .parts
                    .iter()
                    .filter_map(|part| if let Part::Text(text) = part { Some(&text.text) } else { None });
                content.thinking = texts.into_iter().find_map(|text| self.options.triggers.of(text));
            }
        }
        let durability = Durability::of(&body);
        match log.place.writing.unit {
            WriteUnit::Turn => self.record_in_turn(body, entry),
            unit => self.write(pieces(unit, body), vec![entry], durability),
        }
    }

    /// Records a piece of a streamed answer; [`Recorder::answer`] is the convenient way to do that.
    ///
    /// The losses of a piece that the format cannot store are reported once another piece of the answer is on disk; an answer of
    /// nothing else is refused.
    pub fn delta(&mut self, delta: Delta) -> Result<Entry> {
        self.enter(|recorder, entry| match delta {
            Delta::Part(Part::Tool(mut call)) if !call.is_open() && recorder.unit() < Some(WriteUnit::Turn) => {
                // A call that the provider ran comes with its result, which is a record of its own.
                let result = take_result(&mut call);
                recorder.add_delta(Delta::Part(Part::Tool(call)), None)?;
                result.map_or(Ok(()), |result| recorder.add_result(result, entry))
            }
            delta => recorder.add_delta(delta, Some(entry)),
        })
    }

    fn add_delta(&mut self, delta: Delta, entry: Option<u64>) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if self.answer.is_none() {
            // A new answer is a new step of its turn.
            log.cursor.chain.current_answer = None;
        }
        let answer = self.answer.get_or_insert_default();
        answer.add(delta, &mut Target { entry, log, ledger: &mut self.ledger })
    }

    /// Completes the streamed answer.
    pub fn finish_answer(&mut self, usage: Option<Usage>) -> Result<Entry> {
        match (&self.answer, usage) {
            (Some(_), usage) => {
                let entry = self.enter(|recorder, entry| recorder.complete_answer(usage, Some(entry)))?;
                self.settle_turn();
                Ok(entry)
            }
            (None, Some(usage)) => self.usage(usage),
            (None, None) if self.log.is_none() => Ok(Entry::default()),
            (None, None) => Err(Error::OutOfOrder("no answer was started")),
        }
    }

    /// Records the result of a tool while the model continues its answer.
    pub fn early_result(&mut self, result: ToolResult) -> Result<Entry> {
        if self.answer.is_none() {
            return self.tool_results(result);
        }
        self.enter(|recorder, entry| recorder.add_result(result, entry))
    }

    fn add_result(&mut self, result: ToolResult, entry: u64) -> Result<()> {
        let (Some(log), Some(answer)) = (&mut self.log, &mut self.answer) else { return Ok(()) };
        if answer.add_result(&result, &mut Target { entry: Some(entry), log, ledger: &mut self.ledger })? {
            return Ok(());
        }
        // The call of an earlier answer in the turn.
        if let Some(pending) = self.turn.as_mut().filter(|pending| pending.has_open_call(&result.call_id)) {
            pending.add_result(result, entry);
            return Ok(());
        }
        self.end_answer()?;
        self.record_in_turn(Body::ToolResult(result.into()), entry)
    }

    /// Gives up the streamed answer: what is on disk stays, and the rest is refused.
    pub fn drop_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.ledger.refuse(answer.entries().collect(), "an answer that was abandoned");
        }
    }

    /// How long text that is held back may still wait for more: then call [`Recorder::release`]. `None` if none is held back.
    pub fn release_in(&self) -> Option<std::time::Duration> {
        let (log, answer) = (self.log.as_ref()?, self.answer.as_ref()?);
        let held = log.clock().as_millisecond().saturating_sub(answer.held_since()?.as_millisecond());
        Some(std::time::Duration::from_millis(u64::try_from(text_buffer::MAX_HELD_MS - held).unwrap_or(0)))
    }

    /// Writes what is held back of a stream because more text could make it a secret. Call it when [`Recorder::release_in`] has
    /// passed without a piece.
    pub fn release(&mut self) -> Result<()> {
        let was_in_doubt = self.is_in_doubt();
        let (Some(log), Some(answer)) = (&mut self.log, &mut self.answer) else { return Ok(()) };
        answer.release(&mut Target { entry: None, log, ledger: &mut self.ledger })?;
        self.check_sync(was_in_doubt)
    }

    pub(crate) fn warning(&mut self, warning: Warning) {
        if let Some(log) = &mut self.log {
            log.warning(warning);
        }
    }

    /// Makes everything so far survive the death of the machine.
    pub fn sync(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::sync)?;
        self.note_synced();
        Ok(())
    }

    /// Saves what a failed `sync` left unsafe. Records that are in the file are not written twice.
    pub fn reopen(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Log::reopen)?;
        self.ledger.resolve_doubt();
        self.note_synced();
        Ok(())
    }

    /// Writes everything that is pending, and the sidecar, and makes it safe. The recorder can continue. If this fails, call it
    /// again; what is in the file is made safe all the same.
    pub fn close(&mut self) -> Result<()> {
        let ended = self.leave_turn().and_then(|()| self.end_last_turn());
        let Some(log) = &mut self.log else { return ended };
        match ended {
            Ok(()) => {
                log.repeat_title();
                log.close()?;
            }
            Err(error) => {
                // The caller gets the first failure.
                drop(log.pause());
                return Err(error);
            }
        }
        self.note_synced();
        Ok(())
    }

    /// Makes a call and, only if its `sync` fails ([`Error::Unsaved`]), saves what was written once more at once. The call itself
    /// is repeated only if nothing of it is in the file. After an error nothing of it is recorded. If the second attempt fails
    /// too, the entry is pending: its record is in the file, may not survive a crash, and is saved before the next call.
    pub fn retry(&mut self, mut call: impl FnMut(&mut Recorder) -> Result<Entry>) -> Result<Entry> {
        if self.is_in_doubt() {
            self.reopen()?;
        }
        let before = self.last_entry();
        let result = call(self);
        let Err(Error::Unsaved { .. }) = result else { return result };
        let number = self.last_entry();
        let saved = self.ledger.doubted(number);
        let reopened = self.reopen();
        if number > before {
            // It is in the file. If it is still not safe, it stays pending, and the next call tries again.
            return Ok(Entry { number, saved: saved.filter(|_| reopened.is_ok()) });
        }
        reopened?;
        call(self)
    }

    /// Makes several calls that belong together: after an error nothing of them is recorded, and they can be made again. As in
    /// [`Recorder::retry`], a `sync` that fails is tried once more, and what is still not safe then is pending. Their entries are
    /// pending until all of them are in the file: [`Recorder::reports`] says when. In formats that write whole turns, only the
    /// last call should complete one, made with [`Recorder::retry`]: a turn that is in the file stays there, and
    /// [`Recorder::last_entry`] then counts the calls that were made.
    ///
    /// Calls that read the session, such as [`Recorder::rewind`], do not see what the others recorded.
    pub fn together<T>(&mut self, calls: impl FnOnce(&mut Recorder) -> Result<T>) -> Result<T> {
        if self.is_in_doubt() {
            self.reopen()?;
        }
        let Some(log) = &mut self.log else { return calls(self) };
        let held = log.hold()?;
        let before = (self.ledger.clone(), self.turn.clone(), self.answer.clone(), self.files.clone());
        let made = calls(self);
        let Some(log) = &mut self.log else { return made };
        let appended = made.and_then(|value| log.append_held(&held).map(|moved| (value, moved)));
        let (value, moved) = match appended {
            Ok(appended) => appended,
            Err(error) => {
                if log.forget_held(held) {
                    (self.ledger, self.turn, self.answer, self.files) = before;
                }
                return Err(error);
            }
        };
        if let Some(moved) = moved {
            self.ledger.ids_in_doubt().for_each(|id| moved.correct(id));
            self.answer.iter_mut().for_each(|answer| answer.move_lines(&moved));
        }
        if log.is_in_doubt() {
            // What is still not safe then is saved before the next call.
            drop(self.reopen());
        } else {
            self.ledger.report_held();
            self.note_synced();
        }
        Ok(value)
    }

    /// Makes one call: it gets an entry if it recorded something, and fails if a `sync` failed during it.
    fn enter(&mut self, call: impl FnOnce(&mut Recorder, u64) -> Result<()>) -> Result<Entry> {
        if self.log.is_none() {
            return Ok(Entry::default());
        }
        let was_in_doubt = self.is_in_doubt();
        let number = self.ledger.begin();
        if let Err(error) = call(self, number) {
            self.ledger.cancel();
            return Err(error);
        }
        let is_pending = self.answer.as_ref().is_some_and(|answer| answer.is_pending(number))
            || self.turn.as_ref().is_some_and(|turn| turn.entries.last() == Some(&number));
        let is_recorded = is_pending || self.ledger.is_written();
        let entry = if is_recorded { self.ledger.end() } else { self.ledger.cancel() };
        let mut checked = self.check_sync(was_in_doubt);
        if let Err(Error::Unsaved { is_recorded: is_in_file, .. }) = &mut checked {
            *is_in_file = is_recorded;
        }
        checked?;
        self.note_synced();
        Ok(entry)
    }

    /// Fails if a `sync` failed since.
    fn check_sync(&self, was_in_doubt: bool) -> Result<()> {
        if was_in_doubt { Ok(()) } else { self.log.as_ref().map_or(Ok(()), Log::check) }
    }

    /// Notes how far everything is safe, for the case that the next `sync` fails.
    fn note_synced(&mut self) {
        if self.log.as_ref().is_some_and(|log| log.is_synced() && !log.is_in_doubt()) {
            self.ledger.synced_through = self.saved_through();
        }
    }

    fn write(&mut self, pieces: Vec<Piece>, entries: Vec<u64>, durability: Durability) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let saved = log.write(pieces, durability)?;
        self.ledger.settle(entries, saved, log.may_lose_lines());
        Ok(())
    }

    fn unit(&self) -> Option<WriteUnit> {
        self.log.as_ref().map(|log| log.place.writing.unit)
    }
}

/// A whole body as the pieces that a format writes.
fn pieces(unit: WriteUnit, body: Body) -> Vec<Piece> {
    match (unit, body) {
        (WriteUnit::Turn, body) => vec![Piece::next(body)],
        (unit, Body::Assistant(content)) => {
            steps(content).into_iter().flat_map(|body| Piece::step(blocks(unit, body))).collect()
        }
        (unit, body) => blocks(unit, body).into_iter().map(Piece::next).collect(),
    }
}

impl Log {
    /// Fails if the format can store nothing of a body.
    fn check_storable(&self, pieces: Vec<Piece>) -> Result<()> {
        let (mut chain, mut batch) = (self.cursor.chain.clone(), Batch::default());
        for piece in pieces {
            self.draft(piece, self.clock(), &mut chain, &mut batch)?;
        }
        match batch.names.is_empty() {
            true => Err(Error::record_lost(self.place.dialect.name(), batch.losses)),
            false => Ok(()),
        }
    }

    /// Whether a second line with the id of a record is a further line of it. A record at which a branch starts belongs to
    /// another branch too, and stays as it is.
    fn joins(&self) -> bool {
        self.place.dialect.traits().repeated_id == RepeatedId::Join && !self.cursor.chain.starts_branch
    }
}

#[cfg(test)]
mod tests;
