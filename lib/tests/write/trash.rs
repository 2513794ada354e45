//! The trash: a removed session can be restored whole, and the content of the trash is not trusted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::place::{files_below, host_at};
use crate::support::{native, now, reading};
use scrollback::dialect;
use scrollback::model::Error;
use scrollback::session::{Session, Source};
use scrollback::write::{NewSession, Policy, Removed, Store, Trash};
use serde_json::{Value, json};
use tempfile::TempDir;

const USER: &str =
    "{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s1\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n";

struct Place {
    _folder: TempDir,
    root: PathBuf,
    trash: Trash,
}

/// A folder with these files.
fn place(files: &[(&str, &str)]) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let trash = Trash::open(&root.join("trash"), host_at(now()));
    Place { _folder: folder, root, trash }
}

impl Place {
    fn session(&self, dialect: &str, path: &str) -> Session {
        let source = Source::file(dialect::named(dialect).unwrap(), &self.root.join(path));
        Session::open(&source, &reading()).unwrap()
    }

    fn remove(&self, dialect: &str, path: &str) -> Result<Removed, Error> {
        self.trash.remove(&self.session(dialect, path))
    }

    /// Every file, as a path below the folder.
    fn files(&self) -> Vec<String> {
        files_below(&self.root)
    }

    fn origin(&self, id: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.root.join("trash").join(id).join("origin.json")).unwrap())
            .unwrap()
    }
}

const NATIVE: &[(&str, &str)] = &[
    ("sessions/s1/messages.jsonl", USER),
    ("sessions/s1/metadata.json", "{\"customTitle\":\"Greetings\"}"),
    ("sessions/s1/more/notes.txt", "mine"),
    ("sessions/s2/messages.jsonl", USER),
];

#[test]
fn the_original_of_a_conversion_is_removed_and_restored_with_it() {
    let log = "projects/p/s1.jsonl";
    let place = place(&[
        (log, USER),
        ("projects/p/s1.jsonl.scrollback.json", "kept"),
        ("projects/p/s1.jsonl.scrollback.original", "copy"),
        ("projects/p/s2.jsonl", USER),
    ]);
    let before = place.files();
    let removed = place.remove("claude-code", log).unwrap();
    let left = place.files();
    assert!(left.iter().all(|file| file.starts_with("trash/") || file == "projects/p/s2.jsonl"), "{left:?}");
    place.trash.restore(&removed.id).unwrap();
    assert_eq!(place.files(), before);
}

/// A store may come with a cloned repository, and its trash with it.
#[test]
fn the_trash_of_a_store_restores_nothing_outside_of_it() {
    for (dialect, path) in [
        ("ai-sdk", "home/.claude/settings.json"),
        ("ai-sdk", "home/chats/c1.json"),
        ("claude-code", "home/.claude/projects/-p/s1.jsonl"),
        ("native", "home/.local/share/scrollback/sessions/s1/messages.jsonl"),
        ("native", "repo/.sage-2/sessions/s1/messages.jsonl"),
    ] {
        let place = place(&[("repo/.sage/trash/x/f", "{}"), ("repo/.sage/trash/x/s1/messages.jsonl", USER)]);
        let path = place.root.join(path);
        let (moved, name) = match dialect {
            "native" => (path.parent().unwrap(), "s1"),
            _ => (path.as_path(), "f"),
        };
        let origin =
            json!({"dialect": dialect, "session": "s1", "path": path, "files": [{"path": moved, "name": name}]});
        fs::write(place.root.join("repo/.sage/trash/x/origin.json"), origin.to_string()).unwrap();
        let before = place.files();
        let trash = Trash::of_store(&place.root.join("repo/.sage"), host_at(now()));
        trash.restore("x").unwrap_err();
        assert_eq!((trash.list().removed.len(), trash.list().errors.len()), (0, 1), "{dialect} {path:?}");
        assert_eq!(place.files(), before, "{dialect} {path:?}");
        // The same session of its own store is restored.
        let own = place.root.join("repo/.sage/sessions/s1");
        let origin = json!({"dialect": "native", "session": "s1", "path": own.join("messages.jsonl"),
            "files": [{"path": own, "name": "s1"}]});
        fs::write(place.root.join("repo/.sage/trash/x/origin.json"), origin.to_string()).unwrap();
        trash.restore("x").unwrap();
        assert!(own.join("messages.jsonl").is_file());
    }
}

