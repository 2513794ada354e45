//! Unique ids of calls: the history and the recorded contents must assign the same ones.

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Default)]
pub(crate) struct UniqueIds {
    /// By hash.
    taken: HashSet<u64>,
    /// The last number appended to each id.
    numbers: HashMap<String, usize>,
}

impl UniqueIds {
    /// The id itself if it is free, else `stem` and a number.
    pub(super) fn take(&mut self, id: &str, stem: &str) -> String {
        let mut own = id.to_owned();
        while !self.taken.insert(xxh3_64(own.as_bytes())) {
            let number = self.numbers.entry(stem.to_owned()).or_insert(1);
            *number += 1;
            own = format!("{stem}_{number}");
        }
        own
    }

    /// Another id for a call, if this id is already used.
    pub(crate) fn other_than(&mut self, id: &str) -> Option<String> {
        Some(self.take(id, id)).filter(|own| own != id)
    }

    /// Marks the id with this hash as used.
    pub(crate) fn add_facts(&mut self, hash: u64) {
        self.taken.insert(hash);
    }
}
