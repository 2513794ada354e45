//! The tree of a session, one line per turn: what was asked, and how it ended.
//!
//! ```text
//! │ 2ed23064  What is two and two?                       answered
//! ├─╮
//! │ ◌ 4accf9ad  Or five?            2 calls, 1 failed · answered  ← earlier branch
//! ● 9caa35a0  Sure?                                      no answer  ← here
//! ```
//!
//! A beginning that was left stands beside the one that leads to the end of the newest branch.
//!
//! The id is that of the turn's last record: the branch that ends there has the whole turn.

use std::io::Write;

use scrollback::session::{HeadKind, Session};
use scrollback::view::{TurnEnd, TurnKind, TurnRow, Turns};

use super::clock;
use super::divider;
use super::forest::{Forest, Spot, Way};
use super::outline::{head_mark, head_words};
use super::plural;
use super::short_ids::{SHORT_ID_CHARS, ShortIds};
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::{clean, width};

/// Where there are fewer columns, the text needs those of the time.
const COLUMNS_WITH_TIME: usize = 100;

/// The columns of a time and the space after it.
const TIME_COLUMNS: usize = 19;

/// The columns of what comes after the text, if it needs no more: most lines' ends are below each other.
const ENDING_COLUMNS: usize = 30;

/// The text of a turn gets at least so many columns, however deep its branch is.
const LEAST_TEXT_COLUMNS: usize = 12;

pub(crate) fn draw(session: &Session, turns: &Turns<'_>, ctx: &Ctx, out: &mut dyn Write) -> Result<(), Failure> {
    let forest = Forest::new((0..turns.len()).map(|turn| turns.parent(turn)).collect());
    let ids = ShortIds::of_records(session);
    forest.draw(turns, |spot| {
        let row = turns.row(spot.node)?;
        let first = session.find(row.first.as_str()).ok();
        let lacks = first.zip(row.missing_parent.as_ref());
        let lacks = lacks.map(|(first, missing)| divider::lacks(first, missing.as_str(), &ids));
        line(&row, lacks, &spot, &ids, ctx, out)
    })
}

impl Way for Turns<'_> {
    fn is_drawn(&self, _: usize) -> bool {
        true
    }

    fn leads_to_head(&self, turn: usize) -> bool {
        self.is_on_branch(turn)
    }

    fn ends(&self, turn: usize) -> bool {
        self.head(turn).is_some()
    }

    fn is_beginning(&self, turn: usize) -> bool {
        Turns::is_beginning(self, turn)
    }
}

/// `lacks` is what is missing before it.
fn line(
    row: &TurnRow,
    lacks: Option<String>,
    spot: &Spot<'_>,
    ids: &ShortIds<'_>,
    ctx: &Ctx,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (paint, look, left) = (ctx.paint(), ctx.prose(), spot.left);
    if let Some(fork) = &spot.fork {
        writeln!(out, "{}", paint.dim(fork))?;
    }
    if let Some(lacks) = lacks {
        let gap = format!("┄ gap: {}", clean::line(&lacks));
        writeln!(out, "{left}{}", paint.red(&gap))?;
    }
    let id = clean::line(ids.short(row.id.as_str())).into_owned();
    let id = width::fit(&id, width::of(&id).max(SHORT_ID_CHARS));
    let when = row.at.map(|at| clock::stamp(at, &ctx.zone)).unwrap_or_default();
    let when = if look.width >= COLUMNS_WITH_TIME { format!("{when:<0$}", TIME_COLUMNS) } else { String::new() };
    let (ending, head) = (ending(row), head_words(row.head));
    let head = if head.is_empty() || ending.is_empty() { head.to_owned() } else { format!("  {head}") };
    let after = (width::of(&ending) + width::of(&head)).max(ENDING_COLUMNS) + 2;
    let used = width::of(left) + 2 + width::of(&id) + 2 + width::of(&when) + after;
    let text = clean::line(&text(row)).into_owned();
    let text = width::fit(&text, look.width.saturating_sub(used).max(LEAST_TEXT_COLUMNS));
    let text = match (row.kind, row.on_branch) {
        (TurnKind::Prompt, true) => paint.bold(&text),
        (TurnKind::Prompt | TurnKind::Answer, _) => text,
        _ => paint.dim(&text),
    };
    let ending = match row.end {
        Some(TurnEnd::Failed) => paint.red(&ending),
        Some(TurnEnd::Interrupted | TurnEnd::NoAnswer) => paint.yellow(&ending),
        Some(TurnEnd::Answered | TurnEnd::AnsweredWithNext) | None => paint.dim(&ending),
    };
    let head = if row.head == Some(HeadKind::Main) { paint.green(&head) } else { paint.yellow(&head) };
    let mark = head_mark(row.head, paint);
    let line = format!("{left}{mark} {}  {}{text}  {ending}{head}", paint.cyan(&id), paint.dim(&when));
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// What a turn begins with.
fn text(row: &TurnRow) -> String {
    let about = |what: &str| if row.text.is_empty() { what.to_owned() } else { format!("{what}: {}", row.text) };
    let text = match row.kind {
        TurnKind::Prompt if row.text.is_empty() => "(empty prompt)".to_owned(),
        TurnKind::Prompt | TurnKind::Command => row.text.clone(),
        TurnKind::Shell => format!("! {}", row.text),
        TurnKind::Notification => about("◷ event"),
        TurnKind::Compaction => about("⊟ compacted"),
        TurnKind::Rewind => about("↩ went back"),
        TurnKind::Restore => about("⟲ files restored"),
        TurnKind::Answer if row.parent.is_some() => "(another answer)".to_owned(),
        TurnKind::Answer => "(an answer without a prompt)".to_owned(),
    };
    if row.sidechain { format!("⑂ {text}") } else { text }
}

/// The calls of a turn, and how it ended.
fn ending(row: &TurnRow) -> String {
    let calls = (row.calls > 0).then(|| plural(row.calls as u64, "call"));
    let failed = (row.failed_calls > 0).then(|| format!("{} failed", row.failed_calls));
    let denied = (row.denied_calls > 0).then(|| format!("{} denied", row.denied_calls));
    // A turn that ended so has the word anyway.
    let interrupted = (row.interrupted_calls > 0 && row.end != Some(TurnEnd::Interrupted))
        .then(|| format!("{} interrupted", row.interrupted_calls));
    let calls: Vec<String> = calls.into_iter().chain(failed).chain(denied).chain(interrupted).collect();
    let end = row.end.map(|end| match end {
        TurnEnd::Answered => "answered",
        TurnEnd::AnsweredWithNext => "answered with the next",
        TurnEnd::Failed => "failed",
        TurnEnd::Interrupted => "interrupted",
        TurnEnd::NoAnswer => "no answer",
    });
    let calls = (!calls.is_empty()).then(|| calls.join(", "));
    calls.into_iter().chain(end.map(str::to_owned)).collect::<Vec<_>>().join(" · ")
}
