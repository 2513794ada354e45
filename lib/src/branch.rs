//! Heads, and the branch that leads to one.
//!
//! A branch is the walk from a head to its root, turned round, plus what belongs to it without lying on the walk
//! (reading rule 6): results of its calls and further blocks of its answers.
//!
//! ```text
//! q ─ a (call 1) ─ b (call 2) ─ r2 ─ c        the walk from c: q a b r2 c
//!         └ r1                                 the branch:      q a b r1 r2 c     (r1 is no head)
//! ```

use hashbrown::{HashMap, HashSet};

use crate::issue::IssueKind;
use crate::record::Kind;
use crate::session::RecordRef;
use crate::skeleton::{Flags, KeyEntry, KeyRole, Skeleton};
use crate::tree::{Found, NONE, NodeIx, Tree};

/// How a head relates to the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
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

/// Which record makes a call, answers it, or is a block of an answer; by hash.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Each key with its record, sorted.
    sorted: Vec<(Shared, NodeIx)>,
    /// (node, role, hash), sorted.
    of_node: Vec<(NodeIx, KeyRole, u64)>,
}

/// A key as records share it: a side conversation's calls are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shared {
    role: KeyRole,
    hash: u64,
    sidechain: bool,
}

impl Keys {
    pub(crate) fn new(skeleton: &Skeleton, tree: &Tree) -> Keys {
        let mut node_of_entry = vec![NONE; skeleton.entries.len()];
        for node in 0..tree.nodes.len() as NodeIx {
            for entry in tree.entries_of(node) {
                node_of_entry[entry as usize] = node;
            }
        }
        let known = skeleton.keys.iter().map(|key| (key, node_of_entry[key.entry as usize]));
        let shared = |(key, node): (&KeyEntry, NodeIx)| {
            let sidechain = tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
            (Shared { role: key.role, hash: key.hash, sidechain }, node)
        };
        let mut sorted: Vec<_> = known.filter(|(_, node)| *node != NONE).map(shared).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut of_node: Vec<_> = sorted.iter().map(|(key, node)| (*node, key.role, key.hash)).collect();
        of_node.sort_unstable();
        Keys { sorted, of_node }
    }

    /// The records with this key, in file order.
    fn nodes(&self, key: Shared) -> impl Iterator<Item = NodeIx> + '_ {
        let start = self.sorted.partition_point(|(known, _)| *known < key);
        self.sorted[start..].iter().take_while(move |(known, _)| *known == key).map(|(_, node)| *node)
    }

    /// Whether a record answers calls.
    fn answers(&self, node: NodeIx) -> bool {
        self.of(node).any(|(role, _)| role == KeyRole::Result)
    }

    pub(crate) fn of(&self, node: NodeIx) -> impl Iterator<Item = (KeyRole, u64)> + '_ {
        let start = self.of_node.partition_point(|(n, _, _)| *n < node);
        self.of_node[start..]
            .iter()
            .take_while(move |(n, _, _)| *n == node)
            .map(|(_, role, hash)| (*role, *hash))
    }

    /// Results without calls, second results, and calls without results.
    pub(crate) fn issues(&self, tree: &Tree) -> Vec<Found> {
        let mut by_hash: HashMap<(u64, bool), (Vec<NodeIx>, Vec<NodeIx>)> = HashMap::new();
        for &(Shared { role, hash, sidechain }, node) in &self.sorted {
            let (calls, results) = by_hash.entry((hash, sidechain)).or_default();
            match role {
                KeyRole::Call => calls.push(node),
                KeyRole::Result => results.push(node),
                KeyRole::Group => {}
            }
        }
        let mut found = Vec::new();
        let mut report = |node: NodeIx, kind, detail: &str| {
            found.push(Found { entry: tree.nodes[node as usize].entry, kind, detail: detail.to_owned() });
        };
        for (calls, results) in by_hash.values() {
            for node in results.iter().take(if calls.is_empty() { usize::MAX } else { 0 }) {
                report(
                    *node,
                    IssueKind::OrphanResult,
                    "a tool result whose call is nowhere in the session; it is shown alone",
                );
            }
            for node in results.iter().skip(calls.len().max(1)) {
                report(*node, IssueKind::DuplicateResult, "another result of the same tool call; the first one counts");
            }
            for node in calls.iter().take(if results.is_empty() { usize::MAX } else { 0 }) {
                report(*node, IssueKind::UnansweredCall, "a tool call without a result");
            }
        }
        found.sort_by_key(|found| (found.entry, found.kind.name()));
        found
    }
}

