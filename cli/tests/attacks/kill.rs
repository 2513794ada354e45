//! `record` is killed at any moment, in every dialect, again and again in one session.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::random::{Random, seed};
use crate::support::TestEnv;
use crate::{DIALECTS, acknowledged, cases, check_nothing_is_lost, line, record};

const KILLS_PER_SESSION: u64 = 3;
/// More lines than anybody reads before a kill.
const LINES: u64 = 400;

#[test]
fn nothing_that_was_acknowledged_is_lost_by_a_kill() {
    let mut random = Random(seed());
    for case in 0..cases(1, 100) {
        for dialect in DIALECTS {
            kill(dialect, &mut random, &format!("seed {}, {dialect}, case {case}", seed()));
        }
    }
}

fn kill(dialect: &str, random: &mut Random, about: &str) {
    let env = TestEnv::new();
    let (mut all, mut session): (Vec<(String, String)>, Option<String>) = (Vec::new(), None);
    for round in 0..KILLS_PER_SESSION {
        let words: Vec<String> = (0..LINES).map(|at| format!("<{round}.{at}>")).collect();
        let input: Vec<String> = (0..LINES)
            .map(|at| line(at, &words[at as usize], if random.below(8) == 0 { 60_000 } else { 10 }))
            .collect();
        let resume = session.as_ref().map_or(vec![], |session| vec!["--resume", session.as_str()]);
        let mut command = env.command(&record(dialect, &resume));
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The writing ends with the reader's death.
        let writer = thread::spawn(move || input.iter().all(|line| stdin.write_all(line.as_bytes()).is_ok()));
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let wanted = random.below(40) as usize;
        let mut acks: Vec<String> = printed.by_ref().take(wanted).collect();
        thread::sleep(Duration::from_micros(random.below(4_000)));
        child.kill().unwrap();
        acks.extend(printed);
        child.wait().unwrap();
        writer.join().unwrap();
        assert!(acks.len() >= wanted, "{about}: `record` ended by itself");
        all.extend(acknowledged(&acks.join("\n"), &words));
        session = all.last().map(|(_, session)| session.clone());
        check_nothing_is_lost(&env, &all, about);
    }
}
