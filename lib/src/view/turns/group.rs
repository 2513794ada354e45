//! Which record belongs to which turn, by links; of notices also by what they say.

use crate::model::error::Result;
use crate::model::record::{Display, Kind};
use crate::session::tree::NodeIx;
use crate::session::{HeadKind, RecordRef, Session};

/// The records of one turn.
pub(super) struct Group {
    pub(super) first: NodeIx,
    /// Its last record: a head, or the one that the next turn continues.
    pub(super) last: NodeIx,
    /// The turn that it continues.
    pub(super) parent: Option<u32>,
    /// Whether a further turn continues it.
    pub(super) is_continued: bool,
    pub(super) on_branch: bool,
    pub(super) head: Option<HeadKind>,
    /// The position of its first record in the list of all turns' records.
    pub(super) start: u32,
}

/// The number of a record that belongs to no turn.
const NO_TURN: u32 = u32::MAX;

/// The turns of a session, each after the one that it continues, and the records of all of them, turn by turn.
pub(super) fn find(session: &Session) -> Result<(Vec<Group>, Vec<NodeIx>)> {
    let count = session.records().len();
    let (mut begins, mut in_compaction) = (Vec::with_capacity(count), vec![false; count]);
    for record in session.records() {
        // The summary, and what is sent beside it, may be in records of their own.
        let continues = record.parent().is_some_and(|parent| in_compaction[parent.order()]);
        let is_compaction = record.kind() == Kind::Compaction;
        in_compaction[record.order()] = is_compaction || (continues && record.kind() == Kind::Attachment);
        begins.push(!(is_compaction && continues) && begins_turn(record)?);
    }
    let (path, covered) = (main_path(session), &mut vec![false; count]);
    session.heads().for_each(|head| split_at_fork(head.record, &mut begins, covered));
    let (mut groups, mut turn_of) = assign(session, &begins);
    for (node, turn) in turn_of.clone().into_iter().enumerate() {
        if let Some(caller) = turn_of_call(session.at(node as NodeIx), &turn_of).filter(|caller| *caller != turn) {
            turn_of[node] = caller;
        }
    }
    for group in &mut groups {
        group.on_branch = path[group.first as usize];
    }
    find_ends(session, &mut groups, &turn_of);
    let records = sort_by_turn(&mut groups, &turn_of);
    Ok((groups, records))
}

/// Whether a turn begins with this record.
fn begins_turn(record: RecordRef<'_>) -> Result<bool> {
    if record.is_side() {
        return Ok(false);
    }
    Ok(match record.kind() {
        Kind::User => !record.is_reaction(),
        Kind::Compaction | Kind::Rewind | Kind::Restore => true,
        Kind::System if !record.is_failure() => {
            let body = record.exact_body()?;
            let display = body.content().and_then(|content| content.display.as_ref());
            matches!(display, Some(Display::Command { .. } | Display::Shell { .. } | Display::Notification { .. }))
        }
        Kind::Assistant
        | Kind::ToolResult
        | Kind::Attachment
        | Kind::System
        | Kind::Snapshot
        | Kind::Title
        | Kind::Header
        | Kind::Other => false,
    })
}

/// Whether each record is on the path to the newest head.
fn main_path(session: &Session) -> Vec<bool> {
    let mut path = vec![false; session.records().len()];
    lineage(session.head()).for_each(|record| path[record.order()] = true);
    path
}

fn lineage(record: Option<RecordRef<'_>>) -> impl Iterator<Item = RecordRef<'_>> {
    std::iter::successors(record, |record| record.parent())
}

/// Begins a turn where the branch to `head` leaves those before it in the middle of a turn: with another answer to the same prompt.
fn split_at_fork(head: RecordRef<'_>, begins: &mut [bool], covered: &mut [bool]) {
    let mut first_said = None;
    for record in lineage(Some(head)) {
        if std::mem::replace(&mut covered[record.order()], true) {
            if let Some(first) = first_said {
                begins[first] = true;
            }
            return;
        }
        if begins[record.order()] || (record.kind().is_dialogue() && !record.is_side()) {
            first_said = Some(record.order());
        }
    }
}

/// Gives each record the turn of its parent, unless it begins one. Parents come before children, whatever their order in the file.
fn assign(session: &Session, begins: &[bool]) -> (Vec<Group>, Vec<u32>) {
    let (mut groups, mut turn_of) = (Vec::new(), vec![NO_TURN; begins.len()]);
    let mut left: Vec<RecordRef<'_>> = session.records().rev().filter(|record| record.parent().is_none()).collect();
    while let Some(record) = left.pop() {
        let parent = record.parent().map_or(NO_TURN, |parent| turn_of[parent.order()]);
        let is_said = record.kind().is_dialogue() && !record.is_side();
        turn_of[record.order()] = if begins[record.order()] || (parent == NO_TURN && is_said) {
            groups.push(Group {
                first: record.node,
                last: record.node,
                parent: Some(parent).filter(|parent| *parent != NO_TURN),
                is_continued: false,
                on_branch: false,
                head: None,
                start: 0,
            });
            groups.len() as u32 - 1
        } else {
            parent
        };
        left.extend(record.children().rev());
    }
    (groups, turn_of)
}

/// The turn that made the calls which a result answers: a prompt may have been typed in between.
fn turn_of_call(record: RecordRef<'_>, turn_of: &[u32]) -> Option<u32> {
    if record.kind() != Kind::ToolResult {
        return None;
    }
    let callers = record.session.derived.keys.callers.get(&record.node)?;
    let mut turns = callers.iter().map(|caller| turn_of[*caller as usize]).filter(|turn| *turn != NO_TURN);
    let first = turns.next()?;
    let own = turn_of[record.order()];
    Some(if first == own || turns.any(|turn| turn == own) { own } else { first })
}

/// Finds where each turn ends: in a head, else where the next turn continues it; of several, the newest on the default branch.
fn find_ends(session: &Session, groups: &mut [Group], turn_of: &[u32]) {
    for at in 0..groups.len() {
        let (first, on_branch) = (groups[at].first, groups[at].on_branch);
        let before = session.at(first).parent();
        let Some((parent, before)) = groups[at].parent.zip(before) else { continue };
        let parent = &mut groups[parent as usize];
        if on_branch || !parent.on_branch {
            parent.last = before.node;
        }
        parent.is_continued = true;
    }
    let mut heads: Vec<_> = session.heads().collect();
    heads.reverse();
    for head in heads {
        if let Some(group) = groups.get_mut(turn_of[head.record.order()] as usize) {
            (group.head, group.last) = (Some(head.kind), head.record.node);
        }
    }
}

/// Sorts the records by turn; those of one turn stay in file order.
fn sort_by_turn(groups: &mut [Group], turn_of: &[u32]) -> Vec<NodeIx> {
    let mut sizes = vec![0u32; groups.len() + 1];
    turn_of.iter().filter(|turn| **turn != NO_TURN).for_each(|turn| sizes[*turn as usize] += 1);
    let mut start = 0;
    for (group, size) in groups.iter_mut().zip(&sizes) {
        group.start = start;
        start += size;
    }
    let mut next: Vec<u32> = groups.iter().map(|group| group.start).collect();
    let mut records = vec![0; start as usize];
    for (node, turn) in turn_of.iter().enumerate().filter(|(_, turn)| **turn != NO_TURN) {
        let place = &mut next[*turn as usize];
        records[*place as usize] = node as NodeIx;
        *place += 1;
    }
    records
}
