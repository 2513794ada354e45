//! The history of one path: facts in the order of their messages, and what follows from them.

use std::io;
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::edit::Edit;
use super::version::{FileContent, FileVersion, KnownVersion, Unknown};
use super::{ChangeAction, ChangeRow, RestoreEvent};
use crate::model::hash::Hashing;
use crate::model::record::RecordId;
use crate::session::RecordRef;
use crate::session::backups::why_unusable;

/// Larger contents are not rebuilt from edits.
const REBUILD_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// A moment in the timeline: the place of a message in the file, the place of a tool call in it, and what comes before what there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    message: usize,
    call: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// What was there before.
    Before,
    Change,
    /// What is there then.
    After,
}

impl Moment {
    /// Right before a record.
    pub(crate) fn before(record: RecordRef<'_>) -> Moment {
        Moment::at(record.order(), Phase::Before)
    }

    /// Right after everything that a record did, before anything was restored.
    pub(crate) fn after(record: RecordRef<'_>) -> Moment {
        Moment::of_journal(record.order(), 0, Phase::Before)
    }

    /// The place of its message in the file.
    pub(crate) fn order(self) -> usize {
        self.message
    }

    /// Before everything.
    pub(crate) fn start() -> Moment {
        Moment::at(0, Phase::Before)
    }

    /// At a message as a whole.
    pub(super) fn at(message: usize, phase: Phase) -> Moment {
        let call = if phase == Phase::Before { 0 } else { CALLS };
        Moment { message, call, phase }
    }

    /// At a tool call in a message.
    pub(super) fn of_call(message: usize, call: usize, phase: Phase) -> Moment {
        Moment { message, call: (call + 1).min(CALLS - 1), phase }
    }

    /// At a restore from our journal: after everything of the last message that was there.
    pub(super) fn of_journal(message: usize, number: usize, phase: Phase) -> Moment {
        Moment { message, call: CALLS + 1 + number.min(CALLS), phase }
    }
}

/// More calls than a message has.
const CALLS: usize = usize::MAX / 4;

/// Something that is known of a path at a moment.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) moment: Moment,
    /// The record that tells of it.
    pub(super) record: RecordId,
    /// The message that it belongs to.
    pub(super) message: RecordId,
    pub(super) tool: Option<String>,
    pub(super) at: Option<Timestamp>,
    /// Undo or redo did it, not the agent.
    pub(super) is_restore: bool,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    /// What the file was then.
    Was(KnownVersion),
    /// A tool changed it.
    Edited {
        edit: Edit,
        /// There is no result: nobody knows whether it happened.
        is_open: bool,
    },
    /// It changed in a way that is not described.
    Changed,
}

/// The history of one path.
#[derive(Debug, Default)]
pub(crate) struct PathHistory {
    /// In order.
    facts: Vec<Fact>,
    /// The agent that took the snapshots does not tell a new file from one that is not text.
    pub(crate) has_text_only: bool,
}

/// A content that follows from edits that were taken back.
pub(crate) struct Rebuilt {
    pub(crate) version: FileVersion,
    /// The edits lead to what is on disk, so that nothing else has to be known of that.
    pub(crate) leads_to_disk: bool,
}

/// Who changed a file between two changes of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Between {
    /// Somebody else did.
    Somebody,
    /// Nobody knows: the copy of what was there cannot be used.
    Unknown(Unknown),
}

/// How calls without a result count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenCalls {
    Happened,
    DidNot,
}

const NO_COPY: Unknown = Unknown::NotKept("no copy of it was kept");

impl PathHistory {
    /// Adds what a file was, unless that is known of the same moment.
    pub(super) fn add_first(&mut self, fact: Fact) {
        if self.statement_at(fact.moment).is_none() {
            self.add(fact);
        }
    }

    /// Adds what a file was, in the place of what is known of the same moment.
    pub(super) fn add_latest(&mut self, fact: Fact) {
        match self.statement_at(fact.moment) {
            Some(known) => *known = fact,
            None => self.add(fact),
        }
    }

    fn statement_at(&mut self, moment: Moment) -> Option<&mut Fact> {
        let near = self.facts.partition_point(|known| known.moment < moment);
        let is_same = |known: &&mut Fact| known.moment == moment && matches!(known.what, What::Was(_));
        self.facts[near..].iter_mut().rev().find(is_same)
    }

    pub(super) fn add(&mut self, fact: Fact) {
        let at = self.facts.partition_point(|known| known.moment <= fact.moment);
        self.facts.insert(at, fact);
    }

