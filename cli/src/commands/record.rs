//! `record`: records lines of standard input to a session.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, Title, Triggers, project};
use scrollback::view::find::{Places, SessionName};
use scrollback::view::listing::Depth;
use scrollback::write::{Durability, Listed, NewSession, Options, Store};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::record::Recording;
use crate::record::destination::{Destination, Start, name_of};
use crate::record::input::Lines;
use crate::redaction;
use crate::session::name;
use crate::session::scope;
use crate::session::writable::{self, Writable};

/// Record a session from JSON lines on standard input
///
/// Each line is a JSON object such as {"user": "…"}, {"assistant": "…"} or {"toolResult": {"callId": "…", "output": "…"}}, a chunk of the
/// AI SDK's UI message stream, or a line of `claude -p --output-format stream-json`. Every line that is not blank gets one line on
/// standard output: {seq, id, session, durability} once it is on disk, without id if there was nothing to record, or {seq, error} if it
/// is rejected. seq is the number of the line. Recording continues after a rejected line; the exit code is then 1.
/// The session is created with the first content. docs/recording.md has examples in Python and Node.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Continue the newest session of this project
    #[arg(long = "continue", group = "where")]
    is_continued: bool,
    /// Continue this session
    #[arg(long, value_name = "SESSION", group = "where")]
    resume: Option<SessionName>,
    /// Continue from this record; later records stay as a branch. RECORD alone finds the session in this project
    #[arg(long, value_name = "[SESSION#]RECORD", group = "where")]
    checkpoint: Option<SessionName>,
    /// Create a session with this id
    #[arg(long, value_name = "ID", group = "where")]
    id: Option<String>,
    /// Set the person or room of the session, with --dialect fluux
    #[arg(long, value_name = "JID", conflicts_with_all = ["resume", "checkpoint"])]
    jid: Option<String>,
    /// Start a new session, as `new` does, when the last message is more than N minutes old (0: never)
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["resume", "checkpoint"])]
    idle_minutes: u32,
    /// Set the title of the session
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Record this prompt before the input, for the output of an agent that does not repeat it
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    prompt: Option<String>,
    /// Make every record survive a crash of the machine, or only of the process (default: by kind of record)
    #[arg(long, value_name = "HOW")]
    durability: Option<DurabilityArg>,
    /// Set the thinking mode when a prompt contains "think", "think hard", "ultrathink" and the like
    #[arg(long)]
    thinking_words: bool,
    /// Set the name and version of the recording agent
    #[arg(long, value_name = "NAME/VERSION")]
    agent: Option<String>,
    /// Set the kind of user in new records, such as external (native and claude-code)
    #[arg(long, value_name = "TYPE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    user_type: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  echo '{\"user\": \"When is high water?\"}' | scrollback record --title Tides
  ask=\"When is high water?\"
  claude -p \"$ask\" --output-format stream-json --verbose | scrollback record --prompt \"$ask\"";

#[derive(ValueEnum, Debug, Clone, Copy)]
enum DurabilityArg {
    /// Survive a crash of the machine
    Sync,
    /// Survive a crash of the process
    Flush,
}

pub(crate) fn run(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let title = args.title.as_deref().map(checked_title).transpose()?;
    let destination = destination(args, global, ctx)?;
    let mut recording = Recording::new(destination, title);
    if let Some(prompt) = &args.prompt {
        recording.prompt(prompt, ctx);
    }
    let lines = Lines::from_stdin(recording.is_opening())?;
    Ok(recording.run(&lines, ctx)?.code())
}

