//! The texts of a session that can be searched: each part of each record, on every branch, and where it stands.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde_json::Value;

use crate::model::error::Result;
use crate::model::message::{Part, ToolPart};
use crate::model::named_enum;
use crate::model::record::{Body, Content, Display, Kind, Outcome, RecordId, Title, ToolResult};
use crate::session::tree::NodeIx;
use crate::session::{RecordRef, Session};
use crate::view::conversation::Conversation;
use crate::view::describe;
use crate::view::tool_view::{Changes, PATHS, ToolView, attached_name, result_text, text};

named_enum! {
    /// Whose text it is.
    TextRole {
        /// A person's.
        User = "user",
        /// The model's: an answer, a thought, the input of a tool.
        Assistant = "assistant",
        /// A tool's output.
        Tool = "tool",
        /// The agent's: notices, context, summaries.
        System = "system",
    }
}

/// One text of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchText {
    /// Its number in the record, which no other text of it has: first the parts, then the results of tools, then what people see instead
    /// of several parts.
    pub part: usize,
    /// Whose text it is.
    pub role: TextRole,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The files that the call names, or that are attached.
    pub files: Vec<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Whether a tool failed, or the agent reports a failure.
    pub is_error: bool,
    /// Whether it is a thought of the model.
    pub is_thinking: bool,
    /// The text.
    pub text: String,
}

/// Where a record stands in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// It is on no branch that the conversation continues from.
    pub is_dead: bool,
    /// It belongs to a side conversation, or the session is a sub-agent's.
    pub is_sidechain: bool,
    /// The model no longer sees it: a compaction has replaced it.
    pub is_compacted: bool,
}

/// The searchable texts of a session.
pub struct SearchTexts<'s> {
    session: &'s Session,
    /// What is known of each record, in file order.
    records: Vec<RecordStanding>,
    /// The calls of the records that were read last: results follow their calls.
    calls: HashMap<String, CallFacts>,
    is_sub_agent: bool,
}

#[derive(Clone, Copy, Default)]
struct RecordStanding {
    is_on_branch: bool,
    is_compacted: bool,
    /// The first record of its message.
    message: NodeIx,
}

#[derive(Clone)]
struct CallFacts {
    tool: String,
    files: Vec<String>,
}

/// With more calls than this, those of all records but the last are forgotten: a result whose call is forgotten reads its record again.
const CALLS_KEPT: usize = if cfg!(test) { 64 } else { 64 * 1024 };

