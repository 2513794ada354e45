//! A session of any dialect as a file of any other, and back.

mod support;

use std::path::Path;

use scrollback::convert::{Conversion, Converted, Target};
use scrollback::dialect::{self, Dialect};
use scrollback::error::{Error, Result};
use scrollback::host::Host;
use scrollback::issue::Severity;
use scrollback::message::{Message, Part};
use scrollback::session::Session;
use scrollback::source::Source;
use support::{logs_of, reading};

const ALL: [&str; 7] = ["native", "claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];

fn host() -> Host {
    Host { cwd: "/gone/tides".into(), ..Host::system("test 1").unwrap() }
}

fn open(dialect: &'static dyn Dialect, path: &Path) -> Session {
    Session::open(&Source::file(dialect, path), &reading()).unwrap()
}

fn convert(session: &Session, to: &'static dyn Dialect, file: &Path) -> Result<Converted> {
    let how = Conversion { to, target: Target::File(file), head: None, with: Some("ada@example.org") };
    session.convert(&how, &host())
}

/// What people see, without the names of records.
fn seen(session: &Session) -> Vec<serde_json::Value> {
    let told = |message: &Message| {
        let mut told = serde_json::to_value(message).unwrap();
        told["id"] = serde_json::Value::Null;
        for key in ["records", "continues"] {
            told["metadata"].as_object_mut().unwrap().shift_remove(key);
        }
        told
    };
    if session.head().is_none() {
        return Vec::new();
    }
    support::messages(session).iter().map(told).collect()
}

#[test]
fn the_same_dialect_is_the_same_bytes() {
    for name in ALL {
        for (dialect, log) in logs_of(name) {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("copy.jsonl");
            let Ok(converted) = convert(&open(dialect, &log), dialect, &file) else { continue };
            assert_eq!(std::fs::read(&converted.path).unwrap(), std::fs::read(&log).unwrap(), "{}", log.display());
            assert!(converted.losses.is_empty() && converted.sidecar.is_none());
        }
    }
}

#[test]
fn every_direction_is_read_back_and_the_way_back_restores() {
    let mut wrong = Vec::new();
    for from in ALL {
        for (dialect, log) in logs_of(from) {
            for to in ALL.into_iter().filter(|to| *to != from) {
                let why = there_and_back(dialect, &log, dialect::named(to).unwrap());
                wrong.extend(why.err().map(|why| format!("{} → {to}: {why}", log.display())));
            }
        }
    }
    if let Some(file) = std::env::var_os("WRONG") {
        std::fs::write(file, wrong.join("\n\n")).unwrap();
    }
    let kinds: std::collections::BTreeMap<String, usize> =
        wrong.iter().fold(Default::default(), |mut kinds, line: &String| {
            let start: String = line.split(": ").skip(1).collect::<Vec<_>>().join(": ").chars().take(40).collect();
            *kinds.entry(start).or_insert(0) += 1;
            kinds
        });
    assert!(wrong.is_empty(), "{} wrong {kinds:#?}\n{}", wrong.len(), wrong[..wrong.len().min(1)].join("\n"));
}

fn there_and_back(from: &'static dyn Dialect, log: &Path, to: &'static dyn Dialect) -> std::result::Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let source = open(from, log);
    let there = match convert(&source, to, &folder.path().join("there.jsonl")) {
        Ok(there) => there,
        Err(Error::Nothing(_)) if !has_something(&source) => return Ok(()),
        Err(error) => return Err(format!("no way there: {error}")),
    };
    let converted = open(to, &there.path);
    let errors: Vec<_> = converted.issues().iter().filter(|issue| issue.severity == Severity::Error).collect();
    if !errors.is_empty() {
        return Err(format!(
            "issues {:?}",
            errors.iter().map(|issue| (issue.kind.name(), issue.line, &issue.detail)).collect::<Vec<_>>()
        ));
    }
    let back = convert(&converted, from, &folder.path().join("back.jsonl"))
        .map_err(|error| format!("no way back: {error}"))?;
    if std::fs::read(&back.path).unwrap() != std::fs::read(log).unwrap() {
        return Err("other bytes came back".to_owned());
    }
    if there.losses.is_empty() && seen(&source) != seen(&converted) {
        return Err(format!("a difference without a loss\n{:?}\n{:?}", seen(&source), seen(&converted)));
    }
    Ok(())
}

/// Whether somebody said something in it that any format has words for.
fn has_something(session: &Session) -> bool {
    let says = |part: &Part| match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Tool(_) | Part::File(_) => true,
        _ => false,
    };
    session.head().is_some() && support::messages(session).iter().any(|message| message.parts.iter().any(says))
}
