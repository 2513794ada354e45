//! The list of sessions: what is running now, then by day or by project.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::{Timestamp, Zoned};
use maud::{Markup, html};
use scrollback::session::State;
use scrollback::view::SessionRow;

use super::{Made, Nav, Params, Takes};
use crate::catalogue::{Doing, Entry};
use crate::figures::{Figures, SessionCost};
use crate::render::icon::{agent_mark, agent_mark_alone, agent_name, icon};
use crate::render::{text, words};
use crate::site::Site;

/// How many sessions a page has: so many are well under its size.
const PAGE_SESSIONS: usize = 120;

/// So many running sessions are above the list; all of them are in it.
const RUNNING_SHOWN: usize = 20;

/// A session that grew so lately is running; one that waits may be a little older.
pub(crate) const RUNNING_TIME: Duration = Duration::from_secs(60);
const WAITING_SECONDS: i64 = 600;

/// The page.
pub(crate) fn page(params: &Params, site: &Site) -> Made {
    let states = [State::Clean, State::InterruptedPrompt, State::InterruptedTurn, State::Degraded].map(State::name);
    let takes = [
        ("state", Takes::One(&[&["running"], &states[..]].concat())),
        ("since", Takes::One(&["1d", "7d", "30d"])),
        ("sort", Takes::One(&["updated", "cost", "in", "out"])),
        ("by", Takes::One(&["day", "project"])),
        ("from", Takes::Number),
    ];
    if let Some(wrong) = params.wrong(&takes) {
        return wrong;
    }
    let shelf = site.catalogue.shelf();
    let now = (site.now)();
    let all: Vec<&Entry> =
        if params.has("sidechains") { shelf.entries.iter().collect() } else { shelf.main().collect() };
    let hidden = shelf.entries.len() - all.len();
    let mut shown: Vec<&Entry> = all.iter().copied().filter(|entry| is_wanted(entry, params, now)).collect();
    let figures = site.catalogue.figures();
    sort(&mut shown, params, &figures);
    let from = params.number("from").unwrap_or(0).min(shown.len());
    let page = &shown[from..shown.len().min(from + PAGE_SESSIONS)];
    let by_project = params.get("by") == Some("project");
    let body = html! {
        div.hd {
            h1.page-title { "Sessions" }
            span.meta { (about(&shown)) }
            nav class="seg end" aria-label="Group by" {
                a href=(params.with("by", None)) aria-current=[(!by_project).then_some("true")] { "By day" }
                a href=(params.with("by", Some("project"))) aria-current=[by_project.then_some("true")] { "By project" }
            }
        }
        (running(&all, &figures, now))
        (agents(&all, params))
        div.list {
            div.list-head { (filters(&all, params)) (columns(params)) }
            @if page.is_empty() {
                div.empty {
                    h2 { @if all.is_empty() { "No sessions yet" } @else { "No session fits" } }
                    p {
                        @if all.is_empty() { "Sessions of every agent that scrollback knows appear here as they are written." }
                        @else { a.link href="/" { "Show all of them" } }
                    }
                }
            }
            @if by_project { (projects(page, &figures, now)) }
            @else if params.get("sort").is_some_and(|sort| sort != "updated") { ol { @for entry in page { (row(entry, false, &figures, now)) } } }
            @else { (days(page, &figures, site, now)) }
            (pages(params, from, shown.len()))
            @if hidden > 0 {
                p.more { a.link href=(params.with("sidechains", Some("1"))) { (words::plural(hidden, "session")) " of sub-agents are not listed: show them" } }
            }
        }
    };
    Made { status: StatusCode::OK, title: "Sessions".to_owned(), nav: Nav::Sessions, body, rest: None }
}

fn is_wanted(entry: &Entry, params: &Params, now: Timestamp) -> bool {
    let row = &entry.row;
    let is_agent = params.get("agent").is_none_or(|agent| row.dialect == agent);
    let is_project = params.get("project").is_none_or(|project| match project {
        "-" => row.project.is_none(),
        project => row.project.as_deref() == Some(project) || project_name(row.project.as_deref()) == project,
    });
    let is_state = params.get("state").is_none_or(|state| match state {
        "running" => is_running(entry, now),
        state => row.state.is_some_and(|own| own.name() == state),
    });
    let days = match params.get("since") {
        Some("1d") => Some(1),
        Some("7d") => Some(7),
        Some("30d") => Some(30),
        _ => None,
    };
    let is_new =
        days.is_none_or(|days| row.updated.is_some_and(|at| now.as_second() - at.as_second() <= days * 86_400));
    is_agent && is_project && is_state && is_new
}

