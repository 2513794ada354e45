//! Reactions, shown under the messages that they belong to.
//!
//! The last reaction of a person to a message counts; one without emojis removes it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use scrollback::model::{Display, Message, Part, Role};
use scrollback::view::Conversation;
use serde_json::Value;

use super::short_ids::ShortIds;
use crate::failure::Failure;

/// A line names this many people and counts the rest.
const PEOPLE_NAMED: usize = 12;

/// A `data-reaction` part.
pub(crate) struct Reaction<'a> {
    target: &'a str,
    emojis: Vec<&'a str>,
}

impl<'a> Reaction<'a> {
    /// `None` if it names no message or has no list of emojis.
    fn read(data: &'a Value) -> Option<Reaction<'a>> {
        let target = data.get("message_id")?.as_str()?;
        let emojis = data.get("emojis")?.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(Reaction { target, emojis })
    }

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
}

/// The reactions of a transcript.
#[derive(Default)]
pub(crate) struct Reactions {
    /// For each message: emojis, with the people who chose them.
    under: BTreeMap<usize, Vec<(String, Vec<String>)>>,
    /// Messages that are only reactions.
    placed: HashSet<usize>,
}

impl Reactions {
    /// Finds the reactions in `all` to messages in `shown`. Only reactions are read.
    pub(crate) fn find(
        conversation: &Conversation<'_, '_>,
        all: Range<usize>,
        shown: Range<usize>,
    ) -> Result<Reactions, Failure> {
        let only_reacts = |at: usize| {
            // Consecutive reactions of an agent are one message.
            let mut records = conversation.records(at).peekable();
            records.peek().is_some() && records.all(|record| record.is_reaction())
        };
        let reacting: Vec<usize> = all.filter(|at| only_reacts(*at)).collect();
        if reacting.is_empty() {
            return Ok(Reactions::default());
        }
        let mut messages: HashMap<String, usize> = HashMap::new();
        for at in shown.filter(|at| !only_reacts(*at)) {
            messages.extend(conversation.records(at).map(|record| (record.id().into_owned(), at)));
        }
        let mut placed = HashSet::new();
        // The order decides which reaction of a person is the last.
        let (mut last, mut order) = (HashMap::<(usize, String), (usize, String)>::new(), 0);
        for at in reacting {
            let Some(message) = conversation.message(at).transpose()? else { continue };
            let reactions = of(&message);
            let targets: Option<Vec<usize>> =
                reactions.iter().map(|reaction| messages.get(reaction.as_ref()?.target).copied()).collect();
            let Some(targets) = targets.filter(|targets| !targets.is_empty()) else { continue };
            placed.insert(at);
            for (target, reaction) in targets.into_iter().zip(reactions.into_iter().flatten()) {
                order += 1;
                last.insert((target, author(&message)), (order, reaction.emojis.join(" ")));
            }
        }
        let mut last: Vec<_> = last.into_iter().filter(|(_, (_, emojis))| !emojis.is_empty()).collect();
        last.sort_by_key(|(_, (at, _))| *at);
        let mut under: BTreeMap<usize, Vec<(String, Vec<String>)>> = BTreeMap::new();
        let mut rows: HashMap<(usize, String), usize> = HashMap::new();
        for ((target, person), (_, emojis)) in last {
            let lines = under.entry(target).or_default();
            let row = *rows.entry((target, emojis.clone())).or_insert(lines.len());
            match lines.get_mut(row) {
                Some((_, people)) => people.push(person),
                None => lines.push((emojis, vec![person])),
            }
        }
        Ok(Reactions { under, placed })
    }

    /// Whether a message is shown under another one.
    pub(crate) fn is_placed(&self, message: usize) -> bool {
        self.placed.contains(&message)
    }

    /// The lines under a message.
    pub(crate) fn under(&self, message: usize) -> Vec<String> {
        let line = |(emojis, people): &(String, Vec<String>)| {
            let named = &people[..people.len().min(PEOPLE_NAMED)];
            let more = people.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{emojis}  {}{more}", named.join(", "))
        };
        self.under.get(&message).into_iter().flatten().map(line).collect()
    }
}

/// The reactions of a message; `None` for one that cannot be read.
fn of(message: &Message) -> Vec<Option<Reaction<'_>>> {
    let reactions = message.parts.iter().filter_map(|part| match part {
        Part::Data(data) if data.kind == "reaction" => Some(Reaction::read(&data.data)),
        _ => None,
    });
    reactions.collect()
}

/// The author of a message.
pub(crate) fn author(message: &Message) -> String {
    let metadata = |key: &str| message.metadata.as_ref().and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
    let author = match message.role {
        Role::User => metadata("sender").unwrap_or("you"),
        Role::Assistant => metadata("model").unwrap_or("assistant"),
        Role::System if is_of_person(message) => "you",
        Role::System => metadata("sender").unwrap_or("system"),
    };
    author.to_owned()
}

/// Whether it is a command that a person ran.
fn is_of_person(message: &Message) -> bool {
    matches!(super::message::display(message), Some(Display::Command { .. } | Display::Shell { .. }))
}
