//! What work costs a processor: other programs that run at the same time do not count.

use std::fs;

/// Four times as much costs four times as much, and sixteen times where each thing is compared with all others. A cache that is too
/// small for it makes something in between.
pub(crate) const GROWTH: usize = 4;
pub(crate) const LIMIT: u64 = 9;

const ATTEMPTS: usize = 3;

/// Less is lost in the noise, in nanoseconds.
const SMALLEST: u64 = 2_000_000;

/// How long this thread has had a processor so far, in nanoseconds; `None` where the system does not say.
pub(crate) fn effort() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Checks that `GROWTH` times as much of something costs about as much more. The work is prepared first, and that is not counted.
pub(crate) fn check_linear<Prepared>(
    what: &str,
    few: usize,
    prepare: impl Fn(usize) -> Prepared,
    work: impl Fn(&Prepared),
) {
    let cost = |count: usize| {
        let prepared = prepare(count);
        let run = || {
            let begun = effort()?;
            work(&prepared);
            Some(effort()? - begun)
        };
        (0..2).filter_map(|_| run()).min()
    };
    // Other programs share the caches, and so cost something now and then; what is not linear is so each time.
    let mut costs = Vec::new();
    for _ in 0..ATTEMPTS {
        let (Some(less), Some(more)) = (cost(few), cost(few * GROWTH)) else { return };
        if more < LIMIT * less.max(SMALLEST) {
            return;
        }
        costs.push((less, more));
    }
    panic!("{what}: what {GROWTH} times as much costs, in ns: {costs:?}");
}
