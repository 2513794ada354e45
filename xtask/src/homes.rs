//! `cargo xtask homes FOLDER [--mb N] [--sessions N] [--seed N]`: made-up homes with sessions of Claude Code and Codex.
//!
//! The same seed makes the same bytes. `TRUTH.json` in the home says what it holds, counted while it was written: each request,
//! message and call once, however often the files repeat it. The files have what real ones have and what makes counting hard:
//! an answer in several lines that each repeat its usage, forks and resumed copies, branches, sub-agents, torn lines.

mod claude;
mod codex;
mod text;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use text::Text;

use crate::Outcome;

/// A word that a few prompts of a home contain.
pub(crate) const NEEDLE: &str = "zyxquokka7731";
const NEEDLES: usize = 7;

const MB: usize = 1_000_000;
/// Of all sessions; the rest are Claude Code's.
const CODEX_PERCENT: usize = 10;
/// One session in so many has a fork, and one a resumed copy.
const COPIED: usize = 50;
/// 2026-05-01, and the time in which all sessions of a home start.
const FIRST_MS: u64 = 1_777_593_600_000;
const SPAN_MS: u64 = 190 * 86_400_000;
/// The projects of a home.
const PROJECTS: usize = 12;

/// How large a home is.
pub(crate) struct Size {
    pub(crate) bytes: usize,
    pub(crate) sessions: usize,
    pub(crate) seed: u64,
    /// Sessions of a size of their own, in megabytes.
    pub(crate) large_mb: &'static [usize],
}

pub(crate) const SMALL: Size = Size { bytes: 50 * MB, sessions: 200, seed: 1, large_mb: &[8] };
pub(crate) const FULL: Size = Size { bytes: 930 * MB, sessions: 3_000, seed: 2, large_mb: &[100, 75, 55] };

/// What the sessions of one agent hold.
#[derive(Default)]
struct Counts {
    /// Sessions that a person started, and sessions of sub-agents.
    sessions: u64,
    child_sessions: u64,
    /// Prompts and answers; an answer is what one request returned.
    messages: u64,
    requests: u64,
    tool_calls: u64,
    /// Input that no cache held, output, read from a cache, written to one, of the output: reasoning.
    tokens: Tokens,
    /// The same for each day in UTC, by the first record of a request, and for each model.
    by_day: BTreeMap<String, Tokens>,
    by_model: BTreeMap<String, Tokens>,
}

type Tokens = [u64; 5];

pub(crate) fn run(options: &[&str]) -> Outcome {
    const USAGE: &str = "homes takes a folder that does not exist, then --mb N, --sessions N and --seed N";
    let [folder, options @ ..] = options else { return Err(USAGE.into()) };
    let mut size = SMALL;
    for option in options.chunks(2) {
        match option {
            ["--mb", number] => size.bytes = number.parse::<usize>()? * MB,
            ["--sessions", number] => size.sessions = number.parse()?,
            ["--seed", number] => size.seed = number.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    size.large_mb = &[];
    if Path::new(folder).exists() {
        return Err(USAGE.into());
    }
    write(Path::new(folder), &size)?;
    println!("{folder}: see TRUTH.json there");
    Ok(())
}

/// Writes a home. `TRUTH.json` is written last: a home without it is unfinished.
pub(crate) fn write(home: &Path, size: &Size) -> io::Result<()> {
    let mut maker = Maker::new(home, size.seed);
    let (mut claude, mut codex) = (Counts::default(), Counts::default());
    let large = size.large_mb.iter().map(|mb| mb * MB);
    let copies = 2 * (size.sessions / COPIED).max(1);
    let of_codex = size.sessions * CODEX_PERCENT / 100;
    let of_claude = size.sessions.saturating_sub(copies + of_codex + size.large_mb.len()).max(1);
    // Copies, and the last turn of each session, need some room too.
    let room = size.bytes.saturating_sub(large.clone().sum()) / 10 * 9;
    let sizes = maker.text.random.shares(room, of_claude + of_codex);
    let mut finished = Vec::new();
    for (at, bytes) in large.chain(sizes[..of_claude].iter().copied()).enumerate() {
        // The first sessions have the needle, one each.
        finished.push(claude::write(&mut maker, &mut claude, bytes, at < NEEDLES)?);
    }
    // Others than those with the needle are copied.
    let copied = finished.iter().skip(NEEDLES).filter(|session| session.has_two_turns()).take(copies / 2);
    for session in copied {
        claude::fork(&mut maker, &mut claude, session)?;
        claude::resume(&mut maker, &mut claude, session)?;
    }
    for bytes in &sizes[of_claude..] {
        codex::write(&mut maker, &mut codex, *bytes)?;
    }
    let truth = json!({
        "seed": size.seed, "bytes": maker.bytes, "needle": {"word": NEEDLE, "prompts": NEEDLES.min(finished.len())},
        "dialects": {"claude-code": claude.to_json(), "codex": codex.to_json()},
    });
    fs::write(home.join("TRUTH.json"), format!("{truth:#}\n"))
}

/// Writes a native session of at least this size.
pub(crate) fn write_native_session(path: &Path, bytes: usize) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let text = "The tide comes in and the tide goes out, and nobody asks the moon. ".repeat(20);
    let mut file = BufWriter::new(File::create(path)?);
    let (mut written, mut n) = (0, 0_u64);
    while written < bytes {
        let kind = ["user", "assistant"][(n % 2) as usize];
        let parent = if n == 0 { "null".to_owned() } else { format!("\"r{}\"", n - 1) };
        let line = format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"r{n}\",\"parentUuid\":{parent},\"timestamp\":\"2026-10-05T08:30:00Z\",\"sessionId\":\"{name}\",\"message\":{{\"role\":\"{kind}\",\"content\":\"{text}\"}}}}\n"
        );
        file.write_all(line.as_bytes())?;
        (written, n) = (written + line.len(), n + 1);
    }
    file.flush()
}

