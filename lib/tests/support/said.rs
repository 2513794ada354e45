//! Short constructors for bodies of records.

use scrollback::model::{Body, Content, Outcome, Part, Title, TitleSource, Todo, ToolPart, ToolResult, ToolState};
use serde_json::{Map, Value};

pub(crate) fn said(parts: impl IntoIterator<Item = Part>) -> Content {
    Content { parts: parts.into_iter().collect(), ..Content::default() }
}

/// A prompt: a text, or parts.
pub(crate) fn user(content: impl Into<Content>) -> Body {
    Body::User(content.into())
}

/// An answer of the model.
pub(crate) fn answer(content: impl Into<Content>) -> Body {
    Body::Assistant(content.into())
}

pub(crate) fn call(name: &str, id: &str, state: ToolState) -> Part {
    ToolPart::dynamic(name, id, state).into()
}

/// A result without further facts.
pub(crate) fn result(call_id: &str, output: impl Into<Value>, outcome: Outcome) -> ToolResult {
    ToolResult {
        call_id: call_id.to_owned(),
        name: None,
        output: output.into(),
        outcome,
        preliminary: false,
        duration_ms: None,
        about: Map::new(),
    }
}

/// Results of tools.
pub(crate) fn results(results: impl IntoIterator<Item = ToolResult>) -> Body {
    Body::ToolResult(results.into_iter().collect::<Vec<_>>().into())
}

pub(crate) fn title(text: &str, source: TitleSource) -> Body {
    Body::Title(Title { text: text.to_owned(), source })
}

/// A pending task.
pub(crate) fn todo(content: &str) -> Todo {
    Todo { content: content.to_owned(), status: "pending".to_owned(), active_form: None, extra: Map::new() }
}
