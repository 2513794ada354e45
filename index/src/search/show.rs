//! From matches to an answer: copies are joined, matches grouped by session and put in order, and the best ones read again for their text.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;
use scrollback::model::{RecordId, SessionId};
use scrollback::session::{RecordRef, Session};
use scrollback::view::SessionRow;
use scrollback::view::texts::{SearchText, SearchTexts, TextRole};
use scrollback::{Error as ReadError, Source};

use super::{Found, TITLE};
use crate::answer::{Answer, FoundSession, Hit, SearchOptions, Sort};
use crate::archive::Archive;
use crate::index::Bookmark;
use crate::query::{Label, Labels, Query};
use crate::snippet::{lines_around, snippet};

/// How wide a snippet is, in characters.
const SNIPPET_CHARS: usize = 160;

impl Archive {
    /// Groups matches by session, and reads the best ones again for their text.
    pub(super) fn show(
        &mut self,
        query: &Query,
        scope: &[(Box<SessionRow>, Source)],
        found: Vec<Found>,
        options: SearchOptions,
        answer: &mut Answer,
    ) {
        let (found, repeats) = joined(found, scope);
        let session_of = generations(scope);
        let mut by_session: HashMap<usize, Vec<Found>> = HashMap::new();
        for one in found {
            by_session.entry(session_of(one.session)).or_default().push(one);
        }
        let mut groups: Vec<(usize, Vec<Found>)> = by_session.into_iter().collect();
        for (_, matches) in &mut groups {
            matches.sort_by(|a, b| {
                a.rank.total_cmp(&b.rank).then(b.at.cmp(&a.at)).then((a.record, a.part).cmp(&(b.record, b.part)))
            });
        }
        let updated = |at: usize| scope[at].0.updated;
        match options.sort {
            Sort::Newest => groups.sort_by_key(|(at, _)| (Reverse(updated(*at)), *at)),
            Sort::Oldest => groups.sort_by_key(|(at, _)| (updated(*at), *at)),
            Sort::Relevance => groups.sort_by(|(a, one), (b, other)| {
                let best = |matches: &[Found]| matches.first().map_or(0.0, |best| best.rank);
                best(one)
                    .total_cmp(&best(other))
                    .then_with(|| (Reverse(updated(*a)), a).cmp(&(Reverse(updated(*b)), b)))
            }),
        }
        answer.more_sessions = groups.len().saturating_sub(options.sessions);
        groups.truncate(options.sessions);
        let best = |matches: &[Found]| matches[..options.hits.min(matches.len())].to_vec();
        let read: HashSet<usize> =
            groups.iter().flat_map(|(_, matches)| best(matches)).map(|one| one.session).collect();
        let bookmarks: HashMap<usize, Option<Bookmark>> =
            read.into_iter().map(|at| (at, self.bookmark(&scope[at].1))).collect();
        let reader = self.reader();
        let shown: Vec<(FoundSession, Vec<ReadError>)> = groups
            .par_iter()
            .map(|(at, matches)| {
                let (mut hits, mut unreadable): (Vec<(usize, Hit)>, _) = (Vec::new(), Vec::new());
                let mut left: Vec<(usize, Found)> = best(matches).into_iter().enumerate().collect();
                // Older generations of it are in files of their own.
                while let Some((_, Found { session: of, .. })) = left.first().copied() {
                    let (own, others) = left.into_iter().partition(|(_, one)| one.session == of);
                    left = others;
                    let (row, source) = &scope[of];
                    let session = reader.session(source, bookmarks.get(&of).and_then(Option::as_ref));
                    let read =
                        session.and_then(|session| self::hits(query, &session, &row.title, own, options, &repeats));
                    match read {
                        Ok(read) => hits.extend(read),
                        Err(error) => unreadable.push(error),
                    }
                }
                hits.sort_by_key(|(place, _)| *place);
                let hits: Vec<Hit> = hits.into_iter().map(|(_, hit)| hit).collect();
                let more = matches.len().saturating_sub(hits.len());
                (FoundSession { session: (*scope[*at].0).clone(), hits, more }, unreadable)
            })
            .collect();
        for (session, unreadable) in shown {
            // A session of which nothing could be read has no match to show.
            if unreadable.is_empty() || !session.hits.is_empty() {
                answer.sessions.push(session);
            }
            answer.unreadable.extend(unreadable);
        }
    }
}

