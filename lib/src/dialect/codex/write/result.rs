//! What tools gave back, as outputs. An output is what the model was shown: a text, or texts and pictures.
//!
//! How a tool ended can only be told inside the text, as Codex's own tools tell it.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::tool_output;
use super::item::NAME_CHARS;
use super::script::Script;
use crate::model::loss::Lost;
use crate::model::record::{Kind, Outcome, ToolResult};
use crate::model::wire;

/// Stands for a failure whose code nobody told.
const SOME_FAILURE: i64 = 1;

impl Script<'_> {
    pub(super) fn result(&mut self, result: &ToolResult) {
        if result.preliminary {
            return self.drop(Lost::PreliminaryResult);
        }
        let output = match &result.outcome {
            Outcome::Done => self.done(result),
            Outcome::Failed(why) => self.failed(result, why),
            Outcome::Denied(why) => {
                self.rename(Lost::Denial);
                self.failed(result, why.as_deref().unwrap_or("the call was not allowed"))
            }
        };
        let id = wire::id(&result.call_id, NAME_CHARS);
        if id != result.call_id {
            self.rename(Lost::CallId);
        }
        let read = read(&output);
        if read.as_ref().is_none_or(|read| read.about != result.about) {
            self.drop(Lost::RunNotes);
        }
        if result.duration_ms.is_some() && read.is_none_or(|read| read.duration_ms != result.duration_ms) {
            self.drop(Lost::Duration);
        }
        self.item(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }

    fn done(&mut self, result: &ToolResult) -> Value {
        let output = match &result.output {
            Value::Array(pieces) if !pieces.is_empty() => match pieces.iter().map(piece).collect::<Option<Vec<_>>>() {
                Some(pieces) => Value::Array(pieces),
                None => result.output.to_string().into(),
            },
            Value::String(text) => text.as_str().into(),
            Value::Null => "".into(),
            other => other.to_string().into(),
        };
        match &result.output {
            Value::Null => self.make_up(Kind::ToolResult),
            given if *given != output => self.rename(Kind::ToolResult),
            _ => {}
        }
        // A text that tells of a failure, as a command's end is told, but was none.
        match (&output, read(&output)) {
            (Value::String(text), Some(read)) if read.outcome != Outcome::Done || read.output != output => {
                ended(text, 0, result.duration_ms)
            }
            _ => output,
        }
    }

    fn failed(&mut self, result: &ToolResult, why: &str) -> Value {
        let given = words(&result.output);
        let text = if given.trim().is_empty() { why } else { &given };
        // What says itself how it ended stays as it is.
        let as_it_is = Value::from(text);
        if read(&as_it_is).is_some_and(|read| read.outcome == result.outcome && read.output == result.output) {
            return as_it_is;
        }
        let told = why.strip_prefix("exit code ").and_then(|rest| rest.split_once(": "));
        let told = told.filter(|(_, content)| *content == text.trim()).and_then(|(code, _)| code.parse::<i64>().ok());
        let code = told.filter(|code| *code != 0).unwrap_or_else(|| {
            self.make_up(Lost::ExitCode);
            SOME_FAILURE
        });
        if result.output != *text && !result.output.is_null() {
            self.rename(Kind::ToolResult);
        }
        if told.is_none() && !text.contains(why) {
            self.drop(Lost::Error);
        }
        ended(text, code, result.duration_ms)
    }
}

/// What a tool gave back and how it ended, in the words of Codex's older versions: its own reader takes it apart again.
fn ended(text: &str, exit_code: i64, duration_ms: Option<u64>) -> Value {
    let mut metadata = json!({"exit_code": exit_code});
    if let Some(millis) = duration_ms {
        metadata["duration_seconds"] = (millis as f64 / 1000.0).into();
    }
    json!({"output": text, "metadata": metadata}).to_string().into()
}

fn read(output: &Value) -> Option<ToolResult> {
    let text = output.to_string();
    let raw: &RawValue = serde_json::from_str(&text).ok()?;
    Some(tool_output::result(String::new(), Some(raw)))
}

/// A piece of an output as Codex takes it: a text or a picture.
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

fn words(output: &Value) -> String {
    match output {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let texts =
                pieces.iter().map(|piece| piece.get("text").and_then(Value::as_str)).collect::<Option<Vec<_>>>();
            texts.map_or_else(|| output.to_string(), |texts| texts.join("\n"))
        }
        other => other.to_string(),
    }
}
