//! Tool calls in a stream of chunks: their arguments, approvals and results.

use std::collections::HashMap;
use std::hash::BuildHasher;

use scrollback::model::{Approval, Outcome, ToolKind, ToolPart, ToolResult, ToolState};
use scrollback::write::Delta;
use serde_json::{Map, Value};

use super::super::fields::Fields;
use super::super::{Op, Parsed, Refused};
use super::{Stream, without_start};

/// A tool call so far.
#[derive(Clone, Default)]
pub(super) struct Call {
    /// Counts the calls in the order in which they began.
    pub(super) number: u64,
    pub(super) name: Option<String>,
    /// Its arguments so far.
    pub(super) input_text: String,
    pub(super) part: Option<ToolPart>,
    /// A hash of the last result, to recognize a repeated one without keeping it.
    pub(super) result: Option<u64>,
    /// Its answer is not complete.
    pub(super) in_answer: bool,
}

impl Call {
    /// Whether it has begun and its arguments are not complete.
    pub(super) fn is_unfinished(&self) -> bool {
        self.part.is_none() && self.name.is_some()
    }
}

/// The calls of a message by their ids, and how each was before the last line.
#[derive(Default)]
pub(super) struct Calls {
    by_id: HashMap<String, Call>,
    /// `None` for a call that the line began.
    changed: HashMap<String, Option<Call>>,
    /// The call whose arguments the line continued, and their length before: they are too long to be copied for each piece.
    continued: Option<(String, usize)>,
}

impl Calls {
    /// Keeps the changes of the last line.
    pub(super) fn keep(&mut self) {
        self.changed.clear();
        self.continued = None;
    }

