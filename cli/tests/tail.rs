//! `tail` on real files: it waits for what the test writes, and the test waits for what it prints.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;
use support::{TestEnv, line, talk};

/// No test needs as long; one that does has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A `tail` that runs.
struct Tail {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Tail {
    fn start(env: &TestEnv, args: &[&str]) -> Tail {
        let mut command = env.command(args);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Tail { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that holds some words, and gives it.
    fn until(&mut self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(error) => panic!("{error}: {words:?} did not come: {:#?}", self.seen),
            }
        }
    }

    /// Presses Ctrl-C, and gives the exit code and what was printed on standard error.
    fn interrupt(mut self) -> (Option<i32>, String, Vec<String>) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        self.seen.extend(self.lines.iter());
        (code, err, std::mem::take(&mut self.seen))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_ref()).unwrap();
}

fn user(id: &str, parent: &str, text: &str) -> String {
    line("user", id, Some(parent), text)
}

#[test]
fn a_session_is_followed_as_text() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "-n", "2"]);
    tail.until("Yes.");
    assert!(!tail.seen.iter().any(|line| line.contains("two and two")), "{:?}", tail.seen);
    // A line that is torn inside a character, and finished later.
    let next = user("u3", "a2", "Grüße");
    let (head, rest) = next.as_bytes().split_at(next.find('ü').unwrap() + 1);
    append(&path, head);
    append(&path, rest);
    tail.until("Grüße");
    append(&path, line("assistant", "a3", Some("u3"), "Back at you."));
    tail.until("Back at you.");
    let (code, _, seen) = tail.interrupt();
    assert_eq!(code, Some(0));
    let once = |words: &str| seen.iter().filter(|line| line.contains(words)).count();
    assert_eq!((once("Sure?"), once("Yes."), once("Grüße"), once("Back at you.")), (1, 1, 1, 1), "{seen:#?}");
}

#[test]
fn telling_begins_with_a_record_that_is_named() {
    let env = TestEnv::new();
    let path = env.session("s1", &(talk() + &line("assistant", "b2", Some("u2"), "No.")));
    let mut tail = Tail::start(&env, &["tail", "s1#a1", "--jsonl", "-n", "1"]);
    tail.until("No.");
    append(&path, user("u3", "b2", "Oh"));
    tail.until("Oh");
    let ids: Vec<String> = applied(&tail.interrupt().2).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, ["a1", "u2", "b2", "u3"]);
    for (name, code) in [("s1#a2", 2), ("s1#nope", 1), ("-#a1", 2)] {
        let ran = env.run_with(&["tail", name], talk().as_bytes());
        assert_eq!(ran.code, code, "{}", ran.all());
    }
}

#[test]
fn of_a_growing_turn_only_what_is_new_is_printed() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "--poll"]);
    tail.until("Yes.");
    append(&path, user("u3", "a2", "List it"));
    let call = r#"{"type":"assistant","uuid":"a3","parentUuid":"u3","message":{"role":"assistant","content":"Looking.","toolCalls":[{"id":"t1","name":"Bash","arguments":{"command":"ls -l"}}]}}"#;
    append(&path, format!("{call}\n"));
    assert!(tail.until("ls -l").contains('…'));
    let result = r#"{"type":"tool_result","uuid":"r3","parentUuid":"a3","toolResults":[{"toolCallId":"t1","content":"README.md"}]}"#;
    append(&path, format!("{result}\n"));
    assert!(tail.until("ls -l").contains('✓'));
    append(&path, line("assistant", "a4", Some("r3"), "There it is."));
    tail.until("There it is.");
    let (code, _, seen) = tail.interrupt();
    assert_eq!(code, Some(0));
    let count = |words: &str| seen.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("Looking."), count("ls -l"), count("There it is.")), (1, 2, 1), "{seen:#?}");
}