/// The session under which matches of each one are shown: those of kept copies under the session that is there.
pub(super) fn generations(scope: &[(Box<SessionRow>, Source)]) -> impl Fn(usize) -> usize {
    let kept: HashSet<&str> = scope.iter().filter(|(row, _)| row.kept).map(|(row, _)| row.id.as_str()).collect();
    let there = scope.iter().enumerate().filter(|(_, (row, _))| !row.kept && kept.contains(row.id.as_str()));
    let there: HashMap<(&str, &str), usize> =
        there.rev().map(|(at, (row, _))| ((row.dialect.as_str(), row.id.as_str()), at)).collect();
    move |at| {
        let row = &scope[at].0;
        if !row.kept {
            return at;
        }
        there.get(&(row.dialect.as_str(), row.id.as_str())).copied().unwrap_or(at)
    }
}

/// Joins copies of a part in several sessions: the session that began first has it, the others are listed. What a session still has is
/// its own, and not that of its kept copies.
fn joined(mut found: Vec<Found>, scope: &[(Box<SessionRow>, Source)]) -> (Vec<Found>, HashMap<u64, Vec<SessionId>>) {
    let session_of = generations(scope);
    let age = |one: &Found| {
        let (row, shown_under) = (&scope[one.session].0, &scope[session_of(one.session)].0);
        (shown_under.started, row.id.0.clone(), row.kept, row.path.clone())
    };
    found.sort_by_key(|one| one.repeat);
    let (mut kept, mut repeats) = (Vec::with_capacity(found.len()), HashMap::new());
    for copies in found.chunk_by_mut(|one, other| one.repeat == other.repeat) {
        if copies.len() > 1 {
            copies.sort_by_cached_key(age);
        }
        // Copies in one session are matches of their own.
        let first = copies[0].session;
        let (own, others): (Vec<Found>, Vec<Found>) = copies.iter().partition(|one| one.session == first);
        kept.extend(own);
        // An older generation of a session has its id.
        let own_id = &scope[first].0.id;
        let ids = others.iter().map(|one| &scope[one.session].0.id).filter(|id| *id != own_id);
        let mut ids: Vec<SessionId> = ids.cloned().collect();
        ids.dedup();
        if !ids.is_empty() {
            repeats.insert(others[0].repeat, ids);
        }
    }
    (kept, repeats)
}

/// Matches of a file with their text, and with their places among all of its session.
fn hits(
    query: &Query,
    session: &Session,
    title: &str,
    matches: Vec<(usize, Found)>,
    options: SearchOptions,
    repeats: &HashMap<u64, Vec<SessionId>>,
) -> scrollback::Result<Vec<(usize, Hit)>> {
    let mut texts = SearchTexts::new(session);
    let mut hits = Vec::new();
    for (place, found) in matches {
        let is_title = found.record == TITLE;
        let record = match is_title {
            true => texts.titled(title),
            false => session.records().nth(found.record as usize),
        };
        // The session may have changed since.
        let Some(record) = record else { continue };
        let text = match is_title {
            true => None,
            false => texts.of(record)?.into_iter().find(|text| text.part == found.part as usize),
        };
        if text.is_none() && !is_title {
            continue;
        }
        let also_in = repeats.get(&found.repeat).cloned().unwrap_or_default();
        let shown = text.as_ref().map_or(title, |text| text.text.as_str());
        let hit = Hit { also_in, ..hit(query, record, text.as_ref(), shown, &texts, options, found.labels) };
        hits.push((place, hit));
    }
    Ok(hits)
}

fn hit(
    query: &Query,
    record: RecordRef<'_>,
    text: Option<&SearchText>,
    shown: &str,
    texts: &SearchTexts<'_>,
    options: SearchOptions,
    labels: Labels,
) -> Hit {
    let place = record.place();
    Hit {
        record: RecordId(record.id().into_owned()),
        message: texts.message(record),
        part: text.map_or(0, |text| text.part),
        role: text.map_or(TextRole::User, |text| text.role),
        tool: text.and_then(|text| text.tool.clone()),
        at: record.at(),
        path: record.file().to_string_lossy().into_owned(),
        offset: place.offset,
        length: place.length,
        snippet: match options.context {
            Some(lines) => lines_around(shown, query, lines),
            None => snippet(shown, query, SNIPPET_CHARS),
        },
        labels: labels.iter().map(Label::name).collect(),
        also_in: Vec::new(),
    }
}
