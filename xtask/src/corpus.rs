//! `cargo xtask corpus [--bless]`: reads every case of `corpus/` and compares the result with its page.
//!
//! The comparison is a test of the library; with `SCROLLBACK_BLESS=1` it writes the pages instead.

use crate::Outcome;
use crate::shell::{command, run};

const TEST: &str = "cargo test --locked --package scrollback-lib --test session corpus";

pub(crate) fn check() -> Outcome {
    run(&mut command(TEST))
}

pub(crate) fn bless() -> Outcome {
    run(command(TEST).env("SCROLLBACK_BLESS", "1"))?;
    println!("xtask: changes since the last commit (new cases are listed only after `git add`):");
    run(&mut command("git --no-pager diff --stat -- corpus"))
}
