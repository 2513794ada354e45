//! File states: what each agent records of files before and after a change, in one shape, and written back as it was.

use crate::support::drafted::draft;
use crate::support::place::writing;
use crate::support::{corpus, native, reading};
use proptest::prelude::*;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{After, Before, Body, FileState, RecordId, SessionId, Snapshot};
use scrollback::session::{Session, Source};
use serde_json::{Map, Value, json};

/// The snapshots of a case, in order.
fn snapshots(dialect: &'static dyn Dialect, case: &str) -> Vec<Snapshot> {
    let folder = corpus().join(dialect.name()).join(case);
    let log = ["messages.jsonl", "session.jsonl"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|log| log.is_file());
    let session = Session::open(&Source::file(dialect, &log.unwrap()), &reading()).unwrap();
    let snapshot = |body| if let Body::Snapshot(snapshot) = body { Some(snapshot) } else { None };
    session.records().filter_map(|record| snapshot(record.body().unwrap())).collect()
}

/// One line for each snapshot, and one for each of its files.
fn outline(dialect: &str, case: &str) -> String {
    let mut lines = Vec::new();
    for snapshot in snapshots(dialect::named(dialect).unwrap(), case) {
        let message = snapshot.message.as_ref().map_or("-", RecordId::as_str);
        lines.push(format!("{message} {}", if snapshot.update { "update" } else { "new" }));
        for FileState { path, before, after, extra, .. } in snapshot.all_files() {
            let keys: Vec<&String> = extra.keys().collect();
            lines.push(format!("  {path}: {before:?} -> {after:?} {keys:?}"));
        }
    }
    lines.join("\n")
}

