//! `cargo bench -p scrollback-index --bench archive -- HOME`: the archive of a home beside what its database alone takes.
//!
//! Prints lines of name, seconds and a remark, with tabs between them; `cargo xtask bench` makes rows of them.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may stop where it stands, and prints what it measured"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::model::Home;
use scrollback::redact::Redactor;
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::find::Places;
use scrollback::view::listing;
use scrollback::view::texts::{SearchTexts, TextRole};
use scrollback_index::query::Query;
use scrollback_index::{Archive, Depth, SearchOptions, Sort, SqliteIndex};

/// What people type: frequent and rare words, several, phrases, prefixes, filters.
const QUERIES: &[&str] = &[
    "error",
    "test",
    "the",
    "file",
    "fn",
    "return value",
    "\"error handling\"",
    "conf*",
    "import OR export",
    "role:user error",
    "tool:bash test",
    "is:error",
    "agent:codex error",
    "since:30d test",
    "東京",
    "日本",
    "zebra",
    "error -test",
    "model:opus error",
    "in:title error",
];

/// As much of a tool's output as is indexed.
const OUTPUT_BYTES: usize = 4 * 1024;

fn main() {
    let Some(home) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("usage: archive HOME");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let places = places(Path::new(&home));
    let sources: Vec<Source> = places.sources().into_iter().flatten().collect();
    report("limit: FTS5 of the same texts, one thread", words_alone(&sources, &folder.path().join("limit.db")), "");

    let path = folder.path().join("index.db");
    let mut archive = open(&places, &path);
    let (whole, _) = timed(|| index(&mut archive, &sources));
    archive.optimize();
    let size = fs::metadata(&path).unwrap().len();
    let corpus: u64 = sources.iter().filter_map(|source| fs::metadata(&source.path).ok()).map(|file| file.len()).sum();
    report("ours: text index", whole, &format!("{:.1} % of the sessions' bytes", size as f64 * 100.0 / corpus as f64));

    let (unchanged, pending) = timed(|| archive.pending(&sources, Depth::Text).len());
    report("ours: nothing changed", unchanged, &format!("{pending} pending"));

    let scope = archive.describe(sources.clone(), listing::Depth::Ends, &|| {}).sessions;
    let mut times = Vec::new();
    for asked in QUERIES.iter().cycle().take(QUERIES.len() * 3) {
        let query = Query::parse(asked, Timestamp::now(), &TimeZone::UTC).unwrap();
        let options = SearchOptions { sort: Sort::Newest, sessions: 20, hits: 3, context: None };
        let (time, _) = timed(|| archive.search(&query, &scope, options));
        report(&format!("ours: search {asked}"), time, "");
        times.push(time);
    }
    times.sort();
    let remark = format!("{} questions; the slowest {:.3} s", times.len(), times[times.len() - 1].as_secs_f64());
    report("ours: search, median", times[times.len() / 2], &remark);
    report("ours: search, 95 of 100", times[times.len() * 95 / 100], "");

    after_append(&sources, folder.path());
}

fn report(name: &str, time: Duration, remark: &str) {
    println!("{name}\t{:.6}\t{remark}", time.as_secs_f64());
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let done = work();
    (begun.elapsed(), done)
}

fn places(home: &Path) -> Places {
    let home = Home { dir: home.to_path_buf(), cwd: home.to_path_buf(), vars: Default::default() };
    Places { home, store: None, dialect: None, mask: Some(Arc::new(Redactor::built_in())) }
}

fn open(places: &Places, path: &Path) -> Archive {
    let mask = Arc::new(Redactor::built_in());
    let index = SqliteIndex::open(path, mask.fingerprint()).unwrap();
    Archive::with_index(places.clone(), Timestamp::now(), Box::new(index), mask)
}

fn index(archive: &mut Archive, sources: &[Source]) -> usize {
    let pending = archive.pending(sources, Depth::Text);
    archive.read_texts(pending, Depth::Text, &|_| true).read
}

/// How long FTS5 takes for texts that are in memory already.
fn words_alone(sources: &[Source], path: &Path) -> Duration {
    let database = rusqlite::Connection::open(path).unwrap();
    let make = "pragma journal_mode = wal; pragma synchronous = normal;
        create virtual table words using fts5(text, content='', contentless_delete=1);
        insert into words(words, rank) values ('hashsize', 67108864); insert into words(words, rank) values ('automerge', 0);";
    database.execute_batch(make).unwrap();
    let mut spent = Duration::ZERO;
    let mut number = 0_i64;
    database.execute_batch("begin").unwrap();
    for source in sources {
        let Ok(session) = Session::open(source, &ReadOptions::plain(Timestamp::now())) else { continue };
        let mut texts = SearchTexts::new(&session);
        let all: Vec<_> = session.records().flat_map(|record| texts.of(record).unwrap_or_default()).collect();
        let begun = Instant::now();
        let mut insert = database.prepare_cached("insert into words(rowid, text) values (?1, ?2)").unwrap();
        for text in all {
            let end = if text.role == TextRole::Tool { OUTPUT_BYTES } else { usize::MAX };
            number += 1;
            let end = text.text.floor_char_boundary(end.min(text.text.len()));
            insert.execute(rusqlite::params![number, &text.text[..end]]).unwrap();
        }
        spent += begun.elapsed();
    }
    let begun = Instant::now();
    database.execute_batch("commit; insert into words(words) values ('optimize')").unwrap();
    spent + begun.elapsed()
}

/// How long it takes until a line that was appended to the largest session is in the index.
fn after_append(sources: &[Source], folder: &Path) {
    let size = |source: &&Source| fs::metadata(&source.path).map_or(0, |file| file.len());
    let claude = sources.iter().filter(|source| source.dialect.name() == "claude-code");
    let Some(largest) = claude.max_by_key(size) else { return };
    let projects = folder.join("home/.claude/projects/p");
    fs::create_dir_all(&projects).unwrap();
    let log: PathBuf = projects.join(largest.path.file_name().unwrap());
    fs::copy(&largest.path, &log).unwrap();
    let places = places(&folder.join("home"));
    let grown: Vec<Source> = places.sources().into_iter().flatten().collect();
    let mut archive = open(&places, &folder.join("append.db"));
    index(&mut archive, &grown);
    let mut times = Vec::new();
    for at in 0..10 {
        let line = serde_json::json!({
            "type": "user", "uuid": format!("appended-{at}"), "parentUuid": null, "timestamp": "2026-11-14T10:00:00Z",
            "message": {"role": "user", "content": format!("zebra {at} {}", "word ".repeat(180))},
        });
        let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        let (time, read) = timed(|| index(&mut archive, &grown));
        assert_eq!(read, 1);
        times.push(time);
    }
    times.sort();
    let megabytes = size(&largest) / 1_000_000;
    report("ours: after one append", times[times.len() / 2], &format!("to a session of {megabytes} MB"));
}
