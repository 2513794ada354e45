//! Base64, in both alphabets, as far as redaction looks through it.

/// What a text of base64 says; `None` if it is none.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4 + 2);
    for group in digits.as_bytes().chunks(4) {
        let bits = group.iter().try_fold(0_u32, |bits, byte| Some(bits << 6 | u32::from(value(*byte)?)))?;
        let bits = bits << (6 * (4 - group.len()));
        out.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// What a text of base64 says, if people can read it.
pub(super) fn readable(text: &str) -> Option<String> {
    let decoded = String::from_utf8(decode(text)?).ok()?;
    let is_readable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    decoded.chars().all(is_readable).then_some(decoded)
}

/// Whether a text of base64 says something that is no text, judged by its start.
pub(super) fn is_binary(text: &str) -> bool {
    const LOOKED_AT: usize = 96;
    let start = text.get(..LOOKED_AT).unwrap_or(text);
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0x80..);
    decode(start).is_some_and(|bytes| !bytes.iter().all(is_text))
}

fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length_is_decoded() {
        for (text, wanted) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("YWJjZA", "abcd")] {
            assert_eq!(readable(text).as_deref(), Some(wanted));
        }
        assert_eq!(decode("a"), None);
        assert_eq!(decode("a b="), None);
        assert_eq!(readable("AAAA"), None);
    }
}
