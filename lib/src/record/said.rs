//! What is said in a line of code: a text, parts or results as a message.

use hashbrown::HashSet;
use serde_json::{Map, Value};

use super::{Outcome, Said, Title, TitleSource, Todo, ToolResult};
use crate::message::{Part, ToolPart};

impl Said {
    /// The calls that wait for their results: the id and the tool's name of each.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Tool(call) if call.is_open() => Some((call.call_id.as_str(), call.name.as_str())),
            _ => None,
        })
    }

    /// The id that two calls of one response have, where there is such.
    pub(crate) fn ambiguous_call(&self) -> Option<&str> {
        let mut known = HashSet::new();
        for part in &self.parts {
            match part {
                Part::StepStart => known.clear(),
                // One without an id may get its own from the format.
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

impl From<&str> for Said {
    fn from(text: &str) -> Said {
        Said { parts: vec![Part::text(text)], ..Said::default() }
    }
}

impl From<String> for Said {
    fn from(text: String) -> Said {
        Said { parts: vec![Part::text(text)], ..Said::default() }
    }
}

impl From<Vec<Part>> for Said {
    fn from(parts: Vec<Part>) -> Said {
        Said { parts, ..Said::default() }
    }
}

impl<const N: usize> From<[Part; N]> for Said {
    fn from(parts: [Part; N]) -> Said {
        Said { parts: parts.into(), ..Said::default() }
    }
}

impl From<ToolResult> for Said {
    fn from(result: ToolResult) -> Said {
        Said { results: vec![result], ..Said::default() }
    }
}

impl From<Vec<ToolResult>> for Said {
    fn from(results: Vec<ToolResult>) -> Said {
        Said { results, ..Said::default() }
    }
}

impl From<&str> for Title {
    fn from(text: &str) -> Title {
        Title { text: text.to_owned(), source: TitleSource::Manual }
    }
}
