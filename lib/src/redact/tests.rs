//! The engine's own tests are in `lib/tests/redact/`; this one is about the seam for rules in code.

use std::borrow::Cow;

use serde_json::json;

use super::*;

struct Secrets;

impl Rule for Secrets {
    fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str> {
        match key {
            Some("token") => "***".into(),
            _ if text.contains("secret") => text.replace("secret", "***").into(),
            _ => text.into(),
        }
    }
}

#[test]
fn every_string_is_seen_with_its_key_and_ids_and_signatures_stay() {
    let redactor = Redactor::of_rules(vec![Box::new(Secrets)]);
    let mut line = json!({"uuid": "secret-id", "a": ["a secret", {"b secret": {"c": "secret"}}],
        "signature": "secret", "n": 1, "token": ["abc"]});
    let text = crate::model::json::to_string(&line);
    let kept = redactor.line_keeping(&["secret-id"].into(), &mut SensitiveCalls::new(), text.as_bytes());
    line = serde_json::from_slice(&kept.bytes).unwrap();
    let wanted = json!({"uuid": "secret-id", "a": ["a ***", {"b ***": {"c": "***"}}], "signature": "secret",
        "n": 1, "token": ["***"]});
    assert_eq!(line, wanted);
}
