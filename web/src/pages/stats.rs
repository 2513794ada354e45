//! Figures over all sessions: tokens, cost and calls by time, model, tool, project and agent.
//!
//! They come from the count in the background (`figures.rs`); each fact counts once, however often files repeat it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::http::StatusCode;
use jiff::Span;
use jiff::civil::Date;
use maud::{Markup, html};
use scrollback::model::Usage;

use super::home::project_name;
use super::{Made, Nav, Params, Takes};
use crate::catalogue::Entry;
use crate::figures::{Figures, Money, Row};
use crate::render::icon::{agent_mark, agent_name};
use crate::render::plot::{self, Bar, Column, Labels, Series};
use crate::render::words::{grouped, input_with_cache, percent, plural, short, tokens, took};
use crate::render::{text, words};
use crate::site::Site;

/// How many rows of a plot are drawn; its table has more.
const BARS_DRAWN: usize = 10;

/// How many projects the menu lists.
const PROJECTS_LISTED: usize = 200;

/// Periods: what an address calls them, what people do, how many days, and how many of them are one column.
const PERIODS: [(&str, &str, Option<i64>, i64); 4] = [
    ("7d", "7 days", Some(7), 1),
    ("5w", "5 weeks", Some(35), 1),
    ("1y", "1 year", Some(385), 7),
    ("all", "All time", None, 1),
];

/// The period that is shown if nothing else is asked for.
const USUAL_PERIOD: usize = 1;

/// How many columns all time has at most; one is then as many days as needed.
const COLUMNS: i64 = 60;

/// The page.
pub(crate) fn page(params: &Params, site: &Site) -> Made {
    if let Some(wrong) = params.wrong(&[("since", Takes::One(&PERIODS.map(|(name, ..)| name)))]) {
        return wrong;
    }
    let figures = site.catalogue.figures();
    let asked = Asked::new(params, &figures, site);
    let models: Vec<&Row> = figures.by_model.iter().filter(|row| asked.holds(row)).collect();
    let tools: Vec<&Row> = figures.by_tool.iter().filter(|row| asked.holds(row)).collect();
    let total = Sum::of(models.iter().copied());
    let is_empty = total.messages == 0 && total.requests == 0;
    let body = html! {
        div.hd {
            h1.page-title { "Stats" }
            span.meta { (asked.from.strftime("%-d %B %Y")) " to " (asked.today.strftime("%-d %B %Y")) }
            (form(&asked, &figures))
        }
        @if !figures.is_known {
            p.notice role="status" { span { "Sessions are still being counted. Load this page again in a moment." } }
        } @else if is_empty {
            div.empty {
                h2 { "Nothing was counted in this time" }
                p { a.link href="/stats?since=all" { "Show all of it" } }
            }
        } @else {
            (totals(&total, &asked, site))
            div.plots {
                (over_time(&models, &asked))
                (by_model(&models))
                (days(&figures, &asked))
                (by_tool(&tools))
                (shares("Projects", "project", &models, |row| (row.project.as_deref().unwrap_or_default().to_owned(), project_mark(row))))
                (shares("Agents", "agent", &models, |row| (row.agent.to_string(), html! { span.hb-name { span.agent { (agent_mark(&row.agent)) (agent_name(&row.agent)) } } })))
            }
            p.meta { "Each request counts once, however often files repeat it. " code { "scrollback stats --explain" } " shows where each number comes from." }
        }
    };
    Made { status: StatusCode::OK, title: "Stats".to_owned(), nav: Nav::Stats, body, rest: None }
}

/// What is asked for.
struct Asked<'p> {
    project: Option<&'p str>,
    agent: Option<&'p str>,
    period: usize,
    /// The first day, and the last.
    from: Date,
    today: Date,
    /// How many days a column is.
    days: i64,
}