    /// What was there before a moment. A later statement counts as long as nothing changed the file in between; one that has no copy
    /// to use says so, whatever follows from the statements before it.
    pub(crate) fn before(&self, moment: Moment) -> KnownVersion {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        match self.facts.get(at).map(|fact| &fact.what) {
            Some(What::Was(Err(unknown @ Unknown::NotKept(_)))) => {
                self.state_after(at, OpenCalls::Happened).map_err(|_| unknown.clone())
            }
            Some(What::Was(version)) => version.clone(),
            Some(What::Edited { .. } | What::Changed) | None => self.state_after(at, OpenCalls::Happened),
        }
    }

    /// What was there when everything before a moment was done. What a later statement says counts only if it says the same: then it
    /// has a copy; else somebody else changed the file in between.
    pub(crate) fn left_before(&self, moment: Moment) -> KnownVersion {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        let left = self.state_after(at, OpenCalls::Happened);
        let next = self.before(moment);
        match (&left, &next) {
            (Ok(left), Ok(next)) if !same(left, next) => Ok(left.clone()),
            (Ok(left), Err(_)) => Ok(left.clone()),
            _ => next,
        }
    }

    /// What the session left at a moment. What stood there before the next change counts, unless that change is a restore: what a
    /// forced restore overwrote is not what the session left. If the agent made a copy at that message and noted the same before the
    /// next change, the copy is worth more.
    pub(crate) fn left_at(&self, moment: Moment) -> KnownVersion {
        let (stated, next) = self.around(moment);
        match (stated, next.map(|next| &next.what)) {
            _ if next.is_some_and(|next| next.is_restore) => self.left_with_copy(moment),
            (Some(Ok(copied)), Some(What::Was(Ok(noted))))
                if noted.is_rebuilt() && copied.copy().is_some() && same(copied, noted) =>
            {
                Ok(copied.clone())
            }
            _ => self.before(moment),
        }
    }

    /// Why the copy cannot be used that the agent made of what is left at a moment.
    pub(crate) fn failed_copy_at(&self, moment: Moment) -> Option<&Unknown> {
        match self.around(moment) {
            (_, Some(next)) if next.is_restore => None,
            (Some(Err(unknown)), _) => Some(unknown).filter(|unknown| !matches!(unknown, Unknown::NotKept(_))),
            _ => None,
        }
    }

    /// The last statement of the message that a moment is behind, if nothing changed since, and the next fact.
    fn around(&self, moment: Moment) -> (Option<&KnownVersion>, Option<&Fact>) {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        let stated = match self.facts[..at].last() {
            Some(Fact { what: What::Was(stated), moment: here, .. }) if here.message == moment.message => Some(stated),
            _ => None,
        };
        (stated, self.facts.get(at))
    }

    /// The same as [`PathHistory::left_before`], with a copy if there is one of that content from any moment.
    pub(crate) fn left_with_copy(&self, moment: Moment) -> KnownVersion {
        self.left_before(moment).map(|left| self.with_copy(left))
    }

    /// A version of which only the hash is known, with a copy of that content from another moment.
    fn with_copy(&self, version: FileVersion) -> FileVersion {
        let FileVersion::File { content: FileContent::Hash { sha256, .. }, mode } = &version else { return version };
        let has_it = |known: &&FileVersion| known.copy().is_some() && measured(known).1.as_ref() == Some(sha256);
        let known = self.facts.iter().filter_map(|fact| match &fact.what {
            What::Was(Ok(known)) => Some(known),
            _ => None,
        });
        let copy = known.into_iter().find(has_it).and_then(FileVersion::copy).cloned();
        match copy {
            Some(copy) => FileVersion::File { content: FileContent::Copy(copy), mode: *mode },
            None => version,
        }
    }

    /// The version whose content has this name: the SHA-256 of its bytes, or the name of its blob.
    pub(super) fn named(&self, hash: &str) -> Option<FileVersion> {
        let is_it = |version: &FileVersion| {
            version.copy().is_some_and(|copy| copy.blob_id() == Some(hash))
                || measured(version).1.as_deref() == Some(hash)
        };
        let stated = self.facts.iter().filter_map(|fact| match &fact.what {
            What::Was(Ok(known)) => Some(known.clone()),
            _ => None,
        });
        let followed = (1..=self.facts.len()).filter_map(|at| match self.facts[at - 1].what {
            What::Edited { .. } => self.state_after(at, OpenCalls::Happened).ok(),
            What::Was(_) | What::Changed => None,
        });
        // One with a copy is worth more than one of which only the hash is known.
        let mut found: Vec<FileVersion> = stated.chain(followed).filter(is_it).collect();
        let with_copy = found.iter().position(|version| version.copy().is_some()).unwrap_or(0);
        (with_copy < found.len()).then(|| found.swap_remove(with_copy))
    }

