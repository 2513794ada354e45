//! The last messages of a history in a view.
//!
//! ```text
//! all       u  a(call)  result  answer  u
//! last 3                result  answer  u      the call is cut off, and so its result is dropped
//! given                         answer  u      where the API needs a user first, one is put before it; it does not count
//! ```

use std::collections::VecDeque;

use hashbrown::HashSet;
use serde_json::Value;

use super::{BEGINS_WITH_AN_ANSWER, History, Note, TurnOrigin, View, anthropic, gemini};
use crate::model::error::Result;

impl History<'_> {
    /// At most the last `most` messages in a view, and its notes. A result whose call is not among them is left out, and a
    /// message that the API needs before an answer does not count. Other turns are dropped from the history.
    pub fn last_messages(&mut self, most: usize, view: View) -> Result<(Vec<Value>, Vec<Note>)> {
        self.keep_turns(most, view)?;
        let mut messages = VecDeque::new();
        let mut emit = |message| messages.push_back(message);
        let output = view.output(self, &mut emit)?;
        let (mut notes, filled) = (output.notes, output.filler.is_some());
        messages.drain(..usize::from(filled));
        let is_cut = messages.len() > most;
        messages.drain(..messages.len().saturating_sub(most));
        let before = self.turns.iter().find(|turn| turn.origin == TurnOrigin::Results).or(self.turns.first());
        let mut note = |what: &str| notes.extend(before.and_then(|turn| Some(Note::new(*turn.records.first()?, what))));
        if is_cut && drop_results(view, &mut messages) {
            note("results whose calls come before the last messages are not sent");
        }
        let first = messages.front().and_then(|first| first["role"].as_str());
        // Where the system speaks in a message of its own, it does so after the user.
        let begins_with_answer =
            matches!(first, Some("assistant" | "model")) || (view == View::Anthropic && first == Some("system"));
        let filler = match view {
            View::Anthropic => Some(anthropic::beginning()),
            View::Gemini => Some(gemini::beginning()),
            View::OpenAi | View::OpenAiResponses | View::Text | View::Fluux | View::AiSdk => None,
        };
        if let Some(filler) = filler.filter(|_| begins_with_answer) {
            note(BEGINS_WITH_AN_ANSWER);
            messages.push_front(filler);
        }
        Ok((messages.into(), notes))
    }

    /// Keeps the fewest last turns that make more than `most` messages: the first of them may be half of a message.
    fn keep_turns(&mut self, most: usize, view: View) -> Result<()> {
        let mut all = std::mem::take(&mut self.turns);
        // Where a history may begin, the last place first.
        let begins = (0..all.len()).rev().filter(|at| all[*at].origin != TurnOrigin::Results).collect::<Vec<usize>>();
        // (the fewest places back that are known to be more, the most that are known not to be)
        let (mut over, mut fit, mut step) = (begins.len() + 1, 0, most.max(1));
        while over > fit + 1 {
            let tried = fit.saturating_add(step).clamp(fit + 1, over - 1);
            let mut count = 0;
            self.turns = all.split_off(begins[tried - 1]);
            let filled = view.output(self, &mut |_| count += 1)?.filler.is_some();
            all.append(&mut self.turns);
            (over, fit, step) = if count - usize::from(filled) <= most {
                (over, tried, step.saturating_mul(2))
            } else {
                (tried, fit, (tried - fit) / 2)
            };
        }
        self.turns = all.split_off(begins.get(over - 1).copied().unwrap_or(0));
        Ok(())
    }
}

/// Removes results without their calls. Returns whether there were any.
fn drop_results(view: View, messages: &mut VecDeque<Value>) -> bool {
    let is = |message: &Value, role: &str| message["role"] == role;
    match view {
        View::Anthropic => drop_pieces(messages, "content", &|block| block["type"] == "tool_result"),
        View::Gemini => drop_pieces(messages, "parts", &|part| part.get("functionResponse").is_some()),
        View::OpenAi | View::AiSdk => drop_first(messages, &|message| is(message, "tool")),
        View::Text => drop_first(messages, &|text| {
            text.as_str()
                .is_some_and(|text| text.starts_with("Result of ") || text.starts_with("Failed result of "))
        }),
        View::OpenAiResponses => {
            let (mut calls, count) = (HashSet::new(), messages.len());
            messages.retain(|item| {
                let (kind, id) = (item["type"].as_str().unwrap_or_default(), item["call_id"].as_str());
                let Some(id) = id else { return true };
                if kind.ends_with("_output") {
                    return calls.contains(id);
                }
                calls.insert(id.to_owned());
                true
            });
            messages.len() < count
        }
        View::Fluux => false,
    }
}

/// Removes results from the start.
fn drop_first(messages: &mut VecDeque<Value>, is_result: &dyn Fn(&Value) -> bool) -> bool {
    let count = messages.iter().take_while(|message| is_result(message)).count();
    messages.drain(..count);
    count > 0
}

/// Removes result pieces from the user messages before the first answer.
fn drop_pieces(messages: &mut VecDeque<Value>, key: &str, is_result: &dyn Fn(&Value) -> bool) -> bool {
    let mut dropped = false;
    let first = messages.iter_mut().take_while(|message| message["role"] == "user");
    for pieces in first.filter_map(|message| message[key].as_array_mut()) {
        let count = pieces.len();
        pieces.retain(|piece| !is_result(piece));
        dropped |= pieces.len() < count;
    }
    messages.retain(|message| message[key].as_array().is_none_or(|pieces| !pieces.is_empty()));
    dropped
}
