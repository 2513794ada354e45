//! Writes a message as lines: one for each response, and one for each message of a person in between.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::super::body::{TOKENS, estimated_tokens};
use super::{call, states_session_id};
use crate::dialect::line_builder::Put;
use crate::dialect::resolved_turn::resolve;
use crate::dialect::writer::{Line, Names, NewRecord, Response, Written};
use crate::model::json;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, TextPart};
use crate::model::record::{Content, Kind, RecordId, Usage};
use crate::model::wire::in_a_room;

/// What a line can hold besides parts.
const HELD: [Lost; 7] = [
    Lost::Record(Kind::ToolResult),
    Lost::RunNotes,
    Lost::Model,
    Lost::Usage,
    Lost::Environment,
    Lost::Sender,
    Lost::Error,
];

/// A message while its lines are built: the finished lines, and the response that is being collected.
pub(super) struct MessageWriter<'a> {
    draft: &'a NewRecord<'a>,
    role: &'static str,
    content: &'a Content,
    messages: Vec<LineMessage>,
    texts: Vec<&'a str>,
    calls: Vec<Value>,
    /// The ids of all calls of the record.
    ids: HashSet<String>,
    /// Descriptions of other parts, used if there is no text.
    descriptions: Vec<String>,
    /// The number of responses that have started.
    responses: usize,
    pub(super) losses: Losses,
}

/// The message of one line.
struct LineMessage {
    role: &'static str,
    content: String,
    calls: Vec<Value>,
    /// The response that it is, or that it follows.
    response: usize,
}

