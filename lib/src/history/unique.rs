//! Ids of calls, each given once: the history and the contents that an agent recorded must give the same ones.

use hashbrown::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct UniqueIds {
    taken: HashSet<String>,
    /// The last number that was put behind an id to tell calls apart.
    numbers: HashMap<String, usize>,
}

impl UniqueIds {
    /// The id itself where no call has it yet, else one made of `stem` and a number.
    pub(super) fn take(&mut self, id: &str, stem: &str) -> String {
        let mut own = id.to_owned();
        while !self.taken.insert(own.clone()) {
            let number = self.numbers.entry(stem.to_owned()).or_insert(1);
            *number += 1;
            own = format!("{stem}_{number}");
        }
        own
    }
}
