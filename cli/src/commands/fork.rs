//! `fork`: copies a branch of a session to a new session.

use std::process::ExitCode;

use scrollback::view::find::SessionName;
use scrollback::write::Fork;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::outlet::Secrets;
use crate::render::plural;
use crate::session::name;
use crate::session::resume::{self, Resumable};
use crate::session::warnings;
use crate::session::writable::{Done, Writable};
use crate::terminal::clean;

/// Copy a branch to a new session
///
/// Copies the newest branch, or the branch that ends with RECORD, to a new session in the same store, with the title, the snapshots and
/// the file backups of that branch. Each copied record names its origin. The source does not change.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    /// Session id, unique prefix, @, or a path; with #RECORD, the branch ends there
    #[arg(value_name = "SESSION[#RECORD]")]
    session: SessionName,
    /// Id of the new session
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback fork @
  scrollback fork 3f8a#319c --id tides-2";

pub(crate) fn run(args: &ForkArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let writable = Writable::find_masked(&args.session, global, ctx.content_mask(), ctx)?;
    let named = writable.record.as_deref().map(|record| name::record(&writable.session, record)).transpose()?;
    let head = named.map(|record| record.id().into_owned());
    let fork = Fork { head: head.as_deref(), id: args.id.as_deref() };
    let forked = writable.store_of_copy()?.fork(&writable.session, fork)?;
    Secrets::of_file(&forked.path, ctx)?.tell(ctx)?;
    warnings::print(&forked.warnings, ctx)?;
    if forked.closed_gaps > 0 {
        let places = plural(forked.closed_gaps as u64, "place");
        ctx.caution("closed-gaps", &format!("the branch has missing records in {places}; the fork has no gaps there"))?;
    }
    if ctx.json {
        let (session, record) = (forked.session.to_string(), Some(forked.head.to_string()));
        ctx.print_json(&Done { session, record, path: forked.path })?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("forked {1} to {0}", clean::line(forked.session.as_str()), clean::line(&writable.id())))?;
    let records = plural(forked.records as u64, "record");
    ctx.note(&format!("{records} in {}", forked.path.display()))?;
    ctx.note(&format!("Run `scrollback remove {}` to undo.", forked.session))?;
    let (dialect, cwd) = (writable.session.dialect(), writable.session.cwd());
    let fork = Resumable { dialect, id: forked.session.as_str(), path: &forked.path, cwd };
    resume::print_resume_line(fork, ctx)?;
    Ok(ExitCode::SUCCESS)
}
