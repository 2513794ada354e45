//! A history as plain text, one text per turn.

use super::pieces::{ModelPart, failed, file_words, given, model_part};
use super::{History, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::issue::one_line;
use crate::model::message::{Part, Role};

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    for turn in &history.turns {
        let lines: Vec<String> = turn.items.iter().filter_map(|item| line(item, turn, out)).collect();
        if lines.is_empty() {
            out.note(turn, "nothing of it can be sent");
        } else {
            out.message(lines.join("\n").into());
        }
    }
    Ok(())
}

fn line(item: &TurnItem, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Option<String> {
    let who = match (turn.role, &turn.sender) {
        (Role::User, Some(sender)) => one_line(sender),
        (Role::User, None) => "User".into(),
        (Role::Assistant, _) => "Assistant".into(),
        (Role::System, _) => "System".into(),
    };
    match item {
        TurnItem::Call(call) => {
            let input = call.input().filter(|input| !input.is_null()).map(|input| match input.as_str() {
                Some(text) => text.to_owned(),
                None => input.to_string(),
            });
            Some(format!("Call {} of {}: {}", call.call_id, call.name, input.unwrap_or_default()))
        }
        TurnItem::Result(result) => {
            let words: Vec<String> = given(result).iter().filter_map(words).collect();
            let how = if failed(result) { "Failed result" } else { "Result" };
            Some(format!("{how} of {}: {}", result.call_id, words.join("\n")))
        }
        TurnItem::Part(part) => match model_part(part) {
            ModelPart::Reasoning(_) => {
                out.note(turn, "reasoning is not sent");
                None
            }
            ModelPart::Text(_) | ModelPart::File(_) => words(part).map(|words| format!("{who}: {words}")),
            ModelPart::Foreign(_) => {
                out.note(turn, "a piece that only another API has is not sent");
                None
            }
            ModelPart::PeopleOnly(what) => {
                out.note(turn, format!("{what} is not sent"));
                None
            }
        },
    }
}

fn words(part: &Part) -> Option<String> {
    match model_part(part) {
        ModelPart::Text(text) => Some(text.into_owned()),
        ModelPart::File(file) => Some(file_words(file)),
        ModelPart::Reasoning(_) | ModelPart::Foreign(_) | ModelPart::PeopleOnly(_) => None,
    }
}
