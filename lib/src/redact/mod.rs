//! Removes secrets from text and JSON: one engine for recording, showing and sharing.
//!
//! ```
//! use scrollback::redact::{Redactor, Settings};
//!
//! let redactor = Redactor::new(Settings::with_key([7; 32]))?;
//! let redacted = redactor.text("log in with password: tide-4-morning");
//! assert_eq!(redacted.text, "log in with password: [REDACTED:password]");
//! assert_eq!(redacted.findings[0].rule, "password");
//! # Ok::<(), scrollback::redact::RuleError>(())
//! ```
//!
//! The rules are a table (`kinds/`); docs/redaction.md describes them. A text is read once for all keywords, and a rule runs only
//! around its keyword, so the time is linear in the text. Strings of JSON are decoded first and judged with their key; places that
//! hold no secret and must not change (signatures, images, ids, hashes: `fields.rs`) are left alone. What is redacted stays as it is
//! when it is redacted again.
//!
//! The engine knows nothing of sessions and reads no file.

mod settings;
mod kinds;
mod keywords;
mod scan;
mod names;
mod values;
mod words;
mod assignment;
mod table;
mod yaml;
mod blocks;
mod jwt;
mod paired;
mod encoded;
mod base64;
mod digits;
mod masked;
mod user_rules;
mod fields;
mod json;
mod stream;
mod files;
mod by_file;
mod document;
mod custom;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use blocks::has_end_alone;
pub use by_file::SensitiveCalls;
pub use custom::Rule;
pub use document::{DocumentFinding, RedactedDocument};
pub use json::{LineFinding, RedactedLine};
pub use settings::{Key, RuleError, Settings, Style, UserRule};
pub use stream::Stream;

use files::Files;
use masked::Masked;
use scan::{Found, Open, SCANNER};
use user_rules::UserRules;

/// Changes with every change of the rules: what an older set let through, a newer one may mask.
pub const RULES_VERSION: u32 = 8;

/// What a placeholder says that no rule of the table is called.
const OTHER_KINDS: &[&str] = &[
    "redacted",
    "card",
    "iban",
    "masked-value",
    "file",
    "password",
    "credential",
    "token",
    "api-key",
    "secret",
    "cookie",
];

/// How often what remains of a text with secrets is looked at again; once nearly always says that nothing is left.
const MORE_LOOKS: usize = 4;

/// Of a longer text, only what is near its masks is looked at again.
const LONG_TEXT_BYTES: usize = 1024 * 1024;

/// No rule reaches further: an open private key is the longest thing that one can find.
const NEARBY_BYTES: usize = blocks::MAX_BLOCK_BYTES;

/// No vendor's token is shorter.
const MIN_TOKEN_BYTES: usize = 12;

/// The rules for what must not be written.
#[derive(Clone)]
pub struct Redactor {
    rules: Rules,
}

/// Where the rules are.
#[derive(Clone)]
enum Rules {
    /// In our table and in the user's settings.
    Table(Arc<Engine>, Style),
    /// In the code of the program that embeds the library.
    Code(Vec<Arc<dyn Rule>>),
}

/// The built-in rules and the user's.
struct Engine {
    key: Key,
    /// What [`Key::WhenNeeded`] answered.
    asked_key: OnceLock<Option<[u8; 32]>>,
    users: UserRules,
    masked: Option<Masked>,
    files: Files,
    /// See [`Redactor::fingerprint`].
    fingerprint: u64,
}

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted<'t> {
    /// The same text, borrowed, if there is no secret in it.
    pub text: Cow<'t, str>,
    /// What was masked, in order.
    pub findings: Vec<Finding>,
}

/// A secret that was masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of its rule.
    pub rule: String,
    /// Where it was in the original text, in bytes.
    pub span: Range<usize>,
    /// The hash in its placeholder: the same secret has the same. Passwords, cards and the like have none.
    pub hash: Option<String>,
}

/// A place in a text and what replaces it.
struct Mask {
    span: Range<usize>,
    placeholder: String,
    finding: Finding,
}

/// What becomes of a text.
enum Change {
    /// These places are replaced, in order; none if nothing was found.
    Masks(Vec<Mask>),
    /// Code made another text of it, and does not say where.
    Whole(String),
}

