//! A session of any dialect as a file of any other, and back.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod calls;
mod effort;
mod further;
mod heads;
mod losses;
mod matrix;
mod model_view;
mod names;
mod places;
mod sidecar;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod titles;
mod valid;

use std::path::Path;

use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, Host, Message, Result};
use scrollback::session::{Session, Source};
use scrollback::transfer::convert::{Conversion, Converted, Target};
use serde_json::Value;

const ALL: [&str; 7] = ["native", "claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];

fn host() -> Host {
    let now = std::sync::Arc::new(support::now);
    Host { cwd: "/gone/tides".into(), now, ..Host::system("test 1").unwrap() }
}

fn named(name: &str) -> &'static dyn Dialect {
    dialect::named(name).unwrap()
}

fn open(dialect: &'static dyn Dialect, path: &Path) -> Session {
    Session::open(&Source::file(dialect, path), &support::reading()).unwrap()
}

/// Reads a session from lines.
fn session(dialect: &str, folder: &Path, lines: &[&str]) -> Session {
    let file = folder.join("source.jsonl");
    std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    open(named(dialect), &file)
}

fn convert(session: &Session, to: &'static dyn Dialect, file: &Path) -> Result<Converted> {
    convert_head(session, to, file, None)
}

fn convert_head(session: &Session, to: &'static dyn Dialect, file: &Path, head: Option<&str>) -> Result<Converted> {
    let how = Conversion { to, target: Target::File(file), head, with: None };
    match session.convert(&how, &host()) {
        // A new Fluux session needs a person; a copy has one.
        Err(Error::CannotCreate { .. }) => {
            session.convert(&Conversion { with: Some("ada@example.org"), ..how }, &host())
        }
        converted => converted,
    }
}

/// The messages of a session, without ids of records.
fn seen(session: &Session) -> Vec<Value> {
    let plain = |message: &Message| {
        let mut plain = serde_json::to_value(message).unwrap();
        plain["id"] = Value::Null;
        for key in ["records", "continues"] {
            plain["metadata"].as_object_mut().unwrap().shift_remove(key);
        }
        plain
    };
    if session.head().is_none() {
        return Vec::new();
    }
    support::messages(session).iter().map(plain).collect()
}

/// The texts and calls of a session, one line each: `user: text`, `assistant: text`, `call name: state`.
fn outline(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    for message in seen(session) {
        for part in message["parts"].as_array().unwrap() {
            match part["type"].as_str().unwrap() {
                "text" => {
                    lines.push(format!("{}: {}", message["role"].as_str().unwrap(), part["text"].as_str().unwrap()))
                }
                "dynamic-tool" => {
                    let (name, state) = (part["toolName"].as_str().unwrap(), part["state"].as_str().unwrap());
                    lines.push(format!("call {name}: {state}"));
                }
                _ => {}
            }
        }
    }
    lines
}

/// A temporary folder, in memory if possible: these tests are not about disks.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
