//! The tree that a skeleton's links make: records, their parents and children, gaps and cycles.
//!
//! Derived from the skeleton alone, in time and memory linear in its length, without recursion:
//!
//! ```text
//! entries  a   b<a  c<b  b'   d<x          (b' repeats the id b; nobody wrote x)
//! nodes    a ─ b ─ c                       Join: b' is a fragment of b
//!          gap ┄ d                         d's parent is missing: an island begins
//! ```

use hashbrown::{HashMap, HashSet};

use crate::dialect::Repeated;
use crate::ids::Sym;
use crate::issue::IssueKind;
use crate::skeleton::{ControlKind, Entry, Flags, NO_TIME, PREVIOUS, ROOT, Skeleton};
use crate::time::Micros;

/// The number of a record in its session: file order, by where each record first appears.
pub(crate) type NodeIx = u32;

pub(crate) const NONE: NodeIx = NodeIx::MAX;

/// One record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The entry that says what it is: the first fragment, or the last state.
    pub(crate) entry: u32,
    /// The last entry that belongs to it.
    pub(crate) last: u32,
    pub(crate) parent: NodeIx,
    /// The greatest time of its entries.
    pub(crate) at: Micros,
    /// 0, or the how-many-th record with the same id this is.
    pub(crate) copy: u32,
}

/// When a missing parent is taken to be the record before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bridge {
    /// As the agent itself does.
    AsTheAgent,
    /// Always: the reader asked for it.
    Always,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The node that each id names.
    by_id: Vec<NodeIx>,
    /// Of the nodes made of several entries: all of them.
    fragments: HashMap<NodeIx, Vec<u32>>,
    /// Of the nodes whose parent is missing: its id.
    pub(crate) missing: HashMap<NodeIx, Sym>,
    /// Of those, the ones that were hung on another record all the same.
    pub(crate) bridged: HashMap<NodeIx, NodeIx>,
    /// The records of each cycle; the first of each lost its parent to end it.
    pub(crate) cycles: Vec<Vec<NodeIx>>,
    children: Vec<NodeIx>,
    /// Where each node's children begin in `children`.
    first_child: Vec<u32>,
    /// The record that the agent says is the head.
    pub(crate) leaf: Option<NodeIx>,
    /// The record that came to the file last, whatever hangs on it.
    pub(crate) newest: Option<NodeIx>,
    pub(crate) issues: Vec<Found>,
}

/// An issue that only the tree shows.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) entry: u32,
    pub(crate) kind: IssueKind,
    pub(crate) detail: String,
}

impl Tree {
    pub(crate) fn grow(
        skeleton: &Skeleton,
        repeated: Repeated,
        bridge: Bridge,
        bridges_within_ms: Option<i64>,
    ) -> Tree {
        let mut fold = Fold {
            skeleton,
            repeated,
            tree: Tree { by_id: vec![NONE; skeleton.ids.len()], ..Tree::default() },
            parents: Vec::new(),
            tail: NONE,
            missing_base: None,
            leaf: None,
            seen: HashSet::new(),
        };
        fold.run();
        fold.resolve();
        let limit = match bridge {
            Bridge::Always => Some(i64::MAX),
            Bridge::AsTheAgent => bridges_within_ms.map(|ms| ms * 1000),
        };
        if let Some(limit) = limit {
            fold.bridge(limit);
        }
        let mut tree = fold.tree;
        tree.newest = tree.find_newest(skeleton);
        tree.break_cycles(skeleton);
        tree.report_gaps(skeleton);
        tree.hang_children();
        tree
    }

