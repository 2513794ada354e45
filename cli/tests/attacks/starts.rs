//! Many `record` start at the same moment in one directory, in every dialect.

use std::io::Write;
use std::sync::Barrier;
use std::thread;

use crate::random::seed;
use crate::support::{Ran, TestEnv};
use crate::{DIALECTS, acknowledged, cases, check_nothing_is_lost, record};

const STARTS: usize = 6;

#[test]
fn nothing_is_lost_when_many_start_at_once() {
    for case in 0..cases(1, 150) {
        for dialect in DIALECTS {
            let about = format!("seed {}, {dialect}, case {case}", seed());
            let env = TestEnv::new();
            let runs = start_at_once(&env, &record(dialect, &[]));
            for (words, run) in &runs {
                assert_eq!(run.code, 0, "{about}: {}", run.all());
                assert_eq!(acknowledged(&run.out, words).len(), words.len(), "{about}: {}", run.all());
            }
            check(&env, &runs, &about);
        }
    }
}

/// With one id for all, a start joins the session or is refused; whoever got an acknowledgement is recorded.
#[test]
fn nothing_is_lost_when_many_start_at_once_with_one_id() {
    const ID: &str = "6f0b8e21-0000-4000-8000-00000000c4d7";
    for case in 0..cases(1, 150) {
        for dialect in DIALECTS.into_iter().filter(|dialect| !["fluux", "sage-el"].contains(dialect)) {
            let about = format!("seed {}, {dialect} with an id, case {case}", seed());
            let env = TestEnv::new();
            let runs = start_at_once(&env, &record(dialect, &["--id", ID]));
            assert!(runs.iter().any(|(_, run)| run.code == 0), "{about}: {}", runs[0].1.all());
            check(&env, &runs, &about);
        }
    }
}

fn check(env: &TestEnv, runs: &[(Vec<String>, Ran)], about: &str) {
    let all: Vec<_> = runs.iter().flat_map(|(words, run)| acknowledged(&run.out, words)).collect();
    assert!(!all.is_empty(), "{about}");
    check_nothing_is_lost(env, &all, about);
}

/// Starts several programs, and lets all of them read at the same moment.
fn start_at_once(env: &TestEnv, args: &[&str]) -> Vec<(Vec<String>, Ran)> {
    let barrier = Barrier::new(STARTS);
    let start = |number: usize| {
        let words = vec![format!("<prompt {number}>"), format!("<answer {number}>")];
        let input = format!("{{\"user\": \"{}\"}}\n{{\"assistant\": \"{}\"}}\n", words[0], words[1]);
        let mut child = env.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        barrier.wait();
        // One that was refused does not read its input.
        stdin.write_all(input.as_bytes()).unwrap_or_default();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) };
        (words, ran)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..STARTS).map(|number| scope.spawn(move || start(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
