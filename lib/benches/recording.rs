//! What recording costs against what the system takes for the same bytes, in one run: `cargo xtask bench` prints it.
//!
//! Usage: `cargo bench --bench recording -- FOLDER`. One tab-separated line a measurement: name, the median and the 99th
//! percentile in microseconds, a remark.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints, and stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use scrollback::dialect;
use scrollback::model::Host;
use scrollback::write::{Delta, Durability, NewSession, Options, Policy, Recorder, Store};

/// What a record of the rows says: with what is around it, its line is about 1 KB.
const TEXT_BYTES: usize = 700;
const PROSE: &str =
    "The harbour master reads the tables at dawn: high water at 04:12, low water at 10:31, and a swell from the west. ";
const FLUSHED: usize = 20_000;
const SYNCED: usize = 400;
const WRITERS: usize = 16;
const RECORDS_PER_WRITER: usize = 1_000;
const FRAGMENTS: usize = 10_000;

fn main() {
    let named = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    // `cargo test --benches` starts us without a folder: then there is nothing to measure.
    let Some(folder) = named else { return };
    let folder = tempfile::tempdir_in(folder).unwrap();
    let folder = folder.path();
    let text: String = PROSE.chars().cycle().take(TEXT_BYTES).collect();

    let (mut log, line) = begin(folder, "flush", Durability::Flush, &text);
    let new = NewSession { id: Some("redacted"), project: folder, with: None };
    let redacting = Options { durability: Some(Durability::Flush), ..Options::usual() };
    let mut redacted = store(folder, Durability::Flush).with_options(redacting).session(new, Policy::New).unwrap();
    let mut raw = raw(&folder.join("flush.raw"));
    // Side by side, so that all meet the same machine.
    let (mut limit, mut ours, mut masked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..FLUSHED {
        limit.push(timed(|| assert_eq!(raw.write(&line).unwrap(), line.len())));
        ours.push(timed(|| log.system(text.as_str()).unwrap()));
        masked.push(timed(|| redacted.system(text.as_str()).unwrap()));
    }
    report("limit: write", limit, &format!("{} bytes", line.len()));
    report("ours: Flush", ours, "");
    report("ours: Flush, secrets masked", masked, "");

    let (mut log, line) = begin(folder, "sync", Durability::Sync, &text);
    let (mut limit, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..SYNCED {
        limit.push(timed(|| {
            raw.write_all(&line).unwrap();
            raw.sync_data().unwrap();
        }));
        ours.push(timed(|| log.system(text.as_str()).unwrap()));
    }
    report("limit: write and fdatasync", limit, "");
    report("ours: Sync", ours, "");

    let files: Vec<File> = (0..WRITERS).map(|_| self::raw(&folder.join("shared.raw"))).collect();
    let limit = together(files, |file| assert_eq!(file.write(&line).unwrap(), line.len()));
    drop(begin(folder, "shared", Durability::Flush, &text));
    let store = store(folder, Durability::Flush);
    let resume = |_| store.resume("shared").unwrap();
    let ours = together((0..WRITERS).map(resume).collect(), |log| drop(log.system(text.as_str()).unwrap()));
    report("limit: 16 writers", limit.0, &rate(limit.1));
    report("ours: 16 writers", ours.0, &rate(ours.1));

    let (mut log, _) = begin(folder, "stream", Durability::Flush, &text);
    let before = length(&log);
    let start = Instant::now();
    let ours: Vec<f64> =
        (0..FRAGMENTS).map(|at| timed(|| log.delta(Delta::Text(format!("token {at} "))).unwrap())).collect();
    log.finish_answer(None).unwrap();
    let total = start.elapsed().as_secs_f64();
    let fragment = vec![b'x'; ((length(&log) - before) / FRAGMENTS as u64) as usize];
    let limit = (0..FRAGMENTS).map(|_| timed(|| raw.write(&fragment).unwrap())).collect();
    report("limit: a fragment's bytes", limit, &format!("{} bytes", fragment.len()));
    report("ours: a fragment of 10,000", ours, &format!("{total:.3} s in all"));
}

fn store(folder: &Path, durability: Durability) -> Store {
    let host = Host { cwd: folder.to_path_buf(), ..Host::system("bench 1").unwrap() };
    let store = Store::open(dialect::named("native").unwrap(), folder, host).unwrap();
    store.with_options(Options { durability: Some(durability), ..Options::unredacted() })
}

/// A session with a record, and that record's line.
fn begin(folder: &Path, id: &str, durability: Durability, text: &str) -> (Recorder, Vec<u8>) {
    let new = NewSession { id: Some(id), project: folder, with: None };
    let mut log = store(folder, durability).session(new, Policy::New).unwrap();
    log.system(text).unwrap();
    let line = std::fs::read(log.path().unwrap()).unwrap();
    (log, line)
}

fn length(log: &Recorder) -> u64 {
    std::fs::metadata(log.path().unwrap()).unwrap().len()
}

fn raw(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// Many at once, each for itself: how long each call took, and all of them.
fn together<T: Send>(writers: Vec<T>, write: impl Fn(&mut T) + Sync) -> (Vec<f64>, f64) {
    let barrier = Arc::new(Barrier::new(writers.len() + 1));
    std::thread::scope(|scope| {
        let (barrier, write) = (&barrier, &write);
        let run = |mut writer: T| {
            scope.spawn(move || {
                barrier.wait();
                (0..RECORDS_PER_WRITER).map(|_| timed(|| write(&mut writer))).collect::<Vec<f64>>()
            })
        };
        let threads: Vec<_> = writers.into_iter().map(run).collect();
        barrier.wait();
        let start = Instant::now();
        let times = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (times, start.elapsed().as_secs_f64())
    })
}

fn rate(seconds: f64) -> String {
    format!("{:.0} records a second", (WRITERS * RECORDS_PER_WRITER) as f64 / seconds)
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    drop(work());
    start.elapsed().as_secs_f64() * 1e6
}

fn report(name: &str, mut times: Vec<f64>, remark: &str) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("{name}\t{:.1}\t{:.1}\t{remark}", at(0.5), at(0.99));
}
