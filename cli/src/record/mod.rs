//! What comes in line by line, recorded to a session: the first words open it, every line is answered.

mod acks;
pub(crate) mod destination;
mod ingest;
pub(crate) mod input;
mod sse;

use std::collections::VecDeque;
use std::process::ExitCode;

use scrollback::model::error::Error;
use scrollback::write::recorder::Recorder;

use crate::commands::{FAILED, FOUND_PROBLEMS};
use crate::ctx::Ctx;
use crate::failure::{self, Failure, FailureKind};
use crate::record::acks::{Acks, Line};
use crate::record::destination::{Destination, Opened, told};
use crate::record::ingest::{Ingest, Op, Parsed};
use crate::record::input::{Came, Lines};
use crate::record::sse::{Events, Joined};
use crate::session::warnings;

/// A session that lines are recorded to, and what became of each line.
pub(crate) struct Recording {
    destination: Destination,
    /// A title that is not written yet.
    title: Option<String>,
    recorder: Option<Recorder>,
    /// The recorder's session was begun here, and no line of it is recorded yet.
    is_new: bool,
    ingest: Ingest,
    /// An event whose lines have not all come.
    events: Events,
    /// What frames the first answer and came before anything was said.
    early: VecDeque<Op>,
    /// Lines whose words come with a later one.
    unwritten: Vec<Line>,
    acks: Acks,
    /// The world said no.
    failed: bool,
    /// Something that was asked for beside the lines was not done.
    has_problems: bool,
}

impl Recording {
    pub(crate) fn of(destination: Destination, title: Option<String>) -> Recording {
        let ingest = destination.with().map_or_else(Ingest::default, Ingest::with);
        Recording {
            destination,
            title,
            recorder: None,
            ingest,
            is_new: false,
            events: Events::default(),
            early: VecDeque::new(),
            unwritten: Vec::new(),
            acks: Acks::default(),
            failed: false,
            has_problems: false,
        }
    }

    /// Records what comes in, until nothing does any more.
    pub(crate) fn listen(mut self, lines: &Lines, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
        loop {
            let joined = match lines.next() {
                Came::Line(seq, line) => self.events.take(seq, line),
                Came::TooLong(seq) => {
                    self.acks.refuse(seq, "the line is longer than what is read back", &mut ctx.out);
                    self.events.end().into_iter().collect()
                }
                Came::Nothing => {
                    self.release(ctx);
                    Vec::new()
                }
                Came::End => break,
                Came::Failed(error) => {
                    told(ctx.warn(&Failure::new(FailureKind::Io, format!("standard input: {error}"))));
                    self.failed = true;
                    break;
                }
            };
            joined.into_iter().for_each(|joined| self.hear(joined, ctx));
        }
        if let Some(joined) = self.events.end() {
            self.hear(joined, ctx);
        }
        self.end(ctx)
    }

    fn hear(&mut self, Joined { numbers, text }: Joined, ctx: &mut Ctx) {
        match self.ingest.parse(&text) {
            Ok(parsed) => self.parsed(numbers, parsed, ctx),
            Err(refused) => {
                numbers.iter().for_each(|seq| self.acks.refuse(*seq, &refused.to_string(), &mut ctx.out));
            }
        }
    }

    fn parsed(&mut self, mut numbers: Vec<u64>, parsed: Parsed, ctx: &mut Ctx) {
        parsed.notes.iter().for_each(|note| told(ctx.note(note)));
        let Some(last) = numbers.pop() else { return };
        let mut line = Line::new(last, parsed.losses);
        let mut content = Ok(());
        if self.recorder.is_none() && !parsed.ops.iter().any(Op::has_content) {
            self.early.extend(parsed.ops);
        } else {
            content = self.record(parsed.ops, &mut line, ctx);
        }
        let mut earlier = if parsed.releases { std::mem::take(&mut self.unwritten) } else { Vec::new() };
        let of_event = numbers.into_iter().map(|seq| Line::new(seq, Vec::new()));
        if parsed.waits {
            self.unwritten.extend(of_event)
        } else {
            earlier.extend(of_event)
        }
        match content {
            Ok(()) => {
                earlier.into_iter().for_each(|earlier| self.acks.add(line.also(earlier), &mut ctx.out));
                if parsed.waits {
                    self.unwritten.push(line);
                } else {
                    self.acks.add(line, &mut ctx.out);
                }
            }
            Err(error) => {
                self.failed |= is_the_worlds(&error);
                let lost = earlier.into_iter().chain([line]);
                lost.for_each(|lost| self.acks.refuse(lost.seq(), &error.to_string(), &mut ctx.out));
                self.take_back(ctx);
            }
        }
        self.settle(ctx);
    }

