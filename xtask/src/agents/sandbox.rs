//! A home and a working directory for one scenario, and the steps that run there.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::scenario::Step;
use super::{Agent, Bench};

/// The prompt of a step in which the agent answers.
const STEP_PROMPT: &str = "Hello?";

/// The length of a session id at the end of a file name.
const UUID_CHARS: usize = 36;

/// An agent's own home and working directory.
pub(super) struct Sandbox<'b> {
    pub(super) bench: &'b Bench,
    pub(super) agent: &'b Agent,
    pub(super) place: PathBuf,
    pub(super) home: PathBuf,
    pub(super) cwd: PathBuf,
    /// The record ids that the last `record` acknowledged.
    pub(super) ids: Vec<String>,
}

impl<'b> Sandbox<'b> {
    /// Empty folders for a scenario of this name.
    pub(super) fn new(bench: &'b Bench, agent: &'b Agent, scenario: &str) -> io::Result<Sandbox<'b>> {
        let name: String = scenario.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let place = bench.scratch.join(agent.name).join(name);
        let (home, cwd) = (place.join("home"), place.join("w"));
        fs::create_dir_all(&cwd)?;
        fs::create_dir_all(home.join(agent.store))?;
        if agent.name == "codex" {
            // A session that we write names the provider of these settings; Codex resumes it only with that one.
            let settings = format!("model_provider = \"{}\"\n", super::PROVIDER);
            fs::write(home.join(agent.store).join("config.toml"), settings)?;
        }
        Ok(Sandbox { bench, agent, place, home, cwd, ids: Vec::new() })
    }

    pub(super) fn run(&mut self, step: &Step<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let session = self.log()?.as_deref().map(id_of).unwrap_or_default();
        let mut ours = Command::new(&self.bench.binary);
        ours.current_dir(&self.cwd).env("XDG_DATA_HOME", self.place.join("data"));
        ours.arg("--store").arg(self.home.join(self.agent.store));
        let mut input = "";
        match step {
            Step::Record(lines) => {
                ours.args(["record", "--dialect", self.agent.dialect, "--project"]).arg(&self.cwd);
                input = lines;
            }
            Step::RecordMore(lines) => {
                ours.args(["record", "--resume", &session]);
                input = lines;
            }
            Step::Convert(from) => _ = ours.arg("convert").arg(from).args(["--to", self.agent.dialect, "--json"]),
            Step::Rewind(back) => {
                let record = self.ids.iter().rev().nth(*back).cloned().unwrap_or_default();
                ours.args(["rewind", &format!("{session}#{record}")]);
            }
            Step::Fork => _ = ours.args(["fork", &session]),
            Step::Rename => _ = ours.args(["rename", &session, "The tides of this year"]),
            Step::Undo => _ = ours.args(["undo", &session, "--yes"]),
            Step::Redo => _ = ours.args(["redo", &session, "--yes"]),
            Step::Prompt => {
                let log = self.log()?;
                let arguments = if log.is_some() { self.agent.resume } else { self.agent.begin };
                return self.start_agent(arguments, &log.unwrap_or_default(), STEP_PROMPT);
            }
        }
        let mut ours = ours.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = ours.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        let output = ours.wait_with_output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        // `record` reports each line that it refuses; no other step may fail.
        if !output.status.success() && input.is_empty() {
            return Err(format!("{}: {}", self.place.display(), String::from_utf8_lossy(&output.stderr)).into());
        }
        let ids = printed.lines().filter_map(|line| line.split_once("\"id\":\"")?.1.split_once('"'));
        self.ids = ids.map(|(id, _)| id.to_owned()).collect();
        fs::write(self.place.join("printed.txt"), printed)?;
        // Codex orders sessions by the second in their file names.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        Ok(())
    }

    /// Starts the agent with a prompt.
    pub(super) fn start_agent(
        &self,
        arguments: &[&str],
        log: &Path,
        prompt: &str,
    ) -> Result<(), Box<dyn std::error::Error>> {
        // The agent finds a session only in the directory that the session names.
        let text = fs::read_to_string(log).unwrap_or_default();
        let recorded = text.split_once("\"cwd\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let cwd = recorded.map_or(self.cwd.clone(), |(cwd, _)| PathBuf::from(cwd));
        fs::create_dir_all(&cwd)?;
        let words = self.without_network("--inside", &cwd, &filled(arguments, &id_of(log), prompt))?;
        let (program, words) = words.split_first().ok_or("no way to start without a network")?;
        let output = Command::new(program).args(words).output()?;
        fs::write(self.place.join("agent.txt"), [output.stdout, output.stderr].concat())?;
        Ok(())
    }

    /// The words that start the agent without a network.
    pub(super) fn without_network(&self, way: &str, cwd: &Path, arguments: &[String]) -> io::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = self.bench.without_network.iter().map(OsString::from).collect();
        words.extend([std::env::current_exe()?.into(), "agents".into(), way.into(), self.agent.name.into()]);
        let places = [&self.bench.folder, &self.home, cwd, &self.requests()].map(|path| path.as_os_str().to_owned());
        words.extend(places.into_iter().chain(arguments.iter().map(OsString::from)));
        Ok(words)
    }

    /// The log of the scripted model.
    pub(super) fn requests(&self) -> PathBuf {
        self.place.join("requests.jsonl")
    }

    /// The session file that was written last.
    pub(super) fn log(&self) -> io::Result<Option<PathBuf>> {
        let mut folders = vec![self.home.join(self.agent.store)];
        let mut newest = None;
        while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let is_log = path.extension().is_some_and(|ending| ending == "jsonl") && is_named(&path);
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if is_log {
                    newest = newest.max(Some((fs::metadata(&path)?.modified()?, path)));
                }
            }
        }
        Ok(newest.map(|(_, path)| path))
    }
}

/// The session id at the end of a file name. A further file of a session of Codex has its own id behind it.
pub(super) fn id_of(log: &Path) -> String {
    let stem = log.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.split('_').next().unwrap_or_default().to_owned();
    stem.get(stem.len().saturating_sub(UUID_CHARS)..).unwrap_or(&stem).to_owned()
}

/// Whether a file name ends in a session id; agents keep other files beside the sessions.
fn is_named(path: &Path) -> bool {
    id_of(path).split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Arguments with their placeholders filled in.
pub(super) fn filled(arguments: &[&str], id: &str, prompt: &str) -> Vec<String> {
    arguments.iter().map(|argument| argument.replace("PROMPT", prompt).replace("ID", id)).collect()
}
