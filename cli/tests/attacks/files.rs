//! Hostile files: random mutations of the corpus through every command that reads. None may crash, hang, write or let a
//! control sequence through.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::cases;
use crate::random::{Random, seed};
use crate::support::TestEnv;

/// Far more than any of the small files needs, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Every command that reads a file.
const COMMANDS: &[&[&str]] = &[
    &["show", "FILE", "--all"],
    &["show", "FILE", "--json"],
    &["show", "FILE", "--last", "3"],
    &["tree", "FILE"],
    &["tree", "FILE", "--json"],
    &["extract-tools", "FILE"],
    &["extract-tools", "FILE", "--json"],
    &["doctor", "FILE"],
    &["doctor", "FILE", "--json"],
    &["history", "FILE", "--for", "anthropic"],
    &["history", "FILE", "--for", "openai"],
    &["history", "FILE", "--for", "openai-responses"],
    &["history", "FILE", "--for", "gemini"],
    &["history", "FILE", "--for", "ai-sdk"],
    &["history", "FILE", "--for", "text"],
    &["convert", "FILE", "--to", "native", "-o", "-"],
    &["convert", "FILE", "--to", "claude-code", "-o", "-"],
    &["convert", "FILE", "--to", "codex", "-o", "-"],
    &["convert", "FILE", "--to", "qwen-code", "-o", "-"],
    &["convert", "FILE", "--to", "ai-sdk", "-o", "-"],
    &["list", "--store", "FOLDER", "--full"],
];

/// What is put into the middle of files.
const INSERTED: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"\"",
    b"\\ud800",
    b"\\u0000",
    b"\\u001b[2J",
    b"1e999",
    b"-0",
    b"123456789012345678901234567890",
    b"null",
    b"{}\n",
    b"[]\n",
    b"\"\\u001b]0;x\\u0007\"",
    b"\x1b[2J",
];

#[test]
fn no_mutated_file_crashes_a_command() {
    let mut random = Random(seed());
    let folders = case_folders();
    for case in 0..cases(12, 4_000) {
        let env = TestEnv::new();
        let folder = &folders[random.below(folders.len() as u64) as usize];
        let about = format!("seed {}, case {case}, {}", seed(), folder.display());
        let files = copy(folder, &env.work());
        let hit = &files[random.below(files.len() as u64) as usize];
        let mut bytes = fs::read(hit).unwrap();
        for _ in 0..=random.below(4) {
            mutate(&mut bytes, &mut random);
        }
        fs::write(hit, &bytes).unwrap();
        for _ in 0..cases(4, 6) {
            let command = COMMANDS[random.below(COMMANDS.len() as u64) as usize];
            check(&env, command, hit, &format!("{about}, {}", hit.file_name().unwrap().to_string_lossy()));
        }
        assert_eq!(fs::read(hit).unwrap(), bytes, "{about}: the file was changed");
    }
}

fn check(env: &TestEnv, command: &[&str], file: &Path, about: &str) {
    let args: Vec<String> = command
        .iter()
        .map(|arg| arg.replace("FILE", &file.to_string_lossy()).replace("FOLDER", &env.work().to_string_lossy()))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let start = Instant::now();
    let output = env.command(&args).stdin(Stdio::null()).output().unwrap();
    let (code, err) = (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned());
    let about = format!("{about}: {command:?}");
    assert!((0..=2).contains(&code) && !err.contains("panicked"), "{about}: {code} {err}");
    assert!(start.elapsed() < LIMIT, "{about}: {:?}", start.elapsed());
    let active = |text: &str| text.chars().any(|c| c.is_control() && !"\n\t".contains(c));
    assert!(!active(&err), "{about}: a control character in {err:?}");
    // A converted file is data, and in its own dialect a copy of the bytes; a text for a model is data where no terminal is.
    if command[0] != "convert" && !command.contains(&"text") {
        let out = String::from_utf8(output.stdout).unwrap_or_else(|error| panic!("{about}: {error}"));
        assert!(!active(&out), "{about}: a control character in the output");
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let length = bytes.len() as u64;
    let mut place = |limit: u64| random.below(limit + 1) as usize;
    let (at, other) = (place(length), place(length));
    let (start, end) = (at.min(other), at.max(other));
    // A piece of about a record.
    let end = end.min(start + 2_000);
    match random.below(8) {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => drop(bytes.drain(start..end)),
        2 => bytes.truncate(at),
        3 => {
            let piece = bytes[start..end].to_vec();
            bytes.splice(other..other, piece);
        }
        4 => {
            let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let count = lines.len() as u64;
            if count > 1 {
                lines.swap(random.below(count) as usize, random.below(count) as usize);
            }
            *bytes = lines.concat();
        }
        5 => {
            // One string of the file in place of another: ids and kinds that mean something elsewhere.
            let text = String::from_utf8_lossy(bytes).into_owned();
            let strings: Vec<&str> = text.split('"').collect();
            let mut pick = || strings[random.below(strings.len() as u64) as usize].to_owned();
            let (from, to) = (pick(), pick());
            if !from.is_empty() {
                *bytes = text.replacen(&from, &to, 1 + random.below(3) as usize).into_bytes();
            }
        }
        _ => {
            let inserted = INSERTED[random.below(INSERTED.len() as u64) as usize].repeat(1 + random.below(3) as usize);
            bytes.splice(at..at, inserted);
        }
    }
}

/// The folder of every case of the corpus that has a file with lines or JSON.
fn case_folders() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let below =
        |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut cases: Vec<PathBuf> = below(corpus).flat_map(below).filter(|case| !logs(case).is_empty()).collect();
    cases.sort();
    assert!(cases.len() > 200, "the corpus is gone");
    cases
}

fn logs(case: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl" || end == "json")).collect();
    logs.sort();
    logs
}

fn copy(case: &Path, to: &Path) -> Vec<PathBuf> {
    logs(case)
        .into_iter()
        .map(|log| {
            let copy = to.join(log.file_name().unwrap());
            fs::copy(&log, &copy).unwrap();
            copy
        })
        .collect()
}
