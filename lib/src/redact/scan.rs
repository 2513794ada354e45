//! Finds secrets in a text: one pass over keywords, then only the rules whose keyword was seen, around it.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::keywords::Keywords;
use super::kinds::{self, By, Check, Kind};
use super::{assignment, base64, blocks, digits, encoded, jwt, paired, table, values, yaml};

/// What a rule looks at before a secret, at most: a stream keeps so much of what it let go.
pub(super) const MAX_CONTEXT_BYTES: usize = 1024;

/// A pattern sees so much after its keyword. A stream holds so much of a word back.
pub(super) const MAX_WINDOW_BYTES: usize = 8 * 1024;

/// So many characters of base64 around a token are data; a path has other signs in it.
const MIN_RUN_BYTES: usize = 24;

/// Reading more than this again for each keyword in it would take too long.
const LONG_BYTES: usize = 256;

/// `pw=tide`: a name, a sign and a password. Most keys of JSON are shorter.
const MIN_TEXT_BYTES: usize = 7;

/// Nothing that one of our tokens is made of is shorter.
const MIN_TOKEN_BYTES: usize = 12;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found<'r> {
    pub(super) rule: &'r str,
    pub(super) span: Range<usize>,
    /// With the quotes that seed 002's expressions take.
    pub(super) with_quotes: Range<usize>,
    /// Whether the placeholder has a hash.
    pub(super) is_hashed: bool,
    /// A vendor's shape says more than a name does.
    pub(super) is_certain: bool,
}

/// What more text could change.
#[derive(Default)]
pub(super) struct Open {
    /// Where the first thing starts that more text could still complete.
    pub(super) from: Option<usize>,
    /// Where the header starts of a table that may have more rows: they are judged by it.
    pub(super) header: Option<usize>,
}

impl Open {
    fn at(&mut self, start: usize) {
        self.from = Some(self.from.map_or(start, |from| from.min(start)));
    }
}

/// The rules, ready to run.
pub(super) struct Scanner {
    keywords: Keywords,
    rules: Vec<Compiled>,
    /// For each keyword, what to do.
    actions: Vec<Action>,
}

/// A rule whose expression is compiled when it is first needed: most never are.
struct Compiled {
    kind: &'static Kind,
    /// Only a part of what the expression takes is the secret.
    has_group: bool,
    pattern: OnceLock<Option<Regex>>,
}

struct Action {
    keyword: &'static str,
    rules: Vec<usize>,
    /// Not a rule, but a place where there is no secret.
    zone: Option<Zone>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Placeholder,
    Media,
}

/// The rules of the table.
pub(super) static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

impl Scanner {
    fn new() -> Scanner {
        let mut actions = vec![
            Action { keyword: "[REDACTED", rules: Vec::new(), zone: Some(Zone::Placeholder) },
            Action { keyword: ";base64,", rules: Vec::new(), zone: Some(Zone::Media) },
        ];
        let mut rules = Vec::new();
        for kind in kinds::all() {
            for keyword in kind.keywords {
                match actions.iter_mut().find(|action| action.keyword.eq_ignore_ascii_case(keyword)) {
                    Some(action) => action.rules.push(rules.len()),
                    None => actions.push(Action { keyword, rules: vec![rules.len()], zone: None }),
                }
            }
            let has_group = matches!(kind.by, By::Pattern(pattern) if pattern.contains("?<secret>"));
            rules.push(Compiled { kind, has_group, pattern: OnceLock::new() });
        }
        let keywords = Keywords::new(actions.iter().map(|action| action.keyword));
        Scanner { keywords, rules, actions }
    }

    /// The pass that every text pays for: also a measure of what is possible.
    pub(super) fn count_keywords(&self, text: &str) -> usize {
        self.keywords.count(text)
    }

    pub(super) fn has_keyword(&self, text: &str) -> bool {
        self.keywords.are_in(text)
    }

