//! What other programs leave in the folders of Claude Code and Codex: children without parents, names that do not fit, things
//! that are no files, archives that never end. And what real sessions, whole and damaged, are reported for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::reading;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Home, Issue, Severity};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::Page;
use scrollback::view::find::Places;
use scrollback::view::listing::{self, Depth};
use serde_json::json;

#[test]
fn a_message_without_a_message_is_reported() {
    let native = |more: &str| format!(r#"{{"type":"user","uuid":"a","parentUuid":null,"format":1{more}}}"#);
    let claude = |kind: &str, more: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"2026-10-02T09:00:00Z"{more}}}"#
        )
    };
    let qwen = |kind: &str, more: &str| claude(kind, &format!(r#","cwd":"/x"{more}"#));
    let codex = |more: &str| {
        format!(
            r#"{{"timestamp":"2026-10-02T09:00:00Z","type":"response_item","payload":{{"type":"message","role":"user"{more}}}}}"#
        )
    };
    for (dialect, line, is_reported) in [
        ("native", native(""), true),
        ("native", native("").replace("user", "assistant"), true),
        ("native", native(r#","message":null"#), true),
        ("native", native(r#","message":{"role":"user","content":""}"#), false),
        ("native", native(r#","reaction":{"emoji":"x"}"#), false),
        ("claude-code", claude("user", ""), true),
        ("claude-code", claude("assistant", ""), true),
        ("claude-code", claude("assistant", r#","message":null"#), true),
        ("claude-code", claude("user", r#","message":{"role":"user","content":"x"}"#), false),
        ("claude-code", claude("user", r#","message":"x""#), false),
        ("qwen-code", qwen("user", ""), true),
        ("qwen-code", qwen("assistant", ""), true),
        ("qwen-code", qwen("user", r#","message":{"role":"user","parts":[]}"#), false),
        ("codex", codex(""), true),
        ("codex", codex(r#","content":[]"#), false),
        ("sage-el", r#"{"role":"user","uuid":"a"}"#.to_owned(), true),
        ("fluux", r#"{"type":"message","role":"user"}"#.to_owned(), true),
        ("ai-sdk", r#"{"id":"a","role":"user"}"#.to_owned(), true),
    ] {
        let dialect = dialect::named(dialect).unwrap();
        let session = Session::from_bytes(dialect, line.clone().into_bytes(), &reading());
        let kinds: Vec<&str> = session.issues().iter().map(|issue| issue.kind.name()).collect();
        let reported = kinds.iter().any(|kind| matches!(*kind, "missing-field" | "invalid-message"));
        assert_eq!(reported, is_reported, "{}: {line} {kinds:?}", dialect.name());
    }
}

#[test]
fn usage_as_a_field_of_the_line_counts() {
    let usage = r#""usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":7}"#;
    let head = r#""uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"2026-10-02T09:00:00Z""#;
    let message = |usage: &str| format!(r#""message":{{"role":"assistant","model":"m","content":"x"{usage}}}"#);
    let (plain, inside) = (message(""), message(&format!(",{usage}")));
    for (dialect, line) in [
        ("claude-code", format!(r#"{{"type":"assistant",{head},{plain},{usage}}}"#)),
        ("claude-code", format!(r#"{{"type":"assistant",{head},{inside}}}"#)),
        // In both places it is the same request.
        ("claude-code", format!(r#"{{"type":"assistant",{head},{inside},{usage}}}"#)),
        ("native", format!(r#"{{"type":"assistant",{head},{plain},{usage}}}"#)),
        ("native", format!(r#"{{"type":"assistant",{head},{inside}}}"#)),
        ("sage-el", format!(r#"{{"role":"assistant","content":"x","timestamp":"2026-10-02T09:00:00Z",{usage}}}"#)),
    ] {
        let session = Session::from_bytes(dialect::named(dialect).unwrap(), line.clone().into_bytes(), &reading());
        let counted = session.usage().map(|usage| (usage.input, usage.output, usage.cache_read));
        assert_eq!(counted, Some((Some(10), Some(5), Some(7))), "{dialect}: {line}");
        let shown = serde_json::to_value(&crate::support::messages(&session)[0]).unwrap();
        assert_eq!(shown["metadata"]["usage"]["output"], 5, "{dialect}: {shown}");
    }
}

/// Each dialect, where its files lie in a home, and the name of one.
const AGENTS: [(&str, &str, &str); 2] = [
    ("claude-code", ".claude/projects/-x", "5e551000-0000-4000-8000-000000000001.jsonl"),
    ("codex", ".codex/sessions/2026/10/02", "rollout-2026-10-02T09-00-00-019a0000-0000-7000-8000-000000000001.jsonl"),
];

fn prompt(dialect: &str, session: &str) -> String {
    let (at, text) = ("2026-10-02T09:00:00Z", "One?");
    match dialect {
        "codex" => {
            let meta = json!({"id": session, "cwd": "/x", "parent_thread_id": null});
            let content = json!([{"type": "input_text", "text": text}]);
            let item = json!({"type": "message", "role": "user", "content": content});
            let line = |kind, payload| json!({"timestamp": at, "type": kind, "payload": payload});
            format!("{}\n{}\n", line("session_meta", meta), line("response_item", item))
        }
        _ => {
            let line = json!({"type": "user", "uuid": "u1", "parentUuid": null, "timestamp": at, "cwd": "/x",
                "sessionId": session, "version": "2.1.325", "message": {"role": "user", "content": text}});
            format!("{line}\n")
        }
    }
}

/// What a walk finds in a home, each as its id, or as the name of what cannot be read.
fn walk(home: &Path, dialect: &'static dyn Dialect) -> Vec<String> {
    let home = Home { dir: home.to_path_buf(), cwd: home.to_path_buf(), vars: Default::default() };
    let found = Places { home: home.clone(), store: None, dialect: Some(dialect), mask: None }.sources();
    let row = |source: Source| match listing::row(&source, &reading(), Depth::Ends) {
        Ok(row) => row.id.to_string(),
        Err(error) => format!("error: {error}"),
    };
    found.into_iter().map(|source| source.map_or_else(|error| format!("error: {error}"), row)).collect()
}

#[test]
fn a_folder_of_things_that_cannot_be_read_hides_no_session() {
    for (name, place, file) in AGENTS {
        let dialect = dialect::named(name).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(place);
        fs::create_dir_all(folder.join(file.replace("01.jsonl", "02.jsonl"))).unwrap();
        fs::write(folder.join(file), prompt(name, "good")).unwrap();
        fs::write(folder.join(file.replace("01.jsonl", "03.jsonl")), b"").unwrap();
        fs::write(folder.join(file.replace("01.jsonl", "04.jsonl")), vec![0; 70_000]).unwrap();
        fs::write(folder.join(file.replace("01.jsonl", "05.jsonl")), b"\xff\xfe\x00no text").unwrap();
        #[cfg(unix)]
        for (link, to) in [("06.jsonl", "nowhere"), ("07.jsonl", "."), ("08.jsonl", file)] {
            std::os::unix::fs::symlink(to, folder.join(file.replace("01.jsonl", link))).unwrap();
        }
        let found = walk(dir.path(), dialect);
        assert!(found.iter().any(|row| row == "good"), "{name}: {found:?}");
        for source in Source::walk(dialect, &dialect.layouts_in(&folder)[0]).into_iter().flatten() {
            Session::open(&source, &reading()).unwrap().tree_view().unwrap();
        }
        let padded = Source::file(dialect, &folder.join(file.replace("01.jsonl", "04.jsonl")));
        assert!(!Session::open(&padded, &reading()).unwrap().issues().is_empty(), "{name}");
    }
}

#[test]
fn a_session_is_called_what_its_records_call_it() {
    for (name, place, file) in AGENTS {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(place);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), prompt(name, "another-id")).unwrap();
        let dialect = dialect::named(name).unwrap();
        assert_eq!(walk(dir.path(), dialect), ["another-id"], "{name}");
        let session = Session::open(&Source::file(dialect, &folder.join(file)), &reading()).unwrap();
        assert_eq!(
            (session.id().as_str(), session.issues().len(), session.records().len() > 0),
            ("another-id", 0, true)
        );
    }
}

#[test]
fn a_sub_agents_session_is_read_without_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: String| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    };
    let of_claude =
        prompt("claude-code", "gone").replace(r#""type":"user""#, r#""type":"user","agentId":"7","isSidechain":true"#);
    write(".claude/projects/-x/gone/subagents/agent-7.jsonl", of_claude);
    let of_codex = prompt("codex", "child").replace(r#""parent_thread_id":null"#, r#""parent_thread_id":"gone""#);
    write(".codex/sessions/2026/10/02/rollout-2026-10-02T09-00-00-child.jsonl", of_codex);
    let home = Home { dir: dir.path().to_path_buf(), cwd: dir.path().to_path_buf(), vars: Default::default() };
    let found = Places { home: home.clone(), store: None, dialect: None, mask: None }.sources();
    let children: Vec<Session> =
        found.into_iter().map(|source| Session::open(&source.unwrap(), &reading()).unwrap()).collect();
    assert_eq!(children.len(), 2);
    for child in children {
        assert_eq!(child.parent_session(), Some(("gone", None)), "{}", child.id());
        assert_eq!((child.issues().len(), child.heads().len()), (0, 1), "{}", child.id());
        assert!(!child.head().unwrap().is_sidechain());
        let row = child.row().unwrap();
        assert_eq!(row.first_prompt.as_deref(), Some("One?"));
    }
}

#[test]
fn an_archive_that_never_ends_is_read_up_to_a_limit() {
    if crate::support::cases(0, 1) == 0 {
        return; // It takes gigabytes of memory; the limit itself has a test in source.rs.
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rollout-2026-10-02T09-00-00-a.jsonl.zst");
    let mut packer = zstd::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    std::io::Write::write_all(&mut packer, prompt("codex", "a").as_bytes()).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b'\n'), 2 << 30), &mut packer).unwrap();
    packer.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let source = Source::file(dialect::named("codex").unwrap(), &path);
    let page = Session::open_page(&source, &reading(), Page { messages: 1, before: None }).unwrap();
    assert_eq!((page.id().as_str(), page.records().len()), ("a", 2));
    assert!(
        page.issues()
            .iter()
            .any(|issue| issue.kind.name() == "torn" && issue.detail.contains("has more than"))
    );
}

/// What each real session is reported for, errors first; one that is not here is whole.
const REPORTED: [(&str, &[&str], &[&str]); 5] = [
    ("claude/exp__f-dangling-tool", &[], &["unanswered-call"]),
    ("claude/exp__f-del-A1", &[], &["bridged-gap"]),
    ("claude/exp__f-trunc", &["torn"], &[]),
    ("codex/exp__f-dup-line", &[], &["duplicate-line"]),
    ("codex/exp__f-trunc", &["torn"], &[]),
];

#[test]
fn real_sessions_are_reported_for_their_damage_and_for_nothing_else() {
    let mut read = 0;
    for (agent, name) in [("claude", "claude-code"), ("codex", "codex")] {
        for log in logs_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(agent)) {
            let case = log.ancestors().find(|folder| folder.join("expected.json").is_file()).unwrap();
            let case = format!("{agent}/{}", case.file_name().unwrap().to_string_lossy());
            // The files are of later days than the noon that the other tests have.
            let reading = ReadOptions { now: "2026-11-20T12:00:00Z".parse().unwrap(), ..reading() };
            let session = Session::open(&Source::file(dialect::named(name).unwrap(), &log), &reading).unwrap();
            let (errors, notes): (Vec<&Issue>, Vec<&Issue>) =
                session.issues().iter().partition(|issue| issue.severity == Severity::Error);
            let names = |issues: Vec<&Issue>| issues.iter().map(|issue| issue.kind.name()).collect::<Vec<_>>();
            let known = REPORTED.iter().find(|(reported, ..)| *reported == case);
            let (_, known_errors, known_notes) = *known.unwrap_or(&("", &[], &[]));
            assert_eq!((names(errors), names(notes)), (known_errors.to_vec(), known_notes.to_vec()), "{case}");
            read += 1;
        }
    }
    assert!(read >= 20, "{read}");
}

fn logs_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { logs_below(&path) } else { vec![path] }).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    logs.sort();
    logs
}
