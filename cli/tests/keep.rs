//! `keep`: what agents delete or rewrite stays.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use support::TestEnv;

const ID: &str = "3f8a0000-0000-4000-8000-000000000001";

/// A home with one session of Claude Code that changed one file.
struct Agent {
    env: TestEnv,
}

impl Agent {
    fn new() -> Agent {
        let agent = Agent { env: TestEnv::new() };
        fs::create_dir_all(agent.log().parent().unwrap()).unwrap();
        fs::write(agent.log(), line("u1", "When is high water?") + &line("u2", "And low water?")).unwrap();
        fs::create_dir_all(agent.backups()).unwrap();
        fs::write(agent.backups().join("0a1b@v1"), "before\n").unwrap();
        agent
    }

    fn log(&self) -> PathBuf {
        self.env.home().join(".claude/projects/-gone-tide").join(format!("{ID}.jsonl"))
    }

    fn backups(&self) -> PathBuf {
        self.env.home().join(".claude/file-history").join(ID)
    }

    fn run(&self, args: &[&str]) -> support::Ran {
        self.env.run(args)
    }

    fn listed(&self) -> serde_json::Value {
        self.run(&["list", "--all", "--full", "--json"]).json()
    }

    /// A path that was printed.
    fn real_path(&self, printed: &str) -> PathBuf {
        printed.replace("$HOME", &self.env.home().to_string_lossy()).into()
    }

    /// Deletes everything, as Claude Code does after 30 days.
    fn sweep(&self) {
        fs::remove_file(self.log()).unwrap();
        fs::remove_dir_all(self.backups()).unwrap();
    }
}

fn line(id: &str, text: &str) -> String {
    let line = serde_json::json!({
        "type": "user", "uuid": id, "parentUuid": null, "sessionId": ID,
        "timestamp": format!("2026-11-14T10:0{}:00.000Z", &id[1..]),
        "cwd": "/gone/tide", "version": "2.1.0", "message": {"role": "user", "content": text},
    });
    format!("{line}\n")
}

#[test]
fn a_session_that_its_agent_deletes_stays_and_can_be_given_back() {
    let agent = Agent::new();
    let before = agent.listed();
    let on = agent.run(&["keep", "on"]);
    assert!(on.out.starts_with("Keeping 1 session in ") && on.code == 0, "{}", on.all());
    assert_eq!(agent.listed(), before, "a copy is no second session");
    fs::write(agent.log(), fs::read_to_string(agent.log()).unwrap() + &line("u3", "Thanks, ferryman.")).unwrap();
    agent.run(&["list", "--all"]);
    let log = fs::read(agent.log()).unwrap();
    agent.sweep();

    let after = agent.listed();
    assert_eq!((after[0]["id"].as_str(), after[0]["kept"].as_bool()), (Some(ID), Some(true)));
    assert_eq!(after[0]["recordCount"], 3);
    assert_eq!(fs::read(agent.real_path(after[0]["path"].as_str().unwrap())).unwrap(), log);
    assert!(agent.run(&["show", ID]).out.contains("ferryman"));
    let found = agent.run(&["search", "ferryman", "--all", "--json"]).json();
    assert_eq!((found[0]["session"]["id"].as_str(), found[0]["session"]["kept"].as_bool()), (Some(ID), Some(true)));
    let status = agent.run(&["keep", "status", "--json"]).json();
    assert_eq!((status["keep"].as_bool(), &status["onlyKept"]), (Some(true), &serde_json::json!([ID])));

    let forked = agent.run(&["fork", ID, "--json"]);
    let path = agent.real_path(forked.json()["path"].as_str().unwrap());
    assert_eq!(path.parent(), agent.log().parent(), "a fork is where its agent finds it");
    fs::remove_file(path).unwrap();

    let restored = agent.run(&["keep", "restore", &ID[..8]]);
    assert_eq!(restored.code, 0, "{}", restored.all());
    assert_eq!(fs::read(agent.log()).unwrap(), log);
    assert_eq!(fs::read_to_string(agent.backups().join("0a1b@v1")).unwrap(), "before\n");
    assert_eq!(agent.listed()[0].get("kept"), None);
    let again = agent.run(&["keep", "restore", &ID[..8]]);
    assert_eq!(again.code, 2, "{}", again.all());
    assert!(agent.run(&["keep", "off"]).code == 0 && agent.listed().as_array().unwrap().len() == 1);
}

