//! Building, joining and searching a message's [`Content`].

use hashbrown::HashSet;
use serde_json::{Map, Value};

use super::{Content, Outcome, Title, TitleSource, Todo, ToolResult};
use crate::model::message::{Part, ToolPart};

/// A block of an API's message: a part, or the result of a call.
pub(crate) enum ContentItem {
    Part(Part),
    Result(ToolResult),
}

impl Content {
    /// Adds a later piece of the same message.
    ///
    /// Parts, results, notes and metadata are added. The sender, the context, the model and the error stay once they are
    /// known; the usage, the task list and the thinking mode are those of the later piece, if it has any.
    pub(crate) fn merge(&mut self, later: Content) {
        self.parts.extend(later.parts);
        self.results.extend(later.results);
        self.notes.extend(later.notes);
        self.metadata.extend(later.metadata);
        self.model = self.model.take().filter(|model| !model.is_empty()).or(later.model);
        self.sender = self.sender.take().or(later.sender);
        self.display = self.display.take().or(later.display);
        self.error = self.error.take().or(later.error);
        self.context.fill_from(later.context);
        self.usage = later.usage.or(self.usage);
        self.todos = later.todos.or(self.todos.take());
        self.thinking = later.thinking.or(self.thinking.take());
    }

    /// The text that represents it to people.
    pub(crate) fn shown_text(&self) -> String {
        self.display.as_ref().map_or_else(|| self.text(), |display| display.text().to_owned())
    }

    /// The texts, one per line.
    pub(crate) fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }

    /// The calls without a result: the id and the tool's name of each.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        let open = self.parts.iter().filter_map(Part::as_call).filter(|call| call.is_open());
        open.map(|call| (call.call_id.as_str(), call.name.as_str()))
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
    /// A final result without further facts.
    pub(crate) fn new(call_id: String, output: Value, outcome: Outcome) -> ToolResult {
        let (name, preliminary, duration_ms, about) = (None, false, None, Map::new());
        ToolResult { call_id, name, output, outcome, preliminary, duration_ms, about }
    }

    /// The output of a call, or why it failed.
    pub fn of(call: &ToolPart, done: Result<Value, String>) -> ToolResult {
        let (output, outcome) = match done {
            Ok(output) => (output, Outcome::Done),
            Err(why) => (why.as_str().into(), Outcome::Failed(why)),
        };
        ToolResult { name: Some(call.name.clone()), ..ToolResult::new(call.call_id.clone(), output, outcome) }
    }
}

impl Todo {
    /// Something that is still to be done.
    pub fn pending(content: impl Into<String>) -> Todo {
        Todo { content: content.into(), status: "pending".to_owned(), active_form: None, extra: Map::new() }
    }
}

impl Extend<ContentItem> for Content {
    fn extend<I: IntoIterator<Item = ContentItem>>(&mut self, items: I) {
        for item in items {
            match item {
                ContentItem::Part(part) => self.parts.push(part),
                ContentItem::Result(result) => self.results.push(result),
            }
        }
    }
}

impl FromIterator<ContentItem> for Content {
    fn from_iter<I: IntoIterator<Item = ContentItem>>(items: I) -> Content {
        let mut content = Content::default();
        content.extend(items);
        content
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content::from([Part::text(text)])
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::from([Part::text(text)])
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Content {
        Content { parts, ..Content::default() }
    }
}

impl<const N: usize> From<[Part; N]> for Content {
    fn from(parts: [Part; N]) -> Content {
        Content::from(Vec::from(parts))
    }
}

impl From<ToolResult> for Content {
    fn from(result: ToolResult) -> Content {
        Content::from(vec![result])
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
