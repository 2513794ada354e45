//! Names, paths and link targets that look like secrets: an undo restores them to the last letter, and its records stay readable.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use jiff::Timestamp;
use scrollback::model::Host;
use scrollback::redact::Redactor;
use scrollback::session::{ReadOptions, Session};
use scrollback::write::{Blocked, Goal, NewSession, Readiness, Scope, Store, Undo};
use serde_json::{Value, json};

use super::{Desk, sha256, tree};
use crate::support::{native, reading};

const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

/// Files whose content is a secret, and paths that have one in them.
const FILES: [&str; 8] = [
    ".env",
    "id_rsa",
    ".npmrc",
    "x.pem",
    "config/secrets.yml",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789/x",
    "password=hunter2secret.txt",
    "plain.txt",
];

/// Links, and a target that is a secret or in the place of a secret file.
const LINKS: [&str; 2] = ["link", ".env.local"];

#[test]
fn what_looks_like_a_secret_is_undone_and_redone_exactly() {
    let mask = Arc::new(Redactor::built_in());
    for (is_watched, is_masked) in [(false, false), (true, false), (false, true), (true, true)] {
        let desk = Desk::new();
        let (project, root) = (desk.project(), desk.root.join("store"));
        let write = |link: &str, content: &str| {
            FILES.iter().for_each(|path| drop(desk.file(path, format!("{content} of {path}"))));
            for path in LINKS {
                drop(fs::remove_file(project.join(path)));
                symlink(link, project.join(path)).unwrap();
            }
        };
        write(TOKEN, "first");
        let store = Store::open(native(), &root, desk.host()).unwrap();
        let mut recorder = store.session(NewSession::of(&project), scrollback::Policy::New).unwrap();
        let mut states = vec![tree(&project)];
        for turn in ["second", "third"] {
            recorder.user(turn).unwrap();
            if is_watched {
                recorder.watch(".").unwrap();
            }
            recorder.assistant("I change them.").unwrap();
            if !is_watched {
                recorder.before_tool(&[&FILES[..], &LINKS, &["key=AKIAIOSFODNN7EXAMPLE/new"]].concat()).unwrap();
            }
            write(&format!("AKIAIOSFODNN7EXAMPLE/{turn}"), turn);
            desk.file("key=AKIAIOSFODNN7EXAMPLE/new", turn);
            recorder.after_tool().unwrap();
            recorder.assistant("Done.").unwrap();
            states.push(tree(&project));
        }
        recorder.close().unwrap();
        let id = recorder.session().unwrap().to_string();
        drop(recorder);
        let source = store.source(&id).unwrap();
        let case = format!("watched {is_watched}, masked {is_masked}");
        use Goal::{LastTurn as Back, Redo as Again};
        for (step, (goal, state)) in
            [(Back, 1), (Again, 2), (Back, 1), (Back, 0), (Again, 1), (Again, 2), (Back, 1), (Back, 0)]
                .iter()
                .enumerate()
        {
            let options = ReadOptions { mask: is_masked.then_some(&mask), ..reading() };
            let session = Session::open(&source, &options).unwrap();
            let undo = Undo::open(&session, desk.host(), None).unwrap();
            let plan = undo.plan(goal, Scope::Conversation).unwrap();
            let ready = plan.files.iter().map(|file| format!("{} {:?} {:?}", file.path, file.state, file.reason));
            assert!(plan.is_ready(Blocked::Stop), "{case}, step {step}: {:?}", ready.collect::<Vec<_>>());
            undo.apply(&plan, Blocked::Stop).unwrap();
            assert_eq!(tree(&project), states[*state], "{case}, step {step}");
        }
        let late = Host { now: Arc::new(|| Timestamp::MAX), ..desk.host() };
        assert_eq!(Store::open(native(), &root, late).unwrap().unreferenced_blobs().unwrap(), [], "{case}");
        let log = fs::read_to_string(&source.path).unwrap();
        assert!(!log.contains("REDACTED"), "{case}: {log}");
    }
}

const MASKED: &str = "token = \"[REDACTED:github-token:21bc66ce]\"\n";
const TRUE: &str = "token = \"the true one\"\n";

/// A text of a snapshot is what was there only if it has the recorded hash, and is not masked if it has none.
#[test]
fn a_text_that_was_masked_or_changed_is_not_restored() {
    let true_copy = json!({"backupPath": "c_1.backup", "originalHash": sha256(TRUE)});
    let wrong_copy = json!({"backupPath": "c_2.backup", "originalHash": sha256(TRUE)});
    let failed = |now: &'static str| (Readiness::Failed, now);
    for (what, text, backup, now, expected) in [
        ("the copy has the hash", MASKED, Some(true_copy.clone()), "new\n", (Readiness::Ready, TRUE)),
        ("the text has the hash", TRUE, Some(wrong_copy.clone()), "new\n", (Readiness::Ready, TRUE)),
        ("neither has it", MASKED, Some(wrong_copy), "new\n", failed("new\n")),
        ("there is no copy", "other", Some(json!({"originalHash": sha256(TRUE)})), "new\n", failed("new\n")),
        ("nothing proves it", MASKED, None, "new\n", failed("new\n")),
        ("a text without a hash", TRUE, None, "new\n", (Readiness::Ready, TRUE)),
        ("a placeholder of its own", MASKED, None, "more [REDACTED:github-token:21bc66ce]", (Readiness::Ready, MASKED)),
        (
            "a placeholder with its hash",
            MASKED,
            Some(json!({"originalHash": sha256(MASKED)})),
            "n",
            (Readiness::Ready, MASKED),
        ),
    ] {
        let desk = Desk::new();
        let hash = desk.file("c.py", now);
        let folder = desk.root.join("store/sessions/s1/backups");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("c_1.backup"), TRUE).unwrap();
        fs::write(folder.join("c_2.backup"), "wrong").unwrap();
        let tracked = json!({"c.py": {"originalContent": text, "contentHash": hash, "state": "modified"}});
        let backups = backup.map_or_else(|| json!({}), |backup| json!({"c.py": backup}));
        let source = desk.native(&tracked, &backups);
        let (_, state, reason) = &desk.planned(&source, &Goal::LastTurn)[0];
        desk.step(&source, &Goal::LastTurn);
        assert_eq!((*state, desk.read("c.py").as_deref()), (expected.0, Some(expected.1)), "{what}: {reason}");
    }
}

#[test]
fn what_would_be_rebuilt_from_a_masked_edit_is_not_restored() {
    let desk = Desk::new();
    desk.file("c.py", "token = read()\n");
    let line = |kind: &str, id: &str, parent: Option<&str>, content: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "timestamp": "2026-11-15T12:00:00Z",
            "cwd": desk.project(), "version": "2.1.325", "message": {"role": kind, "content": content}})
    };
    let input =
        json!({"file_path": "c.py", "old_string": "\"[REDACTED:github-token:21bc66ce]\"", "new_string": "read()"});
    let lines = [
        line("user", "u1", None, json!("Read it.")),
        line("assistant", "a1", Some("u1"), json!([{"type": "tool_use", "id": "t1", "name": "Edit", "input": input}])),
        line("user", "r1", Some("a1"), json!([{"type": "tool_result", "tool_use_id": "t1", "content": "done"}])),
    ];
    let source = desk.session("claude-code", "claude/projects/-p/s1.jsonl", &lines);
    assert_eq!(desk.planned(&source, &Goal::LastTurn)[0].1, Readiness::Failed);
}
