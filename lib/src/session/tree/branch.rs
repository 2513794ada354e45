//! Heads, and the branch that leads to one.
//!
//! A branch is the walk from a head to its root, turned round, plus what belongs to it without lying on the walk
//! (reading rule 6): results of its calls and further blocks of its answers.
//!
//! ```text
//! q ─ a (call 1) ─ b (call 2) ─ r2 ─ c        the walk from c: q a b r2 c
//!         └ r1                                 the branch:      q a b r1 r2 c     (r1 is no head)
//! ```

use hashbrown::HashSet;

use crate::model::record::Kind;
use crate::session::RecordRef;
use crate::session::tree::keys::{Keys, Shared};
use crate::session::tree::skeleton::{Flags, KeyRole, Skeleton};
use crate::session::tree::{NodeIx, Tree};

/// How a head relates to the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// The newest: what the session means when no other is named.
    Main,
    /// Another end of the same conversation.
    Branch,
    /// The end of a side conversation.
    Sidechain,
    /// The end of a tree that a missing record cut off.
    Island,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadEntry {
    pub(crate) node: NodeIx,
    pub(crate) kind: HeadKind,
}

/// Every end of a conversation, the newest first.
///
/// A result, a block or a note that a listed branch shows is no end, so that results and notes come last. What such a leaf hangs on may be
/// an end itself:
///
/// ```text
/// q ─ a (call 1) ─ b        heads b and x: r1 is shown behind a, and without x the prompt would be nowhere
///         └ x ─ r1
/// ```
pub(crate) fn heads(skeleton: &Skeleton, tree: &Tree, keys: &Keys) -> Vec<HeadEntry> {
    let Some(main) = main_head(tree) else { return Vec::new() };
    let roots = tree.roots();
    let flags = |node: NodeIx| tree.entry(skeleton, node).flags;
    let is_leaf = |node: NodeIx| {
        let sidechain = flags(node).has(Flags::SIDECHAIN);
        let carries_on =
            |child: &NodeIx| !flags(*child).has(Flags::SIDE) && (sidechain || !flags(*child).has(Flags::SIDECHAIN));
        !flags(node).has(Flags::SIDE) && !tree.children(node).iter().any(carries_on)
    };
    let cut_off = |node: NodeIx| tree.missing.contains_key(&roots[node as usize]);
    let kind = |node: NodeIx| {
        if flags(node).has(Flags::SIDECHAIN) {
            HeadKind::Sidechain
        } else if roots[node as usize] != roots[main as usize] && (cut_off(node) || cut_off(main)) {
            HeadKind::Island
        } else {
            HeadKind::Branch
        }
    };
    let newest_first = |node: &NodeIx| std::cmp::Reverse(tree.nodes[*node as usize].last);
    let mut leaves: Vec<NodeIx> =
        (0..tree.nodes.len() as NodeIx).filter(|node| *node != main && is_leaf(*node)).collect();
    leaves.sort_by_key(newest_first);
    let (results, others): (Vec<_>, Vec<_>) =
        leaves.iter().partition(|node| keys.answers(**node) || is_note(skeleton, tree, **node));
    let mut shown = Covered::new(skeleton, tree, keys);
    shown.cover(main);
    let mut ends: Vec<NodeIx> = Vec::new();
    for &leaf in others.into_iter().chain(results) {
        if !shown.holds(leaf) {
            shown.cover(leaf);
            ends.push(leaf);
        }
    }
    for leaf in leaves {
        let mut uncovered = tree.lineage(leaf).take_while(|node| !shown.covered[*node as usize]);
        if let Some(end) = uncovered.find(|node| !shown.holds(*node)) {
            ends.push(end);
        }
        shown.cover(leaf);
    }
    drop_inner(skeleton, tree, &mut ends);
    ends.sort_by_key(newest_first);
    let others = ends.into_iter().map(|node| HeadEntry { node, kind: kind(node) });
    std::iter::once(HeadEntry { node: main, kind: HeadKind::Main }).chain(others).collect()
}

/// Keeps of several ends on one way only the last; a side conversation is no way on.
fn drop_inner(skeleton: &Skeleton, tree: &Tree, ends: &mut Vec<NodeIx>) {
    let sidechain = |node: NodeIx| tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
    let mut inner = [vec![false; tree.nodes.len()], vec![false; tree.nodes.len()]];
    for &end in ends.iter() {
        let inner = &mut inner[usize::from(sidechain(end))];
        for node in tree.lineage(end).skip(1) {
            if std::mem::replace(&mut inner[node as usize], true) {
                break;
            }
        }
    }
    ends.retain(|end| !inner[usize::from(sidechain(*end))][*end as usize]);
}

/// The record that the agent names, unless the conversation went on from it; else the newest.
fn main_head(tree: &Tree) -> Option<NodeIx> {
    let newest = tree.newest?;
    let went_on = |leaf: NodeIx| {
        let is_before = tree.rewound_at.is_some_and(|at| tree.nodes[newest as usize].last < at);
        !is_before && tree.lineage(newest).any(|node| node == leaf)
    };
    Some(tree.leaf.filter(|leaf| !went_on(*leaf)).unwrap_or(newest))
}

/// What the branches listed so far show.
struct Covered<'a> {
    skeleton: &'a Skeleton,
    tree: &'a Tree,
    keys: &'a Keys,
    /// The records on the way to a listed head.
    covered: Vec<bool>,
    /// Those, and the further blocks of their answers.
    speaks: Vec<bool>,
    answers: HashSet<Shared>,
}

impl<'a> Covered<'a> {
    fn new(skeleton: &'a Skeleton, tree: &'a Tree, keys: &'a Keys) -> Self {
        let none = vec![false; tree.nodes.len()];
        Covered { skeleton, tree, keys, covered: none.clone(), speaks: none, answers: HashSet::new() }
    }

