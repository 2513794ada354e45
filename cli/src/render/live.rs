//! Messages that grow: prints only what is new in each update.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use scrollback::model::{Display, Message, Part};
use scrollback::view::dividers;

use super::message::{Around, Detail, Renderer, Texts, has_header};
use super::short_ids::ShortIds;
use super::todos::Todos;
use crate::ctx::Ctx;
use crate::terminal::Look;

/// What has been printed of a session.
#[derive(Default)]
pub(crate) struct Live {
    shown: HashMap<String, Printed>,
    /// The message that was printed last.
    last: Option<String>,
    after_tool: bool,
    /// Whether the file was rewritten: then a removed message was not rewound.
    pub(crate) rewritten: bool,
    todos: Todos,
}

/// A message that was printed.
struct Printed {
    display: Option<Display>,
    parts: Vec<Shown>,
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
        let (display, texts) = (message.display(), Texts::of(message));
        let known = self.shown.remove(&message.id);
        let is_continued = self.last.as_ref() == Some(&message.id);
        let between = message.parts.iter().take_while(|part| dividers::is_before_message(part)).count();
        let (mut before_it, mut out) = (String::new(), String::new());
        if let Some(display) =
            display.as_ref().filter(|now| known.as_ref().and_then(|known| known.display.as_ref()) != Some(*now))
        {
            let text = renderer.display(display);
            out += &(if text.is_empty() { text } else { format!("\n{text}") });
        }
        self.after_tool &= is_continued;
        for (at, part) in message.parts.iter().enumerate() {
            let before = known.as_ref().and_then(|known| known.parts.get(at));
            let Some(fresh) = fresh(part, before) else { continue };
            let text = match fresh {
                Fresh::End(text) if !texts.are_displayed && texts.failure != Some(at) => {
                    renderer.part(&Part::text(text), message.role)
                }
                _ => renderer.part_of(message, at, &texts),
            };
            if text.is_empty() {
                continue;
            }
            if at < between {
                before_it += &format!("\n{}", text.trim_start_matches('\n'));
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
        let has_header = !is_continued && has_header(message, display.as_ref(), &out);
        self.shown
            .insert(message.id.clone(), Printed { display, parts: message.parts.iter().map(shown).collect() });
        if out.is_empty() && before_it.is_empty() && !(is_new && has_header) {
            return out;
        }
        self.last = Some(message.id.clone());
        let header =
            if has_header { format!("\n{}", renderer.header(message, &Around::default())) } else { String::new() };
        before_it + &header + &out
    }
}

/// What has not been printed of a part.
enum Fresh<'p> {
    All,
    /// The end of a text.
    End(&'p str),
}

fn fresh<'p>(part: &'p Part, before: Option<&Shown>) -> Option<Fresh<'p>> {
    let Some(before) = before else { return Some(Fresh::All) };
    if before.part == hash(part) {
        return None;
    }
    if let (Part::Text(text), Some((length, printed))) = (part, before.text)
        && let Some((old, new)) = text.text.split_at_checked(length)
        && hash_of(old) == printed
    {
        return (!new.is_empty()).then_some(Fresh::End(new));
    }
    Some(Fresh::All)
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
