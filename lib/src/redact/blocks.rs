//! Private keys in lines of base64: PEM, OpenSSH, SSH2, PGP and PuTTY, whole or cut off at either end, with real or escaped line
//! breaks, or with other signs between the lines.

use std::ops::Range;

/// Where a key begins, or ends.
pub(super) const KEYWORDS: &[&str] =
    &["-----BEGIN", "---- BEGIN", "-----END", "---- END", "Private-Lines:", "b3BlbnNzaC1rZXktdjE", "MII"];

/// What is around the labels of a key: how its first and its last line start, and how both end. The second is that of SSH2.
const FRAMES: [(&str, &str, &str); 2] = [("-----BEGIN", "-----END", "-----"), ("---- BEGIN", "---- END", "----")];

/// Between the lines of a key that was put into one line: in HTML, in an address, in a table.
const LINE_ENDS: [&str; 8] = ["<br>", "<br/>", "<br />", "%0A", "%0a", "%0D", "%0d", "|"];

/// A larger block is no key: RSA with 16,384 bits needs 13 KB, a ring of PGP keys more. A stream holds an open block back up to here.
pub(super) const MAX_BLOCK_BYTES: usize = 256 * 1024;

/// `-----BEGIN … PRIVATE KEY BLOCK-----`.
const MAX_LABEL_BYTES: usize = 64;

/// Fewer characters of base64 are a mention of a key.
const MIN_BODY_BYTES: usize = 16;

/// `Proc-Type`, `DEK-Info`, `Version`, `Comment`.
const MAX_HEADERS: usize = 8;

/// What a log or a diff writes before each line is no longer than this.
const MAX_PREFIX_BYTES: usize = 128;

/// A block of a private key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) span: Range<usize>,
    /// More text could belong to it.
    pub(super) is_open: bool,
    /// There is so much of it that it is a key.
    pub(super) is_key: bool,
}

/// Whether a text can be a line of a key.
pub(super) fn is_body_line(text: &str) -> bool {
    let line = text.trim();
    !line.is_empty() && line.bytes().all(is_base64)
}

/// A key without its line breaks, real or escaped, and other white space.
pub(super) fn in_one_line(key: &str) -> String {
    key.replace("\\r", "").replace("\\n", "").split_whitespace().collect()
}

/// Where the first lines of keys are in a text.
pub(super) fn begins(text: &str) -> impl Iterator<Item = usize> {
    FRAMES.iter().flat_map(|(begin, _, _)| text.match_indices(begin)).map(|(at, _)| at)
}

/// Whether a text has the last line of a key, and the first one is not in it.
pub(crate) fn has_end_alone(text: &str) -> bool {
    let ends = FRAMES.iter().flat_map(|(_, end, _)| text.match_indices(end)).map(|(at, _)| at);
    let is_begun = |end: usize| begins(text).filter_map(|start| at(text, start)).any(|block| block.span.contains(&end));
    ends.into_iter().any(|end| at(text, end).is_some() && !is_begun(end))
}

/// Whether a keyword is the beginning of a key's last line.
pub(super) fn is_end(keyword: &str) -> bool {
    FRAMES.iter().any(|(_, end, _)| *end == keyword)
}

/// The private key that begins at a keyword, or ends there without a beginning.
pub(super) fn at(text: &str, start: usize) -> Option<Block> {
    if let Some((_, end, dashes)) = FRAMES.iter().find(|(_, end, _)| text[start..].starts_with(end)) {
        return tail(text, start, start + end.len(), dashes);
    }
    let limit = text.floor_char_boundary(text.len().min(start + MAX_BLOCK_BYTES));
    let rest = &text[start..limit];
    let is_cut = limit == text.len();
    let body = match body_of(rest) {
        Head::Body(body) => body,
        Head::Open => return is_cut.then_some(Block { span: start..limit, is_open: true, is_key: false }),
        Head::Other => return None,
    };
    // The next key ends this one. Where keys begin again and again, nothing is read twice.
    let next = memchr::memmem::find(&rest.as_bytes()[body..], FRAMES[0].0.as_bytes());
    let lines = &rest[body..next.map_or(rest.len(), |next| body + next)];
    let walked = walk(lines, &text[line_start(text, start)..start]);
    let is_open = !walked.is_closed && is_cut && next.is_none() && walked.stopped_in_last_line;
    let is_key = walked.base64 >= MIN_BODY_BYTES;
    let span = start..start + body + walked.end;
    (is_key || is_open).then_some(Block { span, is_open, is_key })
}

