//! Values that are secrets because the caller says so, such as those of environment variables: kept as hashes only.

use hashbrown::HashMap;

/// Shorter values stand in texts by chance.
pub(super) const MIN_BYTES: usize = 8;

/// One bit for each hash of a first word: the filter that nearly every position fails.
const FILTER_BITS: usize = 1 << 14;

/// Which values to mask.
#[derive(Clone)]
pub(super) struct Masked {
    key: [u8; 32],
    factor: u64,
    filter: Vec<u64>,
    /// Lengths and hashes of the values that start with the word of this hash, the longest first.
    values: HashMap<u64, Vec<(usize, [u8; 32])>>,
    /// How long the longest value with white space is: a stream holds so much back.
    pub(super) longest_with_space: usize,
}

impl Masked {
    /// Keeps what is long enough. The values themselves are not kept.
    pub(super) fn new(key: [u8; 32], secrets: &[String]) -> Option<Masked> {
        let mut secrets: Vec<&str> = secrets.iter().map(|secret| secret.trim()).collect();
        secrets.retain(|secret| secret.len() >= MIN_BYTES && !super::values::is_placeholder(secret));
        if secrets.is_empty() {
            return None;
        }
        let seed = blake3::keyed_hash(&key, b"masked values");
        let factor = word(seed.as_bytes()) | 1;
        let mut masked =
            Masked { key, factor, filter: vec![0; FILTER_BITS / 64], values: HashMap::new(), longest_with_space: 0 };
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in secrets {
            let hash = masked.hash(word(secret.as_bytes()));
            let bit = bit(hash);
            masked.filter[bit / 64] |= 1 << (bit % 64);
            let whole = *blake3::keyed_hash(&masked.key, secret.as_bytes()).as_bytes();
            masked.values.entry(hash).or_default().push((secret.len(), whole));
            if secret.contains(char::is_whitespace) {
                masked.longest_with_space = masked.longest_with_space.max(secret.len());
            }
        }
        Some(masked)
    }

    /// Calls `found` for each place of a value.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(std::ops::Range<usize>)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at + MIN_BYTES <= bytes.len() {
            let hash = self.hash(word(&bytes[at..at + MIN_BYTES]));
            let bit = bit(hash);
            let passes = self.filter[bit / 64] >> (bit % 64) & 1 == 1;
            match self.length_at(bytes, at, hash).filter(|_| passes) {
                Some(length) => {
                    found(at..at + length);
                    at += length;
                }
                None => at += 1,
            }
        }
    }

    fn length_at(&self, bytes: &[u8], at: usize, hash: u64) -> Option<usize> {
        let values = self.values.get(&hash)?;
        let is_here = |(length, whole): &&(usize, [u8; 32])| {
            bytes.get(at..at + length).is_some_and(|value| blake3::keyed_hash(&self.key, value) == *whole)
        };
        values.iter().find(is_here).map(|(length, _)| *length)
    }

    fn hash(&self, word: u64) -> u64 {
        let mixed = (word ^ self.factor.rotate_left(32)).wrapping_mul(self.factor);
        mixed ^ mixed >> 32
    }
}

fn bit(hash: u64) -> usize {
    hash as usize % FILTER_BITS
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; MIN_BYTES];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}
