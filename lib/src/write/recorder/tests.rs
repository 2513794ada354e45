//! What a recorder promises, in every format, on a disk that fails in every way: P1, P7 and P8.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::json;

use super::{Delta, Durability, Entry, Options, Recorder, Saved};
use crate::dialect::{self, Dialect, Native};
use crate::disk::append::Appender;
use crate::disk::append::tests::{line, seeds};
use crate::disk::sim::{Event, Random, Sim};
use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Content, RecordId, SessionId};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::recorder::{Cursor, Log};
use crate::write::store::{NewSession, Store};

const STORE: &str = "/home/store";
const PROJECT: &str = "/gone/tides";

/// A session of a project, whatever the format asks for.
fn new() -> NewSession<'static> {
    let (id, with) = (Some("0b9c6d1e-52f4-4c7a-9a57-3f1f5a4c2e10"), Some("ada@example.org"));
    NewSession { id, project: Path::new(PROJECT), with }
}

/// A machine: its disk, its clock, and ids that count over all its processes.
struct Machine {
    sim: Sim,
    host: Host,
    dialect: &'static dyn Dialect,
    options: Options,
    /// The session's file, if it is begun now.
    log: String,
}

impl Machine {
    fn new(dialect: &'static dyn Dialect, seed: u64) -> Machine {
        let (millis, ids) = (Arc::new(AtomicI64::new(1_790_000_000_000)), Arc::new(AtomicU64::new(0)));
        let host = Host {
            now: Arc::new(move || Timestamp::from_millisecond(millis.fetch_add(300, Ordering::Relaxed)).unwrap()),
            new_id: Arc::new(move || format!("0199a3f0-0000-4000-9000-{:012}", ids.fetch_add(1, Ordering::Relaxed))),
            cwd: PROJECT.into(),
            data: None,
            platform: "linux".to_owned(),
            version: "test 1".to_owned(),
        };
        let (sim, options) = (Sim::new(seed, &["/home"]), Options::unredacted());
        let mut machine = Machine { sim, host, dialect, options, log: String::new() };
        let (store, id) = (machine.store(), SessionId(new().id.unwrap().to_owned()));
        let path = store.path_of(&store.beginning(&id, &new(), None).unwrap()).unwrap();
        machine.log = path.to_string_lossy().into_owned();
        machine
    }

    fn crash(&self, seed: u64) -> Machine {
        let Machine { sim, host, dialect, options, log } = self;
        let (host, options, log) = (host.clone(), options.clone(), log.clone());
        Machine { sim: sim.crash(seed), host, dialect: *dialect, options, log }
    }

    fn store(&self) -> Store {
        let store = Store::on(Arc::new(self.sim.clone()), self.dialect, Path::new(STORE), self.host.clone());
        store.unwrap().with_options(self.options.clone())
    }

    /// The session's file. Formats that name files after the time name each attempt otherwise.
    fn log(&self) -> String {
        let names = self.sim.names().into_iter().map(|name| name.to_string_lossy().into_owned());
        let is_log = |name: &String| name.ends_with(".jsonl") && !name.contains("/.");
        names.into_iter().rfind(is_log).unwrap_or_else(|| self.log.clone())
    }

    fn session(&self) -> Session {
        let bytes = self.sim.read(&self.log()).unwrap_or_default();
        Session::from_bytes(self.dialect, bytes, &ReadOptions::plain(Timestamp::MAX))
    }

    /// Begins the session, or goes on with it as [`Store::resume`] does, which reads from the machine's own disk.
    fn start(&self) -> Result<Recorder> {
        let store = self.store();
        if self.sim.read(&self.log()).is_none() {
            return store.begin(new());
        }
        let (session, log) = (self.session(), self.log());
        let path = Path::new(&log);
        let place = store.place(session.id(), path);
        let cursor = Cursor::at(&session, session.head(), &place, Path::new(PROJECT))?;
        let appender = Appender::open(Arc::new(self.sim.clone()), path, Vec::new())?;
        let mut log = Log::new(place, appender, cursor, None);
        log.write_sidecar();
        Ok(Recorder::new(log, self.options.clone()))
    }
}