/// Where the line of a key's first line starts, with what a log wrote before it.
pub(super) fn line_start(text: &str, start: usize) -> usize {
    let from = text.floor_char_boundary(start.saturating_sub(MAX_PREFIX_BYTES));
    let window = &text[from..start];
    let real = window.rfind('\n').map(|at| at + 1);
    let escaped = window.rfind("\\n").map(|at| at + 2);
    real.max(escaped).map_or(if from == 0 { 0 } else { start }, |at| from + at)
}

enum Head {
    /// Where the lines begin.
    Body(usize),
    /// It ends before that can be known.
    Open,
    Other,
}

fn body_of(rest: &str) -> Head {
    let frame = FRAMES.iter().find_map(|(begin, _, dashes)| Some((rest.strip_prefix(begin)?, dashes)));
    let Some((label, dashes)) = frame else {
        return headless(rest);
    };
    let window = window(label);
    match window.find(dashes) {
        Some(end) if window[..end].contains("PRIVATE KEY") && !window[..end].contains('\n') => {
            Head::Body(rest.len() - label.len() + end + dashes.len())
        }
        Some(_) => Head::Other,
        None if window.len() < MAX_LABEL_BYTES && !window.contains('\n') => Head::Open,
        None => Head::Other,
    }
}

/// As much as a label can be.
fn window(label: &str) -> &str {
    &label[..label.floor_char_boundary(label.len().min(MAX_LABEL_BYTES))]
}

/// The lines before the last line of a key whose beginning is not there.
fn tail(text: &str, line: usize, label: usize, dashes: &str) -> Option<Block> {
    /// Shorter words are lines of a key only right before its end.
    const MIN_LINE_BYTES: usize = 32;
    /// Numbers of lines have no more digits.
    const MAX_NUMBER_DIGITS: usize = 6;
    let length = window(&text[label..]).find(dashes)?;
    let bytes = text.as_bytes();
    // A quote before it: code that looks for the line.
    if !text[label..label + length].contains("PRIVATE KEY") || text[..line].ends_with(['"', '\'']) {
        return None;
    }
    let (mut start, mut at, mut base64) = (line, line, 0);
    let is_between =
        |byte: &u8| !is_base64(*byte) && !matches!(byte, b'-' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b':' | b'.');
    while line - start < MAX_BLOCK_BYTES {
        at -= bytes[..at].iter().rev().take(MAX_LABEL_BYTES).take_while(|byte| is_between(byte)).count();
        let word = &bytes[..at];
        let word = &word[at - word.iter().rev().take_while(|byte| is_base64(**byte)).count()..];
        let is_mark = [&b"br"[..], b"br/", b"n", b"r", b"0A", b"0a", b"0D", b"0d"].contains(&word)
            || word.len() <= MAX_NUMBER_DIGITS && word.iter().all(u8::is_ascii_digit);
        at -= word.len();
        match word.len() {
            0 => break,
            _ if is_mark => {}
            length if length >= MIN_LINE_BYTES || base64 == 0 => {
                base64 += length;
                start = at;
            }
            _ => break,
        }
    }
    let is_word = bytes[start..line].iter().all(|byte| !byte.is_ascii_digit() && !byte.is_ascii_uppercase());
    let span = start..label + length + dashes.len();
    (base64 >= MIN_BODY_BYTES && !is_word).then_some(Block { span, is_open: false, is_key: true })
}

