//! What later dialects need of the driver and `native` does not use: each test dialect states facts and nothing else.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use scrollback::conversation::Conversation;
use scrollback::dialect::{About, Dialect, Event, Habits, Key, Link, Moment, Parent, Repeated};
use scrollback::error::Error;
use scrollback::home::Home;
use scrollback::layout::{Format, Layout, Rows};
use scrollback::message::Part;
use scrollback::reading::{Page, Reading};
use scrollback::record::{Body, Kind, Said, ToolResult, Usage};
use scrollback::session::Session;
use scrollback::source::Source;
use serde::Deserialize;
use serde_json::value::RawValue;
use support::{describe, reading};

/// What all test dialects' records share: any field may be there.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    call: Option<Cow<'a, str>>,
    #[serde(borrow)]
    answers: Option<Cow<'a, str>>,
    tokens: Option<u64>,
}

impl<'a> Fields<'a> {
    fn kind(&self) -> Kind {
        match self.kind.as_deref() {
            Some("user") => Kind::User,
            Some("assistant") => Kind::Assistant,
            Some("result") => Kind::ToolResult,
            _ => Kind::Other,
        }
    }

    fn link(&self, text: &'a str, parent: Parent<'a>) -> Event<'a> {
        Event::Record(Link {
            text,
            id: self.id.clone(),
            parent,
            kind: self.kind(),
            at: self.at.clone().map_or(Moment::Absent, Moment::Text),
            sidechain: false,
            side: false,
            failure: false,
            numbered: false,
        })
    }
}

fn body(text: &str) -> Body {
    let fields: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
    let words = fields.text.clone().unwrap_or_default().into_owned();
    let mut said = Said::default();
    match (&fields.answers, &fields.call) {
        (Some(call), _) => said.results.push(ToolResult {
            call_id: call.clone().into_owned(),
            name: None,
            output: words.into(),
            outcome: scrollback::record::Outcome::Done,
            preliminary: false,
            duration_ms: None,
            about: Default::default(),
        }),
        (None, Some(call)) => said.parts.push(Part::from(serde_json::json!({
            "type": "dynamic-tool", "toolName": "x", "toolCallId": call, "state": "input-available", "input": {}
        }))),
        (None, None) => said.parts.push(Part::text(words)),
    }
    said.usage = fields.tokens.map(|output| Usage { output: Some(output), ..Usage::default() });
    match fields.kind() {
        Kind::User => Body::User(said),
        Kind::Assistant => Body::Assistant(said),
        Kind::ToolResult => Body::ToolResult(said),
        _ => Body::Other(text.into()),
    }
}

fn layout(root: &Path, pattern: &'static str, format: Format) -> Vec<Layout> {
    vec![Layout { root: root.to_path_buf(), pattern, companions: &[], sidecar: None, format }]
}

/// The parts of a dialect that all of these have in common.
macro_rules! dialect {
    ($name:ident, $pattern:literal, $format:expr, $repeated:ident, $bridges:expr, $link:expr) => {
        struct $name;

        impl Dialect for $name {
            fn name(&self) -> &'static str {
                stringify!($name)
            }

            fn layouts(&self, home: &Home) -> Vec<Layout> {
                self.layouts_in(&home.dir)
            }

            fn layouts_in(&self, store: &Path) -> Vec<Layout> {
                layout(store, $pattern, $format)
            }

            fn habits(&self) -> Habits {
                Habits { repeated: Repeated::$repeated, bridges_within_ms: $bridges, title_within_bytes: 0 }
            }

            fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
                $link(text, emit)
            }

            fn body(&self, text: &str) -> Body {
                body(text)
            }
        }
    };
}

type Emit<'e, 'a> = &'e mut dyn FnMut(Event<'a>);

fn read(dialect: &'static dyn Dialect, lines: &str) -> Session {
    Session::from_bytes(dialect, lines.trim_start().as_bytes().to_vec(), &reading())
}

