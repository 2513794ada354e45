//! Questions that an agent asks a person, and the answers.
//!
//! The answers are in the text that the model is given; each agent has its own form of it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::result::result_text;
use crate::model::message::ToolPart;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question<'a> {
    /// What is asked.
    pub text: &'a str,
    /// What one may choose.
    pub options: Vec<Choice<'a>>,
    /// The answer, if it is none of the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice<'a> {
    /// Its name.
    pub label: &'a str,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// Whether the person chose it.
    #[serde(rename = "isChosen")]
    pub is_chosen: bool,
}

/// `{"questions": [{"question": …, "options": […]}]}`, or one such question alone.
pub(super) fn of<'a>(call: &'a ToolPart, input: &'a Map<String, Value>) -> Option<Vec<Question<'a>>> {
    let asked: Vec<&Map<String, Value>> = match input.get("questions") {
        Some(Value::Array(asked)) if !asked.is_empty() => asked.iter().map(Value::as_object).collect::<Option<_>>()?,
        None => vec![input],
        Some(_) => return None,
    };
    let result = call.output().map(result_text).unwrap_or_default();
    asked.into_iter().enumerate().map(|(at, asked)| question(asked, at, &result)).collect()
}

fn question<'a>(asked: &'a Map<String, Value>, at: usize, result: &str) -> Option<Question<'a>> {
    let text = asked.get("question")?.as_str()?;
    let options = asked.get("options")?.as_array()?;
    let mut options: Vec<Choice<'_>> = options.iter().map(choice).collect::<Option<_>>()?;
    let answer = answer(asked, text, at, result);
    let answers: Vec<&str> = answer.iter().flat_map(|answer| chosen(answer, &options)).collect();
    let mut others = Vec::new();
    for answer in answers {
        match options.iter_mut().find(|option| option.label == answer) {
            Some(option) => option.is_chosen = true,
            None => others.push(answer),
        }
    }
    let other = (!others.is_empty()).then(|| others.join(", "));
    Some(Question { text, options, other })
}

fn choice(option: &Value) -> Option<Choice<'_>> {
    let description = option.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    let label = option.as_str().or_else(|| option.get("label")?.as_str())?;
    Some(Choice { label, description, is_chosen: false })
}

/// The pieces of an answer: several options are joined with commas, but a label may have one too.
fn chosen<'t>(answer: &'t str, options: &[Choice<'_>]) -> Vec<&'t str> {
    if options.iter().any(|option| option.label == answer) {
        return vec![answer];
    }
    let pieces: Vec<&str> = answer.split(", ").collect();
    let is_known = |piece: &&str| options.iter().any(|option| option.label == *piece);
    if pieces.iter().any(is_known) { pieces } else { vec![answer] }
}

/// What the person answered.
///
/// ```text
/// {"answers": {"<id>": {"answers": ["Half up"]}}}             Codex, by the question's id; others by its number
/// Your questions have been answered: "<question>"="Half up".  Claude Code
/// **<header>**: Half up                                       Qwen Code
/// ```
fn answer(asked: &Map<String, Value>, text: &str, at: usize, result: &str) -> Vec<String> {
    if let Ok(Value::Object(result)) = serde_json::from_str::<Value>(result) {
        let number = at.to_string();
        let names = ["id", "header"].iter().filter_map(|key| asked.get(*key)?.as_str()).chain([text, &number]);
        let answers = result.get("answers").and_then(Value::as_object);
        return answers
            .and_then(|answers| names.into_iter().find_map(|name| answers.get(name)))
            .map_or(Vec::new(), texts);
    }
    if let Some((_, rest)) = result.split_once(&format!("\"{text}\"=\"")) {
        let is_end = |end: &usize| rest[end + 1..].is_empty() || rest[end + 1..].starts_with([',', '.', ' ', '\n']);
        let end = rest.match_indices('"').map(|(end, _)| end).find(is_end).unwrap_or(rest.len());
        return vec![rest[..end].to_owned()];
    }
    let header = asked.get("header").and_then(Value::as_str).unwrap_or_default();
    let line = result.lines().find_map(|line| line.strip_prefix(&format!("**{header}**: ")));
    line.map(str::to_owned).into_iter().collect()
}

/// A text, a list of texts, or an object with one.
fn texts(answer: &Value) -> Vec<String> {
    match answer.get("answers").unwrap_or(answer) {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect(),
        _ => Vec::new(),
    }
}
