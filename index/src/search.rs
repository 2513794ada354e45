//! Finds the parts of sessions that match a question, by the index as far as it knows, by reading the rest; and shows them.
//!
//! ```text
//! sessions in scope ─ what the session decides (decide.rs) ─▶ groups with the same question
//!     known to the index ─▶ SQL        unknown, long outputs, expressions ─▶ read and compared
//!                        └──────▶ matches ◀──────┘ ─▶ repeats joined ─▶ by session ─▶ the best ones read again for their text
//! ```

use std::cmp::Reverse;

use hashbrown::HashMap;
use jiff::Timestamp;
use memchr::memmem;
use rayon::prelude::*;
use scrollback::Source;
use scrollback::model::regular_file::{self, Links};
use scrollback::model::{RecordId, SessionId};
use scrollback::session::{RecordRef, Session};
use scrollback::view::SessionRow;
use scrollback::view::texts::{SearchText, SearchTexts, TextRole};
use serde::Serialize;

use crate::archive::Archive;
use crate::card::Depth;
use crate::decide::{self, Left};
use crate::index::{Known, Match, Place, SourceId};
use crate::part::{labels, repeat};
use crate::query::{DocumentFacts, DocumentWords, Expr, Label, Labels, Query, suggestion};
use crate::snippet::{Piece, lines_around, snippet};
use crate::words::fold;

/// How many of the newest matches are ranked and grouped: more than anybody reads.
const MATCHES: usize = 5_000;

/// How many long tool outputs are read beyond what is indexed of them, in bytes, before an answer is late.
const CUT_BYTES: u64 = 64 * 1024 * 1024;

/// A larger file is not looked at as a whole before it is read as a session.
const LOOKED_AT_BYTES: u64 = 256 * 1024 * 1024;

/// How wide a snippet is, in characters.
const SNIPPET_CHARS: usize = 160;

/// The order of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// The session that was updated last comes first.
    #[default]
    Newest,
    /// The session that was updated first comes first.
    Oldest,
    /// The session with the best match comes first.
    Relevance,
}

/// How much of an answer is wanted.
#[derive(Debug, Clone, Copy)]
pub struct SearchOptions {
    /// The order of sessions.
    pub sort: Sort,
    /// How many sessions.
    pub sessions: usize,
    /// How many matches of each.
    pub hits: usize,
    /// How many lines before and after a match; `None` is one line around it.
    pub context: Option<usize>,
}

/// A session with matches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundSession {
    /// The session.
    pub session: SessionRow,
    /// Its best matches.
    pub hits: Vec<Hit>,
    /// How many more there are.
    pub more: usize,
}

/// A part that matches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Its record.
    pub record: RecordId,
    /// The message that the record belongs to.
    pub message: RecordId,
    /// Its number in the record.
    pub part: usize,
    /// Whose text it is.
    pub role: TextRole,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The file that the record is in.
    pub path: String,
    /// The first byte of the record.
    pub offset: u64,
    /// The bytes of the record.
    pub length: u32,
    /// The text around the match.
    pub snippet: Vec<Piece>,
    /// What it is: the words of the filter `is:`.
    pub labels: Vec<&'static str>,
    /// Other sessions with a copy of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<SessionId>,
}

/// The answer to a search.
#[derive(Debug, Default)]
pub struct Answer {
    /// The sessions that match, in order.
    pub sessions: Vec<FoundSession>,
    /// How many more match.
    pub more_sessions: usize,
    /// How many bytes were read because the index did not know them.
    pub read_bytes: u64,
    /// How many bytes of long tool outputs were not searched.
    pub unsearched_bytes: u64,
    /// A word that occurs nowhere, and one that does.
    pub suggestion: Option<(String, String)>,
    /// Sessions that could not be read.
    pub unreadable: Vec<scrollback::Error>,
}

/// A match, wherever it was found.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The session, by its position in scope.
    session: usize,
    record: u32,
    part: u32,
    repeat: u64,
    at: Option<i64>,
    labels: Labels,
    rank: f64,
}

/// A session in scope and what is left to ask of its parts.
struct Asked<'a> {
    at: usize,
    row: &'a SessionRow,
    source: &'a Source,
    left: Option<Expr>,
}

