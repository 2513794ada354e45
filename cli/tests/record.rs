//! `record`, end to end: lines in, acknowledgements out, a session on disk; killed, continued, branched.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Ran, TestEnv};

/// The acknowledgements, each a line of JSON.
fn acks(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Acknowledgements a person can read: ids as letters in the order of their appearance.
fn told(ran: &Ran) -> String {
    let mut ids: Vec<String> = Vec::new();
    let lines = acks(ran).into_iter().map(|mut ack| {
        ack.as_object_mut().unwrap().shift_remove("session");
        if let Some(id) = ack.get("id").and_then(Value::as_str).map(str::to_owned) {
            let at = ids.iter().position(|known| *known == id).unwrap_or(ids.len());
            if at == ids.len() {
                ids.push(id);
            }
            ack["id"] = char::from(b'a' + u8::try_from(at).unwrap()).to_string().into();
        }
        ack.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn session_of(ran: &Ran) -> String {
    acks(ran).iter().find_map(|ack| ack["session"].as_str()).unwrap().to_owned()
}

fn record(env: &TestEnv, args: &[&str], lines: &str) -> Ran {
    env.run_with(&[&["record"], args].concat(), lines.as_bytes())
}

/// The kinds and words of a session's branch.
fn branch(env: &TestEnv, name: &str) -> Vec<String> {
    let tree = env.run(&["tree", name, "--json"]).json();
    let records = tree["records"].as_array().unwrap().clone();
    let on_branch = records.iter().filter(|record| record["onBranch"] == true);
    on_branch
        .map(|record| format!("{}: {}", record["kind"].as_str().unwrap(), record["text"].as_str().unwrap_or_default()))
        .collect()
}

fn sessions(env: &TestEnv) -> Vec<PathBuf> {
    let root = env.home().join(".local/share/scrollback/sessions");
    std::fs::read_dir(root)
        .map(|all| all.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default()
}

#[test]
fn each_line_is_acknowledged_and_a_broken_one_is_refused_by_number() {
    let env = TestEnv::new();
    let ran = record(
        &env,
        &["--title", "Tides"],
        "{\"user\": \"When?\"}\nbroken\n\n{\"assistant\": {\"content\": \"At four.\", \"toolCalls\": [{\"id\": \"c\", \"name\": \"read\"}]}}\n{\"toolResult\": {\"callId\": \"c\", \"output\": 1, \"mood\": 2}}\n{\"delta\": {\"text\": \"Do\"}}\n{\"delta\": {\"text\": \"ne.\"}}\n{\"finish\": {}}\n{\"users\": 1}",
    );
    assert_eq!(ran.code, 1, "{}", ran.all());
    insta::assert_snapshot!(told(&ran), @r#"
    {"seq":1,"id":"a","durability":"sync"}
    {"seq":2,"error":"not JSON at column 1: expected value"}
    {"seq":4,"id":"b","durability":"flush"}
    {"seq":5,"id":"c","durability":"flush","losses":[{"what":"mood","kind":"dropped"}]}
    {"seq":6,"id":"d","durability":"flush"}
    {"seq":7,"id":"d","durability":"flush"}
    {"seq":8,"id":"d","durability":"sync"}
    {"seq":9,"error":"unknown key \"users\"; known keys: user, assistant, toolResult, system, todos, thinking, usage, title, compaction, error, rewind, snapshot, restore, delta, finish, message"}
    "#);
    let id = session_of(&ran);
    assert!(ran.err.contains(&format!("scrollback record --resume {id}")), "{}", ran.err);
    let show = env.run(&["show", &id]);
    assert!(show.out.starts_with("Tides\n"), "{}", show.all());
    assert_eq!(branch(&env, &id), ["user: When?", "assistant: At four.", "tool-result: 1", "assistant: Done."]);
}

#[test]
fn no_input_leaves_nothing_behind() {
    let env = TestEnv::new();
    let framing = "{\"type\": \"start\"}\n{\"type\": \"start-step\"}\n\ndata: [DONE]\n";
    for (input, told) in [("", ""), ("\n\n", ""), (framing, "{\"seq\":1}\n{\"seq\":2}\n{\"seq\":4}\n")] {
        let ran = record(&env, &[], input);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, told, ""));
    }
    let ran = record(&env, &[], "nothing good\n");
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(!env.home().join(".local").exists());
}

#[test]
fn a_session_is_gone_on_with_by_name_or_as_the_newest() {
    let env = TestEnv::new();
    let first = record(&env, &["--id", "mine"], "{\"user\": \"One\"}\n");
    let question = acks(&first)[0]["id"].as_str().unwrap().to_owned();
    let newest = record(&env, &["--continue", "--json"], "{\"assistant\": \"1\"}\n");
    assert_eq!((newest.code, session_of(&newest).as_str()), (0, "mine"), "{}", newest.all());
    assert_eq!(newest.err, "", "with --json nothing is said beside the data");
    let named = record(&env, &["--resume", "min"], "{\"user\": \"Two\"}\n");
    assert_eq!(session_of(&named), "mine");
    let branched = record(&env, &["--checkpoint", &format!("mine#{question}")], "{\"assistant\": \"one\"}\n");
    assert_eq!(branched.code, 0, "{}", branched.all());
    assert_eq!(branch(&env, "mine"), ["user: One", "assistant: one"]);
    let tree = env.run(&["tree", "mine"]);
    assert!(tree.out.contains("← earlier branch") && tree.out.contains("← here"), "{}", tree.out);
    let back = format!(
        "{{\"rewind\": {{\"to\": \"{question}\", \"reason\": \"again\"}}}}\n{{\"assistant\": \"I\"}}\n{{\"rewind\": \"nowhere\"}}\n"
    );
    let rewound = record(&env, &["--resume", "mine"], &back);
    assert_eq!(rewound.code, 1, "{}", rewound.all());
    assert_eq!(branch(&env, "mine"), ["user: One", "rewind: again", "assistant: I"]);
}

#[test]
fn what_is_not_there_cannot_be_gone_on_with() {
    let env = TestEnv::new();
    let none = record(&env, &["--continue", "--id", "x"], "");
    assert_eq!(none.code, 2, "they exclude each other");
    for (args, why) in [
        (["--dialect", "nope"], "unknown dialect"),
        (["--id", "../x"], "invalid session name"),
        (["--id=-x", "--json"], "it starts with a -"),
        (["--title", ""], "a title is one line"),
        (["--title", "two\nlines"], "a title is one line"),
        (["--jid", "a@example.org"], "use --dialect fluux"),
        (["--dialect", "fluux"], "a Fluux session needs a person or a room"),
    ] {
        let ran = record(&env, &args, "{\"user\": \"q\"}\n");
        assert!(ran.all().contains(why), "{args:?}: {}", ran.all());
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(sessions(&env).is_empty(), "{args:?}");
        // It is told before anything is said.
        assert!(record(&env, &args, "").all().contains(why), "{args:?}");
    }
    for args in [["--resume", "nope"], ["--checkpoint", "nope#x"], ["--resume", "@"]] {
        let ran = record(&env, &args, "");
        assert_eq!(ran.code, 1, "nothing was found: {args:?} {}", ran.all());
    }
    let ran = record(&env, &["--continue"], "{\"user\": \"q\"}\n");
    assert_eq!(ran.code, 0);
    assert!(ran.err.starts_with("warning: no session of this project to continue; a new one is created\n"));
    let named = session_of(&ran);
    for (record_name, code) in [("", 2), ("#nope", 1)] {
        let ran = record(&env, &["--checkpoint", &format!("{named}{record_name}")], "{\"user\": \"q\"}\n");
        assert_eq!(ran.code, code, "{}", ran.all());
    }
    assert_eq!(branch(&env, &named), ["user: q"]);
}

#[test]
fn a_store_that_is_not_there_is_made() {
    let env = TestEnv::new();
    let ran = record(&env, &["--store", "nowhere/yet", "--id", "mine"], "{\"user\": \"q\"}\n");
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert!(env.work().join("nowhere/yet/sessions/mine/messages.jsonl").is_file());
    assert!(sessions(&env).is_empty());
}

#[test]
fn thinking_words_durability_and_the_agents_name_are_taken() {
    let env = TestEnv::new();
    let args = ["--thinking-words", "--durability", "flush", "--agent", "tidal/1.2", "--project", "elsewhere"];
    let ran = record(&env, &args, "{\"user\": \"ultrathink\"}\n");
    assert_eq!(acks(&ran)[0]["durability"], "flush");
    let log = sessions(&env)[0].join("messages.jsonl");
    let line: Value = serde_json::from_str(std::fs::read_to_string(log).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!((&line["version"], &line["thinkingMetadata"]["level"]), (&"tidal/1.2".into(), &"high".into()));
    assert!(line["context"]["cwd"].as_str().unwrap().ends_with("elsewhere"), "{line}");
}

/// A recording that is still going on.
struct Live {
    child: Child,
    acks: BufReader<ChildStdout>,
}

impl Live {
    fn start(env: &TestEnv, args: &[&str]) -> Live {
        let mut child = env.command(&[&["record"], args].concat()).stderr(Stdio::null()).spawn().unwrap();
        let acks = BufReader::new(child.stdout.take().unwrap());
        Live { child, acks }
    }

    /// Says a line and waits for its acknowledgement.
    fn say(&mut self, line: &str) -> Value {
        self.send(line);
        let mut ack = String::new();
        self.acks.read_line(&mut ack).unwrap();
        serde_json::from_str(&ack).unwrap()
    }

    fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9_and_can_be_gone_on_with() {
    let env = TestEnv::new();
    for round in 0..20 {
        let args: &[&str] = if round == 0 { &["--id", "killed"] } else { &["--continue"] };
        let mut live = Live::start(&env, args);
        let mut last = live.say(&format!("{{\"user\": \"q{round}\"}}"));
        for _ in 0..round {
            // A number, or a word that is not complete, would be held back for a second.
            last = live.say("{\"delta\": {\"text\": \"tide \"}}");
        }
        // More is under way when it dies.
        live.send("{\"delta\": {\"text\": \"perhaps\"}}");
        live.child.kill().unwrap();
        live.child.wait().unwrap();
        let tree = env.run(&["tree", "killed", "--json"]).json();
        assert_eq!(tree["issues"], Value::Array(vec![]), "round {round}");
        let records = tree["records"].as_array().unwrap();
        let known = records
            .iter()
            .find(|record| record["id"] == last["id"])
            .unwrap_or_else(|| panic!("round {round}: {last}"));
        assert_eq!(known["onBranch"], true);
        let said = "tide ".repeat(round);
        assert!(
            round == 0
                || known["text"].as_str().unwrap().starts_with(said.trim_end())
                || known["text"].as_str().unwrap().starts_with(&said),
            "round {round}: {known}"
        );
        assert_eq!(tree["heads"].as_array().unwrap().len(), 1, "each goes on where the one before ended");
    }
}

#[test]
fn a_stop_finishes_what_is_held() {
    for signal in ["-INT", "-TERM"] {
        let env = TestEnv::new();
        let mut live = Live::start(&env, &["--id", "stopped"]);
        live.say("{\"user\": \"q\"}");
        live.say("{\"delta\": {\"text\": \"unfinished\"}}");
        let pid = live.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let patience = Instant::now() + Duration::from_secs(20);
        while live.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "{signal} did not end it");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(live.child.wait().unwrap().code(), Some(0), "{signal}");
        assert_eq!(branch(&env, "stopped"), ["user: q", "assistant: unfinished"]);
        let told = std::fs::read_to_string(sessions(&env)[0].join("metadata.json")).unwrap();
        assert!(told.contains("\"completed\""), "{told}");
    }
}

#[test]
fn nobody_reads_the_acknowledgements_and_everything_is_recorded() {
    let env = TestEnv::new();
    let mut child = env.command(&["record", "--id", "unheard"]).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    for count in 0..100 {
        writeln!(input, "{{\"user\": \"{count}\"}}").unwrap();
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(branch(&env, "unheard").len(), 100);
}

#[test]
fn a_line_is_acknowledged_before_the_next_one_comes() {
    let env = TestEnv::new();
    let mut live = Live::start(&env, &[]);
    assert_eq!(live.say("{\"user\": \"q\"}")["seq"], 1);
    assert_eq!(live.say("nonsense")["seq"], 2);
    assert_eq!(live.say("{\"assistant\": \"a\"}")["seq"], 3);
    drop(live.child.stdin.take());
    let mut rest = String::new();
    live.acks.read_to_string(&mut rest).unwrap();
    assert_eq!((live.child.wait().unwrap().code(), rest.as_str()), (Some(1), ""));
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_said() {
    let env = TestEnv::new();
    std::fs::write(env.work().join("file"), "").unwrap();
    let ran = record(&env, &["--store", "file"], "");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.all());
    assert!(ran.err.starts_with("scrollback: $DIR/desk/file: not a directory\nhint: "), "{}", ran.err);
    let ran = record(&env, &["--store", "file", "--json"], "{\"user\": \"q\"}\n");
    assert!(ran.code == 2 && ran.err.starts_with("{\"error\":{\"kind\":\"io\""), "{}", ran.all());
    assert_eq!(record(&env, &["--id", "taken"], "{\"user\": \"q\"}\n").code, 0);
    let ran = record(&env, &["--id", "taken"], "");
    assert!(ran.code == 2 && ran.err.contains("already exists"), "{}", ran.all());
}

/// Runs a recording that may write files of so many bytes only, as if the disk were full then.
#[cfg(target_os = "linux")]
fn record_with_room_for(env: &TestEnv, blocks: u32, args: &str, lines: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_scrollback");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} record {args}");
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", &script])
        .current_dir(env.work())
        .env_clear()
        .env("HOME", env.home())
        .env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    env.ran(command, lines.as_bytes())
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_whose_first_record_does_not_fit_is_not_there() {
    let env = TestEnv::new();
    let lines = "{\"user\": \"q\"}\n{\"assistant\": \"a\"}\n";
    let ran = record_with_room_for(&env, 0, "--id mine", lines);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert_eq!(acks(&ran).iter().filter(|ack| ack["error"].is_string()).count(), 2, "{}", ran.all());
    assert!(sessions(&env).is_empty(), "{:?}", sessions(&env));
    let ran = record(&env, &["--id", "mine", "--title", "Tides"], lines);
    assert_eq!((ran.code, acks(&ran).len()), (0, 2), "{}", ran.all());
}

#[cfg(target_os = "linux")]
#[test]
fn what_did_not_fit_is_told_and_what_was_acknowledged_is_there() {
    let env = TestEnv::new();
    // What is too large for a block of 1024 bytes is refused, and smaller lines are taken.
    let large = format!("{{\"user\": \"{}\"}}\n", "x".repeat(3000));
    let lines = format!("{large}{{\"user\": \"small\"}}\n{large}");
    let ran = record_with_room_for(&env, 1, "--id mine", &lines);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let told = acks(&ran);
    assert!(told.iter().filter(|ack| ack["error"].is_string()).count() == 2 && told[1]["id"].is_string(), "{told:?}");
    assert_eq!(branch(&env, "mine"), ["user: small"]);
}

/// What is said in an event of several lines, however they end.
#[test]
fn the_data_of_an_event_is_joined_whatever_ends_its_lines() {
    let whole = [
        ": a stream",
        "id: 1",
        "data: {\"user\":",
        "retry: 100",
        "data:   \"one\"}",
        "",
        "event: message",
        "data:{\"assistant\":",
        ":",
        "data",
        "data:\"two [\\\"{\"",
        "data: }",
        "",
        "data: {\"user\": \"three\"}",
        "",
    ];
    let broken = ["data: {\"user\": \"torn", "", "data: \"nothing\"}", "data: {\"assistant\":", "{\"user\": \"four\"}"];
    for end in ["\n", "\r\n", "\r"] {
        for last in ["", end, &end.repeat(2)] {
            let env = TestEnv::new();
            let text = |lines: &[&str]| format!("{}{last}", lines.join(end));
            let ran = record(&env, &["--id", "mine"], &text(&whole));
            let mut seqs: Vec<u64> = acks(&ran).iter().map(|ack| ack["seq"].as_u64().unwrap()).collect();
            seqs.sort_unstable();
            assert_eq!(
                (ran.code, seqs),
                (0, vec![1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14]),
                "{end:?} {last:?}: {}",
                ran.all()
            );
            let ids: Vec<Value> = acks(&ran).iter().filter_map(|ack| ack.get("id").cloned()).collect();
            assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 3, "{}", ran.out);
            assert_eq!(branch(&env, "mine"), ["user: one", "assistant: two [\"{", "user: three"]);
            let ran = record(&env, &["--resume", "mine"], &text(&broken));
            let refused: Vec<u64> = acks(&ran)
                .iter()
                .filter(|ack| ack["error"].is_string())
                .map(|ack| ack["seq"].as_u64().unwrap())
                .collect();
            assert_eq!((ran.code, refused, acks(&ran).len()), (1, vec![1, 3, 4], 4), "{end:?} {last:?}: {}", ran.all());
            assert_eq!(branch(&env, "mine").last().map(String::as_str), Some("user: four"), "{end:?} {last:?}");
        }
    }
}

#[test]
fn an_event_is_acknowledged_before_the_next_one_comes() {
    let env = TestEnv::new();
    for end in ["\n", "\r"] {
        let mut live = Live::start(&env, &[]);
        write!(live.child.stdin.as_mut().unwrap(), "data: {{\"user\":{end}data: \"q\"}}{end}").unwrap();
        for seq in 1..=2 {
            let mut ack = String::new();
            live.acks.read_line(&mut ack).unwrap();
            assert!(ack.starts_with(&format!("{{\"seq\":{seq},\"id\":")), "{ack}");
        }
        drop(live.child.stdin.take());
        assert_eq!(live.child.wait().unwrap().code(), Some(0));
    }
}

#[cfg(unix)]
#[test]
fn what_could_not_be_read_is_told_before_the_newest_is_gone_on_with() {
    let env = TestEnv::new();
    let shut = env.home().join(".local/share/scrollback/sessions/shut");
    std::fs::create_dir_all(&shut).unwrap();
    let log = shut.join("messages.jsonl");
    std::os::unix::fs::symlink("messages.jsonl", &log).unwrap();
    let ran = record(&env, &["--continue"], "{\"user\": \"q\"}\n");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.all());
    assert!(
        ran.err.contains("/shut/") && ran.err.contains("hint: omit --continue to create a new session"),
        "{}",
        ran.err
    );
    assert_eq!(record(&env, &["--id", "mine"], "{\"user\": \"q\"}\n").code, 0);
    let ran = record(&env, &["--continue"], "{\"assistant\": \"a\"}\n");
    assert_eq!((ran.code, session_of(&ran).as_str()), (0, "mine"), "{}", ran.all());
    assert!(ran.err.starts_with("scrollback: ") && ran.err.contains("/shut/"), "{}", ran.err);
}

/// Every line that is not blank has exactly one answer, in every format, wherever the input ends.
#[test]
fn every_line_is_answered_once_wherever_the_input_ends() {
    let stream = [
        r#"{"user": "q"}"#,
        r#"{"type": "start", "messageId": "m", "messageMetadata": {"model": "m-1"}}"#,
        "",
        r#"{"type": "start-step"}"#,
        r#"{"type": "text-start", "id": "a"}"#,
        r#"{"type": "text-start", "id": "b"}"#,
        r#"{"type": "text-delta", "id": "a", "delta": "First"}"#,
        r#"{"type": "text-delta", "id": "b", "delta": "Second"}"#,
        r#"{"type": "text-end", "id": "a"}"#,
        r#"{"type": "tool-input-start", "toolCallId": "c", "toolName": "read"}"#,
        r#"{"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{"}"#,
        r#"{"type": "rate_limit_event"}"#,
        r#"{"type": "tool-input-available", "toolCallId": "c", "toolName": "read", "input": {}}"#,
        r#"{"type": "tool-output-available", "toolCallId": "c", "output": 1}"#,
        r#"{"type": "finish-step"}"#,
        ": keep alive",
        r#"{"type": "start-step"}"#,
        r#"{"type": "text-start", "id": "t"}"#,
        r#"{"type": "text-delta", "id": "t", "delta": "Done."}"#,
        r#"{"type": "finish"}"#,
        "data: [DONE]",
    ];
    for dialect in ["native", "claude-code", "ai-sdk"] {
        for end in 1..=stream.len() {
            let env = TestEnv::new();
            let ran = record(&env, &["--dialect", dialect, "--store", "store"], &stream[..end].join("\n"));
            let mut seqs: Vec<u64> = acks(&ran).iter().map(|ack| ack["seq"].as_u64().unwrap()).collect();
            seqs.sort_unstable();
            let spoken: Vec<u64> =
                (1..).zip(&stream[..end]).filter(|(_, line)| !line.is_empty()).map(|(seq, _)| seq).collect();
            assert_eq!(seqs, spoken, "{dialect} {end}: {}", ran.all());
            let refused = acks(&ran).iter().filter(|ack| ack["error"].is_string()).count();
            assert_eq!(ran.code, i32::from(refused > 0), "{dialect} {end}: {}", ran.all());
            if end >= 7 {
                assert_eq!(refused, 0, "{dialect} {end}: {}", ran.all());
                let shown = env.run(&["show", "@", "--store", "store"]);
                assert!(shown.out.contains("First"), "{dialect} {end}: {}", shown.all());
                assert_eq!(shown.out.contains("Second"), end >= 8, "{dialect} {end}: {}", shown.all());
            }
        }
    }
}

#[test]
fn what_a_step_takes_back_is_no_error() {
    let lines = [
        r#"{"user": "q"}"#,
        r#"{"type": "start-step"}"#,
        r#"{"type": "text-start", "id": "a"}"#,
        r#"{"type": "text-delta", "id": "a", "delta": "Wrong"}"#,
        r#"{"type": "reset-step"}"#,
        r#"{"type": "text-start", "id": "a"}"#,
        r#"{"type": "text-delta", "id": "a", "delta": "Right"}"#,
        r#"{"type": "finish"}"#,
    ];
    for dialect in ["native", "claude-code", "ai-sdk"] {
        let env = TestEnv::new();
        let ran = record(&env, &["--dialect", dialect, "--store", "store"], &lines.join("\n"));
        assert_eq!((ran.code, acks(&ran).len()), (0, lines.len()), "{dialect}: {}", ran.all());
        let shown = env.run(&["show", "@", "--store", "store"]).out;
        assert!(shown.contains("Right") && !shown.contains("Wrong"), "{dialect}: {shown}");
    }
}

#[test]
fn every_piece_of_a_long_stream_is_acknowledged_and_there() {
    let env = TestEnv::new();
    let delta = "{\"delta\": {\"text\": \"x \"}}\n";
    let ran = record(
        &env,
        &["--dialect", "ai-sdk", "--store", "store"],
        &format!("{{\"user\": \"q\"}}\n{}", delta.repeat(3000)),
    );
    assert_eq!((ran.code, acks(&ran).len()), (0, 3001), "{}", ran.err);
    let shown = env.run(&["show", "@", "--store", "store", "--json"]).json();
    let texts = shown["messages"][1]["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    assert_eq!(texts.collect::<String>(), "x ".repeat(3000));
}

#[test]
fn a_title_that_a_format_cannot_hold_is_a_problem() {
    let env = TestEnv::new();
    let args = ["--dialect", "fluux", "--jid", "ada@example.org", "--title", "Tides"];
    let ran = record(&env, &args, "{\"message\": \"q\"}\n");
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.err.contains("cannot store this"), "{}", ran.err);
}

#[test]
fn large_lines_are_records_like_any_other() {
    let env = TestEnv::new();
    let lines = format!("{{\"user\": \"{}\"}}\n{{\"assistant\": \"small\"}}\n", "x".repeat(30_000_000));
    let ran = record(&env, &["--id", "large"], &lines);
    assert_eq!(acks(&ran).len(), 2, "{}", ran.err);
    assert_eq!(branch(&env, "large").len(), 2);
}

#[test]
fn recording_goes_on_when_the_disk_works_again() {
    let env = TestEnv::new();
    let mut live = Live::start(&env, &["--id", "back"]);
    live.say("{\"user\": \"one\"}");
    let log = sessions(&env)[0].join("messages.jsonl");
    let aside = log.with_extension("aside");
    // Something else has the file's name: nothing can be written there.
    std::fs::rename(&log, &aside).unwrap();
    std::fs::create_dir(&log).unwrap();
    for seq in 2..5 {
        let ack = live.say("{\"assistant\": \"lost\"}");
        assert_eq!((&ack["seq"], ack["error"].is_string()), (&seq.into(), true), "{ack}");
    }
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    let ack = live.say("{\"assistant\": \"1\"}");
    assert!(ack["id"].is_string(), "{ack}");
    drop(live.child.stdin.take());
    assert_eq!(live.child.wait().unwrap().code(), Some(1));
    assert_eq!(branch(&env, "back"), ["user: one", "assistant: 1"]);
}

#[test]
fn a_thought_that_a_format_does_not_take_is_a_loss_and_no_refusal() {
    let env = TestEnv::new();
    let lines = "{\"user\": \"q\"}\n{\"delta\": {\"reasoning\": \"h\"}}\n{\"delta\": {\"reasoning\": \"m\"}}\n{\"delta\": {\"text\": \"a\"}}\n{\"finish\": {}}\n";
    for dialect in ["native", "claude-code", "codex", "qwen-code", "ai-sdk", "sage-el"] {
        let ran = record(&env, &["--dialect", dialect, "--store", dialect], lines);
        assert_eq!((ran.code, acks(&ran).len()), (0, 5), "{dialect}: {}", ran.all());
        let is_lost = ran.out.contains("\"thinking\"");
        assert_eq!(is_lost, ["claude-code", "sage-el"].contains(&dialect), "{dialect}: {}", ran.out);
        if dialect == "claude-code" {
            let lost = acks(&ran).into_iter().filter(|ack| ack.get("losses").is_some());
            assert_eq!(lost.map(|ack| ack["seq"].clone()).collect::<Vec<_>>(), [2, 3], "{}", ran.out);
        }
    }
}

#[test]
fn what_a_format_writes_whole_is_acknowledged_when_it_is_on_disk() {
    let env = TestEnv::new();
    let lines = "{\"user\": \"q\"}\n{\"delta\": {\"text\": \"a\"}}\n{\"delta\": {\"text\": \"b\"}}\n{\"delta\": {\"toolCalls\": [{\"id\": \"c\", \"name\": \"read\"}]}}\n{\"finish\": {}}\n{\"toolResult\": {\"callId\": \"c\", \"output\": 1}}\n{\"assistant\": \"done\"}\n{\"delta\": {\"text\": \"more\"}}\n";
    for (dialect, whole) in [("claude-code", false), ("qwen-code", false), ("ai-sdk", true), ("sage-el", true)] {
        let ran = record(&env, &["--dialect", dialect, "--store", dialect], lines);
        assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
        let told = acks(&ran);
        let seqs: Vec<u64> = told.iter().map(|ack| ack["seq"].as_u64().unwrap()).collect();
        let ids: std::collections::HashSet<&str> = told[1..7].iter().map(|ack| ack["id"].as_str().unwrap()).collect();
        let mut sorted = seqs.clone();
        sorted.sort_unstable();
        assert_eq!((sorted, seqs.last()), ((1..=8).collect(), Some(&8)), "{dialect}: {}", ran.out);
        assert_eq!(ids.len() == 1, whole, "{dialect}: {}", ran.out);
        let doctor = env.run(&["doctor", "--store", dialect]);
        assert_eq!(doctor.code, 0, "{dialect}: {}", doctor.all());
    }
}

/// Without a home directory there is no place for sessions: the working directory is not one.
#[test]
fn a_relative_path_in_a_variable_is_no_place_to_record_to() {
    let env = TestEnv::new();
    let run = |name: &str| {
        let mut command = env.command(&["record"]);
        env.ran(
            {
                command.env(name, "relative");
                command
            },
            b"{\"user\": \"When is high water?\"}\n",
        )
    };
    let refused = run("SCROLLBACK_HOME");
    assert!(refused.code == 2 && refused.err.contains("SCROLLBACK_HOME is not an absolute path"), "{}", refused.all());
    // XDG asks to ignore it.
    assert_eq!(run("XDG_DATA_HOME").code, 0);
    assert_eq!(std::fs::read_dir(env.work()).unwrap().count(), 0);
    assert!(env.home().join(".local/share/scrollback/sessions").is_dir());
}

#[test]
fn a_session_whose_first_line_is_torn_gets_its_header_again() {
    let env = TestEnv::new();
    let id = "11111111-1111-4111-8111-111111111111";
    let said = b"{\"user\": \"When is high water?\"}\n";
    let recorded = env.run_with(&["record", "--dialect", "codex", "--id", id], said);
    let path = recorded.err.lines().find_map(|line| line.strip_prefix("Recording to ")).unwrap();
    let path = path.replace("$HOME", &env.home().display().to_string());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..60]).unwrap();
    let other = env.home().join("other");
    std::fs::create_dir(&other).unwrap();
    let resumed = env.run_with(&["record", "--resume", &path, "--project", other.to_str().unwrap()], said);
    assert_eq!(resumed.code, 0, "{}", resumed.all());
    let listed = env.run(&["list", "--all", "--json"]).json();
    assert_eq!(listed[0]["project"], "$HOME/other", "{listed}");
}

#[test]
fn without_a_home_nothing_is_recorded_into_the_working_directory() {
    let env = TestEnv::new();
    for home in [None, Some(""), Some("relative")] {
        let run = |args: &[&str]| {
            let mut command = env.command(args);
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            env.ran(command, b"{\"user\": \"When is high water?\"}\n")
        };
        let refused = run(&["record"]);
        assert_eq!(refused.code, 2, "{}", refused.all());
        assert!(refused.err.contains("HOME") && refused.err.contains("SCROLLBACK_HOME"), "{}", refused.err);
        assert_eq!(std::fs::read_dir(env.work()).unwrap().count(), 0);
        let given = run(&["record", "--store", "elsewhere"]);
        assert_eq!(given.code, 0, "{}", given.all());
        std::fs::remove_dir_all(env.work().join("elsewhere")).unwrap();
    }
}

/// What is said without HOME helps: the variable of the dialect, and no folder below a home that is not known.
#[test]
fn without_a_home_the_hint_names_what_helps() {
    let env = TestEnv::new();
    let ours = env.home().join("ours");
    let run = |args: &[&str]| {
        let mut command = env.command(args);
        command.env_remove("HOME").env("SCROLLBACK_HOME", &ours);
        env.ran(command, b"{\"user\": \"When is high water?\"}\n")
    };
    for (dialect, variable) in
        [("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"), ("qwen-code", "QWEN_HOME")]
    {
        let refused = run(&["record", "--dialect", dialect]);
        assert_eq!(refused.code, 2, "{}", refused.all());
        assert!(refused.err.contains("HOME is not set") && !refused.err.contains("SCROLLBACK_HOME"), "{}", refused.err);
        assert!(refused.err.contains(&format!("or use {variable} or --store DIR")), "{}", refused.err);
        let mut command = env.command(&["record", "--dialect", dialect]);
        command.env_remove("HOME").env(variable, env.home().join(dialect));
        assert_eq!(env.ran(command, b"{\"user\": \"When is high water?\"}\n").code, 0);
    }
    assert_eq!(run(&["record"]).code, 0);
    let bare = |args: &[&str]| {
        let mut command = env.command(args);
        command.env_remove("HOME");
        env.ran(command, b"")
    };
    let refused = bare(&["config", "set", "list.limit", "5"]);
    assert!(refused.code == 2 && refused.err.contains("XDG_CONFIG_HOME"), "{}", refused.all());
    assert!(!refused.err.contains("--store"), "{}", refused.all());
    let listed = bare(&["list", "--all"]);
    assert!(listed.code == 1 && listed.err.contains("HOME") && !listed.err.contains("~/"), "{}", listed.all());
    // Nobody trusts a trash of the working directory.
    std::fs::create_dir_all(env.work().join(".local/share/scrollback/trash/x")).unwrap();
    std::fs::write(env.work().join(".local/share/scrollback/trash/x/origin.json"), "{}").unwrap();
    let trash = bare(&["trash"]);
    assert!(trash.code == 1 && !trash.err.contains("origin.json"), "{}", trash.all());
}

#[test]
fn a_project_that_has_no_effect_is_said() {
    let env = TestEnv::new();
    let said = b"{\"user\": \"When is high water?\"}\n";
    let args = ["record", "--dialect", "sage-el", "--project", "/gone/tides"];
    let recorded = env.run_with(&args, said);
    let path = recorded.err.lines().find_map(|line| line.strip_prefix("Recording to ")).unwrap();
    let path = path.replace("$HOME", &env.home().display().to_string());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..40]).unwrap();
    let other = env.run_with(&["record", "--resume", &path, "--project", "/gone/other"], said);
    assert_eq!(other.code, 0, "{}", other.all());
    assert!(other.err.contains("--project has no effect: the session belongs to /gone/tides"), "{}", other.all());
    let same = env.run_with(&["record", "--resume", &path, "--project", "/gone/tides"], said);
    assert!(same.code == 0 && !same.err.contains("no effect"), "{}", same.all());
}

