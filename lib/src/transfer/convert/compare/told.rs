//! What writers told of records, set against what is found: the same thing is reported once.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::row;
use crate::model::loss::{LossKind, Lost};
use crate::model::record::Kind;
use crate::transfer::convert::{LossRow, rows};

pub(super) struct Told {
    /// What was told of a record, and how often.
    known: HashMap<String, Vec<(Lost, u64)>>,
    words: HashSet<Lost>,
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
            if row.kind != LossKind::Synthesised && row.what.is_whole_record() {
                told.whole.insert(row.record.clone(), row.kind);
            }
        }
        told
    }

    /// Whether a word was said of any record.
    pub(super) fn anywhere(&self, what: &Lost) -> bool {
        let is_found = |word: &Lost| self.found.iter().chain(&self.of_branch).any(|row| row.what == *word);
        same(what).any(|word| self.words.contains(word) || is_found(word))
    }

    /// Whether a message that is nowhere was told of: each of its records as a whole, or each of its parts.
    pub(super) fn covers(&self, records: &[&str], parts: &BTreeMap<Lost, usize>) -> bool {
        let of_parts =
            || parts.iter().all(|(word, count)| *word == Lost::Step || self.count(records, word) >= *count as u64);
        records.iter().all(|record| self.whole.contains_key(*record)) || (!parts.is_empty() && of_parts())
    }

    /// Whether records are known to be there as something else.
    pub(super) fn is_otherwise(&self, records: &[&str]) -> bool {
        records.iter().any(|record| self.whole.get(*record) == Some(&LossKind::Renamed))
    }

    /// A difference that a message has once.
    pub(super) fn push(&mut self, records: &[&str], what: impl Into<Lost>, kind: LossKind) {
        let what = what.into();
        if self.count(records, &what) == 0 {
            self.add(records, what, kind, 1);
        }
    }

    /// Parts that differ: those that nobody told of.
    pub(super) fn push_parts(&mut self, records: &[&str], what: impl Into<Lost>, kind: LossKind, count: usize) {
        let what = what.into();
        let untold = (count as u64).saturating_sub(self.count(records, &what));
        if untold > 0 {
            self.add(records, what, kind, untold);
        }
    }

    fn add(&mut self, records: &[&str], what: Lost, kind: LossKind, count: u64) {
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
    fn count(&self, records: &[&str], what: &Lost) -> u64 {
        let names: Vec<&Lost> = same(what).collect();
        let told = records.iter().filter_map(|record| self.known.get(*record)).flatten();
        told.filter(|(word, _)| names.contains(&word)).map(|(_, count)| count).sum()
    }
}

/// Words for the same difference as far as a message shows it: the first is what is found, the others what a writer may call it.
const SAME: [&[Lost]; 15] = [
    &[
        Lost::CallDetails,
        Lost::ProviderMetadata,
        Lost::ProviderCall,
        Lost::RunNotes,
        Lost::Duration,
        Lost::ExitCode,
        Lost::CallState,
    ],
    &[Lost::PartDetails, Lost::ProviderMetadata, Lost::Citations],
    &[Lost::Environment],
    &[Lost::Thinking, Lost::ProviderMetadata, Lost::PartDetails],
    &[
        Lost::File,
        Lost::Image,
        Lost::MediaType,
        Lost::FileName,
        Lost::Attachment,
        Lost::ProviderMetadata,
        Lost::PartDetails,
    ],
    &[
        Lost::Image,
        Lost::File,
        Lost::MediaType,
        Lost::FileName,
        Lost::Attachment,
        Lost::ProviderMetadata,
        Lost::PartDetails,
    ],
    &[
        Lost::Text,
        Lost::TextParts,
        Lost::Citations,
        Lost::Sender,
        Lost::Reaction,
        Lost::Attachment,
        Lost::Image,
        Lost::File,
        Lost::DataPart,
        Lost::EmptyMessage,
        Lost::Steering,
        Lost::ProviderMetadata,
        Lost::PartDetails,
    ],
    &[
        Lost::ToolCall,
        Lost::ToolInput,
        Lost::ToolOutput,
        Lost::ToolName,
        Lost::Record(Kind::ToolResult),
        Lost::CallId,
        Lost::PreliminaryResult,
        Lost::DuplicateResult,
        Lost::FailureReason,
        Lost::ProviderCall,
        Lost::RunNotes,
        Lost::Duration,
        Lost::ExitCode,
        Lost::CallDetails,
        Lost::CallState,
        Lost::Approval,
        Lost::Denial,
        Lost::ProviderMetadata,
    ],
    &[Lost::Usage, Lost::ReasoningTokens, Lost::CacheTokens],
    &[Lost::Error, Lost::ErrorKind, Lost::Record(Kind::System)],
    &[Lost::Record(Kind::Compaction), Lost::CompactionDetails, Lost::KeptRecords, Lost::ReplacedHistory],
    &[Lost::Record(Kind::Rewind), Lost::RewindReason],
    &[Lost::Record(Kind::Title), Lost::TitleSource],
    &[Lost::Role, Lost::Instruction, Lost::Record(Kind::Attachment), Lost::Record(Kind::System)],
    &[Lost::TextParts, Lost::Text, Lost::Steering],
];

/// The words that stand for a difference.
fn same(what: &Lost) -> impl Iterator<Item = &Lost> {
    let names = SAME.iter().find(|names| names.first() == Some(what)).copied().unwrap_or_default();
    [what].into_iter().chain(names.iter())
}
