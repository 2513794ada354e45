//! The parts of a message that are not in its counterpart: what they are, and which of them are alike.
use crate::model::loss::Lost;
use crate::model::message::{Message, Part, Role};
use hashbrown::HashMap;
use serde_json::Value;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Parts of one message that are not in its counterpart.
pub(super) struct Stray {
    records: Vec<String>,
    pub(super) role: Role,
    pub(super) parts: Vec<(u64, Lost)>,
    /// What each part says without what else is told of it, by its hash.
    cores: HashMap<u64, u64>,
}

impl Stray {
    pub(super) fn of(message: &Message, records: Vec<String>) -> Stray {
        let mut cores = HashMap::new();
        let told = |part: &Part| {
            let mut value = comparable(part);
            let whole = hash(&value);
            let keys = ["callProviderMetadata", "resultProviderMetadata", "toolMetadata", "providerMetadata"];
            if let Some(object) = value.as_object_mut().filter(|_| matches!(part, Part::Tool(_) | Part::Text(_))) {
                keys.into_iter().for_each(|key| _ = object.shift_remove(key));
                cores.insert(whole, hash(&value));
            }
            (whole, Lost::from(part))
        };
        let parts = message.parts.iter().map(told).collect();
        Stray { records, role: message.role, parts, cores }
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.records.iter().map(String::as_str).collect()
    }

    /// How many parts there are of each kind.
    pub(super) fn words(&self) -> BTreeMap<Lost, usize> {
        let mut words = BTreeMap::new();
        self.parts.iter().for_each(|(_, word)| *words.entry(word.clone()).or_default() += 1);
        words
    }

    /// Takes out of both what differs only in what else is told of it, and counts that.
    pub(super) fn take_out_alike(&mut self, other: &mut Stray) -> BTreeMap<Lost, usize> {
        let mut there: HashMap<u64, Vec<u64>> = HashMap::new();
        other.parts.iter().for_each(|(hash, _)| {
            let core = other.cores.get(hash).copied();
            core.into_iter().for_each(|core| there.entry(core).or_default().push(*hash));
        });
        let (mut words, mut taken) = (BTreeMap::new(), HashMap::new());
        let cores = &self.cores;
        self.parts.retain(|(hash, word)| {
            let alike = cores.get(hash).and_then(|core| there.get_mut(core)?.pop());
            if let Some(alike) = alike {
                let word = if *word == Lost::ToolCall { Lost::CallDetails } else { Lost::PartDetails };
                *words.entry(word).or_default() += 1;
                *taken.entry(alike).or_default() += 1;
            }
            alike.is_none()
        });
        other.take_out(&mut taken);
        words
    }

    pub(super) fn take_out(&mut self, moved: &mut HashMap<u64, usize>) {
        self.parts.retain(|(hash, _)| match moved.get_mut(hash).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                false
            }
            None => true,
        });
    }
}

fn hash(value: &Value) -> u64 {
    xxh3_64(value.to_string().as_bytes())
}

pub(super) fn counts<'s>(strays: impl Iterator<Item = &'s Stray>) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    strays.flat_map(|stray| &stray.parts).for_each(|(hash, _)| *counts.entry(*hash).or_default() += 1);
    counts
}

/// The parts that are in the first list and not in the second.
pub(super) fn left_over(of: &[(u64, Lost)], without: &[(u64, Lost)]) -> Vec<(u64, Lost)> {
    let mut there: HashMap<u64, usize> = HashMap::new();
    without.iter().for_each(|(hash, _)| *there.entry(*hash).or_default() += 1);
    let is_left = |(hash, _): &&(u64, Lost)| match there.get_mut(hash).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    };
    of.iter().filter(is_left).cloned().collect()
}

/// A part without the names of records, which are other ones in another file.
fn comparable(part: &Part) -> Value {
    let mut value = serde_json::to_value(part).unwrap_or_default();
    let is_data = matches!(part, Part::Data(_));
    if let Some(data) = value.get_mut("data").and_then(Value::as_object_mut).filter(|_| is_data) {
        data.shift_remove("record");
    }
    // Words that are in a file are whole, whether that is said or not.
    if let (Part::Text(_) | Part::Reasoning(_), Some(object)) = (part, value.as_object_mut()) {
        object.shift_remove("state");
    }
    // A tool that gave nothing back is said to have done so, or not.
    if let (Part::Tool(_), Some(call)) = (part, value.as_object_mut())
        && call.get("output").is_some_and(Value::is_null)
    {
        call.shift_remove("output");
    }
    // A note that a run went well or not says what the state says.
    if let (Part::Tool(_), Some(call)) = (part, value.as_object_mut())
        && let Some(metadata) = call.get_mut("callProviderMetadata").and_then(Value::as_object_mut)
    {
        if let Some(ours) = metadata.get_mut("scrollback").and_then(Value::as_object_mut) {
            ours.shift_remove("status");
        }
        metadata.retain(|_, facts| facts.as_object().is_none_or(|facts| !facts.is_empty()));
        if metadata.is_empty() {
            call.shift_remove("callProviderMetadata");
        }
    }
    if let (Part::Steering(_), Some(object)) = (part, value.as_object_mut()) {
        object.shift_remove("id");
    }
    value
}
