//! What a tool call does, as people see it: it runs a command, changes files, updates the task list, starts a sub-agent,
//! asks a person, or does anything else.
//!
//! The shape of the input decides, not the name of the tool: agents call the same thing differently, and a converted session keeps the names
//! of its source. Everything is borrowed from the call, and a change has a limited number of lines, however large the call is.

mod change;
mod diff;
pub(crate) mod patch;
mod question;
mod result;
mod shell;
mod summary;

#[cfg(test)]
mod tests;

pub(crate) use change::{CONTENTS, NEW_TEXTS, OLD_TEXTS, PATCHES, PATHS, text};
pub use change::{Changes, DiffLine, FileAction, FileChange, Hunk, Sign};
pub use question::{Choice, Question};
pub(crate) use result::tagged_name;
pub use result::{attached_name, data_url_bytes, refusal_words, result_text, size_text, without_error_tags};
pub use shell::ShellRun;
pub(crate) use shell::script;
pub use summary::{brief, scalar_text, summary};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::message::{Message, Part, ToolPart, ToolState};
use crate::model::named_enum;

/// What a call does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ToolView<'a> {
    /// It runs a command.
    Shell(ShellRun<'a>),
    /// It changes files.
    Change(Changes<'a>),
    /// It replaces the task list.
    Todos {
        /// All tasks after the call.
        items: Vec<TodoItem<'a>>,
    },
    /// It starts a sub-agent.
    SubAgent(SubAgent<'a>),
    /// It asks a person to agree to a plan.
    Plan {
        /// The plan, in Markdown.
        text: &'a str,
    },
    /// It asks a person questions.
    Questions {
        /// In their order.
        questions: Vec<Question<'a>>,
    },
    /// Anything else.
    Other,
}

/// A task of a task list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TodoItem<'a> {
    /// What is to be done.
    pub text: &'a str,
    /// How far it is.
    pub status: TodoStatus,
}

named_enum! {
    /// How far a task is.
    TodoStatus {
        /// Not started, or in a state that only its agent knows.
        Pending = "pending",
        /// Somebody works on it.
        InProgress = "in_progress",
        /// It is done.
        Completed = "completed",
    }
}

/// A sub-agent that a call starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubAgent<'a> {
    /// What it is to do: the short description if there is one, else the prompt.
    pub task: &'a str,
    /// The kind of agent, if the call names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'a str>,
    /// Its session, if the agent recorded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
}

named_enum! {
    /// How a call ended, in words for people.
    Ending {
        /// It has succeeded.
        Ok = "ok",
        /// It has failed.
        Failed = "failed",
        /// A person or a rule did not allow it.
        Denied = "denied",
        /// A person stopped it while it ran.
        Interrupted = "interrupted",
        /// There is a result that another will replace.
        Running = "running",
        /// A person is asked whether it may run.
        Waiting = "waiting for approval",
        /// There is no result.
        NoResult = "no result",
    }
}

