//! Search, with the language of the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use maud::{Markup, html};
use scrollback::view::SessionRow;
use scrollback::view::texts::TextRole;
use scrollback_index::query::Query;
use scrollback_index::{FoundSession, Hit, SearchOptions, Sort};

use super::home::{is_running, project_name, state};
use super::{Made, Nav, Params, Rest, Takes, hole};
use crate::catalogue::Found;
use crate::render::icon::{agent_mark_alone, agent_name, chevron, icon};
use crate::render::{text, words};
use crate::site::Site;

/// How many sessions and matches a page shows, and how many if more are asked for.
const SESSIONS: usize = 20;
const MOST_SESSIONS: usize = 200;
const HITS: usize = 4;
const HITS_OF_ONE: usize = 200;

/// Where matches are looked for: what an address calls it, what people do, and what the query does.
const PLACES: [(&str, &str, &str); 6] = [
    ("prompts", "prompts", "role:user"),
    ("answers", "answers", "role:assistant"),
    ("thinking", "thinking", "is:thinking"),
    ("tools", "tool calls and results", "role:tool"),
    ("failures", "failures", "is:error"),
    ("titles", "titles", "in:title"),
];

/// The times that can be chosen.
const TIMES: [(&str, &str); 3] = [("1d", "Last 24 hours"), ("7d", "Last 7 days"), ("30d", "Last 30 days")];

/// How many projects the menu lists.
const PROJECTS_LISTED: usize = 200;

/// A longer question is none that a person asks: a page cuts it, the API refuses it.
pub(crate) const QUERY_LIMIT_BYTES: usize = 2_000;

/// Whether what is asked cannot be answered by the index alone: then every session is read.
pub(crate) fn reads_sessions(params: &Params, site: &Site) -> bool {
    let query = Query::parse(asked(params), (site.now)(), &site.zone);
    query.is_ok_and(|query| reads_for(&query, site))
}

fn reads_for(query: &Query, site: &Site) -> bool {
    query.has_regex() || !site.catalogue.is_indexed()
}

/// What was asked.
fn asked(params: &Params) -> &str {
    let asked = params.get("q").unwrap_or_default();
    &asked[..asked.floor_char_boundary(QUERY_LIMIT_BYTES)]
}

/// The page: the question is shown, and what was found follows.
pub(crate) fn page(params: &Params, site: &Site) -> Made {
    let takes = [
        ("in", Takes::One(&PLACES.map(|(name, ..)| name))),
        ("since", Takes::One(&TIMES.map(|(name, _)| name))),
        ("sort", Takes::One(&["newest", "relevance", "oldest"])),
        ("sessions", Takes::Number),
    ];
    if let Some(wrong) = params.wrong(&takes) {
        return wrong;
    }
    let asked = asked(params);
    let (status, found, rest) = match question(asked, params, site) {
        _ if asked.trim().is_empty() => (StatusCode::OK, html! {}, None),
        Err(wrong) => (StatusCode::BAD_REQUEST, wrong, None),
        Ok(query) => {
            let (reads_sessions, params) = (reads_for(&query, site), params.clone());
            let fill = move |site: &Site, given_up: &Arc<AtomicBool>| vec![answer(&query, &params, given_up, site)];
            (StatusCode::OK, hole(), Some(Rest { reads_sessions, fill: Box::new(fill) }))
        }
    };
    let body = html! {
        h1 class="page-title vh" { "Search" }
        (form(asked, params, site))
        (found)
    };
    let title = if asked.is_empty() { "Search".to_owned() } else { format!("{} · Search", text::brief(asked, 80)) };
    Made { status, title, nav: Nav::Search, body, rest }
}

fn form(asked: &str, params: &Params, site: &Site) -> Markup {
    let sort = params.get("sort").unwrap_or("newest");
    let order = |name: &str, shown: &str| html! { a href=(params.with("sort", Some(name))) aria-current=[(sort == name).then_some("true")] { (shown) } };
    let tips = [
        ("repeated hour", "both words"),
        ("\"repeated hour\"", "the phrase"),
        ("tide*", "words that begin so"),
        ("hour -spring", "the one without the other"),
        ("is:error tool:bash", "failed calls of a tool; also agent: project: role: file: model: branch: since: until:"),
        ("/offset\\w+/", "a regular expression, slower"),
    ];
    html! {
        form action="/search" role="search" {
            div.ask {
                div.find {
                    (icon("search"))
                    input type="search" name="q" value=(asked) aria-label="Search every session" autocomplete="off" spellcheck="false" maxlength="2000";
                    kbd.js-only aria-hidden="true" { "/" }
                }
                button class="btn btn-main" { "Search" }
            }
            details.tips open[asked.is_empty()] {
                summary { (chevron()) "What can be asked" }
                dl { @for (example, what) in tips { dt { code { (example) } } dd { (what) } } }
            }
            @if !asked.is_empty() {
                @if let Some(sort) = params.get("sort") { input type="hidden" name="sort" value=(sort); }
                div class="filters filters-many list" {
                    (menus(params, site))
                    nav class="seg end" aria-label="Order" { (order("newest", "Newest")) (order("relevance", "Best")) (order("oldest", "Oldest")) }
                }
            }
        }
    }
}

