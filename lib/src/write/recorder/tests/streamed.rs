//! Streamed answers: each piece is reported once, as saved, lost or refused, and none stops the rest.

use super::again::{call, text_of, written};
use super::*;
use crate::model::record::Usage;
use crate::view::history::View;
use crate::write::recorder::Report;

#[test]
fn an_answer_of_nothing_that_the_format_holds_is_refused_and_stops_nothing() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        let source = Part::SourceUrl(crate::model::message::SourceUrlPart {
            url: "https://tides.example".to_owned(),
            ..Default::default()
        });
        recorder.keep_reports();
        let entry = recorder.delta(Delta::Part(source)).unwrap();
        recorder.user("second").unwrap();
        let reports = recorder.reports();
        let count = reports.iter().filter(|report| report.entry == entry.number).count();
        assert_eq!(count, 1, "{}: {reports:?}", dialect.name());
        assert!(text_of(&machine).contains("second"), "{}", dialect.name());
        assert_eq!(recorder.saved_through(), recorder.last_entry(), "{}", dialect.name());
    }
}

/// The losses of each piece, or that it was refused, by entry.
fn losses_of(recorder: &mut Recorder, deltas: Vec<Delta>) -> Vec<(u64, String)> {
    recorder.keep_reports();
    for delta in deltas {
        recorder.delta(delta).unwrap();
    }
    // That an answer of nothing is refused is reported below.
    drop(recorder.end_turn());
    let names = |saved: Saved| saved.losses.iter().map(|loss| loss.what.to_string()).collect::<Vec<_>>().join(", ");
    let reports = recorder.reports().into_iter();
    let losses =
        reports.map(|Report { entry, result }| (entry, result.map_or_else(|why| format!("refused: {why}"), names)));
    let mut losses: Vec<_> = losses.collect();
    losses.sort_unstable();
    losses
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
            let came = losses_of(&mut recorder, deltas);
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
            if dialect.name() == "claude-code" && has_words {
                // Each call that said some of it, and the one that ended it.
                let told = (0..came.len()).filter(is_lost).count();
                assert!((0..came.len()).all(|at| !is_thought[at] || is_lost(&at)), "{story}: {came:?}");
                assert!(told <= is_thought.iter().filter(|is| **is).count() + 1, "{story}: {came:?}");
            }
            assert_eq!(recorder.saved_through(), recorder.last_entry(), "{story}");
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
            assert_eq!(error.to_string(), "two tool calls of one answer have the id \"c\"");
        }
        assert_eq!((text_of(&machine), recorder.last_entry()), (before, 1), "{}", dialect.name());
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
fn every_piece_of_a_streamed_answer_is_reported_exactly_once() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        recorder.keep_reports();
        let metadata = serde_json::Map::from_iter([("k".to_owned(), json!("v"))]);
        let about = Content { metadata, ..Content::default() };
        let deltas = [
            Delta::Model("ocean-1".to_owned()),
            Delta::Reasoning("Hm".to_owned()),
            Delta::Reasoning("m.".to_owned()),
            Delta::Text("High ".to_owned()),
            Delta::Text("water.".to_owned()),
            Delta::End(None),
            Delta::Part(call("c")),
            Delta::About(Box::new(about)),
        ];
        let entries: Vec<u64> = deltas.map(|delta| recorder.delta(delta).unwrap().number).to_vec();
        recorder.end_turn().unwrap();
        let mut reported: Vec<u64> = recorder.reports().iter().map(|report| report.entry).collect();
        reported.sort_unstable();
        assert_eq!(reported, entries, "{}", dialect.name());
        assert_eq!((recorder.saved_through(), recorder.last_entry()), (9, 9), "{}", dialect.name());
    }
}

#[test]
fn an_answer_that_is_given_up_refuses_its_entries() {
    let machine = Machine::new(dialect::named("fluux").unwrap(), 0);
    let mut recorder = machine.start().unwrap();
    recorder.keep_reports();
    let entry = recorder.delta(Delta::Text("High".to_owned())).unwrap();
    assert_eq!((entry.saved, recorder.saved_through()), (None, 0));
    recorder.drop_answer();
    let result = Err("an answer that was abandoned".to_owned());
    assert_eq!(recorder.reports(), [Report { entry: entry.number, result }]);
    assert_eq!(recorder.saved_through(), 1);
}

#[test]
fn a_handle_records_an_answer_and_history_is_what_to_send_next() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("When is high water?").unwrap();
        let mut answer = recorder.answer("ocean-1").unwrap();
        answer.text("Let me ").unwrap();
        answer.text("look.").unwrap();
        let call = answer.tool_call("read_file", json!({"path": "tides.txt"})).unwrap();
        assert!(answer.recorder().last_entry() > 1);
        answer.finish(Usage { input: Some(20), output: Some(5), ..Usage::default() }).unwrap();
        let sent = json!(recorder.history(View::OpenAi).unwrap()).to_string();
        assert!(sent.contains("no result was recorded"), "{}: an open call is closed: {sent}", dialect.name());
        recorder.tool_result(&call, Ok(json!("04:12"))).unwrap();
        // Formats that write whole turns have not written the call yet; the model must see it all the same.
        let sent = json!(recorder.history(View::OpenAi).unwrap()).to_string();
        assert!(sent.contains("Let me look.") && sent.contains("04:12"), "{}: {sent}", dialect.name());
        recorder.answer("ocean-1").unwrap().text("At 04:12.").unwrap();
        // The handle is dropped: the answer was cut off, and what came of it is written.
        assert_eq!(
            (recorder.is_answering(), recorder.saved_through()),
            (false, recorder.last_entry()),
            "{}",
            dialect.name()
        );
        recorder.user("And low water?").unwrap();
        assert_eq!(recorder.saved_through(), recorder.last_entry(), "{}", dialect.name());
        let text = text_of(&machine);
        for part in ["At 04:12.", "And low water?"] {
            assert!(text.contains(part), "{}: {part}: {text}", dialect.name());
        }
    }
}

