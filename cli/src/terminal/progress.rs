//! A progress bar on standard error that comes late: work that is done at a glance shows none.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::ctx::Ctx;

/// A bar that is gone before anybody has read it only flickers.
const LATE: Duration = Duration::from_millis(300);

/// Counts what is done, for a person at a terminal.
pub(crate) struct LateBar {
    bar: ProgressBar,
    since: Instant,
    is_wanted: bool,
}

impl LateBar {
    pub(crate) fn new(length: u64, ctx: &Ctx) -> LateBar {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        LateBar { bar, since: Instant::now(), is_wanted: ctx.err_on_terminal }
    }

    /// Several threads may count at once.
    pub(crate) fn inc(&self, more: u64) {
        self.bar.inc(more);
        if self.is_wanted && self.bar.is_hidden() && self.since.elapsed() > LATE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
