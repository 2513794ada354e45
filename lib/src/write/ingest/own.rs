//! Our own words: one key a line, `{"user": "…"}`.

use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Heard, Refused, Saying, stanza, words};
use crate::model::issue::quoted;
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, RecordId, Restore, Snapshot, Title, TitleSource};
use crate::write::recorder::Delta;

/// One word, one meaning.
const WORDS: [(&str, Meaning); 16] = [
    ("user", |value, heard| content(value, Body::User, heard)),
    ("assistant", |value, heard| content(value, Body::Assistant, heard)),
    ("toolResult", results),
    ("system", |value, heard| content(value, Body::System, heard)),
    ("todos", |value, heard| words::todos(value).map(|todos| heard.say(Saying::Todos(todos)))),
    ("thinking", |value, heard| words::thinking(value, heard).map(|mode| heard.say(Saying::Thinking(mode)))),
    ("usage", |value, heard| words::usage(value, heard).map(|usage| heard.say(Saying::Usage(usage)))),
    ("title", title),
    ("compaction", compaction),
    ("error", error),
    ("rewind", rewind),
    ("snapshot", snapshot),
    ("restore", restore),
    ("delta", delta),
    ("finish", finish),
    (MESSAGE, stanza::hear),
];

/// What other words have beside them too: only without them, and in no stream, it is one.
const MESSAGE: &str = "message";

type Meaning = fn(Value, &mut Heard) -> Result<(), Refused>;

/// What can be said.
pub(super) fn known() -> String {
    let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    format!("known words: {}", words.join(", "))
}

/// The word of ours that an object has.
pub(super) fn word_in(object: &Map<String, Value>) -> Option<&'static str> {
    WORDS.iter().map(|(word, _)| *word).find(|word| *word != MESSAGE && object.contains_key(*word))
}

pub(super) fn hear(mut object: Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
    let mut found = WORDS.iter().filter(|(word, _)| object.contains_key(*word));
    let Some((word, meaning)) = found.next() else {
        let what = match object.keys().next() {
            Some(key) => format!("{} is no word of a recording", quoted(key)),
            None => "an empty object says nothing".to_owned(),
        };
        return Err(Refused(format!("{what}; {}", known())));
    };
    if let Some((other, _)) = found.next().filter(|(other, _)| *other != MESSAGE) {
        return Err(Refused(format!("{word} and {other} are two things: one a line")));
    }
    let value = object.shift_remove(*word).unwrap_or_default();
    // What stands beside the word belongs to what was said, where it can have more to it.
    let value = match value {
        Value::Object(mut inner) if matches!(*word, "user" | "assistant" | "system") => {
            object.into_iter().for_each(|(key, value)| _ = inner.entry(key).or_insert(value));
            Value::Object(inner)
        }
        value if matches!(*word, "user" | "assistant" | "system") && !object.is_empty() => {
            object.insert("content".to_owned(), value);
            Value::Object(object)
        }
        value => {
            object.keys().for_each(|key| heard.lose(key.as_str()));
            value
        }
    };
    meaning(value, heard).map_err(|Refused(why)| Refused(format!("{word}: {why}")))
}

/// A message in the way of the models' APIs: `{role, content}`.
pub(super) fn spoken(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["message"], "an object", &value)) };
    let mut fields = Fields(object);
    match fields.needed(&["role"])?.as_str() {
        "user" => content(fields.0.into(), Body::User, heard),
        "assistant" => content(fields.0.into(), Body::Assistant, heard),
        "system" | "developer" => content(fields.0.into(), Body::System, heard),
        "tool" => results(fields.0.into(), heard),
        role => Err(Refused(format!("no role is {}; known: user, assistant, system, tool", quoted(role)))),
    }
}

