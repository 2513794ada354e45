//! From the facts that count to rows.

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::Serialize;

use super::elect::{Elected, Reason};
use super::{CountedSession, EventKind, Level, RequestFact, SessionCounts};
use crate::model::record::{Cost, Usage};

/// What to count.
pub struct StatsQuery<'a> {
    /// What the rows are; several levels make a row for each combination.
    pub by: Vec<Level>,
    /// Where a day begins.
    pub zone: TimeZone,
    /// Facts of this time or later.
    pub since: Option<Timestamp>,
    /// Facts before this time.
    pub until: Option<Timestamp>,
    /// What a request cost that neither the agent nor the list of prices knows.
    pub price: &'a (dyn Fn(&str, Usage) -> Option<Cost> + Sync),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// What the rows are.
    pub by: Vec<Level>,
    /// Time runs forward; other rows have the most tokens first.
    pub rows: Vec<StatsRow>,
    /// Everything, also what belongs to no row.
    pub total: StatsRow,
}

/// One row. A request belongs to the day of its first record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsRow {
    /// One name for each level; `None` is not known. The total has no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Vec<Option<String>>>,
    /// Tokens.
    pub usage: Usage,
    /// What the requests cost whose cost is known, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requests whose cost is not known.
    pub unpriced: u64,
    /// Requests to a model.
    pub requests: u64,
    /// Sessions that are not only copies of others by their own account; those of sub-agents belong to the session that started them.
    pub sessions: u64,
    /// Prompts and answers.
    pub messages: u64,
    /// Prompts of people, each with what follows.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Those that failed or were refused.
    pub tool_failures: u64,
    /// The time that they took.
    pub tool_seconds: f64,
    /// Different files that calls changed.
    pub files_touched: u64,
    /// Time without pauses of more than five minutes.
    pub active_seconds: f64,
    /// Characters of reasoning.
    pub thinking_characters: u64,
    /// Characters of reasoning of all that the model wrote; the input of tools does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_share: Option<f64>,
    /// Tokens read from a cache of all that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// Calls that had failed before in the same turn.
    pub retries: u64,
    /// Compactions.
    pub compactions: u64,
    /// Turns that ended with an answer.
    pub clean_ends: u64,
    /// Turns in which the model thought.
    pub thinking_turns: u64,
    /// Those of them that ended with an answer.
    pub thinking_clean_ends: u64,
}

/// The levels of a row, as numbers of names; no more levels than there are.
type Key = [u32; Level::ALL.len()];

/// What a row has so far.
#[derive(Default)]
struct Sums {
    usage: Usage,
    cost: Option<Cost>,
    unpriced: u64,
    requests: u64,
    sessions: HashSet<u32>,
    messages: u64,
    turns: u64,
    tool_calls: u64,
    tool_failures: u64,
    tool_ms: u64,
    files: HashSet<u64>,
    active_ms: u64,
    text_chars: u64,
    thinking_chars: u64,
    retries: u64,
    compactions: u64,
    clean_ends: u64,
    thinking_turns: u64,
    thinking_clean_ends: u64,
}

/// So many sessions are counted by one thread: fewer are not worth to be put together.
const SESSIONS_AT_ONCE: usize = 256;

/// Counts what was elected among all sessions, in those that are in scope.
pub fn stats(sessions: &[CountedSession], elected: &Elected, query: &StatsQuery<'_>) -> Stats {
    let all: Vec<usize> = (0..sessions.len()).filter(|at| sessions[*at].is_in_scope).collect();
    let threads = rayon::current_num_threads().max(1);
    let counters = all.par_chunks(all.len().div_ceil(threads).max(SESSIONS_AT_ONCE)).map(|some| {
        let mut counter = Counter::new(query);
        some.iter().for_each(|at| counter.count(*at, sessions, elected));
        counter
    });
    let counters: Vec<Counter<'_>> = counters.collect();
    let whole = counters.into_iter().reduce(|mut all, some| {
        all.take(some);
        all
    });
    whole.unwrap_or_else(|| Counter::new(query)).finish()
}