impl<'a> ToolView<'a> {
    /// Finds out what a call does.
    ///
    /// ```
    /// use scrollback::model::{ToolPart, ToolState};
    /// use scrollback::view::tool_view::ToolView;
    /// use serde_json::json;
    ///
    /// let call = ToolPart::dynamic("Bash", "c1", ToolState::done(json!({"command": ["bash", "-lc", "ls"]}), json!("README.md")));
    /// let ToolView::Shell(run) = ToolView::of(&call) else { panic!("a command") };
    /// assert_eq!((&*run.command, &*run.output), ("ls", "README.md"));
    /// ```
    pub fn of(call: &'a ToolPart) -> ToolView<'a> {
        if let Some(changes) = change::of(call) {
            return ToolView::Change(changes);
        }
        if let Some(run) = shell::of(call) {
            return ToolView::Shell(run);
        }
        let Some(input) = call.input().and_then(Value::as_object) else { return ToolView::Other };
        if let Some(items) = todos(input) {
            return ToolView::Todos { items };
        }
        if let Some(text) = plan(input) {
            return ToolView::Plan { text };
        }
        if let Some(questions) = question::of(call, input) {
            return ToolView::Questions { questions };
        }
        sub_agent(call, input).map_or(ToolView::Other, ToolView::SubAgent)
    }
}

/// How a call ended.
pub fn ending(call: &ToolPart) -> Ending {
    match &call.state {
        ToolState::InputStreaming { .. } | ToolState::InputAvailable { .. } => Ending::NoResult,
        ToolState::ApprovalRequested { .. } => Ending::Waiting,
        ToolState::ApprovalResponded { approval, .. } if approval.approved == Some(false) => Ending::Denied,
        ToolState::ApprovalResponded { .. } => Ending::NoResult,
        ToolState::OutputAvailable { preliminary: Some(true), .. } => Ending::Running,
        ToolState::OutputAvailable { .. } => Ending::Ok,
        ToolState::OutputError { error_text, .. } => {
            let asks = asks_for_rights(call.input()) && noted(call, "exitCode").is_none();
            failure_ending(error_text, asks)
        }
        ToolState::OutputDenied { .. } => Ending::Denied,
    }
}

/// How a call ended that an agent records as failed; `asks` is whether the call was to be allowed first, and never ended as a command.
pub(crate) fn failure_ending(error: &str, asks: bool) -> Ending {
    match () {
        () if is_refusal(error) => Ending::Denied,
        // The question was stopped, not the command.
        () if is_stop(error) && asks => Ending::Denied,
        () if is_stop(error) => Ending::Interrupted,
        () => Ending::Failed,
    }
}

/// The first line of a failure that says something.
fn first_words(error: &str) -> &str {
    error.lines().find(|line| !line.starts_with("Wall time: ")).unwrap_or_default()
}

/// Whether a failure says that a person stopped the agent during the call, in the words of Codex or Qwen Code.
fn is_stop(error: &str) -> bool {
    ["aborted by user", "[Operation Cancelled]"].iter().any(|stop| first_words(error).starts_with(stop))
}

/// Whether a call of Codex asks for more rights.
pub(crate) fn asks_for_rights(input: Option<&Value>) -> bool {
    let asked = input.and_then(|input| input.get("sandbox_permissions")).and_then(Value::as_str);
    asked == Some("require_escalated")
}

/// Whether a failure is a person's refusal: Codex has no other sign of it than its own words.
fn is_refusal(error: &str) -> bool {
    let said = first_words(error);
    ["exec command rejected by user", "patch rejected by user", "rejected by user"]
        .iter()
        .any(|refusal| said.starts_with(refusal))
        || said.starts_with("exec_command failed for ") && said.contains("Rejected(\"rejected by user\")")
}

/// `{"todos": [{"content": …, "status": …}]}`, or Codex's `{"plan": [{"step": …, "status": …}]}`.
fn todos(input: &Map<String, Value>) -> Option<Vec<TodoItem<'_>>> {
    let list = input.get("todos").or_else(|| input.get("plan"))?.as_array()?;
    list.iter().map(todo).collect()
}

/// The task list that a message leaves; `None` if it has none, or if every call that was to change it failed: then an earlier one counts.
pub fn todo_list(message: &Message) -> Option<&Vec<Value>> {
    let calls = message.parts.iter().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
    let mut changes = calls.filter(|call| matches!(ToolView::of(call), ToolView::Todos { .. })).peekable();
    let has_failed = |call: &ToolPart| matches!(ending(call), Ending::Failed | Ending::Denied | Ending::Interrupted);
    if changes.peek().is_some() && changes.all(|call| has_failed(call)) {
        return None;
    }
    message.metadata.as_ref()?.get("todos")?.as_array()
}

/// One task of a list.
pub fn todo(item: &Value) -> Option<TodoItem<'_>> {
    let text = ["content", "step", "title"].iter().find_map(|key| item.get(key)?.as_str())?;
    let status = match item.get("status").and_then(Value::as_str) {
        Some("completed" | "done") => TodoStatus::Completed,
        Some("in_progress") => TodoStatus::InProgress,
        _ => TodoStatus::Pending,
    };
    Some(TodoItem { text, status })
}

/// `{"plan": "…"}`: a text, not the name of a plan among other arguments.
fn plan(input: &Map<String, Value>) -> Option<&str> {
    let text = input.get("plan")?.as_str()?;
    (text.trim().contains('\n') || input.len() == 1).then_some(text)
}

/// A call that started a session, or whose input is a prompt for another agent.
fn sub_agent<'a>(call: &'a ToolPart, input: &'a Map<String, Value>) -> Option<SubAgent<'a>> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| input.get(*key)?.as_str()).filter(|text| !text.is_empty());
    let role = text(&["subagent_type", "agent_type", "agent"]);
    let session = noted(call, "session")
        .and_then(Value::as_str)
        .or_else(|| text(&["session"]).filter(|_| role.is_some()));
    let prompt = text(&["prompt", "message"]);
    let is_agent = session.is_some() || (prompt.is_some() && role.is_some());
    let task = text(&["description"]).or(prompt).unwrap_or_default();
    is_agent.then_some(SubAgent { task, role, session })
}

/// What the agent noted about a call beside its result.
fn noted<'a>(call: &'a ToolPart, key: &str) -> Option<&'a Value> {
    call.call_provider_metadata.as_ref()?.get("scrollback")?.get(key)
}
