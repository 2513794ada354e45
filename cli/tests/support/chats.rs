//! Runs of the program for chats of Fluux Agent, in a store below the working directory.

use std::fs;

use serde_json::Value;

use super::{Ran, TestEnv};

const FLUUX: [&str; 4] = ["--dialect", "fluux", "--store", "memory"];

/// Runs at another time than everybody else.
pub(crate) fn at(env: &TestEnv, now: &str, args: &[&str], input: &str) -> Ran {
    let mut command = env.command(&[args, &FLUUX].concat());
    command.env("SCROLLBACK_NOW", now);
    env.ran(command, input.as_bytes())
}

pub(crate) fn fluux(env: &TestEnv, args: &[&str], input: &str) -> Ran {
    at(env, "2026-11-15T12:00:00Z", args, input)
}

pub(crate) fn lines(env: &TestEnv, path: &str) -> Vec<Value> {
    let text = fs::read_to_string(env.work().join("memory").join(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
