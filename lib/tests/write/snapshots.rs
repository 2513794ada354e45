//! What tools change is recorded so that it can be restored, byte by byte, on a real disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::random::{Random, seed};
use crate::support::{cases, native};
use scrollback::dialect;
use scrollback::model::{After, Before, Body, Compaction, FileState, Host, Kind, Restore, Snapshot};
use scrollback::session::blob;
use scrollback::write::{Entry, NewSession, Recorder, Store, Warning};
use scrollback::{Part, ToolPart, ToolState};
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    store: Store,
}

impl Place {
    fn of(dialect: &str) -> Place {
        Place::with(dialect, |host| host)
    }

    fn with(dialect: &str, change: impl FnOnce(Host) -> Host) -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        let host = change(Host::at(folder.path().join("project"), "test 1"));
        let store = Store::open(dialect::named(dialect).unwrap(), &folder.path().join("store"), host).unwrap();
        Place { folder, store }
    }

    fn new() -> Place {
        Place::of(native().name())
    }

    fn project(&self) -> std::path::PathBuf {
        self.folder.path().join("project")
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// A session in which the model has just called a tool.
    fn begin(&self) -> Recorder {
        let project = self.project();
        let new = NewSession { with: Some("ada@example.org"), ..NewSession::of(&project) };
        let mut recorder = self.store.session(new, scrollback::Policy::New).unwrap();
        recorder.user("Change the files.").unwrap();
        recorder.assistant("I change them.").unwrap();
        recorder
    }

    fn snapshots(&self, recorder: &Recorder) -> Vec<Snapshot> {
        let session = recorder.read().unwrap();
        let snapshots = session.records().filter(|record| record.kind() == Kind::Snapshot);
        let body = |record: scrollback::RecordRef<'_>| match record.body().unwrap() {
            Body::Snapshot(snapshot) => snapshot,
            body => panic!("{body:?}"),
        };
        snapshots.map(body).collect()
    }

    fn last_files(&self, recorder: &Recorder) -> BTreeMap<String, FileState> {
        let files = self.snapshots(recorder).pop().unwrap_or_default().files;
        files.into_iter().map(|file| (file.path.clone(), file)).collect()
    }

    fn content(&self, before: &Before) -> Option<Vec<u8>> {
        match before {
            Before::Absent => None,
            Before::Blob { id, hash } => {
                let bytes = blob::get(&blob::folder(&self.folder.path().join("store")), id).unwrap();
                assert_eq!(hash.as_deref(), Some(sha256(&bytes).as_str()));
                Some(bytes)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is at a path: for a model of the project.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    File(Vec<u8>, u32),
    Link(String),
}

type Tree = BTreeMap<String, Node>;

const PATHS: [&str; 6] = ["a.txt", "b.bin", "src/c.rs", "src/deep/d", "e", "ünï/f g.md"];

fn any_content(random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 => Vec::new(),
        1 => b"one\r\ntwo\r\n".to_vec(),
        2 => b"no line end".to_vec(),
        3 => (0..random.size(5_000)).map(|_| random.below(256) as u8).collect(),
        4 => vec![b'x'; 300_000],
        _ => format!("{}\n", random.below(4)).into_bytes(),
    }
}

#[cfg(unix)]
fn set(place: &Place, path: &str, node: Option<&Node>) {
    use std::os::unix::fs::PermissionsExt;
    let whole = place.project().join(path);
    drop(fs::remove_file(&whole));
    match node {
        Some(Node::File(bytes, mode)) => {
            place.write(path, bytes);
            fs::set_permissions(whole, fs::Permissions::from_mode(*mode)).unwrap();
        }
        Some(Node::Link(target)) => {
            fs::create_dir_all(whole.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, whole).unwrap();
        }
        None => {}
    }
}

#[cfg(unix)]
fn change_something(place: &Place, tree: &mut Tree, random: &mut Random) {
    let path = PATHS[random.below(PATHS.len() as u64) as usize];
    let mode = [0o644, 0o600, 0o755, 0o444][random.below(4) as usize];
    let node = match (random.below(5), tree.get(path)) {
        (0, _) => None,
        (1, _) => Some(Node::Link(["a.txt", "../gone", "src"][random.below(3) as usize].to_owned())),
        (2, Some(Node::File(bytes, _))) => Some(Node::File(bytes.clone(), mode)),
        _ => Some(Node::File(any_content(random), mode)),
    };
    set(place, path, node.as_ref());
    match node {
        Some(node) => _ = tree.insert(path.to_owned(), node),
        None => _ = tree.remove(path),
    }
}

/// The files of a snapshot are those that differ, with the state before and what is known of the state after.
#[cfg(unix)]
fn check(place: &Place, files: &BTreeMap<String, FileState>, before: &Tree, after: &Tree, story: &str) {
    for path in PATHS {
        let (old, new) = (before.get(path), after.get(path));
        let Some(file) = files.get(path) else {
            assert_eq!(old, new, "{story}: {path} is missing");
            continue;
        };
        assert_ne!(old, new, "{story}: {path} is not changed");
        match old {
            None => assert_eq!((&file.before, &file.symlink), (&Before::Absent, &None), "{story}: {path}"),
            Some(Node::File(bytes, mode)) => {
                assert!(place.content(&file.before).as_ref() == Some(bytes), "{story}: {path}");
                assert_eq!((file.mode, &file.symlink), (Some(*mode), &None), "{story}: {path}");
            }
            Some(Node::Link(target)) => assert_eq!(file.symlink.as_ref(), Some(target), "{story}: {path}"),
        }
        match new {
            None => assert_eq!(file.after, After::Absent, "{story}: {path}"),
            Some(Node::File(bytes, mode)) => {
                assert_eq!(file.after, After::Hash(sha256(bytes)), "{story}: {path}");
                assert_eq!(file.mode_after, Some(*mode), "{story}: {path}");
                assert_eq!(file.extra.get("size"), Some(&json!(bytes.len())), "{story}: {path}");
            }
            Some(Node::Link(target)) => assert_eq!(file.after, After::Symlink(target.clone()), "{story}: {path}"),
        }
    }
    assert!(files.keys().all(|path| PATHS.contains(&path.as_str())), "{story}: {files:?}");
}

#[cfg(unix)]
#[test]
fn the_state_before_is_recorded_byte_by_byte_whatever_tools_do() {
    for case in 0..u64::from(cases(25, 2_000)) {
        let (mut random, place, mut tree) = (Random(seed() + case), Place::new(), Tree::new());
        (0..4).for_each(|_| change_something(&place, &mut tree, &mut random));
        let mut recorder = place.begin();
        let is_watching = case % 2 == 0;
        if is_watching {
            recorder.watch(".").unwrap();
        }
        for step in 0..6 {
            let story = format!("seed {}, step {step}", seed() + case);
            let before = tree.clone();
            if !is_watching || random.below(2) == 0 {
                recorder.before_tool(&PATHS).unwrap();
            }
            (0..random.below(5)).for_each(|_| change_something(&place, &mut tree, &mut random));
            let entry = recorder.after_tool().unwrap();
            assert_eq!(entry.id().is_some(), before != tree, "{story}");
            if entry.id().is_some() {
                check(&place, &place.last_files(&recorder), &before, &tree, &story);
            }
            let snapshots = place.snapshots(&recorder);
            assert!(snapshots.iter().enumerate().all(|(at, snapshot)| snapshot.update == (at > 0)), "{story}");
        }
    }
}

#[test]
fn a_snapshot_is_of_the_message_that_called_the_tool_and_the_next_one_adds_to_it() {
    let place = Place::new();
    let mut recorder = place.begin();
    let answer = recorder.head().cloned();
    for text in ["one", "two"] {
        recorder.before_tool(&["a.txt"]).unwrap();
        place.write("a.txt", text);
        recorder.after_tool().unwrap();
    }
    let session = recorder.session().unwrap().clone();
    drop(recorder);
    let mut recorder = place.store.resume(session.as_str()).unwrap();
    recorder.before_tool(&["a.txt"]).unwrap();
    place.write("a.txt", "three");
    recorder.after_tool().unwrap();
    let next = recorder.assistant("And once more.").unwrap().id().cloned();
    recorder.before_tool(&["a.txt"]).unwrap();
    place.write("a.txt", "four");
    recorder.after_tool().unwrap();
    let told: Vec<_> = place
        .snapshots(&recorder)
        .into_iter()
        .map(|one| (one.message, one.update, place.content(&one.files[0].before)))
        .collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        told,
        [
            (answer.clone(), false, None),
            (answer.clone(), true, text("one")),
            (answer, true, text("two")),
            (next, false, text("three")),
        ]
    );
}

