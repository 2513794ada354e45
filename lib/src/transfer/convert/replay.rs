//! The records of a session, said again to a recorder of another dialect.

mod begin;
mod filling;
mod go_on;
mod tips;
mod title;
mod turn;

use std::collections::BTreeMap;
use std::path::Path;

use hashbrown::{HashMap, HashSet};

use super::answers::{answers, joined};
use super::pairing::Pairing;
use super::path::OnePath;
use super::script::Script;
use super::{Conversion, LossRow};
use crate::dialect::writer::{Shape, WriteUnit};
use crate::model::error::{Error, Result};
use crate::model::loss::{Loss, LossKind, Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, RecordId, SessionId, Usage};
use crate::session::{RecordRef, Session};
use crate::write::recorder::{Ack, ParentRecord, Recorder, Saved};
use crate::write::store::Store;
use filling::costs_of;
pub(super) use go_on::go_on;
use title::{Called, title_record};
use turn::goes_into_a_turn;

/// What came of saying a session again.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) losses: Vec<LossRow>,
    /// The source's names of records that are called otherwise now.
    pub(super) ids: BTreeMap<String, String>,
    /// What records of the source are called now, by their order.
    pub(super) tips: HashMap<usize, String>,
    /// The record that the branch ended in, where only one was said.
    pub(super) head: Option<String>,
    /// Something of it was written.
    pub(super) has_said: bool,
    /// What is in the new file because it was in the original: nobody made it up.
    pub(super) came_back: CameBack,
}

/// What came back with the lines of the original; nothing where there are none.
#[derive(Default)]
pub(super) struct CameBack {
    /// Its records.
    pub(super) records: HashSet<String>,
    /// The records of the source that were made of them, by their order.
    pub(super) stand_ins: HashSet<usize>,
    /// It has the title that it had: nobody gave another one since.
    pub(super) keeps_title: bool,
}

/// Says a whole session again.
pub(super) fn all(
    session: &Session,
    how: &Conversion<'_>,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let head = session.head_called(how.head)?;
    let mut replay = Replay::begin(session, store, id, how.with, file)?;
    let branch = head.map(|head| session.branch(head).records).unwrap_or_default();
    // No file leads into work beside its conversation: where that was chosen, it is the conversation.
    let chosen = head.filter(|head| how.head.is_some() && head.is_sidechain() && session.head() != Some(*head));
    if let Some(head) = chosen {
        replay.sidechains = Sidechains::Conversation;
        replay.lose_as(&head.id(), LossKind::Renamed.of(Lost::Sidechain));
    }
    if store.writing.shape == Shape::Tree && chosen.is_none() {
        let records: Vec<RecordRef<'_>> = session.records().collect();
        replay.say(&records)?;
        replay.end_with_title(head)?;
        replay.end_at(head)?;
        // Where the head was chosen, what goes on from it goes on from there in the source, too.
        replay.told.head = how.head.and(head).map(|head| head.id().into_owned());
    } else {
        replay.told.head = head.map(|head| head.id().into_owned());
        replay.say_line(&branch, &session.records().collect::<Vec<_>>())?;
        replay.end_with_title(head)?;
    }
    replay.finish()
}

/// What becomes of work beside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sidechains {
    /// It stays beside it, where the format has such.
    Beside,
    /// It is what the new session says.
    Conversation,
}

/// A recorder whose clock and ids are the source's.
struct Replay<'s> {
    recorder: Recorder,
    unit: WriteUnit,
    shape: Shape,
    sidechains: Sidechains,
    script: Script,
    /// What hangs on a record of the source hangs on this.
    tips: HashMap<usize, ParentRecord>,
    tip_of_linear: Option<ParentRecord>,
    told: Replayed,
    /// What answers cost, by their first records.
    costs: HashMap<usize, Usage>,
    /// What the recorder holds of a turn that is not over.
    held: Vec<RecordRef<'s>>,
    pairing: Pairing,
    path: OnePath,
    called: Called,
    /// The last record of the chain that was written, and the last that is no work beside the conversation.
    last_link: Option<RecordId>,
    last_of_conversation: Option<RecordId>,
}

