//! What we write as Codex: its place, its header, a line a record, and what comes back when it is read.

use crate::support::drafted::text_of;
use crate::support::pen::{self, Pen};
use crate::support::place::{SESSION, begin, beginning, host, writing};
use crate::support::said::{answer, call, result, results, said, title, todo, user};
use crate::support::{logs_of_all, messages, parts};
use proptest::prelude::*;
use scrollback::dialect::{self, Adoption, Dialect};
use scrollback::model::{
    Body, Compaction, Content, Context, Display, Error, IssueKind, Kind, Message, Outcome, Part, ReasoningPart,
    RecordId, Restore, Rewind, SessionId, Snapshot, SteeringPart, TitleSource, ToolPart, ToolResult, ToolState, Usage,
};
use scrollback::session::{Session, Source, State};
use scrollback::view::history::View;
use scrollback::write::{Delta, Fork, Store};
use serde_json::{Map, Value, json};

fn codex() -> &'static dyn Dialect {
    dialect::named("codex").unwrap()
}

fn wrote(bodies: &[Body]) -> Pen {
    pen::wrote(codex(), bodies)
}

fn called(name: &str, id: &str, input: Value) -> Part {
    call(name, id, ToolState::called(input))
}

fn gave(call_id: &str, output: impl Into<Value>, outcome: Outcome) -> Body {
    results([result(call_id, output, outcome)])
}

/// The bodies of the chain, as they are read back.
fn bodies(session: &Session) -> Vec<Body> {
    session.records().filter(|record| !record.is_side()).map(|record| record.body().unwrap()).collect()
}

fn sent(session: &Session) -> Vec<Value> {
    crate::support::sent(session, View::OpenAiResponses)
}

#[test]
fn the_file_lies_where_codex_looks_and_is_named_by_the_session() {
    let session = SessionId::from(SESSION);
    let place = (writing(codex()).place)(&beginning(&session)).unwrap();
    let expected = format!("sessions/2026/11/14/rollout-2026-11-14T23-59-58-{SESSION}.jsonl");
    assert_eq!(place.to_str(), Some(expected.as_str()));
    assert_eq!(codex().session_id_from_path(&place).as_deref(), Some(SESSION));
    for bad in ["", "x", "../../etc", "01a1e0f7bc877ea39152fdcfa4291034", "01a1e0f7-bc87-7ea3-9152-fdcfa429103g"] {
        let session = SessionId::from(bad);
        assert!((writing(codex()).place)(&beginning(&session)).is_err(), "{bad:?}");
    }
}

#[test]
fn the_header_has_what_codex_asks_for_and_a_fork_tells_its_origin() {
    let session = SessionId::from(SESSION);
    let header = (writing(codex()).header)(&beginning(&session)).remove(0).value.to_string();
    insta::assert_snapshot!(header, @r#"{"timestamp":"2026-11-14T23:59:58.250Z","type":"session_meta","payload":{"id":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.250Z","cwd":"/home/ada/engine/src","originator":"scrollback","model_provider":"openai","cli_version":"1.2.3","git":{"branch":"main"}}}"#);
    let from = SessionId::from("5a1e0f70-bc87-7ea3-9152-fdcfa4291034");
    let record = RecordId::from("at-0");
    let fork =
        scrollback::dialect::Beginning { forked_from: Some((&from, &record)), git_branch: None, ..beginning(&session) };
    let header = (writing(codex()).header)(&fork).remove(0).value;
    assert_eq!(header["payload"]["forked_from_id"], from.as_str());
    assert_eq!(header["payload"].get("git"), None);
    let read = Session::from_bytes(codex(), header.to_string().into_bytes(), &crate::support::reading());
    assert_eq!(
        (read.forked_from(), read.id().as_str(), read.cwd()),
        (Some(from.as_str()), SESSION, Some("/home/ada/engine/src"))
    );
}

#[test]
fn a_conversation_comes_back_as_it_was_said() {
    let input = json!({"path": "a.rs", "deep": {"list": [1, 2.5, null, "é\n\u{2028}"]}});
    let bodies_written = [
        user("What is in a.rs?"),
        Body::Assistant(said([
            Part::reasoning("I should look."),
            Part::text("Let me look."),
            called("read_file", "call_1", input.clone()),
            called("shell", "call_2", json!({"cmd": "false"})),
        ])),
        gave("call_1", "fn main() {}", Outcome::Done),
        gave("call_2", "oh", Outcome::Failed("oh".to_owned())),
        answer("Nothing much."),
        user("Thanks"),
        answer("Any time."),
    ];
    let written = wrote(&bodies_written);
    let session = written.session();
    let mut expected: Vec<Body> = bodies_written.to_vec();
    let Body::Assistant(split) = expected.remove(1) else { unreachable!() };
    split
        .parts
        .into_iter()
        .enumerate()
        .for_each(|(at, part)| expected.insert(1 + at, Body::Assistant(said([part]))));
    assert_eq!(bodies(&session), expected);
    assert!(written.lost().is_empty());
    assert_eq!(session.state(&session.branch(session.head().unwrap())), State::Clean);
    let seen = messages(&session);
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[1].parts.iter().filter(|part| matches!(part, Part::StepStart)).count(), 2);
    let outputs: Vec<Value> =
        sent(&session).into_iter().filter(|item| item["type"] == "function_call_output").collect();
    assert_eq!(outputs[0], json!({"type": "function_call_output", "call_id": "call_1", "output": "fn main() {}"}));
    assert_eq!(outputs[1], json!({"type": "function_call_output", "call_id": "call_2", "output": "oh"}));
}

