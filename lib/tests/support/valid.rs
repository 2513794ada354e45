//! Whether a file is one that the original program takes: what its format's description asks for, judged without our reader.
//!
//! Each line is of a shape: the fields that it must have and may have, in their order, and what each holds. Then the lines
//! together: a header that is first, names that are one record's, parents and calls that are there.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

/// What a field holds.
#[derive(Clone, Copy)]
enum Is {
    Anything,
    Text,
    /// A text that is not empty.
    Words,
    OneOf(&'static [&'static str]),
    /// A text in ISO 8601 with its offset.
    Time,
    Count,
    Flag,
    List,
    Object,
    /// A name, or `null`.
    Parent,
}

/// A kind of line: which it is, what it must have and what it may have. Fields come in this order, the musts among the mays.
struct Shape {
    of: &'static [(&'static str, &'static str)],
    fields: &'static [(&'static str, Need, Is)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    /// Left out where there is nothing to tell: never `null`.
    May,
}
use Need::{May, Must};

const FLUUX: [Shape; 2] = [
    Shape {
        of: &[("type", "session")],
        fields: &[
            ("type", Must, Is::Words),
            ("version", Must, Is::Count),
            ("created", Must, Is::Time),
            ("jid", Must, Is::Words),
        ],
    },
    Shape {
        of: &[("type", "message")],
        fields: &[
            ("type", Must, Is::Words),
            ("role", Must, Is::OneOf(&["user", "assistant"])),
            ("content", Must, Is::Text),
            ("msg_id", May, Is::Words),
            ("sender", May, Is::Words),
            ("ts", May, Is::Time),
            ("attachments", May, Is::List),
            ("reaction", May, Is::Object),
        ],
    },
];

const SAGE_EL: [Shape; 1] = [Shape {
    of: &[],
    fields: &[
        ("role", Must, Is::OneOf(&["user", "assistant", "system"])),
        ("content", Must, Is::Words),
        ("timestamp", May, Is::Time),
        ("uuid", May, Is::Words),
        ("session_id", May, Is::Words),
        ("tool_calls", May, Is::List),
        ("tokens", May, Is::Object),
        ("usage", May, Is::Object),
    ],
}];

const OF_CLAUDE: [(&str, Need, Is); 9] = [
    ("parentUuid", Must, Is::Parent),
    ("isSidechain", May, Is::Flag),
    ("type", Must, Is::Words),
    ("message", Must, Is::Object),
    ("uuid", Must, Is::Words),
    ("timestamp", Must, Is::Time),
    ("userType", May, Is::Words),
    ("cwd", May, Is::Words),
    ("sessionId", Must, Is::Words),
];

const CLAUDE_CODE: [Shape; 6] = [
    Shape { of: &[("type", "user")], fields: &OF_CLAUDE },
    Shape { of: &[("type", "assistant")], fields: &OF_CLAUDE },
    Shape {
        of: &[("type", "custom-title")],
        fields: &[("customTitle", Must, Is::Words), ("sessionId", Must, Is::Words)],
    },
    Shape { of: &[("type", "ai-title")], fields: &[("aiTitle", Must, Is::Words), ("sessionId", Must, Is::Words)] },
    Shape { of: &[("type", "last-prompt")], fields: &[("leafUuid", Must, Is::Words), ("sessionId", Must, Is::Words)] },
    Shape {
        of: &[("type", "system"), ("subtype", "compact_boundary")],
        fields: &[("parentUuid", Must, Is::Parent), ("compactMetadata", Must, Is::Object), ("uuid", Must, Is::Words)],
    },
];

const OF_NATIVE: [(&str, Need, Is); 12] = [
    ("type", Must, Is::Words),
    ("uuid", Must, Is::Words),
    ("parentUuid", Must, Is::Parent),
    ("timestamp", Must, Is::Time),
    ("sessionId", Must, Is::Words),
    ("version", May, Is::Words),
    ("format", Must, Is::Count),
    ("context", May, Is::Object),
    ("message", May, Is::Object),
    ("toolResults", May, Is::List),
    ("usage", May, Is::Object),
    ("todos", May, Is::List),
];

