//! Records lines of standard input to a session: the first content opens it, and every line is answered.

mod acks;
pub(crate) mod destination;
mod ingest;
pub(crate) mod input;
mod sse;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scrollback::model::Error;
use scrollback::write::Recorder;
use serde_json::json;

use crate::ctx::Ctx;
use crate::failure::{self, FAILED, FOUND_PROBLEMS, Failure, FailureKind};
use crate::record::acks::{Acks, Line};
use crate::record::destination::{Destination, Opened, Start, let_fail};
use crate::record::ingest::{Ingest, Op, Parsed};
use crate::record::input::{Input, Lines};
use crate::record::sse::{Events, Joined};
use crate::session::warnings;

const NOT_SAVED_HINT: &str = "lines without an acknowledgement are not saved";

/// What became of the lines.
pub(crate) struct Ended {
    pub(crate) saved: u64,
    pub(crate) rejected: u64,
    /// Something other than a line could not be recorded.
    has_problems: bool,
    /// An I/O error occurred.
    pub(crate) has_failed: bool,
}

impl Ended {
    pub(crate) fn code(&self) -> ExitCode {
        let has_problems = self.rejected > 0 || self.has_problems || self.has_failed;
        ExitCode::from(match () {
            () if self.has_failed && self.saved == 0 => FAILED,
            () if has_problems => FOUND_PROBLEMS,
            () => 0,
        })
    }
}

/// A session that is being recorded, and the state of each line.
pub(crate) struct Recording {
    destination: Destination,
    /// The title to set.
    title: Option<String>,
    recorder: Option<Recorder>,
    /// A session is being read in order to continue it.
    is_opening: Arc<AtomicBool>,
    /// The session was created here, and no line of it is recorded yet.
    is_new: bool,
    /// The session was created here.
    is_created: bool,
    ingest: Ingest,
    /// The server-sent event that is incomplete.
    events: Events,
    /// Ops that frame the first answer and came before any content.
    early: Vec<Op>,
    /// The first ops of a line that failed, if they are recorded all the same: sent again, it says them again.
    recorded: Vec<Op>,
    /// Lines whose content is recorded with a later line.
    waiting: Vec<Line>,
    acks: Acks,
    /// An I/O error occurred.
    has_failed: bool,
    /// It was reported that the session cannot be opened.
    is_reported: bool,
    /// Something other than a line could not be recorded.
    has_problems: bool,
}

impl Recording {
    pub(crate) fn new(destination: Destination, title: Option<String>) -> Recording {
        let ingest = destination.with().map_or_else(Ingest::default, Ingest::with);
        let ingest = ingest.of_whole_turns(destination.writes_whole_turns());
        Recording {
            destination,
            title,
            recorder: None,
            is_opening: Arc::default(),
            is_new: false,
            is_created: false,
            ingest,
            events: Events::default(),
            early: Vec::new(),
            recorded: Vec::new(),
            waiting: Vec::new(),
            acks: Acks::default(),
            has_failed: false,
            is_reported: false,
            has_problems: false,
        }
    }

    /// Whether a session is being read in order to continue it.
    pub(crate) fn is_opening(&self) -> Arc<AtomicBool> {
        self.is_opening.clone()
    }

    /// Records a prompt that the input does not repeat. It is answered as line 0.
    pub(crate) fn prompt(&mut self, text: &str, ctx: &mut Ctx) {
        self.take(Joined { numbers: vec![0], text: json!({"user": text}).to_string().into() }, ctx);
    }

