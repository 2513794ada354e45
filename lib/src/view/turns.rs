//! A session by turns: each prompt with everything up to the next one, as a tree.
//!
//! ```text
//! records   u1 ─ a1 ─ r1 ─ a2 ─ u2 ─ a3          r: a result
//!                 └ r1'     └ u3                  r1': of a parallel call
//! turns     u1 (2 calls, answered) ─ u2 (answered)
//!                                  └ u3 (no answer)
//! ```
//!
//! Which record belongs to which turn is known from links (`turns/group.rs`); a turn's bodies are read when its row is asked for
//! (`turns/read.rs`), so that a long session needs little memory.

mod group;
mod read;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::error::Result;
use crate::model::named_enum;
use crate::model::record::{Kind, RecordId};
use crate::session::tree::NodeIx;
use crate::session::{HeadKind, RecordRef, Session};
use group::Group;
pub(in crate::view) use read::{TurnReader, beginning, is_read};

/// The turns of a session, on all branches.
pub struct Turns<'s> {
    session: &'s Session,
    /// Each after the turn that it continues.
    groups: Vec<Group>,
    /// The records of all turns, turn by turn.
    records: Vec<NodeIx>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRow {
    /// Its last record: the branch that ends there has the whole turn.
    pub id: RecordId,
    /// Its first record, such as the prompt.
    pub first: RecordId,
    /// The last record of the branch before it. If that is missing, `missing_parent` is its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RecordId>,
    /// What it begins with.
    pub kind: TurnKind,
    /// What the person typed, or what else it begins with, in one line.
    pub text: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How it ended. Absent where nothing was asked, or where a compaction came before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
    /// Tool calls.
    pub calls: usize,
    /// How many of them failed.
    pub failed_calls: usize,
    /// How many of them were refused.
    pub denied_calls: usize,
    /// How many of them a person stopped while they ran.
    pub interrupted_calls: usize,
    /// Whether it is part of a side conversation.
    pub sidechain: bool,
    /// Whether it is on the default branch.
    pub on_branch: bool,
    /// If a branch ends in it, how that relates to the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadKind>,
    /// The id of the record before it, if that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_parent: Option<RecordId>,
}

named_enum! {
    /// What a turn begins with.
    TurnKind {
        /// A prompt.
        Prompt = "prompt",
        /// A command of the agent that a person ran.
        Command = "command",
        /// A shell command that a person ran.
        Shell = "shell",
        /// An event that the agent told the model about.
        Notification = "notification",
        /// A compaction.
        Compaction = "compaction",
        /// A step back in the conversation.
        Rewind = "rewind",
        /// Files were put back.
        Restore = "restore",
        /// An answer without a prompt of its own: to the same prompt as another one, or at the beginning.
        Answer = "answer",
    }
}

named_enum! {
    /// How a turn ended.
    TurnEnd {
        /// The model has answered.
        Answered = "answered",
        /// The model answered it together with the prompt that was typed right after it, or while it worked.
        AnsweredWithNext = "answered-with-next",
        /// With an error in the place of an answer.
        Failed = "failed",
        /// A person or a crash stopped it.
        Interrupted = "interrupted",
        /// Nothing follows the prompt.
        NoAnswer = "no-answer",
    }
}

impl Session {
    /// The turns on all branches.
    pub fn turns(&self) -> Result<Turns<'_>> {
        let (groups, records) = group::find(self)?;
        Ok(Turns { session: self, groups, records })
    }
}

impl<'s> Turns<'s> {
    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many of them are turns of the conversation: compactions, rewinds and restored files only stand between those.
    pub fn conversation_len(&self) -> usize {
        let is_between = |turn: &usize| matches!(self.kind(*turn), Kind::Compaction | Kind::Rewind | Kind::Restore);
        (0..self.len()).filter(|turn| !is_between(turn)).count()
    }

    /// The turns by prompts: each with what follows it on all branches, further answers and compactions.
    pub(in crate::view) fn by_prompt(&self) -> Vec<Vec<usize>> {
        let mut prompts: Vec<Vec<usize>> = Vec::new();
        let mut prompt_of: Vec<usize> = Vec::with_capacity(self.len());
        for turn in 0..self.len() {
            let first = self.session.at(self.groups[turn].first);
            let is_prompt = matches!(first.kind(), Kind::User | Kind::System) && !first.is_failure();
            let before = self.parent(turn).filter(|_| !is_prompt);
            let prompt = before.map_or(prompts.len(), |before| prompt_of[before]);
            prompts.resize_with(prompts.len().max(prompt + 1), Vec::new);
            prompts[prompt].push(turn);
            prompt_of.push(prompt);
        }
        prompts
    }

    /// The kind of its first record.
    fn kind(&self, turn: usize) -> Kind {
        self.session.at(self.groups[turn].first).kind()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The turn that a turn continues; it has a smaller number.
    pub fn parent(&self, turn: usize) -> Option<usize> {
        self.groups[turn].parent.map(|parent| parent as usize)
    }

    /// Whether the conversation begins with a turn: nothing came before it, and nothing is missing there.
    pub fn is_beginning(&self, turn: usize) -> bool {
        let first = self.session.at(self.groups[turn].first);
        let mut lineage = std::iter::successors(Some(first), |record| record.parent());
        self.parent(turn).is_none() && !first.is_sidechain() && lineage.all(|record| record.missing_parent().is_none())
    }

    /// Whether a turn is on the default branch.
    pub fn is_on_branch(&self, turn: usize) -> bool {
        self.groups[turn].on_branch
    }

    /// If a branch ends in it, how that relates to the newest.
    pub fn head(&self, turn: usize) -> Option<HeadKind> {
        self.groups[turn].head
    }

    /// Its last record.
    pub fn last(&self, turn: usize) -> RecordRef<'s> {
        self.session.at(self.groups[turn].last)
    }

    /// The prompt or the notification that a turn begins with. Nothing else of the turn is read.
    pub(crate) fn prompt(&self, turn: usize) -> Result<Option<RecordRef<'s>>> {
        let first = self.session.at(self.groups[turn].first);
        if !matches!(first.kind(), Kind::User | Kind::System) {
            return Ok(None);
        }
        let (kind, _) = beginning(first, &first.exact_body()?);
        Ok(matches!(kind, TurnKind::Prompt | TurnKind::Notification).then_some(first))
    }

    /// The records of a turn, in file order.
    pub(in crate::view) fn records(&self, turn: usize) -> impl Iterator<Item = RecordRef<'s>> + '_ {
        let end = self.groups.get(turn + 1).map_or(self.records.len(), |next| next.start as usize);
        self.records[self.groups[turn].start as usize..end].iter().map(|node| self.session.at(*node))
    }
}