impl<'a> MessageWriter<'a> {
    pub(super) fn new(draft: &'a NewRecord<'a>, role: &'static str, content: &'a Content) -> MessageWriter<'a> {
        MessageWriter {
            draft,
            role,
            content,
            messages: Vec::new(),
            texts: Vec::new(),
            calls: Vec::new(),
            ids: HashSet::new(),
            descriptions: Vec::new(),
            responses: 0,
            losses: Losses::default(),
        }
    }

    pub(super) fn finish(mut self) -> Written {
        let turn = resolve(self.content, &mut self.losses);
        // Results of calls in other records. A line for them would have a role that sage's rules do not allow, so each
        // becomes a call with a result, with an id that differs from that of its own call.
        for part in &turn.unmatched {
            let Part::Tool(tool) = part else { continue };
            self.losses.renamed(Kind::ToolResult);
            self.descriptions.push(format!("result of {}", tool.name));
            let id = self.unique_id(format!("{}-result", tool.call_id));
            self.calls.push(call::value(tool, id, &mut self.losses));
        }
        self.end_message("assistant");
        // Texts are borrowed from the record; only the calls of the resolved turn differ from its own.
        for (part, own) in turn.parts.iter().zip(&self.content.parts) {
            let Part::Tool(tool) = part else {
                self.part(own);
                continue;
            };
            self.descriptions.push(format!("calls {}", tool.name));
            let id = self.unique_id(tool.call_id.clone());
            self.calls.push(call::value(tool, id, &mut self.losses));
        }
        self.descriptions.extend(self.content.error.as_ref().map(|kind| format!("error {kind}")));
        self.end_message(self.role);
        self.name_sender();
        let (is_empty, usage) = (self.messages.is_empty(), self.content.usage);
        self.losses.dropped_besides_parts(self.content, &[&HELD[..], &[Lost::Metadata]].concat());
        let held = usize::from(self.holds_estimate());
        self.losses.dropped_if(self.content.metadata.len() > held, Lost::Metadata);
        let has_reasoning = usage.is_some_and(|usage| usage.reasoning.is_some());
        self.losses.dropped_if(has_reasoning, Lost::ReasoningTokens);
        self.losses.dropped_if(self.content.error.is_some(), Lost::ErrorKind);
        self.losses.dropped_if(is_empty && usage.is_some(), Lost::Usage);
        self.losses.dropped_if(is_empty, Lost::EmptyMessage);
        self.into_lines()
    }

    /// The id of a call, or a new one if it is empty or another call of the record has it: both calls would get the same
    /// result.
    fn unique_id(&mut self, id: String) -> String {
        if !id.is_empty() && self.ids.insert(id.clone()) {
            return id;
        }
        self.losses.synthesised(Lost::CallId);
        (self.draft.new_id)()
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text(text) => self.text(text),
            Part::StepStart if self.role == "assistant" => {
                self.end_message(self.role);
                self.responses += 1;
            }
            // Calls are written with their results.
            Part::StepStart | Part::Tool(_) => {}
            Part::File(file) => self.file(file),
            // A message of a person in between is a line of its own.
            Part::Steering(steering) => {
                self.losses.renamed(Lost::Steering);
                self.end_message(self.role);
                for part in &steering.parts {
                    match part {
                        Part::Text(text) => self.text(text),
                        Part::File(file) => self.file(file),
                        other => self.losses.dropped(other),
                    }
                }
                self.end_message("user");
            }
            Part::Reasoning(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Data(_)
            | Part::Other(_) => self.losses.dropped(part),
        }
    }

    fn text(&mut self, part: &'a TextPart) {
        let has_details = part.citations.is_some() || part.provider_metadata.is_some() || !part.extra.is_empty();
        self.losses.dropped_if(has_details, Lost::PartDetails);
        if !part.text.is_empty() {
            self.losses.renamed_if(!self.calls.is_empty(), Lost::PartOrder);
            self.texts.push(&part.text);
        }
    }

    fn file(&mut self, file: &FilePart) {
        self.losses.of_file(file);
        let kind = if file.media_type.starts_with("image") { Lost::Image } else { Lost::File };
        self.descriptions.push(format!("{kind} {}", file.filename.as_ref().unwrap_or(&file.media_type)));
    }

    fn end_message(&mut self, role: &'static str) {
        let (texts, calls) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.calls));
        let descriptions = std::mem::take(&mut self.descriptions);
        self.losses.renamed_if(texts.len() > 1, Lost::TextParts);
        let mut content = texts.join("\n\n");
        if content.is_empty() && !descriptions.is_empty() {
            content = format!("[{}]", descriptions.join(", "));
            self.losses.synthesised(Lost::Text);
        }
        if !content.is_empty() {
            self.messages.push(LineMessage { role, content, calls, response: self.responses.saturating_sub(1) });
        }
    }

    /// In a room the text starts with the name of the sender, as the model sees it.
    fn name_sender(&mut self) {
        let Some(sender) = self.content.sender.as_deref() else { return };
        let first = self.messages.iter_mut().find(|message| message.role == self.role);
        match (in_a_room(Some(sender)), first) {
            (Some(name), Some(first)) => {
                first.content.insert_str(0, &name);
                self.losses.renamed(Lost::Sender);
            }
            _ => self.losses.dropped(Lost::Sender),
        }
    }

    /// The first line with the record's own role gets the record's id.
    fn into_lines(self) -> Written {
        let (draft, usages) = (self.draft, self.usages());
        let own = self.messages.iter().position(|message| message.role == self.role).unwrap_or(0);
        let mut lines = Vec::new();
        let estimate = self.content.metadata.get(TOKENS).filter(|_| self.holds_estimate());
        for (at, (message, usage)) in self.messages.into_iter().zip(usages).enumerate() {
            let id = if at == own { draft.id.clone() } else { RecordId((draft.new_id)()) };
            let model = (message.role == self.role).then_some(&self.content.model);
            let response = match draft.responses.get(message.response) {
                Some(response) => Response { model: model.and(response.model.clone()), at: response.at, usage },
                None => Response { model: model.cloned().flatten(), at: draft.at, usage },
            };
            let value = value(draft, &id, message, self.content, response, estimate);
            lines.push(Line { value, names: Names::Link(id) });
        }
        Written { lines, losses: self.losses }
    }

    /// Whether the only line can have the estimate that the message came with.
    fn holds_estimate(&self) -> bool {
        self.messages.len() == 1 && self.content.metadata.get(TOKENS).is_some_and(json::is_object)
    }

    /// The tokens of each line: those of its response, and of responses without a line.
    fn usages(&self) -> Vec<Option<Usage>> {
        let mut usages = vec![None; self.messages.len()];
        let responses = &self.draft.responses;
        let of_all = self.content.usage.map(|usage| (usize::MAX, usage)).filter(|_| responses.is_empty());
        let of_each = responses.iter().enumerate().filter_map(|(at, response)| Some((at, response.usage?)));
        for (response, usage) in of_each.chain(of_all) {
            let is_own = |message: &LineMessage| message.role == self.role && message.response <= response;
            let at = self.messages.iter().rposition(is_own).unwrap_or(0);
            if let Some(sum) = usages.get_mut(at) {
                sum.get_or_insert_with(Usage::default).add(usage);
            }
        }
        usages
    }
}

fn value(
    draft: &NewRecord<'_>,
    id: &RecordId,
    message: LineMessage,
    content: &Content,
    response: Response,
    estimate: Option<&Value>,
) -> Value {
    let mut line = Map::new();
    let estimated = || json!({"estimated": estimated_tokens(&message.content)});
    let tokens_noted = Some(message.role).filter(|role| *role == "assistant").map(|_| estimated());
    let tokens_noted = estimate.cloned().or(tokens_noted);
    line.put("role", message.role);
    line.put("content", message.content);
    line.put("timestamp", response.at.to_string());
    line.put("uuid", id.as_str());
    line.put_some("session_id", states_session_id(draft.session).then_some(draft.session.as_str()));
    line.put_some("tool_calls", Some(message.calls).filter(|calls| !calls.is_empty()));
    line.put_some(TOKENS, tokens_noted);
    line.put_some("usage", response.usage.map(tokens).filter(|tokens| !tokens.is_empty()));
    line.put_text("model", response.model.as_deref());
    line.put_text("cwd", content.context.cwd.as_deref());
    line.put_text("gitBranch", content.context.git_branch.as_deref());
    line.put_text("version", Some(draft.version));
    line.into()
}

fn tokens(usage: Usage) -> Map<String, Value> {
    let mut tokens = Map::new();
    tokens.put_counts([
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_creation_input_tokens", usage.cache_write),
    ]);
    tokens
}
