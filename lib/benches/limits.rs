//! What a machine can do at best with a home of sessions, and what we do, in one run: `cargo xtask bench` prints it.
//!
//! Usage: `cargo bench --bench limits -- HOME…`. One tab-separated line a measurement: name, seconds, bytes.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints, and stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use scrollback::home::Home;
use scrollback::listing::{Depth, Places, row};
use scrollback::reading::Reading;
use scrollback::session::Session;
use scrollback::source::Source;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Of several runs the best one counts: the machine is shared, the limit is not.
const RUNS: usize = 3;

fn main() {
    let home: Option<PathBuf> = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    // `cargo test --benches` starts us without a home: then there is nothing to measure.
    let Some(home) = home else { return };
    let home = Home { cwd: home.clone(), dir: home, vars: Default::default() };
    let sources: Vec<Source> = Places { home: &home, store: None, dialect: None }
        .sources()
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    let bytes: u64 = sources.iter().map(|source| std::fs::metadata(&source.path).unwrap().len()).sum();
    let paths: Vec<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
    let reading = Reading::plain(jiff::Timestamp::MAX);
    println!("files\t{}\t{bytes}", paths.len());
    measure("limit: read and split lines", bytes, || paths.iter().map(|path| lines(path, |_| {})).sum());
    measure("limit: borrowed typed parse", bytes, || {
        let mut records = 0;
        for path in &paths {
            lines(path, |line| records += u64::from(serde_json::from_slice::<Typed<'_>>(line).is_ok()));
        }
        records
    });
    measure("ours: skeleton of every session", bytes, || {
        sources.iter().map(|source| Session::open(source, &reading).unwrap().records().len() as u64).sum()
    });
    measure("ours: list from windows", bytes, || {
        sources.iter().map(|source| row(source, &reading, Depth::Windows).unwrap().size_bytes).sum()
    });
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

fn measure(name: &str, bytes: u64, mut work: impl FnMut() -> u64) {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        std::hint::black_box(work());
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}\t{best:.4}\t{bytes}");
}
