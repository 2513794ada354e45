//! Which occurrence of a fact counts: forks, resumed copies and sub-agents repeat the facts of other sessions.
//!
//! The session that started first has it, then the one with the smaller id. What a session itself says to be a copy of another one
//! counts there, as long as that one exists. When a session goes, its facts are those of the next one.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::{CountedSession, Origin, RequestFact};
use crate::view::answers::SessionRow;

/// Whether an occurrence of a fact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It counts.
    Counted,
    /// The session with this number has the same fact.
    Repeats(u32),
    /// It is a copy from the session with this number, by its own account.
    CopyOf(u32),
}

/// The facts that count.
#[derive(Debug)]
pub struct Elected {
    /// Of each session, its requests.
    pub requests: Vec<Vec<Reason>>,
    /// Of each session, what happened.
    pub events: Vec<Vec<Reason>>,
    /// Of requests whose occurrences differ, the one with the most output, whole.
    pub greatest: HashMap<u64, RequestFact>,
    /// The session that a sub-agent's belongs to; its own number for the others.
    pub roots: Vec<u32>,
}

/// How deep sub-agents are followed to the session of a person: what is deeper is a cycle.
const NESTING_LIMIT: usize = 32;

impl Elected {
    /// Elects one occurrence of each fact.
    pub fn among(sessions: &[CountedSession]) -> Elected {
        let by_id = by_id(sessions);
        let mut order: Vec<usize> = (0..sessions.len()).collect();
        order.sort_by_key(|at| {
            let row = &sessions[*at].row;
            // A copy of a session starts when that did.
            (row.started.is_none(), row.started, row.forked_from.is_some(), row.id.as_str(), row.path.as_str())
        });
        let deputies = Deputies::among(&order, sessions, &by_id);
        let mut elected = Elected {
            requests: vec![Vec::new(); sessions.len()],
            events: vec![Vec::new(); sessions.len()],
            greatest: HashMap::new(),
            roots: (0..sessions.len()).map(|at| root(at, sessions, &by_id)).collect(),
        };
        let count = |facts: fn(&CountedSession) -> usize| sessions.iter().map(facts).sum::<usize>();
        let mut requests = Seen::with_capacity(count(|session| session.counts.requests.len()));
        let mut events = Seen::with_capacity(count(|session| session.counts.events.len()));
        for at in order {
            let session = &sessions[at];
            let forked_from = forked_from(at, sessions, &by_id);
            // A fork that does not mark its copies repeats the facts of the session that it names.
            let of_fork = |reason: Reason| match reason {
                Reason::Repeats(first) if forked_from.contains(&first) => Reason::CopyOf(first),
                reason => reason,
            };
            let origin_of =
                |origin: &Origin| present(origin, at, sessions, &by_id).or_else(|| deputies.of(origin, at, sessions));
            let origins: Vec<Option<u32>> = session.counts.origins.iter().map(origin_of).collect();
            let origin = |number: Option<u8>| origins.get(usize::from(number?)).copied().flatten();
            for (number, request) in session.counts.requests.iter().enumerate() {
                let here = (at as u32, number as u32);
                let reason = of_fork(reason(origin(request.origin), request.id, here, &mut requests));
                if let Some((session, first)) = requests.get(&request.id).filter(|_| reason != Reason::Counted) {
                    let first = &sessions[*session as usize].counts.requests[*first as usize];
                    elected.keep_greater(request, first);
                }
                elected.requests[at].push(reason);
            }
            for (number, event) in session.counts.events.iter().enumerate() {
                let here = (at as u32, number as u32);
                elected.events[at].push(of_fork(reason(origin(event.origin), event.id, here, &mut events)));
            }
        }
        elected
    }

    /// A request that counts, with the tokens of its greatest occurrence, and what those cost.
    pub fn whole(&self, request: &RequestFact) -> RequestFact {
        let greatest = self.greatest.get(&request.id).unwrap_or(request);
        let recorded_cost = request.recorded_cost.or(greatest.recorded_cost);
        RequestFact { tokens: greatest.tokens, recorded_cost, listed_cost: greatest.listed_cost, ..*request }
    }

    /// The times of the facts of a session but those that it says are copies. Of two sessions that repeat each other without saying so,
    /// nobody knows which one is the copy.
    pub(super) fn times_of_its_own(&self, at: usize, session: &CountedSession) -> impl Iterator<Item = Option<i64>> {
        let is_own = |reason: &Reason| !matches!(reason, Reason::CopyOf(_));
        let requests = session.counts.requests.iter().map(|request| request.at).zip(&self.requests[at]);
        let events = session.counts.events.iter().map(|event| event.at).zip(&self.events[at]);
        requests.chain(events).filter(move |(_, reason)| is_own(reason)).map(|(at, _)| at)
    }

