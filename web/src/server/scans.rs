//! Searches that read sessions instead of asking the index: one at a time, since it uses every core, and only while somebody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many of them read at once.
const AT_ONCE: usize = 1;

/// How long one waits for those before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose turn it is.
#[derive(Clone)]
pub(super) struct Scans(Arc<Semaphore>);

/// The turn of one search: it ends when the search has, not when nobody waits for it any more.
pub(super) struct Turn(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

/// Those before it take too long.
pub(super) struct Busy;

impl Scans {
    pub(super) fn new() -> Scans {
        Scans(Arc::new(Semaphore::new(AT_ONCE)))
    }

    /// Waits for the turn of a search, if it needs one.
    pub(super) async fn turn_if(&self, reads_sessions: bool) -> Result<Option<Turn>, Busy> {
        if !reads_sessions {
            return Ok(None);
        }
        let permit = tokio::time::timeout(PATIENCE, self.0.clone().acquire_owned()).await;
        permit.ok().and_then(Result::ok).map(Turn).map(Some).ok_or(Busy)
    }
}

/// Somebody who waits for an answer: when they are gone, it is given up.
pub(super) struct Waiting(pub(super) Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_search_reads_at_a_time_and_others_wait_no_longer_than_they_may() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let scans = Scans::new();
            let first = scans.turn_if(true).await;
            assert!(matches!(first, Ok(Some(_))));
            assert!(scans.turn_if(true).await.is_err(), "the first one still reads");
            assert!(matches!(scans.turn_if(false).await, Ok(None)), "it reads nothing");
            drop(first);
            assert!(matches!(scans.turn_if(true).await, Ok(Some(_))));
        });
    }
}