    fn cover(&mut self, head: NodeIx) {
        for node in self.tree.lineage(head) {
            if std::mem::replace(&mut self.covered[node as usize], true) {
                break;
            }
            self.speaks[node as usize] = true;
            for answer in groups(self.skeleton, self.tree, self.keys, node) {
                if self.answers.insert(answer) {
                    self.keys.nodes(answer).for_each(|block| self.speaks[block as usize] = true);
                }
            }
        }
    }

    /// Whether a listed branch shows this record: on its way, as a block of an answer, as a result that ends there, or as
    /// a note about the session that hangs on it: agents write titles and counts beside the conversation's tip.
    fn holds(&self, node: NodeIx) -> bool {
        let called = || self.keys.callers.get(&node).into_iter().flatten().any(|caller| self.speaks[*caller as usize]);
        let notes = || {
            let parent = self.tree.parent(node).filter(|_| is_note(self.skeleton, self.tree, node));
            parent.is_some_and(|parent| self.speaks[parent as usize])
        };
        self.speaks[node as usize] || (self.tree.children(node).is_empty() && (called() || notes()))
    }
}

/// Whether a record tells about the session and says nothing in it.
fn is_note(skeleton: &Skeleton, tree: &Tree, node: NodeIx) -> bool {
    matches!(tree.entry(skeleton, node).kind, Kind::Title | Kind::Header | Kind::Snapshot)
}

/// The answers that a record is a block of.
fn groups<'a>(
    skeleton: &Skeleton,
    tree: &Tree,
    keys: &'a Keys,
    node: NodeIx,
) -> impl Iterator<Item = Shared> + use<'a> {
    let sidechain = tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
    let groups = keys.of(node).filter(|(role, _)| *role == KeyRole::Group);
    groups.map(move |(role, hash)| Shared { role, hash, sidechain })
}

/// The records of a branch, from its root to its head.
pub(crate) fn walk(skeleton: &Skeleton, tree: &Tree, keys: &Keys, head: NodeIx) -> Vec<NodeIx> {
    let mut path: Vec<NodeIx> = tree.lineage(head).collect();
    path.reverse();
    let mut on: HashSet<NodeIx> = path.iter().copied().collect();
    // (where on the path it belongs, the record), first the blocks, then the results of all calls.
    let mut pulled: Vec<(usize, NodeIx)> = Vec::new();
    let mut answers = HashSet::new();
    for (at, &node) in path.iter().enumerate() {
        for answer in groups(skeleton, tree, keys, node).filter(|answer| answers.insert(*answer)) {
            let blocks = keys.nodes(answer).filter(|block| on.insert(*block));
            pulled.extend(blocks.map(|block| (at, block)));
        }
    }
    let callers = path.iter().copied().enumerate().chain(pulled.iter().copied());
    for (at, node) in callers.collect::<Vec<_>>() {
        let Some(results) = keys.answers.get(&node) else { continue };
        let answered = results.iter().any(|result| on.contains(result));
        // Where the conversation went on from a result elsewhere, that is another branch's; unless there is no other.
        let ends = |result: &NodeIx| tree.children(*result).is_empty();
        let ending: Vec<NodeIx> = results.iter().copied().filter(ends).collect();
        let instead = results.first().filter(|_| !answered && ending.is_empty()).copied();
        pulled.extend(ending.into_iter().chain(instead).filter(|result| on.insert(*result)).map(|result| (at, result)));
    }
    merge(path, pulled)
}

/// Puts each pulled record behind the one it belongs to, as far on as file order has it.
fn merge(path: Vec<NodeIx>, mut pulled: Vec<(usize, NodeIx)>) -> Vec<NodeIx> {
    if pulled.is_empty() {
        return path;
    }
    let in_file_order = path.is_sorted();
    for (at, node) in &mut pulled {
        *at += 1;
        if in_file_order {
            *at += path[*at..].partition_point(|on_path| on_path < node);
        }
    }
    pulled.sort_unstable();
    let mut merged = Vec::with_capacity(path.len() + pulled.len());
    let mut pulled = pulled.into_iter().peekable();
    for at in 0..=path.len() {
        while let Some((_, node)) = pulled.next_if(|(before, _)| *before <= at) {
            merged.push(node);
        }
        merged.extend(path.get(at));
    }
    merged
}

/// How a branch ends, as its links tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    Prompt,
    Turn,
}

/// Only the last answer can be open: calls that the conversation went on without are history.
pub(crate) fn end(keys: &Keys, branch: &[RecordRef<'_>]) -> End {
    let (mut results, mut ran) = (HashSet::new(), false);
    for record in branch.iter().rev() {
        let keys_of = |wanted| keys.of(record.node).filter(move |(role, _)| *role == wanted).map(|(_, hash)| hash);
        match record.kind() {
            // Who only reacts asks for nothing.
            Kind::User if record.is_reaction() => {}
            Kind::User => return End::Prompt,
            Kind::ToolResult => {
                ran = true;
                results.extend(keys_of(KeyRole::Result));
            }
            Kind::Assistant => {
                let own: HashSet<u64> = keys_of(KeyRole::Result).collect();
                let open = keys_of(KeyRole::Call).any(|call| !results.contains(&call) && !own.contains(&call));
                return if open || ran { End::Turn } else { End::Answered };
            }
            Kind::Attachment
            | Kind::System
            | Kind::Snapshot
            | Kind::Title
            | Kind::Compaction
            | Kind::Rewind
            | Kind::Restore
            | Kind::Header
            | Kind::Other => {}
        }
    }
    if ran { End::Turn } else { End::Answered }
}
