//! `new`: the session that goes on is ended, so that the next one begins afresh.

use std::process::ExitCode;

use scrollback::dialect::Dialect;
use scrollback::session::read::source::Source;
use scrollback::view::find::SessionName;
use scrollback::write::rotate::{EndedSession, Rotation, When};
use scrollback::write::store::{NewSession, Store};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::scope;
use crate::session::warnings;
use crate::session::writable::{self, Done, Writable};
use crate::terminal::clean;

/// End the current session, where an agent has one at a time
///
/// Moves the log to where the agent keeps ended sessions: of Fluux Agent to sessions/YYYYMMDD-HHMMSS.jsonl, of sage for Emacs to history/, by the clock of
/// Greenwich. Its bytes stay as they are and nothing is overwritten; the next message begins a new session. Where no message is whole yet, nothing is
/// ended. Name the session, or say whose it is: --dialect fluux --jid JID, or --dialect sage-el [--project DIR].
#[derive(clap::Args, Debug)]
pub(crate) struct NewArgs {
    /// Session id, unique beginning, @, or a path
    session: Option<SessionName>,
    /// The person or room that the session is with
    #[arg(long, value_name = "JID", conflicts_with = "session")]
    jid: Option<String>,
}

pub(crate) fn run(args: &NewArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let (store, source) = match &args.session {
        Some(name) => {
            let writable = Writable::find(name, global, ctx)?;
            check_archives(writable.source.dialect)?;
            (writable.store()?, Some(writable.source))
        }
        None => current(args, global, ctx)?,
    };
    let ended = source.map_or(Ok(Rotation::NotThere), |source| store.rotate(&source, When::Now))?;
    let nothing = |why: &str| Failure::new(FailureKind::NotFound, format!("nothing is ended: {why}"));
    match ended {
        Rotation::Ended(ended) => tell(&ended, ctx),
        Rotation::Empty | Rotation::NotIdle => Err(nothing("no message of this session is whole yet")),
        Rotation::NotThere => Err(nothing("there is no session that goes on").hint("the next message begins one")),
    }
}

/// The session that goes on with somebody, or in a project.
fn current(args: &NewArgs, global: &Global, ctx: &Ctx) -> Result<(Store, Option<Source>), Failure> {
    let Some(dialect) = scope::dialect(global)? else {
        let failure = Failure::new(FailureKind::Usage, "no session was named");
        return Err(failure.hint("name it, or say --dialect fluux --jid JID, or --dialect sage-el"));
    };
    check_archives(dialect)?;
    let with = writable::with_whom(dialect, args.jid.as_deref())?;
    let (store, project) = writable::place_for(dialect, None, global, ctx)?;
    let source = store.current(&NewSession { with: with.as_deref(), ..NewSession::of(&project) })?;
    Ok((store, source))
}

fn check_archives(dialect: &dyn Dialect) -> Result<(), Failure> {
    if dialect.writer().is_some_and(|writing| writing.ended_path.is_some()) {
        return Ok(());
    }
    let message = format!("{} sessions are not ended: there can be any number of them", dialect.name());
    Err(Failure::new(FailureKind::Usage, message).hint("a new session begins by itself with `scrollback record`"))
}

fn tell(ended: &EndedSession, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    warnings::tell_all(&ended.warnings, ctx)?;
    if ctx.json {
        let (session, path) = (ended.session.to_string(), ended.path.clone());
        ctx.print_json(&Done { session, record: None, path })?;
    } else {
        let session = clean::line(ended.session.as_str());
        ctx.line(&format!("the session is ended, and is called {session} now"))?;
        ctx.note(&format!("It lies in {}", ended.path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
