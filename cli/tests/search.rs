//! `search` and `index` as a person types them.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;

use support::{TestEnv, line, talk};

fn with_sessions() -> TestEnv {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let tides = [
        line("user", "t1", None, "When is high water?"),
        line("assistant", "t2", Some("t1"), "High water is at 04:12, low water at ten."),
        line("user", "t3", Some("t1"), "And in Tokyo? 東京"),
    ];
    env.session("tides", &tides.concat().replace("\"sessionId\":\"s1\"", "\"sessionId\":\"tides\""));
    env
}

#[test]
fn an_answer_is_grouped_by_session_with_the_words_marked() {
    let env = with_sessions();
    let ran = env.run(&["search", "high water", "--all"]);
    insta::assert_snapshot!(ran.all(), @"
    tides  2 h · tide · native
    When is high water?
      you · tides#t1
        When is high water?
      assistant · tides#t2 · dead
        High water is at 04:12, low water at ten.
    [exit 0]
    ");
    let coloured = env.run(&["search", "low", "--all", "--color", "always"]);
    assert!(coloured.out.contains("\u{1b}[33mlow\u{1b}[0m"), "{:?}", coloured.out);
}

#[test]
fn programs_get_every_hit_with_its_place() {
    let env = with_sessions();
    let ran = env.run(&["search", "water", "--all", "--json"]);
    let found = ran.json();
    assert_eq!((found[0]["session"]["id"].as_str(), found[0]["more"].as_u64(), ran.code), (Some("tides"), Some(0), 0));
    for hit in found[0]["hits"].as_array().unwrap() {
        let (offset, length) = (hit["offset"].as_u64().unwrap() as usize, hit["length"].as_u64().unwrap() as usize);
        let log = fs::read_to_string(env.home().join(".sage/sessions/tides/messages.jsonl")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&log[offset..offset + length]).unwrap();
        assert_eq!(record["uuid"], hit["record"]);
        let snippet: String =
            hit["snippet"].as_array().unwrap().iter().map(|piece| piece["text"].as_str().unwrap()).collect();
        assert_eq!(record["message"]["content"], snippet);
    }
    let dead: Vec<&str> = found[0]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|hit| hit["labels"].as_array().unwrap().iter().any(|label| label == "dead"))
        .map(|hit| hit["record"].as_str().unwrap())
        .collect();
    assert_eq!(dead, ["t2"]);
    let nothing = env.run(&["search", "ebb", "--all", "--json"]);
    assert_eq!((nothing.code, nothing.out.trim()), (1, "[]"));
}

