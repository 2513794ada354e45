//! The example agent from outside: every command, every format, and kill -9 at any moment.
//!
//! The agent is this test program again, told by the environment to be it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "../../examples/chat.rs"]
#[expect(dead_code, reason = "its `main` is the example's own")]
mod chat;
mod endpoint;
mod kill;
mod refused;
mod stream;
#[path = "../support/mod.rs"]
mod support;
mod undo;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser;
use scrollback::dialect;
use scrollback::model::{Message, Part, Role};
use scrollback::session::{ReadOptions, Session, Source};
use serde_json::{Value, json};
use support::messages;

const ARGUMENTS: &str = "SCROLLBACK_CHAT_ARGUMENTS";
const FORMATS: [&str; 7] = ["native", "claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];

#[test]
fn is_the_agent() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    // The harness has begun a line.
    println!();
    let options = chat::Options::try_parse_from(["chat"].into_iter().chain(arguments.lines()));
    let chatted = chat::run(&options.unwrap_or_else(|failure| panic!("{failure}")));
    chatted.iter().for_each(|()| println!("bye"));
    chatted.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A working directory, a store and an endpoint that plays a script.
struct Place {
    folder: tempfile::TempDir,
    format: &'static str,
    endpoint: String,
}

/// What the agent said, and whether it ended well.
struct Spoken {
    out: String,
    err: String,
    is_well: bool,
}

impl Place {
    fn new(format: &'static str, script: &Value) -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        Place { folder, format, endpoint: endpoint::play(script) }
    }

    fn cwd(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    /// The agent, not started.
    fn agent(&self, more: &[&str]) -> Command {
        let store = self.folder.path().join("store").to_string_lossy().into_owned();
        let mut arguments = vec!["--format", self.format, "--store", &store, "--with", "ada@example.org"];
        arguments.extend(more);
        let mut agent = Command::new(std::env::current_exe().unwrap());
        agent.args(["--exact", "is_the_agent", "--nocapture", "--test-threads=1"]);
        agent.env(ARGUMENTS, arguments.join("\n")).current_dir(self.cwd());
        agent.env("OPENAI_BASE_URL", &self.endpoint).env("MODEL", "m-1");
        agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        agent
    }

    fn chat(&self, more: &[&str], lines: &str) -> Spoken {
        speak(&mut self.agent(more), lines)
    }

    /// The sessions' files, archived ones too, the newest first.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().join("store")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
        found
    }

    fn read(&self, file: &Path) -> Session {
        let dialect = dialect::named(self.format).unwrap();
        Session::open(&Source::file(dialect, file), &ReadOptions::plain(jiff::Timestamp::now())).unwrap()
    }

    fn newest(&self) -> Session {
        self.read(&self.files()[0])
    }
}

fn speak(agent: &mut Command, lines: &str) -> Spoken {
    let mut agent = agent.spawn().unwrap();
    agent.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = agent.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Spoken { out: text(output.stdout), err: text(output.stderr), is_well: output.status.success() }
}

impl Spoken {
    /// The session that it spoke of last.
    fn session(&self) -> &str {
        self.out.lines().rev().find_map(|line| line.strip_prefix("Session ")).unwrap()
    }

    fn well(self) -> Spoken {
        assert!(self.is_well && self.out.contains("bye"), "{}\n{}", self.out, self.err);
        self
    }
}

/// What people see of a session: who said what, in order.
fn said(messages: &[Message]) -> Vec<String> {
    let mut said = Vec::new();
    for message in messages {
        let who = if message.role == Role::User { "user" } else { "model" };
        for part in &message.parts {
            match part {
                Part::Text(text) => said.push(format!("{who}: {}", text.text.trim())),
                Part::Tool(call) => said.push(format!("{who} calls {}", call.name)),
                _ => {}
            }
        }
    }
    said
}

fn three_answers() -> Value {
    json!([{"text": "The first answer."}, {"text": "The second answer."}, {"text": "The third answer."}])
}

#[test]
fn a_session_goes_on_in_every_format() {
    for format in FORMATS {
        let place = Place::new(format, &three_answers());
        let first = place.chat(&[], "one\n").well();
        // Which answer is played depends on how many the model is told of.
        let second = place.chat(&["--continue"], "two\n").well();
        assert!(second.out.contains("it continues after its last answer."), "{format}: {}", second.out);
        assert_eq!(second.session(), first.session(), "{format}");
        let third = place.chat(&["--resume", first.session()], "three\n").well();
        assert_eq!(third.session(), first.session(), "{format}");
        assert_eq!(place.files().len(), 1, "{format}");
        let session = place.newest();
        assert!(session.issues().is_empty(), "{format}: {:?}", session.issues());
        let expected = ["user: one", "model: The first answer.", "user: two", "model: The second answer."];
        let whole = said(&messages(&session));
        assert_eq!(whole[..4], expected, "{format}");
        assert_eq!(whole[4..], ["user: three", "model: The third answer."], "{format}");
    }
}

#[test]
fn tools_stay_in_the_working_directory_and_are_recorded() {
    let read = |path: &str| json!({"name": "read_file", "input": {"path": path}});
    let write = |path: &str| json!({"name": "write_file", "input": {"path": path, "content": "ebb"}});
    for format in FORMATS {
        let outside = [read("../secret"), read("/etc/hostname"), write("../x"), write("link"), read("gone")];
        let script = json!([
            {"think": "Let me look.", "text": "I look.", "calls": [read("tide.txt"), write("new.txt")]},
            {"calls": outside},
            {"text": "It is high."},
        ]);
        let place = Place::new(format, &script);
        std::fs::write(place.cwd().join("tide.txt"), "flood").unwrap();
        std::fs::write(place.folder.path().join("secret"), "pearl").unwrap();
        std::os::unix::fs::symlink("../secret", place.cwd().join("link")).unwrap();
        let spoken = place.chat(&[], "How is the tide?\n").well();
        assert!(spoken.out.contains("[read_file \"flood\"]"), "{format}: {}", spoken.out);
        assert!(!spoken.out.contains("pearl"), "{format}");
        assert_eq!(std::fs::read_to_string(place.cwd().join("new.txt")).unwrap(), "ebb");
        assert_eq!(std::fs::read_to_string(place.folder.path().join("secret")).unwrap(), "pearl");
        assert!(!place.folder.path().join("x").exists());
        let session = place.newest();
        let snapshots: Vec<_> =
            session.records().filter(|record| record.kind() == scrollback::Kind::Snapshot).collect();
        assert_eq!(snapshots.len(), usize::from(format == "native"), "{format}: only new.txt was changed");
        let whole = said(&messages(&session));
        assert_eq!(whole.last().unwrap(), "model: It is high.", "{format}");
        if format != "fluux" {
            assert_eq!(whole.iter().filter(|said| said.starts_with("model calls")).count(), 7, "{format}: {whole:?}");
        }
    }
}

#[test]
fn a_model_is_told_that_a_file_goes_on() {
    const LIMIT: usize = 256 * 1024;
    for (length, is_cut) in [(LIMIT, false), (LIMIT + 1, true)] {
        let call = json!({"name": "read_file", "input": {"path": "long.txt"}});
        let place = Place::new("native", &json!([{"calls": [call]}, {"text": "Long."}]));
        std::fs::write(place.cwd().join("long.txt"), "x".repeat(length)).unwrap();
        let spoken = place.chat(&[], "How long is it?\n").well();
        assert_eq!(spoken.out.contains("the file is longer: these are its first 262144 bytes"), is_cut, "{length}");
    }
}

#[test]
fn each_command_does_what_it_says() {
    let place = Place::new("native", &three_answers());
    let spoken = place.chat(&[], "one\n/title Tides\ntwo\n/rewind 1\nthree\n").well();
    let session = place.newest();
    assert_eq!(session.title().unwrap().text, "Tides");
    let expected = ["user: one", "model: The first answer.", "user: three", "model: The second answer."];
    assert_eq!(said(&messages(&session)), expected);
    assert_eq!(session.heads().len(), 2, "what was left stays a branch");
    let before = std::fs::read(session.path()).unwrap();
    let forked = place.chat(&["--continue"], "/fork\nfour\n").well();
    assert_ne!(forked.session(), spoken.session());
    assert_eq!(std::fs::read(session.path()).unwrap(), before, "a fork leaves its source as it was");
    let fork = place.newest();
    assert_eq!(fork.forked_from(), Some(spoken.session()));
    assert_eq!(said(&messages(&fork))[4..], ["user: four", "model: The third answer."]);

    let anew = place.chat(&["--resume", spoken.session()], "/new\nfive\n").well();
    assert_eq!(said(&messages(&place.newest())), ["user: five", "model: The first answer."]);
    assert_ne!(anew.session(), forked.session());
}

#[test]
fn a_new_session_is_greeted_by_its_name_alone() {
    for format in FORMATS {
        let spoken = Place::new(format, &three_answers()).chat(&[], "/new\n").well();
        assert!(spoken.out.contains("Session "), "{format}: {}", spoken.out);
        assert!(!spoken.out.contains("nothing in it"), "{format}: {}", spoken.out);
    }
}

#[test]
fn a_unique_beginning_of_an_id_is_enough() {
    for format in FORMATS {
        let place = Place::new(format, &three_answers());
        let session = place.chat(&[], "one\n").well().session().to_owned();
        let beginning = &session[..session.len() - 2];
        let resumed = place.chat(&["--resume", beginning], "two\n").well();
        assert_eq!(resumed.session(), session, "{format}");
        assert_eq!(place.files().len(), 1, "{format}");
    }
    let place = Place::new("native", &three_answers());
    for session in ["tide-1", "tide-12", "tide-2"] {
        let folder = place.folder.path().join("store/sessions").join(session);
        std::fs::create_dir_all(&folder).unwrap();
        let said =
            json!({"type": "user", "uuid": "u", "sessionId": session, "message": {"role": "user", "content": "Hi"}});
        std::fs::write(folder.join("messages.jsonl"), format!("{said}\n")).unwrap();
    }
    assert_eq!(place.chat(&["--resume", "tide-1"], "").well().session(), "tide-1", "a whole id is no beginning");
    let several = place.chat(&["--resume", "tide-"], "one\n");
    assert!(!several.is_well && several.err.contains("\"tide-\" is ambiguous"), "{}", several.err);
}

#[test]
fn sessions_lie_where_the_command_looks_for_them() {
    for (variables, expected) in [
        (&[("HOME", "home")][..], "home/.local/share/scrollback/sessions"),
        (&[("HOME", "home"), ("XDG_DATA_HOME", "data")], "data/scrollback/sessions"),
        (&[("HOME", "home"), ("XDG_DATA_HOME", "data"), ("SCROLLBACK_HOME", "ours")], "ours/sessions"),
        (&[("HOME", "home"), ("XDG_DATA_HOME", ""), ("SCROLLBACK_HOME", "")], "home/.local/share/scrollback/sessions"),
    ] {
        let place = Place::new("native", &three_answers());
        let mut agent = place.agent(&[]);
        agent.env(ARGUMENTS, "");
        agent.env_remove("XDG_DATA_HOME").env_remove("SCROLLBACK_HOME");
        for (name, value) in variables {
            let whole = place.folder.path().join(value);
            agent.env(name, if value.is_empty() { Path::new("") } else { &whole });
        }
        speak(&mut agent, "one\n").well();
        assert!(place.folder.path().join(expected).is_dir(), "{variables:?}");
    }
}

#[test]
fn a_session_that_was_written_to_a_moment_ago_is_warned_of_unless_its_sidecar_says_that_it_is_closed() {
    const WARNING: &str = "warning: this session was written to in the last minute";
    for (format, has_sidecar) in [("native", true), ("claude-code", false)] {
        let place = Place::new(format, &three_answers());
        assert!(!place.chat(&[], "one\n").well().err.contains(WARNING), "{format}");
        assert_eq!(place.chat(&["--continue"], "two\n").well().err.contains(WARNING), !has_sidecar, "{format}");
    }
}

#[test]
fn a_checkpoint_is_a_branch() {
    for format in ["native", "claude-code", "qwen-code"] {
        let place = Place::new(format, &three_answers());
        let session = place.chat(&[], "one\ntwo\n").well().session().to_owned();
        let first_answer = messages(&place.newest())[1].id.clone();
        let point = format!("{session}#{first_answer}");
        place.chat(&["--resume", &point], "three\n").well();
        let expected = ["user: one", "model: The first answer.", "user: three", "model: The second answer."];
        let newest = place.newest();
        assert_eq!(said(&messages(&newest)), expected, "{format}");
        assert_eq!(newest.heads().len(), 2, "{format}: what came after it stays");
    }
    let place = Place::new("sage-el", &three_answers());
    let session = place.chat(&[], "one\ntwo\n").well().session().to_owned();
    let before = place.newest();
    let first = messages(&before)[0].id.clone();
    let refused = place.chat(&["--resume", &format!("{session}#{first}")], "three\n");
    assert!(!refused.is_well && refused.err.contains("cannot continue from"), "{}", refused.err);
    assert_eq!(messages(&place.newest()), messages(&before), "a line has no branches");
}

#[test]
fn a_new_session_leaves_the_old_one_whole() {
    for format in FORMATS {
        let place = Place::new(format, &three_answers());
        let spoken = place.chat(&[], "one\n/new\ntwo\n").well();
        let (files, of) = (place.files(), |file: &Path| said(&messages(&place.read(file))));
        assert_eq!(files.len(), 2, "{format}: {}", spoken.err);
        assert_eq!(of(&files[0]), ["user: two", "model: The first answer."], "{format}");
        assert_eq!(of(&files[1]), ["user: one", "model: The first answer."], "{format}");
    }
}

#[test]
fn a_session_with_one_person_is_not_gone_on_with_by_another() {
    let place = Place::new("fluux", &three_answers());
    for (with, prompt) in [("ada@example.org", "one"), ("bob@example.org", "two"), ("ada@example.org", "three")] {
        let spoken = place.chat(&["--with", with, "--continue"], &format!("{prompt}\n")).well();
        assert_eq!(spoken.session(), with);
    }
    let of =
        |with: &str| said(&messages(&place.read(&place.folder.path().join("store").join(with).join("history.jsonl"))));
    let expected = ["user: one", "model: The first answer.", "user: three", "model: The second answer."];
    assert_eq!(of("ada@example.org"), expected);
    assert_eq!(of("bob@example.org"), ["user: two", "model: The first answer."]);
}

#[test]
fn a_plain_start_goes_on_where_there_is_one_session_at_a_time() {
    for format in FORMATS {
        let place = Place::new(format, &three_answers());
        place.chat(&[], "one\n").well();
        place.chat(&[], "two\n").well();
        let expected = if matches!(format, "fluux" | "sage-el") { 1 } else { 2 };
        assert_eq!(place.files().len(), expected, "{format}");
    }
}