#[test]
fn an_id_that_must_be_a_uuid_is_asked_for() {
    let env = TestEnv::new();
    for (dialect, is_uuid) in [("claude-code", true), ("codex", true), ("qwen-code", true), ("native", false)] {
        let refused = env.run_with(&["record", "--dialect", dialect, "--id", "a/b"], b"{\"user\": \"Hi\"}\n");
        assert_eq!(refused.code, 2, "{dialect}: {}", refused.all());
        assert_eq!(refused.err.contains("hint: use a UUID"), is_uuid, "{dialect}: {}", refused.all());
    }
}

/// Token counts that come with `finish`, after the step, belong to the turn in formats that write whole turns, too.
#[test]
fn token_counts_after_the_last_step_are_in_the_turn() {
    let lines = r#"{"user": "When is high water?"}
{"type": "start"}
{"type": "start-step"}
{"type": "text-start", "id": "t"}
{"type": "text-delta", "id": "t", "delta": "At four."}
{"type": "text-end", "id": "t"}
{"type": "finish-step"}
{"type": "finish", "messageMetadata": {"usage": {"inputTokens": 3, "outputTokens": 4}}}
"#;
    let with_another = lines.replace("{\"type\": \"finish\",", "{\"type\": \"start-step\"}\n{\"type\": \"text-start\", \"id\": \"u\"}\n{\"type\": \"text-delta\", \"id\": \"u\", \"delta\": \"Or five.\"}\n{\"type\": \"text-end\", \"id\": \"u\"}\n{\"type\": \"finish-step\"}\n{\"type\": \"finish\",");
    let without_finish = lines.lines().take(7).map(|line| format!("{line}\n")).collect::<String>();
    let then_prompt = format!("{without_finish}{{\"user\": \"Sure?\"}}\n");
    for (dialect, more) in
        [("sage-el", &[][..]), ("ai-sdk", &[]), ("fluux", &["--jid", "ada@example.org"]), ("native", &[])]
    {
        for lines in [lines, &with_another, &without_finish, &then_prompt] {
            let env = TestEnv::new();
            let ran = record(&env, &[&["--dialect", dialect, "--json"], more].concat(), lines);
            assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
            let acked = acks(&ran);
            assert_eq!(acked.len(), lines.lines().count(), "{dialect}: {}", ran.all());
            assert!(acked.iter().all(|ack| ack.get("error").is_none()), "{dialect}: {}", ran.all());
            let shown = env.run(&["list", "--all", "--full", "--json"]).json();
            let usage = &shown[0]["usage"];
            if lines.contains("inputTokens") && dialect != "fluux" {
                assert_eq!((&usage["input"], &usage["output"]), (&3.into(), &4.into()), "{dialect}: {shown}");
            }
            let ids: Vec<&Value> = acked.iter().filter_map(|ack| ack.get("durability")).collect();
            assert!(ids.len() >= 2, "{dialect}: {}", ran.all());
        }
    }
}

