//! A tree of blocks: several records are one answer, an id written again is its new state, the agent names its leaf and
//! closes small gaps itself.

use scrollback::dialect::{Event, Format, Key, Parent};
use scrollback::model::Usage;
use scrollback::view::Conversation;

use crate::driver::{Emit, Fields, read, shown};
use crate::support::describe;

dialect!(Blocks, "*.jsonl", Format::Lines, LastWins, Some(5000), link_block);

fn link_block<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    let block: Fields<'a> = serde_json::from_str(text)?;
    if block.kind.as_deref() == Some("leaf") {
        block.id.into_iter().for_each(|leaf| emit(Event::Head(leaf)));
        return Ok(());
    }
    emit(block.link(text, block.parent.clone().map_or(Parent::Root, Parent::Id)));
    for key in [block.group.clone().map(Key::Group), block.call.map(Key::Call), block.answers.map(Key::Result)] {
        key.into_iter().for_each(|key| emit(Event::Key(key)));
    }
    if let Some(output) = block.tokens {
        let usage = Usage { output: Some(output), ..Usage::default() };
        emit(Event::Usage { request: block.group, usage, model: None, cost: None });
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
    let log = r#"
{"id":"q","kind":"user","text":"Hello"}
{"id":"a","parent":"q","kind":"assistant","text":"One"}
{"id":"b","parent":"q","kind":"assistant","text":"Two"}
"#;
    let head = |more: &str| {
        let session = read(&Blocks, &format!("{log}{more}"));
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
    let log = |second: &str| {
        let lines = format!(
            r#"
{{"id":"q","kind":"user","at":"2026-11-15T10:00:00Z","text":"Hello"}}
{{"id":"a","parent":"q","kind":"assistant","at":"2026-11-15T10:00:01Z","text":"Hi"}}
{{"id":"c","parent":"lost","kind":"user","at":"{second}","text":"Still there?"}}
"#
        );
        describe(&read(&Blocks, &lines))
    };
    insta::assert_snapshot!(log("2026-11-15T10:00:06Z"), @"
    head c; heads c main; branch q a c; gaps c misses lost; state degraded; messages 3; issues bridged-gap 3.
    ");
    insta::assert_snapshot!(log("2026-11-15T10:00:06.001Z"), @"
    head c; heads c main, a island; branch c; gaps c misses lost; state degraded; messages 1; issues orphan 3.
    ");
    insta::assert_snapshot!(log("once"), @"
    head c; heads c main, a island; branch c; gaps c misses lost; state degraded; messages 1; issues bad-time 3, orphan 3.
    ");
}