#[test]
fn keeping_changes_no_total() {
    let agent = Agent::new();
    let answer = serde_json::json!({
        "type": "assistant", "uuid": "a1", "parentUuid": "u2", "sessionId": ID, "timestamp": "2026-11-14T10:00:05.000Z",
        "requestId": "req_1", "cwd": "/gone/tide", "version": "2.1.0",
        "message": {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-5", "content": [{"type": "text", "text": "At noon."}],
            "usage": {"input_tokens": 700, "output_tokens": 30, "cache_read_input_tokens": 5}},
    });
    fs::write(agent.log(), format!("{}{answer}\n", fs::read_to_string(agent.log()).unwrap())).unwrap();
    let totals = || agent.run(&["stats", "--all", "--by", "day,model", "--json"]).json();
    let before = totals();
    assert_eq!(before["total"]["usage"]["output"], 30);
    agent.run(&["keep", "on"]);
    assert_eq!(totals(), before, "a copy is no second session");
    agent.sweep();
    assert_eq!(totals(), before, "what its agent deleted still counts");
    agent.run(&["keep", "restore", ID]);
    assert_eq!(totals(), before);
}

#[test]
fn a_session_that_its_agent_rewrites_keeps_what_it_was() {
    let agent = Agent::new();
    agent.run(&["keep", "on"]);
    let new = agent.log().with_extension("new");
    fs::write(&new, line("n1", "Only the ebb is left.")).unwrap();
    fs::rename(&new, agent.log()).unwrap();
    assert_eq!(agent.listed().as_array().unwrap().len(), 1);
    for question in ["ebb", "\"low water\""] {
        let found = agent.run(&["search", question, "--all", "--json"]).json();
        assert_eq!(found[0]["session"]["id"], ID, "{question}");
        assert_eq!(found.as_array().unwrap().len(), 1, "{question}");
    }
    let found = agent.run(&["search", "\"low water\"", "--all", "--json"]).json();
    let hit = format!("{ID}#{}", found[0]["hits"][0]["record"].as_str().unwrap());
    let shown = agent.run(&["show", &hit]);
    assert!(shown.code == 0 && shown.out.contains("And low water?"), "{}", shown.all());
    // What was rewritten twice has two older generations.
    fs::write(&new, line("n2", "Only the moon is left.")).unwrap();
    fs::rename(&new, agent.log()).unwrap();
    agent.listed();
    for question in ["ebb", "moon", "\"low water\""] {
        assert_eq!(agent.run(&["search", question, "--all"]).code, 0, "{question}");
    }
    assert_eq!(agent.run(&["keep", "status", "--json"]).json()["olderGenerations"], 2);
}

/// The texts that a search finds, each with whether its file is a kept copy, and how many sessions have them.
fn found(agent: &Agent, query: &str) -> (Vec<(String, bool)>, usize) {
    let sessions = agent.run(&["search", "--all", "--json", query]).json();
    let sessions = sessions.as_array().unwrap();
    assert!(sessions.iter().all(|found| found["session"]["kept"].is_null()), "{sessions:?}");
    let hits = sessions.iter().flat_map(|found| found["hits"].as_array().unwrap());
    let mut hits: Vec<(String, bool)> = hits
        .map(|hit| (hit["record"].as_str().unwrap().to_owned(), hit["path"].as_str().unwrap().contains("/kept/")))
        .collect();
    hits.sort();
    (hits, sessions.len())
}

#[test]
fn what_a_rewritten_session_still_has_is_its_own_whatever_was_indexed_first() {
    let agent = Agent::new();
    agent.run(&["keep", "on"]);
    agent.run(&["index"]);
    let new = agent.log().with_extension("new");
    // It begins later than the copy.
    fs::write(&new, line("u2", "And low water?") + &line("u3", "Is the water warm?")).unwrap();
    fs::rename(&new, agent.log()).unwrap();
    let expected = [("u1", true), ("u2", false), ("u3", false)].map(|(id, kept)| (id.to_owned(), kept));
    for rebuilt in [false, true] {
        if rebuilt {
            fs::remove_dir_all(agent.env.home().join(".cache/scrollback")).unwrap();
            agent.run(&["index"]);
        }
        assert_eq!(found(&agent, "water"), (expected.to_vec(), 1), "rebuilt: {rebuilt}");
        let one = agent.run(&["search", "--all", "--json", "--limit", "1", "high"]).json();
        assert_eq!(one[0]["hits"][0]["record"], "u1", "also what only the copy has");
    }
}

