//! Keeps copies of sessions that have changed, if that is switched on.

use scrollback::session::Source;
use scrollback::write::{Kept, KeptNow};

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::plural;

/// How many sessions were kept, by what it did.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) new: usize,
    pub(crate) grown: usize,
    pub(crate) rewritten: usize,
    pub(crate) unchanged: usize,
    pub(crate) failed: usize,
}

/// Keeps these sessions, if that is switched on. A copy that cannot be made is a warning.
pub(crate) fn keep_all<'s>(sources: impl Iterator<Item = &'s Source>, ctx: &mut Ctx) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    if !ctx.config.is_keeping() || ctx.demo {
        return Ok(counts);
    }
    let kept = Kept::open(&ctx.home, ctx.host());
    for source in sources {
        match kept.keep(source) {
            Ok(KeptNow::Not) => {}
            Ok(KeptNow::Unchanged) => counts.unchanged += 1,
            Ok(KeptNow::New) => counts.new += 1,
            Ok(KeptNow::Grown) => counts.grown += 1,
            Ok(KeptNow::Rewritten) => counts.rewritten += 1,
            Err(error) => {
                counts.failed += 1;
                if counts.failed == 1 {
                    let failure = Failure::from(error);
                    ctx.warn(&failure.hint("free disk space, or run `scrollback keep off`; nothing else is affected"))?;
                }
            }
        }
    }
    if counts.failed > 1 {
        ctx.caution("keep", &format!("{} could not be kept", plural(counts.failed as u64, "session")))?;
    }
    Ok(counts)
}
