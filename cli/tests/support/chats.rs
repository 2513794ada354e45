//! Runs of the program for chats of Fluux Agent, in a store below the working directory.

use std::fs;
use std::io::Write;

use serde_json::Value;

use super::{Ran, TestEnv};

const FLUUX: [&str; 4] = ["--dialect", "fluux", "--store", "memory"];

/// Runs at another time than everybody else.
pub(crate) fn at(env: &TestEnv, now: &str, args: &[&str], input: &str) -> Ran {
    let mut child = env.command(&[args, &FLUUX].concat()).env("SCROLLBACK_NOW", now).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) fn fluux(env: &TestEnv, args: &[&str], input: &str) -> Ran {
    at(env, "2026-11-15T12:00:00Z", args, input)
}

pub(crate) fn lines(env: &TestEnv, path: &str) -> Vec<Value> {
    let text = fs::read_to_string(env.work().join("memory").join(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
