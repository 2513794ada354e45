//! Replays the records of a session to a recorder of another dialect.

mod open;
mod restore;
mod parents;
mod title;
mod turn;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};

use super::answers::{answers, costs_of, joined};
use super::pairing::Pairing;
use super::replay_host::ReplayHost;
use super::sent::Sent;
use super::{Conversion, LossRow};
use crate::dialect::writer::{Shape, WriteUnit};
use crate::model::error::{Error, Result};
use crate::model::loss::{LossKind, Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, RecordId, SessionId, Usage};
use crate::session::{RecordRef, Session};
use crate::write::recorder::{Entry, ParentRecord, Recorder, Saved};
use crate::write::store::Store;
use parents::SinglePath;
pub(super) use restore::restore;
use title::{CurrentTitle, title_record};
use turn::continues_turn;

/// The result of a replay.
#[derive(Default)]
pub(super) struct Replayed {
    /// Records that were not replayed, or changed before they were.
    pub(super) left_out: Vec<LossRow>,
    /// What the writer reported of records.
    pub(super) declared: Vec<LossRow>,
    /// The source's ids of records, by their new ids, where these differ.
    pub(super) ids: BTreeMap<String, String>,
    /// The new ids of the source's records, by their order.
    pub(super) parents: HashMap<usize, String>,
    /// The last record of the branch, if only one was replayed.
    pub(super) head: Option<String>,
    /// Something was written.
    pub(super) has_content: bool,
    /// The records of a restored original.
    pub(super) restored: HashSet<String>,
    /// The original was restored with its title, which was not changed since.
    pub(super) keeps_title: bool,
}

/// Replays a whole session.
pub(super) fn all(
    session: &Session,
    how: &Conversion<'_>,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let head = session.named_head(how.head)?;
    let mut replay = Replay::begin(session, store, id, how.with, file)?;
    let branch = head.map(|head| session.branch(head).records).unwrap_or_default();
    // The head of a file is never in a sidechain: if one was chosen, it becomes the conversation.
    let chosen = head.filter(|head| how.head.is_some() && head.is_sidechain() && session.head() != Some(*head));
    if let Some(head) = chosen {
        replay.sidechains = Sidechains::Conversation;
        replay.lose(head, LossKind::Renamed, Lost::Sidechain);
    }
    if store.writing.shape == Shape::Tree && chosen.is_none() {
        let records: Vec<RecordRef<'_>> = session.records().collect();
        replay.replay(&records)?;
        replay.end_with_title(head)?;
        replay.end_at(head)?;
        // What continues from a chosen head continues from that record in the source, too.
        replay.out.head = how.head.and(head).map(|head| head.id().into_owned());
    } else {
        replay.out.head = head.map(|head| head.id().into_owned());
        replay.replay_branch(&branch, &session.records().collect::<Vec<_>>())?;
        replay.end_with_title(head)?;
    }
    replay.finish()
}

/// What becomes of sidechains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sidechains {
    /// They stay sidechains, if the format has them.
    Beside,
    /// They are the conversation of the new session.
    Conversation,
}

/// A recorder whose clock and ids are the source's.
struct Replay<'s> {
    recorder: Recorder,
    unit: WriteUnit,
    shape: Shape,
    sidechains: Sidechains,
    host: ReplayHost,
    /// The new parent of the children of each record of the source, by its order.
    parents: HashMap<usize, ParentRecord>,
    /// In a linear format, the parent of the first record.
    linear_parent: Option<ParentRecord>,
    out: Replayed,
    /// The usage of answers, by their first records.
    costs: HashMap<usize, Usage>,
    /// The records of the turn that the recorder holds until it ends.
    held: Vec<RecordRef<'s>>,
    pairing: Pairing,
    sent: Sent<'s>,
    path: SinglePath,
    title: CurrentTitle,
    /// The folders that paths in snapshots are relative to, in the source and in the new file, if these differ.
    path_bases: Option<(PathBuf, PathBuf)>,
    /// The last record that was written and can have children, and the last one outside sidechains.
    last_link: Option<RecordId>,
    last_of_conversation: Option<RecordId>,
}

impl<'s> Replay<'s> {
    /// Replays one branch and the current title, for a format without branches, and reports all other records.
    fn replay_branch(&mut self, branch: &[RecordRef<'s>], records: &[RecordRef<'s>]) -> Result<()> {
        let title = records.first().map_or(Ok(None), |any| title_record(any.session))?;
        // A title elsewhere in the tree is written after the branch.
        let title = title.filter(|title| title.is_side() && !branch.contains(title) && records.contains(title));
        let content: Vec<RecordRef<'s>> = branch.iter().copied().chain(title).collect();
        self.replay(&content)?;
        let is_replayed: HashSet<usize> = content.iter().map(|record| record.order()).collect();
        for record in records.iter().filter(|record| !is_replayed.contains(&record.order())) {
            let what = match () {
                () if record.kind() == Kind::Title => {
                    self.leave_title(*record)?;
                    continue;
                }
                () if record.is_side() => lost_beside(*record),
                () if record.is_sidechain() => Lost::Sidechain,
                () => Lost::OtherBranch,
            };
            self.lose(*record, LossKind::Dropped, what);
        }
        Ok(())
    }