#[test]
fn what_changes_nothing_is_not_recorded() {
    let place = Place::new();
    place.write("a.txt", "tide");
    let mut recorder = place.begin();
    recorder.before_tool(&["a.txt", "gone.txt"]).unwrap();
    place.write("a.txt", "tide");
    assert_eq!(recorder.after_tool().unwrap(), Entry::default());
    assert_eq!(place.snapshots(&recorder), []);
}

#[test]
fn two_calls_before_a_tool_keep_the_first_state() {
    let place = Place::new();
    place.write("a.txt", "first");
    let mut recorder = place.begin();
    recorder.before_tool(&["a.txt"]).unwrap();
    place.write("a.txt", "second");
    recorder.before_tool(&[place.project().join("a.txt"), place.project().join("b.txt")]).unwrap();
    place.write("a.txt", "third");
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["a.txt"]);
    assert_eq!(place.content(&files["a.txt"].before).unwrap(), b"first");
}

/// Nothing outside of the project is copied, whatever leads there.
#[cfg(unix)]
#[test]
fn what_is_no_file_of_the_project_is_recorded_as_failed_and_never_copied() {
    let place = Place::new();
    let outside = place.folder.path().join("canary");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("mine.txt"), "canary").unwrap();
    place.write("dir/a.txt", "inside");
    std::os::unix::fs::symlink(&outside, place.project().join("out")).unwrap();
    std::os::unix::fs::symlink("dir", place.project().join("in")).unwrap();
    std::os::unix::net::UnixListener::bind(place.project().join("socket")).unwrap();
    let mut recorder = place.begin();
    let absolute = outside.join("mine.txt").to_string_lossy().into_owned();
    let names = [
        "out/mine.txt",
        "../canary/mine.txt",
        "../canary/new.txt",
        "../canary/never.txt",
        &absolute,
        "gone/../../x",
        "a\0b",
        "..",
        "dir",
        "socket",
        "in/a.txt",
        "/",
    ];
    recorder.before_tool(&names).unwrap();
    place.write("dir/a.txt", "changed");
    fs::write(outside.join("mine.txt"), "changed").unwrap();
    fs::write(outside.join("new.txt"), "new").unwrap();
    fs::remove_file(place.project().join("socket")).unwrap();
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    let told: Vec<(&str, &str)> = files
        .values()
        .map(|file| match &file.before {
            Before::Failed(Some(why)) => (file.path.as_str(), why.as_str()),
            Before::Blob { .. } => (file.path.as_str(), "copied"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            ("..", "not the path of a file"),
            ("../canary/mine.txt", "outside the project"),
            ("../canary/new.txt", "outside the project"),
            ("/", "not the path of a file"),
            (absolute.as_str(), "outside the project"),
            ("a\0b", "the path has a NUL in it"),
            ("dir/a.txt", "copied"),
            ("gone/../../x", "a folder in the path does not exist"),
            ("out/mine.txt", "outside the project"),
            ("socket", "neither a file nor a link"),
        ]
    );
    let blobs = crate::support::place::files_below(&place.folder.path().join("store/blobs"));
    assert_eq!(blobs.len(), 1, "{blobs:?}");
}

