//! How Fluux Agent's files are written: a header, then a line a message, with what the agent finally said of each turn.
//!
//! What happens on the way to an answer has no place here: calls, results and thoughts are told as lost.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::jid::bare_jid;
use super::room::{STANZA_ID, attachment, file_name, size_label};
use super::{ARCHIVES, HISTORY, VERSION};
use crate::dialect::writer::{Beginning, Line, Names, NewRecord, Shape, WriteUnit, Writer, Written, ended_name};
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part};
use crate::model::record::{Body, Content, Kind, RecordId};

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Turn,
    shape: Shape::Linear,
    tells_session: |_| false,
    takes_any_id: false,
    is_with_somebody: true,
    place,
    header,
    lines,
    sidecar: None,
    // A person or a room has one session at a time: there is no place for a fork.
    adopt: None,
    ended_path: Some(ended_path),
};

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let with = beginning.with.ok_or("a Fluux session is with somebody: a person's or a room's JID is needed")?;
    Ok(Path::new(&bare_jid(with)?).join(HISTORY))
}

fn header(beginning: &Beginning<'_>) -> Vec<Line> {
    let jid = beginning.with.and_then(|with| bare_jid(with).ok()).unwrap_or_default();
    let value = json!({"type": "session", "version": VERSION, "created": instant(beginning.at), "jid": jid});
    vec![Line { value, names: Names::Side }]
}

/// Beside the session that goes on: `sessions/20250208-190000.jsonl`, by the clock of Greenwich.
fn ended_path(history: &Path, ended: Timestamp) -> Option<PathBuf> {
    history.ends_with(HISTORY).then(|| history.with_file_name(ARCHIVES).join(ended_name(ended)))
}

/// An instant as the agent writes it: with its offset, and as many digits of a second as are needed, by threes.
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
        // A task list or a thinking mode without words is told as what it is.
        Body::System(content) if content.todos.is_some() || content.thinking.is_some() => {
            let mut told = Told::default();
            content.parts.iter().for_each(|part| told.take(part));
            told.lose_the_rest(content, "user");
            Written { lines: Vec::new(), losses: told.losses }
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

fn message(draft: &NewRecord<'_>, role: &str, said: &Content) -> Written {
    let mut told = Told::default();
    said.parts.iter().for_each(|part| told.take(part));
    told.lose_the_rest(said, role);
    let content = match role {
        "assistant" => told.last_words(),
        _ => told.all_words(),
    };
    // Nothing is no message: the agent would pass over it.
    if content.is_empty() && told.attachments.is_empty() && told.reaction.is_none() {
        let is_mute = said.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::StepStart));
        if is_mute && said.results.is_empty() {
            told.lose(Lost::EmptyMessage);
        }
        return Written { lines: Vec::new(), losses: told.losses };
    }
    let id = said.metadata.get(STANZA_ID).and_then(Value::as_str).filter(|id| role == "user" && !id.is_empty());
    let id = id.map_or_else(|| draft.id.clone(), RecordId::from);
    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("type", "message".into());
    put("role", role.into());
    put("content", content.into());
    put("msg_id", id.as_str().into());
    if let Some(sender) = said.sender.as_deref().filter(|sender| role == "user" && !sender.is_empty()) {
        put("sender", sender.into());
    }
    put("ts", instant(draft.at).into());
    if !told.attachments.is_empty() {
        put("attachments", told.attachments.into());
    }
    if let Some(reaction) = told.reaction {
        put("reaction", reaction);
    }
    Written { lines: vec![Line { value: line.into(), names: Names::Link(id) }], losses: told.losses }
}

/// What a message says here, and what it cannot say.
#[derive(Default)]
struct Told<'a> {
    /// Texts, each with how many steps of the turn were done before it.
    words: Vec<(usize, &'a str)>,
    steps: usize,
    attachments: Vec<Value>,
    reaction: Option<Value>,
    losses: Losses,
}

