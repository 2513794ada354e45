//! Redaction: what is masked, what stays, and what holds for every text.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod by_file;
#[path = "../support/effort.rs"]
mod effort;
mod fakes;
mod json;
mod properties;
mod settings;
mod stream;
mod text;

use scrollback::redact::{Redactor, Settings, Style};

pub(crate) fn redactor() -> Redactor {
    Redactor::new(Settings::with_key([7; 32])).unwrap()
}

pub(crate) fn plain() -> Redactor {
    Redactor::new(Settings { style: Style::Plain, ..Settings::with_key([7; 32]) }).unwrap()
}

/// How many cases a property runs: few at a push, all under `cargo xtask torture`.
pub(crate) fn cases(push: u32, full: u32) -> u32 {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { full } else { push }
}
