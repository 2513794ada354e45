//! Gaps of a tree: records whose parent is missing. They are bridged to the record before them or left open, and reported.

use crate::model::issue::{IssueKind, quoted};
use crate::model::time::Micros;
use crate::session::tree::ids::IdIndex;
use crate::session::tree::skeleton::{BaseGap, NO_TIME, Skeleton};
use crate::session::tree::{NONE, NodeIx, Tree, is_link};

impl Tree {
    /// Makes the record before each orphan its parent, if that is the tip of another tree and near enough in time, or if there
    /// is no limit.
    pub(crate) fn bridge(&mut self, skeleton: &Skeleton, limit: Micros) {
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
                // In a file out of order the record before may be the orphan's own descendant.
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

    pub(crate) fn report_gaps(&mut self, skeleton: &Skeleton) {
        let mut gaps: Vec<(NodeIx, IdIndex)> = self.missing.iter().map(|(node, id)| (*node, *id)).collect();
        gaps.sort_unstable();
        for (node, id) in gaps {
            let id = quoted(skeleton.ids.get(id));
            let (kind, detail) = match (self.base_gaps.get(&node), self.bridged.get(&node)) {
                (Some(why), _) => base_issue(*why, &id),
                (None, Some(&to)) => {
                    let to = quoted(self.id_text(skeleton, to));
                    let detail = format!("its parent {id} is missing; the record before it, {to}, is taken instead");
                    (IssueKind::BridgedGap, detail)
                }
                (None, None) => (IssueKind::Orphan, format!("its parent {id} is missing; what came before is unknown")),
            };
            self.report(node, kind, detail);
        }
        if let (Some((id, why)), false) = (self.unfollowed_base, self.nodes.is_empty()) {
            let (kind, detail) = base_issue(why, &quoted(skeleton.ids.get(id)));
            self.report(0, kind, detail);
        }
    }
}

/// What is wrong with the session that this one begins in, or with what its files say of each other.
fn base_issue(why: BaseGap, id: &str) -> (IssueKind, String) {
    let between = |what: String| format!("{what}; what came in between is unknown");
    match why {
        BaseGap::NoSession => {
            (IssueKind::Orphan, between(format!("the session {id} that this one begins in is missing")))
        }
        BaseGap::Cycle => {
            (IssueKind::Cycle, between(format!("it begins in the session {id}, which begins in this one")))
        }
        BaseGap::EndsEarly => {
            let what = format!("the session that this one begins in ends before its record {id}");
            (IssueKind::Orphan, between(what))
        }
        BaseGap::BeginsLater => {
            let what = format!("it goes on at record {id}, before the file begins that it continues");
            (IssueKind::Orphan, format!("{what}; only what came before that record is kept"))
        }
        BaseGap::Unstated => {
            let what = "the file does not say what it continues";
            (IssueKind::Orphan, format!("{what}; the file before it is taken, up to record {id}"))
        }
    }
}

/// The root of a tree whose former roots may have parents now; shortens the path for the next call.
fn top(roots: &mut [NodeIx], node: NodeIx) -> NodeIx {
    let mut top = node;
    while roots[top as usize] != top {
        let above = roots[top as usize];
        roots[top as usize] = roots[above as usize];
        top = above;
    }
    top
}
