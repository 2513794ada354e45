//! What a part of a conversation took, in one line: messages, calls, tokens and cost.

use scrollback::model::{Message, Usage};
use scrollback::view::surroundings::Around;

use super::message::requests;
use super::trace::Trace;
use super::words;
use crate::figures::{Money, Price};

/// What some messages took.
#[derive(Default)]
pub struct Work {
    messages: usize,
    trace: Trace,
    usages: Vec<Usage>,
    cost: Money,
}

impl Work {
    /// Adds a message.
    pub fn add(&mut self, message: &Message, around: &Around, price: &Price) {
        self.messages += 1;
        self.trace.add(message);
        let (usage, requests) = requests(message, around);
        self.usages.extend(usage);
        self.cost.add_all(Money::of(&requests, price));
    }

    /// All of it.
    pub fn words(&self) -> String {
        let messages = Some(words::plural(self.messages, "message"));
        let first = messages.into_iter().chain(self.calls()).collect::<Vec<_>>().join(", ");
        let usage = Usage::sum(self.usages.iter().copied());
        let tokens = usage.map(|usage| words::usage_facts(&usage).join(", ")).filter(|tokens| !tokens.is_empty());
        [Some(first), tokens, self.cost.words()].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Calls and cost, where there is little room.
    pub fn note(&self) -> String {
        self.calls().into_iter().chain(self.cost.words()).collect::<Vec<_>>().join(", ")
    }

    fn calls(&self) -> Option<String> {
        let calls = Some(self.trace.calls()).filter(|calls| *calls > 0).map(|calls| words::plural(calls, "call"))?;
        let words = [calls].into_iter().chain(self.trace.troubles());
        Some(words.collect::<Vec<_>>().join(", "))
    }
}
