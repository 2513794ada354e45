//! Other programs that do a part of the same work: `rg`, `jq` and `ccusage`.
//!
//! A peer has a time only if it ended without an error and its answer is there; its version and its answer stand beside the
//! time, so that a fast wrong answer is visible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Job, timed_into};
use crate::homes::NEEDLE;
use crate::{Outcome, shell};

/// The last version of ccusage that is one package; later ones need a program of their own for each system.
const CCUSAGE: &str = "ccusage@18.0.11";

/// One program, and how to ask it.
pub(super) struct Peer {
    program: &'static str,
    arguments: fn(&Path) -> Vec<String>,
    /// Its answer for people; none if what it printed is not an answer.
    answer: fn(&str) -> Option<String>,
}

pub(super) const RIPGREP: Peer = Peer {
    program: "rg",
    arguments: |projects| ["-c", NEEDLE].map(str::to_owned).into_iter().chain([shown(projects)]).collect(),
    answer: |printed| {
        let counts = printed.lines().map(|line| line.rsplit(':').next()?.parse::<u64>().ok());
        counts.sum::<Option<u64>>().filter(|count| *count > 0).map(|count| format!("{count} lines found"))
    },
};

/// `fromjson?` because jq stops at the first torn line otherwise.
pub(super) const JQ: Peer = Peer {
    program: "jq",
    arguments: |projects| {
        ["-R", "-c", "fromjson? | .type"]
            .map(str::to_owned)
            .into_iter()
            .chain(files_below(projects))
            .collect()
    },
    answer: |printed| Some(printed.lines().count()).filter(|count| *count > 0).map(|count| format!("{count} records")),
};

pub(super) const TOKENS: Peer = Peer {
    program: "ccusage",
    arguments: |_| ["daily", "--json", "--offline"].map(str::to_owned).to_vec(),
    answer: |printed| {
        let answer: Value = serde_json::from_str(printed).ok()?;
        let total = answer["totals"]["totalTokens"].as_u64().filter(|total| *total > 0)?;
        Some(format!("{total} tokens"))
    },
};

/// The cell of a peer: version, time, memory and answer, or why there is no time.
pub(super) fn cell(peer: &Peer, home: &Path) -> String {
    let program = program(peer.program);
    let Some(version) = version(&program) else {
        return format!("{}: not installed, or it does not start", peer.program);
    };
    let config = home.join(".claude");
    let words = [shown(&program)].into_iter().chain((peer.arguments)(&config.join("projects"))).collect();
    let job = Job { words, env: vec![("CLAUDE_CONFIG_DIR".to_owned(), shown(&config))] };
    let printed = shell::root().join("target/bench/answer.txt");
    if let Err(error) = fs::create_dir_all(printed.with_file_name("")) {
        return error.to_string();
    }
    let name = format!("{} {version}", peer.program);
    match timed_into(&job, &printed) {
        Err(why) => format!("{name}: {why}").replace('|', "\\|"),
        Ok(run) => match fs::read_to_string(&printed).ok().as_deref().and_then(peer.answer) {
            Some(answer) => format!("{name}: {:.3} s, {} MiB, {answer}", run.seconds, run.rss_mib),
            None => format!("{name}: no answer"),
        },
    }
}

/// Installs the peer that npm has; the others come with the system.
pub(super) fn install() -> Outcome {
    let mut npm = shell::command("npm install --no-save --no-package-lock --prefix");
    shell::run(npm.arg(folder()).arg(CCUSAGE))
}

fn folder() -> PathBuf {
    shell::root().join("target/bench/peers")
}

/// What was installed for this, else what PATH has.
fn program(name: &str) -> PathBuf {
    let installed = folder().join("node_modules/.bin").join(name);
    if installed.exists() { installed } else { PathBuf::from(name) }
}

pub(super) fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| first_number(&String::from_utf8_lossy(&output.stdout)))?
}

/// The first word that starts with a digit, also after a dash: `jq-1.7`.
fn first_number(text: &str) -> Option<String> {
    let words = text.split([' ', '\n', '-']);
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned).next()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn files_below(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path()),
            _ => vec![shown(&entry.path())],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        assert_eq!(first_number("ripgrep 14.1.0 (rev x)\n").as_deref(), Some("14.1.0"));
        assert_eq!(first_number("jq-1.7\n").as_deref(), Some("1.7"));
        assert_eq!(first_number("18.0.11\n").as_deref(), Some("18.0.11"));
        assert_eq!(first_number("native binary is not available"), None);
    }

    #[test]
    fn what_is_no_answer_has_no_time() {
        assert_eq!((RIPGREP.answer)("a.jsonl:2\nb.jsonl:5\n").as_deref(), Some("7 lines found"));
        assert_eq!((RIPGREP.answer)(""), None);
        assert_eq!((JQ.answer)("\"user\"\nnull\n").as_deref(), Some("2 records"));
        assert_eq!((JQ.answer)(""), None);
        assert_eq!((TOKENS.answer)(r#"{"totals": {"totalTokens": 12}}"#).as_deref(), Some("12 tokens"));
        assert_eq!((TOKENS.answer)(r#"{"totals": {"totalTokens": 0}}"#), None);
        assert_eq!((TOKENS.answer)("native binary is not available"), None);
    }

    /// A program that starts and then fails, as ccusage does without its native binary, and one that prints no answer.
    #[test]
    #[cfg(unix)]
    fn a_peer_that_fails_has_no_time() {
        const FAILS: Peer = Peer {
            program: "bash",
            arguments: |_| ["-c", "echo no binary >&2; exit 1"].map(str::to_owned).to_vec(),
            answer: |_| Some("42".to_owned()),
        };
        let failed = cell(&FAILS, Path::new("/nonexistent"));
        assert!(failed.contains("failed, exit status: 1: no binary") && !failed.contains("MiB"), "{failed}");
        const SILENT: Peer = Peer {
            program: "bash",
            arguments: |_| ["-c", "true"].map(str::to_owned).to_vec(),
            answer: |printed| (!printed.is_empty()).then(|| printed.to_owned()),
        };
        let silent = cell(&SILENT, Path::new("/nonexistent"));
        assert!(silent.ends_with(": no answer"), "{silent}");
        const MISSING: Peer =
            Peer { program: "no-such-program", arguments: |_| Vec::new(), answer: |_| Some(String::new()) };
        assert!(cell(&MISSING, Path::new("/nonexistent")).contains("not installed"));
    }
}