impl<'p> Asked<'p> {
    fn new(params: &'p Params, figures: &Figures, site: &Site) -> Asked<'p> {
        let today = (site.now)().to_zoned(site.zone.clone()).date();
        let period = params.get("since").and_then(|name| PERIODS.iter().position(|(known, ..)| *known == name));
        let period = period.unwrap_or(USUAL_PERIOD);
        let (_, _, length, days) = PERIODS[period];
        let first = figures.by_model.iter().filter_map(|row| row.day).min();
        let length = length.unwrap_or_else(|| first.map_or(1, |first| days_between(first, today) + 1));
        let days = if PERIODS[period].2.is_some() { days } else { length.div_euclid(COLUMNS) + 1 };
        let from = days_before(today, length - 1);
        Asked { project: params.get("project"), agent: params.get("agent"), period, from, today, days }
    }

    fn is_about(&self, row: &Row) -> bool {
        let is_project = self.project.is_none_or(|project| row.project.as_deref().unwrap_or("-") == project);
        is_project && self.agent.is_none_or(|agent| &*row.agent == agent)
    }

    fn holds(&self, row: &Row) -> bool {
        self.is_about(row)
            && match row.day {
                Some(day) => day >= self.from,
                None => PERIODS[self.period].2.is_none(),
            }
    }

    fn holds_session(&self, entry: &Entry, site: &Site) -> bool {
        let row = &entry.row;
        let is_project = self.project.is_none_or(|project| row.project.as_deref().unwrap_or("-") == project);
        let is_agent = self.agent.is_none_or(|agent| row.dialect == agent);
        let day = row.updated.map(|at| at.to_zoned(site.zone.clone()).date());
        is_project && is_agent && day.map_or(PERIODS[self.period].2.is_none(), |day| day >= self.from)
    }
}

fn days_between(from: Date, to: Date) -> i64 {
    from.until(to).map_or(0, |span| i64::from(span.get_days())).max(0)
}

fn days_before(day: Date, days: i64) -> Date {
    let span = Span::new().try_days(days).ok();
    span.and_then(|span| day.checked_sub(span).ok()).unwrap_or(day)
}

/// What some rows add up to.
#[derive(Default, Clone)]
struct Sum {
    usage: Usage,
    money: Money,
    requests: u64,
    messages: u64,
    turns: u64,
    calls: u64,
    failures: u64,
    seconds: f64,
}

impl Sum {
    fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Sum {
        rows.fold(Sum::default(), |mut sum, row| {
            sum.add(row);
            sum
        })
    }

    fn add(&mut self, Row { counts, .. }: &Row) {
        self.usage.add(counts.usage);
        self.money.add_all(Money { usd: counts.cost_usd, unpriced: counts.unpriced });
        self.requests += counts.requests;
        self.messages += counts.messages;
        self.turns += counts.turns;
        self.calls += counts.tool_calls;
        self.failures += counts.tool_failures;
        self.seconds += counts.tool_seconds;
    }

    /// Tokens that no cache held.
    fn new_tokens(&self) -> u64 {
        let Usage { input, output, cache_write, .. } = self.usage;
        [input, output, cache_write].into_iter().flatten().fold(0, u64::saturating_add)
    }

    fn cost(&self) -> String {
        match self.money {
            Money { usd: None, unpriced: 0 } => "–".to_owned(),
            Money { usd: None, .. } => "no price known".to_owned(),
            money => money.words().unwrap_or_default(),
        }
    }

    /// Tokens and cost as the cells of a table.
    fn cells(&self) -> [String; 5] {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let [input, written, output, read] = [input, cache_write, output, cache_read].map(count);
        [input, written, output, read, self.cost()]
    }
}

const COST_COLUMNS: [&str; 5] = ["Input", "Written to the cache", "Output", "Read from the cache", "Cost"];

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "–".to_owned(), grouped)
}

fn grouped_by<'r, K: Ord>(rows: &[&'r Row], key: impl Fn(&'r Row) -> K) -> Vec<(K, Sum, &'r Row)> {
    let mut groups: BTreeMap<K, (Sum, &'r Row)> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_insert_with(|| (Sum::default(), row)).0.add(row);
    }
    groups.into_iter().map(|(key, (sum, row))| (key, sum, row)).collect()
}

fn form(asked: &Asked<'_>, figures: &Figures) -> Markup {
    let mut projects: HashMap<&str, u64> = HashMap::new();
    for row in &figures.by_model {
        *projects.entry(row.project.as_deref().unwrap_or("-")).or_default() += row.counts.messages;
    }
    let mut projects: Vec<(&str, u64)> = projects.into_iter().collect();
    projects.sort_by_key(|(name, messages)| (std::cmp::Reverse(*messages), *name));
    let agents: BTreeSet<&str> = figures.by_model.iter().map(|row| &*row.agent).collect();
    html! {
        form class="filters end" action="/stats" aria-label="What to count" {
            select name="project" aria-label="Project" {
                option value="" { "Project" }
                @for (project, _) in projects.iter().take(PROJECTS_LISTED) {
                    option value=(project) selected[asked.project == Some(project)] { (project_name(Some(*project).filter(|project| *project != "-"))) }
                }
            }
            select name="agent" aria-label="Agent" {
                option value="" { "Agent" }
                @for agent in agents { option value=(agent) selected[asked.agent == Some(agent)] { (agent_name(agent)) } }
            }
            select name="since" aria-label="Time" {
                @for (at, (name, words, ..)) in PERIODS.iter().enumerate() { option value=(name) selected[at == asked.period] { (words) } }
            }
            button.btn { "Show" }
        }
    }
}

