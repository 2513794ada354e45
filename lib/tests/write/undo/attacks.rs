//! Hostile sessions and projects that change under undo: nothing outside the project is read or written, and nothing in it is lost.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use scrollback::model::Error;

use super::*;
use crate::support::effort::check_linear;
use crate::support::hostile_files::Hostile;
use crate::support::place::files_below;

/// Files outside the project that nobody may change.
struct Canaries(BTreeMap<PathBuf, Vec<u8>>);

impl Canaries {
    fn beside(desk: &Desk) -> Canaries {
        let outside = desk.root.join("outside");
        fs::create_dir_all(outside.join("deep")).unwrap();
        for name in ["canary.txt", "deep/canary.txt", "a.txt"] {
            fs::write(outside.join(name), "canary\n").unwrap();
        }
        Canaries::found(desk)
    }

    fn found(desk: &Desk) -> Canaries {
        let outside = desk.root.join("outside");
        let mut found: BTreeMap<PathBuf, Vec<u8>> = files_below(&outside)
            .into_iter()
            .map(|name| (name.clone().into(), fs::read(outside.join(name)).unwrap()))
            .collect();
        found.insert("/etc/passwd".into(), fs::read("/etc/passwd").unwrap_or_default());
        Canaries(found)
    }

    fn check(&self, desk: &Desk, what: &str) {
        assert_eq!(self.0, Canaries::found(desk).0, "{what}");
    }
}

/// Something that another program does to the project.
type Swap = fn(&Desk);

/// Tries to apply a plan in every way; what may not happen does not.
fn apply_all(desk: &Desk, source: &Source, goal: &Goal) {
    for blocked in [Blocked::Stop, Blocked::Force, Blocked::Skip] {
        let session = desk.open(source);
        let undo = Undo::open(&session, desk.host(), Some(&desk.project())).unwrap();
        let plan = undo.plan(goal, Scope::FilesOnly).unwrap();
        drop(undo.apply(&plan, blocked));
    }
}

#[test]
fn paths_that_lead_out_of_the_project_are_refused() {
    let desk = Desk::new();
    let canaries = Canaries::beside(&desk);
    desk.file("src/real.txt", "canary\n");
    symlink("../outside", desk.project().join("way-out")).unwrap();
    symlink("src", desk.project().join("way-round")).unwrap();
    Hostile::Pipe.put(&desk.project().join("pipe"));
    Hostile::Socket.put(&desk.project().join("socket"));
    fs::create_dir(desk.project().join("folder")).unwrap();
    let outside = desk.root.join("outside/canary.txt").display().to_string();
    let long = "x/".repeat(3000);
    let files = files_below(&desk.project());
    for path in [
        outside.as_str(),
        "../outside/canary.txt",
        "src/../../outside/canary.txt",
        "src/../src/real.txt",
        "way-out/canary.txt",
        "way-out/deep/canary.txt",
        "way-out/new.txt",
        "way-round/real.txt",
        "src/real.txt/below",
        "/etc/passwd",
        "/proc/self/mem",
        "/proc/self/root/etc/passwd",
        "/dev/null",
        "//etc/passwd",
        "nul\0byte",
        "pipe",
        "socket",
        "folder",
        ".",
        "",
        "./",
        &long,
    ] {
        // A file to bring back, one to overwrite, and one to delete.
        for (original, state) in [(json!("owned"), "deleted"), (json!("owned"), "modified"), (Value::Null, "created")] {
            let what = format!("{path:?} {state}");
            let hash = if state == "deleted" { Value::Null } else { json!(sha256("canary\n")) };
            let tracked = json!({path: {"originalContent": original, "contentHash": hash, "state": state}});
            // A session may name no directory at all.
            for context in [json!({"cwd": desk.project()}), json!({})] {
                let source = desk.native_in(&context, &tracked, &json!({}));
                let planned = desk.planned(&source, &Goal::LastTurn);
                assert_eq!(planned.iter().map(|file| file.1).collect::<Vec<_>>(), [Readiness::Refused], "{what}");
                apply_all(&desk, &source, &Goal::LastTurn);
                canaries.check(&desk, &what);
                assert_eq!(desk.read("src/real.txt").as_deref(), Some("canary\n"), "{what}");
            }
        }
    }
    assert_eq!(files_below(&desk.project()), files);
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    let desk = Desk::new();
    let canaries = Canaries::beside(&desk);
    symlink("../outside/canary.txt", desk.project().join("file.txt")).unwrap();
    let tracked = json!({"file.txt": {"originalContent": "before\n", "contentHash": sha256("canary\n")}});
    let source = desk.native(&tracked, &json!({}));
    assert_eq!(desk.planned(&source, &Goal::LastTurn)[0].1, Readiness::Conflict);
    apply_all(&desk, &source, &Goal::LastTurn);
    canaries.check(&desk, "the link's target");
    assert!(!desk.project().join("file.txt").is_symlink(), "it was forced");
    assert_eq!(desk.read("file.txt").as_deref(), Some("before\n"));
    // What the session recorded as a link comes back as a link, wherever it leads.
    let tracked = json!({"file.txt": {"symlink": "../outside/canary.txt", "contentHash": sha256("before\n")}});
    fs::remove_dir_all(desk.root.join("store/sessions")).unwrap();
    let source = desk.native(&tracked, &json!({}));
    apply_all(&desk, &source, &Goal::LastTurn);
    assert_eq!(fs::read_link(desk.project().join("file.txt")).unwrap(), Path::new("../outside/canary.txt"));
    canaries.check(&desk, "the link's target");
}

