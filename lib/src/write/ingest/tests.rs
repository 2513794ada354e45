//! What is dictated on a disk that fails.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::Dictation;
use crate::dialect::Native;
use crate::disk::sim::{Event, Sim};
use crate::model::host::Host;
use crate::model::record::RecordId;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::recorder::{Ack, Durability, Recorder};
use crate::write::store::Store;

fn host() -> Host {
    let ids = Arc::new(AtomicU64::new(0));
    Host {
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
        new_id: Arc::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed))),
        cwd: "/gone/tides".into(),
        platform: "linux".to_owned(),
        version: "test 1".to_owned(),
    }
}

fn say(dictation: &mut Dictation, recorder: &mut Recorder, line: &str) -> Vec<Ack> {
    let sayings = dictation.hear(line.as_bytes()).unwrap().sayings;
    sayings.into_iter().map(|saying| dictation.say(saying, recorder).unwrap()).collect()
}

/// A disk that fails two times: nothing is acknowledged with the record of another line, and what is acknowledged is there.
#[test]
fn a_line_behind_one_that_is_in_doubt_is_not_taken_for_it() {
    let lines = [r#"{"user": "<1>"}"#, r#"{"user": "<2>"}"#, r#"{"user": "<3>"}"#, r#"{"assistant": "<4>"}"#];
    for (first, second) in (0..40).flat_map(|first| (0..12).map(move |second| (first, first + 1 + second))) {
        let sim = Sim::new(first, &["/home"]);
        let store = Store::on(Arc::new(sim.clone()), &Native, Path::new("/home/store"), host()).unwrap();
        let mut recorder = store.create(Path::new("/gone/tides")).unwrap();
        for step in [first, second] {
            sim.at(sim.steps() + step, Event::Fails(io::ErrorKind::Other));
        }
        let mut dictation = Dictation::default();
        let mut told: Vec<(RecordId, &str)> = Vec::new();
        for line in lines {
            for saying in dictation.hear(line.as_bytes()).unwrap().sayings {
                if let Ok(Ack::Saved(saved)) = dictation.say(saying, &mut recorder) {
                    told.push((saved.id, line));
                }
            }
        }
        let path = sim.names().into_iter().rfind(|name| name.ends_with("messages.jsonl")).unwrap();
        let log = sim.read(&path.to_string_lossy()).unwrap();
        let session = Session::from_bytes(&Native, log, &ReadOptions::plain(Timestamp::MAX));
        for (id, line) in told {
            let record = session.find(id.as_str()).unwrap();
            let word = line.split(['<', '>']).nth(1).unwrap();
            let content = format!("{:?}", record.body().unwrap());
            assert!(content.contains(&format!("<{word}>")), "failures at {first} and {second}: {line} is {content}");
        }
    }
}

/// Whichever operation fails once: a line is refused and nothing of it is there, or it is acknowledged and there once.
#[test]
fn a_sync_that_fails_once_refuses_no_line_and_doubles_none() {
    let lines = [
        r#"{"user": "<1>"}"#,
        r#"{"delta": {"text": "<2> "}}"#,
        r#"{"delta": {"text": "<3>"}}"#,
        r#"{"user": "<4>"}"#,
        r#"{"assistant": "<5>"}"#,
        r#"{"title": "<6>"}"#,
    ];
    for step in 0..200 {
        let sim = Sim::new(step, &["/home"]);
        let store = Store::on(Arc::new(sim.clone()), &Native, Path::new("/home/store"), host()).unwrap();
        let mut recorder = store.create(Path::new("/gone/tides")).unwrap();
        sim.at(sim.steps() + step, Event::Fails(io::ErrorKind::Other));
        let mut dictation = Dictation::default();
        let mut expected = Vec::new();
        for line in lines {
            let heard = dictation.hear(line.as_bytes()).unwrap();
            let was_failed = recorder.unsaved().iter().any(|unsaved| unsaved.id.is_some());
            assert!(!was_failed, "step {step}: what is in doubt is saved at once");
            let told: Vec<_> = heard.sayings.into_iter().map(|saying| dictation.say(saying, &mut recorder)).collect();
            if told.iter().all(Result::is_ok) {
                expected.push(line);
            }
        }
        recorder.close().ok();
        let path = sim.names().into_iter().rfind(|name| name.ends_with("messages.jsonl")).unwrap();
        let log = sim.read(&path.to_string_lossy()).unwrap();
        let session = Session::from_bytes(&Native, log, &ReadOptions::plain(Timestamp::MAX));
        let text: String = session.records().map(|record| format!("{:?}", record.body().unwrap())).collect();
        for (at, line) in lines.iter().enumerate() {
            let times = text.matches(&format!("<{}>", at + 1)).count();
            assert_eq!(times, usize::from(expected.contains(line)), "step {step}: {line}: {text}");
        }
    }
}

#[test]
fn a_line_is_acknowledged_when_its_sync_failed_and_the_second_did_not() {
    let sim = Sim::new(7, &["/home"]);
    let store = Store::on(Arc::new(sim.clone()), &Native, Path::new("/home/store"), host()).unwrap();
    let mut recorder = store.create(Path::new("/gone/tides")).unwrap();
    let mut dictation = Dictation::default();
    say(&mut dictation, &mut recorder, r#"{"user": "one"}"#);
    // Lock, is_at, len, append and unlock come before the sync.
    sim.at(sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    let acks = say(&mut dictation, &mut recorder, r#"{"user": "two"}"#);
    let [Ack::Saved(saved)] = &acks[..] else { panic!("{acks:?}") };
    assert_eq!((Some(&saved.id), saved.durability), (recorder.head(), Durability::Sync));
}
