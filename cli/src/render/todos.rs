//! Task lists: the whole list at first, then what changed.

use scrollback::view::tool_view::{TodoItem, TodoStatus};

use super::fold::INDENT;
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// The task list that was shown last.
#[derive(Default)]
pub(crate) struct Todos(Option<Vec<(String, TodoStatus)>>);

/// More tasks than this are counted.
const MAX_TASKS: usize = 100;

impl Todos {
    /// Shows a list: all of it the first time or with `full`, else what was added, started, done or removed since.
    pub(crate) fn update(&mut self, items: &[TodoItem<'_>], full: bool, paint: Paint) -> String {
        let now: Vec<(String, TodoStatus)> = items.iter().map(|item| (item.text.to_owned(), item.status)).collect();
        let before = self.0.replace(now);
        let now = self.0.as_deref().unwrap_or_default();
        let rows: Vec<String> = match before.filter(|before| !full || before.as_slice() == now) {
            None => now.iter().map(|(text, status)| row(*status, "", text, paint)).collect(),
            Some(before) => changes(&before, now, paint),
        };
        let mut out: String = rows.iter().take(MAX_TASKS).map(|row| format!("{INDENT}{row}\n")).collect();
        if rows.len() > MAX_TASKS {
            out +=
                &format!("{INDENT}{}\n", paint.dim(&format!("… {} more; --json prints all", rows.len() - MAX_TASKS)));
        }
        out
    }
}

fn changes(before: &[(String, TodoStatus)], now: &[(String, TodoStatus)], paint: Paint) -> Vec<String> {
    use std::collections::HashMap;
    let old: HashMap<&str, TodoStatus> = before.iter().map(|(text, status)| (text.as_str(), *status)).collect();
    let new: HashMap<&str, TodoStatus> = now.iter().map(|(text, status)| (text.as_str(), *status)).collect();
    let changed = now.iter().filter_map(|(text, status)| {
        let word = match (old.get(text.as_str()), status) {
            (Some(known), status) if known == status => return None,
            (_, TodoStatus::Completed) => "done",
            (_, TodoStatus::InProgress) => "started",
            (None, TodoStatus::Pending) => "added",
            (Some(_), TodoStatus::Pending) => "put back",
        };
        Some(row(*status, word, text, paint))
    });
    let removed = before.iter().filter(|(text, _)| !new.contains_key(text.as_str()));
    changed
        .chain(removed.map(|(text, _)| format!("{} {}", paint.dim("✕ removed:"), paint.dim(text))))
        .collect()
}

fn row(status: TodoStatus, word: &str, text: &str, paint: Paint) -> String {
    let word = if word.is_empty() { String::new() } else { format!(" {word}:") };
    match status {
        TodoStatus::Completed => format!("{} {}", paint.green(&format!("☑{word}")), paint.dim(text)),
        TodoStatus::InProgress => format!("{} {}", paint.yellow(&format!("◐{word}")), clean::line(text)),
        TodoStatus::Pending => format!("☐{word} {}", clean::line(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_shown_once_and_then_what_changed() {
        let item = |text, status| TodoItem { text, status };
        let paint = Paint { colour: false };
        let mut todos = Todos::default();
        let first = [item("a", TodoStatus::InProgress), item("b", TodoStatus::Pending), item("c", TodoStatus::Pending)];
        assert_eq!(todos.update(&first, false, paint), "    ◐ a\n    ☐ b\n    ☐ c\n");
        assert_eq!(todos.update(&first, true, paint), "", "the same list is not repeated");
        let then =
            [item("a", TodoStatus::Completed), item("b", TodoStatus::InProgress), item("d\u{1b}", TodoStatus::Pending)];
        let expected = "    ☑ done: a\n    ◐ started: b\n    ☐ added: d␛\n    ✕ removed: c\n";
        assert_eq!(todos.update(&then, false, paint), expected);
        assert_eq!(todos.update(&first, true, paint), "    ◐ a\n    ☐ b\n    ☐ c\n");
    }
}
