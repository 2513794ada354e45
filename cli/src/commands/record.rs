//! `record`: what an agent says on standard input becomes a session, line by line.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::archive::Archived;
use scrollback::dialect;
use scrollback::dictation::{Dictation, Heard, Saying};
use scrollback::error::Error;
use scrollback::record::{Body, Title};
use scrollback::recorder::{Durability, Options, Recorder};
use scrollback::store::{NewSession, Store};
use scrollback::thinking::Triggers;

use crate::acks::{Acks, Line};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::dictated::{Came, Lines};
use crate::failure::{self, Failure, FailureKind};
use crate::name::{self, SessionName};
use crate::scope;
use crate::surprises;
use crate::writable::{self, Writable};

/// Record what an agent says, line by line
///
/// Takes JSON lines on standard input: {"user": "…"}, {"assistant": "…"}, {"toolResult": {"callId": "…", "output": "…"}} and the like,
/// chunks of the AI SDK's UI message stream, or what `claude -p --output-format stream-json` prints. Every line that is not blank is
/// answered by one line on standard output. What was recorded is acknowledged once it is on disk: {seq, id, session, durability},
/// where seq is the number of the line; a line that only frames others is answered without id. A line that is not understood or
/// cannot be written is answered by {seq, error}, and recording goes on; the exit code is 1 then.
/// The session begins with the first line. docs/recording.md shows how to use it from Python and Node.
#[derive(clap::Args, Debug)]
pub(crate) struct RecordArgs {
    /// Go on with the newest session of this project
    #[arg(long = "continue", group = "where")]
    goes_on: bool,
    /// Go on with this session
    #[arg(long, value_name = "SESSION", group = "where")]
    resume: Option<SessionName>,
    /// Go on from this record: what came after it stays a branch
    #[arg(long, value_name = "SESSION#RECORD", group = "where")]
    checkpoint: Option<SessionName>,
    /// Begin a session of this id
    #[arg(long, value_name = "ID", group = "where")]
    id: Option<String>,
    /// The person or room that the session is with, for --dialect fluux
    #[arg(long, value_name = "JID", conflicts_with_all = ["resume", "checkpoint"])]
    jid: Option<String>,
    /// End the session before the next message when its last one is more than this many minutes old, as `new` does (0: never)
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["resume", "checkpoint"])]
    idle_minutes: u32,
    /// Give the session a title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// What every record survives: the death of the machine or only that of the process (default: by kind of record)
    #[arg(long, value_name = "HOW")]
    durability: Option<Survives>,
    /// Let "think", "think hard", "ultrathink" and the like in a prompt set its thinking mode
    #[arg(long)]
    thinking_words: bool,
    /// Who records
    #[arg(long, value_name = "NAME/VERSION")]
    agent: Option<String>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum Survives {
    /// The death of the machine
    Sync,
    /// The death of the process
    Flush,
}

/// The session to record to, before anything was said.
struct Plan {
    store: Store,
    start: Start,
}

enum Start {
    New {
        id: Option<String>,
        project: PathBuf,
    },
    /// The one session that a project or a person has at a time.
    Current {
        project: PathBuf,
        with: Option<String>,
        idle_minutes: Option<u32>,
    },
    GoOn {
        session: Box<Writable>,
        record: Option<String>,
    },
}

pub(crate) fn run(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    writable::refuse_demo(ctx)?;
    let title = args.title.as_deref().map(title_of).transpose()?;
    let plan = plan(args, global, ctx)?;
    let dictation = match &plan.start {
        Start::Current { with: Some(jid), .. } => Dictation::with(jid),
        Start::Current { with: None, .. } | Start::New { .. } | Start::GoOn { .. } => Dictation::default(),
    };
    let mut recording = Recording {
        plan,
        title,
        recorder: None,
        dictation,
        is_new: false,
        early: VecDeque::new(),
        unwritten: Vec::new(),
        acks: Acks::default(),
        failed: false,
        has_problems: false,
    };
    let lines = Lines::of_stdin()?;
    loop {
        match lines.next() {
            Came::Line(seq, line) => recording.line(seq, &line, ctx),
            Came::TooLong(seq) => recording.acks.refuse(seq, "the line is longer than what is read back", &mut ctx.out),
            Came::Nothing => recording.release(ctx),
            Came::End => break,
            Came::Failed(error) => {
                told(ctx.warn(&Failure::new(FailureKind::Io, format!("standard input: {error}"))));
                recording.failed = true;
                break;
            }
        }
    }
    recording.end(ctx)
}

