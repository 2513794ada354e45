//! The parents of records in the new file.

use hashbrown::HashMap;

use super::{Replay, Sidechains, refused};
use crate::model::error::Result;
use crate::model::loss::LossKind;
use crate::model::record::{Kind, RecordId};
use crate::session::RecordRef;
use crate::write::recorder::ParentRecord;

impl<'s> Replay<'s> {
    /// Sets the parent of the next record, and whether it starts a branch that the conversation continues on.
    pub(super) fn branch_from(&mut self, tip: Option<ParentRecord>, next: RecordRef<'s>) {
        let is_sidechain = self.is_beside(next);
        let is_of_conversation = !next.is_side() && !is_sidechain;
        let leads = self
            .last_of_conversation
            .as_ref()
            .is_some_and(|last| tip.as_ref().is_none_or(|tip| tip.id != *last));
        self.recorder.set_parent(tip, is_sidechain, leads && is_of_conversation);
    }

    /// Whether a record is in a sidechain of the new file, too.
    fn is_beside(&self, record: RecordRef<'_>) -> bool {
        record.is_sidechain() && self.sidechains == Sidechains::Beside
    }

    /// Notes that a record was written that can have children.
    pub(super) fn follow(&mut self, written: RecordRef<'s>) {
        self.last_link = self.recorder.head().cloned();
        if !self.is_beside(written) {
            self.last_of_conversation.clone_from(&self.last_link);
        }
    }

    /// The children of records that are left out get the parent of those.
    pub(super) fn pass_over(&mut self, group: &[RecordRef<'s>]) {
        let above = group.first().and_then(|first| first.parent());
        if let Some(tip) = above.and_then(|above| self.parents.get(&above.order()).cloned()) {
            self.parents.extend(group.iter().map(|record| (record.order(), tip.clone())));
        }
    }

    /// The children of these records get the record that was written last as their parent.
    pub(super) fn keep_tip(&mut self, group: &[RecordRef<'_>]) {
        if let Some(tip) = self.recorder.tip() {
            if let Some(last) = group.iter().rfind(|record| !record.is_side() && record.id() != tip.id.as_str()) {
                self.out.ids.insert(tip.id.to_string(), last.id().into_owned());
            }
            self.parents
                .extend(group.iter().filter(|record| !record.is_side()).map(|record| (record.order(), tip.clone())));
        }
    }

    /// Makes a record the head of the file. Without a rewind, the last record is.
    pub(super) fn end_at(&mut self, head: Option<RecordRef<'_>>) -> Result<()> {
        self.end_turn()?;
        let Some(head) = head else { return Ok(()) };
        // The branch that ends in an answer includes the results of its calls.
        let mut branch = head.session.branch(head).records;
        let last = branch.pop().filter(|record| record.kind() == Kind::ToolResult).unwrap_or(head);
        let tip = self.parents.get(&last.order()).or_else(|| self.parents.get(&head.order()));
        let Some(to) = tip.map(|tip| tip.id.clone()) else { return Ok(()) };
        if self.last_link.as_ref().is_none_or(|last| *last == to) {
            return Ok(());
        }
        self.host.add_to(head, head);
        match self.recorder.rewind(&to, None) {
            Ok(_) => {
                self.lose(head, LossKind::Synthesised, Kind::Rewind);
                // What follows the rewind continues from the head.
                let step = self.recorder.tip().map(|tip| tip.id.to_string());
                step.into_iter().for_each(|step| _ = self.out.ids.entry(step).or_insert(head.id().into_owned()));
            }
            Err(error) => _ = refused(error)?,
        }
        Ok(())
    }
}

/// Puts everything between an answer and the next prompt on one path: results of parallel calls, and context between them.
///
/// ```text
/// source   a ─┬─ r1            written   a ── r1 ── r2 ── b
///             └─ r2 ── b
/// ```
///
/// Some agents make each result a child of its call. Others send only the path to the head, and would report missing results.
#[derive(Default)]
pub(super) struct SinglePath {
    /// The last record of each path, by its answer.
    ends: HashMap<RecordId, ParentRecord>,
    /// The answer of each record on a path.
    answer_of: HashMap<RecordId, RecordId>,
}

impl SinglePath {
    /// The new parent of a record whose parent was written as `parent`: the end of that one's path.
    pub(super) fn end(&self, parent: ParentRecord, kind: Kind) -> ParentRecord {
        let answer = self.answer_of.get(&parent.id).or(is_on_path(kind).then_some(&parent.id));
        answer.and_then(|answer| self.ends.get(answer)).cloned().unwrap_or(parent)
    }

    /// Notes that a record was written as a child of `parent`.
    pub(super) fn add(&mut self, parent: &ParentRecord, kind: Kind, written: &ParentRecord) {
        let own = (parent.kind == Kind::Assistant).then_some(&parent.id);
        if let Some(answer) = self.answer_of.get(&parent.id).or(own).cloned().filter(|_| is_on_path(kind)) {
            self.answer_of.insert(written.id.clone(), answer.clone());
            self.ends.insert(answer, written.clone());
        }
    }
}

fn is_on_path(kind: Kind) -> bool {
    matches!(kind, Kind::ToolResult | Kind::Attachment)
}