    /// Undoes the changes of the last line.
    pub(super) fn undo(&mut self) {
        if let Some((id, length)) = self.continued.take()
            && let Some(call) = self.by_id.get_mut(&id)
        {
            call.input_text.truncate(length);
        }
        for (id, before) in std::mem::take(&mut self.changed) {
            match before {
                Some(call) => self.by_id.insert(id, call),
                None => self.by_id.remove(&id),
            };
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Call> {
        self.by_id.get(id)
    }

    /// A call, to change it; a new one if there is none.
    pub(super) fn change(&mut self, id: &str) -> &mut Call {
        let before = self.by_id.get(id);
        self.changed.entry(id.to_owned()).or_insert_with(|| before.cloned());
        self.by_id.entry(id.to_owned()).or_default()
    }

    /// Continues the arguments of a call. Returns false if there is no such call.
    pub(super) fn add_input(&mut self, id: &str, more: &str) -> bool {
        let Some(call) = self.by_id.get_mut(id) else { return false };
        self.continued = Some((id.to_owned(), call.input_text.len()));
        call.input_text.push_str(more);
        true
    }

    pub(super) fn has_unfinished(&self) -> bool {
        self.by_id.values().any(Call::is_unfinished)
    }

    /// The calls whose arguments are not complete, in the order in which they began.
    pub(super) fn unfinished(&self) -> Vec<String> {
        let mut unfinished: Vec<_> = self.by_id.iter().filter(|(_, call)| call.is_unfinished()).collect();
        unfinished.sort_by_key(|(_, call)| call.number);
        unfinished.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Forgets the calls of an answer that is discarded.
    pub(super) fn remove_unfinished(&mut self) {
        let is_discarded = |call: &Call| call.in_answer || call.is_unfinished();
        let ids: Vec<String> =
            self.by_id.iter().filter(|(_, call)| is_discarded(call)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            let call = self.by_id.remove(&id);
            self.changed.entry(id).or_insert(call);
        }
    }

    /// The answer of all calls is complete.
    pub(super) fn end_answer(&mut self) {
        let ids: Vec<String> = self.by_id.iter().filter(|(_, call)| call.in_answer).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.change(id).in_answer = false);
    }
}

impl Stream {
    pub(super) fn call(&mut self, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let (id, name) = (fields.needed(&["toolCallId"])?, fields.text(&["toolName"])?);
        let known = self.calls.change(&id);
        let name = name.or_else(|| known.name.clone()).ok_or_else(|| Refused::because("toolName is missing"))?;
        let input = fields.any(&["input"]).unwrap_or_default();
        let part = ToolPart {
            kind: if fields.flag(&["dynamic"])? == Some(true) { ToolKind::Dynamic } else { ToolKind::Static },
            title: fields.text(&["title"])?,
            provider_executed: fields.flag(&["providerExecuted"])?,
            call_provider_metadata: fields.object(&["providerMetadata"])?,
            tool_metadata: fields.object(&["toolMetadata"])?,
            ..ToolPart::dynamic(&name, &id, ToolState::called(input))
        };
        known.name = Some(name.clone());
        known.input_text.clear();
        let is_known = known.part.as_ref().is_some_and(|before| before.input() == part.input());
        if !is_known {
            self.push_call(&id, part, parsed);
        }
        if let Some(text) = fields.text(&["errorText"])? {
            let result = result_of(&id, Some(name), text.as_str().into(), Outcome::Failed(text.clone()));
            self.push_result(result, parsed);
        }
        Ok(())
    }

    /// Records a call, or a change of it while its answer is not complete.
    fn push_call(&mut self, id: &str, part: ToolPart, parsed: &mut Parsed) {
        let call = self.calls.change(id);
        if call.part.is_some() && !call.in_answer {
            parsed.lose("a change of a call whose answer is complete");
            return;
        }
        (call.part, call.in_answer) = (Some(part.clone()), true);
        self.begin_step(parsed);
        parsed.push(Op::Delta(Delta::Part(part.into())));
    }

    pub(super) fn approval_request(&mut self, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let (question, id) = (fields.needed(&["approvalId"])?, fields.needed(&["toolCallId"])?);
        let approval = Approval {
            id: question.clone(),
            is_automatic: fields.flag(&["isAutomatic"])?,
            request_reason: fields.text(&["reason"])?,
            signature: fields.text(&["signature"])?,
            descriptor: fields.any(&["approvalDescriptor"]),
            input_schema_input: fields.any(&["inputSchemaInput"]),
            ..Approval::default()
        };
        if self.approvals.insert(question.clone(), id.clone()).is_none() {
            self.before.approval = Some(question);
        }
        let mut part = self.part(&id)?;
        let input = part.input().cloned().unwrap_or_default();
        part.state = ToolState::ApprovalRequested { input, approval };
        self.push_call(&id, part, parsed);
        Ok(())
    }

    pub(super) fn approval_response(&mut self, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let question = fields.needed(&["approvalId"])?;
        let approved = fields.flag(&["approved"])?.ok_or_else(|| Refused::because("approved is missing"))?;
        let reason = fields.text(&["reason"])?;
        let Some(id) = self.approvals.get(&question).cloned() else { return Err(without_start(&question)) };
        let mut part = self.part(&id)?;
        let input = part.input().cloned().unwrap_or_default();
        let asked = part.approval().cloned().unwrap_or_default();
        let approval = Approval { id: question, approved: Some(approved), reason, ..asked };
        part.state = ToolState::ApprovalResponded { input, approval };
        self.push_call(&id, part, parsed);
        Ok(())
    }

    fn part(&self, id: &str) -> Result<ToolPart, Refused> {
        self.calls.get(id).and_then(|call| call.part.clone()).ok_or_else(|| without_start(id))
    }

    pub(super) fn result(&mut self, kind: &str, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let id = fields.needed(&["toolCallId"])?;
        let call = self.calls.get(&id);
        let name = call.and_then(|call| call.name.clone());
        let (output, outcome) = match kind {
            "tool-output-available" => (fields.any(&["output"]).unwrap_or_default(), Outcome::Done),
            "tool-output-error" => {
                let text = fields.needed(&["errorText"])?;
                (text.as_str().into(), Outcome::Failed(text))
            }
            _ => {
                let asked = call.and_then(|call| call.part.as_ref()).and_then(ToolPart::approval);
                (Value::Null, Outcome::Denied(asked.and_then(|asked| asked.reason.clone())))
            }
        };
        let preliminary = fields.flag(&["preliminary"])? == Some(true);
        self.push_result(ToolResult { preliminary, ..result_of(&id, name, output, outcome) }, parsed);
        Ok(())
    }

    fn push_result(&mut self, result: ToolResult, parsed: &mut Parsed) {
        let call = self.calls.change(&result.call_id);
        // A stream that is sent again repeats its results.
        let hash = Some(self.hasher.hash_one(format!("{result:?}")));
        if call.result == hash {
            return;
        }
        call.result = hash;
        parsed.push(Op::Result(Box::new(result)));
    }
}

fn result_of(id: &str, name: Option<String>, output: Value, outcome: Outcome) -> ToolResult {
    let about = Map::new();
    ToolResult { call_id: id.to_owned(), name, output, outcome, preliminary: false, duration_ms: None, about }
}
