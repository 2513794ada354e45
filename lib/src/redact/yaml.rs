//! Secrets in YAML under a name of several: the lines after `secrets:` that are further in.

use std::ops::Range;

use super::names::{self, Promise};
use super::values::{self, Strength, Written};

/// How far below the name its values are looked for. A stream keeps more than this of what it let go.
const MAX_BLOCK_BYTES: usize = 768;

/// The values of the block that a name begins, if it does.
pub(super) fn below(text: &str, name: &Range<usize>) -> Vec<(Promise, Range<usize>)> {
    let starts_block = || {
        let rest = text.as_bytes()[name.end..].strip_prefix(b":")?;
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\r')).count();
        (rest.get(spaces) == Some(&b'\n')).then_some(name.end + 1 + spaces + 1)
    };
    let Some(start) = starts_block() else { return Vec::new() };
    let line_start = text[..name.start].rfind('\n').map_or(0, |before| before + 1);
    // Only white space, or the dash of a list, is before it.
    let indent = name.start - line_start;
    if !text[line_start..name.start].bytes().all(|byte| matches!(byte, b' ' | b'-')) {
        return Vec::new();
    }
    let Some(promise) = names::promise(&text[name.clone()]) else { return Vec::new() };
    let strength = if promise.strength == Strength::Weak { Strength::Weak } else { Strength::Key };
    let (mut found, mut at) = (Vec::new(), start);
    let end = text.floor_char_boundary(text.len().min(start + MAX_BLOCK_BYTES));
    for line in text[start..end].split_inclusive('\n') {
        let inner = line.trim_start_matches(' ');
        if line.len() - inner.len() <= indent {
            break;
        }
        if let Some(colon) = line.find(": ") {
            let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
            let value = line[colon + 2..].trim_start_matches(is_around);
            let start = at + line.len() - value.len();
            let value = value.trim_end_matches(is_around);
            if values::is_plausible(value, strength, Written::Quoted) {
                found.push((promise, start..start + value.len()));
            }
        }
        at += line.len();
    }
    found
}
