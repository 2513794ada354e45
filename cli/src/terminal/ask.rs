//! Questions to a person at a terminal.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use crate::ctx::Ctx;
use crate::failure::Failure;

/// An answer is a word.
const ANSWER_LIMIT_BYTES: u64 = 1024;

/// Whether somebody is there to answer.
pub(crate) fn is_possible(ctx: &Ctx) -> bool {
    !ctx.json && ctx.on_terminal && io::stdin().is_terminal()
}

/// Whether the answer is yes.
pub(crate) fn is_agreed(question: &str, ctx: &mut Ctx) -> Result<bool, Failure> {
    write!(ctx.out, "{question} [y/N] ")?;
    ctx.out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_LIMIT_BYTES).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
