//! What becomes of each call of an answer that comes in pieces: told once, lost or refused, and never in the way of the rest.

use super::again::{call, text_of, written};
use super::*;
use crate::write::recorder::Refused;

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
    let told = |losses: &[crate::model::loss::Loss]| {
        losses.iter().map(|loss| loss.what.to_string()).collect::<Vec<_>>().join(", ")
    };
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
            if dialect.name() == "claude-code" && has_words {
                // Each call that said some of it, and the one that ended it.
                let told = (0..came.len()).filter(is_lost).count();
                assert!((0..came.len()).all(|at| !is_thought[at] || is_lost(&at)), "{story}: {came:?}");
                assert!(told <= is_thought.iter().filter(|is| **is).count() + 1, "{story}: {came:?}");
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
            assert_eq!(error.to_string(), "two tool calls of one answer have the id \"c\"");
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
        let about = Content { metadata, ..Content::default() };
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
        let came = came_of(&mut recorder, deltas);
        let log = text_of(&machine);
        let is_told = came.iter().any(|(_, losses)| losses.contains("result") || losses.contains("call"));
        assert!(is_told || log.contains("<found>"), "{}: {came:?}\n{log}", dialect.name());
        assert!(log.contains("At 4."), "{}: {log}", dialect.name());
    }
}