/// The end of an answer is recorded once, though the line that ended it is refused and another one ends it again.
#[test]
fn an_answer_before_a_refused_line_is_recorded_once() {
    let lines = r#"{"user": "When?"}
{"type": "assistant", "session_id": "s", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "At four."}], "usage": {"input_tokens": 3, "output_tokens": 4}}}
{"type": "system", "subtype": "compact_boundary", "session_id": "s"}
{"type": "system", "subtype": "compact_boundary", "session_id": "s"}
{"type": "user", "session_id": "s", "message": {"role": "user", "content": "Sure?"}}
"#;
    for (dialect, more) in [("sage-el", &[][..]), ("fluux", &["--jid", "ada@example.org"])] {
        let env = TestEnv::new();
        let ran = record(&env, &[&["--dialect", dialect, "--json"], more].concat(), lines);
        let refused: Vec<u64> = acks(&ran)
            .iter()
            .filter(|ack| ack.get("error").is_some())
            .filter_map(|ack| ack["seq"].as_u64())
            .collect();
        assert_eq!(refused, [3, 4], "{dialect}: {}", ran.all());
        let shown = env.run(&["show", "@", "--all", "--full"]);
        assert_eq!(shown.out.matches("At four.").count(), 1, "{dialect}: {}", shown.all());
        assert_eq!(shown.out.matches("Sure?").count(), 1, "{dialect}: {}", shown.all());
        let listed = env.run(&["list", "--all", "--full", "--json"]).json();
        let usage = &listed[0]["usage"];
        assert!(dialect == "fluux" || usage["output"] == 4, "{dialect}: {listed}");
    }
}

