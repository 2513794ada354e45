//! JSON whose numbers stay the same numbers.
//!
//! A [`Value`] holds a number in 64 bits: `1e400` is an error, and thirty digits are rounded. [`parse`] reads each number that would
//! become another one as an object with one key, and [`to_string`], [`write()`] and [`ExactNumbers`] write such an object as the
//! number again. The key is random and drawn once per process, so no file can hold it.
//! serde_json's own feature for this, `arbitrary_precision`, turns every number into a map, in every crate of the program: that
//! breaks flattened and untagged types. See DESIGN.md.
//!
//! A program that calculates with numbers, or prints with serde_json, asks [`plain`] for ordinary ones.

mod reader;
mod string_end;
mod strings;

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use serde_json::{Number, Value};

pub(crate) use reader::{from_str, has_controls};
pub(crate) use string_end::{StringEnd, lenient_string_end};
pub use strings::parse_with;
pub(crate) use strings::{escape, unescaped};

/// The key of an object that stands for a number.
static NUMBER: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().hash_one(0);
    format!("number {:016x}{:016x}", random(), random())
});

/// A whole number of up to this many digits fits in 64 bits.
const SAFE_DIGITS: usize = 18;

/// The value of a JSON text; a number that a [`Value`] would round keeps its text.
///
/// ```
/// use scrollback::model::json;
///
/// let value = json::parse(r#"{"price": 0.10, "atoms": 1e400, "id": 12345678901234567890123}"#)?;
/// assert_eq!(json::to_string(&value), r#"{"price":0.1,"atoms":1e400,"id":12345678901234567890123}"#);
/// assert_eq!(json::plain(value)["id"], 1.2345678901234568e22);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn parse(text: &str) -> serde_json::Result<Value> {
    parse_with(&marked(text), |text| serde_json::from_str(text))
}

/// The value of a JSON text in bytes, as [`parse`] reads it; `None` if it is none.
pub(crate) fn parse_bytes(bytes: &[u8]) -> Option<Value> {
    parse(std::str::from_utf8(bytes).ok()?).ok()
}

/// The text with each number that a [`Value`] would change replaced by the object that stands for it.
pub fn marked(text: &str) -> Cow<'_, str> {
    let (bytes, mut out, mut copied, mut at) = (text.as_bytes(), String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| is_number_byte(**byte)).count();
                let number = &text[at..end];
                if changes(number) {
                    out += &text[copied..at];
                    out.extend(["{\"", NUMBER.as_str(), "\":\"", number, "\"}"]);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[copied..]) }
}

/// The text of a number that a [`Value`] would change.
pub fn number_text(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(NUMBER.as_str())?.as_str()
}

/// Whether a value is an object of the file, and no number.
pub fn is_object(value: &Value) -> bool {
    value.is_object() && number_text(value).is_none()
}

/// A number, rounded if it has to be.
pub fn as_f64(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| number_text(value)?.parse().ok())
}

/// The value with ordinary numbers: rounded to the nearest one, or the number's text if it is too large for any.
pub fn plain(mut value: Value) -> Value {
    let mut open = vec![&mut value];
    while let Some(value) = open.pop() {
        if let Some(text) = number_text(value) {
            let number = text.parse().ok().and_then(Number::from_f64);
            *value = number.map_or_else(|| Value::from(text), Value::Number);
            continue;
        }
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(object) => open.extend(object.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    value
}

/// A value as JSON in one line.
pub fn to_string(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let written = write(&mut out, value);
    written.ok().and_then(|()| String::from_utf8(out).ok()).unwrap_or_default()
}

/// A value as JSON over many lines.
pub fn to_string_pretty(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let formatter = ExactNumbers::new(PrettyFormatter::new());
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    written.ok().and_then(|()| String::from_utf8(out).ok()).unwrap_or_default()
}

/// Writes a value as JSON in one line.
pub fn write(out: impl io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, ExactNumbers::new(CompactFormatter)))
}

/// The place after a string's last quote.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    (lenient_string_end(bytes, start).at + 1).min(bytes.len())
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
}

/// Whether this is a number that a [`Value`] would turn into another one.
fn changes(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Written as a float, a whole number would be another type to most programs.
        let fits = digits.len() <= SAFE_DIGITS || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
        return !fits && is_number(text);
    }
    let is_same = |number: Number| {
        let written = number.to_string();
        written == text || Decimal::parse(&written).is_some_and(|written| Some(written) == Decimal::parse(text))
    };
    !text.parse().is_ok_and(is_same) && is_number(text)
}

