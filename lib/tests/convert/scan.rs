//! throwaway
use super::support::logs_of;
use super::{ALL, convert, folder, named, open, seen};
use scrollback::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn tally(session: &Session) -> BTreeMap<String, i64> {
    let mut t = BTreeMap::new();
    for m in seen(session) {
        *t.entry(format!("role {}", m["role"].as_str().unwrap())).or_default() += 1;
        for (k, v) in m["metadata"].as_object().unwrap() {
            if k != "timestamp" && !v.is_null() {
                *t.entry(format!("meta {k}")).or_default() += 1;
            }
        }
        for p in m["parts"].as_array().unwrap() {
            let kind = p["type"].as_str().unwrap_or("none");
            *t.entry(format!("part {kind}")).or_default() += 1;
            if kind == "dynamic-tool" {
                *t.entry(format!("state {}", p["state"].as_str().unwrap())).or_default() += 1;
            }
        }
    }
    let u = session.usage().unwrap_or_default();
    for (k, v) in [("in", u.input), ("out", u.output), ("cr", u.cache_read), ("cw", u.cache_write), ("re", u.reasoning)]
    {
        *t.entry(format!("usage {k}")).or_default() += v.unwrap_or(0) as i64;
    }
    t.retain(|_, v| *v != 0);
    t.insert("title".into(), session.title().is_some() as i64);
    t
}

#[test]
fn scan() {
    let mut out = String::new();
    let mut words: BTreeMap<(String, String), BTreeMap<String, u64>> = BTreeMap::new();
    for from in ALL {
        for (dialect, log) in logs_of(from) {
            let source = open(dialect, &log);
            let before = tally(&source);
            for to in ALL.into_iter().filter(|to| *to != from) {
                let folder = folder();
                let Ok(there) = convert(&source, named(to), &folder.path().join("t.jsonl")) else { continue };
                let after = tally(&open(named(to), &there.path));
                let mut rows: BTreeMap<String, u64> = BTreeMap::new();
                for r in &there.losses {
                    let kind = serde_json::to_value(r.kind).unwrap();
                    *rows.entry(format!("{}/{}", r.what, kind.as_str().unwrap())).or_default() += r.count;
                    *words
                        .entry((r.what.clone(), kind.as_str().unwrap().to_owned()))
                        .or_default()
                        .entry(to.to_owned())
                        .or_default() += r.count;
                }
                let mut delta = String::new();
                for k in before.keys().chain(after.keys().filter(|k| !before.contains_key(*k))) {
                    let (b, a) = (before.get(k).copied().unwrap_or(0), after.get(k).copied().unwrap_or(0));
                    if a != b {
                        write!(delta, "{k} {b}>{a}; ").unwrap();
                    }
                }
                let name = log.strip_prefix(super::support::corpus()).unwrap().display().to_string();
                writeln!(out, "{name} -> {to}\n   DELTA {delta}\n   ROWS {}", serde_json::to_string(&rows).unwrap())
                    .unwrap();
            }
        }
    }
    for ((w, k), by) in words {
        writeln!(out, "WORD {w} | {k} | {by:?}").unwrap();
    }
    std::fs::write("/tmp/scan-a.txt", out).unwrap();
    let _ = Value::Null;
}
