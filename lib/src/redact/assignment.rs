//! Secrets that only their name gives away: `NAME=value`, `"name": "value"`, `--name value`, "the password is …".

use std::ops::Range;

use super::names::{self, MAX_NAME_BYTES, Promise};
use super::values::{self, MAX_VALUE_BYTES, Strength, Written};

/// A value that its name makes a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) promise: Promise,
    pub(super) value: Range<usize>,
    /// With its quotes, where seed 002's expressions take them too.
    pub(super) with_quotes: Range<usize>,
}

/// A quoted value with white space in it ends here: longer ones are texts. A stream holds so much back.
pub(super) const MAX_QUOTED_BYTES: usize = 512;

/// How far after a name "is" may stand: "the password for the staging database is …".
const MAX_GAP_BYTES: usize = 48;

/// Spaces between a name, its separator and its value: columns of a table or of an aligned file.
const MAX_SPACES: usize = 32;

/// The secret that is assigned to the name around `hit`. Returns also where the name ends.
pub(super) fn at(text: &str, hit: Range<usize>) -> (usize, Option<Assigned>) {
    let name = name_around(text.as_bytes(), &hit);
    (name.end, assigned(text, name))
}

/// Where an open quoted value starts, if more text could still belong to it.
pub(super) fn open_quote(text: &str, hit: Range<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let name = name_around(bytes, &hit);
    let (at, _) = separator(text, &name)?;
    let quote = Quote::at(bytes, at)?;
    let inside = at + quote.length;
    let is_open = quote.end(bytes, inside).is_none()
        && !bytes[inside..].contains(&b'\n')
        && bytes.len() - inside < MAX_QUOTED_BYTES;
    is_open.then_some(at)
}

fn assigned(text: &str, name: Range<usize>) -> Option<Assigned> {
    let bytes = text.as_bytes();
    let (at, form) = separator(text, &name)?;
    let promise = names::promise(&text[name.clone()])?;
    let (at, form) = after_type(text, at, form, promise.strength);
    let before_name = name.start.checked_sub(1).map(|before| bytes[before]);
    if let Some(quote) = Quote::at(bytes, at) {
        let inside = at + quote.length;
        if let Some(end) = quote.end(bytes, inside) {
            let value = inside..end;
            let with_quotes = if form == Form::Env { at..end + quote.closing_length() } else { value.clone() };
            let strength = if form == Form::Cell { Strength::Weak } else { promise.strength };
            let inner = text.get(value.clone())?;
            let is_env = form == Form::Env && !inner.contains(char::is_whitespace);
            let fits = values::is_plausible(inner, strength, if is_env { Written::Env } else { Written::Quoted });
            return fits.then_some(Assigned { promise, value, with_quotes });
        }
        return bare(text, inside, form, before_name, promise, at);
    }
    bare(text, at, form, before_name, promise, at)
}

/// A value without quotes, or whose closing quote is missing.
fn bare(
    text: &str,
    at: usize,
    form: Form,
    before_name: Option<u8>,
    promise: Promise,
    outer: usize,
) -> Option<Assigned> {
    let in_query = matches!(before_name, Some(b'?' | b'&')) && form == Form::Env;
    let in_list = before_name == Some(b';');
    let end = bare_end(
        text,
        at,
        form,
        if in_query {
            b"&#"
        } else if in_list {
            b";"
        } else {
            b""
        },
    );
    let value = at..end;
    let (written, strength) = match form {
        Form::Env => (Written::Env, promise.strength),
        Form::Prose => (Written::Prose, promise.strength),
        Form::Flag | Form::Spaced | Form::Tag => (Written::Bare, promise.strength),
        Form::Cell => (Written::Prose, promise.strength),
        Form::Pair => (Written::Bare, Strength::Weak),
    };
    // Only what is quoted can be told from the variables beside it.
    if form == Form::Pair {
        return None;
    }
    let written =
        if form == Form::Spaced && promise.strength != Strength::Strong && !in_query { Written::Bare } else { written };
    let fits = values::is_plausible(text.get(value.clone())?, strength, written);
    fits.then(|| Assigned { promise, with_quotes: if form == Form::Env { outer..end } else { value.clone() }, value })
}

/// What is between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `NAME=value`
    Env,
    /// `name = value`, `name: value`, `"name" => value`
    Spaced,
    /// `<name>value</name>`
    Tag,
    /// `--name value`
    Flag,
    /// `| name | value |`
    Cell,
    /// `("name", "value")`
    Pair,
    /// "name is value"
    Prose,
}

