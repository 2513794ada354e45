//! Card numbers and IBANs, found by their digits: they have no keyword, but issuers, lengths and checksums.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::values;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Card,
    Iban,
}

/// Every run of digits that can be a card or an IBAN has blocks of at least four digits with one to three bytes between them: looking at
/// one pair of bytes in each step finds all of them, because the step is no multiple of a block with what follows it, except for a
/// single byte, of which no pair consists.
const STEP_BYTES: usize = 5;

/// The shortest card number.
const MIN_NUMBER_BYTES: usize = 13;

/// Windows of so many bytes, of which each half is in two, have at least so many digits if a number is in them. Counting is cheap.
const WINDOW_BYTES: usize = 64;
const MIN_DIGITS: u8 = 6;

/// A word that says "card" is looked for in so many bytes before the number. A stream keeps so much context.
const CONTEXT_BYTES: usize = 64;

const IBAN: &[u8] = b"iban";

/// The longest IBAN, with a space after every fourth character.
const MAX_IBAN_BYTES: usize = 48;

#[rustfmt::skip]
const CARD_WORDS: &[&str] = &[
    "card", "visa", "amex", "american express", "credit", "debit", "discover", "diners", "jcb", "pan:", "cc:",
    "cc=", "payment", "ccnum", "cc_num", "cc-num", "ccn", "pan=", "pan ", "pan\"", "karte", "tarjeta", "carte ", "number=",
    "unionpay", "union pay", "maestro", "mastercard", " mir ", "mir:", "diner",
];

static CARD_WORD: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| values::finder(CARD_WORDS));

/// Finds numbers, in order.
pub(super) fn find(text: &str, mut found: impl FnMut(Number, Range<usize>)) {
    let bytes = text.as_bytes();
    if bytes.len() < MIN_NUMBER_BYTES {
        return;
    }
    let (mut at, mut done) = (0, 0);
    let mut dense_until = 0;
    while at < bytes.len() {
        if at >= dense_until {
            if bytes[at..].first_chunk().is_some_and(|window| count_digits(window) < MIN_DIGITS) {
                at += WINDOW_BYTES / 2;
                continue;
            }
            dense_until = at + WINDOW_BYTES / 2;
        }
        let pair = &bytes[at..bytes.len().min(at + 2)];
        let Some(offset) = pair.iter().position(u8::is_ascii_digit) else {
            at += STEP_BYTES;
            continue;
        };
        let run = run_around(bytes, at + offset, done);
        if let Some(iban) = iban_near(bytes, run.start, done) {
            found(Number::Iban, iban.clone());
            done = iban.end;
        } else {
            cards(text, &run, &mut found);
            done = run.end;
        }
        at = done.max(at + 1);
    }
}

fn count_digits(window: &[u8; WINDOW_BYTES]) -> u8 {
    window.iter().fold(0, |count, byte| count + u8::from(byte.is_ascii_digit()))
}

/// Whether the word is before the end of a text, which may be that of an IBAN: after it, one may have small letters.
pub(super) fn says_iban(text: &str) -> bool {
    let context = &text.as_bytes()[text.len().saturating_sub(CONTEXT_BYTES + MAX_IBAN_BYTES)..];
    context.windows(IBAN.len()).any(|here| here.eq_ignore_ascii_case(IBAN))
}

/// Where a number at the end of a text starts, if more text could belong to it.
pub(super) fn open_number(text: &str) -> usize {
    let bytes = text.as_bytes();
    // The bytes of spaces that do not break are in other characters, too, but with others beside them.
    let is_between =
        |byte: &u8| matches!(byte, b' ' | b'-' | b'.' | b'_' | 0xc2 | 0xa0 | 0xe2 | 0x80 | 0x89 | 0x90 | 0x91 | 0xaf);
    let is_small = says_iban(text);
    let is_part = |byte: &u8| {
        byte.is_ascii_digit() || byte.is_ascii_uppercase() || is_between(byte) || is_small && byte.is_ascii_lowercase()
    };
    let back = bytes.iter().rev().take(MAX_IBAN_BYTES).take_while(|byte| is_part(byte)).count();
    let tail = &bytes[bytes.len() - back..];
    if !tail.iter().any(u8::is_ascii_digit) {
        return bytes.len();
    }
    let first = tail.iter().position(|byte| !is_between(byte)).unwrap_or(back);
    bytes.len() - back + first
}

