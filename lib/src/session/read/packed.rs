//! Compressed files, read as their content up to a limit. Gzip and zstd are known by their first bytes.

use std::io::{self, Read};
use std::path::Path;

/// Logs shrink to a tenth, repetitive ones to a hundredth. A file that grows by more than this is made to fill memory.
const GROWTH_LIMIT: u64 = 256;

/// A small file may grow by any factor up to this many bytes.
const HARMLESS_BYTES: u64 = 64 * 1024 * 1024;

/// No more unpacked bytes than this are held in memory.
const LIMIT_BYTES: u64 = 1024 * 1024 * 1024;

/// Whether a file's name says that it is compressed.
pub(crate) fn is_called_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// How a file with this head is compressed, if it is.
    pub(crate) fn of(head: &[u8]) -> Option<Packing> {
        match head {
            [0x1f, 0x8b, 8, _, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Unpacks up to a limit, and returns the content and why it ends early, if it does.
    pub(crate) fn unpack(
        self,
        packed: impl Read,
        packed_bytes: u64,
        enough_bytes: u64,
    ) -> io::Result<(Vec<u8>, Option<String>)> {
        let limit_bytes =
            packed_bytes.saturating_mul(GROWTH_LIMIT).clamp(HARMLESS_BYTES, LIMIT_BYTES).min(enough_bytes);
        Ok(match self {
            Packing::Gzip => read_up_to(limit_bytes, flate2::read::MultiGzDecoder::new(packed)),
            Packing::Zstd => read_up_to(limit_bytes, zstd::Decoder::new(packed)?),
        })
    }
}

/// The content of bytes that may be compressed, and why it ends early, if it does.
pub(crate) fn unpacked(bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
    let unpacked =
        Packing::of(&bytes).and_then(|packing| packing.unpack(&bytes[..], bytes.len() as u64, u64::MAX).ok());
    // Bytes that only begin like a compressed file are the content.
    unpacked.filter(|(content, torn)| torn.is_none() || !content.is_empty()).unwrap_or((bytes, None))
}

fn read_up_to(limit_bytes: u64, content: impl Read) -> (Vec<u8>, Option<String>) {
    let (mut bytes, mut content) = (Vec::new(), content.take(limit_bytes));
    match content.read_to_end(&mut bytes) {
        Err(error) => (bytes, Some(format!("the compressed file ends early: {error}"))),
        Ok(_) if content.limit() > 0 => (bytes, None),
        Ok(_) => match content.into_inner().read(&mut [0]) {
            Ok(0) => (bytes, None),
            _ => (bytes, Some(format!("it unpacks to more than {limit_bytes} bytes; the rest is not read"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_up_to_the_limit_and_no_further() {
        let bomb = zstd::encode_all(&vec![b'x'; 100_000][..], 1).unwrap();
        let read = |limit| read_up_to(limit, zstd::Decoder::new(&bomb[..]).unwrap());
        let (bytes, torn) = read(99_999);
        let more = "it unpacks to more than 99999 bytes; the rest is not read".to_owned();
        assert_eq!((bytes.len(), torn), (99_999, Some(more)));
        assert_eq!(read(100_000), (vec![b'x'; 100_000], None));
    }

    #[test]
    fn what_grows_beyond_reason_is_cut_at_what_does_no_harm() {
        let content = vec![0; HARMLESS_BYTES as usize + 1];
        let bomb = zstd::encode_all(&content[..], 1).unwrap();
        let (bytes, torn) = unpacked(bomb);
        assert_eq!((bytes.len() as u64, torn.is_some()), (HARMLESS_BYTES, true));
    }

    #[test]
    fn what_only_begins_like_an_archive_is_what_it_is() {
        let bytes = b"\x28\xb5\x2f\xfd no frame".to_vec();
        assert_eq!(unpacked(bytes.clone()), (bytes, None));
    }
}
