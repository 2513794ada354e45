//! The fuzz targets' functions over real logs, mutated: a little at each push, much under `cargo xtask torture`.

use proptest::prelude::*;
use proptest::sample::Index;
use scrollback::fuzzing;

use crate::damage::{config, logs};

/// Larger logs say the same again.
const SEED_LIMIT_BYTES: usize = 8 * 1024;

const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x01",
    b"}{",
    b"\\ud83d",
    b"\\u",
    b"null",
    b"1e999",
    b"-",
    b"{\"role\":\"user\",\"content\":\"x\"}",
    b"\"uuid\":\"u1\",",
    b"\"parentUuid\":\"a1\",",
    b"\"isSidechain\":true,",
    b"\"timestamp\":1,",
    b"\xe2\x80\xa8",
];

#[derive(Debug, Clone)]
enum Mutation {
    Flip(Index, u8),
    Cut(Index, Index),
    Repeat(Index, Index),
    Splice(Index, Index, Index),
    Token(Index, Index),
}

proptest! {
    #![proptest_config(config(2_000, 200_000))]

    #[test]
    fn any_line_is_read(bytes in mutated(lines())) {
        fuzzing::line(&bytes);
    }

    #[test]
    fn any_graph_is_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        fuzzing::tree(&bytes);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        fuzzing::file(&bytes);
        fuzzing::line(&bytes);
    }

    #[test]
    fn whatever_a_line_says_about_files_stays_in_the_project(bytes in mutated(lines())) {
        fuzzing::restore(&bytes);
    }

    #[test]
    fn any_file_is_read(bytes in mutated(files())) {
        fuzzing::file(&bytes);
    }
}

#[test]
fn every_log_is_read() {
    for bytes in files() {
        fuzzing::file(&bytes);
    }
    for bytes in lines() {
        fuzzing::line(&bytes);
        fuzzing::restore(&bytes);
    }
}

fn files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = logs().iter().map(|log| std::fs::read(log).unwrap()).collect();
    files.retain(|bytes| bytes.len() <= SEED_LIMIT_BYTES);
    files
}

fn lines() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> =
        files().iter().flat_map(|file| file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// One of the seeds, changed in a few places, sometimes with pieces of another.
fn mutated(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let index = any::<Index>;
    let mutation = prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        (index(), index()).prop_map(|(from, to)| Mutation::Cut(from, to)),
        (index(), index()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
        (index(), index(), index()).prop_map(|(at, from, to)| Mutation::Splice(at, from, to)),
        (index(), index()).prop_map(|(at, token)| Mutation::Token(at, token)),
    ];
    let changes = prop::collection::vec(mutation, 0..6);
    (index(), index(), changes).prop_map(move |(seed, other, changes)| {
        let (mut bytes, other) = (seed.get(&seeds).clone(), other.get(&seeds));
        for change in changes {
            mutate(&mut bytes, other, change);
        }
        bytes
    })
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], change: Mutation) {
    let range = |bytes: &[u8], from: Index, to: Index| {
        let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
        from.min(to)..from.max(to)
    };
    match change {
        Mutation::Flip(at, byte) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        Mutation::Flip(_, byte) => bytes.push(byte),
        Mutation::Cut(from, to) => drop(bytes.drain(range(bytes, from, to))),
        Mutation::Repeat(from, to) if bytes.len() <= 2 * SEED_LIMIT_BYTES => {
            let range = range(bytes, from, to);
            let (at, again) = (range.end, bytes[range].to_vec());
            bytes.splice(at..at, again);
        }
        Mutation::Repeat(..) => {}
        Mutation::Splice(at, from, to) => {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, other[range(other, from, to)].iter().copied());
        }
        Mutation::Token(at, token) => {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, token.get(TOKENS).iter().copied());
        }
    }
}
