//! Tool calls: one line while folded, and what went in and came out.

use maud::{Markup, html};
use scrollback::model::{ToolPart, ToolState, json};
use scrollback::view::tool_view::{
    self, Changes, Ending, FileAction, Question, ShellRun, SubAgent, ToolView, ending, result_text,
};
use serde_json::Value;

use super::icon::{chevron, icon};
use super::words::{plural, took};
use super::{Look, Medium, ansi, code, diff, markdown, noted, text, thought, todos};

/// A result of one line that is not longer is shown beside the call.
const NOTE_CHARS: usize = 60;

/// How much of an input is shown while the call is folded; the style sheet cuts what does not fit.
const ARGUMENT_CHARS: usize = 300;

/// A larger result is not read as JSON.
const JSON_LIMIT_BYTES: usize = 200_000;

/// Below this, a page has no room for what is inside a call.
const LEAST_ROOM_BYTES: usize = 2_000;

/// The conversation that a call started.
pub struct Nested {
    /// Its messages.
    pub html: Markup,
    /// What it took, in a few words.
    pub note: String,
}

/// How a call ended; one at the end of a session in which an agent is at work has no result yet.
pub fn ending_in(call: &ToolPart, is_at_work: bool) -> Ending {
    match ending(call) {
        Ending::NoResult if is_at_work => Ending::Running,
        ended => ended,
    }
}

/// A tool call that ended so. `nested` is the conversation that it started, `part` the way to all of it.
pub fn call(call: &ToolPart, ended: Ending, nested: Option<Nested>, part: Option<String>, look: &Look<'_>) -> Markup {
    let view = ToolView::of(call);
    let class = match (ended, &view) {
        (Ending::Failed | Ending::Interrupted, _) => "tool tool-err",
        (Ending::Denied, _) => "tool tool-denied",
        (Ending::Waiting, _) => "tool tool-wait",
        (Ending::Running, _) => "tool tool-run",
        (Ending::Ok | Ending::NoResult, ToolView::SubAgent(_)) => "tool tool-sub",
        (Ending::Ok | Ending::NoResult, _) => "tool",
    };
    let has_room = nested.is_some() || look.text_limit() >= LEAST_ROOM_BYTES;
    html! {
        details class=(class) id={ "t-" (text::anchor(&call.call_id)) } open[look.folds.tools] {
            summary {
                (mark(ended, call, &view))
                span.tool-name title=[title(call)] { (text::brief(&call.name, 120)) }
                span.tool-arg { (argument(call, &view, look)) }
                span.tool-note { (note(call, &view, ended, nested.as_ref())) }
                span.tool-time { @if let Some(ms) = noted(call, "durationMs").and_then(Value::as_u64) { (took(ms)) } }
                (chevron())
                @if let Some(why) = why(call, &view) { span.tool-why dir="auto" { (text::brief(&why, 400)) } }
            }
            div.tool-body {
                @if has_room {
                    (body(call, &view, ended, nested.map(|nested| nested.html), part, look))
                } @else {
                    (thought::way(part))
                }
            }
        }
    }
}

fn mark(ended: Ending, call: &ToolPart, view: &ToolView<'_>) -> Markup {
    match ended {
        Ending::Failed | Ending::Interrupted => icon("fail"),
        Ending::Denied => icon("ban"),
        Ending::Waiting => icon("wait"),
        Ending::Running => html! { span.live-dot aria-hidden="true" {} },
        Ending::Ok | Ending::NoResult => match view {
            ToolView::Shell(_) => icon("terminal"),
            ToolView::Change(changes) if changes.files.iter().all(|file| file.action == FileAction::Write) => {
                icon("write")
            }
            ToolView::Change(_) => icon("edit"),
            ToolView::SubAgent(_) => icon("agent"),
            ToolView::Todos { .. } => icon("list"),
            ToolView::Plan { .. } | ToolView::Questions { .. } => icon("prompt"),
            ToolView::Other if path(call).is_some() => icon("read"),
            ToolView::Other => icon("tool"),
        },
    }
}

/// The tool's name for people.
fn title(call: &ToolPart) -> Option<String> {
    let title = call.title.as_deref().or_else(|| noted(call, "displayName")?.as_str());
    title.filter(|title| *title != call.name).map(|title| text::brief(title, 200))
}

