//! What this program is when a test starts it again.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrollback::model::{Error, Host};
use scrollback::write::{Delta, Entry, NewSession, Policy, Recorder, Store};

use crate::support::random::Random;
use crate::support::{cases, native};
use crate::{PROJECT, flushing_store, store};

pub(crate) const ROLE: &str = "SCROLLBACK_TEST_ROLE";
pub(crate) const STORE: &str = "SCROLLBACK_TEST_STORE";
pub(crate) const NUMBER: &str = "SCROLLBACK_TEST_NUMBER";

#[test]
fn is_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(STORE).unwrap());
    let number: u64 = std::env::var(NUMBER).unwrap().parse().unwrap();
    // The harness has begun a line.
    println!();
    match role.as_str() {
        "recorder" => record_until_killed(&folder, number),
        "writer" => write(&folder, number),
        "foreigner" => write_without_a_lock(&folder, number),
        "filler" => fill(&folder),
        "newcomer" => begin(&folder),
        _ => panic!("{role}"),
    }
}

/// Records for ever, and tells each acknowledgement as soon as it comes. With an odd number nothing is synced.
fn record_until_killed(folder: &Path, number: u64) {
    let store = if number % 2 == 1 { flushing_store(folder) } else { store(folder) };
    let project = Path::new(PROJECT);
    let mut recorder = match store.session(project, Policy::Latest) {
        Err(Error::NoSession(_)) => store.create(project).unwrap(),
        resumed => resumed.unwrap(),
    };
    let mut random = Random(number);
    for at in 0_u64.. {
        let words = format!("<{number}.{at}>");
        match random.below(10) {
            0..=2 => tell(recorder.user(words.as_str()), &words),
            3 | 4 => tell(recorder.assistant(words.as_str()), &words),
            5 | 6 => tell(recorder.system(words.as_str()), &words),
            7 | 8 => {
                for piece in 0..4 {
                    let words = format!("<{number}.{at}.{piece}>");
                    tell(recorder.delta(Delta::Text(words.clone())), &words);
                }
                tell(recorder.finish_answer(None), "");
            }
            // Large enough that the system takes a while to write it.
            _ => tell(recorder.system(format!("{words} {}", "x".repeat(300_000)).as_str()), &words),
        }
    }
}

fn tell(entry: scrollback::Result<Entry>, words: &str) {
    if let Some(id) = entry.unwrap().id() {
        println!("ack {id} {words}");
    }
}

/// How many records a writer writes, and how long the longest is.
pub(crate) fn writers_share() -> (u64, u64) {
    // At full size about 1.7 GB, of the 2 GiB that a test may fill.
    if cases(0, 1) == 0 { (200, 32 * 1024) } else { (200, 8 * 1024 * 1024) }
}

/// One of many who record into one session. The first syncs its records.
fn write(folder: &Path, number: u64) {
    let store = if number == 1 { store(folder) } else { flushing_store(folder) };
    let mut recorder = store.resume("shared").unwrap();
    let (mut random, (count, limit)) = (Random(number), writers_share());
    for _ in 0..count {
        let ack = recorder.user("x".repeat(random.size(limit)).as_str()).unwrap();
        println!("ack {}", ack.id().unwrap());
    }
}

/// Somebody else's program: whole lines, one call each, and no lock.
fn write_without_a_lock(folder: &Path, number: u64) {
    let log = folder.join("sessions/shared/messages.jsonl");
    let mut file = OpenOptions::new().append(true).open(log).unwrap();
    let (mut random, (count, limit)) = (Random(number), writers_share());
    for at in 0..count {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |before| format!("\"foreign-{before}\""));
        let line = format!(
            "{{\"type\":\"user\",\"uuid\":\"foreign-{at}\",\"parentUuid\":{parent},\"timestamp\":\"2026-10-05T08:30:00Z\",\
             \"sessionId\":\"shared\",\"format\":2,\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}\n",
            "y".repeat(random.size(limit))
        );
        assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
        println!("ack foreign-{at}");
        std::thread::yield_now();
    }
}

/// Begins a session and does everything that makes files.
fn begin(folder: &Path) {
    let store = store(folder);
    let mut recorder = store.create(Path::new(PROJECT)).unwrap();
    recorder.user("When is high water?").unwrap();
    recorder.title("Tides").unwrap();
    recorder.close().unwrap();
    store.session(Path::new(PROJECT), Policy::Latest).unwrap().assistant("At 04:12.").unwrap();
}

/// The unit in which a tmpfs gives room.
const PAGE: u64 = 4096;

/// On a file system that is full from any byte of a record on.
fn fill(folder: &Path) {
    let ids = Arc::new(AtomicU64::new(100_000));
    let host = Host {
        now: Arc::new(|| "2026-11-15T12:00:00Z".parse().unwrap()),
        new_id: Arc::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed))),
        ..Host::system("test 1").unwrap()
    };
    let store = Store::open(native(), &folder.join("store"), host).unwrap();
    let records = cases(4, 50) as usize;
    let mut offsets = 0;
    for record in 0..records {
        let id = format!("s{record}");
        let new = NewSession { id: Some(&id), project: Path::new(PROJECT), with: None };
        let mut recorder = store.session(new, Policy::New).unwrap();
        let log = recorder.path().unwrap().to_path_buf();
        let length = || std::fs::metadata(&log).unwrap().len();
        recorder.user("x").unwrap();
        let (probe, before) = ("wave ".repeat(record + 1), length());
        recorder.user("x").unwrap();
        let least = length() - before;
        let size = least - 1 + probe.len() as u64;
        for room in 0..size {
            // What is written next has so much room to the end of its page.
            let padding = (3 * PAGE - room - (length() + least) % PAGE) % PAGE;
            recorder.user("x".repeat(1 + padding as usize).as_str()).unwrap();
            assert_eq!((length() + room) % PAGE, 0);
            check_without_room(&mut recorder, &log, folder, &probe);
            offsets += 1;
        }
        recorder.close().unwrap();
        std::fs::remove_file(&log).unwrap();
    }
    println!("done {offsets}");
}

fn check_without_room(recorder: &mut Recorder, log: &Path, folder: &Path, probe: &str) {
    let filler = folder.join("filler");
    let mut file = OpenOptions::new().create(true).append(true).open(&filler).unwrap();
    while file.write(&[0; PAGE as usize]).is_ok() {}
    let (was, head) = (std::fs::read(log).unwrap(), recorder.head().cloned());
    for _ in 0..2 {
        let error = recorder.user(probe).unwrap_err();
        let is_full = matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull);
        assert!(is_full, "{error}");
        assert!(std::fs::read(log).unwrap() == was, "the file changed");
        assert_eq!(recorder.head().cloned(), head);
    }
    file.set_len(file.metadata().unwrap().len().saturating_sub(4 * PAGE)).unwrap();
    recorder.user(probe).unwrap();
    let now = std::fs::read(log).unwrap();
    assert!(now.starts_with(&was) && now.ends_with(b"\n"));
}
