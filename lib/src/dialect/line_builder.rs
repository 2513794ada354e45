//! Lines that say one record of a tree: each hangs on the one before it. For dialects whose records name parents by `uuid`.

use serde_json::{Map, Value, json};

use crate::dialect::writer::{Adoption, Line, Names, NewRecord, Written};
use crate::model::divider;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{Part, ToolPart};
use crate::model::record::{Body, Content, Context, RecordId, ToolResult};
use crate::model::wire::{id as plain_id, name_sender, own_result};

/// What a line says, before it is hung up: all fields but those that every line has.
pub(crate) type Fields = Map<String, Value>;

/// The lines of one record in the making.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<(Place, Fields)>,
    pub(crate) losses: Losses,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The record, or a piece of it.
    Own,
    /// What the record brings along; it is another record to the reader.
    Follows,
    /// Nothing hangs on it.
    Aside,
}

/// Where a line hangs.
pub(crate) struct Hung<'d> {
    pub(crate) draft: &'d NewRecord<'d>,
    pub(crate) id: &'d RecordId,
    pub(crate) parent: Option<&'d RecordId>,
}

impl<'d> Hung<'d> {
    /// Where it was said: what the record itself tells of that, else what is known besides.
    pub(crate) fn told(&self, of: fn(&Context) -> Option<&String>) -> Option<&'d str> {
        let own = self.draft.body.content().map(|content| &content.context);
        own.and_then(of).or(of(self.draft.context)).map(String::as_str)
    }
}

/// Who speaks in a body that a compaction put in the place of the history.
pub(crate) enum Replaced<'b> {
    /// The model was told.
    Told(&'b Content),
    /// The model spoke.
    Answered(&'b Content),
    /// The model heard nothing of it.
    Unheard,
}

impl Replaced<'_> {
    /// The word for such a body that the format has no place for.
    pub(crate) const LOST: Lost = Lost::ReplacedHistory;

    pub(crate) fn by(body: &Body) -> Replaced<'_> {
        match body {
            Body::User(content) | Body::Attachment(content) | Body::ToolResult(content) => Replaced::Told(content),
            Body::Assistant(content) => Replaced::Answered(content),
            Body::System(_)
            | Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => Replaced::Unheard,
        }
    }
}

impl Losses {
    /// Who said it: in a room the words begin with the name, as the model is told.
    pub(crate) fn of_sender(&mut self, content: &Content, pieces: &mut [Value]) {
        let sender = content.sender.as_deref();
        match name_sender(sender, pieces) {
            true => self.renamed(Lost::Sender),
            false => self.dropped_if(sender.is_some(), Lost::Sender),
        }
    }

    /// What neither an API nor an agent that keeps to one has a place for, in what was said.
    pub(crate) fn of_said(&mut self, content: &Content) {
        self.dropped_if(content.context.platform.is_some(), Lost::Platform);
        self.dropped_if(!content.metadata.is_empty(), Lost::Metadata);
    }

    /// The same of a call; its approval is told by its result at most.
    pub(crate) fn of_call(&mut self, call: &ToolPart) {
        let details = [&call.tool_metadata, &call.result_provider_metadata].into_iter().any(Option::is_some);
        self.dropped_if(details || call.title.is_some() || !call.extra.is_empty(), Lost::CallDetails);
        self.dropped_if(call.is_open() && call.approval().is_some(), Lost::Approval);
    }
}

impl Chain {
    /// Whether no line says anything yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether others can hang on a line of it.
    pub(crate) fn has_links(&self) -> bool {
        self.steps.iter().any(|(place, _)| *place != Place::Aside)
    }

    pub(crate) fn own(&mut self, fields: Fields) {
        self.steps.push((Place::Own, fields));
    }

    pub(crate) fn follows(&mut self, fields: Fields) {
        self.steps.push((Place::Follows, fields));
    }

    pub(crate) fn aside(&mut self, fields: Fields) {
        self.steps.push((Place::Aside, fields));
    }

    /// What the lines say, and what they do not, for one who puts it elsewhere.
    pub(crate) fn into_fields(self) -> (Vec<Fields>, Losses) {
        (self.steps.into_iter().map(|(_, fields)| fields).collect(), self.losses)
    }

    /// Hangs the lines up. The last one of the record itself has the draft's id: what hangs on that comes after all of it.
    pub(crate) fn finish(self, draft: &NewRecord<'_>, hang: fn(&Hung<'_>, Fields) -> Value) -> Written {
        let own = self.steps.iter().rposition(|(place, _)| *place == Place::Own);
        let mut parent = draft.parent.cloned();
        let mut lines = Vec::new();
        for (at, (place, fields)) in self.steps.into_iter().enumerate() {
            if place == Place::Aside {
                lines.push(Line { value: fields.into(), names: Names::Side });
                continue;
            }
            let id = if own == Some(at) { draft.id.clone() } else { RecordId((draft.new_id)()) };
            let value = hang(&Hung { draft, id: &id, parent: parent.as_ref() }, fields);
            lines.push(Line { value, names: Names::Link(id.clone()) });
            parent = Some(id);
        }
        Written { lines, losses: self.losses }
    }
}

/// The responses of a model that an assistant body holds: most hold one, or a piece of one.
pub(crate) fn responses(content: &Content) -> impl Iterator<Item = &[Part]> {
    content.parts.split(|part| matches!(part, Part::StepStart)).filter(|parts| !parts.is_empty())
}

/// The results that calls carry themselves.
pub(crate) fn carried(parts: &[Part]) -> impl Iterator<Item = ToolResult> {
    parts.iter().filter_map(|part| match part {
        Part::Tool(call) => {
            own_result(call, &call.call_id).map(|result| ToolResult { name: Some(call.name.clone()), ..result })
        }
        _ => None,
    })
}

/// The texts among some parts, and what went wrong; anything else is lost.
pub(crate) fn words(parts: &[Part], losses: &mut Losses) -> String {
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

/// The name of a tool as APIs take it: a call and its result get the same one.
pub(crate) fn plain_name(name: &str, most: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    match name.chars().count() {
        0 => "unknown".to_owned(),
        // Long names of one server begin alike.
        count if count > most => plain_id(name, most).into_owned(),
        _ => name.chars().map(plain).collect(),
    }
}

/// The texts that say something, as fields.
pub(crate) fn texts<const N: usize>(told: [(&str, Option<&str>); N]) -> Fields {
    let content = told.into_iter().filter_map(|(key, text)| Some((key, text.filter(|text| !text.is_empty())?)));
    content.map(|(key, text)| (key.to_owned(), text.into())).collect()
}

/// A record that another session takes over hangs there on something else, and tells where it comes from.
pub(crate) fn take_over(line: &mut Fields, parent: &str, adoption: &Adoption<'_>) {
    if line.get("uuid").is_some_and(Value::is_string) {
        line.insert(parent.to_owned(), json!(adoption.parent));
        let (session, record) = adoption.from;
        line.insert("forkedFrom".to_owned(), json!({"sessionId": session, "messageUuid": record}));
    }
}

/// The fields of a JSON object.
pub(crate) fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}
