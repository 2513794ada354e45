//! Tokens without a keyword, which have the same sign twice at a distance of their own: of Discord's bots, Mailgun and Asana.

use std::ops::Range;

use super::{jwt, scan, values};

/// Looked at together.
const BLOCK_BYTES: usize = 64;

/// A kind of token, its sign, how far the second one is from the first, and the token around a first sign.
struct Shape {
    rule: &'static str,
    sign: u8,
    distance: usize,
    token: fn(&str, usize) -> Option<Range<usize>>,
}

/// Between the dots of a bot's token is a time in six characters; a key of Mailgun is 32, 8 and 8 hexadecimal digits with dashes; a
/// token of Asana has two numbers of 16 digits.
const SHAPES: [Shape; 3] = [
    Shape { rule: "discord-token", sign: b'.', distance: 7, token: bot_at },
    Shape { rule: "mailgun-key", sign: b'-', distance: 9, token: mailgun_at },
    Shape { rule: "asana-token", sign: b'/', distance: 17, token: asana_at },
];

/// Calls `found` for each token with its rule.
pub(super) fn find(text: &str, mut found: impl FnMut(&'static str, Range<usize>)) {
    for shape in SHAPES {
        shape.find(text, |span| found(shape.rule, span));
    }
}

impl Shape {
    fn find(&self, text: &str, mut found: impl FnMut(Range<usize>)) {
        let bytes = text.as_bytes();
        let seconds = bytes.get(self.distance..).unwrap_or_default();
        let are_signs = |(first, second): (&u8, &u8)| (*first == self.sign) & (*second == self.sign);
        let mut look = |start: usize, first: &[u8], second: &[u8]| {
            let pairs = first.iter().zip(second).enumerate().filter(|(_, pair)| are_signs(*pair));
            pairs.filter_map(|(offset, _)| (self.token)(text, start + offset)).for_each(&mut found);
        };
        // Blocks of a known size and no branch for each byte: then the processor compares many at a time.
        let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
        let (second_blocks, rest) = seconds.as_chunks::<BLOCK_BYTES>();
        for (at, (first, second)) in blocks.iter().zip(second_blocks).enumerate() {
            if first.iter().zip(second).fold(false, |found, pair| found | are_signs(pair)) {
                look(at * BLOCK_BYTES, first, second);
            }
        }
        let start = seconds.len() - rest.len();
        look(start, &bytes[start..], rest);
    }
}

/// The token of a bot, whose first dot is here: a number in base64, which starts with M, N or O, a time and a hash.
fn bot_at(text: &str, dot: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let time = jwt::part(bytes, dot + 1);
    if bytes.get(time.end) != Some(&b'.') || time.len() != 6 {
        return None;
    }
    let is_sign = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let before = bytes[dot.saturating_sub(30)..dot].iter().rev().take_while(is_sign).count();
    let is_start = |start: &usize| matches!(bytes[*start], b'M' | b'N' | b'O') && scan::starts_token(text, *start);
    let start = (dot - before..dot).find(is_start).unwrap_or(dot);
    let hash = jwt::part(bytes, time.end + 1);
    let is_token = (23..=28).contains(&(dot - start))
        && (27..=45).contains(&hash.len())
        && bytes[start..dot].iter().any(u8::is_ascii_digit)
        && values::is_random(&text[hash.clone()])
        && !values::is_example_token(&text[start..hash.end]);
    is_token.then_some(start..hash.end)
}

/// The key of Mailgun whose first dash is here.
fn mailgun_at(text: &str, dash: usize) -> Option<Range<usize>> {
    const DIGITS_BEFORE: usize = 32;
    const LENGTH: usize = 50;
    let (bytes, start) = (text.as_bytes(), dash.checked_sub(DIGITS_BEFORE)?);
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let token = bytes.get(start..start + LENGTH)?;
    let is_token = token.iter().filter(|byte| is_hex(byte)).count() == LENGTH - 2
        && !bytes.get(start + LENGTH).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && (start == 0 || bytes[start - 1] != b'-')
        && scan::starts_token(text, start)
        && values::is_random(&text[start..dash]);
    is_token.then_some(start..start + LENGTH)
}

/// The token of Asana whose first slash is here: `2/<user>/<token>:<32 hexadecimal digits>`.
fn asana_at(text: &str, slash: usize) -> Option<Range<usize>> {
    let (bytes, start) = (text.as_bytes(), slash.checked_sub(1)?);
    let digits = |from: usize| bytes.get(from..from + 16).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let (colon, end) = (slash + 34, slash + 67);
    let is_token = matches!(bytes[start], b'1' | b'2')
        && digits(slash + 1)
        && digits(slash + 18)
        && bytes.get(colon) == Some(&b':')
        && bytes.get(colon + 1..end).is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit))
        && !bytes.get(end).is_some_and(u8::is_ascii_alphanumeric)
        && scan::starts_token(text, start);
    is_token.then_some(start..end)
}
