//! Recorders that start at the same moment: one of them begins the session, the others continue in it, and nothing is lost.
//!
//! Few rounds at a push, many under `cargo xtask torture`.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::Barrier;
use std::thread;

use serde_json::Value;
use support::{Ran, TestEnv};

const ID: &str = "11111111-2222-4333-8444-555555555555";

/// How many processes start at once.
const STARTS: usize = 6;

/// How often: few times at a push.
fn rounds() -> usize {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { 40 } else { 3 }
}

/// Runs these commands at the same moment, each with its input.
fn at_once(env: &TestEnv, runs: &[(Vec<&str>, String)]) -> Vec<Ran> {
    let barrier = Barrier::new(runs.len());
    thread::scope(|scope| {
        let start = |(args, input): &'_ (Vec<&str>, String)| {
            barrier.wait();
            // The clock of the tests stands still: names with a time in them would never differ.
            let mut command = env.command(args);
            command.env_remove("SCROLLBACK_NOW");
            env.ran(command, input.as_bytes())
        };
        let running: Vec<_> = runs.iter().map(|run| scope.spawn(move || start(run))).collect();
        running.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// The texts of every session of a store, and how many sessions there are.
fn recorded(env: &TestEnv, dialect: &str) -> (Vec<String>, usize) {
    let listed = env.run(&["list", "--all", "--dialect", dialect, "--json"]).json();
    let mut texts = Vec::new();
    let sessions = listed.as_array().unwrap();
    for session in sessions {
        let path = session["path"].as_str().unwrap().replace("$HOME", env.home().to_str().unwrap());
        let path = path.replace("$DIR", env.work().parent().unwrap().to_str().unwrap());
        let log = std::fs::read_to_string(&path).unwrap();
        let ids: BTreeSet<String> = log.lines().filter_map(session_id).collect();
        assert!(ids.len() < 2, "{path} has lines of several sessions: {ids:?}\n{log}");
        assert!(log.ends_with('\n') || log.is_empty(), "{path}");
        for word in log.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-') {
            texts.extend(word.starts_with("start-").then(|| word.to_owned()));
        }
    }
    (texts, sessions.len())
}

fn session_id(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let id = ["session_id", "sessionId"].iter().find_map(|key| line.get(key))?;
    Some(id.as_str()?.to_owned())
}

/// Fails unless every line of these recorders is acknowledged, and returns the sessions that they name.
fn acknowledged(runs: &[&Ran]) -> BTreeSet<String> {
    let mut sessions = BTreeSet::new();
    for ran in runs {
        assert_eq!(ran.code, 0, "{}", ran.all());
        for line in ran.out.lines() {
            let ack: Value = serde_json::from_str(line).unwrap();
            assert!(ack.get("error").is_none(), "{}", ran.all());
            sessions.insert(ack["session"].as_str().unwrap().to_owned());
        }
        assert_eq!(ran.out.lines().count(), 2, "{}", ran.all());
    }
    sessions
}

fn words(number: usize) -> String {
    format!("{{\"user\": \"start-{number}-1\"}}\n{{\"user\": \"start-{number}-2\"}}\n")
}

fn expected(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers
        .into_iter()
        .flat_map(|number| [format!("start-{number}-1"), format!("start-{number}-2")])
        .collect()
}

/// In formats with one session at a time, every recorder records to it.
#[test]
fn recorders_that_start_at_once_share_the_current_session() {
    for (dialect, with) in [("sage-el", None), ("fluux", Some("ada@example.org"))] {
        for _ in 0..rounds() {
            let env = TestEnv::new();
            let mut args = vec!["record", "--dialect", dialect];
            args.extend(with.iter().flat_map(|jid| ["--jid", jid]));
            let runs: Vec<_> = (0..STARTS).map(|number| (args.clone(), words(number))).collect();
            let ran = at_once(&env, &runs);
            acknowledged(&ran.iter().collect::<Vec<_>>());
            let (texts, sessions) = recorded(&env, dialect);
            assert_eq!(sessions, 1, "{dialect}");
            assert_eq!(texts.len(), 2 * STARTS, "{dialect}: {texts:?}");
            assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), expected(0..STARTS), "{dialect}");
        }
    }
}