#[test]
fn a_session_is_rewound_to_its_start() {
    let env = TestEnv::new();
    let ran = record(&env, &["--id", "tides"], "{\"user\": \"First.\"}\n{\"assistant\": \"One.\"}\n");
    assert_eq!(ran.code, 0, "{}", ran.all());
    let rewound = env.run(&["rewind", "tides", "--to", "start", "--json"]);
    assert_eq!(rewound.code, 0, "{}", rewound.all());
    assert_eq!(record(&env, &["--resume", "tides"], "{\"user\": \"Second.\"}\n").code, 0);
    assert_eq!(branch(&env, "tides"), ["rewind: ", "user: Second."]);
    let shown = env.run(&["show", "tides"]);
    assert!(shown.out.contains(" to the start ") && !shown.out.contains("One."), "{}", shown.out);
    assert_eq!(env.run(&["doctor", "tides"]).code, 0);
    let history = env.run(&["history", "tides", "--for", "openai"]);
    assert!(history.out.contains("Second.") && !history.out.contains("First."), "{}", history.all());
    let both = env.run(&["rewind", "tides#x", "--to", "start"]);
    assert_eq!(both.code, 2, "{}", both.all());
    assert_eq!(env.run(&["rewind", "tides", "--to", "nowhere"]).code, 1);
    let codex = record(&env, &["--dialect", "codex"], "{\"user\": \"First.\"}\n");
    let refused = env.run(&["rewind", &session_of(&codex), "--to", "start"]);
    assert!(refused.code == 2 && refused.err.contains("a second beginning"), "{}", refused.all());
}