/// What a caller was told is saved: records, and the words that each must have.
#[derive(Default)]
struct Told {
    synced: Vec<(RecordId, String)>,
    flushed: Vec<(RecordId, String)>,
}

impl Told {
    fn check(facts: &[(RecordId, String)], session: &Session, story: &str) {
        let (mut ids, mut texts) = (BTreeSet::new(), String::new());
        for record in session.records() {
            ids.insert(record.id().into_owned());
            texts += &String::from_utf8_lossy(&record.raw().unwrap().concat());
        }
        for (id, words) in facts {
            // What is no link has a name in our own format only.
            let is_named = session.dialect().name() == Native.name();
            assert!(!is_named || ids.contains(id.as_str()), "{story}: {id} ({words}) is gone");
            assert!(texts.contains(words), "{story}: {words} is gone from {id}: {texts}");
        }
    }
}

/// A process, and what it was told since its last good sync.
struct Process {
    recorder: Recorder,
    /// The entry, the record and its text.
    since_sync: Vec<(u64, RecordId, String)>,
    /// Texts of entries that are not reported yet.
    texts: BTreeMap<u64, String>,
}

impl Process {
    fn new(mut recorder: Recorder) -> Process {
        recorder.keep_reports();
        Process { recorder, since_sync: Vec::new(), texts: BTreeMap::new() }
    }

    /// Takes note of the result of a call, and of everything that is reported since.
    fn note(&mut self, result: Result<Entry>, text: &str, told: &mut Told) {
        if let Ok(entry) = result
            && entry.number > 0
        {
            self.texts.insert(entry.number, text.to_owned());
        }
        for report in self.recorder.reports() {
            let text = self.texts.remove(&report.entry).unwrap_or_default();
            if let Ok(saved) = report.result {
                self.add_facts(report.entry, saved, &text, told);
            }
        }
    }

    fn add_facts(&mut self, entry: u64, saved: Saved, text: &str, told: &mut Told) {
        // What the format could not store was reported.
        let text = if saved.losses.is_empty() { text } else { "" };
        self.since_sync.push((entry, saved.id.clone(), text.to_owned()));
        told.flushed.push((saved.id, text.to_owned()));
        if saved.durability == Durability::Sync {
            self.synced(told);
        }
    }

    /// A sync succeeded: everything before it is safe.
    fn synced(&mut self, told: &mut Told) {
        told.synced.extend(self.since_sync.drain(..).map(|(_, id, text)| (id, text)));
    }

    /// After a failed sync nothing is written before `reopen` has saved it all.
    fn save_after_failure(&mut self, machine: &Machine, told: &mut Told, story: &str) {
        let saved_through = self.recorder.saved_through();
        for (entry, id, _) in &self.since_sync {
            assert!(*entry > saved_through, "{story}: entry {entry} ({id}) counts as saved");
        }
        let before = machine.sim.read(&machine.log());
        let refused = self.recorder.user("too early").unwrap_err();
        assert!(matches!(refused, Error::Unsaved { .. }), "{story}: {refused}");
        assert_eq!(machine.sim.read(&machine.log()), before, "{story}: a refused call wrote");
        if self.recorder.reopen().is_ok() {
            assert!(!self.recorder.is_in_doubt(), "{story}");
            self.note(Ok(Entry::default()), "", told);
            self.synced(told);
        }
    }
}

fn act(process: &mut Process, random: &mut Random, number: usize, told: &mut Told) {
    let words = format!("<{number}>{}", " wave".repeat(random.below(150) as usize));
    let recorder = &mut process.recorder;
    let call = format!("call-{number}");
    match random.below(10) {
        0 | 1 => {
            let came = recorder.user(words.as_str());
            process.note(came, &words, told);
        }
        2 => {
            let came = recorder.assistant(words.as_str());
            process.note(came, &words, told);
        }
        3 | 4 => {
            let calls: Part = ToolPart::dynamic("read_file", &call, ToolState::called(json!({"path": "a.rs"}))).into();
            let came = recorder.assistant(vec![Part::text(&words), calls]);
            process.note(came, &words, told);
        }
        5 => {
            let came = recorder.system(words.as_str());
            process.note(came, &words, told);
        }
        6 => {
            // It is no record of the chain: what counts is that its sync carries the others.
            if recorder.title(format!("title {number}").as_str()).is_ok() {
                process.synced(told);
            }
        }
        7 => {
            for piece in 0..3 {
                let words = format!("<{number}.{piece}>");
                let came = process.recorder.delta(Delta::Text(words.clone()));
                process.note(came, &words, told);
            }
            let came = process.recorder.finish_answer(None);
            process.note(came, "", told);
        }
        8 => {
            if let Some(to) = told.flushed.get(random.below(told.flushed.len() as u64) as usize) {
                let came = recorder.rewind(&to.0.clone(), Some(words.clone()));
                process.note(came, "", told);
            }
        }
        _ => {
            if recorder.sync().is_ok() {
                process.synced(told);
            }
        }
    }
}

