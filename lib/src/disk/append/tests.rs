//! What is promised of a log, on a disk that fails in every way: P1, P5, P7 and P8 below the recorder.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{Appender, Warning};
use crate::dialect::Native;
use crate::disk::sim::{Event, Random, Sim};
use crate::model::error::Error;
use crate::session::Session;
use crate::session::read::open::ReadOptions;

const LOG: &str = "/home/store/sessions/s/messages.jsonl";

/// Seeds of a property: few at a push, many under `cargo xtask torture`, from the seed that it prints.
pub(crate) fn seeds(push: u64, full: u64) -> Range<u64> {
    match std::env::var("SCROLLBACK_TORTURE").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => seed..seed.saturating_add(full),
        None => 0..push,
    }
}

/// A record of the native dialect, as a line.
pub(crate) fn line(id: &str, bytes: usize) -> Vec<u8> {
    let text = "wave ".repeat(bytes / 5 + 1);
    format!("{{\"type\":\"user\",\"uuid\":\"{id}\",\"message\":{{\"content\":\"{}\"}}}}\n", &text[..bytes]).into_bytes()
}

/// The records that our own reader finds.
pub(crate) fn ids(bytes: &[u8]) -> BTreeSet<String> {
    let reading = ReadOptions::plain(jiff::Timestamp::MAX);
    let session = Session::from_bytes(&Native, bytes.to_vec(), &reading);
    session.records().map(|record| record.id().into_owned()).collect()
}

fn disk(seed: u64) -> Sim {
    Sim::new(seed, &["/home"])
}

fn create(sim: &Sim) -> Result<Appender, Error> {
    Appender::create(Arc::new(sim.clone()), Path::new(LOG), Vec::new())
}

fn open(sim: &Sim) -> Result<Appender, Error> {
    Appender::open(Arc::new(sim.clone()), Path::new(LOG), Vec::new())
}

/// What writers were told is saved.
#[derive(Default)]
struct Told {
    /// Survives the power.
    synced: BTreeSet<String>,
    /// Survives the process.
    flushed: BTreeSet<String>,
}

/// A process with the log open, and what it has appended since its last good sync.
struct Writer {
    appender: Appender,
    unsynced: Vec<(u64, Vec<u8>)>,
    ids: Vec<String>,
    sync_failed: bool,
}

impl Writer {
    fn start(sim: &Sim) -> Result<Writer, Error> {
        let appender = open(sim).or_else(|_| create(sim))?;
        Ok(Writer { appender, unsynced: Vec::new(), ids: Vec::new(), sync_failed: false })
    }

    fn append(&mut self, id: String, bytes: usize, told: &mut Told) {
        let line = line(&id, bytes);
        if let Ok(offset) = self.appender.append(&line) {
            self.unsynced.push((offset, line));
            told.flushed.insert(id.clone());
            self.ids.push(id);
        }
    }

    fn sync(&mut self, told: &mut Told) {
        match self.appender.sync() {
            Ok(()) => {
                told.synced.extend(self.ids.drain(..));
                self.unsynced.clear();
            }
            Err(_) => self.sync_failed = true,
        }
    }

    fn reopen(&mut self) {
        self.sync_failed = self.appender.rewrite_lines(&mut self.unsynced).is_err();
    }
}

/// Two processes write, sync, fail, die and start again.
fn two_writers(sim: &Sim, random: &mut Random, actions: usize, told: &mut Told) {
    let mut writers: [Option<Writer>; 2] = [None, None];
    for action in 0..actions {
        let slot = &mut writers[random.below(2) as usize];
        let Some(writer) = slot else {
            *slot = Writer::start(sim).ok();
            continue;
        };
        match random.below(10) {
            0 => *slot = None,
            _ if writer.sync_failed => writer.reopen(),
            1..=6 => {
                let bytes = [3, 40, 400, 1_100][random.below(4) as usize];
                writer.append(format!("r{action}"), bytes, told);
            }
            _ => writer.sync(told),
        }
    }
}

fn any_event(random: &mut Random) -> Event {
    match random.below(9) {
        0 | 1 => Event::Fails(io::ErrorKind::Other),
        2 => Event::Fails(io::ErrorKind::StorageFull),
        3 => Event::Fails(io::ErrorKind::Interrupted),
        4 => Event::Short(random.below(600) as usize),
        5 => Event::Held(random.below(40) as u32),
        6 => Event::NoLocks,
        7 => Event::Foreign(LOG.into(), line("foreign", 30)),
        _ => Event::Foreign(LOG.into(), line("foreign", 30)[..25].to_vec()),
    }
}