#[test]
fn what_has_no_log_is_not_restored() {
    let place = place(&[("repo/.sage/trash/x/s1/foo", "{}")]);
    let own = place.root.join("repo/.sage/sessions/s1");
    let origin = json!({"dialect": "native", "session": "s1", "path": own.join("messages.jsonl"),
        "files": [{"path": own, "name": "s1"}]});
    fs::write(place.root.join("repo/.sage/trash/x/origin.json"), origin.to_string()).unwrap();
    let before = place.files();
    let trash = Trash::of_store(&place.root.join("repo/.sage"), host_at(now()));
    assert!(matches!(trash.restore("x"), Err(Error::ForeignTrash(_))));
    assert_eq!(place.files(), before);
}

/// Somebody else may have put it there: only what is a session of its dialect is restored.
#[cfg(unix)]
#[test]
fn what_is_no_session_of_its_dialect_is_not_restored() {
    let is_restored = |dialect: &str, path: &str, make: &dyn Fn(&std::path::Path)| {
        let place = place(&[("trash/x/kept", "")]);
        let path = place.root.join(path);
        let origin = json!({"dialect": dialect, "session": "s1", "path": path, "files": [{"path": path, "name": "f"}]});
        fs::write(place.root.join("trash/x/origin.json"), origin.to_string()).unwrap();
        make(&place.root.join("trash/x/f"));
        place.trash.restore("x").is_ok()
    };
    let (settings, claude) = ("home/.claude/settings.json", "home/.claude/projects/-p/s1.jsonl");
    let text = |text: &'static str| move |path: &std::path::Path| fs::write(path, text).unwrap();
    let link = |path: &std::path::Path| std::os::unix::fs::symlink("/etc/hostname", path).unwrap();
    let pipe = |path: &std::path::Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    assert!(!is_restored("ai-sdk", settings, &text("{\"hooks\":1}")));
    assert!(!is_restored("ai-sdk", settings, &text("{\n  \"hooks\": 1\n}\n")));
    assert!(!is_restored("claude-code", claude, &text("evil\n")));
    assert!(!is_restored("claude-code", claude, &text("{\"a\":1}\n")));
    assert!(!is_restored("claude-code", claude, &link));
    assert!(!is_restored("claude-code", claude, &pipe));
    // What a crash left of a session is restored.
    assert!(is_restored("claude-code", claude, &text(USER)));
    assert!(is_restored("claude-code", claude, &text("")));
    assert!(is_restored("claude-code", claude, &text("\0\0\0\0")));
    assert!(is_restored("claude-code", claude, &text("{\"type\":\"user\",\"uu")));
    assert!(is_restored("ai-sdk", settings, &text("[]")));
}

#[test]
fn a_native_session_is_removed_and_restored_with_its_folder() {
    let place = place(NATIVE);
    let before = place.files();
    let removed = place.remove("native", "sessions/s1/messages.jsonl").unwrap();
    assert_eq!(removed.id, "s1");
    assert_eq!(
        place.files(),
        [
            "sessions/s2/messages.jsonl",
            "trash/s1/origin.json",
            "trash/s1/s1/messages.jsonl",
            "trash/s1/s1/metadata.json",
            "trash/s1/s1/more/notes.txt"
        ]
    );
    let path = place.root.join("sessions/s1/messages.jsonl");
    let folder = place.root.join("sessions/s1");
    assert_eq!(
        place.origin("s1"),
        json!({"dialect": "native", "session": "s1", "title": "Greetings", "path": path, "removed": "2026-11-15T12:00:00Z",
            "files": [{"path": folder, "name": "s1"}]})
    );
    let listed = place.trash.list();
    assert_eq!((listed.removed.len(), listed.errors.len()), (1, 0));
    assert_eq!(place.trash.restore("s1").unwrap().origin.path, path);
    assert_eq!(place.files(), before);
    assert_eq!(fs::read_to_string(&path).unwrap(), USER);
    assert!(place.trash.list().removed.is_empty());
}

