//! The report of a conversion: the difference in messages, and what no message shows.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use serde::Serialize;

use super::compare::{BRANCHES_COMPARED, Heads, changed, differences};
use super::original::Original;
use super::replay::Replayed;
use super::unmapped;
use crate::dialect::writer::Shape;
use crate::model::error::Result;
use crate::model::issue::{Issue, IssueKind};
use crate::model::loss::{LossKind, Lost};
use crate::model::record::Kind;
use crate::session::{RecordRef, Session, State};

/// How many fields of one record are named; the others are counted.
const FIELDS_NAMED: usize = 32;

/// Something of one record that the other format does not store as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LossRow {
    /// The source's record.
    pub record: String,
    /// What it is.
    pub what: Lost,
    /// What became of it.
    pub kind: LossKind,
    /// How often in that record.
    pub count: u64,
    /// Of [`Lost::Field`]: the keys; if there are very many, the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

impl LossRow {
    pub(super) fn new(record: &str, kind: LossKind, what: impl Into<Lost>) -> LossRow {
        LossRow { record: record.to_owned(), what: what.into(), kind, count: 1, fields: Vec::new() }
    }

    /// The row of a record's fields that are dropped, if there are any.
    pub(in crate::transfer) fn fields(record: &str, fields: impl Iterator<Item = String>) -> Option<LossRow> {
        let fields: BTreeSet<String> = fields.collect();
        let count = fields.len() as u64;
        let fields: Vec<String> = fields.into_iter().take(FIELDS_NAMED).collect();
        (count > 0).then(|| LossRow { count, fields, ..LossRow::new(record, LossKind::Dropped, Lost::Field) })
    }
}

/// Adds rows to others; the counts of rows of the same record, thing and kind are joined.
pub(super) fn merge(rows: &mut Vec<LossRow>, more: Vec<LossRow>, join: fn(u64, u64) -> u64) {
    let key = |row: &LossRow| (row.record.clone(), row.what.clone(), row.kind);
    let mut known: HashMap<_, usize> = rows.iter().enumerate().map(|(at, row)| (key(row), at)).collect();
    for row in more {
        let at = *known.entry(key(&row)).or_insert(rows.len());
        match rows.get_mut(at) {
            Some(known) => {
                let once = row.what.is_counted_once();
                known.count = if once { known.count.max(row.count) } else { join(known.count, row.count) };
                known.fields.extend(row.fields);
            }
            None => rows.push(row),
        }
    }
}

/// A session and what it became.
pub(super) struct Sessions<'s> {
    pub(super) source: &'s Session,
    pub(super) converted: &'s Session,
    /// The original that was restored: only what was added to it is reported.
    pub(super) original: Option<&'s Original>,
    /// The working directory in a file beside the converted session.
    pub(super) cwd_beside: Option<&'s str>,
}

impl<'s> Sessions<'s> {
    /// Everything that differs between the sessions.
    pub(super) fn report(&self, head: Option<RecordRef<'s>>, replayed: &mut Replayed) -> Result<Vec<LossRow>> {
        let heads = self.heads(head, replayed);
        let found = differences(&heads, replayed, self.original)?;
        let mut losses = std::mem::take(&mut replayed.left_out);
        // What messages show is compared; for the rest we rely on the writer.
        let is_hidden = |row: &LossRow| row.what.is_hidden() || !found.compared.contains(&row.record);
        losses.extend(std::mem::take(&mut replayed.declared).into_iter().filter(is_hidden));
        losses.extend(found.losses);
        let from = self.original.map_or(0, |original| original.converted_bytes);
        let damage = self.source.issues().iter().filter(|issue| issue.offset >= from);
        losses.extend(damage.filter_map(damaged));
        losses.extend(self.ends(&heads));
        self.add_session_facts(&heads, replayed.keeps_title, &mut losses);
        let fields = unmapped::rows(self.source, self.original, &losses)?;
        losses.extend(fields);
        Ok(losses)
    }

