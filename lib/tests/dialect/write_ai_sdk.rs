//! UIMessages, written: every SDK takes them, and reading them gives the messages that were meant.

use std::path::Path;

use crate::support::bodies;
use crate::support::drafted::{at, drafted, plain};
use crate::support::place::{CWD, SESSION, begin, beginning, store, writing};
use crate::support::said::{self, call, said, title, todo};
use proptest::prelude::*;
use scrollback::dialect::{self, Adoption, Dialect};
use scrollback::model::{
    Approval, Body, Compaction, Content, Context, Message, Outcome, Part, Rewind, Role, Sdk, SessionId, Thinking,
    TitleSource, ToolResult, ToolState, Usage, takes,
};
use scrollback::write::Policy;
use serde_json::{Value, json};

fn ai_sdk() -> &'static dyn Dialect {
    dialect::named("ai-sdk").unwrap()
}

/// A prompt with a picture, and a turn of two responses with calls side by side that ended in every way.
fn talk() -> Vec<Body> {
    let approval = Approval { id: "ask".into(), approved: Some(false), ..Approval::default() };
    let refused = ToolState::OutputDenied { input: json!({"path": "/etc"}), approval };
    let turn = said(vec![
        Part::reasoning("They want a list."),
        Part::text("Let me look."),
        call("Read", "c1", ToolState::done(json!({"path": "a.el"}), json!("(provide 'a)"))),
        call("Bash", "c2", ToolState::failed(json!({"command": "ls x"}), "no such file")),
        call("Write", "c3", refused),
        Part::StepStart,
        Part::text("There is one file."),
    ]);
    let usage = Usage { input: Some(10), output: Some(4), cache_read: Some(7), reasoning: Some(2), ..Usage::default() };
    let thinking = Thinking { level: Some("high".into()), disabled: false, triggers: Vec::new() };
    let context = Context { cwd: Some("/w".into()), git_branch: Some("main".into()), ..Context::default() };
    let asked = said(vec![Part::text("What is there?"), Part::file("image/png", "data:image/png;base64,AAAA")]);
    vec![
        Body::User(Content {
            context,
            todos: Some(vec![todo("x")]),
            thinking: Some(thinking),
            sender: Some("ada".into()),
            ..asked
        }),
        Body::Assistant(Content { model: Some("m-1".into()), usage: Some(usage), ..turn }),
    ]
}

#[test]
fn a_turn_is_one_message_and_nothing_of_it_is_lost() {
    let made = drafted(ai_sdk(), &talk());
    let lines: Vec<String> = made.lines().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"id":"r0","role":"user","metadata":{"timestamp":"2026-11-15T10:00:00.25Z","cwd":"/w","gitBranch":"main","todos":[{"content":"x","status":"pending"}],"thinking":{"level":"high","disabled":false,"triggers":[]},"sender":"ada"},"parts":[{"type":"text","text":"What is there?"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}]}
    {"id":"r1","role":"assistant","metadata":{"timestamp":"2026-11-15T10:00:01.25Z","model":"m-1","usage":{"input":10,"output":4,"cacheRead":7,"reasoning":2}},"parts":[{"type":"step-start"},{"type":"reasoning","text":"They want a list.","state":"done"},{"type":"text","text":"Let me look.","state":"done"},{"type":"dynamic-tool","toolName":"Read","toolCallId":"c1","state":"output-available","input":{"path":"a.el"},"output":"(provide 'a)"},{"type":"dynamic-tool","toolName":"Bash","toolCallId":"c2","state":"output-error","input":{"command":"ls x"},"errorText":"no such file"},{"type":"dynamic-tool","toolName":"Write","toolCallId":"c3","state":"output-denied","input":{"path":"/etc"},"approval":{"id":"ask","approved":false}},{"type":"step-start"},{"type":"text","text":"There is one file.","state":"done"}]}
    "#);
    assert!(made.lost_of(0).is_empty() && made.lost_of(1).is_empty());
    assert_eq!((made.session.cwd(), made.session.git_branch()), (Some("/w"), Some("main")));
    for (number, (body, expected)) in made.bodies().iter().zip(talk()).enumerate() {
        let (said, expected) = (body.content().unwrap(), expected.content().unwrap().clone());
        assert_eq!(plain(&said.parts), plain(&expected.parts), "{number}");
        let facts = |said: &Content| {
            (
                said.model.clone(),
                said.usage,
                said.context.clone(),
                said.todos.clone(),
                said.thinking.clone(),
                said.sender.clone(),
            )
        };
        assert_eq!(facts(said), facts(&expected), "{number}");
    }
}

