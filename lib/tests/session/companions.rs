//! Files beside a log that are not what belongs there: each is an issue of its session, never its end, never silence, never a wait.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::hostile_files::{Hostile, in_time};
use crate::support::{cases, reading};
use scrollback::dialect;
use scrollback::model::{Issue, IssueKind};
use scrollback::session::{Session, Source};
use scrollback::view::Page;
use scrollback::view::listing::{self, Depth};
use serde_json::json;

/// Each file beside a log that reading opens: the dialect, the log and the file, in a store.
const COMPANIONS: [(&str, &str, &str); 12] = [
    ("native", "sessions/s1/messages.jsonl", "sessions/s1/snapshots.jsonl"),
    ("native", "sessions/s1/messages.jsonl", "sessions/s1/metadata.json"),
    ("native", "messages.jsonl", "snapshots.jsonl"),
    ("claude-code", "projects/-x/agent-s1.jsonl", "projects/-x/agent-s1.meta.json"),
    ("claude-code", "projects/-x/s1/subagents/agent-1.jsonl", "projects/-x/s1/subagents/agent-1.meta.json"),
    (
        "qwen-code",
        "projects/-x/chats/5e551000-0000-4000-8000-000000000001.jsonl",
        "projects/-x/chats/5e551000-0000-4000-8000-000000000001.meta.json",
    ),
    ("sage-el", "projects/x/conversation.jsonl", "projects/x/metadata.json"),
    ("sage-el", "projects/x/history/20260101-000000.jsonl", "projects/x/metadata.json"),
    ("codex", CODEX_LOG, "session_index.jsonl"),
    ("ai-sdk", "chats/x.db", "chats/x.db-journal"),
    ("ai-sdk", "chats/x.db", "chats/x.db-wal"),
    ("ai-sdk", "chats/x.db", "chats/x.db-shm"),
];

const CODEX_LOG: &str = "sessions/2026/10/02/rollout-2026-10-02T09-00-00-5e551000-0000-4000-8000-000000000001.jsonl";

