//! `cargo xtask bench`: measures limits, scrollback and installed peers in one run, and prints a Markdown table.
//!
//! The homes and sessions that it reads are written by `homes` and stay in the target folder.

mod archive;
mod pages;
mod peers;
mod redact;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::{Outcome, homes, shell};

/// The large session of the last rows: 1 GiB in the native format.
const LARGE_BYTES: usize = 1024 * 1024 * 1024;

/// The session of the history rows.
const HISTORY_BYTES: usize = 100 * 1000 * 1000;

pub(crate) fn run(options: &[&str]) -> Outcome {
    if options == ["redact"] {
        return redact::run();
    }
    if options.first() == Some(&"pages") {
        let home = if options[1..] == ["--full"] { home("M", &homes::FULL)? } else { home("S", &homes::SMALL)? };
        shell::run(&mut shell::command("cargo build --profile dist --quiet --package scrollback"))?;
        return pages::run(&home);
    }
    if let Some(unknown) = options.iter().find(|option| !["--full", "--install"].contains(option)) {
        return Err(format!("unknown option `{unknown}`; use --full and --install").into());
    }
    if options.contains(&"--install") {
        peers::install()?;
    }
    let home = if options.contains(&"--full") { home("M", &homes::FULL)? } else { home("S", &homes::SMALL)? };
    shell::run(&mut shell::command("cargo build --profile dist --quiet --package scrollback"))?;
    let measured = Measured::of(&home)?;
    if measured.seconds("files") < 1.0 {
        return Err(format!("{}: no session found", home.display()).into());
    }
    println!("| job | limit | peer | ours | ratio | RSS |\n| --- | --- | --- | --- | --- | --- |");
    in_process(&home, &measured);
    list(&home, &measured)?;
    let typed = measured.seconds("limit: borrowed typed parse");
    let printed = shell::root().join("target/bench/answer.txt");
    let whole = timed_into(&ours(&home, &["list", "--all", "--full", "--json", "--no-redact"]), &printed)?;
    println!(
        "| the same with --full (counts, states, usage; all sessions: {}) | {typed:.3} s (borrowed typed) | | {:.3} s | {:.2} × the limit's speed | {} MiB |",
        are_all(&home, &printed)?,
        whole.seconds,
        typed / whole.seconds,
        whole.rss_mib
    );
    archive::run(&home)?;
    history()?;
    stream()?;
    recording()?;
    undo()?;
    pages::run(&home)?;
    large()
}

/// Every session, the newest of them read whole, against a program that only finds the files and reads the same bytes.
fn list(home: &Path, measured: &Measured) -> Outcome {
    let (read, megabytes) =
        (measured.seconds("limit: what a list reads"), measured.seconds("bytes that a list reads") / 1e6);
    // With its secrets, a list neither reads nor writes the index.
    let list = timed(&ours(home, &["list", "--all", "--no-redact"]))?;
    println!(
        "| list {} sessions without an index, process included (goal: 2 ×) | {read:.3} s (read the same {megabytes:.0} MB) | | {:.3} s | {:.2} × the limit's time | {} MiB |",
        measured.seconds("files"),
        list.seconds,
        list.seconds / read,
        list.rss_mib
    );
    timed(&ours(home, &["index"]))?;
    let known = timed(&ours(home, &["list", "--all"]))?;
    println!(
        "| the same from the index (goal: 0.050 s for 3,000) | | | {:.3} s | | {} MiB |",
        known.seconds, known.rss_mib
    );
    stats(home, measured)?;
    let ends = measured.seconds("limit: both ends of every file");
    let newest = timed(&ours(home, &["show", "@", "--all", "--last", "1"]))?;
    println!(
        "| find the newest session and show its last message, process included | {ends:.3} s (both ends of each) | | {:.3} s | {:.2} × the limit's time | {} MiB |",
        newest.seconds,
        newest.seconds / ends,
        newest.rss_mib
    );
    Ok(())
}

/// Everything that `stats` counts, by reading and from the index, against the totals of tokens alone.
fn stats(home: &Path, measured: &Measured) -> Outcome {
    let (limit, peer) = (measured.seconds("limit: token totals"), peers::cell(&peers::TOKENS, home));
    // With its secrets, it neither reads nor writes the index.
    let read = timed(&ours(home, &["stats", "--all", "--no-redact"]))?;
    println!(
        "| stats from nothing: tokens, cost, turns, calls, files and time, process included | {limit:.3} s (token totals only) | {peer} | {:.3} s | {:.2} × the limit's time | {} MiB |",
        read.seconds,
        read.seconds / limit,
        read.rss_mib
    );
    timed(&ours(home, &["stats", "--all"]))?;
    let printed = shell::root().join("target/bench/stats.json");
    let known = timed_into(&ours(home, &["stats", "--all", "--by", "agent", "--json"]), &printed)?;
    println!(
        "| the same from the index, exact: {} (goal: 0.050 s) | | | {:.3} s | | {} MiB |",
        is_exact(home, &printed)?,
        known.seconds,
        known.rss_mib
    );
    Ok(())
}

