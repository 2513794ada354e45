//! What we write for Qwen Code: the reader, and so the agent, gets back what was given, or is told what is lost.

use std::path::Path;

use crate::support::pen::{Pen, assert_every_session_can_be_written, says_nothing};
use crate::support::place::{SESSION, beginning, writing};
use crate::support::said::{self, results, title, user};
use scrollback::dialect::{Adoption, Beginning, QwenCode};
use scrollback::model::{
    Before, Body, Compaction, Content, DataPart, FilePart, FileState, Outcome, Part, ReasoningPart, RecordId, Restore,
    Rewind, SessionId, Snapshot, SteeringPart, Thinking, TitleSource, ToolNote, ToolPart, ToolResult, ToolState, Usage,
};
use scrollback::session::Session;
use scrollback::view::history::View;
use scrollback::write::Delta;
use serde_json::{Map, Value, json};

fn pen() -> Pen {
    Pen::new(&QwenCode)
}

fn model() -> Content {
    let usage =
        Usage { input: Some(10), output: Some(20), cache_read: Some(100), cache_write: None, reasoning: Some(5) };
    Content { model: Some("qwen3-coder-plus".to_owned()), usage: Some(usage), ..Content::default() }
}

fn signature() -> Option<Map<String, Value>> {
    Some(Map::from_iter([("google".to_owned(), json!({"thoughtSignature": "c2ln"}))]))
}

fn call(name: &str, id: &str) -> Part {
    ToolPart::dynamic(name, id, ToolState::called(json!({"path": "a.txt"}))).into()
}

fn result(call: &str, output: impl Into<Value>, outcome: Outcome) -> ToolResult {
    ToolResult { name: Some("read_file".to_owned()), ..said::result(call, output, outcome) }
}

