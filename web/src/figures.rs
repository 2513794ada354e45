//! What all sessions count: tokens, cost and calls, as the last count in the background found them. A page adds rows up and counts
//! nothing itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use scrollback::model::{Cost, Usage};
use scrollback::view::SessionRow;
use scrollback::view::counting::{CountedSession, Elected, Level, Reason, StatsQuery, StatsRow, stats};
use scrollback::view::surroundings::TurnRequest;
use scrollback_index::listed_cost;

use crate::render::trace::{LIST_TICKS, Trace};
use crate::render::words;

/// What a request cost that neither the agent nor the list of prices knows: the prices of the user.
pub type Price = dyn Fn(&str, Usage) -> Option<Cost> + Send + Sync;

/// What some requests cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Money {
    /// The sum of those whose cost is known.
    pub usd: Option<f64>,
    /// How many have no known cost: that is not zero.
    pub unpriced: u64,
}

impl Money {
    /// What the requests of a turn cost.
    pub fn of(requests: &[TurnRequest], price: &Price) -> Money {
        let mut money = Money::default();
        for TurnRequest { model, at, usage, cost } in requests {
            let listed = || listed_cost(model.as_deref()?, *at, *usage);
            let own = || price(model.as_deref()?, *usage);
            money.add(cost.or_else(listed).or_else(own));
        }
        money
    }

    fn add(&mut self, cost: Option<Cost>) {
        match cost {
            Some(cost) => *self.usd.get_or_insert(0.0) += cost.to_usd(),
            None => self.unpriced += 1,
        }
    }

    /// Adds what other requests cost.
    pub(crate) fn add_all(&mut self, other: Money) {
        self.unpriced += other.unpriced;
        if let Some(usd) = other.usd {
            *self.usd.get_or_insert(0.0) += usd;
        }
    }

    /// As it is shown; `None` if there is nothing to pay for.
    pub fn words(&self) -> Option<String> {
        match (self.usd, self.unpriced) {
            (None, 0) => None,
            (None, _) => Some("?".to_owned()),
            (Some(usd), 0) => Some(words::dollars(usd)),
            (Some(usd), _) => Some(format!("≥ {}", words::dollars(usd))),
        }
    }
}

/// What one session counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionCost {
    /// Its own requests.
    pub own: Money,
    /// Those of the sub-agents that it started.
    pub sub_agents: Money,
    /// The tokens of its own requests; `None` if it has none.
    pub usage: Option<Usage>,
}

/// What is counted of some days, projects, agents and models, or tools.
pub(crate) struct Row {
    /// `None` is a time that is not known.
    pub(crate) day: Option<Date>,
    pub(crate) project: Option<Arc<str>>,
    pub(crate) agent: Arc<str>,
    /// The model or the tool.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) counts: Counts,
}

/// What a page shows of a row: there are many thousands, so they hold no more.
pub(crate) struct Counts {
    pub(crate) usage: Usage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) unpriced: u64,
    pub(crate) requests: u64,
    pub(crate) messages: u64,
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_failures: u64,
    pub(crate) tool_seconds: f64,
}

/// Everything that was counted.
#[derive(Default)]
pub struct Figures {
    /// By day, project, agent and model: all that has a cost.
    pub(crate) by_model: Vec<Row>,
    /// By day, project, agent and tool.
    pub(crate) by_tool: Vec<Row>,
    /// By the path of the session's file.
    of_session: HashMap<String, (SessionCost, Arc<Trace>)>,
    /// Whether sessions have been counted at all.
    pub(crate) is_known: bool,
}

impl Figures {
    /// Counts, each fact once.
    pub(crate) fn of(sessions: &[CountedSession], zone: &TimeZone, price: &Price) -> Figures {
        let elected = Elected::among(sessions);
        let mut names = Names::default();
        let mut rows = |level: Level| {
            let by = vec![Level::Day, Level::Project, Level::Agent, level];
            let query = StatsQuery { by, zone: zone.clone(), since: None, until: None, price };
            let rows = stats(sessions, &elected, &query).rows;
            // In place, a row would stay as large as it was.
            let mut compact = Vec::with_capacity(rows.len());
            compact.extend(rows.into_iter().filter_map(|counts| row(counts, &mut names)));
            compact
        };
        Figures {
            by_model: rows(Level::Model),
            by_tool: rows(Level::Tool),
            of_session: of_sessions(sessions, &elected, price),
            is_known: true,
        }
    }

