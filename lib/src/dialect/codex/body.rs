//! The body of a Codex line.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::{Line, Payload};
use super::record_class::{Bare, Item, LineType};
use super::{context, local, part, tool_output};
use crate::dialect;
use crate::model::json;
use crate::model::lenient::{self, RawObject, Text};
use crate::model::message::{Part, parts_from};
use crate::model::record::{Body, Compaction, Content, Context, Display, Kind, Rewind, Snapshot};

pub(super) fn parse(text: &str) -> Body {
    let Ok(line) = json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    let line_type = LineType::from_line(&line);
    let envelope = json::from_str::<RawObject<'_>>(text).unwrap_or_default();
    let json = match line_type {
        LineType::Bare(_) => text,
        _ => envelope.raw("payload").map_or("{}", RawValue::get),
    };
    let payload: RawObject<'_> = json::from_str(json).unwrap_or_default();
    match line_type {
        LineType::Item | LineType::Bare(Bare::Item) => item(text, json, &payload),
        LineType::Compacted => Body::Compaction(compaction(&payload)),
        LineType::Event if payload.text("type").as_deref() == Some("thread_rolled_back") => {
            Body::Rewind(Rewind::from_count(payload.count("num_turns").unwrap_or(0), "turn"))
        }
        LineType::Event
            if payload.text("type").as_deref() == Some("task_complete") && payload.raw("error").is_some() =>
        {
            Body::System(failed_turn(&payload.object("error")))
        }
        LineType::Context if payload.get::<Text<'_>>("model").0.is_some() => turn_context(json, &payload),
        LineType::Meta | LineType::Context | LineType::Event | LineType::Usage | LineType::Bare(_) => {
            Body::from_json(Kind::Header, json)
        }
        LineType::Untyped | LineType::Unknown(_) => Body::from_json(Kind::Other, text),
    }
}

/// The working directory and the model of the answers that follow.
fn turn_context(json: &str, payload: &RawObject<'_>) -> Body {
    Body::Attachment(Content {
        parts: vec![Part::data("context", lenient::parse(json))],
        model: payload.string("model"),
        context: Context { cwd: payload.string("cwd"), ..Context::default() },
        ..Content::default()
    })
}

/// A turn that ended in an error instead of an answer.
fn failed_turn(error: &RawObject<'_>) -> Content {
    let kind = error.raw("codex_error_info").map(lenient::text_or_json);
    let error_kind = kind.filter(|kind| !kind.is_empty()).unwrap_or_else(|| "error".to_owned());
    Content { error: Some(error_kind), ..Content::from(error.string("message").unwrap_or_default()) }
}

/// Without a `replacement_history` the model still sees the prompts and the summary.
fn compaction(payload: &RawObject<'_>) -> Compaction {
    let history = payload.raw("replacement_history");
    let history = history.and_then(lenient::elements);
    let is_summary =
        |raw: &RawValue| json::from_str::<Payload<'_>>(raw.get()).is_ok_and(|message| context::is_summary(&message));
    // In the place of the conversation, its summary is what the user says.
    let body = |raw: &RawValue| match item(raw.get(), raw.get(), &RawObject::from_raw(raw).unwrap_or_default()) {
        Body::Attachment(content) if is_summary(raw) => {
            Body::User(Content { to_model: false, instructs: false, ..content })
        }
        body => body,
    };
    let in_history = history.iter().flatten().find(|raw| is_summary(raw)).map(|raw| body(raw));
    let in_history = in_history.and_then(|body| body.content().map(Content::text));
    Compaction {
        summary: payload.string("message").filter(|text| !text.is_empty()).or(in_history),
        replacement: history.map(|items| items.into_iter().map(body).collect()),
        cuts: true,
        keeps_prompts: true,
        ..Compaction::default()
    }
}

fn item(text: &str, json: &str, payload: &RawObject<'_>) -> Body {
    let answer = |part: Part| Body::Assistant(Content::from([part]));
    let kind = payload.text("type");
    match kind.as_deref().and_then(Item::from_type) {
        Some(Item::Message) => message(json, payload),
        Some(Item::Reasoning) => answer(part::reasoning(payload)),
        Some(Item::Call) => answer(part::call(payload)),
        Some(Item::Hosted) => answer(part::hosted_call(payload)),
        Some(Item::Result) => {
            let call_id = payload.string("call_id").unwrap_or_default();
            let success = payload.parsed("success");
            Body::ToolResult(
                tool_output::result(call_id, payload.raw("output").or(payload.raw("tools")), success).into(),
            )
        }
        Some(Item::Context) => {
            // A compaction is sent again, even if only the model can read it; the tools are listed anew.
            let to_model = kind.as_deref() != Some("additional_tools");
            let text = compaction_text(payload).filter(|_| to_model);
            let part = text.map_or_else(|| Part::data("context", lenient::parse(json)), Part::text);
            Body::Attachment(Content { parts: vec![part], to_model, ..Content::default() })
        }
        Some(Item::Snapshot) => {
            let extra = if let Value::Object(extra) = lenient::parse(json) { extra } else { Map::new() };
            Body::Snapshot(Snapshot { extra, ..Snapshot::default() })
        }
        None => Body::from_json(Kind::Other, text),
    }
}

/// The text of a compaction that people can read.
fn compaction_text(payload: &RawObject<'_>) -> Option<String> {
    if payload.raw("encrypted_content").is_some_and(|raw| raw.get() != "null") {
        return None;
    }
    let text = |key| {
        let parts = parts_from(payload.value(key).unwrap_or_default(), part::content_part);
        let text = Content::from(parts).text();
        Some(text).filter(|text| !text.trim().is_empty())
    };
    ["summary", "content", "message", "text"].into_iter().find_map(text)
}

fn message(json: &str, payload: &RawObject<'_>) -> Body {
    let content = Content::from(parts_from(payload.value("content").unwrap_or_default(), part::content_part));
    let message = json::from_str::<Payload<'_>>(json).unwrap_or_default();
    match message.role.0.as_deref() {
        Some("assistant") => Body::Assistant(content),
        Some("user") if context::is_prompt(&message) => {
            let display = dialect::local::typed(payload, &content);
            Body::User(Content { display, ..content })
        }
        Some("user") if local::display(&message).is_some() => {
            let display = local::display(&message);
            let error = (display == Some(Display::Interrupted)).then(|| "interrupted".to_owned());
            Body::System(Content { display, error, to_model: true, ..content })
        }
        Some("user") => Body::Attachment(Content { to_model: context::is_kept(&message), ..content }),
        role => {
            let instructs = matches!(role, Some("developer" | "system"));
            Body::Attachment(Content { instructs, to_model: context::is_summary(&message), ..content })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    #[test]
    fn a_snapshot_keeps_numbers_that_64_bits_cannot_hold() {
        let payload = r#"{"type":"ghost_snapshot","size":1e400,"id":123456789012345678901234567890}"#;
        let body = parse(&format!(r#"{{"type":"response_item","payload":{payload}}}"#));
        let Body::Snapshot(snapshot) = body else { panic!("{body:?}") };
        assert_eq!(json::to_string(&snapshot.extra), payload);
    }
}
