//! What a native line says.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Type;
use super::line::{Answer, Call, FREE, Line};
use crate::model::lenient::{self, ObjectOrText};
use crate::model::message::{Approval, FilePart, Part, ToolKind, ToolPart, ToolState};
use crate::model::record::{
    Body, Compaction, Content, Context, Kind, Outcome, RecordId, Restore, Rewind, Snapshot, Title, TitleSource,
    ToolNote, ToolResult,
};

impl Line<'_> {
    pub(super) fn body(self, text: &str) -> Body {
        let (name, kind) = match self.kind() {
            Type::Known(name, kind) => (name, kind),
            Type::Plain(kind) | Type::Untyped(kind) => ("", kind),
            Type::Unknown(_) => ("", Kind::Other),
        };
        let value = |raw: Option<&RawValue>| raw.map(lenient::value).unwrap_or_default();
        match kind {
            Kind::User => Body::User(self.content()),
            Kind::Assistant => Body::Assistant(self.content()),
            Kind::ToolResult => Body::ToolResult(self.content()),
            Kind::System => {
                let told = self.to_model.map(RawValue::get);
                let content = self.content();
                let to_model = told.map_or(content.error.is_none(), |told| told == "true");
                Body::System(Content { to_model, ..content })
            }
            Kind::Attachment => {
                let to_model = self.to_model.is_some_and(|told| told.get() == "true");
                Body::Attachment(Content { to_model, ..self.content() })
            }
            Kind::Title => match self.title(name) {
                Some((text, source)) => Body::Title(Title { text: text.into_owned(), source }),
                None => Body::Title(Title { text: String::new(), source: TitleSource::Id }),
            },
            Kind::Snapshot => Body::Snapshot(Snapshot::from_states(
                self.message_id.owned().map(RecordId),
                self.is_snapshot_update.0,
                value(self.snapshot),
            )),
            Kind::Compaction => Body::Compaction(Compaction {
                summary: self.summary.owned(),
                trigger: self.trigger.owned(),
                tokens_before: self.tokens_before.0,
                tokens_after: self.tokens_after.0,
                preserved: strings(self.preserved).into_iter().map(RecordId).collect(),
                preserves_between: self.preserves_between.0,
                keeps_prompts: self.keeps_prompts.0,
                replacement: self.replacement.and_then(replacement),
                cuts: self.cuts.is_none_or(|cuts| cuts.get() != "false"),
            }),
            Kind::Rewind => Body::Rewind(Rewind { from: self.from.owned().map(RecordId), reason: self.reason.owned() }),
            Kind::Restore => Body::Restore(Restore {
                target: self.target.owned().map(RecordId),
                from: self.from.owned().map(RecordId),
                files: value(self.files),
                todos: self.todos.and_then(parsed),
            }),
            Kind::Header | Kind::Other => {
                Body::Other(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
            }
        }
    }

    fn content(self) -> Content {
        let (usage, free) = (self.usage(), self.free());
        let mut said = Content {
            usage,
            model: self.model.owned(),
            todos: self.todos.and_then(parsed),
            thinking: self.thinking_metadata.and_then(parsed),
            sender: self.sender.owned(),
            error: free.and_then(|free| free.error_type.owned()),
            instructs: self.instructs.0,
            ..Content::default()
        };
        // Sage writes an empty list on every line: there it says nothing.
        if self.format.0.unwrap_or(1) < 2 && said.todos.as_ref().is_some_and(Vec::is_empty) {
            said.todos = None;
        }
        if self.format.0.unwrap_or(1) >= 2 {
            said.metadata = self.metadata.and_then(parsed).unwrap_or_default();
            FREE.iter().for_each(|known| _ = said.metadata.shift_remove(*known));
        }
        said.notes.extend(self.tool_notes.0.into_iter().filter_map(|note| {
            Some(ToolNote { call_id: note.tool_call_id.owned()?, about: note.about.and_then(parsed)? })
        }));
        if let Some(place) = self.context.0 {
            said.context = Context {
                cwd: place.cwd.owned(),
                git_branch: place.git_branch.owned(),
                platform: place.platform.owned(),
                user_type: place.user_type.owned(),
            };
        }
        said.parts.extend(self.content.into_iter().flat_map(parts));
        said.results.extend(self.tool_results.0.into_iter().map(result));
        if let ObjectOrText::Text(text) = &self.message
            && !text.is_empty()
        {
            said.parts.push(Part::text(text.clone()));
        }
        if let ObjectOrText::Object(spoken) = self.message {
            said.model = said.model.or(spoken.model.owned());
            said.error = said.error.or_else(|| spoken.role.0.filter(|role| role == "error").map(Cow::into_owned));
            said.parts.extend(spoken.content.into_iter().flat_map(parts));
            said.parts.extend(spoken.tool_calls.0.into_iter().map(call));
            said.results.extend(spoken.tool_results.0.into_iter().map(result));
        }
        said.parts.extend(list(self.attachments).into_iter().map(attachment));
        if let Some(reaction) = self.reaction.map(lenient::value).filter(|reaction| !reaction.is_null()) {
            said.parts.push(Part::data("reaction", reaction));
        }
        said.fragment = self.fragment.0.and_then(|fragment| fragment.part.0);
        said
    }
}

