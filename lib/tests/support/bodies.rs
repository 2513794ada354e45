//! Bodies of every kind, as a recorder or a converter hands them to a format of turns: for properties.
//!
//! It stands alone: the library's own tests take it too.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrollback::model::{
    Approval, Body, Compaction, Content, Context, FilePart, Outcome, Part, Restore, Rewind, Snapshot, SteeringPart,
    StreamState, TextPart, Thinking, Title, TitleSource, Todo, ToolKind, ToolNote, ToolPart, ToolResult, ToolState,
    Usage,
};
use serde_json::{Map, Value, json};

/// Any body.
pub(crate) fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        4 => said().prop_map(Body::User),
        6 => said().prop_map(Body::Assistant),
        2 => said().prop_map(Body::ToolResult),
        2 => said().prop_map(Body::System),
        1 => said().prop_map(Body::Attachment),
        1 => text().prop_map(|text| Body::Title(Title { text, source: TitleSource::Manual })),
        1 => (option::of(text()), option::of(0..9_u64)).prop_map(|(summary, tokens_before)| {
            Body::Compaction(Compaction { summary, tokens_before, cuts: true, ..Compaction::default() })
        }),
        1 => option::of(text()).prop_map(|reason| Body::Rewind(Rewind { from: None, reason })),
        1 => json().prop_map(|files| Body::Restore(Restore { target: Some("x".into()), files, ..Restore::default() })),
        1 => json().prop_map(|states| Body::Snapshot(Snapshot::from_states(None, false, states))),
        1 => json().prop_map(Body::Other),
        1 => Just(Body::Header(Map::new())),
    ]
}

/// Several of them, as a recorder hands them on: no call has the id of another record's.
pub(crate) fn several() -> impl Strategy<Value = Vec<Body>> {
    vec(body(), 0..6).prop_map(|mut bodies| {
        for (number, body) in bodies.iter_mut().enumerate() {
            let Some(said) = body.content_mut() else { continue };
            let calls = said.parts.iter_mut().filter_map(|part| match part {
                Part::Tool(call) => Some(&mut call.call_id),
                _ => None,
            });
            let ids = calls.chain(said.results.iter_mut().map(|result| &mut result.call_id));
            ids.filter(|id| !id.is_empty()).for_each(|id| id.push_str(&format!("-{number}")));
        }
        bodies
    })
}

/// What a record says: most records say little, some say everything.
pub(crate) fn said() -> impl Strategy<Value = Content> {
    let facts = (option::weighted(0.3, text()), option::weighted(0.3, usage()), context());
    let state = (option::weighted(0.1, vec(todo(), 0..3)), option::weighted(0.1, Just(thinking())));
    let rest = (option::weighted(0.1, text()), option::weighted(0.1, text()), metadata(), any::<bool>());
    (vec(part(), 0..6), vec(result(), 0..3), facts, state, rest).prop_map(
        |(parts, results, (model, usage, context), (todos, thinking), (sender, error, metadata, to_model))| {
            let notes = if results.len() == 2 { vec![note()] } else { Vec::new() };
            let said = Content { parts, results, notes, model, usage, context, todos, thinking, ..Content::default() };
            Content { sender, error, metadata, to_model, ..said }
        },
    )
}

/// What a record says, most of it what every format can hold, and little else.
pub(crate) fn said_plainly() -> impl Strategy<Value = Content> {
    let usual = prop_oneof![
        4 => "[a-z]{1,9}".prop_map(Part::text),
        1 => Just(Part::StepStart),
        2 => (json(), json()).prop_map(|(input, output)| ToolPart::dynamic("Bash", "", ToolState::done(input, output)).into()),
        1 => json().prop_map(|input| ToolPart::dynamic("Bash", "", ToolState::failed(input, "broke")).into()),
    ];
    let odd = (option::weighted(0.5, part()), 0..30, said());
    (vec(usual, 1..4), odd, option::of(usage())).prop_map(|(mut parts, (odd, field, other), usage)| {
        parts.extend(odd);
        for (number, part) in parts.iter_mut().enumerate() {
            if let Part::Tool(call) = part {
                call.call_id = format!("c{number}");
            }
        }
        let said = Content { parts, usage, to_model: true, ..Content::default() };
        match field {
            0 => Content { todos: other.todos, ..said },
            1 => Content { thinking: other.thinking, ..said },
            2 => Content { sender: other.sender, ..said },
            3 => Content { error: other.error, ..said },
            4 => Content { metadata: other.metadata, ..said },
            5 => Content { context: other.context, ..said },
            6 => Content { notes: vec![note()], ..said },
            7 => Content { to_model: false, ..said },
            8 => Content { results: other.results, ..said },
            9 => Content { model: other.model, ..said },
            _ => said,
        }
    })
}

fn part() -> impl Strategy<Value = Part> {
    let other = json!({"type": "hologram", "depth": 3});
    prop_oneof![
        6 => text().prop_map(Part::text),
        1 => text().prop_map(|text| Part::Text(TextPart {
            text,
            state: Some(StreamState::Streaming),
            provider_metadata: Some(Map::from_iter([("acme".to_owned(), json!({"id": 1}))])),
            ..TextPart::default()
        })),
        2 => text().prop_map(Part::reasoning),
        2 => Just(Part::StepStart),
        6 => tool(),
        1 => file(),
        1 => vec(prop_oneof![text().prop_map(Part::text), file()], 0..3).prop_map(|parts| {
            Part::Steering(SteeringPart { id: "while".to_owned(), parts, extra: Map::new() })
        }),
        1 => json().prop_map(|data| Part::data("note", data)),
        1 => Just(Part::from(json!({"type": "source-url", "sourceId": "s", "url": "https://e.example"}))),
        1 => Just(Part::from(json!({"type": "custom", "kind": "acme.note"}))),
        1 => Just(Part::from(json!({"type": "reasoning-file", "mediaType": "image/png", "url": "data:image/png,x"}))),
        1 => prop_oneof![Just(Part::Other(other)), json().prop_map(Part::Other)],
    ]
}

