//! What must not be written down is in no file, whatever was said, in every format.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::again::{answer_of, text_of};
use super::bodies;
use super::*;
use crate::redact::{Redactor, Rule};
use crate::write::recorder::lines::call_ids;
use std::borrow::Cow;

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

/// Marks every text.
struct Mark;

impl Rule for Mark {
    fn scrub<'t>(&self, _: Option<&str>, text: &'t str) -> Cow<'t, str> {
        if text.ends_with(MARK) { text.into() } else { format!("{text}{MARK}").into() }
    }
}

/// Holds three bytes back.
struct Three;

impl Rule for Three {
    fn scrub<'t>(&self, _: Option<&str>, text: &'t str) -> Cow<'t, str> {
        text.into()
    }

    fn held_back(&self, text: &str) -> usize {
        text.len().min(3)
    }
}

fn machine(dialect: &'static dyn Dialect, rule: impl Rule + 'static) -> Machine {
    let redactor = Some(Arc::new(Redactor::of_rules(vec![Box::new(rule)])));
    Machine { options: Options { redactor, ..Options::usual() }, ..Machine::new(dialect, 0) }
}

#[test]
fn every_string_of_every_body_is_looked_at_before_it_is_written() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 60, ..Config::default() });
    let walked = runner.run(&bodies::several(), |bodies| {
        for dialect in again::written() {
            let machine = machine(dialect, Mark);
            let mut recorder = machine.start().unwrap();
            let mut known: Vec<String> = vec![new().id.unwrap().to_owned()];
            for body in &bodies {
                known.extend(call_ids(body).map(str::to_owned));
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
    walked.unwrap();
}

#[test]
fn an_entry_whose_end_is_held_back_is_saved_when_that_is_written() {
    let machine = machine(&Native, Three);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    for (piece, saved_through) in [("abcde", 1), ("fg", 1), ("h", 2)] {
        assert_eq!(recorder.delta(Delta::Text(piece.to_owned())).unwrap().saved, None);
        assert_eq!(recorder.saved_through(), saved_through, "{piece}");
    }
    assert!(text_of(&machine).contains("\"ab\""));
    recorder.release().unwrap();
    assert_eq!(recorder.saved_through(), 4);
    recorder.finish_answer(None).unwrap();
    assert_eq!(answer_of(&machine).parts, [Part::text("abcdefgh")]);
}
