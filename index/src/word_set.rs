//! The words of a text that is not indexed, as a set in a few bits for each: whoever asks reads the text only if the set may have the words.

use hashbrown::HashSet;
use xxhash_rust::xxh3::xxh3_64;

use crate::words::each_word;

/// With six bits for a word and four of them set, one text in eighteen is read in vain, and all sets take about 1 % of the sessions.
const BITS_PER_WORD: usize = 6;
const BITS_SET: u32 = 4;

/// What is known of the words of a text without reading it: no is certain.
pub(crate) trait PossibleWords {
    /// Whether the text could have this word.
    fn may_have(&self, word: &str) -> bool;

    /// Whether it could have a word that begins so.
    fn may_have_beginning(&self, beginning: &str) -> bool;
}

/// A set of words that knows for certain only what is not in it (a Bloom filter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordSet<B = Vec<u8>>(B);

impl WordSet {
    /// The words of a text.
    pub fn of(text: &str) -> WordSet {
        let mut hashes = HashSet::new();
        each_word(text, |word| {
            hashes.insert(xxh3_64(word.text.as_bytes()));
        });
        let mut set = WordSet(vec![0; (hashes.len() * BITS_PER_WORD).div_ceil(8)]);
        for hash in hashes {
            for bit in bits(hash, set.0.len()) {
                set.0[bit / 8] |= 1 << (bit % 8);
            }
        }
        set
    }

    /// A set that may have any word.
    pub(crate) fn of_anything() -> WordSet {
        WordSet(vec![u8::MAX])
    }
}

impl<B: AsRef<[u8]>> WordSet<B> {
    /// A set as it was stored.
    pub(crate) fn from_bytes(bytes: B) -> WordSet<B> {
        WordSet(bytes)
    }

    /// What is stored of it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<B: AsRef<[u8]>> PossibleWords for WordSet<B> {
    fn may_have(&self, word: &str) -> bool {
        let set = self.as_bytes();
        // A set of no words has no bits.
        !set.is_empty() && bits(xxh3_64(word.as_bytes()), set.len()).all(|bit| set[bit / 8] & (1 << (bit % 8)) != 0)
    }

    fn may_have_beginning(&self, _: &str) -> bool {
        true
    }
}

/// The bits of a word: both halves of its hash make them.
fn bits(hash: u64, bytes: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (hash as u32, (hash >> 32) as u32 | 1);
    (0..BITS_SET).map(move |number| {
        let place = first.wrapping_add(step.wrapping_mul(number));
        // As far into the set as the number is into all numbers.
        ((u64::from(place) * (bytes as u64 * 8)) >> 32) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_all_its_words_and_few_others() {
        let words: Vec<String> = (0..1_000).map(|number| format!("word{number}")).collect();
        let set = WordSet::of(&words.join(" "));
        assert!(words.iter().all(|word| set.may_have(word)));
        let others = (0..10_000).filter(|number| set.may_have(&format!("other{number}"))).count();
        assert!((300..900).contains(&others), "{others} of 10,000");
        assert_eq!(set.as_bytes().len(), 750);
    }

    #[test]
    fn words_are_those_that_are_asked_for() {
        let set = WordSet::of("parseHTTP Café 東京");
        for word in ["parse", "http", "parsehttp", "cafe", "東", "京"] {
            assert!(set.may_have(word), "{word}");
        }
        assert!(!WordSet::of("-- ...").may_have("a"));
    }
}