    /// Finds secrets, in no order; `open` learns what more text could change.
    pub(super) fn scan<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>, open: Option<&mut Open>) {
        if text.len() < MIN_TEXT_BYTES {
            return;
        }
        let mut pass = Pass {
            scanner: self,
            text,
            found,
            open,
            safe_until: 0,
            names_until: 0,
            tables_until: 0,
            tried_until: 0,
            loose_until: 0,
            clear: assignment::Clear::default(),
            blocks_until: 0,
            jwts_until: 0,
            grouped: ("", 0),
        };
        self.keywords.find(text, |keyword, hit| pass.hit(&self.actions[keyword], hit));
        paired::find(text, |rule, span| {
            pass.found.push(Found { rule, with_quotes: span.clone(), span, is_hashed: true, is_certain: true });
        });
        digits::find(text, |number, span| {
            let rule = match number {
                digits::Number::Card => "card",
                digits::Number::Iban => "iban",
            };
            pass.found.push(Found { rule, with_quotes: span.clone(), span, is_hashed: false, is_certain: true });
        });
    }
}

/// One pass over one text.
struct Pass<'p, 'r> {
    scanner: &'r Scanner,
    text: &'p str,
    found: &'p mut Vec<Found<'r>>,
    open: Option<&'p mut Open>,
    /// Placeholders and media up to here.
    safe_until: usize,
    /// Names up to here were judged.
    names_until: usize,
    /// And tables.
    tables_until: usize,
    /// Tokens of a vendor up to here were judged.
    tried_until: usize,
    /// And what only looks random.
    loose_until: usize,
    clear: assignment::Clear,
    blocks_until: usize,
    jwts_until: usize,
    /// What the last expression with a group took, and the name of its rule.
    grouped: (&'static str, usize),
}

impl<'r> Pass<'_, 'r> {
    fn hit(&mut self, action: &Action, hit: Range<usize>) {
        if hit.start < self.safe_until {
            return;
        }
        match action.zone {
            Some(Zone::Placeholder) => {
                self.safe_until = placeholder_end(self.text, hit.start).unwrap_or(self.safe_until)
            }
            Some(Zone::Media) => self.safe_until = media_end(self.text, &hit).unwrap_or(self.safe_until),
            None => {}
        }
        let scanner = self.scanner;
        for rule in &action.rules {
            let rule = &scanner.rules[*rule];
            match rule.kind.by {
                By::Name => self.name(&hit),
                By::Pattern(pattern) => self.pattern(rule, pattern, action.keyword, &hit),
                By::Around(before, pattern) => self.around(rule, before, pattern, action.keyword, &hit),
                By::Jwt => self.jwt(rule.kind, action.keyword, &hit),
                By::Block => self.block(rule.kind, action.keyword, &hit),
                By::Encoded => self.encoded(rule.kind, action.keyword, &hit),
                By::Digits | By::Paired | By::Value => {}
            }
        }
    }

    fn name(&mut self, hit: &Range<usize>) {
        if hit.start < self.names_until {
            return;
        }
        let (name, assigned) = assignment::at(self.text, hit.clone(), &mut self.clear);
        if let Some(open) = &mut self.open
            && let Some(start) = assignment::open_quote(self.text, hit.clone())
        {
            open.at(start);
        }
        self.names_until = name.end;
        if name.start >= self.tables_until {
            self.table(&name);
        }
        for (promise, span) in yaml::below(self.text, &name) {
            self.promised(promise.kind, span.clone(), span);
        }
        if let Some(assigned) = assigned {
            self.promised(assigned.promise.kind, assigned.value, assigned.with_quotes);
        }
    }

    /// Notes a value that a name promises. What can be guessed has no hash.
    fn promised(&mut self, rule: &'static str, span: Range<usize>, with_quotes: Range<usize>) {
        let is_hashed = !matches!(rule, "password" | "ssn");
        self.found.push(Found { rule, span, with_quotes, is_hashed, is_certain: false });
    }

    /// The values under a name that is in the header of a table.
    fn table(&mut self, name: &Range<usize>) {
        let (until, table) = table::at(self.text, name);
        self.tables_until = until;
        let Some(table) = table else { return };
        if let (true, Some(open)) = (table.is_open, &mut self.open) {
            open.header = Some(table.start);
            table.open_row.into_iter().for_each(|row| open.at(row));
        }
        for value in table.values {
            self.promised(value.promise.kind, value.span.clone(), value.span);
        }
    }