impl<'s> SearchTexts<'s> {
    /// Finds out where each record stands. Bodies are read when a record is asked for.
    pub fn new(session: &'s Session) -> SearchTexts<'s> {
        let mut records = vec![RecordStanding::default(); session.records().len()];
        for record in session.records() {
            // A parent that stands later in the file is not known yet: then the record is a message of its own.
            let parent = record.parent().filter(|parent| parent.node < record.node && !begins_message(record));
            records[record.order()].message = parent
                .filter(|parent| !begins_message(*parent))
                .map_or(record.node, |parent| records[parent.order()].message);
        }
        if let Some(head) = session.head() {
            let branch = session.branch(head);
            let compaction = branch.records.iter().rposition(|record| record.kind() == Kind::Compaction);
            for (at, record) in branch.records.iter().enumerate() {
                let standing = &mut records[record.order()];
                (standing.is_on_branch, standing.is_compacted) = (true, compaction.is_some_and(|last| at < last));
            }
            let conversation = Conversation::new(&branch);
            for message in 0..conversation.len() {
                let first = conversation.first(message).node;
                conversation.records(message).for_each(|record| records[record.order()].message = first);
            }
        }
        // How a call ended is part of the call's message.
        for record in session.records() {
            if let Some(caller) = record.late_caller() {
                let caller = records[caller.order()];
                records[record.order()] = caller;
            }
        }
        let is_sub_agent = session.parent_session().is_some();
        SearchTexts { session, records, calls: HashMap::new(), is_sub_agent }
    }

    /// Where a record stands.
    pub fn standing(&self, record: RecordRef<'_>) -> Standing {
        let known = self.records.get(record.order()).copied().unwrap_or_default();
        let is_sidechain = self.is_sub_agent || record.is_sidechain();
        Standing {
            is_dead: !known.is_on_branch && !record.is_sidechain() && !record.is_side(),
            is_sidechain,
            is_compacted: known.is_compacted,
        }
    }

    /// The message that a record belongs to, by its first record.
    pub fn message(&self, record: RecordRef<'_>) -> RecordId {
        let first = self.records.get(record.order()).map_or(record.node, |known| known.message);
        RecordId(self.session.at(first).id().into_owned())
    }

    /// The record that a title is shown with: the one that has it, if a conversation leads there, or else the first message.
    pub fn titled(&self, wanted: &str) -> Option<RecordRef<'s>> {
        let session = self.session;
        let first_message = |head: RecordRef<'s>| {
            let branch = session.branch(head);
            let conversation = Conversation::new(&branch);
            (!conversation.is_empty()).then(|| session.at(conversation.first(0).node))
        };
        let has_title = |record: &RecordRef<'s>| {
            let body = (record.kind() == Kind::Title).then(|| record.body());
            body.is_some_and(
                |body| matches!(body, Ok(Body::Title(Title { text, .. })) if describe::title(&text) == wanted),
            )
        };
        let titled = session.records().rev().find(has_title).filter(|record| first_message(*record).is_some());
        titled.or_else(|| session.head().and_then(first_message)).or_else(|| session.records().next())
    }

    /// The texts of a record.
    pub fn of(&mut self, record: RecordRef<'s>) -> Result<Vec<SearchText>> {
        if let Some(caller) = record.late_caller() {
            return self.late(record, caller);
        }
        let body = record.body()?;
        let mut texts = Vec::new();
        match &body {
            Body::User(content) => self.content(record, content, TextRole::User, &mut texts)?,
            Body::Assistant(content) => self.content(record, content, TextRole::Assistant, &mut texts)?,
            Body::ToolResult(content) => self.content(record, content, TextRole::Tool, &mut texts)?,
            Body::System(content) | Body::Attachment(content) => {
                self.content(record, content, TextRole::System, &mut texts)?;
            }
            Body::Compaction(compaction) => {
                texts.extend(compaction.summary.as_deref().map(|summary| plain(0, TextRole::System, summary)));
            }
            Body::Rewind(rewind) => {
                texts.extend(rewind.reason.as_deref().map(|reason| plain(0, TextRole::System, reason)));
            }
            Body::Title(_) | Body::Snapshot(_) | Body::Restore(_) | Body::Header(_) | Body::Other(_) => {}
        }
        texts.retain(|text| !text.text.trim().is_empty());
        Ok(texts)
    }

    /// How a call ended after its result: a text of its own, because a result that is known stays as it is.
    fn late(&mut self, record: RecordRef<'s>, caller: RecordRef<'s>) -> Result<Vec<SearchText>> {
        let Some(late) = record.late_result()? else { return Ok(Vec::new()) };
        let facts = self.call_facts(&late.call_id, std::iter::once(caller))?;
        let text = output(0, &late, facts);
        Ok(Vec::from_iter(Some(text).filter(|text| !text.text.trim().is_empty())))
    }

    fn content(
        &mut self,
        record: RecordRef<'s>,
        content: &Content,
        role: TextRole,
        texts: &mut Vec<SearchText>,
    ) -> Result<()> {
        self.remember_calls(content);
        let is_error = content.error.is_some() || record.is_failure();
        let speech =
            |part: usize, text: &str| SearchText { model: content.model.clone(), is_error, ..plain(part, role, text) };
        let (parts, results) = (content.parts.len(), content.results.len());
        // What people see of it, and what they typed. It stands for an only part.
        let display = content.display.as_ref().map(displayed);
        if let Some(display) = &display {
            texts.push(speech(if parts > 1 { parts + results } else { 0 }, display));
        }
        // A part that people see is the same text.
        let is_seen = |text: &str| display.as_ref().is_some_and(|display| parts == 1 || display.contains(text.trim()));
        for (at, part) in content.parts.iter().enumerate() {
            match part {
                Part::Text(text) if is_seen(&text.text) => {}
                Part::Text(text) => texts.push(speech(at, &text.text)),
                Part::Reasoning(thought) => {
                    texts.push(SearchText { is_thinking: true, ..speech(at, &thought.text) });
                }
                Part::File(_) => {
                    let name = attached_name(&content.parts, at);
                    texts.push(SearchText { files: vec![name.to_owned()], ..speech(at, name) });
                }
                Part::SourceUrl(source) => {
                    let text = format!("{}\n{}", source.title.as_deref().unwrap_or_default(), source.url);
                    texts.push(speech(at, &text));
                }
                Part::Tool(call) => {
                    let CallFacts { tool, files } = CallFacts::of(call);
                    let input = call.input().map(strings).unwrap_or_default();
                    texts.push(SearchText { tool: Some(tool), files, ..speech(at, &input) });
                }
                _ => {}
            }
        }
        let session = self.session;
        for (at, result) in content.results.iter().enumerate() {
            let part = parts + at;
            let callers = session.derived.keys.callers.get(&record.node).into_iter().flatten();
            let facts = self.call_facts(&result.call_id, callers.map(|caller| session.at(*caller)))?;
            texts.push(output(part, result, facts));
        }
        Ok(())
    }

    /// All calls of a record at once: however many it makes, none of its results has to read it again.
    fn remember_calls(&mut self, content: &Content) {
        let mut calls = content.parts.iter().filter_map(Part::as_call).peekable();
        if calls.peek().is_some() && self.calls.len() >= CALLS_KEPT {
            self.calls.clear();
        }
        self.calls.extend(calls.map(|call| (call.call_id.clone(), CallFacts::of(call))));
    }

    /// What is known of a call that one of these records made.
    fn call_facts(&mut self, call_id: &str, callers: impl Iterator<Item = RecordRef<'s>>) -> Result<Option<CallFacts>> {
        for caller in callers {
            if self.calls.contains_key(call_id) {
                break;
            }
            let body = caller.body()?;
            body.content().into_iter().for_each(|content| self.remember_calls(content));
        }
        Ok(self.calls.get(call_id).cloned())
    }
}