const NATIVE: [Shape; 5] = [
    Shape { of: &[("type", "user")], fields: &OF_NATIVE },
    Shape { of: &[("type", "assistant")], fields: &OF_NATIVE },
    Shape { of: &[("type", "tool_result")], fields: &OF_NATIVE },
    Shape { of: &[("type", "system")], fields: &OF_NATIVE },
    Shape {
        of: &[("type", "file_history_snapshot")],
        fields: &[
            ("type", Must, Is::Words),
            ("messageId", May, Is::Words),
            ("timestamp", Must, Is::Time),
            ("isSnapshotUpdate", Must, Is::Flag),
            ("snapshot", Must, Is::Anything),
        ],
    },
];

const CODEX: [Shape; 2] = [
    Shape {
        of: &[],
        fields: &[("timestamp", Must, Is::Time), ("type", Must, Is::Words), ("payload", Must, Is::Object)],
    },
    Shape {
        of: &[("type", "session_meta")],
        fields: &[
            ("payload/id", Must, Is::Words),
            ("payload/timestamp", Must, Is::Time),
            ("payload/cwd", Must, Is::Words),
            ("payload/originator", Must, Is::Words),
            ("payload/cli_version", Must, Is::Words),
        ],
    },
];

const OF_QWEN: [(&str, Need, Is); 7] = [
    ("uuid", Must, Is::Words),
    ("parentUuid", Must, Is::Parent),
    ("sessionId", Must, Is::Words),
    ("type", Must, Is::Words),
    ("cwd", Must, Is::Words),
    ("message/role", Must, Is::OneOf(&["user", "model"])),
    ("message/parts", Must, Is::List),
];

const QWEN_CODE: [Shape; 3] = [
    Shape { of: &[("type", "user")], fields: &OF_QWEN },
    Shape { of: &[("type", "assistant")], fields: &OF_QWEN },
    Shape { of: &[("type", "tool_result")], fields: &OF_QWEN },
];

const AI_SDK: [Shape; 1] = [Shape {
    of: &[],
    fields: &[
        ("id", Must, Is::Words),
        ("role", Must, Is::OneOf(&["user", "assistant", "system"])),
        ("metadata", May, Is::Object),
        ("parts", Must, Is::List),
    ],
}];

/// What is wrong with a file of a dialect; the first is enough.
pub(crate) fn check(dialect: &str, text: &str) -> Result<(), String> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        let is_right = shaped(shapes(dialect), &value).and_then(|()| says(dialect, &value));
        is_right.map_err(|why| format!("line {}: {why}: {line}", at + 1))?;
        lines.push(value);
    }
    match dialect {
        "fluux" => {
            let headers: Vec<usize> = (0..lines.len()).filter(|at| lines[*at]["type"] == "session").collect();
            (headers == [0]).then_some(()).ok_or_else(|| format!("headers stand in {headers:?}"))?;
            once(&lines, "/msg_id")
        }
        "codex" if lines.first().is_some_and(|line| line["type"] != "session_meta") => {
            Err("the header is not first".to_owned())
        }
        "codex" => Ok(()),
        "claude-code" => {
            once(&lines, "/uuid")?;
            parents(&lines)?;
            one_session(&lines, "/sessionId")?;
            answers_of_claude(&lines)
        }
        "native" | "qwen-code" => {
            parents(&lines)?;
            one_session(&lines, "/sessionId")
        }
        "sage-el" => {
            once(&lines, "/uuid")?;
            one_session(&lines, "/session_id")
        }
        "ai-sdk" => once(&lines, "/id"),
        other => panic!("nobody has said when a file of {other} is valid"),
    }
}

fn shapes(dialect: &str) -> &'static [Shape] {
    match dialect {
        "fluux" => &FLUUX,
        "sage-el" => &SAGE_EL,
        "claude-code" => &CLAUDE_CODE,
        "native" => &NATIVE,
        "codex" => &CODEX,
        "qwen-code" => &QWEN_CODE,
        _ => &AI_SDK,
    }
}

