//! A text or reasoning that is still being streamed, and the entries that wait for it to be written.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::model::message::{Part, ReasoningPart, TextPart};
use crate::redact::{Redactor, Stream};

/// No acknowledgement waits a second for text that is held back; writing takes some of it.
pub(super) const MAX_HELD_MS: i64 = 900;

/// What a buffer becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Reasoning,
}

/// A text or reasoning that is not complete.
#[derive(Clone)]
pub(super) struct TextBuffer {
    pub(super) kind: TextKind,
    /// Holds the end of it back, because more text could make it a secret.
    stream: Stream,
    /// When the pieces arrived of which something is held back, each with its end in the text.
    arrived: VecDeque<(usize, Timestamp)>,
    /// How many bytes were streamed.
    pub(super) streamed: usize,
    /// What is redacted and not written, in formats that write complete parts.
    pub(super) unwritten: String,
}

impl TextBuffer {
    pub(super) fn new(kind: TextKind) -> TextBuffer {
        TextBuffer { kind, stream: Stream::new(), arrived: VecDeque::new(), streamed: 0, unwritten: String::new() }
    }

    /// Adds text, and returns what can be written. What was held back for a second can be.
    pub(super) fn push(&mut self, text: &str, redactor: Option<&Redactor>, now: impl FnOnce() -> Timestamp) -> String {
        self.streamed += text.len();
        let Some(redactor) = redactor else { return text.to_owned() };
        let mut safe = self.stream.push(redactor, text);
        let released = self.released();
        while self.arrived.pop_front_if(|(end, _)| *end <= released).is_some() {}
        if self.is_held_back() {
            let now = now();
            self.arrived.push_back((self.streamed, now));
            let is_old = |at: Timestamp| now.as_millisecond().saturating_sub(at.as_millisecond()) >= MAX_HELD_MS;
            if self.arrived.front().is_some_and(|(_, at)| is_old(*at)) {
                safe += &self.release(Some(redactor));
            }
        }
        safe
    }

    /// Returns everything that is held back.
    pub(super) fn release(&mut self, redactor: Option<&Redactor>) -> String {
        self.arrived.clear();
        redactor.map(|redactor| self.stream.finish(redactor)).unwrap_or_default()
    }

    /// When the oldest text arrived that is held back.
    pub(super) fn held_since(&self) -> Option<Timestamp> {
        self.arrived.front().map(|(_, at)| *at).filter(|_| self.is_held_back())
    }

    pub(super) fn is_held_back(&self) -> bool {
        self.stream.held_back() > 0
    }

    /// How many of the streamed bytes are not held back.
    pub(super) fn released(&self) -> usize {
        self.streamed.saturating_sub(self.stream.held_back())
    }

    pub(super) fn part(&self, text: String, provider_metadata: Option<Map<String, Value>>) -> Part {
        match self.kind {
            TextKind::Reasoning => {
                Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
            }
            TextKind::Text => Part::Text(TextPart { text, provider_metadata, ..TextPart::default() }),
        }
    }

    /// Everything that is not written.
    pub(super) fn rest(&self, redactor: Option<&Redactor>) -> String {
        self.unwritten.clone() + &self.clone().release(redactor)
    }
}

/// Entries that wait for their text to be written, in order.
#[derive(Clone, Default)]
pub(super) struct Waiting(Vec<WaitingEntry>);

#[derive(Clone, Copy)]
struct WaitingEntry {
    entry: u64,
    /// Where its text ends in the buffer.
    end: usize,
}

impl Waiting {
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|waiting| waiting.entry)
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.0.last().map(|waiting| waiting.entry)
    }

    /// Lets an entry wait for everything that was streamed so far.
    pub(super) fn add(&mut self, entry: u64, buffer: Option<&TextBuffer>) {
        self.0.push(WaitingEntry { entry, end: buffer.map_or(0, |buffer| buffer.streamed) });
    }

    /// Takes an entry back whose call failed.
    pub(super) fn remove(&mut self, entry: u64) {
        self.0.retain(|waiting| waiting.entry != entry);
    }

    /// Removes and returns the entries that no longer wait once the buffer is written up to `end`.
    pub(super) fn take_written(&mut self, end: usize) -> Vec<u64> {
        self.0.extract_if(.., |waiting| waiting.end <= end).map(|waiting| waiting.entry).collect()
    }

    /// The buffer is complete: entries that still wait are written with whatever comes next.
    pub(super) fn end_part(&mut self) {
        self.0.iter_mut().for_each(|waiting| waiting.end = 0);
    }
}
