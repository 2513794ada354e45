//! `cargo xtask agents [OPTION] [FOLDER]`: the real Claude Code, Codex and Qwen Code resume sessions that we wrote.
//!
//! FOLDER (or AGENTS_ROOT, else `target/agents`) contains the agents in `inst/`; `--install` puts them there. They talk to a
//! scripted model without a network. What an agent sends to that model is compared with what `scrollback history` prints.

mod compare;
mod inside;
mod install;
mod interactive;
mod items;
mod model;
mod replay;
mod sandbox;
mod scenario;
mod terminal;
mod undo;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use compare::{Files, Verdict, compare};
use interactive::Screen;
use sandbox::Sandbox;
use scenario::{Scenario, Start, Step, scenarios};

use crate::Outcome;
use crate::shell::{command, root, run as start};

/// The scripted model answers with a greeting; the request with this prompt is the one that is compared.
const PROMPT: &str = "GO-ON";
/// The home directory in the demo's sessions.
const DEMO_HOME: &str = "/home/ada";
/// The provider that Codex finds the scripted model under. It resumes a session only with the provider that the session names.
const PROVIDER: &str = "scripted";
const PAGE: &str = "docs/dialects/README.md";
const MARKS: (&str, &str) = ("<!-- agents: begin -->", "<!-- agents: end -->");

