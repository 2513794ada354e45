//! Readable pages for what went wrong: not found, ambiguous, deleted, damaged, refused. What goes wrong when the beginning of a page has
//! been sent is said in the page.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::{Made, Nav};
use crate::catalogue::Entry;
use crate::render::icon::agent_mark_alone;
use crate::render::{text, words};
use crate::site::Site;

/// More sessions with the same beginning are not listed.
const CANDIDATES: usize = 50;

/// No session has this id.
pub(crate) fn no_session(id: &str) -> Made {
    problem(
        StatusCode::NOT_FOUND,
        "No such session",
        html! {
            p { "No session here has an id that begins with " code { (text::brief(id, 80)) } "." }
            p { "It may have been deleted, or it belongs to a project that is not shown." }
        },
    )
}

/// No page has this address.
pub(crate) fn no_page() -> Made {
    problem(StatusCode::NOT_FOUND, "No such page", html! { p { "This address leads nowhere." } })
}

/// The address is no text.
pub(crate) fn bad_address() -> Made {
    problem(StatusCode::BAD_REQUEST, "Not an address", html! { p { "This address is not UTF-8 when it is decoded." } })
}

/// Other questions take too long.
pub(crate) fn busy() -> Markup {
    late(
        "Other searches are running",
        html! {
            p { "A regular expression is looked for in every session, one question at a time, and others came first." }
            p { "Reload this page in a few seconds." }
        },
    )
}

/// What went wrong when the beginning of the page had been sent.
pub(crate) fn late(title: &str, why: Markup) -> Markup {
    html! { div.empty { h2 { (title) } (why) } }
}

/// The session's files cannot be read, when the beginning of the page has been sent.
pub(crate) fn late_unreadable(error: &scrollback::Error) -> Markup {
    let (_, title, why) = reason(error);
    late(title, why)
}

/// A parameter of the address has a value that it does not take.
pub(crate) fn wrong_parameter(name: &str, value: &str, takes: &str) -> Made {
    problem(
        StatusCode::BAD_REQUEST,
        "Not an address",
        html! {
            p { code { (text::brief(name, 40)) "=" (text::brief(value, 80)) } " is not understood." }
            p { "Known: " (takes) "." }
        },
    )
}

/// The session's files cannot be read, or it has no such record.
pub(crate) fn unreadable(error: &scrollback::Error) -> Made {
    let (status, title, why) = reason(error);
    problem(status, title, why)
}

fn reason(error: &scrollback::Error) -> (StatusCode, &'static str, Markup) {
    let because = html! { p { (text::brief(&error.to_string(), 500)) } };
    match error {
        scrollback::Error::NoRecord(_) => (StatusCode::NOT_FOUND, "This session has no such record", because),
        scrollback::Error::AmbiguousRecord { .. } => {
            (StatusCode::MULTIPLE_CHOICES, "Several records have an id that begins so", because)
        }
        scrollback::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => (
            StatusCode::GONE,
            "This session is gone",
            html! { p { "Its file has been moved or deleted since the list was made." } },
        ),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "This session cannot be read", because),
    }
}

/// A session without anything to show.
pub(crate) fn empty(entry: &Entry) -> Made {
    problem(StatusCode::OK, NOTHING, no_message(entry))
}

/// The same, when the beginning of the page has been sent.
pub(crate) fn late_empty(entry: &Entry) -> Markup {
    late(NOTHING, no_message(entry))
}

const NOTHING: &str = "Nothing to read";

fn no_message(entry: &Entry) -> Markup {
    html! {
        p { "The file " code { (text::brief(&entry.row.path, 300)) } " has no message yet, or none that can be read." }
    }
}

/// Several sessions have an id that begins so.
pub(crate) fn ambiguous(id: &str, candidates: &[&Entry], site: &Site) -> Made {
    let now = (site.now)();
    let body = html! {
        h1.page-title { "Which one?" }
        p.meta { (words::plural(candidates.len(), "session")) " have an id that begins with " code { (text::brief(id, 80)) } "." }
        div.list {
            ol {
                @for entry in candidates.iter().take(CANDIDATES) {
                    li.row {
                        (agent_mark_alone(&entry.row.dialect))
                        div.row-main { a.row-title href=(address(entry, candidates)) dir="auto" { (text::brief(&entry.row.title, 200)) } }
                        span.row-project { code { (text::short_id(entry.row.id.as_str())) } }
                        span {} span {} span {} span {}
                        span.row-when { @if let Some(at) = entry.row.updated { (words::ago(at, now)) } }
                    }
                }
            }
        }
    };
    Made { status: StatusCode::MULTIPLE_CHOICES, title: "Which session?".to_owned(), nav: Nav::Other, body, rest: None }
}

/// The whole id; with its dialect, if others have the same.
fn address(entry: &Entry, candidates: &[&Entry]) -> String {
    let is_shared = candidates.iter().filter(|other| other.row.id == entry.row.id).count() > 1;
    let id = text::path_segment(entry.row.id.as_str());
    if is_shared { format!("/s/{}:{id}", entry.row.dialect) } else { format!("/s/{id}") }
}

fn problem(status: StatusCode, title: &str, what: Markup) -> Made {
    let body = html! {
        div.empty { h1 { (title) } (what) p { a.link href="/" { "See every session" } } }
    };
    Made { status, title: title.to_owned(), nav: Nav::Other, body, rest: None }
}
