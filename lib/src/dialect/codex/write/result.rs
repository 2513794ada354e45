//! Writes the results of tools as outputs. An output is what the model sees: a text, or texts and images.
//!
//! How a tool ended can only be stated in the text, as Codex's own tools do.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::tool_output;
use super::item::NAME_CHARS;
use super::record::Record;
use crate::dialect::line_builder::{Put, fields};
use crate::model::json;
use crate::model::lenient;
use crate::model::loss::Lost;
use crate::model::record::{Kind, Outcome, ToolResult};
use crate::model::wire;

/// The exit code of a failure without one.
const UNKNOWN_FAILURE: i64 = 1;

impl Record<'_> {
    pub(super) fn result(&mut self, result: &ToolResult) {
        if result.preliminary {
            return self.losses().dropped(Lost::PreliminaryResult);
        }
        let output = match &result.outcome {
            Outcome::Done => self.done(result),
            Outcome::Failed(reason) => self.failed(result, reason),
            Outcome::Denied(reason) => {
                self.losses().renamed(Lost::Denial);
                self.failed(result, reason.as_deref().unwrap_or("the call was not allowed"))
            }
        };
        let id = wire::id(&result.call_id, NAME_CHARS);
        self.losses().renamed_if(id != result.call_id, Lost::CallId);
        let read = read(&output);
        let loses_notes = read.as_ref().is_none_or(|read| read.about != result.about);
        self.losses().dropped_if(loses_notes, Lost::RunNotes);
        let loses_duration = read.is_none_or(|read| read.duration_ms != result.duration_ms);
        self.losses().dropped_if(result.duration_ms.is_some() && loses_duration, Lost::Duration);
        self.item(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }

    fn done(&mut self, result: &ToolResult) -> Value {
        let output = match &result.output {
            Value::Array(pieces) if !pieces.is_empty() => match pieces.iter().map(piece).collect::<Option<Vec<_>>>() {
                Some(pieces) => Value::Array(pieces),
                None => json::to_string(&result.output).into(),
            },
            other => lenient::to_text(other).into(),
        };
        self.losses().synthesised_if(result.output.is_null(), Kind::ToolResult);
        self.losses().renamed_if(!result.output.is_null() && result.output != output, Kind::ToolResult);
        // A text that looks like that of a failed command, but is none.
        match (&output, read(&output)) {
            (Value::String(text), Some(read)) if read.outcome != Outcome::Done || read.output != output => {
                ended(text, 0, result.duration_ms)
            }
            _ => output,
        }
    }

    fn failed(&mut self, result: &ToolResult, reason: &str) -> Value {
        let output = output_text(&result.output);
        let text = if output.trim().is_empty() { reason } else { &output };
        // A text that states how the tool ended is written unchanged.
        let unchanged = Value::from(text);
        if read(&unchanged).is_some_and(|read| read.outcome == result.outcome && read.output == result.output) {
            return unchanged;
        }
        let stated = reason.strip_prefix("exit code ").and_then(|rest| rest.split_once(": "));
        let stated = stated.filter(|(_, content)| *content == text.trim());
        let stated = stated.and_then(|(code, _)| code.parse::<i64>().ok());
        let code = stated.filter(|code| *code != 0);
        self.losses().synthesised_if(code.is_none(), Lost::ExitCode);
        self.losses().renamed_if(result.output != *text && !result.output.is_null(), Kind::ToolResult);
        self.losses().dropped_if(stated.is_none() && !text.contains(reason), Lost::Error);
        ended(text, code.unwrap_or(UNKNOWN_FAILURE), result.duration_ms)
    }
}

/// The output of a tool and how it ended, as Codex's older versions write it, which its reader still understands.
fn ended(text: &str, exit_code: i64, duration_ms: Option<u64>) -> Value {
    let mut metadata = fields(json!({"exit_code": exit_code}));
    metadata.put_some("duration_seconds", duration_ms.map(|millis| millis as f64 / 1000.0));
    json!({"output": text, "metadata": metadata}).to_string().into()
}

fn read(output: &Value) -> Option<ToolResult> {
    let text = json::to_string(output);
    let raw: &RawValue = serde_json::from_str(&text).ok()?;
    Some(tool_output::result(String::new(), Some(raw)))
}

/// A piece of an output as Codex accepts it: a text or an image.
fn piece(piece: &Value) -> Option<Value> {
    let text = |key: &str| piece.get(key).and_then(Value::as_str);
    let image = |url: String| json!({"type": "input_image", "image_url": url});
    match text("type")? {
        "input_text" | "input_image" => Some(piece.clone()),
        "text" | "output_text" => Some(json!({"type": "input_text", "text": text("text")?})),
        "file" if text("mediaType")?.starts_with("image") => Some(image(text("url")?.to_owned())),
        "image" => match (text("mimeType"), text("data")) {
            (Some(media_type), Some(data)) => Some(image(format!("data:{media_type};base64,{data}"))),
            _ => {
                let source = |key: &str| piece.get("source")?.get(key)?.as_str();
                (source("type")? == "base64").then_some(())?;
                Some(image(format!("data:{};base64,{}", source("media_type")?, source("data")?)))
            }
        },
        _ => None,
    }
}

fn output_text(output: &Value) -> String {
    let texts = output.as_array().and_then(|pieces| {
        pieces.iter().map(|piece| piece.get("text").and_then(Value::as_str)).collect::<Option<Vec<_>>>()
    });
    texts.map_or_else(|| lenient::to_text(output), |texts| texts.join("\n"))
}
