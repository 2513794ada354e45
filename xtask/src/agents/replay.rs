//! A session is played to the agent twice by `serve --replay`: the agent makes the same tool calls both times.
//!
//! First the model says what we recorded, whatever the agent answers to it (`--loose`). The session that the agent writes then is played
//! strictly to the same agent in another home and the same project: now each request must be what the session has at that point.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::sandbox::{Sandbox, filled};
use super::{Agent, Bench, Row};

pub(super) const NAME: &str = "played again by scrollback as its model";

/// What the person asks, as in what is played.
const ASKED: &str = "Note the tides, please.";

impl Bench {
    /// The row counts the tool calls of the first run, and those of the second.
    pub(super) fn replay_row(&self, agent: &'static Agent) -> Result<Row, Box<dyn std::error::Error>> {
        let mut sandbox = Sandbox::new(self, agent, NAME)?;
        let played = self.recorded(&sandbox)?;
        let mut runs: Vec<Vec<Value>> = Vec::new();
        let mut session = played.to_string_lossy().into_owned();
        for (name, how) in [("first", "--loose"), ("second", "--no-redact")] {
            sandbox.home = sandbox.place.join(name);
            // The project is as it was before the first run.
            fs::remove_dir_all(&sandbox.cwd)?;
            fs::create_dir_all(&sandbox.cwd)?;
            let arguments = filled(&[agent.begin, agent.unasked].concat(), "", ASKED);
            let arguments = [vec![session, how.to_owned()], arguments].concat();
            let words = sandbox.without_network("--replay", &sandbox.cwd, &arguments)?;
            let (program, words) = words.split_first().ok_or("no way to start without a network")?;
            let output = Command::new(program).args(words).output()?;
            fs::write(sandbox.place.join(format!("{name}.txt")), [output.stdout, output.stderr].concat())?;
            fs::rename(sandbox.requests(), sandbox.place.join(format!("{name}-requests.txt")))?;
            let Some(log) = sandbox.log()? else { return Ok(Row::not_written(agent, NAME.to_owned())) };
            runs.push(self.calls(&log)?);
            session = log.to_string_lossy().into_owned();
        }
        let refused = fs::read_to_string(sandbox.place.join("second-requests.txt"))?;
        let refused = refused.lines().find(|line| line.contains(": refused: ")).unwrap_or_default().trim().to_owned();
        let is_same = runs[0] == runs[1] && !runs[0].is_empty() && refused.is_empty();
        let verdict = if is_same { "the same" } else { "different" }.to_owned();
        let cells = [String::new(), runs[0].len().to_string(), runs[1].len().to_string(), verdict];
        Ok(Row::new(agent, NAME.to_owned(), cells, refused))
    }

    /// Records what is played first.
    fn recorded(&self, sandbox: &Sandbox<'_>) -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
        let store = sandbox.place.join("played");
        let mut record = Command::new(&self.binary);
        record.current_dir(&sandbox.cwd).env("XDG_DATA_HOME", sandbox.place.join("data"));
        record.arg("--store").arg(&store).args(["record", "--id", "played"]);
        let mut record = record.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if let Some(mut stdin) = record.stdin.take() {
            let lines = sandbox.agent.played.replace("CWD", &sandbox.cwd.to_string_lossy());
            stdin.write_all(lines.as_bytes())?;
        }
        if !record.wait()?.success() {
            return Err(format!("{}: nothing was recorded", store.display()).into());
        }
        Ok(store.join("sessions/played/messages.jsonl"))
    }

    /// The tool calls of a session: their names and inputs.
    fn calls(&self, log: &Path) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
        let printed = Command::new(&self.binary).args(["extract-tools", "--json"]).arg(log).output()?;
        let rows: Vec<Value> = serde_json::from_slice(&printed.stdout)?;
        Ok(rows.into_iter().map(|row| serde_json::json!([row["name"], row["input"]])).collect())
    }
}
