//! A session as a script for a model: which answer a request gets, in every API.

use std::collections::HashSet;
use std::sync::Arc;

use scrollback::view::replay::{Comparison, Outcome, Script};
use scrollback::{ReadOptions, Session, View, dialect};
use serde_json::{Value, json};

const APIS: [View; 4] = [View::Anthropic, View::OpenAi, View::OpenAiResponses, View::Gemini];

fn native(lines: &[Value]) -> Arc<Session> {
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let native = dialect::named("native").unwrap();
    Arc::new(Session::from_bytes(native, log.into_bytes(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH)))
}

fn said(kind: &str, id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "message": {"role": kind, "content": text}})
}

fn tides() -> Arc<Session> {
    native(&[
        said("user", "u1", None, "When is high water?"),
        json!({"type": "assistant", "uuid": "a1", "parentUuid": "u1", "message": {"role": "assistant", "content": "I look.",
            "toolCalls": [{"id": "c1", "name": "read", "arguments": {"path": "brest.csv"}}]}}),
        json!({"type": "tool_result", "uuid": "r1", "parentUuid": "a1",
            "toolResults": [{"toolCallId": "c1", "toolName": "read", "content": "04:12", "success": true}]}),
        said("assistant", "a2", Some("r1"), "At 04:12."),
        said("user", "u2", Some("a2"), "Thanks."),
        said("assistant", "a3", Some("u2"), "You are welcome."),
    ])
}

/// A request with what the session has before a record.
fn request(session: &Session, view: View, at: &str) -> Value {
    let record = session.find(at).unwrap();
    let history = scrollback::History::of(session, record).unwrap();
    let messages = view.messages(&history).unwrap().0;
    let field = match view {
        View::OpenAiResponses => "input",
        View::Gemini => "contents",
        _ => "messages",
    };
    json!({field: messages})
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answer(answer) => format!("{} {}", answer.record, serde_json::to_string(&answer.messages).unwrap()),
        Outcome::Differs(difference) => difference.to_string(),
        Outcome::NoMore => "no more".to_owned(),
    }
}

fn ask(script: &Script, view: View, request: &Value, how: Comparison) -> String {
    shown(&script.answer(view, request, how, None, &HashSet::new()).unwrap())
}

#[test]
fn every_point_of_a_session_is_answered_in_every_api() {
    let session = tides();
    let script = Script::new(std::slice::from_ref(&session)).unwrap();
    assert_eq!(script.len(), 3);
    for view in APIS {
        for (point, record, words) in [("u1", "a1", "brest.csv"), ("r1", "a2", "At 04:12."), ("u2", "a3", "welcome")] {
            let request = request(&session, view, point);
            for _ in 0..2 {
                let answer = ask(&script, view, &request, Comparison::Strict);
                assert!(answer.starts_with(record) && answer.contains(words), "{view:?} {point}: {answer}");
            }
        }
    }
}

#[test]
fn a_request_that_differs_is_refused_and_shown_or_answered_loosely() {
    let session = tides();
    let script = Script::new(std::slice::from_ref(&session)).unwrap();
    let mut other = request(&session, View::Anthropic, "u2");
    other["messages"][2]["content"][0]["content"] = "04:13".into();
    let refused = ask(&script, View::Anthropic, &other, Comparison::Strict);
    assert_eq!(refused, r#"item 4: sent result "1: 04:13", expected result "1: 04:12""#);
    assert!(ask(&script, View::Anthropic, &other, Comparison::Loose).starts_with("a3 "));
    let stranger = json!({"messages": [{"role": "user", "content": "Who are you?"}]});
    let refused = ask(&script, View::OpenAi, &stranger, Comparison::Strict);
    assert_eq!(refused, r#"item 1: sent user "Who are you?", expected user "When is high water?""#);
    assert!(ask(&script, View::OpenAi, &stranger, Comparison::Loose).starts_with("a1 "));
    // After the last answer there is none.
    let mut after = request(&session, View::OpenAi, "a3");
    after["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "And low water?"}));
    for how in [Comparison::Strict, Comparison::Loose] {
        assert_eq!(ask(&script, View::OpenAi, &after, how), "no more");
    }
    assert_eq!(ask(&Script::new(&[]).unwrap(), View::OpenAi, &after, Comparison::Loose), "no more");
}

#[test]
fn answers_before_a_compaction_and_those_of_sub_agents_are_played_too() {
    let main = native(&[
        said("user", "u1", None, "When is high water?"),
        said("assistant", "a1", Some("u1"), "At 04:12."),
        json!({"type": "compaction", "uuid": "k1", "parentUuid": "a1", "summary": "High water is at 04:12."}),
        said("user", "u2", Some("k1"), "And low water?"),
        said("assistant", "a2", Some("u2"), "At 10:20."),
    ]);
    let sub = native(&[said("user", "x1", None, "Count the boats."), said("assistant", "x2", Some("x1"), "Three.")]);
    let script = Script::new(&[main.clone(), sub.clone()]).unwrap();
    assert_eq!(script.len(), 3);
    for view in APIS {
        for (session, point, record) in [(&main, "u1", "a1"), (&main, "u2", "a2"), (&sub, "x1", "x2")] {
            for how in [Comparison::Strict, Comparison::Loose] {
                let answer = ask(&script, view, &request(session, view, point), how);
                assert!(answer.starts_with(&format!("{record} ")), "{view:?} {point}: {answer}");
            }
        }
    }
}

#[test]
fn secrets_in_a_request_are_masked_as_in_the_session() {
    let secret = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5");
    let log = format!(
        "{}\n{}\n",
        said("user", "u1", None, &format!("Use {secret}.")),
        said("assistant", "a1", Some("u1"), "Done.")
    );
    let redactor = Arc::new(scrollback::redact::Redactor::built_in());
    let reading = ReadOptions { mask: Some(&redactor), ..ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH) };
    let session = Arc::new(Session::from_bytes(dialect::named("native").unwrap(), log.into_bytes(), &reading));
    let script = Script::new(&[session]).unwrap();
    let request = json!({"messages": [{"role": "user", "content": format!("Use {secret}.")}]});
    let answer =
        |mask| shown(&script.answer(View::OpenAi, &request, Comparison::Strict, mask, &HashSet::new()).unwrap());
    assert!(answer(Some(&redactor)).starts_with("a1 "));
    assert!(answer(None).starts_with("item 1: "));
}

#[test]
fn requests_of_any_shape_are_judged() {
    let script = Script::new(&[tides()]).unwrap();
    for view in APIS {
        for request in [
            Value::Null,
            json!([]),
            json!({"messages": 1, "input": {"type": 2}, "contents": "x"}),
            json!({"messages": [null, 1, {"role": 1, "content": {"a": []}}], "input": [[]], "contents": [{"parts": [{"functionCall": 1}]}]}),
        ] {
            assert!(ask(&script, view, &request, Comparison::Strict).starts_with("item 1: "), "{view:?} {request}");
        }
    }
}
