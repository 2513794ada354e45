//! `redact`: reports secrets in sessions and files, writes clean copies, cleans in place. Whatever it prints, never a secret.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use support::{Ran, TestEnv, line};

/// A made-up token, put together here so that no scanner of sources takes it for a real one.
fn token() -> String {
    format!("{}{}", "ghp_", "Xq7vLm2Ks9Wd4Rt8Zb3Nc6Hf1Jg5Py0Ua2Ee")
}

/// A session of the demo in each dialect: its file there, its file in the home, and words of it.
const SESSIONS: [(&str, &str, &str, &str); 7] = [
    (
        "native",
        "sage/sessions/78be2c15-3d4f-4a61-b0c9-e5f17a2d8094/messages.jsonl",
        "home/.sage/sessions/78be2c15-3d4f-4a61-b0c9-e5f17a2d8094/messages.jsonl",
        "Check everything twice",
    ),
    (
        "claude-code",
        "claude/projects/-home-ada-tide-tables/8b20e5a7-f94c-4d16-b3e8-1c7d6a90425f.jsonl",
        "home/.claude/projects/-home-ada-tide-tables/8b20e5a7-f94c-4d16-b3e8-1c7d6a90425f.jsonl",
        "harbours of Brittany",
    ),
    (
        "codex",
        "codex/sessions/2026/11/09/rollout-2026-11-09T08-14-03-019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7.jsonl",
        "home/.codex/sessions/2026/11/09/rollout-2026-11-09T08-14-03-019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7.jsonl",
        "ask before the network",
    ),
    (
        "qwen-code",
        "qwen/projects/-home-ada-blog/chats/f04b7e92-6c1d-4a58-b3e7-91d2c05a8f36.jsonl",
        "home/.qwen/projects/-home-ada-blog/chats/f04b7e92-6c1d-4a58-b3e7-91d2c05a8f36.jsonl",
        "as published today",
    ),
    (
        "fluux",
        "data/memory/keepers@rooms.example.org/history.jsonl",
        "desk/data/memory/keepers@rooms.example.org/history.jsonl",
        "for the open day",
    ),
    (
        "sage-el",
        "emacs.d/sage/projects/-home-ada-tide-tables/conversation.jsonl",
        "home/.emacs.d/sage/projects/-home-ada-tide-tables/conversation.jsonl",
        "I look through the file.",
    ),
    (
        "ai-sdk",
        "local/share/scrollback/chats/buoys.json",
        "home/.local/share/scrollback/chats/buoys.json",
        "I sail into Brest",
    ),
];

/// Writes a file that nobody has touched for some days.
fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    age(path, Duration::from_secs(5 * 24 * 3600));
}

/// Sets how long before the clock of the tests a file was written to.
fn age(path: &Path, age: Duration) {
    // 2026-11-15T12:00:00Z
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_744_000);
    fs::File::options().append(true).open(path).unwrap().set_modified(now - age).unwrap();
}

/// Puts the session of a dialect with a secret in it into the home, and returns its file and what was there before.
fn leak(env: &TestEnv, (_, demo, place, words): (&str, &str, &str, &str)) -> (PathBuf, String) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(demo);
    let clean = fs::read_to_string(demo).unwrap();
    let path = env.home().parent().unwrap().join(place);
    let text = clean.replacen(words, &format!("{words} with {} then", token()), 1);
    assert_ne!(text, clean, "{words}");
    put(&path, &text);
    (path, text)
}

/// Runs it; neither output has the secret.
fn redact(env: &TestEnv, args: &[&str]) -> Ran {
    checked(env.run(&[&["redact"], args].concat()))
}

fn checked(ran: Ran) -> Ran {
    assert!(!ran.all().contains(&token()[4..20]), "{}", ran.all());
    ran
}

/// A native session with one prompt.
fn prompt(env: &TestEnv, id: &str, text: &str) -> PathBuf {
    let path = env.session(id, &line("user", "u1", None, text).replace("s1", id));
    age(&path, Duration::from_secs(3600));
    path
}