#[test]
fn a_format_without_file_states_says_so_once_and_copies_nothing() {
    for dialect in dialect::all().iter().filter(|dialect| dialect.writer().is_some() && dialect.name() != "native") {
        let place = Place::of(dialect.name());
        let mut recorder = place.begin();
        recorder.warnings();
        for _ in 0..2 {
            recorder.before_tool(&["a.txt"]).unwrap();
            place.write("a.txt", "tide");
            assert_eq!(recorder.after_tool().unwrap(), Entry::default(), "{}", dialect.name());
        }
        recorder.watch(".").unwrap();
        assert_eq!(recorder.warnings(), [Warning::NoFileStates], "{}", dialect.name());
        recorder.close().unwrap();
        assert!(!place.folder.path().join("store/blobs").exists(), "{}", dialect.name());
    }
}

#[test]
fn a_watched_project_is_recorded_at_the_end_of_each_turn() {
    let place = Place::new();
    for (path, text) in [
        ("src/main.rs", "fn main() {}"),
        ("notes.md", "tide"),
        (".gitignore", "target/\n*.log\n"),
        ("target/big", "built"),
        ("x.log", "noise"),
        (".git/HEAD", "ref"),
        ("sub/.git/HEAD", "ref"),
        ("sub/own.txt", "nested"),
        (".sage/settings", "ours"),
        (".hidden", "seen"),
    ] {
        place.write(path, text);
    }
    let mut recorder = place.begin();
    let watched = recorder.watch(place.project()).unwrap();
    assert_eq!((watched.files, watched.skipped), (5, 0), "src/main.rs, notes.md, .gitignore, sub/own.txt, .hidden");
    let changed = |recorder: &Recorder, snapshots: usize| -> Vec<String> {
        let all = place.snapshots(recorder);
        assert_eq!(all.len(), snapshots);
        all.last().map_or_else(Vec::new, |last| last.files.iter().map(|file| file.path.clone()).collect())
    };
    recorder.user("Change the notes.").unwrap();
    // The next prompt ends a turn without an answer.
    place.write("notes.md", "ebb!");
    for path in ["target/big", "x.log", ".git/HEAD", "sub/.git/HEAD", ".sage/settings"] {
        place.write(path, "changed");
    }
    recorder.user("And now rename the folder.").unwrap();
    assert_eq!(changed(&recorder, 1), ["notes.md"]);
    // An answer without calls ends it too.
    fs::rename(place.project().join("src"), place.project().join("lib")).unwrap();
    fs::remove_file(place.project().join(".hidden")).unwrap();
    recorder.assistant("It is renamed.").unwrap();
    assert_eq!(changed(&recorder, 2), [".hidden", "lib/main.rs", "src/main.rs"]);
    // What is changed between an answer and the next prompt is somebody else's.
    place.write("notes.md", "my own words");
    recorder.user("Go on.").unwrap();
    assert_eq!(changed(&recorder, 2).len(), 3);
    place.write("notes.md", "flood");
    recorder.close().unwrap();
    let files = place.last_files(&recorder);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["notes.md"]);
    assert_eq!(place.content(&files["notes.md"].before).unwrap(), b"my own words");
    recorder.close().unwrap();
    assert_eq!(changed(&recorder, 3), ["notes.md"]);
}

