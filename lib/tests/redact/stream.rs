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
