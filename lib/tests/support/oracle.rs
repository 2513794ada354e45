//! What a real agent sends when it resumes a session, beside what we read, in one neutral notation.
//!
//! ```text
//! U: text     A: text     A.call ID NAME(ARGUMENTS)     U.result ID [ERR]: text          …(N): cut, N characters in all
//! ```
//!
//! `ctx(…)`, `S:` and `A.think:` lines of an agent are left out: context it adds itself, and thinking it may drop.

use std::path::Path;

use scrollback::history::{History, NO_RESULT, View};

use scrollback::conversation::Conversation;
use scrollback::message::{Message, Part, Role, ToolPart, ToolState};
use scrollback::record::{Body, Kind};
use scrollback::session::{RecordRef, Session};
use serde_json::Value;

/// One thing that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    User(String),
    Answer(String),
    Call { id: String, name: String, input: String },
    Result { id: String, failed: bool, text: String },
}

/// What the agent sent, but for the prompt of the resume itself.
pub(crate) fn expected(case: &Path) -> Vec<Item> {
    let text = std::fs::read_to_string(case.join("expected.json")).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    let lines = told["history"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let mut items: Vec<Item> = lines.filter_map(item).collect();
    let prompt = items.iter().rposition(|item| matches!(item, Item::User(_)));
    items.remove(prompt.unwrap());
    items
}

/// What we would send: the default branch from its last cut on.
pub(crate) fn sent(session: &Session) -> Vec<Item> {
    let Some(head) = session.head() else { return Vec::new() };
    let branch = session.branch(head);
    let body = |record: &RecordRef<'_>| record.body().unwrap();
    let cut = branch.records.iter().rposition(|record| matches!(body(record), Body::Compaction(cut) if cut.cuts));
    let conversation = Conversation::new(&branch);
    let named_after = |at: usize| conversation.records(at).find(|record| record.kind() != Kind::Compaction);
    let mut items = Vec::new();
    for record in &branch.records[cut.unwrap_or(0)..] {
        match body(record) {
            Body::Compaction(compaction) => items.extend(compaction.summary.map(Item::User)),
            // What the agent says in the user's name is no message for people.
            Body::Attachment(said) => items.extend(said.parts.iter().filter_map(words)),
            _ => {}
        }
        for at in (0..conversation.len()).filter(|at| named_after(*at).as_ref() == Some(record)) {
            items.extend(of_message(&conversation.message(at).unwrap().unwrap()));
        }
    }
    items
}

fn words(part: &Part) -> Option<Item> {
    if let Part::Text(text) = part { Some(Item::User(text.text.clone())) } else { None }
}

/// What the agent sent and we would not, in order; nothing is right.
pub(crate) fn missing(expected: &[Item], sent: &[Item]) -> Vec<Item> {
    let mut rest = sent.iter();
    let mut missing = Vec::new();
    for item in expected {
        let before = rest.clone();
        if !rest.any(|ours| same(item, ours)) {
            missing.push(item.clone());
            rest = before;
        }
    }
    missing
}

/// What we would send and the agent did not: where it loses history.
pub(crate) fn gained(expected: &[Item], sent: &[Item]) -> Vec<Item> {
    sent.iter().filter(|ours| !expected.iter().any(|item| same(item, ours))).cloned().collect()
}

fn of_message(message: &Message) -> Vec<Item> {
    let (mut items, mut results) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match (part, message.role) {
            // An agent sends all calls of an answer before their results.
            (Part::StepStart, _) => items.append(&mut results),
            (Part::Text(text), Role::Assistant) => items.push(Item::Answer(text.text.clone())),
            (Part::Text(text), _) => items.push(Item::User(text.text.clone())),
            (Part::Tool(call), _) => {
                let (call, result) = of_call(call);
                items.push(call);
                results.push(result);
            }
            (Part::Steering(said), _) => results.extend(said.parts.iter().filter_map(words)),
            _ => {}
        }
    }
    items.append(&mut results);
    items
}

/// The call, and its result: one that was never written is closed by a failure.
fn of_call(call: &ToolPart) -> (Item, Item) {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (failed, text) = match &call.state {
        ToolState::OutputAvailable { output, .. } => (false, output.as_ref().map(words).unwrap_or_default()),
        ToolState::OutputError { error_text, .. } => (true, error_text.clone()),
        ToolState::OutputDenied { approval, .. } => (true, approval.reason.clone().unwrap_or_default()),
        _ => (true, "[no result was recorded: the session ended before this call finished]".to_owned()),
    };
    let input = call.input().map(Value::to_string).unwrap_or_default();
    let result = Item::Result { id: call.call_id.clone(), failed, text };
    (Item::Call { id: call.call_id.clone(), name: call.name.clone(), input }, result)
}

fn item(line: &str) -> Option<Item> {
    let line = line.replace("\\n", "\n");
    let (head, text) = line.split_once(": ").unwrap_or((&line, ""));
    let mut words = head.split(' ');
    match words.next()? {
        "U" => Some(Item::User(text.to_owned())),
        "A" => Some(Item::Answer(text.to_owned())),
        "U.result" | "T.result" => {
            let id = words.next()?.to_owned();
            Some(Item::Result { id, failed: words.next() == Some("ERR"), text: text.to_owned() })
        }
        "A.call" => {
            let (_, rest) = line.split_once(' ')?;
            let (id, rest) = rest.split_once(' ')?;
            let (name, input) = rest.split_once('(')?;
            let input = input.strip_suffix(')').unwrap_or(input);
            Some(Item::Call { id: id.to_owned(), name: name.to_owned(), input: input.to_owned() })
        }
        _ => None,
    }
}