#[test]
fn what_changes_between_the_plan_and_its_end_stops_it() {
    let swaps: [(&str, Swap); 5] = [
        ("the folder becomes a link out of the project", |desk| {
            fs::rename(desk.project().join("src"), desk.project().join("src-old")).unwrap();
            symlink("../outside", desk.project().join("src")).unwrap();
        }),
        ("the file becomes a link", |desk| {
            fs::remove_file(desk.project().join("src/a.txt")).unwrap();
            symlink("../../outside/a.txt", desk.project().join("src/a.txt")).unwrap();
        }),
        ("the file becomes a folder", |desk| {
            fs::remove_file(desk.project().join("src/a.txt")).unwrap();
            fs::create_dir(desk.project().join("src/a.txt")).unwrap();
        }),
        ("the file is edited", |desk| fs::write(desk.project().join("src/a.txt"), "edited").unwrap()),
        ("the file is replaced by an equal one", |desk| {
            fs::write(desk.project().join("src/new"), "canary\n").unwrap();
            fs::rename(desk.project().join("src/new"), desk.project().join("src/a.txt")).unwrap();
        }),
    ];
    for (what, swap) in swaps {
        let desk = Desk::new();
        let canaries = Canaries::beside(&desk);
        let hash = desk.file("src/a.txt", "canary\n");
        let other = desk.file("b.txt", "left\n");
        let source = desk.native(
            &json!({"src/a.txt": {"originalContent": "owned\n", "contentHash": hash},
                "b.txt": {"originalContent": "before\n", "contentHash": other}}),
            &json!({}),
        );
        let session = desk.open(&source);
        let undo = Undo::open(&session, desk.host(), Some(&desk.project())).unwrap();
        let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
        assert!(plan.is_ready(Blocked::Stop), "{what}");
        swap(&desk);
        let files = files_below(&desk.project());
        for blocked in [Blocked::Stop, Blocked::Force] {
            let applied = undo.apply(&plan, blocked);
            assert!(matches!(applied, Err(Error::Changed(_))), "{what}: {applied:?}");
        }
        canaries.check(&desk, what);
        assert_eq!(desk.read("b.txt").as_deref(), Some("left\n"), "{what}");
        assert_eq!(files_below(&desk.project()), files, "{what}");
        assert!(!undo.is_interrupted().unwrap(), "{what}");
    }
}

