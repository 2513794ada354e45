//! `cargo xtask bench redact`: what redaction finds, where it is wrong, how fast it is, and the same for other scanners if they are
//! installed.
//!
//! `lib/benches/redact` measures ours and writes the made-up secrets and the noise as files, one a kind, which the others scan.
//! Another scanner's recall is the lines with a finding, of as many as there are secrets: a key has several lines, and a finding in
//! one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::peers;
use crate::{Outcome, shell};

/// Another scanner, and how to ask it for the lines with findings.
struct Scanner {
    program: &'static str,
    arguments: fn(&Path, &Path) -> Vec<String>,
    /// Files and lines of what it printed, or wrote into its report.
    findings: fn(&str) -> BTreeSet<(String, u64)>,
}

const SCANNERS: [Scanner; 4] = [
    Scanner {
        program: "gitleaks",
        arguments: |folder, report| {
            words(&["dir", "--no-banner", "--exit-code", "0", "-f", "json", "-r"], &[report, folder])
        },
        findings: |text| json_findings(text, &["File"], &["StartLine"]),
    },
    Scanner {
        program: "kingfisher",
        arguments: |folder, report| {
            words(&["scan", "--no-validate", "--no-update-check", "--format", "json", "--output"], &[report, folder])
        },
        findings: |text| json_findings(text, &["path"], &["line"]),
    },
    Scanner {
        program: "detect-secrets",
        arguments: |folder, _| words(&["scan", "--all-files", "--no-verify"], &[folder]),
        findings: |text| json_findings(text, &["filename"], &["line_number"]),
    },
    Scanner {
        program: "ripsecrets",
        arguments: |folder, _| words(&[], &[folder]),
        findings: |text| text.lines().filter_map(line_finding).collect(),
    },
];

pub(super) fn run() -> Outcome {
    let folder = shell::root().join("target/bench/redact");
    fs::create_dir_all(&folder)?;
    let mut command = shell::command("cargo bench --profile dist --quiet --package scrollback-lib --bench redact --");
    let printed = super::printed(command.arg(&folder))?;
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split('\t').collect()).collect();
    let of = |name: &'static str| rows.iter().filter(move |row| row[0] == name);
    println!("| fakes | raw | JSONL |\n| --- | --- | --- |");
    let mut totals = [0.0; 3];
    for row in of("recall") {
        let [all, raw, lines] = numbers(row)?;
        totals.iter_mut().zip([all, raw, lines]).for_each(|(total, number)| *total += number);
        println!("| {} | {:.1} % | {:.1} % |", row[1], 100.0 * raw / all, 100.0 * lines / all);
    }
    println!("| all {} | {:.2} % | {:.2} % |", totals[0], 100.0 * totals[1] / totals[0], 100.0 * totals[2] / totals[0]);
    let alarms: Vec<[f64; 3]> = of("alarms").map(|row| numbers(row)).collect::<Result<_, _>>()?;
    let sum = |at: usize| alarms.iter().map(|row| row[at]).sum::<f64>();
    println!("\nFalse alarms in {} strings of {} kinds: {} raw, {} in JSONL.", sum(0), alarms.len(), sum(1), sum(2));
    println!("\n| speed | MB/s |\n| --- | --- |");
    of("speed").for_each(|row| println!("| {} | {} |", row[1], row[2]));
    println!("\n| scanner | recall raw | recall JSONL | alarms | speed |\n| --- | --- | --- | --- | --- |");
    SCANNERS.iter().for_each(|scanner| println!("{}", scanner.row(&folder)));
    Ok(())
}

