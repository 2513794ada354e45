//! `tree`: every record of a session, its branches drawn.

use std::process::ExitCode;

use scrollback::session::Bridge;
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::outline;
use crate::session::name;

/// Draw a session's branches
///
/// Heads are marked, the newest branch is bold. Records in a row without a fork stand under each other.
#[derive(clap::Args, Debug)]
pub(crate) struct TreeArgs {
    /// Session id, unique beginning, @, a path, or -
    session: SessionName,
    /// Go on before a missing record with the one that was written before it
    #[arg(long)]
    bridge: bool,
}

pub(crate) fn run(args: &TreeArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let session = named.located.open(global, ctx, bridge, None)?;
    if ctx.json {
        let view = session.tree_view()?;
        ctx.print_json(&view)?;
        return Ok(if view.records.is_empty() { ExitCode::from(super::FOUND_PROBLEMS) } else { ExitCode::SUCCESS });
    }
    if session.records().len() == 0 {
        let failure = Failure::new(FailureKind::NotFound, format!("{} holds no record", session.path().display()));
        return Err(failure.hint("`scrollback doctor` tells what is in it"));
    }
    ctx.page(0);
    ctx.writing(|ctx, out| outline::draw(&session, ctx, out))?;
    Ok(ExitCode::SUCCESS)
}
