//! The calls of a recorder whose words are not told at once: which are on disk, which never can be, and which may be lost.

use super::{Ack, Durability, Refused, Saved};
use crate::error::{Error, Result};
use crate::record::RecordId;
use crate::writing::Losses;

/// What became of calls that were held. A call is told once.
#[derive(Default)]
pub(super) struct Tickets {
    last: u64,
    /// Their record is written, and may not survive a crash.
    pub(super) doubted: Vec<(u64, RecordId)>,
    pub(super) settled: Vec<Saved>,
    pub(super) refused: Vec<Refused>,
}

/// Lines that are in the file.
pub(crate) struct Wrote {
    pub(crate) saved: Saved,
    /// The `sync` behind them failed.
    pub(crate) doubt: Option<Error>,
}

impl Wrote {
    /// What the caller is told.
    pub(super) fn told(self) -> Result<Ack> {
        match self.doubt {
            Some(error) => Err(error),
            None => Ok(Ack::Saved(self.saved)),
        }
    }
}

/// Whose words are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of the call that is under way: it is told what came of them.
    Own,
    /// Those of earlier calls only.
    Earlier,
}

impl Tickets {
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// What was held is written. What the format lost is told once: to the call under way, or to the last that was held.
    pub(super) fn settle(&mut self, held: Vec<u64>, wrote: &Wrote, whose: Whose) {
        let Saved { id, durability, losses, .. } = &wrote.saved;
        if wrote.doubt.is_some() {
            self.doubted.extend(held.into_iter().map(|ticket| (ticket, id.clone())));
            return;
        }
        let first = self.settled.len();
        let saved = |ticket| Saved { ticket, id: id.clone(), durability: *durability, losses: Losses::default() };
        self.settled.extend(held.into_iter().map(saved));
        if let (Whose::Earlier, Some(last)) = (whose, self.settled.get_mut(first..).and_then(<[Saved]>::last_mut)) {
            last.losses.clone_from(losses);
        }
    }

    /// What was held can never be written.
    pub(super) fn refuse(&mut self, held: Vec<u64>, what: &str) {
        self.refused.extend(held.into_iter().map(|ticket| Refused { ticket, what: what.to_owned() }));
    }

    /// What was in doubt is safe.
    pub(super) fn all_safe(&mut self) {
        let saved = |(ticket, id)| Saved { ticket, id, durability: Durability::Sync, losses: Losses::default() };
        self.settled.extend(self.doubted.drain(..).map(saved));
    }
}
