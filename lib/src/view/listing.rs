//! Every session of a home, each described from the two ends of its file (reading rule 10), the newest ones from all of it.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::model::error::Result;
use crate::model::record::{Kind, RecordId, SessionId, Title, TitleSource, Usage};
use crate::redact::Redactor;
use crate::session::Session;
use crate::session::mask::Mask;
use crate::session::read::open::{FileEnds, ReadOptions};
use crate::session::read::source::Source;
use crate::view::answers::SessionRow;
use crate::view::describe::title;

/// The windows at both ends of a file: the first size, what they grow by, and the last.
const WINDOW_BYTES: u64 = 8 * 1024;
const WINDOW_GROWTH: u64 = 4;
const WINDOW_LIMIT_BYTES: u64 = 1024 * 1024;

/// Most sessions begin with a prompt, in a short line: a quarter of a window shows it, and takes a quarter of the time.
const FIRST_LINES_BYTES: u64 = WINDOW_BYTES / WINDOW_GROWTH;

/// The end shows the newest record: half a window has its line and a few more.
const LAST_LINES_BYTES: u64 = WINDOW_BYTES / 2;

/// A file no larger than the windows after one step is read whole: that costs no more and shows everything.
const WHOLE_BYTES: u64 = WINDOW_BYTES * WINDOW_GROWTH;

/// A list reads no larger session whole: nearly all are smaller, and one alone must not use up what a list may read.
pub const WHOLE_SESSION_BYTES: u64 = 4 * 1024 * 1024;

/// How much a list reads whole in all: a tenth of a second's work, and the work of weeks for most people.
pub const WHOLE_LIST_BYTES: u64 = 64 * 1024 * 1024;

/// How much of each file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Its two ends, as far as they show whose session it is and when it was used. A title that is not near the end is missing.
    Ends,
    /// All of it.
    Whole,
}

/// Describes one session.
pub fn row(source: &Source, reading: &ReadOptions<'_>, depth: Depth) -> Result<SessionRow> {
    let whole = || Session::open(source, reading)?.described(reading.project);
    if depth == Depth::Whole {
        return whole();
    }
    match FileEnds::open(source, reading)? {
        None => whole(),
        Some(ends) if ends.size_bytes <= WHOLE_BYTES => ends.whole()?.described(reading.project),
        Some(ends) => from_ends(&ends, source, reading),
    }
}

/// A title as it may be shown.
fn shown(title: &Title, reading: &ReadOptions<'_>) -> Title {
    let text = |redactor: &Arc<Redactor>| redactor.text(&title.text).text.into_owned();
    Title { text: reading.mask.map_or_else(|| title.text.clone(), text), ..title.clone() }
}

/// What the two ends of a file show.
fn from_ends(ends: &FileEnds<'_>, source: &Source, reading: &ReadOptions<'_>) -> Result<SessionRow> {
    let beginning = |window| {
        let session = ends.start(window)?;
        session.first_prompt().map(|prompt| (session, prompt))
    };
    let (begin, prompt) = grow(FIRST_LINES_BYTES, ends.size_bytes, beginning, |window, (session, prompt)| {
        let has_prompt = || session.records().any(|record| record.kind() == Kind::User);
        let has_prompt = prompt.is_typed || (window >= WINDOW_BYTES && has_prompt());
        session.cwd().is_some() && session.started().is_some() && has_prompt
    })?;
    let end = grow(
        LAST_LINES_BYTES,
        ends.size_bytes,
        |window| ends.end(window),
        |_, session| session.head().is_some() && session.updated().is_some(),
    )?;
    let mut row = begin.described_with(prompt.text, ends.size_bytes, reading.project)?;
    row.size_bytes += source.size_of_companions();
    row.updated = end.updated().max(row.updated);
    row.head = end.head().map(|head| RecordId(head.id().into_owned()));
    row.git_branch = end.git_branch().map(|branch| end.shown(branch)).or(row.git_branch);
    row.agent_version = end.agent_version().map(|version| end.shown(version)).or(row.agent_version);
    // Others may have answered in the middle.
    row.models.clear();
    row.summaries.extend(end.summaries());
    let marked = source.dialect.traits().title_mark.map_or(Ok(None), |mark| ends.last_title(mark))?;
    for title in end.title().into_iter().chain(&marked) {
        entitle_from_end(&mut row, &shown(title, reading));
    }
    Ok(row)
}