/// Two processes record into one session, fail, die and start again.
fn record(machine: &Machine, random: &mut Random, actions: usize, told: &mut Told, story: &str) {
    let mut processes: [Option<Process>; 2] = [None, None];
    for number in 0..actions {
        let slot = &mut processes[random.below(2) as usize];
        let Some(process) = slot else {
            *slot = machine.start().ok().map(Process::new);
            continue;
        };
        if process.recorder.is_in_doubt() {
            process.save_after_failure(machine, told, story);
        } else if random.below(12) == 0 {
            *slot = None;
        } else {
            act(process, random, number, told);
        }
    }
}

fn check_after_crash(machine: &Machine, told: &Told, crash: u64, story: &str) {
    assert_eq!(machine.sim.broken(), [""; 0], "{story}");
    let crashed = machine.crash(crash);
    Told::check(&told.synced, &crashed.session(), story);
    if crash.is_multiple_of(4) {
        let mut told = Told { synced: told.synced.clone(), flushed: Vec::new() };
        let mut next = Process::new(crashed.start().unwrap());
        let came = next.recorder.user("after the crash");
        next.note(came, "after the crash", &mut told);
        assert_eq!(next.since_sync, [], "{story}");
        Told::check(&told.synced, &crashed.crash(crash / 4).session(), story);
    }
}

fn any_event(random: &mut Random, log: &str) -> Event {
    match random.below(7) {
        0..=2 => Event::Fails(io::ErrorKind::Other),
        3 => Event::Fails(io::ErrorKind::StorageFull),
        4 => Event::Short(random.below(600) as usize),
        5 => Event::Held(random.below(40) as u32),
        _ => Event::Foreign(log.into(), line("foreign", 30)[..25].to_vec()),
    }
}

/// The dialects that are written, one after another.
fn dialect_of(seed: u64) -> &'static dyn Dialect {
    let written: Vec<_> = dialect::all().iter().filter(|dialect| dialect.writer().is_some()).collect();
    *written[(seed % written.len() as u64) as usize]
}

#[test]
fn what_was_acknowledged_with_sync_survives_any_crash() {
    for seed in seeds(1_500, 200_000) {
        let mut random = Random(seed);
        let machine = Machine::new(dialect_of(seed), random.next());
        for _ in 0..random.below(4) {
            let (step, event) = (random.below(150), any_event(&mut random, &machine.log));
            machine.sim.at(step, event);
        }
        machine.sim.at(random.below(300), Event::PowerLoss);
        let (mut told, story) = (Told::default(), format!("{}, seed {seed}", machine.dialect.name()));
        record(&machine, &mut random, 14, &mut told, &story);
        check_after_crash(&machine, &told, random.next(), &story);
    }
}

#[test]
fn what_was_acknowledged_at_all_survives_the_process() {
    for seed in seeds(500, 50_000) {
        let mut random = Random(seed);
        let machine = Machine::new(dialect_of(seed), random.next());
        for _ in 0..random.below(4) {
            let (step, event) = (random.below(150), any_event(&mut random, &machine.log));
            machine.sim.at(step, event);
        }
        let (mut told, story) = (Told::default(), format!("{}, seed {seed}", machine.dialect.name()));
        record(&machine, &mut random, 14, &mut told, &story);
        Told::check(&told.flushed, &machine.session(), &story);
        assert_eq!(machine.sim.broken(), [""; 0], "{story}");
    }
}

