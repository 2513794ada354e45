//! One file per command: its help text and arguments, then `run`.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod extract_tools;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod rewind;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod trash;
pub(crate) mod tree;
pub(crate) mod undo;
pub(crate) mod version;
pub(crate) mod welcome;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::ctx::Ctx;
pub(crate) use crate::failure::FOUND_PROBLEMS;
use crate::failure::Failure;
use crate::outlet::Outlet;
use crate::session::writable;

/// Runs the command that was typed.
pub(crate) fn run(cli: &Cli, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if cli.version {
        return version::run(ctx);
    }
    if let Some(Command::Hook(args)) = &cli.command
        && args.is_called()
    {
        // An agent waits for it, and nobody reads what it prints.
        (ctx.out, ctx.err) = (Box::new(std::io::sink()), Box::new(std::io::sink()));
        return hook::run(args, ctx);
    }
    ctx.check_clock()?;
    if !matches!(cli.command, Some(Command::Config(_))) {
        // `config` fails by itself if the file cannot be read.
        ctx.config.problems.extend(ctx.config.broken.take());
    }
    ctx.warn_about_config()?;
    match &cli.command {
        _ if !cli.global.demo => {}
        // The one command that writes there: to a copy.
        Some(Command::Undo(_)) => ctx.enter_demo_copy()?,
        Some(command) if command.writes() => writable::refuse_demo(ctx)?,
        _ => ctx.enter_demo()?,
    }
    ctx.mask_output(Outlet::of(cli))?;
    match &cli.command {
        Some(Command::List(args)) => list::run(args, &cli.global, ctx),
        Some(Command::Search(args)) => search::run(args, &cli.global, ctx),
        Some(Command::Sql(args)) => sql::run(args, &cli.global, ctx),
        Some(Command::Stats(args)) => stats::run(args, &cli.global, ctx),
        Some(Command::Index(args)) => index::run(args, &cli.global, ctx),
        Some(Command::Show(args)) => show::run(args, &cli.global, ctx),
        Some(Command::Tree(args)) => tree::run(args, &cli.global, ctx),
        Some(Command::History(args)) => history::run(args, &cli.global, ctx),
        Some(Command::Tail(args)) => tail::run(args, &cli.global, ctx),
        Some(Command::ExtractTools(args)) => extract_tools::run(args, &cli.global, ctx),
        Some(Command::Export(args)) => export::run(args, &cli.global, ctx),
        Some(Command::Replay(args)) => replay::run(args, &cli.global, ctx),
        Some(Command::Serve(args)) => serve::run(args, &cli.global, ctx),
        Some(Command::Resume(args)) => resume::run(args, &cli.global, ctx),
        Some(Command::Record(args)) => record::run(args, &cli.global, ctx),
        Some(Command::New(args)) => new::run(args, &cli.global, ctx),
        Some(Command::Hook(args)) => hook::run(args, ctx),
        Some(Command::Import(args)) => import::run(args, &cli.global, ctx),
        Some(Command::Fork(args)) => fork::run(args, &cli.global, ctx),
        Some(Command::Convert(args)) => convert::run(args, &cli.global, ctx),
        Some(Command::Rewind(args)) => rewind::run(args, &cli.global, ctx),
        Some(Command::Undo(args)) => undo::run(args, &cli.global, ctx),
        Some(Command::Redo(args)) => undo::run_redo(args, &cli.global, ctx),
        Some(Command::Files(args)) => files::run(args, &cli.global, ctx),
        Some(Command::Rename(args)) => rename::run(args, &cli.global, ctx),
        Some(Command::Remove(args)) => remove::run(args, &cli.global, ctx),
        Some(Command::Trash(args)) => trash::run(args, &cli.global, ctx),
        Some(Command::Keep(args)) => keep::run(args, &cli.global, ctx),
        Some(Command::Doctor(args)) => doctor::run(args, &cli.global, ctx),
        Some(Command::Redact(args)) => redact::run(args, &cli.global, ctx),
        Some(Command::Config(args)) => config::run(args, ctx),
        Some(Command::Completions(args)) => completions::run(args, ctx),
        Some(Command::Man) => man::run(ctx),
        None if ctx.on_terminal => welcome::run(&cli.global, ctx),
        None => {
            ctx.line(&Cli::command().render_long_help().to_string())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
