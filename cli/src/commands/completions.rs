//! `completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

/// Print a completion script for a shell
///
/// Save it where the shell looks for completions, then start a new shell.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

const EXAMPLES: &str = "\
Examples:
  scrollback completions bash > ~/.local/share/bash-completion/completions/scrollback
  scrollback completions fish > ~/.config/fish/completions/scrollback.fish";

pub(crate) fn run(args: &CompletionsArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    // Into memory first: the generator does not report a closed pipe, it panics.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "scrollback", &mut script);
    ctx.out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