/// Whether `stats --by agent --json` printed what is true about the home.
fn is_exact(home: &Path, printed: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let truth: Value = serde_json::from_slice(&fs::read(home.join("TRUTH.json"))?)?;
    let stats: Value = serde_json::from_slice(&fs::read(printed)?)?;
    let is_true = |row: &Value| {
        let truth = &truth["dialects"][row["key"][0].as_str().unwrap_or_default()];
        let same = |name: &str| row["usage"][name].as_u64().unwrap_or(0) == truth["tokens"][name].as_u64().unwrap_or(0);
        ["input", "output", "cacheRead", "cacheWrite", "reasoning"].iter().all(|name| same(name))
            && ["sessions", "requests", "messages", "toolCalls"].iter().all(|name| row[*name] == truth[*name])
    };
    Ok(stats["rows"].as_array().is_some_and(|rows| rows.len() == 2 && rows.iter().all(is_true)))
}

/// Whether `list --json` printed as many sessions as the home has, of each agent.
fn are_all(home: &Path, printed: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let truth: Value = serde_json::from_slice(&fs::read(home.join("TRUTH.json"))?)?;
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(printed)?)?;
    let dialects = truth["dialects"].as_object().ok_or("TRUTH.json has no dialects")?;
    let listed = |dialect: &str| rows.iter().filter(|row| row["dialect"] == dialect).count();
    Ok(dialects.iter().all(|(dialect, counts)| counts["sessions"] == listed(dialect)))
}

/// What `lib/benches/recording` measures: the recorder against the system calls.
fn recording() -> Outcome {
    let folder = shell::root().join("target/bench");
    let mut command =
        shell::command("cargo bench --profile dist --quiet --package scrollback-lib --bench recording --");
    let text = printed(command.arg(&folder))?;
    let row = |name: &str| {
        let cells: Vec<&str> =
            text.lines().map(|line| line.split('\t').collect()).find(|cells: &Vec<&str>| cells[0] == name)?;
        let [_, median, worst, remark] = cells[..] else { return None };
        Some((median.parse::<f64>().ok()?, worst.parse::<f64>().ok()?, remark.to_owned()))
    };
    for (job, limit, ours) in [
        ("append one 1 KB record, Flush", "limit: write", "ours: Flush"),
        (
            "append one 1 KB record, Flush, secrets masked (limit: without; goal: 1.5 ×)",
            "ours: Flush",
            "ours: Flush, secrets masked",
        ),
        ("append one 1 KB record, Sync", "limit: write and fdatasync", "ours: Sync"),
        ("16 writers of one session, a record each", "limit: 16 writers", "ours: 16 writers"),
        ("a stream of 10,000 fragments, one of them", "limit: a fragment's bytes", "ours: a fragment of 10,000"),
    ] {
        let (Some(limit), Some(ours)) = (row(limit), row(ours)) else {
            return Err(format!("{job}: not measured").into());
        };
        let cell =
            |(median, worst, remark): &(f64, f64, String)| format!("p50 {median:.1} µs, p99 {worst:.1} µs {remark}");
        let ratio = ours.0 / limit.0;
        println!("| {job} | {} | | {} | {ratio:.2} × the limit's median | |", cell(&limit), cell(&ours));
    }
    Ok(())
}

/// What `lib/benches/undo` measures: the plan of an undo against looking at the same files.
fn undo() -> Outcome {
    let mut command = shell::command("cargo bench --profile dist --quiet --package scrollback-lib --bench undo --");
    let text = printed(command.arg(shell::root().join("target/bench")))?;
    let seconds = |name: &str| {
        let cells = text.lines().filter_map(|line| line.split_once('\t')).find(|cells| cells.0 == name);
        cells.and_then(|cells| cells.1.parse::<f64>().ok()).ok_or_else(|| format!("{name}: not measured"))
    };
    let (limit, history, plan) =
        (seconds("limit: stat and hash")?, seconds("ours: read the history")?, seconds("ours: plan")?);
    println!(
        "| undo plan for 10,000 tracked files, all changed (goal: 2 ×) | {limit:.3} s (stat and SHA-256 of each) | | {plan:.3} s, after {history:.3} s for the session's file history | {:.2} × the limit's time | |",
        plan / limit
    );
    Ok(())
}

