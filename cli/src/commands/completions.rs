//! `completions`: what a shell needs to finish words.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

/// Print a completion script for a shell
///
/// For example: scrollback completions bash > ~/.local/share/bash-completion/completions/scrollback
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &CompletionsArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    // Into memory first: the generator does not report a closed pipe, it panics.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "scrollback", &mut script);
    ctx.out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