/// A conversation in which everything that fails is tried again.
fn converse(machine: &Machine, told: &mut Told, story: &str) {
    let Some(recorder) = (0..4).find_map(|_| machine.start().ok()) else { panic!("{story}: it never starts") };
    let mut process = Process::new(recorder);
    for number in 0..5 {
        for again in 0..4 {
            let words = format!("<{number}.{again}>");
            let came = match number {
                3 => process.recorder.assistant(words.as_str()),
                _ => process.recorder.user(words.as_str()),
            };
            let (is_saved, is_unsaved) = (came.is_ok(), matches!(came, Err(Error::Unsaved { .. })));
            process.note(came, &words, told);
            if is_unsaved {
                for _ in 0..3 {
                    if process.recorder.is_in_doubt() {
                        process.save_after_failure(machine, told, story);
                    }
                }
            }
            if is_saved || is_unsaved {
                break;
            }
            assert!(again < 3, "{story}: it never works again");
        }
    }
}

#[test]
fn a_crash_at_every_operation_loses_nothing_that_was_acknowledged() {
    for dialect in dialect::all().iter().filter(|dialect| dialect.writer().is_some()) {
        let whole = Machine::new(*dialect, 0);
        converse(&whole, &mut Told::default(), dialect.name());
        for step in 0..=whole.sim.steps() {
            for seed in 0..2 {
                let machine = Machine::new(*dialect, seed);
                machine.sim.at(step, Event::PowerLoss);
                let story = format!("{}, power loss at {step}, seed {seed}", dialect.name());
                let mut told = Told::default();
                record(&machine, &mut Random(step + seed), 12, &mut told, &story);
                check_after_crash(&machine, &told, seed, &story);
            }
        }
    }
}

#[test]
fn a_failure_of_every_operation_is_told_and_overcome() {
    for dialect in dialect::all().iter().filter(|dialect| dialect.writer().is_some()) {
        let whole = Machine::new(*dialect, 0);
        converse(&whole, &mut Told::default(), dialect.name());
        for step in 0..whole.sim.steps() {
            for second in [0, 2, 5] {
                let machine = Machine::new(*dialect, step);
                machine.sim.at(step, Event::Fails(io::ErrorKind::Other));
                machine.sim.at(step + second, Event::Fails(io::ErrorKind::StorageFull));
                let story = format!("{}, failures at {step} and {}", dialect.name(), step + second);
                let mut told = Told::default();
                converse(&machine, &mut told, &story);
                assert!(told.synced.len() >= 4, "{story}: {:?}", told.synced);
                check_after_crash(&machine, &told, step * 4, &story);
            }
        }
    }
}

#[test]
fn on_a_full_disk_nothing_is_saved_and_nothing_is_changed_until_there_is_room() {
    let machine = Machine::new(&Native, 0);
    let mut recorder = machine.start().unwrap();
    recorder.user("first").unwrap();
    let (was, head) = (machine.sim.read(&machine.log()).unwrap(), recorder.head().cloned());
    let needed = {
        let before = was.len();
        recorder.user("second").unwrap();
        machine.sim.read(&machine.log()).unwrap().len() - before
    };
    let (was, head) = (machine.sim.read(&machine.log()).unwrap(), recorder.head().cloned().or(head));
    for room in (0..needed as u64 - 2).step_by(7) {
        machine.sim.leave_room_for(room);
        let error = recorder.user("third!").unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull), "{error}");
        assert_eq!(
            (machine.sim.read(&machine.log()).unwrap(), recorder.head().cloned()),
            (was.clone(), head.clone()),
            "{room}"
        );
    }
    machine.sim.forget_events();
    recorder.user("third").unwrap();
    recorder.close().unwrap();
    let session = machine.session();
    assert_eq!((session.records().len(), session.heads().count()), (3, 1));
    assert_eq!(session.issues(), []);
}

mod again;
mod files;
mod retry;
mod streamed;
mod title;
mod together;
mod unsaved;
#[path = "../../../tests/support/bodies.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod bodies;
mod redacted;
#[path = "../../../tests/support/said.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod content;
mod sidecar;