/// A prompt, as the dialect writes it.
fn log_of(dialect: &str) -> String {
    let at = "2026-10-02T09:00:00Z";
    let line = match dialect {
        "sage-el" => json!({"role": "user", "content": "One?", "timestamp": at}),
        "codex" => json!({"timestamp": at, "type": "response_item", "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "One?"}]}}),
        "qwen-code" => json!({"uuid": "u1", "parentUuid": null, "sessionId": "s1", "timestamp": at, "type": "user",
            "cwd": "/x", "version": "0.1.0", "message": {"role": "user", "parts": [{"text": "One?"}]}}),
        _ => json!({"type": "user", "uuid": "u1", "parentUuid": null, "timestamp": at, "cwd": "/x", "sessionId": "s1",
            "version": "2.1.325", "message": {"role": "user", "content": "One?"}}),
    };
    format!("{line}\n")
}

/// Writes a log, in a database if it is one.
fn write_log(dialect: &str, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if dialect != "ai-sdk" {
        return fs::write(path, log_of(dialect)).unwrap();
    }
    let database = rusqlite::Connection::open(path).unwrap();
    let sql = "CREATE TABLE agents (id TEXT PRIMARY KEY, prompt TEXT, status TEXT, model TEXT, log_path TEXT); \
               INSERT INTO agents VALUES ('a1', 'One?', 'completed', 'm', NULL);";
    database.execute_batch(sql).unwrap();
}

fn source(dialect: &str, path: &Path) -> Source {
    Source::in_file(dialect::named(dialect).unwrap(), path).unwrap().remove(0)
}

/// Opens the session in each way that a command does; returns its issues.
fn issues(dialect: &'static str, log: PathBuf, what: &str) -> Vec<Issue> {
    in_time(what, move || {
        let source = source(dialect, &log);
        let row = listing::row(&source, &reading(), Depth::Ends).unwrap();
        assert_eq!(row.title, "One?", "{}", log.display());
        listing::row(&source, &reading(), Depth::Whole).unwrap();
        Session::open_page(&source, &reading(), Page { messages: 1, before: None }).unwrap();
        let session = Session::open(&source, &reading()).unwrap();
        assert!(session.records().len() > 0, "{}", log.display());
        session.tree_view().unwrap();
        session.issues().to_vec()
    })
}

#[test]
fn a_hostile_file_beside_a_log_is_an_issue_of_its_session() {
    for (dialect, log, beside) in COMPANIONS {
        for hostile in Hostile::ALL {
            let what = format!("{hostile:?} as {beside} of {dialect}");
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path().canonicalize().unwrap();
            write_log(dialect, &store.join(log));
            hostile.put(&store.join(beside));
            let found = issues(dialect, store.join(log), &what);
            let name = Path::new(beside).file_name().unwrap().to_str().unwrap();
            let about: Vec<&Issue> = found.iter().filter(|issue| issue.file.as_deref() == Some(name)).collect();
            let is_sidecar = name.ends_with(".json");
            let is_database = name.contains(".db-");
            let expected = match hostile {
                // SQLite knows what to make of an empty or damaged file of its own.
                Hostile::NotText if name.ends_with("-journal") => Some(IssueKind::UnreadableFile),
                _ if is_database && (hostile.is_readable() || hostile == Hostile::Sparse) => continue,
                _ if !hostile.is_readable() => Some(IssueKind::UnreadableFile),
                // Damaged lines of an index name no session.
                _ if name == "session_index.jsonl" => None,
                _ if is_sidecar => Some(IssueKind::DamagedSidecar),
                Hostile::NotText => Some(IssueKind::NotJson),
                _ => None,
            };
            assert_eq!(about.last().map(|issue| issue.kind), expected, "{what}: {found:?}");
            if let Some(IssueKind::UnreadableFile | IssueKind::DamagedSidecar) = expected {
                let path = store.join(beside).display().to_string();
                assert!(about[0].detail.replace("history/../", "").contains(&path), "{what}: {about:?}");
            }
        }
    }
}

/// Something else in the place of the folder with the sub-agents' logs.
#[test]
fn a_hostile_file_in_the_place_of_a_folder_is_an_issue_of_its_session() {
    const SESSION: &str = "5e551000-0000-4000-8000-000000000001";
    for (dialect, log, folder) in [
        ("claude-code", format!("projects/-x/{SESSION}.jsonl"), format!("projects/-x/{SESSION}")),
        ("qwen-code", format!("projects/-x/chats/{SESSION}.jsonl"), format!("projects/-x/subagents/{SESSION}")),
    ] {
        for hostile in Hostile::ALL {
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path().canonicalize().unwrap();
            write_log(dialect, &store.join(&log));
            hostile.put(&store.join(&folder));
            let what = format!("{hostile:?} as {folder}");
            let found = issues(dialect, store.join(&log), &what);
            let is_folder = matches!(hostile, Hostile::Folder | Hostile::LinkToFolder);
            let about = found.iter().find(|issue| issue.kind == IssueKind::UnreadableFile);
            assert_eq!(about.is_none(), is_folder, "{what}: {found:?}");
            assert!(about.is_none_or(|issue| issue.detail.contains(SESSION)), "{what}: {found:?}");
        }
    }
}

/// A root, a folder with a fixed name or a log of a sub-agent that is something else is reported, and hides no other session.
#[test]
fn something_else_in_a_store_is_reported() {
    for (dialect, place) in [
        ("native", "sessions"),
        ("codex", "sessions"),
        ("claude-code", "projects"),
        ("claude-code", "projects/-x/s1/subagents"),
        ("qwen-code", "projects/-x/chats"),
        ("sage-el", "projects/x/history"),
        ("fluux", "a@b/sessions"),
    ] {
        for hostile in [Hostile::Pipe, Hostile::LinkToPipe, Hostile::Socket, Hostile::Empty, Hostile::NotText] {
            assert!(!reported(dialect, place, hostile).is_empty(), "{hostile:?} as {place} of {dialect}");
        }
    }
    for place in ["projects/-x/s1.jsonl", "projects/-x/s1/subagents/agent-1.jsonl"] {
        assert_eq!(reported("claude-code", place, Hostile::Folder).len(), 1, "a folder as {place}");
    }
    assert!(reported("claude-code", "projects/-x/s1", Hostile::Folder).is_empty());
}

/// What a walk through a store reports about something in it.
fn reported(dialect: &'static str, place: &str, hostile: Hostile) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().canonicalize().unwrap();
    hostile.put(&store.join(place));
    let path = store.join(place).display().to_string();
    in_time(place, move || {
        let dialect = dialect::named(dialect).unwrap();
        let layouts = dialect.layouts_in(&store).into_iter().map(|layout| (dialect, layout));
        let found = Source::walk_all(&layouts.collect::<Vec<_>>()).into_iter().filter_map(Result::err);
        found.map(|error| error.to_string()).filter(|error| error.contains(&path)).collect()
    })
}

#[test]
fn a_hostile_file_in_the_place_of_a_log_hides_no_other_session() {
    for (dialect, log, _) in
        COMPANIONS.into_iter().filter(|(dialect, log, _)| *dialect != "ai-sdk" && log.contains('/'))
    {
        for hostile in Hostile::ALL {
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path().canonicalize().unwrap();
            hostile.put(&store.join(log));
            let good = log.replacen("s1", "s2", 1).replacen("/x/", "/y/", 1).replacen("0001", "0002", 1);
            write_log(dialect, &store.join(&good));
            let what = format!("{hostile:?} as {log} of {dialect}");
            let titles = in_time(&what, move || {
                let dialect = dialect::named(dialect).unwrap();
                let layouts = dialect.layouts_in(&store).into_iter().map(|layout| (dialect, layout));
                let found = Source::walk_all(&layouts.collect::<Vec<_>>());
                let row = |source: Source| listing::row(&source, &reading(), Depth::Ends);
                let rows = found.into_iter().filter_map(|source| source.and_then(row).ok());
                rows.map(|row| row.title).collect::<Vec<_>>()
            });
            assert!(titles.contains(&"One?".to_owned()), "{what}: {titles:?}");
        }
    }
}

#[test]
fn a_row_that_names_a_hostile_file_as_its_log_is_read_without_it() {
    let special = ["/proc/kmsg", "/dev/zero", "/dev/tty", "/proc/self/mem", "/proc/kcore", "/dev", "x.db", "log"];
    for (name, hostile) in special.into_iter().map(|name| (name, None)).chain(Hostile::ALL.map(|it| ("log", Some(it))))
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        write_log("ai-sdk", &path);
        let database = rusqlite::Connection::open(&path).unwrap();
        database.execute("UPDATE agents SET log_path = ?1", [name]).unwrap();
        drop(database);
        if let Some(hostile) = hostile {
            hostile.put(&dir.path().join("log"));
        }
        let what = format!("{name} {hostile:?}");
        let found = issues("ai-sdk", path, &what);
        assert!(found.iter().any(|issue| issue.kind == IssueKind::LogMissing), "{what}: {found:?}");
    }
}

/// Several files at once, each chosen at random; the issues are those of each file alone.
#[test]
fn any_mixture_of_hostile_files_leaves_the_session_readable() {
    use proptest::prelude::*;
    let config = ProptestConfig { cases: cases(16, 2000), failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(snapshots in 0..Hostile::ALL.len(), sidecar in 0..Hostile::ALL.len(), log in 0..3usize)| {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().canonicalize().unwrap();
        let path = store.join("sessions/s1/messages.jsonl");
        write_log("native", &path);
        if log == 1 {
            fs::write(&path, format!("{}{{\"type\":\"us", log_of("native"))).unwrap();
        }
        Hostile::ALL[snapshots].put(&path.with_file_name("snapshots.jsonl"));
        Hostile::ALL[sidecar].put(&path.with_file_name("metadata.json"));
        let found = issues("native", path, &format!("{snapshots} {sidecar}"));
        let unreadable = found.iter().filter(|issue| issue.kind == IssueKind::UnreadableFile).count();
        let expected = [snapshots, sidecar].into_iter().filter(|at| !Hostile::ALL[*at].is_readable()).count();
        prop_assert_eq!(unreadable, expected);
    });
}
