//! Heads, and the branch that leads to one.
//!
//! A branch is the path from a root to a head, plus records that belong to it outside the path (reading rule 6): results of
//! its calls, further blocks of its answers, and attempts that failed.
//!
//! ```text
//! q ─ a (call 1) ─ b (call 2) ─ r2 ─ c        the path to c: q a b r2 c
//!         └ r1                                 the branch:    q a b r1 r2 c     (r1 is not a head)
//! ```

use hashbrown::{HashMap, HashSet};

use crate::model::record::Kind;
use crate::session::tree::keys::{SharedKey, SharedKeys};
use crate::session::tree::skeleton::{Flags, KeyRole, Skeleton};
use crate::session::tree::{NodeIx, Tree};
use crate::session::{RecordRef, State};

/// How a head relates to the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// The newest: the default.
    Main,
    /// Another head of the same conversation.
    Branch,
    /// The head of a side conversation.
    Sidechain,
    /// The head of a tree that a missing record cut off.
    Island,
}

/// Every head, the newest first.
///
/// A result, a block or a note that a listed branch shows is not a head, so results and notes are checked last. The parent of
/// such a leaf can be a head:
///
/// ```text
/// q ─ a (call 1) ─ b        heads b and x: r1 is shown after a, and without x its prompt would not be shown
///         └ x ─ r1
/// ```
pub(crate) fn heads(skeleton: &Skeleton, tree: &Tree, keys: &SharedKeys) -> Vec<(NodeIx, HeadKind)> {
    let Some(main) = main_head(tree) else { return Vec::new() };
    let roots = tree.roots();
    let flags = |node: NodeIx| tree.entry(skeleton, node).flags;
    let is_leaf = |node: NodeIx| {
        let sidechain = flags(node).has(Flags::SIDECHAIN);
        let continues =
            |child: &NodeIx| !flags(*child).has(Flags::SIDE) && (sidechain || !flags(*child).has(Flags::SIDECHAIN));
        !flags(node).has(Flags::SIDE) && !tree.children(node).iter().any(continues)
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
    std::iter::once((main, HeadKind::Main))
        .chain(ends.into_iter().map(|node| (node, kind(node))))
        .collect()
}

/// Keeps only the last of several heads on one path. Side conversations are separate.
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

/// The record that the agent names, unless the conversation continued after it; else the newest.
pub(crate) fn main_head(tree: &Tree) -> Option<NodeIx> {
    let newest = tree.newest?;
    let continued = |leaf: NodeIx| {
        let is_before = tree.rewound_at.is_some_and(|at| tree.nodes[newest as usize].last < at);
        !is_before && tree.lineage(newest).any(|node| node == leaf)
    };
    Some(tree.leaf.filter(|leaf| !continued(*leaf)).unwrap_or(newest))
}

/// The records that the branches listed so far show.
struct Covered<'a> {
    skeleton: &'a Skeleton,
    tree: &'a Tree,
    keys: &'a SharedKeys,
    /// The records on the path to a listed head.
    covered: Vec<bool>,
    /// Those and the further blocks of their answers.
    is_shown: Vec<bool>,
    answers: HashSet<SharedKey>,
}

impl<'a> Covered<'a> {
    fn new(skeleton: &'a Skeleton, tree: &'a Tree, keys: &'a SharedKeys) -> Self {
        let none = vec![false; tree.nodes.len()];
        Covered { skeleton, tree, keys, covered: none.clone(), is_shown: none, answers: HashSet::new() }
    }

    fn cover(&mut self, head: NodeIx) {
        let is_new = |node: &NodeIx| !std::mem::replace(&mut self.covered[*node as usize], true);
        let path: Vec<NodeIx> = self.tree.lineage(head).take_while(is_new).collect();
        let mut joints = Joints::new(self.skeleton, self.tree);
        for node in path {
            self.is_shown[node as usize] = true;
            for answer in groups(self.skeleton, self.tree, self.keys, node) {
                if self.answers.insert(answer) {
                    let blocks = self.keys.nodes(answer);
                    let own = blocks.filter(|block| joints.join(*block, |node| self.covered[node as usize]));
                    own.for_each(|block| self.is_shown[block as usize] = true);
                }
            }
        }
    }

