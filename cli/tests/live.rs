//! A session that is being recorded is not removed, whatever its format; one whose recorder was killed is.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Child;

use support::TestEnv;

/// Every dialect that can be recorded, with the options that it needs.
const DIALECTS: [(&str, &[&str]); 7] = [
    ("native", &[]),
    ("claude-code", &[]),
    ("codex", &[]),
    ("qwen-code", &[]),
    ("fluux", &["--jid", "ada@example.org"]),
    ("sage-el", &[]),
    ("ai-sdk", &[]),
];

/// Starts a recording and waits until something of it is on disk.
fn start(env: &TestEnv, dialect: &str, more: &[&str]) -> Child {
    let args: Vec<&str> = ["record", "--dialect", dialect].iter().chain(more).copied().collect();
    let mut command = env.command(&args);
    // The clock runs: a stopped one would make every recording look old.
    command.env_remove("SCROLLBACK_NOW");
    let mut child = command.spawn().unwrap();
    let lines = "{\"user\": \"When is high water?\"}\n{\"assistant\": \"At 04:12.\"}\n{\"user\": \"And low water?\"}\n";
    child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    let mut acknowledged = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut acknowledged).unwrap();
    assert!(acknowledged.contains("\"saved\"") || acknowledged.contains("\"id\""), "{dialect}: {acknowledged}");
    child
}

fn run(env: &TestEnv, args: &[&str]) -> support::Ran {
    let mut command = env.command(args);
    command.env_remove("SCROLLBACK_NOW");
    env.ran(command, b"")
}

