//! Which occurrence of a fact counts: forks, resumed copies and sub-agents repeat the facts of other sessions.
//!
//! The session that started first has it, then the one with the smaller id. What a session itself says to be a copy of another one
//! counts there, as long as that one has it (`twins.rs`). When a session goes, its facts are those of the next one.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::twins::{Twins, replayed};
use super::{CountedSession, Origin, RequestFact};
use crate::model::record::SessionId;
use crate::view::answers::SessionRow;

/// Whether an occurrence of a fact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It counts.
    Counted,
    /// The session with this number has the same fact.
    Repeats(u32),
    /// It is a copy, by its session's own account, of what counts in the session with this number.
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
        let sources = Sources::among(&order, sessions, &by_id);
        let count = |facts: fn(&CountedSession) -> usize| sessions.iter().map(facts).sum::<usize>();
        let mut election = Election {
            sessions,
            requests: Seen::with_capacity(count(|session| session.counts.requests.len())),
            events: Seen::with_capacity(count(|session| session.counts.events.len())),
            elected: Elected {
                requests: vec![Vec::new(); sessions.len()],
                events: vec![Vec::new(); sessions.len()],
                greatest: HashMap::new(),
                roots: (0..sessions.len()).map(|at| root(at, sessions, &by_id)).collect(),
            },
        };
        let mut is_done = vec![false; sessions.len()];
        for at in sources.first(&order) {
            let twins = sources.twins(at, sessions, &is_done);
            let forked_from = forked_from(election.elected.roots[at] as usize, sessions, &by_id);
            election.add(at, &twins, &forked_from);
            is_done[at] = true;
        }
        election.elected
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

/// A fact: its session, and its number there.
pub(super) type Place = (u32, u32);

/// Where each fact counts.
type Seen = HashMap<u64, Place>;

struct Election<'a> {
    sessions: &'a [CountedSession],
    requests: Seen,
    events: Seen,
    elected: Elected,
}

impl Election<'_> {
    /// Adds a session, after those that it has copies of.
    fn add(&mut self, at: usize, twins: &Twins, forked_from: &[u32]) {
        let session = &self.sessions[at];
        // A fork that does not mark its copies repeats the facts of the session that it names, or of that one's sub-agents. A further
        // file with the same id is a copy of the whole.
        let is_copy = |first: u32, is_marked: bool| {
            let of = &self.sessions[first as usize].row;
            let is_same = of.id == session.row.id && of.dialect == session.row.dialect;
            is_marked || is_same || forked_from.contains(&self.elected.roots[first as usize])
        };
        let reason = |first: Option<Place>, is_marked: bool| match first {
            None => Reason::Counted,
            Some((first, _)) if is_copy(first, is_marked) => Reason::CopyOf(first),
            Some((first, _)) => Reason::Repeats(first),
        };
        let (mut requests, mut repeated) = (Vec::new(), Vec::new());
        for (number, request) in session.counts.requests.iter().enumerate() {
            let here = (at as u32, number as u32);
            let twin = twins.requests.get(&here.1).map(|twin| {
                let id = self.sessions[twin.0 as usize].counts.requests[twin.1 as usize].id;
                self.requests.get(&id).copied().unwrap_or(*twin)
            });
            let first = counted_at(Some(request.id), here, twin, &mut self.requests);
            repeated.extend(first.map(|first| (request, first)));
            requests.push(reason(first, twin.is_some() || request.origin.is_some()));
        }
        let mut events = Vec::new();
        for (number, event) in session.counts.events.iter().enumerate() {
            let here = (at as u32, number as u32);
            let twin = twins.events.get(&here.1).map(|twin| {
                let id = self.sessions[twin.0 as usize].counts.events[twin.1 as usize].id();
                id.and_then(|id| self.events.get(&id).copied()).unwrap_or(*twin)
            });
            let first = counted_at(event.id(), here, twin, &mut self.events);
            events.push(reason(first, twin.is_some() || event.origin.is_some()));
        }
        (self.elected.requests[at], self.elected.events[at]) = (requests, events);
        for (request, (session, number)) in repeated {
            let first = &self.sessions[session as usize].counts.requests[number as usize];
            // A conversion has tokens as its format has them.
            if first.id == request.id {
                self.elected.keep_greater(request, first);
            }
        }
    }
}