fn totals(total: &Sum, asked: &Asked<'_>, site: &Site) -> Markup {
    let shelf = site.catalogue.shelf();
    let sessions: Vec<&Entry> = shelf.entries.iter().filter(|entry| asked.holds_session(entry, site)).collect();
    let main = sessions.iter().filter(|entry| entry.row.parent_session.is_none()).count();
    let Usage { input, output, cache_read, cache_write, .. } = total.usage;
    let sent = input_with_cache(&total.usage).unwrap_or(0);
    let parts = [(input, "in"), (cache_write, "written"), (output, "out")];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(count, word)| Some(format!("{} {word}", tokens(count?)))).collect();
    let money = Money { unpriced: 0, ..total.money };
    let figure =
        |name: &str, value: String, more: String| html! { div.figure { dt { (name) } dd { (value) } dd { (more) } } };
    html! {
        dl.figures {
            (figure("Sessions", grouped(main as u64), format!("and {} of sub-agents", grouped((sessions.len() - main) as u64))))
            (figure("Prompts", grouped(total.turns), format!("{} in all", plural(total.messages, "message"))))
            (figure("Tokens, new", tokens(total.new_tokens()), parts.join(", ")))
            (figure("Tokens, from the cache", cache_read.map_or("–".to_owned(), tokens), format!("{} of all input", percent(cache_read.unwrap_or(0), sent))))
            (figure("Cost", money.words().unwrap_or_else(|| "?".to_owned()), match total.money.unpriced {
                0 => format!("of {}", plural(total.requests, "request")),
                unpriced => format!("{} without a price, not counted", plural(unpriced, "request")),
            }))
            (figure("Tool calls", grouped(total.calls), match total.failures {
                0 => "none failed".to_owned(),
                failures => format!("{} failed or refused", grouped(failures)),
            }))
        }
    }
}

/// Tokens by day, or by several days.
fn over_time(rows: &[&Row], asked: &Asked<'_>) -> Markup {
    let mut sums: BTreeMap<i64, Sum> = BTreeMap::new();
    for row in rows {
        let Some(day) = row.day else { continue };
        // The last column ends today.
        sums.entry(days_between(day, asked.today) / asked.days).or_default().add(row);
    }
    let shown = days_between(asked.from, asked.today) / asked.days + 1;
    // Words stand below five columns, or below each of a week.
    let per_label = if shown <= 7 { 1 } else { (shown + 4) / 5 };
    let shown = if shown <= 7 { shown } else { per_label * 5 };
    let first_day = |back: i64| days_before(asked.today, back * asked.days + asked.days - 1);
    let name = |back: i64| match asked.days {
        1 => first_day(back).strftime("%a %-d %b").to_string(),
        days => format!("{} days from {}", days, first_day(back).strftime("%-d %b %Y")),
    };
    let columns = |values: &dyn Fn(&Sum) -> Vec<u64>| -> Vec<Column> {
        (0..shown)
            .rev()
            .map(|back| Column {
                label: first_day(back).strftime("%-d %b").to_string(),
                name: name(back),
                values: sums.get(&back).map(values).unwrap_or_default(),
            })
            .collect()
    };
    let series = [
        Series { class: "k-out", name: "output" },
        Series { class: "k-in", name: "input" },
        Series { class: "k-write", name: "written to the cache" },
    ];
    let cached = [Series { class: "k-read", name: "read from the cache" }];
    let fresh =
        |sum: &Sum| [sum.usage.output, sum.usage.input, sum.usage.cache_write].map(|count| count.unwrap_or(0)).to_vec();
    let read = |sum: &Sum| vec![sum.usage.cache_read.unwrap_or(0)];
    let has_cache = sums.values().any(|sum| sum.usage.cache_read.unwrap_or(0) > 0);
    let busiest = sums.iter().max_by_key(|(_, sum)| sum.new_tokens());
    let about = busiest.filter(|(_, sum)| sum.new_tokens() > 0).map(|(back, sum)| {
        let what = if asked.days == 1 { "day" } else { "column" };
        format!("The busiest {what} was {}, with {} new tokens.", name(*back), tokens(sum.new_tokens()))
    });
    let about = about.unwrap_or_else(|| "No tokens were recorded.".to_owned());
    let table = sums
        .iter()
        .rev()
        .map(|(back, sum)| [vec![name(*back)], sum.cells().to_vec()].concat())
        .collect::<Vec<_>>();
    let head = [&["Days"], &COST_COLUMNS[..]].concat();
    let (below, labels) = if has_cache {
        (Labels::None, Labels::Every(per_label as usize))
    } else {
        (Labels::Every(per_label as usize), Labels::None)
    };
    html! {
        section.plot aria-labelledby="p-tokens" {
            h2 id="p-tokens" { "Tokens" }
            p.plot-sub { (about) @if has_cache { " Reading the cache has a scale of its own." } }
            (plot::legend(&series, if has_cache { &[("k-read", "read from the cache (own scale)")] } else { &[] }))
            (plot::columns(&format!("New tokens over time. {about}"), &series, &columns(&fresh), 3, false, below))
            @if has_cache { (plot::columns("Tokens read from the cache over time", &cached, &columns(&read), 2, true, labels)) }
            (plot::twin("The same as a table", "Tokens", &head, &table))
        }
    }
}

