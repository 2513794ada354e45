//! `/undo`, `/redo` and `/files`: what the agent's tool wrote goes away and comes back, and somebody else's edit stays.

use std::fs;

use serde_json::{Value, json};

use crate::support::messages;
use crate::{Place, said};

/// A model that changes one file and makes another one, and a project with the first of them.
fn place(format: &'static str) -> Place {
    let write = |path: &str| json!({"name": "write_file", "input": {"path": path, "content": "ebb"}});
    let script: Value = json!([{"calls": [write("tide.txt"), write("new.txt")]}, {"text": "It is written."}]);
    let place = Place::new(format, &script);
    fs::write(place.cwd().join("tide.txt"), "flood").unwrap();
    place
}

impl Place {
    /// The two files that the model writes.
    fn both(&self) -> [Option<String>; 2] {
        ["tide.txt", "new.txt"].map(|name| fs::read_to_string(self.cwd().join(name)).ok())
    }
}

fn is(tide: &str, new: Option<&str>) -> [Option<String>; 2] {
    [Some(tide.to_owned()), new.map(str::to_owned)]
}

#[test]
fn undo_restores_what_a_tool_wrote_and_redo_brings_it_back() {
    let place = place("native");
    place.chat(&[], "Write it down.\n").well();
    let refused = place.chat(&["--continue"], "/files\n/undo\nn\n").well();
    assert!(refused.out.contains("tide.txt  modified\n"), "{}", refused.out);
    assert!(refused.out.contains("new.txt  created\n"), "{}", refused.out);
    assert!(refused.err.contains("nothing was changed"), "{}", refused.err);
    assert_eq!(place.both(), is("ebb", Some("ebb")));

    let undone = place.chat(&["--continue"], "/undo\ny\n/undo\n").well();
    let plan = "Go back to before “Write it down.”\n  delete    new.txt  \n  restore   tide.txt  \n";
    assert!(undone.out.contains(plan), "{}", undone.out);
    assert!(undone.out.contains("Restored 2 files.\nNothing to undo.\n"), "{}", undone.out);
    assert_eq!(place.both(), is("flood", None));
    assert!(said(&messages(&place.newest())).is_empty(), "the conversation goes back too");

    place.chat(&["--continue"], "/redo\ny\n/redo\n").well();
    assert_eq!(place.both(), is("ebb", Some("ebb")));
    assert_eq!(said(&messages(&place.newest())).last().unwrap(), "model: It is written.");
}

#[test]
fn a_recorder_that_undid_something_goes_on_from_there() {
    let place = place("native");
    place.chat(&[], "Write it down.\n/undo\ny\nOnce more.\n/undo\ny\n/redo\ny\n").well();
    assert_eq!(place.both(), is("ebb", Some("ebb")));
    let whole = said(&messages(&place.newest()));
    assert_eq!((whole[0].as_str(), whole.len()), ("user: Once more.", 4), "{whole:?}");
}

#[test]
fn an_edit_of_somebody_else_is_not_undone() {
    let place = place("native");
    place.chat(&[], "Write it down.\n").well();
    fs::write(place.cwd().join("tide.txt"), "mine").unwrap();
    let undone = place.chat(&["--continue"], "/undo\n").well();
    assert!(undone.out.contains("  conflict  tide.txt  it was changed since\n"), "{}", undone.out);
    assert!(undone.err.contains("nothing was changed"), "{}", undone.err);
    assert_eq!(place.both(), is("mine", Some("ebb")));
}

#[test]
fn a_format_without_file_states_says_so_and_nothing_is_changed() {
    for format in ["claude-code", "codex", "fluux"] {
        let place = place(format);
        let spoken = place.chat(&[], "Write it down.\n/undo\ny\n/files\n").well();
        assert!(spoken.err.contains("no folder to note the undo in"), "{format}: {}", spoken.err);
        assert_eq!(place.both(), is("ebb", Some("ebb")), "{format}");
    }
}
