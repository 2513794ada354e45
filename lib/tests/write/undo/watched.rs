//! A watched project in which files, links and folders take each other's place: every level is undone and redone exactly.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use scrollback::session::Source;
use scrollback::write::{Blocked, Goal, NewSession, Readiness, Scope, Store, Undo, file_history};

use super::{Desk, tree};
use crate::support::native;

/// What happens to a project, before the session and in each turn.
type Step = fn(&Path);

fn write(project: &Path, path: &str, content: &str) {
    let place = project.join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, content).unwrap();
}

/// Goes to a goal; returns whether there was something to do.
fn go(desk: &Desk, source: &Source, goal: &Goal, case: &str) -> bool {
    let session = desk.open(source);
    let undo = Undo::open(&session, desk.host(), None).unwrap();
    let plan = undo.plan(goal, Scope::Conversation).unwrap();
    let blocked: Vec<String> = plan
        .files
        .iter()
        .filter_map(|file| file.reason.clone().map(|why| file.path.clone() + ": " + &why))
        .collect();
    assert!(plan.is_ready(Blocked::Stop), "{case}: {blocked:?}");
    if !plan.is_empty() {
        undo.apply(&plan, Blocked::Stop).unwrap();
    }
    !plan.is_empty()
}

fn check(case: &str, start: Step, turns: &[Step]) {
    let desk = Desk::new();
    let project = desk.project();
    start(&project);
    let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&project), scrollback::Policy::New).unwrap();
    recorder.user("Watch.").unwrap();
    recorder.watch(".").unwrap();
    recorder.assistant("I do.").unwrap();
    let (mut states, mut prompts) = (vec![tree(&project)], Vec::new());
    for turn in turns {
        prompts.push(recorder.user("Change something.").unwrap().id().unwrap().to_string());
        recorder.assistant("I change it.").unwrap();
        turn(&project);
        recorder.assistant("Done.").unwrap();
        states.push(tree(&project));
    }
    recorder.close().unwrap();
    let source = store.source(recorder.session().unwrap().as_str()).unwrap();
    drop(recorder);
    for round in 0..2 {
        for level in (0..turns.len()).rev() {
            let what = format!("{case}, round {round}, undo to {level}");
            assert!(go(&desk, &source, &Goal::LastTurn, &what), "{what}");
            assert_eq!(tree(&project), states[level], "{what}");
            assert!(!go(&desk, &source, &Goal::Before(prompts[level].clone()), &what), "{what}: it is there already");
        }
        for (level, state) in states.iter().enumerate().skip(1) {
            let what = format!("{case}, round {round}, redo to {level}");
            assert!(go(&desk, &source, &Goal::Redo, &what), "{what}");
            assert_eq!(tree(&project), *state, "{what}");
        }
    }
}

#[test]
fn what_takes_the_place_of_something_else_is_undone_and_redone_at_every_level() {
    let edit: Step = |project| write(project, "c", "1");
    let link_to_folder: Step = |project| {
        fs::remove_file(project.join("b")).unwrap();
        write(project, "b/q", "q");
    };
    let folder_to_link: Step = |project| {
        fs::remove_dir_all(project.join("b")).unwrap();
        symlink("a", project.join("b")).unwrap();
    };
    let with_link: Step = |project| {
        write(project, "a", "a");
        symlink("a", project.join("b")).unwrap();
    };
    let with_link_to_folder: Step = |project| {
        write(project, "real/q", "other");
        symlink("real", project.join("b")).unwrap();
    };
    let with_file: Step = |project| write(project, "b", "file");
    let with_folder: Step = |project| {
        write(project, "a", "a");
        write(project, "b/q", "q");
    };
    let file_to_empty_folder: Step = |project| {
        fs::remove_file(project.join("b")).unwrap();
        fs::create_dir(project.join("b")).unwrap();
    };
    check("a link becomes a folder", with_link, &[edit, link_to_folder]);
    check("a link to a folder becomes a folder", with_link_to_folder, &[edit, link_to_folder]);
    check("a file becomes a folder", with_file, &[edit, link_to_folder]);
    check("a folder becomes a link", with_folder, &[folder_to_link, edit]);
    check("a folder becomes a link and a folder again", with_folder, &[folder_to_link, link_to_folder, edit]);
    check("a file becomes an empty folder", with_file, &[edit, file_to_empty_folder]);
    let with_two_names: Step = |project| {
        write(project, "a", "one");
        fs::hard_link(project.join("a"), project.join("b")).unwrap();
    };
    // Both names have the content then, each in a file of its own.
    check("a file under two names", with_two_names, &[|project| write(project, "a", "two"), edit]);
}

/// What the last turn left is known by its hash alone; the same content was kept before.
#[test]
fn a_content_that_came_back_is_read_from_its_copy() {
    let desk = Desk::new();
    let project = desk.project();
    write(&project, "a", "tide");
    let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&project), scrollback::Policy::New).unwrap();
    recorder.watch(".").unwrap();
    let mut last = None;
    for content in ["ebb", "tide"] {
        recorder.user("Change it.").unwrap();
        write(&project, "a", content);
        last = recorder.assistant("Done.").unwrap().id().cloned();
    }
    recorder.close().unwrap();
    write(&project, "a", "somebody else's");
    let session = store.load(recorder.session().unwrap().as_str()).unwrap();
    let history = file_history(&session, None, None).unwrap();
    let path = history.find("a", &project).unwrap();
    let left = history.version_after(path, session.record(&last.unwrap()).unwrap()).unwrap().unwrap();
    assert_eq!(history.content(path, &left).unwrap().as_deref(), Some(&b"tide"[..]));
}

/// Whoever tries things out sets one folder for everything.
#[test]
fn a_project_in_the_folder_of_the_store_is_watched() {
    let desk = Desk::new();
    let project = desk.project();
    write(&project, "a", "tide");
    let store = Store::open(native(), &desk.root, desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&project), scrollback::Policy::New).unwrap();
    recorder.user("Change it.").unwrap();
    recorder.watch(".").unwrap();
    write(&project, "a", "ebb and flood");
    recorder.assistant("Done.").unwrap();
    recorder.close().unwrap();
    let source = store.source(recorder.session().unwrap().as_str()).unwrap();
    assert_eq!(desk.planned(&source, &Goal::LastTurn), [("a".to_owned(), Readiness::Ready, String::new())]);
}

/// The hint of an undo that has nothing to do names the turn that changed files, also if the conversation has left it.
#[test]
fn the_last_turn_that_changed_files_may_be_on_another_branch() {
    let desk = Desk::new();
    let project = desk.project();
    let store = Store::open(native(), &desk.root.join("store"), desk.host()).unwrap();
    let mut recorder = store.session(NewSession::of(&project), scrollback::Policy::New).unwrap();
    recorder.watch(".").unwrap();
    recorder.user("Hello.").unwrap();
    let answer = recorder.assistant("Hello.").unwrap().id().cloned().unwrap();
    let changing = recorder.user("Change it.").unwrap().id().cloned();
    write(&project, "a", "tide");
    recorder.assistant("Done.").unwrap();
    recorder.rewind(&answer, None).unwrap();
    recorder.user("And?").unwrap();
    recorder.assistant("Nothing.").unwrap();
    recorder.close().unwrap();
    let session = store.load(recorder.session().unwrap().as_str()).unwrap();
    let undo = Undo::open(&session, desk.host(), None).unwrap();
    assert!(undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap().is_empty());
    assert_eq!(undo.last_change().unwrap(), changing);
}
