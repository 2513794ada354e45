//! What an agent sent to continue a session, against what `scrollback history` prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::items::{Item, items, messages};

/// How `history` closes a call that has no result; each agent closes it in its own words.
const NO_RESULT: &str = "[no result was recorded:";
/// What Claude Code answers to a prompt that nobody has answered.
const CLOSES: &str = "No response requested.";
/// What Codex says in place of a picture that is only a URL.
const NO_PICTURE: &str = "image content omitted because remote image URLs are not supported";

/// Losses of a conversion that no model can see.
const INVISIBLE: &[&str] = &[
    "environment",
    "usage",
    "duration",
    "todos",
    "timestamp",
    "snapshot",
    "header",
    "title",
    "title source",
    "thinking",
    "sidechain",
];

/// The outcome of one scenario.
pub(super) struct Verdict {
    /// The number of items in the source of a conversion, as expected, and as sent.
    pub(super) counts: [Option<usize>; 3],
    pub(super) verdict: String,
    /// The first difference.
    pub(super) difference: String,
}

/// The files of one scenario.
pub(super) struct Files<'a> {
    pub(super) requests: &'a Path,
    pub(super) history: &'a Path,
    /// The history of what was converted, and what `convert` printed.
    pub(super) converted: Option<(&'a Path, &'a Path)>,
}

/// Compares the first request that has `mark` in it.
pub(super) fn compare(api: &str, mark: &str, files: &Files<'_>) -> Result<Verdict, Box<dyn std::error::Error>> {
    let expected = history(api, files.history)?;
    let request = request(api, mark, files.requests);
    let sent = request.as_ref().map(|body| items(api, messages(api, body))).unwrap_or_default();
    let sent: Vec<Item> = sent.into_iter().filter(|item| !item.text.contains(mark)).collect();
    let ours = in_our_words(&sent, &expected);
    let (verdict, difference) = match () {
        () if expected.is_empty() => ("nothing was written", String::new()),
        () if request.is_none() => ("no request", String::new()),
        () if sent == expected => ("the same", String::new()),
        () if ours == expected => ("the same, some of it in its own words", String::new()),
        () => ("differs", first_difference(&ours, &expected)),
    };
    let counts = |source: Option<usize>| [source, Some(expected.len()), Some(sent.len())];
    let Some((source, printed)) = files.converted else {
        return Ok(Verdict { counts: counts(None), verdict: verdict.to_owned(), difference });
    };
    // Thinking is only sent back to the model that wrote it.
    let spoken = |items: &[Item]| items.iter().filter(|item| item.label != "thinking").count();
    let source = spoken(&history(api, source)?);
    let verdict = if source == spoken(&expected) {
        verdict.to_owned()
    } else {
        match losses(printed)? {
            lost if lost.is_empty() => "differs: `convert` lost something without reporting it".to_owned(),
            lost => format!("{verdict}; reported by `convert`: {lost}"),
        }
    };
    Ok(Verdict { counts: counts(Some(source)), verdict, difference })
}

fn history(api: &str, path: &Path) -> Result<Vec<Item>, Box<dyn std::error::Error>> {
    let printed: Value =
        serde_json::from_slice(&fs::read(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(items(api, printed.as_array().map_or(&[], Vec::as_slice)))
}

fn request(api: &str, mark: &str, path: &Path) -> Option<Value> {
    let lines = fs::read_to_string(path).unwrap_or_default();
    let requests = lines.lines().filter(|line| line.contains(mark)).filter_map(|line| serde_json::from_str(line).ok());
    requests
        .filter(|request: &Value| request["api"] == api)
        .map(|request| request["body"].clone())
        .next()
}

/// What was sent, with our words where the agent has its own.
fn in_our_words(sent: &[Item], expected: &[Item]) -> Vec<Item> {
    let closed = |item: &Item| expected.iter().find(|ours| ours.label == item.label && ours.text.contains(NO_RESULT));
    let ours = |item: &Item| {
        let mut ours = closed(item).unwrap_or(item).clone();
        if ours.label == "user" && ours.text == NO_PICTURE {
            ours.text = "input_image".to_owned();
        }
        // Qwen Code sends pictures only to models that it knows to see.
        if ours.label == "user" && ours.text.starts_with("[image: ") && ours.text.ends_with(']') {
            ours.text = "image_url".to_owned();
        }
        ours
    };
    let mut ours: Vec<Item> = sent.iter().map(ours).collect();
    if ours.last().is_some_and(|item| item.label == "assistant" && item.text == CLOSES) {
        ours.pop();
    }
    ours
}

fn first_difference(sent: &[Item], expected: &[Item]) -> String {
    let pairs = sent.iter().zip(expected);
    let at = pairs.clone().position(|(sent, expected)| sent != expected).unwrap_or(pairs.len());
    let shown =
        |items: &[Item]| items.get(at).map_or("nothing".to_owned(), |item| format!("{}: {:?}", item.label, item.text));
    format!("item {}: sent {}, expected {}", at + 1, shown(sent), shown(expected))
}

/// The losses that `convert` reported and that a model can see.
fn losses(printed: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let report: Value = serde_json::from_slice(&fs::read(printed)?)?;
    let rows = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    let visible = rows.iter().filter(|row| !INVISIBLE.contains(&row["what"].as_str().unwrap_or_default()));
    let named = |row: &Value| {
        format!("{} {}", row["what"].as_str().unwrap_or_default(), row["kind"].as_str().unwrap_or_default())
    };
    Ok(visible.map(named).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(sent: Value, expected: Value) -> String {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("scrollback-compare-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (requests, history) = (folder.join("requests.jsonl"), folder.join("history.json"));
        fs::write(&requests, json!({"api": "anthropic", "body": {"messages": sent}}).to_string()).unwrap();
        fs::write(&history, expected.to_string()).unwrap();
        let files = Files { requests: &requests, history: &history, converted: None };
        let found = compare("anthropic", "GO-ON", &files).unwrap();
        fs::remove_dir_all(folder).unwrap();
        format!("{} {}", found.verdict, found.difference).trim_end().to_owned()
    }

    #[test]
    fn context_and_the_new_prompt_do_not_count() {
        let sent = json!([
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>today</system-reminder>"}, {"type": "text", "text": "Tides?"}]},
            {"role": "assistant", "content": "At 04:12."},
            {"role": "user", "content": "GO-ON"},
        ]);
        let expected = json!([{"role": "user", "content": "Tides?"}, {"role": "assistant", "content": [{"type": "text", "text": "At 04:12."}]}]);
        assert_eq!(verdict(sent, expected), "the same");
    }

    #[test]
    fn a_difference_is_shown() {
        let sent = json!([{"role": "user", "content": "Tides!"}, {"role": "user", "content": "GO-ON"}]);
        let expected = json!([{"role": "user", "content": "Tides?"}]);
        assert_eq!(verdict(sent, expected), "differs item 1: sent user: \"Tides!\", expected user: \"Tides?\"");
    }

    #[test]
    fn an_open_call_may_be_closed_in_other_words() {
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {"a": 1}}]});
        let result = |text: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": text}]});
        let sent = json!([call, result("interrupted"), {"role": "user", "content": "GO-ON"}]);
        let expected = json!([call, result("[no result was recorded: x]")]);
        assert_eq!(verdict(sent, expected), "the same, some of it in its own words");
    }
}