/// Every shape that a line is of must fit, and where all kinds are listed it is of one.
fn shaped(shapes: &[Shape], line: &Value) -> Result<(), String> {
    let fields = line.as_object().ok_or("no object")?;
    for shape in shapes.iter().filter(|shape| shape.of.iter().all(|(key, word)| line[*key] == *word)) {
        let mut before = None;
        for (path, need, is) in shape.fields {
            match line.pointer(&format!("/{path}")) {
                None if *need == Must => return Err(format!("{path} is missing")),
                None => continue,
                Some(value) if !holds(*is, value) => return Err(format!("{path} is {value}")),
                Some(_) => {}
            }
            let place = fields.keys().position(|key| key == path);
            if place.is_some() && place < before {
                return Err(format!("{path} stands too early"));
            }
            before = place.or(before);
        }
    }
    Ok(())
}

fn holds(is: Is, value: &Value) -> bool {
    match is {
        Is::Anything => true,
        Is::Text => value.is_string(),
        Is::Words => value.as_str().is_some_and(|text| !text.is_empty()),
        Is::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        Is::Time => value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok()),
        Is::Count => value.is_u64(),
        Is::Flag => value.is_boolean(),
        Is::List => value.is_array(),
        Is::Object => value.is_object(),
        Is::Parent => value.is_null() || value.as_str().is_some_and(|name| !name.is_empty()),
    }
}

/// What is inside a line.
fn says(dialect: &str, line: &Value) -> Result<(), String> {
    let list = |pointer: &str| line.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let wrong = |what: &str| Err(what.to_owned());
    match dialect {
        "fluux" if line["type"] == "session" => Ok(()),
        "fluux" => {
            let of_file =
                |file: &Value| ["filename", "mime_type", "size"].iter().all(|key| holds(Is::Words, &file[*key]));
            let reaction = &line["reaction"];
            let is_reaction =
                reaction.is_null() || holds(Is::Words, &reaction["message_id"]) && reaction["emojis"].is_array();
            let says_something = line["content"] != "" || !reaction.is_null() || !list("/attachments").is_empty();
            match line["type"] == "message" {
                false => wrong("neither the header nor a message"),
                true if !list("/attachments").iter().all(of_file) => wrong("an attachment without its facts"),
                true if !is_reaction => wrong("a reaction to nothing"),
                true if !says_something => wrong("a message of nothing"),
                true if line["role"] == "assistant" && line.get("sender").is_some() => wrong("the agent is named"),
                true => Ok(()),
            }
        }
        "sage-el" => {
            let is_call = |call: &Value| {
                holds(Is::Words, &call["name"])
                    && call.get("args").is_some()
                    && call.get("success").is_none_or(Value::is_boolean)
                    && call.get("duration_ms").is_none_or(Value::is_u64)
                    && (call["success"] != true || call.get("result").is_some())
            };
            let estimate = line.pointer("/tokens/estimated");
            match list("/tool_calls").iter().all(is_call) && estimate.is_none_or(Value::is_u64) {
                true => Ok(()),
                false => wrong("a call or an estimate that is none"),
            }
        }
        "claude-code" if line["type"] == "assistant" => match list("/message/content").len() {
            0 | 1 => Ok(()),
            _ => wrong("several blocks in one line"),
        },
        "ai-sdk" => {
            let is_empty = list("/parts").is_empty() && line["role"] != "assistant";
            is_empty.then_some("a prompt without parts".to_owned()).map_or(Ok(()), Err)?;
            list("/parts").iter().try_for_each(part_of_sdk)
        }
        _ => Ok(()),
    }
}