fn sort(entries: &mut [&Entry], params: &Params, figures: &Figures) {
    let cost = |entry: &Entry| figures.cost_of(&entry.row.path).and_then(|cost| cost.own.usd).unwrap_or(-1.0);
    match params.get("sort") {
        Some("cost") => entries.sort_by(|a, b| cost(b).total_cmp(&cost(a))),
        Some("in") => entries.sort_by_key(|entry| std::cmp::Reverse(input(entry, figures))),
        Some("out") => {
            entries.sort_by_key(|entry| std::cmp::Reverse(figures.usage_of(&entry.row).and_then(|usage| usage.output)))
        }
        // They are the newest first.
        _ => {}
    }
}

fn input(entry: &Entry, figures: &Figures) -> Option<u64> {
    figures.usage_of(&entry.row).as_ref().and_then(words::input_with_cache)
}

fn about(entries: &[&Entry]) -> String {
    let mut projects: Vec<&str> = entries.iter().filter_map(|entry| entry.row.project.as_deref()).collect();
    projects.sort_unstable();
    projects.dedup();
    format!("{} in {}", words::grouped(entries.len() as u64), words::plural(projects.len(), "project"))
}

/// Whether an agent is at work in it, or waits for a person.
pub(crate) fn is_running(entry: &Entry, now: Timestamp) -> bool {
    let has_grown = entry.quiet_for(now).is_some_and(|quiet| quiet <= RUNNING_TIME);
    let age = entry.row.updated.map(|at| now.as_second() - at.as_second());
    let is_open = matches!(entry.row.state, Some(State::InterruptedTurn | State::InterruptedPrompt));
    has_grown || (is_open && age.is_some_and(|age| (0..WAITING_SECONDS).contains(&age)))
}

fn running(all: &[&Entry], figures: &Figures, now: Timestamp) -> Markup {
    let running: Vec<&&Entry> = all.iter().filter(|entry| is_running(entry, now)).collect();
    html! {
        // The script fills it while the page is open.
        section.running aria-labelledby="running" data-live="/api/v1/events" hidden[running.is_empty()] {
            h2 id="running" { span.live-dot aria-hidden="true" {} "Running now " span.meta { (running.len()) } }
            @for entry in running.iter().take(RUNNING_SHOWN) { (run(entry, figures, now)) }
        }
    }
}

/// One that is running.
pub(crate) fn run(entry: &Entry, figures: &Figures, now: Timestamp) -> Markup {
    html! {
        article.run data-session=(text::shown(entry.row.id.as_str())) {
            (agent_mark_alone(&entry.row.dialect))
            h3.run-title { a href=(address(entry)) dir="auto" { (text::brief(&entry.row.title, 200)) } }
            p.run-now { (doing(entry, now)) @if let Some(at) = entry.row.updated { span.meta { "last written " (words::ago(at, now)) } } }
            p.run-end {
                span { (project_name(entry.row.project.as_deref())) @if let Some(branch) = &entry.row.git_branch { " · " (text::brief(branch, 40)) } }
                br;
                span.num {
                    @if let Some(ms) = lasted(&entry.row) { (words::took(ms)) }
                    @if let Some(cost) = figures.cost_of(&entry.row.path).and_then(|cost| cost.own.words()) { " · " (cost) }
                }
            }
        }
    }
}

/// What an agent is at, where its last call has no result.
fn doing(entry: &Entry, now: Timestamp) -> Markup {
    html! {
        @match entry.glance.as_ref().and_then(|glance| glance.doing.as_ref()) {
            Some(Doing { is_waiting, call: (name, about) }) => {
                @if *is_waiting { span class="state state-warn" { (icon("wait")) "waits for you" } " " }
                code { (name) } " " code { (about) } " "
            },
            None => { (state(&entry.row, is_running(entry, now))) " " },
        }
    }
}

/// How long a session has lasted.
pub(crate) fn lasted(row: &SessionRow) -> Option<u64> {
    let (start, end) = row.started.zip(row.updated)?;
    u64::try_from(end.as_millisecond() - start.as_millisecond()).ok()
}

