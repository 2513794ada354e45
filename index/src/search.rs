//! Finds the parts of sessions that match a question: by the index as far as it knows them, by reading the rest, which `ranking.rs` ranks.
//! `show.rs` makes the answer; if there is none, `suggest.rs` finds a word that was probably meant.
//!
//! ```text
//! sessions in scope ─ what the session decides (decide.rs) ─▶ groups with the same question
//!     known to the index ─▶ SQL        unknown, long outputs, expressions ─▶ read and compared
//!                        └──────▶ matches ◀──────┘ ─▶ repeats joined ─▶ by session ─▶ the best ones read again for their text
//! ```

mod ranking;
mod show;
mod suggest;

use std::cmp::Reverse;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::Ordering;

use hashbrown::{HashMap, HashSet};
use memchr::memmem;
use rayon::prelude::*;
use scrollback::Source;
use scrollback::model::regular_file::{self, Links};
use scrollback::redact::Redactor;
use scrollback::session::{RecordRef, Session};
use scrollback::view::SessionRow;
use scrollback::view::texts::{SearchText, SearchTexts};

use crate::answer::{Answer, SearchOptions, Sort};
use crate::archive::Archive;
use crate::card::Depth;
use crate::decide::Questions;
use crate::index::{Bookmark, CutRecord, Known, Match, Ranking, SourceId};
use crate::part::{is_long_output, labels, length, repeat};
use crate::query::{DocumentFacts, DocumentWords, Expr, Labels, Query};
use crate::word_set::PossibleWords;
use crate::words::Searchable;
use ranking::{Sample, Wanted, Weight};

/// How many of the newest matches by time are ranked and grouped: more than anybody reads.
const MATCHES: usize = 5_000;

/// How many long tool outputs are read beyond what is indexed of them, in bytes, before an answer is late.
const CUT_BYTES: u64 = 64 * 1024 * 1024;

/// So much is read also if enough was found already.
const CUT_BYTES_IN_NO_TIME: u64 = 16 * 1024 * 1024;

/// A larger file is not looked at as a whole before it is read as a session.
const LOOKED_AT_BYTES: u64 = 256 * 1024 * 1024;

/// So many sessions are read before other work of this process comes, and before matches that are not among the newest are forgotten.
const READ_AT_ONCE: usize = 64;

/// Stands for the title in the place of a record.
const TITLE: u32 = u32::MAX;

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

/// A match that was found by reading. Where words rank, its rank is known when all was read.
struct Weighed {
    found: Found,
    weight: Option<Weight>,
}

/// A session in scope.
#[derive(Clone)]
struct Asked<'a> {
    at: usize,
    row: &'a SessionRow,
    source: &'a Source,
    /// The number of the question that is left for its parts.
    question: usize,
}

/// What reading a session for a question gives.
type Scanned = scrollback::Result<(Vec<Weighed>, Sample)>;

impl Archive {
    /// Searches these sessions. What the index does not know yet is read.
    pub fn search(&mut self, query: &Query, scope: &[(Box<SessionRow>, Source)], options: SearchOptions) -> Answer {
        let mut answer = Answer::default();
        let mut found = self.titles(query, scope);
        let mut questions = Questions::of(query.expr());
        let asked: Vec<Asked<'_>> = scope
            .iter()
            .enumerate()
            .filter_map(|(at, (row, source))| {
                questions.of_session(row).map(|question| Asked { at, row, source, question })
            })
            .collect();
        let known = self.known();
        let (mut indexed, mut unknown) = (Vec::new(), Vec::new());
        for asked in asked {
            match self.holding(&known, asked.source, Depth::Text) {
                Some(known) if !query.has_regex() => indexed.push((asked, known)),
                Some(_) | None => unknown.push(asked),
            }
        }
        match self.known_matches(query, &indexed, questions.left(), options, &mut answer) {
            Some(matches) => found.extend(matches),
            // The index failed: everything is read.
            None => unknown.extend(indexed.into_iter().map(|(asked, _)| asked)),
        }
        found.extend(self.by_reading(query, &unknown, ranking(query, options), &mut answer));
        answer.read_bytes += unknown.iter().map(|asked| asked.row.size_bytes).sum::<u64>();
        keep_newest(&mut found, |one| one);
        self.show(query, scope, found, options, &mut answer);
        if answer.sessions.is_empty() {
            answer.suggestion = self.suggestion(query, scope);
        }
        answer
    }