/// What a person does between two turns, to a recorder that has just written an answer.
type Between = fn(&Place, Recorder) -> Recorder;

#[test]
fn what_somebody_changes_between_turns_is_never_the_turns() {
    fn call(recorder: &mut Recorder, id: &str) -> ToolPart {
        let call = ToolPart::dynamic("write_file", id, ToolState::called(json!({})));
        recorder.assistant(vec![Part::from(call.clone())]).unwrap();
        call
    }
    let same: Between = |_, recorder| recorder;
    let resumed: Between = |place, mut recorder| {
        recorder.close().unwrap();
        let mut recorder = place.store.resume(recorder.session().unwrap().as_str()).unwrap();
        recorder.watch(".").unwrap();
        recorder
    };
    let summarised: Between = |_, mut recorder| {
        recorder
            .compaction(Compaction { summary: Some("Files were changed.".to_owned()), ..Compaction::default() })
            .unwrap();
        recorder
    };
    let rewound: Between = |_, mut recorder| {
        let head = recorder.head().cloned().unwrap();
        recorder.user("Not this.").unwrap();
        recorder.assistant("Done.").unwrap();
        recorder.rewind(&head, None).unwrap();
        recorder
    };
    let interrupted: Between = |_, mut recorder| {
        recorder.user("Go on.").unwrap();
        call(&mut recorder, "interrupted");
        recorder.user("Stop.").unwrap();
        recorder.assistant("I stop.").unwrap();
        recorder
    };
    let steps = [same, resumed, summarised, rewound, interrupted];
    for (number, (first, second)) in steps.iter().flat_map(|one| steps.iter().map(move |two| (one, two))).enumerate() {
        let place = Place::new();
        place.write("agent.txt", "zero");
        place.write("mine.txt", "zero");
        let mut recorder = place.begin();
        recorder.watch(".").unwrap();
        for (turn, between) in [first, second].into_iter().enumerate() {
            recorder.user("Change a file.").unwrap();
            let call = call(&mut recorder, &format!("c{turn}"));
            place.write("agent.txt", format!("turn {turn}"));
            recorder.tool_result(&call, Ok(json!("done"))).unwrap();
            recorder.assistant("Done.").unwrap();
            recorder = between(&place, recorder);
            place.write("mine.txt", format!("my own words {turn}"));
        }
        recorder.user("Thanks.").unwrap();
        recorder.assistant("You are welcome.").unwrap();
        recorder.close().unwrap();
        let told: Vec<Vec<String>> = place.snapshots(&recorder).into_iter().map(|one| paths(&one)).collect();
        assert_eq!(told, [["agent.txt"], ["agent.txt"]], "case {number}");
    }
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    snapshot.files.iter().map(|file| file.path.clone()).collect()
}

