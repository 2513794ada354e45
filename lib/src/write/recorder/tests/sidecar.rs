//! What the file beside the log says: what a reader counts, whether a recorder is at work, and whose title it is.

use super::*;
use crate::disk::replace::{Durable, replace};
use crate::model::record::Usage;
use crate::write::recorder::Warning;

#[test]
fn the_sidecar_counts_what_a_reader_counts() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    for piece in ["a", "b", "c"] {
        recorder.delta(Delta::Text(piece.to_owned())).unwrap();
    }
    let usage = Usage { output: Some(3), ..Usage::default() };
    recorder.finish_answer(Some(usage)).unwrap();
    recorder.usage(usage).unwrap();
    recorder.close().unwrap();
    let mut again = machine.start().unwrap();
    let first_answer = again.head().unwrap().clone();
    // The same answer's cost again, by a process that did not give the answer.
    again.usage(usage).unwrap();
    let counted = |recorder: &Recorder| {
        let tally = &recorder.log.as_ref().unwrap().cursor.tally;
        (tally.messages, tally.usage)
    };
    assert_eq!(counted(&again), counted(&recorder));
    // What is not known any more is absent, as it is for a reader.
    for told in [Usage { input: Some(5), ..usage }, usage, Usage { input: Some(0), output: None, ..usage }, usage] {
        again.usage(told).unwrap();
        assert_eq!(counted(&again).1, Some(told));
        again.close().unwrap();
        again = machine.start().unwrap();
        assert_eq!(counted(&again).1, Some(told));
    }
    again.user("second").unwrap();
    again.assistant(Content { usage: Some(usage), ..Content::from("d") }).unwrap();
    again.rewind(&first_answer, None).unwrap();
    again.usage(usage).unwrap();
    again.close().unwrap();
    assert_eq!(counted(&again).1.and_then(|usage| usage.output), Some(6));
    assert_eq!(counted(&machine.start().unwrap()), counted(&again));
}

#[test]
fn a_session_is_open_from_each_write_to_a_good_close() {
    let state = |recorder: &Recorder| recorder.log.as_ref().unwrap().cursor.tally.is_open;
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.system("noticed").unwrap();
    machine.sim.at(machine.sim.steps(), Event::Fails(io::ErrorKind::Other));
    recorder.close().unwrap_err();
    assert!(state(&recorder));
    recorder.reopen().unwrap();
    recorder.close().unwrap();
    assert!(!state(&recorder));
    recorder.user("once more").unwrap();
    assert!(state(&recorder));
}

#[test]
fn a_title_given_by_another_program_stays_in_the_sidecar_and_an_unclear_one_is_left_alone() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.title("ours").unwrap();
    let told = |machine: &Machine| {
        let path = machine.log().replace("messages.jsonl", "metadata.json");
        serde_json::from_slice::<serde_json::Value>(&machine.sim.read(&path).unwrap()).unwrap()
    };
    assert_eq!(told(&machine)["customTitle"], "ours");
    let mut other = machine.start().unwrap();
    other.title("theirs").unwrap();
    other.close().unwrap();
    recorder.user("more").unwrap();
    recorder.close().unwrap();
    assert_eq!(told(&machine)["customTitle"], "theirs");
    recorder.title("ours again").unwrap();
    assert_eq!(told(&machine)["customTitle"], "ours again");
    assert_eq!(recorder.warnings(), []);

    let sidecar = machine.log().replace("messages.jsonl", "metadata.json");
    for unclear in ["{\"customTitle\": \"half", "[]", "\"a text\""] {
        machine.sim.write(&sidecar, unclear.as_bytes());
        for number in 0..3 {
            recorder.title(format!("mine {number}").as_str()).unwrap();
        }
        recorder.close().unwrap();
        assert_eq!(machine.sim.read(&sidecar).unwrap(), unclear.as_bytes());
        assert_eq!(recorder.warnings(), [Warning::DamagedSidecar], "{unclear}: it is told once");
    }
    // A crash left it empty: nobody has anything in it.
    for empty in ["", "\n"] {
        machine.sim.write(&sidecar, empty.as_bytes());
        recorder.title("whole again").unwrap();
        recorder.close().unwrap();
        assert_eq!((told(&machine)["customTitle"].as_str(), recorder.warnings()), (Some("whole again"), vec![]));
    }
}

/// Other programs write there too; we return their numbers as they were.
#[test]
fn a_sidecar_keeps_numbers_that_64_bits_cannot_hold() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    recorder.close().unwrap();
    let path = recorder.log.as_ref().unwrap().place.sidecar.clone().unwrap();
    let text = || String::from_utf8(machine.sim.read(&path.to_string_lossy()).unwrap()).unwrap();
    let theirs = r#""theirs": {"large": 1e400, "long": 123456789012345678901234567890},"#;
    let with_theirs = text().replacen('{', &format!("{{{theirs}"), 1);
    replace(&machine.sim, &path, "new", with_theirs.as_bytes(), Durable::No).unwrap();
    recorder.title("Tides").unwrap();
    recorder.close().unwrap();
    let after = text();
    assert!(after.contains("Tides"), "{after}");
    for number in ["1e400", "123456789012345678901234567890"] {
        assert!(after.contains(&format!("\": {number}")), "{after}");
    }
}