    /// Records until the end of the input.
    pub(crate) fn run(mut self, lines: &Lines, ctx: &mut Ctx) -> Result<Ended, Failure> {
        loop {
            let wait = self.recorder.as_ref().and_then(Recorder::release_in).unwrap_or(Duration::MAX);
            let complete = match lines.next(wait) {
                Input::Line(seq, line) => self.events.add(seq, line),
                Input::TooLong(seq) => {
                    self.acks.reject(seq, "the line is too long to be read back", &mut ctx.out);
                    self.events.end().into_iter().collect()
                }
                Input::Idle => {
                    self.write_held(ctx);
                    Vec::new()
                }
                Input::End => break,
                Input::Failed(error) => {
                    let_fail(ctx.warn(&Failure::new(FailureKind::Io, format!("standard input: {error}"))));
                    self.has_failed = true;
                    break;
                }
            };
            complete.into_iter().for_each(|joined| self.take(joined, ctx));
        }
        if let Some(joined) = self.events.end() {
            self.take(joined, ctx);
        }
        self.end(ctx)
    }

    /// Parses and records a line, or the lines of an event.
    fn take(&mut self, Joined { mut numbers, text }: Joined, ctx: &mut Ctx) {
        let Parsed { ops, losses, notes, waits, releases } = match self.ingest.parse(&text) {
            Ok(parsed) => parsed,
            Err(refused) => {
                return numbers.iter().for_each(|seq| self.acks.reject(*seq, &refused.to_string(), &mut ctx.out));
            }
        };
        // A line may be most of the memory that recording needs.
        drop(text);
        notes.iter().for_each(|note| let_fail(ctx.note(note)));
        let Some(last) = numbers.pop() else { return };
        let mut line = Line::new(last, losses);
        let mut result = Ok(());
        if self.recorder.is_none() && !ops.iter().any(Op::has_content) {
            self.early.extend(ops);
        } else {
            result = self.record(ops, &mut line, ctx);
        }
        let of_event = numbers.into_iter().map(|seq| Line::new(seq, Vec::new()));
        match result {
            Ok(()) => {
                let mut earlier = if releases { std::mem::take(&mut self.waiting) } else { Vec::new() };
                if waits {
                    self.waiting.extend(of_event)
                } else {
                    earlier.extend(of_event)
                }
                earlier.into_iter().for_each(|earlier| self.acks.add(line.apply_to(earlier), &mut ctx.out));
                if waits { self.waiting.push(line) } else { self.acks.add(line, &mut ctx.out) }
            }
            Err(error) => {
                self.has_failed |= is_io(&error);
                // Lines that wait for it wait on: it can be sent again.
                self.ingest.undo();
                let lost = of_event.chain([line]);
                lost.for_each(|lost| self.acks.reject(lost.seq(), &error.to_string(), &mut ctx.out));
                let cannot_open = self.recorder.is_none() && is_io(&error);
                self.remove_new_session(ctx);
                if cannot_open && !self.is_reported {
                    // Every line will say so; one hint is enough.
                    self.is_reported = true;
                    let_fail(ctx.warn(&error.into()));
                }
            }
        }
        self.settle(ctx);
    }

    /// Records the ops of a line.
    fn record(&mut self, ops: Vec<Op>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        // An answer belongs to its question, however late it comes: only a new question ends an idle session.
        let idle_minutes = self.destination.idle_minutes().filter(|_| ops.iter().any(Op::is_prompt));
        if let Some(minutes) = idle_minutes {
            self.close_if_idle(minutes, ctx);
        }
        self.open(idle_minutes, ctx)?;
        self.set_title(ctx);
        let result = self.apply(ops, line, ctx);
        self.is_new &= result.is_err();
        let Some(recorder) = &mut self.recorder else { return result };
        // When another program ended the session, recording continues in a new one.
        if let Some(session) = recorder.session() {
            self.acks.set_session(session.as_str());
        }
        // Earlier lines are acknowledged first.
        let reports = recorder.reports();
        reports.iter().for_each(|report| line.report(report));
        self.acks.report(&reports, &mut ctx.out);
        result
    }