/// The id of the only session.
fn only(env: &TestEnv) -> String {
    let listed = run(env, &["list", "--all", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap_or_else(|| panic!("{listed}"));
    id.to_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut next) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = next.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { next.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A recorder goes on without a lock that it cannot create; then nobody knows whether there is one.
#[test]
fn nothing_is_removed_where_the_lock_cannot_be_created() {
    let env = TestEnv::new();
    let data = env.home().join(".local/share/scrollback");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("live"), "").unwrap();
    let mut child = start(&env, "claude-code", &[]);
    let id = only(&env);
    let refused = run(&env, &["remove", &id]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert_eq!(run(&env, &["show", &id]).code, 0);
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_session_that_is_being_recorded_is_not_removed() {
    for (dialect, more) in DIALECTS {
        let env = TestEnv::new();
        let mut child = start(&env, dialect, more);
        let id = only(&env);
        let refused = run(&env, &["remove", &id]);
        assert_eq!(refused.code, 2, "{dialect}: {}", refused.all());
        assert!(refused.err.contains("another program is writing to it"), "{dialect}: {}", refused.all());
        let locks = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "live");
        assert_eq!(files(&env.home()).iter().filter(|path| locks(path)).count(), 1, "{dialect}");
        // Nothing but our own data folder holds it.
        let data = env.home().join(".local/share/scrollback");
        assert!(files(&env.home()).iter().filter(|path| locks(path)).all(|path| path.starts_with(&data)), "{dialect}");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "{dialect}");
        assert_eq!(files(&env.home()).iter().filter(|path| locks(path)).count(), 0, "{dialect}: the lock is left");
        let removed = run(&env, &["remove", &id]);
        assert_eq!(removed.code, 0, "{dialect}: {}", removed.all());
        let restored = run(&env, &["trash", "restore", &id]);
        assert_eq!(restored.code, 0, "{dialect}: {}", restored.all());
    }
}

#[test]
fn a_killed_recorder_blocks_nothing() {
    for (dialect, more) in DIALECTS {
        let env = TestEnv::new();
        let mut child = start(&env, dialect, more);
        let id = only(&env);
        child.kill().unwrap();
        child.wait().unwrap();
        let removed = run(&env, &["remove", &id]);
        assert_eq!(removed.code, 0, "{dialect}: {}", removed.all());
        let left: Vec<PathBuf> =
            files(&env.home()).into_iter().filter(|path| path.to_string_lossy().contains("/live/")).collect();
        assert!(left.is_empty(), "{dialect}: {left:?}");
    }
}

#[test]
fn a_killed_recorder_blocks_nothing_after_another_one_has_started() {
    let env = TestEnv::new();
    let mut child = start(&env, "native", &[]);
    let id = only(&env);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut other = start(&env, "claude-code", &[]);
    let removed = run(&env, &["remove", &id]);
    assert_eq!(removed.code, 0, "{}", removed.all());
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
fn a_lock_that_is_left_over_says_nothing_about_a_recorder_with_another_data_folder() {
    let env = TestEnv::new();
    let store = env.work().join("store");
    let record = |data: &str, more: &[&str]| {
        let args: Vec<&str> = ["record", "--store", store.to_str().unwrap()].iter().chain(more).copied().collect();
        let mut command = env.command(&args);
        command.env_remove("SCROLLBACK_NOW").env("SCROLLBACK_HOME", env.work().join(data));
        let mut child = command.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"{\"user\": \"Hi\"}\n").unwrap();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        child
    };
    let mut killed = record("one", &["--id", "tides"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut writer = record("two", &["--continue"]);
    let mut command = env.command(&["remove", "tides", "--store", store.to_str().unwrap()]);
    command.env_remove("SCROLLBACK_NOW").env("SCROLLBACK_HOME", env.work().join("one"));
    let refused = env.ran(command, b"");
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert!(store.join("sessions/tides/messages.jsonl").exists());
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_data_folder_that_cannot_be_written_costs_no_recording_that_needs_no_key() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.home().join(".local/share")).unwrap();
    std::fs::write(env.home().join(".local/share/scrollback"), "not a folder").unwrap();
    let store = env.work().join("store");
    let args = ["record", "--no-redact", "--store", store.to_str().unwrap(), "--id", "tides"];
    let ran = env.run_with(&args, b"{\"user\": \"Hi\"}\n");
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert!(ran.err.contains("data folder cannot be written"), "{}", ran.all());
    assert!(store.join("sessions/tides/messages.jsonl").is_file());
}

/// Removes and restores across two real file systems, killed at any moment: nothing is lost, and the next call finishes or undoes.
#[cfg(target_os = "linux")]
#[test]
fn a_removal_across_disks_that_is_killed_loses_nothing() {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;
    let env = TestEnv::new();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if other.path().metadata().unwrap().dev() == env.home().metadata().unwrap().dev() {
        return;
    }
    let log = env.home().join(".claude/projects/-x/5e551000-0000-4000-8000-000000000001.jsonl");
    let folder = log.with_extension("").join("tool-results");
    std::fs::create_dir_all(&folder).unwrap();
    let line = "{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"sessionId\":\"5e551000-0000-4000-8000-000000000001\",\
                \"cwd\":\"/x\",\"version\":\"2.1.325\",\"message\":{\"role\":\"user\",\"content\":\"One?\"}}\n";
    std::fs::write(&log, line).unwrap();
    for number in 0..20_u8 {
        std::fs::write(folder.join(number.to_string()), vec![number; 300_000]).unwrap();
    }
    let content = || {
        let mut all: Vec<_> = files(&env.home().join(".claude")).into_iter().collect();
        all.sort();
        all.into_iter().map(|path| (path.clone(), std::fs::read(&path).unwrap().len())).collect::<Vec<_>>()
    };
    let before = content();
    let command = |args: &[&str]| {
        let mut command = env.command(args);
        command.env("SCROLLBACK_HOME", other.path());
        command
    };
    let rounds = if std::env::var_os("SCROLLBACK_TORTURE").is_some() { 300 } else { 6 };
    for round in 0..rounds {
        let mut killed = command(&["remove", "5e551000"]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(20_000 + round * 7_919 % 120_000));
        drop(killed.kill());
        killed.wait().unwrap();
        if round % 2 == 0 && log.exists() {
            let again = env.ran(command(&["remove", "5e551000"]), b"");
            assert_eq!(again.code, 0, "{round}: {}", again.all());
        }
        let mut killed = command(&["trash", "restore", "5e551000"]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(20_000 + round * 6_101 % 120_000));
        drop(killed.kill());
        killed.wait().unwrap();
        let restored = env.ran(command(&["trash", "restore", "5e551000"]), b"");
        assert!(restored.code == 0 || log.exists(), "{round}: {}", restored.all());
        assert_eq!(content(), before, "{round}: {}", restored.all());
    }
}