    pub(crate) fn entry<'s>(&self, skeleton: &'s Skeleton, node: NodeIx) -> &'s Entry {
        &skeleton.entries[self.nodes[node as usize].entry as usize]
    }

    /// The entries that make up a record, in file order.
    pub(crate) fn entries_of(&self, node: NodeIx) -> Vec<u32> {
        let single = || vec![self.nodes[node as usize].entry];
        self.fragments.get(&node).cloned().unwrap_or_else(single)
    }

    pub(crate) fn parent(&self, node: NodeIx) -> Option<NodeIx> {
        Some(self.nodes[node as usize].parent).filter(|parent| *parent != NONE)
    }

    pub(crate) fn children(&self, node: NodeIx) -> &[NodeIx] {
        let at = node as usize;
        &self.children[self.first_child[at] as usize..self.first_child[at + 1] as usize]
    }

    pub(crate) fn named(&self, id: Sym) -> Option<NodeIx> {
        self.by_id.get(id as usize).copied().filter(|node| *node != NONE)
    }

    /// The record and those it hangs on, nearest first.
    pub(crate) fn lineage(&self, node: NodeIx) -> impl Iterator<Item = NodeIx> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// The root of each record's tree.
    pub(crate) fn roots(&self) -> Vec<NodeIx> {
        let mut roots = vec![NONE; self.nodes.len()];
        for start in 0..self.nodes.len() as NodeIx {
            let unknown = self.lineage(start).take_while(|node| roots[*node as usize] == NONE);
            let walked: Vec<NodeIx> = unknown.collect();
            let Some(&top) = walked.last() else { continue };
            let root = self.parent(top).map_or(top, |known| roots[known as usize]);
            walked.into_iter().for_each(|node| roots[node as usize] = root);
        }
        roots
    }

    /// The last record of the conversation in file order; sidechains and side records only where there is nothing else.
    fn find_newest(&self, skeleton: &Skeleton) -> Option<NodeIx> {
        let mut has_children = vec![false; self.nodes.len()];
        for node in &self.nodes {
            if node.parent != NONE {
                has_children[node.parent as usize] = true;
            }
        }
        // A late fragment of a record that others already hang on is no new head.
        let came = |node: NodeIx| {
            let Node { entry, last, .. } = self.nodes[node as usize];
            if has_children[node as usize] { entry } else { last }
        };
        let rank = |node: NodeIx| {
            let flags = self.entry(skeleton, node).flags;
            match (flags.has(Flags::SIDE), flags.has(Flags::SIDECHAIN)) {
                (false, false) => 2,
                (false, true) => 1,
                (true, _) => 0,
            }
        };
        (0..self.nodes.len() as NodeIx).max_by_key(|node| (rank(*node), came(*node)))
    }

    /// Cuts each cycle where a walk from the newest record that leads into it comes round.
    fn break_cycles(&mut self, skeleton: &Skeleton) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Never,
            OnThisWalk,
            Before,
        }
        let mut seen = vec![Seen::Never; self.nodes.len()];
        let starts = self.newest.into_iter().chain((0..self.nodes.len() as NodeIx).rev());
        for start in starts.collect::<Vec<_>>() {
            let (mut walk, mut at) = (Vec::new(), start);
            while at != NONE && seen[at as usize] == Seen::Never {
                seen[at as usize] = Seen::OnThisWalk;
                walk.push(at);
                at = self.nodes[at as usize].parent;
            }
            if at != NONE && seen[at as usize] == Seen::OnThisWalk {
                let entered = walk.iter().position(|node| *node == at).unwrap_or(0);
                let mut cycle = walk[entered..].to_vec();
                cycle.reverse();
                self.nodes[cycle[0] as usize].parent = NONE;
                self.missing.remove(&cycle[0]);
                let ids: Vec<&str> = cycle.iter().take(8).map(|node| self.id_text(skeleton, *node)).collect();
                let detail =
                    format!("{} records are their own ancestors ({}); each is kept once", cycle.len(), ids.join(", "));
                // Until its last record was written there was no cycle.
                let closing = cycle.iter().copied().max().unwrap_or(cycle[0]);
                self.found(closing, IssueKind::Cycle, detail);
                self.cycles.push(cycle);
            }
            walk.into_iter().for_each(|node| seen[node as usize] = Seen::Before);
        }
    }

    fn report_gaps(&mut self, skeleton: &Skeleton) {
        let mut gaps: Vec<(NodeIx, Sym)> = self.missing.iter().map(|(node, id)| (*node, *id)).collect();
        gaps.sort_unstable();
        for (node, id) in gaps {
            let id = skeleton.ids.get(id);
            match self.bridged.get(&node) {
                Some(&to) => {
                    let to = self.id_text(skeleton, to);
                    let detail = format!("its parent {id:?} is missing; it was hung on the record before it, {to:?}");
                    self.found(node, IssueKind::BridgedGap, detail);
                }
                None => {
                    let detail = format!("its parent {id:?} is missing; what came before cannot be told");
                    self.found(node, IssueKind::Orphan, detail);
                }
            }
        }
    }

    fn hang_children(&mut self) {
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

    fn id_text<'s>(&self, skeleton: &'s Skeleton, node: NodeIx) -> &'s str {
        skeleton.ids.get(self.entry(skeleton, node).id)
    }

    fn found(&mut self, node: NodeIx, kind: IssueKind, detail: String) {
        let entry = self.nodes[node as usize].entry;
        self.issues.push(Found { entry, kind, detail });
    }
}

