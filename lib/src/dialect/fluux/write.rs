//! Writes Fluux Agent's files: a header, then one line for each message, with the agent's final text of each turn.
//!
//! The format has no calls, results and reasoning: they are reported as lost.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::jid::bare_jid;
use super::room::{STANZA_ID, attachment, file_name, size_label};
use super::{ARCHIVES, HISTORY, VERSION};
use crate::dialect::line_builder::Put;
use crate::dialect::writer::{Beginning, Line, Names, NewRecord, Shape, WriteUnit, Writer, Written, ended_name};
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part};
use crate::model::record::{Body, Content, Kind, RecordId};

/// There is no `adopt`: a person or a room has one session at a time, so a fork has no place.
pub(super) static WRITER: Writer = Writer {
    states_session_id: |_| false,
    is_with_somebody: true,
    header,
    ended_path: Some(ended_path),
    ..Writer::new(WriteUnit::Turn, Shape::Linear, place, lines)
};

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let with = beginning.with.ok_or("a Fluux session needs the JID of a person or a room")?;
    Ok(Path::new(&bare_jid(with)?).join(HISTORY))
}

fn header(beginning: &Beginning<'_>) -> Vec<Line> {
    let jid = beginning.with.and_then(|with| bare_jid(with).ok()).unwrap_or_default();
    let value = json!({"type": "session", "version": VERSION, "created": instant(beginning.at), "jid": jid});
    vec![Line { value, names: Names::Side }]
}

/// Beside the current session: `sessions/20250208-190000.jsonl`, in UTC.
fn ended_path(history: &Path, ended: Timestamp) -> Option<PathBuf> {
    history.ends_with(HISTORY).then(|| history.with_file_name(ARCHIVES).join(ended_name(ended)))
}

/// A time as the agent writes it: with its offset, and with 0, 3, 6 or 9 digits of a second.
fn instant(at: Timestamp) -> String {
    let digits = match at.subsec_nanosecond() {
        0 => "",
        nanos if nanos % 1_000_000 == 0 => "%.3f",
        nanos if nanos % 1_000 == 0 => "%.6f",
        _ => "%.9f",
    };
    at.strftime(&format!("%Y-%m-%dT%H:%M:%S{digits}+00:00")).to_string()
}

fn lines(draft: &NewRecord<'_>) -> Written {
    if draft.sidechain {
        return Written::nothing(Lost::Sidechain);
    }
    match draft.body {
        Body::User(content) => message(draft, "user", content),
        Body::Assistant(content) => message(draft, "assistant", content),
        // A task list or a thinking mode without a text is reported as such.
        Body::System(content) if content.todos.is_some() || content.thinking.is_some() => {
            Written { lines: Vec::new(), losses: Message::new("user", content).losses }
        }
        Body::ToolResult(_)
        | Body::Attachment(_)
        | Body::System(_)
        | Body::Snapshot(_)
        | Body::Title(_)
        | Body::Compaction(_)
        | Body::Rewind(_)
        | Body::Restore(_)
        | Body::Header(_)
        | Body::Other(_) => Written::nothing(draft.body.kind()),
    }
}

fn message(draft: &NewRecord<'_>, role: &str, content: &Content) -> Written {
    let mut message = Message::new(role, content);
    let text = if role == "assistant" { message.last_text() } else { message.text() };
    // The agent would ignore an empty message.
    if text.is_empty() && message.attachments.is_empty() && message.reaction.is_none() {
        let is_empty = content.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::StepStart));
        message.losses.dropped_if(is_empty && content.results.is_empty(), Lost::EmptyMessage);
        return Written { lines: Vec::new(), losses: message.losses };
    }
    let id = content
        .metadata
        .get(STANZA_ID)
        .and_then(Value::as_str)
        .filter(|id| role == "user" && !id.is_empty());
    let id = id.map_or_else(|| draft.id.clone(), RecordId::from);
    let mut line = Map::new();
    line.put("type", "message");
    line.put("role", role);
    line.put("content", text);
    line.put("msg_id", id.as_str());
    line.put_text("sender", content.sender.as_deref().filter(|_| role == "user"));
    line.put("ts", instant(draft.at));
    line.put_some("attachments", Some(message.attachments).filter(|files| !files.is_empty()));
    line.put_some("reaction", message.reaction);
    Written { lines: vec![Line { value: line.into(), names: Names::Link(id) }], losses: message.losses }
}

