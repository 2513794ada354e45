//! `cargo xtask corpus [--bless]`: reads every case under `corpus/` and compares it with what is expected of it.
//!
//! The walk itself is a test of the library; with `SCROLLBACK_BLESS=1` it rewrites the expectations instead.

use crate::Outcome;
use crate::shell::{command, run};

const WALK: &str = "cargo test --locked --package scrollback-lib --test session corpus";

pub(crate) fn check() -> Outcome {
    run(&mut command(WALK))
}

pub(crate) fn bless() -> Outcome {
    run(command(WALK).env("SCROLLBACK_BLESS", "1"))?;
    println!("xtask: what changed against the last commit (new cases are not listed before `git add`):");
    run(&mut command("git --no-pager diff --stat -- corpus"))
}