fn check_story(seed: u64) {
    let mut random = Random(seed);
    let sim = disk(random.next());
    for _ in 0..random.below(4) {
        let (step, event) = (random.below(100), any_event(&mut random));
        sim.at(step, event);
    }
    sim.at(random.below(160), Event::PowerLoss);
    let mut told = Told::default();
    two_writers(&sim, &mut random, 20, &mut told);
    assert_eq!(sim.broken(), [""; 0], "seed {seed}");
    check_after_crash(&sim, &told, random.next(), seed);
}

/// What was told to be safe is read after a crash, and after the next writer has gone on there and crashed as well.
fn check_after_crash(sim: &Sim, told: &Told, crash: u64, seed: u64) {
    let crashed = sim.crash(crash);
    let left = crashed.read(LOG).unwrap_or_default();
    let missing: Vec<_> = told.synced.difference(&ids(&left)).cloned().collect();
    assert_eq!(missing, [""; 0], "seed {seed}, of {:?}:\n{}", told.synced, String::from_utf8_lossy(&left));
    if crash.is_multiple_of(4) {
        let mut next = Writer::start(&crashed).unwrap();
        let mut after = Told { synced: told.synced.clone(), flushed: BTreeSet::new() };
        next.append("after".to_owned(), 40, &mut after);
        next.sync(&mut after);
        assert!(after.synced.contains("after"), "seed {seed}");
        let left = crashed.crash(crash + 1).read(LOG).unwrap_or_default();
        assert!(after.synced.is_subset(&ids(&left)), "seed {seed}, after a second crash");
    }
}

#[test]
fn what_was_synced_survives_any_crash() {
    for seed in seeds(20_000, 1_000_000) {
        check_story(seed);
    }
}

/// Every record synced, one by one; whatever fails is tried again.
fn stubborn_writer(sim: &Sim, records: usize, told: &mut Told) {
    let mut writer = None;
    for record in 0..records {
        for _ in 0..3 {
            if writer.is_none() {
                writer = Writer::start(sim).ok();
            }
            let Some(writer) = &mut writer else { continue };
            if writer.sync_failed {
                writer.reopen();
            }
            let id = format!("r{record}");
            if !writer.ids.contains(&id) && !told.synced.contains(&id) {
                writer.append(id.clone(), 300, told);
            }
            if !writer.sync_failed {
                writer.sync(told);
            }
        }
    }
}

#[test]
fn what_was_synced_survives_a_crash_at_every_operation() {
    let whole = disk(0);
    stubborn_writer(&whole, 6, &mut Told::default());
    for step in 0..=whole.steps() {
        for seed in 0..20 {
            let sim = disk(seed);
            sim.at(step, Event::PowerLoss);
            let mut told = Told::default();
            stubborn_writer(&sim, 6, &mut told);
            check_after_crash(&sim, &told, seed, step);
        }
    }
}

#[test]
fn a_failure_of_any_operation_is_no_lie_and_is_overcome() {
    let whole = disk(0);
    stubborn_writer(&whole, 6, &mut Told::default());
    for step in 0..whole.steps() {
        for (seed, kind) in [io::ErrorKind::Other, io::ErrorKind::Interrupted, io::ErrorKind::StorageFull]
            .into_iter()
            .enumerate()
        {
            for second in 0..8 {
                let sim = disk(seed as u64);
                sim.at(step, Event::Fails(kind));
                sim.at(step + second, Event::Fails(io::ErrorKind::Other));
                let mut told = Told::default();
                stubborn_writer(&sim, 6, &mut told);
                assert_eq!(told.synced.len(), 6, "{kind} at {step}");
                assert_eq!(sim.broken(), [""; 0], "{kind} at {step}");
                check_after_crash(&sim, &told, step * 31 + second, step);
            }
        }
    }
}

#[test]
fn the_next_record_after_any_cut_starts_on_a_fresh_line() {
    let lines: Vec<Vec<u8>> = (0..12).map(|record| line(&format!("r{record}"), 7 * record)).collect();
    let whole = lines.concat();
    for cut in 0..=whole.len() {
        let sim = disk(0);
        sim.write(LOG, &whole[..cut]);
        let mut appender = open(&sim).unwrap();
        let offset = appender.append(&line("next", 10)).unwrap() as usize;
        let now = sim.read(LOG).unwrap();
        assert_eq!(&now[..cut], &whole[..cut], "cut at {cut}");
        assert!(offset == 0 || now[offset - 1] == b'\n', "cut at {cut}");
        assert_eq!(&now[offset..], line("next", 10), "cut at {cut}");
        let expected = match (cut.checked_sub(1).map(|last| whole[last]), whole.get(cut)) {
            (None | Some(b'\n'), _) => vec![],
            (Some(_), Some(b'\n')) => vec![Warning::NoLineEnd],
            (Some(_), _) => vec![Warning::TornTail],
        };
        assert_eq!(appender.take_warnings(), expected, "cut at {cut}");
        let mut expected = ids(&whole[..cut]);
        expected.insert("next".to_owned());
        assert_eq!(ids(&now), expected, "cut at {cut}");
    }
}

