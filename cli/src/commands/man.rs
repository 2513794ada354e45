//! `man`: the manual page, made of the help texts.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::ctx::Ctx;
use crate::failure::Failure;

pub(crate) fn run(ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    clap_mangen::Man::new(Cli::command()).render(&mut ctx.out)?;
    // What one command says of options that all have is only known once the whole is built.
    let mut whole = Cli::command();
    whole.build();
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        let page = clap_mangen::Man::new(command.clone().mut_args(|arg| {
            let is_told = arg.is_global_set();
            arg.hide(is_told)
        }));
        page.render_synopsis_section(&mut ctx.out)?;
        page.render_description_section(&mut ctx.out)?;
        page.render_options_section(&mut ctx.out)?;
    }
    Ok(ExitCode::SUCCESS)
}