impl Change {
    fn nothing() -> Change {
        Change::Masks(Vec::new())
    }
}

impl Redactor {
    /// The built-in rules, with the caller's settings.
    pub fn new(settings: Settings) -> Result<Redactor, RuleError> {
        let Settings { key, style, rules, allow, files, masked } = settings;
        let known = if let Key::Known(key) = key { key } else { [0; 32] };
        let engine = Engine {
            fingerprint: xxh3_64(format!("{RULES_VERSION} {rules:?} {allow:?} {files:?} {masked:?}").as_bytes()),
            key,
            asked_key: OnceLock::new(),
            users: UserRules::new(&rules, &allow)?,
            masked: Masked::new(known, &masked),
            files: Files::new(&files)?,
        };
        Ok(Redactor { rules: Rules::Table(Arc::new(engine), style) })
    }

    /// Only rules in code, in this order, without the built-in ones.
    pub fn of_rules(rules: Vec<Box<dyn Rule>>) -> Redactor {
        Redactor { rules: Rules::Code(rules.into_iter().map(Arc::from).collect()) }
    }

    /// The built-in rules without a key, for programs that keep none: placeholders have no hash.
    pub fn built_in() -> Redactor {
        static BUILT_IN: LazyLock<Option<Redactor>> = LazyLock::new(|| Redactor::new(Settings::built_in()).ok());
        BUILT_IN.clone().unwrap_or_else(|| Redactor::of_rules(Vec::new()))
    }

    /// The same rules with placeholders that look like this. Rules in code make their own.
    pub fn in_style(&self, style: Style) -> Redactor {
        match &self.rules {
            Rules::Table(engine, _) => Redactor { rules: Rules::Table(engine.clone(), style) },
            Rules::Code(_) => self.clone(),
        }
    }

    /// A text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Redacted<'t> {
        self.value(None, text)
    }

    /// A string of JSON, judged with the key that it is the value of: `"password": "…"`.
    ///
    /// A string in a place that holds no secret is returned as it is.
    pub fn value<'t>(&self, key: Option<&str>, text: &'t str) -> Redacted<'t> {
        match self.change(key, text) {
            Change::Masks(masks) if masks.is_empty() => Redacted { text: Cow::Borrowed(text), findings: Vec::new() },
            Change::Masks(masks) => Redacted {
                text: Cow::Owned(masked(text, &masks)),
                findings: masks.into_iter().map(|mask| mask.finding).collect(),
            },
            Change::Whole(text) => Redacted { text: Cow::Owned(text), findings: Vec::new() },
        }
    }

    fn change(&self, key: Option<&str>, text: &str) -> Change {
        match &self.rules {
            Rules::Table(engine, style) => Change::Masks(engine.masks(key, text, *style)),
            Rules::Code(_) if key.is_some_and(fields::is_sealed) => Change::nothing(),
            Rules::Code(rules) => custom::scrubbed(rules, key, text).map_or_else(Change::nothing, Change::Whole),
        }
    }

    /// What becomes of a string that is a part of a private key.
    fn whole_key(&self, text: &str) -> Change {
        let Some((engine, style)) = self.engine() else { return Change::nothing() };
        let span = 0..text.trim_end().len();
        let found = Found { rule: "private-key", with_quotes: span.clone(), span, is_hashed: true, is_certain: true };
        Change::Masks(vec![engine.mask(text, &found, style)])
    }

    /// The table's rules; none if they are in code.
    fn engine(&self) -> Option<(&Engine, Style)> {
        match &self.rules {
            Rules::Table(engine, style) => Some((engine.as_ref(), *style)),
            Rules::Code(_) => None,
        }
    }

    /// Whether everything in this file is a secret: `.env`, `credentials.json`, `~/.ssh/id_*`. Reads nothing.
    pub fn is_sensitive_file(&self, path: &str) -> bool {
        self.engine().is_some_and(|(engine, _)| engine.files.is_sensitive(path))
    }

    /// Whether the path of such a file could be in a text: fast, and usually not.
    pub fn may_name_sensitive_file(&self, text: &[u8]) -> bool {
        self.engine().is_some_and(|(engine, _)| engine.files.may_be_named_in(text))
    }

    /// The placeholder for a secret that the caller found, such as the content of a sensitive file.
    pub fn placeholder(&self, kind: &str, secret: &str) -> String {
        let mut out = String::new();
        match self.engine() {
            Some((engine, style)) => engine.write_placeholder(&mut out, kind, Some(secret), style),
            None => out.push_str("[REDACTED]"),
        }
        out
    }

    /// Whether a placeholder could have this word in it, in lower case: a masked text can have words that the text did not have.
    pub fn may_write(&self, word: &str) -> bool {
        let is_hash = word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some((engine, _)) = self.engine() else { return true };
        let names = kinds::all().map(|kind| kind.name).chain(engine.users.names()).chain(OTHER_KINDS.iter().copied());
        is_hash || names.flat_map(|name| name.split('-')).any(|piece| piece.starts_with(word))
    }

    /// A number that is another one when other texts are masked: what was derived from masked text is then out of date. The
    /// key does not count; rules in code have none.
    pub fn fingerprint(&self) -> u64 {
        self.engine().map_or(0, |(engine, style)| engine.fingerprint ^ style as u64)
    }

    /// How many keywords are in a text: the part of the work that every text needs, for measurements.
    #[doc(hidden)]
    pub fn count_keywords(&self, text: &str) -> usize {
        SCANNER.count_keywords(text)
    }
}

