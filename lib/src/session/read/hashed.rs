//! The hash of a file's beginning that can be continued when the file has grown, without reading what was hashed before.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::error::Result;
use crate::session::read::files::OpenFile;

/// So much is hashed at a time: of what was hashed before, no more than this is read again.
const BLOCK_BYTES: u64 = 4096;

/// So much is in memory at a time.
const READ_BYTES: u64 = 256 * BLOCK_BYTES;

/// The whole blocks from the beginning of a file.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Hashed {
    blocks: u64,
    /// The sum of their hashes, each with its number.
    sum: u64,
}

impl Hashed {
    /// The hash of everything before `end`. The whole blocks there are remembered.
    pub(crate) fn up_to(&mut self, end: u64, file: &OpenFile) -> Result<u64> {
        let mut at = self.blocks * BLOCK_BYTES;
        while at < end {
            let bytes = file.read_at(at, READ_BYTES.min(end - at))?;
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
            for block in bytes.chunks(BLOCK_BYTES as usize) {
                let sum = self.sum.wrapping_add(xxh3_64_with_seed(block, self.blocks));
                if (block.len() as u64) < BLOCK_BYTES {
                    return Ok(sum);
                }
                (self.blocks, self.sum) = (self.blocks + 1, sum);
            }
        }
        Ok(self.sum)
    }
}