/// Where the words will go; nothing is written yet.
fn plan(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<Plan, Failure> {
    let durability = args.durability.map(|survives| match survives {
        Survives::Sync => Durability::Sync,
        Survives::Flush => Durability::Flush,
    });
    let triggers = if args.thinking_words { Triggers::usual() } else { Triggers::default() };
    let options = Options { durability, triggers };
    let named = args.resume.as_ref().or(args.checkpoint.as_ref());
    if let Some(name) = named {
        let session = Writable::find(name, global, ctx).map_err(misused)?;
        let store = session.store_for(args.agent.as_deref())?.with_options(options);
        let record = match (&session.record, &args.checkpoint) {
            (None, Some(_)) => {
                let failure = Failure::new(FailureKind::Usage, "--checkpoint names no record");
                return Err(failure.hint(format!("say {}#RECORD; `scrollback tree` shows every record", session.id())));
            }
            (Some(record), _) => Some(name::record(&session.session, record).map_err(misused)?.id().into_owned()),
            (None, None) => None,
        };
        if let Some(record) = &record {
            store.check_place(&session.session, record)?;
        }
        return Ok(Plan { store, start: Start::GoOn { session: Box::new(session), record } });
    }
    let dialect = scope::dialect(global)?.or_else(|| dialect::named("native"));
    let dialect = dialect.ok_or_else(|| Failure::new(FailureKind::Usage, "no dialect was named"))?;
    let with = writable::with_whom(dialect, args.jid.as_deref())?;
    let (store, project) = writable::place_for(dialect, args.agent.as_deref(), global, ctx)?;
    let store = store.with_options(options);
    if dialect.write().is_some_and(|writing| writing.archive.is_some()) {
        if args.id.is_some() {
            let message = format!("a {} session is called after its place", dialect.name());
            return Err(Failure::new(FailureKind::Usage, message).hint("leave --id out"));
        }
        // What cannot be gone on with or begun is told before anything is said.
        let current = store.current(&NewSession { with: with.as_deref(), ..NewSession::of(&project) })?;
        if current.is_none() {
            store.check(NewSession { with: with.as_deref(), ..NewSession::of(&project) })?;
        }
        if args.goes_on && current.is_none() {
            ctx.caution("new-session", "there is no session to go on with: a new one begins")?;
        }
        let idle_minutes = Some(args.idle_minutes).filter(|minutes| *minutes > 0);
        return Ok(Plan { store, start: Start::Current { project, with, idle_minutes } });
    }
    if args.idle_minutes > 0 {
        let message = format!("{} sessions are not ended: there can be any number of them", dialect.name());
        return Err(Failure::new(FailureKind::Usage, message).hint("--idle-minutes is for --dialect fluux"));
    }
    if args.goes_on {
        let listed = store.list(Some(&project));
        if let Some(newest) = listed.rows.iter().find(|row| row.parent_session.is_none()) {
            let source = store.source(newest.id.as_str())?;
            let session = Box::new(Writable::of(source, None, global, ctx)?);
            return Ok(Plan { store, start: Start::GoOn { session, record: None } });
        }
        ctx.caution("new-session", "there is no session of this project to go on with: a new one begins")?;
    }
    store.check(NewSession { id: args.id.as_deref(), ..NewSession::of(&project) })?;
    Ok(Plan { store, start: Start::New { id: args.id.clone(), project } })
}

fn title_of(text: &str) -> Result<String, Failure> {
    Title::checked(text).map_err(|why| Failure::new(FailureKind::Usage, "that is no title").hint(why))
}

/// A session that is not there is no answer of "nothing found": the command cannot do what it was asked for.
fn misused(failure: Failure) -> Failure {
    Failure { kind: if failure.kind == FailureKind::NotFound { FailureKind::Usage } else { failure.kind }, ..failure }
}

/// What is being recorded.
struct Recording {
    plan: Plan,
    /// A title that is not written yet.
    title: Option<String>,
    recorder: Option<Recorder>,
    /// The recorder's session was begun here, and no line of it is recorded yet.
    is_new: bool,
    dictation: Dictation,
    /// What frames the first answer and came before anything was said.
    early: VecDeque<Saying>,
    /// Lines whose words come with a later one.
    unwritten: Vec<Line>,
    acks: Acks,
    /// The world said no.
    failed: bool,
    /// Something that was asked for beside the lines was not done.
    has_problems: bool,
}

impl Recording {
    fn line(&mut self, seq: u64, line: &[u8], ctx: &mut Ctx) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match self.dictation.hear(line) {
            Ok(heard) => self.heard(seq, heard, ctx),
            Err(refused) => self.acks.refuse(seq, &refused.to_string(), &mut ctx.out),
        }
    }

    fn heard(&mut self, seq: u64, heard: Heard, ctx: &mut Ctx) {
        heard.notes.iter().for_each(|note| told(ctx.note(note)));
        let mut line = Line::new(seq, heard.losses);
        let mut said = Ok(());
        if self.recorder.is_none() && !heard.sayings.iter().any(Saying::is_said) {
            self.early.extend(heard.sayings);
        } else {
            said = self.record(heard.sayings, &mut line, ctx);
        }
        let earlier = if heard.releases { std::mem::take(&mut self.unwritten) } else { Vec::new() };
        match said {
            Ok(()) => {
                earlier.into_iter().for_each(|earlier| self.acks.add(line.also(earlier), &mut ctx.out));
                if heard.waits {
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
    fn record(&mut self, sayings: Vec<Saying>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        let asks = |saying: &Saying| matches!(saying, Saying::Body(body) if matches!(**body, Body::User(_)));
        if sayings.iter().any(asks) {
            self.end_when_idle(ctx);
        }
        self.begin(ctx)?;
        self.give_title(ctx);
        let said = self.say(sayings, line, ctx);
        self.is_new &= said.is_err();
        // What an earlier line waited for is told first.
        let settled = self.recorder.as_mut().map(Recorder::settled).unwrap_or_default();
        line.settle(&settled);
        self.acks.settle(&settled, &mut ctx.out);
        self.acks
            .refuse_held(&self.recorder.as_mut().map(Recorder::refused).unwrap_or_default(), &mut ctx.out);
        said
    }

    fn say(&mut self, sayings: Vec<Saying>, line: &mut Line, ctx: &mut Ctx) -> Result<(), Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        while let Some(saying) = self.early.front() {
            line.note(self.dictation.say(saying.clone(), recorder)?);
            self.early.pop_front();
        }
        for saying in sayings {
            let takes_back = matches!(saying, Saying::Reset);
            let before = if takes_back { recorder.unsaved() } else { Vec::new() };
            line.note(self.dictation.say(saying, recorder)?);
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
            told(surprises::tell(&mut recorder, ctx));
            match self.plan.store.take_back(recorder) {
                Ok(None) => self.acks.of_session(""),
                Ok(stays) => self.recorder = stays,
                Err(error) => told(ctx.warn(&error.into())),
            }
        }
    }

    /// Opens the session with the first words.
    fn begin(&mut self, ctx: &mut Ctx) -> Result<(), Error> {
        if self.recorder.is_some() {
            return Ok(());
        }
        let store = &self.plan.store;
        let mut recorder = match &self.plan.start {
            Start::New { id, project } => {
                self.is_new = true;
                store.begin(NewSession { id: id.as_deref(), ..NewSession::of(project) })?
            }
            Start::GoOn { session, record } => store.resume_source(&session.source, record.as_deref())?,
            Start::Current { project, with, idle_minutes } => {
                let new = NewSession { with: with.as_deref(), ..NewSession::of(project) };
                self.is_new = store.current(&new)?.is_none();
                let (recorder, archived) = store.go_on(new, *idle_minutes)?;
                if let Some(Archived { session, path, surprises }) = archived {
                    told(surprises::tell_all(&surprises, ctx));
                    let text =
                        format!("the session was idle: it is ended, called {session} now, in {}", path.display());
                    told(ctx.caution("archived", &text));
                }
                recorder
            }
        };
        told(surprises::tell(&mut recorder, ctx));
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
    fn end_when_idle(&mut self, ctx: &mut Ctx) {
        let Start::Current { idle_minutes: Some(minutes), .. } = self.plan.start else { return };
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_idle_for(minutes)) else { return };
        let finished = recorder.finish();
        self.settle(ctx);
        if finished.is_ok() {
            self.recorder = None;
        }
    }

    fn settle(&mut self, ctx: &mut Ctx) {
        let Some(recorder) = &mut self.recorder else { return };
        self.acks.settle(&recorder.settled(), &mut ctx.out);
        told(surprises::tell(recorder, ctx));
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
            let finished = recorder.finish().or_else(|error| match error {
                // The disk may promise at the second time what it did not at the first.
                Error::Unsaved { .. } => recorder.reopen().and_then(|()| recorder.finish()),
                error => Err(error),
            });
            self.acks.settle(&recorder.settled(), &mut ctx.out);
            self.acks.refuse_held(&recorder.refused(), &mut ctx.out);
            told(surprises::tell(recorder, ctx));
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
            (true, _) => super::FAILED,
            (false, false) => 0,
            (false, true) => super::FOUND_PROBLEMS,
        };
        match self.acks.unheard() {
            Some(failure) => Err(failure),
            None => Ok(ExitCode::from(code)),
        }
    }

    /// The input is over: what waited for more of it is said as it is.
    fn end_words(&mut self, ctx: &mut Ctx) {
        let heard = self.dictation.end();
        let waiting = std::mem::take(&mut self.unwritten);
        let mut last = Line::new(0, Vec::new());
        let is_said = self.recorder.is_some() || heard.sayings.iter().any(Saying::is_said);
        let said = if is_said { self.record(heard.sayings, &mut last, ctx) } else { Ok(()) };
        match said {
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

/// What could not be told stops no recording.
fn told(result: Result<(), Failure>) {
    drop(result);
}