#[test]
fn what_a_restore_changes_is_not_the_turns() {
    let place = Place::new();
    place.write("a.txt", "old");
    let mut recorder = place.begin();
    recorder.watch(".").unwrap();
    place.write("a.txt", "new");
    recorder.assistant("Done.").unwrap();
    place.write("a.txt", "old");
    let head = recorder.head().cloned().unwrap();
    recorder.restore(&head, Restore { files: json!([]), ..Restore::default() }).unwrap();
    recorder.user("Again.").unwrap();
    recorder.close().unwrap();
    assert_eq!(place.snapshots(&recorder).len(), 1);
}

#[test]
fn only_a_folder_of_the_project_is_watched() {
    let place = Place::new();
    place.write("sub/a.txt", "a");
    place.write("b.txt", "b");
    place.write(".gitignore", "*.log");
    place.write("sub/x.log", "noise");
    let mut recorder = place.begin();
    for wrong in [place.folder.path().to_path_buf(), "b.txt".into(), "gone".into(), "../store".into()] {
        assert!(recorder.watch(&wrong).is_err(), "{}", wrong.display());
    }
    assert_eq!(recorder.watch(Path::new("sub")).unwrap().files, 1);
    place.write("sub/a.txt", "c");
    place.write("b.txt", "d");
    recorder.after_tool().unwrap();
    assert_eq!(place.last_files(&recorder).into_keys().collect::<Vec<_>>(), ["sub/a.txt"]);
}

/// Deleted, and a folder is made of the same name.
#[test]
fn a_file_that_becomes_a_folder_is_deleted_and_its_files_are_created() {
    let place = Place::new();
    place.write("a", "file");
    let mut recorder = place.begin();
    recorder.watch(".").unwrap();
    fs::remove_file(place.project().join("a")).unwrap();
    place.write("a/b", "in it");
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    assert_eq!((files.len(), &files["a"].after, &files["a/b"].before), (2, &After::Absent, &Before::Absent));
    assert_eq!(place.content(&files["a"].before).unwrap(), b"file");
}

