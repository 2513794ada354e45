//! What users add: rules, allow-lists, files, values.

use super::{Redactor, Settings};
use scrollback::redact::{RuleError, UserRule};

fn rule(name: &str, keywords: &[&str], pattern: &str) -> UserRule {
    UserRule {
        name: name.to_owned(),
        keywords: keywords.iter().map(|word| (*word).to_owned()).collect(),
        pattern: pattern.to_owned(),
    }
}

fn with(change: impl FnOnce(&mut Settings)) -> Result<Redactor, RuleError> {
    let mut settings = Settings::with_key([7; 32]);
    change(&mut settings);
    Redactor::new(settings)
}

#[test]
fn a_rule_of_the_user_masks_its_group_or_its_match() {
    let redactor = with(|settings| {
        settings.rules = vec![rule("harbour", &["berth"], r"berth (?<secret>\d+)"), rule("buoy", &[], r"B-\d{4}")]
    })
    .unwrap();
    let redacted = redactor.text("berth 12345 at B-0042").text.into_owned();
    assert!(redacted.starts_with("berth [REDACTED:harbour:") && redacted.contains(" at [REDACTED:buoy:"), "{redacted}");
    assert_eq!(redactor.text(&redacted).text, redacted);
}

#[test]
fn a_rule_that_cannot_be_used_is_named() {
    let broken = with(|settings| settings.rules = vec![rule("harbour", &[], "(")]).unwrap_err();
    assert!(broken.to_string().starts_with("redaction rule harbour: invalid pattern: "), "{broken}");
    let empty = with(|settings| settings.rules = vec![rule("harbour", &[], "x*")]).unwrap_err();
    assert_eq!(empty, RuleError::Empty { name: "harbour".to_owned() });
    assert!(matches!(with(|settings| settings.rules = vec![rule("a]b", &[], "x")]), Err(RuleError::Name { .. })));
    assert!(matches!(with(|settings| settings.allow = vec!["[".to_owned()]), Err(RuleError::Pattern { .. })));
    let glob = with(|settings| settings.files = vec!["*.tide".to_owned(), "[z".to_owned()]).unwrap_err();
    assert!(glob.to_string().starts_with("invalid file pattern [z: only "), "{glob}");
    let huge = with(|settings| settings.rules = vec![rule("huge", &[], "(a{1000}){1000}")]).unwrap_err();
    assert!(huge.to_string().contains("huge"));
}

#[test]
fn what_is_allowed_stays() {
    let redactor = with(|settings| settings.allow = vec!["^tide".to_owned()]).unwrap();
    assert_eq!(redactor.text("password=tide4x").text, "password=tide4x");
    assert_eq!(redactor.text("password=kelp4x").text, "password=[REDACTED:password]");
}

#[test]
fn values_are_masked_wherever_they_stand() {
    let secret = "low water at nine";
    let redactor =
        with(|settings| settings.masked = vec![secret.to_owned(), "short".to_owned(), "plover-and-knot".to_owned()])
            .unwrap();
    let redacted = redactor.text("xplover-and-knotx, low water at nine; short").text.into_owned();
    assert!(redacted.starts_with("x[REDACTED:masked-value:") && redacted.ends_with("]; short"), "{redacted}");
    assert!(!format!("{redactor:?}").contains("plover"));
    let mut stream = scrollback::redact::Stream::new();
    let mut out = String::new();
    for piece in ["say low wa", "ter at ni", "ne now"] {
        out += &stream.push(&redactor, piece);
    }
    out += &stream.finish(&redactor);
    assert_eq!(out, redactor.text("say low water at nine now").text);
}

#[test]
fn sensitive_files_are_known() {
    let redactor = with(|settings| settings.files = vec!["*.tide".to_owned()]).unwrap();
    assert!(redactor.is_sensitive_file("/srv/.env.local") && redactor.is_sensitive_file("a/b.tide"));
    assert!(!redactor.is_sensitive_file(".env.example"));
}