/// The rows that `lib/benches/limits` measures on both sides.
fn in_process(home: &Path, measured: &Measured) {
    let [split, value, typed, raw] =
        ["read and split lines", "parse as Value", "borrowed typed parse", "parse as RawValue"]
            .map(|name| measured.seconds(&format!("limit: {name}")));
    println!("| read all, split lines | {split:.3} s | {} | | | |", peers::cell(&peers::RIPGREP, home));
    let skeleton = measured.row("ours: skeleton of every session");
    println!(
        "| parse all: Value / borrowed typed / RawValue; ours: skeleton of every session | {value:.3} / {typed:.3} / {raw:.3} s | {} | {:.3} s | {:.2} × the typed limit's speed | {} MiB |",
        peers::cell(&peers::JQ, home),
        skeleton.seconds,
        typed / skeleton.seconds,
        skeleton.rss_mib
    );
    let (limit, tokens) = (measured.row("limit: token totals"), measured.row("ours: token totals"));
    println!(
        "| token totals from nothing (exact: {}) | {:.3} s (needle, then typed) | {} | {:.3} s, {} tokens of Claude Code | {:.2} × the limit's time | {} MiB |",
        measured.row("exact: token totals").remark,
        limit.seconds,
        peers::cell(&peers::TOKENS, home),
        tokens.seconds,
        measured.row("claude-code: token total").remark,
        tokens.seconds / limit.seconds,
        tokens.rss_mib
    );
}

/// A home; it is written once.
fn home(name: &str, size: &homes::Size) -> Result<PathBuf, Box<dyn std::error::Error>> {
    // The seed is part of the name: another home has another one.
    let home = shell::root().join(format!("target/bench/{name}-{}", size.seed));
    if !home.join("TRUTH.json").is_file() {
        println!("writing home {name} …");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        homes::write(&home, size)?;
    }
    Ok(home)
}

