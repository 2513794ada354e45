//! A fork by reference: its header names the session that it begins in, and where there; records have no ids.

use std::borrow::Cow;
use std::fs;

use scrollback::dialect::{Event, Format, Parent, SessionFacts};
use scrollback::model::{Part, Usage};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::Conversation;
use serde::Deserialize;

use crate::driver::{Emit, Fields, read, shown};
use crate::support::reading;

dialect!(Fork, "*.jsonl", Format::Lines, Distinct, None, link_fork);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow)]
    meta: Option<Cow<'a, str>>,
    #[serde(borrow)]
    base: Option<Cow<'a, str>>,
    #[serde(borrow)]
    until: Option<Cow<'a, str>>,
    #[serde(borrow)]
    for_session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    for_call: Option<Cow<'a, str>>,
    #[serde(borrow)]
    back: Option<Cow<'a, str>>,
}

fn link_fork<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    let Meta { meta, base, until, for_session, for_call, back } = serde_json::from_str(text)?;
    if let Some(back) = back {
        emit(Event::CutFrom(back));
        return Ok(());
    }
    if meta.is_none() {
        let record: Fields<'a> = serde_json::from_str(text)?;
        emit(record.link(text, Parent::Previous));
        if let Some(output) = record.tokens {
            let usage = Usage { output: Some(output), ..Usage::default() };
            emit(Event::Usage { request: None, usage, model: None, cost: None });
        }
        return Ok(());
    }
    if let Some(session) = base {
        emit(Event::ForkBase { session, until, last: None });
    }
    emit(Event::Facts(SessionFacts {
        session: meta,
        parent_session: for_session,
        parent_call: for_call,
        ..SessionFacts::default()
    }));
    Ok(())
}

/// Opens one of several sessions that lie in a folder.
fn fork(files: &[(&str, &str)], wanted: &str) -> Session {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(format!("{name}.jsonl")), text.trim_start()).unwrap();
    }
    let source = |id: &str| Source::file(&Fork, &dir.path().join(format!("{id}.jsonl")));
    let find = |id: &str| Some(source(id)).filter(|source| source.path.is_file());
    let reading = ReadOptions { find: &find, ..reading() };
    let session = Session::open(&source(wanted), &reading).unwrap();
    let mut live = Session::from_bytes(&Fork, Vec::new(), &reading);
    let bytes = fs::read(dir.path().join(format!("{wanted}.jsonl"))).unwrap();
    bytes.chunks(9).for_each(|piece| live.push(piece, &reading));
    assert_eq!(shown(&live), shown(&session), "a fork grows as it is read");
    session
}

const BASE: &str = r#"
{"meta":"base"}
{"kind":"user","text":"Hello","tokens":100}
{"id":"cut","kind":"assistant","text":"Hi","tokens":100}
{"kind":"user","text":"Not in the fork","tokens":100}
"#;

