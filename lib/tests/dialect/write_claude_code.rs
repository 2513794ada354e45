//! What we write for Claude Code: the reader, and so the agent, gets back what was given, or is told what is lost.

use std::path::Path;

use crate::support::messages;
use crate::support::pen::{Pen, assert_every_session_can_be_written, says_nothing};
use crate::support::place::{SESSION, beginning, writing};
use crate::support::said::{result, results, title, user};
use scrollback::dialect::{Adoption, Beginning, ClaudeCode};
use scrollback::model::{
    Approval, Body, Compaction, Content, DataPart, Error, FilePart, Outcome, Part, ReasoningPart, RecordId, Restore,
    Rewind, SessionId, Snapshot, SourceUrlPart, SteeringPart, TextPart, Thinking, TitleSource, Todo, ToolPart,
    ToolResult, ToolState, Usage,
};
use scrollback::session::{Session, Source};
use scrollback::view::history::View;
use scrollback::write::{Delta, Store};
use serde_json::{Map, Value, json};

fn pen() -> Pen {
    Pen::new(&ClaudeCode)
}

fn model() -> Content {
    let usage =
        Usage { input: Some(10), output: Some(20), cache_read: Some(100), cache_write: Some(3), reasoning: Some(5) };
    Content { model: Some("claude-opus-5-5".to_owned()), usage: Some(usage), ..Content::default() }
}

fn thought(text: &str) -> Part {
    let anthropic = Map::from_iter([("anthropic".to_owned(), json!({"signature": "c2ln"}))]);
    Part::Reasoning(ReasoningPart { text: text.into(), provider_metadata: Some(anthropic), ..ReasoningPart::default() })
}

fn call(name: &str, id: &str) -> Part {
    ToolPart::dynamic(name, id, ToolState::called(json!({"path": "a.txt"}))).into()
}

