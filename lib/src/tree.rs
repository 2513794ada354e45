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
use crate::issue::{IssueKind, quoted};
use crate::record::Kind;
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
    /// The first entry that belongs to it, and the last.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) parent: NodeIx,
    /// The greatest time of its entries.
    pub(crate) at: Micros,
    /// 0, or the how-many-th record with the same id this is.
    pub(crate) copy: u32,
}

/// How a tree grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) repeated: Repeated,
    /// How near in time an orphan must be to the tip that it is hung on; `None` leaves every gap open.
    pub(crate) bridge_within: Option<Micros>,
    /// False for the end of a file: what is missing may stand before it.
    pub(crate) whole: bool,
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
    pub(crate) fn grow(skeleton: &Skeleton, rules: Rules) -> Tree {
        let mut fold = Fold {
            skeleton,
            rules,
            tree: Tree { by_id: vec![NONE; skeleton.ids.len()], ..Tree::default() },
            parents: Vec::new(),
            current: Current::default(),
            missing_base: None,
            leaf: None,
            seen: HashSet::new(),
            copies: HashMap::new(),
        };
        fold.run();
        fold.resolve();
        let Fold { mut tree, current, .. } = fold;
        tree.newest = tree.find_newest(skeleton, &current, rules);
        tree.break_cycles(skeleton);
        if let Some(limit) = rules.bridge_within.filter(|_| rules.whole) {
            tree.bridge(skeleton, limit);
            tree.newest = tree.find_newest(skeleton, &current, rules);
        }
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

    /// The last record of the conversation in file order; sidechains and side records only in a file of nothing else.
    fn find_newest(&self, skeleton: &Skeleton, current: &Current, rules: Rules) -> Option<NodeIx> {
        let rank = |node: NodeIx| {
            let flags = self.entry(skeleton, node).flags;
            match (flags.has(Flags::SIDE), flags.has(Flags::SIDECHAIN)) {
                (false, false) => 2,
                (false, true) => 1,
                (true, _) => 0,
            }
        };
        let mut goes_on = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if node.parent != NONE && rank(at as NodeIx) >= rank(node.parent) {
                goes_on[node.parent as usize] = true;
            }
        }
        // A late fragment of a record that others already hang on is no new head.
        let came = |node: NodeIx| {
            let Node { first, last, .. } = self.nodes[node as usize];
            if goes_on[node as usize] { first } else { last }
        };
        let newest = (0..self.nodes.len() as NodeIx).max_by_key(|node| (rank(*node), came(*node)))?;
        match rank(newest) {
            2 if !current.shortened => Some(newest),
            // What left the conversation is no head of it, unless nothing is left.
            2 => current.tip().or(rules.whole.then_some(newest)),
            _ => rules.whole.then_some(newest),
        }
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
                let ids: Vec<String> = cycle.iter().take(8).map(|node| quoted(self.id_text(skeleton, *node))).collect();
                let detail = match cycle.len() {
                    1 => "the record is its own parent; it is kept as a root".to_owned(),
                    many => format!("{many} records are their own ancestors ({}); each is kept once", ids.join(", ")),
                };
                // Until its last record was written there was no cycle.
                let closing = cycle.iter().copied().max().unwrap_or(cycle[0]);
                self.found(closing, IssueKind::Cycle, detail);
                self.cycles.push(cycle);
            }
            walk.into_iter().for_each(|node| seen[node as usize] = Seen::Before);
        }
    }

    /// Hangs each orphan on the record right before it, if that is of another tree, and its tip and near enough in time
    /// unless there is no limit.
    fn bridge(&mut self, skeleton: &Skeleton, limit: Micros) {
        let mut roots = self.roots();
        let links: Vec<NodeIx> =
            (0..self.nodes.len() as NodeIx).filter(|node| is_link(self.entry(skeleton, *node))).collect();
        let mut is_tip = vec![true; self.nodes.len()];
        for parent in links.iter().filter_map(|node| self.parent(*node)) {
            is_tip[parent as usize] = false;
        }
        let mut before = NONE;
        for at in links {
            if self.missing.contains_key(&at) && before != NONE {
                let (orphan, tip) = (self.nodes[at as usize].at, self.nodes[before as usize].at);
                let known = orphan != NO_TIME && tip != NO_TIME && is_tip[before as usize];
                let near = known && orphan.saturating_sub(tip).saturating_abs() <= limit;
                let root = top(&mut roots, before);
                // In a file out of order the record before may be the orphan's own child.
                if (near || limit == Micros::MAX) && root != at {
                    self.nodes[at as usize].parent = before;
                    self.bridged.insert(at, before);
                    is_tip[before as usize] = false;
                    roots[at as usize] = root;
                }
            }
            before = at;
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
                    let detail = format!(
                        "its parent {} is missing; it was hung on the record before it, {}",
                        quoted(id),
                        quoted(to)
                    );
                    self.found(node, IssueKind::BridgedGap, detail);
                }
                None => {
                    let detail = format!("its parent {} is missing; what came before cannot be told", quoted(id));
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

/// The root of a tree whose former roots may have been hung on others; shortens the way for the next who asks.
fn top(roots: &mut [NodeIx], node: NodeIx) -> NodeIx {
    let mut top = node;
    while roots[top as usize] != top {
        let above = roots[top as usize];
        roots[top as usize] = roots[above as usize];
        top = above;
    }
    top
}

/// The conversation as a linear dialect has it at some point of the file: it grows, is cut back and replaced.
#[derive(Default)]
struct Current {
    records: Vec<NodeIx>,
    /// Where each record stood when it was last in the conversation.
    position: Vec<u32>,
    /// Records have left it.
    shortened: bool,
}

impl Current {
    fn tip(&self) -> Option<NodeIx> {
        self.records.last().copied()
    }

    fn holds(&self, node: NodeIx) -> bool {
        let position = self.position.get(node as usize).copied().unwrap_or(NONE);
        self.records.get(position as usize) == Some(&node)
    }

    fn add(&mut self, node: NodeIx) {
        if self.position.len() <= node as usize {
            self.position.resize(node as usize + 1, NONE);
        }
        self.position[node as usize] = self.records.len() as u32;
        self.records.push(node);
    }

    fn cut(&mut self, from: NodeIx) {
        if self.holds(from) {
            self.records.truncate(self.position[from as usize] as usize);
            self.shortened = true;
        }
    }

    fn clear(&mut self) {
        self.records.clear();
        self.shortened = true;
    }
}

/// One pass over the entries in file order.
struct Fold<'s> {
    skeleton: &'s Skeleton,
    rules: Rules,
    tree: Tree,
    /// What each node's entry names as its parent: a `Sym`, `ROOT`, or `KNOWN`.
    parents: Vec<u32>,
    /// Its tip is what a record of a linear dialect hangs on.
    current: Current,
    missing_base: Option<Sym>,
    leaf: Option<Sym>,
    /// The bytes of records whose ids repeat, by hash.
    seen: HashSet<(NodeIx, u64)>,
    /// Of ids that several records share: how many there are.
    copies: HashMap<Sym, u32>,
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
            ControlKind::ReplaceAll => self.current.clear(),
            ControlKind::MissingBase(id) => self.missing_base = Some(id),
            ControlKind::CutTurns(turns) => self.cut_turns(turns),
            ControlKind::Cut(id) => match self.tree.named(id) {
                Some(node) => self.current.cut(node),
                // It stands before the part of the file that was read, and so does all that goes on.
                None if !self.rules.whole => self.current.clear(),
                None => {}
            },
        }
    }

    /// Cuts before the prompt that is this many from the end; before the first one when there are not so many.
    fn cut_turns(&mut self, turns: u64) {
        let kind = |node: &NodeIx| self.tree.entry(self.skeleton, *node).kind;
        let prompts = self.current.records.iter().rev().filter(|node| kind(node) == Kind::User);
        let taken = usize::try_from(turns).unwrap_or(usize::MAX);
        let (mut first, mut found) = (None, 0);
        for prompt in prompts.take(taken) {
            (first, found) = (Some(*prompt), found + 1);
        }
        match first {
            // The others stand before the part of the file that was read.
            _ if found < taken && !self.rules.whole => self.current.records.clear(),
            Some(first) => self.current.cut(first),
            None => {}
        }
    }

    fn take(&mut self, at: u32) {
        let entry = self.skeleton.entries[at as usize];
        let node = match self.tree.named(entry.id) {
            Some(known) => self.again(known, at, &entry),
            None => {
                let node = self.add(at, &entry, 0);
                self.tree.by_id[entry.id as usize] = node;
                node
            }
        };
        if is_link(&entry) && !self.current.holds(node) {
            self.current.add(node);
        }
    }

    fn add(&mut self, at: u32, entry: &Entry, copy: u32) -> NodeIx {
        let node = self.tree.nodes.len() as NodeIx;
        self.tree.nodes.push(Node { entry: at, first: at, last: at, parent: NONE, at: entry.at, copy });
        self.parents.push(ROOT);
        self.hang(node, entry);
        node
    }

    /// Hangs a record on what its entry names, or on the conversation as it stands.
    fn hang(&mut self, node: NodeIx, entry: &Entry) {
        let (parent, named) = match (entry.parent, self.current.tip()) {
            (PREVIOUS, Some(tip)) => {
                if is_link(entry)
                    && let Some(missing) = self.missing_base.take()
                {
                    self.tree.missing.insert(node, missing);
                    self.tree.bridged.insert(node, tip);
                }
                (tip, KNOWN)
            }
            (PREVIOUS, None) if is_link(entry) => (NONE, self.missing_base.take().unwrap_or(ROOT)),
            (PREVIOUS, None) => (NONE, ROOT),
            (named, _) => (NONE, named),
        };
        self.tree.nodes[node as usize].parent = parent;
        self.parents[node as usize] = named;
    }

    /// An id that is known already. Gives the record that the entry belongs to.
    fn again(&mut self, known: NodeIx, at: u32, entry: &Entry) -> NodeIx {
        let first = *self.tree.entry(self.skeleton, known);
        if self.rules.repeated == Repeated::Distinct && !self.is_repeat(known, first.hash, entry) {
            return self.copy(at, entry);
        }
        // It had left the conversation and comes back: now it stands behind what is there.
        let returns = is_link(entry) && !self.current.holds(known);
        if returns && entry.parent == PREVIOUS {
            self.hang(known, entry);
            self.tree.nodes[known as usize].last = at;
        }
        self.seen.insert((known, first.hash));
        if !self.seen.insert((known, entry.hash)) && !entry.flags.has(Flags::NUMBERED) {
            if !returns {
                let detail =
                    format!("record {} stands here again, byte for byte; it counts once", quoted(self.id(entry)));
                self.tree.issues.push(Found { entry: at, kind: IssueKind::DuplicateLine, detail });
            }
            return known;
        }
        match self.rules.repeated {
            Repeated::Join if first.kind == entry.kind => {
                let node = &mut self.tree.nodes[known as usize];
                (node.last, node.at) = (at, node.at.max(entry.at));
                let first_entry = node.entry;
                self.tree.fragments.entry(known).or_insert_with(|| vec![first_entry]).push(at);
                if entry.parent != first.parent {
                    let detail =
                        format!("this piece of {} names another parent; the first one counts", quoted(self.id(entry)));
                    self.tree.issues.push(Found { entry: at, kind: IssueKind::ConflictingParent, detail });
                }
                known
            }
            Repeated::LastWins => {
                let node = &mut self.tree.nodes[known as usize];
                (node.entry, node.last, node.at) = (at, at, node.at.max(entry.at));
                if entry.parent != PREVIOUS {
                    self.hang(known, entry);
                }
                known
            }
            Repeated::Join | Repeated::Distinct => {
                let detail = format!(
                    "the id {} was a {} record's already; both are kept",
                    quoted(self.id(entry)),
                    first.kind.name()
                );
                self.tree.issues.push(Found { entry: at, kind: IssueKind::ConflictingParent, detail });
                self.copy(at, entry)
            }
        }
    }

    /// Whether these bytes were one of the records with this id before.
    fn is_repeat(&mut self, known: NodeIx, first: u64, entry: &Entry) -> bool {
        let new = self.seen.insert((known, entry.hash));
        (!new || first == entry.hash) && !entry.flags.has(Flags::NUMBERED)
    }

    /// Another record with an id that is taken.
    fn copy(&mut self, at: u32, entry: &Entry) -> NodeIx {
        let copies = self.copies.entry(entry.id).or_insert(1);
        *copies += 1;
        let copy = *copies;
        self.add(at, entry, copy)
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
        let leaf = self.leaf.and_then(|id| self.tree.named(id));
        self.tree.leaf = leaf.filter(|leaf| is_link(self.tree.entry(self.skeleton, *leaf)));
    }

    fn id(&self, entry: &Entry) -> &str {
        self.skeleton.ids.get(entry.id)
    }
}

/// Whether a record has a place in the parent chain of the conversation.
fn is_link(entry: &Entry) -> bool {
    !entry.flags.has(Flags::SIDE) && !entry.flags.has(Flags::SIDECHAIN)
}