/// The parts of a `content`: a text, or a list of parts.
fn parts(raw: &RawValue) -> Vec<Part> {
    match lenient::value(raw) {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => parts.into_iter().map(Part::from).collect(),
        other => vec![Part::from(other)],
    }
}

fn call(call: Call<'_>) -> Part {
    let input = call.arguments.map(lenient::value);
    let approval = call.approval.0.map(|asked| Approval {
        id: asked.id.owned().unwrap_or_default(),
        approved: asked.approved.and_then(parsed),
        reason: asked.reason.owned(),
        ..Approval::default()
    });
    let state = match (call.partial.0, approval) {
        (true, _) => ToolState::InputStreaming { input },
        (false, None) => ToolState::called(input.unwrap_or_default()),
        (false, Some(approval)) if approval.approved.is_none() => {
            ToolState::ApprovalRequested { input: input.unwrap_or_default(), approval }
        }
        (false, Some(approval)) => ToolState::ApprovalResponded { input: input.unwrap_or_default(), approval },
    };
    let name = call.name.owned().unwrap_or_else(|| "unknown".to_owned());
    let mut plain = ToolPart::dynamic(name, call.id.owned().unwrap_or_default(), state);
    // What else the SDK's part had stands beside: read back with it, it is that part again.
    let Some(Value::Object(mut about)) = call.about.map(lenient::value) else { return plain.into() };
    if about.shift_remove("static") == Some(true.into()) {
        plain.kind = ToolKind::Static;
    }
    let Ok(Value::Object(mut fields)) = serde_json::to_value(Part::from(plain.clone())) else { return plain.into() };
    if call.arguments.is_none() {
        fields.shift_remove("input");
    }
    fields.extend(about.into_iter().filter(|(key, _)| !ToolPart::NAMED.contains(&key.as_str())));
    match Part::from(Value::Object(fields)) {
        Part::Tool(part) if part.call_id == plain.call_id => Part::Tool(part),
        _ => plain.into(),
    }
}

/// What stands in the place of a conversation: records without ids.
fn replacement(raw: &RawValue) -> Option<Vec<Body>> {
    let lines: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    let body = |raw: &RawValue| {
        let line: Line<'_> = serde_json::from_str(raw.get()).ok()?;
        let content = |kind: fn(Content) -> Body, line: Line<'_>| Some(kind(line.content()));
        match line.kind() {
            Type::Known(_, Kind::User) => content(Body::User, line),
            Type::Known(_, Kind::Assistant) => content(Body::Assistant, line),
            Type::Known(_, Kind::ToolResult) => content(Body::ToolResult, line),
            Type::Known(_, Kind::Attachment) => {
                let to_model = line.to_model.is_some_and(|told| told.get() == "true");
                Some(Body::Attachment(Content { to_model, ..line.content() }))
            }
            Type::Known(_, Kind::System) => {
                let told = line.to_model.map(RawValue::get);
                let content = line.content();
                let to_model = told.map_or(content.error.is_none(), |told| told == "true");
                Some(Body::System(Content { to_model, ..content }))
            }
            Type::Known(..) | Type::Plain(_) | Type::Untyped(_) | Type::Unknown(_) => {
                Some(Body::Other(lenient::value(raw)))
            }
        }
    };
    lines.into_iter().map(body).collect()
}

fn result(answer: Answer<'_>) -> ToolResult {
    let reason = answer.error.map(lenient::text_or_json).filter(|text| !text.is_empty());
    let success = answer.success.map(RawValue::get);
    let output = answer.content.map(lenient::value).unwrap_or_default();
    let outcome = if answer.denied.0 {
        Outcome::Denied(reason)
    } else if success == Some("false") || (success != Some("true") && reason.is_some()) {
        Outcome::Failed(reason.unwrap_or_else(|| match &output {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }))
    } else {
        Outcome::Done
    };
    ToolResult {
        call_id: answer.tool_call_id.owned().unwrap_or_default(),
        name: answer.tool_name.owned(),
        output,
        outcome,
        preliminary: answer.preliminary.0,
        duration_ms: answer.duration_ms.0,
        about: answer.about.and_then(parsed).unwrap_or_default(),
    }
}

/// A file that came with a message: a file part when it has an address, else its description.
fn attachment(described: Value) -> Part {
    let text = |key| described.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("url"), text("mime_type")) {
        (Some(url), Some(media_type)) if media_type.contains('/') => {
            let mut part = FilePart { media_type, url, filename: text("filename"), ..Default::default() };
            if let Some(size) = described.get("size") {
                let scrollback = Map::from_iter([("size".to_owned(), size.clone())]);
                part.provider_metadata = Some(Map::from_iter([("scrollback".to_owned(), scrollback.into())]));
            }
            Part::File(part)
        }
        _ => Part::data("attachment", described),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn list(raw: Option<&RawValue>) -> Vec<Value> {
    raw.and_then(parsed).unwrap_or_default()
}

fn strings(raw: Option<&RawValue>) -> Vec<String> {
    list(raw).into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}
