//! Reactions as lines under the messages that they belong to.

use scrollback::view::reactions::Reaction;
use serde_json::Value;

use super::short_ids::ShortIds;

/// A line names this many people and counts the rest.
const PEOPLE_NAMED: usize = 12;

/// A reaction whose message is not shown.
pub(crate) fn alone(data: &Value, ids: &ShortIds<'_>) -> String {
    match Reaction::read(data) {
        Some(Reaction { target, emojis }) if emojis.is_empty() => {
            format!("removed the reaction to {}", ids.short(target))
        }
        Some(Reaction { target, emojis }) => format!("{} on {}", emojis.join(" "), ids.short(target)),
        None => format!("[invalid reaction: {data}]"),
    }
}

/// Emojis, and the people who chose them.
pub(crate) fn line(emojis: &str, people: &[String]) -> String {
    let named = &people[..people.len().min(PEOPLE_NAMED)];
    let more = people.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{emojis}  {}{more}", named.join(", "))
}
