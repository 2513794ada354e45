//! What a sage line says.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::kind_of;
use super::line::{Call, Line, made_up_call_id};
use crate::model::lenient;
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Body, Content, Context, Kind, Outcome, ToolResult};

pub(super) fn of(text: &str) -> Body {
    let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    match line.role.0.as_deref().and_then(kind_of) {
        Some(Kind::User) => Body::User(line.content(text)),
        Some(Kind::Assistant) => Body::Assistant(line.content(text)),
        Some(Kind::ToolResult) => Body::ToolResult(line.result(text)),
        Some(Kind::System) => Body::System(Content { to_model: true, ..line.content(text) }),
        _ => Body::Other(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
    }
}

impl Line<'_> {
    fn content(self, text: &str) -> Content {
        let usage = self.usage();
        let free = self.metadata.0.unwrap_or_default();
        let mut said = Content {
            parts: self.content.map(parts).unwrap_or_default(),
            model: self.model.owned().or(free.model.owned()),
            usage,
            context: Context {
                cwd: self.cwd.owned(),
                git_branch: self.git_branch.owned().or(free.git_branch.owned()),
                ..Context::default()
            },
            ..Content::default()
        };
        for (at, call) in self.tool_calls.0.into_iter().enumerate() {
            let id = call.id.clone().owned().unwrap_or_else(|| made_up_call_id(text, at));
            let name = call.name.clone().owned().unwrap_or_else(|| "unknown".to_owned());
            let input = call.args.map(lenient::value).unwrap_or_default();
            said.parts.push(ToolPart::dynamic(name, id.clone(), ToolState::called(input)).into());
            said.results.extend(call.is_answered().then(|| inline_result(&call, id)));
        }
        said
    }

    /// The output of a tool as a line of its own.
    fn result(mut self, text: &str) -> Content {
        let (call, name) = (std::mem::take(&mut self.tool_call_id), std::mem::take(&mut self.name));
        let output = self.content.take().map(lenient::value).unwrap_or_default();
        let mut said = self.content(text);
        said.results.push(ToolResult {
            call_id: call.owned().unwrap_or_else(|| made_up_call_id(text, 0)),
            name: name.owned(),
            output,
            outcome: Outcome::Done,
            preliminary: false,
            duration_ms: None,
            about: Map::new(),
        });
        said
    }
}

fn inline_result(call: &Call<'_>, call_id: String) -> ToolResult {
    let reason = call.error.map(lenient::text_or_json).filter(|text| !text.is_empty());
    let success = call.success.map(RawValue::get);
    let failed = success == Some("false") || (success != Some("true") && reason.is_some());
    let told = || call.result.map(lenient::text_or_json).filter(|text| !text.is_empty());
    let outcome = match failed {
        true => Outcome::Failed(reason.or_else(told).unwrap_or_else(|| "the tool failed".to_owned())),
        false => Outcome::Done,
    };
    ToolResult {
        call_id,
        name: None,
        output: call.result.map(lenient::value).unwrap_or_default(),
        outcome,
        preliminary: false,
        duration_ms: call.duration_ms.0,
        about: Map::new(),
    }
}

/// A `content` is a text; the later schema allows pieces.
fn parts(content: &RawValue) -> Vec<Part> {
    match lenient::value(content) {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(pieces) => pieces.into_iter().map(Part::from).collect(),
        other => vec![Part::from(other)],
    }
}
