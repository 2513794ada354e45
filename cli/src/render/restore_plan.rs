//! The plan of an undo as text: a line for each file, then the differences.

use scrollback::view::files::FileHistory;
use scrollback::write::{Action, Plan, PlannedFile, Readiness, Undo, UndoHead};

use super::plural;
use super::short_ids::ShortIds;
use super::table::{Cell, Column, Table};
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Differences longer than this are cut: `--json` has all of them.
const DIFF_LINES: usize = 60;

/// The width of the list of files where it is no terminal.
const PIPE_COLUMNS: usize = 10_000;

/// Lines of all differences together.
const ALL_LINES: usize = 400;

/// The plan; with `has_diffs`, also what changes in each file.
pub(crate) fn text(undo: &Undo<'_>, plan: &Plan, has_diffs: bool, ctx: &Ctx) -> String {
    let paint = ctx.paint();
    let ids = ShortIds::of_records(undo.session());
    let mut out = format!("{}\n", paint.bold(&heading(plan, &ids, ctx)));
    let mut table = Table::new(vec![Column::fixed(""), Column::shrinking("", 20), Column::shrinking("", 20)]);
    let is_unchanged = |file: &&PlannedFile| file.action == Action::None && file.state == Readiness::Ready;
    for file in plan.files.iter().filter(|file| !is_unchanged(file)) {
        let (word, brush) = label(file);
        let path = clean::line(&ctx.shown(&file.path)).into_owned();
        let rebuilt = file.is_rebuilt.then_some("rebuilt from the recorded edits");
        let why = file.reason.as_deref().or(rebuilt).or(file.kind_change.as_deref()).unwrap_or_default();
        let why = clean::line(&ctx.shown(why)).into_owned();
        table.push(vec![
            Cell::new(format!("  {word}"), brush),
            Cell::new(path, Paint::plain),
            Cell::new(why, Paint::dim),
        ]);
    }
    // Whoever reads a pipe wants the whole reason.
    let columns = if ctx.on_terminal { ctx.look.code } else { PIPE_COLUMNS };
    out += &table.render(columns, paint);
    let same = plan.files.iter().filter(is_unchanged).count();
    if same > 0 {
        out += &format!("  {}\n", paint.dim(&format!("{} already as it should be", plural(same as u64, "file"))));
    }
    if let Some(head) = &plan.head {
        let place = match head {
            UndoHead::Start => "the start".to_owned(),
            UndoHead::Record(record) => clean::line(ids.short(record.as_str())).into_owned(),
        };
        out += &format!("  {}\n", paint.dim(&format!("the conversation continues from {place}")));
    }
    if let Some(todos) = plan.todos.as_ref().filter(|todos| plan.head.is_some() && !todos.is_empty()) {
        let done = todos.iter().filter(|todo| todo.status == "completed").count();
        let text = format!("task list: {} open, {done} done", todos.len() - done);
        out += &format!("  {}\n", paint.dim(&text));
    }
    let mut left = if has_diffs { ALL_LINES } else { 0 };
    for diff in plan.files.iter().filter(|_| has_diffs).filter_map(|file| diff(undo, file, ctx)) {
        out += &coloured(&diff, DIFF_LINES, &mut left, paint);
        if left == 0 {
            out += &format!("{}\n", paint.dim("… more differences; --json prints all"));
            break;
        }
    }
    out
}

fn heading(plan: &Plan, ids: &ShortIds<'_>, ctx: &Ctx) -> String {
    let target = plan.target.as_ref().map(|target| {
        let text = Some(&plan.target_text).filter(|text| !text.is_empty());
        let text = text.map(|text| format!(" “{}”", clean::line(&ctx.shown(text)))).unwrap_or_default();
        format!("{}{text}", clean::line(ids.short(target.as_str())))
    });
    match (target, plan.is_redo, plan.is_after) {
        (Some(target), true, _) => format!("Take back the undo to {target}:"),
        (None, true, _) => "Take back the last undo:".to_owned(),
        (Some(target), false, false) => format!("Restore files to before {target}:"),
        (Some(target), false, true) => format!("Restore files to after {target}:"),
        (None, false, _) => "Restore files:".to_owned(),
    }
}

fn label(file: &PlannedFile) -> (&'static str, fn(Paint, &str) -> String) {
    match (file.state, file.action) {
        (Readiness::Ready, Action::Create) => ("create", Paint::green),
        (Readiness::Ready, Action::Delete) => ("delete", Paint::red),
        (Readiness::Ready, action) => (action.name(), Paint::yellow),
        (state, _) => (state.name(), Paint::red),
    }
}

/// The difference as it may be printed: of a sensitive file, nothing.
pub(crate) fn diff(undo: &Undo<'_>, file: &PlannedFile, ctx: &Ctx) -> Option<String> {
    if ctx.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(&file.path)) {
        return None;
    }
    undo.diff(file).map(|diff| ctx.shown(&diff).into_owned())
}

/// The same, for programs: after what differs beside the text.
pub(crate) fn whole_diff(undo: &Undo<'_>, file: &PlannedFile, ctx: &Ctx) -> Option<String> {
    let kind = file.kind_change.as_ref().map(|kind| format!("{}\n", ctx.shown(kind)));
    match (kind, diff(undo, file, ctx)) {
        (Some(kind), diff) => Some(kind + diff.as_deref().unwrap_or_default()),
        (None, diff) => diff,
    }
}

/// Says which changes of files are not known.
pub(crate) fn print_gaps(history: &FileHistory, ctx: &mut Ctx) -> Result<(), Failure> {
    for (why, count) in &history.unwatched {
        let files = plural(*count, "file");
        let what =
            format!("{files} of the project not watched: {}; whether they changed is not known", clean::line(why));
        ctx.caution("unwatched", &what)?;
    }
    for damaged in &history.damaged {
        let place = damaged.path.display().to_string();
        let what =
            format!("{}:{}: damaged line; a restore of this session may be missing", clean::line(&place), damaged.line);
        ctx.caution("damaged-journal", &what)?;
    }
    Ok(())
}

/// A difference with colours, cut to so many lines, and to those that are left.
pub(crate) fn coloured(diff: &str, lines: usize, left: &mut usize, paint: Paint) -> String {
    let mut out = String::new();
    let room = lines.min(*left);
    let lines = diff.lines().count();
    for line in diff.lines().take(room) {
        let line = clean::text(line);
        let line = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => paint.bold(&line),
            Some(b'+') => paint.green(&line),
            Some(b'-') => paint.red(&line),
            Some(b'@') => paint.cyan(&line),
            _ => line.into_owned(),
        };
        out += &format!("{line}\n");
    }
    if lines > room {
        out += &format!("{}\n", paint.dim(&format!("… {}", plural((lines - room) as u64, "more line"))));
    }
    *left -= lines.min(room);
    out
}