    fn apply(&mut self, mut ops: Vec<Op>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        for op in &self.early {
            line.add(&self.ingest.apply(op, recorder)?);
        }
        let is_alone = ops.len() == 1 && self.recorded.is_empty();
        if let Some(op) = ops.pop_if(|op| is_alone && op.is_large()) {
            line.add(&self.ingest.apply_once(op, recorder)?);
            self.early.clear();
            return Ok(());
        }
        let skipped = if ops.starts_with(&self.recorded) { self.recorded.len() } else { 0 };
        let (before, mut done) = (recorder.last_entry(), skipped);
        let result = self.apply_new(&ops[skipped..], &mut done, line, ctx);
        let has_new = self.recorder.as_ref().is_some_and(|recorder| recorder.last_entry() > before);
        match result {
            // If the line fails, its session may be discarded, and the next one needs them again.
            Ok(()) => (self.early, self.recorded) = (Vec::new(), Vec::new()),
            // A format that writes whole turns may have written one before the rest failed.
            Err(_) if has_new => self.recorded = ops[..done].to_vec(),
            Err(_) => {}
        }
        result
    }

    /// Applies ops, and counts those that did not fail.
    fn apply_new(&mut self, ops: &[Op], done: &mut usize, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        let (Some(recorder), ingest) = (&mut self.recorder, &mut self.ingest) else { return Ok(()) };
        let mut apply = |op, recorder: &mut Recorder| ingest.apply(op, recorder).inspect(|_| *done += 1);
        if ops.len() > 1 && ops.iter().all(Op::can_be_together) {
            let entries = recorder
                .together(|recorder| ops.iter().map(|op| apply(op, recorder)).collect::<Result<Vec<_>, Error>>())?;
            entries.iter().for_each(|entry| line.add(entry));
            return Ok(());
        }
        for op in ops {
            line.add(&apply(op, recorder)?);
            if *op == Op::Reset {
                let (saved, discarded): (Vec<_>, Vec<_>) =
                    recorder.reports().into_iter().partition(|report| report.result.is_ok());
                saved.iter().for_each(|report| line.report(report));
                self.acks.report(&saved, &mut ctx.out);
                for report in discarded {
                    line.discard(report.entry);
                    self.acks.discard(report.entry, &mut ctx.out);
                }
            }
        }
        Ok(())
    }

    /// Removes a session that was created for a line that could not be written; the next line creates it again.
    fn remove_new_session(&mut self, ctx: &mut Ctx) {
        if let Some(mut recorder) = self.recorder.take_if(|_| self.is_new) {
            let_fail(warnings::print_new(&mut recorder, ctx));
            match self.destination.store.discard(recorder) {
                Ok(None) => self.acks.set_session(""),
                Ok(kept) => self.recorder = kept,
                Err(error) => let_fail(ctx.warn(&error.into())),
            }
        }
    }

    /// Opens the session, if it is not open; one that was idle for this many minutes is ended first.
    fn open(&mut self, idle_minutes: Option<u32>, ctx: &mut Ctx) -> Result<(), Error> {
        if self.recorder.is_some() {
            return Ok(());
        }
        self.is_opening.store(matches!(self.destination.start, Start::Resume { .. }), Ordering::Relaxed);
        let opened = self.destination.open(idle_minutes, ctx);
        self.is_opening.store(false, Ordering::Relaxed);
        let Opened { mut recorder, is_new } = opened?;
        recorder.keep_reports();
        self.is_new |= is_new;
        self.is_created = is_new;
        let_fail(warnings::print_new(&mut recorder, ctx));
        let session = recorder.session().map(ToString::to_string).unwrap_or_default();
        self.acks.set_session(&session);
        if let Some(path) = recorder.path() {
            let_fail(self.destination.report_resumed(&recorder, is_new, ctx));
            let_fail(ctx.note(&format!("Recording to {}", path.display())));
            let name = self.destination.name_of(&session, path, ctx);
            let_fail(ctx.note_command(&format!("Continue later with: scrollback record --resume {name}")));
        }
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Records the title; after an I/O error it is tried again with the next line.
    fn set_title(&mut self, ctx: &mut Ctx) {
        let (Some(title), Some(recorder)) = (&self.title, &mut self.recorder) else { return };
        match recorder.retry(|to| to.title(title.as_str())) {
            Ok(_) => self.title = None,
            Err(error) if is_io(&error) => {}
            Err(error) => {
                self.title = None;
                self.has_problems = true;
                let_fail(ctx.warn(&error.into()));
            }
        }
    }

    /// Closes a session that was idle; the next content ends it and starts another.
    fn close_if_idle(&mut self, minutes: u32, ctx: &mut Ctx) {
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_idle_for(minutes)) else { return };
        let closed = recorder.close();
        self.settle(ctx);
        if closed.is_ok() {
            self.recorder = None;
        }
    }

