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
        let (kind, text) = sentence(*surprise);
        ctx.caution(kind, text)
    })
}

/// The word that `--json` prints for it, and what a person is told.
fn sentence(surprise: Surprise) -> (&'static str, &'static str) {
    match surprise {
        Surprise::InUse => ("in-use", "another program wrote to this session in the last minute, and may go on"),
        Surprise::Unread => ("unread", "not every session could be read: a newer one may be among those"),
        Surprise::TornTail => {
            ("torn-tail", "the file ended inside a record; that piece was closed, nothing else changed")
        }
        Surprise::Replaced => {
            ("replaced", "another file took the session's name meanwhile; that one is written to now")
        }
        Surprise::Deleted => ("deleted", "the session's file was deleted meanwhile; it was begun anew"),
        Surprise::Shortened => ("shortened", "the session's file was cut short meanwhile; what stood there is gone"),
        Surprise::TornPiece => {
            ("torn-piece", "a record did not fit and a piece of it stayed in the file; `scrollback doctor` shows it")
        }
        Surprise::NoLocks => ("no-locks", "this file system has no locks: let no other program write to the session"),
        Surprise::NoSidecar => {
            ("no-sidecar", "the file beside the log could not be written; the log itself says everything")
        }
    }
}
