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
mod custom;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use memchr::memmem;

pub use custom::Rule;
pub use json::{LineFinding, RedactedLine};
pub use settings::{RuleError, Settings, Style, UserRule};
pub use stream::Stream;

use files::Files;
use masked::Masked;
use scan::{Found, Open, SCANNER};
use user_rules::UserRules;

/// Changes with every change of the rules: what an older set let through, a newer one may mask.
pub const RULES_VERSION: u32 = 1;

/// The rules for what must not be written.
pub struct Redactor {
    engine: Option<Engine>,
    custom: Vec<Box<dyn Rule>>,
}

/// The built-in rules and the user's.
struct Engine {
    key: [u8; 32],
    style: Style,
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
}

impl Redactor {
    /// The built-in rules, with the caller's settings.
    pub fn new(settings: Settings) -> Result<Redactor, RuleError> {
        let Settings { key, style, rules, allow, files, masked } = settings;
        let engine = Engine {
            key,
            style,
            users: UserRules::new(&rules, &allow)?,
            masked: Masked::new(key, &masked),
            files: Files::new(&files)?,
        };
        Ok(Redactor { engine: Some(engine), custom: Vec::new() })
    }

    /// Only rules in code, in this order, without the built-in ones.
    pub fn of_rules(rules: Vec<Box<dyn Rule>>) -> Redactor {
        Redactor { engine: None, custom: rules }
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
            Some(engine) => engine.value(key, text),
            None => Redacted { text: Cow::Borrowed(text), findings: Vec::new() },
        };
        for rule in &self.custom {
            let scrubbed = match &redacted.text {
                Cow::Borrowed(text) => rule.scrub(key, text),
                Cow::Owned(text) => Cow::Owned(rule.scrub(key, text).into_owned()),
            };
            redacted.text = scrubbed;
        }
        redacted
    }

    /// Whether everything in this file is a secret: `.env`, `credentials.json`, `~/.ssh/id_*`. Reads nothing.
    pub fn is_sensitive_file(&self, path: &str) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.files.is_sensitive(path))
    }

    /// The placeholder for a secret that the caller found, such as the content of a sensitive file.
    pub fn placeholder(&self, kind: &str, secret: &str) -> String {
        let mut out = String::new();
        match &self.engine {
            Some(engine) => engine.write_placeholder(&mut out, kind, Some(secret)),
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
    fn value<'t>(&self, key: Option<&str>, text: &'t str) -> Redacted<'t> {
        let mut found = Vec::new();
        match key.map(|key| (key, fields::place(key, text))) {
            Some((_, fields::Place::Opaque)) => {}
            Some((_, fields::Place::Id)) => self.certain(text, &mut found),
            Some((key, fields::Place::Open)) => self.keyed(key, text, &mut found),
            None => self.find(text, &mut found, None),
        }
        if found.is_empty() {
            return Redacted { text: Cow::Borrowed(text), findings: Vec::new() };
        }
        let found = self.settled(text, found);
        self.redacted(text, &found)
    }

    /// Everything in a text, in no order.
    fn find<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>, open: Option<&mut Open>) {
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

    /// In a field for ids, only what is a vendor's token as a whole.
    fn certain<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>) {
        self.find(text, found, None);
        found.retain(|found| found.is_certain && found.span == (0..text.len()));
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

    fn redacted<'t>(&self, text: &'t str, found: &[Found<'_>]) -> Redacted<'t> {
        if found.is_empty() {
            return Redacted { text: Cow::Borrowed(text), findings: Vec::new() };
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for found in found {
            let span = self.masked_span(found);
            out.push_str(&text[copied..span.start]);
            self.write_placeholder(&mut out, found.rule, found.is_hashed.then(|| &text[found.span.clone()]));
            copied = span.end;
        }
        out.push_str(&text[copied..]);
        let findings = found
            .iter()
            .map(|found| Finding { rule: found.rule.to_owned(), span: found.span.clone() })
            .collect();
        Redacted { text: Cow::Owned(out), findings }
    }

    /// What a placeholder replaces.
    fn masked_span(&self, found: &Found<'_>) -> Range<usize> {
        match self.style {
            Style::Hashed => found.span.clone(),
            Style::Plain => found.with_quotes.clone(),
        }
    }

    fn write_placeholder(&self, out: &mut String, kind: &str, secret: Option<&str>) {
        match (self.style, secret) {
            (Style::Plain, _) => out.push_str("[REDACTED]"),
            (Style::Hashed, None) => out.extend(["[REDACTED:", kind, "]"]),
            (Style::Hashed, Some(secret)) => {
                let hash = blake3::keyed_hash(&self.key, secret.as_bytes()).to_hex();
                out.extend(["[REDACTED:", kind, ":", &hash[..8], "]"]);
            }
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the key nor what is masked.
        let style = self.engine.as_ref().map(|engine| engine.style);
        f.debug_struct("Redactor")
            .field("style", &style)
            .field("custom", &self.custom.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