impl StatsQuery<'_> {
    /// Whether a fact of this time is asked for.
    pub fn holds(&self, at: Option<i64>) -> bool {
        let is_after = |since: Timestamp| at.is_some_and(|at| at >= since.as_microsecond());
        let is_before = |until: Timestamp| at.is_some_and(|at| at < until.as_microsecond());
        self.since.is_none_or(is_after) && self.until.is_none_or(is_before)
    }
}

/// The facts that count.
fn counted<'a, T>(facts: &'a [T], reasons: &'a [Reason]) -> impl Iterator<Item = &'a T> {
    facts.iter().zip(reasons).filter(|(_, reason)| **reason == Reason::Counted).map(|(fact, _)| fact)
}

fn cost_of(request: &RequestFact, model: Option<&str>, query: &StatsQuery<'_>) -> Option<Cost> {
    request.cost.known().or_else(|| (query.price)(model?, request.usage()))
}

fn name(names: &[String], number: Option<u16>) -> Option<&str> {
    names.get(usize::from(number?)).map(String::as_str)
}

/// The names of a session's levels, as numbers.
struct OfSession {
    root: u32,
    project: u32,
    agent: u32,
    session: u32,
}

struct Counter<'q> {
    query: &'q StatsQuery<'q>,
    names: Names,
    /// The periods of each quarter of an hour: no zone is shifted by less.
    periods: HashMap<i64, [u32; 3]>,
    /// The periods of each day.
    days: HashMap<Date, [u32; 3]>,
    /// Where each row is.
    places: HashMap<Key, usize>,
    rows: Vec<(Key, Sums)>,
    /// The row, the session and the quarter of the fact before: most facts follow one of their own kind.
    last_row: usize,
    last_session: u32,
    last_period: (i64, [u32; 3]),
    total: Sums,
}

const QUARTER_MICROS: i64 = 15 * 60 * 1_000_000;

/// Each name once. 0 is what is not known.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else { return 0 };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() as u32);
        self.names.len() as u32
    }

    fn name(&self, number: u32) -> Option<&String> {
        self.names.get((number as usize).checked_sub(1)?)
    }
}