/// A stream that breaks off is marked, where the format can: `show` says so, and the session is interrupted.
#[test]
fn a_turn_that_its_agent_ends_is_clean_even_after_results() {
    let env = TestEnv::new();
    let text = r#"{"type": "text-start", "id": "t"}
        {"type": "text-delta", "id": "t", "delta": "At 04:12."}
        {"type": "text-end", "id": "t"}"#;
    let call = r#"{"type": "tool-input-available", "toolCallId": "c1", "toolName": "bash", "input": {"command": "ls"}}
        {"type": "tool-output-available", "toolCallId": "c1", "output": "x"}"#;
    let state = |name: &str, step: &str, end: &str| {
        let lines = format!(
            "{{\"user\": \"go\"}}\n{{\"type\": \"start\"}}\n{{\"type\": \"start-step\"}}\n{step}\n{{\"type\": \"finish-step\"}}\n{end}\n"
        );
        let lines: Vec<&str> = lines.lines().map(str::trim).collect();
        let ran = record(&env, &["--id", name], &lines.join("\n"));
        assert_eq!(ran.code, 0, "{}", ran.all());
        let listed = env.run(&["list", "--all", "--json"]).json();
        let row = listed.as_array().unwrap().iter().find(|row| row["id"] == name).unwrap().clone();
        row["state"].as_str().unwrap().to_owned()
    };
    let finish = r#"{"type": "finish"}"#;
    assert_eq!(state("text", text, finish), "clean");
    assert_eq!(state("results", &format!("{text}\n{call}"), finish), "clean");
    // Without the end, the model may have been about to use the result.
    assert_eq!(state("stopped", &format!("{text}\n{call}"), ""), "interrupted-turn");
    let last = |name: &str| {
        let log =
            std::fs::read_to_string(env.home().join(format!(".local/share/scrollback/sessions/{name}/messages.jsonl")));
        serde_json::from_str::<Value>(log.unwrap().lines().last().unwrap()).unwrap()
    };
    // Whoever follows the file sees the end of an answer by a piece without text.
    assert_eq!(last("text")["message"]["content"], "");
    assert_eq!(last("results")["metadata"]["finished"], true);
}

