//! The end of a JSON string, found 64 bytes at a time.
//!
//! Code in a string has an escape every thirty bytes, so a search that stops at each of them is slow. Here each byte of a block is
//! one bit of a mask, and a few operations on whole masks say which quotes are escaped.

use memchr::memchr2;
use wide::u8x16;

/// Bytes in a block: as many as a mask has bits.
const BLOCK: usize = 64;

/// Bytes that are compared at once.
const LANE: usize = 16;

const QUOTES: u8x16 = u8x16::splat(b'"');
const BACKSLASHES: u8x16 = u8x16::splat(b'\\');

/// Where a string ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StringEnd {
    /// The position of its last quote.
    pub(crate) at: usize,
    pub(crate) has_escapes: bool,
}

/// Finds the end of a string that begins before `start`. `None` if it has none, or an escape that JSON does not know. Control
/// characters and halves of surrogate pairs are not looked for.
#[inline]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<StringEnd> {
    // Most strings are short and have no escapes: they end in the first lanes.
    let mut at = start;
    while let Some(lane) = bytes.get(at..)?.first_chunk() {
        let lane = u8x16::new(*lane);
        let stops = (lane.simd_eq(QUOTES) | lane.simd_eq(BACKSLASHES)).to_bitmask();
        if stops != 0 {
            at += stops.trailing_zeros() as usize;
            if bytes[at] == b'"' {
                return Some(StringEnd { at, has_escapes: false });
            }
            break;
        }
        at += LANE;
    }
    end_after_escapes(bytes, at)
}

/// Finds the end of a string whatever its escapes are. A torn one ends with the text.
pub(crate) fn lenient_string_end(bytes: &[u8], start: usize) -> StringEnd {
    if let Some(end) = string_end(bytes, start) {
        return end;
    }
    let (mut at, mut has_escapes) = (start, false);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return StringEnd { at, has_escapes };
        }
        has_escapes = true;
        at += 2;
    }
    StringEnd { at: bytes.len(), has_escapes }
}

/// The first backslash. It is near where code or prose is quoted, so calling a general search costs more than looking.
#[inline]
pub(super) fn find_backslash(bytes: &[u8]) -> Option<usize> {
    let (lanes, rest) = bytes.as_chunks();
    for (nth, lane) in lanes.iter().enumerate() {
        let found = u8x16::new(*lane).simd_eq(BACKSLASHES).to_bitmask();
        if found != 0 {
            return Some(LANE * nth + found.trailing_zeros() as usize);
        }
    }
    rest.iter().position(|byte| *byte == b'\\').map(|at| LANE * lanes.len() + at)
}

fn end_after_escapes(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let (mut block_start, mut is_escaped, mut has_escapes) = (start, false, false);
    loop {
        let rest = bytes.get(block_start..).filter(|rest| !rest.is_empty())?;
        let masks = match rest.first_chunk::<BLOCK>() {
            Some(block) => Masks::of(block),
            None => {
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                Masks::of(&block)
            }
        };
        let escaped = escaped(masks.backslashes, &mut is_escaped);
        let ends = masks.quotes & !escaped;
        // Bits before the end; all of them if the string goes on.
        let inside = ends.wrapping_sub(1) & !ends;
        if escaped & inside != 0 {
            has_escapes = true;
            // Most escapes are a line break, a quote or a backslash; the others are looked at one by one.
            let mut others = escaped & inside & !(masks.quotes | masks.backslashes | masks.letters_n);
            while others != 0 {
                if !is_escape(bytes.get(block_start + others.trailing_zeros() as usize..)?) {
                    return None;
                }
                others &= others - 1;
            }
        }
        if ends != 0 {
            return Some(StringEnd { at: block_start + ends.trailing_zeros() as usize, has_escapes });
        }
        block_start += BLOCK;
    }
}

/// Whether what comes after a backslash is an escape.
fn is_escape(rest: &[u8]) -> bool {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'u', digits @ ..] => digits.first_chunk::<4>().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    }
}

/// Which bytes come after a backslash that is not itself escaped. `is_escaped` says whether the first one does, and then whether the
/// first one of the next block does.
///
/// In a run of backslashes every second one is escaped. A run that begins at an odd position is added to itself: the carry marks
/// where it ends, and whether its length was odd or even.
fn escaped(backslashes: u64, is_escaped: &mut bool) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let before = u64::from(*is_escaped);
    let backslashes = backslashes & !before;
    let follows = backslashes << 1 | before;
    let odd_starts = backslashes & !EVEN & !follows;
    let (sum, overflow) = odd_starts.overflowing_add(backslashes);
    *is_escaped = overflow;
    (EVEN ^ (sum << 1)) & follows
}

/// Where the bytes that matter are in a block.
struct Masks {
    quotes: u64,
    backslashes: u64,
    letters_n: u64,
}

impl Masks {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Masks {
        let mut masks = Masks { quotes: 0, backslashes: 0, letters_n: 0 };
        for (nth, lane) in block.as_chunks().0.iter().enumerate() {
            let lane = u8x16::new(*lane);
            let mask = |bytes: u8x16| u64::from(lane.simd_eq(bytes).to_bitmask()) << (LANE * nth);
            masks.quotes |= mask(QUOTES);
            masks.backslashes |= mask(BACKSLASHES);
            masks.letters_n |= mask(u8x16::splat(b'n'));
        }
        masks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, byte by byte.
    fn slowly(bytes: &[u8], start: usize) -> Option<StringEnd> {
        let (mut at, mut has_escapes) = (start, false);
        loop {
            match bytes.get(at)? {
                b'"' => return Some(StringEnd { at, has_escapes }),
                b'\\' if is_escape(bytes.get(at + 1..)?) => (at, has_escapes) = (at + 2, true),
                b'\\' => return None,
                _ => at += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_ends_where_it_ends_byte_by_byte(
            text in prop::collection::vec(prop::sample::select(br#"\\\\\"nux09aaaaaaaaaaaa"#.to_vec()), 0..300),
            start in 0..8_usize,
        ) {
            prop_assert_eq!(string_end(&text, start), slowly(&text, start));
        }

        #[test]
        fn runs_of_backslashes_end_anywhere(before in 0..130_usize, run in 0..130_usize, after in 0..3_usize) {
            let text = format!("{}{}\"{}\"", "a".repeat(before), "\\".repeat(run), "b".repeat(after));
            prop_assert_eq!(string_end(text.as_bytes(), 0), slowly(text.as_bytes(), 0));
        }
    }
}
