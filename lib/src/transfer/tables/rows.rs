//! The rows of a session.

use hashbrown::{HashMap, HashSet};
use rusqlite::types::Value as Column;
use rusqlite::{Transaction, params};
use serde_json::{Map, Value};

use crate::model::error::Result;
use crate::model::message::{Message, Part, Role};
use crate::model::record::Usage;
use crate::session::{RecordRef, Session, State};
use crate::view::Conversation;

/// How much of a message's text stands in a column of its own.
const PREVIEW_CHARS: usize = 200;

/// A row of `agents`.
pub(super) struct AgentRow {
    pub(super) id: String,
    pub(super) execution_id: String,
    model: String,
    prompt: String,
    status: &'static str,
    result: Option<String>,
    log_path: String,
    error: Option<&'static str>,
    started_at: Option<String>,
    completed_at: Option<String>,
    duration_ms: Option<i64>,
    usage: Usage,
    tool_calls: i64,
}

impl AgentRow {
    pub(super) fn of(session: &Session) -> Result<AgentRow> {
        let row = session.row()?;
        let branch = session.head().map(|head| session.branch(head));
        let (mut prompt, mut result, mut tool_calls) = (None, None, 0);
        if let Some(branch) = &branch {
            let conversation = Conversation::new(branch);
            for message in conversation.messages(0..conversation.len()) {
                let message = message?;
                tool_calls += message.parts.iter().filter_map(Part::as_call).count() as i64;
                let text = Some(text_of(&message)).filter(|text| !text.is_empty());
                match message.role {
                    Role::User => prompt = prompt.or(text),
                    Role::Assistant => result = text.or(result),
                    Role::System => {}
                }
            }
        }
        let state = branch.as_ref().map(|branch| session.state(branch));
        let is_complete = state == Some(State::Clean);
        Ok(AgentRow {
            id: row.id.0.clone(),
            execution_id: row.parent_session.as_ref().unwrap_or(&row.id).0.clone(),
            model: row.models.last().cloned().unwrap_or_else(|| "unknown".to_owned()),
            prompt: prompt.unwrap_or_default(),
            // The table in docs/sql.md.
            status: match state {
                Some(State::Clean) => "completed",
                Some(State::InterruptedTurn) => "cancelled",
                Some(State::Degraded) => "failed",
                Some(State::InterruptedPrompt) | None => "pending",
            },
            result: result.filter(|_| is_complete),
            log_path: row.path,
            error: (state == Some(State::Degraded)).then_some("records of the branch are missing"),
            started_at: row.started.map(|at| at.to_string()),
            completed_at: row.updated.filter(|_| is_complete).map(|at| at.to_string()),
            duration_ms: row.started.zip(row.updated).map(|(from, to)| to.as_millisecond() - from.as_millisecond()),
            usage: row.usage.unwrap_or_default(),
            tool_calls,
        })
    }

    pub(super) fn store(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let sql = "insert into agents(id, execution_id, model, prompt, status, result, log_path, error, started_at, completed_at,
                created_at, duration_ms, tokens_input, tokens_output, tool_calls_count)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?9, ?11, ?12, ?13, ?14)
            on conflict(id) do update set execution_id = ?2, model = ?3, prompt = ?4, status = ?5, result = ?6, log_path = ?7,
                error = ?8, started_at = ?9, completed_at = ?10, created_at = ?9, duration_ms = ?11, tokens_input = ?12,
                tokens_output = ?13, tool_calls_count = ?14";
        let count = |count: Option<u64>| count.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let values = params![
            self.id,
            self.execution_id,
            self.model,
            self.prompt,
            self.status,
            self.result,
            self.log_path,
            self.error,
            self.started_at,
            self.completed_at,
            self.duration_ms,
            count(self.usage.input),
            count(self.usage.output),
            self.tool_calls,
        ];
        transaction.execute(sql, values).map(drop)
    }
}

/// A message that is to be read and stored.
pub(super) struct Pending<'s> {
    /// The branch that it is read from, by the number of its head.
    pub(super) branch: usize,
    /// Its number on the branch.
    at: usize,
    /// The record that it is named after: its first, or the first that no other message has.
    named_after: RecordRef<'s>,
    /// The one that the message before it is named after.
    parent: Option<RecordRef<'s>>,
}

/// A row of `messages`, with those of `message_parts`.
pub struct MessageRow {
    /// `SESSION#MESSAGE`.
    pub id: String,
    columns: Vec<(&'static str, Column)>,
    /// Of each part: id, message, sequence, type, content, name of the tool, id of the call, state.
    pub parts: Vec<[Column; 8]>,
    /// The records that it is made of, by their numbers in file order.
    pub records: Vec<u32>,
}

/// Every message of every branch once, in file order. A message that two branches end differently is two.
pub(super) fn messages(session: &Session) -> Vec<Pending<'_>> {
    let (mut pending, mut covered) = (Vec::new(), HashSet::new());
    let mut names: HashMap<usize, RecordRef<'_>> = HashMap::new();
    for (branch, head) in session.heads().enumerate() {
        let records = session.branch(head.record);
        let conversation = Conversation::new(&records);
        let mut parent = None;
        for at in 0..conversation.len() {
            let first = conversation.first(at);
            let mut new = conversation.records(at).filter(|record| !covered.contains(&record.order()));
            let known = names.get(&first.order()).copied();
            let named_after = match (known, new.next()) {
                (Some(known), None) => known,
                (None, _) => first,
                (Some(_), Some(new)) => new,
            };
            if known.is_none() || !covered.contains(&named_after.order()) {
                names.entry(first.order()).or_insert(named_after);
                covered.extend(conversation.records(at).map(|record| record.order()));
                pending.push(Pending { branch, at, named_after, parent });
            }
            parent = Some(named_after);
        }
    }
    pending.sort_by_key(|message| message.named_after.order());
    pending
}

