//! JSON for a stream that may be a terminal: what could act there is written as an escape, which is the same JSON.

use std::io;

use serde::Serialize;
use serde::ser::{Error as _, SerializeSeq as _};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::terminal::clean;

/// Writes a value over many lines.
pub(crate) fn pretty(out: &mut dyn io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Inert(PrettyFormatter::new())))
}

/// Writes a value in one line.
pub(crate) fn compact(out: &mut dyn io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Inert(CompactFormatter)))
}

/// A list whose elements are made one by one while they are written, so that it is never in memory as a whole.
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

/// A formatter whose strings cannot act on a terminal.
struct Inert<F>(F);

macro_rules! as_before {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, out: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$method(out $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Inert<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| clean::acts(*c)) {
            out.write_all(&fragment.as_bytes()[written..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            written = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[written..])
    }

    as_before! {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_act_is_escaped_and_means_the_same() {
        let text = "\u{9b}2J \u{202e}x\u{200b} \u{7f} é 日 \u{e0041}";
        let mut out = Vec::new();
        compact(&mut out, &text).unwrap();
        let json = String::from_utf8(out).unwrap();
        assert_eq!(json, "\"\\u009b2J \\u202ex\\u200b \\u007f é 日 \\udb40\\udc41\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
