//! Where records hang in the new file.

use super::{Replay, Sidechains, refused};
use crate::model::error::Result;
use crate::model::loss::LossKind;
use crate::model::record::Kind;
use crate::session::RecordRef;
use crate::write::recorder::ParentRecord;

impl<'s> Replay<'s> {
    /// Goes on from a record. Where that is not the one that was written last, it is told that the next one leads.
    pub(super) fn branch_from(&mut self, tip: Option<ParentRecord>, next: RecordRef<'s>) {
        let is_sidechain = self.is_beside(next);
        let is_of_conversation = !next.is_side() && !is_sidechain;
        let leads = self
            .last_of_conversation
            .as_ref()
            .is_some_and(|last| tip.as_ref().is_none_or(|tip| tip.id != *last));
        self.recorder.go_on_from(tip, is_sidechain, leads && is_of_conversation);
    }

    /// Whether a record is work beside the conversation in the new file, too.
    fn is_beside(&self, record: RecordRef<'_>) -> bool {
        record.is_sidechain() && self.sidechains == Sidechains::Beside
    }

    /// A record was written that others can hang on.
    pub(super) fn follow(&mut self, written: RecordRef<'s>) {
        self.last_link = self.recorder.head().cloned();
        if !self.is_beside(written) {
            self.last_of_conversation.clone_from(&self.last_link);
        }
    }

    /// What hangs on records that are not said hangs on what they hung on.
    pub(super) fn pass_over(&mut self, group: &[RecordRef<'s>]) {
        let above = group.first().and_then(|first| first.parent());
        if let Some(tip) = above.and_then(|above| self.parents.get(&above.order()).cloned()) {
            self.parents.extend(group.iter().map(|record| (record.order(), tip.clone())));
        }
    }

    /// What hangs on these records hangs on what was written last.
    pub(super) fn keep_tip(&mut self, group: &[RecordRef<'_>]) {
        if let Some(tip) = self.recorder.tip() {
            if let Some(last) = group.iter().rfind(|record| !record.is_side() && record.id() != tip.id.as_str()) {
                self.out.ids.insert(tip.id.to_string(), last.id().into_owned());
            }
            self.parents
                .extend(group.iter().filter(|record| !record.is_side()).map(|record| (record.order(), tip.clone())));
        }
    }

    /// The last link of the file is its head: where that is another record, going on from it is said.
    pub(super) fn end_at(&mut self, head: Option<RecordRef<'_>>) -> Result<()> {
        self.end_turn()?;
        let Some(head) = head else { return Ok(()) };
        // What its tools gave back belongs to an answer: the branch that ends in it has the results, too.
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
                // What goes on behind it goes on from there.
                let step = self.recorder.tip().map(|tip| tip.id.to_string());
                step.into_iter().for_each(|step| _ = self.out.ids.entry(step).or_insert(head.id().into_owned()));
            }
            Err(error) => _ = refused(error)?,
        }
        Ok(())
    }
}