/// Reads these messages, branch by branch.
pub(super) fn each(
    session: &Session,
    messages: &[Pending<'_>],
    agent: &str,
    execution: &str,
    take: &mut dyn FnMut(&MessageRow) -> Result<()>,
) -> Result<()> {
    let mut by_branch: HashMap<usize, Vec<(usize, &Pending<'_>)>> = HashMap::new();
    for (sequence, message) in messages.iter().enumerate() {
        by_branch.entry(message.branch).or_default().push((sequence, message));
    }
    for (branch, head) in session.heads().enumerate() {
        let Some(of_branch) = by_branch.remove(&branch) else { continue };
        let records = session.branch(head.record);
        let conversation = Conversation::new(&records);
        for (sequence, message) in of_branch {
            take(&message.read(&conversation, agent, execution, sequence)?)?;
        }
    }
    Ok(())
}

impl Pending<'_> {
    pub(super) fn id(&self, agent: &str) -> String {
        message_id(agent, self.named_after)
    }

    pub(super) fn read(
        &self,
        conversation: &Conversation<'_, '_>,
        agent: &str,
        execution: &str,
        sequence: usize,
    ) -> Result<MessageRow> {
        let message = conversation.message(self.at).transpose()?;
        let message = message.unwrap_or_else(|| Message::new("", Role::System, Vec::new()));
        let parts: Vec<Value> =
            message.parts.iter().map(|part| serde_json::to_value(part).unwrap_or_default()).collect();
        let has = |wanted: &str| i64::from(parts.iter().any(|part| type_of(part) == wanted));
        let text = |text: &str| Column::Text(text.to_owned());
        let metadata = message.metadata.as_ref().map(|metadata| Value::Object(metadata.clone()).to_string());
        let at = message.metadata.as_ref().and_then(|metadata| metadata.get("timestamp")?.as_str());
        let preview: String = text_of(&message).chars().take(PREVIEW_CHARS).collect();
        let id = self.id(agent);
        let optional = |text: Option<String>| text.map_or(Column::Null, Column::Text);
        let columns = vec![
            ("id", text(&id)),
            ("agent_id", text(agent)),
            ("execution_id", text(execution)),
            ("role", text(role(message.role))),
            ("sequence", Column::Integer(sequence as i64)),
            ("parts", Column::Text(Value::Array(parts.clone()).to_string())),
            ("metadata", optional(metadata)),
            ("created_at", optional(at.map(str::to_owned))),
            ("has_tool_calls", Column::Integer(has("tool-invocation"))),
            ("has_reasoning", Column::Integer(has("reasoning"))),
            ("has_files", Column::Integer(has("file"))),
            ("text_preview", optional(Some(preview).filter(|preview| !preview.is_empty()))),
            ("parent_id", optional(self.parent.map(|parent| message_id(agent, parent)))),
            // The first branch is the default one.
            ("on_branch", Column::Integer(i64::from(self.branch == 0))),
            ("sidechain", Column::Integer(i64::from(self.named_after.is_sidechain()))),
        ];
        let parts = parts.iter().enumerate().map(|(at, part)| part_row(&id, at, part)).collect();
        let records = conversation.records(self.at).map(|record| record.order() as u32).collect();
        Ok(MessageRow { id, columns, parts, records })
    }
}

impl MessageRow {
    /// A column by its name.
    pub fn cell(&self, name: &str) -> Column {
        let cell = self.columns.iter().find(|(column, _)| *column == name);
        cell.map_or(Column::Null, |(_, value)| value.clone())
    }

    pub(super) fn columns(&self) -> Vec<(&'static str, Column)> {
        self.columns.clone()
    }
}

fn message_id(agent: &str, named_after: RecordRef<'_>) -> String {
    format!("{agent}#{}", named_after.id())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// The type of a part in the proposal's list.
fn type_of(part: &Value) -> &'static str {
    match part.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => "text",
        "reasoning" => "reasoning",
        "file" => "file",
        "source-url" => "source-url",
        "source-document" => "source-document",
        "step-start" => "step-start",
        kind if kind == "dynamic-tool" || kind.starts_with("tool-") => "tool-invocation",
        _ => "data",
    }
}

/// Texts are plain, with their state; everything else, and texts of which more is known, is the part as JSON.
fn part_row(message: &str, at: usize, part: &Value) -> [Column; 8] {
    let kind = type_of(part);
    let field = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
    let optional = |text: Option<String>| text.map_or(Column::Null, Column::Text);
    let is_plain_text = matches!(kind, "text" | "reasoning") && is_plain(part);
    let content = match kind {
        "step-start" => None,
        _ if is_plain_text => field("text"),
        _ => Some(part.to_string()),
    };
    let is_call = kind == "tool-invocation";
    let name = field("toolName").or_else(|| field("type")?.strip_prefix("tool-").map(str::to_owned));
    [
        Column::Text(format!("{message}/{at}")),
        Column::Text(message.to_owned()),
        Column::Integer(at as i64),
        Column::Text(kind.to_owned()),
        optional(content),
        optional(name.filter(|_| is_call)),
        optional(field("toolCallId").filter(|_| is_call)),
        optional(field("state").filter(|_| is_call || is_plain_text)),
    ]
}

/// Whether a part is a text and at most its state, and the text cannot be taken for JSON.
fn is_plain(part: &Value) -> bool {
    let has_more =
        |part: &Map<String, Value>| part.keys().any(|key| !matches!(key.as_str(), "type" | "text" | "state"));
    let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
    !part.as_object().is_some_and(has_more) && !text.trim_start().starts_with('{')
}

fn text_of(message: &Message) -> String {
    message.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
}
