//! Bytes in an index with their checksum: SQLite does not notice a bit that flipped inside a row, and whoever reads such bytes would
//! answer something else. What is damaged is as unknown as what is not there.

use xxhash_rust::xxh3::xxh3_64;

/// Puts the checksum behind the bytes.
pub(crate) fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// The bytes, if they are those that were stored.
pub(crate) fn without_sum(stored: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = stored.split_last_chunk()?;
    (u64::from_le_bytes(*sum) == xxh3_64(bytes)).then_some(bytes)
}
