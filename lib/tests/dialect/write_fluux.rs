//! What we write as Fluux Agent: its place, its header, a line a message, and what comes back when it is read.

use std::path::Path;

use crate::support::drafted::text_of;
use crate::support::pen::{self, Pen};
use crate::support::place::{SESSION, beginning, writing};
use crate::support::said::{answer, call, result, results, said, title};
use crate::support::{logs_of_all, messages};
use jiff::Timestamp;
use proptest::prelude::*;
use scrollback::dialect::fluux_room::{Reaction, SharedFile, Speaker, Stanza};
use scrollback::dialect::{self, Beginning, Dialect};
use scrollback::model::{
    Body, Compaction, Content, Context, Error, Outcome, Part, Restore, Rewind, SessionId, Snapshot, TitleSource,
    ToolState, Usage,
};
use scrollback::session::{Session, Source};
use scrollback::view::history::View;
use scrollback::write::Fork;
use serde_json::{Map, Value, json};

const THUMB: &str = "\u{1F44D}";

fn fluux() -> &'static dyn Dialect {
    dialect::named("fluux").unwrap()
}

fn wrote(bodies: &[Body]) -> Pen {
    pen::wrote(fluux(), bodies)
}

fn stanza(from: Speaker, body: &str) -> Stanza {
    Stanza { id: None, from, body: body.to_owned(), files: Vec::new(), reaction: None }
}

fn alice() -> Speaker {
    Speaker::Person("alice@example.com/phone".to_owned())
}

fn sent(session: &Session) -> Vec<Value> {
    crate::support::sent(session, View::Fluux)
}