    /// Sessions whose titles match, if the question asks for titles.
    fn titles(&self, query: &Query, scope: &[(Box<SessionRow>, Source)]) -> Vec<Found> {
        if !query.wants_titles() {
            return Vec::new();
        }
        let session_of = show::generations(scope);
        let matching = scope.iter().enumerate().filter(|(at, (row, _))| {
            let facts = DocumentFacts::of_session(row);
            session_of(*at) == *at && query.matches(&DocumentWords::of(&row.title), &row.title, &facts)
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

    /// What the index finds, and what long outputs have beyond it. `None` if the index fails on the way.
    fn known_matches(
        &mut self,
        query: &Query,
        indexed: &[(Asked<'_>, &Known)],
        questions: Vec<Expr>,
        options: SearchOptions,
        answer: &mut Answer,
    ) -> Option<Vec<Found>> {
        let had_index = self.has_index();
        let matches = self.by_index(indexed, questions, ranking(query, options))?;
        let cut = self.in_cut_outputs(query, indexed, &matches, options, answer);
        if had_index && !self.has_index() {
            return None;
        }
        let is_known = |(_, is_cut): &(Found, bool)| !(cut.is_some() && *is_cut);
        let found = matches.into_iter().filter(is_known).map(|(found, _)| found);
        Some(found.collect::<Vec<_>>().into_iter().chain(cut.into_iter().flatten()).collect())
    }

    /// Asks the index; `None` if it fails. Each match says whether some of its text is not indexed.
    fn by_index(
        &mut self,
        asked: &[(Asked<'_>, &Known)],
        questions: Vec<Expr>,
        by: Ranking,
    ) -> Option<Vec<(Found, bool)>> {
        let mut groups: Vec<(Query, Vec<SourceId>)> =
            questions.into_iter().map(|question| (Query::of(question), Vec::new())).collect();
        for (asked, known) in asked {
            groups[asked.question].1.push(known.id);
        }
        let positions: HashMap<SourceId, usize> = asked.iter().map(|(asked, known)| (known.id, asked.at)).collect();
        let mut found = Vec::new();
        for (question, sources) in groups.into_iter().filter(|(_, sources)| !sources.is_empty()) {
            let matches = self.ask(|index| index.search(&question, &sources, MATCHES, by))?;
            found.extend(matches.into_iter().filter_map(|one| {
                let Match { source, record, part, repeat, at, labels, rank, is_cut } = one;
                let session = *positions.get(&source)?;
                Some((Found { session, record, part, repeat, at, labels, rank }, is_cut))
            }));
        }
        Some(found)
    }

    /// Reads long tool outputs beyond what is indexed of them, unless enough was found already, or they are too many. Then the answer
    /// says so.
    fn in_cut_outputs(
        &mut self,
        query: &Query,
        indexed: &[(Asked<'_>, &Known)],
        matches: &[(Found, bool)],
        options: SearchOptions,
        answer: &mut Answer,
    ) -> Option<Vec<Found>> {
        // Filters alone are decided whatever the text is.
        query.terms().next()?;
        let cut: Vec<&(Asked<'_>, &Known)> = indexed.iter().filter(|(_, known)| known.cut_bytes > 0).collect();
        let bytes: u64 = cut.iter().map(|(_, known)| known.cut_bytes).sum();
        let found: HashSet<usize> = matches.iter().map(|(found, _)| found.session).collect();
        // Where little is cut, it is read in no time, and the newest session is the newest.
        if found.len() >= options.sessions && bytes > CUT_BYTES_IN_NO_TIME {
            answer.unsearched_bytes = bytes;
            return None;
        }
        let records = self.cut_records(query, indexed)?;
        let look = Look::new(query, self.places.mask.as_deref());
        let candidates: Vec<(&Asked<'_>, Vec<CutRecord>)> = cut
            .par_iter()
            .filter_map(|(asked, known)| Some((asked, look.candidates(asked.source, records.get(&known.id)?))))
            .filter(|(_, records)| !records.is_empty())
            .collect();
        let candidate_bytes: u64 = candidates
            .iter()
            .flat_map(|(_, records)| records)
            .filter_map(|record| record.span)
            .map(|(_, length)| u64::from(length))
            .sum();
        if candidate_bytes > CUT_BYTES && !matches.is_empty() {
            answer.unsearched_bytes = bytes;
            return None;
        }
        let bookmarks: Vec<Option<Bookmark>> =
            candidates.iter().map(|(asked, _)| self.bookmark(asked.source)).collect();
        let reader = self.reader();
        let scanned: Vec<Scanned> = candidates
            .par_iter()
            .zip(&bookmarks)
            .map(|((asked, records), bookmark)| {
                let session = reader.session(asked.source, bookmark.as_ref())?;
                let records = records.iter().filter_map(|record| session.records().nth(record.record as usize));
                scan(query, asked, &session, records, &is_long_output, ranking(query, options))
            })
            .collect();
        answer.read_bytes += bytes;
        let mut collected = Collected::default();
        collected.add(scanned, answer);
        Some(collected.ranked())
    }

    /// The records with text that is not indexed and could match. `None` if the index fails.
    fn cut_records(
        &mut self,
        query: &Query,
        indexed: &[(Asked<'_>, &Known)],
    ) -> Option<HashMap<SourceId, Vec<CutRecord>>> {
        let cut = indexed.iter().filter(|(_, known)| known.cut_bytes > 0);
        let sources: Vec<SourceId> = cut.map(|(_, known)| known.id).collect();
        let mut records: HashMap<SourceId, Vec<CutRecord>> = HashMap::new();
        for record in self.ask(|index| index.cut_records(query, &sources))? {
            records.entry(record.source).or_default().push(record);
        }
        Some(records)
    }

    /// Reads sessions and compares each part.
    fn by_reading(&self, query: &Query, asked: &[Asked<'_>], by: Ranking, answer: &mut Answer) -> Vec<Found> {
        let (reader, given_up) = (self.reader(), &self.given_up);
        let look = Look::new(query, self.places.mask.as_deref());
        let scan = |asked: &Asked<'_>| {
            if given_up.load(Ordering::Relaxed) || !look.at_file(asked.source) {
                return Ok((Vec::new(), Sample::default()));
            }
            let session = reader.session(asked.source, None)?;
            scan(query, asked, &session, session.records(), &|_| true, by)
        };
        let mut collected = Collected::default();
        for some in asked.chunks(READ_AT_ONCE) {
            collected.add(some.par_iter().map(scan).collect(), answer);
        }
        collected.ranked()
    }
}

/// What an answer is ranked by. Only if the best matches are asked for, it is worth to look at all that have the words.
fn ranking(query: &Query, options: SearchOptions) -> Ranking {
    let has_words = query.terms().next().is_some() || query.has_regex();
    match options.sort {
        Sort::Relevance => Ranking::Words,
        Sort::Newest | Sort::Oldest if has_words => Ranking::Length,
        Sort::Newest | Sort::Oldest => Ranking::Time,
    }
}

/// Leaves the newest matches, wherever they were found.
fn keep_newest<T>(matches: &mut Vec<T>, found: impl Fn(&T) -> &Found) {
    if matches.len() > MATCHES {
        let order = |one: &Found| (Reverse(one.at), one.session, Reverse((one.record, one.part)));
        matches.select_nth_unstable_by_key(MATCHES, |one| order(found(one)));
        matches.truncate(MATCHES);
    }
}

/// What was found by reading so far.
#[derive(Default)]
struct Collected {
    newest: Vec<Weighed>,
    sample: Sample,
}

impl Collected {
    fn add(&mut self, scanned: Vec<Scanned>, answer: &mut Answer) {
        for scanned in scanned {
            match scanned {
                Ok((matches, read)) => {
                    self.newest.extend(matches);
                    self.sample.add(&read);
                }
                Err(error) => answer.unreadable.push(error),
            }
        }
        keep_newest(&mut self.newest, |one| &one.found);
    }

    fn ranked(self) -> Vec<Found> {
        let Collected { newest, sample } = self;
        let rank = |one: &Weighed| one.weight.as_ref().map_or(one.found.rank, |weight| sample.rank(weight));
        newest.into_iter().map(|one| Found { rank: rank(&one), ..one.found }).collect()
    }
}

/// A look at bytes before they are read as a session, which costs many times as much: whether something in them could match.
struct Look<'q> {
    query: &'q Query,
    /// Words that masking may write: a text need not have them.
    written_by_mask: HashSet<&'q str>,
}

impl<'q> Look<'q> {
    fn new(query: &'q Query, mask: Option<&Redactor>) -> Look<'q> {
        let words = query.terms().flat_map(|term| &term.words).map(String::as_str);
        let is_written = |word: &&str| mask.is_some_and(|mask| mask.may_write(word));
        Look { query, written_by_mask: words.filter(is_written).collect() }
    }

    /// The records that could match.
    fn candidates(&self, source: &Source, records: &[CutRecord]) -> Vec<CutRecord> {
        let Ok((file, _)) = regular_file::open(&source.path, Links::Follow) else { return records.to_vec() };
        let may_match = |record: &&CutRecord| {
            let bytes = record.span.and_then(|(offset, length)| read_at(&file, offset, length));
            bytes.is_none_or(|bytes| self.may_match(bytes))
        };
        records.iter().filter(may_match).copied().collect()
    }

    /// Whether anything in a file could match. Titles and the like in other files are not text.
    fn at_file(&self, source: &Source) -> bool {
        let is_one_file = source.key.is_none() && !source.has_further_files();
        let bytes =
            is_one_file.then(|| regular_file::read(&source.path, LOOKED_AT_BYTES, Links::Follow).ok()).flatten();
        bytes.is_none_or(|bytes| self.may_match(bytes))
    }

    fn may_match(&self, bytes: Vec<u8>) -> bool {
        // What is compressed, or has letters written in escapes, cannot be seen.
        if bytes.first() != Some(&b'{') || has_escaped_letters(&bytes) {
            return true;
        }
        let unmasked = Searchable::new(bytes);
        self.query.could_match(&Masked { unmasked, written_by_mask: &self.written_by_mask })
    }
}

/// A text before it is masked.
struct Masked<'l> {
    unmasked: Searchable,
    written_by_mask: &'l HashSet<&'l str>,
}

impl PossibleWords for Masked<'_> {
    fn may_have(&self, word: &str) -> bool {
        self.unmasked.may_have(word) || self.written_by_mask.contains(word)
    }

    fn may_have_beginning(&self, beginning: &str) -> bool {
        self.may_have(beginning)
    }
}

fn read_at(file: &File, offset: u64, length: u32) -> Option<Vec<u8>> {
    let mut file = file;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length.into()).read_to_end(&mut bytes).ok()?;
    (bytes.len() == length as usize).then_some(bytes)
}

/// Whether `\\u` stands for more than control characters, as those of a terminal's colours.
fn has_escaped_letters(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, b"\\u").any(|at| !matches!(bytes.get(at + 2..at + 5), Some(b"000" | b"001")))
}

/// Compares each part of these records.
fn scan<'s>(
    query: &Query,
    asked: &Asked<'_>,
    session: &'s Session,
    records: impl Iterator<Item = RecordRef<'s>>,
    is_asked: &(impl Fn(&SearchText) -> bool + Sync),
    by: Ranking,
) -> Scanned {
    let mut texts = SearchTexts::new(session);
    let (wanted, mut found, mut sample) = (Wanted::of(query), Vec::new(), Sample::default());
    for record in records {
        let standing = texts.standing(record);
        for text in texts.of(record)? {
            if !is_asked(&text) {
                continue;
            }
            let labels = labels(standing, &text);
            let facts = facts(asked.row, record, &text, labels);
            let words = DocumentWords::of(&text.text);
            if !query.matches(&words, &text.text, &facts) {
                if by == Ranking::Words {
                    sample.pass(&wanted, &words);
                }
                continue;
            }
            let at = record.at().map(|at| at.as_microsecond());
            let (weight, rank) = match by {
                Ranking::Words => (Some(sample.weigh(&wanted, &words, &text.text)), 0.0),
                Ranking::Length => (None, f64::from(length(&text))),
                Ranking::Time => (None, 0.0),
            };
            let one = Found {
                session: asked.at,
                record: record.order() as u32,
                part: text.part as u32,
                repeat: repeat(&record.id(), at, &text),
                at,
                labels,
                rank,
            };
            found.push(Weighed { found: one, weight });
        }
    }
    Ok((found, sample))
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