#[test]
fn updates_are_json_and_a_rewind_takes_back() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "--jsonl", "-n", "1"]);
    let first: Value = serde_json::from_str(&tail.until("message")).unwrap();
    assert_eq!(
        (&first["type"], &first["session"], &first["message"]["id"]),
        (&"message".into(), &"s1".into(), &"a2".into())
    );
    append(&path, line("assistant", "b2", Some("u1"), "It depends."));
    let removed: Value = serde_json::from_str(&tail.until("removed")).unwrap();
    assert_eq!(removed["ids"], serde_json::json!(["a2"]));
    assert!(tail.until("It depends.").contains(r#""id":"b2""#));
    assert_eq!(tail.interrupt().0, Some(0));
}

#[test]
fn a_file_may_be_cut_replaced_and_deleted() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "--jsonl"]);
    tail.until(r#""id":"a2""#);
    fs::write(&path, line("user", "u1", None, "What is two and two?")).unwrap();
    tail.until(r#""change":"rewritten""#);
    tail.until("removed");
    let beside = path.with_file_name("beside");
    fs::write(&beside, talk()).unwrap();
    fs::rename(&beside, &path).unwrap();
    tail.until(r#""change":"replaced""#);
    tail.until(r#""id":"a2""#);
    append(&path, user("u3", "a2", "On it goes"));
    tail.until("On it goes");
    fs::remove_file(&path).unwrap();
    tail.until(r#""change":"gone""#);
    append(&path, line("user", "z1", None, "Back again"));
    tail.until(r#""change":"appeared""#);
    tail.until("Back again");
    assert_eq!(tail.interrupt().0, Some(0));
}

/// What somebody has who applies updates: the session and the id of each message.
fn applied(lines: &[String]) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for update in lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let session = update["session"].as_str().unwrap().to_owned();
        let id = |id: &Value| (session.clone(), id.as_str().unwrap().to_owned());
        match update["type"].as_str().unwrap() {
            "message" if !messages.contains(&id(&update["message"]["id"])) => {
                messages.push(id(&update["message"]["id"]))
            }
            "removed" => {
                for gone in update["ids"].as_array().unwrap().iter().map(id) {
                    assert!(messages.contains(&gone), "{gone:?} is not there: {messages:?}");
                    messages.retain(|message| *message != gone);
                }
            }
            _ => {}
        }
    }
    messages
}

#[test]
fn what_is_removed_is_named_as_it_was_told() {
    let env = TestEnv::new();
    let path = env.session("folder", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "--jsonl"]);
    tail.until(r#""id":"a2""#);
    fs::remove_file(&path).unwrap();
    tail.until(r#""change":"gone""#);
    append(&path, "");
    tail.until("removed");
    append(&path, line("user", "z1", None, "Back again"));
    tail.until("Back again");
    let (_, _, seen) = tail.interrupt();
    assert_eq!(applied(&seen), [("s1".to_owned(), "z1".to_owned())], "{seen:#?}");
    let sessions: Vec<Value> =
        seen.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["session"].take()).collect();
    assert!(sessions.iter().all(|session| session == "s1"), "{seen:#?}");
}

/// A session of Claude Code, whose first line could be another's.
fn claude_talk() -> [String; 2] {
    let line = |kind: &str, id: &str, parent: Value, content: Value| {
        let line = serde_json::json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "c1", "timestamp": "2026-11-15T10:00:00Z",
            "message": {"role": kind, "content": content},
        });
        format!("{line}\n")
    };
    let thought = serde_json::json!([{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Four."}]);
    [line("user", "p1", Value::Null, "Two and two?".into()), line("assistant", "q1", "p1".into(), thought)]
}

#[test]
fn whose_a_file_is_shows_while_it_grows() {
    let env = TestEnv::new();
    let path = env.work().join("x.jsonl");
    let [prompt, answer] = claude_talk();
    append(&path, "");
    let mut tail = Tail::start(&env, &["tail", "x.jsonl", "--jsonl", "--poll"]);
    std::thread::sleep(Duration::from_millis(300));
    append(&path, &prompt);
    tail.until("Two and two?");
    append(&path, &answer);
    assert!(tail.until("Hm.").contains(r#""type":"reasoning""#));
    assert_eq!(applied(&tail.interrupt().2), [("c1".to_owned(), "p1".to_owned()), ("c1".to_owned(), "q1".to_owned())]);
    // The same through a pipe.
    let mut child = env.command(&["tail", "-", "--jsonl"]).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(prompt.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    pipe.write_all(answer.as_bytes()).unwrap();
    drop(pipe);
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(out.contains(r#""type":"reasoning""#), "{out}");
    assert_eq!(applied(&out.lines().map(str::to_owned).collect::<Vec<_>>()).len(), 2, "{out}");
}

#[test]
fn all_sessions_are_followed_also_those_that_begin_later() {
    for args in [&["tail", "--all", "-n", "2"][..], &["tail", "--all", "-n", "2", "--poll"][..]] {
        let env = TestEnv::new();
        let named = |lines: String, id: &str| lines.replace(r#""sessionId":"s1""#, &format!(r#""sessionId":"{id}""#));
        let first = env.session("first-session", &named(talk(), "first-session"));
        let mut tail = Tail::start(&env, args);
        let mut told = BufReader::new(tail.child.stderr.take().unwrap());
        let mut note = String::new();
        told.read_line(&mut note).unwrap();
        assert!(note.contains("Following What is two and two?"), "{note}");
        tail.until("Yes.");
        append(&first, user("u3", "a2", "Still there?"));
        assert!(tail.until("Still there?").starts_with("first-se │"));
        env.session("second-session", &named(line("user", "q", None, "A new one"), "second-session"));
        assert!(tail.until("A new one").starts_with("second-s │"));
        assert!(!tail.seen.iter().any(|line| line.contains("Four.")), "{:?}", tail.seen);
        tail.child.stderr = None;
        assert!(Command::new("kill").args(["-INT", &tail.child.id().to_string()]).status().unwrap().success());
        assert_eq!(tail.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn an_answer_comes_with_its_prompt_and_sub_agents_only_when_asked_for() {
    for sidechains in [false, true] {
        let env = TestEnv::new();
        let [prompt, answer] = claude_talk();
        let folder = env.home().join(".claude/projects/p");
        fs::create_dir_all(folder.join("c1/subagents")).unwrap();
        let path = folder.join("c1.jsonl");
        append(&path, prompt);
        env.session("s1", &talk().replace("T10", "T11"));
        let args = ["tail", "--all", "--poll", "--sidechains"];
        let mut tail = Tail::start(&env, &args[..if sidechains { 4 } else { 3 }]);
        tail.until("Yes.");
        let aside = claude_talk().concat().replace(r#""uuid""#, r#""isSidechain":true,"agentId":"x1","uuid""#);
        append(&folder.join("c1/subagents/agent-x1.jsonl"), aside.replace("Two and two?", "From above"));
        if sidechains {
            assert!(tail.until("From above").starts_with("agent-x1 of c1 "), "{:?}", tail.seen);
        }
        std::thread::sleep(Duration::from_millis(600));
        append(&path, answer);
        tail.until("Two and two?");
        tail.until("Four.");
        let above = tail.seen.iter().any(|line| line.contains("From above"));
        assert_eq!(above, sidechains, "{:?}", tail.seen);
    }
}

#[test]
fn a_file_that_is_emptied_begins_anew() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    env.session("s2", &talk().replace("T10", "T11").replace("Yes.", "Newest.").replace(r#""s1""#, r#""s2""#));
    let mut tail = Tail::start(&env, &["tail", "--all", "--poll"]);
    tail.until("Newest.");
    fs::write(&path, "").unwrap();
    std::thread::sleep(Duration::from_millis(700));
    append(&path, line("user", "z1", None, "Shorter"));
    tail.until("Shorter");
}

#[test]
fn a_file_that_is_moved_is_nothing_new() {
    for form in ["--jsonl", "--full"] {
        let env = TestEnv::new();
        let [still, followed] = [("still", "Standing"), ("followed", "Going")].map(|(id, words)| {
            let lines = talk().replace(r#""sessionId":"s1""#, &format!(r#""sessionId":"{id}""#));
            env.session(id, &lines.replace("two and two", words))
        });
        // The newest is told of from the beginning, the other stands still.
        append(&followed, user("u3", "a2", "Newest").replace("T10", "T11").replace(r#""s1""#, r#""followed""#));
        let mut tail = Tail::start(&env, &["tail", "--all", "--poll", "-n", "9", form]);
        tail.until("Newest");
        let home = env.home().join(".sage/sessions");
        fs::rename(still.parent().unwrap(), home.join("still-moved")).unwrap();
        fs::rename(followed.parent().unwrap(), home.join("followed-moved")).unwrap();
        std::thread::sleep(Duration::from_millis(1600));
        let moved = home.join("followed-moved/messages.jsonl");
        append(&moved, line("assistant", "a3", Some("u3"), "And on.").replace(r#""s1""#, r#""followed""#));
        tail.until("And on.");
        let seen = tail.interrupt().2;
        let count = |words: &str| seen.iter().filter(|line| line.contains(words)).count();
        assert_eq!((count("Going"), count("Newest"), count("And on."), count("Standing")), (1, 1, 1, 0), "{seen:#?}");
    }
}

#[test]
fn the_sessions_of_a_project_are_followed() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "-n", "1"]);
    tail.until("Yes.");
    append(&path, user("u3", "a2", "And now?"));
    tail.until("And now?");
    env.session(
        "s2",
        &line("user", "q", None, "Another session").replace(r#""sessionId":"s1""#, r#""sessionId":"s2""#),
    );
    tail.until("session s2");
    tail.until("Another session");
    let (code, err, _) = tail.interrupt();
    assert_eq!(code, Some(0));
    assert!(err.contains("Following"), "{err}");
}

#[test]
fn chunks_are_those_of_the_sdk() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut tail = Tail::start(&env, &["tail", "s1", "--chunks", "-n", "1"]);
    tail.until("Yes.");
    append(&path, user("u3", "a2", "Go on"));
    append(&path, line("assistant", "a3", Some("u3"), "Gladly."));
    tail.until("Gladly.");
    let (code, _, seen) = tail.interrupt();
    assert_eq!(code, Some(0));
    let kinds: Vec<String> = seen
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    let end = &kinds[kinds.len() - 6..];
    assert_eq!(end, ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"], "{kinds:?}");
}

#[test]
fn a_reader_that_leaves_ends_it_in_peace() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let mut child = env.command(&["tail", "s1", "--poll"]).stdin(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let end = Instant::now() + PATIENCE;
    let mut at = 0;
    let code = loop {
        append(&path, user(&format!("x{at}"), "a2", "more"));
        at += 1;
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        assert!(Instant::now() < end, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(code, Some(0));
}

#[test]
fn what_is_piped_in_is_told_to_its_end() {
    let env = TestEnv::new();
    let ran = env.run_with(&["tail", "-", "--jsonl"], talk().as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(ran.out.lines().count(), 4, "{}", ran.out);
    let none = env.run_with(&["tail", "-"], b"\x00 garbage {\n");
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{}", none.all());
}

/// What a person did at the agent's screen is shown as `show` shows it, and ids are short.
#[test]
fn what_a_person_did_is_told_as_that() {
    let env = TestEnv::new();
    let line = |at: usize, kind: &str, content: &str| {
        let id = |at: usize| format!("ece64bda-90a1-4c1f-9a6e-0c84a1d1c2f{at}");
        let (id, parent) = (id(at), serde_json::json!((at > 1).then(|| id(at - 1))));
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":{parent},"sessionId":"s",{kind}"message":{{"role":"user","content":"{content}"}},"timestamp":"2026-11-15T10:00:00Z"}}"#
        ) + "\n"
    };
    let lines = [
        line(1, "", "<command-name>/rename</command-name>\\n<command-args>Tide talk</command-args>"),
        line(2, "", "<local-command-stdout>Session renamed to: Tide talk</local-command-stdout>"),
        line(3, "", "<bash-input>git status</bash-input>"),
        line(4, "", "<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>"),
        line(5, r#""origin":{"kind":"human"},"#, "When is high water?"),
    ];
    let ran = env.run_with(&["tail", "-", "--dialect", "claude-code"], lines.concat().as_bytes());
    assert_snapshot!(ran.out.trim(), @"
    ▌ you  15 Nov 2026 10:00 · ece64bda

      /rename Tide talk

      Session renamed to: Tide talk

    ▌ you  15 Nov 2026 10:00 · ece64bda

      ! git status

      clean

    ▌ you  15 Nov 2026 10:00 · ece64bda

      When is high water?
    ");
}

/// Ids that one moment made begin alike: what `tail` prints still names one session, and one record however many follow.
#[test]
fn the_ids_of_sessions_and_records_that_begin_alike_can_be_typed() {
    let env = TestEnv::new();
    let id = |number: u32| format!("0190f0e2-aaaa-7000-8000-{number:012}");
    let session =
        |number: u32, lines: String| env.session(&id(number), &lines.replace("\"s1\"", &format!("\"{}\"", id(number))));
    let first = session(1, line("user", &id(10), None, "One"));
    session(2, line("user", &id(20), None, "Two"));
    let mut tail = Tail::start(&env, &["tail", "--all", "--poll"]);
    tail.until(" One");
    let next = line("assistant", &id(11), Some(&id(10)), "Three").replace("\"s1\"", &format!("\"{}\"", id(1)));
    append(&first, next);
    tail.until("Three");
    let (_, _, seen) = tail.interrupt();
    let headers: Vec<(&str, &str)> = seen
        .iter()
        .filter(|line| line.contains('▌'))
        .map(|line| (line.split(' ').next().unwrap(), line.rsplit(' ').next().unwrap()))
        .collect();
    assert_eq!(headers.len(), 2, "{seen:?}");
    for (session, record) in headers {
        let ran = env.run(&["show", &format!("{session}#{record}")]);
        assert_eq!(ran.code, 0, "{session}#{record}: {}", ran.all());
    }
}

#[test]
fn chunks_of_all_sessions_cannot_be_meant() {
    let ran = TestEnv::new().run(&["tail", "--all", "--chunks"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
}

#[test]
fn a_finished_agent_is_told_once_and_runs_a_command() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    let told = env.work().join("told");
    let command = format!("echo \"$SCROLLBACK_EVENT $SCROLLBACK_SESSION $SCROLLBACK_TEXT\" >> {}", told.display());
    let args = ["tail", "s1", "--jsonl", "--poll", "--notify", "--notify-command", &command];
    let mut tail = Tail::start(&env, &args);
    tail.until("Yes.");
    append(&path, user("u3", "a2", "And three?"));
    append(&path, line("assistant", "a3", Some("u3"), "Six."));
    tail.until("\"notice\"");
    let (code, _, seen) = tail.interrupt();
    assert_eq!(code, Some(0));
    let notices: Vec<&String> = seen.iter().filter(|line| line.contains("\"notice\"")).collect();
    assert_eq!(notices, [r#"{"type":"notice","session":"s1","event":"finished","text":"Six."}"#]);
    // The command is not waited for.
    while !std::fs::read_to_string(&told).is_ok_and(|told| told.ends_with('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "finished s1 Six.\n");
}