fn same(theirs: &Item, ours: &Item) -> bool {
    match (theirs, ours) {
        (Item::User(theirs), Item::User(ours)) | (Item::Answer(theirs), Item::Answer(ours)) => fits(theirs, ours),
        (Item::Call { id, name, input }, Item::Call { id: our_id, name: our_name, input: ours }) => {
            id == our_id && name == our_name && fits(input, ours)
        }
        (Item::Result { id, failed, text }, Item::Result { id: our_id, failed: ours_failed, text: ours }) => {
            // Every agent has its own words for a result that was never written; vendors' words are cut out of the files.
            let made_up = ours.starts_with("[no result was recorded") || ours.starts_with("<<cut");
            id == our_id && failed == ours_failed && (made_up || fits(text, ours))
        }
        _ => false,
    }
}

/// Compares words, whatever lies between them; `…(N)` ends a text that was cut.
fn fits(theirs: &str, ours: &str) -> bool {
    let plain = |text: &str| -> String {
        let text = text.replace("\\n", "").replace("\\t", "");
        text.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect()
    };
    match theirs.rsplit_once('…').filter(|(_, count)| count.starts_with('(')) {
        Some((begin, _)) => plain(ours).starts_with(&plain(begin)),
        None => plain(theirs) == plain(ours),
    }
}

/// What a view says of a session's default branch.
pub(crate) fn messages(session: &Session, view: View) -> Vec<Value> {
    let history = History::of(session, session.head().unwrap()).unwrap();
    view.messages(&history).unwrap().0
}

/// What the agent sent, line by line, but for context and the prompt of the resume itself.
pub(crate) fn told(case: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(case.join("expected.json")).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    let lines = told["history"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
    let mut lines: Vec<String> = lines.filter(|line| !line.starts_with("ctx(")).collect();
    let prompt = lines.iter().rposition(|line| line.starts_with("U: "));
    lines.remove(prompt.unwrap());
    lines
}

/// Messages of Anthropic's API in the notation.
pub(crate) fn of_anthropic(messages: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        let who = if message["role"] == "assistant" { "A" } else { "U" };
        for block in message["content"].as_array().unwrap() {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            lines.push(match text("type") {
                "text" => format!("{who}: {}", text("text")),
                "thinking" => format!("{who}.think: {} sig={}", text("thinking"), text("signature")),
                "tool_use" => format!("{who}.call {} {}({})", text("id"), text("name"), block["input"]),
                "tool_result" => {
                    let failed = if block["is_error"] == true { " ERR" } else { "" };
                    format!("{who}.result {}{failed}: {}", text("tool_use_id"), text("content"))
                }
                other => panic!("{other}"),
            });
        }
    }
    lines
}

/// Items of the Responses API in the notation.
pub(crate) fn of_responses(items: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for item in items {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        match text("type") {
            "message" => {
                let who = if text("role") == "assistant" { "A" } else { "U" };
                let texts = item["content"].as_array().unwrap().iter().map(|piece| piece["text"].as_str().unwrap());
                lines.extend(texts.map(|text| format!("{who}: {text}")));
            }
            "reasoning" => {
                let summary = item["summary"][0]["text"].as_str().unwrap_or_default();
                lines.push(format!("A.think: {summary} enc={}", text("encrypted_content")));
            }
            "function_call" => {
                lines.push(format!("A.call {} {}({})", text("call_id"), text("name"), text("arguments")))
            }
            "custom_tool_call" => lines.push(format!("A.call {} {}({})", text("call_id"), text("name"), text("input"))),
            "function_call_output" | "custom_tool_call_output" => {
                lines.push(format!("T.result {}: {}", text("call_id"), text("output")));
            }
            other => panic!("{other}"),
        }
    }
    lines
}

/// Where what an agent sent and what we would send first differ; every line counts, in its place.
pub(crate) fn difference(theirs: &[String], ours: &[String]) -> Option<String> {
    let at = (0..theirs.len().max(ours.len())).find(|at| match (theirs.get(*at), ours.get(*at)) {
        (Some(theirs), Some(ours)) => !same_line(theirs, ours),
        _ => true,
    })?;
    Some(format!("line {at}: {:?}\n  ours: {:?}\n  of {ours:#?}", theirs.get(at), ours.get(at)))
}

/// Every agent has its own words for a result that was never written, and vendors' words are cut out of the files.
fn same_line(theirs: &str, ours: &str) -> bool {
    let made_up =
        |head: &str, text: &str| head.contains(".result ") && (text == NO_RESULT || text.starts_with("<<cut"));
    match (theirs.split_once(": "), ours.split_once(": ")) {
        (Some((theirs, _)), Some((ours, text))) if made_up(ours, text) => theirs == ours,
        // The notation cuts signatures without a mark.
        (Some(("A.think", theirs)), Some(("A.think", ours))) => ours.starts_with(theirs),
        _ => fits(theirs, ours),
    }
}
