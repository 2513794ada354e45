//! What a machine can do at best with a home of sessions, and what we do, in one run: `cargo xtask bench` prints it.
//!
//! Usage: `cargo bench --bench limits -- HOME`, or a file of the native dialect. One tab-separated line a measurement: name,
//! seconds, the most memory held in MiB, a remark.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints, and stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

mod tokens;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use scrollback::dialect::Native;
use scrollback::model::{Home, Sdk};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::SessionRow;
use scrollback::view::find::Places;
use scrollback::view::listing::{Depth, row};
use scrollback::view::stream::{Begin, Chunks, Follower};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Of several runs the best one counts: the machine is shared, the limit is not.
const RUNS: usize = 3;

fn main() {
    let named: Option<PathBuf> = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    // `cargo test --benches` starts us without a home: then there is nothing to measure.
    let Some(named) = named else { return };
    let sources = if named.is_file() { vec![Source::file(&Native, &named)] } else { sources(&named) };
    let bytes: u64 = sources.iter().map(|source| std::fs::metadata(&source.path).unwrap().len()).sum();
    let paths: Vec<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
    let reading = ReadOptions::plain(jiff::Timestamp::MAX);
    println!("files\t{}\t0\t{bytes} bytes", paths.len());
    measure("limit: read and split lines", || paths.iter().map(|path| lines(path, |_| {})).sum::<u64>());
    if !named.is_file() {
        measure("limit: parse as Value", || parse(&paths, |line| serde_json::from_slice::<Value>(line).is_ok()));
        measure("limit: parse as RawValue", || parse(&paths, |line| serde_json::from_slice::<Raw<'_>>(line).is_ok()));
    }
    measure("limit: borrowed typed parse", || parse(&paths, |line| serde_json::from_slice::<Typed<'_>>(line).is_ok()));
    measure("ours: skeleton of every session", || {
        sources
            .iter()
            .map(|source| Session::open(source, &reading).unwrap().records().len() as u64)
            .sum::<u64>()
    });
    if named.is_file() {
        measure("limit: parse as Value and print", || parse(&paths, |line| print(line).is_ok()));
        measure("ours: stream as chunks", || streamed(&named, &reading));
        return;
    }
    measure("limit: both ends of every file", || {
        self::sources(&named).iter().map(|source| ends(&source.path)).sum::<u64>()
    });
    let read_by_list = spans_of_list(&named);
    let bytes: u64 = read_by_list.iter().map(Spans::bytes).sum();
    println!("bytes that a list reads\t{bytes}\t0\t");
    measure("limit: what a list reads", || {
        let (walked, mut buffer) = (self::sources(&named).len() as u64, Vec::new());
        walked + read_by_list.iter().map(|spans| spans.read(&mut buffer)).sum::<u64>()
    });
    measure("ours: list from windows", || {
        sources.iter().map(|source| row(source, &reading, Depth::Ends).unwrap().size_bytes).sum::<u64>()
    });
    let limit = measure("limit: token totals", || tokens::at_best(&paths));
    let ours = measure("ours: token totals", || tokens::ours(&sources, &reading));
    if let Some(truth) = tokens::truth(&named) {
        println!("exact: token totals\t0\t0\tlimit {}, ours {}", limit == truth, ours == truth);
    }
    for (dialect, [input, output, read, written, _]) in &ours {
        println!("{dialect}: token total\t0\t0\t{}", input + output + read + written);
    }
}

/// A file that comes in pieces of a pipe's size, as chunks of the AI SDK's stream; looked at each time some megabytes have come.
fn streamed(path: &Path, reading: &ReadOptions<'_>) -> u64 {
    const PIECE: usize = 64 * 1024;
    const PIECES_PER_LOOK: usize = 256;
    let mut follower = Follower::of_bytes(&Native, Begin::Everything, reading);
    let (mut chunks, mut count) = (Chunks::new(Sdk::V7), 0);
    let (mut file, mut piece) = (File::open(path).unwrap(), vec![0; PIECE]);
    for at in 1.. {
        let read = file.read(&mut piece).unwrap();
        follower.push(&piece[..read], reading);
        if read == 0 || at % PIECES_PER_LOOK == 0 {
            let updates = follower.updates(reading).unwrap();
            count += updates.into_iter().map(|update| chunks.of(update).len() as u64).sum::<u64>();
        }
        if read == 0 {
            break;
        }
    }
    count + chunks.finish().len() as u64
}

fn sources(home: &Path) -> Vec<Source> {
    let home = Home { cwd: home.to_path_buf(), dir: home.to_path_buf(), vars: Default::default() };
    let found = Places { home: home.clone(), store: None, dialect: None, mask: None }.sources();
    found.into_iter().filter_map(Result::ok).collect()
}

fn parse(paths: &[&Path], is_record: impl Fn(&[u8]) -> bool) -> u64 {
    let mut records = 0;
    for path in paths {
        lines(path, |line| records += u64::from(is_record(line)));
    }
    records
}

/// What a program does at least that shows all of a line in another form: parses it, builds a value and prints it.
fn print(line: &[u8]) -> serde_json::Result<()> {
    serde_json::to_writer(&mut std::io::sink(), &serde_json::from_slice::<Value>(line)?)
}

/// What a list reads of a file at least: a window at each end.
fn ends(path: &Path) -> u64 {
    const WINDOW: u64 = 8 * 1024;
    let (mut file, mut window) = (File::open(path).unwrap(), Vec::new());
    (&mut file).take(WINDOW).read_to_end(&mut window).unwrap();
    let size = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(size.saturating_sub(WINDOW))).unwrap();
    file.read_to_end(&mut window).unwrap();
    memchr::memchr_iter(b'\n', &window).count() as u64
}

/// What a list reads of a file: so much at its beginning and so much at its end.
struct Spans {
    path: PathBuf,
    begin: u64,
    end: u64,
}

/// What a list of every session reads, known in advance: all of a session, or its first window and what is before its end.
fn spans_of_list(home: &Path) -> Vec<Spans> {
    const WINDOW: u64 = 8 * 1024;
    const NEAR_END: u64 = 64 * 1024;
    let home = Home { cwd: home.to_path_buf(), dir: home.to_path_buf(), vars: Default::default() };
    let places = Places { home, store: None, dialect: None, mask: None };
    let sources = places.sources().into_iter().filter_map(Result::ok).collect();
    let listing = places.describe(sources, jiff::Timestamp::MAX, Depth::Ends, &|| {});
    // Sub-agents are not listed: only their ends are read.
    let (mut listed, aside): (Vec<_>, Vec<_>) =
        listing.sessions.into_iter().partition(|(row, _)| row.parent_session.is_none());
    places.complete(&mut listed, jiff::Timestamp::MAX);
    let spans = |(row, source): (Box<SessionRow>, Source)| match row.record_count {
        Some(_) => Spans { path: source.path, begin: row.size_bytes, end: 0 },
        None => Spans { path: source.path, begin: WINDOW, end: NEAR_END.min(row.size_bytes) },
    };
    listed.into_iter().chain(aside).map(spans).collect()
}

impl Spans {
    fn bytes(&self) -> u64 {
        self.begin + self.end
    }

    fn read(&self, buffer: &mut Vec<u8>) -> u64 {
        let mut file = File::open(&self.path).unwrap();
        buffer.clear();
        (&mut file).take(self.begin).read_to_end(buffer).unwrap();
        if self.end > 0 {
            file.seek(SeekFrom::End(-(self.end as i64))).unwrap();
            file.read_to_end(buffer).unwrap();
        }
        buffer.len() as u64
    }
}

/// The fields of a line that a reader of links needs, none of them looked into.
#[derive(Deserialize)]
#[allow(dead_code, reason = "parsing is what is measured")]
struct Raw<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// What a reader of links needs of a record, borrowed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "parsing is what is measured")]
struct Typed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a str>,
    #[serde(borrow)]
    uuid: Option<&'a str>,
    #[serde(borrow)]
    parent_uuid: Option<&'a str>,
    #[serde(borrow)]
    timestamp: Option<&'a str>,
    #[serde(borrow)]
    request_id: Option<&'a str>,
    #[serde(borrow)]
    message: Option<TypedMessage<'a>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "parsing is what is measured")]
struct TypedMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

fn lines(path: &Path, mut take: impl FnMut(&[u8])) -> u64 {
    const CHUNK: usize = 1024 * 1024;
    let mut file = File::open(path).unwrap();
    let (mut buffer, mut count) = (Vec::with_capacity(2 * CHUNK), 0);
    loop {
        let start = buffer.len();
        if (&mut file).take(CHUNK as u64).read_to_end(&mut buffer).unwrap() == 0 {
            return count;
        }
        let Some(last) = memchr::memrchr(b'\n', &buffer[start..]) else { continue };
        let mut rest = &buffer[..=start + last];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            take(&rest[..end]);
            count += 1;
            rest = &rest[end + 1..];
        }
        buffer.drain(..=start + last);
    }
}

/// Prints the best time of a piece of work and the most memory that it held, and gives its result.
fn measure<R>(name: &str, mut work: impl FnMut() -> R) -> R {
    let (mut best, mut result) = (f64::MAX, None);
    forget_peak();
    for _ in 0..RUNS {
        let start = Instant::now();
        result = Some(std::hint::black_box(work()));
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}\t{best:.4}\t{}\t", peak_mib());
    result.unwrap()
}

/// The most memory that this process held, in MiB; 0 where the system does not tell.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}

/// Makes the peak that of what comes next. Where that cannot be done it stays that of all that came before.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap_or_default();
}
