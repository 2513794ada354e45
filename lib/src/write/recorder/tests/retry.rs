//! Calls that are retried on a disk that fails.

use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::{Machine, PROJECT};
use crate::dialect::Native;
use crate::disk::sim::Event;
use crate::model::error::{Error, Result};
use crate::model::record::RecordId;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::recorder::{Delta, Durability, Entry, Recorder};

/// One call, and the number in its text: a user, a delta, an assistant or a title.
type Call = (char, usize);

fn make((what, number): Call, recorder: &mut Recorder) -> Result<Entry> {
    let text = format!("<{number}>");
    match what {
        'u' => recorder.user(text.as_str()),
        'd' => recorder.delta(Delta::Text(text)),
        'a' => recorder.assistant(text.as_str()),
        _ => recorder.title(text.as_str()),
    }
}

fn start(seed: u64) -> (Machine, Recorder) {
    let machine = Machine::new(&Native, seed);
    let recorder = machine.store().create(Path::new(PROJECT)).unwrap();
    (machine, recorder)
}

fn fail(machine: &Machine, step: u64) {
    machine.sim.at(machine.sim.steps() + step, Event::Fails(io::ErrorKind::Other));
}

fn written(machine: &Machine) -> Session {
    let path = machine.sim.names().into_iter().rfind(|name| name.ends_with("messages.jsonl")).unwrap();
    let log = machine.sim.read(&path.to_string_lossy()).unwrap();
    Session::from_bytes(&Native, log, &ReadOptions::plain(Timestamp::MAX))
}

/// A disk that fails two times: no call is acknowledged with the record of another, and what is acknowledged is there.
#[test]
fn a_call_after_one_in_doubt_is_not_taken_for_it() {
    for (first, second) in (0..40).flat_map(|first| (0..12).map(move |second| (first, first + 1 + second))) {
        let (machine, mut recorder) = start(first);
        [first, second].into_iter().for_each(|step| fail(&machine, step));
        let mut saved: Vec<(RecordId, usize)> = Vec::new();
        for call in [('u', 1), ('u', 2), ('u', 3), ('a', 4)] {
            if let Ok(Entry { saved: Some(record), .. }) = recorder.retry(|recorder| make(call, recorder)) {
                saved.push((record.id, call.1));
            }
        }
        let session = written(&machine);
        for (id, number) in saved {
            let content = format!("{:?}", session.find(id.as_str()).unwrap().body().unwrap());
            assert!(
                content.contains(&format!("<{number}>")),
                "failures at {first} and {second}: {number} is {content}"
            );
        }
    }
}

/// Whichever operation fails once: a call fails and nothing of it is there, or it is acknowledged and there once.
#[test]
fn a_sync_that_fails_once_fails_no_call_and_doubles_none() {
    let calls = [('u', 1), ('d', 2), ('d', 3), ('u', 4), ('a', 5), ('t', 6)];
    for step in 0..200 {
        let (machine, mut recorder) = start(step);
        fail(&machine, step);
        let mut expected = Vec::new();
        for call in calls {
            assert!(!recorder.is_in_doubt(), "step {step}: what is in doubt is saved at once");
            if recorder.retry(|recorder| make(call, recorder)).is_ok() {
                expected.push(call);
            }
        }
        recorder.close().ok();
        let text: String = written(&machine).records().map(|record| format!("{:?}", record.body().unwrap())).collect();
        for call in calls {
            let times = text.matches(&format!("<{}>", call.1)).count();
            assert_eq!(times, usize::from(expected.contains(&call)), "step {step}: {call:?}: {text}");
        }
    }
}

