//! A terminal that nobody sits at: an agent's own screen in tmux. We type, look, and wait until nothing changes.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::inside::LIMIT;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Wide and high enough that no agent folds what we look for.
const SIZE: [&str; 4] = ["-x", "110", "-y", "50"];
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A screen is at rest if it stays the same for this long.
const REST: Duration = Duration::from_millis(1_200);
/// Two Escapes belong together if they follow each other fast, but Codex takes an Enter so soon after a text for pasted.
const BETWEEN_KEYS: Duration = Duration::from_millis(120);
const BEFORE_ENTER: Duration = Duration::from_millis(900);
/// How long a screen may take to show what we wait for.
const PATIENCE: Duration = Duration::from_secs(40);

/// One terminal with one program; it ends with this value.
pub(super) struct Terminal {
    /// The name of a tmux server of our own.
    server: String,
    /// Where the last screen is kept, for whoever looks for the reason of a failure.
    kept: PathBuf,
}

/// Whether tmux is installed.
pub(super) fn is_available() -> bool {
    Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

impl Terminal {
    /// Starts a program, given as words.
    pub(super) fn start(words: &[impl AsRef<OsStr>], kept: PathBuf) -> Result<Terminal> {
        let terminal = Terminal { server: format!("scrollback-agents-{}", std::process::id()), kept };
        let mut tmux = terminal.tmux(&["-f", "/dev/null", "new-session", "-d"]);
        succeed(tmux.args(SIZE).arg("--").args(words))?;
        // Without it, tmux takes an Escape and the key after it for one key.
        succeed(terminal.tmux(&["set-option", "-s"]).args(["escape-time", "0"]))?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.server]).args(arguments);
        tmux
    }

    /// What is on the screen; nothing once the program has ended.
    pub(super) fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p"]).output();
        shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    /// Types a text.
    pub(super) fn text(&self, text: &str) -> Result<()> {
        succeed(self.tmux(&["send-keys", "-l", "--"]).arg(text))?;
        sleep(BETWEEN_KEYS);
        Ok(())
    }

    /// Presses a key, by the name that tmux has for it.
    pub(super) fn key(&self, name: &str) -> Result<()> {
        sleep(if name == "Enter" { BEFORE_ENTER } else { Duration::ZERO });
        succeed(self.tmux(&["send-keys", "--"]).arg(name))?;
        sleep(BETWEEN_KEYS);
        Ok(())
    }

    /// Waits until the screen stays the same.
    pub(super) fn rest(&self) {
        let (start, mut seen, mut since) = (Instant::now(), self.screen(), Instant::now());
        while since.elapsed() < REST && start.elapsed() < PATIENCE {
            sleep(POLL_INTERVAL);
            let now = self.screen();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Waits until something is so.
    pub(super) fn wait(&self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let start = Instant::now();
        while !is_so() {
            if start.elapsed() > PATIENCE {
                let screen = self.screen();
                std::fs::write(&self.kept, &screen)?;
                return Err(format!("waited in vain for {what}; the screen is in {}", self.kept.display()).into());
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the program has ended.
    pub(super) fn end(self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            if !self.tmux(&["has-session"]).stderr(Stdio::null()).status()?.success() {
                return Ok(());
            }
            sleep(POLL_INTERVAL);
        }
        self.wait("its end", || false)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server is ours alone; most often it has ended with its program.
        self.tmux(&["kill-server"]).stderr(Stdio::null()).status().ok();
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let Output { status, stderr, .. } = command.output().map_err(|error| format!("cannot start tmux: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("tmux: {}", String::from_utf8_lossy(&stderr).trim()).into()) }
}