    /// Whether a restore found something else than what was there at an earlier moment.
    pub(crate) fn is_other_at(&self, restore: &RestoreEvent, earlier: Moment) -> bool {
        if !self.is_changed_by(&restore.id) {
            return false;
        }
        match (self.before(earlier), self.before(restore.moment)) {
            (Ok(earlier), Ok(found)) => !same(&earlier, &found),
            _ => false,
        }
    }

    /// Who changed the file between two changes of the session since a moment; `None` if nobody did.
    pub(crate) fn changed_by_others_since(&self, moment: Moment) -> Option<Between> {
        let mut left: Option<FileVersion> = None;
        // A copy that cannot be used leaves a gap. The next statement closes it, unless something came between that says nothing of
        // what was there.
        let (mut gap, mut open_gap) = (None, None);
        for fact in &self.facts[self.facts.partition_point(|fact| fact.moment < moment)..] {
            match &fact.what {
                What::Was(Ok(now)) => match left.as_ref().map_or(Ok(true), |left| compared(left, now)) {
                    Ok(true) => (left, gap) = (Some(now.clone()), None),
                    Ok(false) => return Some(Between::Somebody),
                    Err(unknown) => gap = Some(unknown),
                },
                What::Was(Err(Unknown::NotKept(_))) => left = None,
                What::Was(Err(unknown)) => gap = left.as_ref().map(|_| unknown.clone()).or(gap),
                What::Edited { edit, .. } => {
                    if edit.apply_to_unknown().is_some() {
                        open_gap = open_gap.or(gap.take());
                    }
                    left = left.and_then(|left| fact.after(Ok(left), OpenCalls::Happened).ok());
                }
                What::Changed => {
                    open_gap = open_gap.or(gap.take());
                    left = None;
                }
            }
        }
        open_gap.or(gap).map(Between::Unknown)
    }

    /// Whether something proves that [`PathHistory::before`] is what was there: a statement of that moment, or the next one, if it
    /// follows from that content. A change that leads to the same from any content proves nothing; where there is none, the disk
    /// is the proof.
    pub(crate) fn is_proved_at(&self, moment: Moment) -> bool {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        if matches!(self.facts.get(at).map(|fact| &fact.what), Some(What::Was(Ok(_)))) {
            return true;
        }
        let follows = |open| {
            let mut state = self.state_after(at, open);
            for fact in &self.facts[at..] {
                match (&fact.what, &state) {
                    (What::Was(Ok(stated)), Ok(state)) => return same(stated, state),
                    (What::Was(Ok(_)), Err(_)) => return false,
                    (What::Was(Err(_)), _) => continue,
                    // A restore found what the session had left.
                    (What::Changed, _) => return fact.is_restore,
                    (What::Edited { edit, .. }, state) if edit.apply_to_unknown().is_some() => {
                        let bytes = state.as_ref().ok().and_then(FileVersion::copy);
                        let bytes = bytes.and_then(|copy| copy.read(REBUILD_LIMIT_BYTES).ok());
                        return bytes.is_some_and(|bytes| edit.is_difference_of(&bytes));
                    }
                    (What::Edited { .. }, _) => {}
                }
                state = fact.after(state, open);
            }
            true
        };
        follows(OpenCalls::Happened) || (self.has_open_calls() && follows(OpenCalls::DidNot))
    }

    fn has_open_calls(&self) -> bool {
        self.facts.iter().any(|fact| matches!(fact.what, What::Edited { is_open: true, .. }))
    }

    /// Notes which tool made the change that a snapshot of this message tells of.
    pub(super) fn name_tool(&mut self, message: usize, tool: &str) {
        let first = self.facts.partition_point(|fact| fact.moment.message < message);
        let here = self.facts[first..].iter_mut().take_while(|fact| fact.moment.message == message);
        let is_its = |fact: &&mut Fact| fact.tool.is_none() && !fact.is_restore;
        here.filter(is_its).for_each(|fact| fact.tool = Some(tool.to_owned()));
    }

    /// The same where a message has only one call: `calls` has its tool, by the place of the message.
    pub(super) fn name_only_tools(&mut self, calls: &HashMap<usize, Option<String>>) {
        for fact in self.facts.iter_mut().filter(|fact| fact.tool.is_none() && !fact.is_restore) {
            fact.tool = calls.get(&fact.moment.message).cloned().flatten();
        }
    }