#[test]
fn copies_that_are_missing_damaged_or_elsewhere_are_not_used() {
    let good = sha256("before\n");
    let missing_blob = format!("blob:{}", "0".repeat(64));
    let outside = "../../../outside/canary.txt";
    for (what, copy, hash) in [
        ("a way out", outside, None),
        ("another way out", "..\\..\\outside\\canary.txt", None),
        ("an absolute path", "/etc/passwd", None),
        ("a link out", "linked.backup", None),
        ("a folder", "folder.backup", None),
        ("a pipe", "pipe.backup", None),
        ("no name", "..", None),
        ("an empty name", "", None),
        ("a NUL", "a\0b", None),
        ("a missing copy", "missing.backup", None),
        ("a damaged copy", "good.backup", Some(sha256("something else"))),
        ("a blob that is no hash", "blob:../../outside/canary.txt", None),
        ("a short hash", "blob:abc", None),
        ("a hash in capitals", "blob:ABCDEF", None),
        ("a missing blob", &missing_blob, Some(good.clone())),
    ] {
        let desk = Desk::new();
        let canaries = Canaries::beside(&desk);
        let hash_now = desk.file("a.txt", "after\n");
        let copies = desk.root.join("store/sessions/s1/backups");
        fs::create_dir_all(copies.join("folder.backup")).unwrap();
        fs::write(copies.join("good.backup"), "before\n").unwrap();
        symlink(desk.root.join("outside/canary.txt"), copies.join("linked.backup")).unwrap();
        Hostile::Pipe.put(&copies.join("pipe.backup"));
        let tracked = json!({"a.txt": {"contentHash": hash_now, "state": "modified"}});
        let source = desk.native(&tracked, &json!({"a.txt": {"backupPath": copy, "originalHash": hash}}));
        let states: Vec<Readiness> = desk.planned(&source, &Goal::LastTurn).iter().map(|file| file.1).collect();
        let is_refused =
            copy.contains("..") && !copy.starts_with("blob:") || ["/etc/passwd", "a\0b", ""].contains(&copy);
        let expected = if is_refused { Readiness::Refused } else { Readiness::Failed };
        assert_eq!(states, [expected], "{what}");
        apply_all(&desk, &source, &Goal::LastTurn);
        canaries.check(&desk, what);
        assert_eq!(desk.read("a.txt").as_deref(), Some("after\n"), "{what}");
    }
}

#[test]
fn a_folder_of_copies_that_leads_elsewhere_is_not_used() {
    for place in ["store/sessions/s1/backups", "project/.sage/backups", "project/.sage"] {
        let desk = Desk::new();
        let canaries = Canaries::beside(&desk);
        fs::create_dir(desk.root.join("outside/backups")).unwrap();
        fs::write(desk.root.join("outside/backups/canary.txt"), "canary\n").unwrap();
        fs::create_dir_all(desk.root.join(place).parent().unwrap()).unwrap();
        symlink(desk.root.join("outside"), desk.root.join(place)).unwrap();
        let hash = desk.file("a.txt", "after\n");
        let tracked = json!({"a.txt": {"contentHash": hash, "state": "modified"}});
        let source = desk.native(&tracked, &json!({"a.txt": {"backupPath": "canary.txt"}}));
        assert_eq!(desk.planned(&source, &Goal::LastTurn)[0].1, Readiness::Failed, "{place}");
        apply_all(&desk, &source, &Goal::LastTurn);
        assert_eq!(desk.read("a.txt").as_deref(), Some("after\n"), "{place}");
        fs::remove_dir_all(desk.root.join("outside/backups")).unwrap();
        canaries.check(&desk, place);
    }
}

