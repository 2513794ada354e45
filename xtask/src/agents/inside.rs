//! Starts one agent beside the scripted model, in a network namespace of its own: it reaches nothing but that model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Agent, PROVIDER, install, model};
use crate::Outcome;
use crate::shell::{command, run};

/// How long an agent may run.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Nothing checks them: the model is ours.
const KEY: &str = "not-a-key";

/// One start of an agent.
pub(super) struct Run {
    /// Whether it runs at a terminal: it then has our input, and our process group.
    pub(super) is_at_screen: bool,
    pub(super) folder: PathBuf,
    pub(super) home: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) log: PathBuf,
    /// What answers it: the scripted model, or `serve --replay` with these arguments.
    pub(super) replay: Option<Vec<String>>,
}

/// A model that an agent can ask.
struct Endpoint {
    address: String,
    key: String,
    /// The server, if it is a program of its own.
    server: Option<Child>,
}

impl Endpoint {
    fn start(place: &Run) -> Result<Endpoint, Box<dyn std::error::Error>> {
        let Some(replay) = &place.replay else {
            return Ok(Endpoint { address: model::start(&place.log)?, key: KEY.to_owned(), server: None });
        };
        let binary = std::env::current_exe()?.with_file_name("scrollback");
        let mut command = Command::new(binary);
        command
            .args(["serve", "--port", "0", "--replay"])
            .args(replay)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // What it says of each request is the log.
        let mut server = command.stderr(fs::File::create(&place.log)?).spawn()?;
        let mut line = String::new();
        if let Some(printed) = server.stdout.take() {
            io::BufRead::read_line(&mut io::BufReader::new(printed), &mut line)?;
        }
        let (address, key) = line.trim().split_once("/?token=").ok_or("`serve --replay` printed no address")?;
        Ok(Endpoint { address: address.to_owned(), key: key.to_owned(), server: Some(server) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let interrupted = Command::new("kill").args(["-INT", &server.id().to_string()]).status();
            drop(interrupted.and_then(|_| server.wait()));
        }
    }
}

/// The command that starts this program again without a network; root needs no user namespace for that.
pub(super) fn without_network() -> Option<Vec<&'static str>> {
    let ways = [vec!["unshare", "-n"], vec!["unshare", "-r", "-n"]];
    ways.into_iter().find(|way| {
        let mut test = Command::new(way[0]);
        test.args(&way[1..]).args(["ip", "link", "set", "lo", "up"]);
        test.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    })
}

/// The other side of [`without_network`]: only the loopback is there.
pub(super) fn start(agent: &Agent, place: &Run, arguments: &[&str]) -> Outcome {
    run(&mut command("ip link set lo up"))?;
    let endpoint = Endpoint::start(place)?;
    for folder in [&place.home, &place.cwd, &place.home.join("tmp")] {
        fs::create_dir_all(folder)?;
    }
    configure(agent, place, &endpoint)?;
    let mut started = Command::new(install::program(&place.folder, agent.name));
    started.args(arguments).current_dir(&place.cwd);
    if !place.is_at_screen {
        started.stdin(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut started, 0);
    }
    started.env_clear().envs(environment(agent, place, &endpoint));
    let mut child = started.spawn()?;
    let ended = wait(&mut child)?;
    if place.is_at_screen {
        // What it has left running ends with the terminal.
        return Ok(());
    }
    // What the agent has left running.
    let group = format!("-{}", child.id());
    Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("{}: {status}", agent.name).into()),
        None => Err(format!("{}: no end after {} s", agent.name, LIMIT.as_secs()).into()),
    }
}

fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    child.kill()?;
    Ok(None)
}

fn environment(agent: &Agent, place: &Run, endpoint: &Endpoint) -> Vec<(String, String)> {
    let Endpoint { address, key, .. } = endpoint;
    let home = place.home.to_string_lossy();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", install::node(&place.folder).display());
    let mut variables = vec![
        ("HOME", home.to_string()),
        ("PATH", path),
        ("TMPDIR", format!("{home}/tmp")),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", if place.is_at_screen { "screen-256color" } else { "dumb" }.to_owned()),
        ("TZ", "UTC".to_owned()),
    ];
    variables.extend(match agent.name {
        "claude" => vec![
            ("ANTHROPIC_BASE_URL", address.to_owned()),
            ("ANTHROPIC_API_KEY", key.clone()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            // At its screen it copies files before it edits them; elsewhere only if it is told to.
            ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
        ],
        "codex" => vec![("CODEX_HOME", format!("{home}/.codex")), ("SCRIPTED_KEY", key.clone())],
        _ => vec![
            ("OPENAI_BASE_URL", format!("{address}/v1")),
            ("OPENAI_API_KEY", key.clone()),
            ("OPENAI_MODEL", "scripted-1".to_owned()),
            ("QWEN_CODE_NO_RELAUNCH", "1".to_owned()),
        ],
    });
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Writes the settings that an agent reads from a file. The address changes with each start.
fn configure(agent: &Agent, place: &Run, endpoint: &Endpoint) -> io::Result<()> {
    let (name, text) = match agent.name {
        "claude" if place.home.join(".claude.json").exists() => return Ok(()),
        "claude" => (".claude.json", claude_settings(&place.cwd, &endpoint.key)),
        "codex" => (".codex/config.toml", codex_settings(&endpoint.address, &place.cwd)),
        _ => (
            ".qwen/settings.json",
            json!({
                "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false},
                "telemetry": {"enabled": false},
                "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
            })
            .to_string(),
        ),
    };
    fs::create_dir_all(place.home.join(agent.store))?;
    fs::write(place.home.join(name), text)
}

/// The answers to what Claude Code asks at its first start.
fn claude_settings(cwd: &Path, key: &str) -> String {
    json!({
        "hasCompletedOnboarding": true, "customApiKeyResponses": {"approved": [key], "rejected": []},
        "projects": {cwd.to_string_lossy(): {"hasTrustDialogAccepted": true}},
    })
    .to_string()
}

fn codex_settings(address: &str, cwd: &Path) -> String {
    let trusted = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n\n", cwd.to_string_lossy());
    let no_news = "[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n\n";
    format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"{PROVIDER}\"\ncheck_for_update_on_startup = false\n\n\
         [analytics]\nenabled = false\n\n{trusted}{no_news}\
         [model_providers.{PROVIDER}]\nname = \"{PROVIDER}\"\nbase_url = \"{address}/v1\"\nenv_key = \"SCRIPTED_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
    )
}