/// What narrows the answer, with the numbers of sessions that there are.
fn menus(params: &Params, site: &Site) -> Markup {
    let shelf = site.catalogue.shelf();
    let counted = |of: &dyn Fn(&SessionRow) -> Option<String>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        shelf
            .entries
            .iter()
            .filter_map(|entry| of(&entry.row))
            .for_each(|name| *counts.entry(name).or_default() += 1);
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    };
    let menu = |name: &str, label: &str, options: Vec<(String, String)>| {
        let chosen = params.get(name);
        html! {
            select name=(name) aria-label=(label) {
                option value="" { (label) }
                @for (value, shown) in &options { option value=(value) selected[chosen == Some(value)] { (shown) } }
            }
        }
    };
    let agents = counted(&|row| Some(row.dialect.clone()));
    let agents = agents
        .into_iter()
        .map(|(agent, count)| (agent.clone(), format!("{} ({count})", agent_name(&agent))));
    let projects = counted(&|row| row.project.clone()).into_iter().take(PROJECTS_LISTED);
    let projects =
        projects.map(|(project, count)| (project.clone(), format!("{} ({count})", project_name(Some(&project)))));
    let places = PLACES.map(|(name, shown, _)| (name.to_owned(), shown.to_owned()));
    let times = TIMES.map(|(name, shown)| (name.to_owned(), shown.to_owned()));
    html! {
        (menu("agent", "Agent", agents.collect()))
        (menu("project", "Project", projects.collect()))
        (menu("in", "Where", places.to_vec()))
        (menu("since", "Time", times.to_vec()))
        button.btn { "Filter" }
    }
}

/// What was chosen in the menus, each with the way without it.
fn chosen(params: &Params) -> Markup {
    let place = |name: &str| PLACES.iter().find(|(known, ..)| *known == name).map(|(_, shown, _)| (*shown).to_owned());
    let time = |name: &str| TIMES.iter().find(|(known, _)| *known == name).map(|(_, shown)| shown.to_lowercase());
    let chips = [
        ("agent", params.get("agent").map(|agent| agent_name(agent).to_owned())),
        ("project", params.get("project").map(|project| project_name(Some(project)))),
        ("in", params.get("in").and_then(place)),
        ("since", params.get("since").and_then(time)),
        ("session", params.get("session").map(|session| format!("session {}", text::short_id(session)))),
    ];
    html! {
        @for (name, shown) in chips {
            @if let Some(shown) = shown {
                a.chip href=(params.with(name, None)) aria-current="true" { (text::brief(&shown, 80)) " " (icon("x")) span.vh { "remove" } }
            }
        }
    }
}

/// The question with what the menus add to it.
fn narrowed(asked: &str, params: &Params) -> String {
    let place = params.get("in").and_then(|name| PLACES.iter().find(|(known, ..)| *known == name));
    let time = params.get("since").filter(|name| TIMES.iter().any(|(known, _)| known == name));
    let filters = place
        .map(|(.., filter)| (*filter).to_owned())
        .into_iter()
        .chain(time.map(|time| format!("since:{time}")));
    let filters = filters.collect::<Vec<_>>().join(" ");
    if filters.is_empty() { asked.to_owned() } else { format!("({asked}) {filters}") }
}

/// What is looked for, or what is wrong with the question.
fn question(asked: &str, params: &Params, site: &Site) -> Result<Query, Markup> {
    let parse = |asked: &str| Query::parse(asked, (site.now)(), &site.zone);
    // What is wrong is said of what was typed.
    parse(asked).and_then(|_| parse(&narrowed(asked, params))).map_err(|error| {
        let piece = |range: std::ops::Range<usize>| text::shown(asked.get(range).unwrap_or_default()).into_owned();
        html! {
            // The place is one of what was typed.
            p.caret tabindex="0" { (piece(0..error.at.start)) b { (piece(error.at.clone())) } (piece(error.at.end..asked.len())) }
            p.notice { (icon("warn")) span { (text::brief(&error.message, 300)) @if let Some(hint) = &error.hint { ". " (text::brief(hint, 300)) } } }
        }
    })
}

