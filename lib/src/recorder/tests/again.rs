//! What failed is tried again with the same words: each stands once, and every call is told once.

use super::*;
use crate::record::{Body, Kind, Rewind, Snapshot, Title, ToolResult, Usage};
use crate::recorder::Refused;
use crate::recorder::tickets::Tickets;

pub(super) fn written() -> impl Iterator<Item = &'static dyn Dialect> {
    dialect::all().iter().copied().filter(|dialect| dialect.write().is_some())
}

pub(super) fn text_of(machine: &Machine) -> String {
    String::from_utf8(machine.sim.read(&machine.log()).unwrap_or_default()).unwrap()
}

pub(super) fn answer_of(machine: &Machine) -> Said {
    let session = machine.session();
    let record = session.records().find(|record| record.kind() == Kind::Assistant).unwrap();
    let Body::Assistant(said) = record.body().unwrap() else { panic!("it is an answer") };
    said
}

fn call(id: &str) -> Part {
    ToolPart::dynamic("read_file", id, ToolState::called(json!({"path": id}))).into()
}

/// The same words until they are taken: on a failed sync they are in the file, and `reopen` makes them safe.
fn insist(recorder: &mut Recorder, story: &str, mut say: impl FnMut(&mut Recorder) -> Result<Ack>) {
    for _ in 0..6 {
        match say(recorder) {
            Ok(_) => return,
            Err(Error::Unsaved { .. }) => {
                let mut tries = 0;
                while recorder.is_in_doubt() {
                    assert!(tries < 6, "{story}: it is never safe again");
                    tries += 1;
                    drop(recorder.reopen());
                }
                return;
            }
            Err(Error::Io { .. }) => {}
            Err(error) => panic!("{story}: {error}"),
        }
    }
    panic!("{story}: it never works again");
}

fn talk(machine: &Machine, story: &str) -> Recorder {
    let mut recorder = (0..4).find_map(|_| machine.start().ok()).unwrap();
    insist(&mut recorder, story, |recorder| recorder.user("<ask>"));
    insist(&mut recorder, story, |recorder| recorder.assistant(vec![Part::text("<look>"), call("c")]));
    let result = || ToolResult { output: "<found>".into(), ..result_of("c") };
    insist(&mut recorder, story, |recorder| recorder.tool_result(result()));
    insist(&mut recorder, story, |recorder| recorder.assistant("<tell>"));
    insist(&mut recorder, story, |recorder| recorder.user("<thank>"));
    for piece in ["<wel>", "<come>"] {
        insist(&mut recorder, story, |recorder| recorder.delta(Delta::Text(piece.to_owned())));
    }
    insist(&mut recorder, story, |recorder| recorder.finish_answer(None));
    recorder
}

fn result_of(call: &str) -> ToolResult {
    ToolResult {
        call_id: call.to_owned(),
        name: None,
        output: "done".into(),
        outcome: crate::record::Outcome::Done,
        preliminary: false,
        duration_ms: None,
        about: serde_json::Map::new(),
    }
}

#[test]
fn the_same_words_tried_again_stand_once_whatever_failed() {
    for dialect in written() {
        let whole = Machine::new(dialect, 0);
        talk(&whole, dialect.name());
        // A file that was begun and not named is gone on with here without its header.
        let count =
            |machine: &Machine| machine.session().records().filter(|record| record.kind() != Kind::Header).count();
        for step in 0..whole.sim.steps() {
            for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
                let machine = Machine::new(dialect, step);
                machine.sim.at(step, Event::Fails(kind));
                let story = format!("{}, {kind} at {step}", dialect.name());
                talk(&machine, &story);
                let text = text_of(&machine);
                for words in ["<ask>", "<look>", "<found>", "<tell>", "<thank>", "<wel>", "<come>"] {
                    let (there, wanted) = (text.matches(words).count(), text_of(&whole).matches(words).count());
                    assert_eq!(there, wanted, "{story}: {words}\n{text}");
                }
                assert_eq!(count(&machine), count(&whole), "{story}\n{text}");
                assert_eq!(machine.session().issues(), [], "{story}");
            }
        }
    }
}

