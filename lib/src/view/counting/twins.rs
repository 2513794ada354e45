//! Which facts of a session are copies of which facts of another one.
//!
//! A marked copy says so, and its twin has the same time or content. A replay has no marks and new times; it is what both sessions begin
//! with, in the same order:
//!
//! ```text
//! origin   prompt  answer  request  prompt  answer  request
//! replay   prompt  answer  request  prompt' answer  request'     its own from prompt' on
//! ```

use std::mem::discriminant;

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

use super::elect::Place;
use super::{CountedSession, EventFact, EventKind, RequestFact, SessionCounts};

/// The copies of a session, each with what it is a copy of.
#[derive(Default, Clone)]
pub(super) struct Twins {
    pub(super) requests: HashMap<u32, Place>,
    pub(super) events: HashMap<u32, Place>,
}

/// A fact of a session, by its number.
#[derive(Clone, Copy)]
pub(super) enum Fact {
    Request(u32),
    Event(u32),
}

/// What is written at once has no longer pause: no model answers in this time.
const PAUSE_MICROS: i64 = 1_000_000;

impl Twins {
    /// Pairs what is marked as a copy of an origin with what another session has of that.
    pub(super) fn pair_marked(
        &mut self,
        copy: &CountedSession,
        origin: u8,
        source: u32,
        of: &CountedSession,
        is_first: bool,
    ) {
        let (here, there) = (&copy.counts, &of.counts);
        let is_of = |marked: Option<u8>| marked == Some(origin);
        // Another format may change both, but not the order.
        let is_in_order = is_first && copy.row.dialect != of.row.dialect;
        let requests =
            numbers(&here.requests, |number, request| is_of(request.origin) && !self.requests.contains_key(&number));
        let keys: [fn(&RequestFact) -> Option<u64>; 4] =
            [|request| Some(request.id), content_of_request, |request| request.at.map(|at| at as u64), |_| Some(0)];
        let pairs = pair(requests, &here.requests, &there.requests, &keys[..if is_in_order { 4 } else { 3 }]);
        self.requests.extend(pairs.map(|(copy, number)| (copy, (source, number))));
        let events = numbers(&here.events, |number, event| is_of(event.origin) && !self.events.contains_key(&number));
        let keys: [fn(&EventFact) -> Option<u64>; 4] = [
            EventFact::id,
            |event| Some(event.content),
            |event| Some(kind(event) ^ event.at? as u64),
            |event| Some(kind(event)),
        ];
        let pairs = pair(events, &here.events, &there.events, &keys[..if is_in_order { 4 } else { 3 }]);
        self.events.extend(pairs.map(|(copy, number)| (copy, (source, number))));
    }

    /// Adds pairs of facts, if they are not known.
    pub(super) fn add(&mut self, source: u32, pairs: Vec<(Fact, Fact)>) {
        for pair in pairs {
            match pair {
                (Fact::Request(copy), Fact::Request(of)) => _ = self.requests.entry(copy).or_insert((source, of)),
                (Fact::Event(copy), Fact::Event(of)) => _ = self.events.entry(copy).or_insert((source, of)),
                _ => {}
            }
        }
    }
}

fn numbers<T>(facts: &[T], is_wanted: impl Fn(u32, &T) -> bool) -> Vec<u32> {
    let numbered = (0..facts.len() as u32).zip(facts);
    numbered.filter(|(number, fact)| is_wanted(*number, fact)).map(|(number, _)| number).collect()
}

/// The tokens of a request; what is not known is as none: formats differ in that.
fn content_of_request(request: &RequestFact) -> Option<u64> {
    let [input, output, read, written, _] = request.tokens.counts().map(|count| count.unwrap_or(0).to_le_bytes());
    Some(xxh3_64([input, output, read, written].as_flattened()))
}

fn kind(event: &EventFact) -> u64 {
    match event.kind {
        EventKind::Prompt { .. } => 0,
        EventKind::Answer { .. } => 1 << 60,
        EventKind::Call { .. } => 2 << 60,
        EventKind::Compaction => 3 << 60,
    }
}

/// Pairs facts that have the same key, each once: all by the first key before the next one is looked at.
fn pair<T>(
    mut copies: Vec<u32>,
    here: &[T],
    there: &[T],
    keys: &[fn(&T) -> Option<u64>],
) -> impl Iterator<Item = (u32, u32)> {
    let (mut pairs, mut taken) = (Vec::new(), HashSet::new());
    for key in keys.iter().filter(|_| !there.is_empty()) {
        if copies.is_empty() {
            break;
        }
        let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
        for number in (0..there.len() as u32).rev().filter(|number| !taken.contains(number)) {
            key(&there[number as usize]).into_iter().for_each(|key| by_key.entry(key).or_default().push(number));
        }
        copies.retain(|copy| {
            let twin = key(&here[*copy as usize]).and_then(|key| by_key.get_mut(&key)?.pop());
            taken.extend(twin);
            pairs.extend(twin.map(|twin| (*copy, twin)));
            twin.is_none()
        });
    }
    pairs.into_iter()
}