    /// Whether a listed branch shows this record: on its path, as a block of an answer, as a result without children, or as a
    /// note about the session with its parent there: agents write titles and counts beside the tip.
    fn holds(&self, node: NodeIx) -> bool {
        let called =
            || self.keys.callers.get(&node).into_iter().flatten().any(|caller| self.is_shown[*caller as usize]);
        let notes = || {
            let parent = self.tree.parent(node).filter(|_| is_note(self.skeleton, self.tree, node));
            parent.is_some_and(|parent| self.is_shown[parent as usize])
        };
        self.is_shown[node as usize] || (self.tree.children(node).is_empty() && (called() || notes()))
    }
}

/// Whether a record describes the session and is not part of the conversation.
fn is_note(skeleton: &Skeleton, tree: &Tree, node: NodeIx) -> bool {
    tree.entry(skeleton, node).kind.is_about_session()
}

/// Whether a record beside the conversation reports that the agent tried and failed.
fn is_failed_attempt(skeleton: &Skeleton, tree: &Tree, node: NodeIx) -> bool {
    let entry = tree.entry(skeleton, node);
    entry.kind == Kind::System && entry.flags.has(Flags::SIDE) && entry.flags.has(Flags::FAILURE)
}

/// The answers that a record is a block of.
fn groups<'a>(
    skeleton: &Skeleton,
    tree: &Tree,
    keys: &'a SharedKeys,
    node: NodeIx,
) -> impl Iterator<Item = SharedKey> + use<'a> {
    let sidechain = tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
    let groups = keys.of(node).filter(|(role, _)| *role == KeyRole::Group);
    groups.map(move |(role, hash)| SharedKey { role, hash, sidechain })
}

/// Which blocks of an answer belong to a path: those of another turn do not, although some agents count their answers anew at each start.
struct Joints<'a> {
    skeleton: &'a Skeleton,
    tree: &'a Tree,
    /// What is known of records beside the path.
    known: HashMap<NodeIx, bool>,
}

impl<'a> Joints<'a> {
    fn new(skeleton: &'a Skeleton, tree: &'a Tree) -> Joints<'a> {
        Joints { skeleton, tree, known: HashMap::new() }
    }

    /// Whether no prompt stands between a record and the path. Where parents are missing, nothing says so. Each record is looked at once.
    fn join(&mut self, block: NodeIx, is_on_path: impl Fn(NodeIx) -> bool) -> bool {
        let (mut at, mut climbed) = (block, Vec::new());
        let is_joined = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            if is_on_path(at) {
                break true;
            }
            if self.tree.entry(self.skeleton, at).kind == Kind::User {
                break false;
            }
            climbed.push(at);
            match self.tree.parent(at) {
                Some(parent) => at = parent,
                None => break true,
            }
        };
        self.known.extend(climbed.into_iter().map(|node| (node, is_joined)));
        is_joined
    }
}

