//! The course of a task list: the list after each message that changed it.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::error::Result;
use crate::model::message::Part;
use crate::model::record::{Body, Content, RecordId, Todo};
use crate::session::{Branch, RecordRef};
use crate::view::tool_view::{self, TodoItem, TodoStatus, ToolView};

/// The task list after a record that changed it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TodoStep {
    /// The record.
    pub record: RecordId,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How many tasks are done.
    pub done: usize,
    /// How many there are.
    pub total: usize,
    /// The tasks.
    pub todos: Vec<TodoRow>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TodoRow {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// Every change of the task list on a branch.
pub fn steps(branch: &Branch<'_>) -> Result<Vec<TodoStep>> {
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
fn list_of(record: RecordRef<'_>) -> Result<Option<Vec<TodoRow>>> {
    let row = |item: TodoItem<'_>| TodoRow { content: item.text.to_owned(), status: item.status };
    let of_list = |todos: &[Todo]| -> Vec<TodoRow> {
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