#[test]
fn a_blob_with_other_bytes_is_not_used() {
    let desk = Desk::new();
    let first = desk.file("a.txt", "after\n");
    let source = desk.native(&json!({"a.txt": {"originalContent": "before\n", "contentHash": first}}), &json!({}));
    desk.step(&source, &Goal::LastTurn);
    assert_eq!(desk.read("a.txt").as_deref(), Some("before\n"));
    let blobs = desk.root.join("store/blobs");
    for name in files_below(&blobs) {
        fs::write(blobs.join(&name), "damaged").unwrap();
    }
    assert_eq!(desk.planned(&source, &Goal::Redo)[0].1, Readiness::Failed);
    apply_all(&desk, &source, &Goal::Redo);
    assert_eq!(desk.read("a.txt").as_deref(), Some("before\n"));
}

#[test]
fn two_files_of_one_name_never_share_a_copy() {
    let desk = Desk::new();
    let (one, two) = (desk.file("one/same.txt", "1 now"), desk.file("two/same.txt", "2 now"));
    let copies = desk.root.join("store/sessions/s1/backups");
    fs::create_dir_all(&copies).unwrap();
    fs::write(copies.join("same.txt_1.backup"), "1 before").unwrap();
    fs::write(copies.join("same.txt_2.backup"), "2 before").unwrap();
    let tracked = json!({"one/same.txt": {"contentHash": one, "state": "modified"}, "two/same.txt": {"contentHash": two, "state": "modified"}});
    let shared = json!({"one/same.txt": {"backupPath": "x/same.txt_1.backup"}, "two/same.txt": {"backupPath": "y/same.txt_1.backup"}});
    let half_proved = json!({"one/same.txt": {"backupPath": "same.txt_1.backup"},
        "two/same.txt": {"backupPath": "same.txt_1.backup", "originalHash": sha256("1 before")}});
    for (backups, expected) in
        [(shared, [Readiness::Failed, Readiness::Failed]), (half_proved, [Readiness::Failed, Readiness::Ready])]
    {
        let source = desk.native(&tracked, &backups);
        let states: Vec<_> = desk.planned(&source, &Goal::LastTurn).into_iter().map(|file| file.1).collect();
        assert_eq!(states, expected, "{backups}");
        desk.step(&source, &Goal::LastTurn);
    }
    assert_eq!(
        (desk.read("one/same.txt").unwrap(), desk.read("two/same.txt").unwrap()),
        ("1 now".into(), "2 now".into())
    );
    let own = json!({"one/same.txt": {"backupPath": "same.txt_1.backup", "originalHash": sha256("1 before")},
        "two/same.txt": {"backupPath": "same.txt_2.backup", "originalHash": sha256("2 before")}});
    let source = desk.native(&tracked, &own);
    desk.step(&source, &Goal::LastTurn);
    let files = (desk.read("one/same.txt").unwrap(), desk.read("two/same.txt").unwrap());
    assert_eq!(files, ("1 before".to_owned(), "2 before".to_owned()));
}