    /// The same, if nothing else says so, with the edits since taken back: from the next content that is known, which an earlier
    /// undo kept, else from what is on disk now.
    pub(crate) fn before_edits(&self, moment: Moment, disk: impl FnOnce() -> Option<Vec<u8>>) -> Option<Rebuilt> {
        let since = &self.facts[self.facts.partition_point(|fact| fact.moment < moment)..];
        let known = since.iter().position(|fact| matches!(&fact.what, What::Was(Ok(_))));
        let edits = &since[..known.unwrap_or(since.len())];
        if edits.iter().any(|fact| !matches!(fact.what, What::Edited { is_open: false, .. })) {
            return None;
        }
        let mut content = match known.map(|at| &since[at].what) {
            Some(What::Was(Ok(version))) => version.copy()?.read(REBUILD_LIMIT_BYTES).ok()?.to_vec(),
            _ => disk()?,
        };
        for fact in edits.iter().rev() {
            let What::Edited { edit, .. } = &fact.what else { return None };
            content = edit.unapply(Some(&content))?;
        }
        Some(Rebuilt { version: FileVersion::rebuilt(content), leads_to_disk: known.is_none() })
    }

    /// What was before a moment, with the carriage returns that the file on disk has and an agent did not note: the edits are taken
    /// back from there, and each of its notes must say the same otherwise.
    pub(crate) fn with_line_ends_of(&self, moment: Moment, disk: Vec<u8>) -> Option<Rebuilt> {
        let mut content = disk;
        for fact in self.facts[self.facts.partition_point(|fact| fact.moment < moment)..].iter().rev() {
            match &fact.what {
                What::Edited { edit, is_open: false } => content = edit.unapply(Some(&content))?,
                What::Was(Ok(noted)) if noted.is_rebuilt() => {
                    let noted = noted.copy()?.read(REBUILD_LIMIT_BYTES).ok()?;
                    let text = std::str::from_utf8(&content).ok()?;
                    if text.replace("\r\n", "\n").as_bytes() != &*noted && text.as_bytes() != &*noted {
                        return None;
                    }
                }
                What::Was(_) | What::Changed | What::Edited { .. } => return None,
            }
        }
        Some(Rebuilt { version: FileVersion::rebuilt(content), leads_to_disk: true })
    }

