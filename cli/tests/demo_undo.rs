//! `--demo undo`, the one demo command that writes: to a copy. The transcript on docs/undo.md is run.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Ran, TestEnv};

/// What the page calls the folder of the copy.
const FOLDER_ON_PAGE: &str = "/tmp/scrollback-demo-x7Qm2K";

/// Runs a command whose temporary folders lie in the test's own place.
fn run(env: &TestEnv, args: &[&str]) -> Ran {
    let temporary = env.work().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = env.command(args);
    command.env("TMPDIR", temporary);
    env.ran(command, b"")
}

/// The copies of the demo.
fn copies(env: &TestEnv) -> Vec<PathBuf> {
    fs::read_dir(env.work().join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The files of the project in a copy, with their content.
fn project(copy: &Path) -> Vec<(String, String)> {
    let read = |name: &&str| Some(((*name).to_owned(), fs::read_to_string(copy.join("harbour").join(name)).ok()?));
    ["NOTICE.md", "hours/winter.txt", "old-hours.txt"].iter().filter_map(read).collect()
}

#[test]
fn the_demo_is_undone_in_a_copy_and_redone_there() {
    let env = TestEnv::new();
    let ran = run(&env, &["--demo", "undo", "@", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let [copy] = &copies(&env)[..] else { panic!("one copy") };
    assert!(ran.err.contains(copy.file_name().unwrap().to_str().unwrap()), "it says where: {}", ran.err);
    let undone = project(copy);
    let names: Vec<&str> = undone.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["NOTICE.md", "old-hours.txt"]);
    assert!(undone[0].1.contains("Open from 08:00"), "{undone:?}");
    assert!(!copy.join("harbour/hours").exists(), "the turn made the folder");

    let store = copy.join(".local/share/scrollback");
    let store = store.to_str().unwrap();
    let first = run(&env, &["undo", "c0ff", "--store", store, "--yes"]);
    assert_eq!(first.code, 0, "{}", first.all());
    assert!(project(copy)[0].1.contains("Open from 08:30"), "a second undo goes one turn further");
    for _ in 0..2 {
        let ran = run(&env, &["redo", "c0ff", "--store", store, "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.all());
    }
    let redone = project(copy);
    assert_eq!(redone.len(), 2);
    assert!(redone[0].1.contains("see `hours/`") && redone[1].0 == "hours/winter.txt", "{redone:?}");
}

#[test]
fn the_demo_itself_and_the_users_own_folders_stay_as_they_are() {
    let env = TestEnv::new();
    let before = env.run(&["--demo", "show", "c0ff", "--raw"]).out;
    assert_eq!(run(&env, &["--demo", "undo", "c0ff", "--yes"]).code, 0);
    assert_eq!(env.run(&["--demo", "show", "c0ff", "--raw"]).out, before);
    assert!(!env.home().join(".local").exists());
}

#[test]
fn without_an_answer_the_plan_is_printed_and_nothing_is_changed() {
    let env = TestEnv::new();
    let asked = run(&env, &["--demo", "undo", "@"]);
    assert_eq!(asked.code, 2, "{}", asked.all());
    assert!(asked.out.contains("-Opening hours: see `hours/`.\n+Open from 08:00 to 17:00.\n"), "{}", asked.out);
    let [copy] = &copies(&env)[..] else { panic!("one copy") };
    assert_eq!(project(copy).len(), 2, "NOTICE.md and hours/winter.txt");
    let plan = run(&env, &["--demo", "undo", "@", "--dry-run", "--json"]);
    let files = plan.json()["files"].clone();
    let told = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| ["path", "action", "state"].map(|key| file[key].as_str().unwrap()).join(" "));
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["NOTICE.md restore ready", "hours/winter.txt delete ready", "old-hours.txt create ready"]
    );
    assert!(plan.err.contains("\"kind\":\"copied\""), "{}", plan.err);
}

/// What a terminal shows, where both outputs are one.
#[cfg(unix)]
#[test]
fn what_was_done_is_told_in_the_order_in_which_it_was() {
    let env = TestEnv::new();
    let temporary = env.work().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let script = "exec \"$0\" --demo undo @ --yes 2>&1";
    let mut command = env.with(std::process::Command::new("sh"), &["-c", script, env!("CARGO_BIN_EXE_scrollback")]);
    command.env("TMPDIR", temporary).env("PATH", "/usr/bin:/bin");
    let shown = env.ran(command, b"").out;
    let lines = ["The demo's sessions", "Restore files", "restored 3 files", "Run `scrollback redo"];
    let places = lines.map(|line| shown.find(line).unwrap_or_else(|| panic!("no {line:?}: {shown}")));
    assert!(places.is_sorted(), "{shown}");
}

#[cfg(unix)]
#[test]
fn the_copy_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let env = TestEnv::new();
    run(&env, &["--demo", "undo", "@", "--dry-run"]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let copy = copies(&env).pop().unwrap();
    assert_eq!((mode(copy.clone()), mode(copy.join("harbour/NOTICE.md"))), (0o700, 0o600));
}

#[test]
fn the_transcript_on_the_page_is_real() {
    let env = TestEnv::new();
    let page = include_str!("../../docs/undo.md");
    let blocks: Vec<&str> = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3, "the page has a plan, an undo and a redo");
    // The copy that was printed last; later commands name it.
    let mut copy = String::new();
    for block in blocks {
        let (command, told) = block.strip_prefix("$ scrollback ").unwrap().split_once('\n').unwrap();
        let args = command.replace(FOLDER_ON_PAGE, &env.work().join("tmp").join(&copy).to_string_lossy());
        let ran = run(&env, &args.split_whitespace().collect::<Vec<_>>());
        if let Some((_, said)) = ran.err.split_once("are copied to $DIR/desk/tmp/") {
            said.lines().next().unwrap().clone_into(&mut copy);
        }
        let printed = (ran.out + &ran.err).replace(&format!("$DIR/desk/tmp/{copy}"), FOLDER_ON_PAGE);
        assert_eq!(printed, told, "docs/undo.md's `{command}`");
    }
}
