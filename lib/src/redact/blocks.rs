//! Private keys in lines of base64: PEM, OpenSSH, PGP and PuTTY, whole or cut off, with real or escaped line breaks.

use std::ops::Range;

/// Where a key begins.
pub(super) const KEYWORDS: &[&str] = &["-----BEGIN", "Private-Lines:", "b3BlbnNzaC1rZXktdjE", "MII"];

/// A larger block is no key: RSA with 16,384 bits needs 13 KB. A stream holds an open block back up to here.
pub(super) const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// `-----BEGIN … PRIVATE KEY BLOCK-----`.
const MAX_LABEL_BYTES: usize = 64;

/// Fewer characters of base64 are a mention of a key.
const MIN_BODY_BYTES: usize = 16;

/// `Proc-Type`, `DEK-Info`, `Version`, `Comment`.
const MAX_HEADERS: usize = 8;

/// A block of a private key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) span: Range<usize>,
    /// More text could belong to it.
    pub(super) is_open: bool,
    /// There is so much of it that it is a key.
    pub(super) is_key: bool,
}

/// The private key that begins at a keyword.
pub(super) fn at(text: &str, start: usize) -> Option<Block> {
    let limit = text.floor_char_boundary(text.len().min(start + MAX_BLOCK_BYTES));
    let rest = &text[start..limit];
    let is_cut = limit == text.len();
    let body = match body_of(rest) {
        Head::Body(body) => body,
        Head::Open => return is_cut.then_some(Block { span: start..limit, is_open: true, is_key: false }),
        Head::Other => return None,
    };
    let walked = walk(&rest[body..]);
    let is_open = !walked.is_closed && is_cut && walked.stopped_in_last_line;
    let is_key = walked.base64 >= MIN_BODY_BYTES;
    let span = start..start + body + walked.end;
    (is_key || is_open).then_some(Block { span, is_open, is_key })
}

enum Head {
    /// Where the lines begin.
    Body(usize),
    /// It ends before that can be known.
    Open,
    Other,
}

fn body_of(rest: &str) -> Head {
    let Some(label) = rest.strip_prefix("-----BEGIN") else {
        return headless(rest);
    };
    let window = &label[..label.floor_char_boundary(label.len().min(MAX_LABEL_BYTES))];
    match window.find("-----") {
        Some(end) if window[..end].contains("PRIVATE KEY") && !window[..end].contains('\n') => {
            Head::Body(rest.len() - label.len() + end + "-----".len())
        }
        Some(_) => Head::Other,
        None if window.len() < MAX_LABEL_BYTES && !window.contains('\n') => Head::Open,
        None => Head::Other,
    }
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

/// Walks over lines as long as they are a key's.
fn walk(body: &str) -> Walked {
    let mut walked = Walked { end: 0, base64: 0, is_closed: false, stopped_in_last_line: false };
    let (mut at, mut headers) = (0, 0);
    while at < body.len() {
        let (line, next) = line_at(body, at);
        let is_last = next == body.len() && !ends_line(body);
        if let Some(marker) = line.find("-----END") {
            let after = &line[marker + "-----END".len()..];
            walked.is_closed = after.contains("-----");
            walked.stopped_in_last_line = is_last;
            let length = after.find("-----").map_or(after.len(), |end| end + "-----".len());
            walked.end = at + marker + "-----END".len() + length;
            return walked;
        }
        let inner = trimmed(line);
        match body_bytes(inner) {
            Some(count) => {
                walked.base64 += count;
                if count > 0 {
                    walked.end = start_of(inner, line, at) + inner.len();
                }
            }
            None if walked.base64 == 0 && headers < MAX_HEADERS && is_header(inner) => headers += 1,
            None => {
                // The last line of a key that is cut off may have the end of its string in it.
                let length = inner.bytes().take_while(|byte| is_base64(*byte)).count();
                if length > 0
                    && inner.as_bytes().get(length).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'\\' | b'<'))
                {
                    walked.base64 += length;
                    walked.end = start_of(inner, line, at) + length;
                }
                walked.stopped_in_last_line = is_last;
                return walked;
            }
        }
        at = next;
    }
    walked.stopped_in_last_line = true;
    walked
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

/// Without line numbers, marks of quotes and diffs, and what joins strings in code.
fn trimmed(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '>', '|', '"', '\'', '\\', '\r']);
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = numbered.strip_prefix(['→', '|', ':', '\t']).or_else(|| numbered.strip_prefix("\\t"));
    let line = match rest {
        Some(rest) if numbered.len() < line.len() => rest.trim_start(),
        _ => line,
    };
    line.trim_end_matches([' ', '\t', '"', '\'', '\\', ',', '\r', ';', '+'])
}

/// Where a part of a line at `at` starts.
fn start_of(inner: &str, line: &str, at: usize) -> usize {
    at + line.find(inner).unwrap_or_default()
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
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}