/// What is between the blocks of a number.
const SEPARATORS: [&[u8]; 10] = [
    b" ",
    b"-",
    b".",
    b"_",
    "\u{a0}".as_bytes(),
    "\u{2009}".as_bytes(),
    "\u{202f}".as_bytes(),
    "\u{2010}".as_bytes(),
    "\u{2011}".as_bytes(),
    TWO_SPACES,
];

/// Columns of a table have them between their numbers, too: without a word that says "card", they join nothing.
const TWO_SPACES: &[u8] = b"  ";

/// The sign at a place that joins it to the digit after it.
fn separator_at(bytes: &[u8], at: usize) -> Option<&'static [u8]> {
    let joins =
        |sign: &&[u8]| bytes[at..].starts_with(sign) && bytes.get(at + sign.len()).is_some_and(u8::is_ascii_digit);
    SEPARATORS.into_iter().find(joins)
}

/// Digits with single separators between them, around a digit.
fn run_around(bytes: &[u8], at: usize, done: usize) -> Range<usize> {
    let (mut start, mut end) = (at, at + 1);
    while start > done {
        let before = &bytes[done..start];
        let joins = |sign: &&&[u8]| before.strip_suffix(**sign).and_then(<[u8]>::last).is_some_and(u8::is_ascii_digit);
        match SEPARATORS.iter().find(joins) {
            Some(sign) => start -= sign.len(),
            None if bytes[start - 1].is_ascii_digit() => start -= 1,
            None => break,
        }
    }
    while let Some(next) = bytes.get(end) {
        match separator_at(bytes, end) {
            Some(sign) => end += sign.len(),
            None if next.is_ascii_digit() => end += 1,
            None => break,
        }
    }
    start..end
}

fn cards(text: &str, run: &Range<usize>, found: &mut impl FnMut(Number, Range<usize>)) {
    let bytes = text.as_bytes();
    if run.len() < MIN_NUMBER_BYTES {
        return;
    }
    let mut at = run.start;
    while at < run.end {
        let group = group_at(bytes, at, run.end);
        let card = card_at(text, at, run.end);
        if let Some(end) = card {
            found(Number::Card, at..end);
        }
        let end = card.unwrap_or(group.end);
        at = end + separator_at(bytes, end).map_or(1, <[u8]>::len);
    }
}

fn group_at(bytes: &[u8], at: usize, limit: usize) -> Range<usize> {
    at..at + bytes[at..limit].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Where the card number that starts with this group ends.
fn card_at(text: &str, at: usize, limit: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut group = group_at(bytes, at, limit);
    let (mut lengths, mut ends, mut separators) = (Vec::with_capacity(5), Vec::with_capacity(5), Vec::new());
    loop {
        lengths.push(group.len());
        ends.push(group.end);
        let is_card_so_far = matches!(lengths[..], [4] | [4, 4] | [4, 6] | [4, 4, 4] | [4, 4, 4, 4]);
        let separator = separator_at(bytes, group.end).filter(|_| is_card_so_far && group.end + 1 < limit);
        // One number has one kind of them.
        let Some(separator) = separator.filter(|sign| separators.is_empty() || separators.contains(sign)) else {
            break;
        };
        separators.push(separator);
        group = group_at(bytes, group.end + separator.len(), limit);
    }
    let is_loose = separators.first() == Some(&TWO_SPACES);
    (1..=ends.len())
        .rev()
        .map(|count| (ends[count - 1], &lengths[..count]))
        .find_map(|(end, lengths)| is_card(text, at..end, lengths, is_loose && lengths.len() > 1).then_some(end))
}

/// Whether digits in blocks of these lengths are a card number.
fn is_card(text: &str, number: Range<usize>, lengths: &[usize], is_loose: bool) -> bool {
    let bytes = text.as_bytes();
    let (is_grouped, is_rare) = match lengths {
        [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4] if is_loose => (true, true),
        [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 3] => (true, false),
        [4, 4, 4, 1] | [4, 4, 4, 2] | [4, 4, 4, 4, 3] => (true, true),
        [13..=19] => (false, false),
        _ => return false,
    };
    let digits: Vec<u8> =
        bytes[number.clone()].iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
    let is_one_digit = digits.iter().all(|digit| *digit == digits[0]);
    // What is read for context would be read again for each group of a long table, so it comes last.
    if is_one_digit || !has_issuer(&digits, true) || !is_luhn(&digits) {
        return false;
    }
    let has_context = has_context(text, number.start);
    has_issuer(&digits, has_context || is_grouped)
        && stands_alone(bytes, &number, has_context, is_grouped)
        && (has_context || is_grouped && !is_rare || !is_grouped && !is_called_id(bytes, number.start))
}

/// Not a part of a word, a decimal, a path or, without a word that says "card", of an address or an assignment.
fn stands_alone(bytes: &[u8], number: &Range<usize>, has_context: bool, is_grouped: bool) -> bool {
    let before = number.start.checked_sub(1).map(|at| bytes[at]);
    let (after, second) = (bytes.get(number.end), bytes.get(number.end + 1));
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_escape =
        |byte: u8| matches!(byte, b'n' | b'r' | b't') && number.start >= 2 && bytes[number.start - 2] == b'\\';
    // What the magnetic stripe of a card says: `%B4…^`.
    let is_track = bytes[..number.start].ends_with(b"%B") && after == Some(&b'^');
    let starts = match before {
        None => true,
        Some(byte) if is_word(byte) => is_escape(byte) || is_track,
        Some(byte) => {
            has_context && byte != b'.'
                || is_assigned(bytes, number.start) && (is_grouped || !is_called_id(bytes, number.start))
                || !matches!(byte, b'.' | b'#' | b'+' | b'/' | b'=' | b'&' | b'-' | b'@' | b'%' | b'\\')
        }
    };
    let ends = match after {
        None => true,
        Some(byte) if is_word(*byte) => false,
        Some(b'.') => !second.is_some_and(u8::is_ascii_digit),
        Some(b'-') => second.is_none_or(|byte| !byte.is_ascii_alphanumeric()),
        Some(b'/' | b'@') => has_context,
        Some(_) => true,
    };
    starts && ends
}

/// `NAME=4…`, but not in an address: `?x=4…`.
fn is_assigned(bytes: &[u8], at: usize) -> bool {
    const LONGEST: usize = 48;
    let Some(before) = bytes[..at].strip_suffix(b"=") else { return false };
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = before.iter().rev().take(LONGEST).take_while(is_name).count();
    let outer = before.len().checked_sub(length + 1).map(|at| before[at]);
    length > 0
        && length < LONGEST
        && outer.is_none_or(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b';' | b'"' | b'\''))
}

