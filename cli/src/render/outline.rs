//! The tree of a session, one line per record.
//!
//! The newest branch goes straight down; other branches are drawn beside it, where they start:
//!
//! ```text
//! │ q   user       What is two and two?
//! ├─╮
//! │ ◌ a assistant  Four.
//! ● b   assistant  It depends.
//! ```
//!
//! Elsewhere the largest child continues straight, so that the depth of the drawing is logarithmic.

use std::io::Write;

use scrollback::model::Kind;
use scrollback::session::{HeadKind, RecordRef, Session};
use scrollback::view::TreeRow;

use super::plural;
use super::short_ids::{SHORT_ID_CHARS, ShortIds};
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::clock;
use crate::terminal::{clean, width};

pub(crate) fn draw(session: &Session, ctx: &Ctx, out: &mut dyn Write) -> Result<(), Failure> {
    let outline = Outline::new(session, ctx);
    let roots: Vec<usize> = (0..outline.records.len())
        .filter(|at| outline.parents[*at].is_none() && outline.is_drawn(*at))
        .collect();
    // A record to draw, the lines to its left, and whether it starts a branch.
    let mut waiting: Vec<(usize, String, bool)> =
        roots.into_iter().rev().map(|root| (root, String::new(), false)).collect();
    while let Some((at, left, forked)) = waiting.pop() {
        outline.line(at, &left, forked, out)?;
        let (straight, aside) = outline.children(at);
        waiting.extend(straight.map(|straight| (straight, left.clone(), false)));
        waiting.extend(aside.into_iter().map(|child| (child, format!("{left}│ "), true)));
    }
    outline.count_others(out)
}

/// Longer ids than UUIDs are not aligned, so that one of them costs the others no room.
const ID_COLUMNS_LIMIT: usize = 36;

struct Outline<'a> {
    ctx: &'a Ctx,
    records: Vec<RecordRef<'a>>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// The size of each record's subtree.
    sizes: Vec<u64>,
    on_branch: Vec<bool>,
    heads: Vec<Option<HeadKind>>,
    ids: ShortIds<'a>,
    /// The width of the column of ids.
    id_columns: usize,
}

