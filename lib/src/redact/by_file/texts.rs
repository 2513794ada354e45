//! Texts into which an agent, a person or a search copied a file.

use super::edited::Edited;
use super::file_mask::FileMask;
use super::patches;

/// The text without the content of sensitive files, if it has some.
pub(super) fn masked(text: &str, mask: FileMask<'_>) -> Option<String> {
    let mut new = None;
    for step in [patches::masked, tags, found_lines] {
        new = step(new.as_deref().unwrap_or(text), mask).or(new);
    }
    new
}

/// `<file path=".env">…</file>`, as prompts have it.
fn tags(text: &str, mask: FileMask<'_>) -> Option<String> {
    const MAX_TAG_BYTES: usize = 4096;
    let (mut edited, mut from) = (Edited::new(text), 0);
    while let Some(start) = text[from..].find('<').map(|start| from + start) {
        from = start + 1;
        let tag = ["file", "document"].iter().find(|tag| text[from..].starts_with(**tag));
        let Some(tag) = tag else { continue };
        let mut start = text.as_bytes()[from..].iter().take(MAX_TAG_BYTES);
        let Some(end) = start.position(|byte| matches!(byte, b'>' | b'\n')) else { continue };
        let inside = from + end + 1;
        let is_ours = text[from..inside].split(['"', '\'']).skip(1).step_by(2).any(|it| mask.is_sensitive(it));
        if !is_ours || !text[..inside].ends_with('>') {
            continue;
        }
        let close = text[inside..].find(&format!("</{tag}")).map_or(text.len(), |end| inside + end);
        if let Some(masked) = mask.placeholder(text[inside..close].trim_matches('\n')) {
            let line_end = if text[inside..close].starts_with('\n') { "\n" } else { "" };
            edited.replace(inside..close, &[line_end, &masked, line_end].concat());
        }
        from = close;
    }
    edited.finish()
}

/// Lines that a search found in such a file: `.env:1:…`, or `.env-1-…` for those around them.
fn found_lines(text: &str, mask: FileMask<'_>) -> Option<String> {
    let (mut edited, mut start) = (Edited::new(text), 0);
    for line in text.split_inclusive('\n') {
        if let Some(at) = found_at(line, mask) {
            let content = line[at..].trim_end_matches('\n');
            if let Some(masked) = mask.placeholder(content) {
                edited.replace(start + at..start + at + content.len(), &masked);
            }
        }
        start += line.len();
    }
    edited.finish()
}

fn found_at(line: &str, mask: FileMask<'_>) -> Option<usize> {
    const MOST_SIGNS: usize = 16;
    line.match_indices([':', '-']).take(MOST_SIGNS).find_map(|(at, sign)| {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_found = digits > 0 && rest[digits..].starts_with(sign) && mask.is_sensitive(&line[..at]);
        (is_found && !line[..at].contains(' ')).then_some(at + 1 + digits + 1)
    })
}