/// The facts at the beginning of a session that another one has in the same order, whatever their times. Where nobody knows that one is
/// the origin of the other, only what was written at once is a replay.
pub(super) fn replayed(copy: &CountedSession, of: &CountedSession, is_at_once: bool) -> Vec<(Fact, Fact)> {
    let (here, there) = (&copy.counts, &of.counts);
    let (facts, mut left) = (in_order(here), in_order(there));
    let other_at_once = at_once(there, &left);
    if is_at_once {
        left.truncate(other_at_once);
    }
    let (at_once, mut left) = (at_once(here, &facts), left.as_slice());
    let (mut pairs, mut certain) = (Vec::new(), 0);
    for (nth, fact) in facts.iter().enumerate().take(if is_at_once { at_once } else { facts.len() }) {
        let Some(skipped) = left.iter().position(|other| is_same(*fact, here, *other, there)) else { break };
        // A copy may leave out what the model thought and tried, or begin later; no prompt in the middle.
        if !pairs.is_empty() && left[..skipped].iter().any(|other| is_prompt(*other, there)) {
            break;
        }
        pairs.push((*fact, left[skipped]));
        left = &left[skipped + 1..];
        if is_distinct(*fact, here) || (nth < at_once && !is_prompt(*fact, here)) {
            certain = pairs.len();
        } else if certain > 0 && nth < at_once {
            // Written together with what is a replay.
            certain = pairs.len();
        }
    }
    // Two people may write the same prompt.
    pairs.truncate(certain);
    pairs
}

/// All facts of a session, in file order.
fn in_order(counts: &SessionCounts) -> Vec<Fact> {
    let mut facts = Vec::with_capacity(counts.requests.len() + counts.events.len());
    let mut requests: Vec<u32> = (0..counts.requests.len() as u32).collect();
    requests.sort_by_key(|number| counts.requests[*number as usize].events_before);
    let mut requests = requests.into_iter().peekable();
    for event in 0..=counts.events.len() as u32 {
        while let Some(request) = requests.next_if(|number| counts.requests[*number as usize].events_before <= event) {
            facts.push(Fact::Request(request));
        }
        facts.extend(((event as usize) < counts.events.len()).then_some(Fact::Event(event)));
    }
    facts.extend(requests.map(Fact::Request));
    facts
}

/// How many of the facts at the beginning were written at once.
fn at_once(counts: &SessionCounts, facts: &[Fact]) -> usize {
    let time = |fact: &Fact| match fact {
        Fact::Request(number) => counts.requests[*number as usize].at,
        Fact::Event(number) => counts.events[*number as usize].at,
    };
    let is_pause = |pair: &[Fact]| match (time(&pair[0]), time(&pair[1])) {
        (Some(before), Some(now)) => now.saturating_sub(before) >= PAUSE_MICROS,
        _ => true,
    };
    facts.windows(2).position(is_pause).map_or(facts.len(), |last| last + 1)
}

fn is_same(fact: Fact, here: &SessionCounts, other: Fact, there: &SessionCounts) -> bool {
    match (fact, other) {
        (Fact::Request(fact), Fact::Request(other)) => {
            let (fact, other) = (&here.requests[fact as usize], &there.requests[other as usize]);
            fact.id == other.id || fact.tokens == other.tokens
        }
        (Fact::Event(fact), Fact::Event(other)) => {
            let (fact, other) = (&here.events[fact as usize], &there.events[other as usize]);
            fact.content == other.content && discriminant(&fact.kind) == discriminant(&other.kind)
        }
        _ => false,
    }
}

fn is_prompt(fact: Fact, counts: &SessionCounts) -> bool {
    matches!(fact, Fact::Event(number) if matches!(counts.events[number as usize].kind, EventKind::Prompt { .. }))
}

/// Whether no other session has the same by chance, after the same beginning.
fn is_distinct(fact: Fact, counts: &SessionCounts) -> bool {
    match fact {
        Fact::Request(_) => true,
        Fact::Event(number) => matches!(counts.events[number as usize].kind, EventKind::Call { .. }),
    }
}
