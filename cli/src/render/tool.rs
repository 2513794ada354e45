//! A tool call: what it does, how it ended, and some of what came out of it; all of it with `--full`.

use std::borrow::Cow;

use scrollback::model::{ToolPart, ToolState, json};
use scrollback::view::tool_view::{self, Ending, ShellRun, SubAgent, ToolView, ending, result_text};
use serde_json::Value;

use super::fold::{self, Fold, INDENT};
use super::{asked, change, clock, fields};
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown, width, wrap};

/// A folded command has this many lines.
const COMMAND_LINES: usize = 6;

/// A folded output or error has so many lines of its start and of its end.
pub(super) const OUTPUT_LINES: (usize, usize) = (4, 4);

/// Folded arguments have this many lines.
const ARGUMENT_LINES: usize = 6;

/// How calls are shown.
#[derive(Clone, Copy)]
pub(crate) struct CallLook<'a> {
    pub(crate) look: Look,
    /// Unfolds everything.
    pub(crate) full: bool,
    /// The directory that paths are shown relative to.
    pub(crate) cwd: Option<&'a str>,
    /// Whether a result may still come.
    pub(crate) live: bool,
}

/// A call that is neither a task list nor a sub-agent's.
pub(crate) fn render(call: &ToolPart, view: &ToolView<'_>, how: &CallLook<'_>) -> String {
    match view {
        ToolView::Shell(run) => shell(call, run, how),
        ToolView::Change(changes) => {
            // What failed has changed nothing.
            let has_failed = matches!(ending(call), Ending::Failed | Ending::Interrupted);
            let counted = if has_failed { String::new() } else { change::counted(changes.files.iter()) };
            let title = head(call, &change::subject(changes, how), &[counted], how);
            let shown = if has_failed && !how.full { String::new() } else { change::lines(changes, how) };
            title + &shown + &failure(call, how)
        }
        ToolView::Plan { text } => asked::plan(call, text, how),
        ToolView::Questions { questions } => asked::questions(call, questions, how),
        ToolView::Todos { .. } | ToolView::SubAgent(_) | ToolView::Other => other(call, how),
    }
}

/// `$ command`, how it ended, and what it printed.
fn shell(call: &ToolPart, run: &ShellRun<'_>, how: &CallLook<'_>) -> String {
    let (paint, ended) = (how.paint(), ending(call));
    let code = run.exit_code.filter(|code| *code != 0 || how.full).map(|code| format!("exit code {code}"));
    let state = state(call, word(call, how), &[code.unwrap_or_default()], how);
    let command = clean::text(run.command.trim()).into_owned();
    let ranges = wrap::code(&command, how.look.code.saturating_sub(6).max(1));
    let is_open = how.full || ranges.len() <= COMMAND_LINES + fold::HIDDEN_ROWS;
    let shown = if is_open { ranges.len() } else { COMMAND_LINES };
    let mut out = String::new();
    for (at, range) in ranges.iter().take(shown).enumerate() {
        let start = if at == 0 { format!("  {} {} ", how.mark(call), paint.bold("$")) } else { "      ".to_owned() };
        out += &format!("{start}{}\n", &command[range.clone()]);
    }
    if shown < ranges.len() {
        let bytes = command.len() - ranges[shown].start;
        out += &fold::more(ranges.len() - shown, bytes, &how.look);
    }
    let last = ranges.get(shown.wrapping_sub(1)).map_or(0, |range| width::of(&command[range.clone()]) + 6);
    if shown == ranges.len() && last + width::of(&state.0) + 3 <= how.look.code {
        out.truncate(out.trim_end_matches('\n').len());
        out += &format!(" {}\n", state.1);
    } else {
        out += &format!("{INDENT}{}\n", state.1);
    }
    let style = |line: &str| {
        if matches!(ended, Ending::Failed | Ending::Interrupted) { paint.red(line) } else { paint.dim(line) }
    };
    let (first, last) = OUTPUT_LINES;
    out += &fold::printed(&run.output, Fold::unless(how.full, first, last), &how.look, style);
    out += &change::while_running(&run.changes, how);
    // The reason of a refusal may be all that it printed.
    if ended == Ending::Denied && run.output.is_empty() { out + &failure(call, how) } else { out }
}

