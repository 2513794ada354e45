//! A `sync` that fails: every record since the last good one is named, nothing goes on, and `reopen` saves them.

use super::*;

#[test]
fn a_flush_of_a_whole_turn_is_unsaved_when_its_sync_fails() {
    let machine = Machine::new(&Native, 7);
    let mut recorder = machine.start().unwrap();
    recorder.user("Look at it.").unwrap();
    let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
    let called = recorder.assistant(Content::from(vec![calls])).unwrap();
    let noticed = recorder.system("A file changed.").unwrap();
    assert_eq!(recorder.unsaved(), []);
    // Every operation of the next call fails from its sync on: lock, is_at, append, unlock come first.
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    let error = recorder.assistant("Done.").unwrap_err();
    assert!(matches!(error, Error::Unsaved { count: 3, .. }), "{error:?}");
    let unsaved: Vec<_> = recorder.unsaved().into_iter().filter_map(|unsaved| unsaved.id).collect();
    assert_eq!(unsaved[..2], [called.id().unwrap().clone(), noticed.id().unwrap().clone()]);
    recorder.reopen().unwrap();
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
    let Ack::Held { ticket } = recorder.assistant(content).unwrap() else { panic!("it is not held") };
    assert_eq!(recorder.unsaved().iter().map(|unsaved| unsaved.ticket).collect::<Vec<_>>(), [ticket]);
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    let error = recorder.end_turn().unwrap_err();
    assert!(matches!(error, Error::Unsaved { .. }), "{error:?}");
    assert!(recorder.unsaved().iter().any(|unsaved| unsaved.ticket == ticket), "{:?}", recorder.unsaved());
    assert_eq!(recorder.settled(), []);
    recorder.reopen().unwrap();
    assert_eq!(recorder.settled().iter().map(|saved| saved.ticket).collect::<Vec<_>>(), [ticket]);
}

#[test]
fn a_turn_that_is_refused_after_a_failed_sync_is_still_held() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 3);
    let mut recorder = machine.start().unwrap();
    machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
    recorder.user("Look at it.").unwrap_err();
    let calls: Part = ToolPart::dynamic("read_file", "c", ToolState::called(json!({}))).into();
    let content = Content::from(vec![Part::text("I look."), calls]);
    let Ack::Held { ticket } = recorder.assistant(content).unwrap() else { panic!("it is not held") };
    assert!(matches!(recorder.end_turn(), Err(Error::Unsaved { .. })));
    recorder.reopen().unwrap();
    assert_eq!(recorder.unsaved().iter().map(|unsaved| unsaved.ticket).collect::<Vec<_>>(), [ticket]);
    recorder.end_turn().unwrap();
    assert_eq!(recorder.settled().len(), 1);
    assert_eq!(machine.session().records().filter(|record| !record.is_side()).count(), 2);
}

/// What the format lost is told though the `sync` behind it failed first.
#[test]
fn losses_are_told_once_a_failed_sync_is_mended() {
    let told =
        |losses: &[crate::model::loss::Loss]| losses.iter().map(|loss| loss.what.to_string()).collect::<Vec<_>>();
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
        let held = recorder.assistant(Content::from(vec![losing.clone(), Part::text("I look."), calls])).unwrap();
        let whole = told(if let Ack::Saved(saved) = &held { &saved.losses } else { &[] });
        machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
        let last = recorder.assistant(Content::from(vec![losing, Part::text("Done.")]));
        let unsaved: Vec<String> = recorder.unsaved().iter().flat_map(|unsaved| told(&unsaved.losses)).collect();
        assert!(last.is_ok() || unsaved.iter().any(|what| what == expected), "{dialect}: {unsaved:?}");
        if last.is_ok() {
            recorder.end_turn().unwrap_err();
        }
        recorder.reopen().unwrap();
        let settled: Vec<String> = recorder.settled().iter().flat_map(|saved| told(&saved.losses)).collect();
        let is_held = matches!(held, Ack::Held { .. });
        assert!(!is_held || settled.iter().any(|what| what == expected), "{dialect}: {settled:?} {whole:?}");
    }
}
