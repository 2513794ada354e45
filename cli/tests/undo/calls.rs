//! What an undo asks of the system, as strace sees it: no other program is started, and nothing is written outside the project
//! and our own folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Desk;

/// Calls with a path that change nothing. What is not listed counts as a write.
const READS: &[&str] = &[
    "access",
    "chdir",
    "execve",
    "faccessat",
    "faccessat2",
    "getcwd",
    "getxattr",
    "lgetxattr",
    "lstat",
    "newfstatat",
    "readlink",
    "readlinkat",
    "stat",
    "statfs",
    "statx",
];

/// Flags of an open that may change something.
const WRITING: &[&str] = &["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];

/// What a traced program did.
#[derive(Debug, Default, PartialEq)]
struct Trace {
    started: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Trace {
    /// Reads what `strace -f -y -e trace=%file` wrote. A relative path without a folder is one in `cwd`.
    fn read(text: &str, cwd: &Path) -> Trace {
        let mut trace = Trace::default();
        for line in text.lines() {
            let call = line.split_once(' ').unwrap_or_default().1.trim_start();
            let Some((name, arguments)) = call.split_once('(').filter(|(name, _)| !name.starts_with(['<', '+', '-']))
            else {
                continue;
            };
            let is_open = matches!(name, "open" | "openat" | "openat2");
            let is_write =
                if is_open { WRITING.iter().any(|flag| arguments.contains(flag)) } else { !READS.contains(&name) };
            match name {
                "execve" => trace.started.extend(places(arguments, cwd).into_iter().take(1)),
                _ if is_write => trace.written.extend(places(arguments, cwd)),
                _ => {}
            }
        }
        trace
    }
}

/// The paths among the arguments of a call, each below the folder that stands before it: `3</tmp/a>, "b"`.
fn places(arguments: &str, cwd: &Path) -> Vec<PathBuf> {
    let pieces: Vec<&str> = arguments.split('"').collect();
    let place = |pair: &[&str]| {
        let folder = pair[0].strip_suffix(">, ").and_then(|before| before.rsplit_once('<'));
        Path::new(folder.map_or(cwd.to_str().unwrap(), |(_, folder)| folder)).join(pair[1])
    };
    pieces.chunks_exact(2).map(place).collect()
}

/// Where strace is missing or may trace nothing, there is nothing to see. `cargo xtask test` installs it.
fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|traced| traced.status.success())
}

#[test]
fn an_undo_starts_no_git_and_writes_only_into_the_project_and_our_folders() {
    if !can_trace() {
        return;
    }
    let desk = Desk::new();
    let [project, home] = [desk.env.work(), desk.env.home()].map(|folder| folder.canonicalize().unwrap());
    let ours = [home.join(".sage"), home.join(".local/share/scrollback")];
    fs::create_dir(project.join(".git")).unwrap();
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_scrollback"));
    for command in ["undo", "undo", "redo"] {
        let calls = home.join("calls.txt");
        let arguments = ["-f", "-y", "-s", "4096", "-e", "trace=%file", "-o", calls.to_str().unwrap()];
        let mut traced = desk.env.with(Command::new("strace"), &arguments);
        traced.arg(program).args([command, "s1", "--yes"]).env("PATH", std::env::var_os("PATH").unwrap());
        let ran = desk.env.ran(traced, b"");
        assert_eq!(ran.code, 0, "{command}: {}", ran.all());
        let trace = Trace::read(&fs::read_to_string(calls).unwrap(), &project);
        assert_eq!(trace.started, [program], "{command}");
        let is_in = |folder: &Path| trace.written.iter().any(|path| path.starts_with(folder));
        assert!(is_in(&project) && is_in(&ours[0]), "{command}: {:?}", trace.written);
        assert!(!is_in(&project.join(".git")), "{command}: {:?}", trace.written);
        // The folders above ours are made if they are missing.
        let is_ours = |path: &Path| ours.iter().any(|folder| path.starts_with(folder) || folder.starts_with(path));
        let is_outside = |path: &&PathBuf| !path.starts_with(&project) && !is_ours(path);
        assert_eq!(trace.written.iter().filter(is_outside).collect::<Vec<_>>(), [] as [&PathBuf; 0], "{command}");
    }
    assert_eq!(desk.file("tides.txt").as_deref(), Some("04:12\n"));
    assert_eq!(desk.file("notes/new.txt"), None);
}

/// Killed when the first file is swapped, and typed again: the turn before stays as it is.
#[test]
fn an_undo_that_was_killed_and_is_repeated_is_finished_and_no_more() {
    if !can_trace() {
        return;
    }
    for repeated in [&["undo", "s1"][..], &["undo", "s1", "--yes"], &["undo", "s1", "--yes", "--json"]] {
        let desk = Desk::new();
        let arguments = ["-f", "-o", "/dev/null", "-e", "trace=unlinkat", "-e", "inject=unlinkat:signal=KILL:when=1"];
        let mut killed = desk.env.with(Command::new("strace"), &arguments);
        let program = Path::new(env!("CARGO_BIN_EXE_scrollback"));
        killed.arg(program).args(["undo", "s1", "--yes"]).env("PATH", std::env::var_os("PATH").unwrap());
        let killed = desk.env.ran(killed, b"");
        assert_ne!(killed.code, 0, "{}", killed.all());
        let ran = desk.env.run(repeated);
        assert_eq!(ran.code, 0, "{}", ran.all());
        let said = "An undo that was interrupted is finished: restored 1 file, and nothing else was changed.";
        assert!(ran.err.contains(said) || repeated.contains(&"--json"), "{}", ran.all());
        assert_eq!((desk.file("notes/new.txt"), desk.file("tides.txt").as_deref()), (None, Some("04:12\n")));
        if repeated.contains(&"--json") {
            let answer = ran.json();
            assert_eq!((&answer["applied"], &answer["target"]), (&true.into(), &"u2".into()), "{answer}");
            assert_eq!(answer["files"][0]["action"], "delete", "{answer}");
        }
    }
}

#[test]
fn what_strace_prints_is_understood() {
    let text = r#"7  execve("/usr/bin/git", ["git", "status"], 0x1 /* 2 vars */) = 0
8  openat(AT_FDCWD</w>, "a", O_RDONLY|O_CLOEXEC) = 3</w/a>
8  openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT, 0666 <unfinished ...>
9  openat2(5</etc>, "c", {flags=O_RDWR, resolve=RESOLVE_BENEATH}, 24) = 6</etc/c>
8  <... openat resumed>) = 3</w/b>
8  renameat2(5</w>, "d", 6</x>, "e", 0) = 0
8  unlink("f") = -1 ENOENT (No such file or directory)
8  mkdir("/g", 0777) = 0
8  newfstatat(5</w>, "h", 0x1, 0) = 0
9  +++ exited with 0 +++"#;
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let expected =
        Trace { started: paths(&["/usr/bin/git"]), written: paths(&["/w/b", "/etc/c", "/w/d", "/x/e", "/w/f", "/g"]) };
    assert_eq!(Trace::read(text, Path::new("/w")), expected);
}
