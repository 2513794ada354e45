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
        Ending::Denied | Ending::Interrupted => "rejected",
        // It failed before it asked anybody.
        Ending::Failed | Ending::Running | Ending::Waiting | Ending::NoResult => word(call, how),
    };
    let rendered = markdown::render(text, &how.look.beside(INDENT.len()));
    let lines: Vec<&str> = rendered.lines().collect();
    let shown = if how.full || lines.len() <= PLAN_LINES + fold::HIDDEN_ROWS { lines.len() } else { PLAN_LINES };
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
        Ending::Denied | Ending::Interrupted => "not answered",
        Ending::Failed | Ending::Running | Ending::Waiting | Ending::NoResult => word(call, how),
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

#[cfg(test)]
mod tests {
    use scrollback::model::{Approval, ToolState};
    use scrollback::view::tool_view::ToolView;
    use serde_json::json;

    use super::*;
    use crate::render::tool;
    use crate::terminal::Look;

    const LOOK: Look = Look { width: 60, code: 60, colour: false };
    const FOLDED: CallLook<'_> = CallLook { look: LOOK, full: false, cwd: None, live: false };

    fn shown(name: &str, state: ToolState, how: &CallLook<'_>) -> String {
        let call = ToolPart::dynamic(name, "c1", state);
        tool::render(&call, &ToolView::of(&call), how)
    }

    fn denied(input: &Value, reason: &str) -> ToolState {
        let approval = Approval { approved: Some(false), reason: Some(reason.to_owned()), ..Approval::default() };
        ToolState::OutputDenied { input: input.clone(), approval }
    }

    #[test]
    fn a_plan_is_markdown_and_says_whether_it_was_accepted() {
        let input = json!({"plan": "# Plan\n\n- **one**\n- two\u{1b}[2J", "planFilePath": "p.md"});
        insta::assert_snapshot!(shown("ExitPlanMode", denied(&input, "the user said: smaller"), &FOLDED), @"
          ⊘ ExitPlanMode · rejected
            # Plan

            • one
            • two␛[2J
            the user said: smaller
        ");
        insta::assert_snapshot!(shown("ExitPlanMode", ToolState::done(input.clone(), json!("approved")), &CallLook { full: true, ..FOLDED }), @"
          ✓ ExitPlanMode · accepted · c1
            # Plan

            • one
            • two␛[2J
            planFilePath  p.md
            approved
        ");
        // The agent refused, and nobody was asked.
        let failed = shown("ExitPlanMode", ToolState::failed(input.clone(), "You are not in plan mode."), &FOLDED);
        assert!(
            failed.contains("✗ ExitPlanMode · failed\n") && failed.contains("You are not in plan mode."),
            "{failed}"
        );
        assert!(shown("ExitPlanMode", ToolState::called(input), &FOLDED).contains("· no result\n"));
        let long = json!({"plan": "- a\n".repeat(100)});
        assert!(shown("x", ToolState::called(long), &FOLDED).ends_with("… 40 more lines (240 B); --full shows them\n"));
    }

    #[test]
    fn an_answer_that_is_no_option_is_shown_and_so_is_one_that_is_not_understood() {
        let input = json!({"questions": [{"question": "Which?", "header": "H", "options": ["a", {"label": "b", "description": "the second"}]}]});
        insta::assert_snapshot!(shown("ask", ToolState::done(input.clone(), json!("**H**: neither")), &FOLDED), @"
          ✓ ask · answered
            Which?
            ○ a
            ○ b: the second
            → neither
        ");
        for (state, word) in [
            (ToolState::failed(input.clone(), "Tool \"ask\" not found in registry."), "failed"),
            (denied(&input, "Later."), "not answered"),
        ] {
            let shown = shown("ask", state, &FOLDED);
            assert!(shown.contains(&format!("ask · {word}\n")), "{shown}");
        }
        insta::assert_snapshot!(shown("ask", ToolState::done(input, json!("They chose b.")), &FOLDED), @"
          ✓ ask · answered
            Which?
            ○ a
            ○ b: the second
            They chose b.
        ");
    }
}
