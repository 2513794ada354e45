//! The fold: one pass over a skeleton's entries in file order that groups them into records and finds their parents.
//!
//! Cycles, gaps and children need more than one pass: see `mod.rs` and `gaps.rs`.

use hashbrown::{HashMap, HashSet};

use crate::dialect::RepeatedId;
use crate::model::issue::{IssueKind, quoted};
use crate::model::record::Kind;
use crate::session::tree::ids::IdIndex;
use crate::session::tree::skeleton::{BaseGap, Control, ControlKind, Entry, Flags, PREVIOUS, ROOT, Skeleton};
use crate::session::tree::{NONE, Node, NodeIx, Tree, TreeIssue, TreeRules, is_link};

/// One pass over the entries in file order.
pub(crate) struct Fold<'s> {
    skeleton: &'s Skeleton,
    rules: TreeRules,
    tree: Tree,
    /// The parent that each node's entry names: an `IdIndex`, `ROOT`, or `KNOWN`.
    parents: Vec<u32>,
    /// Its tip is the parent of the next record of a linear dialect.
    current: LinearConversation,
    missing_base: Option<(IdIndex, BaseGap)>,
    /// What is missing before the first record: also before one that takes its place after a step back.
    missing_start: Option<(IdIndex, BaseGap)>,
    leaf: Option<IdIndex>,
    /// Children of the leaf before this entry do not count.
    rewound_at: Option<u32>,
    /// The hashes of records whose ids repeat.
    seen: HashSet<(NodeIx, u64)>,
    /// The number of records with each repeated id.
    copies: HashMap<IdIndex, u32>,
}

/// The parent is resolved already.
const KNOWN: u32 = u32::MAX - 2;

impl<'s> Fold<'s> {
    /// Returns the tree with its parents, and the conversation at the end of the file.
    pub(crate) fn over(skeleton: &'s Skeleton, rules: TreeRules) -> (Tree, LinearConversation) {
        let mut tree = Tree::default();
        tree.by_id.resize(skeleton.ids.len(), NONE);
        tree.nodes.reserve(skeleton.entries.len());
        let mut fold = Fold {
            skeleton,
            rules,
            tree,
            parents: Vec::with_capacity(skeleton.entries.len()),
            current: LinearConversation::default(),
            missing_base: None,
            missing_start: None,
            leaf: None,
            rewound_at: None,
            seen: HashSet::new(),
            copies: HashMap::new(),
        };
        fold.run();
        fold.resolve();
        // What a fork has of a session that ends too early is followed by nothing, and so is what is lost.
        let is_lost = |(_, why): &(IdIndex, BaseGap)| *why == BaseGap::EndsEarly || fold.current.tip().is_none();
        fold.tree.unfollowed_base = fold.missing_base.filter(is_lost);
        (fold.tree, fold.current)
    }

    fn run(&mut self) {
        let mut controls = self.skeleton.controls.iter().peekable();
        for at in 0..self.skeleton.entries.len() {
            while let Some(control) = controls.next_if(|control| control.at as usize <= at) {
                self.control(*control);
            }
            self.take(at as u32);
        }
        controls.for_each(|control| self.control(*control));
    }

    fn control(&mut self, control: Control) {
        match control.what {
            ControlKind::Leaf(id) => {
                self.rewound_at = self.rewound_at.filter(|_| self.leaf == Some(id));
                self.leaf = Some(id);
            }
            ControlKind::Rewound(id) => (self.leaf, self.rewound_at) = (Some(id), Some(control.at)),
            ControlKind::ReplaceAll => {
                self.current.clear();
                self.missing_start = None;
            }
            ControlKind::MissingBase(id, why) => self.missing_base = Some((id, why)),
            ControlKind::CutTurns(turns) => self.cut_turns(turns),
            ControlKind::CutEntry(entry) => self.return_to(entry),
            ControlKind::Cut(id) => match self.tree.named(id) {
                Some(node) => self.current.cut(node),
                // It is before the part of the file that was read, and so is all that remains.
                None if !self.rules.whole => self.current.clear(),
                None => {}
            },
        }
    }

    /// Goes back to the conversation as it was in a file before this entry, which may have left the current one.
    fn return_to(&mut self, entry: u32) {
        let file = |at: u32| self.skeleton.entries[at as usize].place.file;
        let of_file = |node: &Node| entry > 0 && node.first < entry && file(node.first) == file(entry - 1);
        let is_link = |node: &Node| is_link(&self.skeleton.entries[node.entry as usize]);
        let tip = self.tree.nodes.iter().rposition(|node| of_file(node) && is_link(node)).map(|tip| tip as NodeIx);
        match tip.filter(|tip| !self.current.holds(*tip)) {
            None => self.current.cut_from_entry(entry, &self.tree.nodes),
            Some(tip) => {
                let mut records: Vec<NodeIx> = self.tree.lineage(tip).collect();
                records.reverse();
                self.current.clear();
                records.into_iter().for_each(|node| self.current.add(node));
            }
        }
    }

