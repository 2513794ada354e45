//! Keys that records share beyond their parents: which record makes a call, which answers it, which is a block of an answer,
//! and what has no counterpart. Keys are hashes; the text stays in the file.

use hashbrown::HashMap;

use crate::model::issue::IssueKind;
use crate::session::tree::skeleton::{Flags, KeyEntry, KeyRole, Skeleton};
use crate::session::tree::{NONE, NodeIx, Tree, TreeIssue};

/// Which record makes a call, answers it, or is a block of an answer; by hash.
#[derive(Debug, Default)]
pub(crate) struct SharedKeys {
    /// Each key with its record, sorted.
    sorted: Vec<(SharedKey, NodeIx)>,
    /// (node, role, hash), sorted.
    of_node: Vec<(NodeIx, KeyRole, u64)>,
    /// For each record that answers calls, the records that made them.
    pub(crate) callers: HashMap<NodeIx, Vec<NodeIx>>,
    /// For each record that makes calls, the records that answer them, in file order.
    pub(crate) answers: HashMap<NodeIx, Vec<NodeIx>>,
}

/// How many ancestors of a result are searched for its call if several records made a call with the same id.
const CALLER_STEPS: usize = 64;

/// A key that records share. Side conversations have their own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SharedKey {
    pub(crate) role: KeyRole,
    pub(crate) hash: u64,
    pub(crate) sidechain: bool,
}

impl SharedKeys {
    pub(crate) fn new(skeleton: &Skeleton, tree: &Tree) -> SharedKeys {
        let mut node_of_entry = vec![NONE; skeleton.entries.len()];
        for node in 0..tree.nodes.len() as NodeIx {
            for entry in tree.entries_of(node) {
                node_of_entry[*entry as usize] = node;
            }
        }
        let known = skeleton.keys.iter().map(|key| (key, node_of_entry[key.entry as usize]));
        let shared = |(key, node): (&KeyEntry, NodeIx)| {
            let sidechain = tree.entry(skeleton, node).flags.has(Flags::SIDECHAIN);
            (SharedKey { role: key.role, hash: key.hash, sidechain }, node)
        };
        let mut sorted: Vec<_> = known.filter(|(_, node)| *node != NONE).map(shared).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut of_node: Vec<_> = sorted.iter().map(|(key, node)| (*node, key.role, key.hash)).collect();
        of_node.sort_unstable();
        let mut keys = SharedKeys { sorted, of_node, ..SharedKeys::default() };
        keys.pair(tree);
        keys
    }

    /// Finds the record that made the call of each result: the only one, else the nearest ancestor, else the last before it.
    fn pair(&mut self, tree: &Tree) {
        let mut pairs: Vec<(NodeIx, NodeIx)> = Vec::new();
        for &(key, node) in &self.sorted {
            if !matches!(key.role, KeyRole::Result | KeyRole::Interim) {
                continue;
            }
            let call = SharedKey { role: KeyRole::Call, ..key };
            let calls_it = |node: NodeIx| self.sorted.binary_search(&(call, node)).is_ok();
            let mut callers = self.nodes(call);
            let (Some(first), several) = (callers.next(), callers.next().is_some()) else { continue };
            let above = || tree.lineage(node).take(CALLER_STEPS).find(|above| calls_it(*above));
            let before = || {
                let end = self.sorted.partition_point(|known| *known < (call, node));
                self.sorted[..end].last().filter(|(known, _)| *known == call).map(|(_, node)| *node)
            };
            let caller = if several { above().or_else(before).unwrap_or(first) } else { first };
            if caller != node {
                pairs.push((caller, node));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        for (caller, result) in pairs {
            self.callers.entry(result).or_default().push(caller);
            self.answers.entry(caller).or_default().push(result);
        }
    }

    /// The records with this key, in file order.
    pub(crate) fn nodes(&self, key: SharedKey) -> impl Iterator<Item = NodeIx> + '_ {
        let start = self.sorted.partition_point(|(known, _)| *known < key);
        self.sorted[start..].iter().take_while(move |(known, _)| *known == key).map(|(_, node)| *node)
    }

    /// How many records have this key.
    pub(crate) fn count(&self, key: SharedKey) -> usize {
        self.sorted.partition_point(|(known, _)| *known <= key) - self.sorted.partition_point(|(known, _)| *known < key)
    }

    /// How many of them are before this record.
    pub(crate) fn count_before(&self, key: SharedKey, node: NodeIx) -> usize {
        let start = self.sorted.partition_point(|(known, _)| *known < key);
        self.sorted.partition_point(|known| *known < (key, node)) - start
    }

    /// The record that tells how a call ended, if the call had a result before that: a command can outlive it.
    pub(crate) fn late_result(&self, call: u64, sidechain: bool) -> Option<NodeIx> {
        let key = |role| SharedKey { role, hash: call, sidechain };
        let end = self.sorted.partition_point(|(known, _)| *known <= key(KeyRole::Late));
        let (_, late) = self.sorted[..end].last().filter(|(known, _)| *known == key(KeyRole::Late))?;
        self.nodes(key(KeyRole::Result)).next().is_some_and(|result| result < *late).then_some(*late)
    }

    /// The record that made a call whose end this record tells, if the call had a result before that.
    pub(crate) fn late_caller(&self, late: NodeIx, sidechain: bool) -> Option<NodeIx> {
        let (_, call) = self.of(late).find(|(role, _)| *role == KeyRole::Late)?;
        let counts = self.late_result(call, sidechain) == Some(late);
        self.nodes(SharedKey { role: KeyRole::Call, hash: call, sidechain }).next().filter(|_| counts)
    }

    /// Whether a record answers calls.
    pub(crate) fn answers(&self, node: NodeIx) -> bool {
        self.callers.contains_key(&node)
    }

    pub(crate) fn of(&self, node: NodeIx) -> impl Iterator<Item = (KeyRole, u64)> + '_ {
        let start = self.of_node.partition_point(|(n, _, _)| *n < node);
        self.of_node[start..]
            .iter()
            .take_while(move |(n, _, _)| *n == node)
            .map(|(_, role, hash)| (*role, *hash))
    }

    /// Results without calls, second results, and calls without results.
    pub(crate) fn issues(&self, tree: &Tree) -> Vec<TreeIssue> {
        let mut by_hash: HashMap<(u64, bool), (Vec<NodeIx>, Vec<NodeIx>)> = HashMap::new();
        for &(SharedKey { role, hash, sidechain }, node) in &self.sorted {
            let (calls, results) = by_hash.entry((hash, sidechain)).or_default();
            match role {
                KeyRole::Call => calls.push(node),
                KeyRole::Result => results.push(node),
                KeyRole::Group | KeyRole::Interim | KeyRole::Late => {}
            }
        }
        let mut found = Vec::new();
        let mut report = |node: NodeIx, kind, detail: &str| {
            found.push(TreeIssue { entry: tree.nodes[node as usize].entry, kind, detail: detail.to_owned() });
        };
        for (calls, results) in by_hash.values() {
            for node in results.iter().take(if calls.is_empty() { usize::MAX } else { 0 }) {
                report(
                    *node,
                    IssueKind::OrphanResult,
                    "a tool result without a call in the session; it is shown alone",
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
