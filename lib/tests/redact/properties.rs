//! What holds for every text.

use super::fakes::{self, WORD, signs};
use super::{plain, redactor};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use scrollback::fuzzing;
use scrollback::redact::Stream;

/// Texts around secrets, of everything that rules look for.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        (1..2000_u64, 0..20_usize).prop_map(|(seed, at)| fakes::all(seed)[at].0.clone()),
        (1..2000_u64, 0..20_usize).prop_map(|(seed, at)| fakes::all(seed)[at].1.clone()),
        (1..2000_u64, 1..40_usize).prop_map(|(seed, count)| signs(seed, WORD, count)),
        prop::sample::select(vec![
            "password",
            " = ",
            ": ",
            "\"",
            "'",
            "\\\"",
            "`",
            "is ",
            "token",
            "key",
            "api_key",
            "\n",
            "\\n",
            " ",
            "  ",
            "=",
            "://",
            "@",
            ":",
            "[REDACTED:token:0a1b2c3d]",
            "[REDACTED",
            "]",
            "Bearer ",
            "Basic ",
            "Cookie: ",
            "data:\n  ",
            "-----BEGIN ",
            "-----END ",
            "RSA PRIVATE KEY-----",
            "4111 1111",
            " 1111 1111",
            "DE89 3704",
            "é",
            "日本",
            "\u{200b}",
            "--",
            "|",
            ",",
            ";",
            "&",
            "?",
            "<",
            ">",
            "{",
            "}",
            "eyJ",
            "sk-",
            "ghp_",
            "curl -u ",
            "mysql -p",
            "secret",
            "SSN",
            "219-09-9998",
            "user,password\n",
            "a;token;b\n",
            "| a | password |\n|---|---|\n",
            "| x | ",
            "(name, password) VALUES ('a', '",
            "'), (",
            "\\nuser,password\\n",
            "12:00 app: ",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn run(cases: u32, test: impl Fn(String) -> Result<(), TestCaseError>) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases, ..Config::default() });
    runner.run(&texts(), test).unwrap();
}

#[test]
fn redacting_twice_is_redacting_once_and_json_keeps_its_shape() {
    let (redactor, plain) = (redactor(), plain());
    run(super::cases(2_000, 200_000), |text| {
        fuzzing::redaction_of(&redactor, &text);
        fuzzing::redaction_of(&plain, &text);
        Ok(())
    });
}

/// Only the lines of a key whose first line is missing cannot be held back: nothing says that they are one.
#[test]
fn the_last_line_of_a_key_is_the_same_in_pieces() {
    let body = "MIIEpAIBAAKCAQEA7bq98o8HhZq2mN4x9tYV3w5sKe1RfPzLd6GjUcXoWnTaQyBi\n".repeat(3);
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----");
    for text in [
        format!("before\n{key}\nafter"),
        format!("{key}{key}"),
        key.replace('\n', "\\n"),
        key.replace("RSA PRIVATE", "PUBLIC"),
        "the line -----END RSA PRIVATE KEY----- ends it".to_owned(),
        "if line.startswith('-----END'):\n    password = 'tide4x9'".to_owned(),
        "---- END SSH2 PUBLIC KEY ----\npassword: tide4x9 and more".to_owned(),
    ] {
        fuzzing::redaction_of(&redactor(), &text);
        for cut in (0..text.len()).step_by(3).filter(|cut| text.is_char_boundary(*cut)) {
            let mut stream = Stream::new();
            let mut pieces = stream.push(&redactor(), &text[..cut]);
            pieces += &stream.push(&redactor(), &text[cut..]);
            pieces += &stream.finish(&redactor());
            assert_eq!(pieces, redactor().text(&text).text, "cut at {cut}");
        }
    }
}

#[test]
fn a_placeholder_that_ends_a_name_lets_nothing_more_be_found() {
    for text in [
        "sk_live_fc76AGjazbLF726dXFwgK5vc--Bearer \u{113d5}\u{468}Authorization: Bearer yAN66BjeEX6C7LGy4nWR.yAN66BjeEX6C7LGy4nWR",
        "curl -u mysql -pcurl -u ada:mTBCco4Avu9 https://x.org",
        "y{sk-eyJ6vr9kh7R5kWH2TLpknVNN99ffPLbX46Ra.eyJ6vr9kh7R5kWH2TLpknVNN99ffPLbX46RaPBKFXLjEsuJ2ZxgKfNgHrTVYytiK6VBTGyCV7.6vr9kh7R5kWH2TLpknVNN99ffPLbX46RaPBKFXLjEsuDE89 3704 0044 0532 0130 00d2acf51cd96a5cfe0dd463c78d68034490a16d8f",
    ] {
        fuzzing::redaction_of(&redactor(), text);
    }
}
