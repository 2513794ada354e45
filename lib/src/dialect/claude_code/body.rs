//! What a Claude Code line says.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::Line;
use super::tool_run::ToolRun;
use super::{NO_MODEL, part};
use crate::dialect::file_backups;
use crate::model::lenient::{self, Count, Flag, List, Object, Text, parsed};
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Context, Kind, RecordId, Snapshot, Title, TitleSource, Todo};

pub(super) fn parse(text: &str) -> Body {
    let (Ok(line), Ok(fields)) = (serde_json::from_str(text), serde_json::from_str::<BodyFields<'_>>(text)) else {
        return Body::Other(text.into());
    };
    let line: Line<'_> = line;
    match line.record_class().kind {
        Kind::Attachment => {
            let to_model = line.is_meta.0 || line.was_queued();
            Body::Attachment(Content { to_model, ..fields.content(&line) })
        }
        Kind::Compaction => Body::Compaction(fields.compaction(&line)),
        Kind::Snapshot => Body::Snapshot(fields.snapshot()),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        kind => Body::from_content_or_json(kind, || fields.content(&line), text),
    }
}

/// The fields that a body needs in addition to the link's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct BodyFields<'a> {
    message: Object<Message<'a>>,
    content: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    rendered: List<Rendered<'a>>,
    rendered_role: Text<'a>,
    attachment: Option<&'a RawValue>,
    tool_use_result: ToolRun<'a>,
    todos: Option<&'a RawValue>,
    thinking_metadata: Option<&'a RawValue>,
    compact_metadata: Object<CompactMetadata<'a>>,
    message_id: Text<'a>,
    snapshot: Option<&'a RawValue>,
    snapshot_message_id: Text<'a>,
    tracking_path: Text<'a>,
    backup: Option<&'a RawValue>,
    is_snapshot_update: Flag,
}

/// The prompt of the snapshot that a delta adds to.
pub(super) const SNAPSHOT_MESSAGE: &str = "snapshotMessageId";

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Message<'a> {
    content: Option<&'a RawValue>,
}

/// An attachment as the model sees it.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Rendered<'a> {
    content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct CompactMetadata<'a> {
    trigger: Text<'a>,
    pre_tokens: Count,
    post_tokens: Count,
    preserved_segment: Object<Segment<'a>>,
    preserved_messages: Object<Preserved<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Segment<'a> {
    head_uuid: Text<'a>,
    tail_uuid: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Preserved<'a> {
    uuids: Option<&'a RawValue>,
}