#[test]
fn the_file_lies_in_the_folder_of_whom_it_is_with() {
    let session = SessionId::from(SESSION);
    let place = |with| (writing(fluux()).place)(&Beginning { with, ..beginning(&session) });
    let expected = Path::new("alice@example.com/history.jsonl");
    assert_eq!(place(Some("alice@example.com")).as_deref(), Ok(expected));
    assert_eq!(place(Some("alice@example.com/phone")).as_deref(), Ok(expected));
    assert_eq!(fluux().session_id_from_path(expected).as_deref(), Some("alice@example.com"));
    let long = "a".repeat(300);
    for bad in [None, Some(""), Some("."), Some(".."), Some("../x"), Some("/etc"), Some("a\0b"), Some(long.as_str())] {
        assert!(place(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn an_ended_session_goes_beside_it_by_the_clock_of_greenwich() {
    let archive = writing(fluux()).ended_path.unwrap();
    let ended: Timestamp = "2025-02-08T23:30:05.9+04:30".parse().unwrap();
    let place = archive(Path::new("/store/alice@example.com/history.jsonl"), ended).unwrap();
    assert_eq!(archive(&place, ended), None, "what is ended is not ended again");
    assert_eq!(place, Path::new("/store/alice@example.com/sessions/20250208-190005.jsonl"));
    assert_eq!(fluux().session_id_from_path(&place).as_deref(), Some("alice@example.com:20250208-190005"));
}

#[test]
fn a_chat_of_two_is_written_as_the_agent_writes_it() {
    let url = "https://files.example.com/u/photo.png";
    let photo = SharedFile { url: url.to_owned(), mime_type: Some("image/png".to_owned()), size_bytes: Some(948_224) };
    let shared = Stanza {
        id: Some("stanza-2".to_owned()),
        files: vec![photo],
        ..stanza(alice(), &format!("{url}\n Can you see it? "))
    };
    let reaction = Reaction { message_id: "stanza-2".to_owned(), emojis: vec![THUMB.to_owned()] };
    let written = wrote(&[
        Body::User(stanza(alice(), "Hello!").content()),
        answer("Hi there!"),
        Body::User(shared.content()),
        Body::User(Stanza { reaction: Some(reaction), ..stanza(alice(), "") }.content()),
    ]);
    insta::assert_snapshot!(written.text(), @r#"
    {"type":"session","version":1,"created":"2026-11-14T23:59:58.252+00:00","jid":"alice@example.com"}
    {"type":"message","role":"user","content":"Hello!","msg_id":"00000000-0000-7000-8000-000000000000","sender":"alice@example.com","ts":"2026-11-14T23:59:58.253+00:00"}
    {"type":"message","role":"assistant","content":"Hi there!","msg_id":"00000000-0000-7000-8000-000000000001","ts":"2026-11-14T23:59:58.255+00:00"}
    {"type":"message","role":"user","content":"Can you see it?","msg_id":"stanza-2","sender":"alice@example.com","ts":"2026-11-14T23:59:58.256+00:00","attachments":[{"filename":"photo.png","mime_type":"image/png","size":"926KB"}]}
    {"type":"message","role":"user","content":"","msg_id":"00000000-0000-7000-8000-000000000003","sender":"alice@example.com","ts":"2026-11-14T23:59:58.257+00:00","reaction":{"message_id":"stanza-2","emojis":["👍"]}}
    "#);
    let session = written.session();
    assert!(written.lost().is_empty());
    assert_eq!(
        session.find("stanza-2").unwrap().body().unwrap(),
        Body::User(Content { metadata: Map::new(), ..shared.content() })
    );
    assert_eq!(
        sent(&session),
        [
            json!({"role": "user", "content": "Hello!"}),
            json!({"role": "assistant", "content": "Hi there!"}),
            json!({"role": "user", "content": "{\"filename\":\"photo.png\",\"mime_type\":\"image/png\",\"size\":\"926KB\"}\nCan you see it?"}),
            json!({"role": "user", "content": format!("{{\"message_id\":\"stanza-2\",\"emojis\":[\"{THUMB}\"]}}")}),
        ]
    );
}

#[test]
fn in_a_room_everybody_is_named_and_the_agent_is_not() {
    let of = |nick: &str, text: &str| Body::User(stanza(Speaker::Occupant(nick.to_owned()), text).content());
    let session = wrote(&[of("alice", "Anyone around?"), of("bob", "I'm here!"), answer("Hi everyone!")]).session();
    assert_eq!(
        sent(&session),
        [
            json!({"role": "user", "content": "alice@muc: Anyone around?"}),
            json!({"role": "user", "content": "bob@muc: I'm here!"}),
            json!({"role": "assistant", "content": "Hi everyone!"}),
        ]
    );
    let last = session.head().unwrap().raw().unwrap().concat();
    assert!(!String::from_utf8(last).unwrap().contains("sender"));
}

#[test]
fn of_a_turn_the_last_words_are_kept_and_the_rest_is_told() {
    let call = |id: &str, state| call("read", id, state);
    let turn = said([
        Part::StepStart,
        Part::reasoning("hm"),
        Part::text("Let me look."),
        call("c1", ToolState::done(json!({}), "x")),
        call("c2", ToolState::failed(json!({}), "no")),
        Part::StepStart,
        Part::text("It says x."),
        Part::text("And no."),
    ]);
    let turn = Content { model: Some("m".to_owned()), usage: Some(Usage::default()), ..turn };
    let open = said([Part::text("Wait."), call("c3", ToolState::called(json!({})))]);
    let silent = said([call("c4", ToolState::called(json!({})))]);
    let written = wrote(&[Body::Assistant(turn), Body::Assistant(open), Body::Assistant(silent)]);
    let session = written.session();
    let texts: Vec<Value> = sent(&session).into_iter().map(|mut message| message["content"].take()).collect();
    assert_eq!(texts, ["It says x.\nAnd no.", "Wait."]);
    assert_eq!(
        written.lost_of(0),
        [
            "dropped thinking",
            "dropped tool call",
            "dropped tool result",
            "dropped model",
            "dropped usage",
            "dropped text",
            "renamed text parts",
        ]
    );
    assert_eq!(
        (written.lost_of(1), written.lost_of(2)),
        (vec!["dropped tool call".to_owned()], vec!["refused tool call".to_owned()])
    );
}

#[test]
fn files_are_told_by_name_type_and_size() {
    let image = format!("data:image/png;base64,{}", "AAAA".repeat(512));
    let named = Part::File(scrollback::model::FilePart {
        media_type: "application/pdf".to_owned(),
        filename: Some("a.pdf".to_owned()),
        url: "https://x.example/1/b.pdf".to_owned(),
        ..Default::default()
    });
    let written = wrote(&[Body::User(said([
        Part::file("image/png", image),
        Part::file("video/mp4", "https://x.example/1/v.mp4?k=1"),
        named,
    ]))]);
    assert_eq!(
        written.lines()[1]["attachments"],
        json!([
            {"filename": "file", "mime_type": "image/png", "size": "1KB"},
            {"filename": "v.mp4", "mime_type": "video/mp4", "size": "unknown"},
            {"filename": "a.pdf", "mime_type": "application/pdf", "size": "unknown"},
        ])
    );
    assert_eq!(written.lost_of(0), ["dropped image", "dropped file"]);
    written.session();
}

#[test]
fn what_has_no_place_is_told_and_leaves_no_line() {
    let written = wrote(&[
        Body::System(said([Part::text("be kind")])),
        results([result("c", Value::Null, Outcome::Done)]),
        Body::Attachment(said([Part::text("x")])),
        title("t", TitleSource::Manual),
        Body::Compaction(Compaction::default()),
        Body::Snapshot(Snapshot::default()),
        Body::Rewind(Rewind::default()),
        Body::Restore(Restore::default()),
        Body::Header(Map::new()),
        Body::Other(json!({"type": "x"})),
    ]);
    assert_eq!(written.lines().len(), 1);
    let lost: Vec<String> = (0..10).flat_map(|body| written.lost_of(body)).collect();
    assert_eq!(
        lost,
        [
            "refused notice",
            "refused tool result",
            "refused context",
            "refused title",
            "refused compaction",
            "refused snapshot",
            "refused rewind",
            "refused restore",
            "refused header",
            "refused unknown record",
        ]
    );
}

#[test]
fn what_a_message_says_beside_its_words_is_told() {
    let everything = Content {
        sender: Some("alice@example.com".to_owned()),
        context: Context { cwd: Some("/x".to_owned()), ..Context::default() },
        todos: Some(Vec::new()),
        error: Some("x".to_owned()),
        metadata: Map::from_iter([("msg_id".to_owned(), json!("s-1")), ("other".to_owned(), json!(1))]),
        ..said([
            Part::data("reaction", json!({"message_id": "m", "emojis": [THUMB], "by": "x"})),
            Part::data("reaction", json!({"message_id": "n", "emojis": []})),
            Part::data("attachment", json!({"filename": "f", "mime_type": "", "size": 5})),
            Part::data("x", 1),
            Part::Other(json!(1)),
        ])
    };
    let written = wrote(&[Body::User(everything)]);
    assert_eq!(
        written.lost_of(0),
        [
            "renamed reaction",
            "dropped reaction",
            "renamed attachment",
            "dropped data part",
            "dropped unknown part",
            "dropped environment",
            "dropped platform",
            "dropped todos",
            "dropped error",
            "dropped metadata",
        ]
    );
    let line = &written.lines()[1];
    assert_eq!(
        (&line["content"], &line["msg_id"], &line["sender"]),
        (&json!(""), &json!("s-1"), &json!("alice@example.com"))
    );
    assert_eq!(line["attachments"], json!([{"filename": "f", "mime_type": "unknown", "size": "unknown"}]));
    assert_eq!(messages(&written.session()).len(), 1);
}

#[test]
fn a_message_of_nothing_is_refused_and_an_empty_name_is_none() {
    let nobody = Content { sender: Some(String::new()), ..Content::from("Hi.") };
    let unnamed = Content { metadata: Map::from_iter([("msg_id".to_owned(), json!(""))]), ..nobody };
    let written = wrote(&[
        Body::User(Content::from("")),
        Body::User(stanza(alice(), " ").content()),
        Body::Assistant(Content::from(vec![Part::text("")])),
        Body::Assistant(Content::from(vec![Part::reasoning("Hm.")])),
        Body::System(Content::from("You are a tide table.")),
        Body::User(unnamed),
    ]);
    for body in 0..5 {
        assert!(written.lost_of(body)[0].starts_with("refused "), "{:?}", written.lost_of(body));
    }
    let lines = written.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].get("sender").is_none() && lines[1]["msg_id"] != "", "{}", lines[1]);
}

#[test]
fn an_instant_has_as_many_digits_as_it_needs() {
    let session = SessionId::from(SESSION);
    for (at, expected) in [
        ("2026-11-14T23:59:58Z", "2026-11-14T23:59:58+00:00"),
        ("2026-11-14T23:59:58.5Z", "2026-11-14T23:59:58.500+00:00"),
        ("2026-11-14T23:59:58.00025Z", "2026-11-14T23:59:58.000250+00:00"),
        ("2026-11-14T23:59:58.123456789Z", "2026-11-14T23:59:58.123456789+00:00"),
    ] {
        let beginning = Beginning { at: at.parse().unwrap(), ..beginning(&session) };
        assert_eq!((writing(fluux()).header)(&beginning)[0].value["created"], expected);
    }
}

#[test]
fn a_turn_is_on_disk_when_the_model_has_spoken_last() {
    let written = wrote(&[Body::User(stanza(alice(), "What is in it?").content())]);
    assert_eq!(written.id().as_str(), "alice@example.com");
    let mut recorder = written.store.resume("alice@example.com").unwrap();
    let call = call("read", "c1", ToolState::called(json!({})));
    assert_eq!(recorder.assistant(vec![Part::text("Let me look."), call]).unwrap().saved, None);
    assert_eq!(recorder.tool_results(result("c1", "x", Outcome::Done)).unwrap().saved, None);
    assert_eq!((recorder.saved_through(), recorder.last_entry()), (0, 2));
    let saved = recorder.assistant("It says x.").unwrap().saved.unwrap();
    let lost: Vec<&str> = saved.losses.iter().map(|loss| loss.what.name()).collect();
    assert_eq!(lost, ["tool call", "tool result", "text"]);
    assert_eq!(recorder.saved_through(), 3);
    for refused in [recorder.title("t"), recorder.todos(Vec::new()), recorder.usage(Usage::default())] {
        assert!(matches!(refused, Err(Error::CannotStore { .. })), "{refused:?}");
    }
    recorder.close().unwrap();
    let session = written.session();
    assert_eq!(session.head().unwrap().id(), saved.id.as_str());
    assert_eq!(sent(&session)[1], json!({"role": "assistant", "content": "It says x."}));
}

#[test]
fn a_session_has_no_forks() {
    let written = wrote(&[Body::User(stanza(alice(), "Hello!").content())]);
    let forked = written.store.fork(&written.session(), Fork { head: None, id: None });
    assert!(matches!(forked, Err(Error::CannotStore { .. })), "{forked:?}");
}

#[test]
fn sessions_of_every_agent_can_be_written_and_every_prompt_is_there() {
    let prompts = |session: &Session| -> Vec<String> {
        let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
        let bodies = records.iter().map(|record| record.body().unwrap());
        let texts = bodies.filter_map(|body| if let Body::User(said) = body { Some(words(&said)) } else { None });
        // Nothing is no message here.
        texts.filter(|text| !text.is_empty()).collect()
    };
    let mut seen = 0;
    for (dialect, path) in logs_of_all() {
        let session = Session::open(&Source::file(dialect, &path), &crate::support::reading()).unwrap();
        let Some(text) = text_of(fluux(), &session) else { continue };
        let read = Session::from_bytes(fluux(), text.clone().into_bytes(), &crate::support::reading());
        assert!(read.issues().is_empty(), "{} {:?}\n{text}", path.display(), read.issues());
        assert_eq!(prompts(&read), prompts(&session), "{}\n{text}", path.display());
        seen += 1;
    }
    assert!(seen > 300, "the corpus is gone: {seen}");
}

fn words(said: &Content) -> String {
    let texts = said
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.text.as_str()) } else { None });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

proptest! {
    // Each case is a file.
    #![proptest_config(ProptestConfig { cases: crate::support::cases(64, 5_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words_come_back_as_they_were(texts in prop::collection::vec(any::<String>(), 1..6)) {
        let said: Vec<Content> = texts.iter().map(|text| stanza(alice(), text).content()).collect();
        let session = wrote(&said.iter().cloned().map(Body::User).collect::<Vec<_>>()).session();
        let words: Vec<Body> = said.into_iter().filter(|said| !said.parts.is_empty()).map(Body::User).collect();
        let read: Vec<Body> = session.records().filter(|record| !record.is_side()).map(|record| record.body().unwrap()).collect();
        prop_assert_eq!(read, words);
    }
}

#[test]
fn a_second_message_of_one_name_is_told_by_what_it_is_called() {
    let named =
        |id: &str, body: &str| Body::User(Stanza { id: Some(id.to_owned()), ..stanza(alice(), body) }.content());
    let mut pen = Pen::new(fluux());
    let check = |pen: &mut Pen, id: &str, body: &str, called: &str| {
        let ack = pen.say(named(id, body));
        assert_eq!(ack.as_str(), called);
        let session = pen.recorder.read().unwrap();
        let found = session.find(ack.as_str()).unwrap().body().unwrap();
        let Part::Text(text) = &found.content().unwrap().parts[0] else { panic!("{found:?}") };
        assert_eq!(text.text, body);
    };
    check(&mut pen, "dup", "One", "dup");
    check(&mut pen, "other", "Two", "other");
    check(&mut pen, "dup", "Three", "dup~2");
    pen.recorder.close().unwrap();
    let source = Source::file(fluux(), pen.path());
    pen.recorder = pen.store.resume_source(&source, None).unwrap();
    check(&mut pen, "dup", "Four", "dup~3");
    check(&mut pen, "other", "Five", "other~2");
}