#[test]
fn an_answer_that_breaks_off_is_marked() {
    let chunks = r#"{"type": "start-step"}
{"type": "text-start", "id": "t"}
{"type": "text-delta", "id": "t", "delta": "At fo"}
"#;
    for lines in [chunks, "{\"delta\": \"At fo\"}\n"] {
        let env = TestEnv::new();
        let ran = record(&env, &["--id", "tides"], &format!("{{\"user\": \"When?\"}}\n{lines}"));
        assert_eq!(ran.code, 0, "{}", ran.all());
        assert!(acks(&ran).iter().all(|ack| ack.get("error").is_none()), "{}", ran.all());
        let page = env.run(&["show", "tides", "--json"]).json();
        assert_eq!(page["messages"][1]["metadata"]["interrupted"], true, "{page}");
        assert_eq!(page["session"]["state"], "interrupted-turn");
        assert!(env.run(&["show", "tides"]).out.contains(" · interrupted\n"), "{}", env.run(&["show", "tides"]).out);
        let notice = env.run(&["history", "tides", "--for", "openai"]).err;
        assert!(notice.contains("the last answer was interrupted: it is cut off."), "{notice}");
        let more =
            record(&env, &["--resume", "tides"], "{\"user\": \"Sure?\"}\n{\"delta\": \"Yes.\"}\n{\"finish\": true}\n");
        assert_eq!(more.code, 0, "{}", more.all());
        let page = env.run(&["show", "tides", "--json"]).json();
        assert_eq!(
            (&page["session"]["state"], &page["messages"][3]["metadata"]["interrupted"]),
            (&"clean".into(), &Value::Null)
        );
    }
}