#[test]
fn an_answer_of_nothing_that_the_format_holds_is_refused_and_stops_nothing() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        let source = Part::SourceUrl(crate::message::SourceUrlPart {
            url: "https://tides.example".to_owned(),
            ..Default::default()
        });
        let came = recorder.delta(Delta::Part(source)).unwrap();
        recorder.user("second").unwrap();
        let (refused, settled) = (recorder.refused(), recorder.settled());
        if let Ack::Held { ticket } = came {
            let told = refused.iter().filter(|refused| refused.ticket == ticket).count()
                + settled.iter().filter(|saved| saved.ticket == ticket).count();
            assert_eq!(told, 1, "{}: {refused:?} {settled:?}", dialect.name());
        }
        assert!(text_of(&machine).contains("second"), "{}", dialect.name());
        assert!(recorder.unsaved().is_empty(), "{}: {:?}", dialect.name(), recorder.unsaved());
    }
}

/// The losses of each call, and whether it was refused.
fn came_of(recorder: &mut Recorder, deltas: Vec<Delta>) -> Vec<(u64, String)> {
    let told =
        |losses: &[crate::writing::Loss]| losses.iter().map(|loss| loss.what.clone()).collect::<Vec<_>>().join(", ");
    let mut came = Vec::new();
    for delta in deltas {
        if let Ack::Saved(saved) = recorder.delta(delta).unwrap() {
            came.push((saved.ticket, told(&saved.losses)));
        }
    }
    // What an answer of nothing is refused with is told below.
    drop(recorder.end_turn());
    came.extend(recorder.settled().iter().map(|saved| (saved.ticket, told(&saved.losses))));
    came.extend(recorder.refused().into_iter().map(|refused| (refused.ticket, format!("refused: {}", refused.what))));
    came.sort_unstable();
    came
}

#[test]
fn a_thought_without_a_place_is_a_loss_of_its_own_call_and_the_answer_is_written() {
    let thought = || vec![Delta::Reasoning("<hm".to_owned()), Delta::Reasoning("m>".to_owned())];
    let words = || vec![Delta::Text("<an".to_owned()), Delta::Text("swer>".to_owned()), Delta::End(None)];
    for dialect in written() {
        for deltas in [
            [thought(), words()].concat(),
            [words(), thought()].concat(),
            [words(), thought(), words()].concat(),
            [thought(), vec![Delta::End(None)], words()].concat(),
            [thought(), vec![Delta::Part(call("c"))]].concat(),
        ] {
            let machine = Machine::new(dialect, 0);
            let mut recorder = machine.start().unwrap();
            recorder.user("<ask>").unwrap();
            let has_words = deltas.iter().any(|delta| matches!(delta, Delta::Text(_)));
            let is_thought: Vec<bool> = deltas.iter().map(|delta| matches!(delta, Delta::Reasoning(_))).collect();
            let story = format!("{}, {deltas:?}", dialect.name());
            let came = came_of(&mut recorder, deltas);
            assert_eq!(came.len(), is_thought.len(), "{story}: {came:?}");
            assert!(came.iter().all(|(_, what)| !has_words || !what.starts_with("refused")), "{story}: {came:?}");
            let text = text_of(&machine);
            if has_words {
                assert!(text.contains("swer>"), "{story}\n{text}");
            }
            let is_lost = |at: &usize| came[*at].1.contains("thinking");
            if !text.contains("m>") {
                assert!((0..came.len()).any(|at| is_lost(&at)), "{story}: it must be told\n{came:?}");
            }
            if dialect.name() == "claude-code" {
                let told: Vec<usize> = (0..came.len()).filter(is_lost).collect();
                assert_eq!(told.len(), 1, "{story}: {came:?}");
                assert!(is_thought[told[0]] || came[told[0]].1 == "thinking", "{story}: {came:?}");
            }
            assert!(recorder.unsaved().is_empty(), "{story}");
        }
    }
}

