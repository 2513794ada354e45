//! `cargo xtask tidy`: house rules that the compiler does not check, mostly about what must be absent.
//!
//! Each finding is one line: `file:line: what is wrong`.

use std::fs;
use std::io;
use std::path::Path;

use crate::shell::root;
use crate::source::{Source, is_word};
use crate::{Outcome, rooms};

/// What the library may not use by itself. `Host::system()` is the one exception.
const NOT_IN_LIBRARY: &[(&str, &str)] = &[
    ("print!", "the library does not print"),
    ("println!", "the library does not print"),
    ("eprint!", "the library does not print"),
    ("eprintln!", "the library does not print"),
    ("std::env", "the library does not read the environment; the caller passes it in"),
    ("env::", "the library does not read the environment; the caller passes it in"),
    ("SystemTime::now", "the library gets the time from its Host"),
    ("Instant::now", "the library gets the time from its Host"),
    ("Timestamp::now", "the library gets the time from its Host"),
    ("Zoned::now", "the library gets the time from its Host"),
    ("std::net", "the library has no network; the address types are in `core::net`"),
    ("tokio", "the library is not async"),
];
const HOST: &str = "lib/src/model/host.rs";

/// Calls that delete files. Removing a session moves it to the trash.
const DELETING: &[(&str, &str)] = &[
    ("remove_file", "only `disk/` deletes files"),
    ("remove_dir", "only `disk/` deletes files"),
    ("remove_dir_all", "only `disk/` deletes files"),
    (".remove_all", "only `trash empty` deletes sessions"),
    (".unlink", "only our own temporary files are deleted; everything else goes to the trash"),
];
/// The door to the files of a project, which only undo opens: it deletes and writes there as its plan says.
const WORKTREE: &str = "lib/src/disk/worktree.rs";
/// The index is a file of SQLite: it is made private, and moved aside if it is damaged.
const INDEX: &str = "index/src/sqlite/schema.rs";
/// The disk, what deletes its own unfinished files, what empties the trash, the door to a project, and the index.
const DELETERS: &[&str] = &[
    "lib/src/disk/mod.rs",
    "lib/src/disk/replace.rs",
    "lib/src/write/fork.rs",
    "lib/src/write/trash/empty.rs",
    WORKTREE,
    INDEX,
];

/// Calls that write to disk. `disk/` creates files that only their owner can read.
const WRITING: &[(&str, &str)] = &[
    ("File::create", "only `disk/` creates files"),
    ("File::create_new", "only `disk/` creates files"),
    ("File::options", "only `disk/` opens files for writing"),
    ("OpenOptions", "only `disk/` opens files for writing"),
    ("DirBuilder", "only `disk/` creates folders"),
    ("fs::write", "only `disk/` writes"),
    ("fs::copy", "only `disk/` writes"),
    ("fs::rename", "only `disk/` renames and links"),
    ("fs::hard_link", "only `disk/` renames and links"),
    ("create_dir", "only `disk/` creates folders"),
    ("create_dir_all", "only `disk/` creates folders"),
    ("set_permissions", "only `disk/` sets permissions"),
];
/// The disk; the demo, which is not private; the door for reading, which opens files for nothing else; the door to a project; and the index.
const WRITERS: &[&str] = &["lib/src/disk/mod.rs", "cli/src/demo.rs", READER, WORKTREE, INDEX];

/// Calls that open or read a file by its name, whatever it is: a pipe waits, a device never ends.
const READING: &[(&str, &str)] = &[
    ("File::open", "files are opened in `model/regular_file.rs`"),
    ("fs::read", "files are read in `model/regular_file.rs`"),
    ("fs::read_to_string", "files are read in `model/regular_file.rs`"),
];
/// The door for reading.
const READER: &str = "lib/src/model/regular_file.rs";
/// The door, a shell's pipe that somebody named, and the demo's own files.
const READERS: &[&str] = &[READER, "cli/src/session/located.rs", "cli/src/demo.rs"];
const SHIPPED: &[&str] = &["lib/src/", "index/src/", "web/src/", "cli/src/"];

const NOT_IN_RUST: &[(&str, &str)] = &[
    ("todo!", "unfinished code is not pushed"),
    ("unimplemented!", "unfinished code is not pushed"),
    ("#[ignore", "a test runs, or asserts the wrong behaviour with a comment"),
    ("#[should_panic", "a test asserts its result"),
];