/// The files of a Codex session that was rewound twice, the newest first.
const SEGMENTS: [&str; 3] = [
    "x/sessions/2026/01/04/rollout-2026-01-04T03-04-05-01a1e43e-6945-78f0-ad0f-db272521c1a4_01a1e43e-9624-7940-8982-5bbbe690c6a3.jsonl",
    "x/sessions/2026/01/03/rollout-2026-01-03T03-04-05-01a1e43e-6945-78f0-ad0f-db272521c1a4_01a1e43e-9423-7940-8982-5bbbe690c6a3.jsonl",
    "x/archived_sessions/rollout-2026-01-02T03-04-05-01a1e43e-6945-78f0-ad0f-db272521c1a4.jsonl",
];

/// The same, with the second one in both folders.
const COPIED_SEGMENTS: [&str; 4] = [
    SEGMENTS[0],
    SEGMENTS[1],
    "x/archived_sessions/rollout-2026-01-03T03-04-05-01a1e43e-6945-78f0-ad0f-db272521c1a4_01a1e43e-9423-7940-8982-5bbbe690c6a3.jsonl",
    SEGMENTS[2],
];

/// An earlier file is known by its path alone once it is in the trash.
#[test]
fn an_earlier_file_is_restored_only_to_a_place_of_its_session() {
    let meta = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"s1\"}}\n";
    let place = place(&SEGMENTS.map(|path| (path, meta)));
    let before = place.files();
    place.remove("codex", SEGMENTS[0]).unwrap();
    let right = place.origin("s1");
    for elsewhere in [
        SEGMENTS[2].replace("x/", "y/"),
        SEGMENTS[2].replace("archived_sessions/", "archived_sessions/../archived_sessions/"),
        SEGMENTS[2].replace("archived_sessions/", ""),
        SEGMENTS[2].replace("01a1e43e-6945", "01a1e43e-0000"),
        "x/config.toml".to_owned(),
    ] {
        let mut origin = right.clone();
        origin["files"][2]["path"] = json!(place.root.join(&elsewhere));
        fs::write(place.root.join("trash/s1/origin.json"), origin.to_string()).unwrap();
        assert!(place.trash.restore("s1").is_err(), "{elsewhere}");
    }
    fs::write(place.root.join("trash/s1/origin.json"), right.to_string()).unwrap();
    place.trash.restore("s1").unwrap();
    assert_eq!(place.files(), before);
}

#[test]
fn everything_that_belongs_to_a_session_is_removed_with_it() {
    for (dialect, path, files) in [
        (
            "claude-code",
            "c/projects/p/s1.jsonl",
            &[
                "c/projects/p/s1.jsonl",
                "c/projects/p/s1/subagents/agent-1.jsonl",
                "c/projects/p/s1/tool-results/1.txt",
                "c/file-history/s1/2697143bd723d6a9@v1",
            ][..],
        ),
        (
            "qwen-code",
            "q/projects/p/chats/s1.jsonl",
            &[
                "q/projects/p/chats/s1.jsonl",
                "q/projects/p/subagents/s1/agent-1.jsonl",
                "q/file-history/s1/0123456789abcdef@v1",
            ],
        ),
        (
            "codex",
            "x/sessions/2026/01/02/rollout-2026-01-02T03-04-05-s1.jsonl",
            &["x/sessions/2026/01/02/rollout-2026-01-02T03-04-05-s1.jsonl"],
        ),
        ("codex", SEGMENTS[0], &SEGMENTS),
        ("codex", SEGMENTS[0], &COPIED_SEGMENTS),
        ("fluux", "f/a@b.org/history.jsonl", &["f/a@b.org/history.jsonl"]),
        ("sage-el", "e/projects/p/conversation.jsonl", &["e/projects/p/conversation.jsonl"]),
    ] {
        let staying = [
            "c/file-history/s2/2697143bd723d6a9@v1",
            "c/projects/p/s2.jsonl",
            "q/file-history/s2/0123456789abcdef@v1",
            "q/projects/p/subagents/s2/agent-1.jsonl",
            "f/a@b.org/sessions/1.jsonl",
            "e/projects/p/metadata.json",
        ];
        let text = |path: &str| match dialect {
            _ if path != files[0] => "{}",
            "codex" => "{\"type\":\"session_meta\",\"payload\":{\"id\":\"s1\"}}\n",
            "fluux" => "{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}\n",
            "qwen-code" => {
                "{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s1\",\"message\":{\"role\":\"user\",\"parts\":[]}}\n"
            }
            "sage-el" => "{\"role\":\"user\",\"content\":\"hi\"}\n",
            _ => USER,
        };
        let all: Vec<(&str, &str)> = files.iter().chain(&staying).map(|path| (*path, text(path))).collect();
        let place = place(&all);
        let before = place.files();
        let id = place.remove(dialect, path).unwrap().id;
        let left: Vec<String> = place.files().into_iter().filter(|path| !path.starts_with("trash/")).collect();
        let mut expected = staying.to_vec();
        expected.sort_unstable();
        assert_eq!(left, expected, "{dialect}");
        let restored = place.trash.restore(&id);
        assert!(restored.is_ok(), "{dialect}: {restored:?}");
        assert_eq!(place.files(), before, "{dialect}");
    }
}

