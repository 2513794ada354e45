//! Interned ids: each id is stored once, and records refer to it by number.

use hashbrown::HashTable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

/// The number of an id.
pub(crate) type IdIndex = u32;

#[derive(Debug, Default, Clone)]
pub(crate) struct Ids {
    text: String,
    /// Where each id ends in `text`.
    ends: Vec<usize>,
    table: HashTable<IdIndex>,
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, sym: IdIndex) -> &str {
        let at = sym as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    pub(crate) fn find(&self, id: &str) -> Option<IdIndex> {
        self.table.find(xxh3_64(id.as_bytes()), |&sym| self.get(sym) == id).copied()
    }

    pub(crate) fn intern(&mut self, id: &str) -> IdIndex {
        if let Some(sym) = self.find(id) {
            return sym;
        }
        let sym = self.ends.len() as IdIndex;
        self.text.push_str(id);
        self.ends.push(self.text.len());
        let Ids { text, ends, table } = self;
        let rehash = |&sym: &IdIndex| {
            let start = if sym == 0 { 0 } else { ends[sym as usize - 1] };
            xxh3_64(&text.as_bytes()[start..ends[sym as usize]])
        };
        table.insert_unique(xxh3_64(id.as_bytes()), sym, rehash);
        sym
    }

    /// Removes every id but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        for at in (len..self.ends.len()).rev() {
            let hash = xxh3_64(self.get(at as IdIndex).as_bytes());
            if let Ok(entry) = self.table.find_entry(hash, |&sym| sym as usize == at) {
                entry.remove();
            }
            self.ends.pop();
            self.text.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }
}

impl Serialize for Ids {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.len() as IdIndex).map(|id| self.get(id)))
    }
}

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ids, D::Error> {
        let all = Vec::<String>::deserialize(deserializer)?;
        let mut ids = Ids::default();
        for (at, id) in all.iter().enumerate() {
            if ids.intern(id) as usize != at {
                return Err(serde::de::Error::custom("an id occurs twice"));
            }
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_number_and_a_forgotten_one_is_free_again() {
        let mut ids = Ids::default();
        let (a, b) = (ids.intern("a"), ids.intern(""));
        assert_eq!((ids.intern("a"), ids.get(b)), (a, ""));
        ids.intern("later");
        ids.truncate(2);
        assert_eq!((ids.find("later"), ids.find("a")), (None, Some(a)));
        assert_eq!(ids.intern("again"), 2);
    }
}
