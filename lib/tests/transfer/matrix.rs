//! Every log of every corpus to every other dialect, and back.

use std::collections::HashSet;
use std::path::Path;

use scrollback::dialect::Dialect;
use scrollback::model::{Error, Kind, LossKind, Lost, Part, Usage};
use scrollback::session::{RecordRef, Session};
use scrollback::transfer::convert::Converted;
use serde_json::Value;

use super::support::{self, logs_of};
use super::{ALL, convert, folder, named, open, seen, valid};

/// In a usual run each log is converted to one dialect, in turn, and some to all; the torture run converts all to all.
const ALL_WAYS_OF_EACH: usize = 12;

#[test]
fn the_same_dialect_is_the_same_bytes() {
    for name in ALL {
        for (dialect, log) in logs_of(name) {
            let folder = folder();
            let file = folder.path().join("copy.jsonl");
            let source = open(dialect, &log);
            let converted = match convert(&source, dialect, &file) {
                Err(Error::NothingToStore(_) | Error::EmptyBranch { .. }) if !has_something(&source) => continue,
                converted => converted.unwrap(),
            };
            if is_in_several_files(&converted) {
                valid::check(&open(dialect, &converted.path)).unwrap();
                continue;
            }
            assert_eq!(std::fs::read(&converted.path).unwrap(), std::fs::read(&log).unwrap(), "{}", log.display());
            #[cfg(unix)]
            assert_eq!(mode(&converted.path), 0o600, "{}", log.display());
            // Only what is no line of its own file can stay behind.
            let stays_behind = ["sub-agent session", "other files", "base session", "snapshot"];
            let is_of_the_file = |what: &str| !stays_behind.contains(&what);
            let lost = converted.losses.iter().find(|row| is_of_the_file(row.what.name()));
            assert!(lost.is_none() && converted.sidecar.is_none(), "{}: {lost:?}", log.display());
        }
    }
}

