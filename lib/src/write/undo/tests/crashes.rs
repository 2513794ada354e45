//! The power fails, or one operation fails, at each step of an undo and of its recovery.

use std::io::ErrorKind;

use super::*;
use crate::disk::sim::Random;
use crate::model::error::Result;
use crate::write::undo::{Applied, Recovered};

/// How often each crash is played, with other changes lost.
const CRASHES_PER_STEP: u64 = 2;

/// A session that changed files in every way, and what the project was before and after it.
struct Scene {
    desk: Desk,
    source: Source,
    before: Entries,
    after: Entries,
}

impl Scene {
    fn new(place: Place) -> Scene {
        let desk = Desk::new();
        let file = |text: &str, mode| Some(Entry::file(text.as_bytes(), mode));
        let link = |target: &str| Some(Entry::Link(target.to_owned()));
        let before = [
            ("edited.rs", file("one\r\ntwo", 0o644)),
            ("deep/er/deleted.txt", file("gone\n", 0o600)),
            ("deep/mode.sh", file("#!/bin/sh\n", 0o644)),
            ("link", link("edited.rs")),
            ("to-link", file("", 0o640)),
            ("from-link", link("../outside")),
            ("other.txt", file("nobody's", 0o644)),
            ("to-folder", file("a file\n", 0o644)),
            ("to-file/deep/inside", file("in a folder\n", 0o644)),
        ];
        let after = [
            ("edited.rs", file("one\r\ntwo\r\nthree", 0o644)),
            ("deep/er/deleted.txt", None),
            ("deep/mode.sh", file("#!/bin/sh\n", 0o755)),
            ("link", link("other.txt")),
            ("to-link", link("to")),
            ("from-link", file("\0\u{1}binary", 0o644)),
            ("new/folder/created.txt", file("new\n", 0o644)),
            ("to-folder", None),
            ("to-folder/deep/inside", file("in a new folder\n", 0o644)),
            ("to-file/deep/inside", None),
            ("to-file", file("a new file\n", 0o644)),
        ];
        for (path, entry) in &before {
            desk.put(path, entry);
        }
        let source = desk.source("s1", place);
        let prompt = desk.say(&source, "user", None);
        let answer = desk.say(&source, "assistant", Some(&prompt));
        let before = desk.tree.entries();
        let (gone, come) = after.into_iter().map(|(path, to)| (path.to_owned(), to)).partition(|(_, to)| to.is_none());
        desk.change(&source, &answer, &gone, false);
        desk.change(&source, &answer, &come, true);
        let after = desk.tree.entries();
        Scene { desk, source, before, after }
    }

    /// Undoes the only turn, or takes that back, with trouble at a step. Tells whether the step was reached.
    fn undo(&self, goal: &Goal, trouble: Option<(u64, Trouble)>) -> (Result<Applied>, bool) {
        self.desk.undo(&self.source, |undo| {
            let plan = undo.plan(goal, Scope::FilesOnly).unwrap();
            assert!(plan.is_ready(Blocked::Stop) && !plan.is_empty(), "{:?}", plan.files);
            self.troubled(trouble, || undo.apply(&plan, Blocked::Stop))
        })
    }

    fn recover(&self, trouble: Option<(u64, Trouble)>) -> (Result<Option<Recovered>>, bool) {
        self.desk.undo(&self.source, |undo| self.troubled(trouble, || undo.recover()))
    }

    fn troubled<T>(&self, trouble: Option<(u64, Trouble)>, work: impl FnOnce() -> T) -> (T, bool) {
        self.desk.steps.restart(trouble);
        let done = work();
        let is_reached = trouble.is_none_or(|(step, _)| self.desk.steps.done() > step);
        self.desk.steps.restart(None);
        (done, is_reached)
    }

