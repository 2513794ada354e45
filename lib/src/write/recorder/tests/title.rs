//! The title is written again near the end of a growing log: the newest one, and never at the expense of a record.

use std::io;

use super::{Event, Machine};
use crate::dialect;
use crate::model::record::{Title, TitleSource};
use crate::write::recorder::Recorder;

/// A prompt larger than the distance after which the title is written again.
fn large() -> String {
    "word ".repeat(8 * 1024)
}

/// The titles in the lines of the log, in their order.
fn titles(machine: &Machine, of: &[&'static str]) -> Vec<&'static str> {
    let log = String::from_utf8(machine.sim.read(&machine.log()).unwrap()).unwrap();
    log.lines().filter_map(|line| of.iter().find(|title| line.contains(**title)).copied()).collect()
}

fn exchange(recorder: &mut Recorder) {
    recorder.user(large().as_str()).unwrap();
    recorder.assistant("Yes.").unwrap();
}

#[test]
fn a_title_that_another_program_gave_meanwhile_is_the_one_that_is_repeated() {
    for name in ["claude-code", "codex", "qwen-code"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        recorder.title("first title").unwrap();
        exchange(&mut recorder);
        let mut other = machine.start().unwrap();
        other.title("second title").unwrap();
        other.close().unwrap();
        for _ in 0..3 {
            exchange(&mut recorder);
        }
        recorder.close().unwrap();
        let given = titles(&machine, &["first title", "second title"]);
        let second = given.iter().position(|title| *title == "second title").unwrap();
        assert!(given[second..].iter().all(|title| *title == "second title"), "{name}: {given:?}");
        assert!(given.len() > second + 2, "{name}: {given:?}");
        assert_eq!(machine.session().title().unwrap().text, "second title", "{name}");
    }
}

#[test]
fn an_automatic_title_stays_automatic_and_a_typed_one_goes_before_it() {
    for name in ["claude-code", "qwen-code"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        let automatic = Title { text: "made up".to_owned(), source: TitleSource::Automatic };
        recorder.title(automatic.clone()).unwrap();
        exchange(&mut recorder);
        recorder.close().unwrap();
        assert_eq!(titles(&machine, &["made up"]).len(), 2, "{name}");
        assert_eq!(machine.session().title(), Some(&automatic), "{name}");
        recorder.title("typed").unwrap();
        recorder.title(automatic.clone()).unwrap();
        exchange(&mut recorder);
        recorder.close().unwrap();
        let given = titles(&machine, &["made up", "\"typed\""]);
        assert_eq!(given, ["made up", "made up", "\"typed\"", "made up", "\"typed\""], "{name}");
    }
}

#[test]
fn nothing_is_repeated_before_something_is_recorded_or_in_formats_with_a_sidecar() {
    for name in ["native", "claude-code", "codex", "qwen-code"] {
        let machine = Machine::new(dialect::named(name).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("Go.").unwrap();
        recorder.title("a title").unwrap();
        recorder.user(large().as_str()).unwrap();
        drop(recorder);
        machine.start().unwrap().close().unwrap();
        assert_eq!(titles(&machine, &["a title"]).len(), 1, "{name}");
        let mut recorder = machine.start().unwrap();
        recorder.assistant("Yes.").unwrap();
        recorder.close().unwrap();
        recorder.close().unwrap();
        let expected = if name == "native" { 1 } else { 2 };
        assert_eq!(titles(&machine, &["a title"]).len(), expected, "{name}");
    }
}

/// Whichever operation fails: the record that is asked for is there once, or its call fails.
#[test]
fn a_title_that_cannot_be_repeated_fails_no_record() {
    for name in ["claude-code", "codex", "qwen-code"] {
        for step in 0..20 {
            let machine = Machine::new(dialect::named(name).unwrap(), step);
            let mut recorder = machine.start().unwrap();
            recorder.user("Go.").unwrap();
            recorder.title("a title").unwrap();
            exchange(&mut recorder);
            machine.sim.at(machine.sim.steps() + step, Event::Fails(io::ErrorKind::StorageFull));
            let recorded = recorder.retry(|recorder| recorder.user("<mark>"));
            machine.sim.forget_events();
            if recorded.is_err() {
                recorder.retry(|recorder| recorder.user("<mark>")).unwrap();
            }
            recorder.close().unwrap();
            let session = machine.session();
            let prompts = session.records().filter(|record| {
                let is_prompt = record.kind() == crate::model::record::Kind::User;
                is_prompt && format!("{:?}", record.body().unwrap()).contains("<mark>")
            });
            assert_eq!(prompts.count(), 1, "{name} {step}");
            assert_eq!(titles(&machine, &["a title"]).len(), 2, "{name} {step}");
            assert_eq!(session.issue_count(), 0, "{name} {step}");
        }
    }
}
