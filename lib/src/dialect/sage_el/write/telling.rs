//! What a record says, told line by line: a line for each response, and for whoever speaks in between.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::{call, tells_session};
use crate::dialect::resolved_turn::{closed, lose_surroundings};
use crate::dialect::writer::{Line, Names, NewRecord, Response, Written};
use crate::model::loss::Lost;
use crate::model::message::{FilePart, Part, SteeringPart, TextPart};
use crate::model::record::{Content, Kind, RecordId, Usage};
use crate::model::wire::in_a_room;

/// A record on its way to lines: what is told so far, and the response that is being put together.
pub(super) struct Telling<'a> {
    role: &'static str,
    content: &'a Content,
    told: Vec<Told>,
    texts: Vec<&'a str>,
    calls: Vec<Value>,
    /// The ids of all calls of the record.
    ids: HashSet<String>,
    /// What stands for the text where there is none.
    instead: Vec<String>,
    /// How many responses have begun.
    begun: usize,
    pub(super) written: Written,
}

/// One line, as far as somebody says something in it.
struct Told {
    role: &'static str,
    content: String,
    calls: Vec<Value>,
    /// Which response it is, or was said after.
    response: usize,
}

impl<'a> Telling<'a> {
    pub(super) fn of(role: &'static str, content: &'a Content) -> Telling<'a> {
        let (told, texts, calls, instead) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (ids, written) = (HashSet::new(), Written::default());
        Telling { role, content, told, texts, calls, ids, instead, begun: 0, written }
    }

    pub(super) fn finish(mut self, draft: &NewRecord<'_>) -> Written {
        let closed = closed(self.content, &mut self.written);
        self.strays(&closed.strays, draft);
        // Texts are borrowed from the record; only the calls of `closed` differ from its own.
        for (part, own) in closed.parts.iter().zip(&self.content.parts) {
            let Part::Tool(tool) = part else {
                self.part(own);
                continue;
            };
            self.instead.push(format!("calls {}", tool.name));
            let id = self.unique(tool.call_id.clone(), draft);
            self.calls.push(call::value(tool, id, &mut self.written));
        }
        if let Some(kind) = &self.content.error {
            self.instead.push(format!("error {kind}"));
        }
        self.end_response(self.role);
        self.name_speaker();
        self.lose_the_rest();
        self.into_lines(draft)
    }

    /// Results of calls that stand elsewhere. A line for them would have a role that sage's rules do not know, so that
    /// each becomes a call with a result, under an id that its own call does not have.
    fn strays(&mut self, strays: &[Part], draft: &NewRecord<'_>) {
        for part in strays {
            let Part::Tool(tool) = part else { continue };
            self.written.losses.renamed(Kind::ToolResult);
            self.instead.push(format!("result of {}", tool.name));
            let id = self.unique(format!("{}-result", tool.call_id), draft);
            self.calls.push(call::value(tool, id, &mut self.written));
        }
        self.end_response("assistant");
    }

    /// The id of a call, unless it is empty or another call of the record has it: its result would be that one's too.
    fn unique(&mut self, id: String, draft: &NewRecord<'_>) -> String {
        if !id.is_empty() && self.ids.insert(id.clone()) {
            return id;
        }
        self.written.losses.synthesised(Lost::CallId);
        (draft.new_id)()
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text(text) => self.text(text),
            Part::StepStart if self.role == "assistant" => {
                self.end_response(self.role);
                self.begun += 1;
            }
            Part::StepStart => {}
            Part::File(file) => self.file(file),
            Part::Steering(steering) => self.steering(steering),
            // Calls were taken with their results.
            Part::Tool(_) => {}
            Part::Reasoning(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Data(_)
            | Part::Other(_) => self.written.losses.dropped(part),
        }
    }

    fn text(&mut self, part: &'a TextPart) {
        let TextPart { text, citations, state: _, provider_metadata, extra } = part;
        if citations.is_some() || provider_metadata.is_some() || !extra.is_empty() {
            self.written.losses.dropped(Lost::PartDetails);
        }
        if text.is_empty() {
            return;
        }
        if !self.calls.is_empty() {
            self.written.losses.renamed(Lost::PartOrder);
        }
        self.texts.push(text);
    }

    fn file(&mut self, file: &FilePart) {
        let what = if file.media_type.starts_with("image") { Lost::Image } else { Lost::File };
        self.written.losses.dropped(what.clone());
        let name = file.filename.as_ref().unwrap_or(&file.media_type);
        self.instead.push(format!("{what} {name}"));
    }

    /// What the person said in between is a line of theirs.
    fn steering(&mut self, steering: &'a SteeringPart) {
        self.written.losses.renamed(Lost::Steering);
        self.end_response(self.role);
        for part in &steering.parts {
            match part {
                Part::Text(text) => self.text(text),
                Part::File(file) => self.file(file),
                Part::Reasoning(_)
                | Part::ReasoningFile(_)
                | Part::SourceUrl(_)
                | Part::SourceDocument(_)
                | Part::Custom(_)
                | Part::Steering(_)
                | Part::StepStart
                | Part::Tool(_)
                | Part::Data(_)
                | Part::Other(_) => self.written.losses.dropped(part),
            }
        }
        self.end_response("user");
    }

    fn end_response(&mut self, role: &'static str) {
        let (texts, calls) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.calls));
        let instead = std::mem::take(&mut self.instead);
        if texts.len() > 1 {
            self.written.losses.renamed(Lost::TextParts);
        }
        let mut content = texts.join("\n\n");
        if content.is_empty() && !instead.is_empty() {
            content = format!("[{}]", instead.join(", "));
            self.written.losses.synthesised(Lost::Text);
        }
        if !content.is_empty() {
            self.told.push(Told { role, content, calls, response: self.begun.saturating_sub(1) });
        }
    }

    /// In a room the words begin with who says them, as a model is told.
    fn name_speaker(&mut self) {
        let Some(sender) = self.content.sender.as_deref() else { return };
        let first = self.told.iter_mut().find(|told| told.role == self.role);
        match (in_a_room(Some(sender)), first) {
            (Some(name), Some(first)) => {
                first.content.insert_str(0, &name);
                self.written.losses.renamed(Lost::Sender);
            }
            _ => self.written.losses.dropped(Lost::Sender),
        }
    }

    /// What a line has no field for.
    fn lose_the_rest(&mut self) {
        let Content { todos, thinking, metadata, usage, error, .. } = self.content;
        let lost = [
            (Lost::Todos, todos.is_some()),
            (Lost::ThinkingMode, thinking.is_some()),
            (Lost::Metadata, !metadata.is_empty()),
            (Lost::ReasoningTokens, usage.is_some_and(|usage| usage.reasoning.is_some())),
            (Lost::ErrorKind, error.is_some()),
            (Lost::Usage, self.told.is_empty() && usage.is_some()),
            // Nothing that the rules let stand.
            (Lost::EmptyMessage, self.told.is_empty()),
        ];
        for (what, _) in lost.into_iter().filter(|(_, is_lost)| *is_lost) {
            self.written.losses.dropped(what);
        }
        lose_surroundings(self.content, &mut self.written);
    }

    /// The record's id is that of the first line of its own role.
    fn into_lines(self, draft: &NewRecord<'_>) -> Written {
        let costs = self.costs(draft);
        let mut written = self.written;
        let own = self.told.iter().position(|told| told.role == self.role).unwrap_or(0);
        for (at, (told, usage)) in self.told.into_iter().zip(costs).enumerate() {
            let id = if at == own { draft.id.clone() } else { RecordId((draft.new_id)()) };
            let of_model = (told.role == self.role).then_some(&self.content.model);
            let response = match draft.responses.get(told.response) {
                Some(response) => Response { model: of_model.and(response.model.clone()), at: response.at, usage },
                None => Response { model: of_model.cloned().flatten(), at: draft.at, usage },
            };
            let value = value(draft, &id, told, self.content, response);
            written.lines.push(Line { value, names: Names::Link(id) });
        }
        written
    }

    /// What each line tells of the costs: its response's, and those of responses that no line tells of.
    fn costs(&self, draft: &NewRecord<'_>) -> Vec<Option<Usage>> {
        let mut costs = vec![None; self.told.len()];
        let of_all = self.content.usage.map(|usage| (usize::MAX, usage)).filter(|_| draft.responses.is_empty());
        let of_each = draft.responses.iter().enumerate().filter_map(|(at, response)| Some((at, response.usage?)));
        for (response, usage) in of_each.chain(of_all) {
            let is_own = |told: &Told| told.role == self.role && told.response <= response;
            let at = self.told.iter().rposition(is_own).unwrap_or(0);
            if let Some(cost) = costs.get_mut(at) {
                cost.get_or_insert_with(Usage::default).add(usage);
            }
        }
        costs
    }
}

fn value(draft: &NewRecord<'_>, id: &RecordId, told: Told, said: &Content, response: Response) -> Value {
    let mut line = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            line.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty()).map(Value::String);
    // A token is four characters, more or less.
    let estimated = told.content.chars().count().div_ceil(4);
    put("role", Some(told.role.into()));
    put("content", Some(told.content.into()));
    put("timestamp", Some(response.at.to_string().into()));
    put("uuid", Some(id.as_str().into()));
    put("session_id", tells_session(draft.session).then(|| draft.session.as_str().into()));
    put("tool_calls", Some(told.calls).filter(|calls| !calls.is_empty()).map(Value::Array));
    put("tokens", (told.role == "assistant").then(|| json!({"estimated": estimated})));
    put("usage", response.usage.map(tokens).filter(|usage| !usage.is_empty()).map(Value::Object));
    put("model", text(&response.model));
    put("cwd", text(&said.context.cwd));
    put("gitBranch", text(&said.context.git_branch));
    put("version", Some(draft.version).filter(|version| !version.is_empty()).map(Value::from));
    Value::Object(line)
}

fn tokens(usage: Usage) -> Map<String, Value> {
    let named = [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_creation_input_tokens", usage.cache_write),
    ];
    named.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into()))).collect()
}
