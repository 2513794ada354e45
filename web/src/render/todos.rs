//! Task lists: folded under the message that changed them, and open beside the conversation.

use maud::{Markup, html};
use scrollback::view::tool_view::{TodoItem, TodoStatus};

use super::icon::{chevron, icon};
use super::text;

/// More tasks than anybody reads.
const MAX_SHOWN: usize = 200;

/// The list of a message, folded.
pub fn folded(items: &[TodoItem<'_>]) -> Markup {
    let done = count(items, TodoStatus::Completed);
    let now = items.iter().find(|item| item.status == TodoStatus::InProgress);
    html! {
        details.todo data-done=(done) data-all=(items.len()) {
            summary {
                (icon("list")) span { "Todo: " (done) " of " (items.len()) }
                (bar(items))
                span.meta dir="auto" {
                    @match now {
                        Some(item) => { "now: " (text::brief(item.text, 80)) },
                        None if done == items.len() => "all done",
                        None => "",
                    }
                }
                (chevron())
            }
            (list(items))
        }
    }
}

/// The list itself.
pub fn list(items: &[TodoItem<'_>]) -> Markup {
    html! {
        ul.todos {
            @for item in items.iter().take(MAX_SHOWN) { (one(item)) }
            @if items.len() > MAX_SHOWN { li { span {} span.meta { "and " (items.len() - MAX_SHOWN) " more" } } }
        }
    }
}

/// How many tasks are in a state.
pub fn count(items: &[TodoItem<'_>], status: TodoStatus) -> usize {
    items.iter().filter(|item| item.status == status).count()
}

fn one(item: &TodoItem<'_>) -> Markup {
    let (class, shape, word) = match item.status {
        TodoStatus::Completed => ("done", "done", "done: "),
        TodoStatus::InProgress => ("now", "half", "now: "),
        TodoStatus::Pending => ("", "open", "open: "),
    };
    html! {
        li class=[Some(class).filter(|class| !class.is_empty())] {
            (icon(shape)) span dir="auto" { span.vh { (word) } (text::brief(item.text, 500)) }
        }
    }
}

/// One piece for each task, in the colour of its state.
fn bar(items: &[TodoItem<'_>]) -> Markup {
    const WIDTH: f64 = 84.0;
    const MAX_PIECES: usize = 30;
    let shown = &items[..items.len().min(MAX_PIECES)];
    let step = (WIDTH + 2.0) / shown.len().max(1) as f64;
    html! {
        svg.bar width="84" height="6" aria-hidden="true" {
            @for (at, item) in shown.iter().enumerate() {
                @let class = match item.status {
                    TodoStatus::Completed => "bar-done",
                    TodoStatus::InProgress => "bar-now",
                    TodoStatus::Pending => "bar-open",
                };
                rect class=(class) x=(format!("{:.1}", at as f64 * step)) width=(format!("{:.1}", (step - 2.0).max(0.5))) height="6" rx="2" {}
            }
        }
    }
}
