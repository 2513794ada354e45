//! What a real agent sends when it resumes a session, beside what we would send, in one neutral notation.
//!
//! ```text
//! U: text     A: text     A.call ID NAME(ARGUMENTS)     U.result ID [ERR]: text          …(N): cut, N characters in all
//! ```
//!
//! `ctx(…)` and `S:` lines of an agent are left out: context it adds itself.

use std::path::Path;

use scrollback::view::history::NO_RESULT;
use serde_json::Value;

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
        let who = match message["role"].as_str() {
            // The notation has none of its texts.
            Some("system") => {
                lines.push("ctx(S)".to_owned());
                continue;
            }
            Some("assistant") => "A",
            _ => "U",
        };
        for block in message["content"].as_array().unwrap() {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            lines.push(match text("type") {
                "text" => text_line(who, text("text")),
                "thinking" => format!("{who}.think: {} sig={}", text("thinking"), text("signature")),
                "tool_use" => format!("{who}.call {} {}({})", text("id"), text("name"), block["input"]),
                "tool_result" => {
                    let failed = if block["is_error"] == true { " ERR" } else { "" };
                    format!("{who}.result {}{failed}: {}", text("tool_use_id"), text("content"))
                }
                "image" => format!("{who}.image"),
                other => panic!("{other}"),
            });
        }
    }
    lines
}

/// A text in the notation; a notification names its task, whatever the agent wraps it in.
fn text_line(who: &str, text: &str) -> String {
    match text.strip_prefix("<task-notification>").and_then(|rest| rest.split_once("<task-id>")) {
        Some((_, rest)) => format!("{who}.notification {}", rest.split('<').next().unwrap_or_default()),
        None if text.starts_with("<system-reminder>") => format!("ctx({who})"),
        None => format!("{who}: {text}"),
    }
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
                let output = item["output"].as_str().map_or_else(|| item["output"].to_string(), str::to_owned);
                lines.push(format!("T.result {}: {output}", text("call_id")));
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

/// The file has a text without what the vendor wrote: only what stands before it can be compared.
fn is_cut(theirs: &str, ours: &str) -> bool {
    ours.split_once("<<cut").is_some_and(|(begin, _)| fits_beginning(theirs, begin))
}

/// Every agent has its own words for a result that was never written, and vendors' words are cut out of the files.
fn same_line(theirs: &str, ours: &str) -> bool {
    let made_up =
        |head: &str, text: &str| (head.contains(".result ") && text == NO_RESULT) || text.starts_with("<<cut");
    match (theirs.split_once(": "), ours.split_once(": ")) {
        (Some((theirs, _)), Some((ours, text))) if made_up(ours, text) => theirs == ours,
        // The notation cuts signatures without a mark.
        (Some(("A.think", theirs)), Some(("A.think", ours))) => ours.starts_with(theirs),
        _ => is_cut(theirs, ours) || fits(theirs, ours),
    }
}

/// Compares words, whatever lies between them; `…(N)` ends a text that was cut.
fn fits(theirs: &str, ours: &str) -> bool {
    match theirs.rsplit_once('…').filter(|(_, count)| count.starts_with('(')) {
        Some((begin, _)) => plain(ours).starts_with(&plain(begin)),
        None => plain(theirs) == plain(ours),
    }
}

fn fits_beginning(theirs: &str, begin: &str) -> bool {
    plain(theirs).starts_with(&plain(begin))
}

fn plain(text: &str) -> String {
    let text = text.replace("\\n", "").replace("\\t", "");
    text.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect()
}