/// Folders of one machine, in two halves, because this file is checked too.
const MACHINE_PATHS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "tmp/bash")];

/// Strings that name one registry.
const REGISTRIES: &[&str] = &[
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("sparse", "+http"),
    concat!("replace-", "with ="),
    concat!("\"resolved\": ", "\"http"),
];
const LOCKED_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

const HEADED: &[&str] = &["lib/src/", "index/src/", "web/src/", "cli/src/", "xtask/src/"];

/// Built or downloaded.
const SKIPPED: &[&str] = &[".git", "target", "fuzz/target", "fuzz/corpus", "fuzz/artifacts", "fuzz/coverage"];

pub(crate) fn run() -> Outcome {
    let findings = findings(root())?;
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n").into()) }
}

fn findings(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    walk(root, "", &mut paths)?;
    paths.sort();
    let mut findings = Vec::new();
    for path in &paths {
        let bytes = fs::read(root.join(path))?;
        let text = String::from_utf8_lossy(&bytes);
        findings.extend(check(path, &text));
        if path.starts_with("lib/src/dialect/") && text.contains("\nimpl Dialect for ") {
            findings.extend(incomplete_dialect(path, &paths));
        }
    }
    Ok(findings)
}

/// Collects the files below `folder`, as paths relative to the root with forward slashes.
fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if name == "node_modules" || SKIPPED.contains(&path.as_str()) {
            continue;
        } else if kind.is_dir() {
            walk(root, &path, paths)?;
        } else if kind.is_file() {
            paths.push(path);
        }
    }
    Ok(())
}

/// Checks one file.
fn check(path: &str, text: &str) -> Vec<String> {
    let mut findings = each_line(path, text, machine_path);
    if path.ends_with("Cargo.lock") {
        findings.extend(each_line(path, text, foreign_source));
    } else {
        findings.extend(each_line(path, text, registry));
    }
    if path.ends_with(".rs") {
        findings.extend(check_rust(path, text));
    }
    findings
}

fn check_rust(path: &str, text: &str) -> Vec<String> {
    let source = Source::of(text);
    let mut findings = Vec::new();
    if HEADED.iter().any(|folder| path.starts_with(folder)) && !text.starts_with("//!") {
        findings.push(format!("{path}:1: a file starts with a `//!` header"));
    }
    findings.extend(each_line(path, &source.code, |line| forbidden(line, NOT_IN_RUST)));
    findings.extend(each_line(path, &source.comments, unowned_todo));
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    if !is_test {
        findings.extend(rooms::check(path, &source));
    }
    if path.starts_with("lib/src/") && path != HOST && !is_test {
        findings.extend(each_line(path, &source.shipped_code(), |line| forbidden(line, NOT_IN_LIBRARY)));
    }
    let is_shipped = SHIPPED.iter().any(|folder| path.starts_with(folder)) && !is_test;
    for (table, doors) in [(DELETING, DELETERS), (WRITING, WRITERS), (READING, READERS)] {
        if is_shipped && !doors.contains(&path) {
            findings.extend(each_line(path, &source.shipped_code(), |line| forbidden(line, table)));
        }
    }
    findings
}

/// What a dialect lacks: a corpus case, a page.
fn incomplete_dialect(path: &str, paths: &[String]) -> Vec<String> {
    let module = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs");
    // `unknown` is for files that match no dialect.
    if module == "unknown" {
        return Vec::new();
    }
    let name = module.replace('_', "-");
    let (cases, page) = (format!("corpus/{name}/"), format!("docs/dialects/{name}.md"));
    let mut findings = Vec::new();
    // A case is a folder, so its files are two levels down.
    if !paths.iter().any(|path| path.strip_prefix(&cases).is_some_and(|case| case.contains('/'))) {
        findings.push(format!("{path}:1: the dialect has no case in {cases}"));
    }
    if !paths.contains(&page) {
        findings.push(format!("{path}:1: the dialect has no page {page}"));
    }
    findings
}

fn each_line(path: &str, text: &str, rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(format!("{path}:{}: {}", index + 1, rule(line)?))).collect()
}

fn forbidden(line: &str, table: &[(&str, &str)]) -> Option<String> {
    let (word, why) = table.iter().find(|(word, _)| words(line, word).next().is_some())?;
    Some(format!("`{word}`: {why}"))
}

