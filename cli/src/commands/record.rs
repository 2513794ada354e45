//! `record`: what an agent says on standard input becomes a session, line by line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::dialect;
use scrollback::model::record::Title;
use scrollback::model::thinking::Triggers;
use scrollback::view::find::SessionName;
use scrollback::write::recorder::{Durability, Options};
use scrollback::write::store::{Listed, NewSession, Store};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::record::Recording;
use crate::record::destination::{Destination, Start};
use crate::record::input::Lines;
use crate::session::name;
use crate::session::scope;
use crate::session::writable::{self, Writable};

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

pub(crate) fn run(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let title = args.title.as_deref().map(title_of).transpose()?;
    let destination = destination(args, global, ctx)?;
    Recording::of(destination, title).listen(&Lines::of_stdin()?, ctx)
}

/// Where the words will go; nothing is written yet, and what could not be is told before anything is said.
fn destination(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<Destination, Failure> {
    let durability = args.durability.map(|survives| match survives {
        Survives::Sync => Durability::Sync,
        Survives::Flush => Durability::Flush,
    });
    let triggers = if args.thinking_words { Triggers::usual() } else { Triggers::default() };
    let options = Options { durability, triggers };
    if let Some(name) = args.resume.as_ref().or(args.checkpoint.as_ref()) {
        return named(name, options, args, global, ctx);
    }
    let dialect = scope::dialect(global)?.or_else(|| dialect::named("native"));
    let dialect = dialect.ok_or_else(|| Failure::new(FailureKind::Usage, "no dialect was named"))?;
    if args.idle_minutes > 0 && dialect.name() != "fluux" {
        let message = format!("{} sessions do not end by themselves", dialect.name());
        return Err(Failure::new(FailureKind::Usage, message).hint("--idle-minutes is for --dialect fluux"));
    }
    let with = writable::with_whom(dialect, args.jid.as_deref())?;
    let (store, project) = writable::place_for(dialect, args.agent.as_deref(), global, ctx)?;
    let store = store.with_options(options);
    if dialect.write().is_some_and(|writing| writing.archive.is_some()) {
        if args.id.is_some() {
            let message = format!("a {} session is called after its place", dialect.name());
            return Err(Failure::new(FailureKind::Usage, message).hint("leave --id out"));
        }
        return current(store, project, with, args, ctx);
    }
    if args.goes_on {
        if let Some(session) = newest(&store, &project, global, ctx)? {
            return Ok(Destination { store, start: Start::GoOn { session: Box::new(session), record: None } });
        }
        ctx.caution("new-session", "there is no session of this project to go on with: a new one begins")?;
    }
    store.check(NewSession { id: args.id.as_deref(), ..NewSession::of(&project) })?;
    Ok(Destination { store, start: Start::New { id: args.id.clone(), project } })
}

/// A session that was named, at its head or at a record.
fn named(
    name: &SessionName,
    options: Options,
    args: &RecordArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<Destination, Failure> {
    let session = Writable::find(name, global, ctx).map_err(misused)?;
    let store = session.store_for(args.agent.as_deref())?.with_options(options);
    store.check_source(&session.source)?;
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
    Ok(Destination { store, start: Start::GoOn { session: Box::new(session), record } })
}

/// The one session that a project or a person has, there already or not.
fn current(
    store: Store,
    project: PathBuf,
    with: Option<String>,
    args: &RecordArgs,
    ctx: &mut Ctx,
) -> Result<Destination, Failure> {
    let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
    if store.current(&new)?.is_none() {
        store.check(new)?;
        if args.goes_on {
            ctx.caution("new-session", "there is no session to go on with: a new one begins")?;
        }
    }
    let idle_minutes = Some(args.idle_minutes).filter(|minutes| *minutes > 0);
    Ok(Destination { store, start: Start::Current { project, with, idle_minutes } })
}

/// The newest session of a project. What cannot be read may be newer: that is told, and where there is no other, it is the answer.
fn newest(store: &Store, project: &Path, global: &Global, ctx: &mut Ctx) -> Result<Option<Writable>, Failure> {
    let Listed { rows, errors } = store.list(Some(project));
    let newest = rows.iter().find(|row| row.parent_session.is_none());
    for error in errors {
        let failure = Failure::from(error);
        if newest.is_none() {
            return Err(failure.hint("leave --continue out to begin a new session"));
        }
        ctx.warn(&failure)?;
    }
    let Some(newest) = newest else { return Ok(None) };
    Ok(Some(Writable::of(store.source(newest.id.as_str())?, None, global, ctx)?))
}

fn title_of(text: &str) -> Result<String, Failure> {
    Title::checked(text).map_err(|why| Failure::new(FailureKind::Usage, "that is no title").hint(why))
}

/// A session that is not there is no answer of "nothing found": the command cannot do what it was asked for.
fn misused(failure: Failure) -> Failure {
    Failure { kind: if failure.kind == FailureKind::NotFound { FailureKind::Usage } else { failure.kind }, ..failure }
}
