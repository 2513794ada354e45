//! The tree of a session, built from its skeleton: records, their parents and children, gaps and cycles.
//!
//! Derived from the skeleton alone, in time and memory linear in its length, without recursion:
//!
//! ```text
//! entries  a   b<a  c<b  b'   d<x          (b' repeats the id b; x is missing)
//! nodes    a ─ b ─ c                       Join: b' is a fragment of b
//!          gap ┄ d                         d's parent is missing: an island begins
//! ```

pub(crate) mod skeleton;
pub(crate) mod facts;
pub(crate) mod ids;
pub(crate) mod fold;
pub(crate) mod gaps;
pub(crate) mod branch;
pub(crate) mod keys;

use hashbrown::HashMap;

use crate::dialect::RepeatedId;
use crate::model::issue::{IssueKind, quoted};
use crate::model::time::Micros;
use crate::session::tree::fold::{Fold, LinearConversation};
use crate::session::tree::ids::IdIndex;
use crate::session::tree::skeleton::{BaseGap, Entry, Flags, Skeleton};

/// The number of a record in its session: file order, by where each record first appears.
pub(crate) type NodeIx = u32;

pub(crate) const NONE: NodeIx = NodeIx::MAX;

/// One record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The entry with its kind and place: the first fragment, or the last version.
    pub(crate) entry: u32,
    /// The first entry that belongs to it, and the last.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) parent: NodeIx,
    /// The greatest time of its entries.
    pub(crate) at: Micros,
    /// The number of this record among those with the same id; 0 if it is the only one.
    pub(crate) copy: u32,
}

/// How a tree is built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeRules {
    pub(crate) repeated_id: RepeatedId,
    /// How near in time an orphan must be to the tip that becomes its parent; `None` leaves every gap open.
    pub(crate) bridge_within: Option<Micros>,
    /// False if only the end of a file was read: missing records may be before it.
    pub(crate) whole: bool,
}

/// When the record before an orphan becomes its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bridge {
    /// If the agent itself does so.
    AsTheAgent,
    /// Always, on request.
    Always,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The node that each id names.
    pub(crate) by_id: Vec<NodeIx>,
    /// All entries of each node that has several.
    pub(crate) fragments: HashMap<NodeIx, Vec<u32>>,
    /// The missing parent's id of each node that has one.
    pub(crate) missing: HashMap<NodeIx, IdIndex>,
    /// The record that became the parent instead.
    pub(crate) bridged: HashMap<NodeIx, NodeIx>,
    /// Why the base session is missing, for each node that continues one.
    pub(crate) base_gaps: HashMap<NodeIx, BaseGap>,
    /// The base session that is missing and nothing continues yet: all that the session has.
    pub(crate) unfollowed_base: Option<(IdIndex, BaseGap)>,
    /// The records of each cycle; the first of each was made a root.
    pub(crate) cycles: Vec<Vec<NodeIx>>,
    children: Vec<NodeIx>,
    /// Where each node's children begin in `children`.
    first_child: Vec<u32>,
    /// The record that the agent says is the head.
    pub(crate) leaf: Option<NodeIx>,
    /// Children of the leaf before this entry do not count.
    pub(crate) rewound_at: Option<u32>,
    /// The last record in the file or, if the conversation continues after it, the newest leaf below it.
    pub(crate) newest: Option<NodeIx>,
    pub(crate) issues: Vec<TreeIssue>,
}

/// An issue found while building the tree.
#[derive(Debug)]
pub(crate) struct TreeIssue {
    pub(crate) entry: u32,
    pub(crate) kind: IssueKind,
    pub(crate) detail: String,
}

impl Tree {
    pub(crate) fn build(skeleton: &Skeleton, rules: TreeRules) -> Tree {
        let (mut tree, current) = Fold::over(skeleton, rules);
        tree.newest = tree.find_newest(skeleton, &current, rules);
        tree.break_cycles(skeleton);
        if let Some(limit) = rules.bridge_within.filter(|_| rules.whole) {
            tree.bridge(skeleton, limit);
            tree.newest = tree.find_newest(skeleton, &current, rules);
        }
        if rules.whole {
            // Where only a part of a file was read, missing records may be before it.
            tree.report_gaps(skeleton);
        }
        tree.index_children();
        if !current.shortened {
            tree.newest = tree.newest.map(|newest| tree.newest_leaf(skeleton, newest));
        }
        tree
    }

