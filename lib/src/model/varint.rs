//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first; the highest bit says that more follow.

/// Puts a number behind the bytes.
pub(crate) fn push(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the beginning; `None` if its end is not there.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    match bytes.split_first()? {
        (number, rest) if *number < 0x80 => {
            *bytes = rest;
            Some(u64::from(*number))
        }
        _ => take_longer(bytes),
    }
}

fn take_longer(bytes: &mut &[u8]) -> Option<u64> {
    if let Some(word) = bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
        && let Some(last) = first_end(word)
    {
        *bytes = bytes.get(last + 1..)?;
        // The seven bits of each byte move together: first in pairs of bytes, then in fours, then all.
        let sevens = word & (u64::MAX >> (56 - 8 * last)) & !ENDS;
        let pairs = (sevens & 0x007f_007f_007f_007f) | ((sevens & 0x7f00_7f00_7f00_7f00) >> 1);
        let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
        return Some((fours & 0x0fff_ffff) | ((fours >> 32) << 28));
    }
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The highest bit of each byte.
const ENDS: u64 = 0x8080_8080_8080_8080;

/// Which of eight bytes is the last one of a number.
fn first_end(word: u64) -> Option<usize> {
    let ends = !word & ENDS;
    (ends != 0).then(|| ends.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_any_length_is_read_back_wherever_it_ends() {
        let lengths = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit, 0x5555_5555_5555_5555 >> bit]);
        for number in lengths {
            let mut bytes = Vec::new();
            push(number, &mut bytes);
            for (behind, byte) in (0..9).flat_map(|behind| [(behind, 0), (behind, 0xff)]) {
                let bytes = [bytes.clone(), vec![byte; behind]].concat();
                let mut left = &bytes[..];
                assert_eq!((take(&mut left), left.len()), (Some(number), behind), "{number}");
            }
            for end in 0..bytes.len() {
                assert_eq!(take(&mut &bytes[..end]), None, "{number}");
            }
        }
        assert_eq!(take(&mut &[0x80; 12][..]), None);
    }
}