/// Keys without their first line: PuTTY's lines, OpenSSH's first bytes, and RSA or PKCS #8 in DER.
fn headless(rest: &str) -> Head {
    let bytes = rest.as_bytes();
    if rest.starts_with("Private-Lines:") {
        return match rest.find('\n') {
            Some(end) if end < MAX_LABEL_BYTES => Head::Body(end),
            _ => Head::Other,
        };
    }
    // A sequence of more than 255 bytes whose first element is the number 0: an RSA key or a PKCS #8 envelope.
    let is_der = matches!(bytes, [b'M', b'I', b'I', _, _, _, b'I', b'B', b'A', b'A' | b'D', ..]);
    if rest.starts_with("b3BlbnNzaC1rZXktdjE") || is_der { Head::Body(0) } else { Head::Other }
}

struct Walked {
    end: usize,
    base64: usize,
    /// It has its last line.
    is_closed: bool,
    stopped_in_last_line: bool,
}

/// Walks over lines as long as they are a key's. What stands before the first line may stand before each.
fn walk(body: &str, prefix: &str) -> Walked {
    let mut walked = Walked { end: 0, base64: 0, is_closed: false, stopped_in_last_line: false };
    let (mut at, mut headers) = (0, 0);
    while at < body.len() {
        let (line, next) = line_at(body, at);
        let is_last = next == body.len() && !ends_line(body);
        let end = FRAMES.iter().find_map(|(_, end, dashes)| Some((line.find(end)?, end.len(), dashes)));
        if let Some((marker, length, dashes)) = end {
            let after = &line[marker + length..];
            walked.is_closed = after.contains(dashes);
            walked.stopped_in_last_line = is_last;
            // Whatever is between the lines of a key in one line, they are between its ends; but a bracket is code.
            let inner = &line.as_bytes()[..marker];
            let is_code = inner.iter().any(|byte| matches!(byte, b'{' | b'(' | b'$'));
            let longest = inner.split(|byte| !is_base64(*byte)).map(<[u8]>::len).max().unwrap_or(0);
            if longest >= MIN_BODY_BYTES && !is_code {
                walked.base64 += longest;
            }
            walked.end = at + marker + length + after.find(dashes).map_or(after.len(), |end| end + dashes.len());
            return walked;
        }
        for part in parts(after_prefix(line, prefix)) {
            let inner = trimmed(part);
            let start = inner.as_ptr() as usize - body.as_ptr() as usize;
            match body_bytes(inner) {
                Some(count) => {
                    walked.base64 += count;
                    if count > 0 {
                        walked.end = start + inner.len();
                    }
                }
                None if walked.base64 == 0 && headers < MAX_HEADERS && is_header(inner) => headers += 1,
                None => {
                    if let Some(length) = cut_off(inner, walked.base64 == 0) {
                        walked.base64 += length;
                        walked.end = start + length;
                    }
                    walked.stopped_in_last_line = is_last;
                    return walked;
                }
            }
        }
        at = next;
    }
    walked.stopped_in_last_line = true;
    walked
}

/// How long the last line of a key is that is cut off, and has something else behind it: the end of its string, or, if the whole key
/// is in one line, words.
fn cut_off(line: &str, is_whole: bool) -> Option<usize> {
    let length = line.bytes().take_while(|byte| is_base64(*byte)).count();
    let ends_string = matches!(line.as_bytes().get(length), Some(b'"' | b'\'' | b'\\' | b'<'));
    if !is_whole || ends_string {
        return (length > 0 && ends_string).then_some(length);
    }
    let words = line.split_inclusive([' ', '\t']);
    let is_line = |word: &&str| word.trim_end().len() >= MIN_BODY_BYTES && word.trim_end().bytes().all(is_base64);
    let length = words.take_while(is_line).map(str::len).sum();
    (length > 0).then_some(length)
}

