//! A home is what its TRUTH.json says, counted again from the files, and the same seed makes the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use scrollback::view::counting::{CountedSession, Elected, Level, SessionCounts, Stats, StatsQuery, stats};
use scrollback::view::find::Places;
use scrollback::{Home, ReadOptions, Session, Source, Usage};

use super::*;

fn home(seed: u64) -> (tempdir::Folder, Value) {
    let folder = tempdir::Folder::new(seed);
    let size = Size { bytes: 8 * MB, sessions: 120, seed, large_mb: &[1] };
    write(&folder.0, &size).unwrap();
    let truth = serde_json::from_slice(&fs::read(folder.0.join("TRUTH.json")).unwrap()).unwrap();
    (folder, truth)
}

/// The files below a folder with their bytes, in order.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(open) = folders.pop() {
        for path in fs::read_dir(open).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn the_same_seed_makes_the_same_bytes() {
    let [(a, _), (b, _), (c, _)] = [5, 5, 6].map(home);
    let [a, b, c] = [a, b, c].map(|folder| files(&folder.0));
    assert!(a == b && a != c);
}

#[test]
fn the_truth_is_what_the_files_hold() {
    let (folder, truth) = home(7);
    let files = files(&folder.0);
    let (mut requests, mut calls, mut prompts) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let (mut torn, mut answers, mut children) = (0, 0, 0);
    for (path, content) in files.iter().filter(|(path, _)| path.starts_with(".claude")) {
        children += u64::from(path.file_name().unwrap().to_string_lossy().starts_with("agent-"));
        for line in std::str::from_utf8(content).unwrap().lines() {
            // A torn line can have a whole one behind it.
            let parsed = [line, line.rfind("{\"parentUuid\"").map_or("", |at| &line[at..])]
                .into_iter()
                .find_map(|text| serde_json::from_str::<Value>(text).ok());
            torn += u64::from(serde_json::from_str::<Value>(line).is_err());
            let Some(record) = parsed else { continue };
            let message = &record["message"];
            if let Some(usage) = message["usage"].as_object() {
                answers += 1;
                let count = |name: &str| usage[name].as_u64().unwrap();
                let tokens = [count("input_tokens"), count("output_tokens")];
                let known =
                    requests.entry((message["id"].to_string(), record["requestId"].to_string())).or_insert(tokens);
                *known = (*known).max(tokens);
            }
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_use" {
                    calls.insert(block["id"].to_string());
                }
            }
            let is_prompt = message["role"] == "user" && message["content"][0]["type"] != "tool_result";
            if is_prompt {
                prompts.insert(record["uuid"].to_string());
            }
        }
    }
    let of_sessions = || files.iter().filter(|(path, _)| !path.ends_with("TRUTH.json")).map(|(_, file)| file);
    let bytes: usize = of_sessions().map(Vec::len).sum();
    let claude = &truth["dialects"]["claude-code"];
    let sum = |at: usize| requests.values().map(|tokens: &[u64; 2]| tokens[at]).sum::<u64>();
    assert_eq!((claude["tokens"]["input"].as_u64(), claude["tokens"]["output"].as_u64()), (Some(sum(0)), Some(sum(1))));
    assert_eq!(claude["requests"], requests.len());
    assert_eq!(claude["toolCalls"], calls.len());
    assert_eq!(claude["messages"], requests.len() + prompts.len());
    assert_eq!(claude["childSessions"], children);
    let of_claude = files.keys().filter(|path| path.starts_with(".claude")).count() as u64;
    assert_eq!(claude["sessions"], of_claude - children);
    assert_eq!(truth["bytes"], bytes);
    // What makes it hard is there.
    assert!(torn > 3 && children > 3 && answers > requests.len() + 100, "{torn} {children} {answers}");
    let needles: usize = of_sessions().map(|file| String::from_utf8_lossy(file).matches(NEEDLE).count()).sum();
    assert_eq!(truth["needle"]["prompts"], needles);
}