    /// Nothing is half done, and undo and redo work.
    fn check(&self, what: &str) {
        let desk = &self.desk;
        assert!(!desk.is_interrupted(), "{what}: a note is left");
        let undone = files_of(&self.before);
        let now = desk.tree.entries();
        match desk.restores(&self.source) {
            // A folder that the session made may go with its last file.
            1 => assert_eq!(files_of(&now), undone, "{what}: the restore is recorded"),
            0 => {
                assert_eq!(now, self.after, "{what}: no restore is recorded");
                self.undo(&Goal::LastTurn, None).0.unwrap();
                assert_eq!(desk.files(), undone, "{what}");
            }
            more => panic!("{what}: {more} restores are recorded"),
        }
        self.undo(&Goal::Redo, None).0.unwrap();
        assert_eq!(desk.files(), files_of(&self.after), "{what}: after a redo");
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_project_as_it_was_or_as_it_should_be() {
    let seed = seed();
    let mut random = Random(seed);
    let mut recoveries = 0;
    let mut played = 0;
    for (place, step) in [Place::Own, Place::Sage].into_iter().flat_map(|place| (0..200).map(move |step| (place, step)))
    {
        for _ in 0..CRASHES_PER_STEP {
            let scene = Scene::new(place);
            let (_, is_reached) = scene.undo(&Goal::LastTurn, Some((step, Trouble::PowerLoss)));
            if !is_reached {
                break;
            }
            played += 1;
            scene.desk.tree.crash(&mut random);
            let what = format!("seed {seed}, {place:?}, a crash at step {step}");
            let recovered = scene.recover(None).0;
            recoveries += u64::from(recovered.unwrap_or_else(|error| panic!("{what}: {error}")).is_some());
            scene.check(&what);
        }
    }
    assert!(played > 200 && recoveries > 50, "{played} crashes, {recoveries} recoveries");
}

#[test]
fn a_crash_while_an_operation_is_recovered_is_recovered() {
    let seed = seed();
    let mut random = Random(seed);
    let mut crashes = 0;
    for first in 0.. {
        let scene = Scene::new(Place::Own);
        let (_, is_reached) = scene.undo(&Goal::LastTurn, Some((first, Trouble::PowerLoss)));
        if !is_reached {
            assert!(crashes > 50, "{crashes}");
            return;
        }
        scene.desk.tree.crash(&mut random);
        let mut what = format!("seed {seed}, a crash at step {first}");
        // Each recovery dies a little later than the one before.
        for second in (random.below(3)..).step_by(3) {
            let (recovered, is_reached) = scene.recover(Some((second, Trouble::PowerLoss)));
            if !is_reached {
                recovered.unwrap_or_else(|error| panic!("{what}: {error}"));
                break;
            }
            what = format!("{what}, {second}");
            crashes += 1;
            scene.desk.tree.crash(&mut random);
        }
        scene.check(&what);
    }
}

#[test]
fn a_file_that_changed_after_a_crash_stays_and_the_rest_goes_back() {
    let seed = seed();
    let mut random = Random(seed);
    let mut rolled_back = 0;
    let (path, edited) = ("edited.rs", Some(Entry::file(*b"mine", 0o644)));
    // Somebody edits the file, or deletes it.
    for (step, mine) in (0..).flat_map(|step| [(step, edited.clone()), (step, None)]) {
        let scene = Scene::new(Place::Own);
        let (_, is_reached) = scene.undo(&Goal::LastTurn, Some((step, Trouble::PowerLoss)));
        if !is_reached {
            assert!(rolled_back > 40, "{rolled_back}");
            return;
        }
        scene.desk.tree.crash(&mut random);
        scene.desk.put(path, &mine);
        let what = format!("seed {seed}, a crash at step {step}");
        let crash = (random.below(40), Trouble::PowerLoss);
        let mut recovered = scene.recover(Some(crash));
        if recovered.1 {
            scene.desk.tree.crash(&mut random);
            recovered = scene.recover(None);
        }
        let recovered = recovered.0.unwrap_or_else(|error| panic!("{what}: {error}"));
        let is_recorded = scene.desk.restores(&scene.source) == 1;
        assert_eq!(recovered == Some(Recovered::Finished), is_recorded && recovered.is_some(), "{what}");
        rolled_back += u64::from(recovered == Some(Recovered::RolledBack));
        let mut expected = files_of(if is_recorded { &scene.before } else { &scene.after });
        match &mine {
            Some(mine) => _ = expected.insert(path.to_owned(), mine.clone()),
            None => _ = expected.remove(path),
        }
        assert_eq!(scene.desk.files(), expected, "{what}");
        assert!(!scene.desk.is_interrupted(), "{what}");
    }
}

#[test]
fn an_operation_that_fails_is_taken_back_at_once() {
    for kind in [ErrorKind::StorageFull, ErrorKind::PermissionDenied] {
        let (mut taken_back, mut left) = (0, 0);
        for step in 0.. {
            let scene = Scene::new(Place::Own);
            let what = format!("{kind:?} at step {step}");
            let (applied, is_reached) = scene.undo(&Goal::LastTurn, Some((step, Trouble::Fails(kind))));
            if !is_reached {
                assert!(taken_back > 50 && left < 6, "{taken_back} were taken back, {left} were left");
                break;
            }
            let is_recorded = scene.desk.restores(&scene.source) == 1;
            if scene.desk.is_interrupted() {
                // It is done, and only the note of it is left.
                assert!(is_recorded, "{what}");
                assert_eq!(scene.recover(None).0.unwrap(), Some(Recovered::Finished), "{what}");
                left += 1;
            } else if applied.is_err() {
                assert!(!is_recorded, "{what}");
                assert_eq!(scene.desk.tree.entries(), scene.after, "{what}");
                taken_back += 1;
            }
            scene.check(&what);
        }
    }
}
