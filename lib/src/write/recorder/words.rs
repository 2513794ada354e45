//! Words that go on: a text or a thinking of which pieces come, and the calls that wait for theirs to be written.

use serde_json::{Map, Value};

use super::Ack;
use crate::model::message::{Part, ReasoningPart, TextPart};
use crate::redact::Redactor;

/// What words are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
}

/// A text or a thinking that goes on.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) kind: Kind,
    /// The end of it, held back while more could make it a secret.
    pub(super) held: String,
    /// How many bytes of it came.
    pub(super) came: usize,
    /// What a coarser grain has not written.
    pub(super) text: String,
}

impl Open {
    pub(super) fn begin(kind: Kind) -> Open {
        Open { kind, held: String::new(), came: 0, text: String::new() }
    }

    /// Adds text, and returns what can be written.
    pub(super) fn push(&mut self, text: &str, redactor: Option<&Redactor>) -> String {
        self.came += text.len();
        self.held.push_str(text);
        let held_back = redactor.map_or(0, |redactor| redactor.held_back(&self.held));
        let from = self.held.floor_char_boundary(self.held.len().saturating_sub(held_back));
        let rest = self.held.split_off(from);
        let safe = self.release(redactor);
        self.held = rest;
        safe
    }

    /// Returns all that is held back.
    pub(super) fn release(&mut self, redactor: Option<&Redactor>) -> String {
        let text = std::mem::take(&mut self.held);
        match redactor {
            Some(redactor) => redactor.scrub(None, &text).into_owned(),
            None => text,
        }
    }

    pub(super) fn part(&self, text: String) -> Part {
        match self.kind {
            Kind::Reasoning => Part::Reasoning(ReasoningPart { text, ..ReasoningPart::default() }),
            Kind::Text => Part::Text(TextPart { text, ..TextPart::default() }),
        }
    }

    /// All that is not written yet, with what its provider says of it; nothing where there is neither.
    pub(super) fn rest(&self, about: Option<Map<String, Value>>, redactor: Option<&Redactor>) -> (Part, bool) {
        let text = self.text.clone() + &self.clone().release(redactor);
        let (is_empty, mut part) = (text.is_empty() && about.is_none(), self.part(text));
        match &mut part {
            Part::Text(part) => part.provider_metadata = about,
            Part::Reasoning(part) => part.provider_metadata = about,
            _ => {}
        }
        (part, is_empty)
    }
}

/// Calls that wait for their words to be written, in order.
#[derive(Default)]
pub(super) struct Waiting(Vec<Waits>);

struct Waits {
    ticket: u64,
    /// Where its words end in the open part.
    end: usize,
}

impl Waiting {
    pub(super) fn tickets(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.0.iter().map(|waits| waits.ticket)
    }

    /// A call waits for what came so far.
    pub(super) fn hold(&mut self, ticket: u64, open: Option<&Open>) -> Ack {
        self.0.push(Waits { ticket, end: open.map_or(0, |open| open.came) });
        Ack::Held { ticket }
    }

    /// The calls that no longer wait once the open part is written so far.
    pub(super) fn written(&mut self, up_to: usize) -> Vec<u64> {
        self.0.extract_if(.., |waits| waits.end <= up_to).map(|waits| waits.ticket).collect()
    }

    /// The open part is whole: whoever still waits, waits for whatever is written next.
    pub(super) fn end_part(&mut self) {
        self.0.iter_mut().for_each(|waits| waits.end = 0);
    }
}