#[test]
fn a_session_with_another_name_is_no_second_one() {
    let agent = Agent::new();
    agent.run(&["keep", "on"]);
    agent.run(&["index"]);
    fs::rename(agent.log(), agent.log().with_file_name("moved.jsonl")).unwrap();
    let listed = agent.listed();
    assert_eq!((listed.as_array().unwrap().len(), listed[0]["kept"].as_bool()), (1, None), "{listed}");
    assert_eq!(agent.run(&["show", ID]).code, 0);
    let expected = [("u1", false), ("u2", false)].map(|(id, kept)| (id.to_owned(), kept));
    assert_eq!(found(&agent, "water"), (expected.to_vec(), 1));
    // What is done to it is done to its copy.
    let copies = || {
        let files = walk(&agent.env.home().join(".local/share/scrollback/kept"));
        files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|ending| ending == "jsonl"))
            .collect::<Vec<_>>()
    };
    assert!(!copies().is_empty());
    agent.run(&["remove", ID]);
    assert_eq!(copies(), Vec::<PathBuf>::new());
    assert_eq!(agent.listed(), serde_json::json!([]));
}

/// Every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn what_is_removed_is_restored_with_its_copies() {
    let agent = Agent::new();
    agent.run(&["keep", "on"]);
    let new = agent.log().with_extension("new");
    for text in ["Only the ebb is left.", "Only the moon is left."] {
        fs::write(&new, line("n1", text)).unwrap();
        fs::rename(&new, agent.log()).unwrap();
        agent.listed();
    }
    let status = || agent.run(&["keep", "status", "--json"]).json();
    let before = status();
    assert_eq!(before["olderGenerations"], 2);
    for name in [ID, &ID[..8]] {
        assert_eq!(agent.run(&["remove", ID]).code, 0);
        assert_eq!(agent.run(&["search", "ebb OR water OR moon", "--all"]).code, 1, "{name}");
        let restored = agent.run(&["trash", "restore", name]);
        assert_eq!(restored.code, 0, "{}", restored.all());
        assert_eq!(status(), before, "{name}");
        for question in ["ebb", "moon", "\"low water\""] {
            assert_eq!(agent.run(&["search", question, "--all"]).code, 0, "{question}");
        }
        assert_eq!(agent.run(&["trash"]).code, 1, "nothing is left in the trash");
    }
}

/// A second name and other permissions change when a file was changed, not what is in it.
#[test]
#[cfg(unix)]
fn what_was_only_linked_or_touched_is_not_indexed_again() {
    use std::os::unix::fs::PermissionsExt;
    let agent = Agent::new();
    agent.run(&["index"]);
    agent.run(&["stats", "--all"]);
    agent.run(&["keep", "on"]);
    fs::set_permissions(agent.log(), fs::Permissions::from_mode(0o600)).unwrap();
    let copy = agent.log().with_extension("copy");
    fs::copy(agent.log(), &copy).unwrap();
    fs::rename(&copy, agent.log()).unwrap();
    let found = agent.run(&["search", "water", "--all"]);
    assert!(found.code == 0 && !found.err.contains("not indexed"), "{}", found.all());
    let verified = agent.run(&["index", "--verify"]);
    assert!(verified.out.contains("all as they should be"), "{}", verified.all());
    // In the middle of a file, with the time set back.
    let text = fs::read_to_string(agent.log()).unwrap();
    let modified = fs::metadata(agent.log()).unwrap().modified().unwrap();
    fs::write(agent.log(), text.replace("high water", "high cliff")).unwrap();
    fs::File::options().write(true).open(agent.log()).unwrap().set_modified(modified).unwrap();
    assert_eq!(agent.run(&["search", "cliff", "--all"]).code, 0);
    assert_eq!(agent.run(&["search", "\"high water\"", "--all"]).code, 1);
}

#[test]
fn removing_and_masking_reach_the_copies() {
    let key =
        concat!("sk-ant-", "api03-Zx7Qp2Lm9Vt4Rk8Wd3Yb6Nc1Hf5Js0GaTeUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDfGhJkLzXcVb-AAAA");
    let agent = Agent::new();
    fs::write(agent.log(), line("u1", &format!("my key is {key}"))).unwrap();
    agent.run(&["keep", "on"]);
    let masked = agent.run(&["redact", ID, "--in-place", "--yes"]);
    assert_eq!(masked.code, 0, "{}", masked.all());
    let leaks = |agent: &Agent| {
        let found = std::process::Command::new("grep").args(["-rl", key]).arg(agent.env.home()).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    assert_eq!(leaks(&agent), "");
    let removed = agent.run(&["remove", ID]);
    assert_eq!(removed.code, 0, "{}", removed.all());
    assert_eq!(agent.run(&["list", "--all", "--json"]).json(), serde_json::json!([]));
    agent.run(&["trash", "empty", "--yes"]);
    let left = std::process::Command::new("grep").args(["-rl", "my key"]).arg(agent.env.home()).output().unwrap();
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "");
}