#[test]
fn a_copy_that_was_deleted_is_told() {
    let place = Place::new();
    place.write("a", "file");
    let mut recorder = place.begin();
    recorder.watch(".").unwrap();
    fs::remove_dir_all(place.folder.path().join("store/blobs")).unwrap();
    place.write("a", "changed");
    recorder.after_tool().unwrap();
    let why = "its copy was deleted".to_owned();
    assert_eq!(place.last_files(&recorder)["a"].before, Before::Failed(Some(why)));
}

#[test]
fn what_was_changed_before_the_tool_was_named_is_part_of_its_turn() {
    let place = Place::new();
    place.write("a", "first");
    let mut recorder = place.begin();
    recorder.watch(".").unwrap();
    place.write("a", "by a shell");
    recorder.before_tool(&["a"]).unwrap();
    place.write("a", "by the tool");
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    assert_eq!(place.content(&files["a"].before).unwrap(), b"first");
    assert_eq!(files["a"].after, After::Hash(sha256(b"by the tool")));
}

/// A file that was changed in the last moment may be changed once more without a new time.
#[test]
fn a_file_is_read_again_only_if_it_may_have_changed() {
    for (seconds_later, is_read) in [(0, true), (60, false)] {
        let later = jiff::SignedDuration::from_secs(seconds_later);
        let clock = move || jiff::Timestamp::now() + later;
        let place = Place::with("native", |host| Host { now: std::sync::Arc::new(clock), ..host });
        place.write("a", "tide");
        let mut recorder = place.begin();
        recorder.watch(".").unwrap();
        let blobs = place.folder.path().join("store/blobs");
        fs::remove_dir_all(&blobs).unwrap();
        assert_eq!(recorder.after_tool().unwrap(), Entry::default());
        assert_eq!(blobs.exists(), is_read, "looked at {seconds_later} s later");
    }
}

/// Lets every blob of a store be a day old.
fn age(place: &Place) {
    let blobs = place.folder.path().join("store/blobs");
    for name in crate::support::place::files_below(&blobs) {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let then = std::time::SystemTime::now() - day;
        fs::File::options().write(true).open(blobs.join(name)).unwrap().set_modified(then).unwrap();
    }
}

#[test]
fn a_blob_is_needed_while_a_session_names_it_or_a_recorder_may() {
    let place = Place::new();
    place.write("a", "tide");
    place.write("b", "ebb");
    let mut recorder = place.begin();
    recorder.before_tool(&["a", "b"]).unwrap();
    place.write("a", "flood");
    recorder.after_tool().unwrap();
    assert_eq!(place.store.unreferenced_blobs().unwrap(), [], "the copy of b is new");
    age(&place);
    let unneeded = place.store.unreferenced_blobs().unwrap();
    assert_eq!(unneeded.len(), 1);
    let used = place.store.blob_use().unwrap();
    assert_eq!((used.count, used.referenced, used.unreferenced), (2, 1, 1));
    assert_eq!((used.unreferenced_bytes, used.bytes), (unneeded[0].bytes, used.referenced_bytes + unneeded[0].bytes));
    // A recorder finds it again: it is about to name it.
    recorder.before_tool(&["b"]).unwrap();
    assert_eq!(place.store.unreferenced_blobs().unwrap(), []);
    assert!(!place.store.drop_blob(&unneeded[0]).unwrap());
    age(&place);
    assert!(place.store.drop_blob(&unneeded[0]).unwrap());
    assert_eq!(place.store.blob_use().unwrap().count, 1);
}

/// An undo finds blobs that nobody needed until then, and names them when its files are done.
#[cfg(unix)]
#[test]
fn no_blob_is_dropped_while_an_undo_is_under_way() {
    let place = Place::new();
    place.write("a", "tide");
    let mut recorder = place.begin();
    recorder.before_tool(&["a"]).unwrap();
    drop(recorder);
    age(&place);
    let unneeded = place.store.unreferenced_blobs().unwrap();
    let folder = place.folder.path().join("store/undo");
    fs::create_dir_all(&folder).unwrap();
    let undo = fs::File::open(&folder).unwrap();
    undo.lock().unwrap();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| place.store.drop_blob(&unneeded[0]));
        // Without the lock, it would be gone by now.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(unneeded[0].path.exists() && !dropping.is_finished());
        undo.unlock().unwrap();
        assert!(dropping.join().unwrap().unwrap());
    });
    assert!(!unneeded[0].path.exists());
}

