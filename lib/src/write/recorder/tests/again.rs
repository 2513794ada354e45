//! What failed is tried again with the same words: each stands once, and every call is told once.

use super::*;
use crate::model::record::{Body, Kind, Restore, Rewind, Snapshot, Title, Todo, ToolResult, Usage};

pub(super) fn written() -> impl Iterator<Item = &'static dyn Dialect> {
    dialect::all().iter().copied().filter(|dialect| dialect.writer().is_some())
}

pub(super) fn text_of(machine: &Machine) -> String {
    String::from_utf8(machine.sim.read(&machine.log()).unwrap_or_default()).unwrap()
}

pub(super) fn answer_of(machine: &Machine) -> Content {
    let session = machine.session();
    let record = session.records().find(|record| record.kind() == Kind::Assistant).unwrap();
    let Body::Assistant(content) = record.body().unwrap() else { panic!("it is an answer") };
    content
}

pub(super) fn call(id: &str) -> Part {
    ToolPart::dynamic("read_file", id, ToolState::called(json!({"path": id}))).into()
}

/// The same words until they are taken: on a failed sync they are in the file, and `reopen` makes them safe.
fn insist(recorder: &mut Recorder, story: &str, mut say: impl FnMut(&mut Recorder) -> Result<Entry>) {
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
    insist(&mut recorder, story, |recorder| recorder.tool_results(result()));
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
        outcome: crate::model::record::Outcome::Done,
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
    // The last one says that the answer is complete.
    assert_eq!(seqs, [0, 1, 2, 3, 4]);
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
    let entry = recorder.assistant(vec![Part::text("<look>"), call("c")]).unwrap();
    assert_eq!((entry.number, entry.saved), (1, None));
    machine.sim.leave_room_for(0);
    recorder.close().unwrap_err();
    assert_eq!(recorder.saved_through(), 0);
    machine.sim.forget_events();
    recorder.close().unwrap();
    assert_eq!(recorder.saved_through(), 1);
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
    assert!(matches!(error, Error::NoRecord(_)), "{error}");
    assert_eq!(text_of(&machine), before);
    recorder.rewind(&first, None).unwrap();
    assert_eq!(recorder.todos_at_head(), None);
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
    let cursor = Cursor::at(&session, session.find(first.as_str()).ok(), &place, Path::new(PROJECT)).unwrap();
    let appender = Appender::open(Arc::new(machine.sim.clone()), Path::new(&log), Vec::new()).unwrap();
    let mut recorder = Recorder::new(Log::new(place, appender, cursor, None), Options::unredacted());
    recorder.todos(Vec::new()).unwrap();
    let session = machine.session();
    assert_eq!(session.heads().count(), 2);
    let Body::User(content) = session.find(first.as_str()).unwrap().body().unwrap() else { panic!("it is a prompt") };
    assert_eq!(content.todos, None);
}

#[test]
fn an_acknowledged_id_is_one_that_a_reader_knows() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        let snapshot = Snapshot::default();
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
            recorder.tool_results(result_of("c")),
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
        let content = answer_of(&machine);
        assert_eq!(content.parts, [Part::text(format!("a {again}"))]);
        assert_eq!(content.metadata.get("textMissing"), missing);
    }
}

#[test]
fn reports_are_kept_only_for_a_caller_that_wants_them() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        recorder.assistant("answer").unwrap();
        assert_eq!(recorder.reports(), [], "{}", dialect.name());
        recorder.keep_reports();
        recorder.user("second").unwrap();
        let reported: Vec<u64> = recorder.reports().iter().map(|report| report.entry).collect();
        assert_eq!((reported, recorder.reports()), (vec![3], vec![]), "{}", dialect.name());
    }
}

#[test]
fn a_failed_call_has_no_entry() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    machine.sim.leave_room_for(0);
    recorder.user("lost").unwrap_err();
    machine.sim.forget_events();
    assert_eq!((recorder.user("second").unwrap().number, recorder.saved_through()), (2, 2));
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
    assert!(matches!(error, Error::CannotContinue { .. }), "{error}");
    assert_eq!(text_of(&machine), before);
    let back = recorder.rewind(&first, None).unwrap().id().unwrap().clone();
    let again = recorder.record(rewind(&head)).unwrap().id().unwrap().clone();
    let session = machine.session();
    let parent = |id: &RecordId| session.find(id.as_str()).unwrap().parent().unwrap().id().into_owned();
    assert_eq!((parent(&back), parent(&again)), (first.0, back.0.clone()));
}

#[test]
fn a_restore_is_a_child_of_the_record_to_continue_from() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    let first = recorder.user("first").unwrap().id().unwrap().clone();
    let head = recorder.assistant("answer").unwrap().id().unwrap().clone();
    let todos = vec![Todo::pending("look")];
    let restore = Restore { target: Some(head.clone()), todos: Some(todos.clone()), ..Restore::default() };
    let back = recorder.restore(&first, restore.clone()).unwrap().id().unwrap().clone();
    assert_eq!(recorder.log.as_ref().unwrap().cursor.todos, Some(todos));
    let next = recorder.user("again").unwrap().id().unwrap().clone();
    // Only files: the conversation stays where it is.
    let files_only = recorder.restore(&next, restore.clone()).unwrap().id().unwrap().clone();
    assert!(recorder.restore(&"nobody".into(), restore.clone()).is_err());
    let session = machine.session();
    let parent = |id: &RecordId| session.find(id.as_str()).unwrap().parent().unwrap().id().into_owned();
    assert_eq!([parent(&back), parent(&next), parent(&files_only)], [first.0, back.0.clone(), next.0]);
    let body = |id: &RecordId| session.find(id.as_str()).unwrap().body().unwrap();
    assert_eq!(body(&back), Body::Restore(Restore { from: Some(head.clone()), ..restore.clone() }));
    assert_eq!(body(&files_only), Body::Restore(restore));
    assert_eq!((session.heads().count(), session.head().unwrap().id().into_owned()), (2, files_only.0));
}