impl Engine {
    /// What to mask in a text, in order, so that nothing more is found in what remains: a placeholder ends the name or the word
    /// before it, where the secret went on.
    fn masks(&self, key: Option<&str>, text: &str, style: Style) -> Vec<Mask> {
        let mut masks = self.masks_at_sight(key, text, style);
        for _ in 0..MORE_LOOKS {
            if masks.is_empty() {
                break;
            }
            let more = match text.len() <= LONG_TEXT_BYTES {
                true => in_original(&masks, 0, self.masks_at_sight(key, &masked(text, &masks), style)),
                false => self.more_masks_nearby(text, &masks, style),
            };
            if more.is_empty() {
                break;
            }
            masks.extend(more);
            masks.sort_by_key(|mask| mask.span.start);
        }
        masks
    }

    /// What is found around the masks of a long text once they are there: a copy of all of it would take as much memory as it does.
    /// No rule looks further than this from a mask.
    fn more_masks_nearby(&self, text: &str, masks: &[Mask], style: Style) -> Vec<Mask> {
        let (mut all, mut judged, mut at) = (Vec::new(), 0, 0);
        while at < masks.len() {
            let first = masks[at].span.start;
            while at < masks.len() && masks[at].span.end - first < LONG_TEXT_BYTES {
                at += 1;
            }
            at = at.max(masks.partition_point(|mask| mask.span.start <= first));
            let last = masks[at - 1].span.end;
            let (start, end) = (first.saturating_sub(NEARBY_BYTES), text.len().min(last + NEARBY_BYTES));
            // What is at the edge of a part may look like something else, so it reaches further than what counts.
            let part = around(text, start.saturating_sub(NEARBY_BYTES)..text.len().min(end + NEARBY_BYTES), masks);
            let known = masks.partition_point(|mask| mask.span.end <= part.start)
                ..masks.partition_point(|mask| mask.span.end <= part.end);
            let known = &masks[known];
            let found = self.masks_at_sight(None, &masked_part(text, part.clone(), known), style);
            let mut more = in_original(known, part.start, found);
            more.retain(|mask| mask.span.start >= start.max(judged) && mask.span.start < end);
            judged = end;
            all.extend(more);
        }
        all
    }

    /// What to mask in a text as it is, in order.
    fn masks_at_sight(&self, key: Option<&str>, text: &str, style: Style) -> Vec<Mask> {
        // The most frequent strings of any log, decided at once.
        let is_kind = text.len() < MIN_TOKEN_BYTES
            && key.is_some_and(fields::is_kind)
            && self.users.is_empty()
            && self.masked.is_none();
        if is_kind || fields::is_instant(text) {
            return Vec::new();
        }
        let mut found = Vec::new();
        match key.map(|key| (key, fields::place(key, text))) {
            Some((_, fields::Place::Opaque)) => {}
            Some((_, fields::Place::Id)) => self.certain(text, &mut found),
            Some((key, fields::Place::Open)) => self.keyed(key, text, &mut found),
            None => self.find(text, &mut found, None),
        }
        if found.is_empty() {
            return Vec::new();
        }
        let settled = self.settled(text, found);
        settled.into_iter().map(|found| self.mask(text, &found, style)).collect()
    }