    fn replay(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let answers = answers(records)?;
        let mut first_of: HashMap<usize, RecordRef<'s>> = HashMap::new();
        for record in records {
            first_of.entry(record.order()).or_insert(*record);
            let Some(members) = answers.get(&record.order()) else { continue };
            first_of.extend(members.iter().map(|member| (member.order(), *record)));
        }
        let group = |first: &RecordRef<'s>| answers.get(&first.order()).cloned().unwrap_or_else(|| vec![*first]);
        records.iter().for_each(|record| self.pairing.expect(*record));
        let (costs, compactions) = costs_of(records, &first_of);
        self.costs = costs;
        compactions.into_iter().for_each(|compaction| self.lose(compaction, LossKind::Dropped, Lost::Usage));
        self.sent = Sent::of(records)?;
        let mut is_replayed: HashSet<usize> = HashSet::new();
        for record in records {
            // A record that precedes its parent waits for it; a cycle is cut where it is entered.
            let mut waiting = Vec::new();
            let mut next = Some(*record);
            while let Some(first) = next.and_then(|record| first_of.get(&record.order()).copied()) {
                if !is_replayed.insert(first.order()) {
                    break;
                }
                waiting.push(first);
                next = first.parent().filter(|_| self.shape == Shape::Tree);
            }
            while let Some(first) = waiting.pop() {
                self.replay_one(first, &group(&first))?;
            }
        }
        Ok(())
    }