/// Gives a session the title near its end, unless the one that it has counts more.
fn entitle_from_end(row: &mut SessionRow, last: &Title) {
    if last.source >= row.title_source {
        (row.title, row.title_source) = (title(&last.text), last.source);
    }
}

/// A session's id, from as little of its file as shows it.
pub(crate) fn id(source: &Source, reading: &ReadOptions<'_>) -> Result<SessionId> {
    let Some(ends) = FileEnds::open(source, reading)? else { return Ok(Session::open(source, reading)?.id()) };
    let shows_id = |session: &Session| session.states_its_id() || session.records().len() > 0;
    Ok(grow(WHOLE_BYTES, ends.size_bytes, |window| ends.start(window), |_, session| shows_id(session))?.id())
}

/// The beginning of a session, as far as it shows enough.
pub(crate) fn beginning(
    source: &Source,
    reading: &ReadOptions<'_>,
    enough: impl Fn(&Session) -> bool,
) -> Result<Session> {
    let Some(ends) = FileEnds::open(source, reading)? else { return Session::open(source, reading) };
    grow(FIRST_LINES_BYTES, ends.size_bytes, |window| ends.start(window), |_, session| enough(session))
}

/// The summary of an untitled session that another session of its folder holds, where the agent writes summaries so.
pub fn summary_elsewhere(session: &Session) -> Option<String> {
    let mask = session.mask.as_ref().map(Mask::redactor);
    let (source, reading) = (&session.source, ReadOptions { mask, ..ReadOptions::plain(session.tail.now) });
    let head = session
        .head()
        .filter(|_| session.title().is_none() && source.dialect.traits().has_foreign_summaries)?;
    let is_beside = |other: &Source| other.path != source.path && other.path.parent() == source.path.parent();
    source.neighbours().into_iter().filter(is_beside).find_map(|other| {
        let ends = FileEnds::open(&other, &reading).ok()??;
        let windows = [ends.start(WHOLE_BYTES), ends.end(WINDOW_BYTES)];
        windows.into_iter().filter_map(Result::ok).find_map(|window| {
            let mut summaries = window.summaries().into_iter();
            summaries.find(|(of, _)| *of == head.id()).map(|(_, summary)| summary)
        })
    })
}

/// Gives sessions without a title the summaries that are in other sessions' files.
pub fn entitle(rows: &mut [&mut SessionRow]) {
    let stored = rows.iter_mut().flat_map(|row| std::mem::take(&mut row.summaries));
    let summaries: HashMap<String, String> = stored.collect();
    for row in rows.iter_mut().filter(|row| row.title_source < TitleSource::Summary) {
        if let Some(summary) = row.head.as_ref().and_then(|head| summaries.get(head.as_str())) {
            (row.title, row.title_source) = (title(summary), TitleSource::Summary);
        }
    }
}

/// Takes out the kept copies of sessions that are there, under another name: they are older generations of those.
pub fn take_kept_copies(sessions: &mut Vec<(Box<SessionRow>, Source)>) -> Vec<(Box<SessionRow>, Source)> {
    if sessions.iter().all(|(row, _)| !row.kept) {
        return Vec::new();
    }
    let key = |row: &SessionRow| (row.dialect.clone(), row.id.clone());
    let is_there = |row: &SessionRow| !row.kept && row.parent_session.is_none();
    let there: HashSet<_> = sessions.iter().filter(|(row, _)| is_there(row)).map(|(row, _)| key(row)).collect();
    let (copies, others) =
        std::mem::take(sessions).into_iter().partition(|(row, _)| row.kept && there.contains(&key(row)));
    *sessions = others;
    copies
}