    /// Everything in a text, in no order.
    fn find<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>, open: Option<&mut Open>) {
        // Most strings of JSON are names and kinds: no rule finds anything in a short word.
        if open.is_none()
            && self.masked.is_none()
            && text.len() < MIN_TOKEN_BYTES
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return self.users.find(text, found);
        }
        SCANNER.scan(text, found, open);
        self.users.find(text, found);
        if let Some(masked) = &self.masked {
            masked.find(text, |span| {
                found.push(Found {
                    rule: "masked-value",
                    with_quotes: span.clone(),
                    span,
                    is_hashed: true,
                    is_certain: true,
                });
            });
        }
    }

    /// Everything in a string with a key: the key may say what the string is, or what to look for in it.
    fn keyed<'r>(&'r self, key: &str, text: &str, found: &mut Vec<Found<'r>>) {
        self.find(text, found, None);
        let value = text.trim();
        let promise = names::promise(key);
        if let Some(promise) =
            promise.filter(|promise| values::is_plausible(value, promise.strength, values::Written::Quoted))
            && !(names::is_verb(key) && values::is_sentence(value))
        {
            let start = text.len() - text.trim_start().len();
            let (span, is_hashed) = (start..start + value.len(), promise.kind != "password");
            found.push(Found { rule: promise.kind, with_quotes: span.clone(), span, is_hashed, is_certain: false });
        } else if key.len() <= names::MAX_NAME_BYTES
            && text.len() <= values::MAX_VALUE_BYTES
            && (promise.is_some() || SCANNER.has_keyword(key))
        {
            let (together, start) = (format!("{key}: {text}"), key.len() + 2);
            let mut more = Vec::new();
            SCANNER.scan(&together, &mut more, None);
            more.retain(|found| found.with_quotes.start >= start);
            let shifted = |range: Range<usize>| range.start - start..range.end - start;
            found.extend(more.into_iter().map(|found| Found {
                span: shifted(found.span),
                with_quotes: shifted(found.with_quotes),
                ..found
            }));
        }
    }

    /// In a field for ids, only vendors' tokens.
    fn certain<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>) {
        // Every record has several of these.
        if self.masked.is_none() && self.users.is_empty() && fields::is_uuid(text) {
            return;
        }
        self.find(text, found, None);
        found.retain(|found| found.is_certain);
    }

    /// The findings that count, in order and apart from each other.
    fn settled<'r>(&self, text: &str, mut found: Vec<Found<'r>>) -> Vec<Found<'r>> {
        // What is masked stays: nothing in a placeholder or across it is a secret.
        let marks: Vec<usize> = memmem::find_iter(text.as_bytes(), b"[REDACTED").collect();
        if !marks.is_empty() {
            let zone = |mark: usize| mark..scan::placeholder_end(text, mark).unwrap_or(mark + 1);
            let touches = |span: &Range<usize>| {
                let next = marks.partition_point(|mark| *mark < span.end);
                marks[..next].last().is_some_and(|mark| zone(*mark).end > span.start)
            };
            found.retain(|found| !touches(&found.with_quotes));
        }
        found.retain(|found| !self.users.allows(&text[found.span.clone()]));
        found.sort_by_key(|found| (found.span.start, std::cmp::Reverse(found.span.end), !found.is_certain));
        let mut settled: Vec<Found<'r>> = Vec::new();
        for next in found {
            match settled.last_mut() {
                Some(last) if next.span.start < last.span.end || next.with_quotes.start < last.with_quotes.end => {
                    let names_better = next.is_certain && !last.is_certain && next.span.len() * 2 > last.span.len();
                    if names_better {
                        (last.rule, last.is_hashed, last.is_certain) = (next.rule, next.is_hashed, true);
                    }
                    last.span.end = last.span.end.max(next.span.end);
                    last.with_quotes = last.with_quotes.start.min(next.with_quotes.start)
                        ..last.with_quotes.end.max(next.with_quotes.end);
                }
                _ => settled.push(next),
            }
        }
        settled
    }

    fn mask(&self, text: &str, found: &Found<'_>, style: Style) -> Mask {
        let secret = &text[found.span.clone()];
        // A key is the same one however its lines are broken.
        let is_block = found.rule == "private-key";
        let secret = if is_block { Cow::Owned(blocks::in_one_line(secret)) } else { Cow::Borrowed(secret) };
        let hash = found.is_hashed.then(|| self.hash(&secret)).flatten();
        let mut placeholder = String::new();
        write_placeholder(&mut placeholder, found.rule, hash.as_deref(), style);
        let finding = Finding { rule: found.rule.to_owned(), span: found.span.clone(), hash };
        Mask { span: masked_span(found, style), placeholder, finding }
    }

    fn write_placeholder(&self, out: &mut String, kind: &str, secret: Option<&str>, style: Style) {
        write_placeholder(out, kind, secret.and_then(|secret| self.hash(secret)).as_deref(), style);
    }

    /// Tells secrets apart and gives none of them away; `None` without a key.
    fn hash(&self, secret: &str) -> Option<String> {
        let key = match &self.key {
            Key::None => None,
            Key::Known(key) => Some(*key),
            Key::WhenNeeded(ask) => *self.asked_key.get_or_init(|| ask()),
        };
        let hash = blake3::keyed_hash(&key?, secret.as_bytes()).to_hex();
        Some(hash[..8].to_owned())
    }
}

