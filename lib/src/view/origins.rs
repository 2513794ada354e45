//! The sessions that one session can have copied requests from, where only that one is shown.
//!
//! A list has all sessions and compares them (`listing.rs`). Here, those that can matter are read, and no more than a list reads whole.

use jiff::Timestamp;
use rayon::prelude::*;

use crate::session::Session;
use crate::session::mask::Mask;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::view::answers::SessionRow;
use crate::view::listing::{self, Depth, WHOLE_LIST_BYTES, WHOLE_SESSION_BYTES};

/// Counts in the description of a session the requests that it copied, as a list does; `find` finds the session with an id.
pub fn mark_copied_requests(session: &Session, row: &mut SessionRow, find: &dyn Fn(&str) -> Option<Source>) {
    if row.named_requests.names().next().is_none() {
        return;
    }
    let mask = session.mask.as_ref().map(Mask::redactor);
    let reading = ReadOptions { mask, find, ..ReadOptions::plain(session.tail.now) };
    let whole = |source: Source| listing::row(&source, &reading, Depth::Whole).ok();
    let mut left = WHOLE_LIST_BYTES;
    let is_affordable = |source: &Source| {
        let affordable = left.checked_sub(source.size_bytes());
        left = affordable.unwrap_or(0);
        affordable.is_some()
    };
    let affordable = origins(session, find).into_iter().take_while(is_affordable);
    let mut origins: Vec<SessionRow> = affordable.filter_map(whole).collect();
    let mut rows: Vec<&mut SessionRow> = origins.iter_mut().collect();
    rows.push(row);
    listing::mark_copied_requests(&mut rows);
}

/// The session that it names as its origin. Where the agent can copy without a mark, those of its folder that begin with the same
/// record, as a copy does.
fn origins(session: &Session, find: &dyn Fn(&str) -> Option<Source>) -> Vec<Source> {
    let source = &session.source;
    let is_affordable = |other: &Source| other.path != source.path && other.size_bytes() <= WHOLE_SESSION_BYTES;
    if let Some(origin) = session.forked_from() {
        // Others find a file of it by its name; the requests of a session are in all of its files.
        let whole = source.neighbours().into_iter().find(|other| other.name() == origin);
        return whole.or_else(|| find(origin)).into_iter().filter(is_affordable).collect();
    }
    let Some(begin) = first(session).filter(|_| source.dialect.traits().copies_unmarked) else { return Vec::new() };
    let now = session.tail.now;
    let beside = source.neighbours().into_iter().filter(|other| other.path.parent() == source.path.parent());
    let beside: Vec<Source> = beside.filter(is_affordable).collect();
    let begins_alike = |other: &Source| {
        let reading = ReadOptions::plain(now);
        let beginning = listing::beginning(other, &reading, |window| first(window).is_some());
        beginning.ok().and_then(|other| first(&other)) == Some(begin.clone())
    };
    beside.into_par_iter().filter(begins_alike).collect()
}

/// The id and the instant of the first record that has one.
fn first(session: &Session) -> Option<(String, Timestamp)> {
    session.records().find_map(|record| Some((record.id().into_owned(), record.at()?)))
}