#[test]
fn a_session_removed_twice_is_kept_twice() {
    let place = place(NATIVE);
    for expected in ["s1", "s1~2", "s1~3"] {
        fs::create_dir_all(place.root.join("sessions/s1")).unwrap();
        fs::write(place.root.join("sessions/s1/messages.jsonl"), USER).unwrap();
        assert_eq!(place.remove("native", "sessions/s1/messages.jsonl").unwrap().id, expected);
    }
    assert_eq!(place.trash.list().removed.len(), 3);
    place.trash.restore("s1~2").unwrap();
    assert!(matches!(place.trash.restore("s1"), Err(Error::Exists(_))));
    assert_eq!(place.trash.list().removed.len(), 2);
}

#[test]
fn a_restore_overwrites_nothing() {
    let place = place(NATIVE);
    place.remove("native", "sessions/s1/messages.jsonl").unwrap();
    fs::write(place.root.join("sessions/s1"), "somebody's").unwrap();
    let before = place.files();
    assert!(matches!(place.trash.restore("s1"), Err(Error::Exists(_))));
    assert_eq!(place.files(), before);
    for id in ["s2", "", ".", "..", "../trash/s1", "s1/", "/s1"] {
        assert!(matches!(place.trash.restore(id), Err(Error::NoSession(_))), "{id:?}");
    }
}

#[test]
fn a_folder_that_is_gone_is_created_again() {
    let place = place(&[("c/projects/p/s1.jsonl", USER)]);
    place.remove("claude-code", "c/projects/p/s1.jsonl").unwrap();
    fs::remove_dir_all(place.root.join("c")).unwrap();
    place.trash.restore("s1").unwrap();
    assert_eq!(place.files(), ["c/projects/p/s1.jsonl"]);
}

#[test]
fn hostile_ids_stay_inside_the_trash() {
    for (session, expected) in
        [("../../etc", "_.._etc"), ("/x", "_x"), ("", "session"), ("..", "session"), ("a\u{1b}[31m", "a__31m")]
    {
        let line =
            json!({"type": "user", "uuid": "u", "sessionId": session, "message": {"role": "user", "content": "Hi"}});
        let place = place(&[("sessions/odd/messages.jsonl", &format!("{line}\n"))]);
        let removed = place.remove("native", "sessions/odd/messages.jsonl").unwrap();
        // A session without an id is named after its folder.
        let expected = if session.is_empty() { "odd" } else { expected };
        assert_eq!(removed.id, expected, "{session:?}");
        place.trash.restore(&removed.id).unwrap();
        assert_eq!(place.files(), ["sessions/odd/messages.jsonl"]);
    }
}

#[test]
fn an_invalid_origin_is_not_trusted() {
    let place = place(NATIVE);
    place.remove("native", "sessions/s1/messages.jsonl").unwrap();
    let note = place.root.join("trash/s1/origin.json");
    let right = place.origin("s1");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut origin = right.clone();
        change(&mut origin);
        origin.to_string()
    };
    let elsewhere = place.root.join("elsewhere");
    for (what, text) in [
        ("no JSON", "{".to_owned()),
        ("nothing", "{}".to_owned()),
        ("another place", with(&|origin| origin["files"][0]["path"] = json!(elsewhere))),
        ("a step back", with(&|origin| origin["files"][0]["path"] = json!(place.root.join("sessions/x/../s1")))),
        ("a relative path", with(&|origin| origin["path"] = json!("sessions/s1/messages.jsonl"))),
        ("a name that is a path", with(&|origin| origin["files"][0]["name"] = json!("../../sessions/s2"))),
        ("the note itself", with(&|origin| origin["files"][0]["name"] = json!("origin.json"))),
        ("no files", with(&|origin| origin["files"] = json!([]))),
        ("nobody's dialect", with(&|origin| origin["dialect"] = json!("unknown"))),
        (
            "a file that is no session",
            with(&|origin| {
                origin["path"] = json!(place.root.join(".bashrc"));
                origin["files"][0]["path"] = json!(place.root.join(".bashrc"));
            }),
        ),
        ("too long", format!("{}{}", " ".repeat(2 << 20), right)),
    ] {
        fs::write(&note, text).unwrap();
        let before = place.files();
        assert!(place.trash.restore("s1").is_err(), "{what}");
        let listed = place.trash.list();
        assert_eq!((listed.removed.len(), listed.errors.len()), (0, 1), "{what}");
        assert_eq!(place.files(), before, "{what}");
    }
    fs::write(&note, right.to_string()).unwrap();
    place.trash.restore("s1").unwrap();
}

