//! `new`: ends the current session, so that the next message starts a new one.

use std::process::ExitCode;

use scrollback::dialect::Dialect;
use scrollback::session::Source;
use scrollback::view::find::SessionName;
use scrollback::write::{EndedSession, NewSession, Rotation, Store, When};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::scope;
use crate::session::warnings;
use crate::session::writable::{self, Done, Writable};
use crate::terminal::clean;

/// End the current session of an agent that has one at a time
///
/// Moves the log to where the agent keeps ended sessions: for Fluux Agent to sessions/YYYYMMDD-HHMMSS.jsonl, for sage for Emacs to
/// history/, in UTC. The file itself does not change, and nothing is overwritten; the next message starts a new session. A session
/// without a complete message is not ended. Name the session, or use --dialect fluux --jid JID, or --dialect sage-el [--project DIR].
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct NewArgs {
    /// Session id, unique prefix, @, or a path
    session: Option<SessionName>,
    /// JID of the person or room
    #[arg(long, value_name = "JID", conflicts_with = "session")]
    jid: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback new --dialect fluux --jid ada@example.org
  scrollback new --dialect sage-el --project ~/tide-tables";

pub(crate) fn run(args: &NewArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let (store, source) = match &args.session {
        Some(name) => {
            let writable = Writable::find(name, global, ctx)?;
            check_can_end(writable.source.dialect)?;
            (writable.store()?, Some(writable.source))
        }
        None => current(args, global, ctx)?,
    };
    let ended = source.map_or(Ok(Rotation::NotThere), |source| store.rotate(&source, When::Now))?;
    let nothing = |why: &str| Failure::new(FailureKind::NotFound, format!("no session to end: {why}"));
    match ended {
        Rotation::Ended(ended) => print(&ended, ctx),
        Rotation::Empty | Rotation::NotIdle => Err(nothing("the session has no complete message yet")),
        Rotation::NotThere => Err(nothing("there is no current session").hint("the next message starts one")),
    }
}

/// The current session of a person, a room or a project.
fn current(args: &NewArgs, global: &Global, ctx: &Ctx) -> Result<(Store, Option<Source>), Failure> {
    let Some(dialect) = scope::dialect(global)? else {
        let failure = Failure::new(FailureKind::Usage, "no session named");
        return Err(failure.hint("name it, or use --dialect fluux --jid JID, or --dialect sage-el"));
    };
    check_can_end(dialect)?;
    let with = writable::with_whom(dialect, args.jid.as_deref())?;
    let (store, project) = writable::place_for(dialect, None, global, ctx)?;
    let source = store.current(&NewSession { with: with.as_deref(), ..NewSession::of(&project) })?;
    Ok((store, source))
}

fn check_can_end(dialect: &dyn Dialect) -> Result<(), Failure> {
    if dialect.writer().is_some_and(|writing| writing.ended_path.is_some()) {
        return Ok(());
    }
    let message = format!("{} sessions do not end: the agent can have several", dialect.name());
    Err(Failure::new(FailureKind::Usage, message).hint("run `scrollback record` to start a new session"))
}

fn print(ended: &EndedSession, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    warnings::print(&ended.warnings, ctx)?;
    if ctx.json {
        let (session, path) = (ended.session.to_string(), ended.path.clone());
        ctx.print_json(&Done { session, record: None, path })?;
    } else {
        let session = clean::line(ended.session.as_str());
        ctx.line(&format!("ended the session; its id is now {session}"))?;
        ctx.note(&format!("It is now in {}", ended.path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