/// Where a fact counts, if not here.
fn counted_at(id: Option<u64>, here: Place, twin: Option<Place>, seen: &mut Seen) -> Option<Place> {
    let Some(id) = id else { return twin };
    match seen.entry(id) {
        Entry::Occupied(first) => Some(twin.unwrap_or(*first.get())),
        Entry::Vacant(free) => {
            free.insert(twin.unwrap_or(here));
            twin
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

/// The session with this id, of this dialect, that another one names.
fn present(id: &SessionId, dialect: &str, at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> Option<u32> {
    let is_it = |other: &&u32| **other as usize != at && sessions[**other as usize].row.dialect == *dialect;
    by_id.get(id.as_str())?.iter().find(is_it).copied()
}

/// The sessions that one says it was forked from, the nearest first.
fn forked_from(at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut fork = at;
    while let Some(id) = &sessions[fork].row.forked_from {
        let next = present(id, &sessions[fork].row.dialect, fork, sessions, by_id);
        let Some(next) = next.filter(|next| !found.contains(next)) else { break };
        found.push(next);
        if found.len() == NESTING_LIMIT {
            break;
        }
        fork = next as usize;
    }
    found
}

/// Of each session, those that have what it has copies of.
struct Sources(Vec<SourcesOf>);

#[derive(Clone, Default)]
struct SourcesOf {
    /// Of each origin: it, if it is there, and the one that has the most of it.
    marked: Vec<Vec<u32>>,
    /// The sessions whose beginning it may replay.
    replayed: Vec<u32>,
    /// Another session that names one of those: it may replay the same, at once.
    replayed_with: Vec<u32>,
}

impl Sources {
    fn among(order: &[usize], sessions: &[CountedSession], by_id: &ById<'_>) -> Sources {
        let deputies = Deputies::among(order, sessions);
        let mut replaying: HashMap<(&str, &str), u32> = HashMap::new();
        for at in order {
            let CountedSession { row, counts, .. } = &sessions[*at];
            for named in &counts.replays {
                replaying.entry((&row.dialect, named.as_str())).or_insert(*at as u32);
            }
        }
        let of = |at: usize| {
            let CountedSession { row, counts, .. } = &sessions[at];
            let not_itself = |other: &u32| *other as usize != at;
            let marked = |origin: &Origin| {
                let dialect = origin.dialect.as_ref().unwrap_or(&row.dialect);
                let origin_itself = present(&origin.session, dialect, at, sessions, by_id);
                let deputy = deputies.of(origin, row).filter(not_itself);
                origin_itself.into_iter().chain(deputy).collect()
            };
            let replayed = |named: &SessionId| present(named, &row.dialect, at, sessions, by_id);
            let with = |named: &SessionId| replaying.get(&(row.dialect.as_str(), named.as_str())).copied();
            SourcesOf {
                marked: counts.origins.iter().map(marked).collect(),
                replayed: counts.replays.iter().filter_map(replayed).collect(),
                replayed_with: counts.replays.iter().filter_map(with).filter(not_itself).collect(),
            }
        };
        Sources((0..sessions.len()).map(of).collect())
    }

    /// The sessions in this order, but each after those that it has copies of. Of a circle, the first that is met is the last.
    fn first(&self, order: &[usize]) -> Vec<usize> {
        let sources_of = |at: usize| {
            let SourcesOf { marked, replayed, replayed_with } = &self.0[at];
            marked.iter().flatten().chain(replayed).chain(replayed_with)
        };
        let (mut is_known, mut first) = (vec![false; order.len()], Vec::with_capacity(order.len()));
        for start in order {
            if std::mem::replace(&mut is_known[*start], true) {
                continue;
            }
            let mut path = vec![(*start, sources_of(*start))];
            while let Some((at, sources)) = path.last_mut() {
                let at = *at;
                match sources.next().map(|source| *source as usize) {
                    Some(source) if !std::mem::replace(&mut is_known[source], true) => {
                        path.push((source, sources_of(source)));
                    }
                    Some(_) => {}
                    None => {
                        path.pop();
                        first.push(at);
                    }
                }
            }
        }
        first
    }

    /// What a session has copies of, in sessions that were added before.
    fn twins(&self, at: usize, sessions: &[CountedSession], is_done: &[bool]) -> Twins {
        let SourcesOf { marked, replayed: names, replayed_with } = &self.0[at];
        let mut twins = Twins::default();
        let session = &sessions[at];
        let done =
            |sources: &[u32]| sources.iter().copied().filter(|source| is_done[*source as usize]).collect::<Vec<_>>();
        for (origin, sources) in marked.iter().enumerate() {
            for (nth, source) in done(sources).into_iter().enumerate() {
                twins.pair_marked(session, origin as u8, source, &sessions[source as usize], nth == 0);
            }
        }
        let origins = done(names).into_iter().map(|source| (source, false));
        let others = done(replayed_with).into_iter().map(|source| (source, true));
        for (source, is_at_once) in origins.chain(others) {
            twins.add(source, replayed(session, &sessions[source as usize], is_at_once));
        }
        twins
    }
}

/// For each session that others are marked as copies of, the one that has the most of it.
struct Deputies<'a>(HashMap<(&'a str, &'a str), (u32, usize)>);

impl<'a> Deputies<'a> {
    fn among(order: &[usize], sessions: &'a [CountedSession]) -> Deputies<'a> {
        let mut deputies = Deputies(HashMap::new());
        for at in order {
            let CountedSession { row, counts, .. } = &sessions[*at];
            for (number, origin) in counts.origins.iter().enumerate() {
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

    fn of(&self, origin: &Origin, row: &SessionRow) -> Option<u32> {
        self.0.get(&key(origin, row)).map(|(deputy, _)| *deputy)
    }
}

fn key<'a>(origin: &'a Origin, row: &'a SessionRow) -> (&'a str, &'a str) {
    (origin.dialect.as_deref().unwrap_or(&row.dialect), origin.session.as_str())
}

fn root(at: usize, sessions: &[CountedSession], by_id: &ById<'_>) -> u32 {
    let mut root = at;
    for _ in 0..NESTING_LIMIT {
        let row = &sessions[root].row;
        match row.parent_session.as_ref().and_then(|parent| present(parent, &row.dialect, root, sessions, by_id)) {
            Some(parent) => root = parent as usize,
            None => break,
        }
    }
    root as u32
}
