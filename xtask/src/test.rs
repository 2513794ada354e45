//! `cargo xtask test`: every check that must pass before a push, cheap checks first. Stops at the first failure.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::shell::{self, command, duration, shown};
use crate::{Outcome, tidy};

/// A program that the tests start.
struct Need {
    program: &'static str,
    /// The lowest major version that works.
    major: u32,
    why: &'static str,
    /// The Debian packages that contain it.
    packages: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "node", major: 20, why: "the AI SDK validates the messages that we print", packages: "nodejs" },
    Need { program: "npm", major: 7, why: "it installs the AI SDK", packages: "npm" },
    #[cfg(target_os = "linux")]
    Need { program: "chromium", major: 120, why: "it opens every page", packages: "chromium" },
    #[cfg(target_os = "linux")]
    Need { program: "strace", major: 5, why: "it shows that an undo writes nowhere else", packages: "strace" },
];

pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    step("needs", "programs that the tests need", || NEEDS.iter().try_for_each(provide))?;
    step("tidy", "house rules", tidy::run)?;
    step_of("format", command("cargo fmt --all --check"))?;
    step_of("lints", command("cargo clippy --workspace --all-targets --locked -- -D warnings"))?;
    // The binary and the library are both called scrollback and would write the same pages.
    step_of("docs of the binary", docs("cargo doc --package scrollback --no-deps --locked"))?;
    step_of("docs", docs("cargo doc --workspace --exclude scrollback --no-deps --locked"))?;
    step_of("tests", command("cargo test --workspace --locked"))?;
    println!("xtask: all passed in {}", duration(start.elapsed()));
    Ok(())
}

fn docs(line: &str) -> Command {
    let mut command = command(line);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn step_of(name: &str, mut command: Command) -> Outcome {
    let line = shown(&command);
    step(name, &line, || shell::run(&mut command))
}

fn step(name: &str, what: &str, work: impl FnOnce() -> Outcome) -> Outcome {
    println!("xtask: {name}: {what}");
    let start = Instant::now();
    work().map_err(|error| format!("xtask: {name}: {error}"))?;
    println!("xtask: {name}: passed in {}", duration(start.elapsed()));
    Ok(())
}

/// Makes sure that a program is installed, and installs it if possible.
fn provide(need: &Need) -> Outcome {
    if missing(need).is_some() && may_install() {
        shell::run(&mut command("apt-get update --quiet"))?;
        shell::run(command("apt-get install --yes --quiet").args(need.packages.split_whitespace()))?;
    }
    match missing(need) {
        None => Ok(()),
        Some(found) => {
            let Need { program, major, why, .. } = need;
            Err(format!(
                "needs {program} {major} or newer ({why}), but {found}\nhint: install it, then run the command again"
            )
            .into())
        }
    }
}

/// Describes what is wrong with a needed program, if anything.
fn missing(need: &Need) -> Option<String> {
    let Ok(output) = command(need.program).arg("--version").stderr(Stdio::null()).output() else {
        return Some("it is not installed".to_owned());
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match major(&version) {
        Some(major) if major >= need.major => None,
        _ => Some(format!("`{} --version` prints {version:?}", need.program)),
    }
}

/// Reads the first number of a version line: `v20.20.2`, `psql (PostgreSQL) 17.4`.
fn major(version: &str) -> Option<u32> {
    version.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}

fn may_install() -> bool {
    let has_apt = command("apt-get --version").output().is_ok();
    let is_root = command("id -u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    has_apt && is_root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("psql (PostgreSQL) 17.4 (Debian 17.4-1)"), Some(17));
        assert_eq!(major("unknown"), None);
    }

    #[test]
    fn a_program_that_is_missing_or_too_old_is_reported() {
        let need = |program, major| Need { program, major, why: "", packages: "" };
        assert_eq!(missing(&need("cargo", 1)), None);
        assert_eq!(missing(&need("no-such-program", 1)).as_deref(), Some("it is not installed"));
        assert!(missing(&need("cargo", 999)).unwrap().starts_with("`cargo --version` prints \"cargo 1."));
    }

    #[test]
    fn a_failing_step_is_named() {
        let error = step("lints", "a check", || Err("`cargo clippy` failed".into())).unwrap_err();
        assert_eq!(error.to_string(), "xtask: lints: `cargo clippy` failed");
    }
}
