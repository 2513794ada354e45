//! A history as Fluux Agent sends it to its model: text, and reactions and attachments as lines of JSON.
//!
//! A reaction comes first, then one attachment per line, then the text. Ids, times and the sender in a chat of two are not
//! sent; in a room the sender's name precedes everything. Sessions of other agents are only their text.

use serde_json::{Map, Value, json};

use super::{History, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::issue::one_line;
use crate::model::message::{Part, Role};
use crate::model::wire::IN_A_ROOM;

/// The dialect of the agent that sends this.
pub(super) const OWN: &str = "fluux";

/// The fields of a reaction and of an attachment that are sent, in this order.
const REACTION: &[&str] = &["message_id", "emojis"];
const ATTACHMENT: &[&str] = &["filename", "mime_type", "size"];

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    for turn in &history.turns {
        let said = display(&turn.items);
        if said.is_empty() {
            if history.dialect == OWN {
                out.note(turn, "nothing of it can be sent");
            }
            continue;
        }
        let content = match turn.sender.as_deref().filter(|sender| sender.ends_with(IN_A_ROOM)) {
            Some(sender) => format!("{}: {said}", one_line(sender)),
            None => said,
        };
        let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
        out.message(json!({"role": role, "content": content}));
    }
    Ok(())
}

/// The history with one text per message, as the agent sends it to any API. `None` for another agent's history.
pub(super) fn as_sent<'s>(history: &History<'s>) -> Option<History<'s>> {
    let mut history = (history.dialect == OWN).then(|| history.clone())?;
    history.turns.iter_mut().for_each(say_as_sent);
    Some(history)
}

fn say_as_sent(turn: &mut Turn<'_>) {
    let content = display(&turn.items);
    if !content.is_empty() {
        // Its files have no calls, but the caller may have added one.
        turn.items.retain(|item| !matches!(item, TurnItem::Part(_)));
        turn.items.insert(0, TurnItem::Part(Part::text(content)));
    }
}

fn display(items: &[TurnItem]) -> String {
    let (mut lines, mut files, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match item {
            TurnItem::Part(Part::Data(data)) if data.kind == "reaction" => lines.push(only(&data.data, REACTION)),
            TurnItem::Part(Part::Data(data)) if data.kind == "attachment" => files.push(only(&data.data, ATTACHMENT)),
            TurnItem::Part(Part::Text(text)) if !text.text.is_empty() => words.push(text.text.clone()),
            TurnItem::Part(_) | TurnItem::Call(_) | TurnItem::Result(_) => {}
        }
    }
    lines.append(&mut files);
    lines.append(&mut words);
    lines.join("\n")
}

/// These keys of an object, as JSON in one line.
fn only(value: &Value, keys: &[&str]) -> String {
    let told = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(key)?.clone())));
    Value::Object(told.collect::<Map<_, _>>()).to_string()
}
