//! Hostile names: ids, directories and titles that lead out of a store, through every command that makes a path of them.
//!
//! Whatever a command does with such a name, nothing outside of the stores changes, and no path has a control character in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::random::{Random, seed};
use crate::support::{Ran, TestEnv};
use crate::{DIALECTS, cases, record};

const NAMES: &[&str] = &[
    "..",
    ".",
    "../up",
    "../../up",
    "../../../up",
    "../../../../up",
    "../../.bashrc",
    "../../.claude/settings",
    "a/b",
    "a/../../../up",
    "/tmp/absolute",
    "a\u{1b}[31mb",
    "a\nb",
    "a\rb",
    "a\\..\\..\\b",
    "~",
    "-rf",
    "trailing.",
    " ",
    ".hidden",
    "CON",
    "\u{202e}txt",
];

/// Where sessions are written: below a home, and Fluux Agent's below the directory that it runs in.
const STORES: &[&str] = &[
    "home/.cache/scrollback", // the index
    "home/.local/share/scrollback",
    "home/.sage",
    "home/.claude/projects",
    "home/.codex/sessions",
    "home/.qwen/projects",
    "home/.emacs.d/sage",
    "desk/data/memory",
];

/// Files that an attacker would like to change.
const TARGETS: &[&str] =
    &[".bashrc", ".ssh/authorized_keys", ".claude/settings.json", ".codex/config.toml", ".local/share/up"];

fn env() -> TestEnv {
    let env = TestEnv::new();
    for target in TARGETS {
        let path = env.home().join(target);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine\n").unwrap();
    }
    env
}

#[test]
fn no_id_leads_out_of_a_store() {
    for dialect in DIALECTS {
        let env = env();
        let before = files(&env);
        for name in chosen() {
            let args = if dialect == "fluux" {
                vec!["record", "--dialect", "fluux", "--jid", name]
            } else {
                record(dialect, &["--id", name])
            };
            let ran = env.run_with(&args, b"{\"user\": \"Tides?\"}\n{\"assistant\": \"At four.\"}\n");
            check(&env, &before, &ran, &format!("record --id {name:?} in {dialect}"));
            let ran = env.run_with(&record(dialect, &["--title", name]), b"{\"user\": \"Tides?\"}\n");
            check(&env, &before, &ran, &format!("record --title {name:?} in {dialect}"));
            let ran = env.run_with(&record(dialect, &["--resume", name]), b"{\"user\": \"Tides?\"}\n");
            check(&env, &before, &ran, &format!("record --resume {name:?} in {dialect}"));
        }
    }
}

#[test]
fn no_name_in_a_file_leads_out_of_a_store() {
    // What no argument can be.
    let long = "x".repeat(300);
    for name in chosen().into_iter().chain(["a\0b", long.as_str()]) {
        let env = env();
        for (at, text) in poisoned(name).into_iter().enumerate() {
            let file = format!("hostile-{at}.jsonl");
            fs::write(env.work().join(&file), text).unwrap();
            let before = files(&env);
            for dialect in DIALECTS {
                let jid: &[&str] = if dialect == "fluux" { &["--jid", "ada@example.com"] } else { &[] };
                let path = format!("./{file}");
                let args = [&["convert", path.as_str(), "--to", dialect, "--json"], jid].concat();
                let ran = env.run(&args);
                let about = format!("convert with {name:?} in file {at} to {dialect}");
                check(&env, &before, &ran, &about);
                check_is_found(&env, &ran, &about);
            }
        }
    }
}

/// A session in a store whose own fields lie about its name: everything that copies or moves it.
#[test]
fn no_name_in_a_store_leads_out_of_it() {
    for name in chosen() {
        let env = env();
        let [native, claude, ..] = poisoned(name);
        let claude_path = env.home().join(".claude/projects/-gone/6f0b8e21-0000-4000-8000-00000000c4d7.jsonl");
        fs::create_dir_all(claude_path.parent().unwrap()).unwrap();
        fs::write(&claude_path, claude).unwrap();
        env.session("innocent", &native);
        let before = files(&env);
        for session in ["innocent", "6f0b8e21-0000-4000-8000-00000000c4d7"] {
            for args in [
                vec!["fork", session],
                vec!["rename", session, "Tides"],
                vec!["remove", session],
                vec!["trash", "--json"],
                vec!["trash", "restore", session],
                vec!["remove", "--", name],
                vec!["trash", "restore", "--", name],
                vec!["fork", "--", name],
            ] {
                let ran = env.run(&[vec!["--all"], args.clone()].concat());
                check(&env, &before, &ran, &format!("{args:?} with {name:?} inside"));
            }
        }
    }
}

