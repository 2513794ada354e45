//! P1 and P2: what was acknowledged before a kill -9 is read after it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use scrollback::session::Session;

use crate::support::cases;
use crate::support::random::{Random, seed};
use crate::{PROJECT, process, store};

/// Kills of one session, each while somebody goes on with it.
const KILLS_PER_SESSION: u32 = 10;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let seed = seed();
    let mut random = Random(seed);
    let kills = cases(100, 10_000);
    let mut acknowledged = 0;
    for _ in 0..kills / KILLS_PER_SESSION {
        let folder = tempfile::tempdir().unwrap();
        let mut acks = Vec::new();
        for _ in 0..KILLS_PER_SESSION {
            let number = random.below(1 << 30);
            acks.extend(acks_before_a_kill(folder.path(), number, &mut random));
            let session = store(folder.path()).last(Path::new(PROJECT)).unwrap();
            let Some(session) = session else {
                assert!(acks.is_empty(), "seed {seed}: the session is gone");
                continue;
            };
            check(&session, &acks, seed);
        }
        acknowledged += acks.len();
    }
    assert!(acknowledged > kills as usize, "only {acknowledged} records were acknowledged");
}

/// Starts a recorder and kills it at any moment; what it had told by then.
fn acks_before_a_kill(folder: &Path, number: u64, random: &mut Random) -> Vec<(String, String)> {
    let mut child = process("recorder", folder, number).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ack = |line: String| {
        let (id, words) = line.strip_prefix("ack ")?.split_once(' ')?;
        Some((id.to_owned(), words.to_owned()))
    };
    let wanted = random.below(25) as usize;
    let mut acks: Vec<_> = lines.by_ref().filter_map(ack).take(wanted).collect();
    std::thread::sleep(Duration::from_micros(random.below(3_000)));
    child.kill().unwrap();
    acks.extend(lines.filter_map(ack));
    child.wait().unwrap();
    acks
}

fn check(session: &Session, acks: &[(String, String)], seed: u64) {
    for (id, words) in acks {
        let record = session.find(id).unwrap_or_else(|_| panic!("seed {seed}: {id} is gone"));
        let text = record.raw().unwrap().concat();
        assert!(String::from_utf8(text).unwrap().contains(words), "seed {seed}: {words} is gone from {id}");
    }
}