fn content(value: Value, body: fn(Content) -> Body, heard: &mut Heard) -> Result<(), Refused> {
    let is_system = matches!(body(Content::default()), Body::System(_));
    // What an agent says as the system it says to the model, unless it says otherwise.
    let mut said = Content { to_model: is_system, ..Content::default() };
    let rest = match value {
        Value::Object(object) if !object.contains_key("type") => {
            let mut fields = Fields(object);
            for content in [fields.any(&["content"]), fields.any(&["parts"]), fields.any(&["text"])] {
                words::content(content.unwrap_or_default(), &mut said)?;
            }
            if let Some(attachments) = fields.any(&["attachments"]) {
                words::attachments(attachments, &mut said)?;
            }
            if let Some(calls) = fields.any(&["toolCalls", "tool_calls"]) {
                words::calls(calls, &mut said, heard)?;
            }
            if let Some(reaction) = fields.any(&["reaction"]) {
                said.parts.push(Part::data("reaction", reaction));
            }
            fields.any(&["role"]);
            said.sender = fields.text(&["sender"])?;
            said.model = fields.text(&["model"])?;
            said.usage = fields.any(&["usage"]).map(|usage| words::usage(usage, heard)).transpose()?;
            said.todos = fields.any(&["todos"]).map(words::todos).transpose()?;
            said.thinking = fields.any(&["thinking"]).map(|mode| words::thinking(mode, heard)).transpose()?;
            said.context.cwd = fields.text(&["cwd"])?;
            said.context.git_branch = fields.text(&["gitBranch"])?;
            if is_system {
                said.to_model = fields.flag(&["toModel"])?.unwrap_or(true);
                said.instructs = fields.flag(&["instructs"])? == Some(true);
            }
            words::about(fields.object(&["metadata"])?.unwrap_or_default(), &mut said, heard);
            fields.0
        }
        other => {
            words::content(other, &mut said)?;
            Map::new()
        }
    };
    words::keep(rest, &mut said, heard);
    if !said.results.is_empty() && said.parts.is_empty() {
        heard.body(Body::ToolResult(said));
        return Ok(());
    }
    let (metadata, to_model, instructs) = (said.metadata.clone(), said.to_model, said.instructs);
    if said == (Content { metadata, to_model, instructs, ..Content::default() }) {
        return Err(Refused::because("nothing is said: content is missing"));
    }
    heard.body(body(said));
    Ok(())
}

fn results(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    let results = list.into_iter().map(|result| words::result(result, heard)).collect::<Result<Vec<_>, _>>()?;
    if results.is_empty() {
        return Err(Refused::because("an empty list"));
    }
    heard.body(Body::ToolResult(Content { results, ..Content::default() }));
    Ok(())
}