fn by_model(rows: &[&Row]) -> Markup {
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.counts.requests > 0).collect();
    let mut models = grouped_by(&rows, |row| row.name.as_deref());
    models.sort_by(|(_, a, _), (_, b, _)| {
        let key = |sum: &Sum| (sum.money.usd.unwrap_or(-1.0), sum.new_tokens() as f64);
        key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let name = |model: Option<&str>| text::brief(model.unwrap_or("not named"), 80);
    let bars: Vec<Bar> = models
        .iter()
        .take(BARS_DRAWN)
        .map(|(model, sum, row)| Bar {
            name: html! { span.hb-name { span.agent { (agent_mark(&row.agent)) (name(*model)) } } },
            pieces: vec![("k-in", sum.money.usd.unwrap_or(0.0))],
            value: sum.cost(),
            rate: None,
        })
        .collect();
    let table: Vec<Vec<String>> =
        models.iter().map(|(model, sum, _)| [vec![name(*model)], sum.cells().to_vec()].concat()).collect();
    html! {
        section class="plot plot-half" aria-labelledby="p-models" {
            h2 id="p-models" { "Cost by model" }
            p.plot-sub { "Recorded costs win over price lists. A model without a price counts as unknown, never as nothing." }
            (plot::bars(&bars))
            (plot::twin(&all_of(models.len()), "Cost by model", &[&["Model"], &COST_COLUMNS[..]].concat(), &table))
        }
    }
}

fn all_of(rows: usize) -> String {
    if rows > BARS_DRAWN {
        format!("All {} as a table", grouped(rows as u64))
    } else {
        "The same as a table".to_owned()
    }
}

/// Messages of each day of half a year, whatever the time that is asked for.
fn days(figures: &Figures, asked: &Asked<'_>) -> Markup {
    let mut days: BTreeMap<Date, Sum> = BTreeMap::new();
    for row in figures.by_model.iter().filter(|row| asked.is_about(row) && row.counts.messages > 0) {
        if let Some(day) = row.day.filter(|day| *day <= asked.today && days_between(*day, asked.today) < 182) {
            days.entry(day).or_default().add(row);
        }
    }
    let busiest = days.iter().max_by_key(|(_, sum)| sum.messages);
    let busiest = busiest
        .map(|(day, sum)| format!("; the busiest was {} with {}", day.strftime("%-d %B"), grouped(sum.messages)));
    let about =
        format!("Messages by day, half a year. {} had any{}.", plural(days.len(), "day"), busiest.unwrap_or_default());
    let table: Vec<Vec<String>> = days
        .iter()
        .rev()
        .map(|(day, sum)| vec![day.strftime("%a %-d %b %Y").to_string(), grouped(sum.turns), grouped(sum.messages)])
        .collect();
    html! {
        section class="plot plot-half" aria-labelledby="p-days" {
            h2 id="p-days" { "Days" }
            p.plot-sub { (about) }
            (plot::heat(&about, asked.today, "message", |day| days.get(&day).map_or(0, |sum| sum.messages)))
            (plot::twin("The same as a table", "Messages by day", &["Day", "Prompts", "Messages"], &table))
        }
    }
}

fn by_tool(rows: &[&Row]) -> Markup {
    let mut tools = grouped_by(rows, |row| row.name.as_deref());
    tools.sort_by_key(|(_, sum, _)| std::cmp::Reverse(sum.calls));
    let (calls, failures) = tools
        .iter()
        .fold((0, 0), |(calls, failures), (_, sum, _)| (calls + sum.calls, failures + sum.failures));
    let name = |tool: Option<&str>| text::brief(tool.unwrap_or("not named"), 80);
    let link = |tool: Option<&str>| {
        html! {
            @match tool.filter(|tool| is_word(tool)) {
                Some(tool) => a class="hb-name mono" href={ "/search?q=tool%3A" (text::path_segment(tool)) } { (name(Some(tool))) },
                None => span class="hb-name mono" { (name(tool)) },
            }
        }
    };
    let bars: Vec<Bar> = tools
        .iter()
        .take(BARS_DRAWN)
        .map(|(tool, sum, _)| Bar {
            name: link(*tool),
            pieces: vec![("k-ok", sum.calls.saturating_sub(sum.failures) as f64), ("k-err", sum.failures as f64)],
            value: grouped(sum.calls),
            rate: Some(if sum.failures > 0 {
                (format!("{} failed", percent(sum.failures, sum.calls)), true)
            } else {
                Default::default()
            }),
        })
        .collect();
    let table: Vec<Vec<String>> = tools
        .iter()
        .map(|(tool, sum, _)| {
            let mean = Some(sum.seconds).filter(|seconds| *seconds > 0.0);
            let mean =
                mean.map_or("–".to_owned(), |seconds| took((1000.0 * seconds / sum.calls.max(1) as f64) as u64));
            vec![name(*tool), grouped(sum.calls), grouped(sum.failures), percent(sum.failures, sum.calls), mean]
        })
        .collect();
    html! {
        @if !tools.is_empty() {
            section.plot aria-labelledby="p-tools" {
                h2 id="p-tools" { "Tools" }
                p.plot-sub {
                    (plural(calls, "call")) " of " (plural(tools.len(), "tool")) @if tools.len() > BARS_DRAWN { "; the " (BARS_DRAWN) " most used are drawn" } ". "
                    (percent(failures, calls)) " failed or were refused. Each name leads to its calls."
                }
                (plot::legend(&[Series { class: "k-err", name: "failed or refused" }, Series { class: "k-ok", name: "worked" }], &[]))
                (plot::bars(&bars))
                (plot::twin(&all_of(tools.len()), "Tools", &["Tool", "Calls", "Failed or refused", "Share", "Mean time"], &table))
            }
        }
    }
}

/// Whether a name can stand in a search as it is.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn project_mark(row: &Row) -> Markup {
    html! {
        @match &row.project {
            Some(project) => a.hb-name href={ "/?project=" (text::path_segment(project)) } title=(text::shown(project)) { (project_name(Some(project))) },
            None => span class="hb-name none" { "no project" },
        }
    }
}