#[test]
fn files_are_copied_before_a_tool_runs_and_recorded_after_it() {
    let env = TestEnv::new();
    std::fs::write(env.work().join("a.txt"), "one\r\n").unwrap();
    let mut run = Live::start(&env, &[]);
    run.say(r#"{"user": "Change a.txt."}"#);
    run.say(r#"{"assistant": {"content": "", "toolCalls": [{"id": "c", "name": "sh"}]}}"#);
    let before = run.say(r#"{"snapshot": {"before": ["a.txt", "b.txt"]}}"#);
    assert!(before["error"].is_null() && before["id"].is_null(), "{before}");
    std::fs::write(env.work().join("a.txt"), "two").unwrap();
    let after = run.say(r#"{"snapshot": {"after": true}}"#);
    assert!(after["id"].is_string() && after["durability"] == "sync", "{after}");
    let again = run.say(r#"{"snapshot": {"after": true}}"#);
    assert_eq!(again["error"], "no files were named before the tool ran");
    let absent = run.say(r#"{"snapshot": {"before": ["gone.txt"]}}"#);
    assert!(absent["error"].is_null(), "{absent}");
    let nothing = run.say(r#"{"snapshot": {"after": true}}"#);
    assert!(nothing["error"].is_null() && nothing["id"].is_null(), "{nothing}");
    run.say(r#"{"snapshot": {"watch": "."}}"#);
    std::fs::write(env.work().join("b.txt"), "").unwrap();
    run.say(r#"{"toolResult": {"callId": "c", "output": 1}}"#);
    run.say(r#"{"assistant": "Done."}"#);
    let session = before["session"].as_str().unwrap().to_owned();
    drop(run.child.stdin.take());
    // One line was refused.
    assert_eq!(run.child.wait().unwrap().code(), Some(1));
    let log = env.home().join(format!(".local/share/scrollback/sessions/{session}/messages.jsonl"));
    let snapshots: Vec<Value> = std::fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "file_history_snapshot")
        .map(|line| line["snapshot"]["trackedFiles"].clone())
        .collect();
    assert_eq!(snapshots.len(), 2, "{snapshots:?}");
    assert_eq!((&snapshots[0]["a.txt"]["state"], &snapshots[0]["a.txt"]["size"]), (&"modified".into(), &3.into()));
    assert_eq!(snapshots[1]["b.txt"]["state"], "created");
}

#[test]
fn a_snapshot_of_another_shape_is_refused_with_what_it_should_be() {
    let env = TestEnv::new();
    let ran = record(
        &env,
        &[],
        r#"{"snapshot": {"before": "a.txt"}}
{"snapshot": {"before": [1]}}
{"snapshot": {"after": "yes"}}
{"snapshot": {"after": false}}
{"snapshot": {"before": [], "after": true}}
{"snapshot": {"watch": 1}}
{"snapshot": {"watch": "gone"}}
{"snapshot": {"watch": ".."}}
{"snapshot": {"before": null}}
{"snapshot": {"states": 7}}
{"snapshot": {"watch": "."}}
"#,
    );
    insta::assert_snapshot!(told(&ran), @r#"
    {"seq":1,"error":"snapshot: before is \"a.txt\" and should be a list of paths"}
    {"seq":2,"error":"snapshot: before has something in it that is no path"}
    {"seq":3,"error":"snapshot: after is \"yes\" and should be true or false"}
    {"seq":4,"error":"snapshot: after is false and should be true"}
    {"seq":5,"error":"snapshot: before and after need a line each"}
    {"seq":6,"error":"snapshot: watch is 1 and should be a text"}
    {"seq":7,"error":"gone: No such file or directory (os error 2)"}
    {"seq":8,"error":"$DIR: outside the session's project"}
    {"seq":9,"error":"snapshot: before is nothing and should be a value"}
    {"seq":10,"error":"snapshot: states must be {trackedFiles, fileBackups}, two objects with a key for each file; or give before: [paths], after: true, or watch: a folder"}
    {"seq":11}
    "#);
    assert!(sessions(&env).is_empty(), "nothing was recorded");
}