    /// Acknowledges what is on disk now.
    fn settle(&mut self, ctx: &mut Ctx) {
        let Some(recorder) = &mut self.recorder else { return };
        self.acks.report(&recorder.reports(), &mut ctx.out);
        let_fail(warnings::print_new(recorder, ctx));
    }

    fn write_held(&mut self, ctx: &mut Ctx) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Err(error) = recorder.release() {
            self.has_failed |= is_io(&error);
        }
        self.settle(ctx);
    }

    /// Records what is incomplete, closes the session and answers every line that is left.
    fn end(mut self, ctx: &mut Ctx) -> Result<Ended, Failure> {
        self.record_incomplete(ctx);
        // A session that only watches files has nothing to show.
        self.is_new |= self.is_created && self.recorder.as_ref().is_some_and(|recorder| recorder.last_entry() == 0);
        self.remove_new_session(ctx);
        self.set_title(ctx);
        if let Some(recorder) = &mut self.recorder {
            let closed = recorder.close().or_else(|error| match error {
                // A second try may succeed.
                Error::Unsaved { .. } => recorder.reopen().and_then(|()| recorder.close()),
                error => Err(error),
            });
            self.acks.report(&recorder.reports(), &mut ctx.out);
            let_fail(warnings::print_new(recorder, ctx));
            if let Err(error) = closed {
                self.has_failed |= is_io(&error);
                self.acks.reject_rest(&error.to_string(), &mut ctx.out);
                let_fail(ctx.warn(&Failure::from(error).hint(NOT_SAVED_HINT)));
            }
        }
        self.acks.reject_rest("the input ended before anything was recorded", &mut ctx.out);
        if self.title.is_some() && self.acks.saved > 0 {
            self.has_problems = true;
            let failure = Failure::new(FailureKind::Io, "the title could not be written");
            let_fail(ctx.warn(&failure.hint("set it with `scrollback rename`")));
        }
        let ended = Ended {
            saved: self.acks.saved,
            rejected: self.acks.rejected,
            has_problems: self.has_problems,
            has_failed: self.has_failed,
        };
        match self.acks.into_output_failure() {
            Some(failure) => Err(failure),
            None => Ok(ended),
        }
    }

    /// Records content that waited for more input.
    fn record_incomplete(&mut self, ctx: &mut Ctx) {
        let ops = self.ingest.end().ops;
        let waiting = std::mem::take(&mut self.waiting);
        let mut last = Line::new(0, Vec::new());
        let has_content = self.recorder.is_some() || ops.iter().any(Op::has_content);
        let result = if has_content { self.record(ops, &mut last, ctx) } else { Ok(()) };
        match result {
            Ok(()) if last.is_recorded() => {
                waiting.into_iter().for_each(|line| self.acks.add(last.apply_to(line), &mut ctx.out));
            }
            Ok(()) => {
                let why = "the input ended before its content was complete";
                waiting.iter().for_each(|line| self.acks.reject(line.seq(), why, &mut ctx.out));
            }
            Err(error) => {
                self.has_failed |= is_io(&error);
                waiting.iter().for_each(|line| self.acks.reject(line.seq(), &error.to_string(), &mut ctx.out));
                let_fail(ctx.warn(&Failure::from(error).hint(NOT_SAVED_HINT)));
                self.remove_new_session(ctx);
            }
        }
    }
}

/// Whether an error is of the system, not of the content.
fn is_io(error: &Error) -> bool {
    failure::kind_of(error) == FailureKind::Io
}
