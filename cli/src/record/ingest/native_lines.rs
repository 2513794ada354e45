//! Our own lines: one key each, as in `{"user": "…"}`.

use scrollback::model::json;
use scrollback::model::{Body, Compaction, Content, Part, RecordId, Restore, Snapshot, Title, TitleSource, quoted};
use scrollback::write::Delta;
use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Op, Parsed, Refused, content, usage, xmpp};

/// Every key and its parser.
const KEYS: [(&str, Parser); 16] = [
    ("user", |value, parsed| content(value, Body::User, parsed)),
    ("assistant", |value, parsed| content(value, Body::Assistant, parsed)),
    ("toolResult", results),
    ("system", |value, parsed| content(value, Body::System, parsed)),
    ("todos", |value, parsed| content::todos(value).map(|todos| parsed.push(Op::Todos(todos)))),
    ("thinking", |value, parsed| content::thinking(value, parsed).map(|mode| parsed.push(Op::Thinking(mode)))),
    ("usage", |value, parsed| usage::usage(value, parsed).map(|usage| parsed.push(Op::Usage(usage)))),
    ("title", title),
    ("compaction", compaction),
    ("error", error),
    ("rewind", rewind),
    ("snapshot", snapshot),
    ("restore", restore),
    ("delta", delta),
    ("finish", finish),
    (MESSAGE, xmpp::parse),
];

/// Other lines and streams have a field of this name too: it counts only where nothing else does.
const MESSAGE: &str = "message";

type Parser = fn(Value, &mut Parsed) -> Result<(), Refused>;

/// The list of keys for an error message.
pub(super) fn known_keys() -> String {
    let keys: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    format!("known keys: {}", keys.join(", "))
}

/// The key of ours that an object has.
pub(super) fn key_of(object: &Map<String, Value>) -> Option<&'static str> {
    KEYS.iter().map(|(key, _)| *key).find(|key| *key != MESSAGE && object.contains_key(*key))
}

pub(super) fn parse(mut object: Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
    let mut found = KEYS.iter().filter(|(key, _)| object.contains_key(*key));
    let Some((key, parser)) = found.next() else {
        let what = match object.keys().next() {
            Some(key) => format!("unknown key {}", quoted(key)),
            None => "an empty object".to_owned(),
        };
        return Err(Refused(format!("{what}; {}", known_keys())));
    };
    if let Some((other, _)) = found.next().filter(|(other, _)| *other != MESSAGE) {
        return Err(Refused(format!("{key} and {other} need a line each")));
    }
    let value = object.shift_remove(*key).unwrap_or_default();
    if json::number_text(&value).is_some() {
        return Err(wrong(&[key], "a text, a list or an object", &value));
    }
    // Fields beside the key of a message belong to the message.
    let has_fields = matches!(*key, "user" | "assistant" | "system");
    let value = match value {
        Value::Object(mut inner) if has_fields => {
            object.into_iter().for_each(|(key, value)| _ = inner.entry(key).or_insert(value));
            Value::Object(inner)
        }
        value if has_fields && !object.is_empty() => {
            object.insert("content".to_owned(), value);
            Value::Object(object)
        }
        value => {
            object.keys().for_each(|key| parsed.lose(key.as_str()));
            value
        }
    };
    parser(value, parsed).map_err(|Refused(why)| Refused(format!("{key}: {why}")))
}

/// A message as the models' APIs have it: `{role, content}`.
pub(super) fn api_message(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["message"], "an object", &value)) };
    let mut fields = Fields(object);
    match fields.needed(&["role"])?.as_str() {
        "user" => content(fields.0.into(), Body::User, parsed),
        "assistant" => content(fields.0.into(), Body::Assistant, parsed),
        "system" | "developer" => content(fields.0.into(), Body::System, parsed),
        "tool" => results(fields.0.into(), parsed),
        role => Err(Refused(format!("unknown role {}; known: user, assistant, system, tool", quoted(role)))),
    }
}

