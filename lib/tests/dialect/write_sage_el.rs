//! sage for Emacs, written: every line keeps sage's rules, and what it does not hold is told.

use std::path::Path;

use crate::support::bodies;
use crate::support::drafted::{Drafted, at, draft, drafted, plain};
use crate::support::place::{PROJECT, begin, beginning, store, writing};
use crate::support::said::{self, call, said, title, todo};
use proptest::prelude::*;
use scrollback::dialect::{self, Adoption, Beginning, Dialect, End, NewRecord, Tally};
use scrollback::model::{
    Approval, Body, Compaction, Content, Context, Kind, Outcome, Part, RecordId, Rewind, Role, SessionId, SteeringPart,
    Thinking, TitleSource, ToolPart, ToolResult, ToolState, Usage,
};
use scrollback::view::profile::Profile;
use serde_json::{Map, Value, json};

fn sage() -> &'static dyn Dialect {
    dialect::named("sage-el").unwrap()
}

fn denied(input: Value, reason: &str) -> ToolState {
    let approval =
        Approval { id: "ask".into(), approved: Some(false), reason: Some(reason.into()), ..Approval::default() };
    ToolState::OutputDenied { input, approval }
}

/// A prompt, and a turn of two responses with two calls side by side.
fn talk() -> Vec<Body> {
    let mut ran = ToolPart::dynamic("Bash", "c2", ToolState::failed(json!({"command": "ls x"}), "no such file"));
    ran.call_provider_metadata = json!({"scrollback": {"durationMs": 12}}).as_object().cloned();
    let turn = said(vec![
        Part::StepStart,
        Part::text("Let me look."),
        call("Read", "c1", ToolState::done(json!({"path": "a.el"}), json!("(provide 'a)"))),
        ran.into(),
        Part::StepStart,
        Part::text("There is one file."),
    ]);
    let usage = Usage { input: Some(10), output: Some(4), cache_read: Some(7), ..Usage::default() };
    let context = Context { cwd: Some("/w".into()), git_branch: Some("main".into()), ..Context::default() };
    vec![
        Body::User(Content { context, ..said(vec![Part::text("What is there?")]) }),
        Body::Assistant(Content { model: Some("m-1".into()), usage: Some(usage), ..turn }),
    ]
}

#[test]
fn a_turn_is_a_line_for_each_response_and_reads_back_as_it_was() {
    let made = drafted(sage(), &talk());
    let lines: Vec<String> = made.lines().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"role":"user","content":"What is there?","timestamp":"2026-11-15T10:00:00.25Z","uuid":"r0","session_id":"5e551000-0000-4000-8000-000000000001","cwd":"/w","gitBranch":"main","version":"1.2.3"}
    {"role":"assistant","content":"Let me look.","timestamp":"2026-11-15T10:00:01.25Z","uuid":"r1","session_id":"5e551000-0000-4000-8000-000000000001","tool_calls":[{"id":"c1","name":"Read","args":{"path":"a.el"},"result":"(provide 'a)","success":true},{"id":"c2","name":"Bash","args":{"command":"ls x"},"success":false,"error":"no such file","duration_ms":12}],"tokens":{"estimated":3},"model":"m-1","version":"1.2.3"}
    {"role":"assistant","content":"There is one file.","timestamp":"2026-11-15T10:00:01.25Z","uuid":"made-0","session_id":"5e551000-0000-4000-8000-000000000001","tokens":{"estimated":5},"usage":{"input_tokens":10,"output_tokens":4,"cache_read_tokens":7},"model":"m-1","version":"1.2.3"}
    "#);
    assert!(made.lost_of(0).is_empty() && made.lost_of(1).is_empty());
    assert_eq!(made.session.id().as_str(), "5e551000-0000-4000-8000-000000000001");
    let messages = crate::support::messages(&made.session);
    let [Body::User(asked), Body::Assistant(turn)] = &talk()[..] else { panic!() };
    assert_eq!(plain(&messages[0].parts), plain(&asked.parts));
    assert_eq!(plain(&messages[1].parts), plain(&turn.parts));
    assert_eq!(messages.len(), 2);
    let steps = messages[1].parts.iter().filter(|part| **part == Part::StepStart).count();
    assert_eq!(steps, 2);
    let about = messages[1].metadata.as_ref().unwrap();
    assert_eq!((&about["model"], &about["usage"]), (&json!("m-1"), &json!({"input": 10, "output": 4, "cacheRead": 7})));
    assert_eq!(made.session.cwd(), Some("/w"));
}