fn notes(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(env.home().join(".local/share/scrollback/redactions.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(env: &TestEnv, path: &Path) -> Vec<String> {
    let tree = env.run(&["tree", "--json", "--no-redact", path.to_str().unwrap()]).json();
    let id = |record: &Value| {
        let id = record["id"].as_str().unwrap();
        // A record without an id is called after its offset.
        if id.starts_with("at-") { "at".to_owned() } else { id.to_owned() }
    };
    tree["records"].as_array().unwrap().iter().map(id).collect()
}

#[test]
fn every_dialect_is_reported_copied_and_cleaned() {
    for session in SESSIONS {
        let (dialect, env) = (session.0, TestEnv::new());
        let (path, before) = leak(&env, session);
        let file = path.to_str().unwrap();
        let ids_before = ids(&env, &path);

        let report = redact(&env, &[file, "--json"]).json();
        let found = &report[0];
        assert_eq!((&found["dialect"], &found["masked"]), (&json!(dialect), &json!(1)), "{report}");
        let row = &found["findings"][0];
        assert_eq!((&row["rule"], &row["count"]), (&json!("github-token"), &json!(1)), "{report}");
        let at = before.lines().position(|line| line.contains(&token())).unwrap() + 1;
        assert_eq!(row["line"], at, "{report}");
        let record = row["record"].as_str().unwrap();
        assert!(record.starts_with("at-") || ids_before.iter().any(|id| id == record), "{report}");
        assert!(row["pointer"].as_str().unwrap().starts_with('/'), "{report}");
        let text = redact(&env, &[file]);
        assert!(text.out.contains("github-token") && text.out.contains("Rotate secrets"), "{}", text.all());
        assert_eq!((text.code, redact(&env, &[file, "--check"]).code), (0, 1));

        let copied = redact(&env, &[file, "--output", "clean.jsonl", "--json"]);
        assert_eq!(copied.json()[0]["output"], json!("$DIR/desk/clean.jsonl"), "{}", copied.all());
        let clean = fs::read_to_string(env.work().join("clean.jsonl")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{dialect}");
        let again = redact(&env, &[file, "--output", "clean.jsonl"]);
        assert!(again.code == 2 && again.err.contains("already exists"), "{}", again.all());
        let piped = redact(&env, &[file, "-o", "-"]);
        assert_eq!((piped.code, piped.out.as_str()), (0, clean.as_str()));

        // Nothing differs but the secret: signatures, pictures and ids are where they were.
        let mark = clean.find("[REDACTED:github-token:").unwrap();
        let end = mark + clean[mark..].find(']').unwrap() + 1;
        assert_eq!(format!("{}{}{}", &clean[..mark], token(), &clean[end..]), before, "{dialect}");

        let refused = redact(&env, &[file, "--in-place"]);
        assert!(refused.code == 2 && refused.err.contains("add --yes"), "{}", refused.all());
        let done = redact(&env, &[file, "--in-place", "--yes"]);
        assert_eq!(done.code, 0, "{}", done.all());
        assert_eq!(fs::read_to_string(&path).unwrap(), clean, "{dialect}");
        assert_eq!(ids(&env, &path), ids_before, "{dialect}");
        let note = &notes(&env)[0];
        assert_eq!((note["path"].as_str(), &note["masked"]), (Some(file), &json!(1)), "{note}");
        assert!(note["before"] != note["after"] && note["rulesVersion"].is_u64() && note["at"].is_string(), "{note}");
        let left: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        let clean_now = redact(&env, &[file, "--in-place"]);
        assert_eq!((clean_now.code, redact(&env, &[file, "--check"]).all().as_str()), (0, "[exit 0]\n"));
    }
}

#[test]
fn a_report_names_the_place_and_other_sessions_with_the_same_secret() {
    let env = TestEnv::new();
    prompt(&env, "one", &format!("Use {0}, and {0}.", token()));
    prompt(&env, "two", &format!("Use {}.", token()));
    prompt(&env, "three", "Nothing.");
    let ran = redact(&env, &[env.home().to_str().unwrap()]);
    let hash: Vec<&str> = ran.out.split("github-token (").skip(1).map(|rest| &rest[..8]).collect();
    let [hash] = hash[..] else { panic!("{}", ran.all()) };
    assert_eq!(
        ran.all().replace(hash, "HASH"),
        "$HOME/.sage/sessions/one/messages.jsonl  native\n  \
           LINE  RULE          COUNT  POINTER           RECORD\n     \
              1  github-token      2  /message/content  u1\n\n\
         $HOME/.sage/sessions/two/messages.jsonl  native\n  \
           LINE  RULE          COUNT  POINTER           RECORD\n     \
              1  github-token      1  /message/content  u1\n\n\
         3 secrets in 2 files.\n\
         The same github-token (HASH) is in 2 sessions: one, two.\n\
         Rotate secrets that are still in use: removing them here does not revoke them.\n[exit 0]\n"
    );
    let files = redact(&env, &[env.home().to_str().unwrap(), "--json"]).json();
    assert_eq!(files.as_array().unwrap().len(), 3, "{files}");
    let by_id = redact(&env, &["native:one", "--json"]).json();
    assert_eq!(
        by_id[0]["findings"],
        json!([{"rule": "github-token", "line": 1, "pointer": "/message/content", "record": "u1", "count": 2}])
    );
    assert_eq!(by_id[0]["masked"], 1);
}

#[test]
fn a_file_that_is_no_session_is_text() {
    let env = TestEnv::new();
    let path = env.work().join("notes.txt");
    put(&path, format!("one\ntoken {}\nthree", token()));
    let found = redact(&env, &["notes.txt", "--json"]).json();
    assert_eq!(
        found,
        json!([{"path": "$DIR/desk/notes.txt", "findings": [{"rule": "github-token", "line": 2, "pointer": "", "count": 1}], "masked": 1}])
    );
    put(&env.work().join("Makefile"), "all:\n");
    let both = redact(&env, &["--check", "notes.txt", "Makefile"]);
    assert!(both.code == 1 && both.out.contains("notes.txt  text"), "{}", both.all());
    assert_eq!(redact(&env, &["--check", "Makefile"]).all(), "[exit 0]\n");
    assert_eq!(redact(&env, &["Makefile"]).out, "no secrets in 1 file\n");
    let piped = checked(env.run_with(&["redact", "-", "--json"], format!("{{\"a\": \"{}\"}}", token()).as_bytes()));
    assert_eq!((&piped.json()[0]["path"], &piped.json()[0]["findings"][0]["pointer"]), (&json!("-"), &json!("/a")));
    let copied = checked(env.run_with(&["redact", "-", "-o", "-"], format!("use {}", token()).as_bytes()));
    assert!(copied.out.starts_with("use [REDACTED:github-token:"), "{}", copied.all());
    let nowhere = checked(env.run_with(&["redact", "-", "--in-place", "--yes"], token().as_bytes()));
    assert!(nowhere.code == 2 && nowhere.err.contains("hint: use --output"), "{}", nowhere.all());
    let missing = redact(&env, &["./gone.txt"]);
    assert_eq!(missing.code, 2, "{}", missing.all());
    assert_eq!(
        redact(&env, &["notes.txt", "--in-place", "--yes", "--json"]).json()[0]["output"],
        "$DIR/desk/notes.txt"
    );
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("one\ntoken [REDACTED:github-token:") && text.ends_with("]\nthree"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_clean_copy_is_private_and_a_cleaned_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let path = prompt(&env, "one", &token());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(redact(&env, &["one", "--output", "copy"]).code, 0);
    assert_eq!(redact(&env, &["one", "--in-place", "--yes"]).code, 0);
    assert_eq!((mode(&env.work().join("copy")), mode(&path)), (0o600, 0o640));
}

#[test]
fn what_may_not_be_rewritten_is_refused_and_nothing_is_changed() {
    let env = TestEnv::new();
    let other = prompt(&env, "other", &token());
    let unchanged = fs::read(&other).unwrap();
    let refused = |name: &str, why: &str| {
        let ran = redact(&env, &["native:other", name, "--in-place", "--yes"]);
        assert!(ran.code == 2 && ran.err.contains(why) && ran.err.contains("hint: "), "{}", ran.all());
        assert_eq!(fs::read(&other).unwrap(), unchanged, "{name}");
        assert!(notes(&env).is_empty());
    };
    let recent = prompt(&env, "recent", &token());
    age(&recent, Duration::from_secs(30));
    refused("native:recent", "written to in the last minute");

    let packed = env.work().join("log.jsonl.gz");
    let mut gzip = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(fs::File::create(&packed).unwrap())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(&unchanged).unwrap();
    assert!(gzip.wait().unwrap().success());
    age(&packed, Duration::from_secs(3600));
    refused("./log.jsonl.gz", "compressed");
    assert_eq!(redact(&env, &["./log.jsonl.gz", "--json"]).json()[0]["masked"], 1);

    let database = env.work().join("agents.db");
    let sql = include_str!("../../corpus/ai-sdk/row-completed/agents.sql").replace("Fix the lamp.", &token());
    rusqlite::Connection::open(&database).unwrap().execute_batch(&sql).unwrap();
    age(&database, Duration::from_secs(3600));
    refused("./agents.db", "database");
    let rows = redact(&env, &["./agents.db", "--json"]).json();
    assert_eq!(
        (&rows[0]["path"], &rows[0]["dialect"]),
        (&json!("$DIR/desk/agents.db#agent-1"), &json!("ai-sdk")),
        "{rows}"
    );
    assert!(rows[0]["masked"].as_u64().unwrap() > 0 && rows[0]["findings"][0]["record"].is_string(), "{rows}");
    let copied = redact(&env, &["./agents.db", "-o", "x"]);
    assert!(copied.code == 2 && copied.err.contains("convert"), "{}", copied.all());

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&other, env.work().join("link.txt")).unwrap();
        refused("./link.txt", "link");
        let hard = env.work().join("hard.txt");
        put(&hard, token());
        fs::hard_link(&hard, env.work().join("hard2.txt")).unwrap();
        refused("./hard.txt", "hard link");
    }
    let record = redact(&env, &["native:other#u1"]);
    assert_eq!(record.code, 2, "{}", record.all());
    let two = redact(&env, &["native:other", "native:recent", "-o", "x"]);
    assert!(two.code == 2 && two.err.contains("one file"), "{}", two.all());
    let demo = env.run(&["--demo", "redact", "78be", "--in-place", "--yes"]);
    assert!(demo.code == 2 && demo.err.contains("read-only"), "{}", demo.all());
    assert_eq!(env.run(&["--demo", "redact", "78be"]).out, "no secrets in 2 files\n");
}

#[test]
fn a_session_that_is_recorded_is_refused() {
    let env = TestEnv::new();
    let mut command = env.command(&["record", "--no-redact", "--dialect", "native"]);
    let mut recorder = command.spawn().unwrap();
    let mut input = recorder.stdin.take().unwrap();
    let said = json!({"user": format!("Use {}.", token())});
    input.write_all(format!("{said}\n").as_bytes()).unwrap();
    input.flush().unwrap();
    let sessions = env.home().join(".local/share/scrollback/sessions");
    let log = || {
        let folder = fs::read_dir(&sessions).ok()?.next()?.ok()?.path();
        let log = folder.join("messages.jsonl");
        fs::read_to_string(&log).ok().filter(|text| text.contains(&token())).map(|_| log)
    };
    let started = std::time::Instant::now();
    let log = loop {
        if let Some(log) = log() {
            break log;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "nothing was recorded");
        std::thread::sleep(Duration::from_millis(20));
    };
    age(&log, Duration::from_secs(3600));
    let refused = redact(&env, &[log.to_str().unwrap(), "--in-place", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("another program is writing to it"), "{}", refused.all());
    drop(input);
    recorder.wait().unwrap();
}

#[test]
fn no_copy_of_the_secret_is_left_beside_a_session() {
    let env = TestEnv::new();
    let native = prompt(&env, "one", &format!("Use {}.", token()));
    let snapshot = json!({"type": "file_history_snapshot", "uuid": "f1", "parentUuid": null, "sessionId": "one", "timestamp": "2026-11-15T10:00:00Z",
        "snapshot": {"trackedFileBackups": {"a.txt": {"originalContent": format!("key {}", token())}}}});
    put(&native.with_file_name("snapshots.jsonl"), format!("{snapshot}\n"));
    put(&native.with_file_name("metadata.json"), format!("{{\n \"summary\": \"Use {}\"\n}}\n", token()));
    put(&native.with_file_name("backups").join("a"), token());
    let converted = env.work().join("converted.jsonl");
    let ran = env.run(&["convert", "native:one", "--to", "claude-code", "-o", "converted.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let beside = |ending: &str| env.work().join(format!("converted.jsonl.scrollback.{ending}"));
    for path in [converted.clone(), beside("json"), beside("original")] {
        age(&path, Duration::from_secs(3600));
    }
    let done = redact(&env, &["./converted.jsonl", "native:one", "--in-place", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.all());
    for said in [
        "no longer restore the original",
        "Undo can no longer restore",
        "Deleted 1 file backup of the agent: undo can no longer restore",
    ] {
        assert!(done.err.contains(said), "{said}: {}", done.all());
    }
    assert!(!beside("json").exists() && !beside("original").exists());
    assert!(!native.with_file_name("backups").join("a").exists());
    for path in
        [converted, native.clone(), native.with_file_name("snapshots.jsonl"), native.with_file_name("metadata.json")]
    {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token()) && text.contains("[REDACTED:"), "{}: {text}", path.display());
    }
    let deleted = notes(&env).into_iter().filter(|note| note.get("after").is_none()).count();
    assert_eq!((notes(&env).len(), deleted), (7, 3), "{:?}", notes(&env));
}

/// A copy is a secret for what it says, or for the file that it is of; the others stay, so that undo works for them.
#[test]
fn file_backups_with_secrets_are_deleted_and_the_others_stay() {
    let env = TestEnv::new();
    let id = "81362430-fc3d-485a-8970-a4cdcbaf9389";
    let copies = [
        ("a.py", "0a@v1", token()),
        ("b.py", "0b@v1", "tide = 1".to_owned()),
        (".env", "0c@v1", "LIGHTS=at seven".to_owned()),
    ];
    let named: serde_json::Map<String, Value> = copies
        .iter()
        .map(|(path, name, _)| ((*path).to_owned(), json!({"backupFileName": name, "version": 1})))
        .collect();
    let prompt = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "cwd": "/p", "timestamp": "2026-11-15T10:00:00Z",
        "message": {"role": "user", "content": "Go on."}});
    let snapshot = json!({"type": "file-history-snapshot", "messageId": "u1", "isSnapshotUpdate": false,
        "snapshot": {"messageId": "u1", "timestamp": "2026-11-15T10:00:00Z", "trackedFileBackups": named}});
    let claude = env.home().join(".claude");
    let log = claude.join(format!("projects/-p/{id}.jsonl"));
    put(&log, format!("{prompt}\n{snapshot}\n"));
    let backup = |name: &str| claude.join("file-history").join(id).join(name);
    copies.iter().for_each(|(_, name, text)| put(&backup(name), text));

    let log = log.to_str().unwrap();
    assert_eq!(redact(&env, &[log, "--check"]).code, 1);
    let asked = redact(&env, &[log, "--in-place"]);
    assert!(asked.code == 2 && asked.err.contains("2 file backups of the agent deleted"), "{}", asked.all());
    let done = redact(&env, &[log, "--in-place", "--yes"]);
    assert!(done.code == 0 && done.err.contains("Deleted 2 file backups of the agent"), "{}", done.all());
    assert_eq!(["0a@v1", "0b@v1", "0c@v1"].map(|name| backup(name).exists()), [false, true, false]);
    assert_eq!(notes(&env).len(), 2, "{:?}", notes(&env));
    let again = redact(&env, &[log, "--in-place", "--yes"]);
    assert!(again.code == 0 && again.out.starts_with("no secrets in 2 files"), "{}", again.all());
}

#[test]
fn a_session_in_several_files_is_cleaned_as_one() {
    let env = TestEnv::new();
    let segments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/codex/segments");
    let mut paths = Vec::new();
    for entry in fs::read_dir(segments).unwrap() {
        let from = entry.unwrap().path();
        if from.extension().is_some_and(|ending| ending == "jsonl") {
            let text = fs::read_to_string(&from).unwrap();
            let leaking = text.replacen("\"text\": \"", &format!("\"text\": \"use {} now. ", token()), 1);
            assert_ne!(text, leaking);
            let path = env.home().join(".codex/sessions/2026/10/02").join(from.file_name().unwrap());
            put(&path, leaking);
            paths.push(path);
        }
    }
    let newest = paths.iter().max().unwrap();
    let ids_before = ids(&env, newest);
    let found = redact(&env, &["codex:019a0000", "--json"]).json();
    let has_secret = |file: &Value| file["masked"] == 1 && file["findings"][0]["record"].is_string();
    assert!(found.as_array().unwrap().len() == 3 && found.as_array().unwrap().iter().all(has_secret), "{found}");
    let report = redact(&env, &["codex:019a0000"]);
    assert!(!report.out.contains("sessions:"), "it is one session: {}", report.all());
    let done = redact(&env, &[env.home().join(".codex").to_str().unwrap(), "--in-place", "--yes"]);
    assert_eq!((done.code, notes(&env).len()), (0, 3), "{}", done.all());
    assert!(paths.iter().all(|path| !fs::read_to_string(path).unwrap().contains(&token())));
    assert_eq!(ids(&env, newest), ids_before);
}

#[test]
fn an_id_that_is_a_secret_is_not_printed() {
    let env = TestEnv::new();
    let path = env.session("ids", &line("user", &token(), None, "Go.").replace("s1", &token()));
    age(&path, Duration::from_secs(3600));
    for flag in ["--no-redact", "--redact", "--json"] {
        let ran = redact(&env, &[path.to_str().unwrap(), flag]);
        assert!(ran.code == 0 && ran.out.contains("/uuid"), "{}", ran.all());
    }
    // Without its id, the record would be another one.
    let refused = redact(&env, &[path.to_str().unwrap(), "--in-place", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("its records differ"), "{}", refused.all());
}

#[test]
fn what_was_cleaned_before_a_failure_is_said_and_noted_and_the_rest_stays() {
    let env = TestEnv::new();
    let done = prompt(&env, "done", &format!("Use {}.", token()));
    // Without its id, the record would be another one: this is seen only when the session is cleaned.
    let refused = env.session("refused", &line("user", &token(), None, "Go.").replace("s1", "refused"));
    age(&refused, Duration::from_secs(3600));
    let later = prompt(&env, "later", &format!("Use {}.", token()));
    let before = fs::read_to_string(&refused).unwrap();
    let paths: Vec<&str> = [&done, &refused, &later].map(|path| path.to_str().unwrap()).to_vec();
    let ran = redact(&env, &[&paths[..], &["--in-place", "--yes"]].concat());
    assert!(ran.code == 2 && ran.err.contains("its records differ"), "{}", ran.all());
    let said: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("cleaned ")).collect();
    assert_eq!(
        said,
        ["cleaned $HOME/.sage/sessions/done/messages.jsonl", "cleaned $HOME/.sage/sessions/later/messages.jsonl"]
    );
    let noted: Vec<String> = notes(&env).iter().map(|note| note["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(noted, [paths[0], paths[2]]);
    assert_eq!(fs::read_to_string(&refused).unwrap(), before);
    assert!([done, later].iter().all(|path| !fs::read_to_string(path).unwrap().contains(&token())));

    // What cannot be noted is not begun.
    let env = TestEnv::new();
    let one = prompt(&env, "one", &token());
    fs::create_dir_all(env.home().join(".local/share/scrollback/redactions.jsonl")).unwrap();
    let ran = redact(&env, &[one.to_str().unwrap(), "--in-place", "--yes"]);
    assert!(ran.code == 2 && ran.err.contains("redactions.jsonl"), "{}", ran.all());
    assert!(fs::read_to_string(&one).unwrap().contains(&token()) && !ran.out.contains("cleaned "), "{}", ran.all());
}

#[test]
fn what_an_agent_keeps_under_the_sessions_id_is_cleaned_too() {
    let env = TestEnv::new();
    let (log, text) = leak(&env, SESSIONS[1]);
    let (own, id) = (log.with_extension(""), log.file_stem().unwrap().to_str().unwrap());
    let sub_agent = own.join("subagents/agent-1.jsonl");
    let result = own.join("tool-results/1.txt");
    let todos = env.home().join(format!(".claude/todos/{id}-agent-{id}.json"));
    let others = env.home().join(".claude/todos/another-agent-another.json");
    put(&sub_agent, &text);
    put(&result, format!("use {}\n", token()));
    put(&todos, format!("[{{\"content\": \"use {}\"}}]", token()));
    put(&others, format!("[{{\"content\": \"use {}\"}}]", token()));
    let rows = redact(&env, &[id, "--json"]).json();
    let with_secrets = rows.as_array().unwrap().iter().filter(|row| row["masked"] == 1).count();
    assert_eq!(with_secrets, 4, "{rows}");
    // Each file once, and a sub-agent's session with the ids of its records.
    let all = redact(&env, &[env.home().join(".claude/projects").to_str().unwrap(), "--json"]).json();
    let of_sub_agent: Vec<&Value> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["path"].as_str().unwrap().contains("subagents"))
        .collect();
    assert!(of_sub_agent.len() == 1 && of_sub_agent[0]["findings"][0]["record"].is_string(), "{all}");
    age(&result, Duration::from_secs(10));
    assert_eq!(redact(&env, &[id, "--in-place", "--yes"]).code, 2);
    age(&result, Duration::from_secs(3600));
    let done = redact(&env, &[id, "--in-place", "--yes"]);
    assert_eq!((done.code, notes(&env).len()), (0, 4), "{}", done.all());
    for path in [log, sub_agent, result, todos] {
        assert!(!fs::read_to_string(&path).unwrap().contains(&token()), "{}", path.display());
    }
    assert!(fs::read_to_string(others).unwrap().contains(&token()));
}

#[test]
fn a_check_exits_with_1_for_findings_only() {
    let env = TestEnv::new();
    fs::create_dir_all(env.work().join("empty")).unwrap();
    let empty = redact(&env, &["--check", "./empty"]);
    assert!(empty.code == 0 && empty.err.contains("an empty directory"), "{}", empty.all());
    let unknown = redact(&env, &["--check", "0badc0de"]);
    assert!(unknown.code == 2 && unknown.err.contains("hint: "), "{}", unknown.all());
    put(&env.work().join("plain/a.txt"), "a");
    assert_eq!(redact(&env, &["--check", "./plain"]).code, 2);
}

#[test]
fn text_in_utf16_is_read_and_not_rewritten() {
    let env = TestEnv::new();
    let text = format!("first\nkey {}\n", token());
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [[b"\xff\xfe", &little[..]].concat(), [b"\xfe\xff", &big[..]].concat(), little, big] {
        let path = env.work().join("notes.txt");
        put(&path, &bytes);
        let report = redact(&env, &["./notes.txt", "--check", "--json"]);
        assert_eq!((report.code, &report.json()[0]["findings"][0]["line"]), (1, &json!(2)), "{}", report.all());
        for refused in [&["--in-place", "--yes"][..], &["--output", "clean.txt"]] {
            let ran = redact(&env, &[&["./notes.txt"], refused].concat());
            assert!(ran.code == 2 && ran.err.contains("UTF-16"), "{}", ran.all());
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_file_that_is_a_secret_as_a_whole_is_a_finding() {
    let env = TestEnv::new();
    put(&env.work().join(".env"), "# COLOUR=red\nexport HARBOUR=brest\r\n\nEMPTY=\n");
    put(&env.work().join(".env.example"), "HARBOUR=brest\n");
    put(&env.work().join("open.env"), "A=\"one\ntwo=three\"\n");
    put(&env.work().join("empty.env"), "");
    let found = redact(&env, &[".env", "--json"]).json();
    assert_eq!(found[0]["findings"], json!([{"rule": "file", "line": 1, "pointer": "", "count": 1}]), "{found}");
    let code = |name: &str| redact(&env, &["--check", name]).code;
    assert_eq!((code(".env"), code(".env.example"), code("empty.env")), (1, 0, 0));
    let piped = redact(&env, &[".env", "-o", "-"]);
    assert!(piped.code == 0 && piped.out.contains("export HARBOUR=[REDACTED:file:"), "{}", piped.all());
    assert!(piped.out.ends_with("]\r\n\nEMPTY=\n") && !piped.out.contains("brest") && !piped.out.contains("red\n"));
    for args in [&["open.env", "-o", "-"][..], &[".env", "--in-place", "--yes"]] {
        let refused = redact(&env, args);
        assert!(refused.code == 2 && refused.err.contains("secret as a whole"), "{}", refused.all());
        assert!(refused.err.contains("hint: "), "{}", refused.all());
    }
    let packed = redact(&env, &[".env.example", "-o", "y.jsonl.gz"]);
    assert!(packed.code == 2 && packed.err.contains("--output y.jsonl\n"), "{}", packed.all());
}

#[test]
fn blobs_with_true_bytes_are_named() {
    let env = TestEnv::new();
    let native = prompt(&env, "one", "Go.");
    let bytes = format!("key {}", token());
    // The BLAKE3 hash of these bytes, and a Zstandard frame with one block that is not compressed.
    let name = "dfa31ea0da7debbb43e4f9cd2e6d6f3c856554f32f418d7ad2c9f96d788aef81";
    let length = u8::try_from(bytes.len()).unwrap();
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x20, length, (length << 3) | 1, length >> 5, 0];
    let blobs = env.home().join(".sage/blobs");
    put(&blobs.join(&name[..2]).join(name), [&head, bytes.as_bytes()].concat());
    let snapshot = json!({"type": "file_history_snapshot", "uuid": "f1", "parentUuid": null, "sessionId": "one", "timestamp": "2026-11-15T10:00:00Z",
        "snapshot": {"trackedFiles": {"a.txt": {"blob": name}}}});
    put(&native.with_file_name("snapshots.jsonl"), format!("{snapshot}\n"));
    for args in [&["native:one"][..], &["native:one", "--in-place", "--yes"]] {
        let ran = redact(&env, args);
        let said =
            "1 snapshot keeps the true bytes of files with secrets in blobs, so that undo works: $HOME/.sage/blobs";
        assert!(ran.code == 0 && ran.err.contains(said), "{}", ran.all());
    }
}

#[test]
fn what_codex_and_qwen_code_keep_under_the_sessions_id_is_cleaned_too() {
    for (session, kept) in [
        (SESSIONS[2], ".codex/shell_snapshots/019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7.1762.sh"),
        (SESSIONS[3], ".qwen/todos/f04b7e92-6c1d-4a58-b3e7-91d2c05a8f36.json"),
        (SESSIONS[3], ".qwen/projects/-home-ada-blog/subagents/f04b7e92-6c1d-4a58-b3e7-91d2c05a8f36/notes.txt"),
    ] {
        let env = TestEnv::new();
        let (log, _) = leak(&env, session);
        let kept = env.home().join(kept);
        put(&kept, format!("use {}\n", token()));
        let done = redact(&env, &[log.to_str().unwrap(), "--in-place", "--yes"]);
        assert_eq!((done.code, notes(&env).len()), (0, 2), "{}", done.all());
        assert!(!fs::read_to_string(&kept).unwrap().contains(&token()), "{}", kept.display());
    }
}

#[test]
fn what_was_not_read_is_not_taken_for_clean() {
    let env = TestEnv::new();
    let (log, text) = leak(&env, SESSIONS[1]);
    put(&log, text.replace(&token(), "nothing"));
    assert_eq!(redact(&env, &["--check", log.to_str().unwrap()]).code, 0);
    let result = log.with_extension("").join("tool-results/1.txt.gz");
    // Torn: the header of a compressed file, and nothing else.
    put(&result, b"\x1f\x8b\x08\0\0\0\0\0\0\x03abc");
    let ran = redact(&env, &["--check", log.to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("1.txt.gz"), "{}", ran.err);
    assert_eq!(redact(&env, &[log.to_str().unwrap()]).code, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_whose_name_is_no_utf8_is_cleaned() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestEnv::new();
    let (log, text) = leak(&env, SESSIONS[1]);
    fs::remove_file(&log).unwrap();
    let odd = log.with_file_name(std::ffi::OsStr::from_bytes(b"caf\xe9.jsonl"));
    put(&odd, &text);
    let folder = log.parent().unwrap().to_str().unwrap();
    let ran = checked(redact(&env, &["--in-place", "--yes", "--json", folder]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!fs::read_to_string(&odd).unwrap().contains(&token()[4..]), "{}", ran.out);
    assert_eq!(notes(&env).len(), 1);
}

/// A data folder whose redaction key cannot be used, and what is said about it.
#[cfg(unix)]
fn break_key(data: &Path, how: &str) -> &'static str {
    use std::os::unix::fs::PermissionsExt;
    let key = data.join("redaction.key");
    let (content, mode, said) = match how {
        "a folder in its place" => {
            fs::create_dir_all(&key).unwrap();
            return "redaction.key";
        }
        // Not even root can make a folder in a file.
        "the data folder is a file" => {
            put(data, "");
            return "scrollback";
        }
        "others can read it" => ("4f".repeat(32), 0o644, "others can read it"),
        "somebody else's" => ("4f".repeat(32), 0o600, "it belongs to somebody else"),
        "too short" => ("4f".repeat(31), 0o600, "64 hexadecimal digits"),
        "too long" => ("4f".repeat(64), 0o600, "redaction.key"),
        "no digits" => ("zz".repeat(32), 0o600, "64 hexadecimal digits"),
        _ => (String::new(), 0o600, "64 hexadecimal digits"),
    };
    put(&key, content);
    fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    // Only root can give files away.
    if how == "somebody else's" && std::os::unix::fs::chown(&key, Some(1), None).is_err() {
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        return "others can read it";
    }
    said
}

#[cfg(unix)]
#[test]
fn a_key_that_cannot_be_used_or_made_stops_recording_and_cleaning_but_not_reading() {
    for how in [
        "a folder in its place",
        "the data folder is a file",
        "others can read it",
        "somebody else's",
        "too short",
        "too long",
        "no digits",
        "empty",
    ] {
        let env = TestEnv::new();
        let (log, text) = leak(&env, SESSIONS[1]);
        let said = break_key(&env.home().join(".local/share/scrollback"), how);
        let log = log.to_str().unwrap();
        let store = env.work().join("store");
        let record = ["record", "--prompt", "Go.", "--store", store.to_str().unwrap()];
        for args in [&["redact", "--in-place", "--yes", log][..], &record] {
            let ran = env.run(args);
            assert!(ran.code == 2 && ran.err.contains(said) && ran.err.contains("hint: "), "{how}: {}", ran.all());
        }
        assert!(!store.exists(), "{how}: nothing is recorded");
        assert_eq!(fs::read_to_string(log).unwrap(), text);
        let unmasked = env.run(&[&record[..], &["--no-redact"]].concat());
        assert!(unmasked.code == 0 && store.exists(), "{how}: {}", unmasked.all());
        // Reading goes on, without hashes.
        prompt(&env, "one", &format!("Use {}.", token()));
        let ran = env.run(&["show", "native:one", "--redact"]);
        assert!(ran.code == 0 && ran.out.contains("[REDACTED:github-token]"), "{how}: {}", ran.all());
        assert_eq!(ran.err.contains("what was masked has no hash"), how == "the data folder is a file", "{}", ran.err);
    }
}

#[cfg(unix)]
#[test]
fn a_missing_key_is_made_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    assert_eq!(env.run(&["record", "--prompt", "Go."]).code, 0);
    let key = env.home().join(".local/share/scrollback/redaction.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_secret_that_is_split_over_fragments_is_masked_and_reported() {
    let env = TestEnv::new();
    let (first, rest) = (&token()[..2], &token()[2..]);
    let lines = [
        json!({"user": "hi"}),
        json!({"delta": {"text": format!("key {first}")}}),
        json!({"delta": {"text": format!("{rest} end")}}),
        json!({"finish": {}}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(env.run_with(&["record", "--no-redact", "--id", "split"], lines.as_bytes()).code, 0);
    for outlet in [
        &["show", "split", "--json"][..],
        &["export", "split", "--to", "md"],
        &["history", "split", "--for", "anthropic", "--redact"],
    ] {
        let printed = env.run(outlet).out;
        assert!(printed.contains("[REDACTED:github") && !printed.contains(rest), "{outlet:?}: {printed}");
    }
    let found = env.run(&["redact", "split", "--check", "--json"]);
    assert_eq!((found.code, found.json()[0]["findings"][0]["line"].as_u64()), (1, Some(2)), "{}", found.out);
}