/// The most important arguments and the start of the result; with `--full` all of both.
fn other(call: &ToolPart, how: &CallLook<'_>) -> String {
    let result = call.output().map(|output| shown_result(call).unwrap_or_else(|| result_text(output)));
    let result = result.unwrap_or_default();
    let described = || about(call, "description").unwrap_or_default().to_owned();
    if !how.full {
        let subject = tool_view::summary(call.input(), |path| how.relative(path)).unwrap_or_else(described);
        let (in_head, below) = in_brief(&result, how);
        let facts = [in_head];
        let is_cut = width::of(&subject) > subject_columns(word(call, how), call, &facts, how);
        let Some(input) = call.input().filter(|_| is_cut) else {
            return head(call, &subject, &facts, how) + &below + &failure(call, how);
        };
        let arguments = fold::rows(&fields::aligned(input, &how.look), ARGUMENT_LINES, &how.look);
        let arrow = match &facts {
            [in_head] if !in_head.is_empty() => in_head,
            _ if !below.is_empty() => "→",
            _ => "",
        };
        let result = fold::printed(arrow, Fold::Open, &how.look, |line| how.paint().dim(line));
        return head(call, "", &[], how) + &arguments + &result + &below + &failure(call, how);
    }
    let mut out = head(call, "", std::slice::from_ref(&call.call_id), how);
    out.extend(
        about(call, "description").map(|text| fold::printed(text, Fold::Open, &how.look, |line| how.paint().dim(line))),
    );
    out += &call.input().map(|input| fields::aligned(input, &how.look)).unwrap_or_default();
    if !result.is_empty() {
        out += &format!("{INDENT}{}\n", how.paint().dim("→"));
    }
    out + &opened(call, &result, how) + &failure(call, how)
}

/// A short result for the first line of the call, or the first rows of a longer one.
fn in_brief(result: &str, how: &CallLook<'_>) -> (String, String) {
    const SHORT_BYTES: usize = 48;
    const PREVIEW_LINES: usize = 3;
    let result = &*readable(result);
    let mut lines = result.lines().filter(|line| !line.trim().is_empty());
    match (lines.next(), lines.next()) {
        (None, _) => (String::new(), String::new()),
        (Some(line), None) if line.len() <= SHORT_BYTES => (format!("→ {}", line.trim()), String::new()),
        _ => {
            let fold = Fold::To { first: PREVIEW_LINES, last: 0 };
            (String::new(), fold::printed(result, fold, &how.look, |line| how.paint().dim(line)))
        }
    }
}

/// A result without JSON's quotes and escapes.
fn readable(result: &str) -> Cow<'_, str> {
    let Some(json) = parsed(result) else { return result.into() };
    let mut brief = String::new();
    tool_view::brief(&mut brief, &json, 0);
    brief.into()
}

/// A result that is JSON: fields are easier to read.
fn parsed(result: &str) -> Option<Value> {
    const LIMIT_BYTES: usize = 100_000;
    let is_json = result.starts_with(['{', '[']) && result.len() <= LIMIT_BYTES;
    if is_json { json::parse(result).ok() } else { None }
}

/// A result, as Markdown where the agent asks for it.
fn opened(call: &ToolPart, result: &str, how: &CallLook<'_>) -> String {
    const MARKDOWN_LIMIT_BYTES: usize = 100_000;
    let is_markdown = noted(call, "renderOutputAsMarkdown").and_then(Value::as_bool) == Some(true);
    if is_markdown && result.len() <= MARKDOWN_LIMIT_BYTES {
        let rendered = markdown::render(result, &how.look.beside(INDENT.len()));
        return rendered.lines().map(|line| format!("{INDENT}{line}\n")).collect();
    }
    if let Some(json) = parsed(result) {
        return fields::aligned(&json, &how.look);
    }
    fold::printed(result, Fold::Open, &how.look, |line| how.paint().dim(line))
}

/// A sub-agent: its task, its last words and how to open it.
pub(crate) fn sub_agent(call: &ToolPart, agent: &SubAgent<'_>, last_words: Option<&str>, how: &CallLook<'_>) -> String {
    const WORDS_LINES: usize = 3;
    let paint = how.paint();
    let role = agent.role.map(|role| format!(" ({role})")).unwrap_or_default();
    let id = if how.full { call.call_id.clone() } else { String::new() };
    let mut out = head(call, &format!("{}{role}", agent.task), &[id], how);
    if let Some(input) = call.input().filter(|_| how.full) {
        out += &fields::aligned(input, &how.look);
    }
    let result = call.output().map(result_text).unwrap_or_default();
    let result = readable(&result);
    let words = last_words.unwrap_or(&result);
    out += &fold::printed(words, Fold::unless(how.full, WORDS_LINES, 0), &how.look, |line| paint.dim(line));
    if let Some(session) = agent.session {
        out += &format!("{INDENT}{}\n", paint.dim(&format!("└ sub-agent: scrollback show {session}")));
    }
    out + &failure(call, how)
}

