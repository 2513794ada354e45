//! A text in pieces is redacted like the whole.

use super::fakes;
use super::redactor;
use scrollback::redact::Stream;

/// The pieces that a stream lets go, and the most that it held back.
fn streamed(pieces: &[&str]) -> (String, usize) {
    let redactor = redactor();
    let (mut stream, mut out, mut most) = (Stream::new(), String::new(), 0);
    for piece in pieces {
        out += &stream.push(&redactor, piece);
        most = most.max(stream.held_back());
    }
    out += &stream.finish(&redactor);
    (out, most)
}

#[test]
fn split_anywhere_is_the_whole() {
    let redactor = redactor();
    for (text, _) in fakes::all(5) {
        let text = format!("Some words before. {text} And some 42 words after, é.");
        let whole = redactor.text(&text).text.into_owned();
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (out, _) = streamed(&[&text[..at], &text[at..]]);
            assert_eq!(out, whole, "cut at {at}: {:?} | {:?}", &text[..at], &text[at..]);
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(streamed(&letters).0, whole);
    }
}

/// Cut at every place, and letter by letter, a text is redacted like the whole.
fn check_split(text: &str) {
    let whole = redactor().text(text).text.into_owned();
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(
            streamed(&[&text[..at], &text[at..]]).0,
            whole,
            "cut at {at}: {:?} | {:?}",
            &text[..at],
            &text[at..]
        );
    }
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(streamed(&letters).0, whole);
}

#[test]
fn rows_of_a_table_are_judged_by_its_header_in_pieces_too() {
    for text in [
        "before\nuser,password,mail\nada,tide4x9!,a@x.org\nbob,kelp-27q%,b@x.org\nafter all, that is it\n",
        "| user | password |\n|---|---|\n| ada | tide4x9! |\n| bob | kelp27q% |\n\nafter",
        "INSERT INTO u (name, password) VALUES ('ada', 'tide4x9!'), ('bob', 'kelp27q%'); SELECT 1;",
        "a,token\nno row\nand more text",
    ] {
        check_split(text);
    }
}

#[test]
fn an_iban_in_small_letters_is_masked_whole_in_pieces_too() {
    for text in [
        "my iban is gb82 west 1234 5698 7654 32 as you know",
        "iban=de89 3704 0044 0532 0130 00, and so on",
        "iban of the account that I told you about last week: gb82 west 1234 5698 7654 32",
    ] {
        assert!(redactor().text(text).text.contains("[REDACTED:iban]"), "{text}");
        check_split(text);
    }
}

#[test]
fn what_only_the_words_after_it_show_is_masked_in_pieces_too() {
    for (text, kind) in [
        ("so then: tide4x9 is my password, as you know", "password"),
        ("use tide4x9 as the root password on both", "password"),
        ("enter tide4x9! when asked for the password and go on", "password"),
        ("well, 219-09-9998 is my SSN and that is it", "ssn"),
        ("it says 219-09-9998 (SSN) on the form", "ssn"),
    ] {
        assert!(redactor().text(text).text.contains(&format!("[REDACTED:{kind}]")), "{text}");
        check_split(text);
    }
    for text in ["tide4x9 is my password manager of choice", "release v2.0.1-rc1 is as good as the last password one"] {
        assert_eq!(redactor().text(text).text, text);
        check_split(text);
    }
}

#[test]
fn a_header_far_before_a_row_is_forgotten() {
    let rows: String = (0..600).map(|row| format!("user{row},tide{row}x9!,user{row}@example.org\n")).collect();
    let text = format!("user,password,mail\n{rows}");
    assert!(!redactor().text(&text).text.contains("x9!"));
    let pieces: Vec<&str> = text.split_inclusive('\n').collect();
    let (out, most) = streamed(&pieces);
    assert!(!out.contains("tide99x9!") && most < 16 * 1024, "{most}");
}

#[test]
fn a_key_in_a_log_is_the_same_in_pieces() {
    let lines: String =
        (1..4).map(|at| format!("12:00:0{at} app[1]: {}\n", fakes::signs(at, fakes::BASE64, 64))).collect();
    let label = format!("{} KEY-----", "RSA PRIVATE");
    check_split(&format!("start\n12:00:00 app[1]: -----BEGIN {label}\n{lines}12:00:09 app[1]: -----END {label}\nend"));
}

#[test]
fn a_key_with_headers_is_masked_whole_in_every_layout_and_in_pieces() {
    let label = format!("{} KEY-----", "RSA PRIVATE");
    let body = |at| fakes::signs(at, fakes::BASE64, 64);
    let dek = format!("DEK-Info: AES-128-CBC,{}", "0A1B2C3D4E5F6071".repeat(2));
    let (begin, end) = (format!("-----BEGIN {label}"), format!("-----END {label}"));
    let lines = [begin, "Proc-Type: 4,ENCRYPTED".into(), dek, String::new(), body(1), body(2), body(3), end];
    let layouts: [fn(usize, &str) -> String; 10] = [
        |_, line| format!("{line}\n"),
        |_, line| format!("    {line}\n"),
        |_, line| format!("+{line}\n"),
        |_, line| format!("> {line}\n"),
        |at, line| format!("{at:6}\t{line}\n"),
        |at, line| format!("2026-01-11T22:00:0{at}Z app[1]: {line}\n"),
        |at, line| format!("keys/id_rsa{sign}{at}{sign}{line}\n", sign = if at == 0 { ':' } else { '-' }),
        |at, line| format!("id_rsa{}{line}\n", if at == 0 { ':' } else { '-' }),
        |_, line| format!("\"{line}\",\n"),
        |_, line| format!("\"{line}\\n\" +\n"),
    ];
    for layout in layouts {
        let key: String = lines.iter().enumerate().map(|(at, line)| layout(at, line)).collect();
        let text = format!("é:\n{key}ok\n");
        let whole = redactor().text(&text).text.into_owned();
        let leaked = (1..4).find(|at| whole.contains(&body(*at)[..12]));
        assert!(whole.contains("[REDACTED:private-key:") && leaked.is_none(), "{whole}");
        check_split(&text);
    }
}

#[test]
fn plain_text_flows_and_only_a_key_is_held_for_long() {
    let prose = "The tide comes in twice a day. ".repeat(2000);
    let pieces: Vec<&str> = prose.split_inclusive(' ').collect();
    let (out, most) = streamed(&pieces);
    assert_eq!(out, prose);
    assert!(most < 64, "{most}");
    let run = "a1B2c3D4".repeat(8000);
    let pieces: Vec<&str> = run.as_bytes().chunks(1000).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let (out, most) = streamed(&pieces);
    assert_eq!(out, run);
    assert!(most <= 16 * 1024, "{most}");
    let lines: Vec<String> = (1..400).map(|seed| fakes::signs(seed, fakes::BASE64, 64) + "\n").collect();
    let key = format!("-----BEGIN {0} KEY-----\n{1}-----END {0} KEY-----\n", "PRIVATE", lines.concat());
    let pieces: Vec<&str> = key.split_inclusive('\n').collect();
    let (out, most) = streamed(&pieces);
    assert!(out.starts_with("[REDACTED:private-key:") && out.len() < 40, "{out}");
    assert!(most > 16 * 1024);
}