impl BodyFields<'_> {
    fn content(self, line: &Line<'_>) -> Content {
        let message = line.message.0.as_ref();
        let blocks = self.message.0.and_then(|message| message.content).or(self.content);
        let attached_todos = || self.attachment.filter(|_| line.is_state_only()).and_then(todos);
        let mut content = Content {
            model: message.and_then(|message| message.model.clone().owned()).filter(|model| model != NO_MODEL),
            usage: message.and_then(|message| message.usage()).filter(|_| line.is_answer()),
            context: Context {
                cwd: line.cwd.clone().owned(),
                git_branch: line.git_branch.clone().owned(),
                platform: None,
                user_type: line.user_type.clone().owned(),
            },
            // Prompts have an empty list whatever the task list is.
            todos: self.todos.and_then(parsed).filter(|todos: &Vec<_>| !todos.is_empty()).or_else(attached_todos),
            thinking: self.thinking_metadata.and_then(parsed),
            error: line.failure(self.error),
            instructs: self.rendered_role.0.as_deref() == Some("system"),
            ..blocks.map(|blocks| part::content_from(blocks, &self.tool_use_result)).unwrap_or_default()
        };
        let written = content.parts.iter().rev().filter_map(part::todos);
        content.todos = written.filter_map(|todos| serde_json::from_value(todos).ok()).next().or(content.todos);
        let rendered = self.rendered.0.iter().filter_map(|rendered| rendered.content).map(lenient::text_or_json);
        content.parts.extend(rendered.map(Part::text));
        if let Some(attachment) = self.attachment.filter(|_| content.parts.is_empty()) {
            let prompt = queued(attachment).filter(|_| line.was_queued());
            content.parts =
                prompt.map(|prompt| part::content_from(prompt, &ToolRun::default()).parts).unwrap_or_default();
            let is_state = line.is_state_only() && (content.todos.is_some() || content.thinking.is_some());
            if content.parts.is_empty() && !is_state {
                content.parts.push(Part::data("attachment", lenient::value(attachment)));
            }
        }
        if let Some(error) = self.error.filter(|_| content.parts.is_empty()) {
            content.parts.push(Part::text(lenient::text_or_json(error)));
        }
        content
    }

    /// The boundary cuts what the model sees; the summary is in the line after it.
    fn compaction(self, line: &Line<'_>) -> Compaction {
        let cuts = !line.is_compact_summary.0;
        let summary = self.message.0.and_then(|message| message.content).filter(|_| !cuts);
        let summary = summary.map(|summary| part::content_from(summary, &ToolRun::default()).text());
        let compaction = Compaction { summary, cuts, ..Compaction::default() };
        let Some(metadata) = self.compact_metadata.0 else { return compaction };
        let listed =
            metadata.preserved_messages.0.and_then(|preserved| preserved.uuids).and_then(parsed::<Vec<String>>);
        let ends = metadata.preserved_segment.0.map(|ends| [ends.head_uuid.owned(), ends.tail_uuid.owned()]);
        Compaction {
            trigger: metadata.trigger.owned(),
            tokens_before: metadata.pre_tokens.0,
            tokens_after: metadata.post_tokens.0,
            preserves_between: listed.is_none(),
            preserved: listed
                .unwrap_or_else(|| ends.into_iter().flatten().flatten().collect())
                .into_iter()
                .map(RecordId)
                .collect(),
            ..compaction
        }
    }

    /// A snapshot has the files of a prompt; a delta adds one file to the snapshot that it names.
    fn snapshot(self) -> Snapshot {
        let is_delta = self.snapshot.is_none() && self.backup.is_some();
        let mut extra = match self.snapshot.map(lenient::value) {
            Some(Value::Object(fields)) => fields,
            Some(other) => Map::from_iter([("snapshot".to_owned(), other)]),
            None => Map::new(),
        };
        let mut files = file_backups::take(&mut extra);
        match (self.tracking_path.owned(), self.backup.map(lenient::value)) {
            (Some(path), Some(Value::Object(backup))) if is_delta => files.push(file_backups::read(path, backup)),
            (path, backup) => {
                let unread = [("trackingPath", path.map(Value::from)), ("backup", backup)];
                extra.extend(unread.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
            }
        }
        extra.extend(self.snapshot_message_id.owned().map(|id| (SNAPSHOT_MESSAGE.to_owned(), id.into())));
        let (message, update) = (self.message_id.owned().map(RecordId), is_delta || self.is_snapshot_update.0);
        Snapshot { message, update, files, extra, ..Snapshot::default() }
    }
}

impl Line<'_> {
    fn is_answer(&self) -> bool {
        self.record_class().kind == Kind::Assistant
    }

    /// The kind of failure that it reports; an answer of the agent's own may name it in `error`.
    fn failure(&self, error: Option<&RawValue>) -> Option<String> {
        let in_answer = || parsed::<String>(error.filter(|_| self.is_answer())?).filter(|name| !name.is_empty());
        let name = || self.subtype.clone().owned().or_else(in_answer).unwrap_or_else(|| "api_error".to_owned());
        self.record_class().is_failure.then(name)
    }
}

/// The prompt in a `queued_command` attachment.
fn queued(attachment: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize, Default)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct Queued<'a> {
        prompt: Option<&'a RawValue>,
    }
    serde_json::from_str::<Queued<'_>>(attachment.get()).ok()?.prompt
}

/// The task list in a `todo` attachment.
fn todos(attachment: &RawValue) -> Option<Vec<Todo>> {
    #[derive(Deserialize, Default)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct TodoAttachment<'a> {
        content: Option<&'a RawValue>,
    }
    let todos = serde_json::from_str::<TodoAttachment<'_>>(attachment.get()).ok()?.content.and_then(parsed);
    todos.filter(|todos: &Vec<_>| !todos.is_empty())
}
