//! `hook` as agents call it: a session is in the index soon after, and nothing ever fails or is printed.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use support::TestEnv;

const ID: &str = "5e55104a-0000-4000-8000-000000000001";

/// A session of Claude Code.
fn session(env: &TestEnv) -> PathBuf {
    let folder = env.home().join(".claude/projects/-gone-tides");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{ID}.jsonl"));
    let line = |id: &str, parent: serde_json::Value, role: &str, text: &str| {
        json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": ID, "cwd": "/gone/tides", "timestamp": "2026-11-14T10:00:00Z",
            "message": {"role": role, "content": [{"type": "text", "text": text}]}})
    };
    let lines =
        [line("u1", json!(null), "user", "When is high water?"), line("a1", json!("u1"), "assistant", "At five.")];
    fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    path
}

/// Waits for the process that the hook has started.
fn wait_for(what: &str, is_done: impl Fn() -> bool) {
    for _ in 0..200 {
        if is_done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} did not happen");
}

fn indexed_parts(env: &TestEnv) -> i64 {
    let index = env.home().join(".cache/scrollback/index.db");
    let read = || Connection::open(&index)?.query_row("select count(*) from words_docsize", [], |row| row.get(0));
    if index.exists() { read().unwrap_or(0) } else { 0 }
}

fn log(env: &TestEnv) -> String {
    fs::read_to_string(env.home().join(".cache/scrollback/hook.log")).unwrap_or_default()
}

#[test]
fn a_session_is_indexed_when_its_agent_stops() {
    let env = TestEnv::new();
    let path = session(&env);
    let said = json!({"session_id": ID, "transcript_path": path, "cwd": "/gone/tides", "hook_event_name": "Stop"});
    // Twice at once.
    for _ in 0..2 {
        let ran = env.run_with(&["hook", "claude-code"], said.to_string().as_bytes());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    }
    wait_for("indexing", || indexed_parts(&env) == 2);
    assert_eq!(log(&env), "");
}

#[test]
fn whatever_an_agent_says_nothing_fails() {
    let env = TestEnv::new();
    for (agent, arguments, said) in [
        ("claude-code", &[][..], &b""[..]),
        ("claude-code", &[], b"\xff\x00garbage"),
        ("claude-code", &["--unknown", "x"], b""),
        ("qwen-code", &[], b"{\"session_id\": 3}"),
        ("codex", &["not json"], b""),
        ("codex", &["[1]"], b""),
        ("smithers", &["no.db", "a1"], b""),
    ] {
        let ran = env.run_with(&[&["hook", agent], arguments].concat(), said);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{agent} {arguments:?}");
    }
    wait_for("a note of every failure", || log(&env).lines().count() == 7);
}

#[test]
fn a_session_that_is_not_there_is_noted() {
    let env = TestEnv::new();
    let named = json!({"type": "agent-turn-complete", "thread-id": "nobody"}).to_string();
    assert_eq!(env.run(&["hook", "codex", &named]).code, 0);
    wait_for("a note", || log(&env).contains("no session of codex is \"nobody\""));
}

#[test]
fn settings_are_changed_only_with_consent_and_back_without_a_trace() {
    let env = TestEnv::new();
    let path = env.home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let before = "{\n  \"model\": \"opus\"\n}\n";
    fs::write(&path, before).unwrap();
    let refused = env.run(&["hook", "install", "claude-code"]);
    assert!(refused.code == 2 && refused.err.contains("--yes") && refused.out.contains("+"), "{}", refused.all());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let done = env.run(&["hook", "install", "claude-code", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.all());
    assert!(fs::read_to_string(&path).unwrap().contains(" hook claude-code"));
    let status = env.run(&["hook", "status", "--json"]).json();
    assert_eq!((&status[0]["installed"], &status[1]["installed"]), (&json!(true), &json!(false)));
    assert!(env.run(&["hook", "install", "claude-code", "--yes"]).out.contains("already"));
    assert_eq!(env.run(&["hook", "remove", "claude-code", "--yes"]).code, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    fs::write(&path, "// not JSON").unwrap();
    let refused = env.run(&["hook", "install", "claude-code", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("left as it is"), "{}", refused.all());
    assert_eq!(fs::read_to_string(&path).unwrap(), "// not JSON");
}

#[test]
fn a_hook_of_a_program_that_moved_is_reported_and_renewed() {
    let env = TestEnv::new();
    for (agent, file, old) in [
        (
            "claude-code",
            ".claude/settings.json",
            "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/gone/scrollback hook claude-code\"}]}]}}",
        ),
        ("codex", ".codex/config.toml", "notify = [\"/gone/scrollback\", \"hook\", \"codex\"]\r\nmodel = \"m\""),
    ] {
        let path = env.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, old).unwrap();
        let status = env.run(&["hook", "status"]).out;
        assert!(status.contains("calls /gone/scrollback, which is not there"), "{status}");
        let renewed = env.run(&["hook", "install", agent, "--yes"]);
        assert!(renewed.code == 0 && !renewed.out.contains("a//"), "{}", renewed.all());
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("/gone") && text.contains("scrollback"), "{text}");
        assert!(env.run(&["hook", "install", agent, "--yes"]).out.contains("already"));
    }
}

#[cfg(unix)]
#[test]
fn who_may_read_the_settings_is_not_changed() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let path = env.home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"disableAllHooks\": true}").unwrap();
    let mode = |mode: u32| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let mode_now = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    mode(0o444);
    let refused = env.run(&["hook", "install", "claude-code", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("may not be written"), "{}", refused.all());
    mode(0o640);
    let done = env.run(&["hook", "install", "claude-code", "--yes"]);
    assert!(done.code == 0 && done.err.contains("disableAllHooks"), "{}", done.all());
    assert_eq!(mode_now(), 0o640);
    assert!(env.run(&["hook", "status"]).out.contains("switches all hooks off"));
    assert_eq!(env.run(&["hook", "remove", "claude-code", "--yes"]).code, 0);
    assert_eq!((mode_now(), fs::read_to_string(&path).unwrap().as_str()), (0o640, "{\"disableAllHooks\": true}"));
}

