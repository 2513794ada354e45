//! A history as Fluux Agent sends it to its model: text, and reactions and attachments as lines of JSON.
//!
//! A reaction comes first, then one attachment per line, then the text. Ids, times and the sender in a chat of two are not
//! sent; in a room the sender's name precedes everything. Sessions of other agents are only their text.

use serde_json::{Map, Value, json};

use super::{History, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::json;
use crate::model::message::{Part, Role};
use crate::model::wire::in_a_room;

/// The dialect of the agent that sends this.
pub(super) const OWN: &str = "fluux";

/// The fields of a reaction and of an attachment that are sent, in this order.
const REACTION: &[&str] = &["message_id", "emojis"];
const ATTACHMENT: &[&str] = &["filename", "mime_type", "size"];

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    for turn in &history.turns {
        let text = display(&turn.items);
        if text.is_empty() {
            if history.dialect == OWN {
                out.note(turn, "it has no content that can be sent");
            }
            continue;
        }
        let content = in_a_room(turn.sender.as_deref()).unwrap_or_default() + &text;
        let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
        out.message(json!({"role": role, "content": content}));
    }
    Ok(())
}

/// The history with one text per message, as the agent sends it to any API. `None` for another agent's history.
pub(super) fn as_sent<'s>(history: &History<'s>) -> Option<History<'s>> {
    let mut history = (history.dialect == OWN).then(|| history.clone())?;
    for turn in &mut history.turns {
        let text = display(&turn.items);
        if !text.is_empty() {
            // Its files have no calls, but the caller may have added one.
            turn.items.retain(|item| !matches!(item, TurnItem::Part(_)));
            turn.items.insert(0, TurnItem::Part(Part::text(text)));
        }
    }
    Some(history)
}

fn display(items: &[TurnItem]) -> String {
    let (mut lines, mut files, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match item {
            TurnItem::Part(Part::Data(data)) if data.kind == "reaction" => lines.push(only(&data.data, REACTION)),
            TurnItem::Part(Part::Data(data)) if data.kind == "attachment" => files.push(only(&data.data, ATTACHMENT)),
            TurnItem::Part(Part::Text(text)) if !text.text.is_empty() => texts.push(text.text.clone()),
            TurnItem::Part(_) | TurnItem::Call(_) | TurnItem::Result(_) => {}
        }
    }
    lines.append(&mut files);
    lines.append(&mut texts);
    lines.join("\n")
}

/// These keys of an object, as JSON in one line.
fn only(value: &Value, keys: &[&str]) -> String {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(key)?.clone())));
    json::to_string(&kept.collect::<Map<_, _>>())
}
