//! `record`: what an agent says on standard input becomes a session, line by line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::dialect;
use scrollback::dictation::{Dictation, Heard, Saying};
use scrollback::error::Error;
use scrollback::project;
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
/// chunks of the AI SDK's UI message stream, or what `claude -p --output-format stream-json` prints. Each line that was recorded is
/// acknowledged by a line on standard output once it is on disk: {seq, id, session, durability}, where seq is the number of the line.
/// A line that is not understood or cannot be written is answered by {seq, error}, and recording goes on; the exit code is 1 then.
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
    /// Give the session a title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// What every record survives: the death of the machine or only that of the process (default: by kind of record)
    #[arg(long, value_name = "HOW")]
    durability: Option<Survives>,
    /// Let "think", "think hard", "ultrathink" and the like in a prompt set its thinking mode
    #[arg(long)]
    thinking_words: bool,
    /// Whom the session is with, in formats that ask for it: a person's or a room's JID
    #[arg(long, value_name = "JID", conflicts_with_all = ["goes_on", "resume", "checkpoint"])]
    jid: Option<String>,
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
    New { id: Option<String>, with: Option<String>, project: PathBuf },
    GoOn { session: Box<Writable>, record: Option<String> },
}

pub(crate) fn run(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    writable::refuse_demo(ctx)?;
    let plan = plan(args, global, ctx)?;
    let mut recording = Recording {
        plan,
        title: args.title.clone(),
        recorder: None,
        dictation: Dictation::default(),
        early: Vec::new(),
        unwritten: Vec::new(),
        acks: Acks::default(),
        failed: false,
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
    let mut host = ctx.host()?;
    if let Some(project) = &global.project {
        host.cwd = ctx.home.cwd.join(project);
    }
    if let Some(agent) = &args.agent {
        host.version.clone_from(agent);
    }
    let project = project::of(&host.cwd);
    let given = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    let root = given.unwrap_or_else(|| writable::usual_store(dialect, ctx));
    let store = Store::open(dialect, &root, host)?.with_options(options);
    if args.goes_on {
        let listed = store.list(Some(&project));
        if let Some(newest) = listed.rows.iter().find(|row| row.parent_session.is_none()) {
            let source = store.source(newest.id.as_str())?;
            let session = Box::new(Writable::of(source, None, global, ctx)?);
            return Ok(Plan { store, start: Start::GoOn { session, record: None } });
        }
        ctx.caution("new-session", "there is no session of this project to go on with: a new one begins")?;
    }
    Ok(Plan { store, start: Start::New { id: args.id.clone(), with: args.jid.clone(), project } })
}

/// A session that is not there is no answer of "nothing found": the command cannot do what it was asked for.
fn misused(failure: Failure) -> Failure {
    Failure { kind: if failure.kind == FailureKind::NotFound { FailureKind::Usage } else { failure.kind }, ..failure }
}

/// What is being recorded.
struct Recording {
    plan: Plan,
    title: Option<String>,
    recorder: Option<Recorder>,
    dictation: Dictation,
    /// What frames the first answer and came before anything was said.
    early: Vec<Saying>,
    /// Lines whose words come with a later one.
    unwritten: Vec<Line>,
    acks: Acks,
    /// The world said no.
    failed: bool,
}

impl Recording {
    fn line(&mut self, seq: u64, line: &[u8], ctx: &mut Ctx) {
        match self.dictation.hear(line) {
            Ok(heard) => self.heard(seq, heard, ctx),
            Err(refused) => self.acks.refuse(seq, &refused.to_string(), &mut ctx.out),
        }
    }

    fn heard(&mut self, seq: u64, heard: Heard, ctx: &mut Ctx) {
        heard.notes.iter().for_each(|note| told(ctx.note(note)));
        let mut line = Line::new(seq, heard.losses);
        if heard.waits {
            self.unwritten.push(Line::new(seq, std::mem::take(&mut line.losses)));
        }
        if self.recorder.is_none() && !heard.sayings.iter().any(Saying::is_said) {
            self.early.extend(heard.sayings);
            return;
        }
        if let Err(error) = self.begin(ctx) {
            self.failed = true;
            self.acks.refuse(seq, &error.to_string(), &mut ctx.out);
            return;
        }
        let said = self.say(heard.sayings, &mut line);
        // What an earlier line waited for is told first.
        let settled = self.recorder.as_mut().map(Recorder::settled).unwrap_or_default();
        line.settle(&settled);
        self.acks.settle(&settled, &mut ctx.out);
        self.acks
            .refuse_held(&self.recorder.as_mut().map(Recorder::refused).unwrap_or_default(), &mut ctx.out);
        if let Err(error) = said {
            self.failed |= is_the_worlds(&error);
            self.acks.refuse(seq, &error.to_string(), &mut ctx.out);
        } else {
            let earlier = if heard.releases { std::mem::take(&mut self.unwritten) } else { Vec::new() };
            earlier.into_iter().for_each(|earlier| self.acks.add(line.also(earlier), &mut ctx.out));
            self.acks.add(line, &mut ctx.out);
        }
        self.settle(ctx);
    }

    fn say(&mut self, sayings: Vec<Saying>, line: &mut Line) -> Result<(), Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        // After a failed sync nothing is taken before what is in doubt was written again.
        if !recorder.unsaved().is_empty() && recorder.unsaved().iter().any(|unsaved| unsaved.id.is_some()) {
            recorder.reopen()?;
        }
        for saying in std::mem::take(&mut self.early).into_iter().chain(sayings) {
            line.note(self.dictation.say(saying, recorder)?);
        }
        Ok(())
    }

    /// Opens the session with the first words.
    fn begin(&mut self, ctx: &mut Ctx) -> Result<(), Error> {
        if self.recorder.is_some() {
            return Ok(());
        }
        let store = &self.plan.store;
        let mut recorder = match &self.plan.start {
            Start::New { id, with, project } => {
                store.begin(NewSession { id: id.as_deref(), project, with: with.as_deref() })?
            }
            Start::GoOn { session, record } => store.resume_source(&session.source, record.as_deref())?,
        };
        told(surprises::tell(&mut recorder, ctx));
        let session = recorder.session().map(ToString::to_string).unwrap_or_default();
        self.acks.of_session(&session);
        if let Some(path) = recorder.path() {
            told(ctx.note(&format!("Recording to {}", path.display())));
            told(ctx.note(&format!("Go on later with: scrollback record --resume {session}")));
        }
        if let Some(Err(error)) = self.title.take().map(|title| recorder.title(title.as_str())) {
            told(ctx.warn(&error.into()));
        }
        self.recorder = Some(recorder);
        Ok(())
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

    /// Writes what is held, and says how it went.
    fn end(mut self, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
        if let Some(recorder) = &mut self.recorder {
            let in_doubt = recorder.unsaved().iter().any(|unsaved| unsaved.id.is_some());
            let saved = if in_doubt { recorder.reopen() } else { Ok(()) };
            let finished = saved.and_then(|()| recorder.finish());
            self.acks.settle(&recorder.settled(), &mut ctx.out);
            self.acks.refuse_held(&recorder.refused(), &mut ctx.out);
            told(surprises::tell(recorder, ctx));
            if let Err(error) = finished {
                self.failed |= is_the_worlds(&error);
                self.acks.refuse_rest(&error.to_string(), &mut ctx.out);
                told(ctx.warn(&error.into()));
            }
        }
        let code = match (self.failed && self.acks.saved == 0, self.acks.refused) {
            (true, _) => super::FAILED,
            (false, 0) => 0,
            (false, _) => super::FOUND_PROBLEMS,
        };
        match self.acks.unheard() {
            Some(failure) => Err(failure),
            None => Ok(ExitCode::from(code)),
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
