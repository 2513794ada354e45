//! The native format holds whatever any agent's record says.

use crate::support::drafted::draft;
use crate::support::place::writing;
use crate::support::{logs_of_all, native, read, reading};
use scrollback::dialect::{End, Tally};
use scrollback::model::{Body, Part, RecordId, SessionId, Usage};
use scrollback::session::Session;
use serde_json::json;

/// What is written for one record, read again; nothing where the format says that it cannot hold all of it.
fn round(body: &Body) -> Option<(String, Body)> {
    let (session, id) = (SessionId::from("s"), RecordId::from("r"));
    let written = (writing(native()).lines)(&draft(&session, &id, body, &|| "x".to_owned()));
    if !written.losses.is_empty() {
        return None;
    }
    let text: String = written.lines.iter().map(|line| format!("{}\n", line.value)).collect();
    let read = read(text.clone());
    let issues: Vec<_> = read.issues().iter().filter(|issue| !issue.detail.contains("no such call")).collect();
    assert!(read.records().len() == 1, "{issues:?} {text}");
    let body = read.records().next().unwrap().body().unwrap();
    Some((text, body))
}

/// Which piece of a stream a record was is no longer told once it is whole, nor how the model spelled its arguments.
fn whole(mut body: Body) -> Body {
    if let Some(said) = body.content_mut() {
        said.fragment = None;
        for part in &mut said.parts {
            if let Part::Tool(call) = part {
                call.input_text = None;
            }
        }
    }
    body
}

#[test]
fn whatever_a_record_says_is_read_back_as_it_was() {
    let (mut count, mut lost) = (0, 0);
    for (dialect, log) in logs_of_all() {
        let session = Session::from_bytes(dialect, std::fs::read(&log).unwrap(), &reading());
        for record in session.records() {
            let body = whole(record.body().unwrap());
            if matches!(body, Body::Other(_) | Body::Header(_)) {
                continue;
            }
            let Some((text, again)) = round(&body) else {
                lost += 1;
                continue;
            };
            assert_eq!(whole(again), body, "{}: {}\n{text}", log.display(), record.id());
            count += 1;
        }
    }
    assert!(count > 1000, "{count}");
    assert_eq!(lost, 1, "only a message that uses one id for many calls");
}

#[test]
fn metadata_json_has_the_keys_of_sage_in_their_order_and_keeps_the_others() {
    let tally = Tally {
        is_redacted: true,
        session: "s1".into(),
        project: "/home/ada".into(),
        cwd: "/home/ada/engine".into(),
        git_branch: Some("main".into()),
        version: "1.2.3".into(),
        started: "2026-11-15T10:00:00Z".parse().ok(),
        updated: "2026-11-15T10:00:05Z".parse().ok(),
        title: Some("Tides".into()),
        prompts: Some(("first".into(), "last".into())),
        model: Some("m-1".into()),
        messages: 6,
        size_bytes: 1234,
        usage: Some(Usage { input: Some(1), ..Usage::default() }),
        is_open: false,
        lock: None,
        end: End::Closed,
        forked_from: None,
    };
    let begun = Tally { started: None, updated: None, title: None, prompts: None, model: None, ..tally.clone() };
    let sidecar = writing(native()).sidecar.unwrap();
    let of_sage = json!({"mine": [1], "summary": "S", "state": "failed", "name": "N", "firstPrompt": "old"});
    let told = sidecar(Some(sidecar(Some(of_sage), &begun)), &tally);
    insta::assert_snapshot!(told, @r#"{"id":"s1","customTitle":"Tides","name":"N","firstPrompt":"first","lastPrompt":"last","summary":"S","createdAt":"2026-11-15T10:00:00Z","updatedAt":"2026-11-15T10:00:05Z","workingDirectory":"/home/ada/engine","gitBranch":"main","model":"m-1","version":"1.2.3","messageCount":6,"sizeBytes":1234,"state":"completed","tokenUsage":{"inputTokens":1},"mine":[1]}"#);
    let gone = sidecar(Some(told), &Tally { title: None, ..tally });
    assert!(gone.get("customTitle").is_none(), "what is known no more is not told");
}