fn title(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let (text, source) = match value {
        Value::String(text) => (text, TitleSource::Manual),
        Value::Object(object) => {
            let mut fields = Fields(object);
            let text = fields.needed(&["text", "title"])?;
            let source = match fields.text(&["source", "titleSource"])?.as_deref() {
                None | Some("manual") => TitleSource::Manual,
                Some("automatic") => TitleSource::Automatic,
                Some("summary") => TitleSource::Summary,
                Some(other) => {
                    return Err(Refused(format!("no title is {}; known: manual, automatic, summary", quoted(other))));
                }
            };
            lose_rest(&fields, heard);
            (text, source)
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    };
    let text = Title::checked(&text).map_err(Refused)?;
    heard.body(Body::Title(Title { text, source }));
    Ok(())
}

fn compaction(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let mut compaction = Compaction { cuts: true, ..Compaction::default() };
    match value {
        Value::String(summary) => compaction.summary = Some(summary),
        Value::Object(object) => {
            let mut fields = Fields(object);
            compaction.summary = Some(fields.needed(&["summary", "text"])?);
            compaction.trigger = fields.text(&["trigger"])?;
            compaction.tokens_before = fields.count(&["tokensBefore"])?;
            compaction.tokens_after = fields.count(&["tokensAfter"])?;
            if let Some(preserved) = fields.any(&["preserved"]) {
                let ids: Vec<String> = serde_json::from_value(preserved.clone())
                    .map_err(|_| wrong(&["preserved"], "a list of records", &preserved))?;
                compaction.preserved = ids.into_iter().map(RecordId).collect();
            }
            lose_rest(&fields, heard);
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    }
    heard.body(Body::Compaction(compaction));
    Ok(())
}

fn error(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let mut content = Content::default();
    match value {
        Value::String(text) => {
            content.parts.push(Part::text(text));
            content.error = Some("error".to_owned());
        }
        Value::Object(object) => {
            let mut fields = Fields(object);
            content.parts.push(Part::text(fields.needed(&["text", "message"])?));
            content.error = Some(fields.text(&["kind", "type", "name", "code"])?.unwrap_or_else(|| "error".to_owned()));
            words::keep(fields.0, &mut content, heard);
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    }
    heard.body(Body::System(content));
    Ok(())
}

fn rewind(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let (to, reason) = match value {
        Value::String(to) => (to, None),
        Value::Object(object) => {
            let mut fields = Fields(object);
            let told = (fields.needed(&["to", "record"])?, fields.text(&["reason"])?);
            lose_rest(&fields, heard);
            told
        }
        other => return Err(wrong(&["it"], "a record's id or an object", &other)),
    };
    heard.say(Saying::Rewind { to, reason });
    Ok(())
}

fn snapshot(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object", &value)) };
    let mut fields = Fields(object);
    let message = fields.text(&["message", "messageId"])?.map(RecordId);
    let states = match fields.any(&["states", "snapshot"]) {
        Some(states) => {
            lose_rest(&fields, heard);
            states
        }
        None => fields.0.into(),
    };
    let files = ["trackedFiles", "fileBackups", "trackedFileBackups"].map(|key| states.get(key));
    if !states.is_object() || files.iter().flatten().any(|files| !files.is_object()) {
        return Err(Refused::because("states are {trackedFiles, fileBackups}, each an object by file"));
    }
    heard.body(Body::Snapshot(Snapshot { message, states }));
    Ok(())
}

fn restore(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object", &value)) };
    let mut fields = Fields(object);
    let restore = Restore {
        target: fields.text(&["target"])?.map(RecordId),
        files: fields.any(&["files"]).unwrap_or_default(),
        todos: fields.any(&["todos"]).map(words::todos).transpose()?,
    };
    lose_rest(&fields, heard);
    heard.body(Body::Restore(restore));
    Ok(())
}

fn delta(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let object = match value {
        Value::String(text) => {
            heard.say(Saying::Delta(Delta::Text(text)));
            return Ok(());
        }
        Value::Object(object) => object,
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    };
    let mut fields = Fields(object);
    let mut deltas = Vec::new();
    deltas.extend(fields.text(&["model"])?.map(Delta::Model));
    deltas.extend(fields.text(&["reasoning", "thinking"])?.map(Delta::Reasoning));
    deltas.extend(fields.text(&["text"])?.map(Delta::Text));
    if let Some(part) = fields.any(&["part"]) {
        let mut said = Content::default();
        words::content(part, &mut said)?;
        deltas.extend(said.parts.into_iter().map(Delta::Part));
    }
    if let Some(calls) = fields.any(&["toolCalls", "tool_calls"]) {
        let mut said = Content::default();
        words::calls(calls, &mut said, heard)?;
        deltas.extend(said.parts.into_iter().map(Delta::Part));
    }
    deltas.extend((fields.flag(&["end"])? == Some(true)).then_some(Delta::End(None)));
    if deltas.is_empty() {
        return Err(Refused::because("nothing goes on; known: text, reasoning, part, toolCalls, model, end"));
    }
    lose_rest(&fields, heard);
    deltas.into_iter().for_each(|delta| heard.say(Saying::Delta(delta)));
    Ok(())
}

fn finish(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let mut fields = match value {
        Value::Null | Value::Bool(true) => Fields(Map::new()),
        Value::Object(object) => Fields(object),
        other => return Err(wrong(&["it"], "an object", &other)),
    };
    let usage = fields.any(&["usage"]).map(|usage| words::usage(usage, heard)).transpose()?;
    lose_rest(&fields, heard);
    heard.say(Saying::Finish(usage));
    Ok(())
}

fn lose_rest(fields: &Fields, heard: &mut Heard) {
    fields.0.keys().for_each(|key| heard.lose(key.as_str()));
}
