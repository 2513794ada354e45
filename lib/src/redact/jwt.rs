//! Tokens of base64 parts with dots between them: JWT, signed or encrypted, and those of Discord's bots.

use std::ops::Range;

use super::{scan, values};

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

/// Looked at together.
const BLOCK_BYTES: usize = 64;

/// Between the dots of a bot's token is a time in six characters.
const TIME_BYTES: usize = 6;

/// Finds the tokens of bots: a number in base64, which starts with M, N or O, a time and a hash. They have no keyword, but two dots.
pub(super) fn find_bots(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let second = bytes.get(TIME_BYTES + 1..).unwrap_or_default();
    for (at, (dots, seconds)) in bytes.chunks(BLOCK_BYTES).zip(second.chunks(BLOCK_BYTES)).enumerate() {
        let are_dots = |(first, second): (&u8, &u8)| (*first == b'.') & (*second == b'.');
        // Without a branch for each byte, this takes no time.
        if !dots.iter().zip(seconds).fold(false, |found, pair| found | are_dots(pair)) {
            continue;
        }
        let pairs = dots.iter().zip(seconds).enumerate().filter(|(_, pair)| are_dots(*pair));
        for (offset, _) in pairs {
            if let Some(span) = bot_at(text, at * BLOCK_BYTES + offset) {
                found(span);
            }
        }
    }
}

/// The token whose first dot is here.
fn bot_at(text: &str, dot: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if part(bytes, dot + 1).len() != TIME_BYTES {
        return None;
    }
    let is_sign = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let before = bytes[dot.saturating_sub(30)..dot].iter().rev().take_while(is_sign).count();
    let is_start = |start: &usize| matches!(bytes[*start], b'M' | b'N' | b'O') && scan::starts_token(text, *start);
    let start = (dot - before..dot).find(is_start).unwrap_or(dot);
    let hash = part(bytes, dot + TIME_BYTES + 2);
    let is_token = (23..=28).contains(&(dot - start))
        && (27..=45).contains(&hash.len())
        && bytes[start..dot].iter().any(u8::is_ascii_digit)
        && values::is_random(&text[hash.clone()])
        && !values::is_example_token(&text[start..hash.end]);
    is_token.then_some(start..hash.end)
}

fn is_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=')
}

fn part(bytes: &[u8], start: usize) -> Range<usize> {
    start..start + bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_part(byte)).count()
}