/// The sessions that a list reads whole.
pub fn to_read_whole(sessions: &mut [(Box<SessionRow>, Source)]) -> Vec<&mut (Box<SessionRow>, Source)> {
    let affordable = affordable(&sessions.iter().map(|(row, _)| &**row).collect::<Vec<_>>());
    let affordable: HashSet<usize> = affordable.into_iter().collect();
    let chosen = sessions.iter_mut().enumerate().filter(|(at, _)| affordable.contains(at));
    chosen.map(|(_, session)| session).collect()
}

/// Which of these a list reads whole: the newest ones, until the next would be too much in all. Those that are known whole
/// already, and those that are too large, are passed over.
fn affordable(rows: &[&SessionRow]) -> Vec<usize> {
    let mut newest_first: Vec<usize> = (0..rows.len()).collect();
    newest_first.sort_by(|a, b| newest_first_order(rows[*a], rows[*b]));
    let is_wanted = |at: &usize| !is_known_whole(rows[*at]) && rows[*at].size_bytes <= WHOLE_SESSION_BYTES;
    let mut read_bytes = 0;
    let fits = |at: &usize| {
        read_bytes += rows[*at].size_bytes;
        read_bytes <= WHOLE_LIST_BYTES
    };
    newest_first.into_iter().filter(is_wanted).take_while(fits).collect()
}

/// Replaces a description by that of the whole session. A title from another session's file is not in it.
pub fn replace(row: &mut SessionRow, whole: SessionRow) {
    let from_ends = std::mem::replace(row, whole);
    if from_ends.title_source > row.title_source {
        (row.title, row.title_source) = (from_ends.title, from_ends.title_source);
    }
}

/// Whether a description is that of the whole session: without all records there is no count of them.
pub fn is_known_whole(row: &SessionRow) -> bool {
    row.record_count.is_some()
}

/// Puts sessions into the order of a list. A source has some hundred bytes: each is moved once.
pub fn sort_newest_first(sessions: &mut Vec<(Box<SessionRow>, Source)>) {
    let order = |a: &(Box<SessionRow>, Source), b: &(Box<SessionRow>, Source)| newest_first_order(&a.0, &b.0);
    if sessions.is_sorted_by(|a, b| order(a, b).is_le()) {
        return;
    }
    let mut places: Vec<usize> = (0..sessions.len()).collect();
    places.sort_by(|a, b| order(&sessions[*a], &sessions[*b]));
    let mut unsorted: Vec<Option<_>> = std::mem::take(sessions).into_iter().map(Some).collect();
    sessions.extend(places.into_iter().filter_map(|place| unsorted[place].take()));
}

/// Whether nobody has said anything in a session, if all of it was read.
pub(crate) fn is_empty(row: &SessionRow) -> bool {
    row.first_prompt.is_none() && row.title_source == TitleSource::Id && row.message_count == Some(0)
}

/// The order of a list. Sessions of the same instant are in the order of their paths.
fn newest_first_order(a: &SessionRow, b: &SessionRow) -> std::cmp::Ordering {
    b.updated.cmp(&a.updated).then_with(|| a.path.cmp(&b.path))
}

/// Counts each request of these sessions once: a copy of a session that has no mark, as those of Claude Code's
/// `--fork-session`, repeats the names of its requests. A fork has not made those of the session that it names as its origin;
/// of all others, the session that started first has made them, then the one with the smaller id, as in a count.
pub fn mark_copied_requests(rows: &mut [&mut SessionRow]) {
    let age = |row: &SessionRow| (row.started.is_none(), row.started);
    rows.sort_by(|a, b| age(a).cmp(&age(b)).then_with(|| (a.id.as_str(), &a.path).cmp(&(b.id.as_str(), &b.path))));
    let origins: HashSet<SessionId> = rows.iter().filter_map(|row| row.forked_from.clone()).collect();
    let names = |row: &SessionRow| row.named_requests.names().collect::<HashSet<u64>>();
    let origins = rows.iter().filter(|row| origins.contains(&row.id)).map(|row| (row.id.clone(), names(row)));
    let origins: HashMap<SessionId, HashSet<u64>> = origins.collect();
    let mut known: HashSet<u64> = HashSet::new();
    for row in rows {
        let requests = std::mem::take(&mut row.named_requests);
        let of_origin = row.forked_from.as_ref().and_then(|origin| origins.get(origin));
        let is_copied = |name: &u64| of_origin.is_some_and(|names| names.contains(name));
        let repeated: Vec<bool> = requests.names().map(|name| is_copied(&name) || !known.insert(name)).collect();
        if repeated.contains(&true) {
            let repeated = requests.usages().zip(repeated).filter(|(_, is_repeated)| *is_repeated);
            row.copied_usage = Usage::sum(row.copied_usage.into_iter().chain(repeated.map(|(usage, _)| usage)));
        }
    }
}