    /// Says what a line says, and notes what came of it.
    fn record(&mut self, ops: Vec<Op>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        // An answer belongs to its question, however late it comes: only what is asked ends an idle session.
        let idle_minutes = self.destination.idle_minutes().filter(|_| ops.iter().any(Op::is_prompt));
        if let Some(minutes) = idle_minutes {
            self.end_when_idle(minutes, ctx);
        }
        self.begin(idle_minutes, ctx)?;
        self.give_title(ctx);
        let content = self.say(ops, line, ctx);
        self.is_new &= content.is_err();
        // A session that somebody ended meanwhile goes on as another.
        if let Some(session) = self.recorder.as_ref().and_then(Recorder::session) {
            self.acks.of_session(session.as_str());
        }
        // What an earlier line waited for is told first.
        let settled = self.recorder.as_mut().map(Recorder::settled).unwrap_or_default();
        line.settle(&settled);
        self.acks.settle(&settled, &mut ctx.out);
        self.acks
            .refuse_held(&self.recorder.as_mut().map(Recorder::refused).unwrap_or_default(), &mut ctx.out);
        content
    }

    fn say(&mut self, ops: Vec<Op>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        while let Some(op) = self.early.front() {
            line.note(self.ingest.apply(op, recorder)?);
            self.early.pop_front();
        }
        for op in ops {
            let takes_back = matches!(op, Op::Reset);
            let before = if takes_back { recorder.unsaved() } else { Vec::new() };
            line.note(self.ingest.apply(&op, recorder)?);
            if takes_back {
                let still: Vec<u64> = recorder.unsaved().iter().map(|unsaved| unsaved.ticket).collect();
                let gone = before.iter().map(|unsaved| unsaved.ticket).filter(|ticket| !still.contains(ticket));
                self.acks.settle(&recorder.settled(), &mut ctx.out);
                self.acks.take_back(&gone.collect::<Vec<u64>>(), &mut ctx.out);
            }
        }
        Ok(())
    }

    /// Takes away a session that was begun for a line that could not be written: the next one begins it.
    fn take_back(&mut self, ctx: &mut Ctx) {
        if let Some(mut recorder) = self.recorder.take_if(|_| self.is_new) {
            told(warnings::tell(&mut recorder, ctx));
            match self.destination.store.take_back(recorder) {
                Ok(None) => self.acks.of_session(""),
                Ok(stays) => self.recorder = stays,
                Err(error) => told(ctx.warn(&error.into())),
            }
        }
    }

    /// Opens the session with the first words; one that was idle for so many minutes is ended before.
    fn begin(&mut self, idle_minutes: Option<u32>, ctx: &mut Ctx) -> Result<(), Error> {
        if self.recorder.is_some() {
            return Ok(());
        }
        let Opened { mut recorder, is_new } = self.destination.open(idle_minutes, ctx)?;
        self.is_new |= is_new;
        told(warnings::tell(&mut recorder, ctx));
        let session = recorder.session().map(ToString::to_string).unwrap_or_default();
        self.acks.of_session(&session);
        if let Some(path) = recorder.path() {
            told(ctx.note(&format!("Recording to {}", path.display())));
            told(ctx.note(&format!("Go on later with: scrollback record --resume {session}")));
        }
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Writes the title that was asked for; a disk that takes it not now may take it with the next line.
    fn give_title(&mut self, ctx: &mut Ctx) {
        let (Some(title), Some(recorder)) = (&self.title, &mut self.recorder) else { return };
        match recorder.title(title.as_str()) {
            Ok(_) => self.title = None,
            Err(error) if is_the_worlds(&error) => {}
            Err(error) => {
                self.title = None;
                self.has_problems = true;
                told(ctx.warn(&error.into()));
            }
        }
    }

    /// Lets go of a session that was idle: the next words end it and begin another.
    fn end_when_idle(&mut self, minutes: u32, ctx: &mut Ctx) {
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_idle_for(minutes)) else { return };
        let finished = recorder.close();
        self.settle(ctx);
        if finished.is_ok() {
            self.recorder = None;
        }
    }

