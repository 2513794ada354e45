//! Tokens of base64 parts with dots between them: JWT, signed or encrypted.

use std::ops::Range;

/// `{"` and a short name: nothing shorter is a header.
const MIN_HEADER_BYTES: usize = 12;

/// The last part of an encrypted token has 128 bits or more.
const MIN_TAG_BYTES: usize = 20;

/// The token that starts here, or how far there is none.
pub(super) fn at(text: &str, start: usize) -> Result<Range<usize>, usize> {
    let bytes = text.as_bytes();
    let header = part(bytes, start);
    if header.len() < MIN_HEADER_BYTES || bytes.get(header.end) != Some(&b'.') {
        return Err(header.end);
    }
    let mut end = header.end;
    let mut parts = 1;
    let mut longest = 0;
    let mut signed_end = header.end;
    let mut last = 0;
    while parts < 5 && bytes.get(end) == Some(&b'.') {
        let next = part(bytes, end + 1);
        if next.is_empty() && parts != 2 {
            break;
        }
        longest = longest.max(next.len());
        end = next.end;
        last = next.len();
        parts += 1;
        if parts == 3 {
            signed_end = end;
        }
    }
    // A signed token has three parts, an encrypted one five: what else follows is the rest of an address or of a file's name.
    let is_encrypted = parts == 5 && last >= MIN_TAG_BYTES;
    let end = if parts > 3 && !is_encrypted { signed_end } else { end };
    if longest >= MIN_HEADER_BYTES { Ok(start..end) } else { Err(end) }
}

fn is_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=')
}

pub(super) fn part(bytes: &[u8], start: usize) -> Range<usize> {
    start..start + bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_part(byte)).count()
}
