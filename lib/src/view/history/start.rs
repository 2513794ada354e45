//! Where the model's window begins: at the root of the branch, or at its last compaction.
//!
//! ```text
//! agent         the model sees                                      then
//! codex, qwen   what the compaction recorded                        what follows
//! codex, older  every prompt, the summary                           what follows
//! claude-code   the summary of the record after the cut, preserved  what follows
//! native        the summary, preserved                              what follows
//!               or first the preserved records, then the summary
//! ```

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

use super::draft::TurnDrafts;
use super::{History, Note, Turn, resume, window};
use crate::model::error::Result;
use crate::model::issue::IssueKind;
use crate::model::record::{Body, Compaction, Kind, RecordId};
use crate::session::tree::skeleton::KeyRole;
use crate::session::{Branch, RecordRef, Session};

/// Whether to include context that the agent generates at each start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ContextPolicy {
    #[default]
    Omit,
    Include,
}

/// Reads the bodies that the model would see, one by one.
pub(super) fn history<'s>(session: &'s Session, head: RecordRef<'s>, context: ContextPolicy) -> Result<History<'s>> {
    in_windows(session, head, context, u64::MAX, &mut |_| Ok(()))
}

/// Reads the same in windows of about so many bytes of the file: `take` gets each but the last, which is returned, with the
/// notes of all. A window ends only where no view joins anything across its end (`window.rs`).
pub(super) fn in_windows<'s>(
    session: &'s Session,
    head: RecordRef<'s>,
    context: ContextPolicy,
    window_bytes: u64,
    take: &mut dyn FnMut(&History<'s>) -> Result<()>,
) -> Result<History<'s>> {
    let branch = session.branch(head);
    let mut drafts = TurnDrafts::new(context);
    missing(&branch, &mut drafts);
    let sent = sent(session, &branch, &mut drafts)?;
    // A compaction's replacement comes before the records: its model continues only if they have none.
    let model = window::model(&sent)?.or_else(|| drafts.model());
    let settled = if window_bytes == u64::MAX { Vec::new() } else { window::settled(&sent) };
    let (state, bad) = (session.state(&branch), bad_places(session));
    let mut history = History {
        dialect: session.dialect().name(),
        model,
        turns: Vec::new(),
        state,
        notice: String::new(),
        notes: Vec::new(),
    };
    let (mut first, mut bytes) = (0, 0);
    for (at, record) in sent.iter().enumerate() {
        let body = record.body()?;
        if bytes >= window_bytes && settled[at] && window::begins(&body) && drafts.ends_with_text() {
            // Records before the first window may have made a call that it preserves.
            let callers = if first == 0 { &branch.records } else { &sent[first..at] };
            history.turns = close(session, callers, &bad, &mut drafts, &mut history.notes)?;
            take(&history)?;
            (first, bytes) = (at, 0);
        }
        bytes += u64::from(record.place().length);
        drafts.take(*record, body);
    }
    let callers = if first == 0 { &branch.records } else { &sent[first..] };
    history.turns = close(session, callers, &bad, &mut drafts, &mut history.notes)?;
    history.notice = resume::notice(session, head, &branch, state);
    Ok(history)
}

/// The records that are sent: the branch from its last compaction on. What the compaction itself says is added to the drafts.
fn sent<'s>(session: &'s Session, branch: &Branch<'s>, drafts: &mut TurnDrafts<'s>) -> Result<Vec<RecordRef<'s>>> {
    let records = &branch.records;
    let Some((at, compaction)) = last_cut(records, drafts)? else { return Ok(records.clone()) };
    let (before, after) = (&records[..at], &records[at + 1..]);
    let mut preserved = preserved(session, &compaction, before)?;
    // What comes after it is sent in any case.
    let follows: HashSet<usize> = after.iter().map(|record| record.order()).collect();
    preserved.retain(|record| !follows.contains(&record.order()));
    if compaction.preserved_first {
        take_all(std::mem::take(&mut preserved).into_iter(), drafts)?;
    }
    begin(records[at], compaction, before, drafts)?;
    // The summary may be in a record of its own: preserved records follow it.
    let summary = after.iter().position(|record| record.kind() == Kind::Compaction).map_or(0, |at| at + 1);
    let (summary, rest) = after.split_at(summary);
    Ok(summary.iter().copied().chain(preserved).chain(rest.iter().copied()).collect())
}

/// Ends the turns so far. `callers` are the records that may have made a call without a result.
fn close<'s>(
    session: &'s Session,
    callers: &[RecordRef<'s>],
    bad: &HashSet<u64>,
    drafts: &mut TurnDrafts<'s>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Turn<'s>>> {
    find_results(session, callers, drafts)?;
    sanitized(bad, drafts);
    let (turns, found) = drafts.finish();
    notes.extend(found);
    Ok(turns)
}

fn take_all<'s>(records: impl Iterator<Item = RecordRef<'s>>, drafts: &mut TurnDrafts<'s>) -> Result<()> {
    for record in records {
        drafts.take(record, record.body()?);
    }
    Ok(())
}

/// Records before a gap are not sent: the lost record may have been a rewind.
fn missing(branch: &Branch<'_>, drafts: &mut TurnDrafts<'_>) {
    for gap in &branch.gaps {
        let what = match gap.bridged_to {
            Some(to) => format!("its parent {:?} is missing; {to:?} is used instead", gap.missing_parent.as_str()),
            None => {
                format!("its parent {:?} is missing; nothing before it is sent", gap.missing_parent.as_str())
            }
        };
        drafts.notes.push(Note::new(gap.child, what));
    }
    if let Some(record) = branch.cycle.first() {
        drafts.notes.push(Note::new(*record, "it is its own ancestor; the history starts here"));
    }
}