fn file() -> impl Strategy<Value = Part> {
    let types = prop_oneof![Just("image/png"), Just("image"), Just("application/pdf")];
    let urls = prop_oneof![Just("data:image/png;base64,AAAA"), Just("https://e.example/x"), Just("no address")];
    (types, urls, option::of(text())).prop_map(|(media_type, url, filename)| {
        let (media_type, url) = (media_type.to_owned(), url.to_owned());
        Part::File(FilePart { media_type, url, filename, ..FilePart::default() })
    })
}

fn tool() -> impl Strategy<Value = Part> {
    let asked = |approved| Approval { id: "ask".to_owned(), approved, ..Approval::default() };
    let refused = |reason| Approval { id: "ask".to_owned(), approved: Some(false), reason, ..Approval::default() };
    let state = prop_oneof![
        1 => option::of(json()).prop_map(|input| ToolState::InputStreaming { input }),
        4 => json().prop_map(|input| ToolState::InputAvailable { input }),
        1 => json().prop_map(move |input| ToolState::ApprovalRequested { input, approval: asked(None) }),
        1 => json().prop_map(move |input| ToolState::ApprovalResponded { input, approval: asked(Some(true)) }),
        4 => (json(), json()).prop_map(|(input, output)| ToolState::done(input, output)),
        1 => json().prop_map(|input| ToolState::OutputAvailable { input, output: None, preliminary: Some(true), approval: None }),
        2 => (json(), text()).prop_map(|(input, error)| ToolState::failed(input, error)),
        1 => json().prop_map(|raw| ToolState::OutputError {
            input: None,
            raw_input: Some(raw),
            error_text: "bad input".to_owned(),
            approval: None,
        }),
        1 => (json(), option::of(text())).prop_map(move |(input, why)| ToolState::OutputDenied { input, approval: refused(why) }),
    ];
    let name = prop_oneof![8 => Just("Bash".to_owned()), 1 => text()];
    let about = prop_oneof![
        4 => Just(None),
        1 => Just(Some(json!({"scrollback": {"durationMs": 12}}))),
        1 => Just(Some(json!({"scrollback": {"output": "half"}}))),
        1 => Just(Some(json!({"scrollback": {"output": null}}))),
        1 => Just(Some(json!({"scrollback": {"durationMs": 12, "output": "half"}, "acme": {"x": 1}}))),
    ];
    (name, call_id(), state, any::<bool>(), about).prop_map(|(name, id, state, is_dynamic, about)| {
        let mut tool = ToolPart::dynamic(name, id, state);
        tool.kind = if is_dynamic { ToolKind::Dynamic } else { ToolKind::Static };
        tool.call_provider_metadata = about.and_then(|about| about.as_object().cloned());
        tool.into()
    })
}

fn call_id() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 12 => "c[0-9]"]
}

fn result() -> impl Strategy<Value = ToolResult> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Done),
        1 => text().prop_map(Outcome::Failed),
        1 => option::of(text()).prop_map(Outcome::Denied),
    ];
    (call_id(), option::of(text()), json(), outcome, any::<bool>(), option::of(0..9_u64)).prop_map(
        |(call_id, name, output, outcome, preliminary, duration_ms)| {
            let about = Map::new();
            ToolResult { call_id, name, output, outcome, preliminary, duration_ms, about }
        },
    )
}

fn note() -> ToolNote {
    ToolNote { call_id: "c1".to_owned(), about: Map::from_iter([("status".to_owned(), json!("ok"))]) }
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(0..9_000_u64);
    (count(), count(), count(), count(), count()).prop_map(|(input, output, cache_read, cache_write, reasoning)| {
        Usage { input, output, cache_read, cache_write, reasoning }
    })
}

fn context() -> impl Strategy<Value = Context> {
    let word = || option::weighted(0.3, text());
    (word(), word(), option::weighted(0.1, text())).prop_map(|(cwd, git_branch, platform)| Context {
        cwd,
        git_branch,
        platform,
        user_type: None,
    })
}

fn todo() -> impl Strategy<Value = Todo> {
    text().prop_map(|content| Todo { content, status: "pending".to_owned(), active_form: None, extra: Map::new() })
}

fn thinking() -> Thinking {
    Thinking { level: Some("high".to_owned()), disabled: false, triggers: vec![json!("think")] }
}

/// Keys that are ours among them: they may say anything.
fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        Just("timestamp"),
        Just("createdAt"),
        Just("model"),
        Just("usage"),
        Just("totalUsage"),
        Just("cwd"),
        Just("todos"),
        Just("content"),
        Just("priority"),
    ];
    let value = prop_oneof![
        json(),
        Just(json!("2026-11-15T10:00:00Z")),
        Just(json!(1_763_200_000_000_u64)),
        Just(json!({"inputTokens": 5, "output": 7})),
    ];
    vec((key, value), 0..3).prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Any JSON, not deep.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            vec(("[a-c]{1}", inner), 0..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Any text: empty, blank, of many lines, of odd characters.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z ]{1,12}",
        1 => Just(String::new()),
        1 => Just(" \n".to_owned()),
        1 => Just("two\n\nparts\u{2028}\u{0}\u{7f}\u{fffd}\u{202e}{\"a\":\"}{\"}".to_owned()),
        1 => ".{0,8}",
    ]
}
