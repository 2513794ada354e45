//! The tree of a session, one line per record. The newest branch goes straight down:
//!
//! ```text
//! │ q   user       What is two and two?
//! ├─╮
//! │ ◌ a assistant  Four.
//! ● b   assistant  It depends.
//! ```

use std::io::Write;

use scrollback::model::Kind;
use scrollback::session::{HeadKind, RecordRef, Session};
use scrollback::view::TreeRow;

use super::divider;
use super::forest::{Forest, Spot, Way};
use super::plural;
use super::short_ids::{SHORT_ID_CHARS, ShortIds};
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::clock;
use crate::terminal::paint::Paint;
use crate::terminal::{clean, width};

pub(crate) fn draw(session: &Session, ctx: &Ctx, out: &mut dyn Write) -> Result<(), Failure> {
    let outline = Outline::new(session, ctx);
    outline.forest.draw(&outline, |spot| outline.line(&spot, out))?;
    outline.count_others(out)
}

/// Longer ids than UUIDs are not aligned, so that one of them costs the others no room.
const ID_COLUMNS_LIMIT: usize = 36;

struct Outline<'a> {
    ctx: &'a Ctx,
    records: Vec<RecordRef<'a>>,
    forest: Forest,
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
        let forest = Forest::new(records.iter().map(|record| record.parent().map(RecordRef::order)).collect());
        let mut on_branch = vec![false; count];
        if let Some(head) = session.head() {
            session.branch(head).records.iter().for_each(|record| on_branch[record.order()] = true);
        }
        let mut heads = vec![None; count];
        session.heads().for_each(|head| heads[head.record.order()] = Some(head.kind));
        let ids = ShortIds::of_records(session);
        let mut outline = Outline { ctx, records, forest, on_branch, heads, ids, id_columns: SHORT_ID_CHARS };
        let drawn = (0..count).filter(|at| outline.is_drawn(*at));
        let columns = drawn.map(|at| width::of(outline.ids.short(&outline.records[at].id()))).max().unwrap_or(0);
        outline.id_columns = columns.clamp(SHORT_ID_CHARS, ID_COLUMNS_LIMIT);
        outline
    }

    fn line(&self, spot: &Spot<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let (at, left) = (spot.node, spot.left);
        let paint = self.ctx.paint();
        let row = self.records[at].row(self.on_branch[at])?;
        if let Some(missing) = self.records[at].missing_parent() {
            let bridged = if self.forest.parent(at).is_some() { ", bridged" } else { "" };
            let lacks = divider::lacks(self.records[at], missing, &self.ids);
            writeln!(out, "{left}{}", paint.red(&format!("┄ gap: {}{bridged}", clean::line(&lacks))))?;
        }
        if let Some(fork) = &spot.fork {
            writeln!(out, "{}", paint.dim(fork))?;
        }
        let (mark, head) = (head_mark(self.heads[at], paint), head_words(self.heads[at]));
        let head = if head.is_empty() { String::new() } else { format!(" {head}") };
        let id = clean::line(self.ids.short(row.id.as_str()));
        let id = width::fit(&id, width::of(&id).max(self.id_columns));
        let kind = width::fit(row.kind.name(), 11);
        let when = row.at.map(|at| clock::stamp(at, &self.ctx.zone)).unwrap_or_default();
        let used = width::of(left) + 2 + width::of(&id) + 1 + 11 + 1 + width::of(&head);
        let room = self.ctx.look.width.saturating_sub(used + 19).max(12);
        let text = clean::line(&text(&row)).into_owned();
        let text = width::fit(&text, room.min(width::of(&text))).trim_end().to_owned();
        let text = if row.on_branch { paint.bold(&text) } else { text };
        let when = if self.ctx.look.width > 90 { paint.dim(&format!("{when:<18}")) } else { String::new() };
        let line = format!("{left}{mark} {} {} {when} {text}{}", paint.cyan(&id), paint.dim(&kind), paint.green(&head));
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

impl Way for Outline<'_> {
    /// Side records are only counted, unless they have children.
    fn is_drawn(&self, at: usize) -> bool {
        !self.records[at].is_side() || !self.forest.children(at).is_empty() || self.heads[at].is_some()
    }

    /// The newest branch does not continue below a tool result beside its parent chain.
    fn leads_to_head(&self, at: usize) -> bool {
        let continues = || self.forest.children(at).iter().any(|child| self.on_branch[*child]);
        self.on_branch[at] && (self.heads[at] == Some(HeadKind::Main) || continues())
    }

    fn ends(&self, _: usize) -> bool {
        false
    }

    fn is_beginning(&self, at: usize) -> bool {
        let record = self.records[at];
        record.parent().is_none() && record.missing_parent().is_none() && !record.is_sidechain() && !record.is_side()
    }
}

/// The mark of a line: where a branch ends.
pub(crate) fn head_mark(head: Option<HeadKind>, paint: Paint) -> String {
    match head {
        Some(HeadKind::Main) => paint.green("●"),
        Some(HeadKind::Branch) => paint.yellow("◌"),
        Some(HeadKind::Island) => paint.red("◇"),
        Some(HeadKind::Sidechain) => paint.dim("◦"),
        None => paint.dim("│"),
    }
}

/// What ends there, in words.
pub(crate) fn head_words(head: Option<HeadKind>) -> &'static str {
    match head {
        Some(HeadKind::Main) => "← here",
        Some(HeadKind::Branch) => "← earlier branch",
        Some(HeadKind::Island) => "← unconnected part",
        Some(HeadKind::Sidechain) => "← sub-agent",
        None => "",
    }
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
