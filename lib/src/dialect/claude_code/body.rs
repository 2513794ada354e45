//! What a Claude Code line says.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::NO_MODEL;
use super::block::{self, Read};
use super::line::Line;
use crate::dialect::file_backups;
use crate::model::lenient::{self, Count, Flag, List, Object, Text};
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Context, Kind, RecordId, Snapshot, Title, TitleSource, Todo};

pub(super) fn of(text: &str) -> Body {
    let (Ok(line), Ok(full)) = (serde_json::from_str::<Line<'_>>(text), serde_json::from_str::<Full<'_>>(text)) else {
        return Body::Other(text.into());
    };
    let kind = line.record_class().0.kind;
    match kind {
        Kind::User => Body::User(full.content(&line)),
        Kind::Assistant => Body::Assistant(full.content(&line)),
        Kind::ToolResult => Body::ToolResult(full.content(&line)),
        Kind::Attachment => {
            let to_model = line.is_meta.0 || line.was_queued();
            Body::Attachment(Content { to_model, ..full.content(&line) })
        }
        Kind::System => Body::System(full.content(&line)),
        Kind::Compaction => Body::Compaction(full.compaction(&line)),
        Kind::Snapshot => Body::Snapshot(full.snapshot()),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        Kind::Header | Kind::Other | Kind::Rewind | Kind::Restore => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) if kind == Kind::Header => Body::Header(fields),
            Ok(value) => Body::Other(value),
            Err(_) => Body::Other(text.into()),
        },
    }
}

/// The fields that a body needs besides the link's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Full<'a> {
    message: Object<Spoken<'a>>,
    content: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    rendered: List<Rendered<'a>>,
    rendered_role: Text<'a>,
    attachment: Option<&'a RawValue>,
    tool_use_result: Run<'a>,
    todos: Option<&'a RawValue>,
    thinking_metadata: Option<&'a RawValue>,
    compact_metadata: Object<Compacted<'a>>,
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
struct Spoken<'a> {
    content: Option<&'a RawValue>,
}

/// What the model was shown of an attachment.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Rendered<'a> {
    content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Compacted<'a> {
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

/// `toolUseResult`: an object that differs from tool to tool, or the words of a failure.
#[derive(Default)]
pub(super) struct Run<'a> {
    facts: Object<Facts<'a>>,
    words: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Facts<'a> {
    duration_ms: Count,
    total_duration_ms: Count,
    interrupted: Flag,
    exit_code: Count,
    agent_id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Run<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let facts = serde_json::from_str(raw).unwrap_or_default();
        Ok(Run { facts, words: serde_json::from_str(raw).unwrap_or_default() })
    }
}

impl Run<'_> {
    pub(super) fn was_refused(&self) -> bool {
        self.words
            .0
            .as_deref()
            .is_some_and(|words| words.trim_start_matches("Error: ") == "User rejected tool use")
    }

    pub(super) fn duration_ms(&self) -> Option<u64> {
        let facts = self.facts.0.as_ref()?;
        facts.duration_ms.0.or(facts.total_duration_ms.0)
    }

    /// What else is worth telling of a run: how it ended, and the sub-agent that it was.
    pub(super) fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        let Some(facts) = &self.facts.0 else { return about };
        if facts.interrupted.0 {
            about.insert("interrupted".to_owned(), true.into());
        }
        if let Some(code) = facts.exit_code.0 {
            about.insert("exitCode".to_owned(), code.into());
        }
        if let Some(agent) = &facts.agent_id.0 {
            about.insert("session".to_owned(), format!("agent-{agent}").into());
        }
        about
    }
}

