//! What a message's `metadata` says about it.

use serde_json::{Map, Value, json};

use crate::model::record::{Content, Todo, Usage};

/// What `metadata` tells of a message that is one record; `content` gives up what it says about itself.
pub(crate) fn metadata(at: jiff::Timestamp, content: Content) -> Map<String, Value> {
    let mut about = MessageMetadata { error: content.error.is_some(), ..MessageMetadata::default() };
    about.learn(Some(at), content);
    about.metadata()
}

/// What `metadata` tells of a message.
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
    pub(crate) error: bool,
    /// What the agent itself says about it. It goes before what we gathered.
    own: Map<String, Value>,
}

impl MessageMetadata {
    pub(crate) fn learn(&mut self, at: Option<jiff::Timestamp>, content: Content) {
        self.timestamp = self.timestamp.or(at);
        self.model = content.model.filter(|model| !model.is_empty()).or(self.model.take());
        self.usages.extend(content.usage);
        self.cwd = content.context.cwd.or(self.cwd.take());
        self.git_branch = content.context.git_branch.or(self.git_branch.take());
        self.plan(content.todos);
        self.thinking =
            content.thinking.and_then(|thinking| serde_json::to_value(thinking).ok()).or(self.thinking.take());
        self.sender = content.sender.or(self.sender.take());
        self.own.extend(content.metadata);
    }

    /// The task list as it stood when the message ended.
    pub(crate) fn plan(&mut self, todos: Option<Vec<Todo>>) {
        self.todos = todos.and_then(|todos| serde_json::to_value(todos).ok()).or(self.todos.take());
    }

    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let usage = self.usages.iter().copied().reduce(|mut sum, usage| {
            sum.add(usage);
            sum
        });
        let told = json!({
            "timestamp": self.timestamp.map(|at| at.to_string()),
            "model": self.model,
            "usage": usage,
            "cwd": self.cwd,
            "gitBranch": self.git_branch,
            "todos": self.todos,
            "thinking": self.thinking,
            "sender": self.sender,
            "error": self.error.then_some(true),
        });
        let mut metadata = self.own.clone();
        if let Value::Object(told) = told {
            for (key, value) in told.into_iter().filter(|(_, value)| !value.is_null()) {
                metadata.entry(key).or_insert(value);
            }
        }
        metadata
    }
}
