//! Calls that belong together, calls that can never be recorded, and going back to the start.

use std::io;
use std::path::Path;

use serde_json::json;

use super::{Event, Machine, STORE, new};
use crate::dialect::{self, Native};
use crate::disk::claim;
use crate::model::error::{Error, Result};
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::metadata::INTERRUPTED;
use crate::model::record::{Body, Compaction, Kind, RecordId, Restore, Rewind, ToolResult, Usage};
use crate::session::Session;
use crate::write::recorder::{Delta, Entry, Recorder};

/// What the session says; Codex repeats it for its own screen.
fn texts(session: &Session) -> String {
    let spoken = session.records().filter(|record| record.kind() != Kind::Header);
    spoken.map(|record| format!("{:?}", record.body().unwrap())).collect()
}

fn both(recorder: &mut Recorder) -> Result<Entry> {
    recorder.together(|recorder| {
        recorder.delta(Delta::Reasoning("<1>".to_owned()))?;
        recorder.delta(Delta::Text("<2>".to_owned()))?;
        recorder.retry(|recorder| recorder.finish_answer(None))
    })
}

/// Whichever operation fails: after an error nothing is in the file, and a second attempt records everything once.
#[test]
fn calls_that_belong_together_are_recorded_all_or_none() {
    for name in ["native", "claude-code", "codex", "qwen-code", "sage-el", "fluux"] {
        for step in 0..30 {
            let machine = Machine::new(dialect::named(name).unwrap(), step);
            let mut recorder = machine.start().unwrap();
            recorder.keep_reports();
            recorder.user("Go.").unwrap();
            machine.sim.at(machine.sim.steps() + step, Event::Fails(io::ErrorKind::StorageFull));
            if both(&mut recorder).is_err() {
                let found = texts(&machine.session());
                assert!(!found.contains("<1>") && !found.contains("<2>"), "{name} {step}: {found}");
                machine.sim.forget_events();
                both(&mut recorder).unwrap();
            }
            recorder.close().unwrap();
            let found = texts(&machine.session());
            assert_eq!(found.matches("<2>").count(), 1, "{name} {step}: {found}");
            assert!(found.matches("<1>").count() <= 1, "{name} {step}: {found}");
            let reports = recorder.reports();
            assert!(reports.iter().filter(|report| report.result.is_ok()).count() >= 3, "{name} {step}: {reports:?}");
        }
    }
}

#[test]
fn an_invalid_title_is_refused_and_ends_no_answer() {
    for name in ["native", "claude-code", "codex", "qwen-code"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        recorder.delta(Delta::Text("One ".to_owned())).unwrap();
        for title in ["", "  ", "two\nlines", "\u{1b}[31m", &"x".repeat(501)] {
            assert!(matches!(recorder.title(title), Err(Error::InvalidTitle(_))), "{name}: {title:?}");
            assert!(recorder.is_answering(), "{name}: {title:?}");
        }
        recorder.delta(Delta::Text("two.".to_owned())).unwrap();
        recorder.finish_answer(None).unwrap();
        recorder.title("  A title ").unwrap();
        recorder.close().unwrap();
        assert_eq!(machine.session().title().unwrap().text, "A title", "{name}");
    }
}