#[test]
fn an_open_end_is_told_by_what_it_is() {
    let long = String::from_utf8(line("long", 100_000)).unwrap();
    for (end, expected) in [
        ("{\"a\":1}", Warning::NoLineEnd),
        ("{\"a\":1}\r", Warning::NoLineEnd),
        ("{\"a\":1}{\"b\":2}", Warning::NoLineEnd),
        ("{\"a\":1}{\"b\":", Warning::TornTail),
        ("{\"a\":\"}", Warning::TornTail),
        ("rubbish", Warning::TornTail),
        ("\0\0\0", Warning::TornTail),
        ("{\"a\":\"\u{e9}\"}", Warning::NoLineEnd),
        (long.trim_end(), Warning::NoLineEnd),
        (&long[..long.len() / 2], Warning::TornTail),
    ] {
        for before in ["", "{\"first\":0}\n", "torn\n"] {
            let sim = disk(0);
            sim.write(LOG, format!("{before}{end}").as_bytes());
            let mut appender = open(&sim).unwrap();
            appender.append(&line("next", 10)).unwrap();
            assert_eq!(appender.take_warnings(), [expected], "{before:?} {:.40}", end);
        }
    }
}

#[test]
fn on_a_full_disk_the_file_stays_as_it_was_and_works_again_afterwards() {
    let header = b"{\"type\":\"system\",\"uuid\":\"header\",\"message\":{\"content\":\"\"}}\n".to_vec();
    for (before, header) in [(&b""[..], header), (b"{\"uuid\":\"torn", vec![]), (b"", vec![])] {
        let sim = disk(0);
        sim.write(LOG, before);
        let mut appender = Appender::open(Arc::new(sim.clone()), Path::new(LOG), header).unwrap();
        for record in 0..50 {
            let line = line(&format!("r{record}"), 20 + record % 7);
            let was = sim.read(LOG).unwrap();
            for room in 0..line.len() as u64 {
                sim.leave_room_for(room);
                let error = appender.append(&line).unwrap_err();
                assert!(
                    matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull),
                    "{error}"
                );
                assert_eq!(sim.read(LOG).unwrap(), was, "record {record} with room for {room}");
            }
            sim.forget_events();
            appender.append(&line).unwrap();
            assert!(sim.read(LOG).unwrap().ends_with(&line));
        }
        assert_eq!(sim.broken(), [""; 0]);
        assert!(ids(&sim.read(LOG).unwrap()).len() >= 50);
    }
}

