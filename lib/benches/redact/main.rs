//! How many secrets redaction finds, how often it is wrong, and how fast it is: `cargo xtask bench redact` prints it.
//!
//! Usage: `cargo bench --bench redact -- FOLDER [SESSION]`. The speed is measured with a session, or with what we write ourselves:
//! this repository's files, which say more of secrets than any session does. Writes the made-up secrets and the noise to the folder, for other programs, and
//! prints one tab-separated line a measurement: `recall`, `alarms` or `speed`, the kind, and numbers.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints, and stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

mod fakes;
mod noise;
mod random;

use std::fs;
use std::path::Path;
use std::time::Instant;

use scrollback::redact::{Redactor, Settings};
use serde_json::{Value, json};

/// Made-up secrets of each kind.
const FAKES: usize = 200;

/// Strings without a secret of each kind.
const NOISE: usize = 2_000;

/// What the speed is measured with.
const SPEED_BYTES: usize = 100 * 1000 * 1000;

/// So much of a secret may not be in the output.
const PART_BYTES: usize = 8;

fn main() {
    let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    // `cargo test --benches` starts us without a folder: then there is nothing to measure.
    let Some(folder) = named.next() else { return };
    let redactor = Redactor::new(Settings::with_key([7; 32])).unwrap();
    recall(&redactor, Path::new(&folder));
    alarms(&redactor, Path::new(&folder));
    let session = named.next().map_or_else(session, |path| fs::read_to_string(path).unwrap());
    fs::write(Path::new(&folder).join("session.jsonl"), &session).unwrap();
    speed(&redactor, &session);
}

/// A text as a record of a session.
fn record(text: &str) -> String {
    json!({"type": "user", "uuid": "0199a3f0-8d43-7b51-9a5e-3c1f2b7d9e10", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}).to_string()
}

fn recall(redactor: &Redactor, folder: &Path) {
    fs::create_dir_all(folder.join("raw")).unwrap();
    fs::create_dir_all(folder.join("jsonl")).unwrap();
    for (kind, make) in fakes::KINDS {
        let (mut raw, mut lines, mut files) = (0, 0, (String::new(), String::new()));
        for at in 0..FAKES {
            let mut random = random::Random::new(kind, at as u64);
            let fake = make(&mut random);
            let (text, secret) = (fake.text, fake.secret);
            assert!(text.contains(&secret), "{kind}: {text}");
            let is_gone = |out: &str| {
                !(0..=secret.len().saturating_sub(PART_BYTES)).any(|at| {
                    secret.get(at..(at + PART_BYTES).min(secret.len())).is_some_and(|part| out.contains(part))
                })
            };
            let found = is_gone(&redactor.text(&text).text);
            raw += usize::from(found);
            let line = record(&text);
            let out: Value = serde_json::from_slice(&redactor.line(line.as_bytes()).bytes).unwrap();
            lines += usize::from(is_gone(out["message"]["content"][0]["text"].as_str().unwrap()));
            if !found && std::env::var_os("SHOW_MISSED").is_some() {
                println!("missed\t{kind}\t{}", text.replace('\n', "⏎"));
            }
            files.0 += &format!("{text}\n");
            files.1 += &format!("{line}\n");
        }
        fs::write(folder.join("raw").join(format!("{kind}.txt")), files.0).unwrap();
        fs::write(folder.join("jsonl").join(format!("{kind}.jsonl")), files.1).unwrap();
        println!("recall\t{kind}\t{FAKES}\t{raw}\t{lines}");
    }
}

fn alarms(redactor: &Redactor, folder: &Path) {
    fs::create_dir_all(folder.join("noise")).unwrap();
    for (kind, make) in noise::KINDS {
        let (mut raw, mut lines, mut file) = (0, 0, String::new());
        for at in 0..NOISE {
            let text = make(&mut random::Random::new(kind, at as u64));
            let redacted = redactor.text(&text);
            raw += usize::from(!redacted.findings.is_empty());
            if !redacted.findings.is_empty() && std::env::var_os("SHOW_MISSED").is_some() {
                println!(
                    "alarm\t{kind}\t{}\t{}",
                    redacted.findings[0].rule,
                    text.replace('\n', "⏎").chars().take(300).collect::<String>()
                );
            }
            lines += usize::from(!redactor.line(record(&text).as_bytes()).findings.is_empty());
            file += &format!("{text}\n");
        }
        fs::write(folder.join("noise").join(format!("{kind}.txt")), file).unwrap();
        println!("alarms\t{kind}\t{NOISE}\t{raw}\t{lines}");
    }
}

