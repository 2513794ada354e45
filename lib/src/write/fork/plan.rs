//! Which records are copied to a fork, and in which order.

use hashbrown::{HashMap, HashSet};

use crate::model::error::Result;
use crate::model::record::{Body, Kind, Title};
use crate::session::read::sanitize;
use crate::session::{Branch, RecordRef, Session};

/// What a record is in the new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyAs {
    /// Its parent is the record before it.
    Link,
    /// A side record.
    Side,
}

/// The records of the branch, the snapshots of its messages in their places, and the current titles.
pub(super) fn plan<'s>(session: &'s Session, branch: &Branch<'s>) -> Result<Vec<(RecordRef<'s>, CopyAs)>> {
    let on_branch: HashMap<String, RecordRef<'s>> =
        branch.records.iter().map(|record| (record.id().into_owned(), *record)).collect();
    let (mut before, mut behind) = (HashMap::<usize, Vec<_>>::new(), HashMap::<usize, Vec<_>>::new());
    let mut titles: Vec<(Title, RecordRef<'s>)> = Vec::new();
    for record in session.records() {
        if record.kind() == Kind::Snapshot && record.is_side() {
            let Body::Snapshot(snapshot) = record.body()? else { continue };
            let of = snapshot.message.and_then(|message| on_branch.get(message.as_str()));
            let Some(of) = of else { continue };
            let is_before = record.place().file == of.place().file && record.order() < of.order();
            let there = if is_before { &mut before } else { &mut behind };
            there.entry(of.order()).or_default().push((record, CopyAs::Side));
        } else if record.kind() == Kind::Title
            && let Body::Title(title) = record.body()?
            && session.derived.facts.titles.contains(&title)
        {
            // A file may also hold titles of other sessions.
            titles.retain(|(known, _)| known.source != title.source);
            titles.push((title, record));
        }
    }
    let mut plan = Vec::new();
    for record in &branch.records {
        plan.extend(before.remove(&record.order()).unwrap_or_default());
        plan.push((*record, CopyAs::Link));
        plan.extend(behind.remove(&record.order()).unwrap_or_default());
    }
    for (_, title) in titles {
        if !branch.records.contains(&title) {
            plan.push((title, if title.is_side() { CopyAs::Side } else { CopyAs::Link }));
        }
    }
    Ok(plan)
}

/// The same for a linear format: the records of the branch, and the side records between them.
///
/// Rewinds are not copied: what they undid is not copied either, so they would undo something else.
pub(super) fn linear_plan<'s>(session: &'s Session, branch: &Branch<'s>) -> Vec<(RecordRef<'s>, CopyAs)> {
    let on_branch: HashSet<usize> = branch.records.iter().map(|record| record.order()).collect();
    let (mut plan, mut beside, mut is_on_branch) = (Vec::new(), Vec::new(), true);
    for record in session.records() {
        if record.is_side() {
            beside.extend(is_on_branch.then_some((record, CopyAs::Side)));
        } else {
            is_on_branch = on_branch.contains(&record.order());
            // The answer that became a summary is beside the conversation only where the summary follows.
            beside.retain(|(record, _): &(RecordRef<'s>, CopyAs)| is_on_branch || !record.is_summary());
            plan.append(&mut beside);
            plan.extend((is_on_branch && record.kind() != Kind::Rewind).then_some((record, CopyAs::Link)));
        }
    }
    plan.append(&mut beside);
    plan
}

/// Removes the source's headers from a plan and returns its own one, which may have fields that we do not know.
pub(super) fn take_header<'s>(
    plan: &mut Vec<(RecordRef<'s>, CopyAs)>,
    kind: Option<&str>,
) -> Result<Option<RecordRef<'s>>> {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: crate::model::lenient::Text<'a>,
    }
    let Some(kind) = kind else { return Ok(None) };
    let (mut own, mut kept) = (None, Vec::with_capacity(plan.len()));
    for (record, copy_as) in plan.drain(..) {
        let is_header = record.kind() == Kind::Header && {
            let raw = record.raw()?;
            let text = raw.first().map(|piece| sanitize::whole(piece)).unwrap_or_default();
            serde_json::from_str::<Typed<'_>>(&text).is_ok_and(|line| line.kind.0.as_deref() == Some(kind))
        };
        if !is_header {
            kept.push((record, copy_as));
        } else if own.is_none() && !record.is_inherited() {
            own = Some(record);
        }
    }
    *plan = kept;
    Ok(own)
}
