//! What holds for every redaction.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::redact::{Redactor, Settings, Stream, Style, has_end_alone};

/// A masked secret of one character becomes a placeholder of at most so many.
const PLACEHOLDER_BYTES: usize = 80;

/// Any bytes as a text, as a line of JSON, and as a string in one.
pub fn redaction(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for style in [Style::Hashed, Style::Plain] {
        let Ok(redactor) = Redactor::new(Settings { style, ..Settings::with_key([7; 32]) }) else { return };
        redaction_of(&redactor, &text);
        let once = redactor.line(bytes).bytes.into_owned();
        assert_eq!(redactor.line(&once).bytes, once, "a line twice: {text:?}");
    }
}

/// Idempotent, bounded, the same in JSON and in pieces.
pub fn redaction_of(redactor: &Redactor, text: &str) {
    let redacted = redactor.text(text);
    let once = redacted.text.into_owned();
    assert_eq!(redactor.text(&once).text, once, "twice: {text:?}");
    assert!(once.len() <= text.len() + redacted.findings.len() * PLACEHOLDER_BYTES, "too long: {text:?}");
    let record = serde_json::json!({"a": [{"text": text}, 1.50, null]});
    let line = record.to_string();
    let masked = redactor.line(line.as_bytes()).bytes;
    let value: Option<Value> = serde_json::from_slice(&masked).ok();
    assert_eq!(value, Some(serde_json::json!({"a": [{"text": once}, 1.50, null]})), "in JSON: {text:?}");
    // The last line of a private key whose first one is missing says that the lines before it, which a stream let go, were one.
    if has_end_alone(text) {
        return;
    }
    let at = text.floor_char_boundary(xxh3_64(text.as_bytes()) as usize % (text.len() + 1));
    for at in [at, text.floor_char_boundary(text.len() / 2)] {
        let mut stream = Stream::new();
        let mut pieces = stream.push(redactor, &text[..at]);
        pieces += &stream.push(redactor, &text[at..]);
        pieces += &stream.finish(redactor);
        assert_eq!(pieces, once, "cut at {at}: {:?} | {:?}", &text[..at], &text[at..]);
    }
}