#[test]
fn what_is_wrong_with_a_query_has_a_caret() {
    let env = with_sessions();
    for (query, expected) in [
        ("water rol:user", "scrollback: unknown filter \"rol:\"\n  water rol:user\n        ^^^\n"),
        ("(water", "scrollback: the parenthesis is not closed\n  (water\n  ^\n"),
        ("東京 is:wet", "scrollback: unknown value of is:\n  東京 is:wet\n          ^^^\n"),
    ] {
        let ran = env.run(&["search", query]);
        assert!(ran.err.starts_with(expected), "{}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{query}");
    }
    let error: serde_json::Value = serde_json::from_str(&env.run(&["search", "--json", "water rol:user"]).err).unwrap();
    assert_eq!(error["error"]["at"], serde_json::json!([6, 9]), "{error}");
    let ran = env.run(&["search", "wather", "--all"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "scrollback: nothing matches \"wather\"\nhint: \"wather\" is in none of these sessions; did you mean \"water\"?\n"
    );
}

#[test]
fn an_index_that_cannot_be_used_changes_no_answer() {
    let env = with_sessions();
    let expected = env.run(&["search", "water", "--all", "--json"]).json();
    let list = env.run(&["list", "--all", "--json"]).json();
    let index = env.home().join(".cache/scrollback/index.db");
    assert!(index.is_file());
    fs::remove_dir_all(env.home().join(".cache")).unwrap();
    fs::write(env.home().join(".cache"), "no folder").unwrap();
    let ran = env.run(&["search", "water", "--all", "--json"]);
    assert_eq!(ran.json(), expected);
    assert!(ran.err.contains("\"error\""), "{}", ran.err);
    assert_eq!(env.run(&["list", "--all", "--json"]).json(), list);
    let ran = env.run(&["index"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn the_index_is_refreshed_rebuilt_and_told_about() {
    let env = with_sessions();
    assert_eq!(env.run(&["index"]).out, "Indexed 2 sessions; 0 unchanged.\n");
    assert_eq!(env.run(&["index"]).out, "Indexed 0 sessions; 2 unchanged.\n");
    fs::remove_dir_all(env.home().join(".sage/sessions/s1")).unwrap();
    assert_eq!(env.run(&["index"]).out, "Indexed 0 sessions; 1 unchanged, 1 session gone.\n");
    assert_eq!(env.run(&["index", "--rebuild"]).out, "Indexed 1 session; 0 unchanged.\n");
    assert_eq!(env.run(&["index", "--everything", "--json"]).json()["read"], 1);
    assert_eq!(env.run(&["--demo", "index"]).code, 2);
    let before = fs::read(env.home().join(".cache/scrollback/index.db")).unwrap();
    env.run(&["--demo", "search", "water"]);
    assert_eq!(fs::read(env.home().join(".cache/scrollback/index.db")).unwrap(), before, "the demo enters no index");
}

#[test]
fn a_list_is_narrowed_and_sorted() {
    let env = with_sessions();
    let ids = |args: &[&str]| -> Vec<String> {
        let rows = env.run(&[&["list", "--all", "--json"], args].concat()).json();
        rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["water"]), ["tides"]);
    assert_eq!(ids(&["--", "-water"]), ["s1"]);
    assert_eq!(ids(&["--sort", "size"]), ["s1", "tides"]);
    assert_eq!(env.run(&["list", "(water", "--all"]).code, 2);
}

/// The bytes that a command reads of a file, as strace sees it; `None` where nothing may be traced.
#[cfg(target_os = "linux")]
fn bytes_read(env: &TestEnv, file: &std::path::Path, args: &[&str]) -> Option<u64> {
    let trace = env.work().join("trace");
    let program = env!("CARGO_BIN_EXE_scrollback");
    let options = ["-f", "-y", "-e", "trace=read,pread64,readv,preadv", "-o", trace.to_str().unwrap(), program];
    let arguments: Vec<&str> = options.iter().chain(args).copied().collect();
    let mut traced = env.with(std::process::Command::new("strace"), &arguments);
    traced.output().ok().filter(|ran| ran.status.success())?;
    let name = format!("/{}>", file.file_name().unwrap().to_str().unwrap());
    let text = fs::read_to_string(trace).unwrap();
    let of_file = text.lines().filter(|line| line.contains(&name));
    Some(of_file.filter_map(|line| line.rsplit_once("= ")?.1.parse::<u64>().ok()).sum())
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_session_that_grew_only_what_was_appended_is_read() {
    let env = TestEnv::new();
    let mut lines = line("user", "r0", None, "The first of many.");
    for at in 1..2_000 {
        let filler = "ebb and flood ".repeat(60);
        lines += &line("assistant", &format!("r{at}"), Some(&format!("r{}", at - 1)), &filler);
    }
    let log = env.session("long", &lines);
    env.run(&["index"]);
    fs::write(&log, lines + &line("user", "last", Some("r1999"), "A lighthouse, at last.")).unwrap();
    let length = fs::metadata(&log).unwrap().len();
    let Some(read) = bytes_read(&env, &log, &["search", "lighthouse", "--all"]) else { return };
    assert!(length > 1_000_000 && read > 0 && read < 64 * 1024, "{read} of {length} bytes");
    let unchanged = bytes_read(&env, &log, &["list", "--all"]).unwrap();
    assert_eq!(unchanged, 0, "nothing has changed");
}