fn has_context(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[at.saturating_sub(CONTEXT_BYTES)..at];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or(before);
    // What is masked in between changes its length: only what follows it counts, before and after.
    let line = line.rsplit(|byte| *byte == b']').next().unwrap_or(line);
    CARD_WORD.as_ref().is_some_and(|words| words.is_match(line))
}

/// Whether the word before a number says that it counts something: `id 4…`, `"order": 4…`.
fn is_called_id(bytes: &[u8], at: usize) -> bool {
    const WORDS: [&[u8]; 8] = [b"id", b"ids", b"order", b"ticket", b"tracking", b"snowflake", b"status", b"ts"];
    let before = &bytes[at.saturating_sub(16)..at];
    let signs = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b':' | b'"' | b'=' | b'\'')).count();
    let before = &before[..before.len() - signs];
    let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &before[before.len() - letters..];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)) || word.ends_with(b"Id") || word.ends_with(b"ID")
}

fn has_issuer(digits: &[u8], has_context: bool) -> bool {
    let first = |count: usize| digits.iter().take(count).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    match (digits.len(), first(4)) {
        (15, 3400..=3499 | 3700..=3799) => true,
        (16, 4000..=4999 | 5100..=5599 | 2221..=2720 | 6011 | 6440..=6599 | 3528..=3589 | 6200..=6299) => true,
        (14, 3000..=3059 | 3600..=3699 | 3800..=3999) => has_context,
        (13 | 19, 4000..=4999) => has_context,
        (16..=19, 2200..=2204) => has_context,
        (16..=19, 6200..=6299 | 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763 | 6011 | 6440..=6599) => {
            has_context
        }
        _ => false,
    }
}

fn is_luhn(digits: &[u8]) -> bool {
    let weigh = |(at, digit): (usize, &u8)| match (at % 2, digit) {
        (0, digit) => u32::from(*digit),
        (_, digit @ 0..=4) => u32::from(digit * 2),
        (_, digit) => u32::from(digit * 2 - 9),
    };
    digits.iter().rev().enumerate().map(weigh).sum::<u32>() % 10 == 0
}