impl<'a> Told<'a> {
    fn take(&mut self, part: &'a Part) {
        match part {
            Part::Text(text) => {
                self.words.extend((!text.text.is_empty()).then_some((self.steps, text.text.as_str())));
                if text.citations.is_some() || text.provider_metadata.is_some() || !text.extra.is_empty() {
                    self.lose(Lost::PartDetails);
                }
            }
            Part::Tool(call) => {
                self.steps += 1;
                self.lose(Lost::ToolCall);
                if !call.is_open() {
                    self.lose(Kind::ToolResult);
                }
            }
            Part::StepStart => self.steps += 1,
            Part::File(file) => {
                self.file(file);
                self.lose(part);
            }
            Part::Data(data) if data.kind == "attachment" => {
                let told = |key| data.data.get(key).and_then(Value::as_str);
                let (name, size) = (told("filename").unwrap_or("file"), told("size").unwrap_or("unknown"));
                let file = attachment(name, told("mime_type"), size);
                if file != data.data {
                    self.losses.renamed(Lost::Attachment);
                }
                self.attachments.push(file);
            }
            Part::Data(data) if data.kind == "reaction" && self.reaction.is_none() => match reaction(&data.data) {
                Some(told) => {
                    if told != data.data {
                        self.losses.renamed(Lost::Reaction);
                    }
                    self.reaction = Some(told);
                }
                None => self.lose(Lost::Reaction),
            },
            Part::Reasoning(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Steering(_)
            | Part::Data(_)
            | Part::Other(_) => self.lose(part),
        }
    }

    fn lose(&mut self, what: impl Into<Lost>) {
        self.losses.dropped(what);
    }

    /// Its content is elsewhere: only a name, a type and a size are told.
    fn file(&mut self, file: &FilePart) {
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
        self.attachments.push(attachment(name, Some(&file.media_type), &size));
    }

    fn all_words(&mut self) -> String {
        if self.words.len() > 1 {
            self.losses.renamed(Lost::TextParts);
        }
        self.words.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n")
    }

    /// What was said after the last step that said anything.
    fn last_words(&mut self) -> String {
        let last = self.words.last().map_or(0, |(step, _)| *step);
        let before = self.words.iter().filter(|(step, _)| *step != last).count();
        (0..before).for_each(|_| self.lose(Lost::Text));
        self.words.retain(|(step, _)| *step == last);
        self.all_words()
    }

    /// What a message has beside its parts and has no place here.
    fn lose_the_rest(&mut self, content: &Content, role: &str) {
        let of_assistant = role == "assistant";
        let metadata = content.metadata.keys().any(|key| of_assistant || key != STANZA_ID);
        let lost = [
            (!content.results.is_empty(), Lost::Record(Kind::ToolResult)),
            (!content.notes.is_empty(), Lost::RunNotes),
            (content.model.is_some(), Lost::Model),
            (content.usage.is_some(), Lost::Usage),
            (content.context.cwd.is_some() || content.context.git_branch.is_some(), Lost::Environment),
            (content.context.platform.is_some() || content.context.user_type.is_some(), Lost::Platform),
            (content.todos.is_some(), Lost::Todos),
            (content.thinking.is_some(), Lost::ThinkingMode),
            (content.sender.is_some() && of_assistant, Lost::Sender),
            (content.error.is_some(), Lost::Error),
            (metadata, Lost::Metadata),
        ];
        lost.into_iter().filter(|(is, _)| *is).for_each(|(_, what)| self.lose(what));
    }
}

/// A reaction as the agent has it, where it names a message.
fn reaction(told: &Value) -> Option<Value> {
    let message = told.get("message_id")?.as_str()?;
    let emojis = told.get("emojis").and_then(Value::as_array);
    let emojis: Vec<&str> = emojis.into_iter().flatten().filter_map(Value::as_str).collect();
    Some(json!({"message_id": message, "emojis": emojis}))
}
