//! The requests of a session that a copy of it repeats, in few bytes: a list of thousands of sessions has a hundred thousand of them, and
//! looks at the tokens of a few.

use crate::model::record::Usage;
use crate::model::varint;

/// Requests, each with the hash of its name and its tokens: all names, then all tokens.
///
/// ```text
/// how many (8 bytes)   names (8 bytes each)   input, output, cache read, cache write, reasoning of each: plus one, 0 is unknown
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedRequests(Vec<u8>);

impl NamedRequests {
    /// As they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What was stored; `None` if it is damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<NamedRequests> {
        let requests = NamedRequests(bytes);
        let has_count = requests.0.is_empty() || requests.0.len() >= NUMBER_BYTES;
        let has_all_names = requests.names().len() as u64 == requests.count();
        (has_count && has_all_names).then_some(requests)
    }

    /// The hash of the name of each.
    pub fn names(&self) -> impl ExactSizeIterator<Item = u64> {
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let (names, _) = self.0.get(NUMBER_BYTES..).unwrap_or_default().as_chunks::<NUMBER_BYTES>();
        names.iter().take(count).map(|name| u64::from_le_bytes(*name))
    }

    /// The tokens of each.
    pub fn usages(&self) -> impl Iterator<Item = Usage> {
        let names_end = NUMBER_BYTES * (1 + self.names().len());
        let mut rest = self.0.get(names_end..).unwrap_or_default();
        std::iter::from_fn(move || take_usage(&mut rest))
    }

    fn count(&self) -> u64 {
        self.0.first_chunk().map_or(0, |count| u64::from_le_bytes(*count))
    }
}

impl FromIterator<(u64, Usage)> for NamedRequests {
    fn from_iter<I: IntoIterator<Item = (u64, Usage)>>(requests: I) -> NamedRequests {
        let mut requests: Vec<(u64, Usage)> = requests.into_iter().collect();
        // The same requests are the same bytes.
        requests.sort_unstable_by_key(|(name, _)| *name);
        let (names, usages): (Vec<u64>, Vec<Usage>) = requests.into_iter().unzip();
        if names.is_empty() {
            return NamedRequests::default();
        }
        let numbers = [names.len() as u64].into_iter().chain(names);
        let mut bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        for Usage { input, output, cache_read, cache_write, reasoning } in usages {
            for count in [input, output, cache_read, cache_write, reasoning] {
                varint::push(count.map_or(0, |count| count.saturating_add(1)), &mut bytes);
            }
        }
        NamedRequests(bytes)
    }
}

const NUMBER_BYTES: usize = size_of::<u64>();

fn take_usage(bytes: &mut &[u8]) -> Option<Usage> {
    let mut count = || Some(varint::take(bytes)?.checked_sub(1));
    let [input, output, cache_read, cache_write, reasoning] = [count()?, count()?, count()?, count()?, count()?];
    Some(Usage { input, output, cache_read, cache_write, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_back_and_damaged_ones_are_none() {
        let usage = Usage { input: Some(0), output: Some(u64::MAX - 1), cache_read: Some(127), ..Usage::default() };
        let requests = [(7, usage), (u64::MAX, Usage::default())];
        let named = NamedRequests::from_iter(requests);
        assert_eq!(named.names().zip(named.usages()).collect::<Vec<_>>(), requests);
        assert_eq!(NamedRequests::from_iter(requests.into_iter().rev()), named);
        let bytes = named.as_bytes();
        assert_eq!(NamedRequests::from_bytes(bytes.to_vec()), Some(named.clone()));
        for end in 1..bytes.len() {
            let cut = NamedRequests::from_bytes(bytes[..end].to_vec());
            assert!(cut.is_none_or(|cut| cut.names().eq(named.names())), "{end}");
        }
    }
}
