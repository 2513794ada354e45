//! A `sync` that fails: no entry since the last good one counts as saved, nothing is written, and `reopen` saves them.

use super::*;

#[test]
fn a_flush_of_a_whole_turn_is_unsaved_when_its_sync_fails() {
    let machine = Machine::new(&Native, 7);
    let mut recorder = machine.start().unwrap();
    recorder.user("Look at it.").unwrap();
    let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
    let called = recorder.assistant(Content::from(vec![calls])).unwrap();
    let noticed = recorder.system("A file changed.").unwrap();
    assert_eq!((called.number, noticed.number, recorder.saved_through()), (2, 3, 3));
    // Every operation of the next call fails from its sync on: lock, is_at, append, unlock come first.
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    let error = recorder.assistant("Done.").unwrap_err();
    assert!(matches!(error, Error::Unsaved { count: 3, .. }), "{error:?}");
    assert_eq!((recorder.saved_through(), recorder.last_entry()), (1, 4));
    recorder.reopen().unwrap();
    assert_eq!(recorder.saved_through(), 4);
    for seed in 0..50 {
        assert_eq!(machine.crash(seed).session().records().len(), 4);
    }
}

#[test]
fn calls_that_were_held_stay_unsaved_after_a_failed_sync_and_settle_when_it_is_mended() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 3);
    let mut recorder = machine.start().unwrap();
    recorder.user("Look at it.").unwrap();
    let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
    let content = Content::from(vec![Part::text("I look."), calls]);
    recorder.keep_reports();
    let pending = recorder.assistant(content).unwrap();
    assert_eq!((pending.number, pending.saved, recorder.saved_through()), (2, None, 1));
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    let error = recorder.end_turn().unwrap_err();
    assert!(matches!(error, Error::Unsaved { .. }), "{error:?}");
    assert_eq!((recorder.saved_through(), recorder.reports()), (1, vec![]));
    recorder.reopen().unwrap();
    assert_eq!(recorder.reports().iter().map(|report| report.entry).collect::<Vec<_>>(), [2]);
    assert_eq!(recorder.saved_through(), 2);
}

#[test]
fn a_turn_that_is_refused_after_a_failed_sync_is_still_held() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 3);
    let mut recorder = machine.start().unwrap();
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    recorder.user("Look at it.").unwrap_err();
    let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
    let content = Content::from(vec![Part::text("I look."), calls]);
    recorder.keep_reports();
    let pending = recorder.assistant(content).unwrap();
    assert_eq!((pending.number, pending.saved), (2, None));
    assert!(matches!(recorder.end_turn(), Err(Error::Unsaved { .. })));
    recorder.reopen().unwrap();
    assert_eq!(recorder.saved_through(), 1);
    recorder.end_turn().unwrap();
    assert_eq!(recorder.reports().iter().map(|report| report.entry).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(machine.session().records().filter(|record| !record.is_side()).count(), 2);
}

/// The losses of an entry are reported though the `sync` behind it failed first.
#[test]
fn losses_are_reported_after_a_failed_sync() {
    let names = |saved: &Saved| saved.losses.iter().map(|loss| loss.what.to_string()).collect::<Vec<_>>();
    for (dialect, expected) in [("fluux", "thinking"), ("claude-code", "source")] {
        let losing: Part = match dialect {
            "fluux" => {
                Part::Reasoning(crate::model::message::ReasoningPart { text: "Hm.".to_owned(), ..Default::default() })
            }
            _ => Part::SourceUrl(crate::model::message::SourceUrlPart {
                url: "https://x.example".to_owned(),
                ..Default::default()
            }),
        };
        let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
        let machine = Machine::new(dialect::named(dialect).unwrap(), 3);
        let mut recorder = machine.start().unwrap();
        recorder.user("Look at it.").unwrap();
        recorder.keep_reports();
        recorder.assistant(Content::from(vec![losing.clone(), Part::text("I look."), calls])).unwrap();
        machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
        if recorder.assistant(Content::from(vec![losing, Part::text("Done.")])).is_ok() {
            recorder.end_turn().unwrap_err();
        }
        recorder.reopen().unwrap();
        for (entry, report) in (2..).zip(recorder.reports()) {
            assert_eq!(report.entry, entry, "{dialect}");
            assert!(names(&report.result.unwrap()).iter().any(|what| what == expected), "{dialect}, entry {entry}");
        }
        assert_eq!((recorder.saved_through(), recorder.last_entry()), (3, 3), "{dialect}");
    }
}
