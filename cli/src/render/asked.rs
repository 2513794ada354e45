//! Calls that ask a person: a plan to agree to, questions with options.

use scrollback::model::ToolPart;
use scrollback::view::tool_view::{Ending, Question, ending, result_text};
use serde_json::Value;

use super::fields;
use super::fold::{self, Fold, INDENT};
use super::tool::{CallLook, failure, head_saying, word};
use crate::terminal::{clean, markdown, width, wrap};

/// A folded plan has this many lines: it is what the person read.
const PLAN_LINES: usize = 60;

/// The plan, and whether the person accepted it.
pub(super) fn plan(call: &ToolPart, text: &str, how: &CallLook<'_>) -> String {
    let word = match ending(call) {
        Ending::Ok => "accepted",
        Ending::Failed | Ending::Denied => "rejected",
        Ending::Running | Ending::Waiting | Ending::NoResult => word(call, how),
    };
    let rendered = markdown::render(text, &how.look.beside(INDENT.len()));
    let lines: Vec<&str> = rendered.lines().collect();
    let shown = if how.full || lines.len() <= PLAN_LINES + 1 { lines.len() } else { PLAN_LINES };
    let mut out = head_saying(word, call, "", &id(call, how), how);
    out.extend(lines[..shown].iter().map(|line| format!("{}\n", format!("{INDENT}{line}").trim_end())));
    if shown < lines.len() {
        let bytes = lines[shown..].iter().map(|line| line.len() + 1).sum();
        out += &fold::more(lines.len() - shown, bytes, &how.look);
    }
    if how.full {
        let beside = call.input().and_then(Value::as_object).into_iter().flatten().filter(|(name, _)| *name != "plan");
        let beside: Value = beside.map(|(name, value)| (name.clone(), value.clone())).collect();
        out += &fields::aligned(&beside, &how.look);
        out += &result(call, how);
    }
    out + &failure(call, how)
}

/// The questions with their options, and what the person chose.
pub(super) fn questions(call: &ToolPart, questions: &[Question<'_>], how: &CallLook<'_>) -> String {
    let word = match ending(call) {
        Ending::Ok => "answered",
        Ending::Failed | Ending::Denied => "not answered",
        Ending::Running | Ending::Waiting | Ending::NoResult => word(call, how),
    };
    let paint = how.paint();
    let mut out = head_saying(word, call, "", &id(call, how), how);
    for question in questions {
        out += &hanging("", question.text, how, |text| paint.bold(text));
        for option in &question.options {
            let about = option.description.map(|about| format!(": {about}")).unwrap_or_default();
            let text = format!("{}{about}", option.label);
            out += &match option.is_chosen {
                true => hanging("● ", &text, how, |text| paint.green(text)),
                false => hanging("○ ", &text, how, |text| paint.dim(text)),
            };
        }
        out.extend(question.other.iter().map(|other| hanging("→ ", other, how, |text| paint.green(text))));
    }
    let is_found =
        |question: &Question<'_>| question.other.is_some() || question.options.iter().any(|option| option.is_chosen);
    if how.full || !questions.iter().all(is_found) {
        out += &result(call, how);
    }
    out + &failure(call, how)
}

/// The whole result.
fn result(call: &ToolPart, how: &CallLook<'_>) -> String {
    let result = call.output().map(result_text).unwrap_or_default();
    fold::printed(&result, Fold::unless(how.full, 4, 4), &how.look, |line| how.paint().dim(line))
}

fn id(call: &ToolPart, how: &CallLook<'_>) -> Vec<String> {
    how.full.then(|| call.call_id.clone()).into_iter().collect()
}

/// Wrapped text after a mark.
fn hanging(mark: &str, text: &str, how: &CallLook<'_>, style: impl Fn(&str) -> String) -> String {
    let text = clean::text(text.trim()).into_owned();
    let columns = how.look.width.saturating_sub(INDENT.len() + width::of(mark)).max(1);
    let rows = wrap::prose(&text, columns).into_iter().enumerate().map(|(at, range)| {
        let start = if at == 0 { mark.to_owned() } else { " ".repeat(width::of(mark)) };
        format!("{INDENT}{}\n", style(&format!("{start}{}", &text[range])))
    });
    rows.collect()
}
