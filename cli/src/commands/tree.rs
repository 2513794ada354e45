//! `tree`: the turns of a session with its branches, or every record.

use std::process::ExitCode;

use scrollback::session::Bridge;
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::{json, outline, plural, turns};
use crate::session::{located, name};

/// Draw the tree of a session
///
/// Prints one line per turn: the prompt, its tool calls and how it ended, with the commands, compactions and rewinds in between. The end of
/// each branch is marked, and the newest branch is bold. The id is that of a turn's last record: `show --head`, `fork` and `rewind` take it.
/// With --json, prints every record.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TreeArgs {
    /// Session id, unique prefix, @, a path, or -
    session: SessionName,
    /// Print one line per record
    #[arg(long)]
    records: bool,
    /// Connect each gap to the record that was written before it
    #[arg(long)]
    bridge: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback tree @
  scrollback tree 3f8a --records";

pub(crate) fn run(args: &TreeArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let session = named.located.open(global, ctx, bridge, None, ctx.mask.clone().as_ref())?;
    if let Some(record) = &named.record {
        name::record(&session, record)?;
    }
    if ctx.json {
        // Each record is read when it is printed: a long session is never in memory as a whole.
        ctx.stream_json(&session.tree_view_of(json::Streamed(|| session.tree_rows()))?)?;
        let is_empty = session.records().len() == 0;
        return Ok(if is_empty { ExitCode::from(super::FOUND_PROBLEMS) } else { ExitCode::SUCCESS });
    }
    if session.records().len() == 0 {
        return Err(located::no_records(&session));
    }
    let turns = session.turns()?;
    ctx.page(0);
    if args.records || turns.is_empty() {
        ctx.writing(|ctx, out| outline::draw(&session, ctx, out))?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.writing(|ctx, out| turns::draw(&session, &turns, ctx, out))?;
    ctx.end_page()?;
    let (turns, records) =
        (plural(turns.conversation_len() as u64, "turn"), plural(session.records().len() as u64, "record"));
    ctx.note(&format!("{turns}, {records}; add --records to see each record."))?;
    Ok(ExitCode::SUCCESS)
}
