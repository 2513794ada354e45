//! What goes along into a fork, and in which order.

use hashbrown::{HashMap, HashSet};

use crate::model::error::Result;
use crate::model::record::{Body, Kind, Title};
use crate::session::read::sanitize;
use crate::session::{Branch, RecordRef, Session};

/// How a copied record stands in the new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// On the record before it.
    Straight,
    /// Beside the conversation.
    Aside,
}

/// What goes along, in order: the branch, the snapshots of its messages where they belong, and the titles that count.
pub(super) fn plan<'s>(session: &'s Session, branch: &Branch<'s>) -> Result<Vec<(RecordRef<'s>, Stands)>> {
    let on_branch: HashMap<String, RecordRef<'s>> =
        branch.records.iter().map(|record| (record.id().into_owned(), *record)).collect();
    let (mut before, mut behind) = (HashMap::<usize, Vec<_>>::new(), HashMap::<usize, Vec<_>>::new());
    let mut titles: Vec<(Title, RecordRef<'s>)> = Vec::new();
    for record in session.records() {
        match record.kind() {
            Kind::Snapshot if record.is_side() => {
                let Body::Snapshot(snapshot) = record.body()? else { continue };
                let of = snapshot.message.and_then(|message| on_branch.get(message.as_str()));
                let Some(of) = of else { continue };
                let is_before = record.place().file == of.place().file && record.order() < of.order();
                let there = if is_before { &mut before } else { &mut behind };
                there.entry(of.order()).or_default().push((record, Stands::Aside));
            }
            Kind::Title => {
                let Body::Title(title) = record.body()? else { continue };
                // Agents note other sessions' titles too: only what this session is called goes along.
                if session.derived.facts.titles.contains(&title) {
                    titles.retain(|(known, _)| known.source != title.source);
                    titles.push((title, record));
                }
            }
            Kind::Snapshot
            | Kind::User
            | Kind::Assistant
            | Kind::ToolResult
            | Kind::Attachment
            | Kind::System
            | Kind::Compaction
            | Kind::Rewind
            | Kind::Restore
            | Kind::Header
            | Kind::Other => {}
        }
    }
    let mut plan = Vec::new();
    for record in &branch.records {
        plan.extend(before.remove(&record.order()).unwrap_or_default());
        plan.push((*record, Stands::Straight));
        plan.extend(behind.remove(&record.order()).unwrap_or_default());
    }
    for (_, title) in titles {
        if !branch.records.contains(&title) {
            plan.push((title, if title.is_side() { Stands::Aside } else { Stands::Straight }));
        }
    }
    Ok(plan)
}

/// What goes along where a record follows the one before it: the branch, and what stands beside it between its records.
///
/// Steps back stay behind: what they left does too, so that they would take back something else.
pub(super) fn linear_plan<'s>(session: &'s Session, branch: &Branch<'s>) -> Vec<(RecordRef<'s>, Stands)> {
    let on_branch: HashSet<usize> = branch.records.iter().map(|record| record.order()).collect();
    let (mut plan, mut is_on) = (Vec::new(), true);
    for record in session.records() {
        if record.is_side() {
            plan.extend(is_on.then_some((record, Stands::Aside)));
        } else {
            is_on = on_branch.contains(&record.order());
            plan.extend((is_on && record.kind() != Kind::Rewind).then_some((record, Stands::Straight)));
        }
    }
    plan
}

/// Takes the source's headers out of a plan, and gives its own one: it may say more than we know.
pub(super) fn take_header<'s>(
    plan: &mut Vec<(RecordRef<'s>, Stands)>,
    kind: Option<&str>,
) -> Result<Option<RecordRef<'s>>> {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: crate::model::lenient::Text<'a>,
    }
    let Some(kind) = kind else { return Ok(None) };
    let (mut own, mut kept) = (None, Vec::with_capacity(plan.len()));
    for (record, stands) in plan.drain(..) {
        let is_header = record.kind() == Kind::Header && {
            let raw = record.raw()?;
            let text = raw.first().map(|piece| sanitize::whole(piece)).unwrap_or_default();
            serde_json::from_str::<Typed<'_>>(&text).is_ok_and(|line| line.kind.0.as_deref() == Some(kind))
        };
        if !is_header {
            kept.push((record, stands));
        } else if own.is_none() && !record.is_inherited() {
            own = Some(record);
        }
    }
    *plan = kept;
    Ok(own)
}
