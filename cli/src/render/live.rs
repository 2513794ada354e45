//! Messages while they grow: of each update only what is new.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use scrollback::model::message::{Message, Part};
use serde_json::Value;

use super::message::{Detail, Renderer};
use super::tool;
use crate::ctx::Ctx;
use crate::terminal::Look;

/// What was printed of a session.
#[derive(Default)]
pub(crate) struct Live {
    shown: HashMap<String, Vec<Shown>>,
    /// The message that stands last on the screen.
    last: Option<String>,
    after_tool: bool,
    /// The file was rewritten: what goes was not taken back by somebody.
    pub(crate) rewritten: bool,
    todos: Option<Value>,
}

/// A part that was printed.
struct Shown {
    part: u64,
    /// Of a text: how long it was, and what.
    text: Option<(usize, u64)>,
}

impl Live {
    /// Forgets messages that were taken back, so that they are new if they come again; and tells how many.
    pub(crate) fn taken_back(&mut self, ids: &[String]) -> Option<usize> {
        self.last = None;
        if self.rewritten {
            return None;
        }
        ids.iter().for_each(|id| _ = self.shown.remove(id));
        Some(ids.len())
    }

    /// Something else was printed since: the next part needs its header again.
    pub(crate) fn interrupted(&mut self) {
        self.last = None;
    }

    /// What is new in a message; nothing when all of it was printed.
    pub(crate) fn news(&mut self, message: &Message, ctx: &Ctx, detail: Detail, look: Look) -> String {
        let mut renderer = Renderer::within(ctx, detail, look);
        renderer.todos = self.todos.take();
        let known = self.shown.remove(&message.id);
        let goes_on = self.last.as_ref() == Some(&message.id);
        let mut out = String::new();
        self.after_tool &= goes_on;
        for (at, part) in message.parts.iter().enumerate() {
            let before = known.as_ref().and_then(|known| known.get(at));
            let Some(fresh) = fresh(part, before) else { continue };
            let text = match &fresh {
                Part::Tool(call) if call.is_open() => tool::running(call, &look),
                fresh => renderer.part(fresh),
            };
            if text.is_empty() {
                continue;
            }
            // Calls in a row stand together; prose has air around it.
            let is_tool = matches!(part, Part::Tool(_));
            if !(is_tool && self.after_tool) {
                out.push('\n');
            }
            self.after_tool = is_tool;
            out += text.trim_start_matches('\n');
        }
        out += &renderer.todos(message);
        self.todos = renderer.todos.take();
        let is_new = known.is_none();
        self.shown.insert(message.id.clone(), message.parts.iter().map(shown).collect());
        if out.is_empty() && !is_new {
            return out;
        }
        self.last = Some(message.id.clone());
        if goes_on { out } else { format!("\n{}{out}", renderer.header(message)) }
    }
}

/// What of a part was not printed yet.
fn fresh(part: &Part, before: Option<&Shown>) -> Option<Part> {
    let Some(before) = before else { return Some(part.clone()) };
    if before.part == hash(part) {
        return None;
    }
    if let (Part::Text(text), Some((length, words))) = (part, before.text)
        && let Some((old, new)) = text.text.split_at_checked(length)
        && hash_of(old) == words
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