/// One pass over the entries in file order.
struct Fold<'s> {
    skeleton: &'s Skeleton,
    repeated: Repeated,
    tree: Tree,
    /// What each node's entry names as its parent: a `Sym`, `ROOT`, or `KNOWN`.
    parents: Vec<u32>,
    /// What a record of a linear dialect hangs on.
    tail: NodeIx,
    missing_base: Option<Sym>,
    leaf: Option<Sym>,
    /// The bytes of records whose ids repeat, by hash.
    seen: HashSet<(NodeIx, u64)>,
}

/// The parent is resolved already.
const KNOWN: u32 = u32::MAX - 2;

impl Fold<'_> {
    fn run(&mut self) {
        let mut controls = self.skeleton.controls.iter().peekable();
        for at in 0..self.skeleton.entries.len() {
            while let Some(control) = controls.next_if(|control| control.at as usize <= at) {
                self.control(control.what);
            }
            self.take(at as u32);
        }
        controls.for_each(|control| self.control(control.what));
    }

    fn control(&mut self, what: ControlKind) {
        match what {
            ControlKind::Leaf(id) => self.leaf = Some(id),
            ControlKind::ReplaceAll => self.tail = NONE,
            ControlKind::MissingBase(id) => self.missing_base = Some(id),
            ControlKind::Cut(id) => {
                if let Some(node) = self.tree.named(id) {
                    self.tail = match self.parents[node as usize] {
                        KNOWN => self.tree.nodes[node as usize].parent,
                        ROOT => NONE,
                        parent => self.tree.named(parent).unwrap_or(NONE),
                    };
                }
            }
        }
    }

    fn take(&mut self, at: u32) {
        let entry = self.skeleton.entries[at as usize];
        let node = match self.tree.named(entry.id) {
            Some(known) => match self.again(known, at, &entry) {
                Some(node) => node,
                None => return,
            },
            None => {
                let node = self.add(at, &entry, 0);
                self.tree.by_id[entry.id as usize] = node;
                node
            }
        };
        if !entry.flags.has(Flags::SIDE) && !entry.flags.has(Flags::SIDECHAIN) {
            self.tail = node;
        }
    }

    fn add(&mut self, at: u32, entry: &Entry, copy: u32) -> NodeIx {
        let node = self.tree.nodes.len() as NodeIx;
        let (parent, named) = self.parent_of(entry);
        self.tree.nodes.push(Node { entry: at, last: at, parent, at: entry.at, copy });
        self.parents.push(named);
        node
    }

    fn parent_of(&mut self, entry: &Entry) -> (NodeIx, u32) {
        if entry.parent != PREVIOUS {
            return (NONE, entry.parent);
        }
        match self.missing_base.take() {
            Some(base) if self.tail == NONE => (NONE, base),
            _ => (self.tail, KNOWN),
        }
    }

    /// An id that is known already. Gives the node that the entry belongs to, unless it counts for nothing.
    fn again(&mut self, known: NodeIx, at: u32, entry: &Entry) -> Option<NodeIx> {
        let first = *self.tree.entry(self.skeleton, known);
        self.seen.insert((known, first.hash));
        if !self.seen.insert((known, entry.hash)) && !entry.flags.has(Flags::NUMBERED) {
            let detail = format!("the record {:?} stands here again, byte for byte; it counts once", self.id(entry));
            self.tree.issues.push(Found { entry: at, kind: IssueKind::DuplicateLine, detail });
            return None;
        }
        let node = &mut self.tree.nodes[known as usize];
        match self.repeated {
            Repeated::Join if first.kind == entry.kind => {
                node.last = at;
                node.at = node.at.max(entry.at);
                let first_entry = node.entry;
                self.tree.fragments.entry(known).or_insert_with(|| vec![first_entry]).push(at);
                if entry.parent != first.parent {
                    let detail =
                        format!("this piece of {:?} names another parent; the first one counts", self.id(entry));
                    self.tree.issues.push(Found { entry: at, kind: IssueKind::ConflictingParent, detail });
                }
                Some(known)
            }
            Repeated::LastWins => {
                (node.entry, node.last, node.at) = (at, at, node.at.max(entry.at));
                let (parent, named) = self.parent_of(entry);
                self.tree.nodes[known as usize].parent = parent;
                self.parents[known as usize] = named;
                Some(known)
            }
            Repeated::Join | Repeated::Distinct => {
                node.copy = node.copy.max(1);
                let copy = node.copy + 1;
                node.copy = copy;
                if self.repeated == Repeated::Join {
                    let detail = format!(
                        "the id {:?} was a {} record's already; both are kept",
                        self.id(entry),
                        first.kind.name()
                    );
                    self.tree.issues.push(Found { entry: at, kind: IssueKind::ConflictingParent, detail });
                }
                Some(self.add(at, entry, copy))
            }
        }
    }

    fn resolve(&mut self) {
        for node in 0..self.tree.nodes.len() {
            let id = self.parents[node];
            if id == KNOWN || id == ROOT {
                continue;
            }
            match self.tree.named(id) {
                Some(parent) => self.tree.nodes[node].parent = parent,
                None => {
                    self.tree.missing.insert(node as NodeIx, id);
                }
            }
        }
        self.tree.leaf = self.leaf.and_then(|id| self.tree.named(id));
    }

    /// Hangs each orphan on the record right before it, if that is the tip of another tree and near enough in time.
    fn bridge(&mut self, limit: Micros) {
        let mut has_children = vec![false; self.tree.nodes.len()];
        for node in &self.tree.nodes {
            if node.parent != NONE {
                has_children[node.parent as usize] = true;
            }
        }
        let mut before = NONE;
        for at in 0..self.tree.nodes.len() {
            let flags = self.tree.entry(self.skeleton, at as NodeIx).flags;
            if flags.has(Flags::SIDE) || flags.has(Flags::SIDECHAIN) {
                continue;
            }
            if self.tree.missing.contains_key(&(at as NodeIx)) && before != NONE && !has_children[before as usize] {
                let (orphan, tip) = (self.tree.nodes[at].at, self.tree.nodes[before as usize].at);
                let near = orphan != NO_TIME && tip != NO_TIME && orphan.saturating_sub(tip).saturating_abs() <= limit;
                if near || limit == i64::MAX {
                    self.tree.nodes[at].parent = before;
                    self.tree.bridged.insert(at as NodeIx, before);
                    has_children[before as usize] = true;
                }
            }
            before = at as NodeIx;
        }
    }

    fn id(&self, entry: &Entry) -> &str {
        self.skeleton.ids.get(entry.id)
    }
}