/// The session to record to. Nothing is written yet; what cannot be written to fails before the first line is read.
fn destination(args: &RecordArgs, global: &Global, ctx: &mut Ctx) -> Result<Destination, Failure> {
    let durability = args.durability.map(|durability| match durability {
        DurabilityArg::Sync => Durability::Sync,
        DurabilityArg::Flush => Durability::Flush,
    });
    let triggers = if args.thinking_words { Triggers::usual() } else { Triggers::default() };
    let user_type = args.user_type.clone();
    let options = Options { durability, triggers, user_type, ..redaction::options(global, ctx)? };
    if let Some(name) = args.resume.as_ref().or(args.checkpoint.as_ref()) {
        return named(name, options, args, global, ctx);
    }
    let dialect = scope::dialect(global)?.or_else(|| dialect::named("native"));
    let dialect = dialect.ok_or_else(|| Failure::new(FailureKind::Usage, "unknown dialect"))?;
    if args.idle_minutes > 0 && dialect.name() != "fluux" {
        let message = format!("{} sessions do not end when idle", dialect.name());
        return Err(Failure::new(FailureKind::Usage, message).hint("use --idle-minutes with --dialect fluux"));
    }
    check_user_type(dialect, args)?;
    let with = writable::with_whom(dialect, args.jid.as_deref())?;
    let (store, project) = writable::place_for(dialect, args.agent.as_deref(), global, ctx)?;
    let store = store.with_options(options);
    if dialect.writer().is_some_and(|writing| writing.ended_path.is_some()) {
        if args.id.is_some() {
            let message = format!("{} sessions cannot be given an id", dialect.name());
            return Err(Failure::new(FailureKind::Usage, message).hint("omit --id"));
        }
        return current(store, project, with, args, ctx);
    }
    if args.is_continued {
        if let Some(session) = newest(&store, &project, global, ctx)? {
            return Ok(Destination { store, start: Start::Resume { session: Box::new(session), record: None } });
        }
        ctx.caution("new-session", "no session of this project to continue; a new one is created")?;
    }
    check_new(&store, args.id.as_deref(), &project, dialect, global, ctx)?;
    Ok(Destination { store, start: Start::New { id: args.id.clone(), project } })
}

/// Fails if a session cannot be created, or its id is taken, wherever the dialect keeps sessions: the store is one of these places.
fn check_new(
    store: &Store,
    id: Option<&str>,
    project: &Path,
    dialect: &'static dyn Dialect,
    global: &Global,
    ctx: &Ctx,
) -> Result<(), Failure> {
    let places = Places { home: ctx.home.clone(), store: global.store.clone(), dialect: Some(dialect), mask: None };
    let elsewhere = || id.and_then(|id| places.with_id(id, ctx.now).into_iter().next());
    let checked = store.check(NewSession { id, ..NewSession::of(project) });
    let checked = checked.and_then(|()| elsewhere().map_or(Ok(()), |known| Err(Error::Exists(known.path))));
    let needs_uuid = || {
        matches!(store.check(NewSession { id: Some("x"), ..NewSession::of(project) }), Err(Error::InvalidName { .. }))
    };
    match (checked, id) {
        (Err(Error::Exists(path)), Some(_)) if is_of_this_moment(store, &path, ctx) => Ok(()),
        (Err(Error::Exists(path)), Some(id)) => {
            let name = name_of(dialect, id, &path, ctx);
            let hint = format!("use --resume {name} to continue it, or choose another id");
            Err(Failure::from(Error::Exists(path)).hint(hint))
        }
        (Err(error @ Error::InvalidName { .. }), Some(_)) if needs_uuid() => {
            Err(Failure::from(error).hint("use a UUID, or leave out --id to get a new one"))
        }
        (checked, _) => Ok(checked?),
    }
}

/// Whether another program began a session just now, so that it is the same start: since this one started, or a moment before and it
/// still records.
fn is_of_this_moment(store: &Store, log: &Path, ctx: &Ctx) -> bool {
    const MOMENT: Duration = Duration::from_secs(1);
    let created = std::fs::metadata(log).and_then(|found| found.created().or_else(|_| found.modified()));
    created.is_ok_and(|created| created >= ctx.started || (created + MOMENT >= ctx.started && store.is_recording(log)))
}

