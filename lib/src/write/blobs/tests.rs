//! Blobs on a disk that fails in every way.

use std::io::{self, Cursor, Read};
use std::path::Path;

use super::*;
use crate::disk::sim::{Event, Sim};

const FOLDER: &str = "/home/store/blobs";

/// So many bytes that do not compress to nothing.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

fn put_all(sim: &Sim, bytes: &[u8]) -> std::result::Result<Stored, CopyError> {
    put(sim, &mut Cursor::new(bytes))
}

fn put(sim: &Sim, reader: &mut dyn Read) -> std::result::Result<Stored, CopyError> {
    let host = Host::at("/gone".into(), "test 1");
    Blobs { disk: sim, folder: Path::new(FOLDER), host: &host }.put_reader(Path::new("a.bin"), reader)
}

fn blob(sim: &Sim, id: &str) -> Option<Vec<u8>> {
    let packed = sim.read(&format!("{FOLDER}/{}/{id}", &id[..2]))?;
    zstd::stream::decode_all(packed.as_slice()).ok()
}

#[test]
fn a_file_of_any_length_is_stored_under_its_hash() {
    for bytes in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 17] {
        let (sim, content) = (Sim::new(0, &["/home"]), content(bytes));
        let stored = put_all(&sim, &content).unwrap();
        assert_eq!(stored.id, blake3::hash(&content).to_hex().to_string());
        assert_eq!((stored.sha256, stored.bytes), (sha256(&content), bytes as u64));
        assert!(blob(&sim, &stored.id) == Some(content), "{bytes} bytes");
        let names = sim.names().len();
        assert_eq!(put_all(&sim, &self::content(bytes)).unwrap().id, stored.id);
        assert_eq!(sim.names().len(), names, "nothing is written twice, and nothing is left");
    }
}

/// Whatever fails: what is named is whole, also after a crash, and nothing else is left.
#[test]
fn a_failure_or_a_crash_at_every_operation_leaves_whole_blobs_only() {
    let content = content(2 * PIECE_BYTES + 5);
    for content in [&content[..100], &content] {
        let whole = Sim::new(0, &["/home"]);
        let id = put_all(&whole, content).unwrap().id;
        for step in 0..whole.steps() {
            for event in [Event::PowerLoss, Event::Fails(io::ErrorKind::StorageFull)] {
                let sim = Sim::new(step, &["/home"]);
                sim.at(step, event.clone());
                let stored = put_all(&sim, content);
                for seed in 0..4 {
                    let crashed = sim.crash(seed);
                    if stored.is_ok() {
                        assert!(blob(&crashed, &id).as_deref() == Some(content), "{event:?} at {step}, seed {seed}");
                    }
                    let is_named = crashed.read(&format!("{FOLDER}/{}/{id}", &id[..2])).is_some();
                    assert!(!is_named || blob(&crashed, &id).as_deref() == Some(content), "{event:?} at {step}");
                }
                if event != Event::PowerLoss && stored.is_err() {
                    let is_left = sim.names().iter().any(|name| name.to_string_lossy().contains("/."));
                    assert!(!is_left, "{event:?} at {step}: {:?}", sim.names());
                    sim.forget_events();
                    assert_eq!(put_all(&sim, content).unwrap().id, id);
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_apart_from_a_full_store() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    let sim = Sim::new(0, &["/home"]);
    let mut late = Cursor::new(content(PIECE_BYTES)).chain(Broken);
    for reader in [&mut Broken as &mut dyn Read, &mut late] {
        let failed = put(&sim, reader).unwrap_err();
        assert!(
            matches!(&failed, CopyError::Reading(Error::Io { path, .. }) if path == Path::new("a.bin")),
            "{failed:?}"
        );
    }
    sim.leave_room_for(1000);
    let full = put_all(&sim, &content(5 * PIECE_BYTES)).unwrap_err();
    let CopyError::Writing(Error::Io { source, .. }) = &full else { panic!("{full:?}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_damaged_blob_is_written_again_by_whoever_has_its_content() {
    for bytes in [10, PIECE_BYTES + 1] {
        let (sim, content) = (Sim::new(0, &["/home"]), content(bytes));
        let id = put_all(&sim, &content).unwrap().id;
        sim.write(&format!("{FOLDER}/{}/{id}", &id[..2]), b"damaged");
        put_all(&sim, &content).unwrap();
        assert!(blob(&sim, &id) == Some(content), "{bytes} bytes");
    }
}