/// What a format cannot store is refused; the answer or the turn that it came in continues.
#[test]
fn a_body_that_cannot_be_stored_ends_nothing() {
    for name in ["codex", "sage-el", "fluux", "ai-sdk"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        let unstorable = || Body::Compaction(Compaction::default());
        let refused = |recorder: &mut Recorder| {
            let results = [recorder.record(Body::Rewind(Rewind::default())), recorder.record(unstorable())];
            results.into_iter().filter(Result::is_err).count()
        };
        let call = ToolPart::dynamic("read", "c1", ToolState::called(json!({})));
        recorder.delta(Delta::Text("One ".to_owned())).unwrap();
        if refused(&mut recorder) < 2 {
            continue;
        }
        assert!(recorder.is_answering(), "{name}");
        recorder.delta(Delta::Part(Part::Tool(Box::new(call.clone())))).unwrap();
        recorder.finish_answer(None).unwrap();
        assert_eq!(refused(&mut recorder), 2);
        recorder.tool_results(ToolResult::of(&call, Ok(json!("done")))).unwrap();
        recorder.assistant("Two.").unwrap();
        recorder.close().unwrap();
        let session = machine.session();
        let unanswered = session.issues().iter().map(|issue| issue.kind.name()).collect::<Vec<_>>();
        assert_eq!(unanswered, Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn a_session_goes_back_to_before_its_first_prompt() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("First.").unwrap();
    recorder.assistant("One.").unwrap();
    recorder.rewind_to_start(Some("wrong question".to_owned())).unwrap();
    recorder.user("Second.").unwrap();
    recorder.assistant("Two.").unwrap();
    recorder.close().unwrap();
    let session = machine.session();
    let branch = session.branch(session.head().unwrap());
    let kinds: Vec<Kind> = branch.records.iter().map(|record| record.kind()).collect();
    assert_eq!(kinds, [Kind::Rewind, Kind::User, Kind::Assistant]);
    assert!(
        !format!("{:?}", branch.records.iter().map(|record| record.body().unwrap()).collect::<Vec<_>>())
            .contains("First.")
    );
    assert_eq!((session.heads().len(), session.issues().len()), (2, 0));
    let formats = ["claude-code", "codex", "qwen-code", "sage-el", "fluux", "ai-sdk"];
    for name in formats {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("First.").unwrap();
        recorder.delta(Delta::Text("One".to_owned())).unwrap();
        let refused = recorder.rewind_to_start(None);
        assert!(matches!(refused, Err(Error::CannotStore { .. })), "{name}: {refused:?}");
        assert!(recorder.is_answering(), "{name}");
    }
}

/// A session that is ended while a `sync` is in doubt keeps its records: none of them is written to the next session too.
#[test]
fn a_record_in_doubt_stays_in_the_session_that_was_ended() {
    for (name, has_successor) in [("sage-el", true), ("sage-el", false), ("fluux", true), ("fluux", false)] {
        let in_doubt = (0..12).filter(|step| {
            let machine = Machine::new(dialect::named(name).unwrap(), *step);
            let mut recorder = machine.start().unwrap();
            recorder.user("Zero.").unwrap();
            machine.sim.at(machine.sim.steps() + step, Event::Fails(io::ErrorKind::Other));
            drop(recorder.user("First."));
            machine.sim.forget_events();
            if !recorder.is_in_doubt() {
                return false;
            }
            let (log, ended) = (machine.log.clone(), format!("{STORE}/ended.jsonl"));
            claim(&machine.sim, Path::new(&log), Path::new(&ended)).unwrap();
            if has_successor {
                machine.store().begin(new()).unwrap().user("Other.").unwrap();
            }
            recorder.retry(|recorder| recorder.user("Second.")).unwrap();
            recorder.close().unwrap();
            let text = |path: &str| String::from_utf8(machine.sim.read(path).unwrap()).unwrap();
            let counts = |path: &str| ["First.", "Second."].map(|record| text(path).matches(record).count());
            assert_eq!((counts(&ended), counts(&log)), ([1, 0], [0, 1]), "{name} {step}: {}", text(&log));
            true
        });
        assert!(in_doubt.count() > 0, "{name}");
    }
}

/// Until all of them are in the file, none counts as saved; what may still be lost afterwards is not reported.
#[test]
fn entries_of_calls_that_belong_together_are_pending_until_all_are_in_the_file() {
    for step in 0..12 {
        let machine = Machine::new(&Native, step);
        let mut recorder = machine.start().unwrap();
        recorder.keep_reports();
        recorder.user("Go.").unwrap();
        recorder.reports();
        let from = machine.sim.steps() + step;
        (from..from + 4).for_each(|step| machine.sim.at(step, Event::Fails(io::ErrorKind::Other)));
        let made = recorder.together(|recorder| {
            let entries = [recorder.user("<1>")?, recorder.user("<2>")?];
            assert!(recorder.saved_through() < entries[0].number, "{step}");
            Ok(entries)
        });
        let reports = recorder.reports();
        let Ok(entries) = made else { continue };
        assert_eq!(entries.map(|entry| entry.saved), [None, None], "{step}");
        assert_eq!(reports.len(), if recorder.is_in_doubt() { 0 } else { 2 }, "{step}: {reports:?}");
        machine.sim.forget_events();
        recorder.retry(|recorder| recorder.user("<3>")).unwrap();
        assert_eq!(reports.len() + recorder.reports().len(), 3, "{step}");
        assert_eq!(recorder.saved_through(), recorder.last_entry());
    }
}

/// The sidecar is derived from the log: it never says more.
#[test]
fn nothing_is_written_before_the_last_of_the_calls_that_belong_together() {
    for name in ["native", "claude-code", "codex", "qwen-code"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let files = || -> Vec<_> {
            let names = machine.sim.names().into_iter();
            names.map(|name| (machine.sim.read(&name.to_string_lossy()), name)).collect()
        };
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        let before = files();
        recorder
            .together(|recorder| {
                for text in ["<1>", "<2>", "<3>", "<4>", "<5>"] {
                    recorder.user(text)?;
                    recorder.assistant(text)?;
                }
                assert_eq!(files(), before, "{name}");
                Ok(())
            })
            .unwrap();
        let changed = files().into_iter().zip(before).filter(|(after, before)| after != before);
        let place = &recorder.log.as_ref().unwrap().place;
        let has_sidecar = place.sidecar.is_some() && place.writing.sidecar.is_some();
        assert_eq!(changed.count(), if has_sidecar { 2 } else { 1 }, "{name}");
    }
}

/// Some ids are the place of the line in the file: another program's line before it moves it.
#[test]
fn ids_are_those_of_the_place_to_which_the_lines_moved() {
    for name in ["native", "claude-code", "codex", "qwen-code"] {
        for step in 0..8 {
            let machine = Machine::new(dialect::named(name).unwrap(), step);
            let mut recorder = machine.start().unwrap();
            recorder.keep_reports();
            recorder.user("Go.").unwrap();
            let foreign = Event::Foreign(machine.log().into(), b"{\"type\":\"foreign\"}".to_vec());
            machine.sim.at(machine.sim.steps() + step, foreign);
            recorder
                .together(|recorder| {
                    recorder.user("<1>")?;
                    recorder.delta(Delta::Text("<2>".to_owned()))?;
                    recorder.delta(Delta::End(None))?;
                    recorder.delta(Delta::Reasoning("<3>".to_owned()))
                })
                .unwrap();
            recorder.finish_answer(Some(Usage { output: Some(1), ..Usage::default() })).unwrap();
            recorder.sync().unwrap();
            let session = machine.session();
            let ids = recorder.reports().into_iter().filter_map(|report| Some(report.result.ok()?.id));
            for id in ids.chain(recorder.head().cloned()) {
                assert!(session.records().any(|record| record.id() == id.as_str()), "{name} {step}: {id}");
            }
            let bytes = machine.sim.read(&machine.log()).unwrap().len() as u64;
            let known = recorder.log.as_ref().unwrap().cursor.known_bytes;
            let is_alone = !texts(&session).contains("foreign");
            assert!(known == bytes || !is_alone && known < bytes, "{name} {step}: {known} of {bytes}");
        }
    }
}

/// The model continues: a call that failed has not ended its answer.
#[test]
fn an_answer_that_continues_after_a_failed_call_is_not_marked() {
    let finished = |machine: &Machine, mut recorder: Recorder, story: &str| {
        machine.sim.forget_events();
        recorder.retry(|recorder| recorder.delta(Delta::Text(" two.".to_owned()))).unwrap();
        recorder.finish_answer(None).unwrap();
        let session = machine.session();
        let answer = session.records().rfind(|record| record.kind() == Kind::Assistant).unwrap();
        let body = answer.body().unwrap();
        assert!(!body.content().unwrap().metadata.contains_key(INTERRUPTED), "{story}: {body:?}");
    };
    let answering = |step: u64| {
        let machine = Machine::new(&Native, step);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        recorder.delta(Delta::Text("One".to_owned())).unwrap();
        (machine, recorder)
    };
    let (machine, mut recorder) = answering(0);
    recorder.rewind(&RecordId("nobody".to_owned()), None).unwrap_err();
    recorder.restore(&RecordId("nobody".to_owned()), Restore::default()).unwrap_err();
    assert!(recorder.is_answering());
    finished(&machine, recorder, "an unknown record");
    for step in 0..8 {
        let (machine, mut recorder) = answering(step);
        machine.sim.at(machine.sim.steps() + step, Event::Fails(io::ErrorKind::StorageFull));
        if recorder.cut_off_answer().is_err() && recorder.is_answering() {
            finished(&machine, recorder, &format!("a full disk at {step}"));
        }
    }
}