/// A named session, at its head or at a record.
fn named(
    name: &SessionName,
    options: Options,
    args: &RecordArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<Destination, Failure> {
    let session = match Writable::find(name, global, ctx) {
        Err(failure) if failure.kind == FailureKind::NotFound && args.checkpoint.is_some() => {
            with_record(name.typed(), failure, global, ctx)?
        }
        session => session?,
    };
    if let (Some(project), Some(cwd)) = (&global.project, session.session.cwd())
        && project::of(&project::settled(&ctx.home.cwd, project)) != project::of(Path::new(cwd))
    {
        ctx.caution("other-project", &format!("--project has no effect: the session belongs to {cwd}"))?;
    }
    let store = session.store_for(args.agent.as_deref())?.with_options(options);
    store.check_source(&session.source)?;
    check_user_type(session.source.dialect, args)?;
    let record = match (&session.record, &args.checkpoint) {
        (None, Some(_)) => {
            let failure = Failure::new(FailureKind::Usage, "--checkpoint needs a record");
            return Err(failure.hint(format!("use {0}#RECORD; `scrollback tree {0}` lists the records", session.id())));
        }
        (Some(record), _) => Some(name::record(&session.session, record)?.id().into_owned()),
        (None, None) => None,
    };
    if let Some(record) = &record {
        store.check_place(&session.session, record)?;
    }
    Ok(Destination { store, start: Start::Resume { session: Box::new(session), record } })
}

/// The session of this project that has a record of this name. A fork has the records of its original: then several do.
fn with_record(record: &str, missing: Failure, global: &Global, ctx: &mut Ctx) -> Result<Writable, Failure> {
    let mut found = Vec::new();
    for (row, source) in scope::found(global, ctx, Depth::Ends)?.rows {
        match Writable::of(source, Some(record.to_owned()), global, ctx) {
            Ok(session) => match session.session.find(record) {
                Err(Error::NoRecord(_)) => {}
                // A prefix of several records is one that this session has.
                Ok(_) | Err(_) => found.push((row, session)),
            },
            Err(failure) => ctx.warn(&failure)?,
        }
    }
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|(row, _)| format!("{}#{record}", row.id)).collect();
        let message = format!("{record:?} is ambiguous: {} sessions have such a record", found.len());
        return Err(Failure::new(FailureKind::Usage, message).hint(format!("use one of: {}", names.join(", "))));
    }
    found.pop().map_or(Err(missing), |(_, session)| Ok(session))
}

/// The current session of a project or a person, existing or not.
fn current(
    store: Store,
    project: PathBuf,
    with: Option<String>,
    args: &RecordArgs,
    ctx: &mut Ctx,
) -> Result<Destination, Failure> {
    let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
    if store.current(&new)?.is_none() {
        match store.check(new) {
            // Another program has begun it since.
            Ok(()) | Err(Error::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if args.is_continued {
            ctx.caution("new-session", "no session to continue; a new one is created")?;
        }
    }
    let idle_minutes = Some(args.idle_minutes).filter(|minutes| *minutes > 0);
    Ok(Destination { store, start: Start::Current { project, with, idle_minutes } })
}

/// The newest session of a project. Sessions that cannot be read may be newer: they are reported, and fail if there is no other.
fn newest(store: &Store, project: &Path, global: &Global, ctx: &mut Ctx) -> Result<Option<Writable>, Failure> {
    let Listed { rows, errors } = store.list(Some(project));
    let newest = rows.iter().find(|row| row.parent_session.is_none());
    for error in errors {
        let failure = Failure::from(error);
        if newest.is_none() {
            return Err(failure.hint("omit --continue to create a new session"));
        }
        ctx.warn(&failure)?;
    }
    let Some(newest) = newest else { return Ok(None) };
    Ok(Some(Writable::of(store.source_of(newest)?, None, global, ctx)?))
}

/// Fails if the format has no place for the kind of user.
fn check_user_type(dialect: &dyn Dialect, args: &RecordArgs) -> Result<(), Failure> {
    if args.user_type.is_none() || dialect.writer().is_none_or(|writing| writing.has_user_type) {
        return Ok(());
    }
    let message = format!("{} cannot store the kind of user", dialect.name());
    Err(Failure::new(FailureKind::Usage, message).hint("leave out --user-type"))
}

fn checked_title(text: &str) -> Result<String, Failure> {
    Title::checked(text).map_err(|why| Failure::new(FailureKind::Usage, "invalid title").hint(why))
}