#[test]
fn somebody_without_a_lock_loses_nothing_and_hides_nothing() {
    let foreign = line("foreign", 30);
    // All at once, and as programs write that flush a full buffer.
    for piece in [foreign.len(), 25, 60] {
        for step in 0..24 {
            for rest in 0..6 {
                for short in [None, Some(1), Some(40)] {
                    let sim = disk(0);
                    sim.write(LOG, &line("first", 10));
                    let mut appender = open(&sim).unwrap();
                    let begin = sim.steps();
                    sim.at(begin + step, Event::Foreign(LOG.into(), foreign[..piece].to_vec()));
                    sim.at(begin + step + rest, Event::Foreign(LOG.into(), foreign[piece..].to_vec()));
                    if let Some(taken) = short {
                        // Before the first append: lock, is_at, len, read.
                        sim.at(begin + 4, Event::Short(taken));
                    }
                    let mut expected = BTreeSet::from(["first".to_owned()]);
                    for id in ["a", "b", "c"] {
                        match appender.append(&line(id, 30)) {
                            Ok(offset) => {
                                let now = sim.read(LOG).unwrap();
                                assert!(now[offset as usize..].starts_with(&line(id, 30)), "{id} is not at {offset}");
                                expected.insert(id.to_owned());
                            }
                            Err(error) => assert!(matches!(error, Error::Torn(_)), "{error}"),
                        }
                    }
                    let now = sim.read(LOG).unwrap();
                    let story = format!("{piece} at {step} + {rest}, {short:?}:\n{}", String::from_utf8_lossy(&now));
                    assert_eq!(sim.broken(), [""; 0], "{story}");
                    // In one piece it is whole; in two it may be torn by a line of ours, as any writer's would.
                    if piece == foreign.len() && sim.steps() > begin + step {
                        expected.insert("foreign".to_owned());
                    }
                    assert!(expected.is_subset(&ids(&now)), "{expected:?} {story}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_replaced_or_deleted_is_noticed() {
    let other = line("other", 10);
    let cases = [
        (Event::Replaced(LOG.into(), other.clone()), Warning::Replaced, vec!["other", "second"]),
        (Event::Replaced(LOG.into(), other[..20].to_vec()), Warning::Replaced, vec!["second"]),
        (Event::Deleted(LOG.into()), Warning::Deleted, vec!["header", "second"]),
    ];
    for (event, warning, expected) in cases {
        for crash in 0..40 {
            let sim = disk(crash);
            let header = line("header", 0);
            let mut appender = Appender::create(Arc::new(sim.clone()), Path::new(LOG), header).unwrap();
            appender.append(&line("first", 10)).unwrap();
            appender.sync().unwrap();
            sim.at(sim.steps(), event.clone());
            appender.append(&line("second", 10)).unwrap();
            assert!(appender.take_warnings().contains(&warning));
            appender.sync().unwrap();
            let left = sim.crash(crash).read(LOG).unwrap();
            assert!(expected.iter().all(|id| ids(&left).contains(*id)), "{event:?} {}", String::from_utf8_lossy(&left));
        }
    }
}

#[test]
fn after_a_failed_sync_everything_is_written_again_line_ends_and_headers_too() {
    for (before, seed) in [&b""[..], b"{\"uuid\":\"torn"]
        .into_iter()
        .flat_map(|before| (0..200).map(move |seed| (before, seed)))
    {
        let sim = disk(seed);
        sim.write(LOG, before);
        let mut appender = Appender::open(Arc::new(sim.clone()), Path::new(LOG), line("header", 700)).unwrap();
        let mut unsynced = Vec::new();
        for id in ["a", "b", "c"] {
            unsynced.push((appender.append(&line(id, 600)).unwrap(), line(id, 600)));
        }
        sim.at(sim.steps(), Event::Fails(io::ErrorKind::Other));
        appender.sync().unwrap_err();
        let was = sim.read(LOG).unwrap();
        appender.rewrite_lines(&mut unsynced).unwrap();
        appender.sync().unwrap();
        assert_eq!(sim.read(LOG).unwrap(), was, "nothing is written twice");
        assert_eq!(sim.crash(seed).read(LOG).unwrap(), was, "seed {seed}");
    }
}

#[test]
fn a_file_that_is_deleted_after_a_failed_sync_is_begun_anew() {
    let sim = disk(0);
    let mut told = Told::default();
    let mut writer = Writer::start(&sim).unwrap();
    writer.append("a".to_owned(), 10, &mut told);
    sim.at(sim.steps(), Event::Fails(io::ErrorKind::Other));
    writer.sync(&mut told);
    assert!(writer.sync_failed && told.synced.is_empty());
    sim.at(sim.steps(), Event::Deleted(LOG.into()));
    writer.reopen();
    writer.sync(&mut told);
    assert_eq!(ids(&sim.crash(0).read(LOG).unwrap()), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn a_lock_is_waited_for_but_not_forever() {
    let sim = disk(0);
    let (mut one, mut two) = (create(&sim).unwrap(), open(&sim).unwrap());
    sim.at(sim.steps(), Event::Held(10));
    one.append(&line("one", 10)).unwrap();
    let waited = sim.paused_ms();
    assert!(waited > 0 && waited < 5_000, "{waited} ms");
    sim.at(sim.steps(), Event::Held(u32::MAX));
    assert!(matches!(two.append(&line("two", 10)), Err(Error::Busy(_))));
    assert!((5_000..6_000).contains(&(sim.paused_ms() - waited)), "{} ms", sim.paused_ms() - waited);
    assert_eq!(ids(&sim.read(LOG).unwrap()), BTreeSet::from(["one".to_owned()]));
    sim.forget_events();
    two.append(&line("two", 10)).unwrap();
    one.append(&line("three", 10)).unwrap();
    assert_eq!(one.take_warnings(), []);
}

#[test]
fn a_disk_without_locks_is_written_to_and_told_of() {
    let sim = disk(0);
    sim.at(0, Event::NoLocks);
    let mut appender = create(&sim).unwrap();
    appender.append(&line("a", 10)).unwrap();
    appender.append(&line("b", 10)).unwrap();
    assert_eq!(appender.take_warnings(), [Warning::NoLocks]);
}