    fn pattern(&mut self, rule: &'r Compiled, pattern: &str, keyword: &str, hit: &Range<usize>) {
        let (kind, has_group) = (rule.kind, rule.has_group);
        if !has_group {
            let until =
                if kind.has(Check::Certain) { self.tried_until } else { self.tried_until.max(self.loose_until) };
            let is_tried = hit.start < until
                || !self.text[hit.clone()].eq(keyword)
                || !(starts_token(self.text, hit.start) || is_own_prefix(kind, keyword))
                || is_in_random(self.text, hit.start);
            let is_loose = !kind.has(Check::Certain) && is_in_name(self.text.as_bytes(), hit.start);
            if is_tried || is_loose || !is_long_token(&self.text.as_bytes()[hit.start..]) {
                return;
            }
        }
        if has_group && self.grouped.0 == kind.name && hit.start < self.grouped.1 {
            return;
        }
        let end = self.text.len().min(hit.start + MAX_WINDOW_BYTES);
        let Some(regex) = rule.regex(pattern) else { return };
        let window = &self.text.as_bytes()[hit.start..end];
        // Most do not match, and telling so is cheaper without groups.
        let span = if has_group && !regex.is_match(window) {
            None
        } else if has_group {
            regex.captures(window).and_then(|captures| captures.name("secret")).map(|group| group.range())
        } else {
            regex.find(window).map(|whole| whole.range())
        };
        let span = match has_group || !kind.has(Check::Certain) {
            true => span,
            false => {
                let wrapped = wrapped(regex, window, span.as_ref().map_or(0, |span| span.end));
                if let (true, Some(open)) = (wrapped.is_open && end == self.text.len(), &mut self.open) {
                    open.at(hit.start);
                }
                wrapped.token.or(span)
            }
        };
        // A context does not reach over what is masked: it would find more the second time.
        let Some(span) = span.filter(|span| memmem::find(&window[..span.start], b"[REDACTED").is_none()) else {
            return;
        };
        let span = whole_characters(self.text, hit.start + span.start..hit.start + span.end);
        // Letters that begin a token occur in long base64 by chance.
        if keyword.bytes().all(|byte| byte.is_ascii_alphanumeric()) && is_in_base64(self.text.as_bytes(), &span) {
            return;
        }
        let span = if has_group { span } else { before_stand_in(regex, self.text, keyword, span) };
        let end = span.end;
        let is_secret = self.judge(kind, keyword, span);
        match (has_group, kind.has(Check::Certain)) {
            // What is no secret may hide one: in "Bearer Bearer …", the second word is the header. But nothing long is read twice.
            (true, _) if is_secret || end - hit.start > LONG_BYTES => self.grouped = (kind.name, end),
            (true, _) => {}
            (false, true) => self.tried_until = end,
            (false, false) => self.loose_until = end,
        }
    }

    fn around(&mut self, rule: &'r Compiled, before: usize, pattern: &str, keyword: &str, hit: &Range<usize>) {
        // Only an expression that says so takes any case.
        if self.text[hit.clone()] != *keyword && !pattern.contains("(?i:") {
            return;
        }
        let start = self.text.ceil_char_boundary(hit.start.saturating_sub(before + 1));
        let window = &self.text.as_bytes()[start..self.text.len().min(hit.end + 512)];
        let Some(captures) = rule.regex(pattern).and_then(|regex| regex.captures(window)) else { return };
        let (Some(whole), Some(secret)) = (captures.get(0), captures.name("secret")) else { return };
        // More base64 follows: it is data that happens to have the keyword in it.
        let goes_on = window.get(secret.end()) == Some(&b'+');
        if (start + whole.start()..start + whole.end()).contains(&hit.start) && !goes_on {
            let secret = whole_characters(self.text, start + secret.start()..start + secret.end());
            if !is_in_base64(self.text.as_bytes(), &secret) {
                self.judge(rule.kind, keyword, secret);
            }
        }
    }

    fn jwt(&mut self, kind: &'r Kind, keyword: &str, hit: &Range<usize>) {
        if hit.start < self.jwts_until || self.text[hit.clone()] != *keyword || !starts_token(self.text, hit.start) {
            return;
        }
        match jwt::at(self.text, hit.start) {
            Ok(span) => {
                self.jwts_until = span.end;
                self.judge(kind, keyword, span);
            }
            Err(end) => self.jwts_until = end,
        }
    }