#[test]
fn no_row_of_a_database_leads_out_of_a_store() {
    let env = env();
    let database = env.work().join("agents.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let columns = "id TEXT, prompt TEXT, status TEXT, model TEXT, result TEXT, created_at TEXT, completed_at TEXT";
    connection.execute_batch(&format!("CREATE TABLE agents ({columns})")).unwrap();
    for name in NAMES {
        let row = [name, "Tides?", "completed", name, "At four.", "2026-11-01T10:00:00Z", "2026-11-01T10:01:00Z"];
        connection.execute("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?)", row).unwrap();
    }
    drop(connection);
    let before = files(&env);
    let ran = env.run(&["import", "agents.db", "--json"]);
    check(&env, &before, &ran, "import");
}

/// At a push, one name of each kind and one more; all of them under `torture`.
fn chosen() -> Vec<&'static str> {
    if cases(0, 1) == 1 {
        return NAMES.to_vec();
    }
    let mut random = Random(seed());
    let mut chosen: Vec<&str> = vec!["..", "../../../up", "a/b", "/tmp/absolute", "a\u{1b}[31mb", "a\nb"];
    chosen.push(NAMES[random.below(NAMES.len() as u64) as usize]);
    chosen
}

/// Sessions of several dialects with the name wherever a path could come from.
fn poisoned(name: &str) -> [String; 4] {
    let lines = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let time = "2026-11-15T10:00:00Z";
    let native = |kind: &str, id: &str, parent: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "timestamp": time, "sessionId": name, "version": name, "format": 2,
            "context": {"cwd": name, "gitBranch": name}, "message": {"role": kind, "content": name}})
    };
    let claude = |kind: &str, id: &str, parent: Value| {
        json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": name, "sessionId": name, "version": "2.1.41",
            "gitBranch": name, "slug": name, "agentId": name, "type": kind, "uuid": id, "timestamp": time,
            "message": {"role": kind, "id": name, "model": name, "content": [{"type": "text", "text": name}]}})
    };
    let qwen = |kind: &str, role: &str, id: &str, parent: Value| {
        json!({"uuid": id, "parentUuid": parent, "sessionId": name, "timestamp": time, "type": kind, "cwd": name, "version": name,
            "gitBranch": name, "message": {"role": role, "parts": [{"text": name}]}})
    };
    let codex = |kind: &str, payload: Value| json!({"timestamp": time, "type": kind, "payload": payload});
    let said = |role: &str, kind: &str| {
        codex("response_item", json!({"type": "message", "role": role, "content": [{"type": kind, "text": name}]}))
    };
    let meta = json!({"id": name, "session_id": name, "forked_from_id": name, "timestamp": time, "cwd": name, "originator": "codex_cli_rs",
        "cli_version": "0.58.0", "source": "cli", "model_provider": name, "git": {"branch": name}});
    [
        lines(&[native("user", "u1", Value::Null), native("assistant", name, "u1".into())]),
        lines(&[claude("user", "u1", Value::Null), claude("assistant", name, "u1".into())]),
        lines(&[qwen("user", "user", "u1", Value::Null), qwen("assistant", "model", name, "u1".into())]),
        lines(&[codex("session_meta", meta), said("user", "input_text"), said("assistant", "output_text")]),
    ]
}

/// Nothing outside of the stores has changed since, and no new path has a control character.
fn check(env: &TestEnv, before: &BTreeMap<PathBuf, Vec<u8>>, ran: &Ran, about: &str) {
    assert!((0..=2).contains(&ran.code) && !ran.err.contains("panicked"), "{about}: {}", ran.all());
    let after = files(env);
    let is_in_store = |path: &Path| STORES.iter().any(|store| path.starts_with(store));
    for (path, content) in &after {
        let shown = path.to_string_lossy();
        assert!(!shown.chars().any(char::is_control), "{about}: {shown:?} was written");
        let is_new = before.get(path) != Some(content);
        assert!(!is_new || is_in_store(path), "{about}: {shown} was written\n{}", ran.all());
    }
    for path in before.keys().filter(|path| !is_in_store(path)) {
        assert!(after.contains_key(path), "{about}: {} is gone", path.display());
    }
    assert!(!Path::new("/tmp/absolute").exists() && !Path::new("/tmp/absolute.jsonl").exists(), "{about}");
}

/// A session that was written is listed.
fn check_is_found(env: &TestEnv, ran: &Ran, about: &str) {
    if ran.code == 0 {
        let path = ran.json()["path"].clone();
        let listed = env.run(&["list", "--all", "--sidechains", "--json"]);
        let is_listed = listed.json().as_array().unwrap().iter().any(|row| row["path"] == path);
        assert!(is_listed, "{about}: {path} is not listed");
    }
}

/// All files of the sandbox, with their content.
fn files(env: &TestEnv) -> BTreeMap<PathBuf, Vec<u8>> {
    let sandbox = env.home().parent().unwrap().to_path_buf();
    let (mut files, mut folders) = (BTreeMap::new(), vec![sandbox.clone()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let below = path.strip_prefix(&sandbox).unwrap().to_path_buf();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                files.insert(below, fs::read(&path).unwrap_or_default());
            }
        }
    }
    files
}