impl<'s> Replay<'s> {
    /// Says the records of the one branch that a format without branches holds, with the title that counts, and tells what of
    /// the others is left.
    fn say_line(&mut self, branch: &[RecordRef<'s>], records: &[RecordRef<'s>]) -> Result<()> {
        let title = records.first().map_or(Ok(None), |any| title_record(any.session))?;
        // One that hangs elsewhere in the tree is said behind the branch, as none of its records.
        let title = title.filter(|title| title.is_side() && !branch.contains(title) && records.contains(title));
        let content: Vec<RecordRef<'s>> = branch.iter().copied().chain(title).collect();
        self.say(&content)?;
        let is_said: HashSet<usize> = content.iter().map(|record| record.order()).collect();
        for record in records.iter().filter(|record| !is_said.contains(&record.order())) {
            let what = match () {
                () if record.kind() == Kind::Title => {
                    self.leave_title(*record)?;
                    continue;
                }
                () if record.is_side() => record.kind().into(),
                () if record.is_sidechain() => Lost::Sidechain,
                () => Lost::OtherBranch,
            };
            self.lose(*record, what);
        }
        Ok(())
    }

    fn say(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let answers = answers(records)?;
        let mut first_of: HashMap<usize, RecordRef<'s>> = HashMap::new();
        for record in records {
            first_of.entry(record.order()).or_insert(*record);
            let Some(members) = answers.get(&record.order()) else { continue };
            first_of.extend(members.iter().map(|member| (member.order(), *record)));
        }
        let group = |first: &RecordRef<'s>| answers.get(&first.order()).cloned().unwrap_or_else(|| vec![*first]);
        records.iter().for_each(|record| self.pairing.expect(*record));
        self.costs = costs_of(records, &first_of);
        let mut is_said: HashSet<usize> = HashSet::new();
        for record in records {
            // A record that stands before its parent waits for it; a circle is cut where it is entered.
            let mut waiting = Vec::new();
            let mut next = Some(*record);
            while let Some(first) = next.and_then(|record| first_of.get(&record.order()).copied()) {
                if !is_said.insert(first.order()) {
                    break;
                }
                waiting.push(first);
                next = first.parent().filter(|_| self.shape == Shape::Tree);
            }
            while let Some(first) = waiting.pop() {
                self.say_one(first, &group(&first))?;
            }
        }
        Ok(())
    }