/// The same where every record is synced and an answer is finished: no call is repeated that is in the file.
#[test]
fn answers_whose_sync_fails_are_there_once() {
    for step in 0..200 {
        let machine = Machine::new(&Native, step);
        let options = super::Options { durability: Some(Durability::Sync), ..super::Options::unredacted() };
        let mut recorder = machine.store().with_options(options).create(Path::new(PROJECT)).unwrap();
        fail(&machine, step);
        let deltas = [
            Delta::Reasoning("<1>".to_owned()),
            Delta::Text("<2>".to_owned()),
            Delta::End(None),
            Delta::Part(crate::model::message::Part::text("<3>")),
        ];
        let mut results: Vec<bool> =
            deltas.iter().map(|delta| recorder.retry(|to| to.delta(delta.clone())).is_ok()).collect();
        let finished = recorder.retry(|to| to.finish_answer(None));
        results.push(recorder.retry(|to| to.user("<4>")).is_ok());
        recorder.close().ok();
        let text: String = written(&machine).records().map(|record| format!("{:?}", record.body().unwrap())).collect();
        for (number, is_ok) in [(1, results[0]), (2, results[1]), (3, results[3]), (4, results[4])] {
            let times = text.matches(&format!("<{number}>")).count();
            assert_eq!(times, usize::from(is_ok), "step {step}: {number}: {finished:?} {text}");
        }
    }
}

#[test]
fn a_call_is_acknowledged_when_its_first_sync_failed_and_the_second_did_not() {
    let (machine, mut recorder) = start(7);
    recorder.retry(|to| to.user("one")).unwrap();
    // Lock, is_at, len, append and unlock come before the sync.
    fail(&machine, 4);
    let entry = recorder.retry(|to| to.user("two")).unwrap();
    let saved = entry.saved.unwrap();
    assert_eq!((entry.number, Some(&saved.id), saved.durability), (2, recorder.head(), Durability::Sync));
}

/// A result that answers no call of the open answer ends it. If the sync of that fails, the result itself is still to be written.
#[test]
fn a_result_after_an_answer_whose_sync_failed_is_written() {
    for step in 0..40 {
        let machine = Machine::new(crate::dialect::named("fluux").unwrap(), step);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        recorder.delta(Delta::Text("<answer>".to_owned())).unwrap();
        fail(&machine, step);
        let result = crate::model::record::ToolResult::new(
            "c".to_owned(),
            "<result>".into(),
            crate::model::record::Outcome::Done,
        );
        let entry = recorder.retry(|to| to.early_result(result.clone()));
        let retried = recorder.end_turn();
        let text = super::again::text_of(&machine);
        assert_eq!(text.matches("<answer>").count(), 1, "step {step}: {text}");
        let is_there = text.contains("<result>");
        assert!(
            is_there || entry.is_err() || retried.is_err() || recorder.saved_through() < recorder.last_entry(),
            "step {step}: {entry:?} {text}"
        );
    }
}

/// Whatever fails twice: a call that is not an error is there once, and one that is an error is not there at all.
#[test]
fn no_call_is_doubled_when_its_second_attempt_fails_too() {
    for (first, second) in (0..30).flat_map(|first| (1..16).map(move |second| (first, first + second))) {
        let (machine, mut recorder) = start(first);
        [first, second].into_iter().for_each(|step| fail(&machine, step));
        for number in 1..4 {
            // A caller that repeats what failed.
            let story = format!("failures at {first} and {second}");
            let mut tries = 0;
            while recorder.retry(|to| to.user(format!("<{number}>").as_str())).is_err() {
                tries += 1;
                assert!(tries < 5, "{story}: it never works again");
            }
        }
        recorder.close().or_else(|_| recorder.reopen()).ok();
        let text: String = written(&machine).records().map(|record| format!("{:?}", record.body().unwrap())).collect();
        for number in 1..4 {
            let times = text.matches(&format!("<{number}>")).count();
            assert_eq!(times, 1, "failures at {first} and {second}: <{number}>: {text}");
        }
    }
}

/// A failed sync may be that of the answer before, or that of the call itself.
#[test]
fn an_error_says_whether_the_record_of_the_call_is_in_the_file() {
    let mut seen = [false; 2];
    for step in 0..12 {
        let (machine, mut recorder) = start(step);
        recorder.user("<1>").unwrap();
        recorder.delta(Delta::Text("<2>".to_owned())).unwrap();
        fail(&machine, step);
        if let Err(Error::Unsaved { is_recorded, .. }) = recorder.user("<3>") {
            recorder.reopen().unwrap();
            let text: String =
                written(&machine).records().map(|record| format!("{:?}", record.body().unwrap())).collect();
            assert_eq!(text.contains("<3>"), is_recorded, "step {step}: {text}");
            seen[usize::from(is_recorded)] = true;
        }
    }
    assert_eq!(seen, [true, true]);
}