/// What the call is about, in one line.
fn argument(call: &ToolPart, view: &ToolView<'_>, look: &Look<'_>) -> String {
    text::brief(&about(call, view, |path| look.relative(path)), ARGUMENT_CHARS)
}

/// The same with paths as they are shown there.
fn about(call: &ToolPart, view: &ToolView<'_>, shown: impl for<'p> Fn(&'p str) -> &'p str) -> String {
    match view {
        ToolView::Shell(run) => run.command.to_string(),
        ToolView::Change(changes) => changed(changes, shown),
        ToolView::SubAgent(SubAgent { task, role: Some(role), .. }) => format!("{role}: {task}"),
        ToolView::SubAgent(agent) => agent.task.to_owned(),
        ToolView::Todos { .. } => String::new(),
        ToolView::Plan { text } => text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
        ToolView::Questions { questions } => {
            questions.first().map(|question| question.text.to_owned()).unwrap_or_default()
        }
        ToolView::Other => {
            let described = || noted(call, "description").and_then(Value::as_str).unwrap_or_default().to_owned();
            tool_view::summary(call.input(), shown).unwrap_or_else(described)
        }
    }
}

/// The name of a call, and what it is about.
pub fn in_one_line(call: &ToolPart) -> (String, String) {
    const SHOWN_CHARS: usize = 120;
    let about = about(call, &ToolView::of(call), |path| path);
    (text::brief(&call.name, 60), text::brief(&about, SHOWN_CHARS))
}

fn changed(changes: &Changes<'_>, shown: impl for<'p> Fn(&'p str) -> &'p str) -> String {
    let first = changes.files.first().map(|file| shown(file.path)).unwrap_or_default();
    match changes.files.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} and {} more", count - 1),
    }
}

/// How it ended: the answer itself if it is short, else how much there is.
fn note(call: &ToolPart, view: &ToolView<'_>, ended: Ending, nested: Option<&Nested>) -> Markup {
    match ended {
        Ending::Failed => {
            let code =
                if let ToolView::Shell(ShellRun { exit_code: Some(code), .. }) = view { Some(*code) } else { None };
            html! { "failed" @if let Some(code) = code { ", exit status " (code) } }
        }
        Ending::Denied => html! { "refused, not run" },
        Ending::Interrupted => html! { "interrupted" },
        Ending::Waiting => html! { "waits for approval" },
        Ending::Running => html! { "running" },
        Ending::NoResult => html! { "no result was recorded" },
        Ending::Ok => match view {
            ToolView::SubAgent(_) if let Some(nested) = nested.filter(|nested| !nested.note.is_empty()) => {
                html! { (nested.note) }
            }
            ToolView::Change(changes) => {
                let (added, removed) =
                    changes.files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
                html! {
                    @if added > 0 { span.add-n { "+" (added) } } " "
                    @if removed > 0 { span.del-n { "−" (removed) } }
                }
            }
            ToolView::Todos { items } => html! { (items.len()) " tasks" },
            ToolView::Shell(run) if run.exit_code.is_some_and(|code| code != 0) => {
                html! { "exit status " (run.exit_code.unwrap_or_default()) }
            }
            ToolView::Shell(run) => amount(&strip(&run.output)),
            _ => match call.output() {
                Some(output) if json::is_object(output) => fields(output),
                Some(output) => amount(&result_text(output)),
                None => html! {},
            },
        },
    }
}

fn fields(output: &Value) -> Markup {
    html! { (plural(output.as_object().map_or(0, |fields| fields.len()), "field")) }
}

fn amount(result: &str) -> Markup {
    let mut lines = result.lines().filter(|line| !line.trim().is_empty());
    match (lines.next(), lines.next()) {
        (None, _) => html! { "no output" },
        (Some(line), None) if line.trim().chars().count() <= NOTE_CHARS => html! { (text::line(line)) },
        _ => html! { (plural(result.lines().count(), "line")) },
    }
}

