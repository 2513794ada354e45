//! `resume`, end to end: which program is started where and how, what is printed instead, and what is refused.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;
use support::{Ran, TestEnv, talk};

const AGENTS: [(&str, &str); 3] = [("claude-code", "claude"), ("codex", "codex"), ("qwen-code", "qwen")];

/// A home with a native session of a directory that exists, on the branch `main`.
fn env() -> TestEnv {
    let env = TestEnv::new();
    let tide = directory(&env);
    fs::create_dir_all(tide.join(".git")).unwrap();
    fs::write(tide.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    env.session("s1", &talk().replace("/gone/tide", &tide.to_string_lossy()));
    env
}

/// Its name is one that a shell would split.
fn directory(env: &TestEnv) -> PathBuf {
    env.work().canonicalize().unwrap().join("ada's tide")
}

/// Converts the native session and returns the id of the new one.
fn converted(env: &TestEnv, to: &str, options: &[&str]) -> String {
    let args: Vec<&str> = ["convert", "s1", "--to", to].iter().chain(options).copied().collect();
    let ran = env.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let listed =
        env.run(&["list", "--all", "--dialect", to, "--json"].iter().chain(options).copied().collect::<Vec<_>>());
    listed.json()[0]["id"].as_str().unwrap().to_owned()
}

/// Runs with programs on the PATH that print how they were started.
fn run_with_agents(env: &TestEnv, args: &[&str]) -> Ran {
    let bin = env.work().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (_, program) in AGENTS {
        let path = bin.join(program);
        let script = "#!/bin/sh\nprintf '%s' \"${0##*/}\"; printf ' [%s]' \"$@\"; printf ' in %s %s' \"$PWD\" \"$CODEX_HOME\"; exit 7\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = env.command(args);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    env.ran(command, b"")
}

#[test]
fn the_agent_takes_the_place_of_scrollback() {
    let env = env();
    for (dialect, program) in AGENTS {
        let id = converted(&env, dialect, &[]);
        let ran = run_with_agents(&env, &["resume", &id]);
        let option = if program == "codex" { "resume" } else { "--resume" };
        assert_eq!(ran.all(), format!("{program} [{option}] [{id}] in $DIR/desk/ada's tide [exit 7]\n"));
    }
}

#[test]
fn the_command_is_printed_for_a_shell() {
    let env = env();
    let id = converted(&env, "codex", &[]);
    let printed = env.run(&["resume", &id, "--print"]);
    assert_eq!(printed.all(), format!("cd '$DIR/desk/ada'\\''s tide' && codex resume {id}\n[exit 0]\n"));
    let real = printed.out.replace("$DIR", &env.work().canonicalize().unwrap().parent().unwrap().to_string_lossy());
    let script = format!("codex() {{ printf '%s ' \"$PWD\" \"$@\"; }}; {real}");
    let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{} resume {id} ", directory(&env).display()));
    assert_eq!(
        env.run(&["resume", &id, "--json"]).json(),
        json!({
            "session": id, "dialect": "codex", "program": "codex", "arguments": ["resume", id],
            "directory": "$DIR/desk/ada's tide", "environment": {}, "command": printed.out.trim_end(),
        })
    );
}

#[test]
fn what_writes_a_session_ends_with_that_command() {
    let env = env();
    let id = converted(&env, "claude-code", &[]);
    let forked = env.run(&["fork", &id, "--id", "00000000-1111-4222-8333-444444444444"]);
    let command = env.run(&["resume", "00000000-1111-4222-8333-444444444444", "--print"]).out;
    assert!(forked.err.ends_with(&format!("Resume: {command}")), "{}", forked.all());
    let first = env.run(&["tree", &id, "--json"]).json()["records"][0]["id"].as_str().unwrap().to_owned();
    let rewound = env.run(&["rewind", &format!("{id}#{first}")]);
    let command = env.run(&["resume", &id, "--print"]).out;
    assert!(rewound.err.ends_with(&format!("Resume: {command}")), "{}", rewound.all());
}

#[test]
fn an_agent_whose_store_is_elsewhere_is_led_there() {
    let env = env();
    let id = converted(&env, "codex", &["--store", "other"]);
    let args = ["resume", &id, "--store", "other"];
    assert!(run_with_agents(&env, &args).out.ends_with("tide $DIR/desk/other"));
    let printed = env.run(&[&args[..], &["--print"]].concat()).out;
    assert!(printed.ends_with(&format!("&& CODEX_HOME=$DIR/desk/other codex resume {id}\n")), "{printed}");
    // A variable that is set in this shell may not be in the one that the command is pasted into.
    let mut set = env.command(&["resume", &id, "--print"]);
    set.env("CODEX_HOME", env.work().join("other"));
    assert_eq!(env.ran(set, b"").out, printed);
    let usual = converted(&env, "codex", &[]);
    let mut set = env.command(&["resume", &usual, "--print", "--store"]);
    set.arg(env.home().join(".codex")).env("CODEX_HOME", env.work().join("other"));
    let printed = env.ran(set, b"").out;
    assert!(printed.ends_with(&format!("&& CODEX_HOME=$HOME/.codex codex resume {usual}\n")), "{printed}");
}

#[test]
fn another_branch_is_warned_of() {
    let env = env();
    let id = converted(&env, "claude-code", &[]);
    assert_eq!(env.run(&["resume", &id, "--print"]).err, "");
    fs::write(directory(&env).join(".git/HEAD"), "ref: refs/heads/tides\n").unwrap();
    let warned = env.run(&["resume", &id, "--print"]);
    assert_eq!(
        (warned.code, warned.err.as_str()),
        (0, "warning: the branch tides is checked out; the session recorded main\n")
    );
    assert_eq!(env.run(&["resume", &id, "--json"]).json()["gitBranchNow"], "tides");
}

#[test]
fn an_empty_conversation_is_warned_of() {
    let env = env();
    let id = converted(&env, "qwen-code", &[]);
    let listed = env.run(&["list", "--all", "--dialect", "qwen", "--json"]).json();
    let path = env.home().join(listed[0]["path"].as_str().unwrap().trim_start_matches("$HOME/"));
    let rewind = serde_json::json!({
        "uuid": "w1", "parentUuid": null, "sessionId": id, "timestamp": "2026-11-15T11:00:00Z", "type": "system",
        "subtype": "rewind", "systemPayload": {"truncatedCount": 2},
    });
    fs::write(&path, format!("{}{rewind}\n", fs::read_to_string(&path).unwrap())).unwrap();
    let warned = env.run(&["resume", &id, "--print"]);
    let warning = format!("warning: session {id:?} has no messages on this branch: it ends before the first prompt\n");
    assert_eq!((warned.code, warned.err), (0, warning));
    assert!(warned.out.contains("qwen --resume"), "{}", warned.out);
}

#[test]
fn what_no_agent_can_continue_is_refused_with_a_hint() {
    let env = env();
    assert_snapshot!(env.run(&["resume", "s1"]).all(), @"
    [exit 2]
    scrollback: no agent resumes native sessions
    hint: run `scrollback convert s1 --to claude-code` (or codex, qwen-code) and resume that
    ");
    assert_snapshot!(env.run(&["--demo", "resume", "codex:@"]).all(), @"
    [exit 2]
    scrollback: no agent has the demo's sessions
    hint: leave out --demo to resume a session of yours
    ");
    assert_eq!(env.run_with(&["resume", "-"], talk().as_bytes()).code, 2);
    let id = converted(&env, "claude-code", &[]);
    let missing = env.run(&["resume", &id]).all();
    assert_eq!(
        missing,
        format!(
            "[exit 2]\nscrollback: claude: no such program\nhint: install Claude Code, or add it to PATH; `scrollback resume {id} --print` prints the command\n"
        )
    );
    let record = env.run(&["resume", &format!("{id}#u1")]);
    assert!(record.code == 2 && record.err.contains("hint: run `scrollback fork SESSION#RECORD`"), "{}", record.all());
    let stored = env.home().join(".claude/projects");
    let folder = fs::read_dir(&stored).unwrap().next().unwrap().unwrap().path();
    let file = folder.join(format!("{id}.jsonl"));
    fs::copy(&file, env.work().join("copy.jsonl")).unwrap();
    assert_snapshot!(env.run(&["resume", "copy.jsonl"]).all(), @"
    [exit 2]
    scrollback: $DIR/desk/copy.jsonl: not in a store of Claude Code
    hint: run `scrollback convert $DIR/desk/copy.jsonl --to claude-code` to copy it there
    ");
    fs::remove_dir_all(directory(&env)).unwrap();
    let gone = env.run(&["resume", &id, "--print"]);
    assert!(gone.code == 2 && gone.err.contains("ada's tide: no such directory\nhint: "), "{}", gone.all());
}

#[test]
fn a_sub_agent_is_continued_by_its_parent() {
    let env = env();
    let id = converted(&env, "claude-code", &[]);
    let stored = env.home().join(".claude/projects");
    let folder = fs::read_dir(&stored).unwrap().next().unwrap().unwrap().path();
    let line = json!({"type": "user", "uuid": "x1", "parentUuid": null, "isSidechain": true, "agentId": "a7", "sessionId": id,
        "cwd": directory(&env), "timestamp": "2026-11-15T10:00:00Z", "message": {"role": "user", "content": "Look."}});
    fs::create_dir_all(folder.join(&id).join("subagents")).unwrap();
    fs::write(folder.join(&id).join("subagents/agent-a7.jsonl"), format!("{line}\n")).unwrap();
    let refused = env.run(&["resume", "agent-a7"]).all();
    assert_eq!(
        refused,
        format!(
            "[exit 2]\nscrollback: session agent-a7 is a sub-agent's\nhint: run `scrollback resume {id}` to continue the session that started it\n"
        )
    );
}

/// A log is untrusted: what it states reaches a shell and another program's arguments.
#[test]
fn no_name_in_a_log_becomes_an_option_or_a_command() {
    let env = env();
    let session = |id: &str, cwd: &str| {
        let line = json!({"type": "user", "uuid": "x1", "parentUuid": null, "sessionId": id, "cwd": cwd,
            "timestamp": "2026-11-15T10:00:00Z", "message": {"role": "user", "content": "Look."}});
        let path = env.home().join(".claude/projects/-tide").join(format!("{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{line}\n")).unwrap();
        path.to_string_lossy().into_owned()
    };
    let id = "00000000-1111-4222-8333-444444444444";
    let option = session("--dangerously-skip-permissions", &directory(&env).to_string_lossy());
    for path in [option, session(id, "tide"), session(id, ""), session(id, "/tmp/\u{1b}[31m\n")] {
        for flags in [&[][..], &["--print"], &["--json"]] {
            let ran = run_with_agents(&env, &[&["resume", &path], flags].concat());
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.all());
        }
    }
    let directory = env.work().canonicalize().unwrap().join("$(touch owned)");
    fs::create_dir_all(&directory).unwrap();
    let printed = env.run(&["resume", &session(id, &directory.to_string_lossy()), "--print"]);
    assert_eq!(printed.out, format!("cd '$DIR/desk/$(touch owned)' && claude --resume {id}\n"));
}
