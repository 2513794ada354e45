//! `fork`: copies a branch of a session to a new session.

use std::process::ExitCode;

use scrollback::view::find::SessionName;
use scrollback::write::fork::Fork;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::plural;
use crate::session::name;
use crate::session::warnings;
use crate::session::writable::{Done, Writable};
use crate::terminal::clean;

/// Copy a branch into a new session
///
/// Copies the newest branch, or the one that ends with RECORD, to a new session in the same store. The title is copied too, and so are the snapshots and
/// file backups of the branch; other branches are not. Every copied record names its origin. The source does not change.
#[derive(clap::Args, Debug)]
pub(crate) struct ForkArgs {
    /// Session id, unique beginning, @, or a path; #RECORD ends the branch there
    #[arg(value_name = "SESSION[#RECORD]")]
    session: SessionName,
    /// Id of the new session
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub(crate) fn run(args: &ForkArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let writable = Writable::find(&args.session, global, ctx)?;
    let named = writable.record.as_deref().map(|record| name::record(&writable.session, record)).transpose()?;
    let head = named.map(|record| record.id().into_owned());
    let fork = Fork { head: head.as_deref(), id: args.id.as_deref() };
    let forked = writable.store()?.fork(&writable.session, fork)?;
    warnings::print(&forked.warnings, ctx)?;
    if forked.closed_gaps > 0 {
        let places = plural(forked.closed_gaps as u64, "place");
        ctx.caution(
            "closed-gaps",
            &format!("records are missing on this branch in {places}; the fork closes the gaps"),
        )?;
    }
    if ctx.json {
        let (session, record) = (forked.session.to_string(), Some(forked.head.to_string()));
        ctx.print_json(&Done { session, record, path: forked.path })?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("{} is a fork of {}", clean::line(forked.session.as_str()), clean::line(&writable.id())))?;
    let records = plural(forked.records as u64, "record");
    ctx.note(&format!("{records} in {}", forked.path.display()))?;
    ctx.note(&format!("The source is unchanged. Run `scrollback remove {}` to remove the fork.", forked.session))?;
    Ok(ExitCode::SUCCESS)
}
