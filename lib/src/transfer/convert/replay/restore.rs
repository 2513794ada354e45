//! Restores an original, and replays behind it what was added to the converted session.

use std::borrow::Cow;
use std::path::Path;

use hashbrown::HashMap;

use super::{Replay, Replayed};
use crate::dialect::writer::Shape;
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::record::{Kind, RecordId, SessionId, Title};
use crate::session::read::open::ReadOptions;
use crate::session::{RecordRef, Session};
use crate::transfer::convert::original::Original;
use crate::write::recorder::{CALL_SEARCH_RECORDS, ParentRecord};
use crate::write::store::Store;

/// Writes the original's bytes, and replays what was added to the converted session since.
pub(in crate::transfer::convert) fn restore(
    session: &Session,
    original: &Original,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let now = session.started().unwrap_or_else(|| (store.host.now)());
    let before = Session::from_bytes(store.dialect, original.bytes.to_vec(), &ReadOptions::plain(now));
    let mut replay = Replay::resume(session, store, id, (&original.bytes, &before), file)?;
    // Records are found by their whole ids: a prefix can be another record's.
    let by_id: HashMap<Cow<'_, str>, RecordRef<'_>> = before.records().map(|record| (record.id(), record)).collect();
    let head = original.head.as_deref().and_then(|head| by_id.get(head).copied()).or(before.head());
    let (newer, older): (Vec<_>, Vec<_>) = session.records().partition(|record| original.is_newer(*record));
    let was = original.as_converted(session);
    replay.out.restored = by_id.keys().map(|id| id.clone().into_owned()).collect();
    replay.out.keeps_title = session.title() == was.title();
    let mut last = None;
    let asked_for_calls = older.len().saturating_sub(CALL_SEARCH_RECORDS);
    for (at, record) in older.into_iter().enumerate() {
        replay.pairing.add_facts(record);
        if original.is_added_to_later(record) {
            // The original's own lines are not changed.
            replay.lose(record, LossKind::Dropped, Lost::Metadata);
        }
        if at >= asked_for_calls && record.kind() == Kind::Assistant {
            replay.recorder.expect_results(&record.body()?);
        }
        if record.is_side() {
            continue;
        }
        last = Some(record.order());
        if let Some(original) = by_id.get(original.id_of(&record.id())) {
            replay.parents.insert(record.order(), ParentRecord::of(*original)?);
        }
    }
    // A linear session ends where the converted branch ended.
    if let (Some(last), Some(head)) = (last, head) {
        replay.parents.entry(last).or_insert(ParentRecord::of(head)?);
    }
    let end = before.head().map(|head| RecordId(head.id().into_owned()));
    (replay.last_link, replay.last_of_conversation) = (end.clone(), end);
    // A new title is written, even if no record of the session has it.
    let is_renamed = |title: &Title| before.title().is_none_or(|known| known.text != title.text);
    let renamed = session.head().filter(|_| !newer.is_empty() && session.title().is_some_and(is_renamed));
    if replay.shape == Shape::Tree {
        replay.replay(&newer)?;
        replay.end_with_title(renamed)?;
        // The original's head changes only if the session's head was moved, by a record or by name.
        let is_moved = session.head().map(|head| head.id()) != was.head().map(|head| head.id());
        replay.end_at(session.head().filter(|_| is_moved))?;
    } else {
        replay.linear_parent = before.head().map(ParentRecord::of).transpose()?;
        let branch = session.head().map(|head| session.branch(head).records).unwrap_or_default();
        let branch: Vec<_> = branch.into_iter().filter(|record| original.is_newer(*record)).collect();
        replay.replay_branch(&branch, &newer)?;
        replay.end_with_title(renamed)?;
    }
    replay.finish()
}