/// The first line of a call: `✓ Read  cart.py · ok · 7 lines`.
pub(crate) fn head(call: &ToolPart, subject: &str, facts: &[String], how: &CallLook<'_>) -> String {
    head_saying(word(call, how), call, subject, facts, how)
}

/// The same with another word for how the call ended.
pub(super) fn head_saying(word: &str, call: &ToolPart, subject: &str, facts: &[String], how: &CallLook<'_>) -> String {
    let name = clean::line(&label(call)).into_owned();
    let subject = fold::cut(&subject.replace('\n', " "), subject_columns(word, call, facts, how));
    let state = state(call, word, facts, how);
    let subject = if subject.is_empty() { subject } else { format!("  {subject}") };
    format!("  {} {}{subject} {}\n", how.mark(call), how.paint().bold(&name), state.1)
}

/// The columns that the first line of a call has for its subject.
fn subject_columns(word: &str, call: &ToolPart, facts: &[String], how: &CallLook<'_>) -> usize {
    let (name, state) = (clean::line(&label(call)).into_owned(), state(call, word, facts, how));
    how.look.code.saturating_sub(4 + width::of(&name) + 2 + width::of(&state.0) + 1)
}

/// How a call ended, in a word.
pub(super) fn word(call: &ToolPart, how: &CallLook<'_>) -> &'static str {
    let ended = ending(call);
    if how.live && ended == Ending::NoResult { Ending::Running.name() } else { ended.name() }
}

/// How a call ended, and more facts, plain and painted.
fn state(call: &ToolPart, word: &str, facts: &[String], how: &CallLook<'_>) -> (String, String) {
    let took = noted(call, "durationMs").and_then(Value::as_u64).filter(|ms| *ms >= 1000).map(clock::span);
    let facts: String = took
        .iter()
        .chain(facts)
        .filter(|fact| !fact.is_empty())
        .map(|fact| format!(" · {}", clean::line(fact)))
        .collect();
    let paint = how.paint();
    let painted = match ending(call) {
        Ending::Ok => paint.dim(&format!("· {word}")),
        Ending::Failed | Ending::Denied | Ending::Interrupted => format!("{} {}", paint.dim("·"), paint.red(word)),
        Ending::Running | Ending::Waiting | Ending::NoResult => format!("{} {}", paint.dim("·"), paint.yellow(word)),
    };
    (format!("· {word}{facts}"), painted + &paint.dim(&facts))
}

/// Why a call failed or was refused.
pub(super) fn failure(call: &ToolPart, how: &CallLook<'_>) -> String {
    let why = match &call.state {
        ToolState::OutputError { error_text, .. } => error_text,
        ToolState::OutputDenied { approval, .. } | ToolState::ApprovalResponded { approval, .. } => {
            approval.reason.as_deref().unwrap_or_default()
        }
        _ => return String::new(),
    };
    let why = tool_view::without_error_tags(why);
    let why = if how.full { why } else { tool_view::refusal_words(why) };
    let (first, last) = OUTPUT_LINES;
    // An error is prose, however wide the window is.
    let look = Look { code: how.look.width, ..how.look };
    fold::printed(why, Fold::unless(how.full, first, last), &look, |line| how.paint().red(line))
}

impl CallLook<'_> {
    pub(crate) fn paint(&self) -> Paint {
        Paint { colour: self.look.colour }
    }

    /// A path below the working directory without that directory.
    pub(crate) fn relative<'p>(&self, path: &'p str) -> &'p str {
        let below = |cwd: &str| path.strip_prefix(cwd)?.strip_prefix('/');
        self.cwd.and_then(below).filter(|rest| !rest.is_empty()).unwrap_or(path)
    }

    fn mark(&self, call: &ToolPart) -> String {
        let paint = self.paint();
        match ending(call) {
            Ending::Ok => paint.green("✓"),
            Ending::Failed | Ending::Interrupted => paint.red("✗"),
            Ending::Denied => paint.red("⊘"),
            Ending::Running | Ending::NoResult => paint.yellow("…"),
            Ending::Waiting => paint.yellow("?"),
        }
    }
}

/// The tool's name for people, and its own.
fn label(call: &ToolPart) -> String {
    let title = call
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty())
        .or_else(|| about(call, "displayName"));
    match title.filter(|title| *title != call.name) {
        Some(title) => format!("{title} ({})", call.name),
        None => call.name.clone(),
    }
}

