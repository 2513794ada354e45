//! `new`, and `record` for agents that have one session at a time: ended, idle, gone on with.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::TestEnv;
use support::chats::{at, fluux, lines};

/// What is said in a file of the store.
fn said(env: &TestEnv, path: &str) -> Vec<String> {
    let said = lines(env, path).into_iter().filter(|line| line["type"] == "message");
    said.map(|line| line["content"].as_str().unwrap().to_owned()).collect()
}

fn archives(env: &TestEnv, jid: &str) -> Vec<String> {
    let Ok(found) = fs::read_dir(env.work().join("memory").join(jid).join("sessions")) else { return Vec::new() };
    let mut names: Vec<String> = found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_session_is_ended_and_the_next_message_begins_another() {
    let env = TestEnv::new();
    let jid = ["--jid", "alice@example.com/phone"];
    for (word, code) in [("One", 0), ("Two", 0)] {
        assert_eq!(
            fluux(&env, &["record", "--jid", "alice@example.com"], &format!("{{\"user\": \"{word}\"}}\n")).code,
            code
        );
    }
    assert_eq!(said(&env, "alice@example.com/history.jsonl"), ["One", "Two"], "it is gone on with");
    let ended = fluux(&env, &[&["new", "--json"], &jid[..]].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.all());
    let path = "$DIR/desk/memory/alice@example.com/sessions/20261115-120000.jsonl";
    assert_eq!(ended.json(), json!({"session": "alice@example.com:20261115-120000", "path": path}));
    let again = fluux(&env, &[&["new"], &jid[..]].concat(), "");
    assert_eq!(
        again.all(),
        "[exit 1]\nscrollback: no session to end: there is no current session\nhint: the next message starts one\n"
    );
    fluux(&env, &[&["record"], &jid[..]].concat(), "{\"user\": \"Three\"}\n");
    let by_name = fluux(&env, &["new", "memory/alice@example.com/history.jsonl"], "");
    assert_eq!(
        (by_name.code, by_name.out.as_str()),
        (0, "ended the session; its id is now alice@example.com:20261115-120001\n"),
        "{}",
        by_name.all()
    );
    assert_eq!(archives(&env, "alice@example.com"), ["20261115-120000.jsonl", "20261115-120001.jsonl"]);
    let shown =
        env.run(&["show", "alice@example.com:20261115-120000", "--store", "memory", "--dialect", "fluux", "--json"]);
    assert_eq!(shown.json()["messages"].as_array().unwrap().len(), 2, "{}", shown.all());
    let kept = lines(&env, "alice@example.com/sessions/20261115-120000.jsonl");
    let path = "memory/alice@example.com/sessions/20261115-120000.jsonl";
    for args in [
        &["new", path][..],
        &["new", "alice@example.com:20261115-120000"],
        &["new", "@"],
        &["record", "--resume", path],
        &["record", "--resume", "alice@example.com:20261115-120000"],
        &["record", "--resume", "@"],
    ] {
        let refused = fluux(&env, args, "");
        assert_eq!(
            refused.all(),
            "[exit 2]\nscrollback: session \"alice@example.com:20261115-120000\" has ended\n\
             hint: use --jid or --project to continue the session that followed it, or `scrollback convert` to continue a copy\n",
            "{args:?}"
        );
    }
    assert_eq!(lines(&env, "alice@example.com/sessions/20261115-120000.jsonl"), kept);
}

#[test]
fn what_says_nothing_is_not_ended_and_that_is_said() {
    let env = TestEnv::new();
    let path = env.work().join("memory/alice@example.com/history.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for text in [
        "",
        "{\"type\":\"session\",\"version\":1,\"created\":\"2025-02-08T18:00:00Z\",\"jid\":\"alice@example.com\"}\n",
        // Somebody did say something.
        "{\"type\":\"session\",\"jid\":\"alice@example.com\"}\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"When is h",
    ] {
        fs::write(&path, text).unwrap();
        let ran = fluux(&env, &["new", "--jid", "alice@example.com"], "");
        assert_eq!(ran.all(), "[exit 1]\nscrollback: no session to end: the session has no complete message yet\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert!(archives(&env, "alice@example.com").is_empty());
}

#[test]
fn what_cannot_be_ended_is_told_with_a_hint() {
    let env = TestEnv::new();
    for (args, message, hint) in [
        (&["new"][..], "no session named", "name it, or use --dialect fluux --jid JID, or --dialect sage-el"),
        (
            &["new", "--dialect", "claude-code"],
            "claude-code sessions do not end: the agent can have several",
            "run `scrollback record` to start a new session",
        ),
        (&["new", "--dialect", "fluux"], "a Fluux session needs a person or a room", "add --jid JID"),
        (
            &["new", "--dialect", "fluux", "--jid", "../x"],
            "invalid JID \"../x\": it leads out of the store",
            "a JID looks like alice@example.com",
        ),
        (
            &["new", "--dialect", "sage-el", "--jid", "a@b"],
            "--jid works only with Fluux Agent",
            "use --dialect fluux, or leave out --jid",
        ),
        (
            &["record", "--idle-minutes", "5"],
            "native sessions do not end when idle",
            "use --idle-minutes with --dialect fluux",
        ),
        (
            &["record", "--idle-minutes", "1", "--dialect", "sage-el"],
            "sage-el sessions do not end when idle",
            "use --idle-minutes with --dialect fluux",
        ),
        (
            &["record", "--dialect", "fluux", "--jid", "a@b", "--id", "mine"],
            "fluux sessions cannot be given an id",
            "omit --id",
        ),
        (&["record", "--dialect", "sage-el", "--id", "mine"], "sage-el sessions cannot be given an id", "omit --id"),
        (
            &["new", "--demo", "--dialect", "sage-el"],
            "the demo is read-only",
            "leave out --demo to write to your own sessions",
        ),
    ] {
        let ran = env.run(args);
        assert_eq!(ran.all(), format!("[exit 2]\nscrollback: {message}\nhint: {hint}\n"), "{args:?}");
    }
}

#[test]
fn an_idle_session_is_ended_before_the_next_message() {
    let env = TestEnv::new();
    let run = |now: &str, minutes: &str, line: &str| {
        at(&env, now, &["record", "--jid", "a@b", "--idle-minutes", minutes], &format!("{line}\n"))
    };
    assert_eq!(run("2026-11-15T12:00:00Z", "30", "{\"message\": \"One\"}").code, 0);
    assert_eq!(run("2026-11-15T12:30:00Z", "30", "{\"message\": \"Two\"}").err.matches("idle").count(), 0);
    assert_eq!(
        run("2026-11-15T14:00:00Z", "0", "{\"message\": \"Three\"}").err.matches("idle").count(),
        0,
        "0 is never"
    );
    let ran = run("2026-11-15T14:30:01Z", "30", "{\"message\": \"Four\"}");
    assert!(
        ran.err
            .starts_with("warning: the session was idle and has ended; it is now a@b:20261115-143001, in "),
        "{}",
        ran.err
    );
    assert_eq!(said(&env, "a@b/history.jsonl"), ["Four"]);
    assert_eq!(said(&env, "a@b/sessions/20261115-143001.jsonl"), ["One", "Two", "Three"]);
    // The clock was set back: nothing is idle.
    assert_eq!(run("2026-11-15T10:00:00Z", "30", "{\"message\": \"Five\"}").err.matches("idle").count(), 0);
    assert_eq!(archives(&env, "a@b").len(), 1);
}

#[test]
fn an_answer_that_comes_late_stays_with_its_question() {
    for (late, then) in [
        ("{\"assistant\": \"Yes.\"}\n", vec!["One", "Yes."]),
        ("{\"delta\": {\"text\": \"Y\"}}\n{\"delta\": {\"text\": \"es.\"}}\n{\"finish\": {}}\n", vec!["One", "Yes."]),
        ("{\"role\": \"assistant\", \"parts\": [{\"type\": \"text\", \"text\": \"Yes.\"}]}\n", vec!["One", "Yes."]),
        // It was not idle any more when somebody asked again.
        ("{\"assistant\": \"Yes.\"}\n{\"message\": \"Two\"}\n", vec!["One", "Yes.", "Two"]),
    ] {
        let env = TestEnv::new();
        let run = |now: &str, lines: &str| at(&env, now, &["record", "--jid", "a@b", "--idle-minutes", "5"], lines);
        assert_eq!(run("2026-11-15T12:00:00Z", "{\"message\": \"One\"}\n").code, 0);
        let ran = run("2026-11-15T12:10:00Z", late);
        assert_eq!((ran.code, ran.err.matches("idle").count()), (0, 0), "{late}: {}", ran.err);
        assert_eq!(said(&env, "a@b/history.jsonl"), then, "{late}");
        assert!(archives(&env, "a@b").is_empty());
        // The next question finds it idle again.
        assert_eq!(run("2026-11-15T12:20:00Z", "{\"message\": \"Three\"}\n").err.matches("was idle").count(), 1);
        assert_eq!(said(&env, "a@b/history.jsonl"), ["Three"]);
    }
}

#[test]
fn a_project_of_sage_goes_on_in_one_file_and_no_other_project_does() {
    let env = TestEnv::new();
    let sage = |args: &[&str], project: &str, input: &str| {
        env.run_with(
            &[args, &["--dialect", "sage-el", "--store", "sage", "--project", project]].concat(),
            input.as_bytes(),
        )
    };
    for word in ["One", "Two"] {
        assert_eq!(sage(&["record"], "/gone/a-b", &format!("{{\"user\": \"{word}\"}}\n")).code, 0);
    }
    let folder = env.work().join("sage/projects/-gone-a-b");
    let log = || fs::read_to_string(folder.join("conversation.jsonl")).unwrap_or_default();
    assert_eq!(log().lines().count(), 2, "{}", log());
    let other = sage(&["record"], "/gone/a/b", "{\"user\": \"Mine\"}\n");
    assert_eq!(other.code, 2, "{}", other.all());
    assert!(
        other.err.contains("the folder belongs to another project, /gone/a-b\nhint: both projects"),
        "{}",
        other.err
    );
    assert_eq!((log().lines().count(), other.out.as_str()), (2, ""));
    assert_eq!(sage(&["new"], "/gone/a/b", "").code, 2, "nor is another's session ended");
    let ended = sage(&["new", "--json"], "/gone/a-b", "");
    assert_eq!(ended.code, 0, "{}", ended.all());
    assert!(
        ended.json()["path"]
            .as_str()
            .unwrap()
            .ends_with("sage/projects/-gone-a-b/history/20261115-120000.jsonl")
    );
    assert_eq!(sage(&["new"], "/gone/a-b", "").code, 1);
    assert_eq!(sage(&["record"], "/gone/a-b", "{\"user\": \"Three\"}\n").code, 0);
    assert_eq!(log().lines().count(), 1);
    let about: Value = serde_json::from_str(&fs::read_to_string(folder.join("metadata.json")).unwrap()).unwrap();
    assert_eq!((&about["project_dir"], &about["message_count"]), (&json!("/gone/a-b"), &json!(1)));
}
