//! A history as the model messages of the AI SDK: what `convertToModelMessages` of `ai` 7 returns for the turns as messages,
//! with every open call failed.

use hashbrown::HashMap;

use super::{History, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::message::{Message, Part, Sdk, model_messages};
use crate::model::record::ToolResult;
use crate::model::settle;

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let mut turns = history.turns.iter().peekable();
    while let Some(turn) = turns.next() {
        let calls = turn.items.iter().any(|item| matches!(item, TurnItem::Call(_)));
        let results = turns.next_if(|next| calls && next.items.iter().any(|item| matches!(item, TurnItem::Result(_))));
        let message = Message::new("", turn.role, parts(turn, results)?).for_sdk(Sdk::V7);
        for sent in model_messages(&[message]) {
            if sent["content"].as_array().is_some_and(Vec::is_empty) || sent["content"] == "" {
                out.note(turn, "it has no content for a model; it is not sent");
            } else {
                out.message(sent);
            }
        }
    }
    Ok(())
}

/// The parts of a message: each call with its result, and with the agent's notes on its run.
fn parts(turn: &Turn<'_>, results: Option<&Turn<'_>>) -> Result<Vec<Part>> {
    let given = results.iter().flat_map(|turn| &turn.items).filter_map(TurnItem::as_result);
    let given: HashMap<&str, &ToolResult> = given.map(|result| (result.call_id.as_str(), result)).collect();
    let mut parts: Vec<Part> = Vec::new();
    for item in &turn.items {
        match item {
            TurnItem::Part(part) => parts.push(part.clone()),
            TurnItem::Call(call) => {
                let mut call = (**call).clone();
                if let Some(result) = given.get(call.call_id.as_str()).filter(|_| call.is_open()) {
                    settle::settle(&mut call, (*result).clone());
                }
                parts.push(call.into());
            }
            TurnItem::Result(_) => {}
        }
    }
    if let Some(results) = results {
        let mut notes = Vec::new();
        for record in turn.records.iter().chain(&results.records) {
            notes.extend(record.body()?.content().map(|content| content.notes.clone()).unwrap_or_default());
        }
        settle::annotate(notes, &mut parts);
    }
    Ok(parts)
}
