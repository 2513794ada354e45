//! The commands that write to a session, end to end: what they say, what they print for programs, and what they refuse.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::{TestEnv, line, talk};

fn lines(path: &PathBuf) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Ids are fresh at each run.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4;
    let cut = |line: &str| {
        let words = line.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        words
            .map(|word| {
                let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
                if is_id(name) { word.replace(name, "ID") } else { word.to_owned() }
            })
            .collect::<String>()
    };
    text.lines().map(|line| cut(line) + "\n").collect()
}

/// A home with one native session.
fn env() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    (env, path)
}

#[test]
fn a_fork_that_ends_in_a_prompt_can_be_taken_away_at_once() {
    let env = TestEnv::new();
    assert_eq!(env.run_with(&["record", "--id", "mine"], b"{\"user\": \"When?\"}\n").code, 0);
    assert_eq!(env.run(&["fork", "mine", "--id", "copy"]).code, 0);
    let removed = env.run(&["remove", "copy"]);
    assert_eq!(removed.code, 0, "{}", removed.all());
}

#[test]
fn a_title_is_a_record() {
    let (env, path) = env();
    assert_snapshot!(without_ids(&env.run(&["rename", "s1", "Sums"]).all()), @r#"
    renamed s1 to "Sums"
    [exit 0]
    "#);
    assert_snapshot!(without_ids(&env.run(&["rename", "s1", "Sums, again"]).all()), @r#"
    renamed s1 to "Sums, again"
    [exit 0]
    The title was "Sums"; rename the session again to undo.
    "#);
    let told = env.run(&["rename", "s1", "Third", "--json"]).json();
    assert_eq!((&told["session"], &told["path"]), (&json!("s1"), &json!("$HOME/.sage/sessions/s1/messages.jsonl")));
    let last = lines(&path).pop().unwrap();
    assert_eq!(
        (&last["uuid"], &last["title"], &last["timestamp"]),
        (&told["record"], &json!("Third"), &json!("2026-11-15T12:00:00Z"))
    );
    assert!(fs::read_to_string(&path).unwrap().starts_with(&talk()), "nothing that was there changed");
    assert_eq!(env.run(&["list", "--json"]).json()[0]["title"], "Third");
    for title in ["", "  ", "two\nlines", "\u{1b}[31mred", &"x".repeat(501)] {
        assert_eq!(env.run(&["rename", "s1", title]).code, 2, "{title:?}");
    }
    assert_eq!(lines(&path).len(), 7);
}

#[test]
fn a_step_back_is_a_record_and_leaves_a_branch() {
    let (env, path) = env();
    assert_snapshot!(without_ids(&env.run(&["rewind", "s1#a1", "--reason", "Was it?"]).all()), @"
    rewound s1 to a1
    [exit 0]
    Later records stay as a branch; run `scrollback rewind s1#a2` to undo.
    ");
    assert_snapshot!(env.run(&["tree", "s1"]).out.lines().take(3).collect::<Vec<_>>().join("\n"), @"
    │ a1        15 Nov 2026 10:00  What is two and two?                   answered
    ├─╮
    │ ◌ a2        15 Nov 2026 10:00  Sure?                                answered  ← earlier branch
    ");
    let told = env.run(&["rewind", "s1#a2", "--json"]).json();
    let last = lines(&path).pop().unwrap();
    assert_eq!((&last["type"], &last["uuid"], &last["parentUuid"]), (&json!("rewind"), &told["record"], &json!("a2")));
    let before = fs::read(&path).unwrap();
    assert_snapshot!(env.run(&["rewind", "s1"]).all(), @"
    [exit 2]
    scrollback: no record named
    hint: use s1#RECORD; run `scrollback tree s1` to see its turns and their records
    ");
    assert_eq!(env.run(&["rewind", "s1#zzz"]).code, 1);
    let ambiguous = env.run(&["rewind", "s1#u"]);
    assert_eq!(ambiguous.code, 2);
    assert!(ambiguous.err.contains("u1, u2"), "{}", ambiguous.err);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_fork_is_a_session_of_its_own() {
    let (env, path) = env();
    let before = fs::read(&path).unwrap();
    assert_snapshot!(without_ids(&env.run(&["fork", "s1"]).all()), @"
    forked s1 to ID
    [exit 0]
    4 records in $HOME/.sage/sessions/ID/messages.jsonl
    Run `scrollback remove ID` to undo.
    ");
    let told = env.run(&["fork", "s1#a1", "--id", "mine", "--json"]).json();
    assert_eq!(told, json!({"session": "mine", "record": "a1", "path": "$HOME/.sage/sessions/mine/messages.jsonl"}));
    assert_eq!(env.run(&["show", "mine", "--json"]).json()["session"]["forkedFrom"], "s1");
    assert_eq!(env.run(&["history", "mine", "--for", "text"]).out, env.run(&["history", "s1#a1", "--for", "text"]).out);
    assert_eq!(fs::read(&path).unwrap(), before);
    for (args, code) in [
        (&["fork", "s1", "--id", "mine"][..], 2),
        (&["fork", "s1", "--id", "s1"], 2),
        (&["fork", "s1", "--id", "../../out"], 2),
        (&["fork", "s1", "--id", ""], 2),
        (&["fork", "s1#nothing"], 1),
        (&["fork", "nothing"], 1),
        (&["fork", "-"], 2),
    ] {
        let ran = env.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty() && ran.err.contains("\nhint: "), "{args:?}: {}", ran.all());
    }
    let refused = env.run(&["fork", "s1", "--id", "mine", "--json"]);
    let error: Value = serde_json::from_str(&refused.err).unwrap();
    assert_eq!(error["error"]["kind"], "usage");
    assert_eq!(fs::read_dir(env.home().join(".sage/sessions")).unwrap().count(), 3);
}

#[test]
fn a_gap_that_a_fork_closes_is_told() {
    let env = TestEnv::new();
    env.session("s1", &[line("user", "u1", None, "One?"), line("user", "u2", Some("lost"), "Two?")].concat());
    let ran = env.run(&["fork", "s1", "--id", "f"]);
    assert!(ran.err.starts_with("warning: the branch has missing records in 1 place"), "{}", ran.err);
    let ran = env.run(&["fork", "s1", "--id", "g", "--json"]);
    let warning: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(warning["warning"]["kind"], "closed-gaps");
}

#[test]
fn what_is_removed_can_be_put_back() {
    let (env, path) = env();
    assert_snapshot!(env.run(&["trash"]).all(), @"
    [exit 1]
    scrollback: the trash is empty
    hint: run `scrollback remove SESSION` to move a session there
    ");
    assert_eq!(env.run(&["trash", "--json"]).json(), json!([]));
    assert_snapshot!(env.run(&["remove", "s1"]).all(), @"
    moved s1 to the trash
    [exit 0]
    Run `scrollback trash restore s1` to undo.
    ");
    assert!(!path.exists());
    assert_eq!(env.run(&["show", "s1"]).code, 1);
    assert_snapshot!(env.run(&["trash"]).all(), @"
    ID  REMOVED   TITLE                 AGENT   PATH
    s1  just now  What is two and two?  native  $HOME/.sage/sessions/s1/messages.jsonl
    [exit 0]
    Run `scrollback trash restore ID` to restore a session.
    ");
    let listed = env.run(&["trash", "--json"]).json();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["session"], &listed[0]["removed"]),
        (&json!("s1"), &json!("s1"), &json!("2026-11-15T12:00:00Z"))
    );
    assert_snapshot!(env.run(&["trash", "restore", "s"]).all(), @"
    restored s1
    [exit 0]
    $HOME/.sage/sessions/s1/messages.jsonl
    ");
    assert_eq!(fs::read_to_string(&path).unwrap(), talk());
    let told = env.run(&["remove", "s1", "--json"]).json();
    assert_eq!(told, json!({"session": "s1", "path": "$HOME/.sage/trash/s1", "trash": "s1"}));
    env.session("s1", &talk());
    let exists = env.run(&["trash", "restore", "s1"]);
    assert_eq!(exists.code, 2, "{}", exists.all());
    assert_eq!(env.run(&["remove", "s1", "--json"]).json()["trash"], "s1~2");
    let ambiguous = env.run(&["trash", "restore", "s"]);
    assert_eq!((ambiguous.code, env.run(&["trash", "restore", "zz"]).code), (2, 1), "{}", ambiguous.err);
    let back = env.run(&["trash", "restore", "s1~2", "--json"]).json();
    assert_eq!(back, json!({"session": "s1", "path": "$HOME/.sage/sessions/s1/messages.jsonl"}));
}

#[test]
fn several_are_removed_at_once_or_none() {
    let (env, path) = env();
    let other = env.session("s2", &talk().replace("\"s1\"", "\"s2\""));
    assert_eq!(env.run(&["remove", "s1", "nothing"]).code, 1);
    assert!(path.exists(), "a typing error removes nothing");
    assert_eq!(env.run(&["remove", "s1#a1"]).code, 2);
    let told = env.run(&["remove", "s1", "s2", "s1", "--json"]).json();
    assert_eq!((told.as_array().unwrap().len(), &told[1]["session"]), (2, &json!("s2")));
    assert!(!path.exists() && !other.exists());
    assert_eq!(env.run(&["remove"]).code, 2);
}

#[test]
fn a_foreign_session_goes_into_our_trash_with_its_sub_agents() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-gone-tide");
    fs::create_dir_all(folder.join("c1/subagents")).unwrap();
    let said = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "c1", "timestamp": "2026-11-15T10:00:00Z", "cwd": "/gone/tide",
        "version": "2.1.0", "message": {"role": "user", "content": "Hi"}});
    fs::write(folder.join("c1.jsonl"), format!("{said}\n")).unwrap();
    fs::write(folder.join("c1/subagents/agent-1.jsonl"), format!("{said}\n")).unwrap();
    let told = env.run(&["remove", "c1", "--json"]).json();
    assert_eq!(told["path"], "$HOME/.local/share/scrollback/trash/c1");
    assert!(!folder.join("c1").exists() && !folder.join("c1.jsonl").exists());
    assert_eq!(env.run(&["trash", "restore", "c1"]).code, 0);
    assert!(folder.join("c1/subagents/agent-1.jsonl").is_file());
}

#[test]
fn a_linear_format_has_no_steps_back() {
    let env = TestEnv::new();
    let folder = env.work().join("data/memory/ada@example.org");
    fs::create_dir_all(&folder).unwrap();
    let said = |id: &str| json!({"type": "message", "role": "user", "content": "Hi", "msg_id": id, "ts": "2026-11-15T10:00:00Z"});
    let header = json!({"type": "session", "version": 1, "created": "2026-11-15T10:00:00Z", "jid": "ada@example.org"});
    let log = format!("{header}\n{}\n{}\n", said("m1"), said("m2"));
    fs::write(folder.join("history.jsonl"), &log).unwrap();
    let ran = env.run(&["rewind", "ada@example.org#m1"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.err.contains("convert SESSION --to native"), "{}", ran.err);
    let ran = env.run(&["fork", "ada@example.org"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(
        ran.err
            .contains("fluux cannot store this: a fork\nhint: run `scrollback convert SESSION --to native`"),
        "{}",
        ran.err
    );
    let ran = env.run(&["rename", "ada@example.org", "Ada"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.err.contains("fluux cannot store this: title"), "{}", ran.err);
    assert_eq!(fs::read_to_string(folder.join("history.jsonl")).unwrap(), log);
}

#[test]
fn the_demo_is_never_written() {
    let env = TestEnv::new();
    env.run(&["--demo", "list"]);
    let path = env
        .home()
        .join(".cache/scrollback/demo/.sage/sessions/91c5e7a0-4b2d-4e8f-9d16-f3a0c7285be4/messages.jsonl");
    let before = fs::read(&path).unwrap();
    for args in [
        &["fork", "91c5"][..],
        &["rewind", "91c5#2c8a"],
        &["redo", "91c5"],
        &["rename", "91c5", "x"],
        &["remove", "91c5"],
        &["trash"],
        &["trash", "restore", "x"],
    ] {
        let ran = env.run(&[&["--demo"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains("the demo is read-only\nhint: "), "{}", ran.err);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!env.home().join(".local").exists());
}

#[test]
fn a_session_that_somebody_writes_to_is_warned_of() {
    let (env, path) = env();
    let now: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let wrote = |seconds_ago: i64| {
        let at = now - jiff::SignedDuration::from_secs(seconds_ago);
        file.set_modified(at.into()).unwrap();
    };
    wrote(300);
    assert_eq!(env.run(&["rename", "s1", "Quiet"]).err, "");
    fs::remove_file(path.with_file_name("metadata.json")).unwrap();
    wrote(30);
    let ran = env.run(&["rename", "s1", "Now"]);
    assert!(ran.err.starts_with("warning: this session was written to in the last minute"), "{}", ran.err);
    assert_eq!(ran.code, 0);
    fs::remove_file(path.with_file_name("metadata.json")).unwrap();
    wrote(30);
    let ran = env.run(&["remove", "s1", "--json"]);
    let warning: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &warning["warning"]["kind"]), (0, &json!("in-use")));
}

#[test]
fn a_line_without_an_end_is_told_from_a_torn_one() {
    let env = TestEnv::new();
    let path = env.session("s1", talk().trim_end());
    let ran = env.run(&["rename", "s1", "Whole"]);
    assert!(
        ran.err.contains("warning: the last record had no line end; one was added, nothing else changed\n"),
        "{}",
        ran.err
    );
    assert!(fs::read_to_string(path).unwrap().starts_with(&format!("{}{{\"type\":\"custom_title\"", talk())));
}

#[test]
fn the_demo_is_not_even_unpacked_for_a_command_that_writes() {
    let env = TestEnv::new();
    for args in [
        &["record"][..],
        &["new", "@"],
        &["fork", "@"],
        &["rewind", "@#x"],
        &["redo", "@"],
        &["rename", "@", "x"],
        &["remove", "@"],
        &["trash"],
        &["import", "x.db"],
    ] {
        let mut command = env.command(&[args, &["--demo"]].concat());
        let output = command.env("SCROLLBACK_HOME", "own").output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), told.as_str()),
            (Some(2), "scrollback: the demo is read-only\nhint: leave out --demo to write to your own sessions\n"),
            "{args:?}"
        );
        assert!(!env.work().join("own").exists(), "{args:?}");
    }
}

#[test]
fn a_clock_that_is_set_to_no_time_stops_everything() {
    let env = TestEnv::new();
    for (now, is_known) in [("garbage", false), ("2026-11-15", false), ("", true), ("2026-11-15T12:00:00+01:00", true)]
    {
        for args in [&["record"][..], &["list"], &["--demo", "list"], &["man"]] {
            let output = env.command(args).env("SCROLLBACK_NOW", now).output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            let expected = format!(
                "scrollback: invalid time in SCROLLBACK_NOW: {now:?}\nhint: set it to an instant such as 2026-11-15T12:00:00Z, or unset it\n"
            );
            assert_eq!(told == expected, !is_known, "{now:?} {args:?}: {told}");
            assert_eq!(output.status.code() == Some(2), !is_known, "{now:?} {args:?}: {told}");
        }
    }
}

#[test]
fn a_torn_end_is_closed_and_told() {
    let env = TestEnv::new();
    let path = env.session("s1", &format!("{}{{\"type\":\"user\",\"uu", talk()));
    let ran = env.run(&["rename", "s1", "Whole"]);
    assert!(ran.err.contains("warning: the file ended inside a record"), "{}", ran.err);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with(&talk()) && text.contains("\"uu\n{\"type\":\"custom_title\""), "{text}");
}

#[cfg(unix)]
#[test]
fn what_stands_in_the_place_of_a_file_is_not_written_through() {
    let env = TestEnv::new();
    let real = env.work().join("real.jsonl");
    fs::write(&real, talk()).unwrap();
    let folder = env.home().join(".sage/sessions/s1");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&real, folder.join("messages.jsonl")).unwrap();
    for args in [&["rename", "s1", "x"][..], &["rewind", "s1#a1"], &["remove", "s1"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.all());
        assert!(ran.err.contains("hint: "), "{}", ran.err);
    }
    assert_eq!(fs::read_to_string(&real).unwrap(), talk());
    // Reading follows the link, and so a fork can be made of it.
    assert_eq!(env.run(&["fork", "s1", "--id", "f"]).code, 0);
    fs::create_dir_all(env.home().join(".sage/sessions/d/messages.jsonl")).unwrap();
    let ran = env.run(&["remove", &env.home().join(".sage/sessions/d/messages.jsonl").to_string_lossy()]);
    assert_ne!(ran.code, 0, "{}", ran.all());
    assert!(env.home().join(".sage/sessions/d/messages.jsonl").is_dir());
}

#[test]
fn a_file_in_no_store_is_written_where_it_lies() {
    let env = TestEnv::new();
    let path = env.work().join("messages.jsonl");
    fs::write(&path, talk()).unwrap();
    fs::write(env.work().join("letter.txt"), "mine").unwrap();
    assert_eq!(env.run(&["rename", "./messages.jsonl", "Loose"]).code, 0);
    assert_eq!(lines(&path).len(), 5);
    let told = env.run(&["fork", "messages.jsonl", "--id", "f", "--json"]).json();
    assert_eq!(told["path"], "$HOME/.local/share/scrollback/sessions/f/messages.jsonl");
    assert_eq!(env.run(&["remove", "./messages.jsonl"]).code, 0);
    assert!(env.work().join("letter.txt").exists(), "the folder is not the session's");
    assert_eq!(env.run(&["trash", "restore", "s1"]).code, 0);
    assert_eq!(lines(&path).len(), 5);
    fs::write(env.work().join("notes.log"), talk()).unwrap();
    assert_eq!(env.run(&["remove", "./notes.log"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_store_that_may_not_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let (env, path) = env();
    let close = |path: &PathBuf, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let sessions = env.home().join(".sage/sessions");
    close(&path, 0o444);
    close(&sessions, 0o555);
    for args in [&["rename", "s1", "x"][..], &["fork", "s1"], &["remove", "s1"]] {
        let ran = env.run_as_anybody(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.all());
        assert!(ran.err.contains("hint: check its owner and permissions"), "{args:?}: {}", ran.err);
    }
    close(&sessions, 0o700);
    assert_eq!(fs::read_to_string(&path).unwrap(), talk());
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 1);
}

#[test]
fn strangers_names_are_harmless_on_a_terminal() {
    let env = TestEnv::new();
    let hostile = "x\u{1b}]0;owned\u{7}\u{202e}";
    env.session("odd", &talk().replace("\"s1\"", &json!(hostile).to_string()));
    for args in [&["rename", "odd", "Tame"][..], &["fork", "odd", "--id", "f"], &["remove", "odd"], &["trash"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.all());
        assert!(!ran.all().contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {:?}", ran.all());
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_leads_out_of_the_store_is_not_written_to() {
    let env = TestEnv::new();
    let out = env.work().join("out");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("messages.jsonl"), talk()).unwrap();
    fs::create_dir_all(env.home().join(".sage/sessions")).unwrap();
    std::os::unix::fs::symlink(&out, env.home().join(".sage/sessions/s1")).unwrap();
    for args in [&["rename", "s1", "x"][..], &["rewind", "s1#a1"], &["remove", "s1"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.all());
        assert!(ran.err.contains("a link leads out of the store") && ran.err.contains("hint: "), "{}", ran.err);
    }
    let ran = env.run_with(&["record", "--resume", "s1"], b"{\"user\":\"Hi\"}\n");
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert_eq!(fs::read_to_string(out.join("messages.jsonl")).unwrap(), talk());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    // The whole store may be a link: its owner made it.
    let (sage, elsewhere) = (env.home().join(".sage"), env.work().join("elsewhere"));
    fs::remove_file(env.home().join(".sage/sessions/s1")).unwrap();
    fs::rename(&sage, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &sage).unwrap();
    env.session("s2", &talk());
    assert_eq!(env.run(&["rename", "s2", "x"]).code, 0);
    assert_eq!(env.run(&["remove", "s2"]).code, 0);
    assert_eq!(env.run(&["trash", "restore", "s1"]).code, 0, "it is called as its content says");
}

#[test]
fn a_session_that_was_just_written_is_warned_of_unless_its_sidecar_says_that_it_is_closed() {
    let said = b"{\"user\":\"Hi\"}\n{\"assistant\":\"Ho\"}\n";
    for dialect in ["native", "claude-code", "qwen-code", "codex", "sage-el", "fluux"] {
        let env = TestEnv::new();
        let mut args = vec!["record", "--dialect", dialect];
        args.extend(if dialect == "fluux" { &["--jid", "alice@example.com"][..] } else { &[] });
        let ran = env.run_with(&args, said);
        assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
        let row = env.run(&["list", "--all", "--json"]).json()[0].clone();
        let (id, path) = (row["id"].as_str().unwrap(), row["path"].as_str().unwrap());
        let desk = env.work().to_string_lossy().into_owned();
        let path = PathBuf::from(path.replace("$HOME", &env.home().to_string_lossy()).replace("$DIR/desk", &desk));
        let ran = env.run_with(&["record", "--resume", id], said);
        let is_warned = ran.err.contains("written to in the last minute");
        assert_eq!((ran.code, is_warned), (0, dialect != "native"), "{dialect}: {}", ran.all());
        // Somebody else adds a line, by his own clock.
        let before = fs::read_to_string(&path).unwrap();
        let last = before.lines().last().unwrap();
        fs::write(&path, format!("{before}{last}\n")).unwrap();
        let ran = env.run_with(&["record", "--resume", id], said);
        assert!(ran.err.contains("written to in the last minute"), "{dialect}: {}", ran.all());
        // Ours was closed, his may go on.
        let ran = env.run_with(&["record", "--resume", id], said);
        assert!(ran.err.contains("written to in the last minute"), "{dialect}: {}", ran.all());
    }
}

#[test]
fn a_copy_is_as_old_as_what_it_says() {
    let (env, path) = env();
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.set_modified("2026-11-15T11:59:50Z".parse::<jiff::Timestamp>().unwrap().into()).unwrap();
    assert_eq!(env.run(&["rename", "s1", "Old"]).err, "");
}

#[cfg(unix)]
#[test]
fn a_project_is_where_its_name_leads() {
    let env = TestEnv::new();
    let (repo, plain) = (env.work().join("repo"), env.work().join("plain"));
    fs::create_dir_all(repo.join(".git")).unwrap();
    fs::write(repo.join(".git/HEAD"), "ref: refs/heads/tides\n").unwrap();
    fs::create_dir_all(&plain).unwrap();
    std::os::unix::fs::symlink(&plain, repo.join("link")).unwrap();
    for (dir, name) in [("repo/../plain", "plain"), ("repo/link", "plain"), ("plain/../repo", "repo")] {
        let ran = env.run_with(&["record", "--project", dir], b"{\"user\":\"Hi\"}\n");
        assert_eq!(ran.code, 0, "{}", ran.all());
        let rows = env.run(&["list", "--project", dir, "--json"]).json();
        assert!(rows[0]["project"].as_str().unwrap().ends_with(&format!("/desk/{name}")), "{dir}: {rows}");
        assert_eq!(rows[0]["gitBranch"].as_str(), Some("tides").filter(|_| name == "repo"), "{dir}: {rows}");
    }
}

#[test]
fn a_step_back_to_where_the_session_stands_leaves_nothing() {
    let (env, _) = env();
    assert_snapshot!(without_ids(&env.run(&["rewind", "s1#a2"]).all()), @"
    rewound s1 to a2
    [exit 0]
    ");
    let ran = env.run(&["rewind", "s1#"]);
    assert!(ran.code == 2 && ran.err.contains("no record named"), "{}", ran.all());
}

#[test]
fn names_that_other_systems_trip_over_are_refused() {
    let (env, _) = env();
    for name in ["-x", "con", "NUL", "nul.txt", "com1", "LPT9", "aux"] {
        let ran = env.run(&["fork", "s1", &format!("--id={name}")]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.all());
    }
    for name in ["conrad", "com", "com10", "x-"] {
        let ran = env.run(&["fork", "s1", &format!("--id={name}")]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.all());
    }
}

#[test]
fn emptying_the_trash_asks_or_needs_yes_and_deletes_only_what_is_in_it() {
    let env = TestEnv::new();
    for id in ["s1", "s2", "s3"] {
        env.session(id, &talk().replace("\"s1\"", &format!("\"{id}\"")));
    }
    assert_eq!(env.run(&["remove", "s1", "s2"]).code, 0);
    let trash = env.home().join(".sage/trash");
    let refused = env.run(&["trash", "empty"]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert!(refused.err.contains("2 removed sessions would be deleted for good") && refused.err.contains("--yes"));
    let refused = env.run(&["trash", "empty", "--json"]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    let planned = env.run(&["trash", "empty", "--dry-run", "--json"]);
    assert_eq!((planned.code, planned.json().as_array().unwrap().len()), (0, 2), "{}", planned.all());
    assert!(planned.json()[0]["deleted"] == false && planned.json()[0]["sizeBytes"].as_u64() > Some(100));
    assert!(trash.join("s1").is_dir() && trash.join("s2").is_dir());
    // Both were removed just now.
    assert_eq!(env.run(&["trash", "empty", "--older-than", "1d", "--yes"]).code, 1);
    assert_eq!(env.run(&["trash", "empty", "--older-than", "soon", "--yes"]).code, 2);
    assert_eq!(env.run(&["trash", "empty", "s3", "--yes"]).code, 1, "it was not removed");
    let deleted = env.run(&["trash", "empty", "s1", "--yes"]);
    assert!(deleted.code == 0 && deleted.out.starts_with("deleted s1  "), "{}", deleted.all());
    assert!(!trash.join("s1").exists() && trash.join("s2").is_dir());
    assert_eq!(env.run(&["trash", "restore", "s1"]).code, 1);
    let deleted = env.run(&["trash", "empty", "--yes", "--json"]);
    assert_eq!((deleted.code, &deleted.json()[0]["deleted"]), (0, &true.into()), "{}", deleted.all());
    assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 0);
    assert_eq!(env.run(&["trash", "empty", "--yes"]).code, 1);
    assert!(env.run(&["show", "s3"]).out.contains("Sure?"));
}

#[cfg(unix)]
#[test]
fn emptying_the_trash_follows_no_link_and_touches_no_foreign_folder() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    let precious = env.work().join("precious");
    std::fs::create_dir_all(&precious).unwrap();
    std::fs::write(precious.join("file"), "mine").unwrap();
    let log = env.session("s1", &talk());
    symlink(&precious, log.with_file_name("link")).unwrap();
    assert_eq!(env.run(&["remove", "s1"]).code, 0);
    let trash = env.home().join(".sage/trash");
    std::fs::create_dir_all(trash.join("notes")).unwrap();
    std::fs::write(trash.join("notes/file"), "mine").unwrap();
    let note = std::fs::read_to_string(trash.join("s1/origin.json")).unwrap();
    symlink(&precious, trash.join("linked")).unwrap();
    std::fs::write(precious.join("origin.json"), note).unwrap();
    let emptied = env.run(&["trash", "empty", "--yes"]);
    assert!(!trash.join("s1").exists(), "{}", emptied.all());
    assert_eq!(std::fs::read_to_string(precious.join("file")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(trash.join("notes/file")).unwrap(), "mine");
    assert!(trash.join("linked").exists());
    // A trash that is a link is not ours.
    std::fs::rename(&trash, env.work().join("elsewhere")).unwrap();
    symlink(&precious, &trash).unwrap();
    std::fs::create_dir_all(precious.join("s1")).unwrap();
    std::fs::rename(precious.join("origin.json"), precious.join("s1/origin.json")).unwrap();
    assert_ne!(env.run(&["trash", "empty", "--yes"]).code, 0);
    assert!(precious.join("s1/origin.json").exists());
}

#[test]
fn a_deletion_that_was_killed_is_not_listed_and_is_finished_later() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    env.session("s2", &talk().replace("\"s1\"", "\"s2\""));
    assert_eq!(env.run(&["remove", "s1", "s2"]).code, 0);
    let trash = env.home().join(".sage/trash");
    std::fs::rename(trash.join("s1"), trash.join(".s1.deleting")).unwrap();
    let listed = env.run(&["trash"]);
    assert!(!listed.all().contains("deleting") && listed.out.contains("s2"), "{}", listed.all());
    assert_eq!(env.run(&["trash", "empty", "--yes"]).code, 0);
    assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 0);
}

#[test]
fn a_deletion_that_was_killed_is_finished_though_nothing_else_is_in_the_trash() {
    for args in [&["trash", "empty", "--yes"][..], &["trash", "empty", "s1", "--yes"], &["trash", "empty", "--json"]] {
        let env = TestEnv::new();
        env.session("s1", &talk());
        assert_eq!(env.run(&["remove", "s1"]).code, 0);
        let trash = env.home().join(".sage/trash");
        std::fs::rename(trash.join("s1"), trash.join(".s1.deleting")).unwrap();
        assert_eq!(env.run(&["trash", "empty", "--dry-run"]).code, 1);
        assert!(trash.join(".s1.deleting").exists());
        let finished = env.run(args);
        assert_eq!(finished.code, 0, "{args:?}: {}", finished.all());
        assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 0, "{args:?}: {}", finished.all());
        assert_eq!(env.run(&["trash", "empty", "--yes"]).code, 1);
    }
}

#[cfg(unix)]
#[test]
fn a_trash_that_cannot_be_read_is_not_an_empty_one() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    env.session("s1", &talk());
    assert_eq!(env.run(&["remove", "s1"]).code, 0);
    let trash = env.home().join(".sage/trash");
    std::fs::set_permissions(&trash, std::fs::Permissions::from_mode(0o0)).unwrap();
    let listed = env.run_as_anybody(&["trash"]);
    std::fs::set_permissions(&trash, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(listed.code, 2, "{}", listed.all());
    assert!(listed.err.contains("ermission denied") && !listed.err.contains("is empty"), "{}", listed.all());
}

/// The log goes to the trash first: what a killed removal leaves is no session any more.
#[test]
fn a_removal_that_was_killed_after_the_log_is_finished_by_the_full_id() {
    let env = TestEnv::new();
    let id = "5e551000-0000-4000-8000-000000000001";
    let project = env.home().join(".claude/projects/-gone-tide");
    let said = |uuid: &str, is_sidechain: bool| {
        let line = serde_json::json!({"type": "user", "uuid": uuid, "parentUuid": null, "sessionId": id, "cwd": "/gone/tide",
            "isSidechain": is_sidechain, "timestamp": "2026-11-01T09:00:00Z", "version": "2.1.325",
            "message": {"role": "user", "content": "One?"}});
        format!("{line}\n")
    };
    let agents = project.join(id).join("subagents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(project.join(format!("{id}.jsonl")), said("u1", false)).unwrap();
    for number in 0..3 {
        std::fs::write(agents.join(format!("agent-{number}.jsonl")), said("a1", true)).unwrap();
    }
    assert_eq!(env.run(&["remove", id]).code, 0);
    // As if it had been killed: the folder of the sub-agents is still where it was, all of it or a part.
    let entry = env.home().join(".local/share/scrollback/trash").join(id);
    for is_copied in [false, true] {
        if is_copied {
            std::fs::create_dir_all(&agents).unwrap();
            std::fs::copy(entry.join(id).join("subagents/agent-1.jsonl"), agents.join("agent-1.jsonl")).unwrap();
        } else {
            std::fs::rename(entry.join(id), project.join(id)).unwrap();
        }
        std::fs::write(entry.join(".moving"), "").unwrap();
        let finished = env.run(&["remove", id]);
        assert_eq!(finished.code, 0, "{is_copied}: {}", finished.all());
        assert!(!project.join(id).exists() && !entry.join(".moving").exists(), "{}", finished.all());
    }
    assert_eq!(env.run(&["trash", "restore", id]).code, 0);
    assert_eq!(std::fs::read_dir(&agents).unwrap().count(), 3);
}

#[test]
fn what_is_only_partly_in_the_trash_is_not_deleted() {
    let env = TestEnv::new();
    for id in ["s1", "s2"] {
        env.session(id, &talk().replace("\"s1\"", &format!("\"{id}\"")));
    }
    assert_eq!(env.run(&["remove", "s1", "s2"]).code, 0);
    // A restoration was killed after it had moved the session's folder, and before the note was deleted.
    let (trash, sessions) = (env.home().join(".sage/trash"), env.home().join(".sage/sessions"));
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::rename(trash.join("s1/s1"), sessions.join("s1")).unwrap();
    std::fs::write(trash.join("s1/rest"), "more of it").unwrap();
    for (args, has_s2) in [(["trash", "empty", "--dry-run"], true), (["trash", "empty", "--yes"], false)] {
        let refused = env.run(&args);
        assert_eq!(refused.code, 1, "{}", refused.all());
        assert!(
            refused.err.contains("only a part of \"s1\"") && refused.err.contains("trash restore"),
            "{}",
            refused.all()
        );
        assert!(!refused.out.contains("s1 ") && refused.out.contains("s2 "), "{}", refused.all());
        assert!(trash.join("s1/rest").exists() && trash.join("s2").exists() == has_s2, "{}", refused.all());
    }
    assert_eq!(env.run(&["trash", "restore", "s1"]).code, 0);
    assert!(env.run(&["show", "s1"]).out.contains("Sure?"));
}

/// A fork of Codex has no copy of what came before: it begins in the other file.
#[test]
fn whoever_removes_the_beginning_of_another_session_is_warned() {
    let env = TestEnv::new();
    let (base, fork) = ("019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7", "019a6f90-12e8-7b64-8c3d-2e95a7f40b18");
    let rollout = |id: &str, history_base: Value| {
        let meta = json!({"timestamp": "2026-11-15T10:00:00Z", "type": "session_meta", "ordinal": 0, "payload": {
            "id": id, "timestamp": "2026-11-15T10:00:00Z", "cwd": "/gone/tide", "history_mode": "paginated", "history_base": history_base}});
        let path = env.home().join(format!(".codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{meta}\n")).unwrap();
    };
    let both = || {
        rollout(base, Value::Null);
        rollout(fork, json!({"thread_id": base, "end_ordinal_exclusive": 1}));
    };
    both();
    let alone = env.run(&["remove", fork]);
    assert!(alone.code == 0 && !alone.err.contains("warning"), "{}", alone.all());
    both();
    let together = env.run(&["remove", base, fork]);
    assert!(together.code == 0 && !together.err.contains("warning"), "{}", together.all());
    both();
    let warned = env.run(&["remove", base]);
    let warning = format!("warning: sessions that begin in {base} lose their beginning: {fork}\n");
    assert!(warned.code == 0 && warned.err.starts_with(&warning), "{}", warned.all());
    both();
    let removed = env.run(&["remove", base, "--json"]);
    assert_eq!(removed.json()["dependents"], json!([fork]));
}

#[test]
fn only_blobs_that_nobody_needs_are_deleted_and_only_if_somebody_agrees() {
    let env = TestEnv::new();
    let store = env.home().join(".sage");
    let old = std::time::SystemTime::UNIX_EPOCH;
    let put = |name: &str, written: Option<std::time::SystemTime>| {
        let path = store.join("blobs").join(&name[..2]).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut &file, b"packed").unwrap();
        written.into_iter().for_each(|written| file.set_modified(written).unwrap());
        path
    };
    let name = |digit: &str| digit.repeat(64);
    let [named, removed, journaled, unneeded, new] = ["a", "b", "c", "d", "e"].map(name);
    let snapshot = |name: &str| {
        format!(
            "{{\"type\":\"file_history_snapshot\",\"snapshot\":{{\"fileBackups\":{{\"x\":{{\"backupPath\":\"blob:{name}\"}}}}}}}}\n"
        )
    };
    env.session("s1", &(talk() + &snapshot(&named)));
    for (path, name) in [("trash/s2/messages.jsonl", &removed), ("journal/claude-code/s3.jsonl", &journaled)] {
        std::fs::create_dir_all(store.join(path).parent().unwrap()).unwrap();
        std::fs::write(store.join(path), snapshot(name)).unwrap();
    }
    let kept = [put(&named, Some(old)), put(&removed, Some(old)), put(&journaled, Some(old)), put(&new, None)];
    let gone = put(&unneeded, Some(old));
    let refused = env.run(&["trash", "empty", "--blobs"]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert!(refused.err.contains("1 blob that no session needs would be deleted for good"), "{}", refused.err);
    let shown = env.run(&["trash", "empty", "--blobs", "--dry-run", "--json"]);
    assert_eq!(shown.json(), serde_json::json!({"count": 1, "bytes": 6, "deleted": false}));
    assert!(gone.exists());
    let done = env.run(&["trash", "empty", "--blobs", "--yes"]);
    assert_eq!(done.all(), "deleted 1 blob that no session needs (6 bytes)\n[exit 0]\n");
    assert!(!gone.exists() && kept.iter().all(|path| path.exists()));
    let again = env.run(&["trash", "empty", "--blobs", "--yes"]);
    assert_eq!(again.code, 1, "{}", again.all());
}
