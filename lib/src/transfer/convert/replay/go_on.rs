//! The way back: what was added to a converted session, said behind the lines that were kept of the original.

use std::borrow::Cow;
use std::path::Path;

use hashbrown::HashMap;

use super::{CameBack, Replay, Replayed};
use crate::dialect::writer::Shape;
use crate::model::error::Result;
use crate::model::loss::Lost;
use crate::model::record::{Kind, RecordId, SessionId, Title};
use crate::session::read::open::ReadOptions;
use crate::session::{RecordRef, Session};
use crate::transfer::convert::kept::Kept;
use crate::write::recorder::{ParentRecord, RECORDS_ASKED_FOR_CALLS};
use crate::write::store::Store;

/// Says what was added to a converted session, behind the lines that its sidecar kept.
pub(in crate::transfer::convert) fn go_on(
    session: &Session,
    kept: &Kept,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let original = kept.original();
    let now = session.started().unwrap_or_else(|| (store.host.now)());
    let before = Session::from_bytes(store.dialect, original.clone(), &ReadOptions::plain(now));
    let mut replay = Replay::resume(session, store, id, (&original, &before), file)?;
    // Records are looked for by their whole names, each once: the beginning of a name can be another record's.
    let by_name: HashMap<Cow<'_, str>, RecordRef<'_>> = before.records().map(|record| (record.id(), record)).collect();
    let head = kept.head().and_then(|head| by_name.get(head).copied()).or(before.head());
    let (newer, older): (Vec<_>, Vec<_>) = session.records().partition(|record| kept.is_newer(*record));
    let was = kept.as_converted(session);
    replay.told.came_back = CameBack {
        records: by_name.keys().map(|name| name.clone().into_owned()).collect(),
        stand_ins: older.iter().map(|record| record.order()).collect(),
        keeps_title: session.title() == was.title(),
    };
    let mut last = None;
    let asked_for_calls = older.len().saturating_sub(RECORDS_ASKED_FOR_CALLS);
    for (at, record) in older.into_iter().enumerate() {
        replay.pairing.know(record);
        if kept.is_added_to_later(record) {
            // The original's own lines stay as they are.
            replay.lose(record, Lost::Metadata);
        }
        if at >= asked_for_calls && record.kind() == Kind::Assistant {
            replay.recorder.expect_results(&record.body()?);
        }
        if record.is_side() {
            continue;
        }
        last = Some(record.order());
        if let Some(original) = by_name.get(kept.original_of(&record.id()).as_str()) {
            replay.tips.insert(record.order(), ParentRecord::of(*original)?);
        }
    }
    // A line of records ends where the branch ended that it was made of.
    if let (Some(last), Some(head)) = (last, head) {
        replay.tips.entry(last).or_insert(ParentRecord::of(head)?);
    }
    let end = before.head().map(|head| RecordId(head.id().into_owned()));
    (replay.last_link, replay.last_of_conversation) = (end.clone(), end);
    // A name that was given since is said, where no record of its own says it.
    let is_renamed = |title: &Title| before.title().is_none_or(|known| known.text != title.text);
    let renamed = session.head().filter(|_| !newer.is_empty() && session.title().is_some_and(is_renamed));
    if replay.shape == Shape::Tree {
        replay.say(&newer)?;
        replay.end_with_title(renamed)?;
        // A head that was only named leads, too; one that was never moved stays what it is in the original.
        let is_moved = session.head().map(|head| head.id()) != was.head().map(|head| head.id());
        replay.end_at(session.head().filter(|_| is_moved))?;
    } else {
        replay.tip_of_linear = before.head().map(ParentRecord::of).transpose()?;
        let branch = session.head().map(|head| session.branch(head).records).unwrap_or_default();
        let branch: Vec<_> = branch.into_iter().filter(|record| kept.is_newer(*record)).collect();
        replay.say_line(&branch, &newer)?;
        replay.end_with_title(renamed)?;
    }
    replay.finish()
}