#[test]
fn a_restore_completes_a_removal_that_crashed() {
    let place = place(&[("c/projects/p/s1.jsonl", USER), ("c/projects/p/s1/subagents/agent-1.jsonl", USER)]);
    let before = place.files();
    place.remove("claude-code", "c/projects/p/s1.jsonl").unwrap();
    // The second was never moved.
    fs::rename(place.root.join("trash/s1/s1"), place.root.join("c/projects/p/s1")).unwrap();
    place.trash.restore("s1").unwrap();
    assert_eq!(place.files(), before);
}

#[test]
fn a_file_that_is_not_a_session_is_refused() {
    let place = place(&[("notes.txt", USER), ("sessions/s1/messages.jsonl", USER)]);
    for (dialect, path) in [("native", "notes.txt"), ("unknown", "sessions/s1/messages.jsonl")] {
        assert!(matches!(place.remove(dialect, path), Err(Error::CannotStore { .. })), "{dialect} {path}");
    }
    assert_eq!(place.files().len(), 2);
}

#[test]
fn a_session_that_is_being_written_is_busy() {
    let place = place(NATIVE);
    let file = fs::OpenOptions::new().append(true).open(place.root.join("sessions/s1/messages.jsonl")).unwrap();
    file.lock().unwrap();
    let refused = place.remove("native", "sessions/s1/messages.jsonl");
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
    assert_eq!(place.files().len(), NATIVE.len());
    file.unlock().unwrap();
    place.remove("native", "sessions/s1/messages.jsonl").unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let place = place(&[("real/messages.jsonl", USER), ("real/notes.txt", "mine"), ("sessions/s2/x", "")]);
    std::os::unix::fs::symlink(place.root.join("real/messages.jsonl"), place.root.join("sessions/s2/messages.jsonl"))
        .unwrap();
    assert!(place.remove("native", "sessions/s2/messages.jsonl").is_err());
    assert!(fs::symlink_metadata(place.root.join("sessions/s2/messages.jsonl")).unwrap().is_symlink());
    // The folder of a session may be a link: then only its files are moved.
    std::os::unix::fs::symlink(place.root.join("real"), place.root.join("sessions/s1")).unwrap();
    let removed = place.remove("native", "sessions/s1/messages.jsonl").unwrap();
    assert!(!place.root.join("real/messages.jsonl").exists() && place.root.join("real/notes.txt").exists());
    place.trash.restore(&removed.id).unwrap();
    assert_eq!(fs::read_to_string(place.root.join("sessions/s1/messages.jsonl")).unwrap(), USER);
}