    /// Says one record, or one answer that the source wrote as several.
    fn say_one(&mut self, first: RecordRef<'s>, group: &[RecordRef<'s>]) -> Result<()> {
        let mut body = joined(group)?;
        self.fill_in(&mut body, first)?;
        let mut sanitized = self.pairing.mend(&mut body, group);
        std::mem::take(&mut sanitized.losses).into_iter().for_each(|loss| self.lose_as(&first.id(), loss));
        if !self.is_said(first, &body) {
            self.pass_over(group);
            return Ok(());
        }
        let last = group.last().copied().unwrap_or(first);
        if let Some(results) = self.results_beside_words(&mut body) {
            let calls = std::mem::take(&mut sanitized.calls);
            self.script.add_to(first, last);
            self.say_into_turn(first, Body::Assistant(Content { parts: calls, ..Content::default() }))?;
            self.say_into_turn(first, results)?;
        }
        if !goes_into_a_turn(&body) && !first.is_state() {
            self.end_turn()?;
        }
        self.script.turn_to(first, last);
        let on = self.hang(first, body.kind());
        self.make_calls(first, last, sanitized.calls)?;
        match body {
            Body::Header(_) => {
                self.lose(first, Kind::Header);
                self.pass_over(group);
            }
            Body::Other(_) => {
                self.lose(first, Kind::Other);
                self.keep_tip(group);
            }
            body => {
                let kind = body.kind();
                let came = match body {
                    Body::Attachment(content) if first.is_state() => self.recorder.add_to_message(content),
                    body => self.recorder.record(body),
                };
                self.settle(first, group, came, on.map(|on| (on, kind)))?;
            }
        }
        Ok(())
    }

    /// Whether a body is said at all; what is left out is lost.
    fn is_said(&mut self, first: RecordRef<'s>, body: &Body) -> bool {
        let is_left_out = match body {
            // Its results were others' already, and that is told.
            Body::ToolResult(content) if content.results.is_empty() && content.parts.is_empty() => return false,
            Body::Title(title) => return self.takes_title(first, title),
            // Nobody sees it on a branch, and where it became a record of the chain it would be a branch of its own.
            Body::Attachment(_) | Body::System(_) if first.is_side() => true,
            Body::Attachment(_) if first.is_state() => false,
            Body::Attachment(content) => self.unit == WriteUnit::Turn && !content.to_model,
            _ => false,
        };
        if is_left_out {
            self.lose(first, first.kind());
        }
        !is_left_out
    }

    /// Lets the next record hang where it hung, and tells where that is in the conversation.
    fn hang(&mut self, first: RecordRef<'s>, kind: Kind) -> Option<ParentRecord> {
        if self.shape != Shape::Tree {
            if let Some(tip) = self.tip_of_linear.take() {
                self.branch_from(Some(tip), first);
            }
            return None;
        }
        let tip = match first.parent() {
            Some(parent) if first.is_sidechain() => self.tips.get(&parent.order()).cloned(),
            Some(parent) => self.tips.get(&parent.order()).map(|tip| self.path.end(tip.clone(), kind)),
            // What stands beside the conversation begins none of its own, where it is written into one.
            None if first.is_side() => self.recorder.tip().cloned(),
            None => None,
        };
        self.branch_from(tip.clone(), first);
        tip.filter(|_| !first.is_sidechain() && !first.is_side())
    }

    /// Says the calls that a record's results are given to, and that nobody made.
    fn make_calls(&mut self, first: RecordRef<'s>, last: RecordRef<'s>, calls: Vec<Part>) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.script.add_to(first, first);
        match self.recorder.record(Body::Assistant(Content { parts: calls, ..Content::default() })) {
            Ok(_) => {}
            Err(error) => _ = not_held(error)?,
        }
        self.script.turn_to(first, last);
        Ok(())
    }

    /// What came of saying some records, and what hangs on them now.
    fn settle(
        &mut self,
        first: RecordRef<'s>,
        group: &[RecordRef<'s>],
        came: Result<Ack>,
        on: Option<(ParentRecord, Kind)>,
    ) -> Result<()> {
        match came {
            Ok(Ack::Held { .. }) => {
                self.held.extend(group);
                return Ok(());
            }
            Ok(Ack::Saved(saved)) => {
                self.note(&first.id(), saved);
                if !first.is_side() {
                    self.follow(first);
                }
                if let (Some((on, kind)), Some(written)) = (on, self.recorder.tip()) {
                    self.path.add(&on, kind, written);
                }
            }
            Ok(Ack::NotRecorded) => {}
            Err(error) => {
                let losses = not_held(error)?;
                self.lose_all(first, losses, first.kind());
            }
        }
        self.keep_tip(group);
        Ok(())
    }

    fn note(&mut self, record: &str, saved: Saved) {
        self.told.has_said = true;
        saved.losses.into_iter().for_each(|loss| self.lose_as(record, loss));
    }

    fn lose_as(&mut self, record: &str, loss: Loss) {
        let Loss { what, kind, count } = loss;
        self.told.losses.push(LossRow { record: record.to_owned(), what, kind, count, fields: Vec::new() });
    }

    fn lose(&mut self, record: RecordRef<'_>, what: impl Into<Lost>) {
        self.lose_as(&record.id(), LossKind::Dropped.of(what));
    }

    /// A record that has no place, with what its writer said of it.
    fn lose_all(&mut self, record: RecordRef<'_>, losses: Losses, kind: Kind) {
        if losses.is_empty() {
            self.lose(record, kind);
        }
        losses.into_iter().for_each(|loss| self.lose_as(&record.id(), loss));
    }

    fn finish(mut self) -> Result<Replayed> {
        self.end_turn()?;
        self.recorder.sync()?;
        self.told.tips = self.tips.into_iter().map(|(order, tip)| (order, tip.id.0)).collect();
        Ok(self.told)
    }
}

/// What the format has no place for, as far as its writer told; other errors stop the conversion.
fn not_held(error: Error) -> Result<Losses> {
    match error {
        Error::CannotStore { losses, .. } => Ok(losses),
        Error::CannotContinue { .. } | Error::OutOfOrder(_) => Ok(Losses::default()),
        error => Err(error),
    }
}