#[test]
fn while_a_session_is_recorded_or_cannot_be_read_no_blob_is_unneeded() {
    let data = tempfile::tempdir().unwrap();
    let place = Place::with("native", |host| Host { data: Some(data.path().to_path_buf()), ..host });
    place.write("a", "tide");
    let mut recorder = place.begin();
    recorder.before_tool(&["a"]).unwrap();
    age(&place);
    assert!(matches!(place.store.unreferenced_blobs(), Err(scrollback::Error::Busy(_))));
    drop(recorder);
    assert_eq!(place.store.unreferenced_blobs().unwrap().len(), 1);
    // A torn file could name anything.
    fs::write(place.folder.path().join("store/sessions/old.jsonl.zst"), [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).unwrap();
    assert!(place.store.unreferenced_blobs().is_err());
}

/// A file with a hole takes no space, and its gigabyte no memory.
#[test]
fn a_large_file_is_copied_and_a_larger_one_is_not() {
    let place = Place::new();
    let sizes = [("large", 64 << 20), ("larger", (1 << 30) + 1)];
    for (name, bytes) in sizes {
        fs::File::create(place.project().join(name)).unwrap().set_len(bytes).unwrap();
    }
    let mut recorder = place.begin();
    recorder.before_tool(&["large", "larger"]).unwrap();
    for (name, _) in sizes {
        place.write(name, "small");
    }
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    assert_eq!(files["larger"].before, Before::Failed(Some("larger than 1073741824 bytes".to_owned())));
    assert!(place.content(&files["large"].before).unwrap() == vec![0; 64 << 20]);
}

/// A tool may name a file outside of the project and leave it alone.
#[test]
fn a_file_outside_that_was_not_touched_is_not_recorded() {
    let place = Place::new();
    let outside = place.folder.path().join("mine.txt");
    fs::write(&outside, "mine").unwrap();
    let mut recorder = place.begin();
    for (text, recorded) in [("mine", 0), ("changed", 1)] {
        recorder.before_tool(&[&outside]).unwrap();
        if text == "changed" {
            fs::write(&outside, text).unwrap();
        }
        recorder.after_tool().unwrap();
        assert_eq!(place.last_files(&recorder).len(), recorded, "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_snapshot_says_what_is_not_watched_and_why() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.write("a.txt", "a");
    fs::File::create(place.project().join("large")).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap();
    fs::write(place.project().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::create_dir(place.project().join("empty")).unwrap();
    let mut recorder = place.begin();
    recorder.watch(".").unwrap();
    place.write("a.txt", "b");
    fs::File::create(place.project().join("large")).unwrap().set_len(16 * 1024 * 1024 + 2).unwrap();
    fs::remove_dir(place.project().join("empty")).unwrap();
    recorder.after_tool().unwrap();
    let snapshot = place.snapshots(&recorder).pop().unwrap();
    assert_eq!(snapshot.extra["unwatched"], json!({"the name is not UTF-8": 1}));
    assert_eq!(snapshot.extra["removedFolders"], json!(["empty"]));
    let before = place.last_files(&recorder)["large"].before.clone();
    assert_eq!(before, Before::Failed(Some("larger than 16 MiB".to_owned())));
}

/// Such a name cannot be recorded, so the file cannot be restored; but nobody should believe that it was.
#[cfg(target_os = "linux")]
#[test]
fn a_file_in_a_named_folder_whose_name_is_not_utf_8_is_recorded_as_failed_if_it_was_changed() {
    use std::os::unix::ffi::OsStrExt;
    for (old, new, expected) in [(Some("1"), "1", 0), (Some("1"), "22", 1), (None, "1", 1)] {
        let place = Place::new();
        place.write("d/n", "one");
        let odd = place.project().join("d").join(std::ffi::OsStr::from_bytes(b"x\xff"));
        old.into_iter().for_each(|old| fs::write(&odd, old).unwrap());
        let mut recorder = place.begin();
        recorder.before_tool(&["d"]).unwrap();
        place.write("d/n", "two");
        if old != Some(new) {
            fs::write(&odd, new).unwrap();
        }
        recorder.after_tool().unwrap();
        let files = place.last_files(&recorder);
        assert_eq!(files.len(), 1 + expected, "{old:?} {new}: {files:?}");
        let failed = files.get("d/x\u{fffd}").map(|file| file.before.clone());
        let why = Before::Failed(Some("the name is not UTF-8".to_owned()));
        assert_eq!(failed, (expected == 1).then_some(why), "{old:?} {new}");
    }
}

/// What a link leads to is not of the project: neither made nor changed there, wherever a path through the link is named.
#[cfg(unix)]
#[test]
fn a_path_behind_a_link_that_the_tool_made_was_not_touched() {
    for (target, was_folder) in [("file", false), ("folder", false), ("folder", true), ("nowhere", false)] {
        let place = Place::new();
        let outside = place.folder.path().join("outside");
        fs::create_dir_all(outside.join("folder")).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        fs::write(outside.join("folder/x"), "theirs").unwrap();
        place.write("b", "one");
        if was_folder {
            place.write("d/x", "ours");
        }
        let mut recorder = place.begin();
        recorder.before_tool(&["b", "d", "d/x"]).unwrap();
        place.write("b", "two");
        if was_folder {
            fs::remove_dir_all(place.project().join("d")).unwrap();
        }
        std::os::unix::fs::symlink(outside.join(target), place.project().join("d")).unwrap();
        recorder.after_tool().unwrap();
        let files = place.last_files(&recorder);
        let failed = files.values().filter(|file| matches!(file.before, Before::Failed(_))).count();
        let expected: &[&str] = if was_folder { &["b", "d", "d/x"] } else { &["b", "d"] };
        assert_eq!((files.keys().map(String::as_str).collect::<Vec<_>>(), failed), (expected.to_vec(), 0), "{target}");
        assert!(!was_folder || files["d/x"].after == After::Absent);
    }
}

#[test]
fn of_a_folder_that_is_named_everything_comes_back() {
    let place = Place::new();
    for (path, text) in [("d/a", "a one"), ("d/deep/b", "b one"), ("d/same", "same"), ("other", "other one")] {
        place.write(path, text);
    }
    let mut recorder = place.begin();
    recorder.before_tool(&["d"]).unwrap();
    place.write("d/a", "a two");
    fs::remove_dir_all(place.project().join("d/deep")).unwrap();
    place.write("d/new/c", "c two");
    place.write("other", "other two");
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    let before: Vec<_> = files.iter().map(|(path, file)| (path.as_str(), place.content(&file.before))).collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(before, [("d/a", text("a one")), ("d/deep/b", text("b one")), ("d/new/c", None)]);
    let snapshot = place.snapshots(&recorder).pop().unwrap();
    assert_eq!(snapshot.extra.get("folders"), Some(&serde_json::json!(["d/new"])));
}

#[test]
fn a_named_file_that_becomes_a_folder_and_a_folder_that_becomes_a_file_are_covered() {
    let place = Place::new();
    place.write("a", "file");
    place.write("d/k", "in it");
    let mut recorder = place.begin();
    recorder.before_tool(&["a", "d"]).unwrap();
    fs::remove_file(place.project().join("a")).unwrap();
    place.write("a/b", "new");
    fs::remove_dir_all(place.project().join("d")).unwrap();
    place.write("d", "a file now");
    recorder.after_tool().unwrap();
    let files = place.last_files(&recorder);
    let before: Vec<_> = files.iter().map(|(path, file)| (path.as_str(), place.content(&file.before))).collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(before, [("a", text("file")), ("a/b", None), ("d", None), ("d/k", text("in it"))]);
    assert_eq!((&files["a"].after, &files["d/k"].after), (&After::Absent, &After::Absent));
}