fn content(value: Value, body: fn(Content) -> Body, parsed: &mut Parsed) -> Result<(), Refused> {
    let is_system = matches!(body(Content::default()), Body::System(_));
    // A system message goes to the model by default.
    let mut content = Content { to_model: is_system, ..Content::default() };
    let rest = match value {
        Value::Object(object) if !object.contains_key("type") => {
            let mut fields = Fields(object);
            for value in [fields.any(&["content"]), fields.any(&["parts"]), fields.any(&["text"])] {
                content::content(value.unwrap_or_default(), &mut content)?;
            }
            if let Some(attachments) = fields.any(&["attachments"]) {
                content::attachments(attachments, &mut content)?;
            }
            if let Some(calls) = fields.any(&["toolCalls", "tool_calls"]) {
                content::calls(calls, &mut content, parsed)?;
            }
            if let Some(reaction) = fields.any(&["reaction"]) {
                content.parts.push(Part::data("reaction", reaction));
            }
            fields.any(&["role"]);
            content.sender = fields.text(&["sender"])?;
            content.model = fields.text(&["model"])?;
            content.usage = fields.any(&["usage"]).map(|usage| usage::usage(usage, parsed)).transpose()?;
            content.todos = fields.any(&["todos"]).map(content::todos).transpose()?;
            content.thinking = fields.any(&["thinking"]).map(|mode| content::thinking(mode, parsed)).transpose()?;
            content.context.cwd = fields.text(&["cwd"])?;
            content.context.git_branch = fields.text(&["gitBranch"])?;
            if is_system {
                content.to_model = fields.flag(&["toModel"])?.unwrap_or(true);
                content.instructs = fields.flag(&["instructs"])? == Some(true);
            }
            content::add_metadata(fields.object(&["metadata"])?.unwrap_or_default(), &mut content, parsed);
            fields.0
        }
        other => {
            content::content(other, &mut content)?;
            Map::new()
        }
    };
    content::keep_metadata(rest, &mut content, parsed);
    if !content.results.is_empty() && content.parts.is_empty() {
        parsed.body(Body::ToolResult(content));
        return Ok(());
    }
    let (metadata, to_model, instructs) = (content.metadata.clone(), content.to_model, content.instructs);
    if content == (Content { metadata, to_model, instructs, ..Content::default() }) {
        return Err(Refused::because("content is missing"));
    }
    parsed.body(body(content));
    Ok(())
}

fn results(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    let results = list.into_iter().map(|result| content::result(result, parsed)).collect::<Result<Vec<_>, _>>()?;
    if results.is_empty() {
        return Err(Refused::because("an empty list"));
    }
    parsed.body(Body::ToolResult(Content { results, ..Content::default() }));
    Ok(())
}

fn title(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
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
                    return Err(Refused(format!(
                        "unknown title source {}; known: manual, automatic, summary",
                        quoted(other)
                    )));
                }
            };
            lose_rest(&fields, parsed);
            (text, source)
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    };
    let text = Title::checked(&text).map_err(Refused)?;
    parsed.body(Body::Title(Title { text, source }));
    Ok(())
}

fn compaction(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let mut compaction = Compaction { cuts: true, ..Compaction::default() };
    match value {
        Value::String(summary) => compaction.summary = Some(summary),
        Value::Object(object) => {
            let mut fields = Fields(object);
            compaction.summary = Some(fields.needed(&["summary", "text"])?);
            compaction.trigger = fields.text(&["trigger"])?;
            compaction.messages = fields.count(&["messages"])?;
            compaction.tokens_before = fields.count(&["tokensBefore"])?;
            compaction.tokens_after = fields.count(&["tokensAfter"])?;
            if let Some(preserved) = fields.any(&["preserved"]) {
                let ids: Vec<String> = serde_json::from_value(preserved.clone())
                    .map_err(|_| wrong(&["preserved"], "a list of records", &preserved))?;
                compaction.preserved = ids.into_iter().map(RecordId).collect();
            }
            lose_rest(&fields, parsed);
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    }
    parsed.body(Body::Compaction(compaction));
    Ok(())
}

fn error(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
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
            content::keep_metadata(fields.0, &mut content, parsed);
        }
        other => return Err(wrong(&["it"], "a text or an object", &other)),
    }
    parsed.body(Body::System(content));
    Ok(())
}

fn rewind(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let (to, reason) = match value {
        Value::String(to) => (to, None),
        Value::Object(object) => {
            let mut fields = Fields(object);
            let target = (fields.needed(&["to", "record"])?, fields.text(&["reason"])?);
            lose_rest(&fields, parsed);
            target
        }
        other => return Err(wrong(&["it"], "a record's id or an object", &other)),
    };
    parsed.push(Op::Rewind { to, reason });
    Ok(())
}

/// What a snapshot may say.
const SNAPSHOT_FORMS: &str = "states must be {trackedFiles, fileBackups}, two objects with a key for each file; \
    or give before: [paths], after: true, or watch: a folder";