/// What a reader sees: the description, then each message's words.
fn shown(session: &Session) -> String {
    let mut shown = vec![describe(session)];
    if let Some(head) = session.head() {
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        for message in conversation.messages(0..conversation.len()) {
            let message = message.unwrap();
            let words = message.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.text.clone()),
                Part::Tool(tool) => Some(serde_json::to_value(tool).unwrap()["state"].as_str().unwrap().to_owned()),
                Part::StepStart => Some("|".to_owned()),
                _ => None,
            });
            shown.push(format!("{}: {}", message.id, words.collect::<Vec<_>>().join(" ")));
        }
    }
    shown.join("\n")
}

// A tree of blocks: several records are one answer, an id written again is its new state, the agent names its leaf and
// closes small gaps itself.
dialect!(Blocks, "*.jsonl", Format::Lines, LastWins, Some(5000), link_block);

fn link_block<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    let block: Fields<'a> = serde_json::from_str(text)?;
    if block.kind.as_deref() == Some("leaf") {
        block.id.into_iter().for_each(|leaf| emit(Event::Leaf(leaf)));
        return Ok(());
    }
    emit(block.link(text, block.parent.clone().map_or(Parent::Root, Parent::Id)));
    for key in [block.group.clone().map(Key::Group), block.call.map(Key::Call), block.answers.map(Key::Result)] {
        key.into_iter().for_each(|key| emit(Event::Key(key)));
    }
    if let Some(output) = block.tokens {
        emit(Event::Usage { request: block.group, usage: Usage { output: Some(output), ..Usage::default() } });
    }
    Ok(())
}

