//! Reactions, put under the messages that they answer. Of one person's reactions to a message the last counts, and one
//! without emojis takes them back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use scrollback::model::message::{Message, Part, Role};
use scrollback::view::conversation::Conversation;
use serde_json::Value;

use super::divider::short;
use crate::failure::Failure;

/// More people with one opinion than this are counted, not named.
const PEOPLE_NAMED: usize = 12;

/// What a `data-reaction` part says.
pub(crate) struct Reaction<'a> {
    target: &'a str,
    emojis: Vec<&'a str>,
}

impl<'a> Reaction<'a> {
    /// Nothing where it names no message or lists no emojis.
    fn read(data: &'a Value) -> Option<Reaction<'a>> {
        let target = data.get("message_id")?.as_str()?;
        let emojis = data.get("emojis")?.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(Reaction { target, emojis })
    }

    /// One that stands by itself, because its message is not shown.
    pub(crate) fn alone(data: &Value) -> String {
        match Reaction::read(data) {
            Some(Reaction { target, emojis }) if emojis.is_empty() => {
                format!("takes back the reaction to {}", short(target))
            }
            Some(Reaction { target, emojis }) => format!("{} on {}", emojis.join(" "), short(target)),
            None => format!("[a reaction to nothing: {data}]"),
        }
    }
}

/// The reactions of a transcript.
#[derive(Default)]
pub(crate) struct Reactions {
    /// Under each message: emojis with the people who reacted so.
    under: BTreeMap<usize, Vec<(String, Vec<String>)>>,
    /// Messages that are nothing but such a reaction.
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
            // An agent's reactions in a row are one message.
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
        // The order tells which of a person's reactions is the last.
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
                last.insert((target, who(&message)), (order, reaction.emojis.join(" ")));
            }
        }
        let mut last: Vec<_> = last.into_iter().filter(|(_, (_, emojis))| !emojis.is_empty()).collect();
        last.sort_by_key(|(_, (at, _))| *at);
        let mut under: BTreeMap<usize, Vec<(String, Vec<String>)>> = BTreeMap::new();
        let mut rows: HashMap<(usize, String), usize> = HashMap::new();
        for ((target, who), (_, emojis)) in last {
            let lines = under.entry(target).or_default();
            let row = *rows.entry((target, emojis.clone())).or_insert(lines.len());
            match lines.get_mut(row) {
                Some((_, people)) => people.push(who),
                None => lines.push((emojis, vec![who])),
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

/// What a message's reactions say; nothing in the place of one that cannot be read.
fn of(message: &Message) -> Vec<Option<Reaction<'_>>> {
    let content = message.parts.iter().filter_map(|part| match part {
        Part::Data(data) if data.kind == "reaction" => Some(Reaction::read(&data.data)),
        _ => None,
    });
    content.collect()
}

/// Who says a message.
pub(crate) fn who(message: &Message) -> String {
    let told = |key: &str| message.metadata.as_ref().and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
    let who = match message.role {
        Role::User => told("sender").unwrap_or("you"),
        Role::Assistant => told("model").unwrap_or("assistant"),
        Role::System => told("sender").unwrap_or("system"),
    };
    who.to_owned()
}
