//! Names, paths and link targets that look like secrets: an undo restores them to the last letter, and its records stay readable.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use jiff::Timestamp;
use scrollback::model::Host;
use scrollback::redact::Redactor;
use scrollback::session::{ReadOptions, Session};
use scrollback::write::{Blocked, Goal, NewSession, Scope, Store, Undo};

use super::{Desk, tree};
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
