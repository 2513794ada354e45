//! Messages that grow: prints only what is new in each update.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use scrollback::model::{Message, Part};

use super::message::{Around, Detail, Renderer};
use super::short_ids::ShortIds;
use super::todos::Todos;
use crate::ctx::Ctx;
use crate::terminal::Look;

/// What has been printed of a session.
#[derive(Default)]
pub(crate) struct Live {
    shown: HashMap<String, Vec<Shown>>,
    /// The message that was printed last.
    last: Option<String>,
    after_tool: bool,
    /// Whether the file was rewritten: then a removed message was not rewound.
    pub(crate) rewritten: bool,
    todos: Todos,
}

/// A part that was printed.
struct Shown {
    part: u64,
    /// For a text: its length and its hash.
    text: Option<(usize, u64)>,
}

impl Live {
    /// Forgets removed messages, so that they are new if they come again, and returns how many; `None` if nothing is to be printed.
    pub(crate) fn removed(&mut self, ids: &[String]) -> Option<usize> {
        self.last = None;
        if self.rewritten {
            return None;
        }
        ids.iter().for_each(|id| _ = self.shown.remove(id));
        Some(ids.len())
    }

    /// Another session was printed since: the next part needs its header again.
    pub(crate) fn interrupted(&mut self) {
        self.last = None;
    }

    /// What is new in a message; empty if all of it was printed.
    pub(crate) fn news(&mut self, message: &Message, ctx: &Ctx, detail: Detail, look: Look) -> String {
        // Records that come later may begin as this one does.
        let mut renderer = Renderer::within(ctx, detail, &ShortIds::Unknown, look);
        renderer.todos = std::mem::take(&mut self.todos);
        renderer.live = true;
        let known = self.shown.remove(&message.id);
        let is_continued = self.last.as_ref() == Some(&message.id);
        let mut out = String::new();
        self.after_tool &= is_continued;
        for (at, part) in message.parts.iter().enumerate() {
            let before = known.as_ref().and_then(|known| known.get(at));
            let Some(fresh) = fresh(part, before) else { continue };
            let text = renderer.part(&fresh, message.role);
            if text.is_empty() {
                continue;
            }
            // An empty line before each part, except between tool calls.
            let is_tool = matches!(part, Part::Tool(_));
            if !(is_tool && self.after_tool) {
                out.push('\n');
            }
            self.after_tool = is_tool;
            out += text.trim_start_matches('\n');
        }
        let todos = renderer.todos(message);
        out += &(if todos.is_empty() { todos } else { format!("\n{todos}") });
        self.todos = std::mem::take(&mut renderer.todos);
        let is_new = known.is_none();
        self.shown.insert(message.id.clone(), message.parts.iter().map(shown).collect());
        if out.is_empty() && !is_new {
            return out;
        }
        self.last = Some(message.id.clone());
        if is_continued { out } else { format!("\n{}{out}", renderer.header(message, &Around::default())) }
    }
}

/// The piece of a part that has not been printed.
fn fresh(part: &Part, before: Option<&Shown>) -> Option<Part> {
    let Some(before) = before else { return Some(part.clone()) };
    if before.part == hash(part) {
        return None;
    }
    if let (Part::Text(text), Some((length, printed))) = (part, before.text)
        && let Some((old, new)) = text.text.split_at_checked(length)
        && hash_of(old) == printed
    {
        return (!new.is_empty()).then(|| Part::text(new));
    }
    Some(part.clone())
}

fn shown(part: &Part) -> Shown {
    let text = if let Part::Text(text) = part { Some((text.text.len(), hash_of(&text.text))) } else { None };
    Shown { part: hash(part), text }
}

fn hash(part: &Part) -> u64 {
    hash_of(&serde_json::to_string(part).unwrap_or_default())
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