#[test]
fn every_direction_is_valid_told_and_restored() {
    let is_full = support::cases(0, 1) == 1;
    let mut wrong = Vec::new();
    let mut turn = 0;
    for from in ALL {
        for (dialect, log) in logs_of(from) {
            turn += 1;
            let ways = ALL.into_iter().filter(|to| *to != from).enumerate();
            for (_, to) in ways.filter(|(way, _)| is_full || turn % ALL_WAYS_OF_EACH == 0 || turn % 6 == *way) {
                let why = there_and_back(dialect, &log, named(to));
                wrong.extend(why.err().map(|why| format!("{} → {to}: {why}", log.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

fn there_and_back(from: &'static dyn Dialect, log: &Path, to: &'static dyn Dialect) -> Result<(), String> {
    let folder = folder();
    let source = open(from, log);
    let there = match convert(&source, to, &folder.path().join("there.jsonl")) {
        Ok(there) => there,
        Err(Error::NothingToStore(_) | Error::EmptyBranch { .. }) if !has_something(&source) => return Ok(()),
        Err(error) => return Err(format!("no way there: {error}")),
    };
    let converted = open(to, &there.path);
    valid::check(&converted).map_err(|why| format!("not valid: {why}"))?;
    let (before, after) = (comparable(&source), comparable(&converted));
    if there.losses.is_empty() && before != after {
        return Err(format!("a difference without a loss\n{before:?}\n{after:?}"));
    }
    untold(&source, &converted, &there)?;
    told_in_vain(&source, &converted, &there)?;
    if let Some(row) = there.losses.iter().find(|row| !Lost::all().any(|lost| lost == row.what)) {
        return Err(format!("a word that nobody explains: {row:?}"));
    }
    let back = convert(&converted, from, &folder.path().join("back.jsonl"))
        .map_err(|error| format!("no way back: {error}"))?;
    if is_in_several_files(&there) {
        return valid::check(&open(from, &back.path)).map_err(|why| format!("not valid on the way back: {why}"));
    }
    if std::fs::read(&back.path).unwrap() != std::fs::read(log).unwrap() {
        return Err("other bytes came back".to_owned());
    }
    // Without the sidecar the way back is a conversion like any other.
    std::fs::remove_file(there.sidecar.ok_or("no sidecar")?).unwrap();
    match convert(&converted, from, &folder.path().join("plain.jsonl")) {
        Ok(plain) => valid::check(&open(from, &plain.path)).map_err(|why| format!("not valid on the way back: {why}")),
        Err(Error::NothingToStore(_) | Error::EmptyBranch { .. }) if !has_something(&converted) => Ok(()),
        Err(error) => Err(format!("no way back without the sidecar: {error}")),
    }
}

/// Whether the source is one file of several: no corpus has one that is too large to be kept.
fn is_in_several_files(converted: &Converted) -> bool {
    converted.losses.iter().any(|row| row.what == Lost::Original)
}

#[test]
fn what_it_cost_what_it_is_called_and_its_branches_stay() {
    let is_full = support::cases(0, 1) == 1;
    let mut wrong = Vec::new();
    for (turn, (dialect, log)) in ALL.into_iter().flat_map(logs_of).enumerate() {
        let source = open(dialect, &log);
        let has_more = source.usage().is_some() || source.title().is_some() || source.heads().len() > 1;
        let ways = ALL.into_iter().filter(|to| *to != dialect.name()).enumerate();
        for (_, to) in ways.filter(|(way, _)| is_full || has_more || turn % 6 == *way) {
            let folder = folder();
            let why = match convert(&source, named(to), &folder.path().join("there.jsonl")) {
                Ok(there) => stays(&source, &open(named(to), &there.path), &there),
                Err(Error::NothingToStore(_) | Error::EmptyBranch { .. }) if !has_something(&source) => continue,
                Err(error) => Err(format!("no way there: {error}")),
            };
            wrong.extend(why.err().map(|why| format!("{} → {to}: {why}", log.display())));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

/// What a session is besides its messages.
fn stays(source: &Session, converted: &Session, there: &Converted) -> Result<(), String> {
    let to = converted.dialect().name();
    let is_reported = |what: &str| there.losses.iter().any(|row| row.what.name() == what);
    let is_tree = ["native", "claude-code", "qwen-code"].contains(&to);
    let (Some(head), Some(now)) = (source.head(), converted.head()) else { return Ok(()) };
    let (before, after) = match is_tree {
        true => (source.usage(), converted.usage()),
        false => (source.usage_of(&source.branch(head)), converted.usage_of(&converted.branch(now))),
    };
    let (mut before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    // What a compaction cost is no answer's, and is reported.
    let compactions: Vec<_> = source.records().filter(|record| record.kind() == Kind::Compaction).collect();
    let spent = Usage::sum(source.usage_by_record(&compactions).into_values());
    if let Some(spent) = spent.filter(|_| is_reported("usage")) {
        let less = |all: &mut Option<u64>, spent: Option<u64>| *all = all.map(|all| all - spent.unwrap_or_default());
        less(&mut before.input, spent.input);
        less(&mut before.output, spent.output);
        less(&mut before.cache_read, spent.cache_read);
        less(&mut before.cache_write, spent.cache_write);
        less(&mut before.reasoning, spent.reasoning);
    }
    for (what, before, after) in [
        ("usage", before.input, after.input),
        ("usage", before.output, after.output),
        ("cache tokens", before.cache_read, after.cache_read),
        ("cache tokens", before.cache_write, after.cache_write),
        ("reasoning tokens", before.reasoning, after.reasoning),
    ] {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let may_be_lost = to == "fluux" || what != "usage";
        if before != after && !(may_be_lost && (is_reported(what) || is_reported("usage"))) {
            return Err(format!("{what}: {before} became {after}"));
        }
    }
    let titles = [source, converted].map(|session| session.title().map(|title| title.text.clone()));
    let has_titles = !["sage-el", "fluux", "ai-sdk"].contains(&to);
    if titles[0] != titles[1] && (has_titles || titles[1].is_some() || !is_reported("title")) {
        return Err(format!("the title: {titles:?}"));
    }
    // No format can begin a branch without a record in it: the undone turns become the conversation, and are reported as made up.
    if source.branch(head).records.iter().all(|record| record.kind() == Kind::Header) && is_reported("prompt") {
        return Ok(());
    }
    // A rewind without records after it is not compared: not every format makes a branch of it.
    let heads = [source, converted].map(|session| {
        let is_branch = |head: RecordRef<'_>| head.kind() != Kind::Rewind || session.head() == Some(head);
        session.heads().filter(|head| is_branch(head.record)).count()
    });
    match is_tree && heads[0] != heads[1] || !is_tree && heads[1] > 1 {
        true => Err(format!("{} heads became {}", heads[0], heads[1])),
        false => Ok(()),
    }
}

/// The messages without what files need not contain: the first step of an answer, and that text is complete. The usage is the
/// sum of all messages.
fn comparable(session: &Session) -> Vec<Value> {
    let mut messages = seen(session);
    for message in &mut messages {
        message["metadata"].as_object_mut().unwrap().shift_remove("usage");
        let parts = message["parts"].as_array_mut().unwrap();
        if parts.first().is_some_and(|part| part["type"] == "step-start") {
            parts.remove(0);
        }
        for part in parts.iter_mut().filter(|part| part["type"] == "text" || part["type"] == "reasoning") {
            part.as_object_mut().unwrap().shift_remove("state");
        }
    }
    let usage = session.usage().unwrap_or_default();
    let tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    messages.push(serde_json::json!({"parts": [], "usage": tokens.map(Option::unwrap_or_default)}));
    messages
}

/// Where the messages are as many as before, each that differs has a loss of its own.
fn untold(source: &Session, converted: &Session, there: &Converted) -> Result<(), String> {
    let (before, after) = (comparable(source), comparable(converted));
    if before.len() != after.len() || source.head().is_none() {
        return Ok(());
    }
    let reported: HashSet<&str> = there.losses.iter().map(|row| row.record.as_str()).collect();
    for (message, (was, is)) in support::messages(source).iter().zip(before.iter().zip(&after)) {
        let metadata = message.metadata.as_ref().and_then(|metadata| metadata.get("records")?.as_array());
        let records = metadata.into_iter().flatten().filter_map(|record| record.as_str());
        let is_reported = records.chain([message.id.as_str()]).any(|record| reported.contains(record));
        if was["parts"] != is["parts"] && !is_reported && !names_records(was) {
            return Err(format!("a difference without a loss\n{was}\n{is}"));
        }
    }
    Ok(())
}

/// Whether a part is a call, of a tool that the SDK knows by its type or by its name.
fn is_call(part: &Value) -> bool {
    part["type"].as_str().is_some_and(|kind| kind == "dynamic-tool" || kind.starts_with("tool-"))
}

/// What is all there is neither dropped nor renamed.
fn told_in_vain(source: &Session, converted: &Session, there: &Converted) -> Result<(), String> {
    let (Some(head), Some(_)) = (source.head(), converted.head()) else { return Ok(()) };
    let on_branch: HashSet<String> =
        source.branch(head).records.iter().map(|record| record.id().into_owned()).collect();
    let rows = there
        .losses
        .iter()
        .filter(|row| row.kind != LossKind::Synthesised && on_branch.contains(&row.record));
    let (before, after) = (seen(source), seen(converted));
    for row in rows {
        let (is_it, facts): (fn(&Value) -> bool, &[&str]) = match row.what.name() {
            "text" => (|part| part["type"] == "text", &["text", "providerMetadata"]),
            "thinking" => (|part| part["type"] == "reasoning", &["text", "providerMetadata"]),
            "file" | "image" => (|part| part["type"] == "file", &["url", "mediaType", "filename", "providerMetadata"]),
            "tool name" => (is_call, &["toolName"]),
            "tool input" => (is_call, &["input", "rawInput"]),
            "tool call" => {
                (is_call, &["toolName", "toolCallId", "input", "state", "output", "errorText", "approval", "title"])
            }
            _ => continue,
        };
        let facts_of = |messages: &[Value]| {
            let parts = messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
            let mut found: Vec<String> = parts
                .filter(|part| is_it(part))
                .map(|part| facts.iter().map(|fact| part[*fact].to_string()).collect::<Vec<_>>().join(" "))
                .collect();
            found.sort();
            found
        };
        let (was, is) = (facts_of(&before), facts_of(&after));
        if was == is {
            return Err(format!("a loss without a difference: {row:?}\n{was:?}"));
        }
    }
    Ok(())
}

/// Whether a message names records, which are called otherwise in another file.
fn names_records(message: &Value) -> bool {
    let text = message["parts"].to_string();
    text.contains(r#""record":"#) || text.contains("steering-message")
}

/// Whether it has a message that every format can store.
fn has_something(session: &Session) -> bool {
    let is_stored = |part: &Part| match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Tool(_) | Part::File(_) => true,
        _ => false,
    };
    session.head().is_some() && support::messages(session).iter().any(|message| message.parts.iter().any(is_stored))
}