fn unowned_todo(comment: &str) -> Option<String> {
    let owned = |rest: &str| {
        let (owner, reason) = rest.strip_prefix('(')?.split_once("): ")?;
        (!owner.trim().is_empty() && !reason.trim().is_empty()).then_some(())
    };
    let mut rests = words(comment, "TODO");
    rests
        .any(|rest| owned(rest).is_none())
        .then(|| "a to-do needs an owner and a reason: `TODO(owner): reason`".to_owned())
}

fn machine_path(line: &str) -> Option<String> {
    // After `~`, `$HOME` or `..` it is not one machine's.
    let starts_here = |before: &str| !before.ends_with(|c: char| is_word(c) || "-.~})$".contains(c));
    let found = |path: &str| line.match_indices(path).any(|(at, _)| starts_here(&line[..at]));
    MACHINE_PATHS
        .iter()
        .find(|path| found(path))
        .map(|path| format!("`{path}` is a path of one machine"))
}

fn registry(line: &str) -> Option<String> {
    let sign = REGISTRIES.iter().find(|sign| line.contains(**sign))?;
    Some(format!("`{sign}`: which registry is used is the machine's choice (npm: `omit-lockfile-registry-resolved`)"))
}

fn foreign_source(line: &str) -> Option<String> {
    (line.starts_with("source = ") && line != LOCKED_SOURCE).then(|| "a package that is not from crates.io".to_owned())
}