#[test]
fn two_calls_of_one_answer_that_have_the_same_id_are_refused_and_nothing_is_written() {
    let other = |id: &str| Part::from(ToolPart::dynamic("write_file", id, ToolState::called(json!({}))));
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("<ask>").unwrap();
        let before = text_of(&machine);
        for parts in [vec![call("c"), call("c")], vec![call("c"), Part::text("<and>"), other("c")]] {
            let error = recorder.assistant(parts).unwrap_err();
            assert_eq!(error.to_string(), "two calls of one answer have the id \"c\": give each its own");
        }
        assert_eq!((text_of(&machine), recorder.unsaved()), (before, vec![]), "{}", dialect.name());
        for id in ["c", ""] {
            recorder.delta(Delta::Part(call(id))).unwrap();
            recorder.delta(Delta::Part(other(id))).unwrap_err();
        }
        recorder.delta(Delta::Part(call("c"))).unwrap();
        recorder.delta(Delta::Part(call(""))).unwrap_err();
        recorder.leave_turn().unwrap();
        assert!(!text_of(&machine).contains("write_file"), "{}", dialect.name());
        // Another response may use it again.
        recorder.assistant(vec![Part::text("<look>"), call("d"), Part::StepStart, call("d")]).unwrap();
    }
}

#[test]
fn every_call_of_a_streamed_answer_is_told_exactly_once() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        let mut told = Vec::new();
        let mut calls = 0;
        let metadata = serde_json::Map::from_iter([("k".to_owned(), json!("v"))]);
        let about = Said { metadata, ..Said::default() };
        for delta in [
            Delta::Model("ocean-1".to_owned()),
            Delta::Reasoning("Hm".to_owned()),
            Delta::Reasoning("m.".to_owned()),
            Delta::Text("High ".to_owned()),
            Delta::Text("water.".to_owned()),
            Delta::End(None),
            Delta::Part(call("c")),
            Delta::About(Box::new(about)),
        ] {
            calls += 1;
            if let Ack::Saved(saved) = recorder.delta(delta).unwrap() {
                told.push(saved.ticket);
            }
        }
        recorder.end_turn().unwrap();
        told.extend(recorder.settled().into_iter().map(|saved| saved.ticket));
        told.extend(recorder.refused().into_iter().map(|refused| refused.ticket));
        told.sort_unstable();
        let first = told[0];
        assert_eq!(told, (first..first + calls).collect::<Vec<_>>(), "{}", dialect.name());
    }
}

#[test]
fn an_answer_that_is_given_up_refuses_its_calls() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 0);
    let mut recorder = machine.start().unwrap();
    let Ack::Held { ticket } = recorder.delta(Delta::Text("High".to_owned())).unwrap() else { panic!("not held") };
    recorder.drop_answer();
    let what = "an answer that was given up".to_owned();
    assert_eq!(recorder.refused(), [Refused { ticket, what }]);
}

#[test]
fn a_stream_over_a_failed_sync_goes_on_behind_what_is_in_the_file() {
    let machine = Machine::new(&Native, 0);
    machine.start().unwrap().user("first").unwrap();
    let mut recorder = machine.start().unwrap();
    recorder.log.as_mut().unwrap().durability = Some(Durability::Sync);
    let mut failed = 0;
    for piece in ["a", "b", "c", "d"] {
        if piece != "c" {
            machine.sim.at(machine.sim.steps() + 4, Event::Fails(io::ErrorKind::Other));
        }
        if let Err(error) = recorder.delta(Delta::Text(piece.to_owned())) {
            assert!(matches!(error, Error::Unsaved { .. }), "{error}");
            assert!(recorder.is_in_doubt());
            failed += 1;
            recorder.reopen().unwrap();
        }
    }
    recorder.finish_answer(None).unwrap();
    assert!(failed >= 2, "{failed}");
    assert_eq!(answer_of(&machine).parts, [Part::text("abcd")]);
    let seqs: Vec<_> = text_of(&machine)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["fragment"]["seq"].as_u64())
        .collect();
    assert_eq!(seqs, [0, 1, 2, 3]);
}