#[test]
fn blocks_of_one_answer_are_one_answer_with_all_its_results() {
    let session = read(
        &Blocks,
        r#"
{"id":"q","kind":"user","text":"Two things"}
{"id":"a1","parent":"q","kind":"assistant","group":"m1","text":"I look","tokens":3}
{"id":"a2","parent":"a1","kind":"assistant","group":"m1","call":"t1","tokens":9}
{"id":"a3","parent":"a2","kind":"assistant","group":"m1","call":"t2","tokens":7}
{"id":"r2","parent":"a3","kind":"result","answers":"t2","text":"two"}
{"id":"r1","parent":"a2","kind":"result","answers":"t1","text":"one"}
{"id":"b","parent":"r2","kind":"assistant","group":"m2","text":"Done","tokens":5}
"#,
    );
    assert_eq!(session.usage().unwrap().output, Some(14), "the greatest of each request");
    let branch = session.branch(session.head().unwrap());
    let answer = Conversation::new(&branch).message(1).unwrap().unwrap();
    assert_eq!(answer.metadata.unwrap()["usage"]["output"], 14);
    insta::assert_snapshot!(shown(&session), @"
    head b; heads b main; branch q a1 a2 a3 r2 r1 b; gaps none; state clean; messages 2; issues none.
    q: Two things
    a1: | I look output-available output-available | Done
    ");
}

#[test]
fn a_sibling_block_written_after_its_result_is_no_head() {
    insta::assert_snapshot!(shown(&read(&Blocks, r#"
{"id":"q","kind":"user","text":"Two things"}
{"id":"a1","parent":"q","kind":"assistant","group":"m1","call":"t1"}
{"id":"a2","parent":"a1","kind":"assistant","group":"m1","call":"t2"}
{"id":"r2","parent":"a2","kind":"result","answers":"t2","text":"two"}
{"id":"r1","parent":"a1","kind":"result","answers":"t1","text":"one"}
"#)), @"
    head r1; heads r1 main; branch q a1 a2 r2 r1; gaps none; state interrupted-turn; messages 2; issues none.
    q: Two things
    a1: | output-available output-available
    ");
}

#[test]
fn the_last_state_of_a_record_counts_and_keeps_its_place() {
    insta::assert_snapshot!(shown(&read(&Blocks, r#"
{"id":"q","kind":"user","text":"Hello"}
{"id":"a","parent":"q","kind":"assistant","text":"He"}
{"id":"b","parent":"a","kind":"user","text":"Yes?"}
{"id":"a","parent":"q","kind":"assistant","text":"Hello"}
{"id":"a","parent":"q","kind":"assistant","text":"Hello"}
"#)), @"
    head b; heads b main; branch q a b; gaps none; state interrupted-prompt; messages 3; issues duplicate-line 5.
    q: Hello
    a: | Hello
    b: Yes?
    ");
}

#[test]
fn the_agent_s_leaf_is_the_head_unless_the_conversation_went_on() {
    let story = r#"
{"id":"q","kind":"user","text":"Hello"}
{"id":"a","parent":"q","kind":"assistant","text":"One"}
{"id":"b","parent":"q","kind":"assistant","text":"Two"}
"#;
    let head = |more: &str| {
        let session = read(&Blocks, &format!("{story}{more}"));
        session.heads().map(|head| head.record.id().into_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(head(""), "b a");
    assert_eq!(head(r#"{"id":"a","kind":"leaf"}"#), "a b");
    assert_eq!(head(r#"{"id":"nobody","kind":"leaf"}"#), "b a");
    assert_eq!(head("{\"id\":\"a\",\"kind\":\"leaf\"}\n{\"id\":\"c\",\"parent\":\"a\",\"kind\":\"user\"}"), "c b");
    assert_eq!(head("{\"id\":\"a\",\"kind\":\"leaf\"}\n{\"id\":\"c\",\"parent\":\"b\",\"kind\":\"user\"}"), "a c");
}

#[test]
fn the_agent_bridges_what_it_would_bridge_itself() {
    let story = |second: &str| {
        let lines = format!(
            r#"
{{"id":"q","kind":"user","at":"2026-11-15T10:00:00Z","text":"Hello"}}
{{"id":"a","parent":"q","kind":"assistant","at":"2026-11-15T10:00:01Z","text":"Hi"}}
{{"id":"c","parent":"lost","kind":"user","at":"{second}","text":"Still there?"}}
"#
        );
        describe(&read(&Blocks, &lines))
    };
    insta::assert_snapshot!(story("2026-11-15T10:00:06Z"), @"
    head c; heads c main; branch q a c; gaps c misses lost; state degraded; messages 3; issues bridged-gap 3.
    ");
    insta::assert_snapshot!(story("2026-11-15T10:00:06.001Z"), @"
    head c; heads c main, a island; branch c; gaps c misses lost; state degraded; messages 1; issues orphan 3.
    ");
    insta::assert_snapshot!(story("once"), @"
    head c; heads c main, a island; branch c; gaps c misses lost; state degraded; messages 1; issues bad-time 3, orphan 3.
    ");
}

// A log of one linear conversation: messages, a new list of all of them, a step back.
dialect!(Log, "*.jsonl", Format::Lines, LastWins, None, link_log);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Step<'a> {
    #[serde(borrow, rename = "$set")]
    set: Option<Set<'a>>,
    #[serde(borrow, rename = "$rewindTo")]
    rewind_to: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Set<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

fn link_log<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    let step: Step<'a> = serde_json::from_str(text)?;
    if let Some(session) = step.session {
        emit(Event::About(About { session: Some(session), ..About::default() }));
    } else if let Some(id) = step.rewind_to {
        emit(Event::Cut(id));
    } else if let Some(set) = step.set {
        for message in set.messages.into_iter().inspect(|_| emit(Event::ReplaceAll)).flatten().collect::<Vec<_>>() {
            link_message(message.get(), emit)?;
        }
    } else {
        link_message(text, emit)?;
    }
    Ok(())
}

fn link_message<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    let message: Fields<'a> = serde_json::from_str(text)?;
    emit(message.link(text, Parent::Previous));
    message.call.into_iter().for_each(|call| emit(Event::Key(Key::Call(call))));
    message.answers.into_iter().for_each(|call| emit(Event::Key(Key::Result(call))));
    Ok(())
}

const TALK: &str = r#"{"sessionId":"s-1"}
{"id":"q","kind":"user","text":"Hello"}
{"id":"a","kind":"assistant","text":"Hi"}
{"id":"b","kind":"user","text":"Bye"}
"#;

fn log(more: &str) -> Session {
    read(&Log, &format!("{TALK}{more}"))
}

#[test]
fn a_linear_log_is_one_chain() {
    let session = log("");
    assert_eq!(session.id().as_str(), "s-1");
    insta::assert_snapshot!(shown(&session), @"
    head b; heads b main; branch q a b; gaps none; state interrupted-prompt; messages 3; issues none.
    q: Hello
    a: | Hi
    b: Bye
    ");
}

#[test]
fn a_message_written_again_is_replaced_where_it_stands() {
    insta::assert_snapshot!(shown(&log(r#"{"id":"a","kind":"assistant","text":"Hi again"}
{"id":"b","kind":"user","text":"Bye bye"}
{"id":"c","kind":"assistant","text":"Bye"}
"#)), @"
    head c; heads c main; branch q a b c; gaps none; state clean; messages 4; issues duplicate-id 5, duplicate-id 6.
    q: Hello
    a: | Hi again
    b: Bye bye
    c: | Bye
    ");
}

#[test]
fn a_step_back_leaves_a_branch() {
    insta::assert_snapshot!(shown(&log(r#"{"$rewindTo":"a"}"#)), @"
    head q; heads q main, b branch; branch q; gaps none; state interrupted-prompt; messages 1; issues none.
    q: Hello
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$rewindTo":"a"}
{"id":"c","kind":"assistant","text":"Good day"}"#)), @"
    head c; heads c main, b branch; branch q c; gaps none; state clean; messages 2; issues none.
    q: Hello
    c: | Good day
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$rewindTo":"a"}
{"id":"a","kind":"assistant","text":"Hi"}"#)), @"
    head a; heads a main, b branch; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello
    a: | Hi
    ");
}

#[test]
fn a_list_of_all_messages_replaces_what_was() {
    // The same list, as an agent writes at each resume; a shorter one; one in another order; new ones.
    insta::assert_snapshot!(shown(&log(r#"{"$set":{"messages":[{"id":"q","kind":"user","text":"Hello"},{"id":"a","kind":"assistant","text":"Hi"},{"id":"b","kind":"user","text":"Bye"}]}}
{"id":"c","kind":"assistant","text":"Bye"}"#)), @"
    head c; heads c main; branch q a b c; gaps none; state clean; messages 4; issues none.
    q: Hello
    a: | Hi
    b: Bye
    c: | Bye
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$set":{"messages":[{"id":"q","kind":"user","text":"Hello"},{"id":"a","kind":"assistant","text":"Hi"}]}}"#)), @"
    head a; heads a main, b branch; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$set":{"messages":[{"id":"b","kind":"user","text":"Bye"},{"id":"q","kind":"user","text":"Hello"}]}}"#)), @"
    head q; heads q main, a branch; branch b q; gaps none; state interrupted-prompt; messages 2; issues none.
    b: Bye
    q: Hello
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$set":{"messages":[{"id":"x","kind":"user","text":"In short: hello"},{"id":"b","kind":"user","text":"Bye!"}]}}
{"id":"c","kind":"assistant","text":"Bye"}"#)), @"
    head c; heads c main, a branch; branch x b c; gaps none; state clean; messages 3; issues duplicate-id 5.
    x: In short: hello
    b: Bye!
    c: | Bye
    ");
    insta::assert_snapshot!(shown(&log(r#"{"$set":{"lastUpdated":"now"}}"#)), @"
    head b; heads b main; branch q a b; gaps none; state interrupted-prompt; messages 3; issues none.
    q: Hello
    a: | Hi
    b: Bye
    ");
}

#[test]
fn a_linear_log_grows_as_it_is_read() {
    let whole = format!(
        "{TALK}{}",
        r#"{"$rewindTo":"b"}
{"id":"c","kind":"user","text":"Wait"}
{"$set":{"messages":[{"id":"q","kind":"user","text":"Hello"},{"id":"c","kind":"user","text":"Wait"}]}}
{"id":"d","kind":"assistant","text":"Yes"}
"#
    );
    let mut live = read(&Log, "");
    for (at, byte) in whole.bytes().enumerate() {
        live.push(&[byte], &reading());
        assert_eq!(shown(&live), shown(&read(&Log, &whole[..=at])));
    }
}

#[test]
fn the_end_of_a_linear_log_is_the_end_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut lines = String::new();
    for at in 0..3000 {
        let kind = if at % 2 == 0 { "user" } else { "assistant" };
        lines += &format!("{{\"id\":\"{at}\",\"kind\":\"{kind}\",\"text\":\"{}\"}}\n", "v".repeat(300));
        if at == 2800 {
            // Back to a place that the window does not show.
            lines += "{\"$rewindTo\":\"400\"}\n";
        }
    }
    fs::write(&path, lines).unwrap();
    let source = Source::file(&Log, &path);
    let whole = Session::open(&source, &reading()).unwrap();
    let ids = |session: &Session, count: usize| {
        let branch = session.branch(session.head().unwrap());
        let conversation = Conversation::new(&branch);
        let last = conversation.len() - count..conversation.len();
        conversation.messages(last).map(|message| message.unwrap().id).collect::<Vec<_>>()
    };
    for (count, is_whole) in [(1, false), (150, false), (198, false), (199, true), (250, true), (500, true)] {
        let tail = Session::open_page(&source, &reading(), Page { messages: count, before: None }).unwrap();
        assert_eq!(ids(&tail, count), ids(&whole, count), "{count}");
        assert_eq!(tail.whole(), is_whole, "{count}");
    }
}

// One JSON document, an object or an array.
dialect!(Document, "*.json", Format::Document, Distinct, None, link_document);

fn link_document<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    // A record alone: the driver asks this of the pieces of a torn document.
    if let Ok(Fields { id: Some(_), .. }) = serde_json::from_str::<Fields<'a>>(text) {
        return link_message(text, emit);
    }
    let messages: Vec<&'a RawValue> = if text.starts_with('[') {
        serde_json::from_str(text)?
    } else {
        serde_json::from_str::<Outer<'a>>(text)?.messages
    };
    messages.into_iter().try_for_each(|message| link_message(message.get(), emit))
}

const DOCUMENT: &str = r#"{
  "version": 1,
  "messages": [
    {
      "id": "q",
      "kind": "user",
      "text": "Hello {"
    },
    {
      "id": "a",
      "kind": "assistant",
      "text": "Hi"
    }
  ]
}
"#;

#[test]
fn a_document_is_read_as_its_records() {
    insta::assert_snapshot!(shown(&read(&Document, DOCUMENT)), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello {
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&read(&Document, r#"[{"id":"q","kind":"user","text":"Hello"},{"id":"a","kind":"assistant","text":"Hi"}]"#)), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&read(&Document, "[]")), @"
    head at-0; heads at-0 main; branch at-0; gaps none; state clean; messages 0; issues none.
    ");
    insta::assert_snapshot!(shown(&read(&Document, "7")), @"
    head none; heads none; branch none; gaps none; state clean; messages 0; issues not-an-object 0.
    ");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.json"), DOCUMENT).unwrap();
    let sources = Source::walk(&Document, &Document.layouts_in(dir.path())[0]);
    let session = Session::open(sources[0].as_ref().unwrap(), &reading()).unwrap();
    assert_eq!(shown(&session), shown(&read(&Document, DOCUMENT)));
    assert_eq!(session.id().as_str(), "one");
    let place = session.find("a").unwrap().place();
    assert!(DOCUMENT[place.offset as usize..].starts_with("{\n      \"id\": \"a\""));
}

#[test]
fn a_torn_document_keeps_the_records_before_the_tear() {
    let tear = DOCUMENT.find("Hi").unwrap();
    insta::assert_snapshot!(shown(&read(&Document, &DOCUMENT[..tear])), @"
    head q; heads q main; branch q; gaps none; state interrupted-prompt; messages 1; issues torn 0, torn 0.
    q: Hello {
    ");
    for cut in 0..DOCUMENT.len() {
        let torn = read(&Document, &DOCUMENT[..cut]);
        let whole = |id: &str| torn.find(id).is_ok();
        assert_eq!(whole("q"), cut > DOCUMENT.find("},").unwrap(), "cut at {cut}");
        assert_eq!(whole("a"), cut > DOCUMENT.find("}\n  ]").unwrap(), "cut at {cut}");
    }
}

// Rows of a database, several sessions in it.
static MESSAGES: Rows = Rows {
    table: "message",
    columns: &["session", "data"],
    sessions: "select distinct session, session from message order by session",
    rows: "select rowid, data from message where session = ?1 order by rowid",
    row: "select data from message where rowid = ?1",
    log: None,
};
dialect!(Table, "*.db", Format::Rows(&MESSAGES), LastWins, None, link_message);

#[test]
fn rows_of_a_database_are_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("create table message (session text, data text)").unwrap();
    for (session, data) in [
        ("one", r#"{"id":"q","kind":"user","text":"Hello"}"#),
        ("two", r#"{"id":"x","kind":"user","text":"Elsewhere"}"#),
        ("one", r#"{"id":"a","kind":"assistant","text":"Hi"}"#),
        ("one", "nonsense"),
    ] {
        database.execute("insert into message values (?1, ?2)", [session, data]).unwrap();
    }
    let sources = Source::walk(&Table, &Table.layouts_in(dir.path())[0]);
    let sessions: Vec<Session> =
        sources.iter().map(|source| Session::open(source.as_ref().unwrap(), &reading()).unwrap()).collect();
    assert_eq!(sessions.iter().map(|session| session.id().0).collect::<Vec<_>>(), ["one", "two"]);
    insta::assert_snapshot!(shown(&sessions[0]), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues not-json 3.
    q: Hello
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&sessions[1]), @"
    head x; heads x main; branch x; gaps none; state interrupted-prompt; messages 1; issues none.
    x: Elsewhere
    ");
    assert_eq!(sessions[0].row().unwrap().message_count, Some(2));
    let several = Session::open(&Source::file(&Table, &path), &reading()).err().unwrap();
    assert!(matches!(several, Error::SeveralSessions { count: 2, .. }), "{several}");
    assert_eq!(Source::in_file(&Table, &path).unwrap().len(), 2);
}

#[test]
fn a_database_that_cannot_be_read_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let told = || {
        let mut found = Source::walk(&Table, &Table.layouts_in(dir.path())[0]);
        assert_eq!(found.len(), 1);
        let error = found.remove(0).unwrap_err();
        assert!(matches!(&error, Error::Database { path: of, .. } | Error::NoSessions(of) if *of == path), "{error}");
        error.to_string().replace(&*dir.path().to_string_lossy(), "$DIR")
    };
    fs::write(&path, "no database at all, and long enough to be sure of it").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: file is not a database
    ");
    fs::remove_file(&path).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("create table other (x)").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: a database, and no known agent's
    ");
    database.execute_batch("create table message (session text, data text); begin exclusive").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: database is locked
    ");
}

// A fork by reference: its header names the session that it begins in, and where there; records have no ids.
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
        emit(Event::Cut(back));
        return Ok(());
    }
    if meta.is_none() {
        let record: Fields<'a> = serde_json::from_str(text)?;
        emit(record.link(text, Parent::Previous));
        if let Some(output) = record.tokens {
            emit(Event::Usage { request: None, usage: Usage { output: Some(output), ..Usage::default() } });
        }
        return Ok(());
    }
    if let Some(session) = base {
        emit(Event::Base { session, until, last: None });
    }
    emit(Event::About(About { session: meta, parent_session: for_session, parent_call: for_call, ..About::default() }));
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
    let reading = Reading { find: &find, ..reading() };
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