/// A number by its value, however it is spelled.
#[derive(PartialEq)]
struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; none for zero.
    digits: String,
    /// The power of ten of the last digit.
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
        let significant = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
        let fraction = i64::try_from(fraction.len()).ok()?;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Decimal { is_negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>().ok()?;
        let exponent = exponent.checked_sub(fraction)?.checked_add(zeros)?;
        Some(Decimal { is_negative: text.starts_with('-'), digits: significant.to_owned(), exponent })
    }
}

/// Whether a text is a number in JSON's grammar.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// A formatter of JSON that writes the numbers of [`parse`] as they were read.
///
/// An object is known as a number by its first key, so the beginning of an object is held back until then.
pub struct ExactNumbers<F> {
    formatter: F,
    place: Place,
}

/// Where in an object the output is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Everything so far is written.
    Written,
    /// An object begins; nothing of it is written.
    Object,
    /// Its first key begins.
    FirstKey,
    /// The text of its first key begins.
    FirstKeyText,
    /// The object is a number.
    Number,
}

impl<F: Formatter> ExactNumbers<F> {
    /// Writes everything else as this formatter does.
    pub fn new(formatter: F) -> ExactNumbers<F> {
        ExactNumbers { formatter, place: Place::Written }
    }

    /// Writes what was held back.
    fn catch_up<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        let place = std::mem::replace(&mut self.place, Place::Written);
        if matches!(place, Place::Object | Place::FirstKey | Place::FirstKeyText) {
            self.formatter.begin_object(out)?;
        }
        if matches!(place, Place::FirstKey | Place::FirstKeyText) {
            self.formatter.begin_object_key(out, true)?;
        }
        if place == Place::FirstKeyText {
            self.formatter.begin_string(out)?;
        }
        Ok(())
    }
}

/// Methods that write what was held back, then their own.
macro_rules! delegate {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, out: &mut W $(, $arg: $type)*) -> io::Result<()> {
            if self.place != Place::Written {
                self.catch_up(out)?;
            }
            self.formatter.$method(out $(, $arg)*)
        }
    )*};
}

/// Methods that do nothing inside a number.
macro_rules! delegate_outside_numbers {
    ($($method:ident;)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
            match self.place {
                Place::Written => self.formatter.$method(out),
                Place::Number => Ok(()),
                Place::Object | Place::FirstKey | Place::FirstKeyText => {
                    self.catch_up(out)?;
                    self.formatter.$method(out)
                }
            }
        }
    )*};
}

impl<F: Formatter> Formatter for ExactNumbers<F> {
    fn begin_object<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.place = Place::Object;
        Ok(())
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if self.place == Place::Object {
            self.place = Place::FirstKey;
            return Ok(());
        }
        self.formatter.begin_object_key(out, first)
    }

    fn begin_string<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        match self.place {
            Place::FirstKey => self.place = Place::FirstKeyText,
            Place::Number => {}
            Place::Written | Place::Object | Place::FirstKeyText => return self.formatter.begin_string(out),
        }
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        match self.place {
            Place::Written => {}
            Place::Number => return self.formatter.write_number_str(out, fragment),
            Place::FirstKeyText if fragment == NUMBER.as_str() => {
                self.place = Place::Number;
                return Ok(());
            }
            Place::Object | Place::FirstKey | Place::FirstKeyText => self.catch_up(out)?,
        }
        self.formatter.write_string_fragment(out, fragment)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.place == Place::Number {
            self.place = Place::Written;
            return Ok(());
        }
        self.catch_up(out)?;
        self.formatter.end_object(out)
    }

    delegate_outside_numbers! {
        end_string;
        end_object_key;
        begin_object_value;
        end_object_value;
    }

    delegate! {
        write_null();
        write_bool(value: bool);
        write_i8(value: i8);
        write_i16(value: i16);
        write_i32(value: i32);
        write_i64(value: i64);
        write_i128(value: i128);
        write_u8(value: u8);
        write_u16(value: u16);
        write_u32(value: u32);
        write_u64(value: u64);
        write_u128(value: u128);
        write_f32(value: f32);
        write_f64(value: f64);
        write_number_str(value: &str);
        write_char_escape(escape: serde_json::ser::CharEscape);
        write_byte_array(value: &[u8]);
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        write_raw_fragment(fragment: &str);
    }
}

#[cfg(test)]
mod tests;
