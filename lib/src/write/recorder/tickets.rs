//! The calls of a recorder whose words are not told at once: which are on disk, which never can be, and which may be lost.

use std::collections::VecDeque;

use super::{Ack, Durability, Refused, Saved};
use crate::model::error::{Error, Result};
use crate::model::loss::Losses;
use crate::model::record::RecordId;

/// How many runs of calls are remembered until somebody asks: whoever waits for a call asks long before so many answers were given,
/// and an agent that never asks must not pay for it.
const UNTOLD_LIMIT: usize = 10_000;

/// What became of calls that were held. A call is told once.
#[derive(Default)]
pub(super) struct Tickets {
    last: u64,
    /// Their record is written, and may not survive a crash.
    pub(super) doubted: Vec<Doubted>,
    settled: Untold<(RecordId, Durability, Losses)>,
    refused: Untold<String>,
}

/// A call whose record may not survive a crash.
pub(super) struct Doubted {
    pub(super) ticket: u64,
    pub(super) id: RecordId,
    /// What it is told to have lost, once it is safe.
    pub(super) losses: Losses,
}

/// What nobody has asked for yet: calls in a row of which the same is told are one run.
struct Untold<T> {
    runs: VecDeque<Run<T>>,
    /// There were more than are remembered: the oldest are gone.
    is_short: bool,
}

struct Run<T> {
    first: u64,
    last: u64,
    came: T,
}

impl<T> Default for Untold<T> {
    fn default() -> Untold<T> {
        Untold { runs: VecDeque::new(), is_short: false }
    }
}

impl<T: Clone + PartialEq> Untold<T> {
    fn note(&mut self, ticket: u64, came: T) {
        if let Some(run) = self.runs.back_mut().filter(|run| run.last + 1 == ticket && run.came == came) {
            run.last = ticket;
            return;
        }
        if self.runs.len() == UNTOLD_LIMIT {
            self.runs.pop_front();
            self.is_short = true;
        }
        self.runs.push_back(Run { first: ticket, last: ticket, came });
    }

    fn tell<U>(&mut self, each: impl Fn(u64, T) -> U) -> Told<U> {
        let Untold { runs, is_short } = std::mem::take(self);
        let calls = runs
            .into_iter()
            .flat_map(|run| (run.first..=run.last).map(move |ticket| (ticket, run.came.clone())));
        Told { calls: calls.map(|(ticket, came)| each(ticket, came)).collect(), is_short }
    }
}

/// What somebody is told who asks.
pub(super) struct Told<T> {
    pub(super) calls: Vec<T>,
    /// Calls before these are forgotten: nobody had asked for too long.
    pub(super) is_short: bool,
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

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// How many runs of calls wait for somebody to ask.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.settled.runs.len() + self.refused.runs.len()
    }

    /// What was held is written. What the format lost is told once: to the call under way, or to the last that was held.
    pub(super) fn settle(&mut self, held: Vec<u64>, wrote: &Wrote, whose: Whose) {
        let last = held.last().copied().filter(|_| whose == Whose::Earlier);
        self.settle_each(held, wrote, &wrote.saved.losses, |ticket| Some(ticket) == last);
    }

    /// What was held is lost: its record is written without it, and each of the calls is told so.
    pub(super) fn settle_lost(&mut self, held: Vec<u64>, losses: &Losses, wrote: &Wrote) {
        self.settle_each(held, wrote, losses, |_| true);
    }

    /// A turn is written. Any of its calls may have said what was lost.
    pub(super) fn settle_turn(&mut self, held: Vec<u64>, wrote: &Wrote) {
        self.settle_each(held, wrote, &wrote.saved.losses, |_| true);
    }

    fn settle_each(&mut self, held: Vec<u64>, wrote: &Wrote, losses: &Losses, is_told_losses: impl Fn(u64) -> bool) {
        let Saved { id, durability, .. } = &wrote.saved;
        let (none, lost) = (Losses::default(), losses);
        let told = held.into_iter().map(|ticket| (ticket, if is_told_losses(ticket) { lost } else { &none }));
        if wrote.doubt.is_some() {
            let doubted = |(ticket, losses): (u64, &Losses)| Doubted { ticket, id: id.clone(), losses: losses.clone() };
            self.doubted.extend(told.map(doubted));
            return;
        }
        for (ticket, losses) in told {
            self.settled.note(ticket, (id.clone(), *durability, losses.clone()));
        }
    }

    /// What was held can never be written.
    pub(super) fn refuse(&mut self, held: Vec<u64>, what: &str) {
        held.into_iter().for_each(|ticket| self.refused.note(ticket, what.to_owned()));
    }

    /// What was in doubt is safe.
    pub(super) fn all_safe(&mut self) {
        for Doubted { ticket, id, losses } in self.doubted.drain(..) {
            self.settled.note(ticket, (id, Durability::Sync, losses));
        }
    }

    /// Calls that are on disk and not told yet.
    pub(super) fn tell_settled(&mut self) -> Told<Saved> {
        self.settled.tell(|ticket, (id, durability, losses)| Saved { ticket, id, durability, losses })
    }

    /// Calls that can never be, and are not told yet.
    pub(super) fn tell_refused(&mut self) -> Told<Refused> {
        self.refused.tell(|ticket, what| Refused { ticket, what })
    }
}
