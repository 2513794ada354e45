//! The way back: what was added to a converted session, said behind the lines that were kept of the original.

use std::borrow::Cow;
use std::path::Path;

use hashbrown::HashMap;

use super::{Replay, Replayed};
use crate::convert::kept::Kept;
use crate::error::Result;
use crate::reading::Reading;
use crate::record::{Kind, RecordId, SessionId, Title};
use crate::recorder::{RECORDS_ASKED_FOR_CALLS, Tip};
use crate::session::{RecordRef, Session};
use crate::store::Store;

/// Says what was added to a converted session, behind the lines that its sidecar kept.
pub(in crate::convert) fn go_on(
    session: &Session,
    kept: &Kept,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let mut replay = Replay::begin_with(session, store, id, &kept.original(), file)?;
    let before = Session::from_bytes(store.dialect, kept.original(), &Reading::plain(replay.script.now()));
    // Records are looked for by their whole names, each once: the beginning of a name can be another record's.
    let by_name: HashMap<Cow<'_, str>, RecordRef<'_>> = before.records().map(|record| (record.id(), record)).collect();
    let head = kept.head().and_then(|head| by_name.get(head).copied()).or(before.head());
    let (newer, older): (Vec<_>, Vec<_>) = session.records().partition(|record| kept.is_newer(*record));
    let mut last = None;
    let asked_for_calls = older.len().saturating_sub(RECORDS_ASKED_FOR_CALLS);
    for (at, record) in older.into_iter().enumerate() {
        replay.pairing.know(record);
        if at >= asked_for_calls && record.kind() == Kind::Assistant {
            replay.recorder.expect_results(&record.body()?);
        }
        if record.is_side() {
            continue;
        }
        last = Some(record.order());
        if let Some(original) = by_name.get(kept.original_of(&record.id()).as_str()) {
            replay.tips.insert(record.order(), Tip::of(*original)?);
        }
    }
    // A line of records ends where the branch ended that it was made of.
    if let (Some(last), Some(head)) = (last, head) {
        replay.tips.entry(last).or_insert(Tip::of(head)?);
    }
    replay.last_of_conversation = before.head().map(|head| RecordId(head.id().into_owned()));
    replay.tip_of_linear = before.head().map(Tip::of).transpose()?;
    replay
        .recorder
        .go_on_behind(before.records().next_back().map(|last| RecordId(last.id().into_owned())));
    replay.say(&newer)?;
    // A name that was given since is said, where no record of its own says it.
    let is_renamed = |title: &Title| before.title().is_none_or(|known| known.text != title.text);
    if !newer.is_empty() && session.title().is_some_and(is_renamed) {
        replay.end_with_title(session.head())?;
    }
    replay.finish()
}
