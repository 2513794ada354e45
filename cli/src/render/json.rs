//! JSON that is safe on a terminal: control characters are written as escapes, which mean the same.

use std::io;

use scrollback::model::json::ExactNumbers;
use serde::Serialize;
use serde::ser::{Error as _, SerializeSeq as _};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::terminal::clean;

/// Writes a value over many lines.
pub(crate) fn pretty(out: &mut dyn io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, ExactNumbers::new(Escaping(PrettyFormatter::new()))))
}

/// Writes a value in one line.
pub(crate) fn compact(out: &mut dyn io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, ExactNumbers::new(Escaping(CompactFormatter))))
}

/// A list whose elements are produced while they are written: it is never in memory as a whole.
pub(crate) struct Streamed<Elements>(pub(crate) Elements);

impl<Elements, Each, Element, Error> Serialize for Streamed<Elements>
where
    Elements: Fn() -> Each,
    Each: Iterator<Item = Result<Element, Error>>,
    Element: Serialize,
    Error: std::fmt::Display,
{
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for element in (self.0)() {
            seq.serialize_element(&element.map_err(S::Error::custom)?)?;
        }
        seq.end()
    }
}

/// A formatter that escapes control characters in strings.
struct Escaping<F>(F);

macro_rules! delegate {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, out: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$method(out $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let (mut written, mut at) = (0, plain_length(fragment.as_bytes()));
        while let Some(c) = fragment[at..].chars().next() {
            let next = at + c.len_utf8();
            if clean::is_active(c) {
                out.write_all(&fragment.as_bytes()[written..at])?;
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
                written = next;
            }
            at = next + plain_length(&fragment.as_bytes()[next..]);
        }
        out.write_all(&fragment.as_bytes()[written..])
    }

    delegate! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

/// The number of bytes at the start that are visible ASCII or blanks: most of any text. They are checked many at a time.
///
/// The serializer has escaped what is below a blank; every other character has a byte from 0x7f on.
fn plain_length(bytes: &[u8]) -> usize {
    const AT_ONCE: usize = 64;
    let is_plain = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all | byte.wrapping_add(1)) < 0x80;
    let whole = bytes.chunks_exact(AT_ONCE).take_while(|chunk| is_plain(chunk)).count() * AT_ONCE;
    let rest = bytes[whole..].iter().take(AT_ONCE);
    whole + rest.take_while(|byte| **byte < 0x7f).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_escaped_wherever_it_is_in_a_long_text() {
        for before in 0..200 {
            for (c, escaped) in
                [('\u{7f}', "\\u007f"), ('\u{202e}', "\\u202e"), ('é', "é"), ('\u{e0041}', "\\udb40\\udc41")]
            {
                let (before, after) = ("a".repeat(before), "~ ".repeat(100));
                let mut out = Vec::new();
                compact(&mut out, &format!("{before}{c}{after}{c}{c}")).unwrap();
                let json = String::from_utf8(out).unwrap();
                assert_eq!(json, format!("\"{before}{escaped}{after}{escaped}{escaped}\""));
            }
        }
    }

    #[test]
    fn control_characters_are_escaped_and_mean_the_same() {
        let text = "\u{9b}2J \u{202e}x\u{200b} \u{7f} é 日 \u{e0041}";
        let mut out = Vec::new();
        compact(&mut out, &text).unwrap();
        let json = String::from_utf8(out).unwrap();
        assert_eq!(json, "\"\\u009b2J \\u202ex\\u200b \\u007f é 日 \\udb40\\udc41\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