#[test]
fn every_line_has_the_least_that_codex_asks_for_and_nothing_empty() {
    let usage = Usage { input: Some(10), output: Some(5), ..Usage::default() };
    let written = wrote(&[
        user("hi"),
        Body::Assistant(Content { usage: Some(usage), model: Some("m".to_owned()), ..said([Part::text("ho")]) }),
        title("Greetings", TitleSource::Manual),
    ]);
    for line in written.lines() {
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["timestamp", "type", "payload"]);
        assert!(!line.to_string().contains("null"), "{line}");
    }
    let without_header = written.text().lines().skip(1).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(without_header, @r#"
    {"timestamp":"2026-11-14T23:59:58.253Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
    {"timestamp":"2026-11-14T23:59:58.253Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
    {"timestamp":"2026-11-14T23:59:58.254Z","type":"turn_context","payload":{"model":"m","cwd":"/home/ada/engine/src"}}
    {"timestamp":"2026-11-14T23:59:58.254Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]}}
    {"timestamp":"2026-11-14T23:59:58.254Z","type":"event_msg","payload":{"type":"agent_message","message":"ho"}}
    {"timestamp":"2026-11-14T23:59:58.254Z","type":"token_usage_record","payload":{"thread_id":"5e551000-0000-4000-8000-000000000001","response_id":"00000000-0000-7000-8000-000000000001","usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}
    {"timestamp":"2026-11-14T23:59:58.255Z","type":"event_msg","payload":{"type":"thread_name_updated","thread_id":"5e551000-0000-4000-8000-000000000001","thread_name":"Greetings"}}
    "#);
}

#[test]
fn a_prompt_is_told_twice_once_for_the_model_and_once_for_the_list() {
    let image = "data:image/png;base64,AAAA";
    let written =
        wrote(&[Body::User(said([Part::text("Look:"), Part::file("image/png", image), Part::text("What is it?")]))]);
    let event = written.lines()[2]["payload"].clone();
    assert_eq!(event, json!({"type": "user_message", "message": "Look:\nWhat is it?"}));
    // What the agent put around it is for the model.
    let display = Some(Display::Typed { text: "And this?".to_owned() });
    let queued = Content { display, ..said([Part::text("Sent while you were working:\nAnd this?")]) };
    assert_eq!(wrote(&[Body::User(queued)]).lines()[2]["payload"]["message"], "And this?");
    let session = written.session();
    let expected = json!([
        {"type": "text", "text": "Look:"},
        {"type": "file", "mediaType": "image/png", "url": image},
        {"type": "text", "text": "What is it?"},
    ]);
    assert_eq!(parts(&session, 0), expected);
    assert_eq!(messages(&session).len(), 1);
    assert!(written.lost().is_empty());
}

#[test]
fn words_that_read_like_context_stay_a_prompt() {
    let text = "<environment_context>what is this?</environment_context>";
    let session = wrote(&[user(text)]).session();
    assert_eq!(bodies(&session), [user(text)]);
}

#[test]
fn what_was_told_to_the_model_again_stays_context() {
    let told = |text: &str, to_model| Body::Attachment(Content { to_model, ..said([Part::text(text)]) });
    let kept = [told("<skill>tides</skill>", true), told("The date is known.", true)];
    let written = wrote(&[kept[0].clone(), kept[1].clone(), told("for people", false)]);
    assert_eq!(bodies(&written.session()), kept);
    let texts: Vec<Value> =
        sent(&written.session()).into_iter().map(|item| item["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["<skill>tides</skill>", "The date is known."]);
    assert_eq!(
        (written.lost_of(0), written.lost_of(1), written.lost_of(2)),
        (vec![], vec![], vec!["refused context".to_owned()])
    );
}

#[test]
fn results_keep_how_the_tool_ended() {
    let denied = Outcome::Denied(Some("not today".to_owned()));
    let failed = |why: &str| Outcome::Failed(why.to_owned());
    let pieces =
        json!([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,AA"}]);
    let foreign = json!([{"type": "text", "text": "a"}, {"type": "image", "mimeType": "image/png", "data": "AA"}]);
    for (output, outcome, read_output, read_outcome, lost) in [
        (json!("plain"), Outcome::Done, json!("plain"), Outcome::Done, ""),
        (json!(""), Outcome::Done, json!(""), Outcome::Done, ""),
        (Value::Null, Outcome::Done, json!(""), Outcome::Done, "synthesised tool result"),
        (json!({"a": 1}), Outcome::Done, json!(r#"{"a":1}"#), Outcome::Done, "renamed tool result"),
        (pieces.clone(), Outcome::Done, pieces.clone(), Outcome::Done, ""),
        (foreign, Outcome::Done, pieces.clone(), Outcome::Done, "renamed tool result"),
        (json!([{"type": "x"}]), Outcome::Done, json!(r#"[{"type":"x"}]"#), Outcome::Done, "renamed tool result"),
        // Texts that tell of an end that was none.
        (json!("Exit code: 1\nOutput:\nx"), Outcome::Done, json!("Exit code: 1\nOutput:\nx"), Outcome::Done, ""),
        (
            json!(r#"{"output":"x","metadata":{"exit_code":2}}"#),
            Outcome::Done,
            json!(r#"{"output":"x","metadata":{"exit_code":2}}"#),
            Outcome::Done,
            "",
        ),
        (
            json!("Exit code: 1\nOutput:\nx"),
            failed("exit code 1: x"),
            json!("Exit code: 1\nOutput:\nx"),
            failed("exit code 1: x"),
            "",
        ),
        // No exit code is made up, and none is added to the text.
        (json!("x"), failed("exit code 7: x"), json!("x"), failed("x"), "dropped failure reason"),
        (json!("no such file"), failed("no such file"), json!("no such file"), failed("no such file"), ""),
        (Value::Null, failed("no such file"), json!("no such file"), failed("no such file"), ""),
        (json!("half"), failed("timed out"), json!("half"), failed("half"), "dropped failure reason"),
        (Value::Null, denied, json!("not today"), failed("not today"), "renamed denial"),
        (
            Value::Null,
            Outcome::Denied(None),
            json!("[the call was not allowed]"),
            failed("[the call was not allowed]"),
            "renamed denial",
        ),
    ] {
        let call = Body::Assistant(said([called("t", "c1", json!({}))]));
        let written = wrote(&[user("go"), call, gave("c1", output.clone(), outcome.clone())]);
        let read = bodies(&written.session());
        assert_eq!(read[2], gave("c1", read_output, read_outcome), "{output} {outcome:?}");
        assert_eq!(written.lost_of(2).join(", "), lost, "{output} {outcome:?}");
        let item = written.lines().pop().unwrap()["payload"]["output"].clone();
        assert!(item.is_string() || item.is_array(), "Codex takes a text or a list: {item}");
    }
}

#[test]
fn a_call_that_carries_its_result_becomes_both() {
    let states = [
        ToolState::done(json!({"a": 1}), "ok"),
        ToolState::failed(json!({"a": 1}), "broken"),
        ToolState::OutputError {
            input: None,
            raw_input: Some("{\"a\":".into()),
            error_text: "bad".to_owned(),
            approval: None,
        },
        ToolState::InputStreaming { input: None },
        ToolState::called("free text"),
        ToolState::called(Value::Null),
    ];
    let calls = states
        .into_iter()
        .enumerate()
        .map(|(at, state)| ToolPart::dynamic("t", format!("c{at}"), state).into());
    let written = wrote(&[user("go"), Body::Assistant(said(calls))]);
    let read = bodies(&written.session());
    let inputs: Vec<Value> = read
        .iter()
        .flat_map(|body| &body.content().unwrap().parts)
        .filter_map(|part| match part {
            Part::Tool(call) => call.input().cloned(),
            _ => None,
        })
        .collect();
    assert_eq!(inputs, [json!({"a": 1}), json!({"a": 1}), json!("{\"a\":"), json!({}), json!("free text"), json!({})]);
    let results = read.iter().filter(|body| matches!(body, Body::ToolResult(_))).count();
    assert_eq!(results, 3);
    assert!(written.lost_of(1).contains(&"synthesised tool input".to_owned()));
    assert!(written.lost_of(1).contains(&"renamed call state".to_owned()));
}

#[test]
fn results_that_stand_in_the_answer_or_beside_the_next_words_are_written_once() {
    let results = |body: Body| body.content().unwrap().results.clone();
    let calls = said([Part::text("Both."), called("t", "c1", json!({})), called("t", "c2", json!({}))]);
    let answered = Content { results: results(gave("c1", "one", Outcome::Done)), ..calls };
    let beside = Content { results: results(gave("c2", "two", Outcome::Done)), ..said([Part::text("And be quick.")]) };
    let written = wrote(&[user("go"), Body::Assistant(answered), Body::User(beside)]);
    assert!(written.lost().is_empty());
    let kinds: Vec<Kind> =
        written.session().records().filter(|record| !record.is_side()).map(|record| record.kind()).collect();
    let expected =
        [Kind::User, Kind::Assistant, Kind::Assistant, Kind::Assistant, Kind::ToolResult, Kind::ToolResult, Kind::User];
    assert_eq!(kinds, expected);
}

#[test]
fn names_and_ids_that_the_api_refuses_are_renamed_alike_in_call_and_result() {
    let long = "x".repeat(80);
    let call = Body::Assistant(said([called("mcp server.tool", &long, json!({}))]));
    let written = wrote(&[user("go"), call, gave(&long, "ok", Outcome::Done)]);
    assert_eq!(written.lost_of(1), ["renamed call id", "renamed tool name"]);
    assert_eq!(written.lost_of(2), ["renamed call id"]);
    let session = written.session();
    let sent = sent(&session);
    assert_eq!((&sent[1]["name"], &sent[1]["call_id"]), (&json!("mcp_server_tool"), &sent[2]["call_id"]));
    assert_eq!(sent[2]["output"], "ok");
}

#[test]
fn thoughts_keep_what_the_provider_sealed() {
    let openai = json!({"openai": {"reasoningEncryptedContent": "SEALED", "itemId": "rs_1"}});
    let Value::Object(metadata) = openai else { unreachable!() };
    let sealed = Part::Reasoning(ReasoningPart { provider_metadata: Some(metadata), ..ReasoningPart::default() });
    let written = wrote(&[user("go"), Body::Assistant(said([sealed])), answer("done")]);
    assert_eq!(
        written.lines()[3]["payload"],
        json!({"type": "reasoning", "summary": [], "encrypted_content": "SEALED"})
    );
    assert_eq!(written.lost_of(1), ["dropped metadata"]);
    assert_eq!(sent(&written.session())[1]["encrypted_content"], "SEALED");
}

#[test]
fn usage_counts_once_however_often_an_answer_tells_it() {
    let usage =
        Usage { input: Some(800), output: Some(50), cache_read: Some(200), cache_write: Some(7), reasoning: Some(9) };
    let told = |parts: &[&str], usage| {
        Body::Assistant(Content { usage: Some(usage), ..said(parts.iter().map(|text| Part::text(*text))) })
    };
    let again = Usage { output: Some(60), ..usage };
    let written = wrote(&[
        user("a"),
        told(&["one", "two"], usage),
        user("b"),
        told(&["three"], again),
        told(&[], Usage::default()),
    ]);
    let session = written.session();
    let mut sum = usage;
    sum.add(again);
    assert_eq!(session.usage(), Some(sum));
    let told = written.lines().into_iter().find(|line| line["type"] == "token_usage_record").unwrap();
    let tokens = &told["payload"]["usage"];
    assert_eq!(
        *tokens,
        json!({"input_tokens": 1007, "cached_input_tokens": 200, "cache_write_input_tokens": 7, "output_tokens": 50, "reasoning_output_tokens": 9, "total_tokens": 1057})
    );
}

#[test]
fn what_an_older_version_counted_is_counted_still_when_we_go_on() {
    let count = |total: u64, last: u64| {
        let tokens = |count| json!({"input_tokens": count, "output_tokens": 0});
        let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last)});
        json!({"timestamp": "2026-11-14T23:00:00Z", "type": "event_msg", "payload": {"type": "token_count", "info": info}})
    };
    let usage = Usage { input: Some(10), output: Some(0), ..Usage::default() };
    let ours = wrote(&[user("b"), Body::Assistant(Content { usage: Some(usage), ..said([Part::text("ok")]) })]).text();
    let (header, rest) = ours.split_once('\n').unwrap();
    let text = format!("{header}\n{}\n{}\n{rest}{}\n", count(100, 100), count(150, 50), count(170, 20));
    let session = Session::from_bytes(codex(), text.into_bytes(), &crate::support::reading());
    // 150 before, 10 of ours, and what the last total has beyond them.
    assert_eq!(session.usage().and_then(|usage| usage.input), Some(170));
}

#[test]
fn an_answer_is_its_models() {
    let by = |model: &str, text: &str| {
        Body::Assistant(Content { model: Some(model.to_owned()), ..said([Part::text(text)]) })
    };
    let session = wrote(&[user("a"), by("m-1", "one"), user("b"), by("m-2", "two")]).session();
    assert_eq!(session.models(), ["m-1", "m-2"]);
    let model = |message: &Message| message.metadata.as_ref().and_then(|all| all.get("model").cloned());
    let models: Vec<Option<Value>> = messages(&session).iter().map(model).collect();
    assert_eq!(models, [None, Some(json!("m-1")), None, Some(json!("m-2"))]);
    // One that names none is read as the one's before it, and that is told.
    let of_nobody = || answer([Part::text("three"), Part::text("four")]);
    let pen = wrote(&[user("a"), of_nobody(), by("m-1", "one"), user("b"), of_nobody()]);
    assert_eq!(pen.lost_of(1), Vec::<String>::new());
    assert_eq!(pen.lost_of(4), ["synthesised model"]);
}

#[test]
fn a_compaction_puts_its_summary_in_the_place_of_what_came_before() {
    let summed = |compaction| {
        let written = wrote(&[user("one"), answer("two"), Body::Compaction(compaction), user("three")]);
        let session = written.session();
        let texts: Vec<String> =
            sent(&session).iter().map(|item| item["content"][0]["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(session.records().filter(|record| record.kind() == Kind::Compaction).count(), 1);
        (texts, written.lost_of(2))
    };
    let plain = Compaction { summary: Some("They counted.".to_owned()), cuts: true, ..Compaction::default() };
    let (texts, lost) = summed(plain.clone());
    assert_eq!((texts, lost), (vec!["They counted.".to_owned(), "three".to_owned()], vec![]));
    let told = Compaction {
        tokens_before: Some(9),
        preserved: vec![RecordId::from("x")],
        keeps_prompts: true,
        ..plain.clone()
    };
    let (texts, lost) = summed(told);
    assert_eq!(texts[0], "one");
    assert_eq!(texts.last().unwrap(), "three");
    assert_eq!(lost, ["dropped compaction details", "dropped kept records"]);
    let replaced = Compaction { replacement: Some(vec![user("kept"), answer("said")]), ..plain.clone() };
    let (texts, lost) = summed(replaced);
    assert_eq!((texts, lost), (vec!["kept".to_owned(), "said".to_owned(), "three".to_owned()], vec![]));
    let nothing = wrote(&[Body::Compaction(Compaction { summary: None, ..plain })]);
    assert_eq!((nothing.lines().len(), nothing.lost_of(0)), (1, vec!["refused compaction".to_owned()]));
}

#[test]
fn titles_notices_and_failures_have_their_events() {
    let notice = |text: &str, error: Option<&str>| {
        Body::System(Content { error: error.map(str::to_owned), ..said([Part::text(text)]) })
    };
    let written = wrote(&[
        title("Engines", TitleSource::Manual),
        title("Engines", TitleSource::Automatic),
        notice("switched", None),
        notice("overloaded", Some("api_error")),
        Body::System(said([])),
        user("go on"),
    ]);
    let session = written.session();
    assert_eq!(session.title().map(|title| title.text.as_str()), Some("Engines"));
    let events: Vec<String> = written.lines()[1..]
        .iter()
        .map(|line| line["payload"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        events,
        ["thread_name_updated", "thread_name_updated", "warning", "task_complete", "message", "user_message"]
    );
    let lost: Vec<String> = (0..5).map(|body| written.lost_of(body).join(", ")).collect();
    assert_eq!(lost, ["", "renamed title source", "renamed notice", "renamed error kind", "refused notice"]);
}

/// Codex does not go on with a file whose lines are numbered when its last one is not.
#[test]
fn in_a_file_with_numbered_lines_the_numbers_go_on() {
    let mut pen = wrote(&[user("one"), answer("two")]);
    pen.recorder.close().unwrap();
    let number = |(at, mut line): (usize, Value)| {
        line["ordinal"] = at.into();
        format!("{line}\n")
    };
    let numbered: String = pen.lines().into_iter().enumerate().map(number).collect();
    std::fs::write(pen.path(), &numbered).unwrap();
    pen.resume();
    pen.say(user("three"));
    let head = pen.say(Body::Assistant(Content { model: Some("m".to_owned()), ..said([Part::text("four")]) }));
    pen.resume();
    pen.say(title("Numbers", TitleSource::Manual));
    assert!(pen.text().starts_with(&numbered));
    let ordinals: Vec<u64> = pen.lines().iter().map(|line| line["ordinal"].as_u64().unwrap()).collect();
    assert_eq!(ordinals, (0..ordinals.len() as u64).collect::<Vec<_>>());
    assert_eq!((pen.head(), pen.session().issues().len()), (head.clone(), 0));
    assert!(head.as_str().starts_with("ord-"), "{head}");
    insta::assert_snapshot!(pen.lines().last().unwrap(), @r#"{"timestamp":"2026-11-14T23:59:58.265Z","ordinal":10,"type":"event_msg","payload":{"type":"thread_name_updated","thread_id":"5e551000-0000-4000-8000-000000000001","thread_name":"Numbers"}}"#);
    // A file without numbers stays without.
    let mut plain = wrote(&[user("one")]);
    plain.resume();
    plain.say(answer("two"));
    assert!(plain.lines().iter().all(|line| line.get("ordinal").is_none()));
}

#[test]
fn what_has_no_place_is_told() {
    let everything = Content {
        todos: Some(vec![todo("x")]),
        sender: Some("alice@muc".to_owned()),
        context: Context { cwd: Some("/x".to_owned()), ..Context::default() },
        metadata: Map::from_iter([("a".to_owned(), json!(1))]),
        ..said([
            Part::text("hi"),
            Part::text(""),
            Part::file("application/pdf", "https://x/y.pdf"),
            Part::data("attachment", json!({"filename": "f"})),
            Part::Other(json!(1)),
        ])
    };
    let steering = SteeringPart { id: "s".to_owned(), parts: vec![Part::text("faster")], extra: Map::new() };
    let written = wrote(&[
        Body::User(everything),
        Body::Rewind(Rewind::default()),
        Body::Restore(Restore::default()),
        Body::Snapshot(Snapshot::default()),
        Body::Other(json!({"type": "x"})),
        Body::Header(Map::new()),
        Body::Assistant(said([
            Part::Steering(steering),
            Part::file("image/png", "data:image/png;base64,AA"),
            Part::data("x", 1),
        ])),
        Body::User(said([])),
    ]);
    let lost: Vec<String> = (0..8).map(|body| written.lost_of(body).join(", ")).collect();
    assert_eq!(
        lost,
        [
            "dropped text, dropped file, renamed attachment, dropped unknown part, renamed sender, dropped environment, dropped platform, dropped todos, dropped metadata",
            "refused rewind",
            "refused restore",
            "refused snapshot",
            "refused unknown record",
            "refused header",
            "renamed steering message, dropped image, dropped data part",
            "refused empty message",
        ]
    );
    let texts: Vec<Value> = messages(&written.session())
        .iter()
        .map(|message| serde_json::to_value(&message.parts).unwrap()[0]["text"].clone())
        .collect();
    assert_eq!(texts, ["alice@muc: hi", "faster"]);
}

#[test]
fn a_fork_is_a_session_of_its_own_that_tells_its_origin() {
    let calls = Body::Assistant(said([called("t", "c1", json!({}))]));
    let written = wrote(&[user("one"), calls, gave("c1", "ok", Outcome::Done), answer("two"), user("three")]);
    let session = written.session();
    let fresh = "01a1e0f7-bc87-7ea3-9152-000000000000";
    let head = written.record(3).as_str();
    let forked = written.store.fork(&session, Fork { head: Some(head), id: Some(fresh) }).unwrap();
    let fork = written.store.load(fresh).unwrap();
    assert_eq!((fork.forked_from(), forked.records), (Some(SESSION), 7), "with its header and two events");
    assert_eq!(bodies(&fork), bodies(&session)[..4]);
    assert!(fork.issues().is_empty(), "{:?}", fork.issues());
    // Codex lists it by its prompt.
    let copy = std::fs::read_to_string(forked.path).unwrap();
    assert_eq!(copy.matches("\"user_message\"").count(), 1, "{copy}");
}

#[test]
fn a_fork_leaves_behind_what_was_taken_back() {
    let written = wrote(&[user("one"), answer("two"), user("three"), answer("four")]);
    let back = json!({"timestamp": "2026-11-14T23:59:59Z", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}});
    std::fs::write(written.path(), format!("{}{back}\n", written.text())).unwrap();
    let mut recorder = written.store.resume(SESSION).unwrap();
    recorder.user("five").unwrap();
    recorder.close().unwrap();
    let fresh = "01a1e0f7-bc87-7ea3-9152-000000000000";
    written.store.fork(&written.session(), Fork { head: None, id: Some(fresh) }).unwrap();
    assert_eq!(bodies(&written.store.load(fresh).unwrap()), [user("one"), answer("two"), user("five")]);
}

/// The answer that became the summary is beside the conversation only as long as the compaction follows it.
#[test]
fn a_fork_can_end_before_any_compaction() {
    let mut forks = 0;
    for (dialect, path) in crate::support::logs_of("codex") {
        let session = Session::open(&Source::file(dialect, &path), &crate::support::reading()).unwrap();
        let records: Vec<_> = session.head().map(|head| session.branch(head).records).unwrap_or_default();
        for (at, _) in records.iter().enumerate().filter(|(_, record)| record.kind() == Kind::Compaction) {
            let Some(last) = at.checked_sub(1).map(|before| records[before]) else { continue };
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(dialect, folder.path(), host()).unwrap();
            let forked = store.fork(&session, Fork { head: Some(&last.id()), id: None });
            let forked = forked.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let fork = Session::open(&Source::file(dialect, &forked.path), &crate::support::reading()).unwrap();
            assert_eq!(fork.branch(fork.head().unwrap()).records.len(), at, "{}", path.display());
            forks += 1;
        }
    }
    assert!(forks > 3, "{forks}");
}

#[test]
fn whatever_codex_wrote_is_forked_whole() {
    let mut forks = 0;
    for (dialect, path) in crate::support::logs_of("codex") {
        let session = Session::open(&Source::file(dialect, &path), &crate::support::reading()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(dialect, folder.path(), host()).unwrap();
        let forked = store.fork(&session, Fork { head: None, id: None });
        if let Err(Error::EmptyBranch { .. }) = forked {
            assert_eq!(crate::support::messages(&session), [], "{}", path.display());
            continue;
        }
        // A file of nothing but events has a head and no conversation.
        if session.head().is_none_or(|head| head.is_side()) {
            assert!(matches!(forked, Err(Error::CannotContinue { .. })), "{}", path.display());
            continue;
        }
        let forked = forked.unwrap();
        let fork = store.load(forked.session.as_str()).unwrap();
        let said = |session: &Session| -> Vec<Body> {
            let records = session.branch(session.head().unwrap()).records.into_iter();
            records
                .filter(|record| record.kind() != Kind::Rewind)
                .map(|record| record.body().unwrap())
                .collect()
        };
        assert_eq!(said(&fork), said(&session), "{}", path.display());
        forks += 1;
    }
    assert!(forks > 20, "{forks}");
}

#[test]
fn a_line_that_a_fork_takes_over_tells_the_fork() {
    let (session, from) = (SessionId::from(SESSION), SessionId::from("5a1e0f70-bc87-7ea3-9152-fdcfa4291034"));
    let record = RecordId::from("ord-3");
    let adopt = |line: Value| {
        writing(codex()).adopt.unwrap()(line, &Adoption { session: &session, parent: None, from: (&from, &record) })
    };
    let item = json!({"timestamp": "t", "ordinal": 3, "type": "response_item", "payload": {"type": "message", "role": "user", "content": "x", "new": {"a": 1}}});
    assert_eq!(adopt(item.clone()), item);
    let meta = json!({"timestamp": "t", "type": "session_meta", "payload": {"id": from.as_str(), "session_id": from.as_str(), "cwd": "/x", "history_mode": "paginated", "history_base": {}, "model_provider": "p"}});
    assert_eq!(
        adopt(meta)["payload"],
        json!({"id": SESSION, "session_id": SESSION, "cwd": "/x", "model_provider": "p", "forked_from_id": from.as_str()})
    );
    let usage = json!({"type": "token_usage_record", "payload": {"thread_id": from.as_str(), "usage": {}}});
    assert_eq!(adopt(usage)["payload"]["thread_id"], SESSION);
    assert_eq!(adopt(json!("odd")), json!("odd"));
}

#[test]
fn an_answer_that_comes_in_pieces_is_an_item_a_part_and_its_cost_counts_once() {
    let written = wrote(&[user("go")]);
    let mut recorder = written.store.resume(SESSION).unwrap();
    let usage = Usage { input: Some(7), output: Some(3), ..Usage::default() };
    let thoughts =
        [Delta::Model("m-1".to_owned()), Delta::Reasoning("Let ".to_owned()), Delta::Reasoning("me see".to_owned())];
    let words = [Delta::Text("It is ".to_owned()), Delta::Text("four.".to_owned())];
    for delta in thoughts.into_iter().chain(words) {
        recorder.delta(delta).unwrap();
    }
    recorder.delta(Delta::Part(called("t", "c1", json!({})))).unwrap();
    recorder.finish_answer(Some(usage)).unwrap();
    recorder.tool_results(gave("c1", "ok", Outcome::Done).content().unwrap().clone()).unwrap();
    recorder.assistant("Four.").unwrap();
    recorder.usage(usage).unwrap();
    assert!(matches!(recorder.todos(vec![todo("x")]), Err(Error::CannotStore { what, .. }) if what == "todos"));
    recorder.close().unwrap();
    let session = written.session();
    let read = bodies(&session);
    let texts = [Part::reasoning("Let me see"), Part::text("It is four."), called("t", "c1", json!({}))];
    assert_eq!(read[1..4], texts.map(|part| Body::Assistant(said([part]))));
    assert_eq!((read.len(), messages(&session).len()), (6, 2));
    assert_eq!(session.usage(), Some(Usage { input: Some(14), output: Some(6), ..Usage::default() }));
    assert_eq!(session.models(), ["m-1"]);
}

#[test]
fn a_session_is_gone_on_with_at_its_end_only() {
    let written = wrote(&[user("one"), answer("two"), user("three")]);
    let session = written.session();
    let named: Vec<String> = [0, 1, 2].map(|body| written.record(body).to_string()).into();
    let read: Vec<String> = session
        .records()
        .filter(|record| !record.is_side())
        .map(|record| record.id().into_owned())
        .collect();
    assert_eq!(named, read);
    let resume = |record: &str| written.store.resume_at(SESSION, record);
    assert!(matches!(resume(&named[0]), Err(Error::CannotContinue { .. })));
    let mut recorder = resume(&named[2]).unwrap();
    recorder.assistant("four").unwrap();
    recorder.close().unwrap();
    assert_eq!(messages(&written.session()).len(), 4);
    assert!(matches!(begin(&written.store), Err(Error::Exists(_))));
}

/// Texts that Codex's own tools and context are made of, so that ours may be taken for them.
fn tricky() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Exit code: ",
        "Wall time: ",
        "Chunk ID: ",
        "Process exited with code ",
        "Output:",
        "0",
        "3",
        " seconds",
        "\n",
        "\r",
        "{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}",
        "{\"agent_id\":\"a\",\"nickname\":null}",
        "{",
        "}",
        "\"",
        "<environment_context>",
        "</environment_context>",
        "<skill>",
        "</skill>",
        "exit code 2: ",
        "\u{0}",
        "\u{2028}",
        "é",
    ]);
    prop_oneof![prop::collection::vec(words, 0..8).prop_map(|words| words.concat()), any::<String>()]
}

proptest! {
    // Each case is a file.
    #![proptest_config(ProptestConfig { cases: crate::support::cases(64, 5_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words_come_back_as_they_were(asked in tricky(), told in tricky(), given in tricky(), why in tricky()) {
        prop_assume!(!asked.is_empty() && !told.is_empty());
        let calls = Body::Assistant(said([called("t", "c1", json!({"a": told.as_str()})), called("t", "c2", Value::from(asked.as_str()))]));
        let bodies_written = [user(asked.as_str()), answer(told.as_str()), calls, gave("c1", given.as_str(), Outcome::Done), gave("c2", given.as_str(), Outcome::Failed(why))];
        let read = bodies(&wrote(&bodies_written).session());
        prop_assert_eq!(&read[..2], &bodies_written[..2]);
        let inputs: Vec<Option<&Value>> = read[2..4].iter().map(|body| match &body.content().unwrap().parts[0] {
            Part::Tool(call) => call.input(),
            _ => None,
        }).collect();
        prop_assert_eq!(inputs, [Some(&json!({"a": told.as_str()})), Some(&Value::from(asked.as_str()))]);
        let results: Vec<&ToolResult> = read[4..].iter().map(|body| &body.content().unwrap().results[0]).collect();
        prop_assert_eq!((&results[0].output, &results[0].outcome), (&Value::from(given.as_str()), &Outcome::Done));
        prop_assert!(matches!(results[1].outcome, Outcome::Failed(_)));
        if !given.trim().is_empty() {
            prop_assert_eq!(&results[1].output, &Value::from(given.as_str()));
        }
    }
}

/// What is said, called and given back on the newest branch, in no order: a result may stand elsewhere in another format.
fn gist(session: &Session) -> Vec<String> {
    let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
    let mut gist: Vec<String> = records.iter().flat_map(|record| gist_of(&record.body().unwrap())).collect();
    gist.sort();
    gist
}

fn gist_of(body: &Body) -> Vec<String> {
    let (who, said) = match body {
        Body::User(said) => ("user", said),
        Body::Assistant(said) => ("model", said),
        Body::ToolResult(said) => ("tool", said),
        _ => return Vec::new(),
    };
    let ended = |done: bool| format!("result {done}");
    let part = |part: &Part| match part {
        Part::Text(text) if who != "tool" && !text.text.is_empty() => vec![format!("{who}: {}", text.text)],
        Part::Data(data) if who == "user" && ["attachment", "reaction"].contains(&&*data.kind) => {
            vec![format!("user: {}", data.data)]
        }
        // What is no picture is told by its name.
        Part::File(file) if who == "user" && !file.media_type.starts_with("image") => match &file.filename {
            Some(name) => vec![format!("user: [file {name} ({})]", file.media_type)],
            None => vec![format!("user: [file ({})]", file.media_type)],
        },
        Part::Steering(steering) => gist_of(&Body::User(Content::from(steering.parts.clone()))),
        Part::Tool(call) => {
            let raw = match &call.state {
                ToolState::OutputError { raw_input, .. } => raw_input.clone(),
                _ => None,
            };
            let input = call.input().cloned().or(raw).filter(|input| !input.is_null());
            let called = format!("call {}", input.unwrap_or_else(|| json!({})));
            let is_last = !matches!(call.state, ToolState::OutputAvailable { preliminary: Some(true), .. });
            let result =
                (!call.is_open() && is_last).then(|| ended(matches!(call.state, ToolState::OutputAvailable { .. })));
            [called].into_iter().chain(result).collect()
        }
        _ => Vec::new(),
    };
    let mut parts: Vec<String> = said.parts.iter().flat_map(part).collect();
    let speaker = said.sender.as_deref().filter(|sender| who == "user" && sender.ends_with("@muc"));
    if let (Some(speaker), Some(first)) = (speaker, parts.first_mut()) {
        first.insert_str("user: ".len(), &format!("{}: ", speaker.replace(char::is_control, "\u{fffd}")));
    }
    let results = said.results.iter().filter(|result| !result.preliminary);
    parts.into_iter().chain(results.map(|result| ended(result.outcome == Outcome::Done))).collect()
}

#[test]
fn sessions_of_every_agent_can_be_written_and_say_the_same() {
    let mut seen = 0;
    for (dialect, path) in logs_of_all() {
        let session = Session::open(&Source::file(dialect, &path), &crate::support::reading()).unwrap();
        let Some(text) = text_of(codex(), &session) else { continue };
        let read = Session::from_bytes(codex(), text.clone().into_bytes(), &crate::support::reading());
        assert_eq!(gist(&read), gist(&session), "{}\n{text}", path.display());
        let known = [IssueKind::UnansweredCall, IssueKind::OrphanResult, IssueKind::DuplicateResult];
        let wrong = read.issues().iter().find(|issue| !known.contains(&issue.kind));
        assert!(wrong.is_none(), "{} {wrong:?}", path.display());
        seen += 1;
    }
    assert!(seen > 300, "the corpus is gone: {seen}");
}