    fn settle(&mut self, ctx: &mut Ctx) {
        let Some(recorder) = &mut self.recorder else { return };
        self.acks.settle(&recorder.settled(), &mut ctx.out);
        told(warnings::tell(recorder, ctx));
    }

    fn release(&mut self, ctx: &mut Ctx) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Err(error) = recorder.release() {
            self.failed |= is_the_worlds(&error);
        }
        self.settle(ctx);
    }

    /// Says what never became whole, writes what is held, and tells how it went: no line stays without an answer.
    fn end(mut self, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
        self.end_words(ctx);
        if self.recorder.is_some() {
            self.give_title(ctx);
        }
        if let Some(recorder) = &mut self.recorder {
            let finished = recorder.close().or_else(|error| match error {
                // The disk may promise at the second time what it did not at the first.
                Error::Unsaved { .. } => recorder.reopen().and_then(|()| recorder.close()),
                error => Err(error),
            });
            self.acks.settle(&recorder.settled(), &mut ctx.out);
            self.acks.refuse_held(&recorder.refused(), &mut ctx.out);
            told(warnings::tell(recorder, ctx));
            if let Err(error) = finished {
                self.failed |= is_the_worlds(&error);
                self.acks.refuse_rest(&error.to_string(), &mut ctx.out);
                told(ctx.warn(&Failure::from(error).hint("what was not acknowledged is not saved")));
            }
        }
        self.acks.refuse_rest("the input ended, and nothing came of it", &mut ctx.out);
        if self.title.is_some() && self.acks.saved > 0 {
            self.has_problems = true;
            let failure = Failure::new(FailureKind::Io, "the title could not be written");
            told(ctx.warn(&failure.hint("`scrollback rename` gives the session its title")));
        }
        let has_problems = self.acks.refused > 0 || self.has_problems;
        let code = match (self.failed && self.acks.saved == 0, has_problems || self.failed) {
            (true, _) => FAILED,
            (false, false) => 0,
            (false, true) => FOUND_PROBLEMS,
        };
        match self.acks.unheard() {
            Some(failure) => Err(failure),
            None => Ok(ExitCode::from(code)),
        }
    }

    /// The input is over: what waited for more of it is said as it is.
    fn end_words(&mut self, ctx: &mut Ctx) {
        let parsed = self.ingest.end();
        let waiting = std::mem::take(&mut self.unwritten);
        let mut last = Line::new(0, Vec::new());
        let is_said = self.recorder.is_some() || parsed.ops.iter().any(Op::has_content);
        let content = if is_said { self.record(parsed.ops, &mut last, ctx) } else { Ok(()) };
        match content {
            Ok(()) if last.is_recorded() => {
                waiting.into_iter().for_each(|line| self.acks.add(last.also(line), &mut ctx.out));
            }
            Ok(()) => {
                let why = "the input ended before what it says was whole";
                waiting.iter().for_each(|line| self.acks.refuse(line.seq(), why, &mut ctx.out));
            }
            Err(error) => {
                self.failed |= is_the_worlds(&error);
                waiting.iter().for_each(|line| self.acks.refuse(line.seq(), &error.to_string(), &mut ctx.out));
                told(ctx.warn(&Failure::from(error).hint("what was not acknowledged is not saved")));
                self.take_back(ctx);
            }
        }
    }
}

/// Whether the system said no, and not we.
fn is_the_worlds(error: &Error) -> bool {
    failure::kind_of(error) == FailureKind::Io
}
