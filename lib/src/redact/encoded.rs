//! Secrets behind base64: private keys and logins that somebody encoded once more, and the values of a Kubernetes Secret.

use std::ops::Range;

use super::{base64, blocks, values};

/// More lines are no Secret.
const MAX_LINES: usize = 64;

/// Nothing is indented further.
const MAX_INDENT_BYTES: usize = 64;

/// A longer run of base64 is a file.
const MAX_RUN_BYTES: usize = 64 * 1024;

/// A name, a value and what is between them.
const MAX_ENTRY_BYTES: usize = 5 * 1024;

/// What is in the values of `data:` or `stringData:`.
pub(super) struct Values {
    pub(super) spans: Vec<Range<usize>>,
    /// More text could belong to it.
    pub(super) is_open: bool,
}

/// The run of base64 around a keyword, and what it says.
pub(super) fn run_at(text: &str, start: usize) -> (Range<usize>, Option<String>) {
    let rest = &text.as_bytes()[start..];
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let length = rest.iter().take(MAX_RUN_BYTES).take_while(|byte| is_base64(byte)).count();
    let whole = length - length % 4;
    let says = base64::readable(&text[start..start + length]).or_else(|| base64::readable(&text[start..start + whole]));
    (start..start + length, says)
}

/// The secret values of the lines below `data:`.
pub(super) fn values(text: &str, hit: &Range<usize>) -> Values {
    let mut found = Values { spans: Vec::new(), is_open: false };
    let before = &text.as_bytes()[hit.start.saturating_sub(MAX_INDENT_BYTES)..hit.start];
    let is_plain = before.ends_with(b"string");
    let before = before.strip_suffix(b"string").unwrap_or(before);
    let indent = before.iter().rev().take_while(|byte| **byte == b' ').count();
    let outer = &before[..before.len() - indent];
    if !outer.is_empty() && !outer.ends_with(b"\n") && !outer.ends_with(b"\\n") {
        return found;
    }
    let rest = text[hit.end..].trim_start_matches([' ', '\r']);
    let Some(rest) = rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\\n")) else { return found };
    let mut at = text.len() - rest.len();
    for _ in 0..MAX_LINES {
        let (line, next) = blocks::line_at(text, at);
        if !line.trim().is_empty() && indent_of(line) <= indent {
            return found;
        }
        if let Some((key, value)) = line.split_once(": ").filter(|(key, _)| !key.trim().contains(' ')) {
            let value = value.trim().trim_matches(['"', '\'', '\\']);
            let is_secret = if is_plain { !values::is_placeholder(value) } else { is_encoded(value) };
            if is_secret && !key.trim_start().starts_with('#') {
                let start = at + line.rfind(value).unwrap_or_default();
                found.spans.push(start..start + value.len());
            }
        }
        if next == text.len() {
            found.is_open = true;
            return found;
        }
        at = next;
    }
    found
}

/// The secret values of the object after `"data":`, which may be JSON within JSON.
pub(super) fn json_values(text: &str, start: usize) -> Values {
    let mut found = Values { spans: Vec::new(), is_open: false };
    let spaces = text[start..].len() - text[start..].trim_start_matches([' ', '\n', '\r', '\t']).len();
    if !text[start + spaces..].starts_with('{') {
        return found;
    }
    let mut at = start + spaces + 1;
    for _ in 0..MAX_LINES {
        let Some((value, end)) = entry_at(text.as_bytes(), at) else { break };
        if is_encoded(&text[value.clone()]) {
            found.spans.push(value);
        }
        at = end;
    }
    found
}

/// The value of `"name": "value",` and where that ends, with as many backslashes before the quotes as there are.
fn entry_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let limit = bytes.len().min(at + MAX_ENTRY_BYTES);
    let count =
        |from: usize, is_part: fn(&u8) -> bool| bytes[from..limit].iter().take_while(|byte| is_part(byte)).count();
    let after_spaces = |mut at: usize| {
        loop {
            at += count(at, u8::is_ascii_whitespace);
            match bytes[at..limit].starts_with(b"\\n") {
                true => at += 2,
                false => return at,
            }
        }
    };
    let string = |at: usize| {
        let start = at + count(at, |byte| *byte == b'\\');
        let start = (bytes.get(start) == Some(&b'"') && start < limit).then_some(start + 1)?;
        let end = start + count(start, |byte| !matches!(byte, b'"' | b'\\' | b'\n'));
        let quote = end + count(end, |byte| *byte == b'\\');
        (bytes.get(quote) == Some(&b'"') && quote < limit).then_some((start..end, quote + 1))
    };
    let (_, name_end) = string(after_spaces(at))?;
    let colon = after_spaces(name_end);
    let (value, end) = string(after_spaces((bytes.get(colon) == Some(&b':')).then_some(colon + 1)?.min(limit)))?;
    let end = after_spaces(end);
    Some((value, end + usize::from(bytes[end..limit].first() == Some(&b','))))
}

/// Whether a value of a Secret is base64 that people can read, a key or a login.
pub(super) fn is_encoded(value: &str) -> bool {
    value.len() >= 8 && value.len().is_multiple_of(4) && base64::readable(value).is_some_and(|says| says.len() >= 4)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