/// One body: the lines it becomes, `role: content`, with the calls' names, and what is lost.
fn check(body: Body) -> String {
    let made = drafted(sage(), &[body]);
    let line = |line: &&Value| {
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let calls = line["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls: Vec<String> = calls.iter().map(|call| format!(" {call}")).collect();
        format!("{} {}: {:?}{}", text("uuid"), text("role"), text("content"), calls.concat())
    };
    let told: Vec<String> = made.lines().iter().map(line).chain(made.lost_of(0)).collect();
    told.join("\n")
}

fn result(call_id: &str, output: Value, outcome: Outcome) -> ToolResult {
    ToolResult { name: Some("Bash".to_owned()), duration_ms: Some(3), ..said::result(call_id, output, outcome) }
}

#[test]
fn a_line_always_says_something_and_what_stands_in_for_a_text_is_told() {
    let two = vec![
        call("Read", "c1", ToolState::called(json!({"path": "a"}))),
        call("Bash", "c2", denied(json!({}), "not today")),
    ];
    insta::assert_snapshot!(check(Body::Assistant(said(two))), @r#"
    r0 assistant: "[calls Read, calls Bash]" {"id":"c1","name":"Read","args":{"path":"a"}} {"id":"c2","name":"Bash","args":{},"success":false,"error":"not today"}
    dropped approval
    renamed denial
    synthesised text
    "#);
    let picture = Part::file("image/png", "data:image/png;base64,AAAA");
    insta::assert_snapshot!(check(Body::User(said(vec![picture.clone()]))), @r#"
    r0 user: "[image image/png]"
    dropped image
    synthesised text
    "#);
    insta::assert_snapshot!(check(Body::User(said(vec![Part::text("See"), picture]))), @r#"
    r0 user: "See"
    dropped image
    "#);
    insta::assert_snapshot!(check(Body::User(said(vec![Part::text("")]))), @"dropped empty message");
    insta::assert_snapshot!(check(Body::Assistant(said(vec![Part::StepStart, Part::reasoning("Hm.")]))), @r#"
    dropped thinking
    dropped empty message
    "#);
}

#[test]
fn calls_say_how_they_ended() {
    let said = Content {
        results: vec![
            result("c1", json!("ok"), Outcome::Done),
            result("c2", json!("half"), Outcome::Failed("broke".into())),
            result("c3", Value::Null, Outcome::Failed(String::new())),
            result("c4", Value::Null, Outcome::Denied(None)),
        ],
        ..said(vec![
            Part::text("Four."),
            call("Bash", "c1", ToolState::called(json!({}))),
            call("Bash", "c2", ToolState::called(json!({}))),
            call("Bash", "c3", ToolState::called(json!({}))),
            call("Bash", "c4", ToolState::called(json!({}))),
        ])
    };
    insta::assert_snapshot!(check(Body::Assistant(said)), @r#"
    r0 assistant: "Four." {"id":"c1","name":"Bash","args":{},"result":"ok","success":true,"duration_ms":3} {"id":"c2","name":"Bash","args":{},"result":"half","success":false,"error":"broke","duration_ms":3} {"id":"c3","name":"Bash","args":{},"success":false,"error":"the tool failed","duration_ms":3} {"id":"c4","name":"Bash","args":{},"success":false,"error":"denied","duration_ms":3}
    synthesised failure reason
    dropped approval
    renamed denial
    "#);
}

#[test]
fn results_of_calls_elsewhere_are_calls_of_their_own_and_words_between_are_the_users() {
    let stray =
        Content { results: vec![result("c9", json!("late"), Outcome::Done)], ..said(vec![Part::text("Stop!")]) };
    insta::assert_snapshot!(check(Body::ToolResult(stray)), @r#"
    made-0 assistant: "[result of Bash]" {"id":"c9-result","name":"Bash","args":null,"result":"late","success":true,"duration_ms":3}
    r0 user: "Stop!"
    renamed tool result
    synthesised text
    "#);
    let steering = SteeringPart { id: "s".into(), parts: vec![Part::text("Faster.")], extra: Map::new() };
    let turn = vec![Part::text("One"), Part::Steering(steering), Part::text("two")];
    insta::assert_snapshot!(check(Body::Assistant(said(turn))), @r#"
    r0 assistant: "One"
    made-0 user: "Faster."
    made-1 assistant: "two"
    renamed steering message
    "#);
}

#[test]
fn what_has_no_line_of_its_own_is_renamed_or_dropped_and_told() {
    let notice = |error: Option<&str>, to_model| {
        Body::System(Content { error: error.map(str::to_owned), to_model, ..said(vec![Part::text("Mind.")]) })
    };
    insta::assert_snapshot!(check(notice(None, true)), @r#"r0 system: "Mind.""#);
    insta::assert_snapshot!(check(notice(None, false)), @r#"
    r0 system: "Mind."
    renamed notice
    "#);
    insta::assert_snapshot!(check(notice(Some("overloaded"), false)), @r#"
    r0 system: "Mind."
    renamed error
    dropped error kind
    "#);
    let failure = Content { error: Some("overloaded".into()), ..Content::default() };
    insta::assert_snapshot!(check(Body::System(failure)), @r#"
    r0 system: "[error overloaded]"
    renamed error
    synthesised text
    dropped error kind
    "#);
    let summary = |summary: Option<&str>| {
        Body::Compaction(Compaction { summary: summary.map(str::to_owned), cuts: true, ..Compaction::default() })
    };
    insta::assert_snapshot!(check(summary(Some("So far."))), @r#"
    r0 system: "So far."
    renamed compaction
    "#);
    insta::assert_snapshot!(check(summary(None)), @"dropped compaction");
    insta::assert_snapshot!(check(title("T", TitleSource::Manual)), @"dropped title");
    insta::assert_snapshot!(check(Body::Rewind(Rewind::default())), @"dropped rewind");
    let thinking = Thinking { level: None, disabled: true, triggers: Vec::new() };
    let state = Content {
        todos: Some(vec![todo("x")]),
        thinking: Some(thinking),
        sender: Some("ada".into()),
        ..said(vec![Part::text("Go.")])
    };
    insta::assert_snapshot!(check(Body::User(state)), @r#"
    r0 user: "Go."
    dropped sender
    dropped todos
    dropped thinking mode
    "#);
}

#[test]
fn work_beside_the_conversation_is_not_put_into_it() {
    let (session, id) = (SessionId::from("s"), RecordId::from("r"));
    let body = said::user("Count.");
    let new_id = || "made".to_owned();
    let written = (writing(sage()).lines)(&NewRecord { sidechain: true, ..draft(&session, &id, &body, &new_id) });
    assert!(written.lines.is_empty());
    assert_eq!(written.losses[0].what.name(), "sidechain");
}

#[test]
fn a_project_has_one_file_in_a_folder_that_is_called_after_it() {
    let place = |project: &str| {
        let (session, project) = (SessionId::from("s"), Path::new(project));
        (writing(sage()).place)(&Beginning { project, ..beginning(&session) })
    };
    for (project, folder) in [
        ("/home/user/github.com/repo", "-home-user-github-com-repo"),
        ("/home/user/project/", "-home-user-project"),
        ("/a/../../b", "-a-------b"),
        ("/", "-"),
    ] {
        assert_eq!(place(project).unwrap(), Path::new("projects").join(folder).join("conversation.jsonl"), "{project}");
    }
    assert!(place(&format!("/{}", "d".repeat(254))).is_ok());
    let why = place(&format!("/{}", "d".repeat(255))).unwrap_err();
    assert_eq!(why, format!("the name \"-{}\"… is 256 bytes long; file systems accept 255", "d".repeat(79)));
}

fn tally() -> Tally {
    Tally {
        is_redacted: true,
        session: "s".into(),
        project: "/home/user/project".into(),
        cwd: "/home/user/project".into(),
        git_branch: None,
        version: "1".into(),
        started: Some(at(0)),
        updated: Some(at(5)),
        title: None,
        prompts: None,
        model: None,
        messages: 6,
        size_bytes: 1234,
        usage: None,
        is_open: true,
        lock: None,
        end: End::Closed,
        forked_from: None,
    }
}

#[test]
fn metadata_json_is_kept_true_and_keeps_what_else_it_says() {
    let sidecar = writing(sage()).sidecar.unwrap();
    let fresh = sidecar(None, &tally());
    let expected = json!({
        "project_dir": "/home/user/project",
        "created_at": "2026-11-15T10:00:00.25Z",
        "updated_at": "2026-11-15T10:00:05.25Z",
        "message_count": 6,
        "total_size": 1234,
    });
    assert_eq!(fresh.to_string(), expected.to_string(), "in the documented order");
    let begun = sidecar(None, &Tally { started: None, updated: None, ..tally() });
    assert_eq!(sidecar(Some(begun), &tally()).to_string(), expected.to_string(), "whenever a key became known");
    let earlier = json!({
        "tca_name": "sage.el", "project_dir": "~/project/", "message_count": 99, "created_at": "2026-01-11T17:00:00-0500",
        "mine": [1],
    });
    let kept = json!({
        "tca_name": "sage.el", "project_dir": "~/project/", "message_count": 6, "created_at": "2026-01-11T17:00:00-0500",
        "mine": [1], "updated_at": "2026-11-15T10:00:05.25Z", "total_size": 1234,
    });
    assert_eq!(sidecar(Some(earlier), &tally()), kept);
    for odd in [json!([1]), json!("x"), json!({"project_dir": 7, "created_at": null})] {
        assert_eq!(sidecar(Some(odd), &tally()), expected);
    }
}

#[test]
fn a_line_that_another_session_takes_over_changes_only_its_session() {
    let (session, from) = (SessionId::from("new"), (&SessionId::from("old"), &RecordId::from("u")));
    let adopt =
        |line: Value| (writing(sage()).adopt.unwrap())(line, &Adoption { session: &session, parent: None, from });
    let line = json!({"role": "user", "content": "x", "mine": {"a": 1}, "session_id": "old", "uuid": "u"});
    let expected = json!({"role": "user", "content": "x", "mine": {"a": 1}, "session_id": "new", "uuid": "u"});
    assert_eq!(adopt(line), expected);
    assert_eq!(adopt(json!({"role": "user", "sessionId": "old"})), json!({"role": "user", "sessionId": "new"}));
    assert_eq!(adopt(json!({"role": "user"})), json!({"role": "user", "session_id": "new"}));
}

/// An agent at work, its process ended and begun again.
#[test]
fn what_an_agent_records_is_one_conversation_with_true_metadata() {
    let (_folder, store) = store(sage());
    let mut recorder = begin(&store).unwrap();
    recorder.user("What is there?").unwrap();
    let called = |id: &str| call("Bash", id, ToolState::called(json!({"command": "ls"})));
    recorder.assistant(said(vec![Part::text("Let me look."), called("c1"), called("c2")])).unwrap();
    for (id, outcome) in [("c2", Outcome::Failed("no".into())), ("c1", Outcome::Done)] {
        recorder.tool_results(result(id, json!("ok"), outcome)).unwrap();
    }
    recorder.assistant("One file.").unwrap();
    // It is the project's one conversation now, and will be one of its archives: it has a name of its own.
    let id = recorder.session().unwrap().to_string();
    recorder.close().unwrap();
    let mut recorder = store.resume(&id).unwrap();
    recorder.user("Thanks.").unwrap();
    let path = recorder.path().unwrap().to_owned();
    assert!(path.ends_with("projects/-home-ada-engine/conversation.jsonl"), "{path:?}");
    assert!(recorder.rewind(&"x".into(), None).is_err());
    recorder.close().unwrap();

    let session = store.load(&id).unwrap();
    assert!(session.issues().is_empty(), "{:?}", session.issues());
    let told: Vec<(Role, Vec<String>)> = crate::support::messages(&session)
        .into_iter()
        .map(|message| {
            let part = |part: &Part| match part {
                Part::Text(text) => text.text.clone(),
                Part::Tool(call) => {
                    format!("{} {}", call.call_id, if call.output().is_some() { "ran" } else { "failed" })
                }
                Part::StepStart => "step".to_owned(),
                other => panic!("{other:?}"),
            };
            (message.role, message.parts.iter().map(part).collect())
        })
        .collect();
    let answer = ["step", "Let me look.", "c1 ran", "c2 failed", "step", "One file."];
    assert_eq!(
        told,
        [
            (Role::User, vec!["What is there?".to_owned()]),
            (Role::Assistant, answer.map(str::to_owned).to_vec()),
            (Role::User, vec!["Thanks.".to_owned()]),
        ]
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let about: Value = serde_json::from_slice(&std::fs::read(path.with_file_name("metadata.json")).unwrap()).unwrap();
    assert_eq!(about["project_dir"], PROJECT);
    assert_eq!((&about["message_count"], &about["total_size"]), (&json!(text.lines().count()), &json!(text.len())));
    let keys: Vec<&String> = about.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["project_dir", "created_at", "updated_at", "message_count", "total_size"]);
    let times: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["timestamp"].take()).collect();
    assert_eq!([&about["created_at"], &about["updated_at"]], [&times[0], &times[times.len() - 1]]);
    for line in text.lines() {
        assert!(line.contains(&format!(r#""session_id":"{id}""#)), "{line}");
        assert_eq!(Profile::SageEl.faults(line), []);
    }
}

/// What the lines of a session say of its answers: model, what they cost, and whether they are as old as they say.
#[test]
fn each_response_of_a_turn_has_its_own_model_time_and_cost() {
    let usage = |input| Some(Usage { input: Some(input), ..Usage::default() });
    let called = call("Bash", "c1", ToolState::called(json!({})));
    let answer = |parts, model: &str, input| Content { model: Some(model.into()), usage: usage(input), ..said(parts) };
    let thought = Part::reasoning("Hm.");
    for (answers, expected) in [
        (
            vec![
                answer(vec![Part::text("One."), called.clone()], "m-1", 1),
                answer(vec![Part::text("Two.")], "m-2", 2),
            ],
            vec![("One.", json!("m-1"), json!(1)), ("Two.", json!("m-2"), json!(2))],
        ),
        // A response that no line tells of cost something all the same.
        (
            vec![
                answer(vec![Part::text("One."), called.clone()], "m-1", 1),
                answer(vec![thought.clone()], "m-2", 2),
                answer(vec![Part::text("Two.")], "m-3", 4),
            ],
            vec![("One.", json!("m-1"), json!(3)), ("Two.", json!("m-3"), json!(4))],
        ),
        (
            vec![answer(vec![thought, called], "m-1", 1), answer(vec![Part::text("Two.")], "m-2", 2)],
            vec![("[calls Bash]", json!("m-1"), json!(1)), ("Two.", json!("m-2"), json!(2))],
        ),
    ] {
        let (_folder, store) = store(sage());
        let mut recorder = begin(&store).unwrap();
        recorder.user("Go.").unwrap();
        for (at, answer) in answers.into_iter().enumerate() {
            recorder.assistant(answer).unwrap();
            if at == 0 {
                recorder.tool_results(result("c1", json!("ok"), Outcome::Done)).unwrap();
            }
        }
        let path = recorder.path().unwrap().to_owned();
        recorder.close().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let told =
            |line: &Value| (line["content"].clone(), line["model"].clone(), line["usage"]["input_tokens"].clone());
        let expected: Vec<_> = expected.into_iter().map(|(text, model, input)| (json!(text), model, input)).collect();
        assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), expected, "{text}");
        assert!(lines[0]["timestamp"].as_str() < lines[1]["timestamp"].as_str(), "{text}");
    }
}

#[test]
fn who_speaks_in_a_room_is_told_as_a_model_is_told() {
    let speak = |parts, sender: &str| Body::User(Content { sender: Some(sender.into()), ..said(parts) });
    let image = serde_json::from_value(json!({"type": "file", "mediaType": "image/png", "url": "data:,x"})).unwrap();
    let made = drafted(
        sage(),
        &[
            speak(vec![Part::text("Anyone around?")], "alice@muc"),
            speak(vec![image], "bob@muc"),
            speak(vec![Part::text("Hi.")], "ada@example.org"),
        ],
    );
    let words: Vec<&Value> = made.lines().into_iter().map(|line| &line["content"]).collect();
    assert_eq!(words, ["alice@muc: Anyone around?", "bob@muc: [image image/png]", "Hi."]);
    assert_eq!(made.lost_of(0), ["renamed sender"]);
    assert!(made.lost_of(1).contains(&"renamed sender".to_owned()));
    assert_eq!(made.lost_of(2), ["dropped sender"]);
}

#[test]
fn an_ended_conversation_goes_into_the_history_of_its_project() {
    let archive = writing(sage()).ended_path.unwrap();
    let conversation = Path::new("/s/projects/-p/conversation.jsonl");
    let place = archive(conversation, at(7)).unwrap();
    assert_eq!(place, Path::new("/s/projects/-p/history/20261115-100007.jsonl"));
    assert_eq!(archive(&place, at(8)), None, "what is ended is not ended again");
}

/// How many calls all lines have.
fn calls(made: &Drafted) -> usize {
    made.lines().iter().map(|line| line["tool_calls"].as_array().map_or(0, Vec::len)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::support::cases(600, 60_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_keeps_the_rules_of_sage(bodies in bodies::several()) {
        let made = drafted(sage(), &bodies);
        for line in made.lines() {
            prop_assert_eq!(Profile::SageEl.faults(&line.to_string()), []);
        }
        for record in &made.records {
            prop_assert!(!record.lines.is_empty() || !record.losses.is_empty(), "a body was dropped in silence");
        }
    }

    #[test]
    fn no_word_and_no_call_is_lost(said in bodies::said()) {
        let made = drafted(sage(), &[Body::Assistant(said.clone())]);
        for part in &said.parts {
            if let Part::Text(text) = part {
                let is_there = made.lines().iter().any(|line| line["content"].as_str().unwrap().contains(&text.text));
                prop_assert!(is_there || text.text.is_empty(), "{:?} is gone", text.text);
            }
        }
        let strays = said.results.iter().filter(|result| {
            !said.parts.iter().any(|part| matches!(part, Part::Tool(call) if call.call_id == result.call_id))
        });
        let made_calls = said.parts.iter().filter(|part| matches!(part, Part::Tool(_))).count();
        prop_assert_eq!(calls(&made), made_calls + strays.count());
    }

    #[test]
    fn what_is_not_told_as_lost_is_read_back(said in bodies::said_plainly(), speaker in 0..3) {
        let (body, kind) = match speaker {
            0 => (Body::User(said.clone()), Kind::User),
            1 => (Body::Assistant(said.clone()), Kind::Assistant),
            _ => (Body::System(said.clone()), Kind::System),
        };
        let made = drafted(sage(), &[body]);
        if !made.records[0].losses.is_empty() {
            return Ok(());
        }
        let messages = crate::support::messages(&made.session);
        prop_assert_eq!(messages.len(), 1);
        prop_assert!(made.session.records().all(|record| record.kind() == kind));
        if said.results.is_empty() && said.notes.is_empty() {
            prop_assert_eq!(plain(&messages[0].parts), plain(&said.parts));
        }
        let usage = said.usage.filter(|usage| *usage != Usage::default());
        let facts = [
            ("model", json!(said.model.filter(|model| !model.is_empty()))),
            ("cwd", json!(said.context.cwd.filter(|dir| !dir.is_empty()))),
            ("gitBranch", json!(said.context.git_branch.filter(|branch| !branch.is_empty()))),
            ("usage", json!(usage)),
            ("timestamp", json!(at(0))),
            ("todos", json!(said.todos)),
            ("thinking", json!(said.thinking)),
            ("sender", json!(said.sender)),
            ("error", json!(said.error)),
        ];
        let about = messages[0].metadata.clone().unwrap();
        for (key, value) in facts {
            prop_assert_eq!(about.get(key).cloned().unwrap_or_default(), value, "{}", key);
        }
        for (key, value) in &said.metadata {
            prop_assert_eq!(about.get(key), Some(value), "{}", key);
        }
        prop_assert!(said.to_model || kind != Kind::System);
    }
}