fn agents(all: &[&Entry], params: &Params) -> Markup {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter().for_each(|entry| *counts.entry(&entry.row.dialect).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let chosen = params.get("agent");
    html! {
        nav class="chips chips-swipe agents" aria-label="Agent" {
            a.chip href=(params.with("agent", None)) aria-current=[chosen.is_none().then_some("true")] { "Every agent " span.num { (all.len()) } }
            @for (dialect, count) in counts {
                a.chip href=(params.with("agent", Some(dialect))) aria-current=[(chosen == Some(dialect)).then_some("true")] {
                    (agent_mark(dialect)) (agent_name(dialect)) " " span.num { (count) }
                }
            }
        }
    }
}

fn filters(all: &[&Entry], params: &Params) -> Markup {
    let mut projects: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter()
        .filter_map(|entry| entry.row.project.as_deref())
        .for_each(|project| *projects.entry(project).or_default() += 1);
    let mut projects: Vec<(&str, usize)> = projects.into_iter().collect();
    projects.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    const PROJECTS_LISTED: usize = 200;
    let option = |name: &str, value: &str, shown: String| {
        let is_chosen = params.get(name) == Some(value);
        html! { option value=(value) selected[is_chosen] { (shown) } }
    };
    html! {
        form.filters action="/" aria-label="Filter the sessions" {
            @if let Some(agent) = params.get("agent") { input type="hidden" name="agent" value=(agent); }
            @if let Some(by) = params.get("by") { input type="hidden" name="by" value=(by); }
            select name="project" aria-label="Project" {
                option value="" { "Project" }
                @for (project, count) in projects.iter().take(PROJECTS_LISTED) {
                    (option("project", project, format!("{} ({count})", text::brief(&project_name(Some(project)), 40))))
                }
                (option("project", "-", "no project".to_owned()))
            }
            select name="state" aria-label="State" {
                option value="" { "State" }
                (option("state", "running", "running".to_owned()))
                @for state in [State::InterruptedPrompt, State::InterruptedTurn, State::Degraded] {
                    (option("state", state.name(), state_word(state).to_owned()))
                }
            }
            select name="since" aria-label="Time" {
                option value="" { "Time" }
                (option("since", "1d", "Last 24 hours".to_owned()))
                (option("since", "7d", "Last 7 days".to_owned()))
                (option("since", "30d", "Last 30 days".to_owned()))
            }
            button.btn { "Filter" }
        }
    }
}

fn columns(params: &Params) -> Markup {
    let sort = params.get("sort").unwrap_or("updated");
    let column = |name: &str, shown: &str| {
        let is_chosen = (sort == name).then_some("true");
        html! { a href=(params.with("sort", Some(name))) aria-current=[is_chosen] { (shown) } }
    };
    html! {
        nav.cols aria-label="Sort by" {
            span { "Project" } span { "Trace" } (column("in", "In")) (column("out", "Out")) (column("cost", "Cost")) (column("updated", "Updated"))
        }
    }
}

fn days(entries: &[&Entry], figures: &Figures, site: &Site, now: Timestamp) -> Markup {
    let today = now.to_zoned(site.zone.clone());
    let day = |entry: &Entry| entry.row.updated.map(|at| at.to_zoned(site.zone.clone()));
    html! {
        @for group in entries.chunk_by(|a, b| day(a).map(|at| at.date()) == day(b).map(|at| at.date())) {
            @let at = group.first().and_then(|entry| day(entry));
            section.day {
                h2.day-name {
                    @match &at {
                        Some(at) => time datetime=(at.date().to_string()) { (day_name(at, &today)) },
                        None => "No date",
                    }
                }
                ol { @for entry in group { (row(entry, false, figures, now)) } }
            }
        }
    }
}

fn day_name(at: &Zoned, today: &Zoned) -> String {
    let days = today.date().since(at.date()).map(|span| span.get_days()).unwrap_or(i32::MAX);
    match days {
        0 => "Today".to_owned(),
        1 => "Yesterday".to_owned(),
        _ if at.year() == today.year() => at.strftime("%a %-d %b").to_string(),
        _ => at.strftime("%-d %b %Y").to_string(),
    }
}

fn projects(entries: &[&Entry], figures: &Figures, now: Timestamp) -> Markup {
    let mut groups: Vec<(Option<&str>, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        let project = entry.row.project.as_deref();
        match groups.iter_mut().find(|(known, _)| *known == project) {
            Some((_, group)) => group.push(entry),
            None => groups.push((project, vec![entry])),
        }
    }
    html! {
        @for (project, group) in groups {
            section.day {
                h2.day-name title=[project.map(text::shown)] { (project_name(project)) small { (words::plural(group.len(), "session")) } }
                ol { @for entry in group { (row(entry, true, figures, now)) } }
            }
        }
    }
}

/// A row of the list.
pub(crate) fn row(entry: &Entry, shows_branch: bool, figures: &Figures, now: Timestamp) -> Markup {
    let row = &entry.row;
    let counted = figures.trace_of(&row.path);
    let trace = entry.glance.as_ref().map(|glance| &glance.trace).or(counted.as_deref());
    let number = |count: Option<u64>, unit: &str| {
        html! {
            @match count {
                Some(count) => span.num { (words::tokens(count)) span.u { " " (unit) } },
                None => span class="num none" { span aria-hidden="true" { "–" } span.u { " " (unit) " not recorded" } },
            }
        }
    };
    html! {
        li.row data-session=(text::shown(row.id.as_str())) {
            (agent_mark_alone(&row.dialect))
            div.row-main { a.row-title href=(address(entry)) dir="auto" { (text::brief(&row.title, 200)) } " " (state_of(entry, now)) }
            @if shows_branch { span class="row-project mono" { (text::brief(row.git_branch.as_deref().unwrap_or_default(), 60)) } }
            @else if let Some(project) = &row.project {
                a.row-project href={ "/?project=" (text::path_segment(project)) } title=(text::shown(project)) { (project_name(Some(project))) }
            } @else { span class="row-project none" { "no project" } }
            span.row-trace { @if let Some(trace) = trace.filter(|trace| !trace.is_empty()) { (trace.svg()) } }
            (number(input(entry, figures), "in"))
            (number(figures.usage_of(row).and_then(|usage| usage.output), "out"))
            (cost(figures.cost_of(&row.path)))
            @match row.updated {
                Some(at) => time.row-when datetime=(at.to_string()) { (words::ago(at, now)) },
                None => span class="row-when none" { "–" },
            }
        }
    }
}

fn cost(cost: Option<SessionCost>) -> Markup {
    let own = cost.unwrap_or_default().own;
    html! {
        @match (own.words(), own.usd) {
            (Some(words), Some(_)) => span.num { (words) },
            (Some(words), None) => span class="num none" title="no price is known" { (words) span.vh { " no price is known" } },
            (None, _) => span class="num none" { span aria-hidden="true" { "–" } span.u { " cost not known" } },
        }
    }
}

/// How a session stands: one that waits for a person says so.
pub(crate) fn state_of(entry: &Entry, now: Timestamp) -> Markup {
    let doing = entry.glance.as_ref().and_then(|glance| glance.doing.as_ref());
    html! {
        @if doing.is_some_and(|doing| doing.is_waiting) { span class="state state-warn" title="approval-requested" { (icon("wait")) "waits for you" } }
        @else { (state(&entry.row, is_running(entry, now))) }
    }
}

/// How a session stands, where that is worth a word. One in which an agent is at work has not stopped.
pub(crate) fn state(row: &SessionRow, is_running: bool) -> Markup {
    html! {
        @match row.state {
            Some(State::InterruptedTurn | State::InterruptedPrompt) if is_running => {
                span.state { span.live-dot aria-hidden="true" {} "running" }
            },
            Some(State::Degraded) => span class="state state-err" title="degraded" { (icon("warn")) "damaged" },
            Some(State::InterruptedTurn) => span.state title="interrupted-turn" { (state_word(State::InterruptedTurn)) },
            Some(State::InterruptedPrompt) => span.state title="interrupted-prompt" { (state_word(if row.stopped { State::InterruptedTurn } else { State::InterruptedPrompt })) },
            Some(State::Clean) | None => {},
        }
        @if row.parent_session.is_some() { span class="state state-sub" { (icon("agent")) "sub-agent" } }
        @if row.forked_from.is_some() { span.state { (icon("branch")) "fork" } }
        @else if let Some(branches) = row.branch_count.filter(|branches| *branches > 1) { span.state { (icon("branch")) (branches) " branches" } }
    }
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Clean => "clean",
        State::InterruptedPrompt => "unanswered",
        State::InterruptedTurn => "stopped mid-turn",
        State::Degraded => "damaged",
    }
}

/// The address of a session.
pub(crate) fn address(entry: &Entry) -> String {
    format!("/s/{}", text::path_segment(entry.row.id.as_str()))
}

/// A project's name: its folder.
pub(crate) fn project_name(project: Option<&str>) -> String {
    match project {
        Some(project) => text::brief(project.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(project), 60),
        None => "no project".to_owned(),
    }
}

fn pages(params: &Params, from: usize, all: usize) -> Markup {
    let next = from + PAGE_SESSIONS;
    html! {
        @if from > 0 || next < all {
            nav.pager aria-label="Further sessions" {
                @if from > 0 { a.link href=(params.with("from", Some(&from.saturating_sub(PAGE_SESSIONS).to_string()))) { "Newer" } }
                span.meta { (words::grouped(from as u64 + 1)) "–" (words::grouped(next.min(all) as u64)) " of " (words::grouped(all as u64)) }
                @if next < all { a.link href=(params.with("from", Some(&next.to_string()))) { "Older" } }
            }
        }
    }
}
