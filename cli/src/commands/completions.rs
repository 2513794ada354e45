//! `completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

/// Print a completion script for a shell
///
/// Load it in the current shell, or save it where the shell looks for completions.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: clap_complete::Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(scrollback completions bash)
  scrollback completions fish > ~/.config/fish/completions/scrollback.fish";

pub(crate) fn run(args: &CompletionsArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    // Into memory first: the generator does not report a closed pipe, it panics.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "scrollback", &mut script);
    ctx.out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
