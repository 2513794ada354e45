//! `tree`: every record of a session, with its branches.

use std::process::ExitCode;

use scrollback::session::Bridge;
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::{json, outline};
use crate::session::{located, name};

/// Draw the tree of a session
///
/// Prints one line per record. The head of each branch is marked, and the newest branch is bold.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TreeArgs {
    /// Session id, unique prefix, @, a path, or -
    session: SessionName,
    /// Connect each gap to the record that was written before it
    #[arg(long)]
    bridge: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback tree @
  scrollback tree 3f8a --json";

pub(crate) fn run(args: &TreeArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let session = named.located.open(global, ctx, bridge, None)?;
    if let Some(record) = &named.record {
        name::record(&session, record)?;
    }
    if ctx.json {
        // Each record is read when it is printed: a long session is never in memory as a whole.
        ctx.print_json(&session.tree_view_of(json::Streamed(|| session.tree_rows()))?)?;
        let is_empty = session.records().len() == 0;
        return Ok(if is_empty { ExitCode::from(super::FOUND_PROBLEMS) } else { ExitCode::SUCCESS });
    }
    if session.records().len() == 0 {
        return Err(located::no_records(&session));
    }
    ctx.page(0);
    ctx.writing(|ctx, out| outline::draw(&session, ctx, out))?;
    Ok(ExitCode::SUCCESS)
}