    pub(crate) fn entry<'s>(&self, skeleton: &'s Skeleton, node: NodeIx) -> &'s Entry {
        &skeleton.entries[self.nodes[node as usize].entry as usize]
    }

    /// The entries that make up a record, in file order.
    pub(crate) fn entries_of(&self, node: NodeIx) -> &[u32] {
        let single = || std::slice::from_ref(&self.nodes[node as usize].entry);
        self.fragments.get(&node).map_or_else(single, Vec::as_slice)
    }

    pub(crate) fn parent(&self, node: NodeIx) -> Option<NodeIx> {
        Some(self.nodes[node as usize].parent).filter(|parent| *parent != NONE)
    }

    pub(crate) fn children(&self, node: NodeIx) -> &[NodeIx] {
        let at = node as usize;
        &self.children[self.first_child[at] as usize..self.first_child[at + 1] as usize]
    }

    pub(crate) fn named(&self, id: IdIndex) -> Option<NodeIx> {
        self.by_id.get(id as usize).copied().filter(|node| *node != NONE)
    }

    /// The record and its ancestors, nearest first.
    pub(crate) fn lineage(&self, node: NodeIx) -> impl Iterator<Item = NodeIx> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// The root of each record's tree.
    pub(crate) fn roots(&self) -> Vec<NodeIx> {
        let (mut roots, mut walked) = (vec![NONE; self.nodes.len()], Vec::new());
        for start in 0..self.nodes.len() as NodeIx {
            walked.extend(self.lineage(start).take_while(|node| roots[*node as usize] == NONE));
            let Some(&top) = walked.last() else { continue };
            let root = self.parent(top).map_or(top, |known| roots[known as usize]);
            walked.drain(..).for_each(|node| roots[node as usize] = root);
        }
        roots
    }

    /// The last record of the conversation in file order; sidechains and side records only in a file of nothing else.
    fn find_newest(&self, skeleton: &Skeleton, current: &LinearConversation, rules: TreeRules) -> Option<NodeIx> {
        let rank = |node: NodeIx| self.rank(skeleton, node);
        let mut has_child = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if node.parent != NONE && rank(at as NodeIx) >= rank(node.parent) {
                has_child[node.parent as usize] = true;
            }
        }
        // A late fragment of a record that has children does not make it a head.
        let last_seen = |node: NodeIx| {
            let Node { first, last, .. } = self.nodes[node as usize];
            if has_child[node as usize] { first } else { last }
        };
        let newest = (0..self.nodes.len() as NodeIx).max_by_key(|node| (rank(*node), last_seen(*node)))?;
        match rank(newest) {
            2 if !current.shortened => Some(newest),
            // A record that left the conversation is not its head. If nothing is left, what stands last in the file is.
            2 => current.tip().or_else(|| {
                (0..self.nodes.len() as NodeIx).filter(|_| rules.whole).max_by_key(|node| last_seen(*node))
            }),
            _ => rules.whole.then_some(newest),
        }
    }

    /// How much a record is part of the conversation: a link, one of a sidechain, or one beside it.
    fn rank(&self, skeleton: &Skeleton, node: NodeIx) -> u8 {
        let flags = self.entry(skeleton, node).flags;
        match (flags.has(Flags::SIDE), flags.has(Flags::SIDECHAIN)) {
            (false, false) => 2,
            (false, true) => 1,
            (true, _) => 0,
        }
    }

    /// The newest record without children below a record: in a file whose lines were shuffled, the last line may be the
    /// beginning of the conversation. Times say what is newest, because the order of such a file does not.
    fn newest_leaf(&self, skeleton: &Skeleton, top: NodeIx) -> NodeIx {
        let rank = self.rank(skeleton, top);
        let (mut open, mut newest) = (vec![top], None);
        while let Some(node) = open.pop() {
            let before = open.len();
            let continues = |child: &&NodeIx| rank > 0 && self.rank(skeleton, **child) >= rank;
            open.extend(self.children(node).iter().filter(continues));
            if open.len() == before {
                let Node { at, last, .. } = self.nodes[node as usize];
                newest = newest.max(Some((at, last, node)));
            }
        }
        newest.map_or(top, |(_, _, leaf)| leaf)
    }

    /// Breaks each cycle where a walk from the newest record closes it.
    fn break_cycles(&mut self, skeleton: &Skeleton) {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Never,
            OnThisWalk,
            Before,
        }
        let mut seen = vec![Visit::Never; self.nodes.len()];
        let starts = self.newest.into_iter().chain((0..self.nodes.len() as NodeIx).rev());
        let mut walk = Vec::new();
        for start in starts {
            let mut at = start;
            while at != NONE && seen[at as usize] == Visit::Never {
                seen[at as usize] = Visit::OnThisWalk;
                walk.push(at);
                at = self.nodes[at as usize].parent;
            }
            if at != NONE && seen[at as usize] == Visit::OnThisWalk {
                let entered = walk.iter().position(|node| *node == at).unwrap_or(0);
                let mut cycle = walk[entered..].to_vec();
                cycle.reverse();
                self.break_cycle(skeleton, cycle);
            }
            walk.drain(..).for_each(|node| seen[node as usize] = Visit::Before);
        }
    }

    /// Makes a root of a record of a cycle: without a word of the one that a conversation begins anew with, whose parent only
    /// says what came before it.
    fn break_cycle(&mut self, skeleton: &Skeleton, cycle: Vec<NodeIx>) {
        let begins_anew = |node: &NodeIx| self.entry(skeleton, *node).flags.has(Flags::ANEW);
        if let Some(first) = cycle.iter().copied().filter(begins_anew).min() {
            self.nodes[first as usize].parent = NONE;
            return;
        }
        self.nodes[cycle[0] as usize].parent = NONE;
        let ids: Vec<String> = cycle.iter().take(8).map(|node| quoted(self.id_text(skeleton, *node))).collect();
        let detail = match cycle.len() {
            1 => format!("record {} is its own parent; it is kept as a root", ids.join("")),
            many => format!("{many} records are their own ancestors ({}); each is kept once", ids.join(", ")),
        };
        // The last record of the cycle closed it.
        let closing = cycle.iter().copied().max().unwrap_or(cycle[0]);
        self.report(closing, IssueKind::Cycle, detail);
        self.cycles.push(cycle);
    }

    fn index_children(&mut self) {
        let mut counts = vec![0_u32; self.nodes.len() + 1];
        for node in &self.nodes {
            if node.parent != NONE {
                counts[node.parent as usize + 1] += 1;
            }
        }
        for at in 1..counts.len() {
            counts[at] += counts[at - 1];
        }
        let mut next = counts.clone();
        self.children = vec![NONE; counts.last().copied().unwrap_or(0) as usize];
        for (at, node) in self.nodes.iter().enumerate() {
            if node.parent != NONE {
                let slot = &mut next[node.parent as usize];
                self.children[*slot as usize] = at as NodeIx;
                *slot += 1;
            }
        }
        self.first_child = counts;
    }

    pub(crate) fn id_text<'s>(&self, skeleton: &'s Skeleton, node: NodeIx) -> &'s str {
        skeleton.ids.get(self.entry(skeleton, node).id)
    }

    pub(crate) fn report(&mut self, node: NodeIx, kind: IssueKind, detail: String) {
        let entry = self.nodes[node as usize].entry;
        self.issues.push(TreeIssue { entry, kind, detail });
    }
}

/// Whether a record is part of the main chain of parents.
pub(crate) fn is_link(entry: &Entry) -> bool {
    !entry.flags.has(Flags::SIDE) && !entry.flags.has(Flags::SIDECHAIN)
}
