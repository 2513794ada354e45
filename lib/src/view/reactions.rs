//! Reactions of people to messages, found by the message that they are about.
//!
//! The last reaction of a person to a message counts; one without emojis removes it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use crate::model::error::Result;
use crate::model::message::{Message, Part};
use crate::view::conversation::Conversation;

/// The reactions to some messages of a branch.
#[derive(Default)]
pub struct Reactions {
    /// For each message: emojis, with the people who chose them.
    under: BTreeMap<usize, Vec<(String, Vec<String>)>>,
    /// Messages that are only reactions.
    placed: HashSet<usize>,
}

impl Reactions {
    /// Finds the reactions in `all` to messages in `shown`. Only reactions are read.
    pub fn find(conversation: &Conversation<'_, '_>, all: Range<usize>, shown: Range<usize>) -> Result<Reactions> {
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
                last.insert((target, message.author().to_owned()), (order, reaction.emojis.join(" ")));
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
    pub fn is_placed(&self, message: usize) -> bool {
        self.placed.contains(&message)
    }

    /// What is under a message: emojis, with the people who chose them.
    pub fn under(&self, message: usize) -> &[(String, Vec<String>)] {
        self.under.get(&message).map_or(&[], Vec::as_slice)
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

/// A `data-reaction` part.
pub struct Reaction<'a> {
    /// The record that it is about.
    pub target: &'a str,
    /// None, if it takes an earlier one back.
    pub emojis: Vec<&'a str>,
}

impl<'a> Reaction<'a> {
    /// `None` if it names no message or has no list of emojis.
    pub fn read(data: &'a Value) -> Option<Reaction<'a>> {
        let target = data.get("message_id")?.as_str()?;
        let emojis = data.get("emojis")?.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(Reaction { target, emojis })
    }
}
