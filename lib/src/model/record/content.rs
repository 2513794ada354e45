//! Building, joining and searching a message's [`Content`].

use hashbrown::HashSet;
use serde_json::{Map, Value};

use super::{Content, Outcome, Title, TitleSource, Todo, ToolResult};
use crate::model::message::{Part, ToolPart};

impl Content {
    /// Adds a later piece of the same message.
    ///
    /// Parts, results, notes and metadata are added. Who said it, where, by which model and why it failed stay as they
    /// are once they are known; the usage, the task list and the thinking mode are those of the later piece, if it has
    /// any.
    pub(crate) fn merge(&mut self, later: Content) {
        self.parts.extend(later.parts);
        self.results.extend(later.results);
        self.notes.extend(later.notes);
        self.metadata.extend(later.metadata);
        self.model = self.model.take().filter(|model| !model.is_empty()).or(later.model);
        self.sender = self.sender.take().or(later.sender);
        self.error = self.error.take().or(later.error);
        self.context.fill_from(later.context);
        self.usage = later.usage.or(self.usage);
        self.todos = later.todos.or(self.todos.take());
        self.thinking = later.thinking.or(self.thinking.take());
    }

    /// The calls that wait for their results: the id and the tool's name of each.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Tool(call) if call.is_open() => Some((call.call_id.as_str(), call.name.as_str())),
            _ => None,
        })
    }

    /// An id that two calls of one response share.
    pub(crate) fn ambiguous_call(&self) -> Option<&str> {
        let mut known = HashSet::new();
        for part in &self.parts {
            match part {
                Part::StepStart => known.clear(),
                // A call without an id may get one from the format.
                Part::Tool(call) if !call.call_id.is_empty() && !known.insert(call.call_id.as_str()) => {
                    return Some(&call.call_id);
                }
                _ => {}
            }
        }
        None
    }
}

impl ToolResult {
    /// What a tool gave back to a call, or why it failed.
    pub fn of(call: &ToolPart, done: Result<Value, String>) -> ToolResult {
        let (output, outcome) = match done {
            Ok(output) => (output, Outcome::Done),
            Err(why) => (why.as_str().into(), Outcome::Failed(why)),
        };
        let (call_id, name) = (call.call_id.clone(), Some(call.name.clone()));
        ToolResult { call_id, name, output, outcome, preliminary: false, duration_ms: None, about: Map::new() }
    }
}

impl Todo {
    /// Something that is still to be done.
    pub fn pending(content: impl Into<String>) -> Todo {
        Todo { content: content.into(), status: "pending".to_owned(), active_form: None, extra: Map::new() }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content { parts: vec![Part::text(text)], ..Content::default() }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content { parts: vec![Part::text(text)], ..Content::default() }
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Content {
        Content { parts, ..Content::default() }
    }
}

impl<const N: usize> From<[Part; N]> for Content {
    fn from(parts: [Part; N]) -> Content {
        Content { parts: parts.into(), ..Content::default() }
    }
}

impl From<ToolResult> for Content {
    fn from(result: ToolResult) -> Content {
        Content { results: vec![result], ..Content::default() }
    }
}

impl From<Vec<ToolResult>> for Content {
    fn from(results: Vec<ToolResult>) -> Content {
        Content { results, ..Content::default() }
    }
}

impl From<&str> for Title {
    fn from(text: &str) -> Title {
        Title { text: text.to_owned(), source: TitleSource::Manual }
    }
}
