//! P12's shapes at a size that a push can bear; `cargo xtask torture` runs them in full.

use scrollback::model::Part;
use scrollback::view::Conversation;

use crate::damage::{content_issues, ids};
use crate::support::{cases, read};

const MIB: usize = 1024 * 1024;

#[test]
fn a_huge_line_is_a_record_like_any_other() {
    let text = "x}{\\\"".repeat(cases(8, 256) as usize * MIB / 5);
    let line = format!(r#"{{"type":"user","uuid":"huge","parentUuid":null,"message":{{"content":"{text}"}}}}"#);
    let small = r#"{"type":"user","uuid":"small","parentUuid":"huge","message":{"content":"ok"}}"#;
    let session = read(format!("{line}\n{small}\n"));
    assert_eq!((ids(&session), content_issues(&session)), (vec!["huge".into(), "small".into()], vec![]));
    let branch = session.branch(session.head().unwrap());
    let message = Conversation::new(&branch).message(0).unwrap().unwrap();
    assert!(matches!(&message.parts[0], Part::Text(part) if part.text.len() == text.len() / 5 * 4));

    let torn = read(format!("{}{small}\n", &line[..line.len() - 6]));
    assert_eq!((ids(&torn), content_issues(&torn)), (vec!["small".into()], vec!["glued 1".into(), "torn 1".into()]));
}

#[test]
fn a_huge_line_of_brackets_ends() {
    let size = cases(2, 256) as usize * MIB;
    for brackets in ["{", "[", "{\"a\":", "[{\"a\":", "}{", "\"{\""] {
        let line = brackets.repeat(size / brackets.len());
        let small = r#"{"type":"user","uuid":"small","message":{"content":"ok"}}"#;
        let session = read(format!("{line}\n{small}\n"));
        assert_eq!(ids(&session), ["small"], "{brackets}");
        assert!(session.has_errors() && session.issues().iter().all(|issue| issue.line == Some(1)), "{brackets}");
    }
    let deep = "[".repeat(size / 2) + &"]".repeat(size / 2);
    let session = read(format!(r#"{{"type":"user","uuid":"deep","message":{{"content":{deep}}}}}"#));
    let branch = session.branch(session.head().unwrap());
    assert_eq!(Conversation::new(&branch).message(0).unwrap().unwrap().id, "deep");
}

#[test]
fn a_value_over_the_limit_is_told_and_not_read() {
    if cases(0, 1) == 0 {
        return; // It takes gigabytes.
    }
    let small = br#"{"type":"user","uuid":"small","message":{"content":"ok"}}"#;
    let session = read([&vec![b'x'; 512 * MIB + 1][..], b"\n", small].concat());
    assert_eq!((ids(&session), content_issues(&session)), (vec!["small".into()], vec!["too-long 1".into()]));
}

#[test]
fn a_long_chain_is_walked() {
    let count = cases(100_000, 10_000_000) as usize;
    let mut file = String::with_capacity(count * 64);
    for at in 0..count {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        file.push_str(&format!(
            "{{\"type\":\"user\",\"uuid\":\"{at}\",\"parentUuid\":{parent},\"message\":{{\"content\":\"ok\"}}}}\n"
        ));
    }
    let session = read(file);
    assert_eq!(session.records().len(), count);
    assert!(session.issues().is_empty());
    assert_eq!(session.heads().len(), 1);
    assert_eq!(session.branch(session.head().unwrap()).records.len(), count);
}