#[test]
fn a_finished_run_of_smithers_gets_its_messages() {
    let env = TestEnv::new();
    let log = session(&env);
    let database = env.work().join("smithers.db");
    let connection = Connection::open(&database).unwrap();
    connection
        .execute_batch("create table agents(id text primary key, execution_id text not null, model text, prompt text, status text, log_path text)")
        .unwrap();
    let row = "insert into agents values ('a1', 'e1', 'm', 'Hi', 'completed', ?1)";
    connection.execute(row, [log.to_str().unwrap()]).unwrap();
    let agents = || {
        connection
            .query_row("select group_concat(id || status) from agents", [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    let before = agents();
    for _ in 0..2 {
        assert_eq!(env.run(&["hook", "smithers", "smithers.db", "a1"]).code, 0);
        let count = "select count(*) from messages m join message_parts p on p.message_id = m.id where agent_id = 'a1' and execution_id = 'e1'";
        let count = || connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
        wait_for("storing", || count() == 3);
    }
    assert_eq!(agents(), before);
}

#[test]
fn tables_that_smithers_lacks_are_made_and_a_log_that_is_no_session_is_noted() {
    let env = TestEnv::new();
    let log_of = session(&env);
    let database = env.work().join("smithers.db");
    let connection = Connection::open(&database).unwrap();
    let tables = "create table agents(id text primary key, execution_id text not null, log_path text);
        create table messages(id text primary key, agent_id text, execution_id text, role text, sequence integer, metadata text);
        insert into agents values ('none', 'e1', 'none.jsonl')";
    connection.execute_batch(tables).unwrap();
    connection
        .execute("insert into agents values ('a1', 'e1', ?1)", [log_of.to_str().unwrap()])
        .unwrap();
    env.run(&["hook", "smithers", "smithers.db", "a1"]);
    let count = || connection.query_row("select count(*) from message_parts", [], |row| row.get::<_, i64>(0));
    wait_for("storing", || count().unwrap_or(0) == 3);
    for text in ["", "two\nlines\n"] {
        fs::write(env.work().join("none.jsonl"), text).unwrap();
        let before = log(&env).lines().count();
        env.run(&["hook", "smithers", "smithers.db", "none"]);
        wait_for("a note", || log(&env).lines().count() > before);
    }
}

#[test]
fn an_agent_that_does_not_close_its_end_is_not_waited_for() {
    let env = TestEnv::new();
    let path = session(&env);
    let mut hook = env.command(&["hook", "claude-code"]).spawn().unwrap();
    let mut said = hook.stdin.take().unwrap();
    // It ends before it was told anything.
    assert!(hook.wait().unwrap().success());
    writeln!(said, "{}", json!({"session_id": ID, "transcript_path": path})).unwrap();
    wait_for("indexing", || indexed_parts(&env) == 2);
    drop(said);
    assert_eq!(log(&env), "");
}

#[test]
fn runs_of_smithers_that_finish_together_are_all_stored_and_every_failure_is_noted() {
    const RUNS: i64 = 8;
    let env = TestEnv::new();
    let path = session(&env);
    let database = env.work().join("smithers.db");
    let connection = Connection::open(&database).unwrap();
    connection
        .execute_batch("create table agents(id text primary key, execution_id text not null, log_path text)")
        .unwrap();
    for run in 0..RUNS {
        let row = "insert into agents values ('a' || ?1, 'e1', ?2)";
        connection.execute(row, (run, path.to_str().unwrap())).unwrap();
    }
    for run in 0..RUNS {
        for name in ["a", "missing"] {
            assert_eq!(env.run(&["hook", "smithers", "smithers.db", &format!("{name}{run}")]).code, 0);
        }
    }
    let stored = || {
        let count = "select count(distinct agent_id) from messages";
        connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap_or(0)
    };
    wait_for("storing", || stored() == RUNS && log(&env).lines().count() as i64 >= RUNS);
    let log = log(&env);
    assert!(log.lines().count() as i64 == RUNS && (0..RUNS).all(|run| log.contains(&format!("missing{run}"))), "{log}");
}