/// The name around a keyword.
fn name_around(bytes: &[u8], hit: &Range<usize>) -> Range<usize> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let room = bytes[..hit.start].len().min(MAX_NAME_BYTES);
    let mut start =
        hit.start - bytes[hit.start - room..hit.start].iter().rev().take_while(|byte| is_name(byte)).count();
    // The `n` of an escaped line break is no letter of the name.
    if start > 0 && bytes[start - 1] == b'\\' && start < hit.start && matches!(bytes[start], b'n' | b'r' | b't') {
        start += 1;
    }
    // "api key": the word before says which.
    let is_key =
        start == hit.start && bytes[hit.clone()].eq_ignore_ascii_case(b"key") && start > 1 && bytes[start - 1] == b' ';
    if is_key {
        start -= 1 + bytes[..start - 1]
            .iter()
            .rev()
            .take(MAX_SPACES)
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
    }
    let rest = &bytes[hit.end..];
    let end = hit.end + rest.iter().take(MAX_NAME_BYTES).take_while(|byte| is_name(byte)).count();
    let trailing = bytes[hit.end..end].iter().rev().take_while(|byte| matches!(byte, b'-' | b'.')).count();
    start..end - trailing
}

/// Where the value starts, and what is before it.
fn separator(text: &str, name: &Range<usize>) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    let mut at = name.end;
    let mut closes_quote = false;
    if let Some(quote) = Quote::at(bytes, at) {
        at += quote.length;
        closes_quote = true;
    }
    while matches!(bytes.get(at), Some(b']' | b')' | b'*')) {
        at += 1;
    }
    if let Some(quote) = Quote::at(bytes, at).filter(|_| !closes_quote) {
        at += quote.length;
    }
    let tight = at;
    at = skip_spaces(bytes, at);
    let spaced = at > tight;
    let rest = bytes.get(at..)?;
    let is_flag = name.start >= 2 && bytes[name.start - 1] == b'-' || text[name.clone()].starts_with('-');
    let (length, form) = match rest {
        [b':', b':', ..] => return None,
        [b'=', b'=', b'=', ..] => (3, Form::Spaced),
        [b'=', b'>', ..] | [b':', b'=', ..] | [b'=', b'=', ..] | [b'-', b'>', ..] => (2, Form::Spaced),
        [b'=', next, ..] if !spaced && !closes_quote && !next.is_ascii_whitespace() => (1, Form::Env),
        [b'=' | b':', ..] => (1, Form::Spaced),
        [b'>', ..] if !spaced => (1, Form::Tag),
        [b'|', ..] => (1, Form::Cell),
        [b',', ..] if closes_quote => (1, Form::Pair),
        _ if spaced && is_flag => (0, Form::Flag),
        _ => return prose(text, name.end),
    };
    let mut at = skip_spaces(bytes, at + length);
    // "password: is …", and the markers of bold text.
    while matches!(bytes.get(at), Some(b'*')) && form == Form::Spaced {
        at += 1;
    }
    at = skip_spaces(bytes, at);
    if form == Form::Spaced && matches!(bytes.get(at..), Some([b'|' | b'>', ..])) {
        // A block of YAML: the value is on the next line.
        at = skip_spaces(bytes, at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+'))));
    }
    if form == Form::Spaced && matches!(bytes.get(at), Some(b'\n' | b'\r')) {
        let next = at + bytes[at..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        at = if next - at <= 2 { skip_spaces(bytes, next) } else { return None };
    }
    // Prefixes of strings in Python and C.
    if matches!(bytes.get(at..), Some([b'b' | b'r' | b'u' | b'L' | b'@', b'"' | b'\'', ..])) {
        at += 1;
    }
    (at < bytes.len()).then_some((at, form))
}

/// "is", "was" or ":" some words after the name.
fn prose(text: &str, from: usize) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(from), Some(b' ' | b'\'')) {
        return None;
    }
    // "with password hunter2": nothing but the name says it, so the value follows at once.
    if let Some(found) = with(text, from) {
        return Some(found);
    }
    let limit = bytes.len().min(from + MAX_GAP_BYTES);
    let mut at = from;
    let mut words = 0;
    while at < limit {
        let word_at = skip_spaces(bytes, at);
        let length = bytes[word_at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let word = text.get(word_at..word_at + length)?;
        let is_verb = ["is", "was", "is:", "are", "=", "->", "→", "equals", "'s"]
            .iter()
            .any(|verb| word.eq_ignore_ascii_case(verb));
        let is_plain = !word.contains(['[', ']', '{', '}', '"', '=', '(', ')', '<', '>']);
        let ends_clause = word.ends_with(['.', '!', '?', ';', ',']) || length == 0;
        let then = word_at + length;
        let is_colon = word.ends_with(':') && length > 1 && words > 0 && is_plain;
        if is_verb || is_colon {
            let mut value = skip_spaces(bytes, then);
            for filler in ["now ", "currently ", "set to ", "still ", "just ", "simply "] {
                if bytes[value..].len() > filler.len()
                    && bytes[value..value + filler.len()].eq_ignore_ascii_case(filler.as_bytes())
                {
                    value += filler.len();
                }
            }
            return (value < bytes.len() && value > then).then_some((value, Form::Prose));
        }
        if ends_clause || !is_plain || words > 6 || bytes.get(then) == Some(&b'\n') {
            break;
        }
        words += 1;
        at = then;
    }
    None
}

