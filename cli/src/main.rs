//! The `scrollback` binary: parses the command line, runs one command, and reports its result.

mod args;
mod commands;
mod config;
mod ctx;
mod demo;
mod failure;
mod glob;
mod heap;
mod notify;
mod outlet;
mod prices;
mod redaction;
mod record;
mod render;
mod session;
mod terminal;

#[cfg(test)]
#[path = "../../lib/tests/support/mod.rs"]
mod lib_support;

use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut ctx, args) = match args::parse() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let done = commands::run(&args, &mut ctx);
    ctx.finish(done)
}
