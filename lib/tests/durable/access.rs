//! P20: files 0600 and folders 0700 whatever the umask; a name that leads out of the store makes nothing.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use scrollback::model::Error;
use scrollback::write::{NewSession, Policy};

use crate::{PROJECT, after, process, store};

/// Everything below a folder, itself included.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_path_buf()];
    if folder.symlink_metadata().unwrap().is_dir() {
        found.extend(std::fs::read_dir(folder).unwrap().flat_map(|entry| below(&entry.unwrap().path())));
    }
    found
}

#[test]
fn nobody_else_can_read_what_was_recorded_whatever_the_umask() {
    for umask in ["000", "002", "022", "077", "777"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("share/scrollback");
        let output = after(&format!("umask {umask}"), &root, &process("newcomer", &root, 0)).output().unwrap();
        assert!(output.status.success(), "{umask}: {}", String::from_utf8_lossy(&output.stdout));
        let found = below(&folder.path().join("share"));
        assert!(found.iter().filter(|path| path.is_file()).count() >= 2, "{found:?}");
        for path in found {
            let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "umask {umask}: {}", path.display());
        }
    }
}

#[test]
fn an_id_that_is_no_plain_name_makes_nothing() {
    let long = "x".repeat(300);
    let ids = [
        "",
        ".",
        "..",
        "../x",
        "../../x",
        "a/b",
        "/etc/x",
        "a/../../x",
        "./x",
        "x/",
        "x/.",
        "..\\x",
        "C:\\x",
        "C:x",
        "a\0b",
        "a\nb",
        "a b",
        "~",
        "~/x",
        "$HOME",
        ".hidden",
        "x.",
        "*",
        "%2e%2e",
        "\u{202e}x",
        "é",
        "x\u{7f}",
        "|x",
        &long,
    ];
    for id in ids {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/b");
        std::fs::create_dir_all(&root).unwrap();
        let before = below(folder.path());
        let store = store(&root);
        let begun = store.session(NewSession { id: Some(id), project: Path::new(PROJECT), with: None }, Policy::New);
        assert!(matches!(begun, Err(Error::InvalidName { .. })), "{id:?}");
        let resumed = store.resume(id);
        assert!(matches!(resumed, Err(Error::NoSession(_))), "{id:?}");
        assert!(!store.exists(id), "{id:?}");
        assert_eq!(below(folder.path()), before, "{id:?}");
    }
}

#[test]
fn a_project_that_is_no_absolute_path_makes_nothing() {
    for project in ["", ".", "tides", "../tides", "/a\0b"] {
        let folder = tempfile::tempdir().unwrap();
        let before = below(folder.path());
        assert!(
            matches!(store(folder.path()).create(Path::new(project)), Err(Error::InvalidName { .. })),
            "{project:?}"
        );
        assert_eq!(below(folder.path()), before, "{project:?}");
    }
}

#[test]
fn a_link_does_not_lead_out_of_the_store() {
    for (link, is_folder) in [("sessions", true), ("sessions/s", true), ("sessions/s/messages.jsonl", false)] {
        let folder = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (folder.path().join("store"), folder.path().join("elsewhere"));
        let link = root.join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        if is_folder {
            std::fs::create_dir(&elsewhere).unwrap();
        } else {
            std::fs::write(&elsewhere, "{\"type\":\"user\",\"uuid\":\"a\",\"sessionId\":\"s\"}\n").unwrap();
        }
        symlink(&elsewhere, &link).unwrap();
        let before = (below(folder.path()), std::fs::read(&elsewhere).ok());
        let store = store(&root);
        let begun = store.session(NewSession { id: Some("s"), project: Path::new(PROJECT), with: None }, Policy::New);
        assert!(begun.is_err(), "{}", link.display());
        assert!(store.resume("s").is_err(), "{}", link.display());
        assert_eq!((below(folder.path()), std::fs::read(&elsewhere).ok()), before, "{}", link.display());
    }
}