/// A text that the agent noted about the run of a tool.
fn about<'c>(call: &'c ToolPart, key: &str) -> Option<&'c str> {
    noted(call, key)?.as_str().filter(|text| !text.trim().is_empty())
}

fn noted<'c>(call: &'c ToolPart, key: &str) -> Option<&'c Value> {
    call.call_provider_metadata.as_ref()?.get("scrollback")?.get(key)
}

/// The result as the agent showed it.
fn shown_result(call: &ToolPart) -> Option<Cow<'_, str>> {
    about(call, "resultDisplay").map(Cow::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOK: Look = Look { width: 80, code: 80, colour: false };
    const FOLDED: CallLook<'_> = CallLook { look: LOOK, full: false, cwd: Some("/w"), live: false };
    const FULL: CallLook<'_> = CallLook { full: true, ..FOLDED };

    fn shown(call: &ToolPart, how: &CallLook<'_>) -> String {
        render(call, &ToolView::of(call), how)
    }

    fn call(note: Value) -> ToolPart {
        let state = ToolState::done(json!({"path": "a.rs"}), json!("raw"));
        let mut call = ToolPart::dynamic("read_file", "c1", state);
        call.call_provider_metadata = json!({"scrollback": note}).as_object().cloned();
        call
    }

    #[test]
    fn a_tool_has_its_name_for_people_and_its_own() {
        assert_eq!(shown(&call(json!({})), &FOLDED), "  ✓ read_file  a.rs · ok · → raw\n");
        let named = call(json!({"displayName": "ReadFile"}));
        assert_eq!(shown(&named, &FOLDED), "  ✓ ReadFile (read_file)  a.rs · ok · → raw\n");
        let titled = ToolPart { title: Some("Read a file".to_owned()), ..named };
        assert_eq!(shown(&titled, &FOLDED), "  ✓ Read a file (read_file)  a.rs · ok · → raw\n");
        assert!(shown(&titled, &FULL).starts_with("  ✓ Read a file (read_file) · ok · c1\n    path  a.rs\n"));
        let hostile = ToolPart { title: Some("a\u{1b}[2Jb".to_owned()), ..call(json!({})) };
        assert!(!shown(&hostile, &FOLDED).contains('\u{1b}') && !shown(&hostile, &FULL).contains('\u{1b}'));
    }

    #[test]
    fn a_result_is_shown_as_the_agent_showed_it() {
        let noted = call(json!({"description": "Reads a file", "resultDisplay": "\n3 lines"}));
        assert_eq!(shown(&noted, &FOLDED), "  ✓ read_file  a.rs · ok · → 3 lines\n");
        let full = shown(&noted, &FULL);
        assert!(
            full.contains("    Reads a file\n") && full.contains("    3 lines\n") && !full.contains("raw"),
            "{full}"
        );
        let markdown = call(json!({"resultDisplay": "# Title\n\n- **one**", "renderOutputAsMarkdown": true}));
        assert!(!shown(&markdown, &FULL).contains("**"));
        let mut without_input = call(json!({"description": "Lists files"}));
        without_input.state = ToolState::done(json!({}), json!("one\ntwo\n"));
        assert_eq!(shown(&without_input, &FOLDED), "  ✓ read_file  Lists files · ok\n    one\n    two\n");
    }

    #[test]
    fn a_command_is_shown_as_it_is_typed_with_its_output() {
        let mut ran = call(json!({"durationMs": 5300, "exitCode": 0}));
        ran.state = ToolState::done(json!({"command": "echo a;\nsleep 5"}), json!("\u{1b}[31ma\u{1b}[0m\n"));
        assert_eq!(shown(&ran, &FOLDED), "  ✓ $ echo a;\n      sleep 5 · ok · 5 s\n    a\n");
        ran.state = ToolState::failed(json!({"command": "make"}), "Exit code 2\nmake: *** no rule");
        ran.call_provider_metadata = None;
        assert_eq!(shown(&ran, &FOLDED), "  ✗ $ make · failed · exit code 2\n    make: *** no rule\n");
        ran.state = ToolState::called(json!({"command": "make"}));
        assert_eq!(shown(&ran, &FOLDED), "  … $ make · no result\n");
        assert_eq!(shown(&ran, &CallLook { live: true, ..FOLDED }), "  … $ make · running\n");
    }

    #[test]
    fn a_long_error_is_wrapped_and_not_cut() {
        let error = format!("Exit code 1\nError: {}the end", "very long ".repeat(20));
        let failed = ToolPart { state: ToolState::failed(json!({"command": "make"}), error), ..call(json!({})) };
        let shown = shown(&failed, &FOLDED);
        assert!(shown.ends_with(" the end\n") && !shown.contains('…'), "{shown}");
        assert!(shown.lines().all(|line| width::of(line) <= 80), "{shown}");
    }

    #[test]
    fn a_call_of_any_other_tool_shows_its_arguments_and_the_start_of_its_result() {
        let mut other = call(json!({}));
        let input = json!({"pattern": "def total", "path": "/w/src", "opts": {"deep": [1, {"a": "q\"t"}]}});
        other.state = ToolState::done(input, json!("a\nb\nc\nd\ne\nf\ng\n"));
        insta::assert_snapshot!(shown(&other, &FOLDED), @"
          ✓ read_file  def total in src · ok
            a
            b
            c
            … 4 more lines (7 B); --full shows them
        ");
        insta::assert_snapshot!(shown(&other, &FULL), @r#"
          ✓ read_file · ok · c1
            pattern  def total
            path     /w/src
            opts
              deep
                - 1
                - a  q"t
            →
            a
            b
            c
            d
            e
            f
            g
        "#);
        // Three lines are not worth a fold.
        other.state = ToolState::done(json!({}), json!("a\nb\nc\nd\ne\nf\n"));
        assert!(shown(&other, &FOLDED).ends_with("    e\n    f\n"));
        other.state = ToolState::done(
            json!({"sql": "select *\nfrom t"}),
            json!(r#"{"rows":[{"id":1,"name":"x"},{"id":2,"name":"y"}],"n":2}"#),
        );
        insta::assert_snapshot!(shown(&other, &FOLDED), @"
          ✓ read_file  sql: select * from t · ok
            {rows: [{id: 1, name: x}, {id: 2, name: y}], n: 2}
        ");
        insta::assert_snapshot!(shown(&other, &FULL), @"
          ✓ read_file · ok · c1
            sql  select *
                 from t
            →
            rows
              - id    1
                name  x
              - id    2
                name  y
            n     2
        ");
    }

    #[test]
    fn arguments_that_do_not_fit_into_a_line_are_aligned_fields() {
        let input = json!({"sql": "SELECT *\nFROM tides\nWHERE harbour = \"Brest\"", "limit": 10, "options": {"deep": true, "note": "x".repeat(30)}});
        let asked = ToolPart { state: ToolState::done(input, json!("2 rows")), ..call(json!({})) };
        insta::assert_snapshot!(shown(&asked, &FOLDED), @r#"
        ✓ read_file · ok
          sql      SELECT *
                   FROM tides
                   WHERE harbour = "Brest"
          limit    10
          options
            deep  true
            note  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          → 2 rows
        "#);
    }

    #[test]
    fn an_edit_is_a_difference() {
        let mut edit = call(json!({}));
        edit.state = ToolState::done(
            json!({"file_path": "/w/a\u{7}.txt", "old_string": "x\nb", "new_string": "x\nB"}),
            json!("ok"),
        );
        assert_eq!(shown(&edit, &FOLDED), "  ✓ read_file  a␇.txt · ok · +1 −1\n      x\n    - b\n    + B\n");
        // The agent noted the lines around it.
        let noted = json!({"structuredPatch": [{"oldStart": 1, "lines": [" a", "-x", "-b", "+x", "+B", " c"]}]});
        edit.call_provider_metadata = json!({"scrollback": noted}).as_object().cloned();
        assert!(shown(&edit, &FOLDED).ends_with("      a\n    - x\n    - b\n    + x\n    + B\n      c\n"));
        edit.call_provider_metadata = None;
        let long = json!({"file_path": "a", "old_string": "x", "new_string": "y".repeat(1_000)});
        edit.state = ToolState::done(long, json!("ok"));
        let row = "y".repeat(74);
        let rows = format!("    + {row}\n      {row}\n      {row}\n");
        assert!(
            shown(&edit, &FOLDED).ends_with(&format!("    - x\n{rows}      … 778 B more of this line\n")),
            "{}",
            shown(&edit, &FOLDED)
        );
        let error = "<tool_use_error>String to replace not found in file.</tool_use_error>";
        edit.state = ToolState::failed(json!({"file_path": "a", "old_string": "x", "new_string": "y"}), error);
        assert_eq!(shown(&edit, &FOLDED), "  ✗ read_file  a · failed\n    String to replace not found in file.\n");
    }
}
