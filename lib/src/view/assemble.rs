//! One message, put together from the bodies of its records.

use hashbrown::HashMap;
use serde_json::{Map, Value, json};

use crate::model::divider;
use crate::model::error::Result;
use crate::model::message::{Approval, Message, Part, Role, SteeringPart, StreamState, ToolPart, ToolState};
use crate::model::record::{Body, Compaction, Content, Kind, Outcome, Todo, ToolNote, ToolResult, Usage};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;

/// Reads the bodies of `records` and makes one message of them. `is_called` tells whether a call of this id is on the branch.
pub(crate) fn message(
    id: String,
    role: Role,
    records: &[RecordRef<'_>],
    continues: Option<String>,
    is_called: &dyn Fn(&str) -> bool,
) -> Result<Message> {
    let mut making = Making::new(role);
    for record in records {
        making.add(*record, record.body()?);
    }
    let answer = records.iter().find(|record| record.kind() == Kind::Assistant);
    if let (None, Some(surroundings)) = (&making.about.model, answer.and_then(|answer| answer.surroundings())) {
        // The record before says whose answer it is.
        making.about.model = surroundings.body()?.content().and_then(|content| content.model.clone());
    }
    let parts = making.finish(is_called);
    let mut metadata = making.about.metadata();
    metadata.insert("records".to_owned(), records.iter().map(|record| record.id()).collect());
    if let Some(continues) = continues {
        metadata.insert("continues".to_owned(), continues.into());
    }
    Ok(Message { metadata: Some(metadata), ..Message::new(id, role, parts) })
}

struct Making {
    role: Role,
    parts: Vec<Part>,
    /// Results by call id, each with its order on the branch.
    results: HashMap<String, Vec<(usize, ToolResult)>>,
    results_seen: usize,
    notes: Vec<ToolNote>,
    about: AboutMessage,
    /// The answer that the last block belonged to.
    answer: Option<u64>,
    /// The last record was an item of an answer.
    in_items: bool,
}

impl Making {
    fn new(role: Role) -> Making {
        let (parts, results, about) = (Vec::new(), HashMap::new(), AboutMessage::default());
        Making { role, parts, results, results_seen: 0, notes: Vec::new(), about, answer: None, in_items: false }
    }

    fn add(&mut self, record: RecordRef<'_>, body: Body) {
        match body {
            // In an answer, only what a prompt brought back from the tools.
            Body::User(content) if self.role == Role::Assistant => self.keep(content.results),
            Body::User(content) | Body::Attachment(content) => self.say(record, content),
            Body::System(content) if record.is_failure() => self.fail(record, content),
            Body::System(content) => self.say(record, content),
            Body::Assistant(content) => self.answer(record, content),
            Body::ToolResult(content) => self.results(record, content),
            Body::Compaction(compaction) => self.compact(record, compaction),
            Body::Rewind(rewind) => {
                let to = record.parent().map(|parent| parent.id());
                self.parts.push(divider::rewind(&record.id(), &rewind, to.as_deref()));
            }
            Body::Restore(restore) => {
                self.parts.push(divider::restore(&record.id(), &restore));
                self.about.plan(restore.todos);
            }
            Body::Snapshot(_) | Body::Title(_) | Body::Header(_) | Body::Other(_) => {}
        }
    }

    fn say(&mut self, record: RecordRef<'_>, mut content: Content) {
        self.parts.append(&mut content.parts);
        self.notes.append(&mut content.notes);
        self.keep(std::mem::take(&mut content.results));
        self.about.learn(record.at(), content);
    }

    fn answer(&mut self, record: RecordRef<'_>, mut content: Content) {
        if record.is_message() {
            self.about.error |= record.is_failure();
            return self.say(record, content);
        }
        let group = record.keys(KeyRole::Group).next();
        let goes_on = record.is_item() && self.in_items;
        let new_answer = !goes_on && (group.is_none() || group != self.answer);
        (self.answer, self.in_items) = (group, record.is_item());
        if new_answer {
            self.parts.push(Part::StepStart);
        }
        self.parts.extend(content.parts.drain(..).map(done));
        // Each block of an answer repeats what the whole cost, more or less finished.
        match (content.usage.take(), self.about.usages.last_mut()) {
            (Some(usage), Some(known)) if !new_answer => {
                *known = if usage.output >= known.output { usage } else { *known }
            }
            (usage, _) => self.about.usages.extend(usage),
        }
        self.notes.append(&mut content.notes);
        self.keep(std::mem::take(&mut content.results));
        self.about.error |= record.is_failure();
        self.about.learn(record.at(), content);
    }

    /// The summary may stand in a record of its own, which hangs on the one that cuts.
    fn compact(&mut self, record: RecordRef<'_>, compaction: Compaction) {
        let parent = record.parent().map(|parent| parent.id());
        if let (Some(Part::Data(cut)), false, Some(parent)) = (self.parts.last_mut(), compaction.cuts, parent)
            && cut.kind == "compaction"
            && cut.data["record"] == *parent
            && cut.data["summary"].is_null()
        {
            cut.data["summary"] = compaction.summary.into();
            return;
        }
        self.parts.push(divider::compaction(&record.id(), &compaction));
    }

    fn fail(&mut self, record: RecordRef<'_>, content: Content) {
        self.parts.push(divider::failure(&record.id(), &content));
        self.about.error = true;
        self.about.learn(record.at(), content);
    }

    fn results(&mut self, record: RecordRef<'_>, mut content: Content) {
        self.in_items = false;
        if !content.results.is_empty() && !content.parts.is_empty() {
            // Somebody spoke while the tools ran.
            let (id, parts) = (record.id().into_owned(), std::mem::take(&mut content.parts));
            self.parts.push(Part::Steering(SteeringPart { id, parts, ..SteeringPart::default() }));
        }
        self.say(record, content);
    }

    fn keep(&mut self, results: Vec<ToolResult>) {
        for result in results {
            self.results_seen += 1;
            self.results.entry(result.call_id.clone()).or_default().push((self.results_seen, result));
        }
    }

    /// Gives each call its result; results that nobody on the branch asked for follow alone.
    fn finish(&mut self, is_called: &dyn Fn(&str) -> bool) -> Vec<Part> {
        let mut parts = std::mem::take(&mut self.parts);
        for part in &mut parts {
            if let Part::Tool(call) = part
                && call.is_open()
                && let Some(results) = self.results.get_mut(&call.call_id)
                && let Some(result) = take_first_final(results)
            {
                settle(call, result);
            }
        }
        let left = self.results.drain().filter(|(call, _)| !is_called(call)).flat_map(|(_, results)| results);
        let mut left: Vec<(usize, ToolResult)> = left.collect();
        left.sort_by_key(|(order, _)| *order);
        parts.extend(left.into_iter().map(|(_, result)| orphan(result)));
        annotate(std::mem::take(&mut self.notes), &mut parts);
        parts
    }
}

/// Tells each call what the agent noted of its run; of several notes the first counts.
pub(crate) fn annotate(of_runs: Vec<ToolNote>, parts: &mut [Part]) {
    let mut notes: HashMap<String, Map<String, Value>> = HashMap::new();
    for note in of_runs {
        let known = notes.entry(note.call_id).or_default();
        note.about.into_iter().for_each(|(key, value)| _ = known.entry(key).or_insert(value));
    }
    for part in parts {
        if let Part::Tool(call) = part
            && let Some(note) = notes.remove(&call.call_id)
        {
            let metadata = call.call_provider_metadata.get_or_insert_default();
            if let Value::Object(ours) = metadata.entry("scrollback").or_insert_with(|| Map::new().into()) {
                note.into_iter().for_each(|(key, value)| _ = ours.entry(key).or_insert(value));
            }
        }
    }
}

/// The first final result counts, of preliminary ones the last. Those before it are used up.
pub(crate) fn take_first_final(results: &mut Vec<(usize, ToolResult)>) -> Option<ToolResult> {
    let last = results.len().checked_sub(1)?;
    let at = results.iter().position(|(_, result)| !result.preliminary).unwrap_or(last);
    results.drain(..=at).next_back().map(|(_, result)| result)
}

/// The same for a format that keeps a result in its call: what was said of a denial is its reason, or stands beside it.
pub(crate) fn settle_in_turn(call: &mut ToolPart, mut result: ToolResult) {
    if let Outcome::Denied(reason) = &mut result.outcome {
        let has_reason = reason.as_ref().is_some_and(|reason| !reason.is_empty());
        match &result.output {
            Value::Null => {}
            Value::String(words) if words.is_empty() || reason.as_ref() == Some(words) => {}
            Value::String(words) if !has_reason => *reason = Some(words.clone()),
            output => _ = result.about.insert("output".to_owned(), output.clone()),
        }
    }
    settle(call, result);
}

/// Sets a call to what its result says.
pub(crate) fn settle(call: &mut ToolPart, result: ToolResult) {
    let mut ours = result.about;
    if let Some(duration) = result.duration_ms {
        ours.insert("durationMs".to_owned(), duration.into());
    }
    let asked = match &call.state {
        ToolState::ApprovalRequested { approval, .. }
        | ToolState::ApprovalResponded { approval, .. }
        | ToolState::OutputAvailable { approval: Some(approval), .. } => Some(approval.clone()),
        _ => None,
    };
    let input = call.input().cloned().unwrap_or_default();
    call.state = match result.outcome {
        Outcome::Done => ToolState::OutputAvailable {
            input,
            output: Some(result.output),
            preliminary: result.preliminary.then_some(true),
            approval: asked.filter(|approval| approval.approved == Some(true)),
        },
        Outcome::Failed(error_text) => {
            if !result.output.is_null() && result.output != Value::String(String::new()) && result.output != error_text
            {
                ours.insert("output".to_owned(), result.output);
            }
            let approval = asked.filter(|approval| approval.approved == Some(true));
            ToolState::OutputError { input: Some(input), raw_input: None, error_text, approval }
        }
        Outcome::Denied(reason) => {
            let id = asked.as_ref().map_or_else(|| call.call_id.clone(), |approval| approval.id.clone());
            let reason = reason.or(asked.and_then(|approval| approval.reason));
            let approval = Approval { id, approved: Some(false), reason, ..Approval::default() };
            ToolState::OutputDenied { input, approval }
        }
    };
    if !ours.is_empty() {
        let metadata = call.call_provider_metadata.get_or_insert_default();
        metadata.insert("scrollback".to_owned(), ours.into());
    }
}

/// A result whose call is nowhere on the branch, shown as a call with nothing known about it.
pub(crate) fn orphan(result: ToolResult) -> Part {
    let name = result.name.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut call = ToolPart::dynamic(name, result.call_id.clone(), ToolState::called(Value::Null));
    settle(&mut call, result);
    let metadata = call.call_provider_metadata.get_or_insert_default();
    if let Value::Object(ours) = metadata.entry("scrollback").or_insert_with(|| Map::new().into()) {
        ours.insert("orphan".to_owned(), true.into());
    }
    call.into()
}

/// A record holds what was said, not what is being said.
pub(crate) fn done(part: Part) -> Part {
    match part {
        Part::Text(mut text) => {
            text.state.get_or_insert(StreamState::Done);
            Part::Text(text)
        }
        Part::Reasoning(mut reasoning) => {
            reasoning.state.get_or_insert(StreamState::Done);
            Part::Reasoning(reasoning)
        }
        part => part,
    }
}

/// What `metadata` tells of a message that is one record; `content` gives up what it says about itself.
pub(crate) fn metadata(at: jiff::Timestamp, content: Content) -> Map<String, Value> {
    let mut about = AboutMessage { error: content.error.is_some(), ..AboutMessage::default() };
    about.learn(Some(at), content);
    about.metadata()
}

/// What `metadata` tells of a message.
#[derive(Default)]
struct AboutMessage {
    timestamp: Option<jiff::Timestamp>,
    model: Option<String>,
    /// One for each answer.
    usages: Vec<Usage>,
    cwd: Option<String>,
    git_branch: Option<String>,
    todos: Option<Value>,
    thinking: Option<Value>,
    sender: Option<String>,
    error: bool,
    /// What the agent itself says about it. It goes before what we gathered.
    own: Map<String, Value>,
}

impl AboutMessage {
    fn learn(&mut self, at: Option<jiff::Timestamp>, content: Content) {
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
    fn plan(&mut self, todos: Option<Vec<Todo>>) {
        self.todos = todos.and_then(|todos| serde_json::to_value(todos).ok()).or(self.todos.take());
    }

    fn metadata(&self) -> Map<String, Value> {
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