    /// Replays one record, or one answer that the source wrote as several.
    fn replay_one(&mut self, first: RecordRef<'s>, group: &[RecordRef<'s>]) -> Result<()> {
        if self.sent.is_attached(first) {
            self.pass_over(group);
            return Ok(());
        }
        let mut body = self.sent.settle(joined(group)?, group)?;
        self.fill_in(&mut body, first)?;
        if let (Body::Snapshot(snapshot), Some((from, to))) = (&mut body, &self.path_bases) {
            snapshot.rebase_paths(from, to);
        }
        let mut repairs = self.pairing.repair(&mut body, group);
        repairs.losses.drain(..).for_each(|(kind, what)| self.lose(first, kind, what));
        if !self.takes(first, &body) {
            self.pass_over(group);
            return Ok(());
        }
        let last = group.last().copied().unwrap_or(first);
        if let Some(results) = self.results_beside_text(&mut body) {
            let calls = std::mem::take(&mut repairs.calls);
            self.host.add_to(first, last);
            self.add_to_turn(first, Body::Assistant(Content { parts: calls, ..Content::default() }))?;
            self.add_to_turn(first, results)?;
        }
        if !continues_turn(body.kind()) && !first.is_state() {
            self.end_turn()?;
        }
        self.host.turn_to(first, last);
        let on = self.set_parent(first, body.kind());
        self.make_calls(first, last, repairs.calls)?;
        if let Some(attached) = self.sent.before(first)? {
            self.write_before(first, last, Body::Attachment(attached))?;
        }
        match body {
            Body::Header(_) => {
                self.lose(first, LossKind::Dropped, Kind::Header);
                self.pass_over(group);
            }
            Body::Other(_) => {
                self.lose(first, LossKind::Dropped, Kind::Other);
                self.keep_tip(group);
            }
            body => {
                let kind = body.kind();
                let ack = match body {
                    Body::Attachment(content) if first.is_state() => self.recorder.add_to_message(content),
                    body => self.recorder.record(body),
                };
                self.settle(first, group, ack, on.map(|on| (on, kind)))?;
            }
        }
        Ok(())
    }

    /// Fills in the model and the usage of an answer, if the source has them in other records.
    fn fill_in(&mut self, body: &mut Body, first: RecordRef<'s>) -> Result<()> {
        let usage = self.costs.remove(&first.order());
        let Body::Assistant(content) = body else { return Ok(()) };
        // If several answers report one request, one of them gets its usage.
        content.usage = usage.or(content.usage.filter(|_| first.is_inherited()));
        if let (None, Some(surroundings)) = (&content.model, first.surroundings()) {
            content.model = surroundings.body()?.content().and_then(|content| content.model.clone());
        }
        Ok(())
    }

    /// Whether a body is replayed at all; what is left out is lost.
    fn takes(&mut self, first: RecordRef<'s>, body: &Body) -> bool {
        let is_left_out = match body {
            // Its results are duplicates, and reported already.
            Body::ToolResult(content) if content.results.is_empty() && content.parts.is_empty() => return false,
            Body::Title(title) => return self.takes_title(first, title),
            // Side records are on no branch; as a record with a parent it would be a branch of its own.
            Body::Attachment(_) | Body::System(_) | Body::Assistant(_) if first.is_side() => {
                self.lose(first, LossKind::Dropped, lost_beside(first));
                return false;
            }
            Body::Attachment(_) if first.is_state() => false,
            Body::Attachment(content) => self.unit == WriteUnit::Turn && !content.to_model,
            _ => false,
        };
        if is_left_out {
            self.lose(first, LossKind::Dropped, first.kind());
        }
        !is_left_out
    }

    /// Sets the parent of the next record. Returns it if both are in the conversation.
    fn set_parent(&mut self, first: RecordRef<'s>, kind: Kind) -> Option<ParentRecord> {
        if self.shape != Shape::Tree {
            if let Some(tip) = self.linear_parent.take() {
                self.branch_from(Some(tip), first);
            }
            return None;
        }
        let tip = match first.parent() {
            Some(parent) if first.is_sidechain() => self.parents.get(&parent.order()).cloned(),
            Some(parent) => self.parents.get(&parent.order()).map(|tip| self.path.end(tip.clone(), kind)),
            // A side record does not start a conversation, if the format has it in one.
            None if first.is_side() => self.recorder.tip().cloned(),
            None => None,
        };
        self.branch_from(tip.clone(), first);
        tip.filter(|_| !first.is_sidechain() && !first.is_side())
    }

    /// Writes calls that are missing in the source, before the record with their results.
    fn make_calls(&mut self, first: RecordRef<'s>, last: RecordRef<'s>, calls: Vec<Part>) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.write_before(first, last, Body::Assistant(Content { parts: calls, ..Content::default() }))
    }

    /// Writes a record that the source does not have there before one that it has.
    fn write_before(&mut self, first: RecordRef<'s>, last: RecordRef<'s>, body: Body) -> Result<()> {
        self.host.add_to(first, first);
        match self.recorder.record(body) {
            Ok(_) => {}
            Err(error) => _ = refused(error)?,
        }
        self.host.turn_to(first, last);
        Ok(())
    }

    /// Notes the result of replaying some records, and the new parent of their children.
    fn settle(
        &mut self,
        first: RecordRef<'s>,
        group: &[RecordRef<'s>],
        entry: Result<Entry>,
        on: Option<(ParentRecord, Kind)>,
    ) -> Result<()> {
        match entry {
            Ok(Entry { saved: None, .. }) => {
                self.held.extend(group);
                return Ok(());
            }
            Ok(Entry { saved: Some(saved), .. }) => {
                self.note(&first.id(), saved);
                if !first.is_side() {
                    self.follow(first);
                }
                if let (Some((on, kind)), Some(written)) = (on, self.recorder.tip()) {
                    self.path.add(&on, kind, written);
                }
            }
            Err(error) => self.refuse(first, error, first.kind())?,
        }
        self.keep_tip(group);
        Ok(())
    }

    fn note(&mut self, record: &str, saved: Saved) {
        self.out.has_content = true;
        self.declare(record, saved.losses);
    }

    /// Adds what the writer reported about a record.
    fn declare(&mut self, record: &str, losses: Losses) {
        let rows = losses
            .into_iter()
            .map(|loss| LossRow { count: loss.count, ..LossRow::new(record, loss.kind, loss.what) });
        self.out.declared.extend(rows);
    }

    /// Adds that a record was left out or changed.
    fn lose(&mut self, record: RecordRef<'_>, kind: LossKind, what: impl Into<Lost>) {
        self.out.left_out.push(LossRow::new(&record.id(), kind, what));
    }

    /// Adds that the format cannot store a record.
    fn refuse(&mut self, record: RecordRef<'_>, error: Error, kind: Kind) -> Result<()> {
        let losses = refused(error)?;
        let losses = if losses.is_empty() { LossKind::Dropped.of(kind).into() } else { losses };
        self.declare(&record.id(), losses);
        Ok(())
    }

    fn finish(mut self) -> Result<Replayed> {
        self.end_turn()?;
        self.recorder.sync()?;
        self.out.parents = self.parents.into_iter().map(|(order, tip)| (order, tip.id.0)).collect();
        Ok(self.out)
    }
}

/// What a record beside the conversation is, if it is left out. An answer there is a compaction's own, which has its summary.
fn lost_beside(record: RecordRef<'_>) -> Lost {
    if record.kind() == Kind::Assistant { Lost::CompactionDetails } else { record.kind().into() }
}

/// What the format cannot store, if that is the error; other errors stop the conversion.
fn refused(error: Error) -> Result<Losses> {
    match error {
        Error::CannotStore { losses, .. } => Ok(losses),
        Error::CannotContinue { .. } | Error::OutOfOrder(_) => Ok(Losses::default()),
        error => Err(error),
    }
}
