//! What must not be written down is in no file, whatever was said, in every format.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::again::{answer_of, text_of};
use super::bodies;
use super::*;
use crate::model::message::{ToolPart, ToolState};
use crate::model::record::{Before, Body, FileState, Snapshot};
use crate::redact::{Redactor, Rule};
use crate::write::recorder::lines::{call_ids, exact_words};
use std::borrow::Cow;
use std::path::PathBuf;

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
    Machine { options: Options { redactor, ..Options::unredacted() }, ..Machine::new(dialect, 0) }
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
                known.extend(exact_words(body).into_iter().map(Cow::into_owned));
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
    let mut machine = machine(&Native, Three);
    machine.host.now = Arc::new(|| Timestamp::UNIX_EPOCH);
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

#[test]
fn nothing_is_held_back_for_more_than_a_second() {
    let machine = machine(&Native, Three);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    // The clock moves on by 300 ms whenever it is read.
    let saved: Vec<u64> = ["abc", "d", "e", "f", "g"]
        .into_iter()
        .map(|piece| {
            recorder.delta(Delta::Text(piece.to_owned())).unwrap();
            recorder.saved_through()
        })
        .collect();
    assert_eq!(saved, [1, 1, 4, 4, 4]);
}

#[test]
fn a_snapshot_with_a_secret_names_a_blob_with_the_true_bytes() {
    let machine = Machine { options: Options::usual(), ..Machine::new(&Native, 0) };
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    let secret = "db_password = \"swordfish7\"\n";
    let inline = |path: &str, text: &str| FileState { before: Before::Inline(text.to_owned()), ..FileState::new(path) };
    let files = vec![inline("app.toml", secret), inline("notes.md", "harbour"), inline(".env", "LIGHTS=seven")];
    recorder.record(Body::Snapshot(Snapshot { files, ..Snapshot::default() })).unwrap();
    recorder.close().unwrap();
    let log = text_of(&machine);
    assert!(!log.contains("swordfish7") && !log.contains("seven") && log.contains("harbour"), "{log}");
    let is_blob = |name: &&PathBuf| name.file_name().is_some_and(|name| name.len() == 64);
    let blobs = machine.sim.names().iter().filter(is_blob).count();
    assert_eq!(blobs, 2);
    let name = blake3::hash(secret.as_bytes()).to_hex().to_string();
    let hash = crate::model::hash::sha256(secret.as_bytes());
    let backup = format!("{{\"backupPath\":\"blob:{name}\",\"originalHash\":\"{hash}\"}}");
    assert!(log.contains(&backup), "{log}");
    let packed = machine.sim.read(&format!("{STORE}/blobs/{}/{name}", &name[..2])).unwrap();
    assert_eq!(zstd::bulk::decompress(&packed, 1000).unwrap(), secret.as_bytes());
}

/// Everything that is on the disk.
fn all_files(machine: &Machine) -> String {
    let read = |name: PathBuf| machine.sim.read(&name.to_string_lossy());
    let files = machine
        .sim
        .names()
        .into_iter()
        .filter_map(read)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    files.collect::<Vec<_>>().join("\n")
}

/// Formats repeat the beginning of a prompt, which may end in the middle of a secret.
#[test]
fn no_part_of_a_secret_is_written_wherever_it_is_in_a_prompt() {
    let secret = "Kx93jdkw02Zt8Qm4Vb7Lc1";
    let pieces: Vec<&str> = (0..=secret.len() - 8).map(|at| &secret[at..at + 8]).collect();
    for dialect in again::written() {
        for offset in 0..240 {
            let machine = Machine { options: Options::usual(), ..Machine::new(dialect, 0) };
            let mut recorder = machine.start().unwrap();
            let words: String = "look at the tide ".chars().cycle().take(offset).collect();
            let first = recorder.user(format!("{words} postgres://u:{secret}@h/x")).unwrap();
            recorder.user("between").unwrap();
            // A new branch, where a format allows one, names its prompt again.
            drop(first.saved.map(|first| recorder.rewind(&first.id, None)));
            drop(recorder.user(format!("{words} postgres://u:{secret}@h/y")));
            drop(recorder.close());
            let written = all_files(&machine);
            let left: Vec<_> = pieces.iter().filter(|piece| written.contains(**piece)).collect();
            assert_eq!(left, [&""; 0], "{} at {offset}: {written}", dialect.name());
        }
    }
}

/// What the built-in rules find is in no file, whole or in pieces, and what they must not change is unchanged.
#[test]
fn secrets_are_not_written_in_any_format() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5");
    for dialect in again::written() {
        let options = Options { durability: None, ..Options::usual() };
        let machine = Machine { options, ..Machine::new(dialect, 0) };
        let mut recorder = machine.start().unwrap();
        recorder.user(format!("my key is {token}, and the password is swordfish7")).unwrap();
        for piece in ["here: ", &token[..9], &token[9..25], &token[25..], " and more\n"] {
            recorder.delta(Delta::Text(piece.to_owned())).unwrap();
        }
        let input = serde_json::json!({"file_path": ".env"});
        let call = ToolPart::dynamic("Read", "call_1", ToolState::InputAvailable { input });
        drop(recorder.delta(Delta::Part(Part::Tool(Box::new(call.clone())))));
        drop(recorder.finish_answer(None));
        drop(recorder.tool_result(&call, Ok(serde_json::json!("HARBOUR_LIGHTS=at seven"))));
        recorder.user("go on").unwrap();
        drop(recorder.close());
        let written = all_files(&machine);
        for secret in [&token[4..12], &token[20..28], &token[32..], "swordfish7", "at seven"] {
            assert!(!written.contains(secret), "{secret} in {}: {written}", dialect.name());
        }
        let placeholder = if dialect.name() == "sage-el" { "[REDACTED]" } else { "[REDACTED:github-token]" };
        assert!(written.contains(placeholder), "{}: {written}", dialect.name());
    }
}
