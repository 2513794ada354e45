//! The `metadata` of a message: time, model, usage and so on.

use serde_json::{Map, Value, json};

use crate::model::message::keys::object;
use crate::model::record::{Content, Todo, Usage};

/// The key that marks an answer which the model did not complete.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The key that marks an answer after whose tool results its agent ended the turn.
pub(crate) const FINISHED: &str = "finished";

/// The metadata of a message that is one record.
pub(crate) fn metadata(at: jiff::Timestamp, content: Content) -> Map<String, Value> {
    let mut about = MessageMetadata { error: content.error.is_some(), ..MessageMetadata::default() };
    about.add(Some(at), content);
    about.metadata()
}

/// The metadata of a message, collected from its records.
#[derive(Default)]
pub(crate) struct MessageMetadata {
    timestamp: Option<jiff::Timestamp>,
    pub(crate) model: Option<String>,
    /// One for each answer.
    pub(crate) usages: Vec<Usage>,
    cwd: Option<String>,
    git_branch: Option<String>,
    todos: Option<Value>,
    thinking: Option<Value>,
    sender: Option<String>,
    display: Option<Value>,
    pub(crate) error: bool,
    /// The agent's own metadata. It has precedence over what we collected.
    own: Map<String, Value>,
}

impl MessageMetadata {
    pub(crate) fn add(&mut self, at: Option<jiff::Timestamp>, content: Content) {
        self.timestamp = self.timestamp.or(at);
        self.model = content.model.filter(|model| !model.is_empty()).or(self.model.take());
        self.usages.extend(content.usage);
        self.cwd = content.context.cwd.or(self.cwd.take());
        self.git_branch = content.context.git_branch.or(self.git_branch.take());
        self.set_todos(content.todos);
        self.thinking =
            content.thinking.and_then(|thinking| serde_json::to_value(thinking).ok()).or(self.thinking.take());
        self.sender = content.sender.or(self.sender.take());
        self.display = content.display.and_then(|display| serde_json::to_value(display).ok()).or(self.display.take());
        self.own.extend(content.metadata);
    }

    /// Sets the task list at the end of the message.
    pub(crate) fn set_todos(&mut self, todos: Option<Vec<Todo>>) {
        self.todos = todos.and_then(|todos| serde_json::to_value(todos).ok()).or(self.todos.take());
    }

    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let usage = Usage::sum(self.usages.iter().copied());
        let collected = object(json!({
            "timestamp": self.timestamp.map(|at| at.to_string()),
            "model": self.model,
            "usage": usage,
            "cwd": self.cwd,
            "gitBranch": self.git_branch,
            "todos": self.todos,
            "thinking": self.thinking,
            "sender": self.sender,
            "display": self.display,
            "error": self.error.then_some(true),
        }));
        let mut metadata = self.own.clone();
        collected.into_iter().for_each(|(key, value)| _ = metadata.entry(key).or_insert(value));
        metadata
    }
}