    fn block(&mut self, kind: &'r Kind, keyword: &str, hit: &Range<usize>) {
        let starts = blocks::is_end(keyword) || starts_token(self.text, hit.start);
        if hit.start < self.blocks_until || self.text[hit.clone()] != *keyword || !starts {
            return;
        }
        let Some(block) = blocks::at(self.text, hit.start) else { return };
        if let (true, Some(open)) = (block.is_open, &mut self.open) {
            open.at(hit.start);
        }
        if block.is_key {
            self.blocks_until = block.span.end;
            self.push(kind, block.span);
        }
    }

    fn encoded(&mut self, kind: &'r Kind, keyword: &str, hit: &Range<usize>) {
        if keyword.starts_with("data") {
            let values = match keyword {
                "data:" => encoded::values(self.text, hit),
                _ => encoded::json_values(self.text, hit.end),
            };
            if let (true, Some(first), Some(open)) = (values.is_open, values.spans.first(), &mut self.open) {
                open.at(first.start);
            }
            values.spans.into_iter().for_each(|span| self.push(kind, span));
        } else if self.text[hit.clone()] == *keyword && hit.start >= self.blocks_until {
            let (span, says) = encoded::run_at(self.text, hit.start);
            // Each run is read once, also if it says nothing.
            self.blocks_until = span.end;
            let Some(says) = says else { return };
            // Once: what is encoded twice stays.
            let mut inside = Vec::new();
            let is_login = says.contains("\"auth\"");
            if !is_login && !says.contains("[REDACTED") {
                self.scanner.scan(&says, &mut inside, None);
            }
            if is_login || !inside.is_empty() {
                self.push(kind, span);
            }
        }
    }

    /// Takes what a shape found, if the rule's checks agree.
    fn judge(&mut self, kind: &'r Kind, keyword: &str, span: Range<usize>) -> bool {
        let span = if kind.has(Check::Certain) { without_full_stop(self.text, span) } else { span };
        let secret = &self.text[span.clone()];
        let starts = kind.has(Check::Inside)
            || starts_token(self.text, span.start)
            || is_own_prefix(kind, keyword) && values::is_random(&secret[keyword.len().min(secret.len())..]);
        let fits = |check: &Check| match check {
            Check::Random => values::is_random(secret),
            Check::NoWord => !values::is_placeholder(secret) && !values::is_words(secret) && !values::is_code(secret),
            Check::Odd => values::is_odd(secret),
            Check::Mixed => values::is_plausible(secret, values::Strength::Strong, values::Written::Prose),
            Check::Session => values::is_session(secret),
            Check::Credentials => base64::readable(secret).is_some_and(|says| says.contains(':')),
            Check::Inside | Check::Guessable | Check::Certain => true,
        };
        let is_secret = starts
            && ends_token(self.text, span.end)
            && !values::is_example_token(secret)
            && kind.checks.iter().all(fits);
        if is_secret {
            self.push(kind, span);
        }
        is_secret
    }

    fn push(&mut self, kind: &'r Kind, span: Range<usize>) {
        let (is_hashed, is_certain) = (!kind.has(Check::Guessable), kind.has(Check::Certain));
        self.found.push(Found { rule: kind.name, with_quotes: span.clone(), span, is_hashed, is_certain });
    }
}

/// A token without the sign at the end of its sentence: with it, the same token would get another placeholder.
fn without_full_stop(text: &str, span: Range<usize>) -> Range<usize> {
    if !text[span.end..].chars().next().is_none_or(char::is_whitespace) {
        return span;
    }
    span.start..span.start + text[span.clone()].trim_end_matches(['.', ',']).len()
}

/// A token without a word that was joined to its end, if it is one without it: `….example.com` is a host, `your-key-here` none.
fn before_stand_in(regex: &Regex, text: &str, keyword: &str, span: Range<usize>) -> Range<usize> {
    let token = &text[span.clone()];
    let shorter = values::stand_in_behind(token).and_then(|end| regex.find(&token.as_bytes()[..end]));
    let is_token = |end: usize| token.get(keyword.len()..end).is_some_and(values::is_random_body);
    match shorter.map(|found| found.end()).filter(|end| is_token(*end)) {
        Some(end) => span.start..span.start + end,
        None => span,
    }
}