    /// A content before a moment as an agent noted it. Claude Code notes only line feeds: what is known to have been there is used
    /// if it differs in nothing but its carriage returns.
    pub(super) fn with_its_line_ends(&self, noted: &str, moment: Moment) -> FileVersion {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        let known = self.state_after(at, OpenCalls::Happened).ok();
        let known = known.as_ref().and_then(FileVersion::copy).and_then(|copy| copy.read(REBUILD_LIMIT_BYTES).ok());
        let is_same = |bytes: &Arc<[u8]>| {
            let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("\r\n"));
            text.is_some_and(|text| text.replace("\r\n", "\n") == noted)
        };
        known.filter(is_same).map_or_else(|| FileVersion::rebuilt(noted.as_bytes()), FileVersion::rebuilt)
    }

    /// Compares the copy right before an edit with what the agent noted of the same moment. A copy without a hash has nothing else
    /// that vouches for it. Agents note neither carriage returns nor a byte order mark, and nothing that is not UTF-8.
    pub(super) fn doubt_copy(&mut self, noted: &str, moment: Moment) {
        let at = self.facts.partition_point(|fact| fact.moment < moment);
        let Some(Fact { what: What::Was(known), .. }) = self.facts[..at].last_mut() else { return };
        let Ok(FileVersion::File { content: FileContent::Copy(copy), .. }) = known else { return };
        let bytes = Some(&*copy).filter(|copy| copy.sha256().is_none() && copy.blob_id().is_none());
        let Some(bytes) = bytes.and_then(|copy| copy.read(REBUILD_LIMIT_BYTES).ok()) else { return };
        let plain = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        if std::str::from_utf8(&bytes).is_ok_and(|text| plain(text) != plain(noted)) {
            *known = Err(Unknown::Contradicted);
        }
    }

    /// Another file names the same copy: without a hash, nothing tells whose content it has.
    pub(super) fn doubt_shared_copy(&mut self, name: &str) {
        for fact in &mut self.facts {
            if let What::Was(known @ Ok(FileVersion::File { content: FileContent::Copy(_), .. })) = &mut fact.what
                && let Ok(version) = &*known
                && version.copy().is_some_and(|copy| copy.sha256().is_none() && copy.file_name() == Some(name))
            {
                *known = Err(Unknown::two_files());
            }
        }
    }

    /// What the session left.
    pub(crate) fn now(&self) -> KnownVersion {
        self.state_after(self.facts.len(), OpenCalls::Happened)
    }

    /// Everything that the session may have left.
    pub(crate) fn possibly_now(&self) -> Vec<FileVersion> {
        let without = self.has_open_calls().then(|| self.state_after(self.facts.len(), OpenCalls::DidNot));
        let mut versions: Vec<FileVersion> = std::iter::once(self.now()).chain(without).flatten().collect();
        versions.dedup();
        versions
    }

    /// Whether the session changed the file at or after a moment.
    pub(crate) fn is_changed_since(&self, moment: Moment) -> bool {
        self.is_changed_between(moment, None)
    }

    /// The same, before another moment.
    pub(super) fn is_changed_between(&self, moment: Moment, until: Option<Moment>) -> bool {
        let end = until.map_or(self.facts.len(), |until| self.facts.partition_point(|fact| fact.moment < until));
        let since = self.facts.get(self.facts.partition_point(|fact| fact.moment < moment)..end).unwrap_or_default();
        let mut was = None;
        since.iter().any(|fact| match &fact.what {
            What::Edited { .. } | What::Changed => true,
            What::Was(version) => was.replace(version).is_some_and(|before| before != version),
        })
    }

    /// Whether this restore changed the file.
    pub(crate) fn is_changed_by(&self, restore: &RecordId) -> bool {
        self.facts
            .iter()
            .any(|fact| fact.is_restore && fact.record == *restore && matches!(fact.what, What::Changed))
    }

    /// Whether the agent changed the file after a moment.
    pub(crate) fn is_changed_by_session_since(&self, moment: Moment) -> bool {
        let since = &self.facts[self.facts.partition_point(|fact| fact.moment <= moment)..];
        since
            .iter()
            .any(|fact| !fact.is_restore && matches!(fact.what, What::Edited { .. } | What::Changed))
    }

    /// The places of the session at which the agent changed the file, and the records that tell of it.
    pub(crate) fn changed_by_session(&self) -> impl Iterator<Item = (usize, &RecordId)> {
        let is_change = |fact: &&Fact| !fact.is_restore && !matches!(fact.what, What::Was(_));
        self.facts.iter().filter(is_change).map(|fact| (fact.moment.message, &fact.record))
    }

    /// The state after the first `count` facts.
    fn state_after(&self, count: usize, open: OpenCalls) -> KnownVersion {
        let facts = &self.facts[..count];
        let last = facts.iter().rposition(|fact| matches!(&fact.what, What::Was(_))).unwrap_or(0);
        let mut state = Err(NO_COPY);
        for fact in &facts[last..] {
            state = fact.after(state, open);
        }
        state
    }

    /// The changes, the oldest first.
    pub(super) fn rows(&self) -> Vec<ChangeRow> {
        let mut rows: Vec<ChangeRow> = Vec::new();
        let mut state = Err(NO_COPY);
        for (at, fact) in self.facts.iter().enumerate() {
            let before = state.clone();
            state = fact.after(state, OpenCalls::Happened);
            let next = self.facts.get(at + 1).map(|fact| &fact.what);
            let row = |source: &Fact, after: &KnownVersion| row(source, before.as_ref().ok(), after.as_ref().ok());
            rows.push(match (&fact.what, next) {
                // The next fact says what it was changed to.
                (What::Edited { .. } | What::Changed, Some(What::Was(after))) => row(fact, after),
                (What::Edited { .. } | What::Changed, _) => row(fact, &state),
                // Something that no record tells of changed it since the statement before; what comes after a change is no tool's.
                (What::Was(version), _) if at > 0 && self.is_unexplained(at, version) => {
                    let since = &self.facts[at - 1];
                    let tool = since.tool.clone().filter(|_| since.moment.phase != Phase::After);
                    ChangeRow { tool, ..row(since, version) }
                }
                (What::Was(_), _) => continue,
            });
        }
        rows
    }

    fn is_unexplained(&self, at: usize, version: &KnownVersion) -> bool {
        matches!((&self.facts[at - 1].what, version), (What::Was(Ok(before)), Ok(now)) if !same(before, now))
    }
}

