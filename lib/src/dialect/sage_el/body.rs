//! The body of a sage line.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::line::{Line, has_result, made_up_call_id};
use crate::model::json;
use crate::model::lenient::{self, RawObject};
use crate::model::message::{Part, ToolPart, ToolState, parts_from};
use crate::model::record::{Body, Content, Context, Kind, Outcome, ToolResult};

/// The key of sage's estimate, in a line and in a message's metadata.
pub(super) const TOKENS: &str = "tokens";

/// About how many tokens a text has: a token has about four characters.
pub(super) fn estimated_tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

pub(super) fn parse(text: &str) -> Body {
    let Ok(line) = json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    match line.kind() {
        Some(Kind::ToolResult) => Body::ToolResult(line.tool_result(text)),
        kind => {
            let kind = kind.unwrap_or(Kind::Other);
            let content = || Content { to_model: kind == Kind::System, ..line.content(text) };
            Body::from_content_or_json(kind, content, text)
        }
    }
}

impl Line<'_> {
    fn content(&self, text: &str) -> Content {
        let mut content = Content {
            // The later schema allows a list of parts.
            parts: parts_from(self.content.map(lenient::value).unwrap_or_default(), Part::from),
            model: self.model().map(Cow::into_owned),
            usage: self.usage(),
            context: Context {
                cwd: self.cwd.clone().owned(),
                git_branch: self.git_branch().map(Cow::into_owned),
                ..Context::default()
            },
            metadata: self.estimate().map(|estimate| (TOKENS.to_owned(), estimate)).into_iter().collect(),
            ..Content::default()
        };
        for (at, call) in self.tool_calls.0.iter().enumerate() {
            let id = call.string("id").unwrap_or_else(|| made_up_call_id(text, at));
            let name = call.string("name").unwrap_or_else(|| "unknown".to_owned());
            let input = call.value("args").unwrap_or_default();
            content.parts.push(ToolPart::dynamic(name, id.clone(), ToolState::called(input)).into());
            content.results.extend(has_result(call).then(|| inline_result(call, id)));
        }
        content
    }

    /// What sage noted about the length of the text. A quarter of its characters says nothing that the text does not.
    fn estimate(&self) -> Option<Value> {
        let tokens = self.tokens.0.as_ref()?;
        let text = self.content.map(lenient::text_or_json).unwrap_or_default();
        let is_ours = tokens.count("estimated") == Some(estimated_tokens(&text)) && tokens.values().count() == 1;
        Some(Value::Object(tokens.values().collect())).filter(|_| !is_ours)
    }

    /// The output of a tool as a line of its own.
    fn tool_result(mut self, text: &str) -> Content {
        let output = self.content.take().map(lenient::value).unwrap_or_default();
        let mut content = self.content(text);
        let call_id = self.tool_call_id.owned().unwrap_or_else(|| made_up_call_id(text, 0));
        let name = self.name.owned();
        content.results.push(ToolResult { name, ..ToolResult::new(call_id, output, Outcome::Done) });
        content
    }
}

fn inline_result(call: &RawObject<'_>, call_id: String) -> ToolResult {
    let text = |key: &str| call.raw(key).map(lenient::text_or_json).filter(|text| !text.is_empty());
    let (reason, success) = (text("error"), call.raw("success").map(RawValue::get));
    let failed = success == Some("false") || (success != Some("true") && reason.is_some());
    let outcome = match failed {
        true => Outcome::Failed(reason.or_else(|| text("result")).unwrap_or_else(|| "the tool failed".to_owned())),
        false => Outcome::Done,
    };
    let result = ToolResult::new(call_id, call.value("result").unwrap_or_default(), outcome);
    ToolResult { duration_ms: call.count("duration_ms"), ..result }
}