#[test]
fn sage_writes_whole_texts_and_copies() {
    insta::assert_snapshot!(outline("native", "documented"), @r#"
    6f1c2a4e-8b7d-4f0a-9c3e-51d2b6a7e001 new
      weather_app/index.html: Absent -> Hash("abc123") ["size"]
      weather_app/style.css: Backup { name: ".sage/backups/style.css.backup", hash: Some("def456") } -> Unknown []
    "#);
    insta::assert_snapshot!(outline("native", "snapshots-inline"), @r#"
    a1 new
      README.md: Absent -> Hash("637a6617c7feb8759971b5e2cf78f7baf923e1566ec7e2897eb60da89925f539") ["size"]
    a1 update
      docs/a.md: Inline("old\n") -> Absent ["size"]
    "#);
    insta::assert_snapshot!(outline("native", "snapshots-apart"), @r##"
    a1 new
      README.md: Absent -> Hash("637a6617c7feb8759971b5e2cf78f7baf923e1566ec7e2897eb60da89925f539") ["size"]
    a2 new
      README.md: Inline("# tides\n") -> Hash("442eaeed159db3ae42206be24d64d1745494fc82c74ac7cfe88a9208df5d7517") ["size", "fileBackup"]
    "##);
}

#[test]
fn claude_code_names_copies_in_snapshots_and_deltas() {
    insta::assert_snapshot!(outline("claude-code", "real-file-history"), @r#"
    a63a51ca-2ba1-445e-afe8-42555cf4dbff new
    d04ec762-9d8e-43b1-b186-6db7e1791117 update
      a.py: Backup { name: "2697143bd723d6a9@v1", hash: None } -> Unknown ["version", "backupTime", "realParentDir"]
    b4eb65c6-2443-48c9-9ac6-230861f153c6 new
      a.py: Backup { name: "2697143bd723d6a9@v2", hash: None } -> Unknown ["version", "backupTime", "realParentDir"]
    "#);
}

#[test]
fn qwen_code_says_what_it_could_not_copy() {
    insta::assert_snapshot!(outline("qwen-code", "file-history"), @r#"
    - new
      a.py: Backup { name: "0123456789abcdef@v1", hash: None } -> Unknown ["version", "backupTime"]
      new.py: Absent -> Unknown ["version"]
      bad.py: Failed(None) -> Unknown ["version"]
    "#);
}

/// The line of a snapshot, and what is read back from it.
fn round(dialect: &'static dyn Dialect, snapshot: Snapshot) -> (Value, Snapshot) {
    let (session, id, body) = (SessionId::from("s"), RecordId::from("r"), Body::Snapshot(snapshot));
    let written = (writing(dialect).lines)(&draft(&session, &id, &body, &|| "x".to_owned()));
    assert!(written.losses.is_empty(), "{body:?}");
    let line = written.lines.into_iter().next().unwrap().value;
    let Body::Snapshot(again) = dialect.body(&line.to_string()) else { panic!("{line}") };
    (line, again)
}

#[test]
fn an_agents_own_line_is_written_as_it_was() {
    let mut count = 0;
    for (name, case) in [
        ("claude-code", "file-history"),
        ("claude-code", "real-file-history"),
        ("claude-code", "real-full"),
        ("qwen-code", "file-history"),
        ("qwen-code", "rewind"),
        ("native", "snapshots-inline"),
        ("native", "snapshots-apart"),
        ("native", "documented"),
        ("native", "every-kind"),
    ] {
        let dialect = dialect::named(name).unwrap();
        for snapshot in snapshots(dialect, case) {
            assert_eq!(round(dialect, snapshot.clone()).1, snapshot, "{name} {case}");
            assert_eq!(round(native(), snapshot.clone()).1, snapshot, "{name} {case}, as native");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn an_update_stays_an_update() {
    for name in ["native", "claude-code"] {
        let states = json!({"trackedFileBackups": {"a.py": {"backupFileName": null, "version": 1}}, "messageId": "m"});
        let snapshot = Snapshot::from_states(Some("m".into()), true, states);
        let (line, again) = round(dialect::named(name).unwrap(), snapshot);
        assert_eq!((&line["isSnapshotUpdate"], again.update), (&json!(true), true), "{name}");
    }
}

/// Each of these is no file state, and none of it is lost.
#[test]
fn what_is_not_understood_stays_in_its_place() {
    for states in [
        json!({"trackedFiles": {"a": 7, "b": {"originalContent": 7, "state": [], "mine": {"x": null}}}, "fileBackups": 3}),
        json!({"trackedFiles": [], "fileBackups": {"a": "x", "b": {"backupPath": "b.backup", "mine": 1}}, "mine": null}),
        json!({"trackedFiles": {"a": {"state": "napping", "mode": "rw", "failed": 0, "contentHash": {}}}, "fileBackups": {}, "more": [1]}),
        json!({"trackedFiles": {"a": {"originalContent": "x", "state": "unchanged", "size": 1}}, "fileBackups": {"a": {"backupPath": "a.backup", "originalHash": "h"}}}),
    ] {
        assert_eq!(Snapshot::from_states(None, false, states.clone()).to_states(), states);
    }
}

fn file_state() -> impl Strategy<Value = FileState> {
    let text = || "[a-z]{0,4}";
    let before = prop_oneof![
        Just(Before::Absent),
        text().prop_map(Before::Inline),
        (text(), proptest::option::of(text())).prop_map(|(name, hash)| Before::Backup { name, hash }),
        (text(), proptest::option::of(text())).prop_map(|(id, hash)| Before::Blob { id, hash }),
        proptest::option::of(text()).prop_map(Before::Failed),
        Just(Before::Unknown),
    ];
    let after = prop_oneof![
        Just(After::Absent),
        text().prop_map(After::Hash),
        text().prop_map(After::Symlink),
        Just(After::Unknown)
    ];
    let mode = || proptest::option::of(any::<u32>());
    let rest = (mode(), mode(), proptest::option::of(text()), any::<bool>());
    ("[a-z]{1,8}", before, after, rest).prop_map(|(path, before, after, (mode, mode_after, symlink, is_odd))| {
        let extra = if is_odd { Map::from_iter([("odd".to_owned(), json!([1, null]))]) } else { Map::new() };
        FileState { path, before, after, mode, mode_after, symlink, extra }
    })
}

proptest! {
    /// The native format holds every file state, whoever recorded it.
    #[test]
    fn every_file_state_is_read_back(files in proptest::collection::vec(file_state(), 0..4), update: bool) {
        let mut files = files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let more = vec![Snapshot { files: files.clone(), ..Snapshot::default() }];
        let snapshot = Snapshot { message: Some("m".into()), update, files, more, ..Snapshot::default() };
        let mut again = round(native(), snapshot.clone()).1;
        // A file that is only copied comes last: it is in a map of its own.
        again.files.sort_by(|a, b| a.path.cmp(&b.path));
        again.more[0].files.sort_by(|a, b| a.path.cmp(&b.path));
        prop_assert_eq!(again, snapshot);
    }
}
