//! What writers told of records, set against what is found: the same thing is reported once.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::row;
use crate::dialect::writer::{LossKind, WHOLE_RECORDS, same};
use crate::transfer::convert::{LossRow, rows};

pub(super) struct Told {
    /// What was told of a record, and how often.
    known: HashMap<String, Vec<(String, u64)>>,
    words: HashSet<String>,
    /// Records that are known to be left out, or to be something else, as a whole.
    whole: HashMap<String, LossKind>,
    /// What nobody told, of the branches so far and of the one that is compared.
    pub(super) found: Vec<LossRow>,
    of_branch: Vec<LossRow>,
}

impl Told {
    pub(super) fn new(losses: &[LossRow]) -> Told {
        let (found, of_branch) = (Vec::new(), Vec::new());
        let mut told = Told { known: HashMap::new(), words: HashSet::new(), whole: HashMap::new(), found, of_branch };
        for row in losses {
            told.known.entry(row.record.clone()).or_default().push((row.what.clone(), row.count));
            told.words.insert(row.what.clone());
            if row.kind != LossKind::Synthesised && WHOLE_RECORDS.contains(&row.what.as_str()) {
                told.whole.insert(row.record.clone(), row.kind);
            }
        }
        told
    }

    /// Whether a word was said of any record.
    pub(super) fn anywhere(&self, what: &str) -> bool {
        let is_found = |word: &&str| self.found.iter().chain(&self.of_branch).any(|row| row.what == **word);
        same(what).any(|word| self.words.contains(word) || is_found(&word))
    }

    /// Whether a message that is nowhere was told of: each of its records as a whole, or each of its parts.
    pub(super) fn covers(&self, records: &[&str], parts: &BTreeMap<&'static str, usize>) -> bool {
        let of_parts =
            || parts.iter().all(|(word, count)| *word == "step" || self.count(records, word) >= *count as u64);
        records.iter().all(|record| self.whole.contains_key(*record)) || (!parts.is_empty() && of_parts())
    }

    /// Whether records are known to be there as something else.
    pub(super) fn is_otherwise(&self, records: &[&str]) -> bool {
        records.iter().any(|record| self.whole.get(*record) == Some(&LossKind::Renamed))
    }

    /// A difference that a message has once.
    pub(super) fn push(&mut self, records: &[&str], what: &str, kind: LossKind) {
        if self.count(records, what) == 0 {
            self.add(records, what, kind, 1);
        }
    }

    /// Parts that differ: those that nobody told of.
    pub(super) fn push_parts(&mut self, records: &[&str], what: &str, kind: LossKind, count: usize) {
        let untold = (count as u64).saturating_sub(self.count(records, what));
        if untold > 0 {
            self.add(records, what, kind, untold);
        }
    }

    fn add(&mut self, records: &[&str], what: &str, kind: LossKind, count: u64) {
        self.of_branch.extend(records.first().map(|first| row(first, what, kind, count)));
    }

    /// A branch is compared. What it says of a turn that it shares with an earlier one as far as they go together is the same thing.
    pub(super) fn end_branch(&mut self) {
        let known = rows(std::mem::take(&mut self.found));
        let key = |row: &LossRow| (row.record.clone(), row.what.clone(), row.kind);
        let mut at: HashMap<_, usize> = known.iter().enumerate().map(|(at, row)| (key(row), at)).collect();
        self.found = known;
        for row in rows(std::mem::take(&mut self.of_branch)) {
            let place = *at.entry(key(&row)).or_insert(self.found.len());
            match self.found.get_mut(place) {
                Some(known) => known.count = known.count.max(row.count),
                None => self.found.push(row),
            }
        }
    }

    /// How often these records are said to differ in this.
    fn count(&self, records: &[&str], what: &str) -> u64 {
        let names: Vec<&str> = same(what).collect();
        let told = records.iter().filter_map(|record| self.known.get(*record)).flatten();
        told.filter(|(word, _)| names.contains(&word.as_str())).map(|(_, count)| count).sum()
    }
}
