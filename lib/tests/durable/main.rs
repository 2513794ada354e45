//! The recorder in the real world: processes that are killed, disks that are full, sixteen writers, any umask.
//!
//! The processes are this test program again, told by the environment what to be: see `child.rs`.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it stands; a process tells")]

mod access;
mod child;
mod full_disk;
mod kill;
#[path = "../support/mod.rs"]
mod support;
mod writers;

use std::path::Path;
use std::process::Command;

use scrollback::model::Host;
use scrollback::write::{Durability, Options, Store};

const PROJECT: &str = "/gone/tides";

fn store(folder: &Path) -> Store {
    let host = Host { cwd: PROJECT.into(), ..Host::system("test 1").unwrap() };
    Store::open(support::native(), folder, host).unwrap()
}

/// The same, and nothing is synced.
fn flushing_store(folder: &Path) -> Store {
    store(folder).with_options(Options { durability: Some(Durability::Flush), ..Options::unredacted() })
}

/// This program again, as something else.
fn process(role: &str, store: &Path, number: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::is_another_process", "--nocapture", "--test-threads=1"]);
    command.envs([(child::ROLE, role), (child::NUMBER, &number.to_string())]).env(child::STORE, store);
    command
}

/// The same command, started by a shell that does something first; `$1` is the folder.
fn after(script: &str, folder: &Path, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{script}; shift; exec \"$@\""), "sh"])
        .arg(folder)
        .arg(command.get_program());
    shell.args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// What a process said on lines that begin so.
fn said<'a>(output: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    output.lines().filter_map(move |line| line.strip_prefix(begin))
}
