//! A JSON value as its leaves: what it says, each under its keys.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// The keys of a JSON value and what stands under them, each with the one above it.
pub(super) struct Leaves<'v> {
    keys: Vec<Key<'v>>,
    values: Vec<Leaf<'v>>,
}

struct Key<'v> {
    name: &'v str,
    above: usize,
    way: u64,
    /// Something below it is held.
    is_held: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Leaf<'v> {
    pub(super) at: usize,
    pub(super) value: &'v Value,
}

/// What stands for any item of a list.
const ITEM: &str = "[]";

impl<'v> Leaves<'v> {
    pub(super) fn of(value: &'v Value) -> Leaves<'v> {
        let mut leaves = Leaves { keys: vec![Key { name: "", above: 0, way: 0, is_held: true }], values: Vec::new() };
        let mut next = vec![(0, value)];
        while let Some((at, value)) = next.pop() {
            match value {
                Value::Object(object) => next.extend(object.iter().map(|(key, value)| (leaves.add(at, key), value))),
                Value::Array(items) => next.extend(items.iter().map(|value| (leaves.add(at, ITEM), value))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    leaves.values.push(Leaf { at, value });
                }
            }
        }
        leaves
    }

    fn add(&mut self, above: usize, name: &'v str) -> usize {
        let way = xxh3_64(format!("{:x}.{name}", self.keys[above].way).as_bytes());
        self.keys.push(Key { name, above, way, is_held: false });
        self.keys.len() - 1
    }

    /// What says something: nothing, no and none do not.
    pub(super) fn telling(&self) -> impl Iterator<Item = Leaf<'v>> {
        let tells = |leaf: &&Leaf<'v>| match leaf.value {
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Bool(is_so) => *is_so,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        self.values.iter().filter(tells).copied()
    }

    /// The key that a value stands under; a list's, for its items.
    pub(super) fn key(&self, leaf: Leaf<'v>) -> &'v str {
        let mut at = leaf.at;
        while self.keys[at].name == ITEM {
            at = self.keys[at].above;
        }
        self.keys[at].name
    }

    pub(super) fn way(&self, leaf: Leaf<'v>) -> u64 {
        self.keys[leaf.at].way
    }

    pub(super) fn mark(&mut self, mut at: usize) {
        while !self.keys[at].is_held {
            self.keys[at].is_held = true;
            at = self.keys[at].above;
        }
    }

    /// The way to the topmost key above this one that holds nothing of what is held.
    pub(super) fn name_above(&self, mut at: usize) -> String {
        while !self.keys[self.keys[at].above].is_held {
            at = self.keys[at].above;
        }
        let mut names = Vec::new();
        while at != 0 {
            names.push(self.keys[at].name);
            at = self.keys[at].above;
        }
        names.reverse();
        names.join(".").replace(".[]", "[]")
    }
}

/// The last word of a key, in small letters: `uuid` of `sourceToolAssistantUUID`.
pub(super) fn last_word(key: &str) -> String {
    let begins = |pair: &[u8]| {
        matches!(pair, [b'_' | b'-', _]) || matches!(pair, [a, b] if !a.is_ascii_uppercase() && b.is_ascii_uppercase())
    };
    let from = key.as_bytes().windows(2).rposition(begins).map_or(0, |at| at + 1);
    key.get(from..).unwrap_or(key).to_ascii_lowercase()
}

impl Leaf<'_> {
    pub(super) fn hash_under(&self, key: &str) -> u64 {
        xxh3_64(format!("{key}\0{}", self.value).as_bytes())
    }
}