impl Counts {
    fn to_json(&self) -> Value {
        let tokens = |[input, output, cache_read, cache_write, reasoning]: &Tokens| json!({"input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write, "reasoning": reasoning});
        let each = |by: &BTreeMap<String, Tokens>| -> Map<String, Value> {
            by.iter().map(|(name, counts)| (name.clone(), tokens(counts))).collect()
        };
        json!({
            "sessions": self.sessions, "childSessions": self.child_sessions, "messages": self.messages, "requests": self.requests,
            "toolCalls": self.tool_calls, "tokens": tokens(&self.tokens), "byDay": each(&self.by_day), "byModel": each(&self.by_model),
        })
    }

    /// Counts a request whose first record was written at this time.
    fn add_request(&mut self, tokens: Tokens, ms: u64, model: &str) {
        self.requests += 1;
        let day = self.by_day.entry(timestamp(ms)[..10].to_owned()).or_default();
        let model = self.by_model.entry(model.to_owned()).or_default();
        for sums in [&mut self.tokens, day, model] {
            sums.iter_mut().zip(tokens).for_each(|(sum, count)| *sum += count);
        }
    }
}

/// A directory that people work in.
#[derive(Clone)]
struct Project {
    cwd: String,
    branch: String,
}

/// What the writers of all agents share.
struct Maker {
    home: PathBuf,
    text: Text,
    projects: Vec<Project>,
    bytes: u64,
}

impl Maker {
    fn new(home: &Path, seed: u64) -> Maker {
        let mut text = Text::new(seed);
        let project = |text: &mut Text| Project {
            cwd: format!("/home/dev/{}/{}", text.random.pick(&["work", "code", "oss.d"]), text.identifier()),
            branch: text.random.pick(&["main", "next", "fix/parser"]).to_owned(),
        };
        let projects = (0..PROJECTS).map(|_| project(&mut text)).collect();
        Maker { home: home.to_path_buf(), text, projects, bytes: 0 }
    }

    fn project(&mut self) -> Project {
        self.projects[self.text.random.below(PROJECTS as u64) as usize].clone()
    }

    fn start_ms(&mut self) -> u64 {
        FIRST_MS + self.text.random.below(SPAN_MS)
    }
}

/// A file that is being written.
struct Log {
    file: BufWriter<File>,
    path: PathBuf,
    bytes: usize,
}

impl Log {
    fn create(path: PathBuf) -> io::Result<Log> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        Ok(Log { file: BufWriter::new(File::create(&path)?), path, bytes: 0 })
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        self.raw(&format!("{value}\n"))
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len();
        self.file.write_all(text.as_bytes())
    }

    fn finish(mut self, maker: &mut Maker) -> io::Result<PathBuf> {
        self.file.flush()?;
        maker.bytes += self.bytes as u64;
        Ok(self.path)
    }
}

/// An RFC 3339 time, from milliseconds since 1970.
fn timestamp(ms: u64) -> String {
    let (days, ms) = ((ms / 86_400_000) as i64, ms % 86_400_000);
    // From days to a date in a year that starts in March, so that the leap day is its last day.
    let day_of_era = days + 719_468;
    let era = day_of_era / 146_097;
    let day = day_of_era % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{ms:03}Z", seconds % 60)
}

#[cfg(test)]
mod tests;