    /// Cuts before the prompt that is this many from the end, or before the first prompt.
    fn cut_turns(&mut self, turns: u64) {
        let kind = |node: &NodeIx| self.tree.entry(self.skeleton, *node).kind;
        let prompts = self.current.records.iter().rev().filter(|node| kind(node) == Kind::User);
        let taken = usize::try_from(turns).unwrap_or(usize::MAX);
        let (mut first, mut found) = (None, 0);
        for prompt in prompts.take(taken) {
            (first, found) = (Some(*prompt), found + 1);
        }
        match first {
            // The other prompts are before the part of the file that was read.
            _ if found < taken && !self.rules.whole => self.current.records.clear(),
            Some(first) => self.current.cut(first),
            None => {}
        }
    }

    fn take(&mut self, at: u32) {
        let entry = self.skeleton.entries[at as usize];
        let node = match self.tree.named(entry.id) {
            Some(known) => self.repeat(known, at, &entry),
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
        self.attach(node, entry);
        node
    }

    /// Sets the parent of a record: the one that its entry names, or the tip of the conversation.
    fn attach(&mut self, node: NodeIx, entry: &Entry) {
        let (parent, named) = match (entry.parent, self.current.tip()) {
            (PREVIOUS, Some(tip)) => (tip, KNOWN),
            (PREVIOUS, None) => (NONE, ROOT),
            (named, _) => (NONE, named),
        };
        if entry.parent == PREVIOUS
            && is_link(entry)
            && let Some((missing, why)) = self.missing_base.take().or(self.missing_start.filter(|_| parent == NONE))
        {
            self.missing_start = self.missing_start.or((parent == NONE).then_some((missing, why)));
            self.tree.missing.insert(node, missing);
            self.tree.base_gaps.insert(node, why);
            self.tree.bridged.extend((parent != NONE).then_some((node, parent)));
        }
        self.tree.nodes[node as usize].parent = parent;
        self.parents[node as usize] = named;
    }

    /// Adds an entry whose id is known already, and returns its record.
    fn repeat(&mut self, known: NodeIx, at: u32, entry: &Entry) -> NodeIx {
        let first = *self.tree.entry(self.skeleton, known);
        if self.rules.repeated_id == RepeatedId::Distinct {
            let is_new = self.seen.insert((known, entry.hash)) && first.hash != entry.hash;
            if is_new || entry.flags.has(Flags::NUMBERED) {
                return self.copy(at, entry);
            }
        }
        // It had left the conversation and comes back: now it follows the tip.
        let returns = is_link(entry) && !self.current.holds(known);
        if returns && entry.parent == PREVIOUS {
            self.attach(known, entry);
            self.tree.nodes[known as usize].last = at;
        }
        self.seen.insert((known, first.hash));
        if !self.seen.insert((known, entry.hash)) && !entry.flags.has(Flags::NUMBERED) {
            if !returns {
                let detail =
                    format!("record {} is repeated here, byte for byte; it counts once", quoted(self.id(entry)));
                self.tree.issues.push(TreeIssue { entry: at, kind: IssueKind::DuplicateLine, detail });
            }
            return known;
        }
        match self.rules.repeated_id {
            RepeatedId::Join if first.kind == entry.kind => {
                let node = &mut self.tree.nodes[known as usize];
                (node.last, node.at) = (at, node.at.max(entry.at));
                let first_entry = node.entry;
                self.tree.fragments.entry(known).or_insert_with(|| vec![first_entry]).push(at);
                if entry.parent != first.parent {
                    let detail = format!(
                        "this fragment of {} names another parent; the first one counts",
                        quoted(self.id(entry))
                    );
                    self.tree.issues.push(TreeIssue { entry: at, kind: IssueKind::ConflictingParent, detail });
                }
                known
            }
            RepeatedId::LastWins => {
                let node = &mut self.tree.nodes[known as usize];
                (node.entry, node.last, node.at) = (at, at, node.at.max(entry.at));
                if entry.parent == PREVIOUS {
                    let detail = format!("the id {} is repeated; the last one counts", quoted(self.id(entry)));
                    self.tree.issues.push(TreeIssue { entry: at, kind: IssueKind::DuplicateId, detail });
                } else {
                    self.attach(known, entry);
                }
                known
            }
            RepeatedId::Join | RepeatedId::Distinct => {
                let detail = format!(
                    "the id {} is already used by a {} record; both are kept",
                    quoted(self.id(entry)),
                    first.kind.name()
                );
                self.tree.issues.push(TreeIssue { entry: at, kind: IssueKind::ConflictingParent, detail });
                self.copy(at, entry)
            }
        }
    }

    /// Adds another record with an id that is already used.
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
        self.tree.rewound_at = self.rewound_at;
    }

    fn id(&self, entry: &Entry) -> &str {
        self.skeleton.ids.get(entry.id)
    }
}

/// The conversation of a linear dialect at some point of the file: it grows, is cut back and replaced.
#[derive(Default)]
pub(crate) struct LinearConversation {
    records: Vec<NodeIx>,
    /// The last position of each record in the conversation.
    position: Vec<u32>,
    /// Whether records have left it.
    pub(crate) shortened: bool,
}

impl LinearConversation {
    pub(crate) fn tip(&self) -> Option<NodeIx> {
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

    /// Cuts all records whose entries are at or after this one.
    fn cut_from_entry(&mut self, entry: u32, nodes: &[Node]) {
        let first = self.records.iter().position(|node| nodes[*node as usize].first >= entry);
        self.records.truncate(first.unwrap_or(self.records.len()));
        self.shortened = true;
    }

    fn clear(&mut self) {
        self.records.clear();
        self.shortened = true;
    }
}