/// The records of a branch, from its root to its head.
pub(crate) fn walk(skeleton: &Skeleton, tree: &Tree, keys: &SharedKeys, head: NodeIx) -> Vec<NodeIx> {
    let mut path: Vec<NodeIx> = tree.lineage(head).collect();
    path.reverse();
    let mut on: HashSet<NodeIx> = path.iter().copied().collect();
    // The position on the path after which each record belongs: blocks, then failed attempts and the results of all calls.
    let mut blocks: Vec<(usize, NodeIx)> = Vec::new();
    let mut results: Vec<(usize, NodeIx)> = Vec::new();
    let mut answers = HashSet::new();
    let (on_path, mut joints) = (on.clone(), Joints::new(skeleton, tree));
    for (at, &node) in path.iter().enumerate().rev() {
        for answer in groups(skeleton, tree, keys, node).filter(|answer| answers.insert(*answer)) {
            let own = keys.nodes(answer).filter(|block| joints.join(*block, |node| on_path.contains(&node)));
            blocks.extend(own.filter(|block| on.insert(*block)).map(|block| (at, block)));
        }
        let attempts = tree.children(node).iter().filter(|child| is_failed_attempt(skeleton, tree, **child));
        results.extend(attempts.filter(|attempt| on.insert(**attempt)).map(|attempt| (at, *attempt)));
    }
    let callers = path.iter().copied().enumerate().chain(blocks.iter().copied());
    for (at, node) in callers.collect::<Vec<_>>() {
        let Some(answers) = keys.answers.get(&node) else { continue };
        let answered = answers.iter().any(|result| on.contains(result));
        // A result with children belongs to another branch, unless it is the only one.
        let ends = |result: &NodeIx| tree.children(*result).is_empty();
        let ending: Vec<NodeIx> = answers.iter().copied().filter(ends).collect();
        let instead = answers.first().filter(|_| !answered && ending.is_empty()).copied();
        results
            .extend(ending.into_iter().chain(instead).filter(|result| on.insert(*result)).map(|result| (at, result)));
    }
    merge(path, blocks, results)
}

/// Inserts each pulled record after the one it belongs to: a block directly after the last block of its answer on the path,
/// as the agent does, and a result in file order.
fn merge(path: Vec<NodeIx>, blocks: Vec<(usize, NodeIx)>, mut results: Vec<(usize, NodeIx)>) -> Vec<NodeIx> {
    if blocks.is_empty() && results.is_empty() {
        return path;
    }
    let in_file_order = path.is_sorted();
    for (at, node) in results.iter_mut().filter(|_| in_file_order) {
        *at += path[*at + 1..].partition_point(|on_path| on_path < node);
    }
    let of_kind =
        |pulled: Vec<(usize, NodeIx)>, is_result| pulled.into_iter().map(move |(at, node)| (at + 1, is_result, node));
    let mut pulled: Vec<(usize, bool, NodeIx)> = of_kind(blocks, false).chain(of_kind(results, true)).collect();
    pulled.sort_unstable();
    let mut merged = Vec::with_capacity(path.len() + pulled.len());
    let mut pulled = pulled.into_iter().peekable();
    for at in 0..=path.len() {
        while let Some((_, _, node)) = pulled.next_if(|(before, ..)| *before <= at) {
            merged.push(node);
        }
        merged.extend(path.get(at));
    }
    merged
}

/// How a branch without gaps ends, by its links. Only the last answer can be open: earlier calls without results do not count.
pub(crate) fn end(keys: &SharedKeys, branch: &[RecordRef<'_>]) -> State {
    let (mut results, mut ran, mut failed) = (HashSet::new(), false, false);
    for record in branch.iter().rev() {
        let keys_of = |wanted| keys.of(record.node).filter(move |(role, _)| *role == wanted).map(|(_, hash)| hash);
        match record.kind() {
            // A reaction asks for no answer.
            Kind::User if record.is_reaction() => {}
            Kind::User => return State::InterruptedPrompt,
            // An error in the place of an answer, or the notice that a person stopped the agent.
            Kind::Assistant | Kind::System if record.is_failure() && !record.is_message() => failed = true,
            Kind::ToolResult => {
                ran = true;
                results.extend(keys_of(KeyRole::Result));
            }
            Kind::Assistant => {
                let own: HashSet<u64> = keys_of(KeyRole::Result).collect();
                let open = keys_of(KeyRole::Call).any(|call| !results.contains(&call) && !own.contains(&call));
                return if open || ran || failed { State::InterruptedTurn } else { State::Clean };
            }
            _ => {}
        }
    }
    if ran { State::InterruptedTurn } else { State::Clean }
}