#[test]
fn nothing_is_kept_until_somebody_says_so_and_a_list_says_it_once() {
    let agent = Agent::new();
    fs::remove_file(agent.env.home().join(".cache/scrollback/keep-mentioned")).unwrap();
    let first = agent.run(&["list", "--all"]);
    assert!(first.err.contains("run `scrollback keep on` to keep them"), "{}", first.err);
    assert!(!agent.run(&["list", "--all"]).err.contains("keep on"));
    agent.sweep();
    assert_eq!(agent.listed(), serde_json::json!([]));
    let status = agent.run(&["keep", "status"]);
    assert!(status.out.starts_with("keep is off"), "{}", status.all());
}

#[test]
fn what_is_excluded_is_read_but_neither_indexed_nor_lost() {
    let agent = Agent::new();
    agent.run(&["config", "set", "exclude", "/gone/tide"]);
    agent.run(&["index"]);
    assert_eq!(agent.run(&["search", "\"high water\"", "--all"]).code, 0);
    let index = agent.run(&["index", "--json"]).json();
    let words = fs::read(agent.real_path(index["path"].as_str().unwrap())).unwrap();
    assert!(!String::from_utf8_lossy(&words).contains("water"));
    assert_eq!(agent.listed().as_array().unwrap().len(), 1);
}

#[test]
fn what_is_excluded_later_leaves_the_index() {
    let agent = Agent::new();
    let path = agent.real_path(agent.run(&["index", "--json"]).json()["path"].as_str().unwrap());
    let has_words = || String::from_utf8_lossy(&fs::read(&path).unwrap()).contains("water");
    assert!(has_words());
    agent.run(&["config", "set", "exclude", "/gone/tide"]);
    assert_eq!(agent.run(&["index", "--json"]).json()["forgotten"], 1);
    assert!(!has_words());
}

#[test]
fn an_index_is_compared_with_the_sessions() {
    let agent = Agent::new();
    let path = agent.real_path(agent.run(&["index", "--json"]).json()["path"].as_str().unwrap());
    let right = agent.run(&["index", "--verify", "--json"]);
    assert_eq!((right.code, right.json()["sessions"].as_u64(), right.json()["parts"].as_u64()), (0, Some(1), Some(2)));
    let database = rusqlite::Connection::open(&path).unwrap();
    for change in ["update cards set card = requests", "delete from words where rowid = 1"] {
        database.execute_batch(&format!("begin; {change}; commit")).unwrap();
        let wrong = agent.run(&["index", "--verify", "--json"]);
        assert_eq!((wrong.code, wrong.json()["wrong"].as_array().unwrap().len()), (1, 1), "{change}");
        agent.run(&["index", "--rebuild"]);
        assert_eq!(agent.run(&["index", "--verify"]).code, 0);
    }
}

#[cfg(unix)]
#[test]
fn a_watch_waits_for_the_first_session_and_ends_at_the_first_ctrl_c() {
    let agent = Agent { env: TestEnv::new() };
    let mut watching = agent.env.command(&["index", "--watch"]).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    fs::create_dir_all(agent.log().parent().unwrap()).unwrap();
    fs::write(agent.log(), line("u1", "When is high water?")).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "Indexed 1 session; 0 unchanged.");
    fs::write(agent.log(), line("u1", "When is high water?") + &line("u2", "And low water?")).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "Indexed 1 session; 0 unchanged.");
    let pid = watching.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn a_session_that_was_emptied_before_it_was_deleted_stays_whole() {
    let agent = Agent::new();
    agent.run(&["keep", "on"]);
    agent.run(&["index"]);
    let emptied = agent.log().with_extension("new");
    fs::write(&emptied, "").unwrap();
    fs::rename(emptied, agent.log()).unwrap();
    agent.run(&["list", "--all"]);
    agent.sweep();
    assert_eq!(agent.listed()[0]["recordCount"], 2);
}
