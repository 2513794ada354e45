//! The pass over keywords that every text pays for.
//!
//! Each byte's state depends on the one before it, so a single walk waits for memory most of the time. Four walks through four parts
//! of a text wait together: that is twice as fast.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, Input, MatchKind, PatternID};

/// Walks at the same time.
const LANES: usize = 4;

/// A text is read in blocks, so that what was found in one takes little memory.
const BLOCK_BYTES: usize = 16 * 1024;

/// Below this, starting four walks takes longer than they save.
const MIN_BLOCK_BYTES: usize = 256;

/// A command that prints a few lines masks less than this. Its table would take seven times as long to build as the graph that is
/// walked until then.
const WORTH_A_TABLE_BYTES: usize = 1024 * 1024;

/// Finds keywords, in any case.
pub(super) struct Keywords {
    graph: NFA,
    /// The next state of every state and byte: 2 MB, and several times as fast.
    table: OnceLock<DFA>,
    /// How many bytes were walked through.
    walked: AtomicUsize,
}

/// A keyword that ends here.
type Hit = (PatternID, usize);

impl Keywords {
    /// Case does not matter in keywords: expressions decide.
    pub(super) fn new<'k>(keywords: impl Iterator<Item = &'k str> + Clone) -> Keywords {
        let mut builder = NFA::builder();
        builder.ascii_case_insensitive(true).match_kind(MatchKind::Standard);
        // The table is our own and its test builds it: an automaton of no keyword is never used.
        let none: [&str; 0] = [];
        let graph = builder
            .build(keywords)
            .or_else(|_| NFA::new(none))
            .unwrap_or_else(|_| unreachable!("no keyword always builds"));
        Keywords { graph, table: OnceLock::new(), walked: AtomicUsize::new(0) }
    }

    /// How many there are, in one walk: what is possible with this automaton.
    pub(super) fn count(&self, text: &str) -> usize {
        let walk = |automaton: &DFA| automaton.try_find_overlapping_iter(Input::new(text)).map_or(0, Iterator::count);
        self.table().map_or(0, walk)
    }

    pub(super) fn are_in(&self, text: &str) -> bool {
        match self.table_for(text) {
            Some(table) => Walk::with(table).has_match(text),
            None => Walk::with(&self.graph).has_match(text),
        }
    }

    /// Calls `found` with the number and the place of each keyword, in the order in which they end.
    pub(super) fn find(&self, text: &str, found: impl FnMut(usize, Range<usize>)) {
        match self.table_for(text) {
            Some(table) => Walk::with(table).find(text, found),
            None => Walk::with(&self.graph).find(text, found),
        }
    }

    /// The table, once enough was walked through to pay for it.
    fn table_for(&self, text: &str) -> Option<&DFA> {
        if let Some(table) = self.table.get() {
            return Some(table);
        }
        let before = self.walked.fetch_add(text.len(), Ordering::Relaxed);
        (before.saturating_add(text.len()) > WORTH_A_TABLE_BYTES).then(|| self.table()).flatten()
    }

    /// `None` only if it would be larger than states can be numbered.
    fn table(&self) -> Option<&DFA> {
        if self.table.get().is_none()
            && let Ok(table) = DFA::builder().build_from_noncontiguous(&self.graph)
        {
            return Some(self.table.get_or_init(|| table));
        }
        self.table.get()
    }
}

/// A walk through a text, by whichever automaton.
struct Walk<'a, A> {
    automaton: &'a A,
    start: StateID,
}

impl<'a, A: Automaton> Walk<'a, A> {
    fn with(automaton: &'a A) -> Walk<'a, A> {
        Walk { automaton, start: automaton.start_state(Anchored::No).unwrap_or_default() }
    }

    fn has_match(&self, text: &str) -> bool {
        let mut state = self.start;
        text.bytes().any(|byte| {
            state = self.automaton.next_state(Anchored::No, state, byte);
            self.is_match(state)
        })
    }

    fn find(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        let mut hits: [Vec<Hit>; LANES] = Default::default();
        let mut state = self.start;
        for (block, bytes) in text.as_bytes().chunks(BLOCK_BYTES).enumerate() {
            state = self.walk_block(text.as_bytes(), block * BLOCK_BYTES, bytes.len(), state, &mut hits);
            for (keyword, end) in hits.iter_mut().flat_map(|hits| hits.drain(..)) {
                found(keyword.as_usize(), end - self.automaton.pattern_len(keyword)..end);
            }
        }
    }

    /// Walks through one block, and returns the state at its end.
    #[expect(clippy::needless_range_loop, reason = "four parts are indexed by the same place")]
    fn walk_block(
        &self,
        text: &[u8],
        start: usize,
        length: usize,
        state: StateID,
        hits: &mut [Vec<Hit>; LANES],
    ) -> StateID {
        if length < MIN_BLOCK_BYTES {
            return self.walk(text, start..start + length, state, &mut hits[0]);
        }
        // The last lane may be longer, by at most three bytes.
        let step = length / LANES;
        let starts: [usize; LANES] = std::array::from_fn(|lane| start + lane * step);
        let mut states = [state; LANES];
        for lane in 1..LANES {
            // What ends in this lane may start in the one before it.
            let from = starts[lane].saturating_sub(self.automaton.max_pattern_len());
            states[lane] = text[from..starts[lane]]
                .iter()
                .fold(self.start, |state, byte| self.automaton.next_state(Anchored::No, state, *byte));
        }
        let lanes: [&[u8]; LANES] = starts.map(|start| &text[start..start + step]);
        for at in 0..step {
            for lane in 0..LANES {
                states[lane] = self.automaton.next_state(Anchored::No, states[lane], lanes[lane][at]);
            }
            if states.iter().any(|state| self.automaton.is_special(*state)) {
                for lane in 0..LANES {
                    self.note(states[lane], starts[lane] + at + 1, &mut hits[lane]);
                }
            }
        }
        self.walk(text, start + LANES * step..start + length, states[LANES - 1], &mut hits[LANES - 1])
    }

    fn walk(&self, text: &[u8], range: Range<usize>, from: StateID, hits: &mut Vec<Hit>) -> StateID {
        let mut state = from;
        for at in range {
            state = self.automaton.next_state(Anchored::No, state, text[at]);
            self.note(state, at + 1, hits);
        }
        state
    }

    fn note(&self, state: StateID, end: usize, hits: &mut Vec<Hit>) {
        if self.is_match(state) {
            let keywords = 0..self.automaton.match_len(state);
            hits.extend(keywords.map(|index| (self.automaton.match_pattern(state, index), end)));
        }
    }

    fn is_match(&self, state: StateID) -> bool {
        self.automaton.is_special(state) && self.automaton.is_match(state)
    }
}