impl<'a> Outline<'a> {
    fn new(session: &'a Session, ctx: &'a Ctx) -> Outline<'a> {
        let records: Vec<RecordRef<'a>> = session.records().collect();
        let count = records.len();
        let parents: Vec<Option<usize>> = records.iter().map(|record| record.parent().map(RecordRef::order)).collect();
        let mut children = vec![Vec::new(); count];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let mut on_branch = vec![false; count];
        if let Some(head) = session.head() {
            session.branch(head).records.iter().for_each(|record| on_branch[record.order()] = true);
        }
        let mut heads = vec![None; count];
        session.heads().for_each(|head| heads[head.record.order()] = Some(head.kind));
        let sizes = sizes(&parents, &children);
        let ids = ShortIds::of_records(session);
        let mut outline =
            Outline { ctx, records, parents, children, sizes, on_branch, heads, ids, id_columns: SHORT_ID_CHARS };
        let drawn = (0..count).filter(|at| outline.is_drawn(*at));
        let columns = drawn.map(|at| width::of(outline.ids.short(&outline.records[at].id()))).max().unwrap_or(0);
        outline.id_columns = columns.clamp(SHORT_ID_CHARS, ID_COLUMNS_LIMIT);
        outline
    }

    /// Side records are only counted, unless they have children.
    fn is_drawn(&self, at: usize) -> bool {
        !self.records[at].is_side() || !self.children[at].is_empty() || self.heads[at].is_some()
    }

    /// The child that continues straight, and the others in reverse order, for the stack.
    fn children(&self, at: usize) -> (Option<usize>, Vec<usize>) {
        let children = self.children[at].iter().copied().filter(|child| self.is_drawn(*child));
        let mut children: Vec<usize> = children.collect();
        let weight = |at: &usize| (self.on_branch[*at] && self.leads_to_head(*at), self.sizes[*at], *at);
        let Some(straight) = children.iter().copied().max_by_key(weight) else { return (None, children) };
        children.retain(|child| *child != straight);
        children.reverse();
        (Some(straight), children)
    }

    /// Whether the newest branch continues below; it does not below a tool result beside its parent chain.
    fn leads_to_head(&self, at: usize) -> bool {
        self.heads[at] == Some(HeadKind::Main) || self.children[at].iter().any(|child| self.on_branch[*child])
    }

    fn line(&self, at: usize, left: &str, forked: bool, out: &mut dyn Write) -> Result<(), Failure> {
        let paint = self.ctx.paint();
        let row = self.records[at].row(self.on_branch[at])?;
        if let Some(missing) = self.records[at].missing_parent() {
            let bridged = if self.parents[at].is_some() { ", bridged" } else { "" };
            writeln!(out, "{left}{}", paint.red(&format!("┄ gap: {} is missing{bridged}", self.ids.short(missing))))?;
        }
        if forked {
            let stem = left.strip_suffix("│ ").unwrap_or_default();
            writeln!(out, "{stem}{}", paint.dim("├─╮"))?;
        }
        let mark = match self.heads[at] {
            Some(HeadKind::Main) => paint.green("●"),
            Some(HeadKind::Branch) => paint.yellow("◌"),
            Some(HeadKind::Island) => paint.red("◇"),
            Some(HeadKind::Sidechain) => paint.dim("◦"),
            None => paint.dim("│"),
        };
        let head = match self.heads[at] {
            Some(HeadKind::Main) => " ← head",
            Some(HeadKind::Branch) => " ← branch",
            Some(HeadKind::Island) => " ← island",
            Some(HeadKind::Sidechain) => " ← sidechain",
            None => "",
        };
        let id = clean::line(self.ids.short(row.id.as_str()));
        let id = width::fit(&id, width::of(&id).max(self.id_columns));
        let kind = width::fit(row.kind.name(), 11);
        let when = row.at.map(|at| clock::stamp(at, &self.ctx.zone)).unwrap_or_default();
        let used = width::of(left) + 2 + width::of(&id) + 1 + 11 + 1 + width::of(head);
        let room = self.ctx.look.width.saturating_sub(used + 19).max(12);
        let text = clean::line(&text(&row)).into_owned();
        let text = width::fit(&text, room.min(width::of(&text))).trim_end().to_owned();
        let text = if row.on_branch { paint.bold(&text) } else { text };
        let when = if self.ctx.look.width > 90 { paint.dim(&format!("{when:<18}")) } else { String::new() };
        let line = format!("{left}{mark} {} {} {when} {text}{}", paint.cyan(&id), paint.dim(&kind), paint.green(head));
        writeln!(out, "{}", line.trim_end())?;
        Ok(())
    }

    /// Counts the records that are not drawn.
    fn count_others(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for at in (0..self.records.len()).filter(|at| !self.is_drawn(*at)) {
            let kind = self.records[at].kind().name();
            match counts.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => counts.push((kind, 1)),
            }
        }
        if !counts.is_empty() {
            let counts: Vec<String> = counts.iter().map(|(kind, count)| plural(*count as u64, kind)).collect();
            writeln!(out, "{}", self.ctx.paint().dim(&format!("outside the tree: {}", counts.join(", "))))?;
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

/// A record as one line of text.
fn text(row: &TreeRow) -> String {
    let calls: Vec<&str> = row.tool_calls.iter().map(|call| call.name.as_str()).collect();
    let failed = row.tool_results.iter().any(|result| result.is_error);
    let mark = match row.kind {
        Kind::Compaction => "⊟ ",
        Kind::Rewind => "↩ ",
        Kind::Restore => "⟲ ",
        Kind::ToolResult if failed => "✗ ",
        Kind::ToolResult => "✓ ",
        _ if row.sidechain => "⑂ ",
        _ => "",
    };
    let called = if calls.is_empty() { String::new() } else { format!(" ⚙ {}", calls.join(", ")) };
    format!("{mark}{}{called}", row.text).trim_end().to_owned()
}
