//! What is found in all sessions, as `search --json` has it.

use axum::response::Response;
use scrollback_index::query::Query;
use scrollback_index::{SearchOptions, Sort};

use super::sessions::{check_dialect, invalid_query, is_of};
use super::{Ask, List, Problem, number_cursor};
use crate::pages::search::QUERY_LIMIT_BYTES;

/// How many sessions one answer has, how many at most, and how far a cursor goes.
const USUAL: usize = 20;
const MOST: usize = 200;
const FARTHEST: usize = 2_000;

/// How many matches of a session are in an answer.
const HITS: usize = 50;

/// More lines around a match are a whole file.
const MOST_CONTEXT: usize = 100;

/// The sessions with matches.
pub(super) fn search(ask: &Ask) -> Result<Response, Problem> {
    let typed = ask.params.get("q").ok_or_else(|| Problem::usage("q is missing: what to find"))?;
    if typed.len() > QUERY_LIMIT_BYTES {
        return Err(Problem::usage(format!("q is longer than {QUERY_LIMIT_BYTES} bytes")));
    }
    let now = (ask.site.now)();
    let query = Query::parse(typed, now, &ask.site.zone).map_err(|error| invalid_query(&error))?;
    let sort = match ask.params.get("sort") {
        None | Some("newest") => Sort::Newest,
        Some("oldest") => Sort::Oldest,
        Some("relevance") => Sort::Relevance,
        Some(other) => return Err(Problem::usage(format!("sort: {other:?} is not newest, oldest or relevance"))),
    };
    let (limit, from) = (ask.limit(USUAL, MOST)?, number_cursor(ask)?.min(FARTHEST));
    let (since, until) = (ask.time("since")?, ask.time("until")?);
    check_dialect(ask)?;
    let session = ask.params.get("session").map(|name| super::entry(&ask.site, name)).transpose()?;
    let shelf = ask.site.catalogue.shelf();
    let entries = shelf.entries.iter().filter(|entry| {
        is_of(&entry.row, ask)
            && session
                .as_ref()
                .is_none_or(|session| session.source.path == entry.source.path && session.row.id == entry.row.id)
            && since.is_none_or(|since| entry.row.updated.is_some_and(|at| at >= since))
            && until.is_none_or(|until| entry.row.updated.is_some_and(|at| at < until))
    });
    let scope: Vec<_> = entries.map(|entry| (entry.row.clone(), entry.source.clone())).collect();
    let context = match (ask.params.get("context"), ask.params.number("context")) {
        (Some(typed), None) => return Err(Problem::usage(format!("context: {typed:?} is not a number"))),
        (_, lines) => lines.map(|lines| lines.min(MOST_CONTEXT)),
    };
    let options = SearchOptions { sort, sessions: from + limit, hits: HITS, context };
    let answer = (ask.site.open_archive)().given_up_by(ask.given_up.clone()).search(&query, &scope, options);
    let all = answer.sessions.len() + answer.more_sessions;
    let items: Vec<_> = answer.sessions.into_iter().skip(from).collect();
    let behind = from + items.len();
    let next = (behind < all.min(FARTHEST) && !items.is_empty()).then(|| behind.to_string());
    ask.json(&List { items, next })
}