/// Records of a session: what this repository's files say, as tools return them, with some noise and now and then a fake.
fn session() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["lib/src", "cli/src", "xtask/src", "docs", "lib/tests"] {
        texts_below(&root.join(folder), &mut files);
    }
    let pieces: Vec<&str> = files
        .iter()
        .flat_map(|text| text.as_bytes().chunks(PIECE_BYTES))
        .filter_map(|piece| std::str::from_utf8(piece).ok())
        .collect();
    let mut out = String::new();
    let mut at = 0;
    while out.len() < SPEED_BYTES {
        let mut random = random::Random::new("session", at as u64);
        let mut text = pieces[at % pieces.len()].to_owned();
        if at % 4 == 0 {
            text += &noise::KINDS[at / 4 % noise::KINDS.len()].1(&mut random);
        }
        if at % 50 == 0 {
            text += &fakes::KINDS[at / 50 % fakes::KINDS.len()].1(&mut random).text;
        }
        out += &record(&text);
        out.push('\n');
        at += 1;
    }
    out
}

/// How much of a file one record has.
const PIECE_BYTES: usize = 4000;

fn texts_below(folder: &Path, texts: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            texts_below(&path, texts);
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "md") {
            texts.extend(fs::read_to_string(&path));
        }
    }
}

/// The best of three runs, each measured beside the limit: decode every string and look for every keyword.
fn speed(redactor: &Redactor, session: &str) {
    let decode = |count: &dyn Fn(&str) -> usize| {
        let start = Instant::now();
        let total: usize = session.lines().map(|line| strings(&serde_json::from_str(line).unwrap(), count)).sum();
        (start.elapsed().as_secs_f64(), total)
    };
    let (mut decoded, mut limit, mut ours) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..3 {
        decoded = decoded.min(scan_strings(session, &|text| text.len()).0);
        limit = limit.min(scan_strings(session, &|text| redactor.count_keywords(text)).0);
        let start = Instant::now();
        let masked: usize = session.lines().map(|line| redactor.line(line.as_bytes()).findings.len()).sum();
        ours = ours.min(start.elapsed().as_secs_f64());
        assert!(masked > 0);
    }
    let value = decode(&|text| redactor.count_keywords(text)).0;
    let speed = |seconds: f64| session.len() as f64 / 1e6 / seconds;
    println!("speed\tdecode every string\t{:.0}", speed(decoded));
    println!("speed\tdecode and keyword pass\t{:.0}", speed(limit));
    println!("speed\tparse as Value and keyword pass\t{:.0}", speed(value));
    println!("speed\tredact lines\t{:.0}", speed(ours));
}

/// Decodes every string of every line in the cheapest way that we know, and calls `count` with each.
fn scan_strings(session: &str, count: &dyn Fn(&str) -> usize) -> (f64, usize) {
    let start = Instant::now();
    let mut total = 0;
    for line in session.lines() {
        let mut rest = line;
        while let Some(at) = rest.find('"') {
            let inside = &rest[at + 1..];
            let mut end = 0;
            while let Some(found) = memchr::memchr2(b'"', b'\\', &inside.as_bytes()[end..]) {
                end += found;
                if inside.as_bytes()[end] == b'"' {
                    break;
                }
                end += 2;
            }
            let raw = &inside[..end];
            total += if raw.contains('\\') {
                serde_json::from_str::<String>(&rest[at..at + end + 2]).map_or(0, |text| count(&text))
            } else {
                count(raw)
            };
            rest = &inside[end + 1..];
        }
    }
    (start.elapsed().as_secs_f64(), total)
}

fn strings(value: &Value, count: &dyn Fn(&str) -> usize) -> usize {
    match value {
        Value::String(text) => count(text),
        Value::Array(values) => values.iter().map(|value| strings(value, count)).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| count(key) + strings(value, count)).sum(),
        _ => 0,
    }
}
