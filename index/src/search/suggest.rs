//! Finds a word that was probably meant: one of the question is in none of the sessions that were asked, and a similar one is.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use rayon::prelude::*;
use scrollback::Source;
use scrollback::view::SessionRow;
use scrollback::view::texts::SearchTexts;

use super::{Asked, Look};
use crate::answer::Answer;
use crate::archive::Archive;
use crate::card::Depth;
use crate::index::{Known, Ranking, SourceId};
use crate::query::{Query, distance, similar};
use crate::words::each_word;

/// With more that is not indexed, reading it again for a suggestion takes too long.
const READ_BYTES: u64 = 64 * 1024 * 1024;

/// So many similar words are tried: the vocabulary also has words of sessions that are gone, or that were not asked.
const TRIED: usize = 16;

/// The sessions that were asked.
struct Scope<'a> {
    /// Those that the index knows.
    indexed: Vec<(Asked<'a>, &'a Known)>,
    ids: Vec<SourceId>,
    unread: Vec<Asked<'a>>,
}

impl Archive {
    /// A word of the question that is in none of these sessions, and the nearest one that is in one.
    pub(super) fn suggestion(
        &mut self,
        query: &Query,
        scope: &[(Box<SessionRow>, Source)],
    ) -> Option<(String, String)> {
        let known = self.known();
        let (mut indexed, mut unread) = (Vec::new(), Vec::new());
        for (at, (row, source)) in scope.iter().enumerate() {
            let asked = Asked { at, row, source, question: 0 };
            match self.holding(&known, source, Depth::Text) {
                Some(known) => indexed.push((asked, known)),
                None => unread.push(asked),
            }
        }
        if unread.iter().map(|asked| asked.row.size_bytes).sum::<u64>() > READ_BYTES {
            return None;
        }
        let ids = indexed.iter().map(|(_, known)| known.id).collect();
        let scope = Scope { indexed, ids, unread };
        let words: Vec<String> =
            query.terms().filter(|term| !term.is_prefix).flat_map(|term| term.words.clone()).collect();
        for word in words {
            if self.is_indexed(&word, &scope)? {
                continue;
            }
            let Some(near) = self.near(&word, &scope)? else { continue };
            // Who asked for nothing but this word has the answer already.
            if query.is_word(&word) || !self.is_in_unindexed(&word, &scope)? {
                return Some((word, near));
            }
        }
        None
    }

    /// Whether a word is, or could be, in what is not indexed of these sessions. `None` if the index fails.
    fn is_in_unindexed(&mut self, word: &str, scope: &Scope<'_>) -> Option<bool> {
        let query = Query::of_word(word);
        let records = if scope.ids.is_empty() { HashMap::new() } else { self.cut_records(&query, &scope.indexed)? };
        let look = Look::new(&query, self.places.mask.as_deref());
        let is_in_cut = scope.indexed.par_iter().any(|(asked, known)| {
            records.get(&known.id).is_some_and(|records| !look.candidates(asked.source, records).is_empty())
        });
        Some(is_in_cut || !self.by_reading(&query, &scope.unread, Ranking::Time, &mut Answer::default()).is_empty())
    }

    fn is_indexed(&mut self, word: &str, scope: &Scope<'_>) -> Option<bool> {
        if scope.ids.is_empty() {
            return Some(false);
        }
        let found = self.ask(|index| index.search(&Query::of_word(word), &scope.ids, 1, Ranking::Time))?;
        Some(!found.is_empty())
    }

    /// The nearest word that is in one of these sessions. The outer `None` says that the index fails.
    fn near(&mut self, word: &str, scope: &Scope<'_>) -> Option<Option<String>> {
        let Some(first) = word.chars().next() else { return Some(None) };
        let read = self.words_near(word, first, &scope.unread);
        let mut vocabulary: Vec<&str> = read.iter().map(String::as_str).collect();
        let mut indexed = Vec::new();
        if !scope.ids.is_empty() {
            for beginning in beginnings(word) {
                indexed.extend(self.ask(|index| index.words_like(&beginning))?);
            }
            for respelled in other_second_letters(word) {
                if self.ask(|index| index.has_word(&respelled))? {
                    indexed.push(respelled);
                }
            }
            // There is no end of other letters to try.
            if !word.is_ascii() && !indexed.iter().any(|known| distance(word, known).is_some()) {
                indexed = self.ask(|index| index.words_like(&first.to_string()))?;
            }
        }
        vocabulary.extend(indexed.iter().map(String::as_str));
        for near in similar(word, vocabulary.into_iter()).into_iter().take(TRIED) {
            if read.iter().any(|read| read == near) || self.is_indexed(near, scope)? {
                return Some(Some(near.to_owned()));
            }
        }
        Some(None)
    }

    /// The words of sessions that are not indexed and similar to this one, the most frequent first.
    fn words_near(&self, word: &str, first: char, unread: &[Asked<'_>]) -> Vec<String> {
        let reader = self.reader();
        let words_of = |asked: &Asked<'_>| -> scrollback::Result<HashMap<String, usize>> {
            let session = reader.session(asked.source, None)?;
            let (mut texts, mut near) = (SearchTexts::new(&session), HashMap::new());
            for record in session.records() {
                for text in texts.of(record)? {
                    each_word(&text.text, |known| {
                        if known.text.starts_with(first) && distance(word, known.text).is_some() {
                            *near.entry_ref(known.text).or_insert(0) += 1;
                        }
                    });
                }
            }
            Ok(near)
        };
        let mut near: HashMap<String, usize> = HashMap::new();
        // What cannot be read was reported before.
        for words in unread.par_iter().filter_map(|asked| words_of(asked).ok()).collect::<Vec<_>>() {
            words.into_iter().for_each(|(word, count)| *near.entry(word).or_insert(0) += count);
        }
        let mut near: Vec<(String, usize)> = near.into_iter().collect();
        near.sort_by(|(word, count), (other, more)| more.cmp(count).then_with(|| word.cmp(other)));
        near.into_iter().map(|(word, _)| word).collect()
    }
}

/// How nearly all words begin that could be meant: with the same two letters, or without the second one. To look at all words with the
/// same first letter takes as long as everything else.
fn beginnings(word: &str) -> BTreeSet<String> {
    let letters: Vec<char> = word.chars().take(3).collect();
    let beginning = |second: &char| [letters[0], *second].iter().collect();
    letters.iter().skip(1).map(beginning).collect()
}

/// The word with a letter more, or another one, in the second place.
fn other_second_letters(word: &str) -> impl Iterator<Item = String> {
    let mut letters = word.char_indices().map(|(at, _)| at).skip(1);
    let (second, third) = (letters.next().unwrap_or(word.len()), letters.next().unwrap_or(word.len()));
    let with = move |letter: char| [second, third].map(|rest| format!("{}{letter}{}", &word[..second], &word[rest..]));
    ('a'..='z').chain('0'..='9').flat_map(with)
}
