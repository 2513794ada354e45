//! P18: the places of all records, bad regions and separators, joined, are the file; what is not understood survives.

use proptest::prelude::*;
use scrollback::fuzzing;
use scrollback::session::{Session, Source};

use crate::damage::{config, ids, logs};
use crate::support::{native, read, reading};

#[test]
fn every_byte_of_every_log_is_accounted_for() {
    for log in logs() {
        let session = Session::open(&Source::file(native(), &log), &reading()).unwrap();
        check(&session, 0, &std::fs::read(&log).unwrap());
        let snapshots = log.with_file_name("snapshots.jsonl");
        if snapshots.is_file() {
            check(&session, 1, &std::fs::read(snapshots).unwrap());
        }
    }
}

#[test]
fn what_is_not_understood_survives_byte_for_byte() {
    let lines = [
        r#"{"type":"user","uuid":"a","parentUuid":null, "x-ours" : [1.0, 1e2,  "\u0041"],"message":{"content":"hi","mood":null}}"#,
        r#"{ "type":"telemetry","payload":{"deep":[[[{}]]]} }"#,
        r#"{"type":"user","type":"user","uuid":"twice"}"#,
        r#"{"type":"user","uuid":"b","parentUuid":"a","timestamp":1e999}"#,
        r#"{}"#,
        r#"{"":""}"#,
    ];
    let session = read(lines.join("\r\n \t"));
    assert_eq!(session.records().len(), lines.len());
    for (record, line) in session.records().zip(lines) {
        assert_eq!(record.raw().unwrap(), [line.as_bytes()]);
    }
    let unknown: Vec<_> = session.unknown_kinds().collect();
    assert_eq!(unknown, [("telemetry", 1)]);
}

#[test]
fn a_number_is_printed_as_it_was_read() {
    let line = r#"{"role":"assistant","content":[{"type":"data-n","data":[0.1,2.2250738585072011e-308,9007199254740993,1.7976931348623157e308,0.30000000000000004,123456.78901234567]}]}"#;
    let session = read(line);
    let branch = session.branch(session.head().unwrap());
    let message = scrollback::view::Conversation::new(&branch).message(0).unwrap().unwrap();
    let data = scrollback::model::json::to_string(&serde_json::to_value(&message.parts).unwrap()[1]["data"]);
    let numbers =
        "[0.1,2.2250738585072011e-308,9007199254740993,1.7976931348623157e+308,0.30000000000000004,123456.78901234567]";
    assert_eq!(data, numbers);
}

proptest! {
    #![proptest_config(config(500, 50_000))]

    #[test]
    fn every_byte_of_a_damaged_log_is_accounted_for(
        log in prop::sample::select(logs()),
        damage in prop::sample::select(DAMAGES.to_vec()),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        let mut bytes = std::fs::read(log).unwrap();
        for place in places {
            let at = place.index(bytes.len() + 1);
            match damage {
                "" => bytes.truncate(at),
                "no LF" => {
                    let next = bytes[at..].iter().position(|byte| *byte == b'\n');
                    next.map(|step| bytes.remove(at + step));
                }
                inserted => drop(bytes.splice(at..at, inserted.bytes())),
            }
        }
        check(&read(bytes.clone()), 0, &bytes);
    }
}

const DAMAGES: &[&str] =
    &["", "no LF", "\n", "\0\0\0", "\r", "\u{feff}", "\u{1}", "{", "}", "\"", "\\", "[1]", "é", "{\"a\":1}"];

fn check(session: &Session, file: usize, bytes: &[u8]) {
    fuzzing::account_for(session, file, bytes);
    for record in session.records().filter(|record| usize::from(record.place().file) == file) {
        let (start, length) = (record.place().offset as usize, record.place().length as usize);
        let raw = record.raw().unwrap();
        assert_eq!(raw[0], &bytes[start..start + length], "{:?}", ids(session));
    }
}
