//! Ids of calls, each given once: the history and the contents that an agent recorded must give the same ones.

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Default)]
pub(crate) struct UniqueIds {
    /// By hash: a file that is gone on with tells no more.
    taken: HashSet<u64>,
    /// The last number that was put behind an id to tell calls apart.
    numbers: HashMap<String, usize>,
}

impl UniqueIds {
    /// The id itself where no call has it yet, else one made of `stem` and a number.
    pub(super) fn take(&mut self, id: &str, stem: &str) -> String {
        let mut own = id.to_owned();
        while !self.taken.insert(xxh3_64(own.as_bytes())) {
            let number = self.numbers.entry(stem.to_owned()).or_insert(1);
            *number += 1;
            own = format!("{stem}_{number}");
        }
        own
    }

    /// Another id for a call, where one has this id already.
    pub(crate) fn other_than(&mut self, id: &str) -> Option<String> {
        Some(self.take(id, id)).filter(|own| own != id)
    }

    /// A call has the id with this hash.
    pub(crate) fn know(&mut self, hash: u64) {
        self.taken.insert(hash);
    }
}