/// Every end of a conversation, the newest first.
///
/// A result or a block that a listed branch shows is no end, so that results come last. What such a leaf hangs on may be
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
    let (results, others): (Vec<_>, Vec<_>) = leaves.iter().partition(|node| keys.answers(**node));
    let mut shown = Shown::new(skeleton, tree, keys);
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
    match tree.leaf {
        Some(leaf) if tree.lineage(newest).all(|node| node != leaf) => Some(leaf),
        _ => Some(newest),
    }
}

/// What the branches listed so far show.
struct Shown<'a> {
    skeleton: &'a Skeleton,
    tree: &'a Tree,
    keys: &'a Keys,
    /// The records on the way to a listed head.
    covered: Vec<bool>,
    /// The keys of those records and of their answers' further blocks.
    seen: HashSet<Shared>,
}

impl<'a> Shown<'a> {
    fn new(skeleton: &'a Skeleton, tree: &'a Tree, keys: &'a Keys) -> Self {
        Shown { skeleton, tree, keys, covered: vec![false; tree.nodes.len()], seen: HashSet::new() }
    }

    fn cover(&mut self, head: NodeIx) {
        for node in self.tree.lineage(head) {
            if std::mem::replace(&mut self.covered[node as usize], true) {
                break;
            }
            for key in self.keys_of(node) {
                if self.seen.insert(key) && key.role == KeyRole::Group {
                    for block in self.keys.nodes(key) {
                        let of_block = self.keys_of(block).filter(|key| key.role != KeyRole::Group);
                        self.seen.extend(of_block);
                    }
                }
            }
        }
    }

    /// Whether a listed branch shows this record: on its way, as a block of an answer, or as a call's first result.
    fn holds(&self, node: NodeIx) -> bool {
        let pulled = |key: Shared| match key.role {
            KeyRole::Group => self.seen.contains(&key),
            KeyRole::Call => false,
            KeyRole::Result => {
                let call = Shared { role: KeyRole::Call, ..key };
                let answered = self.seen.contains(&key);
                self.seen.contains(&call) && !answered && self.keys.nodes(key).next() == Some(node)
            }
        };
        self.covered[node as usize] || self.keys_of(node).any(pulled)
    }

    fn keys_of(&self, node: NodeIx) -> impl Iterator<Item = Shared> + use<'a> {
        let sidechain = self.tree.entry(self.skeleton, node).flags.has(Flags::SIDECHAIN);
        self.keys.of(node).map(move |(role, hash)| Shared { role, hash, sidechain })
    }
}

/// The records of a branch, from its root to its head.
pub(crate) fn walk(skeleton: &Skeleton, tree: &Tree, keys: &Keys, head: NodeIx) -> Vec<NodeIx> {
    let mut path: Vec<NodeIx> = tree.lineage(head).collect();
    path.reverse();
    let mut on: HashSet<NodeIx> = path.iter().copied().collect();
    let keys_of = |node: NodeIx, wanted: KeyRole| {
        let sidechain = tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
        keys.of(node)
            .filter(move |(role, _)| *role == wanted)
            .map(move |(role, hash)| Shared { role, hash, sidechain })
    };
    // (where on the path it belongs, the record), first the blocks, then the results of all calls.
    let mut pulled: Vec<(usize, NodeIx)> = Vec::new();
    let mut answers = HashSet::new();
    for (at, &node) in path.iter().enumerate() {
        for answer in keys_of(node, KeyRole::Group).filter(|answer| answers.insert(*answer)) {
            let blocks = keys.nodes(answer).filter(|block| on.insert(*block));
            pulled.extend(blocks.map(|block| (at, block)));
        }
    }
    let mut answered: HashSet<Shared> = on.iter().flat_map(|node| keys_of(*node, KeyRole::Result)).collect();
    let callers = path.iter().copied().enumerate().chain(pulled.iter().copied());
    for (at, node) in callers.collect::<Vec<_>>() {
        for call in keys_of(node, KeyRole::Call) {
            let result = Shared { role: KeyRole::Result, ..call };
            if answered.insert(result)
                && let Some(node) = keys.nodes(result).next()
                && on.insert(node)
            {
                pulled.push((at, node));
            }
        }
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
    let mut results = HashSet::new();
    for record in branch.iter().rev() {
        let keys_of = |wanted| keys.of(record.node).filter(move |(role, _)| *role == wanted).map(|(_, hash)| hash);
        match record.kind() {
            Kind::User => return End::Prompt,
            Kind::ToolResult => results.extend(keys_of(KeyRole::Result)),
            Kind::Assistant => {
                let own: HashSet<u64> = keys_of(KeyRole::Result).collect();
                let open = keys_of(KeyRole::Call).any(|call| !results.contains(&call) && !own.contains(&call));
                return if open || !results.is_empty() { End::Turn } else { End::Answered };
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
    if results.is_empty() { End::Answered } else { End::Turn }
}