#[test]
fn pieces_of_one_record_are_counted_on_whatever_they_say() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    recorder.assistant(vec![Part::text("a"), call("x"), Part::text("b"), call("y")]).unwrap();
    let usage = Usage { output: Some(3), ..Usage::default() };
    recorder.usage(usage).unwrap();
    recorder.todos(Vec::new()).unwrap();
    recorder.usage(usage).unwrap();
    let seqs: Vec<_> = text_of(&machine)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["fragment"]["seq"].as_u64())
        .collect();
    assert_eq!(seqs, [0, 1, 2, 3, 4]);
}

#[test]
fn a_failed_close_keeps_what_is_held() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 0);
    let mut recorder = machine.start().unwrap();
    let Ack::Held { ticket } = recorder.assistant(vec![Part::text("<look>"), call("c")]).unwrap() else {
        panic!("not held")
    };
    machine.sim.leave_room_for(0);
    recorder.close().unwrap_err();
    assert_eq!(recorder.unsaved().iter().map(|unsaved| unsaved.ticket).collect::<Vec<_>>(), [ticket]);
    machine.sim.forget_events();
    recorder.close().unwrap();
    assert_eq!(text_of(&machine).matches("<look>").count(), 1);
}

#[test]
fn a_failed_close_makes_safe_what_is_in_the_file() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    recorder.delta(Delta::Text("<a>".to_owned())).unwrap();
    machine.sim.leave_room_for(0);
    recorder.delta(Delta::Text("<b>".to_owned())).unwrap_err();
    recorder.close().unwrap_err();
    for seed in 0..20 {
        assert!(text_of(&machine.crash(seed)).contains("<a>"), "{seed}");
    }
}

#[test]
fn a_rewind_knows_what_stood_there_and_nothing_of_the_branch_that_was_left() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    let first = recorder.user("first").unwrap().id().unwrap().clone();
    recorder.assistant("answer").unwrap();
    recorder.todos(Vec::new()).unwrap();
    let before = text_of(&machine);
    let error = recorder.rewind(&RecordId("nowhere".to_owned()), None).unwrap_err();
    assert!(matches!(error, Error::NoRecord { .. }), "{error}");
    assert_eq!(text_of(&machine), before);
    recorder.rewind(&first, None).unwrap();
    assert_eq!(recorder.standing_todos(), None);
    assert!(recorder.usage(Usage::default()).is_err(), "the answer is on the branch that was left");
}

#[test]
fn what_is_added_where_a_branch_begins_leaves_the_other_branch_as_it_is() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    let first = recorder.user("first").unwrap().id().unwrap().clone();
    recorder.assistant("answer").unwrap();
    drop(recorder);
    let session = machine.session();
    let (store, log) = (machine.store(), machine.log());
    let place = store.place(session.id(), Path::new(&log));
    let start = Start::at(&session, session.find(first.as_str()).ok(), &place, Path::new(PROJECT)).unwrap();
    let appender = Appender::open(Arc::new(machine.sim.clone()), Path::new(&log), Vec::new()).unwrap();
    let mut recorder = Recorder::new(Log::new(place, appender, start, None), Options::usual());
    recorder.todos(Vec::new()).unwrap();
    let session = machine.session();
    assert_eq!(session.heads().count(), 2);
    let Body::User(said) = session.find(first.as_str()).unwrap().body().unwrap() else { panic!("it is a prompt") };
    assert_eq!(said.todos, None);
}