/// What reading a session for a question gives.
type Scanned = scrollback::Result<Vec<Found>>;

impl Archive {
    /// Searches these sessions. What the index does not know yet is read.
    pub fn search(&mut self, query: &Query, scope: &[(SessionRow, Source)], options: SearchOptions) -> Answer {
        let mut answer = Answer::default();
        let mut found = self.titles(query, scope);
        let asked: Vec<Asked<'_>> = scope
            .iter()
            .enumerate()
            .filter_map(|(at, (row, source))| match decide::for_session(query.expr(), row) {
                Left::Decided(false) => None,
                Left::Decided(true) => Some(Asked { at, row, source, left: None }),
                Left::Question(left) => Some(Asked { at, row, source, left: Some(left) }),
            })
            .collect();
        let known = self.known();
        let is_known =
            |asked: &Asked<'_>, known: &Known| known.depth >= Depth::Text && asked.source.stamp() == Some(known.stamp);
        let (mut indexed, mut unknown) = (Vec::new(), Vec::new());
        for asked in asked {
            match known.get(&Place::of(asked.source)).filter(|known| is_known(&asked, known)) {
                Some(known) if !query.has_regex() => indexed.push((asked, known)),
                Some(_) | None => unknown.push(asked),
            }
        }
        let by_index = self.by_index(&indexed);
        match by_index {
            Some(matches) => {
                let cut = self.in_cut_outputs(query, &indexed, &matches, &mut answer);
                found.extend(
                    matches.into_iter().filter(|(_, is_cut)| !(cut.is_some() && *is_cut)).map(|(found, _)| found),
                );
                found.extend(cut.into_iter().flatten());
            }
            // The index failed: everything is read.
            None => unknown.extend(indexed.into_iter().map(|(asked, _)| asked)),
        }
        found.extend(self.by_reading(query, &unknown, |_, _| true, &mut answer));
        answer.read_bytes += unknown.iter().map(|asked| asked.row.size_bytes).sum::<u64>();
        self.show(query, scope, found, options, &mut answer);
        if answer.sessions.is_empty() {
            answer.suggestion = self.suggestion(query);
        }
        answer
    }

    /// Sessions whose titles match, if the question asks for titles.
    fn titles(&self, query: &Query, scope: &[(SessionRow, Source)]) -> Vec<Found> {
        if !query.wants_titles() {
            return Vec::new();
        }
        let matching = scope.iter().enumerate().filter(|(_, (row, _))| {
            let facts = DocumentFacts::of_session(row);
            query.matches(&DocumentWords::of(&row.title), &row.title, &facts)
        });
        matching
            .map(|(session, (row, _))| Found {
                session,
                record: TITLE,
                part: 0,
                repeat: session as u64,
                at: row.updated.map(|at| at.as_microsecond()),
                labels: Labels::default(),
                rank: 0.0,
            })
            .collect()
    }