#[test]
fn a_fork_begins_in_its_base() {
    let session = fork(
        &[
            ("base", BASE),
            (
                "f",
                r#"
{"meta":"f","base":"base","until":"cut"}
{"kind":"assistant","text":"Another answer","tokens":7}
"#,
            ),
        ],
        "f",
    );
    assert_eq!(session.usage().unwrap().output, Some(7), "the base's tokens are the base's");
    insta::assert_snapshot!(shown(&session), @"
    head at-41; heads at-41 main; branch at-1-16 at-41; gaps none; state clean; messages 2; issues none.
    at-1-16: Hello
    at-41: | Another answer
    ");
    insta::assert_snapshot!(shown(&fork(&[("base", BASE), ("f", r#"
{"meta":"f","base":"base"}
{"kind":"assistant","text":"Another answer","tokens":7}
"#)], "f")), @"
    head at-27; heads at-27 main; branch at-1-16 cut at-1-117 at-27; gaps none; state clean; messages 4; issues none.
    at-1-16: Hello
    cut: | Hi
    at-1-117: Not in the fork
    at-27: | Another answer
    ");
}

#[test]
fn a_base_that_went_back_since_is_taken_as_it_was() {
    let base = format!("{BASE}{}", "{\"back\":\"cut\"}\n{\"kind\":\"user\",\"text\":\"Elsewhere\"}\n");
    let base = base.replace("{\"kind\":\"user\",\"text\":\"Not", "{\"id\":\"end\",\"kind\":\"user\",\"text\":\"Not");
    insta::assert_snapshot!(shown(&fork(&[("base", &base), ("f", r#"
{"meta":"f","base":"base","until":"end"}
{"kind":"user","text":"On from the answer"}
"#)], "f")), @"
    head at-41; heads at-41 main; branch at-1-16 cut at-41; gaps none; state interrupted-prompt; messages 3; issues none.
    at-1-16: Hello
    cut: | Hi
    at-41: On from the answer
    ");
}

#[test]
fn a_missing_base_is_a_gap() {
    insta::assert_snapshot!(shown(&fork(&[("f", r#"
{"meta":"f","base":"gone","until":"cut"}
{"kind":"assistant","text":"Another answer"}
{"kind":"user","text":"Thanks"}
"#)], "f")), @"
    head at-86; heads at-86 main; branch at-41 at-86; gaps at-41 misses gone; state degraded; messages 2; issues orphan 2.
    at-41: | Another answer
    at-86: Thanks
    ");
    let forks = [
        ("g", "{\"meta\":\"g\",\"base\":\"f\"}\n{\"kind\":\"user\",\"text\":\"Last\"}\n"),
        ("f", "{\"meta\":\"f\",\"base\":\"gone\"}\n{\"kind\":\"user\",\"text\":\"First\"}\n"),
    ];
    insta::assert_snapshot!(shown(&fork(&forks, "g")), @"
    head at-24; heads at-24 main; branch at-1-27 at-24; gaps at-1-27 misses gone; state degraded; messages 2; issues orphan 2 of f.jsonl.
    at-1-27: First
    at-24: Last
    ");
}

#[test]
fn a_chain_of_fifty_forks_is_one_conversation() {
    let files: Vec<(String, String)> = (0..50)
        .map(|at| {
            let base = if at == 0 { String::new() } else { format!(",\"base\":\"f{}\"", at - 1) };
            let lines = format!("{{\"meta\":\"f{at}\"{base}}}\n{{\"kind\":\"user\",\"text\":\"{at}\",\"tokens\":1}}\n");
            (format!("f{at}"), lines)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let session = fork(&files, "f49");
    let branch = session.branch(session.head().unwrap());
    let conversation = Conversation::new(&branch);
    let said: Vec<Vec<Part>> =
        conversation.messages(0..conversation.len()).map(|message| message.unwrap().parts).collect();
    assert_eq!(said, (0..50).map(|at| vec![Part::text(at.to_string())]).collect::<Vec<_>>());
    assert_eq!(session.usage().unwrap().output, Some(1));
    assert!(session.issues().is_empty());
}

#[test]
fn forks_that_begin_in_one_another_end_in_a_gap() {
    let forks = [
        ("f", "{\"meta\":\"f\",\"base\":\"g\"}\n{\"kind\":\"user\",\"text\":\"F\"}\n"),
        ("g", "{\"meta\":\"g\",\"base\":\"f\"}\n{\"kind\":\"user\",\"text\":\"G\"}\n"),
    ];
    insta::assert_snapshot!(shown(&fork(&forks, "f")), @"
    head at-24; heads at-24 main; branch at-1-24 at-24; gaps at-1-24 misses f; state degraded; messages 2; issues cycle 2 of g.jsonl.
    at-1-24: G
    at-24: F
    ");
    insta::assert_snapshot!(shown(&fork(&[("f", "{\"meta\":\"f\",\"base\":\"f\"}\n{\"kind\":\"user\",\"text\":\"F\"}\n")], "f")), @"
    head at-24; heads at-24 main; branch at-24; gaps at-24 misses f; state degraded; messages 1; issues cycle 2.
    at-24: F
    ");
}

#[test]
fn a_child_session_names_its_parent_and_the_call_that_started_it() {
    let session = read(
        &Fork,
        r#"
{"meta":"child","for_session":"mother","for_call":"t1"}
{"kind":"user","text":"Look"}
"#,
    );
    assert_eq!(session.parent_session(), Some(("mother", Some("t1"))));
    let row = session.row().unwrap();
    assert_eq!((row.parent_session.unwrap().as_str(), row.parent_call.as_deref()), ("mother", Some("t1")));
}

#[test]
fn records_that_share_an_id_stay_apart() {
    let session = read(
        &Fork,
        r#"
{"id":"q","kind":"user","text":"ok","tokens":1}
{"id":"q","kind":"user","text":"ok","tokens":1}
{"id":"q","kind":"assistant","text":"Twice ok","tokens":1}
"#,
    );
    assert_eq!(session.usage().unwrap().output, Some(2));
    assert_eq!(session.find("q~2").unwrap().id(), "q~2");
    insta::assert_snapshot!(shown(&session), @"
    head q~2; heads q~2 main; branch q q~2; gaps none; state clean; messages 2; issues duplicate-line 2.
    q: ok
    q~2: | Twice ok
    ");
}
