//! Every file that a command reads beside a log, replaced by something else: no command waits, and the session is not hidden.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "../../lib/tests/support/hostile_files.rs"]
mod hostile_files;
mod support;

use hostile_files::{Hostile, in_time};
use support::{Ran, TestEnv, talk};

/// Runs a command that must end.
fn run(env: &std::sync::Arc<TestEnv>, args: &'static [&'static str], what: &str) -> Ran {
    let env = env.clone();
    in_time(&format!("{what}: {args:?}"), move || env.run(args))
}

/// The cache of the demo is a place like any other: what somebody put there is neither followed nor waited for.
#[test]
fn the_demo_is_not_unpacked_through_what_lies_in_its_cache() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    let shown = |env: &TestEnv| env.run(&["--demo", "list"]).out;
    let first = shown(&env);
    let demo = env.home().join(".cache/scrollback/demo");
    let (file, precious) = (demo.join("data/memory"), env.work().join("precious"));
    std::fs::write(&precious, "mine").unwrap();
    let log = walk(&file)
        .into_iter()
        .find(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .unwrap();
    std::fs::remove_file(&log).unwrap();
    symlink(&precious, &log).unwrap();
    assert_eq!(shown(&env), first);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
    std::fs::remove_file(&log).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&log).status().unwrap().success());
    assert_eq!(shown(&env), first);
    let elsewhere = env.work().join("elsewhere");
    std::fs::rename(demo.join(".claude"), &elsewhere).unwrap();
    std::fs::remove_dir_all(&elsewhere).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, demo.join(".claude")).unwrap();
    assert_eq!(shown(&env), first);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "it was written through a link");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut next) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = next.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { next.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn no_command_waits_for_a_file_beside_a_session() {
    for name in ["snapshots.jsonl", "metadata.json", "messages.jsonl.scrollback.json", "backups"] {
        for hostile in Hostile::ALL {
            let what = format!("{hostile:?} as {name}");
            let env = std::sync::Arc::new(TestEnv::new());
            let log = env.session("s1", &talk());
            hostile.put(&log.with_file_name(name));
            let shown = run(&env, &["show", "s1"], &what);
            assert!(shown.code == 0 && shown.out.contains("Sure?"), "{what}: {}", shown.all());
            let listed = run(&env, &["list", "--all"], &what);
            assert!(listed.out.contains("What is two and two?"), "{what}: {}", listed.all());
            let checked = run(&env, &["doctor"], &what);
            let is_read = matches!(name, "snapshots.jsonl" | "metadata.json");
            let is_reported = checked.out.contains("unreadable-file") && checked.out.contains(&format!("s1/{name}"));
            assert_eq!(is_reported, is_read && !hostile.is_readable(), "{what}: {}", checked.all());
            for args in [
                &["rename", "s1", "Sums"][..],
                &["fork", "s1"],
                &["record", "--resume", "s1"],
                &["convert", "s1", "--to", "codex"],
                &["remove", "s1"],
                &["trash"],
                &["trash", "restore", "s1"],
            ] {
                let ran = run(&env, args, &what);
                assert!(ran.code >= 0, "{what} {args:?}: {}", ran.all());
            }
            let again = run(&env, &["show", "s1"], &what);
            assert!(again.out.contains("Sure?"), "{what}: {}", again.all());
        }
    }
}

#[test]
fn a_hostile_note_in_the_trash_hides_no_other_session() {
    for hostile in Hostile::ALL {
        let env = std::sync::Arc::new(TestEnv::new());
        env.session("s1", &talk());
        assert_eq!(run(&env, &["remove", "s1"], "").code, 0);
        hostile.put(&env.home().join(".sage/trash/s0/origin.json"));
        let listed = run(&env, &["trash"], &format!("{hostile:?}"));
        assert!(listed.code == 0 && listed.out.contains("What is two and two?"), "{hostile:?}: {}", listed.all());
        // One line, with what can be done about it.
        let about: Vec<&str> = listed.err.lines().filter(|line| line.contains("s0")).collect();
        assert!(about.len() == 1 && about[0].contains("trash empty s0"), "{hostile:?}: {}", listed.all());
        let restored = run(&env, &["trash", "restore", "s0"], &format!("{hostile:?}"));
        assert_ne!(restored.code, 0, "{hostile:?}: {}", restored.all());
        assert!(!restored.err.contains("pipe it") && restored.err.contains("trash empty s0"), "{}", restored.all());
        // Another session's command says nothing of it.
        let restored = run(&env, &["trash", "restore", "s1"], &format!("{hostile:?}"));
        assert_eq!(restored.code, 0, "{hostile:?}: {}", restored.all());
        assert!(!restored.err.contains("s0"), "{hostile:?}: {}", restored.all());
        assert_eq!(run(&env, &["remove", "s1"], "").code, 0);
        // Only who names it deletes it.
        let emptied = run(&env, &["trash", "empty", "--yes"], &format!("{hostile:?}"));
        assert!(emptied.code == 0 && emptied.err.contains("s0"), "{hostile:?}: {}", emptied.all());
        assert!(env.home().join(".sage/trash/s0").exists(), "{hostile:?}");
        let refused = run(&env, &["trash", "empty", "s0"], &format!("{hostile:?}"));
        assert!(refused.code == 2 && refused.err.contains("--yes"), "{hostile:?}: {}", refused.all());
        let deleted = run(&env, &["trash", "empty", "s0", "--yes"], &format!("{hostile:?}"));
        assert!(deleted.code == 0 && deleted.out.starts_with("deleted s0 "), "{hostile:?}: {}", deleted.all());
        assert!(!env.home().join(".sage/trash/s0").exists(), "{hostile:?}");
    }
}

#[test]
fn a_hostile_config_file_is_a_warning() {
    for hostile in Hostile::ALL {
        let env = std::sync::Arc::new(TestEnv::new());
        env.session("s1", &talk());
        hostile.put(&env.home().join(".config/scrollback/config.toml"));
        let listed = run(&env, &["list", "--all"], &format!("{hostile:?}"));
        assert!(listed.code == 0 && listed.out.contains("What is two and two?"), "{hostile:?}: {}", listed.all());
        let is_empty = matches!(hostile, Hostile::Empty | Hostile::LinkToKernelLog);
        assert_eq!(listed.err.contains("config.toml"), !is_empty, "{hostile:?}: {}", listed.all());
    }
}

#[test]
fn a_hostile_git_folder_stops_no_recording() {
    for name in [".git", ".git/HEAD"] {
        for hostile in Hostile::ALL {
            let env = std::sync::Arc::new(TestEnv::new());
            hostile.put(&env.work().join(name));
            let what = format!("{hostile:?} as {name}");
            let env = env.clone();
            let ran = in_time(&what, move || env.run_with(&["record"], b"{\"user\": \"Hi\"}\n"));
            assert_eq!(ran.code, 0, "{what}: {}", ran.all());
        }
    }
}