/// "with password hunter2", "using the token …".
fn with(text: &str, from: usize) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    let line = &bytes[from.saturating_sub(2 * MAX_GAP_BYTES)..from];
    let mut words = line.rsplit(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).skip(1);
    let leads = words.next().is_some_and(|word| {
        ["with", "and", "using", "use", "the", "my", "/"]
            .iter()
            .any(|lead| word.eq_ignore_ascii_case(lead.as_bytes()))
    });
    let at = skip_spaces(bytes, from);
    let length = bytes.get(at..)?.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    let value = text.get(at..at + length)?;
    // Without a verb, only what no sentence has.
    let odd = value.trim_end_matches(['.', ',']).len() >= 6
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let quoted = value.starts_with(['`', '"', '\'']);
    (leads && at > from && (odd || quoted)).then_some((at, Form::Prose))
}

/// `password: str = "…"`: a type between the name and the value.
fn after_type(text: &str, at: usize, form: Form, strength: Strength) -> (usize, Form) {
    let bytes = text.as_bytes();
    let is_type = |byte: &u8| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b'&' | b'\'' | b'?' | b'.' | b'[' | b']' | b'<' | b'>' | b'|' | b':')
    };
    if form != Form::Spaced || strength == Strength::Weak && Quote::at(bytes, at).is_some() {
        return (at, form);
    }
    if bytes[at..].starts_with(b"[REDACTED") {
        return (at, form);
    }
    let end = at + bytes[at..].iter().take(MAX_SPACES).take_while(|byte| is_type(byte)).count();
    let equals = skip_spaces(bytes, end);
    match bytes.get(equals..) {
        Some([b'=', next, ..]) if end > at && *next != b'=' => (skip_spaces(bytes, equals + 1), Form::Spaced),
        _ => (at, form),
    }
}

/// Where a value without quotes ends.
fn bare_end(text: &str, at: usize, form: Form, stops_at: &[u8]) -> usize {
    let bytes = text.as_bytes();
    let limit = bytes.len().min(at + MAX_VALUE_BYTES + 1);
    let mut end = at;
    while end < limit {
        let stops = match bytes[end] {
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => true,
            b'"' | b'`' => true,
            b'\'' => form != Form::Prose || end + 1 >= limit || !bytes[end + 1].is_ascii_alphanumeric(),
            b'<' => form == Form::Tag || bytes.get(end + 1) == Some(&b'/'),
            b'|' => form == Form::Cell,
            byte if stops_at.contains(&byte) => true,
            b',' | b';' => form == Form::Spaced,
            b'\\' => matches!(bytes.get(end + 1), Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\')),
            0xe2 | 0xe3 | 0xef => is_foreign_stop(text, end),
            _ => false,
        };
        if stops {
            break;
        }
        end += 1;
    }
    let value = &bytes[at..end];
    let closing = |byte: &u8| {
        matches!(byte, b',' | b';' | b')' | b']' | b'}' | b':') || (*byte == b'.' || *byte == b'?') && form != Form::Env
    };
    let balanced = value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{'));
    let trailing = value
        .iter()
        .rev()
        .take_while(|byte| closing(byte) && !(balanced && matches!(byte, b')' | b']' | b'}')))
        .count();
    text.floor_char_boundary(end - trailing).max(at)
}

/// General, ideographic and full-width punctuation: “”, …, 。, ，.
pub(super) fn is_foreign_stop(text: &str, at: usize) -> bool {
    let stop = |c: char| matches!(c, '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}');
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(stop)
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..]
        .iter()
        .take(MAX_SPACES)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// A quote, with the backslashes before it in JSON within JSON.
#[derive(Clone, Copy)]
struct Quote {
    sign: u8,
    /// With its backslashes.
    length: usize,
}

impl Quote {
    fn at(bytes: &[u8], at: usize) -> Option<Quote> {
        let slashes = bytes.get(at..)?.iter().take(8).take_while(|byte| **byte == b'\\').count();
        let sign = *bytes.get(at + slashes)?;
        matches!(sign, b'"' | b'\'' | b'`').then_some(Quote { sign, length: slashes + 1 })
    }

    fn closing_length(self) -> usize {
        self.length
    }

    /// Where the value ends: at the same quote with as many backslashes, on the same line.
    fn end(self, bytes: &[u8], inside: usize) -> Option<usize> {
        let limit = bytes.len().min(inside + MAX_VALUE_BYTES);
        let mut has_space = false;
        let mut at = inside;
        while at < limit {
            match bytes[at] {
                b'\n' | b'\r' => return None,
                b'\\' => {
                    let slashes = bytes[at..limit].iter().take_while(|byte| **byte == b'\\').count();
                    let closes = bytes.get(at + slashes) == Some(&self.sign);
                    if closes && slashes + 1 == self.length {
                        return Some(at);
                    }
                    at += slashes + usize::from(closes || slashes % 2 == 1);
                    continue;
                }
                byte if byte == self.sign => return (self.length == 1).then_some(at),
                b' ' | b'\t' => has_space = true,
                _ => {}
            }
            if has_space && at - inside >= MAX_QUOTED_BYTES {
                return None;
            }
            at += 1;
        }
        None
    }
}