    /// The heads of the branches that are in both sessions.
    fn heads(&self, head: Option<RecordRef<'s>>, replayed: &Replayed) -> Vec<Heads<'s>> {
        let mut heads: Vec<Heads<'_>> = head.into_iter().zip(self.converted.head()).collect();
        if self.converted.dialect().writer().is_some_and(|writing| writing.shape == Shape::Tree) {
            let by_name: HashMap<_, _> = self.converted.records().map(|record| (record.id(), record)).collect();
            for other in self.source.heads().map(|other| other.record).filter(|other| Some(*other) != head) {
                let now = replayed.parents.get(&other.order()).and_then(|id| by_name.get(id.as_str()).copied());
                heads.extend(now.map(|now| (other, now)));
            }
        }
        heads
    }

    fn is_new(&self, record: RecordRef<'_>) -> bool {
        self.original.is_none_or(|original| original.is_newer(record))
    }

    /// Gaps that are closed in the new file, and turns that did not end and seem to have ended there.
    fn ends(&self, heads: &[Heads<'_>]) -> Vec<LossRow> {
        let mut rows: Vec<LossRow> = Vec::new();
        for (head, now) in heads.iter().take(BRANCHES_COMPARED).filter(|(head, _)| self.is_new(*head)) {
            let (before, after) = (head.session.branch(*head), now.session.branch(*now));
            let (was, is) = (head.session.state(&before), now.session.state(&after));
            let lost = before.gaps.len().saturating_sub(after.gaps.len());
            let gaps = before.gaps.iter().filter(|gap| self.is_new(gap.child)).take(lost);
            let mut ends: Vec<_> =
                gaps.map(|gap| LossRow::new(&gap.child.id(), LossKind::Dropped, Lost::Gap)).collect();
            if matches!(was, State::InterruptedTurn | State::InterruptedPrompt) && is != was {
                ends.push(LossRow::new(&head.id(), changed(true, is != State::Clean), Lost::Interruption));
            }
            // Branches share what comes before them.
            merge(&mut rows, ends, u64::max);
        }
        rows
    }

    /// What a session has as a whole, unless a record's row reports it.
    fn add_session_facts(&self, heads: &[Heads<'_>], keeps_title: bool, losses: &mut Vec<LossRow>) {
        let record = heads.first().map(|(head, _)| head.id().into_owned()).unwrap_or_default();
        let mut add = |names: &[Lost], was: Option<&str>, is: Option<&str>| {
            if was != is && !losses.iter().any(|row| names.contains(&row.what)) {
                losses.push(LossRow::new(&record, changed(was.is_some(), is.is_some()), names[0].clone()));
            }
        };
        let title = |session: &Session| session.title().map(|title| format!("{:?} {}", title.source, title.text));
        if !keeps_title {
            let names = [Lost::Record(Kind::Title), Lost::TitleSource];
            add(&names, title(self.source).as_deref(), title(self.converted).as_deref());
        }
        if self.original.is_none() {
            add(&[Lost::Environment], self.source.cwd(), self.converted.cwd().or(self.cwd_beside));
            let [was, is] = [self.source, self.converted].map(|session| session.parent_session().map(|(id, _)| id));
            add(&[Lost::ParentSession], was, is.and(was));
        }
    }
}

/// The row of a damaged place.
fn damaged(issue: &Issue) -> Option<LossRow> {
    let (what, kind) = match issue.kind {
        IssueKind::Torn => (Lost::TornLine, LossKind::Dropped),
        IssueKind::NotJson | IssueKind::NotAnObject | IssueKind::NulBytes | IssueKind::TooLong => {
            (Lost::DamagedLine, LossKind::Dropped)
        }
        IssueKind::UnreadableFile => (Lost::UnreadableFile, LossKind::Dropped),
        IssueKind::BadUtf8 => (Lost::DamagedText, LossKind::Renamed),
        // What these are about is converted, or reported of its record.
        IssueKind::Glued
        | IssueKind::Orphan
        | IssueKind::Cycle
        | IssueKind::ConflictingParent
        | IssueKind::BadTime
        | IssueKind::MissingField
        | IssueKind::InvalidMessage
        | IssueKind::LogMissing
        | IssueKind::OtherCopy
        | IssueKind::OrphanResult
        | IssueKind::DuplicateResult
        | IssueKind::MixedSession
        | IssueKind::UnknownKind
        | IssueKind::DuplicateLine
        | IssueKind::DuplicateId
        | IssueKind::UnansweredCall
        | IssueKind::DamagedSidecar
        | IssueKind::BridgedGap
        | IssueKind::MissingCopy
        | IssueKind::MissingCwd => return None,
    };
    if issue.kind == IssueKind::UnreadableFile {
        return Some(LossRow::new(issue.file.as_deref().unwrap_or_default(), kind, what));
    }
    let place = issue.line.map_or_else(|| format!("at-{}", issue.offset), |line| format!("line {line}"));
    Some(LossRow::new(&place, kind, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::read::open::ReadOptions;

    #[test]
    fn so_many_ends_are_looked_at_as_branches_are_compared() {
        let native = crate::dialect::named("native").unwrap();
        let read = |lines: String| {
            Session::from_bytes(native, lines.into_bytes(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH))
        };
        let prompt =
            |at: usize| format!("{{\"role\":\"user\",\"uuid\":\"u{at}\",\"parentUuid\":null,\"content\":\"Go.\"}}\n");
        let source = read((0..2 * BRANCHES_COMPARED).map(prompt).collect());
        let answer = r#"{"role":"assistant","uuid":"a","parentUuid":"u0","content":"Gone."}"#;
        let converted = read(format!("{}{answer}\n", prompt(0)));
        let heads = source.heads().map(|head| head.record);
        let heads: Vec<_> = heads.filter_map(|head| Some((head, converted.head()?))).collect();
        assert_eq!(heads.len(), 2 * BRANCHES_COMPARED);
        let sessions = Sessions { source: &source, converted: &converted, original: None, cwd_beside: None };
        let rows = sessions.ends(&heads);
        assert_eq!(rows.iter().filter(|row| row.what == Lost::Interruption).count(), BRANCHES_COMPARED);
    }
}
