//! `man`: prints the manual page, generated from the help texts.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

pub(crate) fn run(ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    clap_mangen::Man::new(Cli::command()).render(&mut ctx.out)?;
    // Global options are known only after the command is built.
    let mut whole = Cli::command();
    whole.build();
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        let page = clap_mangen::Man::new(command.clone().mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide(is_global)
        }));
        page.render_synopsis_section(&mut ctx.out)?;
        page.render_description_section(&mut ctx.out)?;
        page.render_options_section(&mut ctx.out)?;
    }
    Ok(ExitCode::SUCCESS)
}