fn snapshot(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object", &value)) };
    let mut fields = Fields(object);
    if let Some(op) = files_op(&mut fields)? {
        lose_rest(&fields, parsed);
        parsed.push(op);
        return Ok(());
    }
    if fields.0.is_empty() {
        return Err(Refused::because(SNAPSHOT_FORMS));
    }
    let message = fields.text(&["message", "messageId"])?.map(RecordId);
    let update = fields.flag(&["update", "isSnapshotUpdate"])?.unwrap_or_default();
    let states = match fields.any(&["states", "snapshot"]) {
        Some(states) => {
            lose_rest(&fields, parsed);
            states
        }
        None => fields.0.into(),
    };
    let files = ["trackedFiles", "fileBackups", "trackedFileBackups"].map(|key| states.get(key));
    if !json::is_object(&states) || files.iter().flatten().any(|files| !json::is_object(files)) {
        return Err(Refused::because(SNAPSHOT_FORMS));
    }
    parsed.body(Body::Snapshot(Snapshot::from_states(message, update, states)));
    Ok(())
}

/// What the recorder is to find out about files by itself.
fn files_op(fields: &mut Fields) -> Result<Option<Op>, Refused> {
    const FORMS: [&str; 3] = ["before", "after", "watch"];
    let found: Vec<&str> = FORMS.into_iter().filter(|form| fields.0.contains_key(*form)).collect();
    if let [first, second, ..] = found[..] {
        return Err(Refused(format!("{first} and {second} need a line each")));
    }
    if let Some(before) = fields.any(&["before"]) {
        let paths = serde_json::from_value(before.clone()).map_err(|_| match before {
            Value::Array(_) => Refused::because("before has something in it that is no path"),
            before => wrong(&["before"], "a list of paths", &before),
        })?;
        return Ok(Some(Op::BeforeTool(paths)));
    }
    if let Some(root) = fields.text(&["watch"])? {
        return Ok(Some(Op::Watch(root.into())));
    }
    match fields.flag(&["after"])? {
        Some(true) => Ok(Some(Op::AfterTool)),
        Some(false) => Err(Refused::because("after is false and should be true")),
        None if found.is_empty() => Ok(None),
        None => Err(Refused(format!("{} is nothing and should be a value", found.join("")))),
    }
}

fn restore(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object", &value)) };
    let mut fields = Fields(object);
    let restore = Restore {
        target: fields.text(&["target"])?.map(RecordId),
        files: fields.any(&["files"]).unwrap_or_default(),
        todos: fields.any(&["todos"]).map(content::todos).transpose()?,
        ..Restore::default()
    };
    let to = fields.text(&["to"])?;
    lose_rest(&fields, parsed);
    match to {
        Some(to) => parsed.push(Op::Restore { to, restore }),
        None => parsed.body(Body::Restore(restore)),
    }
    Ok(())
}

fn delta(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let object = match value {
        Value::String(text) => {
            parsed.push(Op::Delta(Delta::Text(text)));
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
        let mut content = Content::default();
        content::content(part, &mut content)?;
        deltas.extend(content.parts.into_iter().map(Delta::Part));
    }
    if let Some(calls) = fields.any(&["toolCalls", "tool_calls"]) {
        let mut content = Content::default();
        content::calls(calls, &mut content, parsed)?;
        deltas.extend(content.parts.into_iter().map(Delta::Part));
    }
    deltas.extend((fields.flag(&["end"])? == Some(true)).then_some(Delta::End(None)));
    if deltas.is_empty() {
        return Err(Refused::because("no known field; known: text, reasoning, part, toolCalls, model, end"));
    }
    lose_rest(&fields, parsed);
    deltas.into_iter().for_each(|delta| parsed.push(Op::Delta(delta)));
    Ok(())
}

fn finish(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let mut fields = match value {
        Value::Null | Value::Bool(true) => Fields(Map::new()),
        Value::Object(object) => Fields(object),
        other => return Err(wrong(&["it"], "an object", &other)),
    };
    let usage = fields.any(&["usage"]).map(|usage| usage::usage(usage, parsed)).transpose()?;
    lose_rest(&fields, parsed);
    parsed.push(Op::Finish(usage));
    Ok(())
}

fn lose_rest(fields: &Fields, parsed: &mut Parsed) {
    fields.0.keys().for_each(|key| parsed.lose(key.as_str()));
}
