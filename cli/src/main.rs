//! The `scrollback` binary: what was typed, then what it means, then the work; every output goes through `Ctx`.

mod acks;
mod args;
mod clock;
mod commands;
mod ctx;
mod demo;
mod destination;
mod dictated;
mod failure;
mod follow;
mod json;
mod located;
mod name;
mod pager;
mod paint;
mod recording;
mod render;
mod scope;
mod sse;
mod surprises;
mod teller;
mod terminal;
mod watch;
mod writable;

use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut ctx, args) = match args::parse() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let done = commands::run(&args, &mut ctx);
    ctx.finish(done)
}