    /// Asks the index; `None` if it fails. Each match says whether some of its text is not indexed.
    fn by_index(&mut self, asked: &[(Asked<'_>, &Known)]) -> Option<Vec<(Found, bool)>> {
        let mut groups: HashMap<String, (Option<Expr>, Vec<SourceId>)> = HashMap::new();
        for (asked, known) in asked {
            let group = groups.entry(format!("{:?}", asked.left)).or_insert_with(|| (asked.left.clone(), Vec::new()));
            group.1.push(known.id);
        }
        let positions: HashMap<SourceId, usize> = asked.iter().map(|(asked, known)| (known.id, asked.at)).collect();
        let mut found = Vec::new();
        for (left, sources) in groups.into_values() {
            let question = Query::of(left.unwrap_or(Expr::And(Vec::new())));
            let matches = self.ask(|index| index.search(&question, &sources, MATCHES))?;
            found.extend(matches.into_iter().filter_map(|one| {
                let Match { source, record, part, repeat, at, labels, rank, is_cut } = one;
                let session = *positions.get(&source)?;
                Some((Found { session, record, part, repeat, at, labels, rank }, is_cut))
            }));
        }
        Some(found)
    }

    /// Reads long tool outputs beyond what is indexed of them, unless there are too many. Then the answer says so.
    fn in_cut_outputs(
        &self,
        query: &Query,
        indexed: &[(Asked<'_>, &Known)],
        matches: &[(Found, bool)],
        answer: &mut Answer,
    ) -> Option<Vec<Found>> {
        // Filters alone are decided whatever the text is.
        query.terms().next()?;
        let cut: Vec<&(Asked<'_>, &Known)> = indexed.iter().filter(|(_, known)| known.cut_bytes > 0).collect();
        let bytes: u64 = cut.iter().map(|(_, known)| known.cut_bytes).sum();
        if bytes > CUT_BYTES && !matches.is_empty() {
            answer.unsearched_bytes = bytes;
            return None;
        }
        let needed = query.needed_words();
        let asked: Vec<Asked<'_>> = cut
            .par_iter()
            .filter(|(asked, _)| may_have(asked.source, &needed))
            .map(|(asked, _)| asked.again())
            .collect();
        let is_cut = |role: TextRole, bytes: usize| role == TextRole::Tool && bytes > crate::part::OUTPUT_LIMIT_BYTES;
        let found = self.by_reading(query, &asked, is_cut, answer);
        answer.read_bytes += bytes;
        Some(found)
    }

    /// Reads sessions and compares each part that `is_asked`.
    fn by_reading(
        &self,
        query: &Query,
        asked: &[Asked<'_>],
        is_asked: impl Fn(TextRole, usize) -> bool + Sync,
        answer: &mut Answer,
    ) -> Vec<Found> {
        let reader = self.reader();
        let scan = |asked: &Asked<'_>| scan(query, asked, &reader.session(asked.source)?, &is_asked);
        let scanned: Vec<Scanned> = asked.par_iter().map(scan).collect();
        let mut found = Vec::new();
        for scanned in scanned {
            match scanned {
                Ok(matches) => found.extend(matches),
                Err(error) => answer.unreadable.push(error),
            }
        }
        found
    }

    /// Groups matches by session, and reads the best ones again for their text.
    fn show(
        &self,
        query: &Query,
        scope: &[(SessionRow, Source)],
        found: Vec<Found>,
        options: SearchOptions,
        answer: &mut Answer,
    ) {
        let (found, repeats) = joined(found, scope);
        let mut by_session: HashMap<usize, Vec<Found>> = HashMap::new();
        for one in found {
            by_session.entry(one.session).or_default().push(one);
        }
        let mut groups: Vec<(usize, Vec<Found>)> = by_session.into_iter().collect();
        for (_, matches) in &mut groups {
            matches.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.at.cmp(&a.at)).then(a.record.cmp(&b.record)));
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
        let reader = self.reader();
        let shown: Vec<scrollback::Result<FoundSession>> = groups
            .par_iter()
            .map(|(at, matches)| {
                let (row, source) = &scope[*at];
                let hits = hits(query, &reader.session(source)?, matches, options, &repeats)?;
                let more = matches.len().saturating_sub(hits.len());
                Ok(FoundSession { session: row.clone(), hits, more })
            })
            .collect();
        for session in shown {
            match session {
                Ok(session) => answer.sessions.push(session),
                Err(error) => answer.unreadable.push(error),
            }
        }
    }

    /// A word of the question that occurs nowhere, and the nearest one that does.
    fn suggestion(&mut self, query: &Query) -> Option<(String, String)> {
        let words = query.terms().filter(|term| !term.is_prefix).flat_map(|term| term.words.clone());
        for word in words.collect::<Vec<_>>() {
            if self.ask(|index| index.has_word(&word))? {
                continue;
            }
            let beginning: String = word.chars().take(1).collect();
            let words = self.ask(|index| index.words_like(&beginning))?;
            if let Some(near) = suggestion(&word, words.iter().map(String::as_str)) {
                return Some((word, near));
            }
        }
        None
    }
}

/// Stands for the title in the place of a record.
const TITLE: u32 = u32::MAX;

impl<'a> Asked<'a> {
    fn again(&self) -> Asked<'a> {
        Asked { at: self.at, row: self.row, source: self.source, left: self.left.clone() }
    }
}

/// Whether the words could be in a file: a look at its bytes costs a fraction of reading it as a session.
fn may_have(source: &Source, words: &[&str]) -> bool {
    let Ok(mut bytes) = regular_file::read(&source.path, LOOKED_AT_BYTES, Links::Follow) else { return true };
    // What is compressed, in a database, or written in escapes cannot be seen.
    let is_plain = bytes.first() == Some(&b'{') && memmem::find(&bytes, b"\\u").is_none();
    if !is_plain {
        return true;
    }
    if bytes.is_ascii() {
        bytes.make_ascii_lowercase();
        return words.iter().all(|word| memmem::find(&bytes, word.as_bytes()).is_some());
    }
    let folded = fold(&String::from_utf8_lossy(&bytes));
    words.iter().all(|word| memmem::find(folded.as_bytes(), word.as_bytes()).is_some())
}

/// Compares each part of a session.
fn scan(
    query: &Query,
    asked: &Asked<'_>,
    session: &Session,
    is_asked: &(impl Fn(TextRole, usize) -> bool + Sync),
) -> Scanned {
    let mut texts = SearchTexts::new(session);
    let mut found = Vec::new();
    for record in session.records() {
        let standing = texts.standing(record);
        for text in texts.of(record)? {
            if !is_asked(text.role, text.text.len()) {
                continue;
            }
            let labels = labels(standing, &text);
            let facts = facts(asked.row, record, &text, labels);
            if query.matches(&DocumentWords::of(&text.text), &text.text, &facts) {
                let at = record.at().map(|at| at.as_microsecond());
                found.push(Found {
                    session: asked.at,
                    record: record.order() as u32,
                    part: text.part as u32,
                    repeat: repeat(&record.id(), at, &text),
                    at,
                    labels,
                    rank: 0.0,
                });
            }
        }
    }
    Ok(found)
}

fn facts<'d>(row: &'d SessionRow, record: RecordRef<'_>, text: &'d SearchText, labels: Labels) -> DocumentFacts<'d> {
    DocumentFacts {
        agent: &row.dialect,
        project: row.project.as_deref(),
        role: text.role.name(),
        tool: text.tool.as_deref(),
        files: &text.files,
        model: text.model.as_deref(),
        branch: row.git_branch.as_deref(),
        at: record.at(),
        labels,
        is_title: false,
    }
}

/// Joins copies of a part in several sessions: the session that began first has it, the others are listed.
fn joined(found: Vec<Found>, scope: &[(SessionRow, Source)]) -> (Vec<Found>, HashMap<u64, Vec<SessionId>>) {
    let age = |one: &Found| {
        let row = &scope[one.session].0;
        (row.started, row.id.0.clone())
    };
    let mut by_repeat: HashMap<u64, Vec<Found>> = HashMap::new();
    for one in found {
        by_repeat.entry(one.repeat).or_default().push(one);
    }
    let (mut kept, mut repeats) = (Vec::new(), HashMap::new());
    for (repeat, mut copies) in by_repeat {
        copies.sort_by_cached_key(age);
        // Copies in one session are matches of their own.
        let first = copies[0].session;
        let (own, others): (Vec<Found>, Vec<Found>) = copies.into_iter().partition(|one| one.session == first);
        kept.extend(own);
        let mut ids: Vec<SessionId> = others.iter().map(|one| scope[one.session].0.id.clone()).collect();
        ids.dedup();
        if !ids.is_empty() {
            repeats.insert(repeat, ids);
        }
    }
    (kept, repeats)
}

/// The best matches of a session, with their text.
fn hits(
    query: &Query,
    session: &Session,
    matches: &[Found],
    options: SearchOptions,
    repeats: &HashMap<u64, Vec<SessionId>>,
) -> scrollback::Result<Vec<Hit>> {
    let mut texts = SearchTexts::new(session);
    let mut hits = Vec::new();
    for found in matches.iter().take(options.hits) {
        let is_title = found.record == TITLE;
        let record = match is_title {
            true => session.records().next(),
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
        hits.push(hit(query, record, text.as_ref(), &texts, options, found.labels, also_in));
    }
    Ok(hits)
}

fn hit(
    query: &Query,
    record: RecordRef<'_>,
    text: Option<&SearchText>,
    texts: &SearchTexts<'_>,
    options: SearchOptions,
    labels: Labels,
    also_in: Vec<SessionId>,
) -> Hit {
    let place = record.place();
    let shown = text.map(|text| text.text.as_str()).unwrap_or_default();
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
        also_in,
    }
}
