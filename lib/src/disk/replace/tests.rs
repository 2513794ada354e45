//! A replaced file has the old or the new content after any failure or power loss.

use std::io;
use std::path::Path;

use super::{Durable, replace};
use crate::disk::sim::{Event, Sim};

const FILE: &str = "/home/metadata.json";
const OLD: &[u8] = b"{\"title\":\"old\"}";

fn before(seed: u64) -> (Sim, Vec<u8>) {
    let sim = Sim::new(seed, &["/home"]);
    sim.write(FILE, OLD);
    (sim, [b"{\"title\":\"".to_vec(), vec![b'n'; 2_000], b"\"}".to_vec()].concat())
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_file_or_the_new_one() {
    for step in 0..8 {
        for seed in 0..200 {
            let (sim, new) = before(seed);
            sim.at(step, Event::PowerLoss);
            let replaced = replace(&sim, Path::new(FILE), "id", &new, Durable::Yes);
            let left = sim.crash(seed).read(FILE).unwrap();
            assert!(left == new || (left == OLD && replaced.is_err()), "step {step}, seed {seed}: {replaced:?}");
        }
    }
}

#[test]
fn whatever_fails_a_reader_sees_the_old_file_or_the_new_one_and_nothing_is_left_beside_it() {
    for keep in [Durable::Yes, Durable::No] {
        for step in 0..6 {
            for event in
                [Event::Fails(io::ErrorKind::Other), Event::Fails(io::ErrorKind::Interrupted), Event::Short(700)]
            {
                let (sim, new) = before(0);
                sim.at(step, event.clone());
                let replaced = replace(&sim, Path::new(FILE), "id", &new, keep);
                let now = sim.read(FILE).unwrap();
                assert!(now == new || (now == OLD && replaced.is_err()), "{event:?} at {step}: {replaced:?}");
                assert_eq!(sim.names().len(), 2, "{event:?} at {step}: {:?}", sim.names());
            }
        }
        let (sim, new) = before(0);
        sim.leave_room_for(new.len() as u64 - 1);
        replace(&sim, Path::new(FILE), "id", &new, keep).unwrap_err();
        assert_eq!((sim.read(FILE).unwrap().as_slice(), sim.names().len()), (OLD, 2));
    }
}

#[test]
fn an_interrupted_write_goes_on() {
    let (sim, new) = before(0);
    sim.at(1, Event::Short(700));
    sim.at(2, Event::Fails(io::ErrorKind::Interrupted));
    replace(&sim, Path::new(FILE), "id", &new, Durable::Yes).unwrap();
    assert_eq!(sim.read(FILE).unwrap(), new);
}
