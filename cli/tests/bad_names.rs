//! Names that cannot be a session's or a record's, and homes and stores that cannot be used: one clear line and a hint for each,
//! the documented exit code, and nothing is written.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Ran, TestEnv, talk};

const LINE: &[u8] = b"{\"user\": \"When?\"}\n";

/// Every option and argument that takes an id; `?` stands for it.
const ID_TAKING: [&[&str]; 19] = [
    &["show", "?"],
    &["tree", "?"],
    &["history", "?", "--for", "openai"],
    &["extract-tools", "?"],
    &["convert", "?", "--to", "codex"],
    &["rename", "?", "Title"],
    &["remove", "?"],
    &["fork", "?"],
    &["rewind", "?"],
    &["new", "?"],
    &["trash", "restore", "?"],
    &["record", "--resume", "?"],
    &["record", "--checkpoint", "?"],
    &["record", "--id", "?"],
    &["fork", "s1", "--id", "?"],
    &["show", "s1", "--head", "?"],
    &["show", "s1", "--before", "?"],
    &["extract-tools", "s1", "--head", "?"],
    &["convert", "s1", "--to", "codex", "--head", "?"],
];

/// Every file and folder of a place, with the lengths of the files.
fn everything(folder: &Path) -> Vec<(PathBuf, u64)> {
    let (mut folders, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".cache") {
                // The index is a cache: reading keeps it.
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, if metadata.is_file() { metadata.len() } else { 0 }));
        }
    }
    found.sort();
    found
}

/// Fails unless a run ended in one line and a hint.
fn is_refused(ran: &Ran, what: &str) {
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(matches!(ran.code, 1 | 2), "{what}: {}", ran.all());
    assert_eq!(lines.len(), 2, "{what}: {}", ran.all());
    assert!(lines[0].starts_with("scrollback: ") && lines[1].starts_with("hint: "), "{what}: {}", ran.all());
    assert!(!ran.err.chars().any(|letter| letter.is_control() && letter != '\n'), "{what}: {:?}", ran.err);
}

#[test]
fn a_name_that_cannot_be_is_refused_in_a_line() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    fs::create_dir(env.work().join("folder")).unwrap();
    let before = (everything(&env.home()), everything(&env.work()));
    let long = "a".repeat(300);
    for name in ["..", ".", "/", "a/b", "../x", "\u{1b}[31mx", &long, "x.", "", "-x", "x\ny", "s1#..", "#", "\u{202e}x"]
    {
        for command in ID_TAKING {
            let args: Vec<&str> = command.iter().map(|word| if *word == "?" { name } else { word }).collect();
            is_refused(&env.run_with(&args, LINE), &format!("{args:?}"));
        }
    }
    for command in ID_TAKING.iter().filter(|command| !command.contains(&"--id")) {
        let args: Vec<&str> = command.iter().map(|word| if *word == "?" { "folder" } else { word }).collect();
        is_refused(&env.run_with(&args, LINE), &format!("{args:?}"));
    }
    assert_eq!((everything(&env.home()), everything(&env.work())), before);
}

#[test]
fn a_home_or_a_store_that_cannot_be_used_is_said() {
    let env = TestEnv::new();
    fs::write(env.work().join("file"), "x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/nowhere/at/all", env.work().join("dangling")).unwrap();
    let before = everything(&env.work());
    let (file, dangling) = (env.work().join("file"), env.work().join("dangling"));
    for home in [None, Some(PathBuf::new()), Some("relative".into()), Some(file), Some(dangling)] {
        for args in [
            &["list"][..],
            &["show", "@"],
            &["doctor"],
            &["record"],
            &["record", "--id", "a"],
            &["record", "--resume", "x"],
            &["record", "--dialect", "claude-code"],
            &["record", "--dialect", "codex"],
            &["record", "--dialect", "qwen-code"],
            &["record", "--dialect", "sage-el"],
            &["record", "--dialect", "ai-sdk"],
            &["fork", "x"],
            &["rename", "x", "Title"],
            &["remove", "x"],
            &["convert", "x", "--to", "native"],
        ] {
            let mut command = env.command(args);
            match &home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            is_refused(&env.ran(command, LINE), &format!("HOME={home:?} {args:?}"));
        }
    }
    for store in ["file", "file/x", "dangling"] {
        is_refused(&env.run_with(&["record", "--store", store], LINE), store);
    }
    assert_eq!(everything(&env.work()), before);
}

#[cfg(unix)]
#[test]
fn a_store_that_can_only_be_read_is_said_once() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    env.session("s1", &talk());
    for folder in [".claude", ".codex", ".qwen"] {
        fs::create_dir_all(env.home().join(folder)).unwrap();
    }
    let before = everything(&env.home());
    fs::set_permissions(env.home(), fs::Permissions::from_mode(0o555)).unwrap();
    for args in [
        &["record"][..],
        &["record", "--dialect", "claude-code"],
        &["record", "--dialect", "codex"],
        &["record", "--dialect", "qwen-code"],
        &["record", "--resume", "s1"],
        &["rename", "s1", "Title"],
        &["fork", "s1"],
        &["remove", "s1"],
        &["convert", "s1", "--to", "codex"],
    ] {
        // Nothing is piped in, so that a recorder creates nothing either.
        let ran = env.run_as_anybody(args);
        let is_idle = args[0] == "record" && ran.code == 0 && ran.err.is_empty();
        if !is_idle {
            is_refused(&ran, &format!("{args:?}"));
        }
    }
    assert_eq!(everything(&env.home()), before);
}
