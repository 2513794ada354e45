//! Snapshots of what tools change, in a store that is full, fails or crashes. The project is on the machine's own disk.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use super::again::text_of;
use super::*;
use crate::model::hash::sha256;
use crate::model::record::{After, Before, Body, FileState, Kind};
use crate::redact::{Redactor, Rule};
use crate::write::recorder::Warning;
use tempfile::TempDir;

/// A machine whose project has two files.
fn machine_with_project(options: Options) -> (Machine, TempDir) {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("old.txt"), "one\r\ntwo").unwrap();
    fs::write(project.path().join("large.bin"), vec![7; 700_000]).unwrap();
    let mut machine = Machine { options, ..Machine::new(&Native, 0) };
    machine.host.cwd = project.path().to_path_buf();
    (machine, project)
}

fn begin(machine: &Machine, project: &TempDir) -> Result<Recorder> {
    let mut recorder = machine.store().begin(NewSession { project: project.path(), ..new() })?;
    recorder.user("Change the files.")?;
    recorder.assistant("I change them.")?;
    Ok(recorder)
}

fn change(project: &TempDir) {
    fs::write(project.path().join("old.txt"), "three").unwrap();
    fs::remove_file(project.path().join("large.bin")).unwrap();
    fs::write(project.path().join("new.txt"), "").unwrap();
}

const NAMES: [&str; 3] = ["old.txt", "large.bin", "new.txt"];

/// The files of all snapshots of the log.
fn files(machine: &Machine) -> Vec<FileState> {
    let session = machine.session();
    let snapshots = session.records().filter(|record| record.kind() == Kind::Snapshot);
    let files = snapshots.flat_map(|record| match record.body().unwrap() {
        Body::Snapshot(snapshot) => snapshot.files,
        body => panic!("{body:?}"),
    });
    files.collect()
}

fn blob(sim: &Sim, id: &str) -> Option<Vec<u8>> {
    zstd::stream::decode_all(sim.read(&format!("{STORE}/blobs/{}/{id}", &id[..2]))?.as_slice()).ok()
}

#[test]
fn on_a_full_disk_the_tool_can_run_and_the_snapshot_says_what_was_not_copied() {
    let (machine, project) = machine_with_project(Options::unredacted());
    let mut recorder = begin(&machine, &project).unwrap();
    let names = machine.sim.names();
    machine.sim.leave_room_for(5);
    recorder.before_tool(&NAMES).unwrap();
    assert_eq!(recorder.warnings(), [Warning::NotCopied]);
    let is_file = |name: &&PathBuf| machine.sim.read(&name.to_string_lossy()).is_some();
    assert_eq!(machine.sim.names().iter().filter(is_file).count(), names.iter().filter(is_file).count());
    change(&project);
    let log = text_of(&machine);
    recorder.after_tool().unwrap_err();
    assert_eq!(text_of(&machine), log);
    machine.sim.forget_events();
    let entry = recorder.after_tool().unwrap();
    assert!(entry.id().is_some());
    let files = files(&machine);
    let states: Vec<(&str, bool, &After)> = files
        .iter()
        .map(|file| (file.path.as_str(), matches!(file.before, Before::Failed(Some(_))), &file.after))
        .collect();
    let (three, empty) = (After::Hash(sha256(b"three")), After::Hash(sha256(b"")));
    assert_eq!(states, [("old.txt", true, &three), ("large.bin", true, &After::Absent), ("new.txt", false, &empty)]);
    assert_eq!(recorder.after_tool().unwrap_err().to_string(), "no files were named before the tool ran");
}

#[test]
fn a_file_that_was_not_copied_and_not_changed_is_not_recorded() {
    let (machine, project) = machine_with_project(Options::unredacted());
    let mut recorder = begin(&machine, &project).unwrap();
    machine.sim.leave_room_for(5);
    recorder.before_tool(&NAMES).unwrap();
    machine.sim.forget_events();
    assert_eq!(recorder.after_tool().unwrap(), Entry::default());
    assert_eq!(files(&machine), []);
}