/// What was found. It stops reading sessions when the question is given up.
fn answer(query: &Query, params: &Params, given_up: &Arc<AtomicBool>, site: &Site) -> Markup {
    let shelf = site.catalogue.shelf();
    let is_wanted = |row: &SessionRow| {
        let is_agent = params.get("agent").is_none_or(|agent| row.dialect == agent);
        let is_project = params.get("project").is_none_or(|project| row.project.as_deref() == Some(project));
        is_agent && is_project && params.get("session").is_none_or(|session| row.id.as_str() == session)
    };
    let entries = shelf.entries.iter().filter(|entry| is_wanted(&entry.row));
    let scope: Vec<_> = entries.map(|entry| (entry.row.clone(), entry.source.clone())).collect();
    let sort = match params.get("sort") {
        Some("relevance") => Sort::Relevance,
        Some("oldest") => Sort::Oldest,
        _ => Sort::Newest,
    };
    let hits = if params.get("session").is_some() { HITS_OF_ONE } else { HITS };
    let sessions = params.number("sessions").unwrap_or(SESSIONS).clamp(1, MOST_SESSIONS);
    let options = SearchOptions { sort, sessions, hits, context: None };
    let answer = (site.open_archive)().given_up_by(given_up.clone()).search(query, &scope, options);
    let hits: usize = answer.sessions.iter().map(|found| found.hits.len() + found.more).sum();
    let now = (site.now)();
    html! {
        div class="chips active" {
            (chosen(params))
            span.meta role="status" {
                b { (words::plural(hits, "hit")) } " in " (words::plural(answer.sessions.len(), "session"))
                @if answer.more_sessions > 0 { "; " (words::plural(answer.more_sessions, "more session")) " match" }
            }
        }
        @if answer.sessions.is_empty() {
            div.empty {
                h2 { "Nothing matches" }
                p {
                    @match &answer.suggestion {
                        Some((word, near)) => { "“" (text::brief(word, 80)) "” is in none of these sessions. " a.link href={ "/search?q=" (text::path_segment(near)) } { "Did you mean “" (text::brief(near, 80)) "”?" } },
                        None => "Use fewer words, a beginning (wor*), or OR.",
                    }
                }
            }
        }
        div.found { @for found in &answer.sessions { (session(found, params, now, site)) } }
        @if answer.more_sessions > 0 && sessions < MOST_SESSIONS {
            p.more { a.link href=(params.with("sessions", Some(&(sessions * 3).to_string()))) { "Show more sessions" } }
        }
    }
}

fn session(found: &FoundSession, params: &Params, now: jiff::Timestamp, site: &Site) -> Markup {
    let row = &found.session;
    let address = format!("/s/{}", text::path_segment(row.id.as_str()));
    let count = found.hits.len() + found.more;
    let is_running =
        matches!(site.catalogue.shelf().find(row.id.as_str()), Found::One(entry) if is_running(entry, now));
    html! {
        section.found-session {
            header.found-head {
                (agent_mark_alone(&row.dialect))
                h2 dir="auto" { a href=(address) { (text::brief(&row.title, 200)) } }
                span.found-count { (words::plural(count, "hit")) }
                (about(found, is_running, now))
            }
            ol.hits {
                @for found in &found.hits { (hit(found, &address, site)) }
                @if found.more > 0 { li.hit-more { a.link href=(params.with("session", Some(row.id.as_str()))) { (words::grouped(found.more as u64)) " more in this session" } } }
            }
        }
    }
}

fn about(found: &FoundSession, is_running: bool, now: jiff::Timestamp) -> Markup {
    let row = &found.session;
    let copies: BTreeSet<&str> = found.hits.iter().flat_map(|hit| &hit.also_in).map(|id| id.as_str()).collect();
    html! {
        p.meta {
            span { (project_name(row.project.as_deref())) }
            @if let Some(branch) = &row.git_branch { span { (text::brief(branch, 60)) } }
            @if let Some(at) = row.updated { time datetime=(at.to_string()) { (words::ago(at, now)) } }
            (state(row, is_running))
            @if !copies.is_empty() { span { "also in " (copies.iter().take(3).map(|id| text::short_id(id)).collect::<Vec<_>>().join(", ")) } }
        }
    }
}

fn hit(hit: &Hit, address: &str, site: &Site) -> Markup {
    let who = match (hit.role, &hit.tool) {
        (_, Some(tool)) => text::brief(tool, 40),
        (TextRole::User, None) => "You".to_owned(),
        (role, None) => role.name().to_owned(),
    };
    let message = hit.message.as_str();
    let link = format!("{address}?at={}#m-{}", text::path_segment(message), text::anchor(message));
    html! {
        li.hit {
            span.hit-where { (who) }
            p.hit-text dir="auto" {
                a href=(link) {
                    @for piece in &hit.snippet { @if piece.is_match { mark { (text::shown(&piece.text)) } } @else { (text::shown(&piece.text)) } }
                }
            }
            span.hit-tags {
                @for label in &hit.labels { span.state { (label) } }
                @if let Some(at) = hit.at { time datetime=(at.to_string()) { (at.to_zoned(site.zone.clone()).strftime("%-d %b %H:%M")) } }
            }
        }
    }
}