/// Only SDK 5 knows of no call that was refused.
#[test]
fn a_usual_turn_is_one_for_every_sdk() {
    let made = drafted(ai_sdk(), &talk());
    for line in made.lines() {
        for sdk in [Sdk::V6, Sdk::V7] {
            assert_eq!(takes(line, sdk), Ok(()));
        }
        let mut usual = line.clone();
        usual["parts"].as_array_mut().unwrap().retain(|part| part["state"] != "output-denied");
        assert_eq!(takes(&usual, Sdk::V5), Ok(()));
    }
}

/// One body: the messages it becomes, without their times, and what is lost.
fn check(body: Body) -> String {
    let made = drafted(ai_sdk(), &[body]);
    let line = |line: &&Value| {
        let mut line = (*line).clone();
        assert_eq!(line["metadata"].as_object_mut().unwrap().shift_remove("timestamp"), Some(json!(at(0))));
        let about = line["metadata"].to_string();
        let parts: Vec<String> = line["parts"].as_array().unwrap().iter().map(|part| format!("\n  {part}")).collect();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        format!("{} {} {}{}", text("id"), text("role"), about, parts.concat())
    };
    let told: Vec<String> = made.lines().iter().map(line).chain(made.lost_of(0)).collect();
    told.join("\n")
}

fn result(call_id: &str, output: Value, outcome: Outcome) -> ToolResult {
    ToolResult { name: Some("Bash".to_owned()), duration_ms: Some(3), ..said::result(call_id, output, outcome) }
}