/// A conversation with everything that the format holds as it is.
fn conversation() -> Vec<Body> {
    let thought =
        ReasoningPart { text: "Two files.".into(), provider_metadata: signature(), ..ReasoningPart::default() };
    let mut second = ToolPart::dynamic("run_shell_command", "c2", ToolState::called(json!({"command": "ls"})));
    second.call_provider_metadata = signature();
    let about = Map::from_iter([("exitCode".to_owned(), 0.into())]);
    let pdf = FilePart {
        media_type: "application/pdf".into(),
        url: "https://example.org/t.pdf".into(),
        filename: Some("t.pdf".into()),
        ..FilePart::default()
    };
    vec![
        user([Part::text("When is high water?")]),
        Body::Assistant(Content {
            parts: vec![Part::Reasoning(thought), Part::text("Let me look."), call("read_file", "c1"), second.into()],
            ..model()
        }),
        results([ToolResult { duration_ms: Some(12), about, ..result("c1", "06:12\n18:40", Outcome::Done) }]),
        results([result("c2", Value::Null, Outcome::Failed("no such file".to_owned()))]),
        Body::Assistant(Content { parts: vec![call("write_file", "c3")], ..model() }),
        results([result("c3", Value::Null, Outcome::Denied(Some("not now".to_owned())))]),
        Body::Assistant(Content {
            parts: vec![call("look", "c4"), call("count", "c5"), call("half", "c6")],
            ..model()
        }),
        results([result(
            "c4",
            json!([{"type": "text", "text": "a map"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw=="}]),
            Outcome::Done,
        )]),
        results([result("c5", json!({"rows": [1, 2]}), Outcome::Done)]),
        results([result("c6", "one of two", Outcome::Failed("torn".to_owned()))]),
        Body::Assistant(Content { parts: vec![Part::text("ha"), Part::text("ha")], ..model() }),
        user([Part::text("And this?"), Part::file("image/png", "data:image/png;base64,iVBORw=="), Part::File(pdf)]),
        Body::Assistant(Content { parts: vec![Part::text("A tide table.")], ..model() }),
        title("Tides", TitleSource::Automatic),
        title("High water", TitleSource::Manual),
        Body::System(Content { parts: vec![Part::text("The harbour was closed.")], ..Content::default() }),
        Body::Attachment(Content { parts: vec![Part::text("It is Monday.")], to_model: true, ..Content::default() }),
        Body::Snapshot(snapshot()),
        Body::System(Content {
            parts: vec![Part::text("Overloaded.")],
            error: Some("turn_result".to_owned()),
            ..Content::default()
        }),
    ]
}

/// A file that the agent copied, in the snapshot of a prompt.
fn snapshot() -> Snapshot {
    let file = FileState {
        before: Before::Backup { name: "0123456789abcdef@v1".to_owned(), hash: None },
        extra: Map::from_iter([("version".to_owned(), json!(1))]),
        ..FileState::new("a.txt")
    };
    let extra = Map::from_iter([("promptId".to_owned(), json!("p1"))]);
    Snapshot { files: vec![file], extra, ..Snapshot::default() }
}

/// What the reader makes of it: what is known of a run becomes a note.
fn read_back(mut body: Body) -> Body {
    if let Body::ToolResult(said) = &mut body {
        let result = &mut said.results[0];
        let mut about = std::mem::take(&mut result.about);
        let status = match result.outcome {
            Outcome::Done => "success",
            Outcome::Failed(_) => "error",
            Outcome::Denied(_) => "cancelled",
        };
        about.insert("status".to_owned(), status.into());
        said.notes = vec![ToolNote { call_id: result.call_id.clone(), about }];
    }
    body
}

#[test]
fn what_is_written_is_read_back_as_it_was() {
    let mut pen = pen();
    let given: Vec<Body> = conversation().into_iter().map(read_back).collect();
    conversation().into_iter().for_each(|body| _ = pen.say(body));
    assert_eq!(pen.lost(), "");
    assert!(pen.session().issues().is_empty());
    for (read, given) in pen.bodies().iter().zip(&given) {
        assert_eq!(read, given);
    }
    assert_eq!(pen.bodies().len(), given.len());
    assert_eq!(pen.session().title().unwrap().text, "High water");
    assert_eq!(pen.session().requests().len(), 5);
}

/// What was read back can be written again, and says the same.
#[test]
fn what_is_read_back_is_written_the_same() {
    let (mut first, mut second) = (pen(), pen());
    conversation().into_iter().for_each(|body| _ = first.say(body));
    first.bodies().into_iter().for_each(|body| _ = second.say(body));
    assert_eq!(second.text(), first.text());
}

#[test]
fn a_line_has_what_the_agent_asks_for_and_nothing_that_says_nothing() {
    let mut pen = pen();
    conversation().into_iter().for_each(|body| _ = pen.say(body));
    for line in &pen.lines() {
        for field in ["type", "uuid", "timestamp", "sessionId", "cwd", "version", "provenance"] {
            assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {line}");
        }
        assert!(line.as_object().unwrap().contains_key("parentUuid"), "{line}");
        if line["type"] != "system" {
            let role = if line["type"] == "assistant" { "model" } else { "user" };
            assert!(line["message"]["role"] == role && line["message"]["parts"].is_array(), "{line}");
        }
        let empty = says_nothing(line);
        assert!(empty.iter().all(|key| *key == "parentUuid"), "{empty:?}: {line}");
    }
    insta::assert_snapshot!(pen.lines()[0], @r#"{"uuid":"00000000-0000-7000-8000-000000000000","parentUuid":null,"sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.254Z","type":"user","provenance":"real_user","cwd":"/home/ada/engine/src","version":"1.2.3","message":{"role":"user","parts":[{"text":"When is high water?"}]}}"#);
    insta::assert_snapshot!(pen.lines()[2], @r#"{"uuid":"00000000-0000-7000-8000-000000000002","parentUuid":"00000000-0000-7000-8000-000000000001","sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.256Z","type":"tool_result","provenance":"tool_result","cwd":"/home/ada/engine/src","version":"1.2.3","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"06:12\n18:40"}}}]},"toolCallResult":{"callId":"c1","exitCode":0,"status":"success","durationMs":12}}"#);
    insta::assert_snapshot!(pen.lines()[5], @r#"{"uuid":"00000000-0000-7000-8000-000000000005","parentUuid":"00000000-0000-7000-8000-000000000004","sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.259Z","type":"tool_result","provenance":"tool_result","cwd":"/home/ada/engine/src","version":"1.2.3","message":{"role":"user","parts":[{"functionResponse":{"id":"c3","name":"read_file","response":{"error":"not now"}}}]},"toolCallResult":{"callId":"c3","status":"cancelled"}}"#);
    insta::assert_snapshot!(pen.lines()[8], @r#"{"uuid":"00000000-0000-7000-8000-000000000008","parentUuid":"00000000-0000-7000-8000-000000000007","sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.262Z","type":"tool_result","provenance":"tool_result","cwd":"/home/ada/engine/src","version":"1.2.3","message":{"role":"user","parts":[{"functionResponse":{"id":"c5","name":"read_file","response":{"rows":[1,2]}}}]},"toolCallResult":{"callId":"c5","status":"success"}}"#);
}

#[test]
fn the_model_sees_what_was_said() {
    let mut pen = pen();
    conversation().into_iter().for_each(|body| _ = pen.say(body));
    insta::assert_snapshot!(pen.history(View::Gemini), @r#"
    {"role":"user","parts":[{"text":"When is high water?"}]}
    {"role":"model","parts":[{"text":"Two files.","thought":true,"thoughtSignature":"c2ln"},{"text":"Let me look."},{"functionCall":{"id":"c1","name":"read_file","args":{"path":"a.txt"}}},{"functionCall":{"id":"c2","name":"run_shell_command","args":{"command":"ls"}},"thoughtSignature":"c2ln"}]}
    {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"06:12\n18:40"}}},{"functionResponse":{"id":"c2","name":"read_file","response":{"error":"no such file"}}}]}
    {"role":"model","parts":[{"functionCall":{"id":"c3","name":"write_file","args":{"path":"a.txt"}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"c3","name":"read_file","response":{"error":"not now"}}}]}
    {"role":"model","parts":[{"functionCall":{"id":"c4","name":"look","args":{"path":"a.txt"}}},{"functionCall":{"id":"c5","name":"count","args":{"path":"a.txt"}}},{"functionCall":{"id":"c6","name":"half","args":{"path":"a.txt"}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"c4","name":"read_file","response":{"output":"a map"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}}]}},{"functionResponse":{"id":"c5","name":"read_file","response":{"rows":[1,2]}}},{"functionResponse":{"id":"c6","name":"read_file","response":{"error":"torn","output":"one of two"}}}]}
    {"role":"model","parts":[{"text":"ha"},{"text":"ha"}]}
    {"role":"user","parts":[{"text":"And this?"},{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/t.pdf","displayName":"t.pdf"}}]}
    {"role":"model","parts":[{"text":"A tide table."}]}
    {"role":"user","parts":[{"text":"It is Monday."}]}
    "#);
}

#[test]
fn what_the_format_cannot_hold_is_told() {
    let text = |text: &str| Part::text(text);
    let anthropic = Map::from_iter([("anthropic".to_owned(), json!({"signature": "x"}))]);
    let signed = Part::Reasoning(ReasoningPart {
        text: "Hm.".into(),
        provider_metadata: Some(anthropic),
        ..ReasoningPart::default()
    });
    let steering =
        Part::Steering(SteeringPart { id: "s".into(), parts: vec![text("Wait.")], ..SteeringPart::default() });
    let odd = ToolPart::dynamic("my tool", "call:1", ToolState::called(json!("ls")));
    let thinking = Thinking { level: None, disabled: true, triggers: vec![] };
    let usage = Usage { cache_write: Some(3), ..Usage::default() };
    let none_written = Usage { cache_write: Some(0), ..Usage::default() };
    let cases: Vec<(Body, &str)> = vec![
        (user([]), "refused empty message"),
        (user([text("")]), "refused text"),
        (user([text("Hi"), Part::reasoning("Hm.")]), "dropped thinking"),
        (user([Part::file("text/plain", "data:,hello")]), "dropped file"),
        (user([Part::file("text/plain", "data:text/plain;base64,aGVsbG8=")]), "dropped file"),
        (user([Part::file("application/zip", "https://example.org/a.zip")]), "dropped file"),
        (user([Part::file("image/*", "data:image/png;base64,AAAA")]), "renamed media type"),
        (user([Part::Data(DataPart { kind: "weather".into(), ..DataPart::default() })]), "refused data part"),
        (user([Part::Other(json!({"type": "hologram"}))]), "refused unknown part"),
        (
            Body::User(Content { parts: vec![text("Hi")], sender: Some("ada".into()), ..Content::default() }),
            "dropped sender",
        ),
        (Body::User(Content { todos: Some(vec![]), ..Content::default() }), "refused todos"),
        (
            Body::User(Content { parts: vec![text("Hi")], thinking: Some(thinking), ..Content::default() }),
            "dropped thinking mode",
        ),
        (Body::Assistant(Content { parts: vec![signed], ..model() }), "dropped provider metadata"),
        (Body::Assistant(Content { parts: vec![Part::reasoning("")], ..model() }), "dropped thinking"),
        (Body::Assistant(Content { parts: vec![steering], ..Content::default() }), "renamed steering message"),
        (Body::Assistant(Content { parts: vec![odd.into()], ..model() }), "renamed tool input\nrenamed tool name"),
        (
            Body::Assistant(Content { parts: vec![text("Hi")], usage: Some(usage), ..Content::default() }),
            "dropped cache tokens",
        ),
        // None used is told, too.
        (
            Body::Assistant(Content { parts: vec![text("Hi")], usage: Some(none_written), ..Content::default() }),
            "dropped cache tokens",
        ),
        (
            Body::Assistant(Content { parts: vec![text("Hi")], error: Some("offline".into()), ..Content::default() }),
            "renamed error\nrenamed error kind",
        ),
        (results([result("c", Value::Null, Outcome::Done)]), "renamed tool output"),
        (results([result("c", Value::Null, Outcome::Failed(String::new()))]), "synthesised failure reason"),
        (results([result("c", Value::Null, Outcome::Denied(None))]), "synthesised failure reason"),
        (
            results([ToolResult { preliminary: true, ..result("c", "half", Outcome::Done) }]),
            "refused preliminary result",
        ),
        (Body::Attachment(Content { parts: vec![text("Linux")], ..Content::default() }), "refused context"),
        (
            Body::System(Content { parts: vec![text("Be brief.")], to_model: true, ..Content::default() }),
            "renamed instruction",
        ),
        (title("First words", TitleSource::Prompt), "refused title"),
        (title("In short", TitleSource::Summary), "renamed title"),
        (Body::Compaction(Compaction { cuts: true, ..Compaction::default() }), "dropped compaction details"),
        (Body::Rewind(Rewind { from: None, reason: Some("wrong".into()) }), "dropped rewind reason"),
        (Body::Restore(Restore::default()), "refused restore"),
        (Body::Snapshot(Snapshot { files: vec![FileState::new("a.txt")], ..snapshot() }), "refused snapshot"),
        (Body::Header(Map::new()), "refused header"),
        (Body::Other(json!({"type": "dream"})), "refused unknown record"),
    ];
    for (body, lost) in cases {
        let mut pen = pen();
        pen.say(user([text("Begin.")]));
        if let Body::ToolResult(_) = body {
            pen.say(Body::Assistant(Content { parts: vec![call("read_file", "c")], ..model() }));
        }
        pen.say(body.clone());
        assert_eq!(pen.lost(), lost, "{body:?}");
        assert!(pen.history(View::Gemini).contains("Begin."), "{body:?}");
    }
}

/// The agent tells its model a text, or the whole response as JSON.
#[test]
fn what_a_tool_gave_back_is_written_as_the_agent_tells_it() {
    let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    for (output, outcome, response, told, lost) in [
        (json!({"ratio": 3.02}), Outcome::Done, json!({"ratio": 3.02}), r#"{"ratio":3.02}"#, ""),
        (json!({"output": "1"}), Outcome::Done, json!({"output": r#"{"output":"1"}"#}), r#"{"output":"1"}"#, "renamed"),
        (json!({"a": null}), Outcome::Done, json!({"output": r#"{"a":null}"#}), r#"{"a":null}"#, "renamed"),
        (json!({}), Outcome::Done, json!({"output": "{}"}), "{}", "renamed"),
        (json!([1, 2]), Outcome::Done, json!({"output": "[1,2]"}), "[1,2]", "renamed"),
        (json!(4), Outcome::Done, json!({"output": "4"}), "4", "renamed"),
        (texts, Outcome::Done, json!({"output": "a\nb"}), "a\nb", "renamed"),
        (
            json!({"a": 1}),
            Outcome::Failed("torn".to_owned()),
            json!({"error": "torn", "output": r#"{"a":1}"#}),
            r#"{"a":1}"#,
            "renamed",
        ),
        (json!(""), Outcome::Failed("torn".to_owned()), json!({"error": "torn"}), "torn", ""),
    ] {
        let mut pen = pen();
        pen.say(user([Part::text("When?")]));
        pen.say(Body::Assistant(Content { parts: vec![call("read_file", "c")], ..model() }));
        pen.say(results([result("c", output.clone(), outcome)]));
        assert_eq!(pen.lines()[2]["message"]["parts"][0]["functionResponse"]["response"], response, "{output}");
        let lost = if lost.is_empty() { String::new() } else { format!("{lost} tool output") };
        assert_eq!(pen.lost(), lost, "{output}");
        let sent = pen.history(View::OpenAi);
        let sent: Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
        assert_eq!(sent["content"], told, "{output}");
    }
}

/// The agent puts results that stand in further records behind those of the first, and before them those that are missing.
#[test]
fn results_are_sent_in_the_order_of_the_agent() {
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    let calls = ["c1", "c2", "c3", "c4"].map(|id| call("read_file", id)).to_vec();
    pen.say(Body::Assistant(Content { parts: calls, ..model() }));
    for id in ["c3", "c4", "c1"] {
        pen.say(results([result(id, "06:12", Outcome::Done)]));
    }
    let sent = pen.history(View::OpenAi);
    let sent: Vec<Value> = sent.lines().skip(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(sent.iter().map(|told| &told["tool_call_id"]).collect::<Vec<_>>(), ["c3", "c2", "c1", "c4"]);
}

#[test]
fn a_call_that_carries_its_result_is_a_call_and_a_result() {
    let done = ToolPart::dynamic("read_file", "c1", ToolState::done(json!({}), "06:12"));
    let failed = ToolPart::dynamic("read_file", "c2", ToolState::failed(json!({}), "gone"));
    let parts = vec![Part::StepStart, done.into(), failed.into(), Part::StepStart, Part::text("At 06:12.")];
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    pen.say(Body::Assistant(Content { parts, ..model() }));
    pen.say(user([Part::text("Thanks.")]));
    let session = pen.session();
    assert_eq!(session.branch(session.head().unwrap()).records.len(), pen.lines().len());
    insta::assert_snapshot!(pen.history(View::Gemini), @r#"
    {"role":"user","parts":[{"text":"When?"}]}
    {"role":"model","parts":[{"functionCall":{"id":"c1","name":"read_file","args":{}}},{"functionCall":{"id":"c2","name":"read_file","args":{}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"06:12"}}},{"functionResponse":{"id":"c2","name":"read_file","response":{"error":"gone"}}}]}
    {"role":"model","parts":[{"text":"At 06:12."}]}
    {"role":"user","parts":[{"text":"Thanks."}]}
    "#);
}

#[test]
fn a_compaction_stands_for_what_came_before() {
    let said = |parts: Vec<Part>| Content { parts, ..Content::default() };
    let whole = vec![
        user([Part::text("One was asked.")]),
        Body::Assistant(said(vec![call("read_file", "c1")])),
        results([result("c1", "06:12", Outcome::Done)]),
    ];
    let of_summary = Compaction {
        summary: Some("One was asked.".to_owned()),
        trigger: Some("manual".to_owned()),
        tokens_before: Some(1000),
        tokens_after: Some(50),
        cuts: true,
        ..Compaction::default()
    };
    let read = |compaction: Compaction| {
        let mut pen = pen();
        pen.say(user([Part::text("One")]));
        pen.say(Body::Assistant(Content { parts: vec![Part::text("1")], ..model() }));
        pen.say(Body::Compaction(compaction));
        pen.say(user([Part::text("Two")]));
        assert_eq!(pen.lost(), "");
        assert_eq!(pen.bodies().len(), 4, "what came before stays on the branch");
        pen
    };
    let pen = read(of_summary.clone());
    insta::assert_snapshot!(pen.lines()[2], @r#"{"uuid":"00000000-0000-7000-8000-000000000002","parentUuid":"00000000-0000-7000-8000-000000000001","sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.256Z","type":"system","subtype":"chat_compression","provenance":"system","cwd":"/home/ada/engine/src","version":"1.2.3","systemPayload":{"info":{"compressionStatus":1,"originalTokenCount":1000,"newTokenCount":50,"triggerReason":"manual"},"compressedHistory":[{"role":"user","parts":[{"text":"One was asked."}]}]}}"#);
    insta::assert_snapshot!(pen.history(View::Gemini), @r#"
    {"role":"user","parts":[{"text":"One was asked."}]}
    {"role":"user","parts":[{"text":"Two"}]}
    "#);
    let given = Compaction { replacement: Some(whole), ..of_summary };
    let pen = read(given.clone());
    assert_eq!(pen.bodies()[2], Body::Compaction(given));
    insta::assert_snapshot!(pen.history(View::Gemini), @r#"
    {"role":"user","parts":[{"text":"One was asked."}]}
    {"role":"model","parts":[{"functionCall":{"id":"c1","name":"read_file","args":{"path":"a.txt"}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"06:12"}}}]}
    {"role":"user","parts":[{"text":"Two"}]}
    "#);
}

#[test]
fn a_step_back_is_a_record_that_hangs_on_where_it_goes_on() {
    let mut pen = pen();
    let first = pen.say(user([Part::text("One")]));
    pen.say(Body::Assistant(Content { parts: vec![Part::text("1")], ..model() }));
    let ack = pen.recorder.rewind(&first, None);
    let back = pen.hear(ack);
    assert_eq!((pen.head(), pen.session().heads().len()), (back, 2));
    assert_eq!(pen.lines().last().unwrap()["parentUuid"], first.as_str());
    assert_eq!(pen.bodies()[1], Body::Rewind(Rewind::default()));
    let next = pen.say(user([Part::text("Two")]));
    assert_eq!((pen.head(), pen.bodies().len()), (next, 3));
}

/// A stream is written part by part, in records with one id; what it cost comes last.
#[test]
fn a_streamed_answer_is_one_record() {
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    pen.stream([
        Delta::Model("qwen3-coder-plus".to_owned()),
        Delta::Reasoning("Hm.".to_owned()),
        Delta::Text("ha".to_owned()),
        Delta::End(None),
        Delta::Text("ha".to_owned()),
        Delta::Part(call("read_file", "c1")),
    ]);
    let ack = pen.recorder.finish_answer(model().usage);
    pen.hear(ack);
    pen.say(results([result("c1", "06:12", Outcome::Done)]));
    assert_eq!(pen.lost(), "");
    let parts = vec![Part::reasoning("Hm."), Part::text("ha"), Part::text("ha"), call("read_file", "c1")];
    assert_eq!(pen.bodies()[1], Body::Assistant(Content { parts, ..model() }));
    assert_eq!((pen.bodies().len(), pen.lines().len()), (3, 7));
    insta::assert_snapshot!(pen.lines()[5], @r#"{"uuid":"00000000-0000-7000-8000-000000000001","parentUuid":"00000000-0000-7000-8000-000000000000","sessionId":"5e551000-0000-4000-8000-000000000001","timestamp":"2026-11-14T23:59:58.259Z","type":"assistant","provenance":"assistant_output","cwd":"/home/ada/engine/src","version":"1.2.3","fragment":{"seq":4,"part":4},"message":{"role":"model","parts":[]},"usageMetadata":{"promptTokenCount":110,"candidatesTokenCount":20,"thoughtsTokenCount":5,"totalTokenCount":130,"cachedContentTokenCount":100}}"#);
}

#[test]
fn a_session_lies_where_the_agent_looks_for_it() {
    let place = |session: &str, cwd: &str| {
        let (session, cwd) = (SessionId::from(session), Path::new(cwd));
        (writing(&QwenCode).place)(&Beginning { project: cwd, cwd, ..beginning(&session) })
    };
    let path = place(SESSION, "/home/ada/my.proj_1").unwrap();
    assert_eq!(path, Path::new("projects/-home-ada-my-proj-1/chats").join(format!("{SESSION}.jsonl")));
    let fits = place(SESSION, &format!("/{}", "a".repeat(254))).unwrap();
    assert!(fits.starts_with(format!("projects/-{}", "a".repeat(254))));
    let why = place(SESSION, &format!("/{}", "a".repeat(255))).unwrap_err();
    assert!(why.contains("Qwen Code does not record there"), "{why}");
    for odd in [
        "",
        "01a1e2b3-73c1-755e-8b20-3b2bc571776f",
        "5e551000-0000-4000-c000-000000000001",
        "notes",
        "../../etc/passwd",
        "5e551000-0000-4000-8000-00000000000/",
    ] {
        assert!(place(odd, "/home/ada").is_err(), "{odd}");
    }
}

#[test]
fn a_fork_takes_lines_over_and_changes_only_who_and_what_they_hang_on() {
    let (new, old) = (SessionId("5e551000-0000-4000-8000-00000000000f".to_owned()), SessionId(SESSION.to_owned()));
    let (id, parent) = (RecordId("u2".to_owned()), RecordId("u1".to_owned()));
    let adopt = |line: Value, parent: Option<&RecordId>| {
        let adoption = Adoption { session: &new, parent, from: (&old, &id) };
        writing(&QwenCode).adopt.unwrap()(line, &adoption)
    };
    let line = json!({"uuid": "u2", "parentUuid": "gone", "zebra": {"b": 1, "a": 2}, "sessionId": SESSION, "type": "user", "message": {"role": "user", "parts": [{"text": "Hi"}]}});
    insta::assert_snapshot!(adopt(line.clone(), Some(&parent)), @r#"{"uuid":"u2","parentUuid":"u1","zebra":{"b":1,"a":2},"sessionId":"5e551000-0000-4000-8000-00000000000f","type":"user","message":{"role":"user","parts":[{"text":"Hi"}]},"forkedFrom":{"sessionId":"5e551000-0000-4000-8000-000000000001","messageUuid":"u2"}}"#);
    assert_eq!(adopt(line, None)["parentUuid"], Value::Null);
    assert_eq!(adopt(json!("odd"), None), json!("odd"));

    let mut pen = pen();
    pen.say(user([Part::text("Hi")]));
    let fork = adopt(pen.lines()[0].clone(), None).to_string();
    let session = Session::from_bytes(&QwenCode, fork.into_bytes(), &crate::support::reading());
    assert_eq!((session.forked_from(), session.id()), (Some(SESSION), new.clone()));
}

/// What an answer cost may be known when its tools have answered already.
#[test]
fn what_an_answer_cost_moves_nothing() {
    let mut pen = pen();
    pen.say(user([Part::text("When?")]));
    pen.say(Body::Assistant(Content { usage: None, parts: vec![call("read_file", "c1")], ..model() }));
    let head = pen.say(results([result("c1", "06:12", Outcome::Done)]));
    let ack = pen.recorder.usage(model().usage.unwrap());
    assert_eq!(pen.hear(ack), head);
    pen.say(user([Part::text("Thanks.")]));
    assert_eq!(pen.bodies().len(), 4);
    assert_eq!(pen.session().requests().len(), 1);
}

/// What any agent said, the model hears again: all of it where nothing is reported as lost.
#[test]
fn every_session_can_be_written() {
    assert_every_session_can_be_written(&QwenCode);
}