#[cfg(unix)]
#[test]
fn a_hostile_sidecar_does_not_keep_a_session_from_the_trash() {
    use crate::support::hostile_files::Hostile;
    let hostile = Hostile::ALL.into_iter().filter(|hostile| *hostile != Hostile::Sparse);
    for hostile in hostile {
        let place = place(&[("projects/p/s1.jsonl", USER)]);
        hostile.put(&place.root.join("projects/p/s1.meta.json"));
        let removed = place.remove("claude-code", "projects/p/s1.jsonl").unwrap();
        assert!(!place.root.join("projects/p/s1.jsonl").exists(), "{hostile:?}");
        place.trash.restore(&removed.id).unwrap();
        assert_eq!(fs::read_to_string(place.root.join("projects/p/s1.jsonl")).unwrap(), USER, "{hostile:?}");
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_moved_if_the_trash_cannot_be_created() {
    let place = place(NATIVE);
    fs::write(place.root.join("trash"), "a file").unwrap();
    let before = place.files();
    assert!(place.remove("native", "sessions/s1/messages.jsonl").is_err());
    assert_eq!(place.files(), before);
    let listed = place.trash.list();
    assert_eq!((listed.removed.len(), listed.errors.len()), (0, 1));
}

#[test]
fn leftovers_of_a_failed_removal_are_not_listed() {
    let place = place(NATIVE);
    place.remove("native", "sessions/s1/messages.jsonl").unwrap();
    let note = fs::read_to_string(place.root.join("trash/s1/origin.json")).unwrap();
    place.trash.restore("s1").unwrap();
    for text in [&note[..], "", &note[..note.len() / 2]] {
        fs::create_dir_all(place.root.join("trash/s1")).unwrap();
        fs::write(place.root.join("trash/s1/origin.json"), text).unwrap();
        let listed = place.trash.list();
        assert_eq!((listed.removed.len(), listed.errors.len()), (0, 0), "{text:?}");
    }
    fs::remove_file(place.root.join("trash/s1/origin.json")).unwrap();
    assert!(place.trash.list().errors.is_empty());
}

#[cfg(unix)]
#[test]
fn a_file_that_has_both_names_is_restored() {
    let place = place(&[("c/projects/p/s1.jsonl", USER)]);
    let before = place.files();
    place.remove("claude-code", "c/projects/p/s1.jsonl").unwrap();
    // The machine crashed before the first name was removed.
    fs::hard_link(place.root.join("trash/s1/s1.jsonl"), place.root.join("c/projects/p/s1.jsonl")).unwrap();
    place.trash.restore("s1").unwrap();
    assert_eq!(place.files(), before);
    place.remove("claude-code", "c/projects/p/s1.jsonl").unwrap();
    fs::write(place.root.join("c/projects/p/s1.jsonl"), USER).unwrap();
    assert!(matches!(place.trash.restore("s1"), Err(Error::Exists(_))), "an equal file is another one");
}

#[cfg(unix)]
#[test]
fn nothing_is_moved_through_a_link_out_of_the_store() {
    let link = |from: PathBuf, to: PathBuf| std::os::unix::fs::symlink(from, to).unwrap();
    let place = place(&[("out/messages.jsonl", USER), ("store/sessions/s2/messages.jsonl", USER)]);
    link(place.root.join("out"), place.root.join("store/sessions/s1"));
    assert!(place.remove("native", "store/sessions/s1/messages.jsonl").is_err());
    assert!(place.root.join("out/messages.jsonl").exists());
    // The store itself may be a link.
    link(place.root.join("store"), place.root.join("linked"));
    place.remove("native", "linked/sessions/s2/messages.jsonl").unwrap();
    let (sessions, away) = (place.root.join("store/sessions"), place.root.join("out/sessions"));
    fs::rename(&sessions, place.root.join("away")).unwrap();
    fs::create_dir(&away).unwrap();
    link(away.clone(), sessions);
    assert!(place.trash.restore("s2").is_err());
    assert!(fs::read_dir(away).unwrap().next().is_none());
}

#[test]
fn a_session_that_a_recorder_has_open_is_not_removed() {
    let place = place(&[]);
    let store = Store::open(native(), &place.root, host_at(now())).unwrap();
    let mut recorder = store
        .session(NewSession { id: Some("s1"), ..NewSession::of(Path::new("/gone")) }, Policy::New)
        .unwrap();
    recorder.user("Hi").unwrap();
    let refused = store.remove("s1", &place.root);
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
    recorder.close().unwrap();
    assert_eq!(store.remove("s1", &place.root.join("data")).unwrap().root, place.root.join("trash"));
    assert!(!store.exists("s1"));
}

#[cfg(unix)]
#[test]
fn a_file_history_behind_a_link_is_not_moved() {
    let place = place(&[("c/projects/p/s1.jsonl", USER), ("elsewhere/s1/x@v1", "before")]);
    std::os::unix::fs::symlink(place.root.join("elsewhere"), place.root.join("c/file-history")).unwrap();
    let removed = place.remove("claude-code", "c/projects/p/s1.jsonl").unwrap();
    assert!(place.root.join("elsewhere/s1/x@v1").exists());
    place.trash.restore(&removed.id).unwrap();
    assert!(place.root.join("c/projects/p/s1.jsonl").exists());
}
