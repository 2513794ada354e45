//! `man`: the manual page, made of the help texts.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

pub(crate) fn run(ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    clap_mangen::Man::new(Cli::command()).render(&mut ctx.out)?;
    for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
        clap_mangen::Man::new(command.clone()).render_synopsis_section(&mut ctx.out)?;
        clap_mangen::Man::new(command.clone()).render_description_section(&mut ctx.out)?;
        clap_mangen::Man::new(command.clone()).render_options_section(&mut ctx.out)?;
    }
    Ok(ExitCode::SUCCESS)
}
