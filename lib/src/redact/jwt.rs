//! Tokens of base64 parts with dots between them: JWT, signed or encrypted.

use std::ops::Range;

/// `{"` and a short name: nothing shorter is a header.
const MIN_HEADER_BYTES: usize = 12;

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
    while parts < 5 && bytes.get(end) == Some(&b'.') {
        let next = part(bytes, end + 1);
        if next.is_empty() && parts != 2 {
            break;
        }
        longest = longest.max(next.len());
        end = next.end;
        parts += 1;
    }
    if longest >= MIN_HEADER_BYTES { Ok(start..end) } else { Err(end) }
}

fn is_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=')
}

pub(super) fn part(bytes: &[u8], start: usize) -> Range<usize> {
    start..start + bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_part(byte)).count()
}