#[test]
fn results_close_their_calls_and_those_of_calls_elsewhere_stand_alone() {
    let calls = Content {
        results: vec![
            result("c2", json!("half"), Outcome::Failed("broke".into())),
            result("c9", json!("late"), Outcome::Done),
            result("c1", json!("ok"), Outcome::Done),
        ],
        ..said(vec![
            Part::StepStart,
            call("Bash", "c1", ToolState::called(json!({}))),
            call("Bash", "c2", ToolState::called(json!({}))),
        ])
    };
    insta::assert_snapshot!(check(Body::Assistant(calls)), @r#"
    r0 assistant {}
      {"type":"step-start"}
      {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c1","state":"output-available","input":{},"output":"ok","callProviderMetadata":{"scrollback":{"durationMs":3}}}
      {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c2","state":"output-error","input":{},"errorText":"broke","callProviderMetadata":{"scrollback":{"durationMs":3,"output":"half"}}}
      {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c9","state":"output-available","input":null,"output":"late","callProviderMetadata":{"scrollback":{"durationMs":3,"orphan":true}}}
    renamed tool result
    "#);
    let stray =
        || Content { results: vec![result("c9", json!("late"), Outcome::Done)], ..said(vec![Part::text("Stop!")]) };
    insta::assert_snapshot!(check(Body::ToolResult(stray())), @r#"
    r0 assistant {}
      {"type":"steering-message","id":"r0","parts":[{"type":"text","text":"Stop!"}]}
      {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c9","state":"output-available","input":null,"output":"late","callProviderMetadata":{"scrollback":{"durationMs":3,"orphan":true}}}
    renamed tool result
    "#);
    insta::assert_snapshot!(check(Body::User(stray())), @r#"
    made-0 assistant {}
      {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c9","state":"output-available","input":null,"output":"late","callProviderMetadata":{"scrollback":{"durationMs":3,"orphan":true}}}
    r0 user {}
      {"type":"text","text":"Stop!"}
    renamed tool result
    "#);
}

#[test]
fn what_is_no_message_of_the_sdk_is_a_line_across_the_page_or_dropped_and_told() {
    let notice = |error: Option<&str>, to_model| {
        Body::System(Content { error: error.map(str::to_owned), to_model, ..said(vec![Part::text("Mind.")]) })
    };
    insta::assert_snapshot!(check(notice(None, true)), @r#"
    r0 system {}
      {"type":"text","text":"Mind."}
    "#);
    insta::assert_snapshot!(check(notice(None, false)), @r#"
    r0 system {}
      {"type":"text","text":"Mind."}
    renamed notice
    "#);
    insta::assert_snapshot!(check(notice(Some("overloaded"), false)), @r#"
    r0 assistant {"error":true}
      {"type":"data-error","data":{"kind":"overloaded","text":"Mind.","record":"r0"}}
    renamed error
    "#);
    let summary = Some("So far.".to_owned());
    let compaction = Compaction { summary, tokens_before: Some(9), cuts: true, ..Compaction::default() };
    insta::assert_snapshot!(check(Body::Compaction(compaction)), @r#"
    r0 assistant {}
      {"type":"data-compaction","data":{"summary":"So far.","tokensBefore":9,"record":"r0"}}
    renamed compaction
    dropped replaced history
    "#);
    insta::assert_snapshot!(check(Body::Rewind(Rewind { from: Some("x".into()), reason: None })), @r#"
    r0 assistant {}
      {"type":"data-rewind","data":{"from":"x","record":"r0"}}
    renamed rewind
    "#);
    insta::assert_snapshot!(check(title("T", TitleSource::Manual)), @"dropped title");
    insta::assert_snapshot!(check(Body::Other(json!({"type": "mystery"}))), @"dropped unknown record");
}

#[test]
fn what_the_sdk_does_not_take_is_kept_in_a_form_that_it_takes() {
    let hologram = Part::Other(json!({"type": "hologram", "depth": 3}));
    insta::assert_snapshot!(check(Body::User(said(vec![hologram]))), @r#"
    r0 user {}
      {"type":"data-unknown","data":{"part":{"type":"hologram","depth":3}}}
    renamed unknown part
    "#);
    insta::assert_snapshot!(check(Body::User(said(Vec::new()))), @r#"
    r0 user {}
      {"type":"text","text":""}
    synthesised text
    "#);
    insta::assert_snapshot!(check(Body::Assistant(said(Vec::new()))), @"r0 assistant {}");
}

/// An agent's own metadata may use our keys for something else: what we know is what is read.
#[test]
fn our_own_keys_in_an_agents_metadata_cannot_lie_about_the_message() {
    let metadata = json!({"timestamp": "soon", "model": 7, "usage": {"input": 99}, "priority": 1});
    let lying = Content {
        metadata: metadata.as_object().cloned().unwrap(),
        model: Some("m-1".into()),
        usage: Some(Usage { input: Some(1), ..Usage::default() }),
        ..said(vec![Part::text("Hi.")])
    };
    insta::assert_snapshot!(check(Body::User(lying)), @r#"
    r0 user {"priority":1,"model":"m-1","usage":{"input":1}}
      {"type":"text","text":"Hi."}
    dropped metadata
    "#);
    // In the SDK's names, and with the time in another zone, they are true.
    let metadata = json!({"createdAt": "2026-11-15T11:00:00.25+01:00", "totalUsage": {"inputTokens": 1, "pages": 2}});
    let true_ones = Content {
        metadata: metadata.as_object().cloned().unwrap(),
        usage: Some(Usage { input: Some(1), ..Usage::default() }),
        ..said(vec![Part::text("Hi.")])
    };
    insta::assert_snapshot!(check(Body::User(true_ones)), @r#"
    r0 user {"createdAt":"2026-11-15T11:00:00.25+01:00","totalUsage":{"inputTokens":1,"pages":2},"usage":{"input":1}}
      {"type":"text","text":"Hi."}
    "#);
}

#[test]
fn a_turn_of_very_many_responses_goes_on_in_further_messages_and_costs_what_it_cost_once() {
    let parts = (0..250).flat_map(|number| [Part::StepStart, Part::text(format!("{number}"))]);
    let usage = Some(Usage { output: Some(500), ..Usage::default() });
    let made = drafted(ai_sdk(), &[Body::Assistant(Content { usage, ..said(parts) })]);
    let messages = crate::support::messages(&made.session);
    let about = |message: &Message, key: &str| message.metadata.as_ref().unwrap().get(key).cloned();
    let facts: Vec<_> = messages
        .iter()
        .map(|message| (message.parts.len(), about(message, "continues"), about(message, "usage").is_some()))
        .collect();
    assert_eq!(facts, [(200, None, false), (200, Some(json!("r0")), false), (100, Some(json!("made-0")), true)]);
}

#[test]
fn a_session_has_a_file_of_its_name() {
    let place = |session: &str| (writing(ai_sdk()).place)(&beginning(&SessionId::from(session)));
    assert_eq!(place("a-1").unwrap(), Path::new("chats/a-1.jsonl"));
    assert!(place(&"s".repeat(249)).is_ok());
    let why = place(&"s".repeat(250)).unwrap_err();
    assert!(why.ends_with("… is 256 bytes long; file systems accept 255"), "{why}");
}

#[test]
fn a_message_that_another_session_takes_over_stays_as_it_is() {
    let (session, from) = (SessionId::from("new"), (&SessionId::from("old"), &"u".into()));
    let line = json!({"id": "u", "role": "user", "parts": [], "mine": 1});
    let adopt = writing(ai_sdk()).adopt.unwrap();
    assert_eq!(adopt(line.clone(), &Adoption { session: &session, parent: None, from }), line);
}

/// An agent at work, its process ended and begun again.
#[test]
fn what_an_agent_records_is_a_list_of_messages() {
    let (_folder, store) = store(ai_sdk());
    let mut recorder = begin(&store).unwrap();
    recorder.user("What is there?").unwrap();
    let called = |id: &str| call("Bash", id, ToolState::called(json!({"command": "ls"})));
    recorder
        .assistant(said(vec![Part::reasoning("Hm."), Part::text("Let me look."), called("c1"), called("c2")]))
        .unwrap();
    for (id, outcome) in [("c2", Outcome::Failed("no".into())), ("c1", Outcome::Done)] {
        recorder.tool_results(result(id, json!("ok"), outcome)).unwrap();
    }
    recorder.assistant("One file.").unwrap();
    recorder.close().unwrap();
    let mut recorder = store.session(Path::new(CWD), Policy::Latest).unwrap();
    recorder.todos(vec![todo("x")]).unwrap();
    recorder.user("Thanks.").unwrap();
    let path = recorder.path().unwrap().to_owned();
    assert!(path.ends_with(format!("chats/{}.jsonl", SESSION)), "{path:?}");
    recorder.close().unwrap();

    let session = store.load(SESSION).unwrap();
    assert!(session.issues().is_empty(), "{:?}", session.issues());
    let messages = crate::support::messages(&session);
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant, Role::User]);
    let states: Vec<Value> = messages[1].parts.iter().map(|part| json!(part)["state"].clone()).collect();
    let done = json!("done");
    assert_eq!(
        states,
        [json!(null), done.clone(), done.clone(), json!("output-available"), json!("output-error"), json!(null), done]
    );
    assert_eq!(messages[2].metadata.as_ref().unwrap()["todos"], json!([{"content": "x", "status": "pending"}]));
    assert_eq!(session.cwd(), Some(CWD));
}

fn role_of(body: &Body) -> Option<Role> {
    match body {
        Body::User(_) => Some(Role::User),
        Body::Assistant(_) => Some(Role::Assistant),
        Body::System(_) => Some(Role::System),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::support::cases(600, 60_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sdk_takes_every_line(bodies in bodies::several()) {
        let made = drafted(ai_sdk(), &bodies);
        for line in made.lines() {
            prop_assert_eq!(takes(line, Sdk::V7), Ok(()));
        }
        for record in &made.records {
            prop_assert!(!record.lines.is_empty() || !record.losses.is_empty(), "a body was dropped in silence");
        }
        // The messages are the lines: what is shown is what was written. A compaction is a line across the message before it.
        if let Some(head) = made.session.head() {
            let shown = scrollback::view::Conversation::new(&made.session.branch(head)).len();
            let is_message = |line: &&Value| {
                let part = &line["parts"][0];
                part["type"] != "data-compaction" || part["data"]["record"] != line["id"]
            };
            prop_assert_eq!(shown, made.lines().iter().filter(|line| is_message(line)).count());
        }
    }

    #[test]
    fn what_is_not_told_as_lost_is_read_back(said in prop_oneof![bodies::said(), bodies::said_plainly()], speaker in 0..3) {
        let body = match speaker {
            0 => Body::User(said.clone()),
            1 => Body::Assistant(said.clone()),
            _ => Body::System(said.clone()),
        };
        let role = role_of(&body).unwrap();
        let made = drafted(ai_sdk(), &[body]);
        if !made.records[0].losses.is_empty() {
            return Ok(());
        }
        let messages = crate::support::messages(&made.session);
        prop_assert_eq!(messages.len(), 1);
        prop_assert_eq!(messages[0].role, role);
        if said.results.is_empty() && said.notes.is_empty() {
            prop_assert_eq!(plain(&messages[0].parts), plain(&said.parts));
        }
        let about = messages[0].metadata.clone().unwrap();
        for (key, value) in &said.metadata {
            prop_assert_eq!(&about[key], value);
        }
        let read = &made.bodies()[0];
        let read = read.content().unwrap();
        let told = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let own = |key: &str| said.metadata.contains_key(key);
        prop_assert!(own("model") || told(&read.model) == told(&said.model));
        prop_assert!(own("usage") || own("totalUsage") || said.usage == Some(Usage::default()) || read.usage == said.usage);
        prop_assert!(own("cwd") || told(&read.context.cwd) == told(&said.context.cwd));
        prop_assert!(own("todos") || read.todos == said.todos);
        prop_assert_eq!(told(&read.context.git_branch), told(&said.context.git_branch));
        prop_assert_eq!(&read.thinking, &said.thinking);
        prop_assert_eq!(told(&read.sender), told(&said.sender));
        let record = made.session.records().next().unwrap();
        prop_assert_eq!(record.at(), Some(at(0)));
    }
}