impl Compiled {
    /// Expressions see bytes: one that knows all letters of all languages takes fifty times as long to compile, and our rules know ASCII.
    fn regex(&self, pattern: &str) -> Option<&Regex> {
        let compile = || {
            let is_anchored = matches!(self.kind.by, By::Pattern(_));
            let pattern = if is_anchored { format!("^(?:{pattern})") } else { pattern.to_owned() };
            RegexBuilder::new(&pattern).unicode(false).build().ok()
        };
        self.pattern.get_or_init(compile).as_ref()
    }
}

/// The span without half a character at either end: expressions count bytes.
fn whole_characters(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text.ceil_char_boundary(span.start);
    start..text.floor_char_boundary(span.end).max(start)
}

/// Where a placeholder ends: `[REDACTED]`, `[REDACTED:kind]`, `[REDACTED:kind:8hex]`.
pub(super) fn placeholder_end(text: &str, start: usize) -> Option<usize> {
    let inside = text.get(start + "[REDACTED".len()..)?;
    let length = inside
        .bytes()
        .take(80)
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b':' | b'-'))
        .count();
    inside[length..].starts_with(']').then_some(start + "[REDACTED".len() + length + 1)
}

/// Where the data of `data:image/png;base64,…` ends. Text in a data URL is text.
fn media_end(text: &str, hit: &Range<usize>) -> Option<usize> {
    let before = &text.as_bytes()[hit.start.saturating_sub(80)..hit.start];
    let is_media = |name: &[u8]| {
        [
            &b"image/"[..],
            b"audio/",
            b"video/",
            b"font/",
            b"application/pdf",
            b"application/octet-stream",
            b"application/font",
            b"application/wasm",
        ]
        .iter()
        .any(|media| name.starts_with(media))
    };
    let url = before.windows(5).rposition(|window| window.eq_ignore_ascii_case(b"data:"))?;
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'%');
    let length = text.as_bytes()[hit.end..].iter().take_while(|byte| is_base64(byte)).count();
    is_media(&before[url + 5..]).then_some(hit.end + length)
}

/// Whether a token may start here: not in the middle of a word, nor where a placeholder ends.
pub(super) fn starts_token(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let Some(before) = at.checked_sub(1).map(|before| bytes[before]) else { return true };
    let ends_with = |escape: &[u8]| bytes[..at].ends_with(escape);
    if before == b']' {
        let zone = text[text.floor_char_boundary(at.saturating_sub(100))..at].rfind("[REDACTED");
        return zone.is_none_or(|zone| {
            placeholder_end(text, text.floor_char_boundary(at.saturating_sub(100)) + zone) != Some(at)
        });
    }
    if !before.is_ascii_alphanumeric() {
        return true;
    }
    // Line breaks in JSON within JSON, signs in addresses, and colours of a terminal: `\n`, `%3D`, `\u003d`, `\e[32m`.
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let is_colour = || {
        let codes = bytes[..at - 1].iter().rev().take(12).take_while(|byte| byte.is_ascii_digit() || **byte == b';');
        let start = at - 1 - codes.count();
        start > 0 && bytes[start - 1] == b'['
    };
    ends_with(b"\\n")
        || ends_with(b"\\r")
        || ends_with(b"\\t")
        || at >= 3 && bytes[at - 3] == b'%' && is_hex(&bytes[at - 2..at])
        || at >= 6 && bytes[at - 6..at].starts_with(b"\\u") && is_hex(&bytes[at - 4..at])
        || before == b'm' && is_colour()
}

/// Whether a vendor's prefix is so much its own that a token counts also right after other letters: `xghp_…`.
fn is_own_prefix(kind: &Kind, keyword: &str) -> bool {
    const LEAST: usize = 4;
    kind.has(Check::Certain) && keyword.len() >= LEAST && keyword.ends_with('_')
}

/// Whether what is right before this is random, too: in long base64 with dashes and underscores, every prefix occurs by chance.
fn is_in_random(text: &str, at: usize) -> bool {
    const LONGEST: usize = 64;
    const LEAST: usize = 12;
    let before = &text.as_bytes()[at.saturating_sub(LONGEST)..at];
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = before.iter().rev().take_while(is_part).count();
    let before = &text[at - length..at];
    length >= LEAST && values::is_random(before) && !is_joined_id(before)
}

