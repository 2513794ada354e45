//! Walks the table: every rule finds what it must, and nothing in what it must not.

use super::*;
use crate::redact::scan::SCANNER;

/// Replaces `<w36>` by 36 characters that look random and are the same in each run: `w` letters and digits, `a` the lower-case ones,
/// `u` the upper-case ones, `h` hexadecimal, `d` digits, `b` base64, `_` with dashes and underscores.
pub(super) fn expand(text: &str) -> String {
    const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut state = text.len() as u64;
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let inside = rest[at + 1..].split_once('>');
        let signs = inside.and_then(|(inside, after)| {
            let (kind, count) = inside.split_at_checked(1)?;
            let count: usize = count.parse().ok()?;
            let letters = match kind {
                "w" => format!("{LOWER}{UPPER}0123456789"),
                "a" => format!("{LOWER}0123456789"),
                "u" => format!("{UPPER}234567"),
                "h" => "0123456789abcdef".to_owned(),
                "d" => "123456789".to_owned(),
                "b" => format!("{LOWER}{UPPER}0123456789+/"),
                "_" => format!("{LOWER}{UPPER}0123456789_-"),
                _ => return None,
            };
            Some((letters, count, after))
        });
        let Some((letters, count, after)) = signs else {
            out.push('<');
            rest = &rest[at + 1..];
            continue;
        };
        for place in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let plain = if letters.len() > 36 && (place == 0 || place + 1 == count) { 26 } else { letters.len() };
            out.push(char::from(letters.as_bytes()[(state >> 33) as usize % plain]));
        }
        rest = after;
    }
    out + rest
}

fn rules_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    SCANNER.scan(text, &mut found, None);
    found.iter().map(|found| found.rule.to_owned()).collect()
}

#[test]
fn every_rule_finds_what_it_must() {
    let mut missed = Vec::new();
    for kind in all() {
        for text in kind.matches {
            let text = expand(text);
            if !rules_in(&text).iter().any(|rule| rule == kind.name) {
                missed.push(format!("{}: {text}: {:?}", kind.name, rules_in(&text)));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn no_rule_finds_anything_where_it_must_not() {
    let mut wrong = Vec::new();
    for kind in all() {
        for text in kind.spares {
            let text = expand(text);
            let found = rules_in(&text);
            if found.iter().any(|rule| rule == kind.name) {
                wrong.push(format!("{}: {text}: {found:?}", kind.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_has_texts_and_its_expression_compiles() {
    for kind in all() {
        let has_texts = !kind.matches.is_empty() && !kind.spares.is_empty();
        assert!(has_texts || matches!(kind.by, By::Value), "{} has no texts", kind.name);
        let needs_keyword = !matches!(kind.by, By::Value | By::Digits | By::Paired);
        assert!(!kind.keywords.is_empty() || !needs_keyword, "{} has no keyword", kind.name);
        if let By::Pattern(pattern) | By::Around(_, pattern) = kind.by {
            assert!(regex::Regex::new(pattern).is_ok(), "{}: {:?}", kind.name, regex::Regex::new(pattern));
        }
    }
    let names: hashbrown::HashSet<&str> = all().map(|kind| kind.name).collect();
    assert!(names.len() >= 120, "{} kinds", names.len());
}

#[test]
fn a_placeholder_is_no_secret_wherever_it_stands() {
    let redactor = crate::redact::Redactor::built_in();
    for kind in all() {
        for (before, after) in
            [("", ""), ("", "\n"), ("x\n", "\n"), ("{\"a\": 1}\n", "\n"), ("[", "]"), ("key: ", " x")]
        {
            let text = format!("{before}[REDACTED:{}:9b559b1a]{after}", kind.name);
            let bytes = text.as_bytes();
            let found = [redactor.document(bytes).findings, redactor.lines(bytes).findings].concat();
            assert!(found.is_empty() && rules_in(&text).is_empty(), "{text:?}: {found:?}");
        }
    }
}