/// `new` ends the session between their lines: each file is of one session, and every line is in one of them.
#[test]
fn recorders_and_new_at_once_mix_no_sessions() {
    for (dialect, with) in [("sage-el", None), ("fluux", Some("ada@example.org"))] {
        for _ in 0..rounds() {
            let env = TestEnv::new();
            let mut options = vec!["--dialect", dialect];
            options.extend(with.iter().flat_map(|jid| ["--jid", jid]));
            let command = |name: &'static str| [&[name][..], &options].concat();
            let mut runs: Vec<_> = (0..STARTS).map(|number| (command("record"), words(number))).collect();
            for at in [1, 3, 5] {
                runs.insert(at, (command("new"), String::new()));
            }
            let ran = at_once(&env, &runs);
            let of = |name: &str| -> Vec<&Ran> {
                runs.iter().zip(&ran).filter(|((args, _), _)| args[0] == name).map(|(_, ran)| ran).collect()
            };
            acknowledged(&of("record"));
            for ended in of("new") {
                assert!(ended.code == 0 || ended.err.contains("no session to end"), "{}", ended.all());
            }
            let (texts, _) = recorded(&env, dialect);
            assert_eq!(texts.len(), 2 * STARTS, "{dialect}: {texts:?}");
            assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), expected(0..STARTS), "{dialect}");
        }
    }
}

/// With one `--id`, one recorder creates the session; another one continues in it or is refused before its first line.
#[test]
fn recorders_that_start_at_once_with_one_id_make_one_session() {
    for dialect in ["native", "claude-code", "codex", "qwen-code", "ai-sdk"] {
        for _ in 0..rounds() {
            let env = TestEnv::new();
            let args = vec!["record", "--dialect", dialect, "--id", ID];
            let runs: Vec<_> = (0..STARTS).map(|number| (args.clone(), words(number))).collect();
            let ran = at_once(&env, &runs);
            let (joined, refused): (Vec<usize>, Vec<usize>) = (0..STARTS).partition(|number| ran[*number].code == 0);
            for number in refused {
                let ran = &ran[number];
                assert!(ran.code == 2 && ran.out.is_empty(), "{dialect}: {}", ran.all());
                assert!(ran.err.contains("already exists") && ran.err.contains("--resume"), "{}", ran.all());
            }
            let sessions = acknowledged(&joined.iter().map(|number| &ran[*number]).collect::<Vec<_>>());
            assert_eq!(sessions.into_iter().collect::<Vec<_>>(), [ID], "{dialect}");
            let (texts, sessions) = recorded(&env, dialect);
            assert_eq!(sessions, 1, "{dialect}");
            assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), expected(joined), "{dialect}");
        }
    }
}

/// A session that exists is refused, wherever in the store it is and whenever it began.
#[test]
fn the_id_of_a_session_that_exists_is_refused() {
    for dialect in ["native", "claude-code", "codex", "qwen-code", "ai-sdk"] {
        let env = TestEnv::new();
        let record = |project: &str, now: &str| {
            let args = ["record", "--dialect", dialect, "--id", ID, "--project", project];
            let mut command = env.command(&args);
            command.env("SCROLLBACK_NOW", now);
            env.ran(command, words(0).as_bytes())
        };
        assert_eq!(record("/gone/a", "2026-11-15T12:00:00Z").code, 0, "{dialect}");
        for (project, now) in [
            ("/gone/a", "2026-11-15T12:00:00Z"),
            ("/gone/a", "2026-11-15T12:00:01Z"),
            ("/gone/b", "2026-11-15T12:00:00Z"),
            ("/gone/b", "2026-12-01T12:00:01Z"),
        ] {
            let ran = record(project, now);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{dialect} {project} {now}: {}", ran.all());
            assert!(ran.err.contains("already exists") && ran.err.contains("--resume"), "{}", ran.all());
            let name = if dialect == "native" { ID.to_owned() } else { format!("{dialect}:{ID}") };
            assert!(ran.err.contains(&format!("use --resume {name} to continue it")), "{}", ran.all());
        }
        assert_eq!(recorded(&env, dialect).1, 1, "{dialect}");
    }
}

/// A moment after another recorder began the session, it is still the same start.
#[test]
fn a_session_that_was_begun_a_moment_ago_and_is_recorded_is_joined() {
    for dialect in ["native", "claude-code", "codex", "qwen-code", "ai-sdk"] {
        let env = TestEnv::new();
        let command = || {
            let mut command = env.command(&["record", "--dialect", dialect, "--id", ID]);
            command.env_remove("SCROLLBACK_NOW");
            command
        };
        let mut first = command().spawn().unwrap();
        let mut input = first.stdin.take().unwrap();
        input.write_all(words(0).as_bytes()).unwrap();
        let mut acks = BufReader::new(first.stdout.take().unwrap());
        acks.read_line(&mut String::new()).unwrap();
        let second = env.ran(command(), words(1).as_bytes());
        drop(input);
        assert!(first.wait().unwrap().success(), "{dialect}");
        assert_eq!(second.code, 0, "{dialect}: {}", second.all());
        let (texts, sessions) = recorded(&env, dialect);
        assert_eq!((texts.into_iter().collect::<BTreeSet<_>>(), sessions), (expected(0..2), 1), "{dialect}");
    }
}
