//! Named files of sessions that our recorder wrote: whose project they are in, and turns without any.

use std::fs;
use std::path::Path;

use scrollback::model::{Body, Content, Context};
use scrollback::write::{Blocked, Goal, NewSession, Recorder, Scope, Store, Undo};

use super::Desk;
use crate::support::native;

/// A turn in which a tool changes a file.
fn change(recorder: &mut Recorder, path: &Path, named: &str, content: &str) {
    recorder.assistant("I change it.").unwrap();
    recorder.before_tool(&[named]).unwrap();
    fs::write(path, content).unwrap();
    recorder.after_tool().unwrap();
    recorder.assistant("Done.").unwrap();
}

fn undo_files(desk: &Desk, store: &Store, session: &str) {
    let session = store.load(session).unwrap();
    let undo = Undo::open(&session, desk.host(), None).unwrap();
    let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
    assert!(plan.is_ready(Blocked::Stop), "{:?}", plan.files);
    undo.apply(&plan, Blocked::Stop).unwrap();
}

#[test]
fn in_a_folder_of_a_repository_files_are_named_from_its_root() {
    let desk = Desk::new();
    let (root, sub) = (desk.project(), desk.project().join("sub"));
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::create_dir_all(sub.join("sub")).unwrap();
    for named in [sub.join("f").to_str().unwrap(), "sub/f"] {
        fs::write(sub.join("f"), "zero").unwrap();
        // As it would be found from the working directory.
        fs::write(sub.join("sub/f"), "one").unwrap();
        let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
        let mut recorder = store.session(NewSession::of(&sub), scrollback::Policy::New).unwrap();
        recorder.user("Change it.").unwrap();
        change(&mut recorder, &sub.join("f"), named, "one");
        recorder.close().unwrap();
        undo_files(&desk, &store, recorder.session().unwrap().as_str());
        assert_eq!(fs::read_to_string(sub.join("f")).unwrap(), "zero", "{named}");
        assert_eq!(fs::read_to_string(sub.join("sub/f")).unwrap(), "one", "{named}");
    }
}

#[test]
fn a_first_record_from_elsewhere_says_where_files_are() {
    let desk = Desk::new();
    let (root, sub) = (desk.project(), desk.project().join("sub"));
    fs::create_dir_all(&sub).unwrap();
    for folder in [&root, &sub] {
        fs::write(folder.join("f"), "zero").unwrap();
    }
    let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&root), scrollback::Policy::New).unwrap();
    recorder.title("A title says nothing of folders.").unwrap();
    let context = Context { cwd: Some(sub.to_str().unwrap().to_owned()), ..Context::default() };
    recorder.record(Body::User(Content { context, ..Content::from("Change it.") })).unwrap();
    change(&mut recorder, &sub.join("f"), "f", "one");
    recorder.close().unwrap();
    fs::write(root.join("f"), "two").unwrap();
    undo_files(&desk, &store, recorder.session().unwrap().as_str());
    assert_eq!([&root, &sub].map(|folder| fs::read_to_string(folder.join("f")).unwrap()), ["two", "zero"]);
}

#[test]
fn a_second_undo_passes_over_turns_that_changed_no_file() {
    let desk = Desk::new();
    let file = desk.project().join("f");
    fs::write(&file, "zero").unwrap();
    let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&desk.project()), scrollback::Policy::New).unwrap();
    for content in [Some("one"), None, Some("two")] {
        recorder.user("Go on.").unwrap();
        match content {
            Some(content) => change(&mut recorder, &file, "f", content),
            None => drop(recorder.assistant("Nothing to change.").unwrap()),
        }
    }
    recorder.close().unwrap();
    for expected in ["one", "zero"] {
        undo_files(&desk, &store, recorder.session().unwrap().as_str());
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
fn a_turn_that_went_on_after_an_undo_is_undone_next() {
    for scope in [Scope::FilesOnly, Scope::Conversation] {
        let desk = Desk::new();
        let (file, other) = (desk.project().join("f"), desk.project().join("g"));
        for file in [&file, &other] {
            fs::write(file, "zero").unwrap();
        }
        let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
        let mut recorder = store.session(NewSession::of(&desk.project()), scrollback::Policy::New).unwrap();
        recorder.user("Change it.").unwrap();
        change(&mut recorder, &file, "f", "one");
        recorder.user("Again.").unwrap();
        change(&mut recorder, &other, "g", "one");
        recorder.assistant("And the other.").unwrap();
        recorder.before_tool(&["f"]).unwrap();
        let id = recorder.session().unwrap().clone();
        let undo_turn = || {
            let session = store.load(id.as_str()).unwrap();
            let undo = Undo::open(&session, desk.host(), None).unwrap();
            let plan = undo.plan(&Goal::LastTurn, scope).unwrap();
            undo.apply(&plan, Blocked::Stop).unwrap();
            [&file, &other].map(|file| fs::read_to_string(file).unwrap())
        };
        assert_eq!(undo_turn(), ["one", "zero"], "{scope:?}");
        fs::write(&file, "two").unwrap();
        recorder.after_tool().unwrap();
        recorder.assistant("Done.").unwrap();
        recorder.close().unwrap();
        assert_eq!(undo_turn(), ["one", "zero"], "{scope:?}");
        assert_eq!(undo_turn(), ["zero", "zero"], "{scope:?}");
    }
}
