//! Every session of a home, each described from the two ends of its file (reading rule 10).

use std::fs;

use hashbrown::HashMap;

use crate::dialect::layout::Format;
use crate::model::error::Result;
use crate::model::record::{Kind, RecordId, SessionId, TitleSource};
use crate::session::Session;
use crate::session::read::open::{FileEnds, ReadOptions};
use crate::session::read::source::Source;
use crate::view::answers::SessionRow;
use crate::view::describe::title;

/// The windows at both ends of a file: the first size, what they grow by, and the last.
const WINDOW_BYTES: u64 = 8 * 1024;
const WINDOW_GROWTH: u64 = 4;
const WINDOW_LIMIT_BYTES: u64 = 1024 * 1024;

/// A file no larger than the windows after one step is read whole: that costs no more and shows everything.
const WHOLE_BYTES: u64 = WINDOW_BYTES * WINDOW_GROWTH;

/// Agents that repeat the title do so at least this often: most titles are found here.
pub(crate) const NEAR_TITLE_BYTES: u64 = 64 * 1024;

/// How much of each file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Its two ends.
    Windows,
    /// All of it.
    Whole,
}

/// Describes one session.
pub fn row(source: &Source, reading: &ReadOptions<'_>, depth: Depth) -> Result<SessionRow> {
    let whole = || Session::open(source, reading)?.described(reading.project);
    let small = || fs::metadata(&source.path).is_ok_and(|metadata| metadata.len() <= WHOLE_BYTES);
    if depth == Depth::Whole || !matches!(source.layout.format, Format::Lines) || small() {
        return whole();
    }
    let Some(ends) = FileEnds::open(source, reading)? else { return whole() };
    let has_prompt = |session: &Session| session.records().any(|record| record.kind() == Kind::User);
    let begin = grow(
        ends.size_bytes,
        |window| ends.start(window),
        |session, _| session.cwd().is_some() && session.started().is_some() && has_prompt(session),
    )?;
    let end = grow(
        ends.size_bytes,
        |window| ends.end(window),
        |session, window| {
            let titled = session.title().is_some() || window >= source.dialect.traits().title_window_bytes;
            session.head().is_some() && session.updated().is_some() && titled
        },
    )?;
    let mut row = begin.described(reading.project)?;
    row.size_bytes += source.size_of_companions();
    row.updated = end.updated().max(row.updated);
    row.head = end.head().map(|head| RecordId(head.id().into_owned()));
    row.git_branch = end.git_branch().map(str::to_owned).or(row.git_branch);
    row.agent_version = end.agent_version().map(str::to_owned).or(row.agent_version);
    for model in end.models() {
        if !row.models.contains(model) {
            row.models.push(model.clone());
        }
    }
    row.summaries.extend(end.summaries_of_others().iter().cloned());
    // A title that was given long ago is between the windows.
    let mark = source.dialect.traits().title_mark.filter(|_| end.title().is_none());
    let windows = [NEAR_TITLE_BYTES, WINDOW_LIMIT_BYTES];
    let between = mark.map(|mark| ends.last_title(mark, windows)).transpose()?.flatten();
    if let Some(last) = end.title().cloned().or(between).filter(|last| last.source >= row.title_source) {
        (row.title, row.title_source) = (title(&last.text), last.source);
    }
    Ok(row)
}

/// A session's id, from as little of its file as shows it.
pub(crate) fn id(source: &Source, reading: &ReadOptions<'_>) -> Result<SessionId> {
    let Some(ends) = FileEnds::open(source, reading)? else { return Ok(Session::open(source, reading)?.id()) };
    let shows_id = |session: &Session, _| session.states_its_id() || session.records().len() > 0;
    Ok(grow(ends.size_bytes, |window| ends.start(window.max(WHOLE_BYTES)), shows_id)?.id())
}

/// The summary of an untitled session that another session of its folder holds, where the agent writes summaries so.
pub fn summary_elsewhere(session: &Session) -> Option<String> {
    let (source, reading) = (&session.source, ReadOptions::plain(session.tail.now));
    let head = session
        .head()
        .filter(|_| session.title().is_none() && source.dialect.traits().has_foreign_summaries)?;
    let is_beside = |other: &Source| other.path != source.path && other.path.parent() == source.path.parent();
    source.neighbours().into_iter().filter(is_beside).find_map(|other| {
        let ends = FileEnds::open(&other, &reading).ok()??;
        let windows = [ends.start(WHOLE_BYTES), ends.end(WINDOW_BYTES)];
        windows.into_iter().filter_map(Result::ok).find_map(|window| {
            let mut summaries = window.summaries_of_others().iter();
            summaries.find(|(of, _)| *of == head.id()).map(|(_, summary)| summary.clone())
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

/// Reads larger and larger windows until they show enough.
fn grow(size: u64, read: impl Fn(u64) -> Result<Session>, enough: impl Fn(&Session, u64) -> bool) -> Result<Session> {
    let mut window = WINDOW_BYTES;
    loop {
        let session = read(window)?;
        if enough(&session, window) || window >= size || window >= WINDOW_LIMIT_BYTES {
            return Ok(session);
        }
        window *= WINDOW_GROWTH;
    }
}
