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
mod blocks;
mod jwt;
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
mod shell;
mod document;
mod custom;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use memchr::memmem;

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
pub const RULES_VERSION: u32 = 1;

/// No vendor's token is shorter.
const MIN_TOKEN_BYTES: usize = 12;

/// The rules for what must not be written.
#[derive(Clone)]
pub struct Redactor {
    engine: Option<Arc<Engine>>,
    style: Style,
    custom: Vec<Arc<dyn Rule>>,
}

/// The built-in rules and the user's.
struct Engine {
    key: Key,
    /// What [`Key::WhenNeeded`] answered.
    asked_key: OnceLock<Option<[u8; 32]>>,
    users: UserRules,
    masked: Option<Masked>,
    files: Files,
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

impl<'t> Redacted<'t> {
    /// Nothing was found.
    fn unchanged(text: &'t str) -> Redacted<'t> {
        Redacted { text: Cow::Borrowed(text), findings: Vec::new() }
    }
}

impl Redactor {
    /// The built-in rules, with the caller's settings.
    pub fn new(settings: Settings) -> Result<Redactor, RuleError> {
        let Settings { key, style, rules, allow, files, masked } = settings;
        let known = if let Key::Known(key) = key { key } else { [0; 32] };
        let engine = Engine {
            key,
            asked_key: OnceLock::new(),
            users: UserRules::new(&rules, &allow)?,
            masked: Masked::new(known, &masked),
            files: Files::new(&files)?,
        };
        Ok(Redactor { engine: Some(Arc::new(engine)), style, custom: Vec::new() })
    }

    /// Only rules in code, in this order, without the built-in ones.
    pub fn of_rules(rules: Vec<Box<dyn Rule>>) -> Redactor {
        Redactor { engine: None, style: Style::Plain, custom: rules.into_iter().map(Arc::from).collect() }
    }

    /// The built-in rules without a key, for programs that keep none: placeholders have no hash.
    pub fn built_in() -> Redactor {
        static BUILT_IN: LazyLock<Option<Redactor>> = LazyLock::new(|| Redactor::new(Settings::built_in()).ok());
        BUILT_IN.clone().unwrap_or_else(|| Redactor::of_rules(Vec::new()))
    }

    /// The same rules with placeholders that look like this.
    pub fn in_style(&self, style: Style) -> Redactor {
        Redactor { style, ..self.clone() }
    }

    /// A text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Redacted<'t> {
        self.value(None, text)
    }

    /// A string of JSON, judged with the key that it is the value of: `"password": "…"`.
    ///
    /// A string in a place that holds no secret is returned as it is.
    pub fn value<'t>(&self, key: Option<&str>, text: &'t str) -> Redacted<'t> {
        let mut redacted = match &self.engine {
            Some(engine) => engine.value(key, text, self.style),
            None => Redacted::unchanged(text),
        };
        if key.is_some_and(fields::is_sealed) {
            return redacted;
        }
        for rule in &self.custom {
            let scrubbed = rule.scrub(key, &redacted.text);
            if scrubbed != redacted.text {
                redacted.text = Cow::Owned(scrubbed.into_owned());
            }
        }
        redacted
    }

    /// Whether everything in this file is a secret: `.env`, `credentials.json`, `~/.ssh/id_*`. Reads nothing.
    pub fn is_sensitive_file(&self, path: &str) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.files.is_sensitive(path))
    }

    /// Whether the path of such a file could be in a text: fast, and usually not.
    pub fn may_name_sensitive_file(&self, text: &[u8]) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.files.may_be_named_in(text))
    }

    /// The placeholder for a secret that the caller found, such as the content of a sensitive file.
    pub fn placeholder(&self, kind: &str, secret: &str) -> String {
        let mut out = String::new();
        match &self.engine {
            Some(engine) => engine.write_placeholder(&mut out, kind, Some(secret), self.style),
            None => out.push_str("[REDACTED]"),
        }
        out
    }

    /// How many keywords are in a text: the part of the work that every text needs, for measurements.
    #[doc(hidden)]
    pub fn count_keywords(&self, text: &str) -> usize {
        SCANNER.count_keywords(text)
    }
}

impl Engine {
    fn value<'t>(&self, key: Option<&str>, text: &'t str, style: Style) -> Redacted<'t> {
        // The most frequent strings of any log, decided at once.
        let is_kind = text.len() < MIN_TOKEN_BYTES
            && key.is_some_and(fields::is_kind)
            && self.users.is_empty()
            && self.masked.is_none();
        if is_kind || fields::is_instant(text) {
            return Redacted::unchanged(text);
        }
        let mut found = Vec::new();
        match key.map(|key| (key, fields::place(key, text))) {
            Some((_, fields::Place::Opaque)) => {}
            Some((_, fields::Place::Id)) => self.certain(text, &mut found),
            Some((key, fields::Place::Open)) => self.keyed(key, text, &mut found),
            None => self.find(text, &mut found, None),
        }
        if found.is_empty() {
            return Redacted::unchanged(text);
        }
        let found = self.settled(text, found);
        self.redacted(text, &found, style)
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

    fn redacted<'t>(&self, text: &'t str, found: &[Found<'_>], style: Style) -> Redacted<'t> {
        if found.is_empty() {
            return Redacted::unchanged(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for found in found {
            let span = masked_span(found, style);
            out.push_str(&text[copied..span.start]);
            self.write_placeholder(&mut out, found.rule, found.is_hashed.then(|| &text[found.span.clone()]), style);
            copied = span.end;
        }
        out.push_str(&text[copied..]);
        let findings = found
            .iter()
            .map(|found| Finding {
                rule: found.rule.to_owned(),
                span: found.span.clone(),
                hash: found.is_hashed.then(|| self.hash(&text[found.span.clone()])).flatten(),
            })
            .collect();
        Redacted { text: Cow::Owned(out), findings }
    }

    fn write_placeholder(&self, out: &mut String, kind: &str, secret: Option<&str>, style: Style) {
        match (style, secret.and_then(|secret| self.hash(secret))) {
            (Style::Plain, _) => out.push_str("[REDACTED]"),
            (Style::Hashed, None) => out.extend(["[REDACTED:", kind, "]"]),
            (Style::Hashed, Some(hash)) => out.extend(["[REDACTED:", kind, ":", &hash, "]"]),
        }
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
        f.debug_struct("Redactor")
            .field("style", &self.style)
            .field("custom", &self.custom.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
