//! Whether a document matches a query, without an index.

use std::ops::Range;

use jiff::Timestamp;
use scrollback::view::SessionRow;

use super::{Expr, Filter, Label, Query, Term};
use crate::word_set::PossibleWords;
use crate::words::{WordKind, each_word, fold};

/// The words of a document, with their places.
#[derive(Debug, Default)]
pub(crate) struct DocumentWords {
    /// The words that have a position, in their order.
    parts: WordList,
    /// The camelCase runs as wholes.
    wholes: WordList,
}

/// Words in one buffer.
#[derive(Debug, Default)]
struct WordList {
    folded: String,
    /// Where each word ends in `folded`, and its bytes in the text.
    ends: Vec<(usize, Range<usize>)>,
}

impl DocumentWords {
    /// Splits a text.
    pub(crate) fn of(text: &str) -> DocumentWords {
        let mut words = DocumentWords::default();
        each_word(text, |word| {
            let list = match word.kind {
                WordKind::Part => &mut words.parts,
                WordKind::Whole => &mut words.wholes,
            };
            list.folded.push_str(word.text);
            list.ends.push((list.folded.len(), word.span));
        });
        words
    }

    /// How many words there are, as an index counts them.
    pub(crate) fn len(&self) -> usize {
        self.parts.ends.len() + self.wholes.ends.len()
    }

    /// The bytes of the text where a term is, in no particular order; occurrences of a phrase may overlap.
    ///
    /// The time is bounded by the number of words in the text times those in the term.
    pub(crate) fn occurrences<'w>(&'w self, term: &'w Term) -> impl Iterator<Item = Range<usize>> + 'w {
        let in_parts = (0..self.parts.ends.len()).filter_map(|at| self.find_at(at, term));
        let only = if let [only] = term.words.as_slice() { Some(only) } else { None };
        in_parts.chain(only.into_iter().flat_map(|only| self.wholes.like(only, term.is_prefix)))
    }

    /// The bytes of a term whose first word is this one. One of several words may be a whole camelCase run.
    fn find_at(&self, first: usize, term: &Term) -> Option<Range<usize>> {
        let (_, start) = self.parts.get(first)?;
        let (mut at, mut end) = (first, start.end);
        let last = term.words.len().checked_sub(1)?;
        for (number, wanted) in term.words.iter().enumerate() {
            let (word, span) = self.parts.get(at)?;
            let is_open = term.is_prefix && number == last;
            if is_like(word, wanted, is_open) {
                (at, end) = (at + 1, span.end);
            } else {
                let run = self.run_at(span.start).filter(|_| last > 0)?;
                let (whole, run) = self.wholes.get(run)?;
                if !is_like(whole, wanted, is_open) {
                    return None;
                }
                end = run.end;
                at += self.parts.ends[at..].iter().take_while(|(_, span)| span.end <= end).count();
            }
        }
        Some(start.start..end)
    }

    /// The camelCase run that starts here.
    fn run_at(&self, start: usize) -> Option<usize> {
        self.wholes.ends.binary_search_by_key(&start, |(_, span)| span.start).ok()
    }
}

fn is_like(word: &str, wanted: &str, is_prefix: bool) -> bool {
    if is_prefix { word.starts_with(wanted) } else { word == wanted }
}

impl WordList {
    fn get(&self, at: usize) -> Option<(&str, &Range<usize>)> {
        let (end, span) = self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(end, _)| *end);
        Some((self.folded.get(start..*end)?, span))
    }

    /// The bytes of the words that are like this one.
    fn like<'w>(&'w self, wanted: &'w str, is_prefix: bool) -> impl Iterator<Item = Range<usize>> + 'w {
        let found = move |at: usize| {
            let (word, span) = self.get(at)?;
            is_like(word, wanted, is_prefix).then(|| span.clone())
        };
        (0..self.ends.len()).filter_map(found)
    }
}

/// What the filters ask of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentFacts<'d> {
    /// The dialect's name.
    pub(crate) agent: &'d str,
    pub(crate) project: Option<&'d str>,
    /// One of [`super::ROLES`].
    pub(crate) role: &'d str,
    pub(crate) tool: Option<&'d str>,
    pub(crate) files: &'d [String],
    pub(crate) model: Option<&'d str>,
    /// Of git.
    pub(crate) branch: Option<&'d str>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) labels: Labels,
    pub(crate) is_title: bool,
}

