//! Which occurrence of a fact counts: forks, resumed copies and sub-agents repeat the facts of other sessions.
//!
//! The session that started first has it, then the one with the smaller id. What a session itself says to be a copy of another one
//! counts there, as long as that one has it (`twins.rs`). When a session goes, its facts are those of the next one.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::twins::{Twins, replayed};
use super::{CountedSession, EventFact, Origin, RequestCost, RequestFact, SessionCounts};
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
        order.sort_by_cached_key(|at| {
            let row = &sessions[*at].row;
            // A copy of a session starts when that did.
            (row.started.is_none(), row.started, row.forked_from.is_some(), row.id.as_str(), row.path.as_str())
        });
        let sources = Sources::among(&order, sessions, &by_id);
        let order = sources.first(&order);
        let (mut is_done, mut twins) = (vec![false; sessions.len()], vec![Twins::default(); sessions.len()]);
        for at in &order {
            twins[*at] = sources.twins(*at, sessions, &is_done);
            is_done[*at] = true;
        }
        let roots: Vec<u32> = (0..sessions.len()).map(|at| root(at, sessions, &by_id)).collect();
        let forked_from: Vec<Vec<u32>> =
            roots.iter().map(|root| forked_from(*root as usize, sessions, &by_id)).collect();
        let election = Election { sessions, order: &order, twins: &twins, roots: &roots, forked_from: &forked_from };
        let ((requests, repeated), (events, _)) =
            rayon::join(|| election.elect::<RequestFact>(), || election.elect::<EventFact>());
        let mut elected = Elected { requests, events, greatest: HashMap::new(), roots };
        let request = |(session, number): Place| &sessions[session as usize].counts.requests[number as usize];
        for (repeated, first) in repeated {
            let (repeated, first) = (request(repeated), request(first));
            // A conversion has tokens as its format has them.
            if first.id == repeated.id {
                elected.keep_greater(repeated, first);
            }
        }
        elected
    }

    /// A request that counts, with the tokens of its greatest occurrence, and what those cost.
    pub fn whole(&self, request: &RequestFact) -> RequestFact {
        let greatest = self.greatest.get(&request.id).unwrap_or(request);
        let cost = if let RequestCost::Recorded(_) = request.cost { request.cost } else { greatest.cost };
        RequestFact { tokens: greatest.tokens, cost, ..*request }
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
        let known = self.greatest.get(&first.id).unwrap_or(first);
        if repeated.tokens != known.tokens && repeated.usage().output >= known.usage().output {
            self.greatest.insert(first.id, *repeated);
        }
    }
}

/// A fact: its session, and its number there.
pub(super) type Place = (u32, u32);

/// Where each fact counts.
type Seen = HashMap<u64, Place>;

/// What is elected: a request or an event. The two know nothing of each other.
trait Fact: Sized {
    /// Those of a session.
    fn all(counts: &SessionCounts) -> &[Self];
    /// What they are copies of, by their numbers.
    fn twins(twins: &Twins) -> &HashMap<u32, Place>;
    /// The same for copies of it.
    fn id(&self) -> Option<u64>;
    /// Whether its record says that it was copied.
    fn is_marked(&self) -> bool;
}

impl Fact for RequestFact {
    fn all(counts: &SessionCounts) -> &[RequestFact] {
        &counts.requests
    }

    fn twins(twins: &Twins) -> &HashMap<u32, Place> {
        &twins.requests
    }

    fn id(&self) -> Option<u64> {
        Some(self.id)
    }

    fn is_marked(&self) -> bool {
        self.origin.is_some()
    }
}

impl Fact for EventFact {
    fn all(counts: &SessionCounts) -> &[EventFact] {
        &counts.events
    }

    fn twins(twins: &Twins) -> &HashMap<u32, Place> {
        &twins.events
    }

    fn id(&self) -> Option<u64> {
        self.id()
    }

    fn is_marked(&self) -> bool {
        self.origin.is_some()
    }
}

struct Election<'a> {
    sessions: &'a [CountedSession],
    /// Each session after those that it has copies of.
    order: &'a [usize],
    /// Of each session, what its facts are copies of, ...
    twins: &'a [Twins],
    /// ... the session that it belongs to, ...
    roots: &'a [u32],
    /// ... and those that this one was forked from.
    forked_from: &'a [Vec<u32>],
}

impl Election<'_> {
    /// Whether each fact of each session counts, and those that another one repeats: where, and where it counts.
    fn elect<F: Fact>(&self) -> (Vec<Vec<Reason>>, Vec<(Place, Place)>) {
        let facts = |at: usize| F::all(&self.sessions[at].counts);
        let mut seen = Seen::with_capacity((0..self.sessions.len()).map(|at| facts(at).len()).sum());
        let (mut elected, mut repeated) = (vec![Vec::new(); self.sessions.len()], Vec::new());
        for at in self.order.iter().copied() {
            let twins = F::twins(&self.twins[at]);
            let reasons = (0..).zip(facts(at)).map(|(number, fact)| {
                let here = (at as u32, number);
                let twin = twins.get(&number).map(|twin| {
                    let id = facts(twin.0 as usize)[twin.1 as usize].id();
                    id.and_then(|id| seen.get(&id).copied()).unwrap_or(*twin)
                });
                let first = counted_at(fact.id(), here, twin, &mut seen);
                repeated.extend(first.map(|first| (here, first)));
                first.map_or(Reason::Counted, |(first, _)| self.reason(at, first, twin.is_some() || fact.is_marked()))
            });
            elected[at] = reasons.collect();
        }
        (elected, repeated)
    }

    /// Why a fact does not count that counts in another session.
    fn reason(&self, at: usize, first: u32, is_marked: bool) -> Reason {
        // A fork that does not mark its copies repeats the facts of the session that it names, or of that one's sub-agents. A further
        // file with the same id is a copy of the whole.
        let (of, row) = (&self.sessions[first as usize].row, &self.sessions[at].row);
        let is_same = of.id == row.id && of.dialect == row.dialect;
        match is_marked || is_same || self.forked_from[at].contains(&self.roots[first as usize]) {
            true => Reason::CopyOf(first),
            false => Reason::Repeats(first),
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