    /// Keeps the whole usage with the greatest output.
    fn keep_greater(&mut self, repeated: &RequestFact, first: &RequestFact) {
        let known = self.greatest.get(&first.id).unwrap_or(first).tokens;
        let [_, output, ..] = repeated.tokens;
        if repeated.tokens != known && output >= known[1] {
            self.greatest.insert(first.id, *repeated);
        }
    }
}

/// Where a fact was seen first: the session, and its number there.
type Seen = HashMap<u64, (u32, u32)>;

fn reason(origin: Option<u32>, id: u64, here: (u32, u32), seen: &mut Seen) -> Reason {
    if let Some(origin) = origin {
        return Reason::CopyOf(origin);
    }
    match seen.entry(id) {
        Entry::Occupied(first) => Reason::Repeats(first.get().0),
        Entry::Vacant(free) => {
            free.insert(here);
            Reason::Counted
        }
    }
}

type ById<'a> = HashMap<&'a str, Vec<u32>>;

fn by_id(sessions: &[CountedSession]) -> ById<'_> {
    let mut by_id = ById::new();
    for (at, session) in sessions.iter().enumerate() {
        by_id.entry(session.row.id.as_str()).or_default().push(at as u32);
    }
    by_id
}

/// The session that a record says it was copied from, if that is there.
fn present(origin: &Origin, at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> Option<u32> {
    let dialect = origin.dialect.as_ref().unwrap_or(&sessions[at].row.dialect);
    let with_id = by_id.get(origin.session.as_str())?;
    let is_it = |other: &&u32| **other as usize != at && sessions[**other as usize].row.dialect == *dialect;
    with_id.iter().find(is_it).copied()
}

/// The sessions that one says it was forked from, the nearest first.
fn forked_from(at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut fork = at;
    while let Some(id) = &sessions[fork].row.forked_from {
        let origin = Origin { dialect: None, session: id.clone() };
        let Some(next) = present(&origin, fork, sessions, by_id).filter(|next| !found.contains(next)) else { break };
        found.push(next);
        if found.len() == NESTING_LIMIT {
            break;
        }
        fork = next as usize;
    }
    found
}

/// For each session that is gone, the one that has the most of it. Conversions of it do not repeat its facts as they were, so the
/// others have copies of this one.
struct Deputies<'a>(HashMap<(&'a str, &'a str), (u32, usize)>);

impl<'a> Deputies<'a> {
    fn among(order: &[usize], sessions: &'a [CountedSession], by_id: &ById<'_>) -> Deputies<'a> {
        let mut deputies = Deputies(HashMap::new());
        for at in order {
            let CountedSession { row, counts, .. } = &sessions[*at];
            for (number, origin) in counts.origins.iter().enumerate() {
                if present(origin, *at, sessions, by_id).is_some() {
                    continue;
                }
                let is_of = |of: Option<u8>| of == Some(number as u8);
                let events = counts.events.iter().filter(|event| is_of(event.origin)).count();
                let copied = events + counts.requests.iter().filter(|request| is_of(request.origin)).count();
                let known = deputies.0.entry(key(origin, row)).or_insert((*at as u32, copied));
                if copied > known.1 {
                    *known = (*at as u32, copied);
                }
            }
        }
        deputies
    }

    /// The deputy of an origin, for a session of another dialect. Of the same dialect, copies repeat facts as they are.
    fn of(&self, origin: &Origin, at: usize, sessions: &[CountedSession]) -> Option<u32> {
        let row = &sessions[at].row;
        let (deputy, _) = self.0.get(&key(origin, row))?;
        Some(*deputy).filter(|deputy| sessions[*deputy as usize].row.dialect != row.dialect)
    }
}

fn key<'a>(origin: &'a Origin, row: &'a SessionRow) -> (&'a str, &'a str) {
    (origin.dialect.as_deref().unwrap_or(&row.dialect), origin.session.as_str())
}

fn root(at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> u32 {
    let mut root = at;
    for _ in 0..NESTING_LIMIT {
        let row = &sessions[root].row;
        let parent = row.parent_session.as_ref().and_then(|parent| by_id.get(parent.as_str()));
        let is_parent =
            |other: &&u32| **other as usize != root && sessions[**other as usize].row.dialect == row.dialect;
        match parent.and_then(|parents| parents.iter().find(is_parent)) {
            Some(parent) => root = *parent as usize,
            None => break,
        }
    }
    root as u32
}
