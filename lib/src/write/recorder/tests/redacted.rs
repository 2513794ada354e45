//! What must not be written down is in no file, whatever was said, in every format.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::again::{answer_of, text_of};
use super::bodies;
use super::*;
use crate::model::record::Body;
use crate::redact::{self, Rules};

/// Every string that was looked at ends in it.
const MARK: char = '¶';

/// The strings of a JSON value that nobody looked at: keys too, but not what signatures say, and an empty one hides nothing.
fn unmarked(value: &Value) -> Vec<String> {
    const SIGNATURES: [&str; 4] = ["signature¶", "thoughtSignature¶", "encrypted_content¶", "encryptedContent¶"];
    let (mut unmarked, mut open) = (Vec::new(), vec![value]);
    let mut look = |text: &String| unmarked.extend((!text.is_empty() && !text.ends_with(MARK)).then(|| text.clone()));
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => look(text),
            Value::Array(values) => open.extend(values),
            Value::Object(map) => {
                map.keys().for_each(&mut look);
                open.extend(map.iter().filter(|(key, _)| !SIGNATURES.contains(&key.as_str())).map(|(_, value)| value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    unmarked
}

/// The ids by which records and calls are found: they are written as they are.
fn ids_of(body: &Body) -> Vec<String> {
    redact::ids_of(body, [])
}

#[test]
fn every_string_of_every_body_is_looked_at_before_it_is_written() {
    let mark = |text: &mut String| {
        if !text.ends_with(MARK) {
            text.push(MARK);
        }
    };
    redact::tests::RULES.set(Some(Rules { scrub: mark, hold: redact::tests::NOTHING_HELD }));
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 60, ..Config::default() });
    let walked = runner.run(&bodies::several(), |bodies| {
        for dialect in again::written() {
            let machine = Machine::new(dialect, 0);
            let mut recorder = machine.start().unwrap();
            let mut known: Vec<String> = vec![new().id.unwrap().to_owned()];
            for body in &bodies {
                known.extend(ids_of(body));
                // What a format has no place for is not written.
                drop(recorder.record(body.clone()));
                drop(recorder.delta(Delta::Text("streamed".to_owned())));
            }
            drop(recorder.close());
            let is_made = |text: &String| text.starts_with("0199a3f0-") || text.starts_with("at-");
            for name in machine.sim.names() {
                let Some(bytes) = machine.sim.read(&name.to_string_lossy()) else { continue };
                for line in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
                    let mut missed = unmarked(&line.unwrap());
                    missed.retain(|text| !is_made(text) && !known.contains(text));
                    prop_assert_eq!(&missed, &[""; 0], "{} in {}", dialect.name(), name.display());
                }
            }
        }
        Ok(())
    });
    redact::tests::RULES.set(None);
    walked.unwrap();
}

#[test]
fn a_call_whose_end_is_held_back_is_told_when_that_is_written() {
    let three = |text: &str| text.len().min(3);
    redact::tests::RULES.set(Some(redact::Rules { scrub: |_| (), hold: three }));
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    let held = |ack: Result<Ack>| if let Ok(Ack::Held { ticket }) = ack { ticket } else { panic!("{ack:?}") };
    let first = held(recorder.delta(Delta::Text("abcde".to_owned())));
    assert!(text_of(&machine).contains("\"ab\""));
    assert_eq!(recorder.settled(), []);
    let second = held(recorder.delta(Delta::Text("fg".to_owned())));
    assert_eq!(recorder.settled(), []);
    let third = held(recorder.delta(Delta::Text("h".to_owned())));
    assert_eq!(recorder.settled().iter().map(|saved| saved.ticket).collect::<Vec<_>>(), [first]);
    recorder.release().unwrap();
    assert_eq!(recorder.settled().iter().map(|saved| saved.ticket).collect::<Vec<_>>(), [second, third]);
    recorder.finish_answer(None).unwrap();
    redact::tests::RULES.set(None);
    assert_eq!(answer_of(&machine).parts, [Part::text("abcdefgh")]);
}