impl Scanner {
    fn row(&self, folder: &Path) -> String {
        let program = PathBuf::from(self.program);
        let Some(version) = peers::version(&program) else {
            return format!("| {}: not installed | | | | |", self.program);
        };
        let found = |part: &str| self.found(&folder.join(part));
        // One line of JSON for each secret.
        let secrets = lines_below(&folder.join("jsonl"));
        let share = |part: &str| Some(format!("{:.1} %", 100.0 * found(part)?.min(secrets) as f64 / secrets as f64));
        let start = Instant::now();
        let session = folder.join("session.jsonl");
        let scanned = self.found(&session);
        let speed = fs::metadata(&session).map_or(0.0, |file| file.len() as f64 / 1e6) / start.elapsed().as_secs_f64();
        let shown = |cell: Option<String>| cell.unwrap_or_else(|| "no answer".to_owned());
        let alarms = found("noise").map(|count| count.to_string());
        let speed = scanned.map(|_| format!("{speed:.1} MB/s"));
        format!(
            "| {} {version} | {} | {} | {} | {} |",
            self.program,
            shown(share("raw")),
            shown(share("jsonl")),
            shown(alarms),
            shown(speed)
        )
    }

    /// How many lines have a finding.
    fn found(&self, path: &Path) -> Option<usize> {
        let report = shell::root().join("target/bench/redact-report.json");
        let mut command = Command::new(self.program);
        command.args((self.arguments)(path, &report)).current_dir(path.parent()?).stdin(Stdio::null());
        let output = command.output().ok()?;
        let text = fs::read_to_string(&report).unwrap_or_else(|_| String::from_utf8_lossy(&output.stdout).into_owned());
        if report.exists() {
            fs::remove_file(&report).ok()?;
        }
        Some((self.findings)(&text).len())
    }
}

fn numbers(row: &[&str]) -> Result<[f64; 3], Box<dyn std::error::Error>> {
    let [_, _, all, raw, lines] = row else { return Err("a row without its numbers".into()) };
    Ok([all.parse()?, raw.parse()?, lines.parse()?])
}

fn words(options: &[&str], paths: &[&Path]) -> Vec<String> {
    let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
    options.iter().map(|option| (*option).to_owned()).chain(paths).collect()
}

/// `file:line:…`
fn line_finding(line: &str) -> Option<(String, u64)> {
    let mut parts = line.split(':');
    Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
}

/// Every object of a report, or of its lines, that has a file and a line, at any depth; the file may be named further out.
fn json_findings(text: &str, files: &[&str], lines: &[&str]) -> BTreeSet<(String, u64)> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>().filter_map(Result::ok);
    let mut open: Vec<(Value, String)> = values.map(|value| (value, String::new())).collect();
    let mut found = BTreeSet::new();
    while let Some((value, outer)) = open.pop() {
        match value {
            Value::Object(map) => {
                let named: BTreeMap<&String, &Value> = map.iter().collect();
                let file =
                    named.iter().find(|(key, _)| files.contains(&key.as_str())).and_then(|(_, file)| file.as_str());
                let line =
                    named.iter().find(|(key, _)| lines.contains(&key.as_str())).and_then(|(_, line)| line.as_u64());
                let file = file.unwrap_or(&outer).to_owned();
                found.extend(line.map(|line| (file.clone(), line)));
                open.extend(map.into_iter().map(|(_, value)| (value, file.clone())));
            }
            Value::Array(values) => open.extend(values.into_iter().map(|value| (value, outer.clone()))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn lines_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| fs::read_to_string(entry.path()).map_or(0, |text| text.lines().count())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_from_every_report() {
        let nested =
            r#"{"findings": [{"finding": {"path": "a.txt", "line": 3}}, {"finding": {"path": "a.txt", "line": 3}}]}"#;
        assert_eq!(json_findings(nested, &["path"], &["line"]).len(), 1);
        assert_eq!(json_findings("[{\"File\":\"a\",\"StartLine\":1}]", &["File"], &["StartLine"]).len(), 1);
        assert_eq!(line_finding("a.txt:12:secret"), Some(("a.txt".to_owned(), 12)));
        assert_eq!(line_finding("nothing"), None);
    }
}