/// One agent, and the version that the table was made with.
struct Agent {
    name: &'static str,
    dialect: &'static str,
    /// Its own folder in a home.
    store: &'static str,
    package: &'static str,
    version: &'static str,
    /// The view of what it sends, and the name of that API in the model's log.
    view: &'static str,
    api: &'static str,
    /// Its arguments to prompt in a new session, in this one, in the newest one, in a fork of this one.
    begin: &'static [&'static str],
    resume: &'static [&'static str],
    newest: &'static [&'static str],
    fork: Option<&'static [&'static str]>,
    /// Its further arguments to use every tool without asking, and what is played to it: input of `record`, in its own tools.
    unasked: &'static [&'static str],
    played: &'static str,
    /// Its further arguments to edit files without asking; none if this is not tried with it.
    edit: Option<&'static [&'static str]>,
    /// Whether its format has branches.
    branches: bool,
    screen: Screen,
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude",
        dialect: "claude-code",
        store: ".claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.325",
        view: "anthropic",
        api: "anthropic",
        begin: &["-p", "PROMPT"],
        resume: &["-p", "PROMPT", "--resume", "ID"],
        newest: &["-p", "PROMPT", "--continue"],
        fork: Some(&["-p", "PROMPT", "--resume", "ID", "--fork-session"]),
        unasked: &["--permission-mode", "bypassPermissions"],
        played: include_str!("agents/played_claude.jsonl"),
        edit: Some(&["--permission-mode", "acceptEdits"]),
        branches: true,
        screen: Screen {
            arguments: &["--permission-mode", "manual"],
            resume: &["--resume"],
            ready: "❯",
            compact: ("/compact", "Compacted"),
            rewind: ("Rewind", &["Up", "Enter", "1"]),
            quit: "/exit",
        },
    },
    Agent {
        name: "codex",
        dialect: "codex",
        store: ".codex",
        package: "@openai/codex",
        version: "0.166.0",
        view: "openai-responses",
        api: "responses",
        begin: &["exec", "--skip-git-repo-check", "PROMPT"],
        resume: &["exec", "--skip-git-repo-check", "resume", "ID", "PROMPT"],
        newest: &["exec", "--skip-git-repo-check", "resume", "--last", "PROMPT"],
        // Only its interface forks.
        fork: None,
        unasked: &["-s", "danger-full-access"],
        played: include_str!("agents/played_codex.jsonl"),
        edit: None,
        branches: false,
        screen: Screen {
            // Its server would outlive the terminal.
            arguments: &["--no-daemon", "-s", "danger-full-access"],
            resume: &["resume"],
            ready: "›",
            compact: ("/compact", "Context compacted"),
            rewind: ("↵ rewind", &["Enter"]),
            quit: "/quit",
        },
    },
    Agent {
        name: "qwen",
        dialect: "qwen-code",
        store: ".qwen",
        package: "@qwen-code/qwen-code",
        version: "0.24.4",
        view: "openai",
        api: "chat",
        begin: &["-p", "PROMPT"],
        resume: &["-p", "PROMPT", "--resume", "ID"],
        newest: &["-p", "PROMPT", "--continue"],
        fork: Some(&["-p", "PROMPT", "--resume", "ID", "--fork-session"]),
        unasked: &["--yolo"],
        played: include_str!("agents/played_qwen.jsonl"),
        edit: None,
        branches: true,
        screen: Screen {
            arguments: &[],
            resume: &["--resume"],
            ready: "Type your message",
            compact: ("/compress", "history compressed"),
            rewind: ("Rewind Conversation", &["Enter", "Enter"]),
            quit: "/quit",
        },
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

impl Row {
    /// A row, which is printed at once.
    fn new(agent: &Agent, scenario: String, cells: [String; 4], difference: String) -> Row {
        println!("{:<7}{scenario:<60} {:>3} {:>3}  {} {difference}", agent.name, cells[1], cells[2], cells[3]);
        Row { agent: agent.name, scenario, cells, difference }
    }

    fn not_written(agent: &Agent, scenario: String) -> Row {
        Row::new(agent, scenario, ["", "", "", "not written"].map(str::to_owned), String::new())
    }
}

/// The model view of a session, and of the one that it was converted from.
const HISTORY: &str = "history.json";
const SOURCE: &str = "source.json";

pub(crate) fn run(options: &[&str]) -> Outcome {
    if let [way @ ("--inside" | "--at-screen" | "--replay"), agent, folder, home, cwd, log, arguments @ ..] = options {
        let agent = AGENTS.iter().find(|known| known.name == *agent).ok_or("no such agent")?;
        let is_at_screen = *way == "--at-screen";
        // What is replayed comes before the arguments of the agent.
        let (replay, arguments) = match (*way, arguments) {
            ("--replay", [session, how, arguments @ ..]) => {
                (Some(vec![(*session).to_owned(), (*how).to_owned()]), arguments)
            }
            _ => (None, arguments),
        };
        let (folder, home, cwd, log) = (folder.into(), home.into(), cwd.into(), log.into());
        let place = inside::Run { is_at_screen, folder, home, cwd, log, replay };
        return inside::start(agent, &place, arguments);
    }
    let (bless, only, folder) = match options {
        ["--install"] => return install::install(&folder(None)),
        ["--install", place] => return install::install(&folder(Some(*place))),
        [] => (false, "", None),
        ["--bless"] => (true, "", None),
        ["--bless", folder] => (true, "", Some(*folder)),
        ["--only", word] => (false, *word, None),
        ["--only", word, folder] => (false, *word, Some(*folder)),
        [folder] if !folder.starts_with('-') => (false, "", Some(*folder)),
        _ => return Err("agents takes --install, --bless or --only WORD, and a folder".into()),
    };
    let folder = self::folder(folder);
    let missing = missing(&folder);
    let (Some(without_network), true) = (inside::without_network(), missing.is_empty()) else {
        let network = "  `unshare -n ip link set lo up` fails: install util-linux and iproute2, or run as root";
        let network = inside::without_network().is_none().then_some(network.to_owned());
        let missing: Vec<String> = missing.into_iter().chain(network).collect();
        return Err(format!("missing:\n{}\nhint: cargo xtask agents --install", missing.join("\n")).into());
    };
    if !terminal::is_available() {
        return Err("missing: tmux\nhint: apt-get install tmux, or the like".into());
    }
    start(&mut command("cargo build --package scrollback --locked"))?;
    let binary = std::env::current_exe()?.with_file_name("scrollback");
    let scratch = std::env::temp_dir().join(format!("scrollback-agents-{}", std::process::id()));
    let bench = Bench { folder: fs::canonicalize(folder)?, binary, scratch, without_network };
    let rows = bench.rows(only)?;
    let table = table(&rows, &bench.versions()?);
    println!("\n{table}\nThe files that were written and sent are in {}", bench.scratch.display());
    if bless {
        write_page(&table)?;
    }
    let differ = rows.iter().filter(|row| !row.cells[3].starts_with("the same")).count();
    if differ == 0 { Ok(()) } else { Err(format!("{differ} of {} differ", rows.len()).into()) }
}

/// The folder of the agents: as asked for, else AGENTS_ROOT, else in the target folder.
fn folder(named: Option<&str>) -> PathBuf {
    let named = named.map(PathBuf::from).or_else(|| std::env::var_os("AGENTS_ROOT").map(PathBuf::from));
    named.unwrap_or_else(|| root().join("target/agents"))
}

/// The programs that are missing.
fn missing(folder: &Path) -> Vec<String> {
    let agents = AGENTS.iter().map(|agent| install::program(folder, agent.name));
    let programs = agents.chain([install::node(folder).join("node")]);
    programs.filter(|path| !path.exists()).map(|path| format!("  {}", path.display())).collect()
}

/// The folders of a run.
struct Bench {
    folder: PathBuf,
    binary: PathBuf,
    scratch: PathBuf,
    /// What starts a program without a network.
    without_network: Vec<&'static str>,
}

impl Bench {
    /// The rows whose name has this word in it.
    fn rows(&self, only: &str) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
        let demo = self.scratch.join("demo");
        let sessions = copy_demo(&root().join("cli/demo"), &demo, &self.scratch.join("ada").to_string_lossy())?;
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
            rows.extend(self.interactive_rows(agent, only)?);
            if replay::NAME.contains(only) {
                rows.push(self.replay_row(agent)?);
            }
            if let Some(edit) = agent.edit.filter(|_| undo::NAME.contains(only)) {
                rows.push(self.undo_row(agent, edit)?);
            }
        }
        Ok(rows)
    }

    fn row(&self, agent: &'static Agent, scenario: &Scenario<'_>) -> Result<Row, Box<dyn std::error::Error>> {
        let mut sandbox = Sandbox::new(self, agent, &scenario.name)?;
        for step in &scenario.steps {
            sandbox.run(step)?;
        }
        let Some(log) = sandbox.log()? else { return Ok(Row::not_written(agent, scenario.name.clone())) };
        self.keep_history(agent, &sandbox, &log)?;
        if let [Step::Convert(session)] = scenario.steps[..] {
            self.write_history(agent, session, &sandbox.place.join(SOURCE))?;
        }
        let arguments = match scenario.start {
            Start::Resume => agent.resume,
            Start::Continue => agent.newest,
            Start::Fork => agent.fork.unwrap_or(agent.resume),
        };
        sandbox.start_agent(arguments, &log, PROMPT)?;
        self.compared(agent, scenario.name.clone(), &sandbox)
    }

    /// Keeps the session as it is before the agent resumes it, and what the agent should send.
    fn keep_history(&self, agent: &Agent, sandbox: &Sandbox<'_>, log: &Path) -> io::Result<()> {
        self.write_history(agent, log, &sandbox.place.join(HISTORY))?;
        fs::copy(log, sandbox.place.join("written.jsonl")).map(|_| ())
    }

    /// The row of a session that the agent has resumed.
    fn compared(
        &self,
        agent: &'static Agent,
        scenario: String,
        sandbox: &Sandbox<'_>,
    ) -> Result<Row, Box<dyn std::error::Error>> {
        let [history, source, printed] = [HISTORY, SOURCE, "printed.txt"].map(|name| sandbox.place.join(name));
        let converted = source.exists().then_some((source.as_path(), printed.as_path()));
        let files = Files { requests: &sandbox.requests(), history: &history, converted };
        let Verdict { counts, verdict, difference } = compare(agent.api, PROMPT, &files)?;
        let [source, expected, sent] = counts.map(|count| count.map(|count| count.to_string()).unwrap_or_default());
        Ok(Row::new(agent, scenario, [source, expected, sent, verdict], difference))
    }

    /// Writes the model view of a session to a file.
    fn write_history(&self, agent: &Agent, session: &Path, to: &Path) -> io::Result<()> {
        let history = Command::new(&self.binary).args(["history", "--for", agent.view]).arg(session).output()?;
        fs::write(to, history.stdout)
    }

    fn versions(&self) -> io::Result<Vec<(&'static str, String)>> {
        let path = format!("{}:{}", install::node(&self.folder).display(), std::env::var("PATH").unwrap_or_default());
        let version = |agent: &Agent| {
            let program = install::program(&self.folder, agent.name);
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
    let provider = |name: &str| format!("\"model_provider\":\"{name}\"");
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
            fs::write(
                &copy,
                fs::read_to_string(&path)?
                    .replace(DEMO_HOME, home)
                    .replace(&provider("openai"), &provider(PROVIDER)),
            )?;
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