/// The last compaction that replaces the history before it. One without a summary or replacement cuts nothing off.
fn last_cut(records: &[RecordRef<'_>], drafts: &mut TurnDrafts<'_>) -> Result<Option<(usize, Compaction)>> {
    let has_text = |summary: &Option<String>| summary.as_ref().is_some_and(|summary| !summary.trim().is_empty());
    // Whether a later record has the summary.
    let mut summarised = false;
    for (at, record) in records.iter().enumerate().rev().filter(|(_, record)| record.kind() == Kind::Compaction) {
        let Body::Compaction(mut compaction) = record.body()? else { continue };
        compaction.replacement = compaction.replacement.filter(|bodies| !bodies.is_empty());
        summarised |= has_text(&compaction.summary) || compaction.replacement.is_some() || compaction.keeps_prompts;
        match (compaction.cuts, summarised) {
            (true, true) => return Ok(Some((at, compaction))),
            (true, false) => {
                let what = "it has no summary; the history before it is sent";
                drafts.notes.push(Note::new(*record, what));
            }
            (false, _) => {}
        }
    }
    Ok(None)
}

/// The records that the model still sees as they are: in the order in which they are named, or from the first to the last.
fn preserved<'s>(
    session: &'s Session,
    compaction: &Compaction,
    before: &[RecordRef<'s>],
) -> Result<Vec<RecordRef<'s>>> {
    if compaction.preserves_between {
        let ids: HashSet<&str> = compaction.preserved.iter().map(|id| id.as_str()).collect();
        let named = |record: &RecordRef<'s>| ids.contains(&*record.id());
        let Some(first) = before.iter().position(named) else { return Ok(Vec::new()) };
        let last = before.iter().rposition(named).unwrap_or(first);
        return without_cuts(before[first..=last].iter().copied());
    }
    let on_branch: HashMap<_, RecordRef<'s>> = before.iter().map(|record| (record.id(), *record)).collect();
    // A preserved record may be on another branch than the cut.
    let elsewhere = |id: &str| {
        let node = session.skeleton.ids.find(id).and_then(|id| session.derived.tree.named(id))?;
        Some(session.at(node))
    };
    let mut known = HashSet::new();
    let named = |id: &RecordId| on_branch.get(id.as_str()).copied().or_else(|| elsewhere(id.as_str()));
    without_cuts(compaction.preserved.iter().filter_map(named).filter(|record| known.insert(record.order())))
}

/// The summary of an earlier compaction may be preserved, too; the place of its cut says nothing.
fn without_cuts<'s>(records: impl Iterator<Item = RecordRef<'s>>) -> Result<Vec<RecordRef<'s>>> {
    let mut kept = Vec::new();
    for record in records {
        if !matches!(record.body()?, Body::Compaction(earlier) if earlier.cuts) {
            kept.push(record);
        }
    }
    Ok(kept)
}

/// What the model sees of the compaction itself.
fn begin<'s>(
    record: RecordRef<'s>,
    compaction: Compaction,
    before: &[RecordRef<'s>],
    drafts: &mut TurnDrafts<'s>,
) -> Result<()> {
    if let Some(bodies) = compaction.replacement {
        bodies.into_iter().for_each(|body| drafts.replace(record, body));
        return Ok(());
    }
    if compaction.keeps_prompts {
        take_all(before.iter().copied().filter(|record| record.kind() == Kind::User), drafts)?;
    }
    if compaction.summary.is_some() {
        drafts.summary(record, compaction.summary);
    }
    Ok(())
}

/// Finds results of open calls elsewhere: after a head in the middle of an answer, or before a compaction that preserved
/// only the call.
fn find_results<'s>(session: &'s Session, callers: &[RecordRef<'s>], drafts: &mut TurnDrafts<'s>) -> Result<()> {
    let mut open: HashMap<u64, String> = HashMap::new();
    // Which record has given a result to which call.
    let mut given = HashSet::new();
    for call in drafts.open_calls() {
        let hash = xxh3_64(call.as_bytes());
        given.extend(drafts.sources(&call).map(|record| (hash, record.order())));
        open.insert(hash, call);
    }
    for caller in callers.iter().rev() {
        if open.is_empty() {
            break;
        }
        let mut made: HashMap<u64, String> =
            caller.keys(KeyRole::Call).filter_map(|call| open.remove_entry(&call)).collect();
        let answers = session.derived.keys.answers.get(&caller.node).into_iter().flatten();
        for record in answers.map(|node| session.at(*node)) {
            let is_new = |key: &u64| made.contains_key(key) && !given.contains(&(*key, record.order()));
            if !record.keys(KeyRole::Result).any(|key| is_new(&key)) {
                continue;
            }
            for result in record.body()?.content().into_iter().flat_map(|content| &content.results) {
                let hash = xxh3_64(result.call_id.as_bytes());
                let is_open = made.get(&hash).is_some_and(|call| *call == result.call_id);
                if is_open && given.insert((hash, record.order())) {
                    made.remove(&hash);
                    drafts.result(record, result.clone());
                }
            }
        }
    }
    Ok(())
}

/// Where reading has replaced characters.
fn bad_places(session: &Session) -> HashSet<u64> {
    let bad = session.issues().iter().filter(|issue| issue.kind == IssueKind::BadUtf8);
    bad.map(|issue| issue.offset).collect()
}

/// Notes where reading has replaced characters.
fn sanitized(bad: &HashSet<u64>, drafts: &mut TurnDrafts<'_>) {
    if bad.is_empty() {
        return;
    }
    let sent: Vec<Note> = drafts
        .records()
        .filter(|record| bad.contains(&record.place().offset))
        .map(|record| Note::new(record, "half a character was replaced by U+FFFD"))
        .collect();
    drafts.notes.extend(sent);
}
