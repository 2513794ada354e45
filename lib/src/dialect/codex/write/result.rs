//! Writes the results of tools as outputs. An output is what the model sees: a text, or texts and images.
//!
//! Nothing is added to the text that the source has: Codex would send that, too. How the tool ended is stated beside it, in a field
//! that Codex ignores, unless the text says it as Codex's own tools do.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::tool_output;
use super::item::NAME_CHARS;
use super::record::Record;
use crate::dialect::line_builder::{Put, fields};
use crate::model::json;
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Kind, Outcome, ToolResult};
use crate::model::wire::{self, given};

impl Record<'_> {
    pub(super) fn result(&mut self, result: &ToolResult) {
        if result.preliminary {
            return self.losses().dropped(Lost::PreliminaryResult);
        }
        let output = output(result);
        self.losses()
            .synthesised_if(result.output.is_null() && result.outcome == Outcome::Done, Kind::ToolResult);
        self.losses().renamed_if(!result.output.is_null() && result.output != output, Kind::ToolResult);
        let id = wire::id(&result.call_id, NAME_CHARS);
        self.losses().renamed_if(id != result.call_id, Lost::CallId);
        let is_done = result.outcome == Outcome::Done;
        let is_stated = |read: &ToolResult| (read.outcome == Outcome::Done) == is_done && read.output == output;
        let mut read = read(&output, None);
        let mut item = fields(json!({"type": "function_call_output", "call_id": id, "output": output}));
        if !read.as_ref().is_some_and(is_stated) {
            item.put("success", is_done);
            read = self::read(&output, Some(is_done));
        }
        let reason = match &result.outcome {
            Outcome::Failed(reason) => Some(reason),
            Outcome::Denied(reason) => reason.as_ref(),
            Outcome::Done => None,
        };
        let is_read = |reason: &String| {
            read.as_ref()
                .is_some_and(|read| matches!(&read.outcome, Outcome::Failed(read) if read.contains(reason)))
        };
        self.losses().dropped_if(reason.is_some_and(|reason| !is_read(reason)), Lost::FailureReason);
        self.losses().renamed_if(matches!(result.outcome, Outcome::Denied(_)), Lost::Denial);
        let loses_notes = read.as_ref().is_none_or(|read| read.about != result.about);
        self.losses().dropped_if(loses_notes, Lost::RunNotes);
        let loses_duration = read.is_none_or(|read| read.duration_ms != result.duration_ms);
        self.losses().dropped_if(result.duration_ms.is_some() && loses_duration, Lost::Duration);
        self.item(item.into());
    }
}

/// What the model gets: the output, else why the tool failed.
fn output(result: &ToolResult) -> Value {
    let pieces = result.output.as_array().filter(|pieces| !pieces.is_empty());
    if let Some(pieces) = pieces.and_then(|pieces| pieces.iter().map(piece).collect::<Option<Vec<_>>>()) {
        return Value::Array(pieces);
    }
    let given = given(result);
    given.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n").into()
}

fn read(output: &Value, success: Option<bool>) -> Option<ToolResult> {
    let text = json::to_string(output);
    let raw: &RawValue = serde_json::from_str(&text).ok()?;
    Some(tool_output::result(String::new(), Some(raw), success))
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