/// The keys that a part of a UIMessage must have, and those that its state forbids.
fn part_of_sdk(part: &Value) -> Result<(), String> {
    let kind = part["type"].as_str().unwrap_or_default();
    let (must, must_not): (&[&str], &[&str]) = match (kind, part["state"].as_str()) {
        ("text" | "reasoning", _) => (&["text"], &[]),
        ("file" | "reasoning-file", _) => (&["mediaType", "url"], &[]),
        ("source-url", _) => (&["sourceId", "url"], &[]),
        ("source-document", _) => (&["sourceId", "mediaType", "title"], &[]),
        ("custom", _) => (&["kind"], &[]),
        ("step-start", _) => (&[], &[]),
        ("steering-message", _) => (&["id", "parts"], &[]),
        (kind, _) if kind.starts_with("data-") => (&["data"], &[]),
        (kind, state) if kind == "dynamic-tool" || kind.starts_with("tool-") => match state {
            Some("input-streaming") => (&["toolCallId"], &["output", "errorText", "approval"]),
            Some("input-available") => (&["toolCallId", "input"], &["output", "errorText", "approval"]),
            Some("approval-requested" | "approval-responded") => {
                (&["toolCallId", "input", "approval"], &["output", "errorText"])
            }
            Some("output-available") => (&["toolCallId", "input", "output"], &["errorText"]),
            Some("output-error") => (&["toolCallId", "errorText"], &["output"]),
            Some("output-denied") => (&["toolCallId", "input", "approval"], &["output", "errorText"]),
            other => return Err(format!("state {other:?}")),
        },
        _ => return Err(format!("a part of the type {kind:?}")),
    };
    let missing = must.iter().find(|key| part.get(**key).is_none());
    let extra = must_not.iter().find(|key| part.get(**key).is_some());
    match (missing, extra) {
        (None, None) => Ok(()),
        (Some(key), _) => Err(format!("a {kind} without {key}")),
        (None, Some(key)) => Err(format!("a {kind} with {key}")),
    }
}

/// No two lines have the same name.
fn once(lines: &[Value], pointer: &str) -> Result<(), String> {
    let mut names = HashSet::new();
    let again = lines.iter().filter_map(|line| line.pointer(pointer)?.as_str()).find(|name| !names.insert(*name));
    again.map_or(Ok(()), |name| Err(format!("two lines are called {name}")))
}

/// What a line hangs on stands before it.
fn parents(lines: &[Value]) -> Result<(), String> {
    let mut known = HashSet::new();
    for line in lines {
        for parent in ["parentUuid", "logicalParentUuid"].into_iter().filter_map(|key| line[key].as_str()) {
            known.contains(parent).then_some(()).ok_or_else(|| format!("{parent} is not there: {line}"))?;
        }
        known.extend(line["uuid"].as_str());
    }
    Ok(())
}

fn one_session(lines: &[Value], pointer: &str) -> Result<(), String> {
    let sessions: HashSet<&str> = lines.iter().filter_map(|line| line.pointer(pointer)?.as_str()).collect();
    (sessions.len() < 2).then_some(()).ok_or_else(|| format!("lines of several sessions: {sessions:?}"))
}

/// Lines with one `message.id` are blocks of one answer, each on the one before, and its calls have names of their own.
fn answers_of_claude(lines: &[Value]) -> Result<(), String> {
    let (mut answers, mut calls, mut before) = (HashSet::new(), HashSet::new(), (None, None));
    for line in lines.iter().filter(|line| line["uuid"].is_string()) {
        let answer = line["message"]["id"].as_str();
        let goes_on = answer.is_some() && before == (answer, line["parentUuid"].as_str());
        if let Some(answer) = answer.filter(|answer| !goes_on && !answers.insert(*answer)) {
            return Err(format!("two answers are called {answer}"));
        }
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        let called = blocks.filter(|block| block["type"] == "tool_use").map(|block| block["id"].to_string());
        if let Some(again) = called.map(|id| (answer, id)).find(|call| !calls.insert(call.clone())) {
            return Err(format!("two calls of an answer are called {}", again.1));
        }
        before = (answer, line["uuid"].as_str());
    }
    Ok(())
}
