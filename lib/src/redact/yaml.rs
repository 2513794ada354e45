//! Secrets in YAML under a name of several: the lines after `secrets:` that are further in.

use std::ops::Range;

use super::names::{self, Promise};
use super::values::{self, Written};

/// How many lines of such a block are looked at, and how long one may be.
const MAX_LINES: usize = 16;
const MAX_LINE_BYTES: usize = 256;

/// The values of the block that a name begins, if it does.
pub(super) fn below(text: &str, name: &Range<usize>) -> Vec<(Promise, Range<usize>)> {
    let Some((indent, mut at)) = block_at(text, name) else { return Vec::new() };
    let Some(promise) = names::promise(&text[name.clone()]).filter(|promise| promise.of_several) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for line in text[at..].split_inclusive('\n').take(MAX_LINES) {
        let inner = line.trim_start_matches(' ');
        let is_blank = inner.trim().is_empty() || inner.starts_with('#');
        if line.len() > MAX_LINE_BYTES || !is_blank && line.len() - inner.len() <= indent {
            break;
        }
        if !is_blank
            && let Some(value) = value_in(line)
            && values::is_plausible(&line[value.clone()], promise.strength, Written::Quoted)
        {
            found.push((promise, at + value.start..at + value.end));
        }
        at += line.len();
    }
    found
}

/// How far in the line of a name is, and where the lines after it start, if it begins a block.
fn block_at(text: &str, name: &Range<usize>) -> Option<(usize, usize)> {
    let rest = text.as_bytes()[name.end..].strip_prefix(b":")?;
    let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\r')).count();
    let starts_block = rest.get(spaces) == Some(&b'\n');
    let before = text[..name.start].bytes().rev().take(MAX_LINE_BYTES).take_while(|byte| *byte != b'\n');
    let indent = before.clone().count();
    // Only white space, or the dash of a list, is before it.
    let is_alone = before.into_iter().all(|byte| matches!(byte, b' ' | b'-'));
    (starts_block && is_alone).then_some((indent, name.end + 1 + spaces + 1))
}

/// The value of `key: value` or `- value`, without quotes and the comment after it.
fn value_in(line: &str) -> Option<Range<usize>> {
    let (key, start) = match line.find(": ") {
        Some(colon) => (line[..colon].trim_matches([' ', '-', '"', '\'']), colon + 2),
        None => ("", line.find("- ")? + 2),
    };
    if !key.is_empty() && names::names_no_secret(key) {
        return None;
    }
    let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
    let end = line[start..].find(" #").map_or(line.len(), |comment| start + comment);
    let value = line[start..end].trim_start_matches(is_around);
    let start = end - value.len();
    Some(start..start + value.trim_end_matches(is_around).len())
}
