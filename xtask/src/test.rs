//! `cargo xtask test`: everything that must hold before a push, cheap checks first. Stops at the first failure.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::shell::{self, command, shown, spoken};
use crate::{Outcome, tidy};

/// A program that some test starts.
struct Need {
    program: &'static str,
    /// The lowest major version that will do.
    major: u32,
    why: &'static str,
    /// The Debian packages that bring it.
    packages: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "node", major: 20, why: "the AI SDK judges the messages we print", packages: "nodejs" },
    Need { program: "npm", major: 7, why: "it installs the AI SDK", packages: "npm" },
];

pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    step("needs", "programs that the tests start", || NEEDS.iter().try_for_each(provide))?;
    step("tidy", "house rules", tidy::run)?;
    step_of("format", command("cargo fmt --all --check"))?;
    step_of("lints", command("cargo clippy --workspace --all-targets --locked -- -D warnings"))?;
    // The binary and the library are both called scrollback and would write the same pages at the same time.
    step_of("docs of the binary", docs("cargo doc --package scrollback --no-deps --locked"))?;
    step_of("docs", docs("cargo doc --workspace --exclude scrollback --no-deps --locked"))?;
    step_of("tests", command("cargo test --workspace --locked"))?;
    println!("xtask: all passed in {}", spoken(start.elapsed()));
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
    println!("xtask: {name}: passed in {}", spoken(start.elapsed()));
    Ok(())
}

/// Makes sure that a program is there: found, or installed where we may install.
fn provide(need: &Need) -> Outcome {
    if missing(need).is_some() && may_install() {
        shell::run(&mut command("apt-get update --quiet"))?;
        shell::run(command("apt-get install --yes --quiet").args(need.packages.split_whitespace()))?;
    }
    match missing(need) {
        None => Ok(()),
        Some(found) => {
            let Need { program, major, why, .. } = need;
            Err(format!("{program} {major} or newer is needed ({why}), but {found}: please install it").into())
        }
    }
}

/// Says what stands in the place of a program that is needed, or nothing if all is well.
fn missing(need: &Need) -> Option<String> {
    let Ok(output) = command(need.program).arg("--version").stderr(Stdio::null()).output() else {
        return Some("there is none".to_owned());
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match major(&version) {
        Some(major) if major >= need.major => None,
        _ => Some(format!("`{} --version` says {version:?}", need.program)),
    }
}

/// Reads the first number of a version line: `v20.20.2`, `psql (PostgreSQL) 17.4`.
fn major(version: &str) -> Option<u32> {
    version.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}

fn may_install() -> bool {
    let apt_is_here = command("apt-get --version").output().is_ok();
    let we_are_root = command("id -u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    apt_is_here && we_are_root
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
    fn a_program_that_is_not_there_or_too_old_is_missing() {
        let need = |program, major| Need { program, major, why: "", packages: "" };
        assert_eq!(missing(&need("cargo", 1)), None);
        assert_eq!(missing(&need("no-such-program", 1)).as_deref(), Some("there is none"));
        assert!(missing(&need("cargo", 999)).unwrap().starts_with("`cargo --version` says \"cargo 1."));
    }

    #[test]
    fn a_failing_step_is_named() {
        let error = step("lints", "a check", || Err("`cargo clippy` failed".into())).unwrap_err();
        assert_eq!(error.to_string(), "xtask: lints: `cargo clippy` failed");
    }
}
