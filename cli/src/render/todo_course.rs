//! The course of a task list: what was added, started and done at each message, with a bar for how far it is.

use jiff::Timestamp;
use scrollback::model::{Body, Content, Part, RecordId};
use scrollback::session::{Branch, RecordRef};
use scrollback::view::tool_view::{self, TodoItem, TodoStatus, ToolView};
use serde::Serialize;

use super::clock;
use super::short_ids::ShortIds;
use super::todos::Todos;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::clean;

/// The width of a bar.
const BAR_COLUMNS: usize = 20;

/// The task list after a record that changed it. `--json` prints this.
#[derive(Serialize)]
pub(crate) struct TodoStep {
    record: RecordId,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    done: usize,
    total: usize,
    todos: Vec<TodoRow>,
}

#[derive(Serialize, Clone, PartialEq)]
struct TodoRow {
    content: String,
    status: TodoStatus,
}

/// Every change of the task list on a branch.
pub(crate) fn steps(branch: &Branch<'_>) -> Result<Vec<TodoStep>, Failure> {
    let mut steps: Vec<TodoStep> = Vec::new();
    for record in &branch.records {
        let Some(todos) = list_of(*record)? else { continue };
        let is_new = steps.last().map_or(!todos.is_empty(), |last| last.todos != todos);
        if is_new {
            let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
            let record_id = RecordId(record.id().into_owned());
            steps.push(TodoStep { record: record_id, at: record.at(), done, total: todos.len(), todos });
        }
    }
    Ok(steps)
}

/// The task list that a record states, in its own field or in a tool call.
fn list_of(record: RecordRef<'_>) -> Result<Option<Vec<TodoRow>>, Failure> {
    let row = |item: TodoItem<'_>| TodoRow { content: item.text.to_owned(), status: item.status };
    let of_list = |todos: &[scrollback::Todo]| -> Vec<TodoRow> {
        let values = todos.iter().filter_map(|todo| serde_json::to_value(todo).ok());
        values.filter_map(|value| tool_view::todo(&value).map(row)).collect()
    };
    let of_calls = |content: &Content| {
        let calls = content.parts.iter().rev().filter_map(Part::as_call);
        calls.into_iter().find_map(|call| match ToolView::of(call) {
            ToolView::Todos { items } => Some(items.into_iter().map(row).collect()),
            _ => None,
        })
    };
    Ok(match record.body()? {
        Body::Restore(restore) => restore.todos.as_deref().map(of_list),
        body => body
            .content()
            .and_then(|content| content.todos.as_deref().map(of_list).or_else(|| of_calls(content))),
    })
}

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