#[test]
fn a_read_only_file_is_restored_with_its_permissions_and_a_read_only_folder_changes_nothing() {
    let desk = Desk::new();
    let (locked, inside) = (desk.file("locked.txt", "after\n"), desk.file("folder/a.txt", "after\n"));
    let place = |name: &str| desk.project().join(name);
    let mode = |name: &str| fs::metadata(place(name)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(place("locked.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    let before =
        |hash: &str| json!({"originalContent": "before\n", "contentHash": hash, "mode": 0o444, "modeAfter": 0o444});
    let source = desk.native(&json!({"locked.txt": before(&locked)}), &json!({}));
    desk.step(&source, &Goal::LastTurn);
    assert_eq!((desk.read("locked.txt").as_deref(), mode("locked.txt")), (Some("before\n"), 0o444));

    fs::set_permissions(place("folder/a.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    fs::set_permissions(place("folder"), PermissionsExt::from_mode(0o555)).unwrap();
    let may_write = fs::write(place("folder/new"), "").and_then(|()| fs::remove_file(place("folder/new"))).is_ok();
    let source = desk.native(&json!({"folder/a.txt": before(&inside), "locked.txt": {"originalContent": "older\n", "contentHash": sha256("before\n")}}), &json!({}));
    let session = desk.open(&source);
    let undo = Undo::open(&session, desk.host(), Some(&desk.project())).unwrap();
    let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
    let applied = undo.apply(&plan, Blocked::Stop);
    // The super-user may write everywhere.
    assert_eq!(applied.is_ok(), may_write, "{applied:?}");
    let expected = if may_write { ("older\n", "before\n") } else { ("before\n", "after\n") };
    assert_eq!(
        (desk.read("locked.txt").as_deref(), desk.read("folder/a.txt").as_deref()),
        (Some(expected.0), Some(expected.1))
    );
    assert!(!undo.is_interrupted().unwrap());
    fs::set_permissions(place("folder"), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_project_that_is_gone_is_an_error_and_another_one_conflicts() {
    let desk = Desk::new();
    let hash = desk.file("a.txt", "after\n");
    let source = desk.native(&json!({"a.txt": {"originalContent": "before\n", "contentHash": hash}}), &json!({}));
    let session = desk.open(&source);
    let open = |root: &Path| Undo::open(&session, desk.host(), Some(root)).map(drop);
    assert!(matches!(open(&desk.root.join("gone")), Err(Error::NoProject(_))));
    assert!(matches!(open(&desk.project().join("a.txt")), Err(Error::Io { .. })));
    for system in ["/", "/proc", "/proc/self", "/dev", "/sys"] {
        let opened = Undo::open(&session, desk.host(), Some(Path::new(system)));
        assert!(matches!(opened, Err(Error::InvalidRoot(_))), "{system}");
    }
    let other = desk.root.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), "another project's\n").unwrap();
    let undo = Undo::open(&session, desk.host(), Some(&other)).unwrap();
    let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
    assert_eq!(plan.files[0].state, Readiness::Conflict);
    assert!(matches!(undo.apply(&plan, Blocked::Stop), Err(Error::NotReady)));
    assert_eq!(fs::read_to_string(other.join("a.txt")).unwrap(), "another project's\n");
}

#[test]
fn a_nested_repository_is_just_files() {
    let desk = Desk::new();
    let now = |path: &str| json!({"originalContent": "before\n", "contentHash": desk.file(path, "after\n")});
    let tracked = json!({"vendor/dep/.git/HEAD": now("vendor/dep/.git/HEAD"), "vendor/dep/.git/hooks/post-checkout": now("vendor/dep/.git/hooks/post-checkout"), "vendor/dep/a.c": now("vendor/dep/a.c")});
    let source = desk.native(&tracked, &json!({}));
    desk.step(&source, &Goal::LastTurn);
    for path in files_below(&desk.project()) {
        assert_eq!(desk.read(&path).as_deref(), Some("before\n"), "{path}");
    }
}

#[test]
fn a_plan_over_many_files_takes_time_in_proportion() {
    let prepare = |count: usize| {
        let desk = Desk::new();
        let hash = sha256("after\n");
        let name = |number: usize| format!("folder-{}/{number}.txt", number % 100);
        let tracked: serde_json::Map<String, Value> = (0..count)
            .map(|number| {
                desk.file(&name(number), "after\n");
                (name(number), json!({"originalContent": "before\n", "contentHash": hash}))
            })
            .collect();
        let source = desk.native(&tracked.into(), &json!({}));
        (desk, source, count)
    };
    check_linear("a plan over files", 2_500, prepare, |(desk, source, count)| {
        let planned = desk.planned(source, &Goal::LastTurn);
        assert!(planned.len() == *count && planned.iter().all(|file| file.1 == Readiness::Ready));
    });
}
