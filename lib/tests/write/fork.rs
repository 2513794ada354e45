//! Forks: one branch under another id. Other fields of a line and the source do not change.

use std::fs;
use std::path::PathBuf;

use crate::support::place::host;
use crate::support::{native, reading};
use proptest::prelude::*;
use scrollback::dialect;
use scrollback::model::{Error, Kind};
use scrollback::session::{Session, Source};
use scrollback::write::{Fork, Forked, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A store with one session, called s1.
struct Place {
    folder: TempDir,
    log: String,
}

fn place(log: &str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("sessions/s1")).unwrap();
    fs::write(folder.path().join("sessions/s1/messages.jsonl"), log).unwrap();
    Place { folder, log: log.to_owned() }
}

impl Place {
    fn file(&self, session: &str) -> PathBuf {
        self.folder.path().join("sessions").join(session).join("messages.jsonl")
    }

    fn read(&self, session: &str) -> Session {
        Session::open(&Source::file(native(), &self.file(session)), &reading()).unwrap()
    }

    fn fork(&self, head: Option<&str>, id: Option<&str>) -> Result<Forked, Error> {
        let store = Store::open(native(), self.folder.path(), host()).unwrap();
        let forked = store.fork(&self.read("s1"), Fork { head, id });
        assert_eq!(fs::read_to_string(self.file("s1")).unwrap(), self.log, "the source is untouched");
        forked
    }

    /// The fork's lines.
    fn forked(&self, head: Option<&str>) -> Vec<Value> {
        let forked = self.fork(head, Some("f")).unwrap();
        assert_eq!(self.read("f").issues(), [], "{forked:?}");
        lines(&fs::read_to_string(&forked.path).unwrap())
    }

