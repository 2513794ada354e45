//! A log of one linear conversation: messages, a new list of all of them, a step back.

use std::borrow::Cow;
use std::fs;

use scrollback::dialect::{Event, Format, Key, Parent, SessionFacts};
use scrollback::session::{Session, Source};
use scrollback::view::{Conversation, Page};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::{Emit, Fields, read, shown};
use crate::support::reading;

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
        emit(Event::Facts(SessionFacts { session: Some(session), ..SessionFacts::default() }));
    } else if let Some(id) = step.rewind_to {
        emit(Event::CutFrom(id));
    } else if let Some(set) = step.set {
        for message in set.messages.into_iter().inspect(|_| emit(Event::ReplaceAll)).flatten().collect::<Vec<_>>() {
            link_message(message.get(), emit)?;
        }
    } else {
        link_message(text, emit)?;
    }
    Ok(())
}

pub(crate) fn link_message<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
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
