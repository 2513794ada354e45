//! Texts into which an agent, a person or a search copied a file.

use std::ops::Range;

use memchr::memmem;

use super::calls::is_command_on_file;
use super::edited::Edited;
use super::file_mask::FileMask;
use super::patches;

/// How Claude Code tells the model what is in a mentioned file, after it has told which file that is.
const READ_RESULT: (&str, &str) = ("Result of calling the Read tool:", "</system-reminder>");

/// Around a `!` command of Codex, with what it printed.
const SHELL_COMMAND: (&str, &str) = ("<user_shell_command>", "</user_shell_command>");

/// Around a file in a prompt.
const TAGS: [&str; 2] = ["<file", "<document"];

/// The text without the content of sensitive files, if it has some.
pub(super) fn masked(text: &str, mask: FileMask<'_>) -> Option<String> {
    // Most texts that name such a file have nothing of it: only the lines with its name are looked at first.
    let lines = mask.lines_naming(text);
    let is_any = |is: &dyn Fn(&str) -> bool| lines.iter().any(|line| is(line));
    let steps: [(Step, bool); 4] = [
        (patches::masked, is_any(&|line| patches::paths(line).any(|path| mask.is_sensitive(path)))),
        (tags, is_any(&|line| TAGS.iter().any(|tag| line.contains(tag)))),
        (shell_commands, memmem::find(text.as_bytes(), SHELL_COMMAND.0.as_bytes()).is_some()),
        (found_lines, is_any(&|line| found_at(line, mask).is_some())),
    ];
    let mut new = None;
    for (step, _) in steps.into_iter().filter(|(_, is_needed)| *is_needed) {
        new = step(new.as_deref().unwrap_or(text), mask).or(new);
    }
    new
}

type Step = fn(&str, FileMask<'_>) -> Option<String>;

/// Whether what a text announces comes from a sensitive file: a `!` command of the user, or a file that Claude Code reads for a
/// mention. `None` if it announces nothing.
pub(super) fn announces_file(text: &str, mask: FileMask<'_>) -> Option<bool> {
    if let Some(command) = between(text, "<bash-input>", "</bash-input>", 0) {
        return Some(is_command_on_file(&text[command], mask));
    }
    let is_read = text.contains("Called the Read tool with the following input: ");
    is_read.then(|| patches::paths(text).any(|path| mask.is_sensitive(path)))
}

/// The text without what was announced.
pub(super) fn without_announced(text: &str, mask: FileMask<'_>) -> Option<String> {
    let mut edited = Edited::new(text);
    let mut places: Vec<Range<usize>> =
        [("<bash-stdout>", "</bash-stdout>"), ("<bash-stderr>", "</bash-stderr>"), READ_RESULT]
            .into_iter()
            .filter_map(|(start, end)| between(text, start, end, 0))
            .collect();
    places.sort_by_key(|place| place.start);
    for place in places {
        if let Some(new) = mask.placeholder(&text[place.clone()]) {
            edited.replace(place, &new);
        }
    }
    edited.finish()
}

/// See [`SHELL_COMMAND`].
fn shell_commands(text: &str, mask: FileMask<'_>) -> Option<String> {
    let (mut edited, mut from) = (Edited::new(text), 0);
    while let Some(run) = between(text, SHELL_COMMAND.0, SHELL_COMMAND.1, from) {
        from = run.end;
        let Some(command) = between(&text[..run.end], "<command>", "</command>", run.start) else { continue };
        let Some(result) = between(&text[..run.end], "<result>", "</result>", command.end) else { continue };
        // The exit code and the duration before it stay.
        let output = between(&text[..result.end], "Output:\n", "</result>", result.start).unwrap_or(result);
        let printed = text[output.clone()].trim_matches('\n');
        if is_command_on_file(&text[command], mask)
            && let Some(new) = mask.placeholder(printed)
        {
            edited.replace(output, &format!("{new}\n"));
        }
    }
    edited.finish()
}

/// What is between a start and an end, or the end of the text.
fn between(text: &str, start: &str, end: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text[from..].find(start)? + start.len();
    Some(start..text[start..].find(end).map_or(text.len(), |end| start + end))
}

/// `<file path=".env">…</file>`, as prompts have it.
fn tags(text: &str, mask: FileMask<'_>) -> Option<String> {
    const MAX_TAG_BYTES: usize = 4096;
    let (mut edited, mut from) = (Edited::new(text), 0);
    while let Some(start) = text[from..].find('<').map(|start| from + start) {
        let tag = TAGS.iter().find(|tag| text[start..].starts_with(**tag));
        from = start + 1;
        let Some(tag) = tag else { continue };
        let mut start = text.as_bytes()[from..].iter().take(MAX_TAG_BYTES);
        let Some(end) = start.position(|byte| matches!(byte, b'>' | b'\n')) else { continue };
        let inside = from + end + 1;
        let is_ours = text[from..inside].split(['"', '\'']).skip(1).step_by(2).any(|it| mask.is_sensitive(it));
        if !is_ours || !text[..inside].ends_with('>') {
            continue;
        }
        let close = text[inside..].find(&format!("</{}", &tag[1..])).map_or(text.len(), |end| inside + end);
        if let Some(masked) = mask.placeholder(text[inside..close].trim_matches('\n')) {
            let line_end = if text[inside..close].starts_with('\n') { "\n" } else { "" };
            edited.replace(inside..close, &[line_end, &masked, line_end].concat());
        }
        from = close;
    }
    edited.finish()
}

/// Lines that a search found in such a file: `.env:1:…`, `.env:…` without numbers, or `.env-1-…` for those around them.
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

/// `NAME=value`, as most lines of such files are; `.env:/app/.env` mounts one.
fn is_assignment(line: &str) -> bool {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let name = line.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    name > 0 && line[name..].starts_with('=')
}

fn found_at(line: &str, mask: FileMask<'_>) -> Option<usize> {
    const MOST_SIGNS: usize = 16;
    line.match_indices([':', '-']).take(MOST_SIGNS).find_map(|(at, sign)| {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = if digits > 0 && rest[digits..].starts_with(sign) { Some(digits + 1) } else { None };
        let is_unnumbered = || sign == ":" && (is_assignment(rest) || rest.starts_with("-----"));
        let length = number.or_else(|| is_unnumbered().then_some(0))?;
        (!line[..at].contains(' ') && mask.is_sensitive(&line[..at])).then_some(at + 1 + length)
    })
}