    fn names(&self) -> Vec<String> {
        let found = fs::read_dir(self.folder.path().join("sessions")).unwrap();
        let mut names: Vec<String> = found.map(|found| found.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(kind: &str, id: &str, parent: Option<&str>, text: &str) -> String {
    let line = json!({
        "type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-09-01T10:00:00Z", "sessionId": "s1", "format": 2,
        "context": {"cwd": "/gone/tide", "gitBranch": "main"}, "message": {"role": kind, "content": text},
    });
    format!("{line}\n")
}

/// Two answers to one question; the second has a child.
fn two_branches() -> String {
    [
        line("user", "q", None, "Two and two?"),
        line("assistant", "a", Some("q"), "Four."),
        line("assistant", "b", Some("q"), "It depends."),
        line("user", "c", Some("b"), "On what?"),
    ]
    .concat()
}

/// Each line as `id < parent`.
fn outline(lines: &[Value]) -> Vec<String> {
    let name = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    lines
        .iter()
        .map(|line| format!("{} < {}", name(&line["uuid"]), name(&line["parentUuid"])))
        .collect()
}

#[test]
fn only_the_branch_is_copied() {
    assert_eq!(outline(&place(&two_branches()).forked(None)), ["q < -", "b < q", "c < b"]);
    assert_eq!(outline(&place(&two_branches()).forked(Some("a"))), ["q < -", "a < q"]);
    assert_eq!(outline(&place(&two_branches()).forked(Some("q"))), ["q < -"]);
}

#[test]
fn a_line_names_its_origin_and_keeps_its_other_fields() {
    let odd = r#"{"zebra":0.10,"type":"user","big":123456789012345678901234567890,"uuid":"q","parentUuid":"gone","x":{"b":1,"a":[1,{"c":"\u0041"}]},"sessionId":"s1","message":{"role":"user","content":"Hi","later":null}}"#;
    let place = place(&format!("{odd}\n"));
    let forked = place.fork(None, Some("f")).unwrap();
    let expected = odd.replace("\"gone\"", "null").replace("\"s1\"", "\"f\"");
    let expected =
        expected.strip_suffix('}').unwrap().to_owned() + r#","forkedFrom":{"sessionId":"s1","messageUuid":"q"}}"#;
    assert_eq!(fs::read_to_string(&forked.path).unwrap(), format!("{expected}\n"));
    assert_eq!(forked.closed_gaps, 1);
    assert_eq!(place.read("f").forked_from(), Some("s1"));
    assert_eq!(place.read("s1").forked_from(), None);
}

#[test]
fn a_fork_of_a_fork_names_its_direct_source() {
    let place = place(&two_branches());
    place.fork(None, Some("f")).unwrap();
    let store = Store::open(native(), place.folder.path(), host()).unwrap();
    store.fork(&place.read("f"), Fork { head: None, id: Some("g") }).unwrap();
    let session = place.read("g");
    assert_eq!((session.forked_from(), session.issues()), (Some("f"), &[][..]));
}

#[test]
fn each_parent_is_the_record_before_and_fragments_stay_together() {
    let piece = |seq: u64, text: &str| {
        let line = json!({"type": "assistant", "uuid": "a", "parentUuid": "q", "sessionId": "s1", "fragment": {"seq": seq, "part": 0},
            "message": {"role": "assistant", "content": text}});
        format!("{line}\n")
    };
    let calls = json!({"type": "assistant", "uuid": "c", "parentUuid": "a", "sessionId": "s1",
        "message": {"role": "assistant", "content": "", "toolCalls": [{"id": "1", "name": "x"}, {"id": "2", "name": "y"}]}});
    let result = |id: &str, call: &str| {
        format!(
            "{}\n",
            json!({"type": "tool_result", "uuid": id, "parentUuid": "c", "sessionId": "s1",
            "toolResults": [{"toolCallId": call, "content": "ok", "success": true}]})
        )
    };
    let log = [
        line("user", "q", None, "Go."),
        piece(0, "Let "),
        line("system", "aside", Some("q"), "left"),
        piece(1, "me."),
        format!("{calls}\n"),
        result("r1", "1"),
        result("r2", "2"),
        line("assistant", "end", Some("r2"), "Done."),
    ]
    .concat();
    let place = place(&log);
    assert_eq!(outline(&place.forked(None)), ["q < -", "a < q", "a < q", "c < a", "r1 < c", "r2 < r1", "end < r2"]);
    let fork = place.read("f");
    let body = |session: &Session, id: &str| session.find(id).unwrap().body().unwrap();
    assert_eq!(body(&fork, "a"), body(&place.read("s1"), "a"));
    assert_eq!(fork.heads().count(), 1);
}

#[test]
fn snapshots_of_the_branch_and_the_last_titles_are_copied() {
    let snapshot =
        |of: &str| format!("{}\n", json!({"type": "file_history_snapshot", "messageId": of, "snapshot": {"of": of}}));
    let title = |id: &str, text: &str, source: &str| {
        format!(
            "{}\n",
            json!({"type": "custom_title", "uuid": id, "parentUuid": null, "sessionId": "s1", "title": text, "titleSource": source})
        )
    };
    let log = [
        snapshot("q"),
        line("user", "q", None, "Two and two?"),
        title("t1", "Old", "manual"),
        title("t2", "Made up", "automatic"),
        line("assistant", "a", Some("q"), "Four."),
        snapshot("a"),
        line("assistant", "b", Some("q"), "It depends."),
        snapshot("b"),
        title("t3", "New", "manual"),
    ]
    .concat();
    let place = place(&log);
    let kept = place.forked(None);
    let told: Vec<String> = kept
        .iter()
        .map(|line| line.get("messageId").or(line.get("uuid")).unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["q", "q", "b", "b", "t2", "t3"]);
    assert_eq!(
        (kept[0]["type"].as_str(), kept[3]["type"].as_str()),
        (Some("file_history_snapshot"), Some("file_history_snapshot"))
    );
    assert_eq!(place.read("f").title().unwrap().text, "New");
    let sidecar: Value =
        serde_json::from_str(&fs::read_to_string(place.file("f").with_file_name("metadata.json")).unwrap()).unwrap();
    assert_eq!(
        (&sidecar["customTitle"], &sidecar["forkedFrom"], &sidecar["id"]),
        (&json!("New"), &json!("s1"), &json!("f"))
    );
    assert_eq!(sidecar["workingDirectory"], "/gone/tide");
}

#[test]
fn plain_messages_are_named_after_their_new_offsets() {
    let plain = |role: &str, text: &str| format!("{}\n", json!({"role": role, "content": text}));
    let first = [plain("user", "one"), plain("assistant", "two")].concat();
    let on = format!("at-{}", plain("user", "one").len());
    let log = [first, line("user", "q", Some(&on), "three")].concat();
    let place = place(&log);
    let forked = place.fork(None, Some("f")).unwrap();
    let session = place.read("f");
    assert_eq!((session.issues(), forked.records), (&[][..], 3));
    assert_eq!(session.branch(session.head().unwrap()).records.len(), 3);
}

#[test]
fn the_intact_records_of_a_damaged_session_are_forked() {
    let log = [
        line("user", "q", None, "One?"),
        "{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUu\n".to_owned(),
        line("user", "c", Some("a"), "Two?"),
        line("assistant", "d", Some("c"), "2\u{2028}"),
        "{\"type\":\"user\",\"uuid\":\"e\"".to_owned(),
    ]
    .concat();
    let place = place(&log);
    let forked = place.fork(None, Some("f")).unwrap();
    assert_eq!((forked.closed_gaps, forked.records), (1, 2));
    assert_eq!(outline(&lines(&fs::read_to_string(forked.path).unwrap())), ["c < -", "d < c"]);
    assert_eq!(place.read("f").issues(), []);
}

#[test]
fn a_refused_fork_leaves_nothing() {
    let place = place(&two_branches());
    place.fork(None, Some("taken")).unwrap();
    fs::create_dir_all(place.folder.path().join("sessions/half")).unwrap();
    fs::write(place.folder.path().join("sessions/half/snapshots.jsonl"), "").unwrap();
    let before = place.names();
    for id in ["s1", "taken", "half"] {
        assert!(matches!(place.fork(None, Some(id)), Err(Error::Exists(_))), "{id}");
    }
    for id in ["", "..", "../x", "a/b", "/etc/x", ".x", "a\0", "a b", &"n".repeat(200)] {
        assert!(matches!(place.fork(None, Some(id)), Err(Error::InvalidName { .. })), "{id}");
    }
    assert!(matches!(place.fork(Some("zzz"), None), Err(Error::NoRecord(_))));
    assert_eq!(place.names(), before);
    let empty = self::place("");
    assert!(matches!(empty.fork(None, None), Err(Error::CannotContinue { .. })));
    let aside = self::place(
        "{\"type\":\"file_history_snapshot\",\"uuid\":\"s\",\"messageId\":\"q\"}\n{\"type\":\"user\",\"uuid\":\"q\"}\n",
    );
    assert!(matches!(aside.fork(Some("s"), None), Err(Error::CannotContinue { .. })));
    assert_eq!(aside.names(), ["s1"]);
    let rewound = self::place(&(two_branches() + "{\"type\":\"rewind\",\"uuid\":\"w\",\"parentUuid\":null}\n"));
    assert!(matches!(rewound.fork(None, None), Err(Error::EmptyBranch { .. })));
    assert_eq!(rewound.names(), ["s1"]);
}

#[cfg(unix)]
#[test]
fn a_place_that_leads_out_of_the_store_is_refused() {
    let place = place(&two_branches());
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.folder.path().join("sessions/out")).unwrap();
    assert!(matches!(place.fork(None, Some("out")), Err(Error::InvalidName { .. })));
    std::os::unix::fs::symlink("nowhere", place.folder.path().join("sessions/dangling")).unwrap();
    assert!(place.fork(None, Some("dangling")).is_err());
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
}

#[test]
fn a_session_of_another_dialect_is_refused() {
    let place = place(&two_branches());
    for dialect in dialect::all().iter().filter(|dialect| dialect.name() != "native") {
        // A dialect that is only read has no store, and no store takes another dialect's session.
        let refused = Store::open(*dialect, place.folder.path(), host())
            .and_then(|store| store.fork(&place.read("s1"), Fork { head: None, id: None }));
        assert!(
            matches!(refused, Err(Error::CannotStore { .. } | Error::ReadOnly(_))),
            "{}: {refused:?}",
            dialect.name()
        );
    }
}

#[test]
fn an_id_that_looks_like_an_offset_is_kept() {
    let log = [line("user", "at-7", None, "x"), line("assistant", "a", Some("at-7"), "y")].concat();
    let place = place(&log);
    assert_eq!(outline(&place.forked(None)), ["at-7 < -", "a < at-7"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the tree: a fork is one straight branch with the same bodies, and reading it finds nothing wrong.
    #[test]
    fn any_branch_becomes_a_straight_session(parents in prop::collection::vec(0..12usize, 1..12), head in 0..12usize) {
        let mut log = String::new();
        for (at, parent) in parents.iter().enumerate() {
            // A parent may come later in the file, be missing or be the record itself.
            let parent = (at > 0).then(|| format!("r{parent}"));
            log += &line(if at % 2 == 0 { "user" } else { "assistant" }, &format!("r{at}"), parent.as_deref(), &format!("said {at}"));
        }
        let place = place(&log);
        let source = place.read("s1");
        let head = format!("r{}", head % parents.len());
        let branch = source.branch(source.find(&head).unwrap());
        let forked = place.fork(Some(&head), Some("f")).unwrap();
        let fork = place.read("f");
        prop_assert_eq!(fork.issues(), &[]);
        let copied = fork.branch(fork.find(forked.head.as_str()).unwrap());
        let bodies = |branch: &scrollback::session::Branch<'_>| -> Vec<_> {
            branch.records.iter().map(|record| (record.id().into_owned(), record.body().unwrap())).collect()
        };
        prop_assert_eq!(bodies(&copied), bodies(&branch));
        prop_assert_eq!(fork.records().len(), branch.records.len());
    }
}

#[test]
fn whatever_an_agent_wrote_is_forked_to_the_same_conversation() {
    let (mut wrong, mut forked_well) = (Vec::new(), 0);
    for (dialect, log) in ["native", "claude-code", "codex", "qwen-code"].into_iter().flat_map(crate::support::logs_of)
    {
        let name = log.file_name().unwrap().to_string_lossy();
        // A sub-agent's log has a sidecar with its title.
        if name.ends_with(".json") || name.starts_with("agent-") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(dialect, folder.path(), host()).unwrap();
        let source = Session::open(&Source::file(dialect, &log), &reading()).unwrap();
        let id = "0c61f09d-25b8-4e37-9a4d-8e7b50f3a780";
        let bodies = |session: &Session| -> Vec<_> {
            let branch = session.branch(session.head().unwrap());
            // A body that is a whole line contains the session's id.
            let is_said = |kind| !matches!(kind, Kind::Rewind | Kind::Title | Kind::Header | Kind::Other);
            let said = branch.records.iter().filter(|record| is_said(record.kind()));
            said.map(|record| record.body().unwrap()).collect()
        };
        match (source.head(), store.fork(&source, Fork { head: None, id: Some(id) })) {
            (Some(head), Err(Error::CannotContinue { .. })) if head.is_side() => {}
            (None, Err(Error::CannotContinue { .. })) => assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0),
            (Some(_), Err(Error::EmptyBranch { .. })) => assert_eq!(crate::support::messages(&source), []),
            (Some(_), Ok(forked)) => {
                let fork = Session::open(&Source::file(dialect, &forked.path), &reading()).unwrap();
                let cwd = |session: &Session| session.cwd().filter(|_| source.cwd().is_some()).map(str::to_owned);
                let told = |session: &Session| (session.title().cloned(), cwd(session));
                let same = bodies(&fork) == bodies(&source) && told(&fork) == told(&source);
                let named = (fork.id().to_string(), fork.heads().count(), fork.forked_from().map(str::to_owned));
                let origin = Some(source.id().to_string());
                // Nobody called the fork, even if a sub-agent's session is forked.
                let parent = fork.row().unwrap().parent_session;
                let is_sidechain =
                    dialect.name() == "claude-code" && fork.head().is_some_and(|head| head.is_sidechain());
                if !same || named != (id.to_owned(), 1, origin) || parent.is_some() || is_sidechain {
                    wrong.push(format!("{}: same {same}, {named:?}, {parent:?}", log.display()));
                }
                forked_well += 1;
            }
            (head, forked) => wrong.push(format!("{}: {head:?} {forked:?}", log.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {forked_well}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(forked_well > 200, "{forked_well}");
}

#[test]
fn a_fork_can_be_resumed() {
    let place = place(&two_branches());
    place.fork(None, Some("f")).unwrap();
    let store = Store::open(native(), place.folder.path(), host()).unwrap();
    let mut recorder = store.resume("f").unwrap();
    recorder.assistant("On the base.").unwrap();
    recorder.close().unwrap();
    assert_eq!(place.read("f").records().len(), 4);
    assert_eq!(place.read("s1").records().len(), 4);
}

#[test]
fn backups_in_the_folder_of_a_native_session_are_copied() {
    let snapshot = json!({"type": "file_history_snapshot", "messageId": "c", "snapshot": {"trackedFiles": {},
        "fileBackups": {"a.css": {"backupPath": ".sage/backups/a.css.backup", "originalHash": "def456"}}}});
    let place = place(&format!("{}{snapshot}\n", two_branches()));
    let backups = place.file("s1").with_file_name("backups");
    fs::create_dir_all(&backups).unwrap();
    fs::write(backups.join("a.css.backup"), "old").unwrap();
    let forked = place.fork(None, Some("f")).unwrap();
    let copy = forked.path.with_file_name("backups").join("a.css.backup");
    assert_eq!(fs::read_to_string(copy).unwrap(), "old");
}