/// A conversation with everything that the format holds as it is.
fn conversation() -> Vec<Body> {
    let todos = vec![Todo {
        content: "Measure".to_owned(),
        status: "pending".to_owned(),
        active_form: Some("Measuring".to_owned()),
        extra: Map::new(),
    }];
    let thinking = Thinking { level: Some("high".to_owned()), disabled: false, triggers: Vec::new() };
    let plan = Content {
        parts: vec![Part::text("Plan.")],
        todos: Some(todos),
        thinking: Some(thinking),
        ..Content::default()
    };
    let about = Map::from_iter([("exitCode".to_owned(), 0.into()), ("session".to_owned(), "agent-a7".into())]);
    let pdf = FilePart {
        media_type: "application/pdf".into(),
        url: "data:application/pdf;base64,JVBERg==".into(),
        filename: Some("t.pdf".into()),
        ..FilePart::default()
    };
    vec![
        user([Part::text("When is high water?")]),
        Body::Assistant(Content {
            parts: vec![thought("Two files."), Part::text("Let me look."), call("Read", "c1"), call("Bash", "c2")],
            ..model()
        }),
        results([ToolResult { duration_ms: Some(12), about, ..result("c1", "06:12\n18:40", Outcome::Done) }]),
        results([result("c2", "no such file", Outcome::Failed("no such file".to_owned()))]),
        Body::Assistant(Content { parts: vec![call("Write", "c3")], ..model() }),
        results([result("c3", "not now", Outcome::Denied(Some("not now".to_owned())))]),
        Body::Assistant(Content { parts: vec![call("Look", "c4"), call("Touch", "c5")], ..model() }),
        results([result(
            "c4",
            json!([{"type": "text", "text": "a map"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw=="}]),
            Outcome::Done,
        )]),
        results([result("c5", Value::Null, Outcome::Done)]),
        Body::Assistant(Content { parts: vec![Part::text("At 06:12.")], ..model() }),
        user([Part::text("And this?"), Part::file("image/png", "data:image/png;base64,iVBORw=="), Part::File(pdf)]),
        Body::Assistant(Content { parts: vec![Part::text("A tide table.")], ..model() }),
        Body::System(Content { parts: vec![Part::text("The harbour was closed.")], ..Content::default() }),
        Body::Attachment(Content { parts: vec![Part::text("It is Monday.")], to_model: true, ..Content::default() }),
        Body::User(plan),
        Body::Assistant(Content {
            parts: vec![Part::text("Overloaded.")],
            error: Some("rate_limit".to_owned()),
            ..Content::default()
        }),
    ]
}

/// What an answer is here: its parts, and what it cost with the last.
fn blocks(said: Content) -> Vec<Body> {
    let last = said.parts.len() - 1;
    let block = |(at, part): (usize, Part)| {
        let usage = said.usage.filter(|_| at == last);
        Body::Assistant(Content { parts: vec![part], usage, ..said.clone() })
    };
    said.parts.clone().into_iter().enumerate().map(block).collect()
}

#[test]
fn what_is_written_is_read_back_as_it_was() {
    let mut pen = pen();
    let mut given = Vec::new();
    for body in conversation() {
        pen.say(body.clone());
        given.extend(match body {
            Body::Assistant(said) => blocks(said),
            other => vec![other],
        });
    }
    assert_eq!(pen.lost(), "");
    assert!(pen.session().issues().is_empty());
    for (read, given) in pen.bodies().iter().zip(&given) {
        assert_eq!(read, given);
    }
    assert_eq!(pen.bodies().len(), given.len());
}

#[test]
fn a_line_has_what_the_agent_asks_for_and_nothing_that_says_nothing() {
    let mut pen = pen();
    conversation().into_iter().for_each(|body| _ = pen.say(body));
    for line in &pen.lines() {
        for field in ["type", "uuid", "timestamp", "sessionId", "cwd", "version", "userType"] {
            assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {line}");
        }
        assert!(line.as_object().unwrap().contains_key("parentUuid") && line["isSidechain"] == false, "{line}");
        if line["type"] == "user" || line["type"] == "assistant" {
            assert!(!line["message"]["content"].is_null() && line["message"]["role"] == line["type"], "{line}");
        }
        let empty = says_nothing(line);
        assert!(empty.iter().all(|key| *key == "parentUuid"), "{empty:?}: {line}");
    }
    insta::assert_snapshot!(pen.lines()[0], @r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"When is high water?"},"uuid":"00000000-0000-7000-8000-000000000000","timestamp":"2026-11-14T23:59:58.253Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
    insta::assert_snapshot!(pen.lines()[2], @r#"{"parentUuid":"00000000-0000-7000-8000-000000000001","isSidechain":false,"type":"assistant","message":{"id":"msg_00000000-0000-7000-8000-000000000001","type":"message","role":"assistant","content":[{"type":"text","text":"Let me look."}],"model":"claude-opus-5-5"},"requestId":"req_00000000-0000-7000-8000-000000000001","uuid":"00000000-0000-7000-8000-000000000002","timestamp":"2026-11-14T23:59:58.254Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
    insta::assert_snapshot!(pen.lines()[5], @r#"{"parentUuid":"00000000-0000-7000-8000-000000000004","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"06:12\n18:40"}]},"toolUseResult":{"durationMs":12,"exitCode":0,"agentId":"a7"},"uuid":"00000000-0000-7000-8000-000000000005","timestamp":"2026-11-14T23:59:58.255Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
    insta::assert_snapshot!(pen.lines()[6], @r#"{"parentUuid":"00000000-0000-7000-8000-000000000005","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"no such file","is_error":true}]},"toolUseResult":"Error: no such file","uuid":"00000000-0000-7000-8000-000000000006","timestamp":"2026-11-14T23:59:58.256Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
}

#[test]
fn the_model_sees_what_was_said() {
    let mut pen = pen();
    conversation().into_iter().for_each(|body| _ = pen.say(body));
    insta::assert_snapshot!(pen.history(View::Anthropic), @r#"
    {"role":"user","content":[{"type":"text","text":"When is high water?"}]}
    {"role":"assistant","content":[{"type":"thinking","thinking":"Two files.","signature":"c2ln"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a.txt"}},{"type":"tool_use","id":"c2","name":"Bash","input":{"path":"a.txt"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"06:12\n18:40"},{"type":"tool_result","tool_use_id":"c2","content":"no such file","is_error":true}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"c3","name":"Write","input":{"path":"a.txt"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c3","content":"not now","is_error":true}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"c4","name":"Look","input":{"path":"a.txt"}},{"type":"tool_use","id":"c5","name":"Touch","input":{"path":"a.txt"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c4","content":[{"type":"text","text":"a map"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]},{"type":"tool_result","tool_use_id":"c5"}]}
    {"role":"assistant","content":[{"type":"text","text":"At 06:12."}]}
    {"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="},"title":"t.pdf"}]}
    {"role":"assistant","content":[{"type":"text","text":"A tide table."}]}
    {"role":"user","content":[{"type":"text","text":"It is Monday.\n"},{"type":"text","text":"Plan."}]}
    "#);
}

#[test]
fn the_blocks_of_an_answer_are_one_answer_and_cost_once() {
    let mut pen = pen();
    conversation().into_iter().take(3).for_each(|body| _ = pen.say(body));
    let session = pen.session();
    let lines = pen.lines();
    let ids: Vec<&Value> = lines[1..5].iter().map(|line| &line["message"]["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && id.as_str().unwrap().starts_with("msg_")), "{ids:?}");
    let usage = model().usage.unwrap();
    assert_eq!(session.requests().into_values().map(|request| request.usage).collect::<Vec<_>>(), [usage]);
    pen.say(Body::Assistant(Content { parts: vec![Part::text("Next.")], ..model() }));
    assert_eq!(pen.session().requests().into_values().map(|request| request.usage).collect::<Vec<_>>(), [usage; 2]);
}

/// The agent takes lines with one `message.id` for one message, on whatever branch they are.
#[test]
fn every_response_has_a_name_of_its_own_however_it_is_recorded() {
    let text = |word: &str| Part::text(word);
    let whole = vec![Part::StepStart, text("One."), text("More."), Part::StepStart, text("Two.")];
    let answer = |parts: &[Part]| Body::Assistant(Content { parts: parts.to_vec(), ..model() });
    let carried = ToolPart::dynamic("Bash", "c1", ToolState::done(json!({}), json!("ok")));
    for (bodies, responses) in [
        // A turn in one body, without results between its steps; two bodies; the same as a whole behind another.
        (vec![answer(&whole)], vec![2, 1]),
        (vec![answer(&whole[..3]), answer(&whole[4..])], vec![2, 1]),
        (vec![answer(&whole), answer(&whole)], vec![2, 1, 2, 1]),
        (vec![answer(&[text("One."), carried.into(), text("Two.")])], vec![2, 1]),
    ] {
        let mut pen = pen();
        pen.say(user([text("Go.")]));
        bodies.into_iter().for_each(|body| drop(pen.say(body)));
        let lines = pen.lines();
        let named: Vec<(&str, &str)> = lines
            .iter()
            .filter(|line| line["type"] == "assistant")
            .map(|line| (line["message"]["id"].as_str().unwrap(), line["requestId"].as_str().unwrap()))
            .collect();
        let runs: Vec<usize> = named.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        let distinct: std::collections::HashSet<_> = named.iter().collect();
        assert_eq!((runs, distinct.len()), (responses.clone(), responses.len()), "{}", pen.text());
    }
    // A writer that is given the whole turn names its responses too.
    let made = crate::support::drafted::drafted(&ClaudeCode, &[answer(&whole)]);
    let ids: Vec<&Value> = made.lines().iter().map(|line| &line["message"]["id"]).collect();
    assert_eq!(ids, ["msg_r0", "msg_r0", "msg_r0-2"]);
}

#[test]
fn what_the_format_cannot_hold_is_told() {
    let text = |text: &str| Part::text(text);
    let unsigned = Part::reasoning("Hm.");
    let source = Part::SourceUrl(SourceUrlPart {
        source_id: "s".into(),
        url: "https://example.org".into(),
        ..SourceUrlPart::default()
    });
    let steering =
        Part::Steering(SteeringPart { id: "s".into(), parts: vec![text("Wait.")], ..SteeringPart::default() });
    let odd = ToolPart::dynamic("my tool", "call:1", ToolState::called(json!("ls")));
    let asked = ToolPart::dynamic(
        "Bash",
        "c",
        ToolState::ApprovalRequested { input: json!({}), approval: Approval::default() },
    );
    let cases: Vec<(Body, &str)> = vec![
        (user([]), "refused empty message"),
        (user([text("")]), "refused text"),
        (user([text("Hi"), unsigned.clone()]), "dropped thinking"),
        (user([Part::file("audio/mpeg", "data:audio/mpeg;base64,AAAA")]), "dropped file"),
        (user([Part::file("image/png", "https://example.org/a.png")]), "renamed media type"),
        (user([Part::file("text/plain", "data:,hello")]), "dropped file"),
        (user([Part::Data(DataPart { kind: "weather".into(), ..DataPart::default() })]), "refused data part"),
        (user([Part::Other(json!({"type": "hologram"}))]), "refused unknown part"),
        (
            Body::User(Content { parts: vec![text("Hi")], sender: Some("ada".into()), ..Content::default() }),
            "dropped sender",
        ),
        (Body::User(Content { parts: vec![text("Hi")], todos: Some(vec![]), ..Content::default() }), "dropped todos"),
        (
            Body::User(Content {
                thinking: Some(Thinking { level: None, disabled: true, triggers: vec![] }),
                ..Content::default()
            }),
            "renamed empty message",
        ),
        (Body::Assistant(Content { parts: vec![unsigned.clone()], ..model() }), "refused thinking, usage"),
        (Body::Assistant(Content { parts: vec![unsigned, text("Hi")], ..model() }), "dropped thinking"),
        (Body::Assistant(Content { parts: vec![source], ..model() }), "refused source, usage"),
        (Body::Assistant(Content { parts: vec![steering], ..model() }), "renamed steering message"),
        (
            Body::Assistant(Content { parts: vec![odd.into()], ..model() }),
            "renamed tool input\nrenamed tool name\nrenamed call id",
        ),
        (Body::Assistant(Content { parts: vec![asked.into()], ..model() }), "dropped approval"),
        (
            Body::Assistant(Content { parts: vec![Part::file("image/png", "data:image/png;base64,AAAA")], ..model() }),
            "dropped image",
        ),
        (
            Body::Assistant(Content {
                parts: vec![text("Hi")],
                usage: Some(Usage { output: Some(1), ..Usage::default() }),
                ..Content::default()
            }),
            "synthesised usage",
        ),
        (
            Body::Assistant(Content {
                parts: vec![Part::Text(TextPart {
                    text: "x".into(),
                    provider_metadata: Some(Map::new()),
                    ..TextPart::default()
                })],
                ..model()
            }),
            "dropped provider metadata",
        ),
        (results([result("c", json!({"rows": 2}), Outcome::Done)]), "renamed tool output"),
        (results([result("c", Value::Null, Outcome::Failed(String::new()))]), "synthesised failure reason"),
        (results([result("c", Value::Null, Outcome::Denied(None))]), "synthesised failure reason"),
        (
            results([ToolResult { preliminary: true, ..result("c", "half", Outcome::Done) }]),
            "refused preliminary result",
        ),
        (
            Body::System(Content { parts: vec![text("Be brief.")], to_model: true, ..Content::default() }),
            "renamed instruction",
        ),
        (
            Body::System(Content { parts: vec![text("Gone.")], error: Some("offline".into()), ..Content::default() }),
            "renamed notice",
        ),
        (title("First words", TitleSource::Prompt), "refused title"),
        (Body::Compaction(Compaction::default()), "refused compaction"),
        (Body::Rewind(Rewind { from: None, reason: Some("wrong".into()) }), "dropped rewind reason"),
        (Body::Restore(Restore::default()), "refused restore"),
        (Body::Snapshot(Snapshot { message: Some("x".into()), ..Snapshot::default() }), "refused snapshot"),
        (Body::Header(Map::new()), "refused header"),
        (Body::Other(json!({"type": "dream"})), "refused unknown record"),
    ];
    for (body, lost) in cases {
        let mut pen = pen();
        pen.say(user([text("Begin.")]));
        if let Body::ToolResult(_) = body {
            pen.say(Body::Assistant(Content { parts: vec![call("Read", "c")], ..model() }));
        }
        pen.say(body.clone());
        assert_eq!(pen.lost(), lost, "{body:?}");
        pen.session();
        assert!(pen.history(View::Anthropic).contains("Begin."), "{body:?}");
    }
}

/// Claude Code 2.1.325 sends it with its empty signature, whoever's model it names, and the API would refuse the whole request.
#[test]
fn unsigned_thinking_of_any_model_is_not_written() {
    let mut pen = pen();
    pen.say(user([Part::text("Hi")]));
    let said = Content {
        parts: vec![Part::reasoning("Hm."), Part::text("Hello.")],
        model: Some("qwen3".into()),
        ..Content::default()
    };
    pen.say(Body::Assistant(said));
    assert_eq!(pen.lost(), "dropped thinking");
    assert!(!pen.text().contains("Hm."));
}

#[test]
fn a_call_that_carries_its_result_is_a_call_and_a_result() {
    let done = ToolPart::dynamic("Read", "c1", ToolState::done(json!({}), "06:12"));
    let failed = ToolPart::dynamic("Read", "c2", ToolState::failed(json!({}), "gone"));
    let parts = vec![Part::StepStart, done.into(), failed.into(), Part::StepStart, Part::text("At 06:12.")];
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    let whole = Body::Assistant(Content { parts, ..model() });
    pen.say(whole);
    pen.say(user([Part::text("Thanks.")]));
    let session = pen.session();
    assert_eq!(session.branch(session.head().unwrap()).records.len(), pen.lines().len());
    insta::assert_snapshot!(pen.history(View::Anthropic), @r#"
    {"role":"user","content":[{"type":"text","text":"When?"}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{}},{"type":"tool_use","id":"c2","name":"Read","input":{}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"06:12"},{"type":"tool_result","tool_use_id":"c2","content":"gone","is_error":true}]}
    {"role":"assistant","content":[{"type":"text","text":"At 06:12."}]}
    {"role":"user","content":[{"type":"text","text":"Thanks."}]}
    "#);
}

#[test]
fn titles_stand_aside() {
    for (source, word) in
        [(TitleSource::Manual, "custom-title"), (TitleSource::Automatic, "ai-title"), (TitleSource::Summary, "summary")]
    {
        let mut pen = pen();
        let head = pen.say(user([Part::text("Hi")]));
        assert_eq!(pen.say(title("Tides", source)), head);
        let session = pen.session();
        assert_eq!(pen.lines()[1]["type"], word);
        assert_eq!(session.title().map(|title| (title.text.as_str(), title.source)), Some(("Tides", source)));
        assert_eq!(session.head().unwrap().id(), head.as_str());
    }
}

#[test]
fn a_compaction_is_a_cut_and_a_summary() {
    let mut pen = pen();
    pen.say(user([Part::text("One")]));
    pen.say(Body::Assistant(Content { parts: vec![Part::text("1")], ..model() }));
    let kept = pen.say(user([Part::text("Two")]));
    pen.say(Body::Compaction(Compaction {
        summary: Some("One was asked.".to_owned()),
        trigger: Some("manual".to_owned()),
        tokens_before: Some(1000),
        tokens_after: Some(50),
        preserved: vec![kept],
        cuts: true,
        ..Compaction::default()
    }));
    pen.say(user([Part::text("Three")]));
    assert_eq!(pen.lost(), "");
    insta::assert_snapshot!(pen.lines()[3], @r#"{"parentUuid":null,"logicalParentUuid":"00000000-0000-7000-8000-000000000002","isSidechain":false,"type":"system","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{"trigger":"manual","preTokens":1000,"postTokens":50,"preservedSegment":{"headUuid":"00000000-0000-7000-8000-000000000002","anchorUuid":"00000000-0000-7000-8000-000000000003","tailUuid":"00000000-0000-7000-8000-000000000002"},"preservedMessages":{"anchorUuid":"00000000-0000-7000-8000-000000000003","uuids":["00000000-0000-7000-8000-000000000002"]}},"uuid":"00000000-0000-7000-8000-000000000004","timestamp":"2026-11-14T23:59:58.256Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
    insta::assert_snapshot!(pen.lines()[4], @r#"{"parentUuid":"00000000-0000-7000-8000-000000000004","isSidechain":false,"type":"user","message":{"role":"user","content":"One was asked."},"isCompactSummary":true,"isVisibleInTranscriptOnly":true,"uuid":"00000000-0000-7000-8000-000000000003","timestamp":"2026-11-14T23:59:58.256Z","userType":"external","cwd":"/home/ada/engine/src","sessionId":"5e551000-0000-4000-8000-000000000001","version":"1.2.3"}"#);
    insta::assert_snapshot!(pen.history(View::Anthropic), @r#"{"role":"user","content":[{"type":"text","text":"One was asked.\n"},{"type":"text","text":"Two\n"},{"type":"text","text":"Three"}]}"#);
    let session = pen.session();
    assert_eq!(session.branch(session.head().unwrap()).records.len(), 6, "what came before stays on the branch");
}

#[test]
fn what_another_agent_put_in_place_of_a_history_is_what_the_model_sees() {
    let mut pen = pen();
    pen.say(user([Part::text("One")]));
    let said = |parts: Vec<Part>| Content { parts, ..Content::default() };
    pen.say(Body::Compaction(Compaction {
        summary: Some("One was asked.".to_owned()),
        cuts: true,
        replacement: Some(vec![
            user([Part::text("One")]),
            user([Part::text("One was asked.")]),
            Body::Assistant(said(vec![call("Read", "c1")])),
            results([result("c1", "06:12", Outcome::Done)]),
        ]),
        ..Compaction::default()
    }));
    pen.say(user([Part::text("Two")]));
    assert_eq!(pen.lost(), "renamed replaced history");
    insta::assert_snapshot!(pen.history(View::Anthropic), @r#"
    {"role":"user","content":[{"type":"text","text":"One\n"},{"type":"text","text":"One was asked."}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a.txt"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"06:12"},{"type":"text","text":"Two"}]}
    "#);
}

/// The agent holds on to the head that its last `last-prompt` line names.
#[test]
fn a_branch_is_the_head_even_where_another_head_was_named() {
    let mut pen = pen();
    let first = pen.say(user([Part::text("One")]));
    let answer = pen.say(Body::Assistant(Content { parts: vec![Part::text("1")], ..model() }));
    pen.meanwhile(&json!({"type": "last-prompt", "lastPrompt": "One", "leafUuid": answer, "sessionId": SESSION}));
    let again = pen.branch(&first, Body::Assistant(Content { parts: vec![Part::text("uno")], ..model() }));
    assert_eq!(pen.head(), again);
    let on = pen.say(user([Part::text("Two")]));
    assert_eq!(pen.head(), on);
    assert_eq!(pen.session().heads().len(), 2);
}

#[test]
fn a_step_back_counts_at_once_and_the_next_record_goes_on_from_there() {
    let mut pen = pen();
    let first = pen.say(user([Part::text("One")]));
    let left = pen.say(Body::Assistant(Content { parts: vec![Part::text("1")], ..model() }));
    let right = pen.branch(&first, Body::Assistant(Content { parts: vec![Part::text("uno")], ..model() }));
    for to in [&left, &right, &first] {
        let ack = pen.recorder.rewind(to, None);
        pen.hear(ack);
        assert_eq!((&pen.head(), pen.recorder.head()), (to, Some(to)));
        assert_eq!(pen.session().heads().len(), if to == &first { 3 } else { 2 });
    }
    pen.resume();
    let next = pen.say(user([Part::text("Two")]));
    assert_eq!((pen.head(), pen.bodies().len(), pen.lost().as_str()), (next, 2, ""));
    let on = pen.say(Body::Assistant(Content { parts: vec![Part::text("2")], ..model() }));
    assert_eq!((pen.head(), pen.session().heads().len()), (on, 3));
}

/// Claude Code starts at the last boundary of the file, whichever head is named.
#[test]
fn nothing_goes_on_from_before_a_compaction() {
    let log = crate::support::corpus().join("claude-code/compaction-twice/session.jsonl");
    let session = Session::open(&Source::file(&ClaudeCode, &log), &crate::support::reading()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&ClaudeCode, folder.path(), crate::support::place::host()).unwrap();
    let boundaries: Vec<usize> = session
        .records()
        .filter(|record| matches!(record.body().unwrap(), Body::Compaction(compaction) if compaction.cuts))
        .map(|record| record.order())
        .collect();
    let last = *boundaries.last().unwrap();
    for record in session.records().filter(|record| !record.is_side()) {
        let is_refused = matches!(store.check_place(&session, &record.id()), Err(Error::CannotContinue { .. }));
        assert_eq!(is_refused, record.order() < last, "{}", record.id());
    }
}

/// A stream is written block by block; what it cost comes last, in a line of the same answer.
#[test]
fn a_streamed_answer_is_the_same_answer() {
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    let signature = json!({"anthropic": {"signature": "c2ln"}}).as_object().cloned();
    pen.stream([
        Delta::Model("claude-opus-5-5".to_owned()),
        Delta::Reasoning("Hm".to_owned()),
        Delta::Reasoning(".".to_owned()),
        Delta::End(signature),
        Delta::Text("At ".to_owned()),
        Delta::Text("06:12.".to_owned()),
        Delta::Part(call("Read", "c1")),
    ]);
    let ack = pen.recorder.finish_answer(model().usage);
    pen.hear(ack);
    pen.say(results([result("c1", "06:12", Outcome::Done)]));
    assert_eq!(pen.lost(), "");
    assert_eq!(
        pen.session().requests().into_values().map(|request| request.usage).collect::<Vec<_>>(),
        [model().usage.unwrap()]
    );
    insta::assert_snapshot!(pen.history(View::Anthropic), @r#"
    {"role":"user","content":[{"type":"text","text":"When?"}]}
    {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"At 06:12."},{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a.txt"}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"06:12"}]}
    "#);
    let ack = pen.recorder.usage(model().usage.unwrap());
    pen.hear(ack);
    assert_eq!(pen.lost(), "refused usage", "the answer is over");
}

#[test]
fn a_stream_goes_on_behind_what_the_format_cannot_hold() {
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    pen.stream([Delta::Reasoning("Hm.".to_owned()), Delta::Text("At 06:12.".to_owned()), Delta::End(None)]);
    assert_eq!(pen.lost(), "dropped thinking");
    assert_eq!(pen.recorder.saved_through(), pen.recorder.last_entry());
    pen.say(user([Part::text("Thanks.")]));
    assert_eq!(pen.bodies().len(), 3);
}

/// The task list has no message to stand on: it gets a line that the agent passes over.
#[test]
fn todos_and_the_thinking_mode_are_known_when_the_session_goes_on() {
    let mut pen = pen();
    pen.say(user([Part::text("Plan.")]));
    let todo = Todo { content: "Measure".into(), status: "pending".into(), active_form: None, extra: Map::new() };
    let thinking = Thinking { level: Some("high".into()), disabled: false, triggers: Vec::new() };
    let ack = pen.recorder.todos(vec![todo.clone()]);
    pen.hear(ack);
    let ack = pen.recorder.thinking(thinking.clone());
    pen.hear(ack);
    pen.say(Body::Assistant(Content { parts: vec![Part::text("Planned.")], ..model() }));
    pen.resume();
    assert_eq!(pen.recorder.todos_at_head(), Some(&[todo.clone()][..]));
    assert_eq!(pen.recorder.thinking_at_head(), Some(&thinking));
    assert_eq!(pen.lost(), "renamed empty message");
    assert_eq!(pen.history(View::Anthropic).lines().count(), 2);
    // They are told of the message that they were said after, and make none of their own.
    let told = messages(&pen.session());
    let about = |at: usize| told[at].metadata.clone().unwrap();
    assert_eq!(told.len(), 2);
    assert_eq!((&about(0)["todos"], &about(0)["thinking"]["level"]), (&json!([todo]), &json!("high")));
    assert!(about(1).get("todos").is_none());
    // The thinking mode is no empty list behind a full one.
    let attached: Vec<Value> = pen.lines().iter().filter_map(|line| line.get("attachment").cloned()).collect();
    assert_eq!(
        attached,
        [json!({"type": "todo", "content": [todo], "itemCount": 1}), json!({"type": "thinking_mode"})]
    );
}

#[test]
fn a_session_lies_where_the_agent_looks_for_it() {
    let place = |session: &str, cwd: &str| {
        let (session, cwd) = (SessionId::from(session), Path::new(cwd));
        (writing(&ClaudeCode).place)(&Beginning { project: cwd, cwd, ..beginning(&session) })
    };
    let path = place(SESSION, "/home/ada/my.proj_1").unwrap();
    assert_eq!(path, Path::new("projects/-home-ada-my-proj-1").join(format!("{SESSION}.jsonl")));
    let long = place(SESSION, &format!("/{}", "ü".repeat(4000))).unwrap();
    assert!(long.components().all(|name| name.as_os_str().len() <= 255));
    for odd in ["", "notes", "../../etc/passwd", "5e551000-0000-4000-8000-00000000000/"] {
        assert!(place(odd, "/home/ada").is_err(), "{odd}");
    }
}

#[test]
fn a_fork_takes_lines_over_and_changes_only_who_and_what_they_hang_on() {
    let (new, old) = (SessionId("5e551000-0000-4000-8000-00000000000f".to_owned()), SessionId(SESSION.to_owned()));
    let (id, parent) = (RecordId("u2".to_owned()), RecordId("u1".to_owned()));
    let adopt = |line: Value, parent: Option<&RecordId>| {
        let adoption = Adoption { session: &new, parent, from: (&old, &id) };
        writing(&ClaudeCode).adopt.unwrap()(line, &adoption)
    };
    let line = json!({"parentUuid": "gone", "zebra": {"b": 1, "a": 2}, "type": "user", "uuid": "u2", "sessionId": SESSION, "message": {"role": "user", "content": "Hi"}});
    insta::assert_snapshot!(adopt(line.clone(), Some(&parent)), @r#"{"parentUuid":"u1","zebra":{"b":1,"a":2},"type":"user","uuid":"u2","sessionId":"5e551000-0000-4000-8000-00000000000f","message":{"role":"user","content":"Hi"},"forkedFrom":{"sessionId":"5e551000-0000-4000-8000-000000000001","messageUuid":"u2"}}"#);
    assert_eq!(adopt(line, None)["parentUuid"], Value::Null);
    let cut = json!({"parentUuid": null, "logicalParentUuid": "gone", "type": "system", "subtype": "compact_boundary", "uuid": "c"});
    let cut = adopt(cut, Some(&parent));
    assert_eq!((&cut["parentUuid"], &cut["logicalParentUuid"]), (&Value::Null, &json!("u1")));
    let aside = json!({"type": "custom-title", "customTitle": "Tides", "sessionId": SESSION});
    assert_eq!(adopt(aside, Some(&parent)), json!({"type": "custom-title", "customTitle": "Tides", "sessionId": new}));
    assert_eq!(adopt(json!([1]), None), json!([1]));

    let mut pen = pen();
    pen.say(user([Part::text("Hi")]));
    let fork = adopt(pen.lines()[0].clone(), None).to_string();
    let session = Session::from_bytes(&ClaudeCode, fork.into_bytes(), &crate::support::reading());
    assert_eq!((session.forked_from(), session.id()), (Some(SESSION), new.clone()));
}

/// What any agent said, the model hears again: all of it where nothing is reported as lost.
#[test]
fn every_session_can_be_written() {
    assert_every_session_can_be_written(&ClaudeCode);
}
