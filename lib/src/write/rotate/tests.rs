//! Moving a log away on a disk that fails and loses power at every operation.

use super::*;
use crate::disk::append::Appender;
use crate::disk::append::tests::seeds;
use crate::disk::sim::{Event, Sim};
use std::sync::Arc;

const LOG: &str = "/home/j/history.jsonl";
const BYTES: &[u8] = b"{\"type\":\"session\"}\n{\"role\":\"user\"}\ntorn";

fn name(ended: Timestamp) -> Result<PathBuf> {
    Ok(PathBuf::from(format!("/home/j/sessions/{}.jsonl", ended.as_second())))
}

fn ended() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

fn end(sim: &Sim) -> Result<PathBuf> {
    let log = sim.open(Path::new(LOG)).at(Path::new(LOG))?;
    move_away(sim, &*log, Path::new(LOG), ended(), name)
}

/// The names under which all bytes are found.
fn whole(sim: &Sim) -> Vec<PathBuf> {
    let is_whole = |path: &PathBuf| sim.read(&path.to_string_lossy()).is_some_and(|bytes| bytes == BYTES);
    sim.names().into_iter().filter(is_whole).collect()
}

#[test]
fn the_bytes_have_a_name_after_every_crash_and_every_failure() {
    let fresh = |seed| {
        let sim = Sim::new(seed, &["/home", "/home/j"]);
        sim.write(LOG, BYTES);
        sim
    };
    let sim = fresh(0);
    let before = sim.steps();
    let to = end(&sim).unwrap();
    let steps = sim.steps() - before;
    assert_eq!((to.as_path(), whole(&sim)), (Path::new("/home/j/sessions/1000.jsonl"), vec![to.clone()]));
    assert!(sim.read(LOG).is_none());
    for seed in seeds(5, 200) {
        assert_eq!(whole(&sim.crash(seed)), std::slice::from_ref(&to), "what was reported survives: seed {seed}");
        for step in 0..steps {
            let sim = fresh(seed);
            sim.at(before + step, Event::PowerLoss);
            drop(end(&sim));
            let crashed = sim.crash(seed);
            assert_eq!(whole(&crashed).len(), 1, "seed {seed}, power lost at {step}: {:?}", crashed.names());
            // Ending it again ends it once.
            if crashed.read(LOG).is_some() {
                end(&crashed).unwrap();
            }
            assert_eq!(whole(&crashed).len(), 1, "seed {seed}, ended again after {step}: {:?}", crashed.names());
            let sim = fresh(seed);
            sim.at(before + step, Event::Fails(io::ErrorKind::Other));
            let moved = end(&sim);
            sim.forget_events();
            assert_eq!(whole(&sim).len(), 1, "seed {seed}, failure at {step}: {:?}", sim.names());
            if moved.is_ok() {
                assert!(sim.read(LOG).is_none());
            }
            let again = if sim.read(LOG).is_some() { end(&sim) } else { Ok(to.clone()) };
            assert!(again.is_ok(), "seed {seed}, failure at {step}: {again:?}");
            let crashed = sim.crash(seed);
            assert_eq!(whole(&crashed).len(), 1, "seed {seed}, crash after a failure at {step}: {:?}", crashed.names());
        }
    }
}

#[test]
fn a_taken_name_is_never_overwritten_and_a_later_one_sorts_after_it() {
    let sim = Sim::new(1, &["/home", "/home/j", "/home/j/sessions"]);
    sim.write("/home/j/sessions/1000.jsonl", b"first");
    sim.write("/home/j/sessions/1001.jsonl", b"");
    sim.write(LOG, BYTES);
    assert_eq!(end(&sim).unwrap(), Path::new("/home/j/sessions/1002.jsonl"));
    assert_eq!(sim.read("/home/j/sessions/1000.jsonl").unwrap(), b"first");
    assert_eq!(sim.read("/home/j/sessions/1001.jsonl").unwrap(), b"");
}

#[test]
fn a_writer_that_has_the_log_open_goes_on_in_a_new_one() {
    let sim = Sim::new(1, &["/home", "/home/j"]);
    sim.write(LOG, b"one\n");
    let mut writer = Appender::open(Arc::new(sim.clone()), Path::new(LOG), b"header\n".to_vec()).unwrap();
    writer.append(b"two\n").unwrap();
    let to = end(&sim).unwrap();
    writer.append(b"three\n").unwrap();
    assert_eq!(sim.read(&to.to_string_lossy()).unwrap(), b"one\ntwo\n");
    assert_eq!(sim.read(LOG).unwrap(), b"header\nthree\n");
    assert_eq!(writer.take_warnings(), [Warning::Deleted]);
}