/// What a message can hold here, and what is lost.
#[derive(Default)]
struct Message<'a> {
    /// Texts, each with the number of steps of the turn before it.
    texts: Vec<(usize, &'a str)>,
    steps: usize,
    attachments: Vec<Value>,
    reaction: Option<Value>,
    losses: Losses,
}

impl<'a> Message<'a> {
    fn new(role: &str, content: &'a Content) -> Message<'a> {
        let mut message = Message::default();
        content.parts.iter().for_each(|part| message.part(part));
        let held: &[Lost] = if role == "assistant" { &[] } else { &[Lost::Sender, Lost::Metadata] };
        message.losses.dropped_besides_parts(content, held);
        message.losses.dropped_if(content.metadata.keys().any(|key| key != STANZA_ID), Lost::Metadata);
        message
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text(text) => {
                self.texts.extend((!text.text.is_empty()).then_some((self.steps, text.text.as_str())));
                let has_details =
                    text.citations.is_some() || text.provider_metadata.is_some() || !text.extra.is_empty();
                self.losses.dropped_if(has_details, Lost::PartDetails);
            }
            Part::Tool(call) => {
                self.steps += 1;
                self.losses.dropped(Lost::ToolCall);
                self.losses.dropped_if(!call.is_open(), Kind::ToolResult);
            }
            Part::StepStart => self.steps += 1,
            Part::File(file) => {
                self.attachments.push(description(file));
                self.losses.dropped(part);
            }
            Part::Data(data) if data.kind == "attachment" => {
                let text = |key| data.data.get(key).and_then(Value::as_str);
                let (name, size) = (text("filename").unwrap_or("file"), text("size").unwrap_or("unknown"));
                let file = attachment(name, text("mime_type"), size);
                self.losses.renamed_if(file != data.data, Lost::Attachment);
                self.attachments.push(file);
            }
            Part::Data(data) if data.kind == "reaction" && self.reaction.is_none() => {
                self.reaction = reaction(&data.data);
                self.losses.dropped_if(self.reaction.is_none(), Lost::Reaction);
                let is_changed = self.reaction.as_ref().is_some_and(|reaction| *reaction != data.data);
                self.losses.renamed_if(is_changed, Lost::Reaction);
            }
            Part::Reasoning(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Steering(_)
            | Part::Data(_)
            | Part::Other(_) => self.losses.dropped(part),
        }
    }

    fn text(&mut self) -> String {
        self.losses.renamed_if(self.texts.len() > 1, Lost::TextParts);
        self.texts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n")
    }

    /// The text after the last step that is followed by one.
    fn last_text(&mut self) -> String {
        let last = self.texts.last().map_or(0, |(step, _)| *step);
        let before = self.texts.iter().filter(|(step, _)| *step != last).count();
        (0..before).for_each(|_| self.losses.dropped(Lost::Text));
        self.texts.retain(|(step, _)| *step == last);
        self.text()
    }
}

/// A file without its content: its name, type and size.
fn description(file: &FilePart) -> Value {
    let data = file.url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    let size = match data {
        Some((described, text)) if described.ends_with(";base64") => {
            let padding = text.len() - text.trim_end_matches('=').len();
            size_label((text.len() / 4 * 3).saturating_sub(padding) as u64)
        }
        Some(_) | None => "unknown".to_owned(),
    };
    let from_url = || if data.is_some() { "file" } else { file_name(&file.url) };
    let name = file.filename.as_deref().filter(|name| !name.is_empty()).unwrap_or_else(from_url);
    attachment(name, Some(&file.media_type), &size)
}

/// A reaction as the agent writes it, if it names a message.
fn reaction(data: &Value) -> Option<Value> {
    let message = data.get("message_id")?.as_str()?;
    let emojis = data.get("emojis").and_then(Value::as_array);
    let emojis: Vec<&str> = emojis.into_iter().flatten().filter_map(Value::as_str).collect();
    Some(json!({"message_id": message, "emojis": emojis}))
}
