//! Search, with the language of the command line.

use axum::http::StatusCode;
use maud::{Markup, html};
use scrollback::view::SessionRow;
use scrollback::view::texts::TextRole;
use scrollback_index::query::Query;
use scrollback_index::{FoundSession, Hit, SearchOptions, Sort};

use super::home::project_name;
use super::{Made, Nav, Params};
use crate::render::icon::{agent_mark_alone, chevron, icon};
use crate::render::{text, words};
use crate::site::Site;

/// How many sessions and matches a page shows.
const SESSIONS: usize = 20;
const HITS: usize = 4;

/// A longer question is none that a person asks.
const QUERY_LIMIT_BYTES: usize = 2_000;

/// The page.
pub(crate) fn page(params: &Params, site: &Site) -> Made {
    let asked = params.get("q").unwrap_or_default();
    let asked = &asked[..asked.floor_char_boundary(QUERY_LIMIT_BYTES)];
    let (status, found) = match asked.trim().is_empty() {
        true => (StatusCode::OK, html! {}),
        false => answer(asked, params, site),
    };
    let body = html! {
        h1 class="page-title vh" { "Search" }
        (form(asked, params))
        (found)
    };
    let title = if asked.is_empty() { "Search".to_owned() } else { format!("{} · Search", text::brief(asked, 80)) };
    Made { status, title, nav: Nav::Search, body }
}

fn form(asked: &str, params: &Params) -> Markup {
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
                div class="filters filters-many list" {
                    nav class="seg end" aria-label="Order" { (order("newest", "Newest")) (order("relevance", "Best")) (order("oldest", "Oldest")) }
                }
            }
        }
    }
}

fn answer(asked: &str, params: &Params, site: &Site) -> (StatusCode, Markup) {
    let query = match Query::parse(asked, (site.now)(), &site.zone) {
        Ok(query) => query,
        Err(error) => {
            let what = html! {
                p.notice { (icon("warn")) span { (text::brief(&error.message, 300)) @if let Some(hint) = &error.hint { ". " (text::brief(hint, 300)) } } }
            };
            return (StatusCode::BAD_REQUEST, what);
        }
    };
    let shelf = site.catalogue.shelf();
    let scope: Vec<_> = shelf.entries.iter().map(|entry| (entry.row.clone(), entry.source.clone())).collect();
    let sort = match params.get("sort") {
        Some("relevance") => Sort::Relevance,
        Some("oldest") => Sort::Oldest,
        _ => Sort::Newest,
    };
    let options = SearchOptions { sort, sessions: SESSIONS, hits: HITS, context: None };
    let answer = (site.open_archive)().search(&query, &scope, options);
    let hits: usize = answer.sessions.iter().map(|found| found.hits.len() + found.more).sum();
    let now = (site.now)();
    let shown = html! {
        div class="chips active" {
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
                        Some((word, near)) => { "“" (text::brief(word, 80)) "” occurs nowhere. " a.link href={ "/search?q=" (text::path_segment(near)) } { "Did you mean “" (text::brief(near, 80)) "”?" } },
                        None => "Use fewer words, a beginning (wor*), or OR.",
                    }
                }
            }
        }
        div.found { @for found in &answer.sessions { (session(found, now, site)) } }
    };
    (StatusCode::OK, shown)
}

fn session(found: &FoundSession, now: jiff::Timestamp, site: &Site) -> Markup {
    let row = &found.session;
    let address = format!("/s/{}", text::path_segment(row.id.as_str()));
    let count = found.hits.len() + found.more;
    html! {
        section.found-session {
            header.found-head {
                (agent_mark_alone(&row.dialect))
                h2 dir="auto" { a href=(address) { (text::brief(&row.title, 200)) } }
                span.found-count { (words::plural(count, "hit")) }
                (about(row, now))
            }
            ol.hits {
                @for found in &found.hits { (hit(found, &address, site)) }
                @if found.more > 0 { li.hit-more { a.link href=(address) { (found.more) " more in this session" } } }
            }
        }
    }
}

fn about(row: &SessionRow, now: jiff::Timestamp) -> Markup {
    html! {
        p.meta {
            span { (project_name(row.project.as_deref())) }
            @if let Some(branch) = &row.git_branch { span { (text::brief(branch, 60)) } }
            @if let Some(at) = row.updated { time datetime=(at.to_string()) { (words::ago(at, now)) } }
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