/// Finds `word` as a whole word, and yields the rest of the line after each.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, _)| {
        let (before, rest) = (&line[..at], &line[at + word.len()..]);
        let starts = !(word.starts_with(is_word) && before.ends_with(is_word));
        let ends = !(word.ends_with(is_word) && rest.starts_with(is_word));
        (starts && ends).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let findings = findings(root()).unwrap();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }

    #[test]
    fn the_library_does_not_print_or_read_the_environment() {
        for line in ["println!(\"x\")", "use std::env;", "env::var(x)", "jiff::Zoned::now()", "std::net::TcpStream"] {
            assert_eq!(found("lib/src/a.rs", &headed(line)), [2], "{line}");
            assert_eq!(found("lib/src/model/host.rs", &headed(line)), [0; 0], "{line}");
            assert_eq!(found("cli/src/a.rs", &headed(line)), [0; 0], "{line}");
        }
    }

    #[test]
    fn the_library_may_mention_printing_and_print_in_tests() {
        for line in [
            "/// println!(\"an example\")",
            "let text = \"println!\";",
            "my_println!()",
            "let env = my_env::of(x);",
            "env!(\"CARGO_PKG_VERSION\")",
            "#[cfg(test)] mod tests { fn a() { println!() } }",
        ] {
            assert_eq!(found("lib/src/a.rs", &headed(line)), [0; 0], "{line}");
        }
    }

    #[test]
    fn only_the_disk_deletes() {
        for line in
            ["fs::remove_file(path)", "use std::fs::remove_dir_all;", "std::fs::remove_dir(x)", "disk.unlink(x)"]
        {
            for path in ["lib/src/write/store.rs", "cli/src/commands/remove.rs", "web/src/a.rs"] {
                assert_eq!(found(path, &headed(line)), [2], "{path}: {line}");
            }
            for path in [
                "lib/src/disk/mod.rs",
                "lib/src/disk/replace.rs",
                "lib/src/disk/worktree.rs",
                "lib/src/disk/append/tests.rs",
                "cli/tests/a.rs",
                "xtask/src/a.rs",
            ] {
                assert_eq!(found(path, &headed(line)), [0; 0], "{path}: {line}");
            }
        }
        assert_eq!(found("lib/src/a.rs", &headed("#[cfg(test)] mod tests { fn a() { fs::remove_file(x) } }")), [0; 0]);
    }

    #[test]
    fn only_the_disk_writes() {
        for line in [
            "let mut copy = std::fs::File::create(file)?;",
            "File::create_new(x)",
            "use std::fs::{File, OpenOptions};",
            "fs::write(path, text)",
            "std::fs::copy(a, b)",
            "fs::rename(a, b)",
            "std::fs::create_dir_all(x)",
        ] {
            for path in ["lib/src/transfer/convert.rs", "cli/src/commands/convert.rs"] {
                assert_eq!(found(path, &headed(line)), [2], "{path}: {line}");
            }
            for path in [
                "lib/src/disk/mod.rs",
                "lib/src/disk/worktree.rs",
                "lib/src/disk/append/tests.rs",
                "cli/tests/a.rs",
                "xtask/src/a.rs",
            ] {
                assert_eq!(found(path, &headed(line)), [0; 0], "{path}: {line}");
            }
            // Undo reaches a project through that one door, and no other file of the room has its rights.
            assert_eq!(found("lib/src/write/undo/apply.rs", &headed(line)), [2], "{line}");
        }
        for line in ["fs::read(x)", "std::fs::read_to_string(x)", "File::open(x)"] {
            assert_eq!(found("lib/src/a.rs", &headed(line)), [2], "{line}");
            assert_eq!(found("lib/src/model/regular_file.rs", &headed(line)), [0; 0], "{line}");
        }
        for line in ["fs::read_dir(x)", "disk.rename(a, b)", "created(x)"] {
            assert_eq!(found("lib/src/a.rs", &headed(line)), [0; 0], "{line}");
        }
    }

    #[test]
    fn the_line_is_the_one_in_the_file() {
        let text = "//! A.\nlet a = \"\n\n\";\n/*\n*/ todo!()\n";
        assert_eq!(check("cli/src/a.rs", text), ["cli/src/a.rs:6: `todo!`: unfinished code is not pushed"]);
    }

    #[test]
    fn a_source_file_has_a_header() {
        assert_eq!(found("lib/src/a.rs", "fn a() {}"), [1]);
        assert_eq!(found("lib/tests/a.rs", "fn a() {}"), [0; 0]);
    }

    #[test]
    fn unfinished_code_and_silenced_tests_are_found() {
        for line in ["unimplemented!()", "#[ignore]", "#[ignore = \"slow\"]", "#[should_panic(expected = \"x\")]"] {
            assert_eq!(found("lib/tests/a.rs", line), [1], "{line}");
        }
        assert_eq!(found("lib/tests/a.rs", "// #[ignore] is not for us"), [0; 0]);
    }

    #[test]
    fn a_to_do_has_an_owner_and_a_reason() {
        for comment in ["// TODO", "// TODO: later", "// TODO(): later", "// TODO(ada): ", "/* TODO later */"] {
            assert_eq!(found("lib/tests/a.rs", comment), [1], "{comment}");
        }
        for line in
            ["// TODO(ada): until jiff 0.3", "// the TODOs of a session", "let x = \"TODO\";", "const TODO: u8 = 1;"]
        {
            assert_eq!(found("lib/tests/a.rs", line), [0; 0], "{line}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            assert_eq!(found("README.md", &format!("a\nsee `{path}x`")), [2], "{path}");
            assert_eq!(found("corpus/native/a/s.jsonl", &format!("{{\"cwd\":\"{path}x\"}}")), [1], "{path}");
            for line in
                [format!("~{path}"), format!("/home/ada{path}"), format!("..{path}"), format!("${{HOME}}{path}")]
            {
                assert_eq!(found("README.md", &line), [0; 0], "{line}");
            }
        }
    }

    #[test]
    fn registries_are_found() {
        for sign in REGISTRIES {
            assert_eq!(found("web/package-lock.json", &format!("  {sign}")), [1], "{sign}");
        }
        assert_eq!(found("Cargo.lock", LOCKED_SOURCE), [0; 0]);
        assert_eq!(found("Cargo.lock", "source = \"registry+https://mirror.example/index\""), [1]);
        assert_eq!(found("README.md", "https://crates.io/crates/jiff"), [0; 0]);
    }

    #[test]
    fn a_dialect_has_cases_and_a_page() {
        let incomplete = |path: &str, paths: &[&str]| {
            incomplete_dialect(path, &paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            incomplete("lib/src/dialect/claude_code.rs", &["corpus/claude-code/README.md"]),
            [
                "lib/src/dialect/claude_code.rs:1: the dialect has no case in corpus/claude-code/",
                "lib/src/dialect/claude_code.rs:1: the dialect has no page docs/dialects/claude-code.md",
            ]
        );
        assert_eq!(incomplete("lib/src/dialect/pi.rs", &["corpus/pi/a-case/s.jsonl", "docs/dialects/pi.md"]), [""; 0]);
    }

    fn headed(line: &str) -> String {
        format!("//! A file.\n{line}\n")
    }

    /// The lines with a finding.
    fn found(path: &str, text: &str) -> Vec<usize> {
        let line = |finding: String| finding.split(':').nth(1).unwrap().parse().unwrap();
        check(path, text).into_iter().map(line).collect()
    }
}
