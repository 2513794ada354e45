//! Warnings about a session's file that writing commands print.

use scrollback::write::{Recorder, Warning};

use crate::ctx::Ctx;
use crate::failure::Failure;

/// Prints the new warnings of a recorder.
pub(crate) fn print_new(recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failure> {
    print(&recorder.warnings(), ctx)
}

/// Prints each warning.
pub(crate) fn print(warnings: &[Warning], ctx: &mut Ctx) -> Result<(), Failure> {
    warnings.iter().try_for_each(|warning| {
        let hint = if *warning == Warning::TornPiece { "; run `scrollback doctor` for details" } else { "" };
        ctx.caution(kind(*warning), &format!("{warning}{hint}"))
    })
}

/// The `kind` of a warning in `--json`.
fn kind(warning: Warning) -> &'static str {
    match warning {
        Warning::InUse => "in-use",
        Warning::Unguarded => "unguarded",
        Warning::Unread => "unread",
        Warning::TornTail => "torn-tail",
        Warning::NoLineEnd => "no-line-end",
        Warning::Replaced => "replaced",
        Warning::Deleted => "deleted",
        Warning::Shortened => "shortened",
        Warning::TornPiece => "torn-piece",
        Warning::NoLocks => "no-locks",
        Warning::NotStored => "not-stored",
        Warning::NoFileStates => "no-file-states",
        Warning::NotCopied => "not-copied",
        Warning::PartlyWatched => "partly-watched",
        Warning::NoSidecar => "no-sidecar",
        Warning::DamagedSidecar => "damaged-sidecar",
    }
}