/// `f47ac10b-58cc-4372-a567-0e02b2c3d479-`, `uid_550e8400e29b41d4_`: an id in hexadecimal digits, and a sign that joins something to
/// it. Base64 has other letters, too.
fn is_joined_id(text: &str) -> bool {
    const LEAST: usize = 8;
    let Some(id) = text.strip_suffix(['-', '_']) else { return false };
    let is_hex = |piece: &str| piece.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let is_word = |piece: &str| piece.len() <= LEAST && piece.bytes().all(|byte| byte.is_ascii_lowercase());
    let (hex, others): (Vec<&str>, Vec<&str>) = id.split(['-', '_']).partition(|piece| is_hex(piece));
    hex.iter().map(|piece| piece.len()).sum::<usize>() >= LEAST && others.into_iter().all(is_word)
}

/// A token that goes on in the next line.
#[derive(Default)]
struct Wrapped {
    token: Option<Range<usize>>,
    /// More text could belong to it.
    is_open: bool,
}

/// The token at the start of a window, if it goes on in the next line, as terminals and mails break them. `end` is where it ends in its
/// first line, 0 if it is too short there.
fn wrapped(regex: &Regex, window: &[u8], end: usize) -> Wrapped {
    /// No token of ours is longer.
    const LONGEST: usize = 512;
    const MIN_PIECE_BYTES: usize = 8;
    /// A whole token in a shorter line ends there.
    const MIN_LINE_BYTES: usize = 40;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_cut = window.len() > LONGEST;
    let window = &window[..window.len().min(LONGEST)];
    let (mut joined, mut places, mut at, mut is_open) = (Vec::new(), Vec::new(), 0, false);
    loop {
        let length = window[at..].iter().take_while(|byte| is_part(byte)).count();
        let piece = std::str::from_utf8(&window[at..at + length]).unwrap_or_default();
        let is_first = at == 0;
        is_open |= !is_first && at + length == window.len() && !is_cut;
        // What goes on is as random as the rest, and no name of a line of its own.
        if !is_first && (length < MIN_PIECE_BYTES || !values::is_random(piece)) {
            break;
        }
        joined.extend_from_slice(piece.as_bytes());
        places.extend(at..at + length);
        at += length;
        let rest = &window[at..];
        let slash = usize::from(rest.starts_with(b"\\") && matches!(rest.get(1), Some(b'\r' | b'\n')));
        let broken = match &rest[slash..] {
            [b'\r', b'\n', ..] => slash + 2,
            [b'\n', ..] => slash + 1,
            _ => break,
        };
        if is_first && length < (if end > 0 { MIN_LINE_BYTES } else { MIN_PIECE_BYTES }) {
            return Wrapped::default();
        }
        at += broken;
        at += window[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    }
    let found = regex.find(&joined).and_then(|found| places.get(found.end().checked_sub(1)?)).map(|last| last + 1);
    Wrapped { token: found.filter(|last| *last > end).map(|last| 0..last), is_open }
}

/// Whether a dash or an underscore joins what starts here to a name before it: `task-sk-…`, but not `-sk-…`.
fn is_in_name(bytes: &[u8], at: usize) -> bool {
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_');
    at > 0 && is_joint(&bytes[at - 1]) && at > 1 && (bytes[at - 2].is_ascii_alphanumeric() || is_joint(&bytes[at - 2]))
}

/// Whether a slash or a plus joins a token to a long run of base64 on one side.
fn is_in_base64(bytes: &[u8], token: &Range<usize>) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let joins = |byte: Option<&u8>| matches!(byte, Some(b'+' | b'/'));
    let before = &bytes[token.start.saturating_sub(MIN_RUN_BYTES)..token.start];
    let after = &bytes[token.end..bytes.len().min(token.end + MIN_RUN_BYTES)];
    let is_run = |run: &[u8]| run.len() == MIN_RUN_BYTES && run.iter().all(is_base64);
    joins(before.last()) && is_run(before) || joins(after.first()) && is_run(after)
}

/// Whether a token may end here.
fn ends_token(text: &str, at: usize) -> bool {
    let rest = &text.as_bytes()[at..];
    !rest.first().is_some_and(u8::is_ascii_alphanumeric) && !rest.starts_with(b"[REDACTED")
}

fn is_long_token(rest: &[u8]) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'%' | b':' | b'$' | b'!' | b'~')
    };
    rest.iter().take(MIN_TOKEN_BYTES).take_while(|byte| is_part(byte)).count() == MIN_TOKEN_BYTES
}