/// Whatever fails or breaks down: what a snapshot names is there, whole.
#[test]
fn after_a_failure_or_a_crash_at_every_operation_no_snapshot_names_a_blob_that_is_not_there() {
    let run = |machine: &Machine, project: &TempDir| -> Result<Entry> {
        let mut recorder = begin(machine, project)?;
        recorder.before_tool(&NAMES)?;
        change(project);
        recorder.after_tool()
    };
    let (whole, project) = machine_with_project(Options::unredacted());
    run(&whole, &project).unwrap();
    assert_eq!(files(&whole).len(), 3);
    for step in 0..whole.sim.steps() {
        for event in [Event::PowerLoss, Event::Fails(io::ErrorKind::Other)] {
            let (machine, project) = machine_with_project(Options::unredacted());
            machine.sim.at(step, event.clone());
            let entry = run(&machine, &project);
            let story = format!("{event:?} at {step}");
            let crashed = machine.crash(step);
            for machine in [&machine, &crashed] {
                let files = files(machine);
                assert!(files.len() == 3 || files.is_empty(), "{story}: {files:?}");
                assert!(files.len() == 3 || entry.as_ref().map_or(true, |entry| entry.number == 0), "{story}");
                for file in files {
                    if let Before::Blob { id, hash } = file.before {
                        let bytes = blob(&machine.sim, &id).unwrap_or_else(|| panic!("{story}: {} is gone", file.path));
                        assert_eq!((id, hash), (blake3::hash(&bytes).to_hex().to_string(), Some(sha256(&bytes))));
                    }
                }
            }
        }
    }
}

/// Undo needs the path, and the hashes to the last digit.
#[test]
fn nothing_of_a_snapshot_is_masked() {
    let digits = Redactor::of_rules(vec![Box::new(NoDigits)]);
    for options in [Options::usual(), Options { redactor: Some(Arc::new(digits)), ..Options::usual() }] {
        check_exact(options);
    }
}

/// A rule of a user that matches hashes, too.
struct NoDigits;

impl Rule for NoDigits {
    fn scrub<'t>(&self, _: Option<&str>, text: &'t str) -> Cow<'t, str> {
        text.replace(|sign: char| sign.is_ascii_digit(), "#").into()
    }
}

fn check_exact(options: Options) {
    let (machine, project) = machine_with_project(options);
    let names = [".env", "secrets/password.txt", "keys/id_rsa", "config/api_key=1.json", "a@example.org.txt"];
    let secret = "db_password = \"swordfish7\"\n";
    for name in names {
        fs::create_dir_all(project.path().join(name).parent().unwrap()).unwrap();
        fs::write(project.path().join(name), secret).unwrap();
    }
    let mut recorder = begin(&machine, &project).unwrap();
    recorder.before_tool(&names).unwrap();
    for name in names {
        fs::write(project.path().join(name), "tide=high").unwrap();
    }
    recorder.after_tool().unwrap();
    let log = text_of(&machine);
    assert!(!log.contains("swordfish7"), "{log}");
    let files = files(&machine);
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), names, "{log}");
    let id = blake3::hash(secret.as_bytes()).to_hex().to_string();
    for file in files {
        let before = Before::Blob { id: id.clone(), hash: Some(sha256(secret.as_bytes())) };
        assert_eq!((file.before, file.after), (before, After::Hash(sha256(b"tide=high"))), "{}", file.path);
        assert_eq!(file.extra.get("size"), Some(&json!(9)), "{}", file.path);
    }
}

#[test]
fn calls_that_fail_together_forget_no_file() {
    let (machine, project) = machine_with_project(Options::unredacted());
    let mut recorder = begin(&machine, &project).unwrap();
    recorder.before_tool(&NAMES).unwrap();
    change(&project);
    let failed = recorder.together(|recorder| {
        recorder.after_tool()?;
        Err::<(), _>(Error::OutOfOrder("the tool failed"))
    });
    assert!(failed.is_err());
    assert_eq!(files(&machine), []);
    recorder.after_tool().unwrap();
    assert_eq!(files(&machine).len(), 3);
}
