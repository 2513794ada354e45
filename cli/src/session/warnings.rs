//! What happened to a session's file behind a writer's back, in sentences: one place for every command that writes.

use scrollback::write::recorder::{Recorder, Warning};

use crate::ctx::Ctx;
use crate::failure::Failure;

/// Warns of what a recorder noticed since it was last asked.
pub(crate) fn tell(recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failure> {
    tell_all(&recorder.warnings(), ctx)
}

/// Warns of each.
pub(crate) fn tell_all(warnings: &[Warning], ctx: &mut Ctx) -> Result<(), Failure> {
    warnings.iter().try_for_each(|warning| {
        let hint = if *warning == Warning::TornPiece { "; `scrollback doctor` shows it" } else { "" };
        ctx.caution(word(*warning), &format!("{warning}{hint}"))
    })
}

/// The word that `--json` prints for it.
fn word(warning: Warning) -> &'static str {
    match warning {
        Warning::InUse => "in-use",
        Warning::Unread => "unread",
        Warning::TornTail => "torn-tail",
        Warning::NoLineEnd => "no-line-end",
        Warning::Replaced => "replaced",
        Warning::Deleted => "deleted",
        Warning::Shortened => "shortened",
        Warning::TornPiece => "torn-piece",
        Warning::NoLocks => "no-locks",
        Warning::Forgotten => "forgotten",
        Warning::NoSidecar => "no-sidecar",
    }
}