/// The lines that are in one line.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let end = memchr::memchr3_iter(b'<', b'%', b'|', line.as_bytes())
            .find_map(|at| LINE_ENDS.iter().find(|end| line[at..].starts_with(**end)).map(|end| (at, end.len())));
        rest = end.map(|(at, length)| &line[at + length..]);
        Some(end.map_or(line, |(at, _)| &line[..at]))
    })
}

/// The line at a place, and where the next one is; `\n` in JSON within JSON ends one too.
pub(super) fn line_at(body: &str, at: usize) -> (&str, usize) {
    let bytes = body.as_bytes();
    let mut end = at;
    while let Some(found) = memchr::memchr2(b'\n', b'\\', &bytes[end..]) {
        end += found;
        match &bytes[end..] {
            [b'\n', ..] => return (&body[at..end], end + 1),
            [_, b'n' | b'r', ..] => return (&body[at..end], end + 2),
            _ => end += 1,
        }
    }
    (&body[at..], body.len())
}

fn ends_line(body: &str) -> bool {
    body.ends_with('\n') || body.ends_with("\\n")
}

/// Without what a log writes before each line; its digits are a time or a number, and change.
fn after_prefix<'l>(line: &'l str, prefix: &str) -> &'l str {
    let (mut rest, mut before) = (line.as_bytes(), prefix.as_bytes());
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    while let [sign, ..] = before {
        let count = digits(before);
        if count > 0 && digits(rest) > 0 {
            (rest, before) = (&rest[digits(rest)..], &before[count..]);
        } else if rest.first() == Some(sign) || matches!((sign, rest.first()), (b':', Some(b'-'))) {
            // A search writes a colon before the line that it found, and a dash before those around it.
            (rest, before) = (&rest[1..], &before[1..]);
        } else {
            // An empty line has no space at its end.
            let is_empty = rest.is_empty() && before.iter().all(u8::is_ascii_whitespace);
            return if is_empty { &line[line.len()..] } else { line };
        }
    }
    line.get(line.len() - rest.len()..).unwrap_or(line)
}

/// Without line numbers, marks of quotes and diffs, and what joins strings in code.
fn trimmed(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '>', '|', '"', '\'', '\\', '\r']);
    let line = after_place(line);
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = numbered.strip_prefix(['→', '|', ':', '\t']).or_else(|| numbered.strip_prefix("\\t"));
    let line = match rest {
        Some(rest) if numbered.len() < line.len() => rest.trim_start(),
        _ => line,
    };
    line.trim_end_matches([' ', '\t', '"', '\'', '\\', ',', '\r', ';', '+'])
}

/// Without the file and the number before a line that a search found: `keys/id_x:12:…`, `keys/id_x-13-…`.
fn after_place(line: &str) -> &str {
    const LONGEST: usize = 256;
    let window = &line[..line.floor_char_boundary(line.len().min(LONGEST))];
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let of = |sign: char| {
        let end = window.rfind(sign)?;
        let (file, number) = window[..end].rsplit_once(sign)?;
        // `DEK-Info: AES-128-CBC` is a header.
        (!file.is_empty() && !file.contains(": ") && is_number(number)).then(|| &line[end + 1..])
    };
    of(':').or_else(|| of('-')).unwrap_or(line)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// How many characters of base64 a line of a key has; none if it is another line.
fn body_bytes(line: &str) -> Option<usize> {
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty()).peekable();
    let mut count = 0;
    while let Some(word) = words.next() {
        let joins_many = words.peek().is_none() || word.len() >= 32;
        if !word.bytes().all(is_base64) || !joins_many {
            return None;
        }
        count += word.len();
    }
    Some(count)
}

/// `Proc-Type: 4,ENCRYPTED`, `Version: GnuPG v2`.
fn is_header(line: &str) -> bool {
    // After the mark of a diff, too.
    let name = line.trim_start_matches('+').split_once(": ").map_or("", |(name, _)| name);
    // What a search wrote before it may still be there: `keys/id_x-6-DEK-Info: …`.
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':');
    name.ends_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(is_part)
}
