//! `redact`: reports secrets in session files, and writes copies without them.

use std::process::ExitCode;

use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;

/// Find secrets in sessions and files
#[derive(clap::Args, Debug)]
pub(crate) struct RedactArgs {
    /// Session ids, files or directories (can be repeated)
    #[arg(required = true)]
    targets: Vec<SessionName>,
}

pub(crate) fn run(args: &RedactArgs, _: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    for target in &args.targets {
        ctx.line(target.typed())?;
    }
    Ok(ExitCode::SUCCESS)
}