impl CallFacts {
    fn of(call: &ToolPart) -> CallFacts {
        CallFacts { tool: call.name.clone(), files: named_files(call) }
    }
}

/// The output of a tool.
fn output(part: usize, result: &ToolResult, call: Option<CallFacts>) -> SearchText {
    SearchText {
        tool: result.name.clone().or_else(|| call.as_ref().map(|call| call.tool.clone())),
        files: call.map(|call| call.files).unwrap_or_default(),
        is_error: result.outcome != Outcome::Done,
        ..plain(part, TextRole::Tool, &output_text(result))
    }
}

/// Whether a record is the first of a message, whatever came before it.
fn begins_message(record: RecordRef<'_>) -> bool {
    match record.kind() {
        Kind::User | Kind::Header => true,
        Kind::System => !record.is_failure(),
        Kind::Assistant => record.is_message(),
        _ => false,
    }
}

fn plain(part: usize, role: TextRole, text: &str) -> SearchText {
    let text = text.to_owned();
    SearchText { part, role, tool: None, files: Vec::new(), model: None, is_error: false, is_thinking: false, text }
}

/// Everything that a display shows.
fn displayed(display: &Display) -> Cow<'_, str> {
    match display {
        Display::Shell { text, output, .. } => format!("{text}\n{output}").into(),
        Display::Output { text, errors } => format!("{text}\n{errors}").into(),
        display => display.text().into(),
    }
}

fn output_text(result: &ToolResult) -> Cow<'_, str> {
    match &result.outcome {
        Outcome::Failed(why) if !why.is_empty() => why.as_str().into(),
        Outcome::Denied(Some(why)) if !why.is_empty() => why.as_str().into(),
        Outcome::Done | Outcome::Failed(_) | Outcome::Denied(_) => result_text(&result.output),
    }
}

/// The files that a call names.
fn named_files(call: &ToolPart) -> Vec<String> {
    if let Some(path) = call.input().and_then(Value::as_object).and_then(|input| text(input, PATHS)) {
        return vec![path.to_owned()];
    }
    match ToolView::of(call) {
        ToolView::Change(Changes { files, .. }) => files.iter().map(|file| file.path.to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// Every string of a value, one per line.
fn strings(value: &Value) -> String {
    let mut text = String::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(string) => {
                text.push_str(string);
                text.push('\n');
            }
            Value::Array(items) => left.extend(items.iter().rev()),
            Value::Object(fields) => left.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::dialect::ClaudeCode;
    use crate::session::ReadOptions;

    #[test]
    fn a_record_is_read_once_for_all_results_of_its_calls() {
        let calls = CALLS_KEPT + 10;
        let list = |item: fn(usize) -> String| (0..calls).map(item).collect::<Vec<_>>().join(",");
        let log = format!(
            "{{\"type\":\"assistant\",\"uuid\":\"a\",\"sessionId\":\"s\",\"message\":{{\"role\":\"assistant\",\"id\":\"m\",\"content\":[{}]}}}}\n\
             {{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"message\":{{\"role\":\"user\",\"content\":[{}]}}}}\n",
            list(|at| format!(r#"{{"type":"tool_use","id":"c{at}","name":"t","input":{{}}}}"#)),
            list(|at| format!(r#"{{"type":"tool_result","tool_use_id":"c{at}","content":"x"}}"#)),
        );
        let session = Session::from_bytes(&ClaudeCode, log.into_bytes(), &ReadOptions::plain(Timestamp::UNIX_EPOCH));
        let mut texts = SearchTexts::new(&session);
        let results = session.find("b").unwrap();
        let call = texts.call_facts("c7", std::iter::once(session.find("a").unwrap())).unwrap();
        assert_eq!(call.map(|call| call.tool).as_deref(), Some("t"));
        assert_eq!(texts.calls.len(), calls, "the record is not read again for the others");
        let found = texts.of(results).unwrap();
        assert!(found.len() == calls && found.iter().all(|text| text.tool.as_deref() == Some("t")));
        assert_eq!(texts.calls.len(), calls, "a record without calls forgets none");
    }
}
