//! The course of a task list as text: what was added, started and done at each message, with a bar for how far it is.

use scrollback::view::todo_course::TodoStep;
use scrollback::view::tool_view::TodoItem;

use super::clock;
use super::short_ids::ShortIds;
use super::todos::Todos;
use crate::ctx::Ctx;
use crate::terminal::clean;

/// The width of a bar.
const BAR_COLUMNS: usize = 20;

/// The steps as text.
pub(crate) fn text(steps: &[TodoStep], ids: &ShortIds<'_>, ctx: &Ctx) -> String {
    let paint = ctx.paint();
    let mut list = Todos::default();
    let mut out = String::new();
    for step in steps {
        let filled = (step.done * BAR_COLUMNS).checked_div(step.total).unwrap_or(0);
        let bar = format!("{}{}", paint.green(&"█".repeat(filled)), paint.dim(&"░".repeat(BAR_COLUMNS - filled)));
        let when = step.at.map(|at| clock::stamp(at, &ctx.zone)).unwrap_or_default();
        let id = clean::line(ids.short(step.record.as_str())).into_owned();
        out += &format!("{bar}  {}/{}  {}\n", step.done, step.total, paint.dim(format!("{id}  {when}").trim_end()));
        let shown: Vec<String> = step.todos.iter().map(|todo| ctx.shown(&todo.content).into_owned()).collect();
        let items = step.todos.iter().zip(&shown).map(|(todo, text)| TodoItem { text, status: todo.status });
        out += &list.update(&items.collect::<Vec<_>>(), false, paint);
    }
    out
}