impl Full<'_> {
    fn content(self, line: &Line<'_>) -> Content {
        let message = line.message.0.as_ref();
        let content = self.message.0.and_then(|message| message.content).or(self.content);
        let attached = || self.attachment.filter(|_| line.tells_state()).and_then(todos);
        let mut said = Content {
            model: message.and_then(|message| message.model.clone().owned()).filter(|model| model != NO_MODEL),
            usage: message.and_then(|message| message.usage()).filter(|_| line.is_answer()),
            context: Context {
                cwd: line.cwd.clone().owned(),
                git_branch: line.git_branch.clone().owned(),
                platform: None,
                user_type: line.user_type.clone().owned(),
            },
            // Prompts carry an empty list whatever the list is.
            todos: self.todos.and_then(parsed).filter(|todos: &Vec<_>| !todos.is_empty()).or_else(attached),
            thinking: self.thinking_metadata.and_then(parsed),
            error: line.failure(self.error),
            instructs: self.rendered_role.0.as_deref() == Some("system"),
            ..Content::default()
        };
        for read in content.map(|content| block::all(content, &self.tool_use_result)).unwrap_or_default() {
            match read {
                Read::Part(part) => {
                    let todos = block::todos(&part).and_then(|todos| serde_json::from_value(todos).ok());
                    said.todos = todos.or(said.todos);
                    said.parts.push(part);
                }
                Read::Result(result) => said.results.push(result),
            }
        }
        let shown = self.rendered.0.iter().filter_map(|rendered| rendered.content).map(lenient::text_or_json);
        said.parts.extend(shown.map(Part::text));
        if let Some(prompt) = self.attachment.filter(|_| said.parts.is_empty() && line.was_queued()).and_then(queued) {
            let parts = block::all(prompt, &Run::default()).into_iter();
            said.parts
                .extend(parts.filter_map(|read| if let Read::Part(part) = read { Some(part) } else { None }));
        }
        let is_state = line.tells_state() && (said.todos.is_some() || said.thinking.is_some());
        if let Some(attachment) = self.attachment.filter(|_| said.parts.is_empty() && !is_state) {
            said.parts.push(Part::data("attachment", lenient::value(attachment)));
        }
        if let Some(error) = self.error.filter(|_| said.parts.is_empty()) {
            said.parts.push(Part::text(lenient::text_or_json(error)));
        }
        said
    }

    /// The boundary cuts what the model sees; the summary stands in the line after it.
    fn compaction(self, line: &Line<'_>) -> Compaction {
        let cuts = !line.is_compact_summary.0;
        let summary = self.message.0.and_then(|message| message.content).filter(|_| !cuts);
        let mut compaction = Compaction { summary: summary.map(text), cuts, ..Compaction::default() };
        if let Some(about) = self.compact_metadata.0 {
            compaction.trigger = about.trigger.owned();
            (compaction.tokens_before, compaction.tokens_after) = (about.pre_tokens.0, about.post_tokens.0);
            let named = about.preserved_messages.0.and_then(|kept| kept.uuids).and_then(parsed::<Vec<String>>);
            let ends = about.preserved_segment.0.map(|ends| [ends.head_uuid.owned(), ends.tail_uuid.owned()]);
            compaction.preserves_between = named.is_none();
            let ids = named.unwrap_or_else(|| ends.into_iter().flatten().flatten().collect());
            compaction.preserved = ids.into_iter().map(RecordId).collect();
        }
        compaction
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
        self.record_class().0.kind == Kind::Assistant
    }

    /// What kind of failure it tells of: an answer that nobody gave may name it.
    fn failure(&self, error: Option<&RawValue>) -> Option<String> {
        let of_answer = || parsed::<String>(error.filter(|_| self.is_answer())?).filter(|name| !name.is_empty());
        let named = || self.subtype.clone().owned().or_else(of_answer).unwrap_or_else(|| "api_error".to_owned());
        self.record_class().0.is_failure.then(named)
    }
}

/// The words of a content.
fn text(content: &RawValue) -> String {
    let words = |read| match read {
        Read::Part(Part::Text(text)) => Some(text.text),
        Read::Part(_) | Read::Result(_) => None,
    };
    let texts: Vec<String> = block::all(content, &Run::default()).into_iter().filter_map(words).collect();
    texts.join("\n")
}

/// What was typed, of an attachment that waited.
fn queued(attachment: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize, Default)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct Queued<'a> {
        prompt: Option<&'a RawValue>,
    }
    serde_json::from_str::<Queued<'_>>(attachment.get()).ok()?.prompt
}

/// The task list of an attachment that tells it.
fn todos(attachment: &RawValue) -> Option<Vec<Todo>> {
    #[derive(Deserialize, Default)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct Listed<'a> {
        content: Option<&'a RawValue>,
    }
    let listed = serde_json::from_str::<Listed<'_>>(attachment.get()).ok()?.content.and_then(parsed);
    listed.filter(|todos: &Vec<_>| !todos.is_empty())
}

fn parsed<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