impl<'d> DocumentFacts<'d> {
    /// What a session's title has.
    pub(crate) fn of_session(row: &'d SessionRow) -> DocumentFacts<'d> {
        DocumentFacts {
            agent: &row.dialect,
            project: row.project.as_deref(),
            role: "user",
            tool: None,
            files: &[],
            model: row.models.last().map(String::as_str),
            branch: row.git_branch.as_deref(),
            at: row.updated,
            labels: Labels::default(),
            is_title: true,
        }
    }
}

/// A set of labels, as an index stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels(u8);

impl Labels {
    /// The bit of one label; these numbers are in index files.
    pub(crate) const fn bit(label: Label) -> u8 {
        match label {
            Label::Error => 1,
            Label::Thinking => 2,
            Label::Dead => 4,
            Label::Sidechain => 8,
            Label::Compacted => 16,
        }
    }

    /// The set with these bits.
    pub(crate) const fn from_bits(bits: u8) -> Labels {
        Labels(bits)
    }

    /// The bits of all labels.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn has(self, label: Label) -> bool {
        self.0 & Labels::bit(label) != 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.has(*label))
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<L: IntoIterator<Item = Label>>(labels: L) -> Labels {
        Labels(labels.into_iter().fold(0, |bits, label| bits | Labels::bit(label)))
    }
}

impl Query {
    /// Whether a document matches: its words, the text that they are from, and its properties.
    pub(crate) fn matches(&self, words: &DocumentWords, text: &str, facts: &DocumentFacts<'_>) -> bool {
        self.expr().matches(words, text, facts)
    }
}

impl Expr {
    /// Recurses at most as deep as the parser allows.
    fn matches(&self, words: &DocumentWords, text: &str, facts: &DocumentFacts<'_>) -> bool {
        match self {
            Expr::Term(term) => words.occurrences(term).next().is_some(),
            Expr::Regex(regex) => regex.is_match(text),
            Expr::Filter(filter) => filter.matches(facts),
            Expr::And(sides) => sides.iter().all(|side| side.matches(words, text, facts)),
            Expr::Or(sides) => sides.iter().any(|side| side.matches(words, text, facts)),
            Expr::Not(excluded) => !excluded.matches(words, text, facts),
        }
    }

    /// Visits the filters in their order.
    pub(crate) fn each_filter(&self, visit: &mut dyn FnMut(&Filter)) {
        match self {
            Expr::Filter(filter) => visit(filter),
            Expr::And(sides) | Expr::Or(sides) => sides.iter().for_each(|side| side.each_filter(visit)),
            Expr::Not(excluded) => excluded.each_filter(visit),
            Expr::Term(_) | Expr::Regex(_) => {}
        }
    }

    /// The same of a text of which only some is known.
    pub(super) fn could_match(&self, text: &dyn PossibleWords) -> bool {
        match self {
            Expr::Term(term) => term.words.iter().enumerate().all(|(at, word)| {
                let is_open = term.is_prefix && at + 1 == term.words.len();
                if is_open { text.may_have_beginning(word) } else { text.may_have(word) }
            }),
            Expr::And(sides) => sides.iter().all(|side| side.could_match(text)),
            Expr::Or(sides) => sides.iter().any(|side| side.could_match(text)),
            Expr::Regex(_) | Expr::Filter(_) | Expr::Not(_) => true,
        }
    }
}

impl Filter {
    /// Whether a document has the property; one that is not known does not match.
    pub(crate) fn matches(&self, facts: &DocumentFacts<'_>) -> bool {
        let contains = |field: Option<&str>, piece: &str| field.is_some_and(|field| fold(field).contains(piece));
        match self {
            Filter::Agent(name) => facts.agent == name,
            Filter::Project(piece) => contains(facts.project, piece),
            Filter::Role(role) => facts.role == role,
            Filter::Tool(name) => facts.tool.is_some_and(|tool| match name.strip_suffix('*') {
                Some(beginning) => fold(tool).starts_with(beginning),
                None => fold(tool) == *name,
            }),
            Filter::File(piece) => facts.files.iter().any(|file| contains(Some(file), piece)),
            Filter::Model(piece) => contains(facts.model, piece),
            Filter::Branch(piece) => contains(facts.branch, piece),
            Filter::Since(from) => facts.at.is_some_and(|at| at >= *from),
            Filter::Until(end) => facts.at.is_some_and(|at| at < *end),
            Filter::Is(label) => facts.labels.has(*label),
            Filter::InTitle => facts.is_title,
        }
    }
}