/// New tokens and cost of each of some things.
fn shares(title: &str, id: &str, rows: &[&Row], about: impl Fn(&Row) -> (String, Markup)) -> Markup {
    let mut groups = grouped_by(rows, |row| about(row).0);
    groups.sort_by_key(|(_, sum, _)| (std::cmp::Reverse(sum.new_tokens()), std::cmp::Reverse(sum.messages)));
    let bars: Vec<Bar> = groups
        .iter()
        .take(BARS_DRAWN)
        .map(|(_, sum, row)| Bar {
            name: about(row).1,
            pieces: vec![("k-in", sum.new_tokens() as f64)],
            value: if sum.requests > 0 { short(sum.new_tokens()) } else { "–".to_owned() },
            rate: Some((sum.money.words().unwrap_or_default(), false)),
        })
        .collect();
    let table: Vec<Vec<String>> = groups
        .iter()
        .map(|(name, sum, row)| {
            let name = if *row.agent == **name { agent_name(name).to_owned() } else { words_of(name) };
            [vec![name, grouped(sum.messages)], sum.cells().to_vec()].concat()
        })
        .collect();
    html! {
        section class="plot plot-half" aria-labelledby={ "p-" (id) } {
            h2 id={ "p-" (id) } { (title) }
            p.plot-sub { "New tokens, and what they cost" }
            (plot::bars(&bars))
            (plot::twin(&all_of(groups.len()), title, &[&[words::capital(id).as_str(), "Messages"][..], &COST_COLUMNS[..]].concat(), &table))
        }
    }
}

fn words_of(project: &str) -> String {
    if project.is_empty() { "no project".to_owned() } else { project.to_owned() }
}