/// Reads larger and larger windows until they show enough.
fn grow<Seen>(
    first: u64,
    size: u64,
    read: impl Fn(u64) -> Result<Seen>,
    enough: impl Fn(u64, &Seen) -> bool,
) -> Result<Seen> {
    let mut window = first;
    loop {
        let seen = read(window)?;
        if enough(window, &seen) || window >= size || window >= WINDOW_LIMIT_BYTES {
            return Ok(seen);
        }
        window = if window < WINDOW_BYTES { WINDOW_BYTES } else { window * WINDOW_GROWTH };
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// What the two ends of a session show.
    fn from_ends(path: &str, hour: u64, size_bytes: u64) -> SessionRow {
        let row = json!({
            "id": path, "dialect": "native", "path": path, "title": path, "titleSource": "prompt",
            "updated": format!("2026-11-15T{hour:02}:00:00Z"), "sizeBytes": size_bytes,
        });
        serde_json::from_value(row).unwrap()
    }

    fn chosen(rows: &[SessionRow]) -> Vec<&str> {
        let chosen = affordable(&rows.iter().collect::<Vec<_>>());
        chosen.into_iter().map(|at| rows[at].path.as_str()).collect()
    }

    #[test]
    fn the_newest_sessions_are_read_whole_until_it_is_too_much() {
        let rows: Vec<SessionRow> = (0..20).map(|hour| from_ends(&format!("s{hour:02}"), hour, 4 * MIB)).collect();
        let newest: Vec<String> = (4..20).rev().map(|hour| format!("s{hour:02}")).collect();
        assert_eq!(chosen(&rows), newest, "sixteen times 4 MiB, whatever the order they come in");
        let smaller = from_ends("old", 0, 1);
        assert!(
            !chosen(&[rows, vec![smaller]].concat()).contains(&"old"),
            "an older one is never known before a newer one"
        );
    }

    #[test]
    fn what_is_large_or_known_costs_nothing() {
        let mut known = from_ends("known", 3, 4 * MIB);
        known.record_count = Some(2);
        let rows = [from_ends("large", 5, 4 * MIB + 1), known, from_ends("b", 1, MIB), from_ends("a", 1, MIB)];
        assert_eq!(chosen(&rows), ["a", "b"], "of the same instant, in the order of paths");
    }

    #[test]
    fn a_request_counts_in_the_session_that_started_first() {
        let usage = |output| Usage { output: Some(output), ..Usage::default() };
        let started = |path: &str, hour: i64| SessionRow {
            started: Some(Timestamp::from_second(hour * 3600).unwrap()),
            ..from_ends(path, 9, 1)
        };
        let mut rows = [started("a copy", 9), started("original", 8)];
        rows[0].named_requests = [(1, usage(5)), (2, usage(7))].into_iter().collect();
        rows[1].named_requests = [(1, usage(5))].into_iter().collect();
        mark_copied_requests(&mut rows.iter_mut().collect::<Vec<_>>());
        assert_eq!(rows.map(|row| row.copied_usage), [Some(usage(5)), None]);
        for hour in [7, 8, 9] {
            let mut rows = [started("a fork", 8), started("z original", hour)];
            rows[0].forked_from = Some(SessionId::from("z original"));
            rows.iter_mut().for_each(|row| row.named_requests = [(1, usage(5))].into_iter().collect());
            mark_copied_requests(&mut rows.iter_mut().collect::<Vec<_>>());
            assert_eq!(rows.map(|row| row.copied_usage), [Some(usage(5)), None], "the original started at {hour}:00");
        }
    }
}