/// An IBAN whose digits start here: its country is right before them, or before the letters of its bank.
fn iban_near(bytes: &[u8], digits: usize, done: usize) -> Option<Range<usize>> {
    let before = bytes[done..digits].iter().rev().find(|byte| **byte != b' ' && **byte != b'-')?;
    let earliest = digits.saturating_sub(14).max(done);
    if before.is_ascii_lowercase() {
        return small_iban(bytes, earliest, digits);
    }
    if !before.is_ascii_uppercase() && !before.is_ascii_digit() {
        return None;
    }
    (earliest..digits.saturating_sub(1)).rev().find_map(|start| iban_at(bytes, start))
}

/// An IBAN in small letters, which counts only after the word.
fn small_iban(bytes: &[u8], earliest: usize, digits: usize) -> Option<Range<usize>> {
    /// Two signs before it, the letters of its bank, and the longest one with spaces.
    const WINDOW: usize = 80;
    let is_start = |start: usize| match bytes[start..] {
        [a, b, c, d, ..] => [a, b].iter().all(u8::is_ascii_alphabetic) && [c, d].iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let mut context = bytes[digits.saturating_sub(CONTEXT_BYTES)..digits].windows(IBAN.len());
    // Most letters before a digit are neither.
    if !(earliest..digits.saturating_sub(1)).any(is_start) || !context.any(|here| here.eq_ignore_ascii_case(IBAN)) {
        return None;
    }
    let from = earliest.saturating_sub(2);
    let capitals = bytes[from..bytes.len().min(from + WINDOW)].to_ascii_uppercase();
    let found = (earliest - from..(digits - from).saturating_sub(1))
        .rev()
        .find_map(|start| iban_at(&capitals, start))?;
    Some(from + found.start..from + found.end)
}

fn iban_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let [a, b, c, d, ..] = bytes.get(start..)? else { return None };
    let is_start = a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit();
    // The groups of a UUID look like an IBAN with dashes.
    let is_in_id = start > 1 && bytes[start - 1] == b'-' && bytes[start - 2].is_ascii_hexdigit();
    if !is_start || is_in_id || start > 0 && bytes[start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let length = IBAN_LENGTHS.iter().find(|(country, _)| country.as_bytes() == [*a, *b])?.1;
    let mut at = start;
    let mut signs = Vec::with_capacity(length);
    while signs.len() < length {
        match bytes.get(at)? {
            byte if byte.is_ascii_uppercase() || byte.is_ascii_digit() => signs.push(*byte),
            b' ' | b'-' if signs.len().is_multiple_of(4) && bytes[at - 1] != b' ' => {}
            _ => return None,
        }
        at += 1;
    }
    if bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    signs.rotate_left(4);
    let value = |byte: u8| if byte.is_ascii_digit() { u32::from(byte - b'0') } else { u32::from(byte - b'A') + 10 };
    let rest = signs.iter().fold(0, |rest, byte| match value(*byte) {
        value @ 0..=9 => (rest * 10 + value) % 97,
        value => (rest * 100 + value) % 97,
    });
    (rest == 1).then_some(start..at)
}

/// How long an IBAN of each country is, from the registry of SWIFT.
#[rustfmt::skip]
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24), ("AE", 23), ("AL", 28), ("AT", 20), ("AZ", 28), ("BA", 20), ("BE", 16), ("BG", 22), ("BH", 22), ("BR", 29), ("BY", 28), ("CH", 21),
    ("CR", 22), ("CY", 28), ("CZ", 24), ("DE", 22), ("DK", 18), ("DO", 28), ("EE", 20), ("EG", 29), ("ES", 24), ("FI", 18), ("FO", 18), ("FR", 27),
    ("GB", 22), ("GE", 22), ("GI", 23), ("GL", 18), ("GR", 27), ("GT", 28), ("HR", 21), ("HU", 28), ("IE", 22), ("IL", 23), ("IQ", 23), ("IS", 26),
    ("IT", 27), ("JO", 30), ("KW", 30), ("KZ", 20), ("LB", 28), ("LC", 32), ("LI", 21), ("LT", 20), ("LU", 20), ("LV", 21), ("LY", 25), ("MC", 27),
    ("MD", 24), ("ME", 22), ("MK", 19), ("MR", 27), ("MT", 31), ("MU", 30), ("NL", 18), ("NO", 15), ("PK", 24), ("PL", 28), ("PS", 29), ("PT", 25),
    ("QA", 29), ("RO", 24), ("RS", 22), ("SA", 24), ("SC", 31), ("SD", 18), ("SE", 24), ("SI", 19), ("SK", 24), ("SM", 27), ("ST", 25), ("SV", 28),
    ("TL", 23), ("TN", 24), ("TR", 26), ("UA", 29), ("VA", 22), ("VG", 24), ("XK", 20),
];
