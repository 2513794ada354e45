//! The shape of a drawn tree: which line comes next, and what is left of it.
//!
//! One child of each node continues straight down: the one that leads to the end of the newest branch, elsewhere the largest, so that
//! the depth of the drawing is logarithmic. The others are drawn beside it, where they start.

use crate::failure::Failure;

/// Trees, by the parent of each node.
pub(crate) struct Forest {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// The size of each node's subtree.
    sizes: Vec<u64>,
}

/// Which way the drawing goes.
pub(crate) trait Way {
    /// Whether a node has a line.
    fn is_drawn(&self, node: usize) -> bool;

    /// Whether the newest branch continues through it.
    fn leads_to_head(&self, node: usize) -> bool;

    /// Whether a branch ends there: then no child continues straight.
    fn ends(&self, node: usize) -> bool;

    /// Whether the conversation begins with a root: nothing is missing before it, and it is no side conversation.
    fn is_beginning(&self, root: usize) -> bool;
}

/// Where a line is drawn.
pub(crate) struct Spot<'a> {
    pub(crate) node: usize,
    /// The lines to its left.
    pub(crate) left: &'a str,
    /// The line that leads to it, above its own, if it starts a branch.
    pub(crate) fork: Option<String>,
}

impl Forest {
    pub(crate) fn new(parents: Vec<Option<usize>>) -> Forest {
        let mut children = vec![Vec::new(); parents.len()];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let sizes = sizes(&parents, &children);
        Forest { parents, children, sizes }
    }

    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.parents[node]
    }

    pub(crate) fn children(&self, node: usize) -> &[usize] {
        &self.children[node]
    }

    /// Calls `line` for each node that is drawn, from top to bottom.
    pub(crate) fn draw(
        &self,
        way: &impl Way,
        mut line: impl FnMut(Spot<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let roots = (0..self.parents.len()).filter(|node| self.parents[*node].is_none() && way.is_drawn(*node));
        // A beginning that was left is beside the one that leads to the head, as if both continued one record.
        let roots: Vec<usize> = roots.collect();
        let leads = |root: &usize| way.is_beginning(*root) && way.leads_to_head(*root);
        let is_beside = |root: &usize| way.is_beginning(*root) && !way.leads_to_head(*root);
        let has_main = roots.iter().any(leads);
        let (left, roots): (Vec<usize>, Vec<usize>) = roots.iter().partition(|root| has_main && is_beside(root));
        let main = roots.iter().position(leads);
        // A node to draw, the lines to its left, and the line that leads to it.
        let mut waiting: Vec<(usize, String, Option<String>)> = Vec::new();
        let straight = |root: &usize| (*root, String::new(), None);
        waiting.extend(roots[..main.unwrap_or(0)].iter().map(straight));
        waiting.extend(left.into_iter().enumerate().map(|(at, root)| {
            let corner = if at == 0 { "╭─╮" } else { "├─╮" };
            (root, "│ ".to_owned(), Some(format!("{corner} another beginning")))
        }));
        waiting.extend(roots[main.unwrap_or(0)..].iter().map(straight));
        waiting.reverse();
        while let Some((node, left, fork)) = waiting.pop() {
            line(Spot { node, left: &left, fork })?;
            let children = self.children[node].iter().copied();
            let mut aside: Vec<usize> = children.filter(|child| way.is_drawn(*child)).collect();
            let weight = |node: &usize| (way.leads_to_head(*node), self.sizes[*node], *node);
            let straight = aside.iter().copied().max_by_key(weight).filter(|_| !way.ends(node));
            aside.retain(|child| Some(*child) != straight);
            // The last one that is pushed is drawn first.
            let has_below = straight.is_some();
            waiting.extend(straight.map(|child| (child, left.clone(), None)));
            for (from_last, child) in aside.into_iter().rev().enumerate() {
                let (stem, corner) =
                    if has_below || from_last > 0 { ("│ ", "├─╮") } else { ("  ", "╰─╮") };
                waiting.push((child, format!("{left}{stem}"), Some(format!("{left}{corner}"))));
            }
        }
        Ok(())
    }
}

/// The size of each subtree, leaves first, without recursion.
fn sizes(parents: &[Option<usize>], children: &[Vec<usize>]) -> Vec<u64> {
    let mut sizes = vec![1; parents.len()];
    let mut open: Vec<usize> = children.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..parents.len()).filter(|at| open[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        if let Some(parent) = parents[at] {
            sizes[parent] += sizes[at];
            open[parent] -= 1;
            if open[parent] == 0 {
                ready.push(parent);
            }
        }
    }
    sizes
}
