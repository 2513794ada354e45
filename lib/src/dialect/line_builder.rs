//! Builds the lines of one record of a tree, each the child of the line before it, for the agents whose records name
//! their parents by `uuid`; and what all writers share.

use serde_json::{Map, Value, json};

use crate::dialect::writer::{Adoption, Line, Names, NewRecord, Written};
use crate::model::divider;
use crate::model::json;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, ToolPart, ToolState};
use crate::model::record::{Content, RecordId, ToolResult};
use crate::model::wire::{name_sender, own_result};

/// The fields of a line or of an object in it.
pub(crate) type Fields = Map<String, Value>;

/// Adds fields to a JSON object.
pub(crate) trait Put {
    fn put(&mut self, key: &str, value: impl Into<Value>);

    fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Adds a text, unless it is empty.
    fn put_text(&mut self, key: &str, text: Option<&str>) {
        self.put_some(key, text.filter(|text| !text.is_empty()));
    }

    /// Adds the known ones of several numbers.
    fn put_counts<const N: usize>(&mut self, counts: [(&str, Option<u64>); N]) {
        counts.into_iter().for_each(|(key, count)| self.put_some(key, count));
    }
}

impl Put for Fields {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.insert(key.to_owned(), value.into());
    }
}

/// An API's message. Its content may be most of a file, so it is moved: `json!` copies what it is given.
pub(crate) fn message(role: &str, key: &str, content: Value) -> Fields {
    let mut message = Fields::new();
    message.put("role", role);
    message.put(key, content);
    message
}

/// The lines of one record while they are collected, without the fields that every line has.
#[derive(Default)]
pub(crate) struct Chain {
    lines: Vec<(Place, Fields)>,
    pub(crate) losses: Losses,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The record, or a fragment of it.
    Own,
    /// A further record that belongs to it.
    Follows,
    /// A line beside the parent chain.
    Side,
}

impl Losses {
    /// The sender: in a room the name is put before the text, as the model sees it.
    pub(crate) fn of_sender(&mut self, content: &Content, pieces: &mut [Value]) {
        let sender = content.sender.as_deref();
        match name_sender(sender, pieces) {
            true => self.renamed(Lost::Sender),
            false => self.dropped_if(sender.is_some(), Lost::Sender),
        }
    }

    /// What the tool calls of an API cannot hold; at most the result of a call shows its approval.
    pub(crate) fn of_call(&mut self, call: &ToolPart) {
        let details = [&call.tool_metadata, &call.result_provider_metadata].into_iter().any(Option::is_some);
        self.dropped_if(details || call.title.is_some() || !call.extra.is_empty(), Lost::CallDetails);
        self.dropped_if(call.is_open() && call.approval().is_some(), Lost::Approval);
        self.renamed_if(call.provider_executed == Some(true), Lost::ProviderCall);
        let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
        let is_other = |input: &Value| !json::is_object(input) && !input.is_null();
        self.renamed_if(call.input().or(raw).is_some_and(is_other), Lost::ToolInput);
    }

    /// A file whose content the format cannot hold.
    pub(crate) fn of_file(&mut self, file: &FilePart) {
        self.dropped(if file.media_type.starts_with("image") { Lost::Image } else { Lost::File });
    }
}

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line of it can be a parent.
    pub(crate) fn has_links(&self) -> bool {
        self.lines.iter().any(|(place, _)| *place != Place::Side)
    }

    pub(crate) fn own(&mut self, fields: impl IntoIterator<Item = Fields>) {
        self.lines.extend(fields.into_iter().map(|fields| (Place::Own, fields)));
    }

    pub(crate) fn follows(&mut self, fields: impl IntoIterator<Item = Fields>) {
        self.lines.extend(fields.into_iter().map(|fields| (Place::Follows, fields)));
    }

    pub(crate) fn side(&mut self, fields: Value) {
        self.lines.push((Place::Side, self::fields(fields)));
    }

    /// The collected fields and losses.
    pub(crate) fn into_fields(self) -> (Vec<Fields>, Losses) {
        (self.lines.into_iter().map(|(_, fields)| fields).collect(), self.losses)
    }

    /// Links the lines; `envelope` adds the fields that every line has. The last line of the record itself gets the
    /// record's id: its children come after all of it.
    pub(crate) fn finish(self, draft: &NewRecord<'_>, envelope: fn(&NewRecord<'_>, Fields) -> Value) -> Written {
        let own = self.lines.iter().rposition(|(place, _)| *place == Place::Own);
        let mut parent = draft.parent.cloned();
        let mut lines = Vec::new();
        for (at, (place, fields)) in self.lines.into_iter().enumerate() {
            if place == Place::Side {
                lines.push(Line { value: fields.into(), names: Names::Side });
                continue;
            }
            let id = if own == Some(at) { draft.id.clone() } else { RecordId((draft.new_id)()) };
            let value = envelope(&NewRecord { id: &id, parent: parent.as_ref(), ..*draft }, fields);
            lines.push(Line { value, names: Names::Link(id.clone()) });
            parent = Some(id);
        }
        Written { lines, losses: self.losses }
    }
}

/// The responses of the model in an assistant body: most bodies hold one, or a fragment of one.
pub(crate) fn responses(content: &Content) -> impl Iterator<Item = &[Part]> {
    content.parts.split(|part| matches!(part, Part::StepStart)).filter(|parts| !parts.is_empty())
}

/// The results that are stored in their calls.
pub(crate) fn stored_results(parts: &[Part]) -> impl Iterator<Item = ToolResult> {
    parts.iter().filter_map(|part| match part {
        Part::Tool(call) => {
            own_result(call, &call.call_id).map(|result| ToolResult { name: Some(call.name.clone()), ..result })
        }
        _ => None,
    })
}

/// The texts among some parts, and those of failures, one per line; all other parts are lost.
pub(crate) fn joined_text(parts: &[Part], losses: &mut Losses) -> String {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.text.as_str()),
            Part::StepStart => {}
            other => match divider::text_of_failure(other) {
                Some(text) => {
                    losses.renamed(other);
                    texts.push(text);
                }
                None => losses.dropped(other),
            },
        }
    }
    texts.join("\n")
}

/// Gives a line with an id another parent, and names the session and record that it comes from.
pub(crate) fn adopt_line(line: &mut Fields, parent_key: &str, adoption: &Adoption<'_>) {
    if line.get("uuid").is_some_and(Value::is_string) {
        line.put(parent_key, json!(adoption.parent));
        let (session, record) = adoption.from;
        line.put("forkedFrom", json!({"sessionId": session, "messageUuid": record}));
    }
}

/// The fields of a JSON object.
pub(crate) fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}
