//! The one place that every string passes before it is in a file: lines of records, headers and sidecars, as they are encoded.
//!
//! There are no rules yet, so that nothing is changed and nothing is held back.

use serde_json::{Map, Value};

use crate::model::message::Part;
use crate::model::record::Body;

/// What must not be written down.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Removes it from a text.
    pub(crate) scrub: fn(&mut String),
    /// How many bytes at the end of a text could become it with what comes next.
    pub(crate) hold: fn(&str) -> usize,
}

/// Whoever made these checks them bit by bit: a changed one is worse than none.
const SIGNATURES: [&str; 4] = ["signature", "thoughtSignature", "encrypted_content", "encryptedContent"];

/// The rules; nothing while there are none.
fn rules() -> Option<Rules> {
    #[cfg(test)]
    return tests::RULES.get();
    #[cfg(not(test))]
    None
}

/// Removes what must not be written down from a line: from every string, keys too, but the ids that are known.
pub(crate) fn scrub(line: &mut Value, known: &[String]) {
    let Some(rules) = rules() else { return };
    let mut open = vec![line];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if known.contains(text) => {}
            Value::String(text) => (rules.scrub)(text),
            Value::Array(values) => open.extend(values),
            Value::Object(map) => {
                scrub_keys(map, rules);
                let written = map.iter_mut().filter(|(key, _)| !SIGNATURES.contains(&key.as_str()));
                open.extend(written.map(|(_, value)| value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn scrub_keys(map: &mut Map<String, Value>, rules: Rules) {
    let scrubbed = |key: &String| {
        let mut scrubbed = key.clone();
        (rules.scrub)(&mut scrubbed);
        scrubbed
    };
    if map.keys().all(|key| scrubbed(key) == *key) {
        return;
    }
    *map = std::mem::take(map).into_iter().map(|(key, value)| (scrubbed(&key), value)).collect();
}

/// The ids of a record and of its calls: others find it by them. Nothing while there are no rules.
pub(crate) fn ids_of<'i>(body: &Body, own: impl IntoIterator<Item = Option<&'i str>>) -> Vec<String> {
    if rules().is_none() {
        return Vec::new();
    }
    let parts = body.content().into_iter().flat_map(|content| &content.parts);
    let calls = parts.filter_map(|part| if let Part::Tool(call) = part { Some(call.call_id.clone()) } else { None });
    let results = body.content().into_iter().flat_map(|content| &content.results).map(|result| result.call_id.clone());
    own.into_iter().flatten().map(str::to_owned).chain(calls).chain(results).collect()
}

/// A text that arrives in pieces. Its end is held back while more could make it something that must not be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    text: String,
}

impl Held {
    /// Takes a piece, and gives what can be written.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        let held = rules().map_or(0, |rules| (rules.hold)(&self.text));
        let from = self.text.floor_char_boundary(self.text.len().saturating_sub(held));
        let rest = self.text.split_off(from);
        let safe = self.release();
        self.text = rest;
        safe
    }

    /// Whether nothing is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How many bytes are held back.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Gives all that is held back: the part ends, or a second has passed.
    pub(crate) fn release(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        if let Some(rules) = rules() {
            (rules.scrub)(&mut text);
        }
        text
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::Cell;

    thread_local! {
        /// What a test wants removed.
        pub(crate) static RULES: Cell<Option<Rules>> = const { Cell::new(None) };
    }

    pub(crate) const NOTHING_HELD: fn(&str) -> usize = |_| 0;

    #[test]
    fn every_string_of_a_line_is_seen_and_ids_and_signatures_stay() {
        RULES.set(Some(Rules { scrub: |text| *text = text.replace("secret", "***"), hold: NOTHING_HELD }));
        let mut line = json!({"uuid": "secret-id", "a": ["a secret", {"b secret": {"c": "secret"}}],
            "signature": "secret", "n": 1});
        scrub(&mut line, &["secret-id".to_owned()]);
        let wanted =
            json!({"uuid": "secret-id", "a": ["a ***", {"b ***": {"c": "***"}}], "signature": "secret", "n": 1});
        assert_eq!(line, wanted);
    }
}