/// Every session of a home, counted.
fn counted(home: &Path) -> Vec<CountedSession> {
    let now = "2026-12-31T00:00:00Z".parse().unwrap();
    let reading = ReadOptions::plain(now);
    let home = Home { dir: home.to_path_buf(), cwd: home.to_path_buf(), vars: BTreeMap::new() };
    let places = Places { home, store: None, dialect: None, mask: None };
    let sources: Vec<Source> = places.sources().into_iter().map(|source| source.unwrap()).collect();
    let counted = |source: &Source| {
        let session = Session::open(source, &reading).unwrap();
        let (row, counts) = (session.row().unwrap(), SessionCounts::of(&session).unwrap());
        CountedSession { row: Box::new(row), counts, is_in_scope: true }
    };
    sources.iter().map(counted).collect()
}

fn by(sessions: &[CountedSession], by: &[Level]) -> Stats {
    let price = |_: &str, _: Usage| None;
    let by = by.to_vec();
    let query = StatsQuery { by, zone: jiff::tz::TimeZone::UTC, since: None, until: None, price: &price };
    stats(sessions, &Elected::among(sessions), &query)
}

fn tokens(usage: Usage) -> Value {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    let [input, output, cache_read, cache_write, reasoning] =
        [input, output, cache_read, cache_write, reasoning].map(|count| count.unwrap_or(0));
    json!({"input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write, "reasoning": reasoning})
}

#[test]
fn the_statistics_of_a_home_are_its_truth() {
    for seed in [7, 9] {
        let (folder, truth) = home(seed);
        let sessions = counted(&folder.0);
        let stats = by(&sessions, &[Level::Agent]);
        assert_eq!(stats.rows.len(), 2);
        for row in stats.rows {
            let agent = row.key.unwrap().concat_names();
            let truth = &truth["dialects"][&agent];
            assert_eq!(tokens(row.usage), truth["tokens"], "{agent}");
            let counts = json!([row.sessions, row.requests, row.messages, row.tool_calls]);
            let true_counts = ["sessions", "requests", "messages", "toolCalls"].map(|name| truth[name].clone());
            assert_eq!(counts, json!(true_counts), "{agent}: sessions, requests, messages, calls");
        }
        for (level, name) in [(Level::Day, "byDay"), (Level::Model, "byModel")] {
            let mut counted: BTreeMap<String, Value> = BTreeMap::new();
            for row in by(&sessions, &[Level::Agent, level]).rows.into_iter().filter(|row| row.requests > 0) {
                counted.insert(row.key.unwrap().concat_names(), tokens(row.usage));
            }
            let mut true_tokens = BTreeMap::new();
            for agent in ["claude-code", "codex"] {
                for (key, tokens) in truth["dialects"][agent][name].as_object().unwrap() {
                    true_tokens.insert(format!("{agent} {key}"), tokens.clone());
                }
            }
            assert_eq!(counted, true_tokens, "{name}");
        }
    }
}

/// The names of a key as one text.
trait Names {
    fn concat_names(self) -> String;
}

impl Names for Vec<Option<String>> {
    fn concat_names(self) -> String {
        self.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_home_has_about_the_size_and_the_sessions_that_were_asked_for() {
    let (_folder, truth) = home(8);
    let sessions: u64 = ["claude-code", "codex"]
        .iter()
        .map(|name| truth["dialects"][name]["sessions"].as_u64().unwrap())
        .sum();
    assert_eq!(sessions, 120);
    let bytes = truth["bytes"].as_u64().unwrap() as usize;
    assert!((6 * MB..13 * MB).contains(&bytes), "{bytes}");
}

#[test]
fn a_timestamp_is_a_date() {
    assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(timestamp(951_782_400_123), "2000-02-29T00:00:00.123Z");
    assert_eq!(timestamp(1_777_593_600_000), "2026-05-01T00:00:00.000Z");
}

/// A folder that is removed at the end of a test.
mod tempdir {
    pub(super) struct Folder(pub(super) std::path::PathBuf);

    impl Folder {
        pub(super) fn new(number: u64) -> Folder {
            static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Folder(std::env::temp_dir().join(format!("scrollback-homes-{}-{number}-{next}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap_or_default();
        }
    }
}