impl Fact {
    /// The state after it.
    fn after(&self, state: KnownVersion, open: OpenCalls) -> KnownVersion {
        match &self.what {
            What::Edited { is_open: true, .. } if open == OpenCalls::DidNot => state,
            What::Edited { edit, .. } => edited(edit, &state),
            What::Was(version) => version.clone(),
            What::Changed => Err(Unknown::NotKept("what it was changed to was not recorded")),
        }
    }
}

fn row(fact: &Fact, before: Option<&FileVersion>, after: Option<&FileVersion>) -> ChangeRow {
    let action = match (before, after) {
        (Some(FileVersion::Absent), _) => ChangeAction::Created,
        (_, Some(FileVersion::Absent)) => ChangeAction::Deleted,
        _ => ChangeAction::Modified,
    };
    let (size_bytes, hash) = after.map(measured).unwrap_or_default();
    ChangeRow {
        record: fact.record.clone(),
        message: fact.message.clone(),
        tool: fact.tool.clone(),
        action,
        at: fact.at,
        size_bytes,
        hash,
    }
}

/// Whether two versions are the same, as far as both are known.
fn same(one: &FileVersion, other: &FileVersion) -> bool {
    if one == other {
        return true;
    }
    match (measured(one).1, measured(other).1) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Whether two versions are the same; or why nobody knows.
fn compared(one: &FileVersion, other: &FileVersion) -> Result<bool, Unknown> {
    if same(one, other) {
        return Ok(true);
    }
    for copy in [one, other].into_iter().filter_map(FileVersion::copy).filter(|copy| copy.sha256().is_none()) {
        copy.check().map_err(|error| Unknown::Failed(why_unusable(&error)))?;
    }
    Ok(false)
}

/// The size and the SHA-256 of a version.
fn measured(version: &FileVersion) -> (Option<u64>, Option<String>) {
    if let FileVersion::File { content: FileContent::Hash { sha256, bytes }, .. } = version {
        return (*bytes, Some(sha256.clone()));
    }
    let Some(copy) = version.copy() else { return (None, None) };
    let mut hashing = Hashing::new(io::sink());
    if copy.copy_to(&mut hashing).is_err() {
        return (None, copy.sha256().map(str::to_owned));
    }
    let (sha256, bytes) = hashing.finish();
    (Some(bytes), Some(sha256))
}

/// The state after an edit. A content that the edit does not need may be unknown.
fn edited(edit: &Edit, state: &KnownVersion) -> KnownVersion {
    let does_not_fit = || Unknown::NotKept("the recorded edits do not fit its content");
    let applied = match state {
        Ok(FileVersion::Absent) => edit.apply(None),
        Ok(version @ FileVersion::File { .. }) => match version.copy() {
            Some(copy) => match copy.read(REBUILD_LIMIT_BYTES) {
                Ok(bytes) => edit.apply(Some(&bytes)),
                Err(error) => {
                    let unknown = Err(Unknown::Failed(why_unusable(&error)));
                    return edited(edit, &unknown);
                }
            },
            None => edit.apply_to_unknown(),
        },
        Ok(FileVersion::Link(_)) => None,
        Err(_) => edit.apply_to_unknown(),
    };
    match applied {
        Some(Some(bytes)) => Ok(FileVersion::rebuilt(bytes)),
        Some(None) => Ok(FileVersion::Absent),
        None => match state {
            Err(unknown) => Err(unknown.clone()),
            Ok(_) => Err(does_not_fit()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::backups::FileCopy;

    #[test]
    fn a_noted_text_gets_the_line_ends_that_the_file_had() {
        for (copy, noted, expected) in [
            ("a\r\nb", "a\nb", "a\r\nb"),
            ("a\r\nb\n", "a\nb\n", "a\r\nb\n"),
            ("a\nb", "a\nb", "a\nb"),
            // Something else was there by then.
            ("a\r\nb", "a\nc", "a\nc"),
        ] {
            let content = FileContent::Copy(FileCopy::bytes(copy.as_bytes()));
            let what = What::Was(Ok(FileVersion::File { content, mode: None }));
            let id = || RecordId("a1".to_owned());
            let moment = Moment::at(1, Phase::Before);
            let mut history = PathHistory::default();
            history.add(Fact { moment, record: id(), message: id(), tool: None, at: None, is_restore: false, what });
            let version = history.with_its_line_ends(noted, Moment::of_call(1, 0, Phase::Before));
            assert_eq!(version, FileVersion::rebuilt(expected.as_bytes()), "{copy:?} {noted:?}");
        }
    }
}