impl<'q> Counter<'q> {
    fn new(query: &'q StatsQuery<'q>) -> Counter<'q> {
        Counter {
            query,
            names: Names::default(),
            periods: HashMap::new(),
            days: HashMap::new(),
            places: HashMap::new(),
            rows: Vec::new(),
            last_row: usize::MAX,
            last_session: u32::MAX,
            last_period: (i64::MIN, [0; 3]),
            total: Sums::default(),
        }
    }

    /// Adds what counts of a session.
    fn count(&mut self, at: usize, sessions: &[CountedSession], elected: &Elected) {
        let (query, session) = (self.query, &sessions[at]);
        let of_session = self.session(&sessions[elected.roots[at] as usize], session, elected.roots[at]);
        if elected.times_of_its_own(at, session).any(|at| query.holds(at)) {
            self.add_session(&of_session);
        }
        for request in counted(&session.counts.requests, &elected.requests[at]) {
            if !query.holds(request.at) {
                continue;
            }
            let request = elected.whole(request);
            let (usage, model) = (request.usage(), name(&session.counts.models, request.model));
            let cost = cost_of(&request, model, query);
            self.add(&of_session, request.at, model, None, |sums| {
                sums.requests += 1;
                sums.usage.add(usage);
                match cost {
                    Some(cost) => sums.cost.get_or_insert_default().add(cost),
                    None => sums.unpriced += 1,
                }
            });
        }
        let is_sub_agent = elected.roots[at] as usize != at;
        for event in counted(&session.counts.events, &elected.events[at]) {
            if !query.holds(event.at) {
                continue;
            }
            let model = name(&session.counts.models, event.model);
            let tool = match &event.kind {
                EventKind::Call { tool, .. } => Some(name(&session.counts.tools, Some(*tool))),
                _ => None,
            };
            // A sub-agent works while its session waits for it.
            let active_ms = if is_sub_agent { 0 } else { u64::from(event.active_ms) };
            self.add(&of_session, event.at, model, tool, |sums| sums.add(&event.kind, active_ms, &session.counts));
        }
    }

    /// Adds what another one has counted of other sessions.
    fn take(&mut self, other: Counter<'_>) {
        let Counter { names, rows, total, .. } = other;
        for (theirs, sums) in rows {
            let mut key = Key::default();
            for (number, its) in key.iter_mut().zip(theirs) {
                *number = self.names.number(names.name(its).map(String::as_str));
            }
            let at = self.place(key);
            if let Some((_, row)) = self.rows.get_mut(at) {
                row.add_row(&sums);
            }
        }
        self.total.add_row(&total);
    }

    fn session(&mut self, root: &CountedSession, session: &CountedSession, number: u32) -> OfSession {
        OfSession {
            root: number,
            project: self.names.number(session.row.project.as_deref()),
            agent: self.names.number(Some(&session.row.dialect)),
            session: self.names.number(Some(root.row.id.as_str())),
        }
    }

    /// Adds a session, also one whose facts count elsewhere: to its row, if that is decided by the session alone, and to the total.
    fn add_session(&mut self, session: &OfSession) {
        self.total.sessions.insert(session.root);
        if self.query.by.iter().all(|level| matches!(level, Level::Project | Level::Agent | Level::Session)) {
            self.add(session, None, None, None, |_| {});
        }
    }

    /// Adds a fact to its row; if it has none, to the total, which has everything in rows at the end.
    fn add(
        &mut self,
        session: &OfSession,
        at: Option<i64>,
        model: Option<&str>,
        tool: Option<Option<&str>>,
        add: impl FnOnce(&mut Sums),
    ) {
        let mut key = Key::default();
        for (at_level, level) in self.query.by.iter().enumerate().take(key.len()) {
            key[at_level] = match level {
                Level::Day => self.period(at)[0],
                Level::Week => self.period(at)[1],
                Level::Month => self.period(at)[2],
                Level::Project => session.project,
                Level::Agent => session.agent,
                Level::Session => session.session,
                Level::Model => self.names.number(model),
                // What is no call belongs to no tool.
                Level::Tool => match tool {
                    Some(tool) => self.names.number(tool),
                    None => return add(&mut self.total),
                },
            };
        }
        let is_last = self.rows.get(self.last_row).is_some_and(|(last, _)| *last == key);
        let at = if is_last { self.last_row } else { self.place(key) };
        let Some((_, row)) = self.rows.get_mut(at) else { return };
        add(row);
        if !is_last || self.last_session != session.root {
            row.sessions.insert(session.root);
        }
        (self.last_row, self.last_session) = (at, session.root);
    }

    /// Where the row with this key is; it is added if there is none.
    fn place(&mut self, key: Key) -> usize {
        *self.places.entry(key).or_insert_with(|| {
            self.rows.push((key, Sums::default()));
            self.rows.len() - 1
        })
    }

    /// The day, week and month of an instant.
    fn period(&mut self, at: Option<i64>) -> [u32; 3] {
        let Some(at) = at else { return [0; 3] };
        let quarter = at.div_euclid(QUARTER_MICROS);
        if self.last_period.0 == quarter {
            return self.last_period.1;
        }
        if let Some(known) = self.periods.get(&quarter) {
            self.last_period = (quarter, *known);
            return *known;
        }
        let periods = match Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_MICROS)) {
            Ok(at) => *self.days.entry(self.query.zone.to_datetime(at).date()).or_insert_with_key(|day| {
                let levels = [Level::Day, Level::Week, Level::Month];
                levels.map(|level| self.names.number(Some(&level.period(*day))))
            }),
            Err(_) => [0; 3],
        };
        self.periods.insert(quarter, periods);
        periods
    }

    fn finish(self) -> Stats {
        let Counter { query, names, mut rows, mut total, .. } = self;
        rows.iter().for_each(|(_, sums)| total.add_row(sums));
        if query.by.is_empty() {
            rows.clear();
        }
        let levels = query.by.len().min(Level::ALL.len());
        let mut weights: HashMap<(usize, Key), u64> = HashMap::new();
        let prefix = |key: &Key, level: usize| {
            let mut prefix = Key::default();
            prefix[..=level].copy_from_slice(&key[..=level]);
            prefix
        };
        for (key, sums) in &rows {
            for level in 0..levels {
                let weight = weights.entry((level, prefix(key, level))).or_default();
                *weight = weight.saturating_add(sums.weight());
            }
        }
        rows.sort_by(|(a, _), (b, _)| {
            let compared = (0..levels).map(|level| {
                let weight = |key: &Key| weights.get(&(level, prefix(key, level))).copied().unwrap_or(0);
                let by_name = names.name(a[level]).cmp(&names.name(b[level]));
                if query.by[level].is_time() { by_name } else { weight(b).cmp(&weight(a)).then(by_name) }
            });
            compared.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        let key = |key: &Key| key[..levels].iter().map(|number| names.name(*number).cloned()).collect();
        Stats {
            by: query.by.clone(),
            rows: rows.into_iter().map(|(of, sums)| sums.row(Some(key(&of)))).collect(),
            total: total.row(None),
        }
    }
}

impl Sums {
    fn add(&mut self, event: &EventKind, active_ms: u64, counts: &SessionCounts) {
        self.active_ms += active_ms;
        match event {
            EventKind::Prompt { is_turn, is_clean, has_thinking } => {
                self.messages += 1;
                self.turns += u64::from(*is_turn);
                self.clean_ends += u64::from(*is_turn && *is_clean);
                self.thinking_turns += u64::from(*is_turn && *has_thinking);
                self.thinking_clean_ends += u64::from(*is_turn && *has_thinking && *is_clean);
            }
            EventKind::Answer { text_chars, thinking_chars } => {
                self.messages += 1;
                self.text_chars += u64::from(*text_chars);
                self.thinking_chars += u64::from(*thinking_chars);
            }
            EventKind::Call { has_failed, is_retry, duration_ms, files, .. } => {
                self.tool_calls += 1;
                self.tool_failures += u64::from(*has_failed);
                self.retries += u64::from(*is_retry);
                self.tool_ms = self.tool_ms.saturating_add(duration_ms.unwrap_or(0));
                if !has_failed {
                    self.files.extend(counts.paths(files));
                }
            }
            EventKind::Compaction => self.compactions += 1,
        }
    }

    fn add_row(&mut self, row: &Sums) {
        let Sums { usage, cost, unpriced, requests, sessions, messages, turns, tool_calls, tool_failures, .. } = row;
        let Sums { tool_ms, files, active_ms, text_chars, thinking_chars, retries, compactions, .. } = row;
        let Sums { clean_ends, thinking_turns, thinking_clean_ends, .. } = row;
        self.usage.add(*usage);
        cost.iter().for_each(|cost| self.cost.get_or_insert_default().add(*cost));
        self.unpriced += unpriced;
        self.requests += requests;
        self.sessions.extend(sessions);
        self.messages += messages;
        self.turns += turns;
        self.tool_calls += tool_calls;
        self.tool_failures += tool_failures;
        self.tool_ms = self.tool_ms.saturating_add(*tool_ms);
        self.files.extend(files);
        self.active_ms += active_ms;
        self.text_chars += text_chars;
        self.thinking_chars += thinking_chars;
        self.retries += retries;
        self.compactions += compactions;
        self.clean_ends += clean_ends;
        self.thinking_turns += thinking_turns;
        self.thinking_clean_ends += thinking_clean_ends;
    }

    /// What the order of rows depends on: tokens, then calls.
    fn weight(&self) -> u64 {
        self.usage.total().unwrap_or(0).saturating_add(self.tool_calls)
    }

    fn row(self, key: Option<Vec<Option<String>>>) -> StatsRow {
        let Usage { input, cache_read, cache_write, .. } = self.usage;
        let sent = [input, cache_read, cache_write].into_iter().flatten().reduce(u64::saturating_add);
        StatsRow {
            key,
            usage: self.usage,
            cost_usd: self.cost.map(Cost::to_usd),
            unpriced: self.unpriced,
            requests: self.requests,
            sessions: self.sessions.len() as u64,
            messages: self.messages,
            turns: self.turns,
            tool_calls: self.tool_calls,
            tool_failures: self.tool_failures,
            tool_seconds: self.tool_ms as f64 / 1000.0,
            files_touched: self.files.len() as u64,
            active_seconds: self.active_ms as f64 / 1000.0,
            thinking_characters: self.thinking_chars,
            thinking_share: share(self.thinking_chars, self.thinking_chars + self.text_chars),
            cache_hit_rate: sent.and_then(|sent| share(cache_read.unwrap_or(0), sent)),
            retries: self.retries,
            compactions: self.compactions,
            clean_ends: self.clean_ends,
            thinking_turns: self.thinking_turns,
            thinking_clean_ends: self.thinking_clean_ends,
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How long a billing window is.
const BLOCK_MICROS: i64 = 5 * 3600 * 1_000_000;
const HOUR_MICROS: i64 = 3600 * 1_000_000;
const MINUTE_MICROS: f64 = 60_000_000.0;

/// A billing window: five hours from the full hour of its first request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// When it began.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// Its last request.
    pub last: Timestamp,
    /// Tokens.
    pub usage: Usage,
    /// What the requests cost whose cost is known, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requests whose cost is not known.
    pub unpriced: u64,
    /// Requests.
    pub requests: u64,
    /// Tokens a minute, from its first to its last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<f64>,
    /// Dollars an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_hour: Option<f64>,
    /// What is left of the running window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<BlockLeft>,
}

/// What is left of the running window.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockLeft {
    /// Minutes until it ends.
    pub minutes: f64,
    /// All tokens of the window at its end, if it goes on as it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projected_tokens: Option<f64>,
    /// Its cost then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projected_cost_usd: Option<f64>,
}

/// The billing windows of the requests that count, the oldest first. A time asks for windows that have a request then, and does not
/// change where they begin.
pub fn blocks(sessions: &[CountedSession], elected: &Elected, query: &StatsQuery<'_>, now: Timestamp) -> Vec<Block> {
    let mut requests: Vec<(i64, Usage, Option<Cost>)> = Vec::new();
    for (at, session) in sessions.iter().enumerate().filter(|(_, session)| session.is_in_scope) {
        for request in counted(&session.counts.requests, &elected.requests[at]) {
            let request = elected.whole(request);
            let cost = cost_of(&request, name(&session.counts.models, request.model), query);
            requests.extend(request.at.map(|at| (at, request.usage(), cost)));
        }
    }
    requests.sort_by_key(|(at, ..)| *at);
    let mut blocks = Vec::new();
    let mut left = requests.as_slice();
    while let Some((first, ..)) = left.first() {
        let start = first.div_euclid(HOUR_MICROS) * HOUR_MICROS;
        let (of_block, rest) = left.split_at(left.partition_point(|(at, ..)| *at < start + BLOCK_MICROS));
        left = rest;
        if of_block.iter().any(|(at, ..)| query.holds(Some(*at))) {
            blocks.extend(block(start, of_block, now));
        }
    }
    blocks
}

fn block(start: i64, requests: &[(i64, Usage, Option<Cost>)], now: Timestamp) -> Option<Block> {
    let instant = |micros: i64| Timestamp::from_microsecond(micros).ok();
    let (first, last, end) = (requests.first()?.0, requests.last()?.0, start + BLOCK_MICROS);
    let (mut usage, mut cost) = (Usage::default(), None::<Cost>);
    for (_, of_request, costed) in requests {
        usage.add(*of_request);
        costed.iter().for_each(|costed| cost.get_or_insert_default().add(*costed));
    }
    let (tokens, cost_usd) = (usage.total().unwrap_or(0) as f64, cost.map(Cost::to_usd));
    let minutes = Some((last - first) as f64 / MINUTE_MICROS).filter(|minutes| *minutes > 0.0);
    let left_minutes = (end - now.as_microsecond()) as f64 / MINUTE_MICROS;
    let is_running = (start..end).contains(&now.as_microsecond());
    Some(Block {
        start: instant(start)?,
        end: instant(end)?,
        last: instant(last)?,
        usage,
        cost_usd,
        unpriced: requests.iter().filter(|(.., cost)| cost.is_none()).count() as u64,
        requests: requests.len() as u64,
        tokens_per_minute: minutes.map(|minutes| tokens / minutes),
        cost_per_hour: minutes.zip(cost_usd).map(|(minutes, cost)| cost / minutes * 60.0),
        left: is_running.then(|| BlockLeft {
            minutes: left_minutes,
            projected_tokens: minutes.map(|minutes| tokens + tokens / minutes * left_minutes),
            projected_cost_usd: minutes.zip(cost_usd).map(|(minutes, cost)| cost + cost / minutes * left_minutes),
        }),
    })
}
