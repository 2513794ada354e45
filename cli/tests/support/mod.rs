//! A hermetic place to run the program in: own home, cleared environment, a clock that stands still.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod chats;
#[cfg(unix)]
pub(crate) mod server;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct TestEnv {
    dir: tempfile::TempDir,
}

/// What a run printed.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Exit code and both outputs, as a person sees them.
    pub(crate) fn all(&self) -> String {
        format!("{}[exit {}]\n{}", self.out, self.code, self.err)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }
}

impl TestEnv {
    pub(crate) fn new() -> TestEnv {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        std::fs::create_dir_all(dir.path().join("desk")).unwrap();
        // The one note that `list` prints only once.
        let mentioned = dir.path().join("home/.cache/scrollback/keep-mentioned");
        std::fs::create_dir_all(mentioned.parent().unwrap()).unwrap();
        std::fs::write(mentioned, "").unwrap();
        TestEnv { dir }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The directory that commands run in; no project.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("desk")
    }

    /// Puts a native session into the home.
    pub(crate) fn session(&self, id: &str, lines: &str) -> PathBuf {
        let path = self.home().join(".sage/sessions").join(id).join("messages.jsonl");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines).unwrap();
        path
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        self.ran(self.command(args), input)
    }

    /// Runs as somebody who may not do everything, where whoever runs the tests may, as root does.
    #[cfg(unix)]
    pub(crate) fn run_as_anybody(&self, args: &[&str]) -> Ran {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        use std::os::unix::process::CommandExt;
        const NOBODY: u32 = 65_534;
        let mut command = self.command(args);
        if std::fs::metadata(self.dir.path()).unwrap().uid() == 0 {
            std::fs::set_permissions(self.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
            // Nobody else may come to where the program was built.
            let program = self.dir.path().join("scrollback");
            // Copied by another process: a file that somebody holds open for writing cannot be run, and what runs beside this
            // test inherits what is open here.
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_scrollback")).arg(&program).status();
            assert!(copied.unwrap().success());
            command = self.with(Command::new(program), args);
            command.uid(NOBODY).gid(NOBODY);
        }
        self.ran(command, b"")
    }

    pub(crate) fn ran(&self, mut command: Command, input: &[u8]) -> Ran {
        let mut child = command.spawn().unwrap();
        // A program that does not read its input closes it: that is no failure of the test.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| self.neutral(&String::from_utf8(bytes).unwrap());
        Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.with(Command::new(env!("CARGO_BIN_EXE_scrollback")), args)
    }

    /// Another program in the same place.
    pub(crate) fn with(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(self.work()).env_clear();
        command.env("HOME", self.home()).env("TZ", "UTC").env("COLUMNS", "100");
        command.env("SCROLLBACK_NOW", "2026-11-15T12:00:00Z");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What a person sees: standard output and standard error on one terminal of this size, which `script` makes.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_terminal(&self, [rows, columns]: [u32; 2], command: &str) -> String {
        let program = env!("CARGO_BIN_EXE_scrollback");
        let size = format!("stty rows {rows} cols {columns}; {program} {command}");
        let mut command = self.with(Command::new("script"), &["-qec", &size, "/dev/null"]);
        command
            .env_remove("COLUMNS")
            .env("SCROLLBACK_PAGER", "sed s/^/paged:/")
            .env("NO_COLOR", "1")
            .env("SHELL", "/bin/sh")
            .env("PATH", "/usr/bin:/bin");
        self.ran(command, b"").out.replace('\r', "")
    }

    /// The same text on every machine.
    fn neutral(&self, text: &str) -> String {
        let real = self.dir.path().canonicalize().unwrap();
        let replace = |text: String, from: &Path, to: &str| text.replace(&*from.to_string_lossy(), to);
        let text = replace(text.to_owned(), &self.home(), "$HOME");
        let text = replace(text, &real.join("home"), "$HOME");
        replace(text, self.dir.path(), "$DIR")
    }
}

/// A native line.
pub(crate) fn line(kind: &str, id: &str, parent: Option<&str>, content: &str) -> String {
    let role = if kind == "tool_result" { "tool" } else { kind };
    let line = serde_json::json!({
        "type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-15T10:00:00Z", "sessionId": "s1", "version": "0.4.0",
        "format": 2, "context": {"cwd": "/gone/tide", "gitBranch": "main"}, "message": {"role": role, "content": content},
    });
    format!("{line}\n")
}

/// Two questions, two answers.
pub(crate) fn talk() -> String {
    [
        line("user", "u1", None, "What is two and two?"),
        line("assistant", "a1", Some("u1"), "Four."),
        line("user", "u2", Some("a1"), "Sure?"),
        line("assistant", "a2", Some("u2"), "**Yes.**"),
    ]
    .concat()
}