#[test]
fn an_acknowledged_id_is_one_that_a_reader_knows() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        let snapshot = Snapshot { states: json!({}), ..Snapshot::default() };
        let usage = Usage { output: Some(3), ..Usage::default() };
        let acks = [
            recorder.user("first"),
            recorder.assistant("answer"),
            recorder.usage(usage),
            recorder.title(Title::from("a title")),
            recorder.system("noticed"),
            recorder.error("overloaded", "try later"),
            recorder.snapshot(snapshot),
            recorder.assistant(vec![Part::text("look"), call("c")]),
            recorder.tool_result(result_of("c")),
            recorder.assistant("done"),
        ];
        let session = machine.session();
        let ids: BTreeSet<String> = session.records().map(|record| record.id().into_owned()).collect();
        for (number, ack) in acks.into_iter().enumerate() {
            let Ok(ack) = ack else { continue };
            let id = ack.id().map_or("", RecordId::as_str);
            assert!(id.is_empty() || ids.contains(id), "{}, call {number}: {id} is none of {ids:?}", dialect.name());
        }
    }
}

#[test]
fn words_that_were_refused_and_not_said_again_are_told_as_missing() {
    for (again, missing) in [("lost ", None), ("found ", Some(&json!(true)))] {
        let machine = Machine::new(&Native, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        recorder.delta(Delta::Text("a ".to_owned())).unwrap();
        machine.sim.leave_room_for(0);
        recorder.delta(Delta::Text("lost ".to_owned())).unwrap_err();
        machine.sim.forget_events();
        recorder.delta(Delta::Text(again.to_owned())).unwrap();
        recorder.finish_answer(None).unwrap();
        let said = answer_of(&machine);
        assert_eq!(said.parts, [Part::text(format!("a {again}"))]);
        assert_eq!(said.metadata.get("textMissing"), missing);
    }
}

#[test]
fn what_nobody_asks_for_is_remembered_in_runs_and_not_for_ever() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        let mut held = Vec::new();
        for _ in 0..1_000 {
            if let Ack::Held { ticket } = recorder.delta(Delta::Text("word ".to_owned())).unwrap() {
                held.push(ticket);
            }
        }
        recorder.end_turn().unwrap();
        assert!(recorder.tickets.remembered() <= 2, "{}: {}", dialect.name(), recorder.tickets.remembered());
        let settled: Vec<u64> = recorder.settled().into_iter().map(|saved| saved.ticket).collect();
        assert_eq!(settled, held, "{}", dialect.name());
    }
    let mut tickets = Tickets::default();
    let what = |number: u64| if number.is_multiple_of(2) { "even" } else { "odd" };
    (0..30_000).for_each(|number| tickets.refuse(vec![number], what(number)));
    assert_eq!(tickets.remembered(), 10_000);
    let told = tickets.tell_refused();
    assert!(told.is_short);
    let expected = (20_000..30_000).map(|ticket| Refused { ticket, what: what(ticket).to_owned() });
    assert_eq!(told.calls, expected.collect::<Vec<_>>());
    tickets.refuse(vec![1], "odd");
    assert!(!tickets.tell_refused().is_short, "that calls are forgotten is told once");
}

#[test]
fn a_step_back_hangs_where_the_recorder_stands_and_never_on_the_head_that_it_leaves() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    let first = recorder.user("first").unwrap().id().unwrap().clone();
    let head = recorder.assistant("answer").unwrap().id().unwrap().clone();
    let rewind = |from: &RecordId| Body::Rewind(Rewind { from: Some(from.clone()), reason: None });
    let before = text_of(&machine);
    let error = recorder.record(rewind(&head)).unwrap_err();
    assert!(matches!(error, Error::NoPlace { .. }), "{error}");
    assert_eq!(text_of(&machine), before);
    let back = recorder.rewind(&first, None).unwrap().id().unwrap().clone();
    let again = recorder.record(rewind(&head)).unwrap().id().unwrap().clone();
    let session = machine.session();
    let parent = |id: &RecordId| session.find(id.as_str()).unwrap().parent().unwrap().id().into_owned();
    assert_eq!((parent(&back), parent(&again)), (first.0, back.0.clone()));
}