/// A text with placeholders.
fn masked(text: &str, masks: &[Mask]) -> String {
    masked_part(text, 0..text.len(), masks)
}

/// A part of a text with placeholders. The masks are in it.
fn masked_part(text: &str, part: Range<usize>, masks: &[Mask]) -> String {
    let mut out = String::with_capacity(part.len());
    let mut copied = part.start;
    for mask in masks {
        out.push_str(&text[copied..mask.span.start]);
        out.push_str(&mask.placeholder);
        copied = mask.span.end;
    }
    out.push_str(&text[copied..part.end]);
    out
}

/// Where masks are in a text that were found in what others leave of the part that starts here.
fn in_original(masks: &[Mask], part: usize, mut more: Vec<Mask>) -> Vec<Mask> {
    let mut masks = masks.iter().peekable();
    // What the masks so far took away and put in its place.
    let (mut taken, mut put) = (part, 0);
    for next in &mut more {
        while let Some(mask) = masks.next_if(|mask| mask.span.start + put < next.span.start + taken) {
            taken += mask.span.len();
            put += mask.placeholder.len();
        }
        let original = |span: &Range<usize>| span.start + taken - put..span.end + taken - put;
        (next.span, next.finding.span) = (original(&next.span), original(&next.finding.span));
    }
    more
}

/// A part of a text that ends neither in a character nor in a mask.
fn around(text: &str, part: Range<usize>, masks: &[Mask]) -> Range<usize> {
    let cut = |at: usize| masks.iter().find(|mask| mask.span.start < at && at < mask.span.end);
    let start = cut(part.start).map_or(text.floor_char_boundary(part.start), |mask| mask.span.start);
    let end = cut(part.end).map_or(text.ceil_char_boundary(part.end), |mask| mask.span.end);
    start..end
}

fn write_placeholder(out: &mut String, kind: &str, hash: Option<&str>, style: Style) {
    match (style, hash) {
        (Style::Plain, _) => out.push_str("[REDACTED]"),
        (Style::Hashed, None) => out.extend(["[REDACTED:", kind, "]"]),
        (Style::Hashed, Some(hash)) => out.extend(["[REDACTED:", kind, ":", hash, "]"]),
    }
}

/// What a placeholder replaces.
fn masked_span(found: &Found<'_>, style: Style) -> Range<usize> {
    match style {
        Style::Hashed => found.span.clone(),
        Style::Plain => found.with_quotes.clone(),
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the key nor what is masked.
        match &self.rules {
            Rules::Table(_, style) => f.debug_struct("Redactor").field("style", style).finish_non_exhaustive(),
            Rules::Code(rules) => f.debug_struct("Redactor").field("rules", &rules.len()).finish_non_exhaustive(),
        }
    }
}

/// The placeholders in a text: what they stand for is not in it.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let marks = memmem::find_iter(text.as_bytes(), b"[REDACTED");
    marks.filter_map(|start| text.get(start..scan::placeholder_end(text, start)?))
}

#[cfg(test)]
mod tests;
