//! A history as plain text, one text per turn.

use super::model_part::{ModelPart, model_part};
use super::{History, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::issue::one_line;
use crate::model::lenient::to_text;
use crate::model::message::{Part, Role};
use crate::model::record::Outcome;
use crate::model::wire::{file_words, given};

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    for turn in &history.turns {
        let lines: Vec<String> = turn.items.iter().filter_map(|item| line(item, turn, out)).collect();
        if lines.is_empty() {
            out.note(turn, "it has no content that can be sent");
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
            let input = call.input().map(to_text).unwrap_or_default();
            Some(format!("Call {} of {}: {input}", call.call_id, call.name))
        }
        TurnItem::Result(result) => {
            let texts: Vec<String> = given(result).iter().filter_map(text_of).collect();
            let what = if result.outcome == Outcome::Done { "Result" } else { "Failed result" };
            Some(format!("{what} of {}: {}", result.call_id, texts.join("\n")))
        }
        TurnItem::Part(part) => match model_part(part) {
            ModelPart::Text(text) => Some(format!("{who}: {text}")),
            ModelPart::File(file) => Some(format!("{who}: {}", file_words(file))),
            ModelPart::Reasoning(_) => out.omit(turn, "reasoning"),
            ModelPart::Other { name, .. } => out.omit(turn, name),
        },
    }
}

fn text_of(part: &Part) -> Option<String> {
    match model_part(part) {
        ModelPart::Text(text) => Some(text.into_owned()),
        ModelPart::File(file) => Some(file_words(file)),
        ModelPart::Reasoning(_) | ModelPart::Other { .. } => None,
    }
}
