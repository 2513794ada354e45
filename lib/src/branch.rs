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
use crate::skeleton::{Flags, KeyRole, Skeleton};
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
    /// (role, hash, node), sorted.
    sorted: Vec<(KeyRole, u64, NodeIx)>,
    /// (node, role, hash), sorted.
    of_node: Vec<(NodeIx, KeyRole, u64)>,
}

impl Keys {
    pub(crate) fn new(skeleton: &Skeleton, tree: &Tree) -> Keys {
        let mut node_of_entry = vec![NONE; skeleton.entries.len()];
        for node in 0..tree.nodes.len() as NodeIx {
            for entry in tree.entries_of(node) {
                node_of_entry[entry as usize] = node;
            }
        }
        let known = skeleton.keys.iter().map(|key| (key.role, key.hash, node_of_entry[key.entry as usize]));
        let mut sorted: Vec<_> = known.filter(|(_, _, node)| *node != NONE).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut of_node: Vec<_> = sorted.iter().map(|&(role, hash, node)| (node, role, hash)).collect();
        of_node.sort_unstable();
        Keys { sorted, of_node }
    }

    /// The records with this key, in file order.
    fn nodes(&self, role: KeyRole, hash: u64) -> impl Iterator<Item = NodeIx> + '_ {
        let start = self.sorted.partition_point(|(r, h, _)| (*r, *h) < (role, hash));
        self.sorted[start..]
            .iter()
            .take_while(move |(r, h, _)| (*r, *h) == (role, hash))
            .map(|(_, _, node)| *node)
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
        let mut by_hash: HashMap<u64, (Vec<NodeIx>, Vec<NodeIx>)> = HashMap::new();
        for &(role, hash, node) in &self.sorted {
            let (calls, results) = by_hash.entry(hash).or_default();
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
    let mut covered = vec![false; tree.nodes.len()];
    let cover = |head: NodeIx, covered: &mut Vec<bool>| {
        for node in tree.lineage(head) {
            if std::mem::replace(&mut covered[node as usize], true) {
                break;
            }
        }
    };
    let mut heads = vec![HeadEntry { node: main, kind: HeadKind::Main }];
    cover(main, &mut covered);
    let mut leaves: Vec<NodeIx> =
        (0..tree.nodes.len() as NodeIx).filter(|node| *node != main && is_leaf(*node)).collect();
    leaves.sort_by_key(|node| std::cmp::Reverse(tree.nodes[*node as usize].last));
    for leaf in leaves {
        if !covered[leaf as usize] && !belongs_elsewhere(leaf, keys, &covered) {
            heads.push(HeadEntry { node: leaf, kind: kind(leaf) });
            cover(leaf, &mut covered);
        }
    }
    heads
}

/// The record that the agent names, unless the conversation went on from it; else the newest.
fn main_head(tree: &Tree) -> Option<NodeIx> {
    let newest = tree.newest?;
    match tree.leaf {
        Some(leaf) if tree.lineage(newest).all(|node| node != leaf) => Some(leaf),
        _ => Some(newest),
    }
}

/// Whether a leaf is a result or a block of an answer that lies on a branch already listed.
fn belongs_elsewhere(leaf: NodeIx, keys: &Keys, covered: &[bool]) -> bool {
    keys.of(leaf).any(|(role, hash)| {
        let owner = match role {
            KeyRole::Group => KeyRole::Group,
            KeyRole::Result => KeyRole::Call,
            KeyRole::Call => return false,
        };
        keys.nodes(owner, hash).any(|node| node != leaf && covered[node as usize])
    })
}

/// The records of a branch, from its root to its head.
pub(crate) fn walk(skeleton: &Skeleton, tree: &Tree, keys: &Keys, head: NodeIx) -> Vec<NodeIx> {
    let mut path: Vec<NodeIx> = tree.lineage(head).collect();
    path.reverse();
    let mut on: HashSet<NodeIx> = path.iter().copied().collect();
    let results = |on: &HashSet<NodeIx>| -> HashSet<u64> {
        let answered = on.iter().flat_map(|node| keys.of(*node)).filter(|(role, _)| *role == KeyRole::Result);
        answered.map(|(_, hash)| hash).collect()
    };
    let sidechain = |node: NodeIx| tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
    // (where on the path it belongs, the record), first the blocks, then the results of all calls.
    let mut pulled: Vec<(usize, NodeIx)> = Vec::new();
    for (at, &node) in path.iter().enumerate() {
        for (_, hash) in keys.of(node).filter(|(role, _)| *role == KeyRole::Group) {
            let blocks = keys.nodes(KeyRole::Group, hash).filter(|block| sidechain(*block) == sidechain(node));
            for block in blocks.collect::<Vec<_>>() {
                if on.insert(block) {
                    pulled.push((at, block));
                }
            }
        }
    }
    let mut answered = results(&on);
    let callers = path.iter().copied().enumerate().chain(pulled.iter().copied());
    for (at, node) in callers.collect::<Vec<_>>() {
        for (_, hash) in keys.of(node).filter(|(role, _)| *role == KeyRole::Call) {
            let result = || keys.nodes(KeyRole::Result, hash).find(|result| sidechain(*result) == sidechain(node));
            if !answered.contains(&hash)
                && let Some(result) = result()
                && on.insert(result)
            {
                answered.extend(keys.of(result).filter(|(role, _)| *role == KeyRole::Result).map(|(_, hash)| hash));
                pulled.push((at, result));
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
                let open = keys_of(KeyRole::Call).any(|call| !results.contains(&call));
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
