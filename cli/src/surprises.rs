//! What happened to a session's file behind a writer's back, in sentences: one place for every command that writes.

use scrollback::recorder::{Recorder, Surprise};

use crate::ctx::Ctx;
use crate::failure::Failure;

/// Warns of what a recorder noticed since it was last asked.
pub(crate) fn tell(recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failure> {
    tell_all(&recorder.surprises(), ctx)
}

/// Warns of each.
pub(crate) fn tell_all(surprises: &[Surprise], ctx: &mut Ctx) -> Result<(), Failure> {
    surprises.iter().try_for_each(|surprise| {
        let hint = if *surprise == Surprise::TornPiece { "; `scrollback doctor` shows it" } else { "" };
        ctx.caution(word(*surprise), &format!("{surprise}{hint}"))
    })
}

/// The word that `--json` prints for it.
fn word(surprise: Surprise) -> &'static str {
    match surprise {
        Surprise::InUse => "in-use",
        Surprise::Unread => "unread",
        Surprise::TornTail => "torn-tail",
        Surprise::NoLineEnd => "no-line-end",
        Surprise::Replaced => "replaced",
        Surprise::Deleted => "deleted",
        Surprise::Shortened => "shortened",
        Surprise::TornPiece => "torn-piece",
        Surprise::NoLocks => "no-locks",
        Surprise::Forgotten => "forgotten",
        Surprise::NoSidecar => "no-sidecar",
    }
}
