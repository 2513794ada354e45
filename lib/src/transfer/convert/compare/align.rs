//! Which message of the converted branch is which of the source's.

use std::collections::VecDeque;

use crate::model::error::Result;
use crate::model::message::{Message, Part};

/// A message is looked for among so many that follow: more are not lost or made up between two that stay.
const MESSAGES_AHEAD: usize = 8;

/// Messages of a branch, of which the next few are known.
pub(super) struct Window<I> {
    messages: I,
    pub(super) seen: VecDeque<Message>,
}

impl<I: Iterator<Item = Result<Message>>> Window<I> {
    pub(super) fn new(messages: I) -> Window<I> {
        Window { messages, seen: VecDeque::new() }
    }

    pub(super) fn fill(&mut self) -> Result<()> {
        while self.seen.len() <= MESSAGES_AHEAD {
            let Some(message) = self.messages.next().transpose()? else { break };
            self.seen.push_back(message);
        }
        Ok(())
    }
}

/// How many of each go before two messages that are one and the same.
pub(super) fn steps(before: &VecDeque<Message>, after: &VecDeque<Message>) -> (usize, usize) {
    let (Some(was), Some(is)) = (before.front(), after.front()) else { return (0, 0) };
    if looks_like(was, is) {
        return (0, 0);
    }
    let made_up = after.iter().position(|message| looks_like(was, message));
    let dropped = before.iter().position(|message| looks_like(message, is));
    match (dropped, made_up) {
        (Some(dropped), Some(made_up)) if dropped > made_up => (0, made_up),
        (Some(dropped), _) => (dropped, 0),
        (None, Some(made_up)) => (0, made_up),
        // Nothing like either follows: one became the other, or both stand alone.
        (None, None) if was.role == is.role => (0, 0),
        (None, None) => (1, 0),
    }
}

fn looks_like(one: &Message, other: &Message) -> bool {
    one.role == other.role && words(one).eq(words(other))
}

fn words(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.trim()),
        Part::Tool(call) => Some(call.name.as_str()),
        _ => None,
    })
}