/// A call that the provider ran comes with what it found: both are read back, or what is lost of them is told.
#[test]
fn a_call_that_comes_with_its_result_is_written_with_it() {
    for dialect in written() {
        let machine = Machine::new(dialect, 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        let state = ToolState::done(json!({"query": "tides"}), json!("<found>"));
        let hosted = ToolPart { provider_executed: Some(true), ..ToolPart::dynamic("web_search", "s1", state) };
        let deltas = vec![Delta::Part(hosted.into()), Delta::Text("At 4.".to_owned()), Delta::End(None)];
        let came = losses_of(&mut recorder, deltas);
        let log = text_of(&machine);
        let is_told = came.iter().any(|(_, losses)| losses.contains("result") || losses.contains("call"));
        assert!(is_told || log.contains("<found>"), "{}: {came:?}\n{log}", dialect.name());
        assert!(log.contains("At 4."), "{}: {log}", dialect.name());
    }
}

#[test]
fn token_counts_of_an_empty_answer_leave_the_answer_before_as_it_is() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    let usage = |input| Usage { input: Some(input), ..Usage::default() };
    recorder.assistant(Content { usage: Some(usage(1000)), ..Content::from("answer") }).unwrap();
    recorder.user("second").unwrap();
    recorder.answer("ocean-1").unwrap().finish(usage(7)).unwrap();
    assert_eq!(super::again::answer_of(&machine).usage, Some(usage(1000)));
    assert_eq!(machine.session().usage().unwrap().input, Some(1007));
    assert_eq!(recorder.warnings(), []);
}

#[test]
fn text_that_never_reached_the_disk_does_not_mark_the_answer_before() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    recorder.assistant("answer").unwrap();
    recorder.user("second").unwrap();
    machine.sim.leave_room_for(0);
    recorder.answer("ocean-1").unwrap().text("lost").unwrap_err();
    machine.sim.forget_events();
    recorder.user("third").unwrap();
    assert_eq!(super::again::answer_of(&machine).metadata.get("textMissing"), None);
    assert_eq!((recorder.saved_through(), recorder.last_entry()), (5, 5));
}

#[test]
fn a_second_model_of_one_record_is_a_loss() {
    for (dialect, is_lost) in [("native", true), ("claude-code", false)] {
        let machine = Machine::new(dialect::named(dialect).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        recorder.delta(Delta::Model("alias".to_owned())).unwrap();
        recorder.delta(Delta::Text("High water.".to_owned())).unwrap();
        recorder.delta(Delta::End(None)).unwrap();
        let entry = recorder.delta(Delta::Model("ocean-1".to_owned())).unwrap();
        let losses = entry.saved.map(|saved| saved.losses).unwrap_or_default();
        assert_eq!(losses.iter().any(|loss| loss.what.name() == "model"), is_lost, "{dialect}: {losses:?}");
    }
}

/// In a turn: an update of an answered call keeps its result, and a late result leaves the answer in one piece.
#[test]
fn updates_and_late_results_lose_nothing_in_a_turn() {
    for dialect in ["ai-sdk", "sage-el"] {
        let machine = Machine::new(dialect::named(dialect).unwrap(), 0);
        let mut recorder = machine.start().unwrap();
        recorder.user("first").unwrap();
        for id in ["a", "b"] {
            recorder.delta(Delta::Part(call(id))).unwrap();
        }
        let result = |id: &str, text: &str| {
            crate::model::record::ToolResult::new(id.to_owned(), text.into(), crate::model::record::Outcome::Done)
        };
        recorder.early_result(result("a", "<found>")).unwrap();
        recorder.delta(Delta::Part(call("a"))).unwrap();
        recorder.finish_answer(None).unwrap();
        recorder.delta(Delta::Text("At ".to_owned())).unwrap();
        recorder.early_result(result("b", "<late>")).unwrap();
        recorder.delta(Delta::Text("04:12.".to_owned())).unwrap();
        recorder.finish_answer(None).unwrap();
        recorder.close().unwrap();
        let text = text_of(&machine);
        assert!(text.contains("<found>") && text.contains("<late>"), "{dialect}: {text}");
        assert!(text.contains("At 04:12."), "{dialect}: {text}");
    }
}

#[test]
fn the_last_answer_of_a_turn_is_synced_though_its_calls_were_answered_early() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    let mut answer = recorder.answer("ocean-1").unwrap();
    let call = answer.tool_call("read_file", json!({})).unwrap();
    answer.tool_result(&call, Ok(json!("04:12"))).unwrap();
    answer.text("At 04:12.").unwrap();
    assert_eq!(answer.finish(None).unwrap().saved.unwrap().durability, Durability::Sync);
}
