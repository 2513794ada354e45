//! The body of a native line.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::line::Line;
use super::part;
use crate::dialect::record_class::TypeName;
use crate::model::json;
use crate::model::lenient::{self, ObjectOrText, parsed};
use crate::model::message::{Part, parts_from};
use crate::model::record::{
    Body, Compaction, Content, Context, Kind, RecordId, Restore, Rewind, Snapshot, Title, TitleSource, ToolNote,
};

/// The fields of `metadata` that are read as something else.
const KNOWN_METADATA: [&str; 3] = ["error_type", "parentSessionId", "parentToolCallId"];

pub(super) fn parse(text: &str) -> Body {
    let Ok(line) = json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    let value = |raw: Option<&RawValue>| raw.map(lenient::value).unwrap_or_default();
    match line.record_class().kind {
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        Kind::Snapshot => Body::Snapshot(Snapshot::from_states(
            line.message_id.owned().map(RecordId),
            line.is_snapshot_update.0,
            value(line.snapshot),
        )),
        Kind::Compaction => Body::Compaction(line.compaction()),
        Kind::Rewind => Body::Rewind(Rewind { from: line.from.owned().map(RecordId), reason: line.reason.owned() }),
        Kind::Restore => Body::Restore(Restore {
            target: line.target.owned().map(RecordId),
            after_target: line.after_target.0,
            from: line.from.owned().map(RecordId),
            files: value(line.files),
            folders: line.folders.and_then(parsed).unwrap_or_default(),
            removed_folders: line.removed_folders.and_then(parsed).unwrap_or_default(),
            todos: line.todos.and_then(parsed),
            operation: line.operation.owned(),
            takes_back: line.takes_back.owned(),
        }),
        kind => Body::from_content_or_json(kind, || line.message_content(kind), text),
    }
}

impl Line<'_> {
    /// The content of a message of this kind.
    fn message_content(self, kind: Kind) -> Content {
        let to_model = self.to_model.map(|flag| flag.get() == "true");
        let content = self.content();
        let to_model = match kind {
            Kind::System => to_model.unwrap_or(content.error.is_none()),
            Kind::Attachment => to_model.unwrap_or(false),
            _ => false,
        };
        Content { to_model, ..content }
    }

    fn content(self) -> Content {
        let usage = self.usage();
        let is_sage = self.format.0.unwrap_or(1) < 2;
        let metadata = self.metadata.0.unwrap_or_default();
        let mut content = Content {
            parts: self.content.map(parts).unwrap_or_default(),
            results: self.tool_results.0.iter().map(part::result).collect(),
            usage,
            model: self.model.owned(),
            // Sage writes an empty list on every line, whatever the task list is.
            todos: self.todos.and_then(parsed).filter(|todos: &Vec<_>| !is_sage || !todos.is_empty()),
            thinking: self.thinking_metadata.and_then(parsed),
            sender: self.sender.owned(),
            display: self.display.and_then(parsed),
            error: metadata.string("error_type"),
            instructs: self.instructs.0,
            is_attached: self.is_attached.0,
            fragment: self.fragment.0.and_then(|fragment| fragment.count("part")),
            ..Content::default()
        };
        if !is_sage {
            content.metadata = metadata.values().filter(|(key, _)| !KNOWN_METADATA.contains(&key.as_str())).collect();
        }
        content.notes.extend(
            self.tool_notes.0.iter().filter_map(|note| {
                Some(ToolNote { call_id: note.string("toolCallId")?, about: note.parsed("about")? })
            }),
        );
        if let Some(context) = self.context.0 {
            content.context = Context {
                cwd: context.cwd.owned(),
                git_branch: context.git_branch.owned(),
                platform: context.platform.owned(),
                user_type: context.user_type.owned(),
            };
        }
        match self.message {
            ObjectOrText::Text(text) if !text.is_empty() => content.parts.push(Part::text(text)),
            ObjectOrText::Object(message) => {
                content.model = content.model.or(message.model.owned());
                let role = message.role.0.filter(|role| role == "error");
                content.error = content.error.or(role.map(Cow::into_owned));
                content.parts.extend(message.content.map(parts).unwrap_or_default());
                content.parts.extend(message.tool_calls.0.iter().map(part::call));
                content.results.extend(message.tool_results.0.iter().map(part::result));
            }
            ObjectOrText::Text(_) | ObjectOrText::Absent => {}
        }
        let attachments: Vec<Value> = self.attachments.and_then(parsed).unwrap_or_default();
        content.parts.extend(attachments.into_iter().map(part::attachment));
        content.parts.extend(self.reaction.map(|reaction| Part::data("reaction", lenient::value(reaction))));
        content
    }

    fn compaction(self) -> Compaction {
        let preserved: Vec<Value> = self.preserved.and_then(parsed).unwrap_or_default();
        Compaction {
            summary: self.summary.owned(),
            trigger: self.trigger.owned(),
            messages: self.messages.0,
            tokens_before: self.tokens_before.0,
            tokens_after: self.tokens_after.0,
            preserved: preserved.iter().filter_map(Value::as_str).map(RecordId::from).collect(),
            preserves_between: self.preserves_between.0,
            preserved_first: self.preserved_first.0,
            keeps_prompts: self.keeps_prompts.0,
            replacement: self.replacement.and_then(replacement),
            cuts: self.cuts.is_none_or(|cuts| cuts.get() != "false"),
        }
    }
}

fn parts(content: &RawValue) -> Vec<Part> {
    parts_from(lenient::value(content), Part::from)
}

/// The messages in the place of the compacted conversation, without ids.
fn replacement(raw: &RawValue) -> Option<Vec<Body>> {
    let lines = lenient::elements(raw)?;
    let body = |raw: &RawValue| {
        let line: Line<'_> = json::from_str(raw.get()).ok()?;
        let class = line.record_class();
        let kind = if matches!(class.type_name, TypeName::Known) { class.kind } else { Kind::Other };
        let message = kind.has_content().then(|| Body::from_content(kind, line.message_content(kind))).flatten();
        Some(message.unwrap_or_else(|| Body::Other(lenient::value(raw))))
    };
    lines.into_iter().map(body).collect()
}
