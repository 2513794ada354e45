//! What planning an undo costs against looking at the same files and hashing them, in one run: `cargo xtask bench` prints it.
//!
//! Usage: `cargo bench --bench undo -- FOLDER`. One tab-separated line a measurement: name, the best time in seconds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints, and stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use scrollback::model::Host;
use scrollback::write::{Blocked, Goal, Plan, Scope, Store, Undo};
use sha2::{Digest, Sha256};

const FILES: usize = 10_000;
const FILES_PER_FOLDER: usize = 100;
/// Of about 40 bytes: a source file of 4 kB.
const LINES: usize = 100;
const ROUNDS: usize = 5;

fn main() {
    let named = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    // `cargo test --benches` starts us without a folder: then there is nothing to measure.
    let Some(folder) = named else { return };
    let folder = tempfile::tempdir_in(folder).unwrap();
    let project = folder.path().canonicalize().unwrap().join("project");
    let paths: Vec<PathBuf> =
        (0..FILES).map(|at| project.join(format!("{}/{at}.txt", at / FILES_PER_FOLDER))).collect();
    // A project of its own: the folder may be in another one, which ignores it.
    fs::create_dir_all(project.join(".git")).unwrap();
    let store = Store::native(folder.path().join("store")).unwrap();
    write(&paths, "ebb");
    let mut recorder = store.create(&project).unwrap();
    recorder.user("Change every file.").unwrap();
    recorder.watch(&project).unwrap();
    write(&paths, "flood");
    recorder.assistant("Done.").unwrap();
    recorder.close().unwrap();
    let session = store.load(recorder.session().unwrap().as_str()).unwrap();

    let (mut limit, mut opened, mut planned) = (f64::MAX, f64::MAX, f64::MAX);
    // In turn, so that both meet the same machine.
    for _ in 0..ROUNDS {
        limit = limit.min(timed(|| paths.par_iter().map(|path| stat_and_hash(path)).collect::<Vec<_>>()).0);
        let (seconds, undo) = timed(|| Undo::open(&session, Host::at(project.clone(), "bench"), None).unwrap());
        opened = opened.min(seconds);
        let (seconds, plan): (f64, Plan) = timed(|| undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap());
        assert_eq!((plan.is_ready(Blocked::Stop), plan.changes(Blocked::Stop)), (true, FILES));
        planned = planned.min(seconds);
    }
    println!("limit: stat and hash\t{limit}\nours: read the history\t{opened}\nours: plan\t{planned}");
}

/// Writes every file, each with a content of its own that packs no better than a program does.
fn write(paths: &[PathBuf], word: &str) {
    for (at, path) in paths.iter().enumerate() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let number = |line: usize| ((at * LINES + line) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let lines = (0..LINES).map(|line| format!("{word} at {:08x}: the tide is low.\n", number(line)));
        fs::write(path, lines.collect::<String>()).unwrap();
    }
}

/// The length and the SHA-256 of a file, which is what snapshots record.
fn stat_and_hash(path: &Path) -> (u64, [u8; 32]) {
    (fs::symlink_metadata(path).unwrap().len(), Sha256::digest(fs::read(path).unwrap()).into())
}

fn timed<T>(call: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = call();
    (start.elapsed().as_secs_f64(), result)
}