/// Printed text without its colours, for one line.
fn strip(output: &str) -> String {
    let mut plain = String::new();
    let mut rest = &output[..output.floor_char_boundary(JSON_LIMIT_BYTES)];
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let end = rest.find(|c: char| ('\u{40}'..='\u{7e}').contains(&c)).map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
    plain + rest
}

/// Why a call failed or was refused: its first line is shown even while it is folded.
fn why(call: &ToolPart, view: &ToolView<'_>) -> Option<String> {
    let why = match (&call.state, view) {
        (ToolState::OutputError { .. }, ToolView::Shell(run)) => strip(&run.output),
        (ToolState::OutputError { error_text, .. }, _) => tool_view::without_error_tags(error_text).to_owned(),
        (ToolState::OutputDenied { approval, .. } | ToolState::ApprovalResponded { approval, .. }, _) => approval
            .reason
            .clone()
            .filter(|reason| !reason.trim().is_empty())
            .map(|reason| format!("“{}”", reason.trim()))?,
        (ToolState::ApprovalRequested { approval, .. }, _) => approval.request_reason.clone()?,
        _ => return None,
    };
    why.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

fn body(
    call: &ToolPart,
    view: &ToolView<'_>,
    ended: Ending,
    nested: Option<Markup>,
    part: Option<String>,
    look: &Look<'_>,
) -> Markup {
    match view {
        ToolView::Shell(run) => shell(call, run, ended, part, look),
        ToolView::Change(changes) => html! { (diff::changes(changes, look)) (error(call, look)) (said(call)) },
        ToolView::Todos { items } => {
            html! { div.io { div.io-label { "Tasks" } (todos::list(items)) } (error(call, look)) }
        }
        ToolView::SubAgent(_) => html! {
            @match nested {
                Some(nested) => (nested),
                None => (input(call, look)),
            }
            (output(call, part, look)) (error(call, look))
        },
        ToolView::Plan { text } => html! {
            div.io { div.io-label { "Plan" } (markdown::prose(look.cut(text).0, look.level)) }
            (output(call, part, look)) (error(call, look)) (said(call))
        },
        ToolView::Questions { questions } => html! {
            @for question in questions { (asked(question)) }
            (error(call, look))
        },
        ToolView::Other => html! { (input(call, look)) (output(call, part, look)) (error(call, look)) (said(call)) },
    }
}

/// A command as on a terminal.
fn shell(call: &ToolPart, run: &ShellRun<'_>, ended: Ending, part: Option<String>, look: &Look<'_>) -> Markup {
    let (shown, is_whole) = look.cut(&run.output);
    let state = match ended {
        Ending::Waiting => "not run yet; answer in the agent, scrollback only reads",
        Ending::Denied => "not run",
        Ending::NoResult => "the session ended before this call finished",
        Ending::Ok | Ending::Failed | Ending::Interrupted | Ending::Running => "",
    };
    html! {
        pre.term tabindex="0" {
            span.term-cmd { (text::shown(run.command.trim())) }
            @if ended != Ending::Denied { (ansi::terminal(shown)) }
            @if !state.is_empty() { span.a-8 { (state) } }
            @if let Some(code) = run.exit_code.filter(|code| *code != 0) { span.term-exit { "exit status " (code) } }
        }
        @if !is_whole { (cut_after(&run.output, shown, part, look)) }
        @if !run.changes.is_empty() { div.io { div.io-label { "Changed meanwhile" } } (diff::changes(&run.changes, look)) }
        (said(call))
    }
}

/// What is missing of a long text, and the way to all of it; in a file, the rest itself.
fn cut_after(whole: &str, shown: &str, part: Option<String>, look: &Look<'_>) -> Markup {
    if look.medium == Medium::File {
        return thought::rest(&whole[shown.len()..], part, look);
    }
    html! {
        span.tool-more {
            (plural(shown.lines().count(), "line")) " of " (super::words::grouped(whole.lines().count() as u64)) ". "
            @if let Some(address) = part { a.link href=(address) { "Show all of it" } }
        }
    }
}

fn input(call: &ToolPart, look: &Look<'_>) -> Markup {
    let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
    let Some(input) = call.input().or(raw).filter(|input| !is_empty(input)) else { return html! {} };
    html! { div.io { div.io-label { "Input" } (value(input, look)) } }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn value(value: &Value, look: &Look<'_>) -> Markup {
    if let Value::String(text) = value {
        return plain(text, look);
    }
    let printed = json::to_string_pretty(value);
    match look.cut(&printed) {
        (_, true) => html! { figure.code { pre tabindex="0" { code { (code::json_value(value)) } } } },
        (_, false) => plain(&printed, look),
    }
}

/// A text as it is.
fn plain(text: &str, look: &Look<'_>) -> Markup {
    let (shown, is_whole) = look.cut(text);
    html! {
        figure.code { pre tabindex="0" { code { (text::shown(shown)) } } }
        @if !is_whole { (thought::rest(&text[shown.len()..], None, look)) }
    }
}

fn output(call: &ToolPart, part: Option<String>, look: &Look<'_>) -> Markup {
    let shown_by_agent = noted(call, "resultDisplay").and_then(Value::as_str).filter(|shown| !shown.trim().is_empty());
    let Some(output) = call.output() else { return html! {} };
    let result = shown_by_agent.map_or_else(|| result_text(output), Into::into);
    if result.trim().is_empty() {
        return html! {};
    }
    let (shown, is_whole) = look.cut(&result);
    let is_markdown = noted(call, "renderOutputAsMarkdown").and_then(Value::as_bool) == Some(true)
        || matches!(ToolView::of(call), ToolView::SubAgent(_));
    let json = Some(&*result)
        .filter(|result| is_whole && result.len() <= JSON_LIMIT_BYTES && result.trim_start().starts_with(['{', '[']))
        .and_then(|result| json::parse(result).ok());
    html! {
        div.io {
            div.io-label { "Output" }
            div {
                @if let Some(json) = json {
                    (value(&json, look))
                } @else if is_markdown {
                    (markdown::prose(shown, look.level))
                } @else if result.contains('\u{1b}') {
                    pre.term tabindex="0" { (ansi::terminal(shown)) }
                } @else {
                    @let language = path(call).map(code::language_of).unwrap_or_default();
                    figure.code { pre tabindex="0" { code { (code::highlighted(shown, language)) } } }
                }
                @if !is_whole { (cut_after(&result, shown, part, look)) }
            }
        }
    }
}

/// What went wrong, in full.
fn error(call: &ToolPart, look: &Look<'_>) -> Markup {
    let ToolState::OutputError { error_text, .. } = &call.state else { return html! {} };
    let error = tool_view::without_error_tags(error_text);
    let (shown, is_whole) = look.cut(error);
    html! {
        div.io {
            div.io-label { "Error" }
            div {
                pre.term tabindex="0" { (ansi::terminal(shown)) }
                @if !is_whole { (thought::rest(&error[shown.len()..], None, look)) }
            }
        }
    }
}

/// What was said about whether it may run.
fn said(call: &ToolPart) -> Markup {
    let Some(approval) = call.approval() else { return html! {} };
    let by = if approval.is_automatic == Some(true) { " by a rule" } else { "" };
    let word = match approval.approved {
        Some(true) => "Allowed",
        Some(false) => "Refused",
        None => "Asked",
    };
    html! {
        p.tool-more {
            (word) (by)
            @if let Some(reason) = &approval.reason { ": " span dir="auto" { (text::brief(reason, 500)) } }
        }
    }
}

fn asked(question: &Question<'_>) -> Markup {
    html! {
        div.io {
            div.io-label { "Asked" }
            div.prose dir="auto" {
                p { (text::shown(question.text)) }
                ul {
                    @for option in &question.options {
                        li {
                            @if option.is_chosen { strong { (text::line(option.label)) } span.meta { " chosen" } } @else { (text::line(option.label)) }
                            @if let Some(description) = option.description { span.meta { " " (text::brief(description, 300)) } }
                        }
                    }
                    @if let Some(other) = &question.other { li { strong { (text::brief(other, 500)) } span.meta { " answered" } } }
                }
            }
        }
    }
}

/// The file that a call names, where nothing else says what it does.
fn path(call: &ToolPart) -> Option<&str> {
    let input = call.input()?;
    ["file_path", "path", "filePath", "absolute_path", "notebook_path"]
        .iter()
        .find_map(|key| input.get(key)?.as_str())
}