/// What a command printed; one that failed has measured nothing.
fn printed(command: &mut Command) -> Result<String, Box<dyn std::error::Error>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("`{}` failed: {}", shell::shown(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// What `lib/benches/limits` measures, by name.
struct Measured(Vec<(String, Row)>);

#[derive(Clone)]
struct Row {
    seconds: f64,
    rss_mib: u64,
    remark: String,
}

impl Measured {
    /// Measures a home, or one file.
    fn of(path: &Path) -> Result<Measured, Box<dyn std::error::Error>> {
        let mut command =
            shell::command("cargo bench --profile dist --quiet --package scrollback-lib --bench limits --");
        let text = printed(command.arg(path))?;
        let row = |line: &str| {
            let mut cells = line.split('\t');
            let name = cells.next()?.to_owned();
            let (seconds, rss_mib) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
            Some((name, Row { seconds, rss_mib, remark: cells.next()?.to_owned() }))
        };
        Ok(Measured(text.lines().filter_map(row).collect()))
    }

    /// A missing row is marked as not measured.
    fn row(&self, name: &str) -> Row {
        let known = self.0.iter().find(|(known, _)| known == name).map(|(_, row)| row.clone());
        known.unwrap_or(Row { seconds: f64::NAN, rss_mib: 0, remark: "not measured".to_owned() })
    }

    fn seconds(&self, name: &str) -> f64 {
        self.row(name).seconds
    }
}

/// The history of a 100 MB session.
fn history() -> Outcome {
    let path = session("history", HISTORY_BYTES)?;
    let name = path.to_string_lossy().into_owned();
    let printed = Measured::of(&path)?.row("limit: parse as Value and print");
    for view in ["anthropic", "openai-responses", "gemini", "ai-sdk"] {
        let run = timed(&ours(Path::new("/nonexistent"), &["history", &name, "--for", view]))?;
        println!(
            "| history of a 100 MB session for {view}, process included | {:.3} s (parse as Value, print) | | {:.3} s | {:.2} × the limit's time | {} MiB |",
            printed.seconds,
            run.seconds,
            run.seconds / printed.seconds,
            run.rss_mib
        );
    }
    Ok(())
}

/// The same session as a stream, and the latency of `tail`.
fn stream() -> Outcome {
    let path = session("history", HISTORY_BYTES)?;
    let measured = Measured::of(&path)?;
    let (skeleton, streamed) =
        (measured.seconds("ours: skeleton of every session"), measured.row("ours: stream as chunks"));
    println!(
        "| a 100 MB session in pieces of 64 KiB, as the AI SDK's chunks | {skeleton:.3} s (our skeleton pass) | | {:.3} s | {:.2} × its time | {} MiB |",
        streamed.seconds,
        streamed.seconds / skeleton,
        streamed.rss_mib
    );
    let latency = latency()?;
    println!(
        "| tail: from a line's write to its update, the median of {LINES_TAILED} | | | {:.1} ms | | |",
        latency * 1000.0
    );
    Ok(())
}

/// How many lines the latency is measured with.
const LINES_TAILED: usize = 50;

/// The median time from writing a line to printing it, in seconds.
fn latency() -> Result<f64, Box<dyn std::error::Error>> {
    let path = shell::root().join("target/bench/tail.jsonl");
    let line = |at: usize| {
        let parent = at.checked_sub(1).map_or_else(|| "null".to_owned(), |parent| format!("\"r{parent}\""));
        format!(
            "{{\"type\":\"user\",\"uuid\":\"r{at}\",\"parentUuid\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"{at}\"}}}}\n"
        )
    };
    fs::write(&path, line(0))?;
    let mut command = Command::new(shell::root().join("target/dist/scrollback"));
    command
        .args(["--dialect", "native", "tail", "--jsonl"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut tail = command.spawn()?;
    let mut out = std::io::BufReader::new(tail.stdout.take().ok_or("no output")?);
    let mut print = || std::io::BufRead::read_line(&mut out, &mut String::new());
    print()?;
    let mut seconds = Vec::new();
    for at in 1..=LINES_TAILED {
        let mut file = fs::OpenOptions::new().append(true).open(&path)?;
        let start = Instant::now();
        std::io::Write::write_all(&mut file, line(at).as_bytes())?;
        print()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    tail.kill()?;
    tail.wait()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[LINES_TAILED / 2])
}

/// A native session of at least this size; it is written once.
fn session(name: &str, bytes: usize) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let path = shell::root().join("target/bench").join(name).join("sessions").join(name).join("messages.jsonl");
    if !fs::metadata(&path).is_ok_and(|known| known.len() as usize >= bytes) {
        homes::write_native_session(&path, bytes)?;
    }
    Ok(path)
}

/// The newest page of a 1 GiB session, and its skeleton.
fn large() -> Outcome {
    let path = session("large", LARGE_BYTES)?;
    let name = path.to_string_lossy().into_owned();
    let page = timed(&ours(Path::new("/nonexistent"), &["show", &name, "--last", "20"]))?;
    println!(
        "| newest page of a 1 GiB session, process included | 1 s, 64 MiB (goal) | | {:.3} s | | {} MiB |",
        page.seconds, page.rss_mib
    );
    let measured = Measured::of(&path)?;
    let (typed, skeleton) =
        (measured.seconds("limit: borrowed typed parse"), measured.row("ours: skeleton of every session"));
    println!(
        "| skeleton of it | {typed:.3} s (borrowed typed) | | {:.3} s | {:.2} × the limit's speed | {} MiB |",
        skeleton.seconds,
        typed / skeleton.seconds,
        skeleton.rss_mib
    );
    let doctor = timed(&ours(Path::new("/nonexistent"), &["doctor", &name]))?;
    println!("| doctor on it, process included | | | {:.3} s | | {} MiB |", doctor.seconds, doctor.rss_mib);
    Ok(())
}

pub(crate) struct Job {
    pub(crate) words: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

fn ours(home: &Path, args: &[&str]) -> Job {
    let program = shell::root().join("target/dist/scrollback").to_string_lossy().into_owned();
    let words = [program].into_iter().chain(args.iter().map(|arg| (*arg).to_owned())).collect();
    Job { words, env: vec![("HOME".to_owned(), home.to_string_lossy().into_owned())] }
}

pub(crate) struct Timed {
    pub(crate) seconds: f64,
    pub(crate) rss_mib: u64,
}

/// Measures a program without its output.
fn timed(job: &Job) -> Result<Timed, Box<dyn std::error::Error>> {
    timed_into(job, Path::new("/dev/null"))
}

/// Runs a program three times under GNU time, which measures its memory, and returns the best run.
///
/// A run that fails has no time: a program that stops at once would be the fastest.
pub(crate) fn timed_into(job: &Job, answer: &Path) -> Result<Timed, Box<dyn std::error::Error>> {
    let mut best = Timed { seconds: f64::MAX, rss_mib: 0 };
    for _ in 0..3 {
        let mut command = Command::new("/usr/bin/time");
        command.args(["-q", "-f", "%M"]).args(&job.words).envs(job.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(fs::File::create(answer)?).stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.output().map_err(|error| format!("/usr/bin/time: {error}\nhint: install GNU time"))?;
        let seconds = start.elapsed().as_secs_f64();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let (said, kib) = stderr.trim_end().rsplit_once('\n').unwrap_or(("", stderr.trim_end()));
        if !output.status.success() {
            let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(format!("failed, {}: {why}", output.status).into());
        }
        let kib: u64 = kib.trim().parse().map_err(|_| stderr.clone())?;
        if seconds < best.seconds {
            best = Timed { seconds, rss_mib: kib / 1024 };
        }
    }
    Ok(best)
}