    /// What a session cost, by the path of its file.
    pub fn cost_of(&self, path: &str) -> Option<SessionCost> {
        self.of_session.get(path).map(|(cost, _)| *cost)
    }

    /// The tokens of a session, without those of requests that another one made first.
    pub fn usage_of(&self, row: &SessionRow) -> Option<Usage> {
        self.cost_of(&row.path).and_then(|cost| cost.usage).or(row.usage)
    }

    /// Its prompts, calls and failures in one line, as far as they were counted.
    pub fn trace_of(&self, path: &str) -> Option<Arc<Trace>> {
        self.of_session.get(path).map(|(_, trace)| trace.clone())
    }
}

/// The names of projects, agents, models and tools: rows repeat them.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}

fn row(counts: StatsRow, names: &mut Names) -> Option<Row> {
    let [day, project, agent, name] = counts.key.as_deref()? else { return None };
    Some(Row {
        day: day.as_deref().and_then(|day| day.parse().ok()),
        project: project.as_deref().map(|project| names.shared(project)),
        agent: names.shared(agent.as_deref()?),
        name: name.as_deref().map(|name| names.shared(name)),
        counts: Counts {
            usage: counts.usage,
            cost_usd: counts.cost_usd,
            unpriced: counts.unpriced,
            requests: counts.requests,
            messages: counts.messages,
            turns: counts.turns,
            tool_calls: counts.tool_calls,
            tool_failures: counts.tool_failures,
            tool_seconds: counts.tool_seconds,
        },
    })
}

/// What each session cost. A request that another session made first costs nothing here: it was paid there.
fn of_sessions(
    sessions: &[CountedSession],
    elected: &Elected,
    price: &Price,
) -> HashMap<String, (SessionCost, Arc<Trace>)> {
    let mut costs: Vec<SessionCost> = vec![SessionCost::default(); sessions.len()];
    for (at, session) in sessions.iter().enumerate() {
        let (mut own, mut usage) = (Money::default(), Usage::default());
        let reasons = &elected.requests[at];
        let counted = session.counts.requests.iter().zip(reasons).filter(|(_, reason)| **reason == Reason::Counted);
        for (request, _) in counted {
            let request = elected.whole(request);
            let model = request.model.and_then(|model| session.counts.models.get(usize::from(model)));
            own.add(request.cost.known().or_else(|| price(model?, request.usage())));
            usage.add(request.usage());
        }
        costs[at].own = own;
        costs[at].usage = (!reasons.is_empty()).then_some(usage);
        let root = elected.roots[at] as usize;
        if root != at {
            costs[root].sub_agents.add_all(own);
        }
    }
    let of_session = |(session, cost): (&CountedSession, SessionCost)| {
        let mut trace = Trace::default();
        trace.add_counted(&session.counts);
        trace.thin(LIST_TICKS);
        (session.row.path.clone(), (cost, Arc::new(trace)))
    };
    sessions.iter().zip(costs).map(of_session).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_is_never_nothing() {
        let request = |model: &str, cost: Option<f64>| TurnRequest {
            model: Some(model.to_owned()),
            at: None,
            usage: Usage { input: Some(1_000), output: Some(10), ..Usage::default() },
            cost: cost.map(Cost::from_usd),
        };
        let nobody = |_: &str, _: Usage| None;
        let mine = |_: &str, _: Usage| Some(Cost::from_usd(2.0));
        let shown = |requests: &[TurnRequest], price: &Price| Money::of(requests, price).words();
        assert_eq!(shown(&[], &nobody), None);
        assert_eq!(shown(&[request("no-such-model", None)], &nobody).as_deref(), Some("?"));
        assert_eq!(shown(&[request("no-such-model", Some(0.25))], &nobody).as_deref(), Some("$0.250"));
        let both = [request("no-such-model", Some(0.25)), request("no-such-model", None)];
        assert_eq!(shown(&both, &nobody).as_deref(), Some("≥ $0.250"));
        assert_eq!(shown(&both, &mine).as_deref(), Some("$2.25"));
        let listed = shown(&[request("claude-opus-4-5", None)], &nobody);
        assert_eq!(listed.as_deref(), Some("$0.005"));
    }
}
