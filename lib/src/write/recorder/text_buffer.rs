//! A text or reasoning that is still being streamed, and the entries that wait for it to be written.

use serde_json::{Map, Value};

use crate::model::message::{Part, ReasoningPart, TextPart};
use crate::redact::Redactor;

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
    /// The end of it, held back because more text could make it a secret.
    pub(super) held_back: String,
    /// How many bytes were streamed.
    pub(super) streamed: usize,
    /// What is redacted and not written, in formats that write complete parts.
    pub(super) unwritten: String,
}

impl TextBuffer {
    pub(super) fn new(kind: TextKind) -> TextBuffer {
        TextBuffer { kind, held_back: String::new(), streamed: 0, unwritten: String::new() }
    }

    /// Adds text, and returns what can be written.
    pub(super) fn push(&mut self, text: &str, redactor: Option<&Redactor>) -> String {
        self.streamed += text.len();
        self.held_back.push_str(text);
        let held_back = redactor.map_or(0, |redactor| redactor.held_back(&self.held_back));
        let from = self.held_back.floor_char_boundary(self.held_back.len().saturating_sub(held_back));
        let rest = self.held_back.split_off(from);
        let safe = self.release(redactor);
        self.held_back = rest;
        safe
    }

    /// Returns everything that is held back.
    pub(super) fn release(&mut self, redactor: Option<&Redactor>) -> String {
        let text = std::mem::take(&mut self.held_back);
        match redactor {
            Some(redactor) => redactor.scrub(None, &text).into_owned(),
            None => text,
        }
    }

    /// How many of the streamed bytes are not held back.
    pub(super) fn released(&self) -> usize {
        self.streamed.saturating_sub(self.held_back.len())
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
